"""Views are exactly once and rebuildable, row for row, whatever is killed and however read."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from ledger.log import codec, market
from projections import decoded, runner, tables
from projections.audit.audit_index import AUDIT_INDEX
from projections.decoded import Decoded
from projections.fleet.fleet import FLEET
from projections.lease.leases import LEASES
from projections.metering.usage import USAGE
from projections.runner import EVERY, GapInLog, Projection
from projections.tables import PROJECTIONS
from tests.projections.reports import append_reports
from tests.projections.story import Size, Writer, story

ROOT = Path(__file__).parents[2]
Connect = Callable[[], psycopg.Connection[Any]]


REPORTS, PINNED = 20, 10
"""Of the story; the view of availability reads no further than the newest pin."""


def _told(connection: psycopg.Connection[Any], size: Size | None = None) -> Writer:
    writer = Writer(connection)
    writer.write(story(size or Size()))
    append_reports(connection, nodes=5, reports=4)
    return writer


def _digests(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    return {each.name: tables.digest(connection, each.schema, seed=7) for each in PROJECTIONS}


def test_every_table_of_every_projection_has_rows_in_the_story(
    followed_by_all: psycopg.Connection[Any],
) -> None:
    empty = {
        f"{name}.{table}"
        for name, digest in _digests(followed_by_all).items()
        for table, (rows, _) in digest.items()
        if not rows
    }
    assert empty == {"fleet.holding"}, "everything was released at the end of the story"


@pytest.mark.parametrize(
    "facts_max",
    [
        pytest.param(1, marks=pytest.mark.long),
        pytest.param(
            7, marks=pytest.mark.slow("::test_the_rows_do_not_depend_on_how_the_log_is_cut")
        ),
        61,
    ],
)
def test_the_rows_do_not_depend_on_how_the_log_is_cut(
    followed: psycopg.Connection[Any], facts_max: int
) -> None:
    whole = _digests(followed)
    for projection in PROJECTIONS:
        tables.drop(followed, projection)
        tables.create(followed, projection)
        while runner.step(followed, projection, facts_max=facts_max):
            pass
        while projection.reports and runner.step_lanes(followed, projection, reports_max=facts_max):
            pass
    assert _digests(followed) == whole


@pytest.mark.parametrize("projection", PROJECTIONS, ids=lambda each: each.name)
def test_dropping_and_rebuilding_gives_equal_rows(
    followed_by_all: psycopg.Connection[Any], projection: Projection
) -> None:
    before = tables.digest(followed_by_all, projection.schema, seed=7)
    rebuilt = tables.rebuild(followed_by_all, projection)
    assert rebuilt.differing == ()
    assert tables.digest(followed_by_all, projection.schema, seed=7) == before
    tables.drop(followed_by_all, projection)
    tables.step_all(followed_by_all)
    assert tables.digest(followed_by_all, projection.schema, seed=7) == before


def test_what_is_behind_is_brought_up_in_steps_before_it_is_compared_and_what_is_empty_is_not(
    followed: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty view of 5,000,000 facts was filled in the transaction in which both change places:
    its first step of 25,000 took 0.3 s, its hundredth 2.
    """
    within: list[bool] = []
    step = runner.step

    def told(connection: Any, *given: Any, **named: Any) -> int:
        within.append(connection.info.transaction_status != TransactionStatus.IDLE)
        return step(connection, *given, **named)

    monkeypatch.setattr(runner, "step", told)
    for facts, differing in ((0, None), (61, ())):
        tables.drop(followed, LEASES)
        tables.create(followed, LEASES)
        if facts:
            step(followed, LEASES, facts_max=facts)
        assert tables.rebuild(followed, LEASES, facts_max=150).differing == differing
    assert within
    assert not any(within)
    step(followed, LEASES)
    followed.execute(f"UPDATE {LEASES.schema}.position SET position = 0".encode())
    with pytest.raises(psycopg.errors.UniqueViolation):  # rows that no fact tells of are seen
        tables.rebuild(followed, LEASES, facts_max=150)


