"""The jobs of the meters: device fees, storage nodes, and the other resources of leases.

What is due is found in the views and decided from the streams, so a repeated run adds nothing and
a late one catches up. One account, region or lease that fails stops by itself; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from api.metering.resource_rows import unjudged
from api.process.one_by_one import OneByOne
from api.process.service import Service
from domain.fleet.storage_node import ChargeStorageNode
from domain.lease.lease import LATE_WINDOW_US, lease_stream
from domain.leasing.other_resources import AccrueResource, stream_of
from domain.sites.edge_device import ChargeDeviceFee
from ledger.log.usage_reads import NodeReader
from ledger.tree import trees
from projections import tables
from projections.metering import meters
from projections.runner import Connection
from projections.sites import edge_devices

Thing = TypeVar("Thing")
logger = logging.getLogger(__name__)

DUE_MAX = 500
"""Meters of leases looked at together; a run goes through all of them."""


class MetersStopped(Exception):
    """Some accounts, regions or leases could not be charged; the others were."""


def run_device_fees(service: Service, connection: Connection, now_us: int) -> int:
    """Every UTC day that is over, for every account with edge devices, day by day."""
    tables.step_all(connection, only=("edge_devices",))

    def charge(account_id: str) -> int:
        command, days = ChargeDeviceFee(account_id=account_id, at_us=now_us), 0
        while service.ledger.handle(command, key=None, now_us=now_us).changes:
            days += 1
        return days

    return _each(edge_devices.read_accounts_with_devices(connection), charge)


def run_storage_nodes(service: Service, connection: Connection, now_us: int) -> int:
    """Every hour that is over, for every storage node there is."""
    tables.step_all(connection, only=("meters",))

    def charge(region_id: str) -> int:
        command = ChargeStorageNode(region_id=region_id, at_us=now_us)
        return len(service.ledger.handle(command, key=None, now_us=now_us).changes)

    return _each(meters.read_storage_regions(connection), charge)


def run_resources(service: Service, connection: Connection, now_us: int) -> int:
    """Signed rows whose time is over, of every lease that has run; and what is left of holds."""
    trees.see_elsewhere(connection)
    tables.step_all(connection, only=("leases", "resources", "meters"))

    def of_rows(after: int) -> list[tuple[int, str, str]]:
        return meters.read_due(connection, now_us, after=after, limit=DUE_MAX)

    def of_holds(after: int) -> list[tuple[int, str, str]]:
        until_us = now_us - LATE_WINDOW_US
        return meters.read_holds_due(connection, until_us, after=after, limit=DUE_MAX)

    both = [_accrue_all(service, connection, now_us, due) for due in (of_rows, of_holds)]
    if any(stopped for _, stopped in both):
        raise MetersStopped("some resources of leases stop: the log of this process names them")
    return sum(done for done, _ in both)


def _accrue_all(
    service: Service,
    connection: Connection,
    now_us: int,
    due_after: Callable[[int], list[tuple[int, str, str]]],
) -> tuple[int, bool]:
    """How many facts the meters that are due made, and whether one of them stopped."""
    done, after, stopped = 0, 0, False
    while due := due_after(after):
        after = due[-1][0]
        try:
            done += _each(
                [(lease_id, meter) for _, lease_id, meter in due],
                lambda one: accrue_resource(service, connection, *one, now_us),
            )
        except MetersStopped:
            stopped = True
    return done, stopped


def accrue_resource(
    service: Service, connection: Connection, lease_id: str, meter: str, now_us: int
) -> int:
    """Judge what waits for one meter of one lease; returns how many facts that made."""
    reader, facts = NodeReader(connection), 0
    while True:
        market = service.ledger.market
        state = market.state_of(stream_of(lease_id, meter))
        lease = market.state_of(lease_stream(lease_id))
        rows = unjudged(reader, lease, lease_id, meter, state.through_position)
        command = AccrueResource(lease_id=lease_id, meter=meter, rows=rows, at_us=now_us)
        if not service.ledger.handle(command, key=None, now_us=now_us).changes:
            return facts
        facts += 1


def _each(things: Iterable[Thing], charge: Callable[[Thing], int]) -> int:
    """The sum over all of them. Raises MetersStopped after the last, if one failed."""
    charges = OneByOne(logger, "charging %s stops")
    for one in things:
        charges.take(str(one), charge, one)
    return charges.end(MetersStopped)
