"""Milestone grants (R-11): what each milestone unlocks, that it does so once, and what is left."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.authority.reasons import AuthorityReason
from domain.authority.vote import Subject, VoteCast
from domain.funds.reasons import FundsReason
from domain.governance.grant import (
    TREASURY,
    UNASSIGNED,
    UNEARNED,
    AcceptClawback,
    AcceptMilestone,
    Grant,
    GrantClawedBack,
    Milestone,
    MilestoneAccepted,
    OpenGrant,
    ProposeClawback,
    ProposeGrant,
    ProposeMilestone,
    split,
    stream_of,
)
from domain.governance.reasons import GovernanceReason
from domain.money import PPM, Asset, token
from domain.parties.account import AccountOpened
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Stream
from tests.given import refused
from tests.scenes.booked import Booked
from tests.scenes.governors import ANNA, BORIS, CLEO, DIDO, THREE, Governor, enrolled

AT_US = 1_795_176_000_000_000
GRANT, BEAM, CARRIER = "grant_beam", "acct_beam", "mem_op"
TOKEN = 100_000_000
MILESTONES = tuple(
    Milestone(name, 200_000 if name == "cluster-orchestration" else 100_000)
    for name in (
        "api-integration",
        "job-submission",
        "client-container",
        "cluster-orchestration",
        "node-discovery",
        "storage-volumes",
        "usage-metering",
        "reputation",
    )
)
"""RNP-005: eight milestones that assign 90 % of 56,500."""

proposing = ProposeGrant(
    grant_id=GRANT,
    account_id=BEAM,
    total=token(56_500 * TOKEN),
    milestones=MILESTONES,
    by=CARRIER,
    at_us=AT_US,
)
BY: dict[str, Any] = {"grant_id": GRANT, "key_id": "key_op", "by": CARRIER, "at_us": AT_US}


def subject(made: Booked, kind: str, name: str = GRANT) -> Subject:
    """What is voted on now; of what nobody proposed, anything."""
    grant = state(made)
    found = [] if grant.proposed is None else [one[0] for one in grant.ballots()]
    nothing = Subject(kind, name, 1, "0" * 64, 3)
    return next((one for one in found if (one.kind, one.subject) == (kind, name)), nothing)


def opening(made: Booked, who: Governor = ANNA) -> OpenGrant:
    return OpenGrant(vote=who.vote(subject(made, "grant")), **BY)


def world(treasury: int = 60_000 * TOKEN) -> Booked:
    made = Booked()
    opened = AccountOpened(account_id=BEAM, kind="party", opened_by="op", at_us=AT_US)
    made.record(Stream("account", BEAM), opened)
    for stream, fact in enrolled(*THREE):
        made.record(stream, fact)
    made.books[TREASURY] = made.books["chain:distributor"] = treasury
    return made


def open_grant() -> Booked:
    made = world()
    made.do(proposing)
    for who in (ANNA, BORIS):
        made.do(opening(made, who))
    return made


def unlock(made: Booked, milestone_id: str) -> list[Any]:
    """Reported, and accepted by two: the facts of the second vote."""
    made.do(done(milestone_id))
    made.do(accept(made, milestone_id, BORIS))
    return made.do(accept(made, milestone_id, CLEO))


def done(milestone_id: str, by: str = CARRIER) -> ProposeMilestone:
    return ProposeMilestone(
        grant_id=GRANT,
        milestone_id=milestone_id,
        evidence="https://example.org/pr/1",
        by=by,
        at_us=AT_US,
    )


def accept(made: Booked, milestone_id: str, who: Governor = BORIS) -> AcceptMilestone:
    vote = who.vote(subject(made, "milestone", f"{GRANT}/{milestone_id}"))
    return AcceptMilestone(milestone_id=milestone_id, vote=vote, **BY)


def clawback(scope: str, by: str = CARRIER) -> ProposeClawback:
    return ProposeClawback(grant_id=GRANT, scope=scope, reason="it was stopped", by=by, at_us=AT_US)


def take_back(made: Booked, who: Governor = BORIS) -> AcceptClawback:
    return AcceptClawback(vote=who.vote(subject(made, "clawback")), **BY)


def state(made: Booked) -> Grant:
    found = made.state(stream_of(GRANT))
    assert isinstance(found, Grant)
    return found


def booked(made: Booked) -> tuple[int, int, int]:
    """Locked, unlocked and unassigned, in whole TOKEN."""
    parts = ("locked", "unlocked", "unassigned")
    found = [made.balance(f"grant:{GRANT}:{part}") for part in parts]
    assert all(units % TOKEN == 0 for units in found)
    return found[0] // TOKEN, found[1] // TOKEN, found[2] // TOKEN


def test_the_beam_grant_assigns_ninety_percent_and_tells_the_rest() -> None:
    """R-11: all eight 50,850; orchestration alone 11,300; any other 5,650; 5,650 unassigned."""
    made = open_grant()
    assert booked(made) == (50_850, 0, 5_650)
    assert made.balance(TREASURY) == 3_500 * TOKEN
    unlock(made, "cluster-orchestration")
    assert booked(made) == (39_550, 11_300, 5_650)
    unlock(made, "reputation")
    assert booked(made) == (33_900, 16_950, 5_650)
    for one in MILESTONES:
        with suppress(Refused):
            unlock(made, one.milestone_id)
    assert booked(made) == (0, 50_850, 5_650), "the rest has no milestone and stays where it is"


def test_a_milestone_unlocks_once_and_only_when_a_second_person_accepts_it() -> None:
    made = open_grant()
    assert refused(made, accept(made, "reputation")) is GovernanceReason.MILESTONE_STATE, (
        "nobody proposed it"
    )
    made.do(done("reputation"))
    assert made.do(done("reputation")) == [], "proposed by the same person: once"
    (one,) = made.do(accept(made, "reputation", ANNA))
    assert isinstance(one, VoteCast)
    assert (one.count, one.needed, one.mode) == (1, 2, "shared")
    assert booked(made) == (50_850, 0, 5_650), "one vote unlocks nothing"
    assert refused(made, accept(made, "reputation", ANNA)) is AuthorityReason.VOTED_ALREADY
    _, fact = made.do(accept(made, "reputation"))
    assert isinstance(fact, MilestoneAccepted)
    assert (fact.proposed_by, fact.amount) == (CARRIER, token(5_650 * TOKEN))
    assert refused(made, accept(made, "reputation")) is GovernanceReason.MILESTONE_STATE, "twice"
    assert refused(made, done("reputation")) is GovernanceReason.MILESTONE_STATE, "twice"
    assert refused(made, done("beam-2")) is GovernanceReason.UNKNOWN_MILESTONE
    assert booked(made) == (45_200, 5_650, 5_650)


def test_opening_takes_two_people_and_tokens_that_have_matured() -> None:
    made = world(56_499 * TOKEN)
    made.do(proposing)
    assert made.of("grant:") == {}, "nothing is set aside by proposing"
    assert refused(made, done("reputation")) is GovernanceReason.GRANT_STATE
    assert refused(made, opening(made)) is GovernanceReason.TREASURY_SHORT
    made.books[TREASURY] += TOKEN
    made.do(opening(made))
    assert booked(made) == (0, 0, 0), "one vote opens nothing"
    assert refused(made, opening(made)) is AuthorityReason.VOTED_ALREADY
    made.do(opening(made, BORIS))
    assert refused(made, opening(made, CLEO)) is GovernanceReason.GRANT_STATE
    assert refused(made, proposing) is GovernanceReason.GRANT_EXISTS
    other = replace(opening(made), grant_id="grant_no")
    assert refused(made, other) is GovernanceReason.GRANT_UNKNOWN


def test_a_clawback_that_was_swapped_is_not_accepted_by_the_votes_on_the_first() -> None:
    """Attack M3, bait and switch: Boris reads `unassigned`, and `unearned` is clawed back."""
    made = open_grant()
    made.do(clawback(UNASSIGNED))
    read_first = take_back(made, BORIS)
    made.do(take_back(made, ANNA))
    made.do(clawback(UNEARNED))
    assert refused(made, read_first) is AuthorityReason.VOTE_MISMATCH
    present = take_back(made, BORIS)
    same_hash = replace(present.vote, content_sha256=read_first.vote.content_sha256)
    assert refused(made, replace(present, vote=same_hash)) is AuthorityReason.VOTE_MISMATCH
    assert refused(made, take_back(made, DIDO)) is AuthorityReason.GOVERNOR_UNKNOWN
    (one,) = made.do(take_back(made, BORIS))
    assert one.count == 1, "the vote on the first one does not count for the second"
    assert booked(made) == (50_850, 0, 5_650)


def test_a_milestone_whose_evidence_was_swapped_is_voted_on_anew() -> None:
    made = open_grant()
    made.do(done("reputation"))
    first = accept(made, "reputation", ANNA)
    made.do(replace(done("reputation"), evidence="https://example.org/another"))
    assert refused(made, first) is AuthorityReason.VOTE_MISMATCH


def test_a_clawback_takes_what_is_not_earned_and_leaves_what_is() -> None:
    made = open_grant()
    unlock(made, "reputation")
    assert refused(made, take_back(made)) is GovernanceReason.GRANT_STATE, "nobody proposed it"
    made.do(clawback(UNASSIGNED))
    made.do(take_back(made, ANNA))
    assert refused(made, take_back(made, ANNA)) is AuthorityReason.VOTED_ALREADY
    made.do(take_back(made))
    assert booked(made) == (45_200, 5_650, 0)
    unlock(made, "job-submission")
    (proposed,) = made.do(clawback(UNEARNED))
    made.do(take_back(made, ANNA))
    _, fact = made.do(take_back(made))
    assert proposed.reason == "it was stopped"
    assert isinstance(fact, GrantClawedBack)
    assert booked(made) == (0, 11_300, 0)
    assert made.balance(TREASURY) == (60_000 - 11_300) * TOKEN
    assert refused(made, done("usage-metering")) is GovernanceReason.GRANT_STATE, "it has ended"
    assert refused(made, clawback(UNEARNED)) is GovernanceReason.GRANT_STATE


def test_each_rule_of_a_proposal_refuses_by_its_name() -> None:
    made = world()
    share = Milestone("a", 600_000)
    refusals = {
        PartiesReason.ACCOUNT_UNKNOWN: replace(proposing, account_id="acct_no"),
        FundsReason.AMOUNT_NOT_POSITIVE: replace(proposing, total=token(0)),
        PricesReason.AMOUNT_OUT_OF_RANGE: replace(proposing, total=token(2**63)),
        PartiesReason.COUNT_OUT_OF_RANGE: replace(proposing, milestones=()),
        GovernanceReason.BAD_MILESTONE: replace(proposing, milestones=(Milestone("A b", 1),)),
        GovernanceReason.DUPLICATE_MILESTONE: replace(proposing, milestones=(share, share)),
        GovernanceReason.BAD_SHARE: replace(proposing, milestones=(Milestone("a", -1),)),
        GovernanceReason.OVER_ASSIGNED: replace(
            proposing, milestones=(share, replace(share, milestone_id="b"))
        ),
    }
    for reason, command in refusals.items():
        assert refused(made, command) is reason
    made = open_grant()
    assert refused(made, clawback("all")) is PartiesReason.UNKNOWN_MODE
    assert (
        refused(made, replace(done("reputation"), evidence="")) is PricesReason.AMOUNT_OUT_OF_RANGE
    )


shares = st.lists(st.integers(0, PPM), max_size=6)


@given(st.integers(0, 10**30), shares, st.sets(st.integers(0, 5)))
def test_amounts_and_remainder_add_up_to_the_total_whatever_the_shares(
    total: int, ppm: list[int], finished: set[int]
) -> None:
    """Never more than the completed part is unlocked, and the remainder is explicit."""
    milestones = [Milestone(f"m{n}", share) for n, share in enumerate(ppm)]
    completed = [f"m{n}" for n in finished if n < len(ppm)]
    if sum(ppm) > PPM:
        with pytest.raises(Refused):
            split(total, milestones, completed)
        return
    parts = split(total, milestones, completed)
    assert parts.unlocked + parts.locked + parts.unassigned == total
    assert all(units >= 0 for units in (*parts.amounts.values(), parts.unassigned))
    assert parts.unlocked <= total * sum(ppm[n] for n in finished if n < len(ppm)) // PPM + len(ppm)
    assert sum(parts.amounts.values()) == total * sum(ppm) // PPM
    assert (sum(ppm) == PPM) <= (parts.unassigned == 0)


people = st.sampled_from((*THREE, DIDO))
names = st.sampled_from((*(one.milestone_id for one in MILESTONES), "beam-2"))
steps = st.lists(
    st.one_of(
        st.builds(lambda name: lambda _: done(name), names),
        st.builds(lambda name, who: lambda made: accept(made, name, who), names, people),
        st.builds(lambda scope: lambda _: clawback(scope), st.sampled_from((UNASSIGNED, UNEARNED))),
        st.builds(lambda who: lambda made: take_back(made, who), people),
    ),
    max_size=40,
)


@given(steps)
def test_unlocked_is_what_two_people_accepted_and_every_unit_stays_in_the_grant_or_went_back(
    story: list[Any],
) -> None:
    """total == locked + unlocked + unassigned + clawed back, after every step, by anybody."""
    made = open_grant()
    total, worth = 56_500 * TOKEN, split(56_500 * TOKEN, MILESTONES).amounts
    for step in story:
        with suppress(Refused):
            made.do(step(made))
        grant = state(made)
        kept = grant.locked + grant.unlocked + grant.unassigned
        assert kept + grant.clawed_back == total
        assert made.balance(TREASURY) == 60_000 * TOKEN - kept
        parts = (grant.locked, grant.unlocked, grant.unassigned)
        held = [made.balance(f"grant:{GRANT}:{part}") for part in ("locked", "unlocked")]
        assert [*held, made.balance(f"grant:{GRANT}:unassigned")] == list(parts)
        assert made.total(Asset.TOKEN) == 0
    accepted = [fact for fact in made.facts if isinstance(fact, MilestoneAccepted)]
    names_of = [fact.milestone_id for fact in accepted]
    assert len(set(names_of)) == len(names_of), "each at most once"
    assert state(made).unlocked == sum(worth[name] for name in names_of)
    yes: dict[str, set[str]] = {}
    for fact in made.facts:
        if isinstance(fact, VoteCast):
            yes.setdefault(fact.subject, set()).add(fact.governor_id)
    assert all(len(yes[f"{GRANT}/{name}"]) >= 2 for name in names_of)


def test_the_value_that_is_stated_gives_an_implied_price_and_decides_nothing() -> None:
    """R-11: 100,000 / 56,500 = 1.769911 USD, rounded down."""
    made, plain = world(), world()
    made.do(replace(proposing, stated_micro_usd=100_000_000_000))
    plain.do(proposing)
    assert state(made).implied_micro_usd == 1_769_911
    assert state(plain).implied_micro_usd is None
    assert state(made).parts == state(plain).parts
    content = state(made).ballots()[0][1]
    assert content["stated_micro_usd"] == "100000000000"
    assert "stated_micro_usd" not in state(plain).ballots()[0][1]
    for stated in (0, -1, 10**18 + 1):
        asked = replace(proposing, stated_micro_usd=stated)
        assert refused(world(), asked) is PricesReason.AMOUNT_OUT_OF_RANGE
