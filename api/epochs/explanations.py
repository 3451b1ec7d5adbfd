"""Why a node got what it got in a sealed epoch, and what about it looks like wash trade.

The numbers are the epoch file's and the seal's; the arithmetic is `domain/epochs/explanation.py`'s.
Everybody may ask: whoever holds the file can compute all of it. Who the customers of a node were
is not told, only how much of the use was whose.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Response
from pydantic import Field

from api.door import errors
from api.door.amounts import Money, Units, tokens, tokens_or_none
from api.door.auth import everybody, with_scope
from api.door.call import Call, Caller, View
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    EpochInPath,
    NodeId,
    NodeInPath,
    Position,
    page_of,
)
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.epochs.epochs import FOR_EVER
from api.epochs.files import epoch_path, find_node
from domain.brought import ClientPart, as_parts, in_proportion
from domain.epochs.clients import weights_of
from domain.epochs.explanation import ExplainedShare, Explanation, Totals, explain
from domain.epochs.policy import NETWORK, PolicyPublished
from domain.epochs.reasons import EpochsReason
from domain.epochs.wash_signals import Signals, of_shares, signals
from domain.refusal import Refused
from projections.epochs import epochs
from projections.epochs import wash_uses as counterparties
from projections.epochs.epochs import EPOCHS, EpochRow
from projections.epochs.wash_uses import COUNTERPARTIES, NODES, RENTERS, Divided

resource = Resource("epochs")

Ppm = Annotated[int, Field(ge=0)]


class FundingSourceUseAnswer(AnswerModel):
    """What one funding source paid for. `weight_ppm`: what the policy lets it weigh."""

    source: str
    burned: Units
    gpu_us: Units
    weight_ppm: Ppm


class DeviceTimeAnswer(AnswerModel):
    """One device's attested time. `reason` says why it does not count; absent when it does."""

    hardware_class: str
    tier: Count
    attested_us: Units
    promised_us: Units
    rating_ppm: Ppm
    reason: str | None = None


class RewardShareAnswer(AnswerModel):
    """share = floor(pool x weight / all_weight); `lost` over `all_weight` is what the floor
    dropped. `paid` is the share, or the cap where that is lower.
    """

    pool: Money
    weight: Units
    all_weight: Units
    share: Money
    lost: Units
    cap: Money | None = None
    paid: Money


class RewardClientAnswer(AnswerModel):
    """What of a node's compute reward is for work that one compute client brought; without a
    `client_id`: what no client is known of.
    """

    client_id: str | None = None
    reward: Money


class WashSignalsAnswer(AnswerModel):
    """`raised` names the signals that are high; absent is what nothing can be divided by."""

    payout_multiple_ppm: Ppm | None = None
    concentration_ppm: Ppm | None = None
    related_ppm: Ppm | None = None
    raised: list[str]


class EpochExplanationAnswer(AnswerModel):
    """The way from GPU-seconds to tokens; `paid` is before the cap of an owner, if there is one.
    `clients`: whose work the compute part of it pays for.
    """

    epoch: Count
    node_id: NodeId
    account_id: AccountId
    cut_position: Position
    policy_version: Count
    compute_base: str
    file_sha256: str
    uses: list[FundingSourceUseAnswer]
    score_ppm: Ppm | None = None
    bonus_ppm: Ppm
    burned_tokens: Units
    compute: RewardShareAnswer
    devices: list[DeviceTimeAnswer]
    availability_tier_2: RewardShareAnswer
    availability: RewardShareAnswer
    owner_cap: Money | None = None
    paid: Money
    clients: list[RewardClientAnswer]
    reasons: list[str]
    signals: WashSignalsAnswer
    position: Position


class UseDivisionAnswer(AnswerModel):
    """How the use of a node divides among renters, or of a renter among owners of nodes: the part
    of its largest unrelated counterparty, and of all related ones.
    """

    subject_id: str
    gpu_us: Units
    counterparties: Count
    largest_ppm: Ppm
    related_ppm: Ppm
    raised: list[str]


@resource.get(
    "/v1/epochs/{epoch}/explain/{node_id}",
    everybody(),
    EpochExplanationAnswer,
    problems=[EpochsReason.EPOCH_UNKNOWN, EpochsReason.EPOCH_STATE, "not_found"],
)
def explain_epoch(epoch: EpochInPath, node_id: NodeInPath, call: Caller) -> Response:
    """Explains a node's reward in a sealed epoch, also a reward of zero."""
    with call.read(EPOCHS, COUNTERPARTIES) as view:
        sealed = _sealed(view, epoch)
        policy, told = _explained(call, sealed, node_id)
        moved = epochs.read_brought(view.connection, epoch, node_id)
        weights = weights_of(moved, policy).get(node_id, {})
        used = counterparties.read_used(view.connection, epoch, node_id)
        signs = signals(told.paid, told.burned_tokens, used.others, used.related, used.age_us)
        clients = as_parts(in_proportion(told.compute.paid, weights))
        answer = _told(sealed, told, clients, signs, view.position)
        return call.answer(view, answer, headers=FOR_EVER)


