"""Epochs: what each has paid, what the open one would pay, and the file its payout is made from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from fastapi.responses import FileResponse
from pydantic import Field

from api.door import errors
from api.door.amounts import Money, Units, tokens, tokens_or_none
from api.door.auth import everybody
from api.door.call import Caller
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    EpochInPath,
    EpochQuery,
    Hex32,
    NodeId,
    Position,
    Short,
    Told_at,
    page_of,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, ByNumber, Cursor, Limit
from api.door.positions import POSITION
from api.epochs.files import clients_path, epoch_path
from api.epochs.payout_files import payout_path
from api.process.service import Service
from domain.epochs.reasons import EpochsReason
from domain.refusal import Refused
from projections.epochs import counted, epochs
from projections.epochs.epochs import EPOCHS

resource = Resource("epochs")

Number = Annotated[int, Field(ge=1, le=2_147_483_647)]
StateName = Literal["open", "closing", "sealed", "credited", "settled"]
NODES_MAX = 1_000
"""Lines of one preview."""
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


class EpochAnswer(AnswerModel):
    """Amounts of TOKEN are there once the epoch is sealed; a sealed epoch never changes."""

    epoch: Number
    state: StateName
    start: Told_at
    end: Told_at
    policy_version: Count
    opened_at: Told_at
    closing_at: Told_at | None = None
    sealed_at: Told_at | None = None
    sealed_position: Position | None = None
    cut_position: Position | None = None
    emission: Money | None = None
    compute_pool: Money | None = None
    availability_pool: Money | None = None
    treasury_pool: Money | None = None
    compute_carry_before: Money | None = None
    compute_carry: Money | None = None
    rewards: Money | None = None
    recipients: Count | None = None
    chunks: Count | None = None
    chunks_credited: Count
    chunks_matured: Count
    file_sha256: Hex32 | None = None
    clients_sha256: Hex32 | None = None
    unissued: Money | None = None
    recyclable: Money | None = None
    release: Money | None = None
    returned: Money | None = None
    returned_release: Money | None = None
    availability_carry_before: Money | None = None
    availability_carry: Money | None = None
    compute_weight: Units | None = None
    availability_weight: Units | None = None
    availability_tier_2_weight: Units | None = None
    minted: Money | None = None
    mint_tx_hash: str | None = None
    position: Position | None = None


class RewardWeightAnswer(AnswerModel):
    """`burned`: micro-credits that cash and burned credits paid and that were burned."""

    account_id: AccountId
    burned: Units
    gpu_us: Units


class NodeWeightAnswer(AnswerModel):
    """The use of a node by other accounts, by the funding source that paid; the policy weighs
    sources.
    """

    node_id: NodeId
    account_id: AccountId
    source: Short
    burned: Units
    gpu_us: Units


class EpochPreviewAnswer(AnswerModel):
    """The weights an epoch's compute pool will be split by, as far as the log has been read.

    `nodes`: the largest, at most 1000 lines.
    """

    epoch: Number
    is_final: bool
    weights: list[RewardWeightAnswer]
    nodes: list[NodeWeightAnswer]
    position: Position


class EpochRewardAnswer(AnswerModel):
    account_id: AccountId
    chunk: Count
    credited: Money
    matured: Money
    slashed: Money | None = None


@resource.get("/v1/epochs", everybody(), page_of(EpochAnswer), problems=["cursor_invalid"])
def list_epochs(
    call: Caller, order: ByNumber, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists epochs in order."""
    place = call.place(cursor, [0], order)
    with call.read(EPOCHS) as view:
        rows = epochs.read_epochs(
            view.connection, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.epoch], _epoch)


@resource.get("/v1/epochs/preview", everybody(), EpochPreviewAnswer)
def preview_epoch(call: Caller, epoch: EpochQuery = None) -> Response:
    """Returns the weights of the open epoch, or of the one named."""
    with call.read(EPOCHS) as view:
        moved = epochs.read_preview(view.connection, epoch)
        found = counted.read_weights(view.connection, moved)
        told = EpochPreviewAnswer(
            epoch=found.epoch,
            is_final=found.is_final,
            position=view.position,
            weights=[
                RewardWeightAnswer(account_id=who, burned=str(burned), gpu_us=str(gpu_us))
                for who, burned, gpu_us in found.by_account()
            ],
            nodes=[
                NodeWeightAnswer(
                    node_id=one.node_id,
                    account_id=one.account_id,
                    source=one.source,
                    burned=str(one.burned),
                    gpu_us=str(one.gpu_us),
                )
                for one in found.largest(NODES_MAX)
            ],
        )
        return call.answer(view, told)


@resource.get("/v1/epochs/{epoch}", everybody(), EpochAnswer, problems=[EpochsReason.EPOCH_UNKNOWN])
def read_epoch(epoch: EpochInPath, call: Caller) -> Response:
    """Returns an epoch."""
    with call.read(EPOCHS) as view:
        found = epochs.read_epoch(view.connection, epoch)
        if found is None:
            raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
        return call.answer(view, _epoch(found))


