"""Arms one failpoint: in the database for whoever writes a table, or in this process.

Functions are replaced in the process that is to die, after it was forked: what the tests call is
never changed. In the database a trigger counts, outside of its transaction, and strikes once.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg._connection_base import BaseConnection
from psycopg.conninfo import make_conninfo

from tests.failpoints.places import After, Answered, Before, Failpoint, Fault, Inside, Target

MARK = "a failpoint was passed"
_SQLSTATE = {Fault.FULL: "53100", Fault.TIMEOUT: "57014"}
OBSERVER = "failpoints"
"""The name of connections of the tests themselves: no fault cuts them."""
_FUNCTION = f"""
    CREATE SEQUENCE public.failpoint_passed;
    CREATE FUNCTION public.failpoint() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF nextval('public.failpoint_passed') = TG_ARGV[0]::bigint THEN
            RAISE NOTICE '{MARK}';
            IF TG_ARGV[1] = 'end' THEN
                PERFORM pg_terminate_backend(pg_backend_pid());
                PERFORM pg_sleep(60);
            ELSIF TG_ARGV[1] <> '' THEN
                RAISE EXCEPTION 'a failpoint' USING ERRCODE = TG_ARGV[1];
            END IF;
        END IF;
        RETURN NULL;
    END $$
"""


class Lost(psycopg.OperationalError):
    """The connection went before the answer came."""


@dataclass(frozen=True, slots=True)
class Armed:
    """One failpoint, what is to happen there, and at which passing. `conninfo`: of the database."""

    failpoint: Failpoint
    fault: Fault
    nth: int = 1
    conninfo: str = ""

    @contextmanager
    def in_database(self, connection: psycopg.Connection[Any]) -> Generator[None, None, None]:
        """The trigger, where the place is a table. `install` comes first, once."""
        place = self.failpoint.place
        if not isinstance(place, Inside | Answered):
            yield
            return
        end = "end" if self.fault in (Fault.DEATH, Fault.LOST) else _SQLSTATE.get(self.fault, "")
        schema, _, table = place.table.rpartition(".")
        made = sql.SQL(
            "CREATE TRIGGER zz_failpoint AFTER {on} ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION public.failpoint({nth}, {end})"
        ).format(
            on=sql.SQL(place.on),
            table=sql.Identifier(schema or "public", table),
            nth=sql.Literal(str(self.nth)),
            end=sql.Literal(end if isinstance(place, Inside) else ""),
        )
        connection.execute("ALTER SEQUENCE public.failpoint_passed RESTART")
        connection.execute(made)
        try:
            yield
        finally:
            named = sql.Identifier(schema or "public", table)
            connection.execute(sql.SQL("DROP TRIGGER IF EXISTS zz_failpoint ON {}").format(named))

    @contextmanager
    def in_process(
        self, reached: Callable[[], None], die: Callable[[], None]
    ) -> Generator[None, None, None]:
        """From here on this process dies, or meets its error, at the place. `reached` is called
        first, `die` does not return.
        """
        place = self.failpoint.place
        with pytest.MonkeyPatch.context() as patch:
            if isinstance(place, Before | After):
                target = Target.of(place)
                strikes = self._striker(reached, die)
                patch.setattr(target.holder, target.name, _around(target, place, strikes))
            else:
                self._watch_answers(patch, reached, die)
            yield

    def _striker(self, reached: Callable[[], None], die: Callable[[], None]) -> Callable[[], None]:
        """Counts, and strikes at one passing."""
        passed = 0

        def strike() -> None:
            nonlocal passed
            passed += 1
            if passed == self.nth:
                reached()
                self._strike(die)

        return strike

    def _strike(self, die: Callable[[], None]) -> None:
        match self.fault:
            case Fault.DEATH:
                die()
            case Fault.LOST:
                cut(self.conninfo)
            case Fault.FULL:
                raise OSError(errno.ENOSPC, "No space left on device")
            case Fault.TIMEOUT:
                raise TimeoutError("it took too long")
            case Fault.AWAY:
                raise self.failpoint.away("no answer")

    def _watch_answers(
        self, patch: pytest.MonkeyPatch, reached: Callable[[], None], die: Callable[[], None]
    ) -> None:
        """What the trigger told is heard by whatever connection this process opens."""
        heard: list[bool] = []

        def hear(_self: Any, told: Any) -> None:
            if MARK.encode() in (
                told.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or b""
            ):
                heard.append(True)
                reached()

        def after(connection: BaseConnection[Any]) -> None:
            """Once the statement is over, well or not."""
            if not heard:
                return
            heard.clear()
            if self.fault is Fault.DEATH:
                die()
            if self.fault is Fault.LOST and isinstance(self.failpoint.place, Answered):
                connection.pgconn.finish()
                raise Lost("the connection was lost before the answer came")

        def wait(self: Any, *arguments: Any, **options: Any) -> Any:
            try:
                done = ask(self, *arguments, **options)
            except psycopg.Error:
                after(self)
                raise
            after(self)
            return done

        async def wait_async(self: Any, *arguments: Any, **options: Any) -> Any:
            try:
                done = await ask_async(self, *arguments, **options)
            except psycopg.Error:
                after(self)
                raise
            after(self)
            return done

        ask, ask_async = psycopg.Connection.wait, psycopg.AsyncConnection.wait
        notices = BaseConnection._notice_handler

        def handler(connection: Any, told: Any) -> None:
            hear(connection, told)
            notices(connection, told)

        patch.setattr(BaseConnection, "_notice_handler", staticmethod(handler))
        patch.setattr(psycopg.Connection, "wait", wait)
        patch.setattr(psycopg.AsyncConnection, "wait", wait_async)


def _around(target: Target, place: Before | After, strike: Callable[[], None]) -> Any:
    """The function with the failpoint on the one side of it or on the other."""
    function, first = target.function, isinstance(place, Before)

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        if first:
            strike()
        answer = function(*arguments, **options)
        if not first:
            strike()
        return answer

    @wraps(function)
    async def awaited(*arguments: Any, **options: Any) -> Any:
        if first:
            strike()
        answer = await function(*arguments, **options)
        if not first:
            strike()
        return answer

    return awaited if target.is_async else called


def install(connection: psycopg.Connection[Any]) -> None:
    """What the triggers of failpoints need, in a database of the tests."""
    connection.execute(_FUNCTION.encode())


def observed(conninfo: str) -> str:
    """The address for connections that no fault cuts."""
    return make_conninfo(conninfo, application_name=OBSERVER)


def observe(conninfo: str) -> psycopg.Connection[Any]:
    """A connection that no fault cuts."""
    return psycopg.connect(observed(conninfo), autocommit=True)


def cut(conninfo: str) -> None:
    """End every connection to a database but those of the tests."""
    with observe(conninfo) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name <> %s",
            (OBSERVER,),
        )
