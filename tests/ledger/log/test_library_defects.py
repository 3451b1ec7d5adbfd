"""Defects of eventsourcing 9.5.6 that the market log avoids: one test each, on our recorder.

Those of its projections (a fact missed without a notification, one transaction a fact) are in
`tests/projections/test_library_defects.py`, the vacuum settings in `test_market_protection.py`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate
from eventsourcing.persistence import IntegrityError, StoredEvent
from psycopg.conninfo import conninfo_to_dict

from ledger.log.market import Market
from tests.scenes.told import BLINDING_KEY, NOW_US, deposited, do, ledger_on, withdrawn

ROOT = Path(__file__).parents[3]
NEVER_IMPORTED = ("eventsourcing.dcb", "eventsourcing.projection", "eventsourcing.system")
"""DCB loses order and reads whole logs into memory; the runners commit event by event."""


def _events(count: int, size: int, stream: int = 1) -> list[StoredEvent]:
    body = b"x" * size
    return [StoredEvent(UUID(int=stream + n), 1, "test.sized.v1", body) for n in range(count)]


def test_a_reader_at_the_tail_misses_nothing_of_six_writers(database: str) -> None:
    """The library's database function takes no lock: positions became visible out of order."""
    with ledger_on(database) as ledger:
        done = threading.Event()
        seen: list[int] = []

        def follow() -> None:
            while True:
                finished = done.is_set()
                found = ledger.market.read_facts(len(seen), 100)
                seen.extend(recorded.position for recorded in found)
                if finished and not found:
                    return

        def write(writer: int) -> None:
            for number in range(40):
                change = deposited(f"d{writer}-{number}", 1)
                ledger.handle(do(change, withdrawn(f"o{writer}")), key=None, now_us=NOW_US)

        reader = threading.Thread(target=follow)
        reader.start()
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(write, range(6)))
        done.set()
        reader.join()
        assert seen == list(range(1, 6 * 40 * 2 + 1))


def test_another_application_of_the_library_beside_ours_takes_nothing(database: str) -> None:
    """Its insert function is named after the type of the ids: two applications shared one."""

    class Beside(Application[UUID]):
        pass

    given = {name: str(value) for name, value in conninfo_to_dict(database).items()}
    other = Beside(
        env={
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "POSTGRES_DBNAME": given["dbname"],
            "POSTGRES_HOST": given["host"],
            "POSTGRES_USER": given["user"],
            "POSTGRES_PASSWORD": "",
            "POSTGRES_ENABLE_DB_FUNCTIONS": "y",
        }
    )
    with other, ledger_on(database) as ledger:
        for number in range(3):
            other.save(Aggregate())
            ledger.handle(do(withdrawn(f"o{number}")), key=None, now_us=NOW_US)
        assert len(ledger.market.read_facts(0, 10)) == 3
        assert other.recorder.max_notification_id() == 3


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("count", "size"), [(1, 2_000_000), (100, 10_000), (5_000, 200)])
def test_large_appends_do_not_hang(database: str, count: int, size: int) -> None:
    """psycopg's pipeline never returned above 0.5 to 1 MB over a Unix socket, table locked."""
    with ledger_on(database) as ledger:
        positions = ledger.market.recorder.insert_events(_events(count, size))
        assert positions == range(1, count + 1)


def test_a_conflict_leaves_no_gap(database: str) -> None:
    """A sequence burns numbers: 1, 2, 4."""
    with ledger_on(database) as ledger:
        insert = ledger.market.recorder.insert_events
        assert insert(_events(2, 10)) == range(1, 3)
        with pytest.raises(IntegrityError):
            insert(_events(3, 10))
        assert insert(_events(1, 10, stream=9)) == range(3, 4)


def test_two_processes_prepare_and_start_at_once(empty_database: str) -> None:
    """Concurrent CREATE OR REPLACE FUNCTION: `tuple concurrently updated`."""
    program = (
        "import sys\n"
        "from ledger.migrate import migrate\n"
        "from tests.scenes.told import *\n"
        "migrate(sys.argv[1])\n"
        "with ledger_on(sys.argv[1]) as ledger:\n"
        "    ledger.handle(do(withdrawn(sys.argv[2])), key=None, now_us=NOW_US)\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, empty_database, f"o{n}"]) for n in (1, 2)
    ]
    assert [child.wait(60) for child in children] == [0, 0]
    with ledger_on(empty_database) as ledger:
        assert ledger.market.head()[0] == 2


def test_no_variable_of_the_environment_reaches_the_library(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It merges `os.environ` into its settings, and names with the application's prefix win."""
    monkeypatch.setenv("POSTGRES_ENABLE_DB_FUNCTIONS", "y")
    monkeypatch.setenv("MARKET_POSTGRES_DBNAME", "elsewhere")
    monkeypatch.setenv("MARKET_PERSISTENCE_MODULE", "eventsourcing.popo")
    monkeypatch.setenv("COMPRESSOR_TOPIC", "zlib")
    with ledger_on(database) as ledger:
        assert not ledger.market.datastore.enable_db_functions
        assert ledger.handle(do(withdrawn("o")), key=None, now_us=NOW_US).position == 1
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM market_events").fetchone() == (1,)


def test_facts_with_slots_are_stored_under_names_of_our_own(database: str) -> None:
    """The stock mapper stores `module:Class` and reads `vars(event)`, which slots have not."""
    with ledger_on(database) as ledger:
        ledger.handle(do(withdrawn("o")), key=None, now_us=NOW_US)
        (recorded,) = ledger.market.read_facts(0, 1)
        assert recorded.name == "offer.withdrawn.v1"
        assert not hasattr(recorded.fact, "__dict__")
        assert recorded.fact == withdrawn("o").fact


def test_what_is_not_passed_on_is_not_swallowed(database: str) -> None:
    """A keyword that no recorder reads would be lost in silence."""
    with Market(database, blinding_key=BLINDING_KEY) as market, pytest.raises(AssertionError):
        market.recorder.insert_events(_events(1, 10), tracking=object())


@pytest.mark.parametrize("room", ["domain", "ledger", "projections", "api", "benchmarks"])
def test_the_parts_of_the_library_that_lose_or_hang_are_not_used(room: str) -> None:
    """DCB, its projection runners, and psycopg's pipeline mode, which never returned."""
    for path in sorted((ROOT / room).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in (*NEVER_IMPORTED, "pipeline")):
            continue  # no node of its tree could hold one
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [alias.name for alias in node.names]
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not [name for name in names if name.startswith(NEVER_IMPORTED)], path
            assert not (isinstance(node, ast.Attribute) and node.attr == "pipeline"), path
