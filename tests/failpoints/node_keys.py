"""A node changes its signing key, and its spool and its server outlive it.

at every moment one key is in office;   the chain goes on, and each report is of the key of its time
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any, ClassVar

from domain.metering import report
from node_reporter.clock import SteppedClock
from node_reporter.identity import load_key, public_key
from node_reporter.machine.config import Settings, StateFolder
from node_reporter.reports import rotation
from node_reporter.reports.client import HttpTransport
from tests.failpoints.lives import Tell
from tests.failpoints.places import After, Before, Failpoint, Fault
from tests.failpoints.scene import Scene
from tests.node_reporter import killed
from tests.node_reporter.killed import RUN_US
from tests.node_reporter.model_server import NODE, NODE_KEY, ModelServer, serve
from tests.node_reporter.reporter_scene import BEGIN_US, WALL_US

DEATH, FULL, AWAY = Fault.DEATH, Fault.FULL, Fault.AWAY
ROTATION = "node_reporter.reports.rotation:"
TELLING = "node_reporter.reports.client:UsageClient.tell_rotation"


class NodeKeys(Scene):
    failpoints: ClassVar = (
        Failpoint("node_key.file_made", Before("os:fdopen"), (DEATH,)),
        Failpoint("node_key.on_its_way_to_disk", Before("os:fsync"), (DEATH, FULL)),
        Failpoint("node_key.next_made", After(ROTATION + "key_or_new"), (DEATH,)),
        Failpoint("node_key.introduced", After(ROTATION + "_introduce"), (DEATH,)),
        Failpoint(
            "node_key.spool_handed_on", After("node_reporter.reports.spool:Spool.hand_on"), (DEATH,)
        ),
        Failpoint("node_key.replacing", Before("os:replace"), (DEATH, FULL)),
        Failpoint("node_key.replaced", After(ROTATION + "_take_over"), (DEATH,)),
        Failpoint("node_key.telling", Before(TELLING), (DEATH, AWAY)),
        Failpoint("node_key.told", After(TELLING), (DEATH, AWAY)),
    )

    def found(self) -> None:
        self.stack, self.runs = ExitStack(), 0
        self.state = StateFolder(self.folder / "node")
        key = self.state.signing_key_or_new()
        self.state.remember(url="", node_id=NODE, node_key=NODE_KEY)
        self.clock = SteppedClock(wall_us=WALL_US, mono_us=BEGIN_US)
        self.server = ModelServer(public_key=public_key(key), clock=self.clock)
        self.url = self.stack.enter_context(serve(self.server))
        self._report()

    def close(self) -> None:
        self.stack.close()

    def act(self, tell: Tell) -> None:
        with closing(HttpTransport(self.url, allow_http=True)) as transport:
            new, _ = rotation.rotate(self.state, self._settings(), transport, self.clock)
        tell(public_key(new).hex())

    def check(self, told: list[Any], again: list[Any]) -> None:
        """Each report was verified by the server with the key of its number."""
        self._report()
        settings = self._settings()
        assert not self.state.next_key.exists()
        assert public_key(settings.signing_key).hex() == again[-1]
        known = [one["public_key"] for one in self.server.rotations]
        assert known[-1] == again[-1]
        assert set(told) <= set(known), "a key that was told signs from its number on"
        assert self.round <= len(known) == len(set(known)) <= 2 * self.round
        assert self.server.alerts == []
        prev = report.genesis(NODE, self.server.public_key)
        for number, body in enumerate(self.server.bodies, 1):
            one = report.parse(body)
            assert (one.seq, one.prev) == (number, prev.hex())
            prev = report.report_hash(body)
        assert settings.node_key == self.server.node_key

    def _settings(self) -> Settings:
        """As every start of the node's programs makes them."""
        rotation.settle(self.state)
        return Settings(
            url=self.url,
            node_id=NODE,
            node_key=self.state.node_key.read_text(),
            spool=self.state.spool,
            signing_key=load_key(self.state.signing_key),
        )

    def _report(self) -> None:
        """A life of the reporter, with the key in office, from start to stop."""
        settings, before = self._settings(), self.server.seq
        killed.live(
            str(settings.spool),
            self.url,
            self.runs,
            lambda _told: None,
            key=settings.signing_key,
            node_key=settings.node_key,
        )
        self.runs += 1
        self.clock.advance(RUN_US)
        assert self.server.seq > before
