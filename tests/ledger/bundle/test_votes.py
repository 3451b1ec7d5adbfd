"""The offline check of votes: each signature again, from the facts alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.authority.register import GOVERNORS, GovernorChangeProposed, Register, evolve
from domain.authority.vote import VoteCast
from ledger.bundle.shape import GOVERNOR_FACT, VOTE_FACT, MarketNotes
from ledger.bundle.verify import _Verification
from ledger.log import codec
from tests.given import Scene
from tests.scenes.governors import ANNA, BORIS, THREE, WalletGovernor, enrolled


def noted(*facts: Any) -> MarketNotes:
    notes = MarketNotes()
    for position, fact in enumerate(facts, 1):
        name, body = codec.encode(fact, "c", "00")
        assert name in (GOVERNOR_FACT, VOTE_FACT)
        notes.take(position, name, body)
    return notes


def problems(*facts: Any, wallet_signer: Any = None) -> list[int]:
    from pathlib import Path

    work = _Verification(Path(), wallet_signer, notes=noted(*facts))
    work._check_votes()
    return [one.position for one in work.problems]


def a_vote(who: Any) -> VoteCast:
    change = GovernorChangeProposed(
        number=1,
        action="remove",
        governor_id=BORIS.governor_id,
        key=None,
        signature=None,
        threshold=None,
        governors=3,
        mode="shared",
        by="mem_op",
        at_us=1,
    )
    register = Scene().given(*enrolled(*THREE)).state(GOVERNORS)
    assert isinstance(register, Register)
    subject = evolve(register, change).changes[0].subject
    vote = who.vote(subject)
    return VoteCast(
        kind=subject.kind,
        subject=subject.subject,
        revision=1,
        content_sha256=subject.content_sha256,
        governors=3,
        choice="yes",
        rehearsal_sha256=None,
        governor_id=who.governor_id,
        signature=vote.signature,
        mode="shared",
        count=1,
        needed=2,
        reason=None,
        key_id="key_op",
        by="mem_op",
        at_us=1,
    )


FACTS = tuple(fact for _, fact in enrolled(*THREE))


def test_every_vote_and_enrolment_is_checked_by_its_governors_key() -> None:
    assert problems(*FACTS, a_vote(ANNA)) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"choice": "no"},
        {"content_sha256": "0" * 64},
        {"governor_id": BORIS.governor_id},
        {"governors": 2},
        {"signature": "0" * 128},
    ],
)
def test_a_vote_that_the_governor_did_not_sign_is_found(changed: dict[str, Any]) -> None:
    assert problems(*FACTS, replace(a_vote(ANNA), **changed)) == [4]


def test_a_wallets_vote_is_checked_where_the_library_is_there() -> None:
    from contracts.wallet_challenge import signer_of

    grace = WalletGovernor("grace")
    facts = (*(fact for _, fact in enrolled(grace)), a_vote(grace))
    assert problems(*facts, wallet_signer=signer_of) == []
    forged = replace(facts[-1], choice="no")
    assert problems(facts[0], forged, wallet_signer=signer_of) == [2]
