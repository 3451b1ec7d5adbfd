"""Endpoints: which addresses they may have, and how they are stopped and started."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.parties.reasons import PartiesReason
from domain.parties.webhook import (
    ENDPOINTS_MAX,
    OVERLAP_US,
    TYPES_MAX,
    URL_MAX,
    AddWebhook,
    DisableWebhook,
    EnableWebhook,
    RotateWebhookSecret,
    WebhookSecretRotated,
)
from domain.stream import Stream
from tests.domain.scenes.market import NOON_US, OWNER, RENTER, scene

HOOK = "hook_" + "1" * 32
add = AddWebhook(
    endpoint_id=HOOK,
    account_id=RENTER,
    url="https://hooks.example.com/x?y=1",
    types=("lease.",),
    secret_id="secret_1",
    others=0,
    by="mem",
    at_us=NOON_US,
)
rotate = RotateWebhookSecret(
    endpoint_id=HOOK, account_id=RENTER, secret_id="secret_2", by="mem", at_us=NOON_US
)
stop = DisableWebhook(
    endpoint_id=HOOK, account_id=RENTER, reason="owner", position=7, by="mem", at_us=NOON_US
)
start = EnableWebhook(endpoint_id=HOOK, account_id=RENTER, others=0, by="mem", at_us=NOON_US)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com",
        "https://",
        "ftp://a.example",
        "https://u:p@a.example/",
        "https://a.example/#x",
        "https://a.example:22/",
        "https://a b.example/",
        "https://[::1",
        "https://exämple.com/",
        "https://a.example/" + "x" * URL_MAX,
    ],
)
def test_an_endpoint_is_https_with_a_host_and_nothing_secret(url: str) -> None:
    scene().when(replace(add, url=url)).then_refused(PartiesReason.WEBHOOK_URL)


@pytest.mark.parametrize(
    "url", ["https://a.example", "https://a.example:8443/x/y?z=1&w=%20", "https://a?x"]
)
def test_a_plain_address_is_taken(url: str) -> None:
    assert scene().when(replace(add, url=url)).changes()


def test_an_endpoint_is_added_once_for_an_open_account() -> None:
    scene().after(add).when(add).then_nothing()
    scene().when(replace(add, account_id="acct_no")).then_refused(PartiesReason.ACCOUNT_UNKNOWN)
    many = replace(add, types=("lease.",) * (TYPES_MAX + 1))
    scene().when(many).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)


def test_s_m7_an_account_has_sixteen_endpoints_that_are_told() -> None:
    assert scene().when(replace(add, others=ENDPOINTS_MAX - 1)).changes()
    scene().when(replace(add, others=ENDPOINTS_MAX)).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    full = replace(start, others=ENDPOINTS_MAX)
    stopped = scene().after(add).after(stop)
    stopped.when(full).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)
    scene().after(add).when(full).then_nothing()


def test_both_secrets_sign_for_a_day_after_a_rotation() -> None:
    rotated = WebhookSecretRotated(
        endpoint_id=HOOK,
        secret_id="secret_2",
        previous_id="secret_1",
        overlap_until_us=NOON_US + OVERLAP_US,
        by="mem",
        at_us=NOON_US,
    )
    scene().after(add).when(rotate).then((Stream("webhook", HOOK), rotated))
    scene().after(add).after(rotate).when(rotate).then_nothing()
    third = replace(rotated, secret_id="secret_3", previous_id="secret_2")
    again = replace(rotate, secret_id="secret_3")
    scene().after(add).after(rotate).when(again).then((Stream("webhook", HOOK), third))


def test_stopping_and_starting_twice_is_once() -> None:
    stopped = scene().after(add).after(stop)
    stopped.when(stop).then_nothing()
    assert stopped.when(start).changes()
    scene().after(add).when(start).then_nothing()


@pytest.mark.parametrize("command", [rotate, stop, start])
def test_another_accounts_endpoint_is_unknown(
    command: RotateWebhookSecret | DisableWebhook | EnableWebhook,
) -> None:
    theirs = replace(command, account_id=OWNER)
    scene().after(add).when(theirs).then_refused(PartiesReason.WEBHOOK_UNKNOWN)
    scene().when(command).then_refused(PartiesReason.WEBHOOK_UNKNOWN)
