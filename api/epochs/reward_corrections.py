"""Corrections of rewards over HTTP: slashes and adjustments, each by the votes of governors.

A slash takes what an epoch credited and what has not matured; an adjustment gives or takes in the
epoch that is open when it is accepted. Everybody may read them, and why.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.authority.votes import EXAMPLE, ON_VOTE, BallotAnswer, VoteRequest, ballot_told, checked
from api.door.amounts import Money, tokens
from api.door.auth import everybody, with_scope
from api.door.call import After, Caller, States
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    EpochInPath,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.epochs import closing as settlement
from domain.authority.reasons import AuthorityReason
from domain.authority.register import GOVERNORS
from domain.authority.vote import SignedVote
from domain.epochs.epoch import RewardsCredited, stream_of
from domain.epochs.reasons import EpochsReason
from domain.epochs.reward_changes import Reward
from domain.epochs.reward_correction import (
    ADJUSTMENT,
    SLASH,
    TEXT_MAX,
    UNITS_MAX,
    AcceptRewardCorrection,
    ProposeRewardCorrection,
    correction_of,
    correction_stream,
)
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from ledger.log.handle import Ledger
from projections.epochs import rewards
from projections.epochs.rewards import REWARDS

resource = Resource("rewards")

CARRIER = with_scope("operator")
CorrectionId = Annotated[str, Field(pattern=r"^correction_[0-9a-f]{32}$")]
CorrectionInPath = Annotated[str, Path(pattern=r"^correction_[0-9a-f]{32}$")]
Sentence = Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
SignedUnits = Annotated[
    str, Field(pattern=r"^-?[1-9][0-9]{0,18}$", description="TOKEN units; below zero: taken")
]
Evidence = Annotated[int, Field(ge=1, le=UNITS_MAX, description="A position of the market log")]


class RewardSlashRequest(RequestModel):
    """At most what has not matured is taken, and goes to the treasury."""

    account_id: AccountId
    amount: Money
    reason: Sentence
    evidence_position: Evidence | None = None

    model_config = with_examples(
        {
            "account_id": "acct_" + "1" * 32,
            "amount": {"asset": "TOKEN", "units": "100000000"},
            "reason": "Reports of a GPU that was not there",
            "evidence_position": 4711,
        }
    )


class RewardAdjustmentRequest(RequestModel):
    """`delta`: what the account is to be given, or (below zero) to give back."""

    account_id: AccountId
    delta: SignedUnits
    reason: Sentence
    evidence_position: Evidence | None = None

    model_config = with_examples(
        {
            "account_id": "acct_" + "1" * 32,
            "delta": "250000000",
            "reason": "Usage that arrived after its cut",
        }
    )


class RewardAcceptanceRequest(RequestModel):
    """A governor's signed vote."""

    vote: VoteRequest

    model_config = with_examples({"vote": EXAMPLE})


class RewardCorrectionAnswer(AnswerModel):
    """`slashed` was taken of what had not matured; `adjusted` settles with `adjusted_epoch`."""

    correction_id: CorrectionId
    kind: Literal["slash", "adjustment"]
    state: Literal["proposed", "accepted"]
    epoch: Count
    account_id: AccountId
    delta: str
    reason: str
    evidence_position: Position | None = None
    proposed_by: str
    proposed_at: Told_at
    accepted_by: str | None = None
    accepted_at: Told_at | None = None
    slashed: Money | None = None
    adjusted: str | None = None
    adjusted_epoch: Count | None = None
    ballot: BallotAnswer
    position: Position | None = None


ON_PROPOSAL = (
    AuthorityReason.NO_GOVERNORS,
    PartiesReason.ACCOUNT_UNKNOWN,
    EpochsReason.EPOCH_UNKNOWN,
    EpochsReason.EPOCH_STATE,
    PricesReason.AMOUNT_OUT_OF_RANGE,
)


@resource.post(
    "/v1/epochs/{epoch}/slashes",
    CARRIER,
    RewardCorrectionAnswer,
    status=201,
    problems=[*ON_PROPOSAL],
)
def propose_slash(epoch: EpochInPath, body: RewardSlashRequest, call: Caller) -> Response:
    """Proposes to slash what has not matured of a reward. The votes of governors do it."""
    amount = body.amount.amount()
    if amount.asset.value != "TOKEN":
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="amount", asset=amount.asset.value)
    return _propose(call, SLASH, epoch, body, -amount.units)


@resource.post(
    "/v1/epochs/{epoch}/adjustments",
    CARRIER,
    RewardCorrectionAnswer,
    status=201,
    problems=[*ON_PROPOSAL],
)
def propose_reward_adjustment(
    epoch: EpochInPath, body: RewardAdjustmentRequest, call: Caller
) -> Response:
    """Proposes to add or deduct for a sealed epoch, in the open one, by governors' votes."""
    return _propose(call, ADJUSTMENT, epoch, body, int(body.delta))


def _propose(
    call: Caller,
    kind: str,
    epoch: int,
    body: RewardSlashRequest | RewardAdjustmentRequest,
    delta: int,
) -> Response:
    correction_id = call.id("correction")

    def commands() -> ProposeRewardCorrection:
        return ProposeRewardCorrection(
            correction_id=correction_id,
            kind=kind,
            epoch=epoch,
            account_id=body.account_id,
            delta=delta,
            reason=body.reason,
            evidence_position=body.evidence_position,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _after(after, correction_id))


