"""Jobs for tests of the executor: real programs in the real sandbox, in a folder of the test."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from node_reporter.executor.job_log import JobLog
from node_reporter.executor.runner import Grant, Limits, Run, Runner, RunnerUnusable
from node_reporter.executor.sandbox import PATH, SandboxRunner, job_user, make_folder

SECONDS_MAX = 20.0
MIB = 1024 * 1024


def reason_to_skip() -> str | None:
    """Why nothing can be confined here; None: it can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (.ci/tools installs it)"
    return None


needs_walls = pytest.mark.skipif(reason_to_skip() is not None, reason=str(reason_to_skip()))


@dataclass
class Done:
    """How a job ended and what it printed."""

    code: int
    out: str
    err: str


@dataclass
class Ground:
    """A folder for jobs, and a runner that starts them there."""

    jobs: Path
    runner: Runner

    def start(
        self,
        *command: str,
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> Run:
        folder = make_folder(self.jobs, "lease_test", job_user(None))
        grant = Grant(
            lease_id="lease_test",
            command=command,
            image=None,
            folder=folder,
            device_ids=(),
            environment={"PATH": PATH, **(environment or {})},
            limits=limits or Limits(memory_bytes=256 * MIB, processes=64),
            **changes,
        )
        return self.runner.start(grant)

    def run(self, *command: str, **changes: Any) -> Done:
        return finished(self.start(*command, **changes))

    def sh(self, script: str, **changes: Any) -> Done:
        return self.run("sh", "-c", script, **changes)


def ground(folder: Path) -> Ground:
    """The real thing: bubblewrap, as another user when the tests are root's."""
    for above in [folder, *folder.parents]:
        if above.owner() == "root" and os.geteuid() == 0 and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    jobs = folder / "jobs"
    jobs.mkdir(mode=0o711)
    runner = SandboxRunner(jobs, job_user(None))
    try:
        runner.check()
    except RunnerUnusable as error:
        pytest.skip(f"nothing can be confined here: {error}")
    return Ground(jobs, runner)


def finished(run: Run) -> Done:
    """Wait until nothing of it runs."""
    log = JobLog(*run.outputs)
    code = wait_over(run)
    log.wait_read(5)
    run.close()
    printed: dict[str, bytes] = {"stdout": b"", "stderr": b"", "note": b""}

    def keep(seq: int, pieces: list[tuple[str, bytes]], _left_out: int) -> int:
        for stream, body in pieces:
            printed[stream] += body
        return seq + len(pieces)

    while not log.is_empty:
        log.send(keep)
    return Done(code, *(printed[name].decode(errors="replace") for name in ("stdout", "stderr")))


def wait_over(run: Run) -> int:
    ends = time.monotonic() + SECONDS_MAX
    while (code := run.poll()) is None:
        if time.monotonic() > ends:
            run.end()
            raise AssertionError("the job does not end")
        time.sleep(0.01)
    return code


def processes_with(mark: str) -> list[str]:
    """Command lines of this machine that hold a text, those of test runners aside."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in line and "pytest" not in line:
            found.append(line)
    return found
