"""`tallystick run` on a machine that is itself the leased node: the program runs right here.

Only when this machine's executor is not running: whoever holds its lock has the work. The program
is the renter's own on the renter's own machine, so there are no walls around it; what it gets is
the environment of its share, this folder and this terminal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cli.terminal import AnswerIsNo
from node_reporter.executor import launch
from node_reporter.executor import state as executor_state
from node_reporter.executor.client import ExecutorClient
from node_reporter.executor.state import AlreadyRuns, ExecutorSettings, only_one
from node_reporter.executor.work import Start, WorkUnreadable, share_variables
from node_reporter.identity import KeyUnreadable
from node_reporter.machine.config import NotJoined
from node_reporter.reports.client import HttpTransport, Unreachable
from node_reporter.terminal import ConfigUnreadable

LOOK_SECONDS = 2.0
STEP_SECONDS = 0.05
START_SECONDS_MAX = 60
GRACE_SECONDS = 10
NOT_STARTED = 127


def executor_of(node_id: str) -> Here | None:
    """This machine's executor, if the lease is on it and it is not at work already."""
    folder = executor_state.executor_folder(None, os.environ)
    try:
        settings = executor_state.load(folder)
    except (NotJoined, ConfigUnreadable, KeyUnreadable):
        return None
    if settings.node_id != node_id or not settings.executor_key:
        return None
    try:
        lock = only_one(folder)
        lock.__enter__()
    except (AlreadyRuns, OSError):
        return None
    return Here(settings, lock)


@dataclass
class Here:
    """Holds the executor's lock while it is open."""

    settings: ExecutorSettings
    lock: Any
    client: ExecutorClient = field(init=False)
    transport: HttpTransport = field(init=False)

    def __enter__(self) -> Here:
        self.transport = HttpTransport(self.settings.url, allow_http=True)
        self.client = ExecutorClient(
            self.settings.node_id, self.settings.executor_key, self.transport
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.transport.close()
        self.lock.__exit__(None, None, None)

    def run(
        self,
        lease_id: str,
        command: list[str],
        is_over: Callable[[], bool],
        variables: Mapping[str, str],
    ) -> int:
        """Acknowledge, start, say ready, see it end; the exit code. Raises AnswerIsNo."""
        start = self._told(lease_id)
        if list(start.command) != command or not start.is_what_was_asked:
            raise AnswerIsNo("the server tells this machine another command than yours")
        self._tell(lease_id, "acknowledge", _answer("start", start, self.settings.executor))
        try:
            process = subprocess.Popen(  # noqa: S603
                command, env={**os.environ, **variables, **share_variables(start)}
            )
        except OSError as error:
            self._tell(lease_id, "decline", {})
            raise AnswerIsNo(f"{command[0]}: {error.strerror}", code=NOT_STARTED) from None
        try:
            self._tell(lease_id, "ready", {})
            code = _seen_to_its_end(process, is_over)
        except BaseException:
            _end(process)
            self._ended(lease_id, 128 + signal.SIGTERM)
            raise
        self._ended(lease_id, code)
        self._tell(lease_id, "acknowledge", _answer("stop", start, self.settings.executor))
        return code

    def _told(self, lease_id: str) -> Start:
        ends = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < ends:
            with suppress(Unreachable):
                try:
                    starts = self.client.work().starts
                except WorkUnreadable as error:
                    raise AnswerIsNo(str(error)) from None
                for start in starts:
                    if start.lease_id == lease_id:
                        return start
            time.sleep(STEP_SECONDS)
        raise AnswerIsNo("the server does not tell this machine of the lease")

    def _ended(self, lease_id: str, code: int) -> None:
        body = {"executor": self.settings.executor, "outcome": "exited", "exit_code": code}
        self._tell(lease_id, "ended", body)

    def _tell(self, lease_id: str, what: str, body: dict[str, Any]) -> None:
        try:
            said = self.client.tell(lease_id, what, body)
        except Unreachable as error:
            raise AnswerIsNo(f"the server is away: {error}") from None
        if not said.is_done and said.code != "lease_state":
            raise AnswerIsNo(f"refused: {said.code}", {"code": said.code})


def _answer(command: str, start: Start, executor: str) -> dict[str, str]:
    return {
        "command": command,
        "workload_sha256": start.workload_sha256,
        "executor": executor,
        "runner": "trusted",
    }


def _seen_to_its_end(process: subprocess.Popen[bytes], is_over: Callable[[], bool]) -> int:
    """Its exit code; when its lease ends first, the program is ended."""
    looked = time.monotonic()
    while True:
        try:
            code = process.wait(STEP_SECONDS)
        except subprocess.TimeoutExpired:
            if time.monotonic() - looked >= LOOK_SECONDS:
                looked = time.monotonic()
                if is_over():
                    _end(process)
            continue
        return code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[bytes]) -> None:
    """The program and what it started: asked first, ended after a while."""
    tree = [process.pid, *launch.descendants(process.pid)]
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        for pid in tree:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return
