"""Books every hour where the time of every device went, and says what it looked at to know.

    unavailable = not leased, and: the node took no leases, or no signed report says it was there
    mined       = no lease holds a part, not unavailable, and: its provider states that it mines

An hour is booked when its reports have had PROOF_WAIT_US to come. A report that comes later still
pays for leased time, but what was booked as unavailable stays so: the fact names how far the
node's reports had been read. Rules: `domain/hardware/capacity.py`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

from api.process.service import Service
from domain.duration import HOUR_US
from domain.fleet.device import AccrueCapacity, DeviceState, device_stream
from domain.hardware.capacity import PROOF_GAP_US, Span, unproven
from domain.metering.report import lane_of
from ledger.log.handle import LOG_AWAY
from ledger.log.report_rows import proven_by
from ledger.log.usage_reads import NodeReader
from ledger.tree import trees
from projections import tables
from projections.fleet.away import read_away, read_mining
from projections.runner import Connection

logger = logging.getLogger(__name__)

COMMANDS_MAX = 64
PROOF_WAIT_US = 300_000_000
"""Five minutes: a node that cannot reach the server for so long is not there to be sold either."""

_DEVICES = "SELECT device_id FROM proj_fleet.device ORDER BY device_id"


def run_capacity(service: Service, connection: Connection, now_us: int) -> int:
    """Where every device's time went, up to the last full hour whose reports have had time to come.
    What nobody held while the node took no leases, or signed nothing, is unavailable.

    Once all of an hour is booked, no device is looked at before the next one is due: a device that
    comes meanwhile counts from a later moment. What was lost with a database is booked then, too.
    """
    to_us = (now_us - PROOF_WAIT_US) // HOUR_US * HOUR_US
    if service.capacity_to_us == to_us:
        return 0
    tables.step_all(connection, only=("fleet",))
    by_node: defaultdict[str, dict[str, DeviceState]] = defaultdict(dict)
    for (device_id,) in connection.execute(_DEVICES).fetchall():
        state = service.ledger.market.state_of(device_stream(device_id))
        if state.is_due(to_us):
            assert state.node_id is not None, device_id
            by_node[state.node_id][device_id] = state
    counted_to = [state.counted_to_us for found in by_node.values() for state in found.values()]
    from_us = min(counted_to, default=to_us)
    away = read_away(connection, from_us, to_us)
    mining = read_mining(connection, from_us, to_us)
    trees.see_elsewhere(connection)
    reader = NodeReader(connection)
    due: list[AccrueCapacity] = []
    stopped: list[str] = []
    for node_id, devices in by_node.items():
        try:
            out, mined = away.get(node_id, ()), mining.get(node_id, ())
            due += capacity_commands(reader, node_id, devices, out, to_us, now_us, mining=mined)
        except LOG_AWAY:
            raise  # it is no node's fault
        except Exception:
            logger.exception("the reports of %s cannot be read", node_id)
            stopped += devices
    for first in range(0, len(due), COMMANDS_MAX):
        stopped += _book(service, due[first : first + COMMANDS_MAX], now_us)
    if stopped:
        raise CapacityStopped(f"{len(stopped)} devices stop, the first is {stopped[0]}")
    service.capacity_to_us = to_us
    return len(due)


def capacity_commands(
    reader: NodeReader,
    node_id: str,
    devices: Mapping[str, DeviceState],
    away: tuple[Span, ...],
    to_us: int,
    now_us: int,
    *,
    mining: tuple[Span, ...] = (),
) -> list[AccrueCapacity]:
    """The bookings of one node's devices: its reports are read once for all of them."""
    lane, proven = lane_of(node_id), defaultdict[str, list[Span]](list)
    from_us = min(state.counted_to_us for state in devices.values())
    head = reader.head(lane)
    for report in reader.reports(node_id, reader.received_before(lane, from_us), head):
        for device_id, span in proven_by(report):
            spans = proven[device_id]
            if spans and spans[-1].to_us <= span.from_us <= spans[-1].to_us + PROOF_GAP_US:
                spans[-1] = Span(spans[-1].from_us, span.to_us)
            else:
                spans.append(span)
    return [
        AccrueCapacity(
            device_id=device_id,
            to_us=to_us,
            at_us=now_us,
            lane=lane,
            usage_position=head,
            mining=mining,
            unavailable=(*away, *unproven(Span(state.counted_to_us, to_us), proven[device_id])),
        )
        for device_id, state in devices.items()
    ]


class CapacityStopped(Exception):
    """Some devices could not be booked; the others were."""


def _book(service: Service, batch: Sequence[AccrueCapacity], now_us: int) -> list[str]:
    """Book devices together, or one by one where that fails; the devices that stop."""
    try:
        service.ledger.handle(list(batch), key=None, now_us=now_us)
    except LOG_AWAY:
        raise  # it is no device's fault, and the next one would wait as long
    except Exception as error:
        if len(batch) == 1:
            logger.exception("capacity of %s stops", batch[0].device_id)
            return [batch[0].device_id]
        logger.warning("capacity of %d devices is booked one by one: %s", len(batch), error)
        return [stopped for one in batch for stopped in _book(service, [one], now_us)]
    return []
