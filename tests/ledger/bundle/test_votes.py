"""The offline check of authority: every signature, voter and count again, from the facts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from domain.authority.acts import LIMITS, ActSignature, ActTaken, content_of, signed_text
from domain.authority.governors import ProposeGovernorChange, VoteOnGovernorChange
from domain.authority.key_recovery import (
    KeyRecoveryAnnounced,
    KeyRecoveryCancelled,
    KeyRecoveryEnded,
)
from domain.authority.register import (
    GOVERNORS,
    GovernorChangeScheduled,
    GovernorEnrolled,
    GovernorThresholdSet,
)
from domain.authority.vote import CANCEL, VoteCast, digest
from domain.epochs.policy import PolicyGovernance
from domain.governance.grant import GrantOpened
from domain.money import token
from domain.parties.account import ApiKeyIssued, OperatorBootstrapped
from ledger.bundle import passkey
from ledger.bundle.shape import MarketNotes
from ledger.bundle.verify import _Verification
from ledger.log import codec
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.epochs import POLICY
from tests.scenes.governors import (
    ANNA,
    BORIS,
    CLEO,
    DIDO,
    NETWORK,
    Governor,
    PasskeyGovernor,
    WalletGovernor,
)

BY: dict[str, Any] = {"by": "mem_op", "at_us": 1}


def faults(*facts: Any, wallet_signer: Any = None) -> list[tuple[int | None, str]]:
    """Position and text of each problem, the first fact at position 1."""
    notes = MarketNotes()
    for position, fact in enumerate(facts, 1):
        notes.take(position, *codec.encode(fact, "c", "00"))
    work = _Verification(Path(), wallet_signer, notes=notes)
    work._check_votes()
    return [(one.position, one.what) for one in work.problems]


def enrol(world: Booked, who: Governor) -> None:
    number = world.state(GOVERNORS).now.version
    world.do(ProposeGovernorChange(network=NETWORK, **who.enrolment(NETWORK, number), **BY))
    if number:
        vote(world, ANNA)


def vote(world: Booked, who: Governor, choice: str = "yes") -> None:
    change = world.state(GOVERNORS).changes[-1]
    subject = change.subject
    if choice == CANCEL:
        subject = replace(subject, governors=world.state(GOVERNORS).now.version)
    world.do(
        VoteOnGovernorChange(
            number=change.proposed.number,
            choice=choice,
            vote=who.vote(subject, choice),
            open_epoch=0,
            key_id="key_op",
            **BY,
        )
    )


LIMITED = replace(
    POLICY,
    rewards=None,
    governance=PolicyGovernance(approvals=2, notice_epochs=1, alone=replace(LIMITS, goodwill=10)),
)


@cache
def history() -> tuple[Any, ...]:
    """Three enrol; two of them vote that the third leaves, and one would take that back."""
    world = Booked()
    for who in (ANNA, BORIS, CLEO):
        enrol(world, who)
    enrol_fourth = DIDO.enrolment(NETWORK, 3)
    world.do(ProposeGovernorChange(network=NETWORK, **enrol_fourth, **BY))
    vote(world, ANNA)
    vote(world, BORIS)
    vote(world, CLEO, CANCEL)
    return tuple(change.fact for change in world.log)


def ruled() -> tuple[Any, ...]:
    """The same under a policy with a limit of 10 for goodwill."""
    return (*history(), LIMITED)


VOTES = [place for place, fact in enumerate(history()) if isinstance(fact, VoteCast)]
SECOND = VOTES[-2]
"""The vote of the second governor, which carries the change."""


def test_what_governors_did_is_found_good() -> None:
    assert faults(*history()) == []
    assert [history()[place].governor_id for place in VOTES[-3:]] == [
        who.governor_id for who in (ANNA, BORIS, CLEO)
    ]


@pytest.mark.parametrize("place", VOTES)
@pytest.mark.parametrize(
    "changed",
    [
        {"choice": "no"},
        {"content_sha256": "0" * 64},
        {"governors": 1_000},
        {"governor_id": DIDO.governor_id},
        {"signature": "0" * 128},
        {"count": 7},
        {"needed": 0},
        {"mode": "alone"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_vote_that_was_not_cast_like_this_is_found(changed: dict[str, Any], place: int) -> None:
    forged = list(history())
    forged[place] = replace(forged[place], **changed)
    assert place + 1 in [position for position, _ in faults(*forged)]


def test_one_person_does_not_count_twice() -> None:
    first = history()[VOTES[-3]]
    forged = [*history()[: VOTES[-3] + 1], replace(first, count=2)]
    assert faults(*forged) == [(len(forged), f"{ANNA.governor_id} voted already")]


def test_a_change_without_enough_votes_is_found() -> None:
    """Who may write the log leaves the second vote out, or writes the outcome alone."""
    kept = [fact for place, fact in enumerate(history()) if place != SECOND]
    places = [n for n, fact in enumerate(kept, 1) if isinstance(fact, GovernorChangeScheduled)]
    assert (places[-1], "1 of 2 votes on governors 3") in faults(*kept)
    told = history()[:-1]
    alone = GovernorThresholdSet(change=0, version=4, threshold=3, mode="shared", at_us=2)
    assert faults(*told, alone) == [(len(told) + 1, "nobody voted yes on governors 0")]
    dido = next(fact for fact in history() if isinstance(fact, GovernorEnrolled))
    second = replace(dido, version=4, threshold=2, mode="shared")
    found = faults(*told, second)
    assert (len(told) + 1, "nobody voted yes on governors 0") in found


def test_what_needs_votes_and_had_none_is_found() -> None:
    first = replace(POLICY, rewards=None)
    assert faults(*history(), first) == []
    later = replace(POLICY, version=2, effective_from_epoch=9, proposal=24)
    grant = GrantOpened(
        grant_id="grant_1", locked=token(1), unassigned=token(0), proposed_by="mem_op", **BY
    )
    end = len(history())
    assert faults(*history(), first, later, grant) == [
        (end + 2, "nobody voted yes on policy 24"),
        (end + 3, "nobody voted yes on grant grant_1"),
    ]
    unvoted = replace(later, proposal=None)
    assert faults(*history(), unvoted) == [(end + 1, "nobody voted yes on policy None")]


# --- acts -------------------------------------------------------------------------------------


def act(*who: Governor, request: str = "act-1", **changes: Any) -> ActTaken:
    content = content_of("POST", "/v1/adjustments", {}, 99)
    text = signed_text(NETWORK, request, digest(content), 3)
    signed = tuple(ActSignature(one.governor_id, one.sign(text)) for one in who)
    made = ActTaken(
        act="goodwill",
        request=request,
        content=content if who else None,
        content_sha256=digest(content) if who else None,
        units=11 if who else 10,
        alone=0,
        limit=10,
        mode="shared",
        governors=3,
        signed=signed,
        key_id="key_op",
        **BY,
    )
    return replace(made, **changes)


def test_acts_of_two_governors_and_small_ones_of_one_are_good() -> None:
    second = act(request="act-2", units=0, alone=10)
    assert faults(*ruled(), act(ANNA, BORIS), act(), second) == []


@pytest.mark.parametrize(
    ("forged", "what"),
    [
        (act(ANNA), "one person alone above the limit"),
        (act(ANNA, ANNA), "one person alone above the limit"),
        (act(units=11), "one person alone above the limit"),
        (act(ANNA, DIDO), f"{DIDO.governor_id} is no governor"),
        (act(ANNA, BORIS, content="{}"), "another content than the one that was signed"),
        (act(ANNA, BORIS, mode="single"), "another set of governors than the one in force"),
        (act(ANNA, BORIS, governors=2), "another set of governors than the one in force"),
        (act(alone=-9, units=19), "one person had moved 0, not -9"),
        (act(units=11, limit=11), "says a limit of 11; the policy's is 10"),
        (act(ANNA, BORIS, limit=None), "says a limit of None; the policy's is 10"),
        (act(act="whim"), "whim is no act that takes two"),
    ],
)
def test_an_act_that_took_too_few_is_found(forged: ActTaken, what: str) -> None:
    assert (len(ruled()) + 1, what) in faults(*ruled(), forged)


def test_a_signed_act_serves_once_and_what_one_moved_before_counts() -> None:
    end = len(ruled())
    assert faults(*ruled(), act(ANNA, BORIS), act(ANNA, BORIS)) == [
        (end + 2, "a signed request was used before")
    ]
    hidden = act(request="act-2", units=10)
    assert faults(*ruled(), act(), hidden) == [(end + 2, "one person had moved 10, not 0")]


def test_a_wallets_vote_is_checked_where_the_library_is_there() -> None:
    from contracts.wallet_challenge import signer_of

    world, grace = Booked(), WalletGovernor("grace")
    enrol(world, grace)
    world.do(ProposeGovernorChange(network=NETWORK, **BORIS.enrolment(NETWORK, 1), **BY))
    vote(world, grace)
    facts = [change.fact for change in world.log]
    assert faults(*facts, wallet_signer=signer_of) == []
    place = next(place for place, fact in enumerate(facts) if isinstance(fact, VoteCast))
    facts[place] = replace(facts[place], rehearsal_sha256="0" * 64)
    assert [position for position, _ in faults(*facts, wallet_signer=signer_of)] == [place + 1]


@pytest.mark.parametrize("is_eddsa", [False, True])
def test_a_passkeys_vote_is_checked_with_its_public_key_alone(
    is_eddsa: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, paula = Booked(), PasskeyGovernor("paula", is_eddsa=is_eddsa)
    enrol(world, paula)
    world.do(ProposeGovernorChange(network=NETWORK, **BORIS.enrolment(NETWORK, 1), **BY))
    vote(world, paula)
    facts = [change.fact for change in world.log]
    assert faults(*facts) == []
    place = next(place for place, fact in enumerate(facts) if isinstance(fact, VoteCast))
    for changed in ("0" * 64, "1" * 64):
        facts[place] = replace(facts[place], rehearsal_sha256=changed)
        assert [position for position, _ in faults(*facts)] == [place + 1]
    monkeypatch.setattr(passkey, "is_checkable", lambda: False)
    assert faults(*facts) == [], "without the library it is counted as not checked"


HOUR_US = 3_600_000_000
ANNOUNCED = KeyRecoveryAnnounced(
    number=1,
    account_id="acct_op",
    member_id="mem_op",
    key_id="new",
    key_sha256="0" * 64,
    effective_at_us=73 * HOUR_US,
    governors=0,
    mode="single",
    at_us=HOUR_US,
)
ENDED = KeyRecoveryEnded(number=1, at_us=73 * HOUR_US)
STOPPED = KeyRecoveryCancelled(number=1, mode="single", by="mem_op", at_us=2)


def operator_key(key_id: str, by: str | None = None) -> ApiKeyIssued:
    return ApiKeyIssued(
        account_id="acct_op",
        key_id=key_id,
        key_sha256="0" * 64,
        member_id="mem_op",
        scopes=(),
        expires_at_us=None,
        by_key_id=by,
        succeeds=None,
        at_us=1,
    )


FOUNDED = (
    OperatorBootstrapped(account_id="acct_op", environment="production", at_us=1),
    operator_key("first"),
    operator_key("second", by="first"),
)


def test_a_key_of_the_operator_that_was_announced_for_72_hours_is_found_good() -> None:
    assert faults(*FOUNDED, ANNOUNCED, ENDED, operator_key("new")) == []
    assert faults(*FOUNDED, ANNOUNCED, STOPPED) == []


@pytest.mark.parametrize(
    ("then", "what"),
    [
        ((operator_key("new"),), "no other key issued"),
        ((ANNOUNCED, operator_key("new")), "no other key issued"),
        ((ANNOUNCED, ENDED, operator_key("another")), "no other key issued"),
        ((ENDED,), "waits"),
        ((ANNOUNCED, replace(ENDED, at_us=73 * HOUR_US - 1)), "too early"),
        ((ANNOUNCED, STOPPED, ENDED), "waits"),
        ((history()[0], ANNOUNCED, STOPPED), "no governor"),
    ],
)
def test_a_key_of_the_operator_from_nowhere_is_found(then: tuple[Any, ...], what: str) -> None:
    ((position, said),) = faults(*FOUNDED, *then)
    assert (position, what in said) == (len(FOUNDED) + len(then), True), said
