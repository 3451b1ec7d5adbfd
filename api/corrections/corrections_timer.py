"""Corrections as the log and the usage log ask for them: SLA credits after settlement, disputes
that nobody ruled, what the network owes for either, and the command for usage that came late.

    every settled lease with an SLA class is assessed once; every dispute ends after 90 days
    what the network owes for a correction is paid as soon as its revenue has it

A run that stops anywhere is run again: the log knows what was assessed, credited and ruled. A lease
or a dispute that fails stops by itself and is named; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from api.process.one_by_one import OneByOne
from api.process.service import Service
from domain.chain.reasons import ChainReason
from domain.corrections.dispute import TimeOutDispute
from domain.corrections.dispute import stream_of as dispute_stream
from domain.corrections.late_usage import BillLateUsage
from domain.corrections.sla import CreditSla, Sla
from domain.corrections.sla import stream_of as sla_stream
from domain.fleet.reasons import FleetReason
from domain.income.adjustment import ChargedLine, PayOwed, Unburned
from domain.income.adjustment import stream_of as adjustments_of
from domain.lease.lease import LeaseSettled, UsageAccrued, lease_stream
from domain.lease.reasons import LeaseReason
from domain.metering.report import lane_of
from domain.refusal import Reason, Refused
from domain.stream import derive_id
from ledger.beside.charged import charged_line
from ledger.log.handle import Ledger
from ledger.log.usage_reads import NodeReader
from ledger.tree import trees
from projections import tables
from projections.corrections import disputes
from projections.epochs.burning import read_unburned
from projections.runner import Connection

logger = logging.getLogger(__name__)

LINES_MAX = 100
"""Charges of one append."""
DUE_MAX = 1_000
AGAIN: frozenset[Reason] = frozenset({ChainReason.BURN_STATE})
"""A burn began meanwhile: what a correction may take of what is to be burned is read again."""


class CorrectionsStopped(Exception):
    """Some leases or disputes could not be corrected; the others were. Somebody should look."""


def correct_due(ledger: Ledger, connection: Connection, now_us: int) -> int:
    """SLA credits, timeouts and owed corrections that are due; how many of them were looked at.

    Raises CorrectionsStopped after all.
    """
    trees.see_elsewhere(connection)
    tables.step_all(connection, only=("disputes", "epochs"))
    corrections = OneByOne(logger, "the correction of %s stops")
    for lease_id in disputes.read_sla_due(connection, DUE_MAX):
        corrections.take(lease_id, credit_sla, ledger, connection, lease_id, now_us)
    for dispute_id in disputes.read_expired(connection, now_us, DUE_MAX):
        corrections.take(dispute_id, time_out, ledger, connection, dispute_id, now_us)
    for position in disputes.read_owed(connection, DUE_MAX):
        corrections.take(str(position), pay_owed, ledger, position, now_us)
    return corrections.end(CorrectionsStopped)


def pay_owed(ledger: Ledger, position: int, now_us: int) -> None:
    """Pay what the network owes for the corrections of a charge, as far as it has it."""

    def command() -> PayOwed:
        state = ledger.market.state_of(adjustments_of(position))
        (line,) = _lines(ledger, [position])
        name = derive_id("adj", f"owed-{position}", str(state.given))
        return PayOwed(adjustment_id=name, line=line, at_us=now_us)

    ledger.handle(command, key=None, now_us=now_us)


def credit_sla(ledger: Ledger, connection: Connection, lease_id: str, now_us: int) -> None:
    """Assess a settled lease and credit what is due, charge by charge, the newest first."""
    positions: list[int] = []
    first: int | None = None  # assessed before any charge is looked at
    while not _sla(ledger, lease_id).is_done:
        if first is not None and first >= len(positions):
            return  # an open dispute freezes what is left
        page = () if first is None else positions[first : first + LINES_MAX]
        is_last = first is not None and first + LINES_MAX >= len(positions)

        def command(page: Sequence[int] = page, is_last: bool = is_last) -> CreditSla:
            return CreditSla(
                lease_id=lease_id,
                lines=_lines(ledger, page),
                is_last=is_last,
                unburned=unburned(connection, page),
                at_us=now_us,
            )

        ledger.handle(command, key=None, now_us=now_us, again_on=AGAIN)
        if first is None:
            positions = _charges(ledger, lease_id)
            first = 0
        else:
            first += LINES_MAX


def time_out(ledger: Ledger, connection: Connection, dispute_id: str, now_us: int) -> None:
    """End a dispute that nobody ruled in time."""

    def command() -> TimeOutDispute:
        state = ledger.market.state_of(dispute_stream(dispute_id))
        assert state.opened is not None
        positions = [line.position for line in state.opened.lines]
        return TimeOutDispute(
            dispute_id=dispute_id,
            lines=_lines(ledger, positions),
            unburned=unburned(connection, positions),
            at_us=now_us,
        )

    ledger.handle(command, key=None, now_us=now_us, again_on=AGAIN)


def unburned(connection: Connection, positions: Iterable[int]) -> Unburned:
    """What no burn covers of charges now."""
    tables.step_all(connection, only=("epochs",))
    return read_unburned(connection, positions)


def late_command(
    ledger: Ledger, connection: Connection, lease_id: str, adjustment_id: str, by: str, now_us: int
) -> BillLateUsage:
    """The command that counts a settled lease's reports that came after its settlement.

    Raises Refused: LEASE_UNKNOWN, LEASE_STATE.
    """
    recorded = ledger.market.read_stream(lease_stream(lease_id))
    if not recorded:
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    lease = ledger.market.state_of(lease_stream(lease_id))
    settled = [one.position for one in recorded if isinstance(one.fact, LeaseSettled)]
    if not settled or lease.reserved is None or lease.opened is None:
        raise Refused(FleetReason.LEASE_STATE, lease_id=lease_id, status=lease.status)
    late = ledger.market.state_of(adjustments_of(settled[0])).late
    after = lease.usage_position if late is None else late.usage_position
    node_id, reader = lease.reserved.node_id, NodeReader(connection)
    lane = lane_of(node_id)
    return BillLateUsage(
        adjustment_id=adjustment_id,
        lease_id=lease_id,
        settled_position=settled[0],
        lane=lane,
        usage_position=max(after, reader.head(lane)),
        rows=reader.rows(node_id, lease_id, after),
        by=by,
        at_us=now_us,
    )


def _sla(ledger: Ledger, lease_id: str) -> Sla:
    return ledger.market.state_of(sla_stream(lease_id))


def _charges(ledger: Ledger, lease_id: str) -> list[int]:
    """Positions of the lease's charges, the newest first."""
    recorded = ledger.market.read_stream(lease_stream(lease_id))
    charged = [
        one.position
        for one in recorded
        if isinstance(one.fact, UsageAccrued) and one.fact.charge_new.units
    ]
    return charged[::-1]


def _lines(ledger: Ledger, positions: Iterable[int]) -> tuple[ChargedLine, ...]:
    return tuple(charged_line(ledger.market, ledger.books, one) for one in positions)


def run_corrections(service: Service, connection: Connection, now_us: int) -> int:
    """SLA credits of settled leases, and disputes that nobody ruled in time."""
    return correct_due(service.ledger, connection, now_us)
