"""Evidence in disputes: what is named by a position is looked up, and has to be about the lease, or
the volume.

    signed, of a lease   =>  the lease's node signed a report with rows of this lease, or the renter
                             how much it used of it
    signed, of a volume  =>  a node signed a report with rows of a lease that mounts the volume, of
                             a time after the last disputed charge began

The signature was checked when that was recorded. A program starts only once its volumes are
mounted, so its rows show that the disk was there, and was kept until then. A hash is taken as it
is: it proves that somebody had a text at that moment, and no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from domain.corrections.dispute import Evidence
from domain.corrections.reasons import CorrectionsReason
from domain.lease.countersign import UsageCountersigned
from domain.lease.lease import LeaseRequested, lease_stream
from domain.metering.report import lane_of
from domain.refusal import Refused
from domain.storage.volume import VolumeCharged, volume_stream
from ledger.log.market import Market
from ledger.log.report_rows import lease_rows
from ledger.log.usage_reads import report_at
from projections.runner import Connection


@dataclass(frozen=True, slots=True)
class Subject:
    """What a dispute is about: a lease, or a volume. `parties`: the renter and the provider; none
    where there is no such lease or volume. `from_us`: when the last disputed charge of a volume
    began.
    """

    lease_id: str | None
    volume_id: str | None
    parties: frozenset[str]
    from_us: int = 0


def lease_subject(market: Market, lease_id: str) -> Subject:
    reserved = market.state_of(lease_stream(lease_id)).reserved
    if reserved is None:
        return Subject(lease_id, None, frozenset())
    return Subject(lease_id, None, frozenset((reserved.account_id, reserved.provider_account_id)))


def volume_subject(market: Market, volume_id: str, positions: Iterable[int]) -> Subject:
    """`positions`: of the charges that are disputed."""
    made = market.state_of(volume_stream(volume_id)).provisioned
    if made is None:
        return Subject(None, volume_id, frozenset())
    charges = (_fact_at(market, position) for position in positions)
    began = [
        fact.until_us - fact.elapsed_us_new for fact in charges if isinstance(fact, VolumeCharged)
    ]
    parties = frozenset((made.account_id, made.provider_account_id))
    return Subject(None, volume_id, parties, max(began, default=0))


def checked(
    connection: Connection,
    market: Market,
    about: Subject,
    kind: str,
    lane: int | None,
    position: int | None,
    sha256: str | None,
) -> Evidence:
    """The evidence as a fact holds it. Raises Refused: EVIDENCE_UNKNOWN."""
    signed = False
    if kind == "usage_report":
        signed = _is_report_of(connection, market, about, lane, position)
        is_known = signed
    elif kind == "market_fact":
        fact = None if position is None else _fact_at(market, position)
        is_known = _is_about(fact, about)
        signed = is_known and isinstance(fact, UsageCountersigned)
    else:
        is_known = sha256 is not None
    if not is_known:
        raise Refused(CorrectionsReason.EVIDENCE_UNKNOWN, kind=kind, lane=lane, position=position)
    return Evidence(kind=kind, lane=lane, position=position, sha256=sha256, signed=signed)


def _is_about(fact: Any, about: Subject) -> bool:
    if about.volume_id is not None:
        return getattr(fact, "volume_id", None) == about.volume_id
    return getattr(fact, "lease_id", None) == about.lease_id


def _is_report_of(
    connection: Connection, market: Market, about: Subject, lane: int | None, position: int | None
) -> bool:
    """Whether there is such a report, unflagged, with rows of the lease, or of one that mounts the
    volume, from the node that the lease runs on. Its signature was checked when it came in.
    """
    found = None if lane is None or position is None else report_at(connection, lane, position)
    if found is None or lane != lane_of(found.node_id):
        return False
    rows = lease_rows(found).rows
    if about.lease_id is not None:
        return (
            about.lease_id in rows and _runs_on(market, about.lease_id, found.node_id) is not None
        )
    return any(
        about.volume_id in {one.volume_id for one in requested.volumes}
        for lease_id, told in rows.items()
        if any(row.wall_end_us > about.from_us for row in told)
        if (requested := _runs_on(market, lease_id, found.node_id)) is not None
    )


def _runs_on(market: Market, lease_id: str, node_id: str) -> LeaseRequested | None:
    """What was asked for, if the lease was reserved on the node."""
    lease = market.state_of(lease_stream(lease_id))
    has_node = lease.reserved is not None and lease.reserved.node_id == node_id
    return lease.requested if has_node else None


def _fact_at(market: Market, position: int) -> Any:
    found = market.read_facts(position - 1, 1)
    return found[0].fact if found and found[0].position == position else None
