"""What PostgreSQL itself refuses, whoever asks: changing the log, or writing it by hand."""

from __future__ import annotations

from collections.abc import Generator

import psycopg
import pytest
from psycopg import errors, sql

from tests.conftest import Databases, fresh
from tests.scenes.told import NOW_US, deposited, do, key, ledger_on

KEPT = ("market_events", "posting")
LOG_TABLES = ("market_events", "market_events_head", "posting", "account", "command")


@pytest.fixture(scope="module")
def filled(postgres: Databases, template: str) -> Generator[str, None, None]:
    """A log with a fact, of all tests in which nothing may be changed."""
    with fresh(postgres, template) as database:
        with ledger_on(database) as ledger:
            ledger.handle(do(deposited("dep_1", 5)), key=key("k"), now_us=NOW_US)
        yield database


@pytest.mark.parametrize("table", KEPT)
@pytest.mark.parametrize("change", ["UPDATE", "DELETE", "TRUNCATE"])
@pytest.mark.parametrize("replication_role", ["origin", "replica"])
def test_nothing_recorded_changes_not_even_by_the_superuser(
    filled: str, table: str, change: str, replication_role: str
) -> None:
    column = {"market_events": "topic", "posting": "asset"}[table]
    statement = {
        "UPDATE": f"UPDATE {table} SET {column} = {column}",
        "DELETE": f"DELETE FROM {table}",
        "TRUNCATE": f"TRUNCATE {table}",
    }[change]
    with psycopg.connect(filled) as connection:
        connection.execute(
            sql.SQL("SET session_replication_role = {}").format(sql.Literal(replication_role))
        )
        with pytest.raises(errors.InsufficientPrivilege, match="append-only"):
            connection.execute(statement.encode())


@pytest.mark.parametrize("table", LOG_TABLES)
@pytest.mark.parametrize("change", ["INSERT", "UPDATE", "DELETE", "TRUNCATE"])
def test_the_application_cannot_touch_the_log_but_through_the_function(
    filled: str, table: str, change: str
) -> None:
    statement = {
        "INSERT": f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM {table}",
        "UPDATE": f"UPDATE {table} SET {_any_column(table)} = {_any_column(table)}",
        "DELETE": f"DELETE FROM {table}",
        "TRUNCATE": f"TRUNCATE {table}",
    }[change]
    with psycopg.connect(filled) as connection:
        connection.execute("SET ROLE tallystick_app")
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied"):
            connection.execute(statement.encode())


@pytest.mark.parametrize("role", ["tallystick_projections", "tallystick_audit"])
def test_readers_read_the_log_and_cannot_append(filled: str, role: str) -> None:
    with psycopg.connect(filled, autocommit=True) as connection:
        connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        for table in LOG_TABLES:
            statement = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            assert connection.execute(statement).fetchone() == (1 if table != "account" else 2,)
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied"):
            connection.execute("DELETE FROM market_snapshots")
        may = connection.execute(
            "SELECT bool_or(has_function_privilege(p.oid, 'EXECUTE')) FROM pg_proc p"
            " WHERE p.proname IN ('market_events_append', 'market_events_record')"
        )
        assert may.fetchone() == (False,)


def test_the_door_connects_as_the_application(database: str) -> None:
    with ledger_on(database) as ledger:
        rows = ledger.market.datastore.rows("SELECT current_user AS name")
        assert rows == [{"name": "tallystick_app"}]


def test_functions_that_act_as_the_owner_fix_their_search_path(database: str) -> None:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT proname FROM pg_proc WHERE prosecdef AND NOT EXISTS"
            " (SELECT FROM unnest(proconfig) c WHERE c LIKE 'search_path=pg_catalog,%')"
        )
        assert rows.fetchall() == []


_TWO_FACTS = """
    SELECT recorded FROM market_events_append(
        ARRAY[gen_random_uuid(), gen_random_uuid()], '{1,1}', '{a.b.v1,a.b.v1}',
        ARRAY['{}'::bytea, '{}'::bytea], ARRAY[sha256('1'), sha256('2')], 1, '{}', '{}',
        '{world:bank,party:acct_x:cash,party:acct_x:matured}', '{CREDIT,CREDIT,TOKEN}', '{1,-1,-1}',
        '{-1,-2,-3}', '{CREDIT,CREDIT,TOKEN}',
        '{1,2}', %s::text[], %s::int[], %s::int[], %s::bigint[], '{}',
        NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL)
"""


@pytest.mark.parametrize(
    ("what", "assets", "ends", "places", "units"),
    [
        ("a line in no posting", "{CREDIT,CREDIT}", "{2,4}", "{1,2,1,2,1}", "{5,-5,3,-3,9}"),
        ("a posting past the lines", "{CREDIT,CREDIT}", "{2,5}", "{1,2,1,2}", "{5,-5,3,-3}"),
        ("postings in disorder", "{CREDIT,CREDIT}", "{4,2}", "{1,2,1,2}", "{5,-5,3,-3}"),
        ("an account of another asset", "{CREDIT,CREDIT}", "{2,4}", "{1,2,1,3}", "{5,-5,3,-3}"),
        ("no zero sum", "{CREDIT,CREDIT}", "{2,4}", "{1,2,1,2}", "{5,-5,3,-2}"),
    ],
)
def test_whatever_the_application_hands_over_the_books_follow_the_postings(
    database: str, what: str, assets: str, ends: str, places: str, units: str
) -> None:
    """The function is all that the application may call, and it believes none of its sums."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET ROLE tallystick_app")
        honest = ("{CREDIT,CREDIT}", "{2,4}", "{1,2,1,2}", "{5,-5,3,-3}")
        assert connection.execute(_TWO_FACTS, honest).fetchone() == (True,)
        with pytest.raises(errors.IntegrityError):
            connection.execute(_TWO_FACTS, (assets, ends, places, units))
        balances = connection.execute("SELECT name, units FROM account WHERE units <> 0")
        assert dict(balances.fetchall()) == {"world:bank": 8, "party:acct_x:cash": 8}, what


def test_every_account_keeps_to_its_limit_whatever_writes(filled: str) -> None:
    with psycopg.connect(filled) as connection, pytest.raises(errors.CheckViolation):
        connection.execute("UPDATE account SET units = -1 WHERE name = 'world:bank'")


def test_tables_that_change_are_vacuumed_as_postgresql_would(database: str) -> None:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class, unnest(reloptions) o WHERE o LIKE 'autovacuum%'"
        )
        assert rows.fetchall() == []


def _any_column(table: str) -> str:
    return {
        "market_events": "topic",
        "market_events_head": "pos",
        "posting": "asset",
        "account": "units",
        "command": "status",
    }[table]
