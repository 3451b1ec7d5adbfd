"""Payouts: roots and their way on chain, what each account may claim, and what it has claimed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import Field

from api.door.amounts import Money, tokens
from api.door.auth import everybody, with_scope
from api.door.call import Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AccountQuery,
    Address,
    AnswerModel,
    Count,
    EpochInPath,
    Hex32,
    Position,
    Told_at,
    page_of,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.epochs.epochs import payout_bytes
from api.parties.accounts import visible
from contracts import manifest
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from projections.epochs import epochs
from projections.epochs.epochs import EPOCHS

resource = Resource("payouts")

READ = with_scope("payout:read")
Hash = Annotated[str, Field(pattern=r"^0x[0-9a-f]{64}$")]
AddressQuery = Annotated[str, Query(pattern=r"^0x[0-9a-fA-F]{40}$")]


class PayoutRootAnswer(AnswerModel):
    """`committed` is the sum of all leaves: lifetime totals, never less than before."""

    epoch: Count
    seq: Count
    root: Hash
    previous_root: Hash
    manifest_sha256: Hex32
    committed: Money
    leaves: Count
    state: Literal["built", "proposed", "vetoed", "accepted"]
    valid_at: Told_at | None = None
    tx_hash: str | None = None
    reason: str | None = None
    built_at: Told_at
    position: Position


class LifetimeRewardsAnswer(AnswerModel):
    """Ever credited, ever matured (what the next leaf holds), ever claimed on chain."""

    account_id: AccountId
    credited: Money
    matured: Money
    claimed: Money
    position: Position | None = None


class PayoutClaimAnswer(AnswerModel):
    account_id: AccountId
    address: Address
    distributor: Address
    seq: Count
    amount: Money
    cumulative: Money
    tx_hash: str
    block_number: Count
    confirmed_at: Told_at
    position: Position


class PayoutProofAnswer(AnswerModel):
    """What `claim(account, total, proof)` of the distributor takes."""

    epoch: Count
    root: Hash
    account: Address
    total: Money
    proof: list[Hash]
    position: Position | None = None


@resource.get("/v1/payouts", everybody(), page_of(PayoutRootAnswer), problems=["cursor_invalid"])
def list_payouts(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists payout roots in the order they were built, and the state of each."""
    place = call.place(cursor, [0], order)
    with call.read(EPOCHS) as view:
        rows = epochs.read_roots(
            view.connection, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _root)


@resource.get("/v1/payouts/claims", READ, page_of(PayoutClaimAnswer), problems=["cursor_invalid"])
def list_claims(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists confirmed claims: your own, or those of all accounts for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(EPOCHS) as view:
        rows = epochs.read_claims(
            view.connection,
            account_id=call.principal.among(account_id),
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _claim)


@resource.get(
    "/v1/accounts/{account_id}/rewards",
    READ,
    LifetimeRewardsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def read_rewards(account_id: AccountInPath, call: Caller) -> Response:
    """Returns lifetime totals of an account: credited, matured and claimed TOKEN."""
    visible(call.principal, account_id)
    with call.read(EPOCHS) as view:
        found = epochs.read_lifetimes(view.connection, account_id=account_id, limit=1)
        row = found[0] if found else epochs.Lifetime(account_id, 0, 0, 0)
        told = LifetimeRewardsAnswer(
            account_id=account_id,
            credited=tokens(row.credited),
            matured=tokens(row.matured),
            claimed=tokens(row.claimed),
        )
        return call.answer(view, told)


@resource.get(
    "/v1/payouts/{epoch}/proof",
    everybody(),
    PayoutProofAnswer,
    problems=["not_found", PartiesReason.WALLET_UNKNOWN],
)
def read_payout_proof(epoch: EpochInPath, address: AddressQuery, call: Caller) -> Response:
    """Returns the Merkle proof of a wallet's total under the root of an epoch."""
    with call.read(EPOCHS) as view:
        payout = manifest.decode(payout_bytes(call.service, epoch))
        leaf = payout.leaf(address)
        if leaf is None:
            raise Refused(PartiesReason.WALLET_UNKNOWN, address=address.lower(), epoch=epoch)
        told = PayoutProofAnswer(
            epoch=epoch,
            root=payout.root,
            account=leaf.account,
            total=tokens(leaf.total),
            proof=["0x" + part.hex() for part in leaf.proof],
        )
        return call.answer(view, told)


def _root(row: epochs.Root) -> PayoutRootAnswer:
    told: Any = row
    return PayoutRootAnswer(
        epoch=row.epoch,
        seq=row.seq,
        root=row.root,
        previous_root=row.previous_root,
        manifest_sha256=row.manifest_sha256,
        committed=tokens(row.committed),
        leaves=row.leaves,
        state=told.state,
        valid_at=moment_or_none(row.valid_at_us),
        tx_hash=row.tx_hash,
        reason=row.reason,
        built_at=moment(row.at_us),
        position=row.position,
    )


def _claim(row: epochs.Claim) -> PayoutClaimAnswer:
    return PayoutClaimAnswer(
        account_id=row.account_id,
        address=row.address,
        distributor=row.distributor,
        seq=row.seq,
        amount=tokens(row.amount),
        cumulative=tokens(row.cumulative),
        tx_hash=row.tx_hash,
        block_number=row.block_number,
        confirmed_at=moment(row.at_us),
        position=row.position,
    )
