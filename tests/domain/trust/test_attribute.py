"""Statements of third parties: named by what they say, never the owner's own, and revocable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.fleet.reasons import FleetReason
from domain.lease.countersign import SigningKeyAdded, SigningKeyRevoked
from domain.parties.account import AccountOpened
from domain.parties.reasons import PartiesReason
from domain.stream import Stream
from domain.trust.attribute import (
    AttributeStated,
    RevokeAttribute,
    StateAttribute,
    attribute_of,
    message_for,
)
from tests.domain.scenes import supply
from tests.domain.scenes.supply import ALICE, NODE, NOON_US, PROVIDER

LAB = "acct_lab"
KEY = SigningKeyAdded(
    account_id=LAB, key_id="0" * 16, public_key="ab" * 32, by="mem_lab", at_us=NOON_US
)
SCENE = supply.with_active_node.given(
    (
        Stream("account", LAB),
        AccountOpened(account_id=LAB, kind="party", opened_by="key_ops", at_us=NOON_US),
    ),
    (Stream("signer", LAB), KEY),
)
SAID = StateAttribute(
    subject_id=NODE,
    name="location",
    value="DE-BE",
    signer_account_id=LAB,
    key_id="0" * 16,
    signature="00" * 64,
    stated_at_us=NOON_US,
    expires_at_us=NOON_US + 10,
    by="mem_alice",
    at_us=NOON_US,
)
REVOKE = RevokeAttribute(
    statement_id=SAID.statement_id, account_id=LAB, by="mem_lab", at_us=NOON_US + 5
)


@pytest.mark.parametrize("subject_id", [NODE, PROVIDER])
def test_a_third_party_states_something_of_a_node_or_a_provider(subject_id: str) -> None:
    said = replace(SAID, subject_id=subject_id)
    (change,) = SCENE.when(said).changes()
    assert isinstance(change.fact, AttributeStated)
    assert change.stream == Stream("attribute", said.statement_id)
    assert change.fact.value == "DE-BE"


def test_the_same_statement_twice_is_one_and_another_word_makes_another() -> None:
    SCENE.after(SAID).when(replace(SAID, by="mem_other", at_us=NOON_US + 1)).then_nothing()
    others = [
        replace(SAID, value="DE-BY"),
        replace(SAID, name="site"),
        replace(SAID, key_id="1" * 16),
        replace(SAID, expires_at_us=None),
        replace(SAID, stated_at_us=NOON_US - 1),
        replace(SAID, subject_id=PROVIDER),
    ]
    assert len({SAID.statement_id, *(other.statement_id for other in others)}) == 7


def test_nobody_speaks_for_himself() -> None:
    own = replace(SAID, signer_account_id=ALICE)
    SCENE.when(own).then_refused(PartiesReason.NOT_PERMITTED)


def test_a_key_that_is_unknown_or_revoked_signs_nothing_more() -> None:
    SCENE.when(replace(SAID, key_id="1" * 16)).then_refused(PartiesReason.SIGNING_KEY_UNKNOWN)
    gone = SigningKeyRevoked(account_id=LAB, key_id="0" * 16, by="mem_lab", at_us=NOON_US)
    before = SCENE.after(SAID).given((Stream("signer", LAB), gone))
    before.when(replace(SAID, value="DE-BY")).then_refused(PartiesReason.SIGNING_KEY_UNKNOWN)
    before.when(SAID).then_nothing()
    assert attribute_of(before, SAID.statement_id).stated is not None


def test_only_its_signer_takes_a_statement_back_and_it_stays_back() -> None:
    scene = SCENE.after(SAID)
    stranger = replace(REVOKE, account_id=ALICE)
    scene.when(stranger).then_refused(FleetReason.ATTRIBUTE_UNKNOWN)
    revoked = scene.after(REVOKE)
    assert attribute_of(revoked, SAID.statement_id).revoked_at_us == NOON_US + 5
    revoked.when(REVOKE).then_nothing()
    revoked.when(SAID).then_refused(FleetReason.ATTRIBUTE_REVOKED)


def test_a_statement_is_of_the_past_and_expires_later() -> None:
    SCENE.when(replace(SAID, stated_at_us=NOON_US + 1)).then_refused(
        FleetReason.BAD_PERIOD, stated_at_us=...
    )
    SCENE.when(replace(SAID, expires_at_us=NOON_US)).then_refused(
        FleetReason.BAD_PERIOD, expires_at_us=...
    )
    SCENE.when(replace(SAID, name="Not A Name")).then_refused(PartiesReason.UNKNOWN_MODE)
    SCENE.when(replace(SAID, value="two\nlines")).then_refused(PartiesReason.UNKNOWN_MODE)
    SCENE.when(replace(SAID, subject_id="node_9")).then_refused(FleetReason.NODE_UNKNOWN)


def test_the_signed_bytes_are_five_lines() -> None:
    assert message_for("node_1", "location", "DE", 5, None) == (
        b"tallystick/attribute/v1\nsubject node_1\nlocation DE\nstated_at_us 5\nexpires_at_us never"
    )
