"""An executor takes up the work of a lease that mounts a volume, ends it, and erases the volume.

The server outlives it. Work that died with it is told as lost; nothing is left, and each end is
told once.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from typing import Any, ClassVar

from node_reporter.clock import SystemClock
from node_reporter.executor.client import ExecutorClient
from node_reporter.executor.executor import Allowed, Executor
from node_reporter.executor.runner import Limits
from node_reporter.executor.sandbox import job_user
from node_reporter.executor.state import ExecutorSettings
from node_reporter.executor.usage import CGROUPS
from node_reporter.executor.volume_store import FolderStore
from node_reporter.reports.client import HttpTransport
from tests.failpoints.lives import SECONDS_MAX, Tell
from tests.failpoints.places import After, Before, Failpoint, Fault
from tests.failpoints.scene import Scene
from tests.node_reporter.confined import MIB, ground
from tests.node_reporter.executor.test_executor import ME, NODE, Server
from tests.node_reporter.model_server import serve

DEATH, AWAY = Fault.DEATH, Fault.AWAY
EXECUTOR = "node_reporter.executor.executor:"
STORE = "node_reporter.executor.volume_store:FolderStore."
CLIENT = "node_reporter.executor.client:ExecutorClient."
ALLOWED = Allowed(limits=Limits(memory_bytes=256 * MIB, grace_s=1))


class Work(Scene):
    failpoints: ClassVar = (
        Failpoint("work.told", After(CLIENT + "tell"), (DEATH, AWAY), 4),
        Failpoint("work.folder_made", After(EXECUTOR + "make_folder"), (DEATH,)),
        Failpoint("work.begun", After(EXECUTOR + "Executor._begin"), (DEATH,)),
        Failpoint("work.counting", Before("os:replace"), (DEATH,)),
        Failpoint("work.log_sent", After(CLIENT + "send_log"), (DEATH, AWAY)),
        Failpoint("work.unmounted", After(EXECUTOR + "Executor._unmount"), (DEATH,)),
        Failpoint("volume.erased", After(STORE + "erase"), (DEATH,)),
        Failpoint("volume.told", After(CLIENT + "tell_erased"), (DEATH, AWAY)),
    )

    def found(self) -> None:
        self.stack = ExitStack()
        self.folder.chmod(0o711)
        self.volumes = self.folder / "volumes"
        self.volumes.mkdir(mode=0o711)
        self.ground = ground(self.folder)
        self.server = Server()
        self.url = self.stack.enter_context(serve(self.server))  # type: ignore[arg-type]

    def close(self) -> None:
        self.stack.close()

    def prepare(self) -> None:
        """Work that writes into a volume of its own, and a volume that was deleted."""
        self.volume, gone = (f"volume_{self.round:031x}{digit}" for digit in "0f")
        mount = {"volume_id": self.volume, "path": "/vol/kept", "read_only": False, "size_gib": 1}
        self.lease = self.server.asks(
            f"{self.round:x}", "echo up; echo kept > /vol/kept/file; exit 3", volumes=[mount]
        )
        (self.volumes / gone).mkdir()
        (self.volumes / gone / "secret").write_text("secret")
        self.server.to_erase.append(gone)

    def act(self, tell: Tell) -> None:
        with closing(HttpTransport(self.url, allow_http=True)) as transport:
            self._work(ExecutorClient(NODE, "ts_exec_key", transport), tell)

    def _work(self, client: ExecutorClient, tell: Tell) -> None:
        """Step after step, until the server asks for nothing more."""
        executor = Executor(
            ExecutorSettings(
                url="", node_id=NODE, executor=ME, executor_key="ts_exec_key", variables={}
            ),
            client,
            [self.ground.runner],
            self.ground.jobs,
            SystemClock(),
            user=job_user(None),
            volumes=FolderStore(self.volumes, job_user(None)),
            allowed=ALLOWED,
            used=self.folder / "used",
        )
        executor.take_over()
        ends = time.monotonic() + SECONDS_MAX
        while time.monotonic() < ends:
            executor.step()
            work = client.work()
            if not (work.starts or work.stops or work.running or work.to_erase or executor.jobs):
                tell("done")
                return
            time.sleep(0.01)
        raise AssertionError("its work does not end")

    def check(self, told: list[Any], again: list[Any]) -> None:
        assert told in ([], ["done"])
        assert again == ["done"]
        ended = self.server.said(self.lease, "ended")
        outcomes = [(one["outcome"], one["exit_code"]) for one in ended]
        assert outcomes in ([("exited", 3)], [("lost", None)]), outcomes
        assert len(self.server.erased) == len(set(self.server.erased)) == self.round
        kept = {path.name for path in self.volumes.iterdir()}
        assert kept.isdisjoint(self.server.erased)
        if outcomes == [("exited", 3)]:
            assert (self.volumes / self.volume / "file").read_text() == "kept\n"
        left = [path.name for path in self.ground.jobs.iterdir() if path.name[0] != "."]
        assert left == []
        assert not [*CGROUPS.glob(f"*/tallystick-{self.lease}")]
        assert not [*CGROUPS.glob(f"tallystick-{self.lease}")]
