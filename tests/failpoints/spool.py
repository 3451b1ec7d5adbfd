"""A node's reporter from its start to its stop, with its spool and a server that outlives it.

what was told to be on disk is no unknown time;   the chain has no gap, no fork, no second row
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, ClassVar

from tests.failpoints.arming import Armed
from tests.failpoints.lives import Life, Tell
from tests.failpoints.places import After, Before, Failpoint, Fault
from tests.failpoints.scene import Scene
from tests.node_reporter import killed
from tests.node_reporter.killed import RUN_US
from tests.node_reporter.model_server import serve
from tests.node_reporter.reporter_scene import BEGIN_US
from tests.node_reporter.reports.test_kill import Life as NodeLife

DEATH, AWAY = Fault.DEATH, Fault.AWAY
SPOOL, FILE = "node_reporter.reports.spool:Spool.", "node_reporter.reports.spool_file:SpoolFile."
POST = "node_reporter.reports.client:UsageClient.post"


class Spools(Scene):
    failpoints: ClassVar = (
        Failpoint("spool.row_written", After(FILE + "insert_row"), (DEATH,), 8),
        Failpoint("spool.recorded", After(SPOOL + "record"), (DEATH,), 4),
        Failpoint("spool.signed", After(SPOOL + "_draft"), (DEATH,), 2),
        Failpoint("spool.report_kept", After(SPOOL + "_store"), (DEATH,), 2),
        Failpoint("spool.posting", Before(POST), (DEATH, AWAY), 2),
        Failpoint("spool.posted", After(POST), (DEATH, AWAY), 2),
        Failpoint("spool.acknowledging", After(SPOOL + "_mark_acked"), (DEATH,), 2),
        Failpoint("spool.acknowledged", After(SPOOL + "ack"), (DEATH,), 2),
    )

    def found(self) -> None:
        self.stack = ExitStack()
        self.node = NodeLife(self.folder)
        self.url = self.stack.enter_context(serve(self.node.server))

    def close(self) -> None:
        self.stack.close()

    def act(self, tell: Tell) -> None:
        killed.live(str(self.node.spool), self.url, self.node.runs, tell)

    def live(self, armed: Armed) -> Life:
        life = super().live(armed)
        self._note(life.told)
        return life

    def check(self, told: list[Any], again: list[Any]) -> None:
        del told
        self._note(again)
        assert self.node.server.bodies[: len(self.node.acked)] == self.node.acked
        self.node.acked = list(self.node.server.bodies)
        self.node.judge()

    def _note(self, told: list[int]) -> None:
        """Up to when everything of this run was on disk."""
        if told:
            self.node.on_disk.append((BEGIN_US + self.node.runs * RUN_US, told[-1]))
        self.node.runs += 1
        self.node.clock.advance(RUN_US)
