"""What comes back after a lost connection may be an earlier state: a standby that lacked the last
transactions, a point in time. What this process remembers of them is forgotten then.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from ledger.log.handle import Ledger
from tests.conftest import Databases
from tests.scenes.told import NOW_US, Do, deposited, ledger_on, withdrawn


@contextmanager
def _standby(postgres: Databases, database: str) -> Generator[tuple[str, str], None, None]:
    """The name of a database, and of a copy of it as it is now."""
    name = str(conninfo_to_dict(database)["dbname"])
    _disconnect(postgres, name)
    earlier = f"{name}_earlier"
    postgres.create_database(earlier, template=name)
    yield name, earlier
    postgres.drop_database(f"{name}_lost")


def _disconnect(postgres: Databases, name: str) -> None:
    with psycopg.connect(postgres.uri, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s",
            (name,),
        )


def _fail_over(postgres: Databases, name: str, earlier: str) -> None:
    _disconnect(postgres, name)
    with psycopg.connect(postgres.uri, autocommit=True) as admin:
        for old, new in ((name, f"{name}_lost"), (earlier, name)):
            renamed = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            admin.execute(renamed.format(sql.Identifier(old), sql.Identifier(new)))


def _record(ledger: Ledger, *changes: object) -> None:
    ledger.handle(Do(lambda _: changes), key=None, now_us=NOW_US)  # type: ignore[arg-type,return-value]


def test_a_stream_goes_on_where_the_database_that_came_back_has_it(
    postgres: Databases, database: str
) -> None:
    with ledger_on(database) as ledger:
        _record(ledger, withdrawn("a"))
        with _standby(postgres, database) as (name, earlier):
            ledger.market.head()  # its connections are new ones
            _record(ledger, withdrawn("a"), withdrawn("a"))
            _fail_over(postgres, name, earlier)
            assert ledger.market.head()[0] == 1
            _record(ledger, withdrawn("a"))
            with psycopg.connect(database) as connection:
                versions = connection.execute(
                    "SELECT originator_version FROM market_events ORDER BY notification_id"
                ).fetchall()
            assert versions == [(1,), (2,)]


def test_money_is_booked_on_the_account_of_that_name_in_the_database_that_came_back(
    postgres: Databases, database: str
) -> None:
    with ledger_on(database) as ledger, ledger_on(database) as other:
        _record(ledger, deposited("d0", 1, "acct_first"))
        with _standby(postgres, database) as (name, earlier):
            ledger.market.head()
            _record(ledger, deposited("d1", 10, "acct_a"))
            _fail_over(postgres, name, earlier)
            assert other.market.head()[0] == 1
            _record(other, deposited("d2", 20, "acct_b"))  # takes the number that acct_a had
            assert ledger.market.head()[0] == 2
            _record(ledger, deposited("d3", 30, "acct_a"))
            with psycopg.connect(database) as connection:
                rows = connection.execute("SELECT name, units FROM account").fetchall()
                held: dict[str, int] = dict(rows)
            assert held["party:acct_b:cash"] == 20
            assert held["party:acct_a:cash"] == 30
