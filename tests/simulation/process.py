"""The server as a process that can die: another starts on the same database and the same keys."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from psycopg.conninfo import make_conninfo

from api.main import create_app
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.settings import Settings
from api.timers import Timers, all_timers
from tests.in_process import InProcess
from tests.simulation.founding import SETTINGS
from tests.simulation.lines import Lines

CHAIN_URL = "http://chain.invalid"
"""That there is a chain; which one, `play` says."""


class Server:
    """One after the other, processes of one installation."""

    def __init__(self, address: str, folder: Path, clock: SimulatedClock, lines: Lines) -> None:
        self.settings = Settings(
            data_dir=folder, database_url=address, chain_url=CHAIN_URL, **SETTINGS
        )
        self.address, self.clock, self.lines = address, clock, lines
        self.started = 0
        self.start()

    def start(self, *, is_thorough: bool = False) -> None:
        """A new process. What opening compares with an old installation is looked at if thorough:
        there is nothing to migrate and no view to make, which takes as long as a whole run.
        """
        if is_thorough:
            self.service = Service.open(self.settings, clock=self.clock)
            self.close_service = self.service.close
        else:
            self.service = Service(self.settings, self.address, self.clock)
            self.close_service = self.service._close
            with self.service.connect() as connection:
                self.service.node_keys.refresh(connection)
        # What a process does beside its calls runs when it likes: here nothing does.
        self.service.warm_up = lambda: None  # type: ignore[method-assign]
        self.service.refresh_node_keys = lambda: True  # type: ignore[method-assign]
        self.timers = {one.name: one for one in all_timers(self.service)}
        self.http = InProcess(create_app(self.service))
        self.http.__enter__()
        self.started += 1

    def stop(self) -> None:
        """All that is open ends here, by rights or not: nothing is asked of the database first."""
        was_dead, self.lines.dead = self.lines.dead, True
        with suppress(Exception, ExceptionGroup):
            self.http.__exit__(None, None, None)
        with suppress(Exception):
            self.close_service()
        self.lines.end()
        self.lines.dead = was_dead

    def restart(self, *, is_thorough: bool = False) -> None:
        """The process is gone, whatever it was about to do; the next one is there."""
        self.stop()
        self.lines.dead = False
        with self.lines.cutting(None):  # what was to happen to the dead one does not begin here
            self.start(is_thorough=is_thorough)

    def call(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> Any:
        """The answer; None where the process died and nobody was told."""
        answer = self.http.request(method, path, headers=headers, content=body)
        return None if self.lines.dead else answer

    def run_timers(self, *names: str) -> dict[str, int]:
        """One round of these, in this thread. Raises what they raise."""
        return Timers(self.service, [self.timers[name] for name in names]).run_once()


def address_of(uri: str, database: str) -> str:
    return make_conninfo(uri, dbname=database)
