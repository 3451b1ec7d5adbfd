"""Many leases in one append give the log that one lease after the other gives, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import psycopg
import pytest

import api.metering.accrual
import ledger.log.handle
import ledger.log.usage_reads
from api.metering.accrual import accrue, due_leases, due_now
from domain.duration import HOUR_US, MINUTE_US
from domain.lease.lease import START_TIMEOUT_US, UsageAccrued
from domain.leasing.due import PATIENCE_US, due_us
from domain.metering.reasons import MeteringReason
from domain.money import PPM
from domain.stream import Stream
from ledger.log.handle import Ahead, Ledger, Order
from ledger.log.usage_reads import NodeReader
from projections import tables
from tests.conftest import Databases
from tests.scenes.running_market import PRICE, START_US, Market
from tests.scenes.written import written

NOW_US = START_US + 3 * HOUR_US
BLINDING_KEY = b"tests/api/test_accrual_together"


@contextmanager
def open_market(database: str) -> Generator[Market, None, None]:
    with (
        Ledger(database, blinding_key=BLINDING_KEY, connections_max=3) as ledger,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        yield Market(ledger, connection)


def build(market: Market) -> list[str]:
    """Every kind of lease the job can meet, on three nodes; in the order they are accrued."""
    market.found("one", "two", "three")
    at_us = START_US + MINUTE_US
    leases = [
        market.lease("a", "one"),
        market.lease("b", "one", gpus=2, first=1, at_us=at_us),
        market.lease("c", "two", share_ppm=PPM // 2),
        market.lease("d", "two", first=1, term_us=90 * MINUTE_US),
        market.lease("e", "two", first=2, funds=4_000_000),
        market.lease("f", "three"),
        market.lease("g", "three", first=1),
        market.lease("h", "three", first=2, is_ready=False),
    ]
    a, b, c, d, e, f, g, _ = leases
    one, two = market.nodes["one"].device_ids, market.nodes["two"].device_ids
    for hour in range(3):
        from_us, to_us = START_US + hour * HOUR_US, START_US + (hour + 1) * HOUR_US
        market.report("one", a, from_us, to_us, devices=one[:1])
        market.report("one", b, max(from_us, at_us), to_us, devices=one[1:3])
        market.report("two", c, from_us, to_us, devices=two[:1], share_ppm=PPM // 2)
        market.report("two", d, from_us, to_us, devices=two[1:2])
        market.report("two", e, from_us, to_us, devices=two[2:3])
    market.report("three", f, START_US, NOW_US, devices=market.nodes["three"].device_ids[:1])
    market.close(g, START_US + HOUR_US // 2)  # its reports are still on their way
    return leases


@pytest.fixture
def leases(database: str) -> list[str]:
    with open_market(database) as market:
        return build(market)


@pytest.fixture
def copy(database: str, leases: list[str], postgres: Databases) -> Iterator[str]:
    """The same market once more."""
    assert leases
    name = database.split("/")[-1].split("?")[0]
    yield postgres.create_database(f"{name}_copy", template=name)
    postgres.drop_database(f"{name}_copy")


@pytest.mark.parametrize(
    "narrow",
    [
        lambda _: None,
        lambda patch: patch.setattr(ledger.log.handle, "FACTS_MAX", 3),
        lambda patch: patch.setattr(api.metering.accrual, "LEASES_TOGETHER", 2),
        lambda patch: patch.setattr(ledger.log.usage_reads, "REPORTS_AHEAD_MAX", 4),
    ],
    ids=["all in one append", "appends that fill up", "two leases at a time", "few reports ahead"],
)
def test_together_and_one_by_one_write_the_same_log(
    database: str,
    leases: list[str],
    copy: str,
    monkeypatch: pytest.MonkeyPatch,
    narrow: Callable[[pytest.MonkeyPatch], None],
) -> None:
    with open_market(copy) as market:
        alone = 0
        for lease in leases:
            run = api.metering.accrual._Run(
                market.ledger, NodeReader(market.connection), NOW_US, PATIENCE_US, None
            )
            alone += run.alone(lease)
        wanted = written(market)
    with open_market(database) as market:
        narrow(monkeypatch)
        assert accrue(market.ledger, market.connection, leases, NOW_US) == alone > 8
        monkeypatch.undo()
        assert written(market) == wanted
        kinds = {fact[3] for fact in wanted.facts[-alone:]}
        assert kinds >= {"lease.usage_accrued.v1", "lease.closed.v1", "lease.settled.v1"}
        # What is kept in memory is what the log says.
        with Ledger(database, blinding_key=BLINDING_KEY, connections_max=1) as fresh:
            for lease in leases:
                stream = Stream("lease", lease)
                assert market.ledger.market.load(stream) == fresh.market.load(stream)


def test_a_crash_between_two_appends_is_harmless(
    database: str, leases: list[str], copy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.metering.accrual, "LEASES_TOGETHER", 3)
    with open_market(copy) as market:
        accrue(market.ledger, market.connection, leases, NOW_US)
        wanted = written(market)

    def until_it_dies() -> Iterator[str]:
        yield from leases[:6]
        raise KeyboardInterrupt

    with open_market(database) as market:
        before = market.head
        with pytest.raises(KeyboardInterrupt):
            accrue(market.ledger, market.connection, until_it_dies(), NOW_US)
        assert before < market.head < len(wanted.facts)
    with open_market(database) as market:
        accrue(market.ledger, market.connection, leases, NOW_US)
        assert written(market) == wanted


def test_only_a_lease_that_moved_is_decided_on_what_it_moved_to(
    database: str, leases: list[str]
) -> None:
    """The others are decided as they would have been; a closed one is not accrued past its end."""
    with open_market(database) as market:
        moved, still = leases[0], leases[5]
        streams = [Stream("lease", lease) for lease in (moved, still)]
        reader = NodeReader(market.connection)
        ahead = market.ledger.market.load_many(streams)
        lists = [due_now(ahead[each].state, each.id, reader, NOW_US) for each in streams]
        assert [len(commands) for commands in lists] == [3, 3]
        with open_market(database) as other:
            other.close(moved, NOW_US)  # by another process, between loading and appending
        orders = [Order(commands, is_whole=False) for commands in lists]
        parts = market.ledger.handle_all(orders, ahead=Ahead(ahead, {}), now_us=NOW_US)
        assert [part.done for part in parts] == [2, 3]
        assert parts[0].refusal is not None
        assert parts[0].refusal.reason is MeteringReason.ACCRUAL_NOT_DUE, "its last hour is settled"
        assert parts[1].refusal is None
        accrue(market.ledger, market.connection, leases, NOW_US)
        assert market.state(moved).status == "settled"
        assert market.state(moved).charge_units == market.state(still).charge_units == 3 * PRICE
        assert market.ledger.books.faults() == []


def test_a_lease_the_books_refuse_stops_by_itself(database: str, leases: list[str]) -> None:
    broken = leases[1]
    with open_market(database) as market:
        market.connection.execute(
            "UPDATE account SET units = 1 WHERE name = %s", (f"escrow:{broken}:1:cash",)
        )
        stopped: dict[str, Exception] = {}
        accrue(market.ledger, market.connection, leases, NOW_US, on_stopped=stopped.__setitem__)
        assert stopped.keys() == {broken}
        hours = [market.state(lease).hours_accrued for lease in leases[:6]]
        assert hours[0] == hours[5] == 3
        assert hours[1] == 0
        accrued = {fact.lease_id for fact in market.facts(UsageAccrued)}
        assert accrued == set(leases[:6]) - {broken}


def test_a_start_that_was_missed_is_closed_with_the_others(
    database: str, leases: list[str]
) -> None:
    with open_market(database) as market:
        assert START_TIMEOUT_US < NOW_US - START_US
        accrue(market.ledger, market.connection, leases, NOW_US)
        assert market.state(leases[7]).status == "settled"
        assert market.state(leases[6]).status == "closing", "waits for its reports"


def test_whatever_is_due_is_listed_as_due(database: str, leases: list[str]) -> None:
    """The list of the job leaves out only leases for which nothing is due."""
    with open_market(database) as market:
        for minutes in range(0, 300, 10):
            now_us = START_US + minutes * MINUTE_US
            tables.step_all(market.connection, only=("leases",))
            listed = list(due_leases(market.connection, now_us))
            reader = NodeReader(market.connection)
            due = {lease for lease in leases if due_now(market.state(lease), lease, reader, now_us)}
            assert due <= set(listed), minutes
            moments = {lease: due_us(market.state(lease)) for lease in leases}
            assert set(listed) == {
                lease for lease, at_us in moments.items() if at_us is not None and at_us <= now_us
            }, "the list is made from the rule"
            assert len(listed) == len(set(listed)) <= len(leases)
            accrue(market.ledger, market.connection, listed, now_us)
        assert {market.state(lease).status for lease in leases[3:5]} == {"settled"}


def test_many_streams_are_loaded_as_one_is(database: str, leases: list[str]) -> None:
    """Folded before or not, moved since or not, with a snapshot of this code, of other code or
    none, or with no facts at all.
    """
    streams = [Stream("lease", lease) for lease in [*leases, "lease_unknown"]]
    with open_market(database) as market:
        accrue(market.ledger, market.connection, leases, NOW_US)
        held = market.ledger.market.load_many(streams)
        market.ledger.market.keep([held[stream] for stream in streams[:3]])
        market.connection.execute(
            "UPDATE market_snapshots SET topic = 'state/lease/of_other_code', state = '{}'"
            " WHERE originator_id = %s",
            (streams[0].uuid,),
        )
        with open_market(database) as other:
            warm = other.ledger.market.load_many(streams[::2])
            assert warm == {stream: held[stream] for stream in streams[::2]}
            later_us = NOW_US + HOUR_US + PATIENCE_US
            assert accrue(market.ledger, market.connection, leases, later_us) > 0
            again = other.ledger.market.load_many(streams)
        with Ledger(database, blinding_key=BLINDING_KEY, connections_max=1) as fresh:
            assert again == {stream: fresh.market.load(stream) for stream in streams}
            assert again != held
