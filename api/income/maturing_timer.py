"""Money out as it falls due: earnings mature, what is payable is swept, once per UTC day.

    mature:  the books' credits to holdback, up to what is due -> EarningsMatured per account,
             and of it to regions that share what their nodes earn
    sweep:   accounts with something payable that were not swept today -> EarningsSwept

A run that stops anywhere is simply run again: what was matured is not due any more, and who was
swept today is not swept twice; the log decides, the views only say where to look. An account that
fails stops by itself and is named; the others go on.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from api.process.service import Service
from domain.duration import DAY_US
from domain.income.maturity import NETWORK, MatureEarnings, SweepEarnings, due_until_us, stream_of
from domain.income.region_pool import RegionalEarning
from ledger.log.handle import LOG_AWAY, Ledger
from projections import read, tables
from projections.income import money_out, regions
from projections.runner import Connection

logger = logging.getLogger(__name__)

ACCOUNTS_MAX = 5_000
"""Accounts looked at together; a run goes through all that have something due."""
BATCH_MAX = 100
"""Accounts of one append."""
_RECORDED = "SELECT recorded_us FROM public.market_events WHERE notification_id = %(position)s"


class MoneyOutStopped(Exception):
    """Some accounts could not be paid; the others were. Somebody should look."""


def mature(ledger: Ledger, connection: Connection, now_us: int) -> int:
    """Mature all earnings that are due, `dispute_window` after each was posted; how many accounts.

    Raises MoneyOutStopped naming the accounts that failed, after all others.
    """
    windows = ledger.market.state_of(NETWORK)
    due_us = due_until_us(windows.versions, now_us)
    through = ledger.market.position_at(due_us) if due_us >= 0 else 0
    if not through:
        return 0
    through_us = read.number(connection, _RECORDED, position=through)
    tables.step_all(connection, only=("money_out", "regions"))
    done, after = 0, ""
    stopped: list[str] = []
    while due := money_out.read_due(connection, through, after=after, limit=ACCOUNTS_MAX):
        after = due[-1].account_id
        owed = _owed(connection, due, through)

        def command(
            one: money_out.Due, owed: Mapping[str, Sequence[regions.Owed]] = owed
        ) -> MatureEarnings:
            regional, reduced = _regional(ledger, connection, owed.get(one.account_id, ()), through)
            return MatureEarnings(
                account_id=one.account_id,
                after_position=one.after_position,
                through_position=through,
                through_us=through_us,
                gross=one.gross,
                at_us=now_us,
                clients=tuple((client_id, units) for client_id, units in one.clients),
                regional=regional,
                reduced=reduced,
            )

        handled, failed = in_batches(ledger, due, command, now_us)
        done, stopped = done + handled, stopped + failed
    raise_if(stopped, "mature")
    return done


def _owed(
    connection: Connection, due: Sequence[money_out.Due], through: int
) -> Mapping[str, Sequence[regions.Owed]]:
    """What nodes in regions with terms earned these accounts; most accounts have none."""
    by_account: defaultdict[str, list[regions.Owed]] = defaultdict(list)
    for one in regions.read_owed(connection, [each.account_id for each in due], through):
        by_account[one.account_id].append(one)
    return by_account


def _regional(
    ledger: Ledger, connection: Connection, owed: Sequence[regions.Owed], through: int
) -> tuple[tuple[RegionalEarning, ...], int]:
    """What an account's regions may gather: of a charge that was reduced, at most what is left.
    Reductions are read from the log itself, for a view may not have got to the last one.
    """
    if not owed:
        return (), 0
    account_id = owed[0].account_id
    state = ledger.market.state_of(stream_of(account_id))
    units = {(one.region_id, one.node_id, one.day): one.units for one in owed}
    reduced = {at: taken for at, taken in state.reductions.items() if at <= through}
    for charge in regions.read_owed_at(connection, account_id, list(reduced)):
        left = max(0, charge.credited - reduced[charge.position])
        key = (charge.region_id, charge.node_id, charge.day)
        units[key] -= charge.units - min(charge.units, left)
    found = (RegionalEarning(*key, units=left) for key, left in units.items() if left)
    return tuple(found), sum(reduced.values())


def sweep(ledger: Ledger, connection: Connection, now_us: int) -> int:
    """Sweep every account with something payable that was not swept on this UTC day; how many.

    Raises MoneyOutStopped naming the accounts that failed, after all others.
    """
    tables.step_all(connection, only=("money_out",))
    done, after = 0, ""
    stopped: list[str] = []
    day = now_us // DAY_US
    while due := money_out.read_payable(connection, day, after=after, limit=ACCOUNTS_MAX):
        after = due[-1].account_id

        def command(one: money_out.Payee) -> SweepEarnings:
            return SweepEarnings(account_id=one.account_id, at_us=now_us)

        handled, failed = in_batches(ledger, due, command, now_us)
        done, stopped = done + handled, stopped + failed
    raise_if(stopped, "sweep")
    return done


def in_batches(
    ledger: Ledger, due: Sequence[Any], command: Callable[[Any], Any], now_us: int
) -> tuple[int, list[str]]:
    """One command for each, many in one append; how many took effect, and the accounts that fail.

    A batch that fails is done one by one: no account stops another one.
    """
    done = 0
    stopped: list[str] = []
    for first in range(0, len(due), BATCH_MAX):
        handled, failed = _batch(ledger, due[first : first + BATCH_MAX], command, now_us)
        done, stopped = done + handled, stopped + failed
    return done, stopped


def _batch(
    ledger: Ledger, batch: Sequence[Any], command: Callable[[Any], Any], now_us: int
) -> tuple[int, list[str]]:
    try:
        outcome = ledger.handle(lambda: [command(one) for one in batch], key=None, now_us=now_us)
    except LOG_AWAY:
        raise  # it is no account's fault, and the next one would wait as long
    except Exception as error:
        if len(batch) == 1:
            logger.exception("money out of %s stops", batch[0].account_id)
            return 0, [batch[0].account_id]
        logger.warning("%d accounts are done one by one: %s", len(batch), error)
        found = [_batch(ledger, [one], command, now_us) for one in batch]
        return sum(done for done, _ in found), [name for _, names in found for name in names]
    return len(outcome.changes), []


def raise_if(stopped: Sequence[str], step: str) -> None:
    """Raises MoneyOutStopped when any account stopped."""
    if stopped:
        raise MoneyOutStopped(f"{step}: {len(stopped)} accounts stop, the first is {stopped[0]}")


def run_maturity(service: Service, connection: Connection, now_us: int) -> int:
    """What was earned becomes payable when its dispute window has passed."""
    return mature(service.ledger, connection, now_us)


def run_sweep(service: Service, connection: Connection, now_us: int) -> int:
    """What is payable goes to the billing account, once per account and UTC day."""
    return sweep(service.ledger, connection, now_us)
