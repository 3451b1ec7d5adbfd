"""The renter's half of the stick: who may sign, that signatures never fall, and what they mean."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.duration import HOUR_US
from domain.fleet.reasons import FleetReason
from domain.lease.countersign import (
    KEYS_MAX,
    AddSigningKey,
    CountersignUsage,
    RevokeSigningKey,
    SigningKeyAdded,
    UsageCountersigned,
    compare,
    message_for,
)
from domain.lease.reasons import LeaseReason
from domain.metering.reasons import MeteringReason
from domain.parties.reasons import PartiesReason
from domain.refusal import Reason
from domain.stream import Stream
from tests.domain.scenes.market import LEASE, NOON_US, OWNER, RENTER, close, job, opened, request
from tests.domain.scenes.market import scene as market
from tests.given import Scene

KEY, PUBLIC = "a" * 16, "0b" * 32
add = AddSigningKey(account_id=RENTER, key_id=KEY, public_key=PUBLIC, by="mem", at_us=NOON_US)


def sign(gpu_us: int, after_us: int = HOUR_US, **changes: object) -> CountersignUsage:
    command = CountersignUsage(
        lease_id=LEASE,
        account_id=RENTER,
        key_id=KEY,
        gpu_us=gpu_us,
        until_us=NOON_US + after_us,
        signature="00" * 64,
        at_us=NOON_US + 2 * HOUR_US,
    )
    return replace(command, **changes)  # type: ignore[arg-type]


def running() -> Scene:
    return opened().after(add)


def test_a_renter_signs_for_what_was_used_up_to_a_moment() -> None:
    running().when(sign(5)).then(
        (
            Stream("countersign", LEASE),
            UsageCountersigned(
                lease_id=LEASE,
                account_id=RENTER,
                key_id=KEY,
                gpu_us=5,
                until_us=NOON_US + HOUR_US,
                signature="00" * 64,
                at_us=NOON_US + 2 * HOUR_US,
            ),
        )
    )


def test_the_same_signature_again_changes_nothing_and_none_ever_falls() -> None:
    once = running().after(sign(5))
    once.when(sign(5)).then_nothing()
    once.when(sign(4)).then_refused(MeteringReason.COUNTERSIGN_FELL)
    once.when(sign(6, HOUR_US - 1)).then_refused(MeteringReason.COUNTERSIGN_FELL)
    assert once.when(sign(5, HOUR_US + 1)).changes()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (sign(1, account_id=OWNER), LeaseReason.LEASE_UNKNOWN),
        (sign(1, lease_id="lease_none"), LeaseReason.LEASE_UNKNOWN),
        (sign(1, key_id="b" * 16), PartiesReason.SIGNING_KEY_UNKNOWN),
        (sign(1, -1), MeteringReason.COUNTERSIGN_TIME),
        (sign(1, 2 * HOUR_US + 1), MeteringReason.COUNTERSIGN_TIME),
        (sign(-1), MeteringReason.COUNTERSIGN_TIME),
    ],
)
def test_what_nobody_can_sign_is_refused(command: CountersignUsage, reason: Reason) -> None:
    running().when(command).then_refused(reason)


def test_before_the_opening_there_is_nothing_to_sign_for() -> None:
    waiting = market().after(job()).after(request()).after(add)
    waiting.when(sign(0)).then_refused(FleetReason.LEASE_STATE)


def test_a_closed_lease_can_still_be_signed_for() -> None:
    assert running().after(close(HOUR_US)).when(sign(5)).changes()


def test_a_revoked_key_signs_no_more_and_never_comes_back() -> None:
    revoke = RevokeSigningKey(account_id=RENTER, key_id=KEY, by="mem", at_us=NOON_US)
    after = running().after(revoke)
    after.when(sign(1)).then_refused(PartiesReason.SIGNING_KEY_UNKNOWN)
    after.when(revoke).then_nothing()
    after.when(add).then_refused(PartiesReason.SIGNING_KEY_REVOKED)
    market().when(revoke).then_refused(PartiesReason.SIGNING_KEY_UNKNOWN)


def test_a_key_is_added_once_and_there_is_room_for_so_many() -> None:
    running().when(add).then_nothing()
    market().when(replace(add, public_key="zz" * 32)).then_refused(
        PartiesReason.SIGNING_KEY_INVALID
    )
    market().when(replace(add, account_id="acct_none")).then_refused(PartiesReason.ACCOUNT_UNKNOWN)
    many = [
        (
            Stream("signer", RENTER),
            SigningKeyAdded(
                account_id=RENTER, key_id=f"{n:016x}", public_key=PUBLIC, by="m", at_us=0
            ),
        )
        for n in range(KEYS_MAX)
    ]
    market().given(*many).when(add).then_refused(PartiesReason.COUNT_OUT_OF_RANGE)


def test_the_signed_bytes_are_four_lines() -> None:
    assert (
        message_for("lease_1", 5, 7) == b"tallystick/countersign/v1\nlease_1\ngpu_us 5\nuntil_us 7"
    )


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.none() | st.integers(0, 10**15))
def test_matched_unconfirmed_and_contested_add_up_to_what_was_metered(
    before: int, later: int, signed: int | None
) -> None:
    if signed is None:
        before = 0
    found = compare(before + later, before, signed)
    assert found.matched + found.unconfirmed + found.contested == before + later
    assert min(found.matched, found.unconfirmed, found.contested) >= 0
    assert found.matched <= (signed or 0)
