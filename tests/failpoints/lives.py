"""One life of a process: it does its work until it is done, meets an error, or dies.

A life is a fork: it dies by `_exit`, so no `finally` and no `atexit` of it runs, the connections
break without a goodbye, and what it had in memory is gone. What it told before is known here.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

import psycopg

from tests.failpoints.arming import OBSERVER, Armed, cut

SECONDS_MAX = 60.0
DIED, RETURNED, RAISED = 42, 0, 1
BUGS = frozenset(
    {"AssertionError", "TypeError", "AttributeError", "LookupError", "NameError", "BooksRefused"}
)
"""Nobody tells a user these: a fault that leads to one has found a bug."""

Tell = Callable[[Any], None]


@dataclass(slots=True)
class Life:
    """How one ended: `told` is what it acknowledged, in order."""

    told: list[Any] = field(default_factory=list)
    reached: bool = False
    died: bool = False
    error: str = ""
    trace: str = ""


def lived(act: Callable[[Tell], None], armed: Armed) -> Life:
    """Let a process of its own do `act`, with a failpoint armed. Fails on a bug, or on no end."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the tests stay behind
        child = os.fork()
    if child == 0:
        os.close(ours)
        _live(act, armed, theirs)
    os.close(theirs)
    try:
        lines = _read(ours)
    finally:
        os.close(ours)
        with suppress(ProcessLookupError):
            if os.waitpid(child, os.WNOHANG) == (0, 0):
                _end(child)
    return _life_of(lines)


class Died(BaseException):
    """The process is gone."""


def thrown(act: Callable[[Tell], None], armed: Armed) -> Life:
    """A life in this process, for what cannot outlive it elsewhere: a chain in memory. Its death is
    an error that nothing of ours catches, and its connections are cut before any handler runs.
    """
    life = Life()

    def reached() -> None:
        life.reached = True

    def die() -> None:
        life.died = True
        cut(armed.conninfo)
        raise Died

    try:
        with armed.in_process(reached, die):
            act(life.told.append)
    except BaseException as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if not life.died and BUGS & kinds:
            raise
        life.error = repr(error)
    return life


def _end(child: int) -> None:
    """It closed its line and is about to end; one that is not is ended."""
    ends = time.monotonic() + 5
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > ends:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return
        time.sleep(0.001)


def _live(act: Callable[[Tell], None], armed: Armed, line: int) -> NoReturn:
    def say(what: str, told: Any = None) -> None:
        os.write(line, json.dumps([what, told]).encode() + b"\n")

    def die() -> None:
        say("died")
        os._exit(DIED)

    code = RAISED
    try:
        with armed.in_process(lambda: say("reached"), die):
            act(lambda told: say("told", told))
        say("returned")
        code = RETURNED
    except BaseException as error:
        import traceback

        kinds = [kind.__name__ for kind in type(error).__mro__]
        say("raised", [kinds, repr(error), traceback.format_exc()[-3_000:]])
    finally:
        os._exit(code)


def _read(line: int) -> list[tuple[str, Any]]:
    ends, text = time.monotonic() + SECONDS_MAX, b""
    while True:
        ready, _, _ = select.select([line], [], [], max(0.0, ends - time.monotonic()))
        assert ready, f"it did not end: {text[-500:]!r}"
        piece = os.read(line, 65_536)
        if not piece:
            return [tuple(json.loads(each)) for each in text.splitlines()]
        text += piece


def _life_of(lines: list[tuple[str, Any]]) -> Life:
    life = Life()
    assert lines, "it ended without a word"
    assert lines[-1][0] in ("died", "returned", "raised"), f"it ended otherwise: {lines[-3:]}"
    for what, told in lines:
        match what:
            case "told":
                life.told.append(told)
            case "reached":
                life.reached = True
            case "died":
                life.died = True
            case "raised":
                kinds, life.error, life.trace = told
                assert not BUGS & set(kinds), f"a bug: {life.trace}"
    return life


def await_quiet(connection: psycopg.Connection[Any]) -> None:
    """Wait until no statement of those who died is going on in a database."""
    ends = time.monotonic() + SECONDS_MAX
    while connection.execute(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name <> %s AND backend_type = 'client backend' LIMIT 1",
        (OBSERVER,),
    ).fetchone():
        assert time.monotonic() < ends, "a statement of the dead does not end"
        time.sleep(0.002)