@resource.get(
    "/v1/epochs/{epoch}/rewards",
    everybody(),
    page_of(EpochRewardAnswer),
    problems=[EpochsReason.EPOCH_UNKNOWN, "cursor_invalid"],
)
def list_epoch_rewards(
    epoch: EpochInPath, call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists the rewards that a sealed epoch credited, by account."""
    place = call.place(cursor, [""])
    with call.read(EPOCHS) as view:
        if epochs.read_epoch(view.connection, epoch) is None:
            raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
        rows = epochs.read_rewards(
            view.connection, epoch=epoch, after=(epoch, place.after[0]), limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.account_id], _reward)


@resource.get(
    "/v1/epochs/{epoch}/payout.json",
    everybody(),
    dict[str, Any],
    problems=[EpochsReason.EPOCH_UNKNOWN, "not_found"],
)
def read_payout_file(epoch: EpochInPath, call: Caller) -> Response:
    """Returns the file that the payout of an epoch is proposed and claimed from, byte for byte."""
    with call.read(EPOCHS) as view:
        if epochs.read_epoch(view.connection, epoch) is None:
            raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
        content = payout_bytes(call.service, epoch)
        root = epochs.read_root(view.connection, epoch)
        is_final = root is not None and root.state == "accepted"  # a vetoed one is built anew
        headers = {POSITION: str(view.position), **(FOR_EVER if is_final else {})}
        return Response(content, headers=headers, media_type="application/json")


@resource.get(
    "/v1/epochs/{epoch}/epoch.json",
    everybody(),
    dict[str, Any],
    problems=[EpochsReason.EPOCH_UNKNOWN, "not_found"],
)
def read_epoch_file(epoch: EpochInPath, call: Caller) -> Response:
    """Returns the file of a sealed epoch, byte for byte: its SHA-256 is in the seal."""
    with call.read(EPOCHS) as view:
        row = epochs.read_epoch(view.connection, epoch)
        if row is None:
            raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
        path = epoch_path(call.service.settings.data_dir, epoch)
        if row.sealed_position is None or not path.is_file():
            raise errors.problem("not_found", f"epoch {epoch} has no file here yet")
        headers = {POSITION: str(view.position), **FOR_EVER}
        return FileResponse(path, headers=headers, media_type="application/json")


@resource.get(
    "/v1/epochs/{epoch}/clients.json",
    everybody(),
    dict[str, Any],
    problems=[EpochsReason.EPOCH_UNKNOWN, "not_found"],
)
def read_epoch_clients(epoch: EpochInPath, call: Caller) -> Response:
    """Returns by compute client whose work the rewards of a sealed epoch pay for: the companion of
    its epoch file and of its payout file, whose leaves have an address and a total alone.
    """
    with call.read(EPOCHS) as view:
        row = epochs.read_epoch(view.connection, epoch)
        if row is None:
            raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
        path = clients_path(call.service.settings.data_dir, epoch)
        if row.sealed_position is None or not path.is_file():
            raise errors.problem("not_found", f"epoch {epoch} has no such file here yet")
        headers = {POSITION: str(view.position), **FOR_EVER}
        return FileResponse(path, headers=headers, media_type="application/json")


def payout_bytes(service: Service, epoch: int) -> bytes:
    """Raises Problem: 404 not_found when the epoch has no payout file yet."""
    try:
        return payout_path(service.settings.data_dir, epoch).read_bytes()
    except FileNotFoundError:
        raise errors.problem("not_found", f"epoch {epoch} has no payout file yet") from None


def _epoch(row: epochs.EpochRow) -> EpochAnswer:
    state: Any = row.state
    return EpochAnswer(
        epoch=row.epoch,
        state=state,
        start=moment(row.start_us),
        end=moment(row.end_us),
        policy_version=row.policy_version,
        opened_at=moment(row.opened_at_us),
        closing_at=moment_or_none(row.closing_at_us),
        sealed_at=moment_or_none(row.sealed_at_us),
        sealed_position=row.sealed_position,
        cut_position=row.cut_position,
        emission=tokens_or_none(row.emission),
        compute_pool=tokens_or_none(row.compute_pool),
        availability_pool=tokens_or_none(row.availability_pool),
        treasury_pool=tokens_or_none(row.treasury_pool),
        compute_carry_before=tokens_or_none(row.compute_carry_before),
        compute_carry=tokens_or_none(row.compute_carry),
        rewards=tokens_or_none(row.rewards),
        recipients=row.recipients,
        chunks=row.chunks,
        chunks_credited=row.credited,
        chunks_matured=row.matured,
        file_sha256=row.file_sha256,
        clients_sha256=row.clients_sha256,
        minted=tokens_or_none(row.minted),
        mint_tx_hash=row.mint_tx_hash,
        unissued=tokens_or_none(row.unissued),
        recyclable=tokens_or_none(row.recyclable),
        release=tokens_or_none(row.release),
        returned=tokens_or_none(row.returned),
        returned_release=tokens_or_none(row.returned_release),
        availability_carry_before=tokens_or_none(row.availability_carry_before),
        availability_carry=tokens_or_none(row.availability_carry),
        compute_weight=_text_or_none(row.compute_weight),
        availability_weight=_text_or_none(row.availability_weight),
        availability_tier_2_weight=_text_or_none(row.availability_tier_2_weight),
    )


def _text_or_none(value: int | None) -> str | None:
    return None if value is None else str(value)


def _reward(row: epochs.RewardRow) -> EpochRewardAnswer:
    return EpochRewardAnswer(
        account_id=row.account_id,
        chunk=row.chunk,
        credited=tokens(row.credited),
        matured=tokens(row.matured),
        slashed=tokens(row.slashed) if row.slashed else None,
    )
