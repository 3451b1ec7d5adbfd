"""Shares out every region's day, once, after it is over and its capacity has been booked.

    shared(day) => present and attested time, tiers and roles as known then, all told in the facts

A region's days are taken in order, as many as are due, so a service that was away catches up; what
had been decided before it stopped is found in the log and not decided again. A region that fails
stops by itself and is named. Rules: `domain/income/region_sharing.py`,
`domain/income/region_waterfall.py`.
"""

from __future__ import annotations

import logging
from collections import defaultdict

from api.process import founding
from api.process.service import Service
from domain.calendar import day_start_us
from domain.duration import DAY_US, HOUR_US
from domain.income.region_sharing import ROLE_NODES_MAX, NodeTime, ShareRegionDay
from domain.income.region_terms import stream_of, terms_on
from domain.trust.lifting import lifted_us
from domain.trust.tiers import CHALLENGED, standing
from ledger.log.handle import LOG_AWAY
from projections import tables
from projections.epochs.signed import read_signed
from projections.income import regions
from projections.runner import Connection
from projections.trust import evidence as trust

logger = logging.getLogger(__name__)

WAIT_US = HOUR_US
"""After midnight: capacity is booked five minutes after an hour."""
WAIT_US_MAX = 6 * HOUR_US
"""Longer nobody waits for devices whose capacity is not booked: what is missing is not paid for."""
DAYS_MAX = 31
"""Days of one region in one run."""
TRUST_US = 7 * DAY_US
"""What a device is judged by: an epoch's length up to the end of the day, so that no day at the
beginning of an epoch is without challenges that were passed.
"""
VIEWS = ("fleet", "trust", "epochs", "regions")


class RegionsStopped(Exception):
    """Some regions could not be shared out; the others were. Somebody should look."""


def run_regions(service: Service, connection: Connection, now_us: int) -> int:
    """Every day of every region that is due; how many. Raises RegionsStopped."""
    tables.step_all(connection, only=("regions",))
    due = [one for one in regions.read_next(connection) if is_over(one.day, now_us)]
    if not due:
        return 0
    tables.step_all(connection, only=VIEWS)
    done, stopped = 0, list[str]()
    for one in due:
        try:
            done += _share_days(service, connection, one, now_us)
        except LOG_AWAY:
            raise  # it is no region's fault
        except Exception:
            logger.exception("the days of %s stop", one.region_id)
            stopped.append(one.region_id)
    if stopped:
        raise RegionsStopped(f"{len(stopped)} regions stop, the first is {stopped[0]}")
    return done


def is_over(day: int, now_us: int) -> bool:
    return now_us >= day_start_us(day + 1) + WAIT_US


def _share_days(service: Service, connection: Connection, one: regions.Next, now_us: int) -> int:
    done, day = 0, one.day
    while done < DAYS_MAX and is_over(day, now_us):
        ends_us = day_start_us(day + 1)
        waits = regions.read_unbooked(connection, one.region_id, ends_us)
        if waits and now_us < ends_us + WAIT_US_MAX:
            logger.info("%s waits for the capacity of %d devices", one.region_id, waits)
            break
        command = share_command(service, connection, one.region_id, day, now_us)
        service.ledger.handle(command, key=None, now_us=now_us)
        done, day = done + 1, day + 1
    return done


def share_command(
    service: Service, connection: Connection, region_id: str, day: int, now_us: int
) -> ShareRegionDay:
    """What a day is shared out by, as it is known now."""
    state = service.ledger.market.state_of(stream_of(region_id))
    terms = terms_on(state.versions, day)
    assert terms is not None, (region_id, day)
    control, ingress = (
        tuple(regions.read_with_role(connection, region_id, role, ROLE_NODES_MAX))
        for role in ("control", "ingress")
    )
    return ShareRegionDay(
        region_id=region_id,
        day=day,
        times=node_times(service, connection, region_id, day, terms.availability_min_tier),
        control=control,
        ingress=ingress,
        at_us=now_us,
    )


def node_times(
    service: Service, connection: Connection, region_id: str, day: int, min_tier: int
) -> tuple[NodeTime, ...]:
    """Attested time of every node that was there: at the tier that is asked for, and below it.

    A device counts no more than its capacity was present.
    """
    by_node: defaultdict[str, list[regions.Present]] = defaultdict(list)
    for one in regions.read_present(connection, region_id, day):
        by_node[one.node_id].append(one)
    head, _ = service.ledger.market.head()
    signed = read_signed(connection, day_start_us(day), day_start_us(day + 1), head)
    libraries = set(trust.read_libraries(connection))
    span = trust.Span(None, day_start_us(day + 1) - TRUST_US, day_start_us(day + 1))
    development = founding.is_development(service.ledger)
    times = []
    for node_id, present in by_node.items():
        tiers = {
            one.device_id: standing(one, libraries, development=development).tier
            for one in trust.read_evidence(connection, node_id, span)
        }
        times.append(node_time(node_id, present, tiers, min_tier, signed.get(node_id, 0)))
    return tuple(times)


def node_time(
    node_id: str,
    present: list[regions.Present],
    tiers: dict[str, int],
    min_tier: int,
    signed_us: int,
) -> NodeTime:
    """Add up one node's devices. `signed_us`: as in `domain/trust/lifting.py`."""
    room = {one.device_id: one.present_us for one in present}
    times = []
    ranked = [(tiers.get(one.told_id, 0), one) for one in present]
    for tier, one in sorted(ranked, key=lambda pair: (-pair[0], pair[1].told_id)):
        us = min(one.metered_us, room[one.device_id])
        room[one.device_id] -= us
        times.append((tier, us))
    lifted = lifted_us(times, signed_us)
    counted = [(tier, us - up_us) for (tier, us), up_us in zip(times, lifted, strict=True)]
    counted.append((CHALLENGED, sum(lifted)))
    available_us = sum(us for tier, us in counted if tier >= min_tier)
    return NodeTime(
        node_id=node_id,
        available_us=available_us,
        below_tier_us=sum(us for _, us in counted) - available_us,
    )