def test_of_an_empty_log_an_empty_view_is_compared_and_equal(
    connection: psycopg.Connection[Any],
) -> None:
    tables.ensure(connection, [LEASES])
    assert tables.rebuild(connection, LEASES).differing == ()


def test_ranges_that_are_decoded_beside_a_rebuild_give_the_rows_it_had(
    followed: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a connection of its own, with tables for all kinds or for those that are read twice."""
    asked: set[tuple[bool, bool]] = set()

    class Told(Decoded):
        def __init__(self, connection: Any, *given: Any, whole: bool) -> None:
            super().__init__(connection, *given, whole=whole)
            asked.add((connection is followed, whole))
            self.seconds = 10.0 if whole else 0.0

    monkeypatch.setattr(tables, "Decoded", Told)
    monkeypatch.setattr(decoded, "DECODED_AGAIN_MAX", 0)
    for each in PROJECTIONS:
        assert tables.rebuild(followed, each, facts_max=150).differing == (), each.name
    assert asked == {(False, False), (False, True)}
    found = followed.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^proj_decoded'")
    assert found.fetchall() == []


def test_what_a_rebuild_decodes_is_its_own_whatever_another_one_decodes_meanwhile(
    followed: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was paused while its lock was lost went on and filled the tables that the next one
    had just decoded: the view lacked rows, and nothing told.
    """
    names: list[str] = []

    class Noted(Decoded):
        def __init__(
            self, connection: Any, given: Any, schema: str, *more: Any, whole: bool
        ) -> None:
            names.append(schema)
            super().__init__(connection, given, schema, *more, whole=whole)

    monkeypatch.setattr(tables, "Decoded", Noted)
    for _ in range(2):
        assert tables.rebuild(followed, LEASES, facts_max=150).differing == ()
    half = len(names) // 2
    first, second = set(names[:half]), set(names[half:])
    assert (len(first), len(second)) == (2, 2)
    assert first.isdisjoint(second)


def test_a_rebuild_goes_on_with_one_connection_where_no_other_is_to_be_had(
    followed: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_given: Any, **_named: Any) -> Any:
        raise psycopg.OperationalError("too many connections")

    monkeypatch.setattr(decoded, "DECODED_AGAIN_MAX", 0)
    monkeypatch.setattr(psycopg, "connect", refused)
    for each in PROJECTIONS:
        assert tables.rebuild(followed, each, facts_max=150).differing == (), each.name


def test_a_rebuild_that_fails_leaves_nothing_that_it_decoded(
    followed: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_given: Any) -> float:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(Decoded, "apply", fails)
    with pytest.raises(RuntimeError, match="disk"):
        tables.rebuild(followed, LEASES, facts_max=100)
    found = followed.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^proj_decoded'")
    assert found.fetchall() == []


def test_a_forged_name_that_looks_like_a_bound_hides_no_fact(
    followed: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.execute("ALTER TABLE market_events DISABLE TRIGGER ALL")
    forged = "UPDATE market_events SET topic = %s WHERE notification_id IN (20, 21)"
    followed.execute(forged, ("%(first)s and %(last)s",))
    monkeypatch.setattr(decoded, "DECODED_AGAIN_MAX", 0)
    Decoded(followed, [AUDIT_INDEX], "proj_decoded_forged", 0, 100, whole=True)
    found = followed.execute("SELECT count(*) FROM proj_decoded_forged.t0").fetchone()
    assert found == (100,)


def test_a_gap_that_is_found_beside_a_rebuild_leaves_the_view_that_is_there(
    followed: psycopg.Connection[Any],
) -> None:
    before = tables.digest(followed, LEASES.schema, seed=7)
    followed.execute("ALTER TABLE market_events DISABLE TRIGGER ALL")
    followed.execute("DELETE FROM market_events WHERE notification_id = 150")
    with pytest.raises(GapInLog):
        tables.rebuild(followed, LEASES, facts_max=100)
    assert tables.digest(followed, LEASES.schema, seed=7) == before


def test_a_rebuild_finds_rows_that_do_not_follow_from_the_log(
    followed: psycopg.Connection[Any],
) -> None:
    followed.execute("UPDATE proj_leases.lease SET charge_units = charge_units + 1")
    assert tables.rebuild(followed, LEASES).differing == ("lease",)
    assert tables.rebuild(followed, LEASES).differing == ()


def test_a_rebuild_does_not_search_the_log_for_each_rule(followed: psycopg.Connection[Any]) -> None:
    """The fleet has some sixty rules of seldom kinds; together they are looked for once."""

    def searched() -> int:
        followed.execute("SELECT pg_stat_force_next_flush()")
        followed.execute("SELECT pg_stat_clear_snapshot()")
        found = followed.execute(
            "SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'market_events'"
        ).fetchone()
        assert found is not None
        return int(found[0])

    before = searched()
    assert tables.rebuild(followed, FLEET).differing == ()
    assert searched() - before < 10


def test_two_workers_by_lane_rebuild_the_same_rows(
    followed_database: str, followed: psycopg.Connection[Any]
) -> None:
    rebuilt = tables.rebuild(followed, USAGE, conninfo=followed_database, workers=2)
    assert (rebuilt.reports, rebuilt.differing) == (20, ())


def test_another_definition_is_rebuilt_and_the_same_one_is_left_alone(
    followed: psycopg.Connection[Any],
) -> None:
    followed.execute("UPDATE proj_fleet.definition SET sha256 = 'older'")
    followed.execute("DELETE FROM proj_fleet.node")
    tables.ensure(followed)
    assert tables.digest(followed, "proj_fleet", seed=7)["node"][0] == 3
    oid = followed.execute("SELECT 'proj_fleet'::regnamespace::oid").fetchone()
    tables.ensure(followed)
    assert followed.execute("SELECT 'proj_fleet'::regnamespace::oid").fetchone() == oid


def test_what_a_killed_rebuild_left_hinders_no_later_one(followed: psycopg.Connection[Any]) -> None:
    """It died with the rebuilt schema half made, or in place and the old one not yet dropped."""
    for left in ("next", "old"):
        tables.create(followed, LEASES, schema=f"{LEASES.schema}_{left}")
    assert tables.rebuild(followed, LEASES).differing == ()
    found = followed.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ 'proj_leases_'")
    assert found.fetchall() == []


def test_two_who_rebuild_one_view_do_it_one_after_the_other(
    followed_database: str, followed: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one would drop what the first one builds."""
    first_builds, second_waits = threading.Event(), threading.Event()
    plain = tables._apply_all

    def apply_all(connection: psycopg.Connection[Any], *rest: Any) -> int:
        if connection is followed:
            first_builds.set()
            assert second_waits.wait(20)
        return plain(connection, *rest)

    monkeypatch.setattr(tables, "_apply_all", apply_all)
    with (
        psycopg.connect(followed_database, autocommit=True) as second,
        psycopg.connect(followed_database, autocommit=True) as other,
        ThreadPoolExecutor(2) as both,
    ):
        rebuilt = [both.submit(tables.rebuild, followed, LEASES)]
        assert first_builds.wait(20)
        rebuilt.append(both.submit(tables.rebuild, second, LEASES))
        query = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
        ends = time.monotonic() + 10
        while other.execute(query, (second.info.backend_pid,)).fetchone() != (True,):
            assert not rebuilt[1].done(), rebuilt[1].exception()
            assert time.monotonic() < ends
        second_waits.set()
        assert [one.result(60).differing for one in rebuilt] == [(), ()]


def test_readers_with_prepared_statements_read_the_rebuilt_schema(
    followed_database: str, followed: psycopg.Connection[Any]
) -> None:
    with psycopg.connect(followed_database, autocommit=True) as reader:
        count = b"SELECT count(*), min(tableoid) FROM proj_leases.lease"
        first = reader.execute(count, prepare=True).fetchone()
        tables.rebuild(followed, LEASES)
        second = reader.execute(count, prepare=True).fetchone()
    assert first is not None
    assert second is not None
    assert (first[0], first[1] != second[1]) == (second[0], True)
    assert tables.position_of(followed, LEASES) == market.head(followed)


def test_a_retired_schema_takes_no_more_facts(connection: psycopg.Connection[Any]) -> None:
    tables.ensure(connection, [FLEET])
    _told(connection)
    connection.execute("UPDATE proj_fleet.position SET position = %s", (runner.RETIRED,))
    assert runner.step(connection, FLEET) == 0
    assert tables.digest(connection, "proj_fleet", seed=7)["node"][0] == 0


def test_the_workers_role_makes_follows_and_rebuilds_and_the_apps_role_only_reads(
    bare_database: str, bare: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoded, "DECODED_AGAIN_MAX", 0)
    writer = _told(bare)
    with psycopg.connect(bare_database, autocommit=True) as worker:
        worker.execute("SET ROLE tallystick_projections")
        readers = sum(each.reports is not None for each in PROJECTIONS)
        read = REPORTS * (readers - 1) + PINNED
        assert tables.step_all(worker) == len(PROJECTIONS) * writer.position + read
        assert {tables.rebuild(worker, each).differing for each in PROJECTIONS} == {()}
    tables.rebuild(bare, LEASES)  # by the superuser: the role goes on owning it
    with psycopg.connect(bare_database, autocommit=True) as worker:
        worker.execute("SET ROLE tallystick_projections")
        assert tables.rebuild(worker, LEASES).differing == ()
        worker.execute("SET ROLE tallystick_app")
        assert len(tables.lag(worker)) == len(PROJECTIONS) + readers
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            worker.execute("DELETE FROM proj_leases.lease")


# --- the fence -------------------------------------------------------------------------------


def test_a_second_runner_waits_for_the_first_and_goes_on_where_it_stopped(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    _told(connection)
    tables.ensure(connection, [LEASES])
    done: list[int] = []
    with psycopg.connect(database, autocommit=True) as first, first.transaction():
        assert runner.step(first, LEASES, facts_max=100) == 100

        def second() -> None:
            with psycopg.connect(database, autocommit=True) as other:
                done.append(runner.step(other, LEASES, facts_max=1_000))

        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        assert done == [], "it waits for the position's row"
    thread.join(10)
    assert done == [tables.position_of(connection, LEASES) - 100]
    assert tables.rebuild(connection, LEASES).differing == ()


def test_a_runner_that_folded_reports_another_has_applied_drops_its_work(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    _told(connection)
    tables.ensure(connection, [USAGE])
    raced: list[int] = []
    assert USAGE.reports is not None
    fold = USAGE.reports.fold

    def slow_fold(reports: Any) -> Any:
        if not raced:
            raced.append(0)
            with psycopg.connect(database, autocommit=True) as other:
                raced.append(runner.step_lanes(other, USAGE))
        return fold(reports)

    late = Projection(
        USAGE.name,
        USAGE.tables,
        USAGE.rules,
        USAGE.indexes,
        runner.Reports(slow_fold, USAGE.reports.apply),
    )
    assert runner.step_lanes(connection, late) == 0
    assert raced == [0, 20]
    assert tables.rebuild(connection, USAGE).differing == ()


def test_a_gap_below_the_head_stops_a_projection_before_it_counts_anything(
    connection: psycopg.Connection[Any],
) -> None:
    _told(connection)
    tables.ensure(connection, [FLEET])
    connection.execute("ALTER TABLE market_events DISABLE TRIGGER ALL")
    connection.execute("DELETE FROM market_events WHERE notification_id = 50")
    with pytest.raises(GapInLog):
        runner.step(connection, FLEET)
    assert tables.position_of(connection, FLEET) == 0
    assert tables.digest(connection, "proj_fleet", seed=7)["node"][0] == 0


# --- exactly once, whatever is killed --------------------------------------------------------

_RUN = """
import sys, threading
from projections import runner, tables
runner.FOLLOW_FACTS_MAX = 50
for step in (runner.step, runner.step_lanes):
    name = "facts_max" if step is runner.step else "reports_max"
    step.__kwdefaults__[name] = 25
tables.follow(sys.argv[1], threading.Event())
"""


def _kill_runners(
    database: str, connection: psycopg.Connection[Any], kills: int, leases: int
) -> None:
    """Two competing runners, killed while they work, until `kills` have died; then catch up."""
    tables.ensure(connection)
    writer = Writer(connection)
    writer.write(story(Size(leases=leases, hours=6)))
    append_reports(connection, nodes=40, reports=10)
    command = [sys.executable, "-c", _RUN, database]
    killed = 0
    while killed < kills:
        for projection in PROJECTIONS:
            tables.drop(connection, projection)
        tables.ensure(connection)
        runners = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
        _wait(lambda: any(part.position for part in tables.lag(connection)))
        time.sleep(0.03 * (killed % 7))
        for one in runners:
            one.send_signal(signal.SIGKILL)
            one.wait(10)
            killed += 1
        tables.step_all(connection)
        for projection in PROJECTIONS:
            assert tables.rebuild(connection, projection).differing == (), projection.name


def _wait(until: Callable[[], bool], seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < ends, "nothing happened"
        time.sleep(0.005)


@pytest.mark.slow(
    "::test_what_a_killed_rebuild_left_hinders_no_later_one",
    "::test_a_second_runner_waits_for_the_first_and_goes_on_where_it_stopped",
)
def test_the_kill_of_two_competing_runners_leaves_every_row_exactly_once(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    _kill_runners(database, connection, kills=2, leases=15)


@pytest.mark.long
def test_twenty_kills_of_two_competing_runners_leave_every_row_exactly_once(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    _kill_runners(database, connection, kills=20, leases=40)


# --- following -------------------------------------------------------------------------------


def test_an_idle_follower_wakes_for_a_fact_and_for_a_report(
    bare_database: str, bare: psycopg.Connection[Any]
) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=tables.follow, args=(bare_database, stop))
    thread.start()
    try:
        _wait(lambda: _is_made(bare))
        time.sleep(0.5)
        writer = _told(bare)
        _wait(lambda: all(part.behind == 0 for part in tables.lag(bare)), 10)
        assert {part.head for part in tables.lag(bare)} == {writer.position, REPORTS, PINNED}
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


def _is_made(connection: psycopg.Connection[Any]) -> bool:
    last = tables.PROJECTIONS[-1].schema
    row = connection.execute("SELECT to_regclass(%s)", (f"{last}.definition",)).fetchone()
    return row is not None and row[0] is not None


def test_a_follower_whose_connection_is_cut_comes_back(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=tables.follow, args=(database, stop))
    thread.start()
    try:
        _wait(lambda: _is_made(connection))
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        _told(connection)
        _wait(lambda: all(part.behind == 0 for part in tables.lag(connection)), 10)
    finally:
        stop.set()
        thread.join(10)


def test_one_broken_projection_stops_alone_and_shows_its_lag(
    database: str, connection: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    tables.ensure(connection)
    connection.execute("ALTER TABLE proj_earnings.earning RENAME COLUMN fee TO gone")
    writer = _told(connection)
    stop = threading.Event()
    thread = threading.Thread(target=tables.follow, args=(database, stop))
    thread.start()

    def behind() -> set[str]:
        return {part.projection for part in tables.lag(connection) if part.behind}

    try:
        _wait(lambda: behind() == {"earnings"}, 10)
    finally:
        stop.set()
        thread.join(10)
    late = next(part for part in tables.lag(connection) if part.projection == "earnings")
    assert late.behind == writer.position
    assert late.waiting_since_us is not None
    assert "earnings (market) stops at 0" in caplog.text


def test_every_fact_a_rule_names_is_one_the_log_can_hold() -> None:
    named = {topic for each in PROJECTIONS for rule in each.rules for topic in rule.topics}
    written = {
        topic
        for each in PROJECTIONS
        for rule in each.rules
        for topic in re.findall(r"'([a-z_]+\.[a-z_]+\.v[0-9]+)'", rule.sql)
    }
    assert (named - {EVERY}) | written <= codec.NAMES.keys()
