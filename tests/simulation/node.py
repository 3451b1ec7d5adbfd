"""A node of the market: the real reporter on a clock of its own, and the way to the server."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from api.replay.gentd26 import MeasuredGpus
from node_reporter.agent.agent import Reporter
from node_reporter.clock import SteppedClock
from node_reporter.reports.client import Response, Unreachable
from tests.node_reporter.model_server import Wire
from tests.scenes.server import Provider

if TYPE_CHECKING:
    from tests.simulation.run import Run

TICK_US = 30_000_000
INTERVAL_US = 600_000_000
FAULTS = ("lost_request", "lost_answer", "twice", "old_again", "reordered", "tail", "busy")


class Gpus(MeasuredGpus):
    """Idle ones under a driver that the hardware rules of production take."""

    vendor = "nvidia"

    def __init__(self, device_ids: Sequence[str]) -> None:
        super().__init__(device_ids)
        for name, device in self._devices.items():
            self._devices[name] = replace(device, driver="570.86.15")


class Door:
    """The server as the node reaches it. What it was sent is remembered, as it was signed."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if body is not None and path.endswith("/usage"):
            plain = gzip.decompress(body) if "Content-Encoding" in headers else body
            for envelope in json.loads(plain):
                self.run.reference.report(base64.b64decode(envelope["data_base64"]))
        told = self.run.call(f"node {method} {path.rpartition('/')[2]}", method, path, dict(headers), body)
        if told is None:
            raise Unreachable("the answer was lost")
        named = {name.lower(): value for name, value in told.headers.items()}
        return Response(status=told.status_code, headers=named, body=told.content)


class Node:
    """Its spool is a file that outlives the reporter."""

    def __init__(self, run: Run, provider: Provider, folder: Path, skew_us: int) -> None:
        self.run, self.provider, self.spool = run, provider, folder / "spool.db"
        self.clock = SteppedClock(wall_us=run.clock.now_us() + skew_us, mono_us=10**9)
        self.wire = Wire(cast(Any, Door(run)))
        self.has_lost_time = False
        self.clock_was_set = 0
        self.start()

    def start(self) -> None:
        provider = self.provider
        self.reporter = Reporter(
            provider.node_id,
            provider.signing.key,
            Gpus(provider.device_ids),
            self.clock,
            self.spool,
            self.wire,
            node_key=provider.node.key or "",
            tick_us=TICK_US,
            interval_us=INTERVAL_US,
            draw=self.run.rng.randint,
        )
        # What the machine under the test is made of is no part of the market.
        self.reporter._tell_specs = lambda: None  # type: ignore[method-assign]
        self._turn()

    def _turn(self) -> None:
        """As its loop does it: some turns for each look at the devices."""
        self.reporter.poll()
        self.reporter.turn()
        self.reporter.turn()

    def pass_time(self, us: int, *, wall_step_us: int = 0) -> None:
        """Tick by tick, the server's clock beside it."""
        left_us = us
        self.clock_was_set += bool(wall_step_us)
        while left_us > 0:
            tick_us = min(TICK_US, left_us)
            self.clock.advance(tick_us, wall_step_us=wall_step_us)
            self.run.clock.advance(tick_us)
            wall_step_us, left_us = 0, left_us - tick_us
            self._turn()

    def crash(self) -> None:
        """The process is gone; what was not written is gone with it."""
        self.reporter.spool.close()
        self.has_lost_time = True
        self.start()

    def fill_disk(self, *, is_full: bool) -> None:
        """No page more than there are; or as many as it likes."""
        db = self.reporter.spool._db
        pages = db.execute("PRAGMA page_count").fetchone()[0] if is_full else 2**30
        db.execute(f"PRAGMA max_page_count = {pages}")

    def finish(self) -> None:
        """On a good wire until all that was measured has arrived."""
        self.wire.faults, self.wire.down = [], False
        self.fill_disk(is_full=False)
        for _ in range(20):
            self.pass_time(TICK_US)
            self.reporter.flush()
            if not self.reporter.spool.unsigned_count() and not self.reporter.spool.waiting()[0]:
                return
        raise AssertionError("the reporter never caught up")
