"""From signed reports to lease hours, on a real PostgreSQL: what posts, when, and only once."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import msgspec
import psycopg
import pytest

from api.metering.accrual import accrue
from domain.duration import HOUR_US, MINUTE_US
from domain.fleet.device import DeviceState
from domain.lease.close_codes import FUNDS_ENDED, TERM_REACHED
from domain.lease.lease import LATE_WINDOW_US, UsageAccrued
from domain.leasing.due import PATIENCE_US
from domain.metering import report
from domain.metering.report import lane_of
from domain.money import PPM
from domain.stream import Stream
from ledger.log.chain import stored_body
from ledger.log.handle import Ledger
from ledger.log.report_rows import lease_rows
from ledger.log.usage import StoredReport
from ledger.log.usage_reads import NodeReader
from tests.scenes.running_market import CASH_UNITS, PRICE, RENTER, START_US, Market

OWNER_HOLDBACK = "party:acct_owner:holdback"


@pytest.fixture
def market(database: str) -> Generator[Market, None, None]:
    with (
        Ledger(database, blinding_key=b"tests/api/test_accrual", connections_max=2) as ledger,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        made = Market(ledger, connection)
        made.found("one", "two")
        yield made


def run(market: Market, now_us: int, *leases: str, **how: Any) -> int:
    """The job as a new process would run it."""
    return accrue(market.ledger, market.connection, leases, now_us, **how)


def posted(market: Market, account: str) -> list[int]:
    """What each accrual added to an account, in order."""
    added = []
    for recorded in market.ledger.market.read_facts(0, 100_000):
        if type(recorded.fact) is UsageAccrued:
            booked = market.ledger.books.postings(recorded.position)
            added += [-lines.get(account, 0) for lines in booked.values()]
    return added


# --- reading ----------------------------------------------------------------------------------


def _stored(signed: bytes, flags: int = 0) -> StoredReport:
    body = stored_body(signed, "key", bytes(64))
    return StoredReport(1, 7, "node_" + "0" * 32, 1, body, flags, START_US + HOUR_US)


def test_a_flagged_report_earns_nothing_and_one_without_rows_has_none(market: Market) -> None:
    body, _ = market.nodes["one"].report("lease_00000001", START_US, START_US + HOUR_US)
    assert lease_rows(_stored(body)).rows.keys() == {"lease_00000001"}
    assert lease_rows(_stored(body, flags=1)).rows == {}
    empty, _ = market.nodes["two"].node.next(rows=(), leases=())
    assert lease_rows(_stored(empty)).rows == {}


# --- posting ----------------------------------------------------------------------------------


def test_hours_post_at_their_end_and_the_last_part_when_the_job_stops(market: Market) -> None:
    """C-23: 4 x A100 at 2.78 for 2.5 hours earn 5.06 + 5.06 + 2.53."""
    opened_us = START_US + 17 * MINUTE_US
    lease = market.lease("a", "one", gpus=4, at_us=opened_us)
    for hour in range(3):
        from_us = opened_us + hour * HOUR_US
        end_us = min(from_us + HOUR_US, opened_us + 5 * HOUR_US // 2)
        market.report("one", lease, from_us, end_us)
        if end_us == from_us + HOUR_US:
            assert run(market, end_us - 1, lease) == 0, "not before the hour is over"
            assert run(market, end_us, lease) == 1
    market.close(lease, opened_us + 5 * HOUR_US // 2)
    assert run(market, opened_us + 5 * HOUR_US // 2, lease) == 1
    assert posted(market, OWNER_HOLDBACK) == [5_060_000, 5_060_000, 2_530_000]
    facts = market.facts(UsageAccrued)
    assert [fact.until_us - opened_us for fact in facts] == [HOUR_US, 2 * HOUR_US, 5 * HOUR_US // 2]
    state = market.state(lease)
    assert (state.status, state.charge_units) == ("settled", 27_800_000)
    assert market.balance("network:revenue:usage") == 2_500_000
    assert market.balance("network:revenue:take") == 27_800_000 - 12_650_000 - 2_500_000
    assert market.balance(f"party:{RENTER}:cash") == CASH_UNITS - 27_800_000
    assert market.ledger.books.books_balanced()


def test_a_repeated_run_adds_nothing(market: Market) -> None:
    lease = market.lease("a", "one")
    market.report("one", lease, START_US, START_US + 2 * HOUR_US)
    now_us = START_US + 2 * HOUR_US + PATIENCE_US
    assert run(market, now_us, lease) == 2
    head = market.head
    assert [run(market, now_us + again, lease) for again in range(3)] == [0, 0, 0]
    market.close(lease, now_us)
    market.report("one", lease, START_US + 2 * HOUR_US, now_us)
    assert run(market, now_us, lease) == 1
    settled = market.head
    assert [run(market, now_us + HOUR_US, lease) for _ in range(3)] == [0, 0, 0]
    assert market.head == settled > head


def test_a_late_report_falls_into_the_next_accrual(market: Market) -> None:
    late, on_time = market.lease("a", "one"), market.lease("b", "two")
    half_us, hour_us = START_US + HOUR_US // 2, START_US + HOUR_US
    market.report("one", late, START_US, half_us)
    market.report("two", on_time, START_US, hour_us)
    assert run(market, hour_us, late, on_time) == 1, "the hour waits for its report"
    assert run(market, hour_us + PATIENCE_US, late, on_time) == 1, "but not for ever"
    market.report("one", late, half_us, hour_us, received_us=hour_us + PATIENCE_US + 1)
    for node, lease in (("one", late), ("two", on_time)):
        market.report(node, lease, hour_us, hour_us + HOUR_US)
    assert run(market, hour_us + HOUR_US, late, on_time) == 2
    hours: dict[str, list[int]] = {late: [], on_time: []}
    for fact in market.facts(UsageAccrued):
        hours[fact.lease_id].append(fact.gpu_us_new)
    assert hours[late] == [HOUR_US // 2, 3 * HOUR_US // 2]
    assert hours[on_time] == [HOUR_US, HOUR_US]
    assert market.state(late).charge_units == market.state(on_time).charge_units == 2 * PRICE


def test_a_report_over_the_end_of_an_hour_is_read_again_and_counted_once(market: Market) -> None:
    lease = market.lease("a", "one")
    step_us = 25 * MINUTE_US
    for start_us in range(START_US, START_US + 6 * step_us, step_us):
        market.report("one", lease, start_us, start_us + step_us)
    assert run(market, START_US + 2 * HOUR_US + PATIENCE_US, lease) == 2
    end_us = START_US + 6 * step_us
    market.close(lease, end_us)
    assert run(market, end_us, lease) == 1
    assert [fact.gpu_us_new for fact in market.facts(UsageAccrued)] == [
        2 * step_us,
        2 * step_us,
        2 * step_us,
    ]
    assert market.state(lease).gpu_us == 6 * step_us


def test_a_node_whose_clock_is_behind_is_counted_by_the_servers_time(market: Market) -> None:
    lease = market.lease("a", "one", term_us=HOUR_US)
    market.report("one", lease, START_US, START_US + HOUR_US, offset_us=3 * MINUTE_US)
    run(market, START_US + HOUR_US, lease)
    assert market.state(lease).status == "settled"
    assert market.state(lease).gpu_us == HOUR_US


def test_shares_and_several_leases_of_one_node_are_told_apart(market: Market) -> None:
    half = market.lease("a", "one", share_ppm=PPM // 2)
    whole = market.lease("b", "one", gpus=2, first=1)
    devices = market.nodes["one"].device_ids
    hour_us = START_US + HOUR_US
    market.report("one", half, START_US, hour_us, devices=devices[:1])
    market.report("one", whole, START_US, hour_us, devices=devices[1:3], received_us=hour_us + 1)
    assert run(market, hour_us + 1, half, whole) == 2
    assert market.state(half).gpu_us == HOUR_US // 2
    assert market.state(whole).gpu_us == 2 * HOUR_US


# --- ends -------------------------------------------------------------------------------------


def test_the_end_of_funds_closes_the_lease_at_the_funded_second(market: Market) -> None:
    funds = 4_000_000
    lease = market.lease("a", "one", funds=funds)
    market.report("one", lease, START_US, START_US + 3 * HOUR_US)
    assert run(market, START_US + 3 * HOUR_US, lease) == 3
    state = market.state(lease)
    assert state.closed is not None
    funded_s = funds * 3_600 // PRICE
    assert state.closed.closed_at_us == START_US + funded_s * 1_000_000
    assert (state.closed.code, state.status) == (FUNDS_ENDED, "settled")
    assert state.charge_units == funded_s * PRICE // 3_600 <= funds
    assert market.balance(f"party:{RENTER}:cash") == CASH_UNITS - state.charge_units


def test_the_end_of_the_term_closes_the_lease_there_however_late_the_job_runs(
    market: Market,
) -> None:
    lease = market.lease("a", "one", term_us=90 * MINUTE_US)
    market.report("one", lease, START_US, START_US + 4 * HOUR_US)
    assert run(market, START_US + 4 * HOUR_US, lease) == 3
    state = market.state(lease)
    assert state.closed is not None
    assert state.closed.closed_at_us == START_US + 90 * MINUTE_US
    assert (state.closed.code, state.gpu_us) == (TERM_REACHED, 90 * MINUTE_US)


def test_a_lease_of_seven_seconds_is_charged_for_seven_seconds(market: Market) -> None:
    """V-1, V-3: no minimum hour; what was held beyond the use of the device comes back."""
    lease = market.lease("a", "one", funds=20 * PRICE)
    device = Stream("device", market.nodes["one"].device_ids[0])
    held = market.ledger.market.load(device).state
    assert isinstance(held, DeviceState)
    assert held.holders.keys() == {lease}
    ended_us = START_US + 7_000_000
    market.report("one", lease, START_US, START_US + 30_000_000, row_us=30_000_000)
    market.close(lease, ended_us)
    freed = market.ledger.market.load(device).state
    assert isinstance(freed, DeviceState)
    assert freed.holders == {}, "free at once, before anything is settled"
    run(market, ended_us, lease)
    state = market.state(lease)
    assert (state.status, state.gpu_us) == ("settled", 7_000_000)
    assert state.charge_units == 7 * PRICE // 3_600
    assert market.balance(f"party:{RENTER}:cash") == CASH_UNITS - state.charge_units


def test_a_closed_lease_waits_a_day_for_its_reports_and_then_settles_without(
    market: Market,
) -> None:
    lease = market.lease("a", "one")
    closed_us = START_US + HOUR_US // 2
    market.close(lease, closed_us)
    stopped: list[str] = []
    for now_us in (closed_us, closed_us + LATE_WINDOW_US - 1):
        assert run(market, now_us, lease, on_stopped=lambda one, _: stopped.append(one)) == 0
    assert market.state(lease).status == "closing"
    assert run(market, closed_us + LATE_WINDOW_US, lease) == 1
    assert (market.state(lease).status, market.state(lease).charge_units) == ("settled", 0)
    assert stopped == [], "waiting is no failure"


def test_a_row_that_ends_a_microsecond_short_is_all_there_is_where_the_device_goes_on_idle(
    market: Market,
) -> None:
    """Rows were cut by one estimate of the server's clock and sealed by the next."""
    lease = market.lease("a", "one", gpus=4)
    closed_us = START_US + HOUR_US // 2
    market.report("one", lease, START_US, closed_us - 1)
    market.close(lease, closed_us)
    assert run(market, closed_us, lease) == 0, "more may be on its way"
    market.report("one", None, closed_us - 1, closed_us + MINUTE_US)
    assert run(market, closed_us + MINUTE_US, lease) == 1
    state = market.state(lease)
    assert (state.status, state.gpu_us) == ("settled", 4 * (HOUR_US // 2 - 1))
    assert [fact.refused for fact in market.facts(UsageAccrued)] == [()]


def test_every_device_of_a_lease_has_to_go_on_before_it_settles(market: Market) -> None:
    lease = market.lease("a", "one", gpus=2)
    first, second = market.nodes["one"].device_ids[:2]
    closed_us = START_US + HOUR_US // 2
    market.report("one", lease, START_US, closed_us - 1, devices=(first, second))
    market.close(lease, closed_us)
    market.report("one", None, closed_us - 1, closed_us + MINUTE_US, devices=(first,))
    assert run(market, closed_us + MINUTE_US, lease) == 0
    market.report("one", None, closed_us - 1, closed_us + MINUTE_US, devices=(second,))
    assert run(market, closed_us + MINUTE_US, lease) == 1


def test_the_next_lease_of_a_device_ends_the_wait_once_a_row_of_it_begins_behind_the_end(
    market: Market,
) -> None:
    """A row of another lease that began before may stand in a report of its own beside ours."""
    share_ppm = PPM // 2
    ends = market.lease("a", "one", share_ppm=share_ppm)
    stays = market.lease("b", "one", share_ppm=share_ppm)
    device = market.nodes["one"].device_ids[:1]
    how: dict[str, Any] = {"devices": device, "share_ppm": share_ppm}
    closed_us = START_US + HOUR_US // 2
    market.close(ends, closed_us)
    market.report("one", stays, START_US, closed_us + 1, **how)
    assert run(market, closed_us + 1, ends) == 0, "the rows beside these are still to come"
    market.report("one", ends, START_US, closed_us - 1, received_us=closed_us + 1, **how)
    assert run(market, closed_us + 1, ends) == 0
    market.report("one", stays, closed_us + 1, closed_us + MINUTE_US, **how)
    assert run(market, closed_us + MINUTE_US, ends) == 1
    assert market.state(ends).gpu_us == (HOUR_US // 2 - 1) // 2


def test_idle_time_ahead_of_its_receipt_ends_no_wait(market: Market) -> None:
    lease = market.lease("a", "one", gpus=4)
    closed_us = START_US + HOUR_US // 2
    market.report("one", None, START_US, closed_us + HOUR_US, received_us=START_US + MINUTE_US)
    market.close(lease, closed_us)
    assert run(market, closed_us, lease) == 0


# --- what fails -------------------------------------------------------------------------------


def test_a_stopped_lease_does_not_stop_the_others(market: Market) -> None:
    broken, sound = market.lease("a", "one"), market.lease("b", "two")
    market.store_unreadable("one", START_US + HOUR_US)
    market.report("two", sound, START_US, START_US + HOUR_US)
    stopped: dict[str, Exception] = {}
    now_us = START_US + HOUR_US + PATIENCE_US
    assert run(market, now_us, broken, sound, on_stopped=stopped.__setitem__) == 1
    assert stopped.keys() == {broken}
    assert isinstance(stopped[broken], msgspec.ValidationError)
    assert market.state(sound).charge_units == PRICE
    assert (market.state(broken).hours_accrued, market.state(broken).charge_units) == (0, 0)


def test_without_anybody_to_tell_a_failure_is_raised(market: Market) -> None:
    broken = market.lease("a", "one")
    market.store_unreadable("one", START_US + HOUR_US)
    with pytest.raises(msgspec.ValidationError):
        run(market, START_US + HOUR_US + PATIENCE_US, broken)


def test_a_new_lease_reads_no_report_from_long_before_it_was_reserved(market: Market) -> None:
    """Else the first hour of every lease would decode the whole life of its node."""
    node = market.nodes["one"].node
    for hour in range(3):
        rotten = json.dumps(
            {"node": node.id, "seq": node.seq + 1, "prev": node.head.hex()}
        ).encode()
        market.store("one", rotten, START_US + hour * HOUR_US)
        node.seq, node.head = node.seq + 1, report.report_hash(rotten)
    opened_us = START_US + 5 * HOUR_US
    lease = market.lease("a", "one", at_us=opened_us)
    market.report("one", lease, opened_us, opened_us + HOUR_US)
    assert run(market, opened_us + HOUR_US, lease) == 1
    assert market.state(lease).gpu_us == HOUR_US


def test_reports_stored_while_the_job_runs_wait_for_the_next_run(market: Market) -> None:
    """The lane's head is read once a run, so every lease of a run sees the same reports."""
    lease = market.lease("a", "one")
    market.report("one", lease, START_US, START_US + HOUR_US // 2)
    reader = NodeReader(market.connection)
    lane = lane_of(market.nodes["one"].id)
    assert reader.head(lane) == 1
    market.report("one", lease, START_US + HOUR_US // 2, START_US + HOUR_US)
    assert len(reader.rows(market.nodes["one"].id, lease, 0)) == 4
    assert reader.head(lane) == 1
    fresh = NodeReader(market.connection)
    assert len(fresh.rows(market.nodes["one"].id, lease, 0)) == 8
