"""The offline check that what came of a vote is what was voted on, to each number."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from domain.authority.register import GOVERNORS, GovernorEnrolled
from domain.authority.vote import VoteCast, digest
from domain.epochs.epoch import EpochOpened
from domain.epochs.policy import PolicyPublished
from domain.governance.grant import (
    TREASURY,
    GrantOpened,
    GrantProposed,
    Milestone,
    MilestoneAccepted,
    opening_of,
)
from domain.governance.proposal import PolicyProposed
from domain.money import token
from domain.parties.account import AccountOpened
from domain.stream import Stream
from tests.domain.governance import test_grant, test_proposal
from tests.domain.scenes.epochs import READY, opened
from tests.ledger.bundle.test_votes import faults, history
from tests.scenes.booked import Booked
from tests.scenes.governors import ANNA, BORIS, CLEO


@cache
def granted() -> tuple[Any, ...]:
    """A grant is opened by two governors, and they accept one of its milestones."""
    made = Booked()
    for fact in history():
        made.record(GOVERNORS, fact)
    opened = AccountOpened(account_id=test_grant.BEAM, kind="party", opened_by="op", at_us=1)
    made.record(Stream("account", test_grant.BEAM), opened)
    made.books[TREASURY] = made.books["chain:distributor"] = 60_000 * test_grant.TOKEN
    facts = list(made.do(test_grant.proposing))
    for who in (ANNA, BORIS):
        facts += made.do(test_grant.opening(made, who))
    facts += made.do(test_grant.done("api-integration"))
    for who in (BORIS, CLEO):
        facts += made.do(test_grant.accept(made, "api-integration", who))
    return (*history(), *facts)


@cache
def published() -> tuple[Any, ...]:
    """Two governors vote for a policy, and it is scheduled."""
    scene = READY.given(
        (Stream("epoch", "1"), opened(1)), *((GOVERNORS, fact) for fact in history())
    )
    before = len(scene.past)
    scene = scene.after(test_proposal.proposing(test_proposal.plain()))
    for who in (BORIS, CLEO):
        scene = scene.after(test_proposal.yes(scene, who))
    scene = scene.after(test_proposal.scheduling(scene, 1))
    first = [one for _, one in scene.past if isinstance(one, (PolicyPublished, EpochOpened))][:2]
    return (*history(), *first, *(fact for _, fact in scene.past[before:]))


def forged(facts: tuple[Any, ...], kind: type[Any], **changes: Any) -> list[Any]:
    """The log with the last fact of this kind changed."""
    place = max(at for at, fact in enumerate(facts) if isinstance(fact, kind))
    return [*facts[:place], replace(facts[place], **changes), *facts[place + 1 :]]


def test_what_came_of_votes_is_found_good() -> None:
    assert faults(*granted()) == []
    assert faults(*published()) == []
    assert {type(fact) for fact in (*granted(), *published())} >= {
        GrantOpened,
        MilestoneAccepted,
        PolicyPublished,
    }


@pytest.mark.parametrize(
    ("kind", "changes", "what"),
    [
        (GrantOpened, {"locked": token(1)}, "another total than the one that was voted on"),
        (MilestoneAccepted, {"amount": token(1)}, "another amount than the one that was voted on"),
        (GrantProposed, {"account_id": "acct_thief"}, "the votes are on another content"),
        (GrantProposed, {"total": token(10**9)}, "the votes are on another content"),
        (
            GrantProposed,
            {"milestones": (Milestone("api-integration", 900_000),)},
            "the votes are on another content",
        ),
    ],
)
def test_a_grant_that_is_not_the_one_voted_on_is_found(
    kind: type[Any], changes: dict[str, Any], what: str
) -> None:
    assert what in [told for _, told in faults(*forged(granted(), kind, **changes))]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"compute_ppm": 1}, "compute_ppm of the policy is not what was voted on"),
        ({"rewards": None}, "rewards of the policy is not what was voted on"),
        ({"hard_cap": token(1)}, "hard_cap of the policy is not what was voted on"),
        ({"proposal": 25}, "nobody voted yes on policy 25"),
    ],
)
def test_a_policy_that_is_not_the_one_voted_on_is_found(changes: dict[str, Any], what: str) -> None:
    assert what in [told for _, told in faults(*forged(published(), PolicyPublished, **changes))]


def test_a_document_that_was_swapped_after_the_votes_is_found() -> None:
    told = faults(*forged(published(), PolicyProposed, document='{"proposal":{}}'))
    assert "the votes are on another content" in [what for _, what in told]


def test_a_document_of_nothing_but_brackets_is_found() -> None:
    """It is not parsed, however deep Python may recurse."""
    deep = "[" * 50_000
    facts = [
        replace(one, content_sha256=digest(deep))
        if isinstance(one, VoteCast) and one.kind == "policy"
        else one
        for one in forged(published(), PolicyProposed, document=deep)
    ]
    told = [what for _, what in faults(*facts)]
    assert "a policy whose document has no terms" in told


def test_a_governor_who_is_not_the_one_voted_on_is_found() -> None:
    """The votes were on another key."""
    enrolled = [at for at, one in enumerate(history()) if isinstance(one, GovernorEnrolled)]
    place, other = enrolled[1], history()[enrolled[-1]]
    asked = {name: getattr(other, name) for name in ("key", "governor_id", "signature")}
    swapped = replace(history()[place], **asked)
    told = faults(*history()[:place], swapped)
    assert any("another change of the governors" in what for _, what in told), told


def test_a_content_that_was_swapped_with_its_votes_lacks_the_signatures() -> None:
    facts = forged(granted(), GrantProposed, account_id="acct_thief")
    opening = opening_of(next(one for one in facts if isinstance(one, GrantProposed)))[0]
    swapped = [
        replace(one, content_sha256=opening.content_sha256)
        if isinstance(one, VoteCast) and one.kind == "grant"
        else one
        for one in facts
    ]
    told = [what for _, what in faults(*swapped)]
    assert any(what.startswith("not signed by the governor's key") for what in told), told