@resource.get(
    "/v1/epochs/{epoch}/signals",
    everybody(),
    page_of(UseDivisionAnswer),
    problems=[EpochsReason.EPOCH_UNKNOWN, "cursor_invalid"],
)
def list_wash_signals(
    epoch: EpochInPath, call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists how much of each node's use in an epoch came from one renter, or from related ones."""
    return _signals(call, epoch, NODES, limit, cursor)


@resource.get(
    "/v1/epochs/{epoch}/renter-signals",
    with_scope("operator", "audit:read"),
    page_of(UseDivisionAnswer),
    problems=[EpochsReason.EPOCH_UNKNOWN, "cursor_invalid"],
)
def list_renter_signals(
    epoch: EpochInPath, call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists how much of each renter's use in an epoch went to one owner, or to related ones; to a
    party its own.
    """
    return _signals(call, epoch, RENTERS, limit, cursor, only=call.principal.only)


def _signals(
    call: Call, epoch: int, side: str, limit: int, cursor: str | None, only: str | None = None
) -> Response:
    place = call.place(cursor, [""])
    with call.read(COUNTERPARTIES, EPOCHS) as view:
        if epochs.read_epoch(view.connection, epoch) is None:
            raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
        rows = counterparties.read_divided(
            view.connection, epoch, side, subject_id=only, after=place.after[0], limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.subject_id], _divided)


def _sealed(view: View, epoch: int) -> EpochRow:
    row = epochs.read_epoch(view.connection, epoch)
    if row is None:
        raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
    if row.sealed_position is None:
        raise Refused(
            EpochsReason.EPOCH_STATE, epoch=epoch, status=row.state, rule="not sealed yet"
        )
    return row


def _explained(call: Call, row: EpochRow, node_id: str) -> tuple[PolicyPublished, Explanation]:
    """Raises Problem: 404 not_found when the cut says nothing of the node."""
    path = epoch_path(call.service.settings.data_dir, row.epoch)
    try:
        node = find_node(path, node_id)
    except FileNotFoundError:
        raise errors.problem("not_found", f"the file of epoch {row.epoch} is not here") from None
    if node is None:
        raise errors.problem(
            "not_found", f"the cut of epoch {row.epoch} has neither use nor time of {node_id}"
        )
    policy = call.service.ledger.market.state_of(NETWORK).published[row.policy_version - 1]
    return policy, explain(
        node,
        policy,
        Totals(
            pool=row.compute_pool or 0,
            carry_before=row.compute_carry_before or 0,
            weight=int(row.compute_weight or 0),
        ),
        Totals(
            pool=row.availability_pool or 0,
            carry_before=row.availability_carry_before or 0,
            weight=int(row.availability_weight or 0),
        ),
        int(row.availability_tier_2_weight or 0),
    )


def _told(
    row: EpochRow, why: Explanation, clients: tuple[ClientPart, ...], signs: Signals, position: int
) -> EpochExplanationAnswer:
    assert row.cut_position is not None
    assert row.file_sha256 is not None
    return EpochExplanationAnswer(
        epoch=row.epoch,
        node_id=why.node_id,
        account_id=why.account_id,
        cut_position=row.cut_position,
        policy_version=why.policy_version,
        compute_base=why.compute_base,
        file_sha256=row.file_sha256,
        uses=[
            FundingSourceUseAnswer(
                source=use.source,
                burned=str(use.burned),
                gpu_us=str(use.gpu_us),
                weight_ppm=use.weight_ppm,
            )
            for use in why.uses
        ],
        score_ppm=why.score_ppm,
        bonus_ppm=why.bonus_ppm,
        burned_tokens=str(why.burned_tokens),
        compute=_share(why.compute),
        devices=[
            DeviceTimeAnswer(
                hardware_class=device.hardware_class,
                tier=device.tier,
                attested_us=str(device.attested_us),
                promised_us=str(device.promised_us),
                rating_ppm=device.rating_ppm,
                reason=device.reason,
            )
            for device in why.devices
        ],
        availability_tier_2=_share(why.availability_tier_2),
        availability=_share(why.availability),
        owner_cap=tokens_or_none(why.owner_cap),
        paid=tokens(why.paid),
        clients=[
            RewardClientAnswer(client_id=one.client_id or None, reward=tokens(one.units))
            for one in clients
        ],
        reasons=list(why.reasons),
        signals=WashSignalsAnswer(
            payout_multiple_ppm=signs.payout_multiple_ppm,
            concentration_ppm=signs.concentration_ppm,
            related_ppm=signs.related_ppm,
            raised=list(signs.raised),
        ),
        position=position,
    )


def _share(share: ExplainedShare) -> RewardShareAnswer:
    return RewardShareAnswer(
        pool=tokens(share.pool),
        weight=str(share.weight),
        all_weight=str(share.all_weight),
        share=tokens(share.share),
        lost=str(share.lost),
        cap=tokens_or_none(share.cap),
        paid=tokens(share.paid),
    )


def _divided(row: Divided) -> UseDivisionAnswer:
    largest, related, raised = of_shares(row.largest_us, row.related_us, row.gpu_us, row.age_us)
    return UseDivisionAnswer(
        subject_id=row.subject_id,
        gpu_us=str(row.gpu_us),
        counterparties=row.counterparties,
        largest_ppm=largest,
        related_ppm=related,
        raised=list(raised),
    )
