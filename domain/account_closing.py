"""Closing an account: only what is finished and empty can be closed, and then it stays so.

    closed  =>  leases settled, nodes retired, edge devices and storage nodes gone, every balance 0

PostgreSQL asks the books again when the fact is recorded, and whoever opens a lease or confirms a
deposit at the same moment reads the account's stream and is decided again. A lease recorded after
the views were asked and before the closing, with the last unit in its escrow, runs on and settles
like any other; so does a cash-out, and what comes back of it then waits in suspense. Rewards of an
epoch that is not sealed yet still come, and go to the wallet. What is left of granted credits is
not refundable: it is forfeited with the closing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from domain.fleet.node import node_of
from domain.fleet.storage_node import storage_node_of
from domain.funds.funding import BURN_SOURCES, CASH_SOURCES, funding_of
from domain.funds.promotion import forfeit
from domain.income.cash_out import cash_out_of
from domain.lease.lease import lease_stream
from domain.lease.shared_escrow import escrow_of
from domain.leasing.other_resources import usage_of
from domain.parties.account import AccountClosed, account_stream, existing_account
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.sites.edge_device import edge_devices_of
from domain.storage.volume import volume_of
from domain.stream import Change, World


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseAccount:
    """`lease_ids`, `node_ids`, `cash_out_ids`: what the views say is not finished; the streams
    decide.
    """

    account_id: str
    lease_ids: tuple[str, ...]  # as renter or as provider
    node_ids: tuple[str, ...]  # of its providers
    region_ids: tuple[str, ...] = ()  # of its providers; some may have a storage node
    by: str
    at_us: int
    cash_out_ids: tuple[str, ...] = ()
    escrow_ids: tuple[str, ...] = ()  # of jobs: its own, or ones it put credits into
    meters: tuple[tuple[str, str], ...] = ()  # (lease, meter) with credits held, as the payer
    volume_ids: tuple[str, ...] = ()


PARTS = (
    *CASH_SOURCES,
    *BURN_SOURCES,
    "holdback",
    "payable",
    "owed",
    "bid.earned",
    "bid.cash",
    "unmatured",
    "matured",
    "bond",
)
"""Last parts of the book accounts of a party."""


def books_of(account_id: str) -> tuple[str, ...]:
    """Every book account a party can have: all of them are empty when it closes."""
    return tuple(f"party:{account_id}:{part}" for part in PARTS)


def decide_close(command: CloseAccount, world: World) -> list[Change]:
    """Twice is once. The operator's account cannot be closed: nobody could open one again.

    Raises Refused: NOT_PERMITTED, ACCOUNT_UNKNOWN, ACCOUNT_NOT_EMPTY.
    """
    state = existing_account(world, command.account_id)
    if state.kind == "operator":
        raise Refused(PartiesReason.NOT_PERMITTED, account_id=command.account_id, kind=state.kind)
    if state.is_closed:
        return []
    for lease_id in command.lease_ids:
        lease = world.state(lease_stream(lease_id))
        if not lease.is_over:
            raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, lease_id=lease_id, status=lease.status)
    for escrow_id in command.escrow_ids:
        if escrow_of(world, escrow_id).held:
            raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, escrow_id=escrow_id)
    for lease_id, meter in command.meters:
        if usage_of(world, lease_id, meter).held:
            raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, lease_id=lease_id, meter=meter)
    for volume_id in command.volume_ids:
        volume = volume_of(world, volume_id)
        if volume.is_kept:
            raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, volume_id=volume_id, status=volume.state)
    for node_id in command.node_ids:
        phase = node_of(world, node_id).phase
        if phase != "retired":
            raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, node_id=node_id, phase=phase)
    for region_id in command.region_ids:
        if storage_node_of(world, region_id).provisioned is not None:
            raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, storage_node=region_id)
        gathered = f"region:{region_id}:revenue"
        if world.balance(gathered):  # shared out after midnight
            raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, book=gathered)
    devices = len(edge_devices_of(world, command.account_id).devices)
    if devices:  # a device that was removed today is charged at midnight
        raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, edge_devices=devices)
    for cash_out_id in command.cash_out_ids:
        status = cash_out_of(world, cash_out_id).status
        if not cash_out_of(world, cash_out_id).is_finished:
            raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, cash_out_id=cash_out_id, status=status)
    for book in books_of(command.account_id):
        units = world.balance(book)
        if units:
            raise Refused(PartiesReason.ACCOUNT_NOT_EMPTY, book=book, units=units)
    closed = AccountClosed(account_id=command.account_id, by=command.by, at_us=command.at_us)
    forfeited = [
        change
        for promotion in funding_of(world, command.account_id).promotions
        for change in forfeit(world, command.account_id, promotion.program, command.at_us)
    ]
    return [*forfeited, Change(account_stream(command.account_id), closed)]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {CloseAccount: decide_close}