@resource.post(
    "/v1/reward-corrections/{correction_id}/accept",
    CARRIER,
    RewardCorrectionAnswer,
    problems=[
        EpochsReason.REWARD_CORRECTION_UNKNOWN,
        *ON_VOTE,
        EpochsReason.NOTHING_UNMATURED,
        EpochsReason.REWARDS_MISMATCH,
        EpochsReason.EPOCH_STATE,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def accept_reward_correction(
    correction_id: CorrectionInPath, body: RewardAcceptanceRequest, call: Caller
) -> Response:
    """Votes for a proposal with a governor's signature; the last vote needed does it."""
    asked = correction_of(call.service.ledger.world(), correction_id).proposed
    assert asked is not None
    vote = checked(call, asked.kind, correction_id, body.vote)

    def commands() -> AcceptRewardCorrection:
        return acceptance(
            call.service.ledger,
            correction_id,
            vote,
            key_id=call.principal.key_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _after(after, correction_id))


def acceptance(
    ledger: Ledger, correction_id: str, vote: SignedVote, *, key_id: str, by: str, at_us: int
) -> AcceptRewardCorrection:
    """A governor's yes, with the reward it is about and the epoch that is open now.

    Raises Refused: REWARD_CORRECTION_UNKNOWN.
    """
    proposed = correction_of(ledger.world(), correction_id).proposed
    assert proposed is not None
    chunk, credited = credited_chunk(ledger, proposed.epoch, proposed.account_id)
    return AcceptRewardCorrection(
        correction_id=correction_id,
        open_epoch=settlement.open_epoch(ledger),
        chunk=chunk,
        rewards=credited,
        vote=vote,
        key_id=key_id,
        by=by,
        at_us=at_us,
    )


def credited_chunk(ledger: Ledger, epoch: int, account_id: str) -> tuple[int, tuple[Reward, ...]]:
    """The chunk that credited an account in an epoch; (0, ()) when none did."""
    for recorded in ledger.market.read_stream(stream_of(epoch)):
        fact = recorded.fact
        if isinstance(fact, RewardsCredited) and any(
            one.account_id == account_id for one in fact.rewards
        ):
            return fact.chunk, fact.rewards
    return 0, ()


@resource.get(
    "/v1/reward-corrections",
    everybody(),
    page_of(RewardCorrectionAnswer),
    problems=["cursor_invalid"],
)
def list_reward_corrections(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists slashes and adjustments in the order in which they were proposed."""
    place = call.place(cursor, [0], order)
    with call.read(REWARDS) as view:
        rows = rewards.read_corrections(
            view.connection, after=place.after[0], way=place.way, limit=limit + 1
        )
        world = call.service.ledger.world()
        return call.page(
            view, place, rows, limit, lambda row: [row.position], lambda row: _told(row, world)
        )


@resource.get(
    "/v1/reward-corrections/{correction_id}",
    everybody(),
    RewardCorrectionAnswer,
    problems=[EpochsReason.REWARD_CORRECTION_UNKNOWN],
)
def read_reward_correction(correction_id: CorrectionInPath, call: Caller) -> Response:
    """Returns one correction and its result."""
    with call.read(REWARDS) as view:
        found = rewards.read_correction(view.connection, correction_id)
        if found is None:
            raise Refused(EpochsReason.REWARD_CORRECTION_UNKNOWN, correction_id=correction_id)
        return call.answer(view, _told(found, call.service.ledger.world()))


def _after(after: After, correction_id: str) -> RewardCorrectionAnswer:
    state = after.state(correction_stream(correction_id))
    one, yes = state.proposed, state.accepted
    assert one is not None, correction_id
    return _told(
        rewards.Correction(
            one.correction_id,
            one.kind,
            one.epoch,
            one.account_id,
            one.delta,
            one.reason,
            one.evidence_position,
            one.by,
            one.at_us,
            0,
            *(
                (None,) * 5
                if yes is None
                else (yes.by, yes.at_us, yes.slashed, yes.adjusted, yes.adjusted_epoch)
            ),
        ),
        after,
    )


def _told(row: rewards.Correction, world: States) -> RewardCorrectionAnswer:
    kind: Any = row.kind
    state = world.state(correction_stream(row.correction_id))
    subject, content = state.ballot()
    return RewardCorrectionAnswer(
        correction_id=row.correction_id,
        kind=kind,
        state="proposed" if row.accepted_by is None else "accepted",
        epoch=row.epoch,
        account_id=row.account_id,
        delta=str(row.delta),
        reason=row.reason,
        evidence_position=row.evidence_position,
        proposed_by=row.proposed_by,
        proposed_at=moment(row.at_us),
        accepted_by=row.accepted_by,
        accepted_at=moment_or_none(row.accepted_at_us),
        slashed=None if row.slashed is None else tokens(row.slashed),
        adjusted=None if row.adjusted is None else str(row.adjusted),
        adjusted_epoch=row.adjusted_epoch,
        ballot=ballot_told(world.state(GOVERNORS), subject, state.votes, content=content),
    )
