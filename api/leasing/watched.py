"""Leases that are looked at as they run, all of them read together.

    queries of a look at which nothing has moved are as many for one lease as for `WATCHED_MAX`
    a page sees a lease  <=>  the same principal may read /v1/leases/{lease_id}, and its output
    <=>  .../log

What the reports since the last accrual come to is computed again for a lease that has moved, or
whose node has reported since; of the others the last estimate still holds.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from api.door.auth import Principal
from api.door.moments import moment
from api.leasing.leases import READ
from api.leasing.work import PARTIES
from api.metering.unbilled import LeaseEstimateAnswer, estimates
from api.process.service import Service
from domain.frozen import replace
from ledger.beside import lease_logs
from ledger.log.handle import LOG_AWAY
from ledger.log.usage_reads import last_numbers
from projections.lease.leases import LEASES, Standing, read_standings
from projections.runner import Connection

logger = logging.getLogger(__name__)

WATCHED_MAX = 200


@dataclass(frozen=True, slots=True)
class Seen:
    """A lease at the last look. `reported` is the number of its node's last report, `next_seq` of
    the piece of output that comes next; `printed` is what came since the look before.
    """

    standing: Standing
    reported: int
    estimate: LeaseEstimateAnswer | None
    next_seq: int
    printed: bytes = b""

    @property
    def gpu_us(self) -> int:
        found = self.estimate
        return self.standing.gpu_us if found is None else int(found.gpu_us)

    @property
    def charge_units(self) -> int:
        found = self.estimate
        return self.standing.charge_units if found is None else int(found.charge.units)

    @property
    def until(self) -> str | None:
        """When its money or its term ends."""
        us = self.standing.funds_end_us or self.standing.term_end_us
        return None if us is None else moment(us)

    def shows_to(self, principal: Principal) -> bool:
        """Whether this principal may read the lease."""
        parties = (self.standing.account_id, self.standing.provider_account_id)
        is_party = any(one is not None and principal.may_see(one) for one in parties)
        return is_party and not READ.scopes.isdisjoint(principal.scopes)

    def prints_to(self, principal: Principal) -> bool:
        """Whether this principal may read what it prints."""
        parties = (self.standing.account_id, self.standing.provider_account_id)
        is_party = any(one is not None and principal.owns(one) for one in parties)
        return is_party and not PARTIES.scopes.isdisjoint(principal.scopes)


def look(service: Service, before: Mapping[str, Seen | None]) -> dict[str, Seen]:
    """These leases as they are now; `before` is what the last look saw of each, None: nothing.
    Leases that do not exist are left out, and those whose reports cannot be read.
    """
    assert len(before) <= WATCHED_MAX, len(before)
    with service.connection() as connection:
        service.follow(connection, [LEASES])
        standings = {one.lease_id: one for one in read_standings(connection, list(before))}
        nodes = {one.node_id for one in standings.values() if one.node_id is not None}
        reported = last_numbers(connection, sorted(nodes))
        from_seqs = {
            name: 0 if (last := before[name]) is None else last.next_seq for name in standings
        }
        printed = lease_logs.ends(connection, from_seqs)
        found = {
            name: _seen(
                before[name],
                standing,
                reported.get(standing.node_id or "", 0),
                *printed.get(name, (from_seqs[name], b"")),
            )
            for name, standing in standings.items()
        }
        moved = [name for name, one in found.items() if _has_moved(before[name], one)]
        so_far, failed = _estimates(service, connection, moved)
    return {
        name: replace(one, estimate=so_far.get(name, one.estimate))
        for name, one in found.items()
        if name not in failed
    }


def _estimates(
    service: Service, connection: Connection, moved: list[str]
) -> tuple[dict[str, LeaseEstimateAnswer], set[str]]:
    """Of those of these leases that run, and which of them cannot be computed: no other stops."""
    now_us = service.clock.now_us()
    try:
        return estimates(service.ledger, connection, moved, now_us), set()
    except LOG_AWAY:
        raise  # it is no lease's fault
    except Exception as error:
        logger.warning("%d leases are estimated one by one: %s", len(moved), error)
    found, failed = dict[str, LeaseEstimateAnswer](), set[str]()
    for name in moved:
        try:
            found |= estimates(service.ledger, connection, [name], now_us)
        except LOG_AWAY:
            raise
        except Exception:
            logger.exception("live pages of %s end: it cannot be estimated", name)
            failed.add(name)
    return found, failed


def _seen(
    last: Seen | None, standing: Standing, reported: int, next_seq: int, printed: bytes
) -> Seen:
    is_same = last is not None and (last.standing, last.reported) == (standing, reported)
    known = last.estimate if last is not None and is_same else None
    return Seen(standing, reported, known, next_seq, printed)


def _has_moved(last: Seen | None, now: Seen) -> bool:
    """Whether its estimate is to be made anew: it runs, and it or its reports are others."""
    if not now.standing.opened_at_us or now.standing.settled_at_us:
        return False
    return last is None or (last.standing, last.reported) != (now.standing, now.reported)
