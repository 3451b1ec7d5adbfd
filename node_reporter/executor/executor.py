"""The reference executor: starts the work of leases, watches it, stops it, and says so.

    told to start -> hash checked -> acknowledged -> files fetched -> started -> ready -> ended
    lease over    -> told to stop -> every process of it ended -> acknowledged

Billing starts with `ready`, said when the program's start has succeeded and when the time that the
server gives a start for nothing is over: nothing before it is paid. What could not be begun after
that ends as `not_started`, and is not paid either. Of a gang the node is ready when all but the
program is there, which begins once every member is paid. A program of its own beside the reporter,
with a key that opens nothing else. One step asks the server once and looks at every job once;
nothing waits for a job or for the server; files travel in threads of their own. When the server
is away, jobs go on until their lease's funds or term end, by this machine's clock, and no longer.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nacl.public import PublicKey, SealedBox

from node_reporter.clock import Clock
from node_reporter.executor.client import ExecutorClient, Said
from node_reporter.executor.datastores import Datastores
from node_reporter.executor.gpu_files import DeviceFiles
from node_reporter.executor.job_log import JobLog
from node_reporter.executor.nameless import BLOCK_BYTES
from node_reporter.executor.parcels.bringing import (
    HURRIED_SECONDS_MAX,
    SECRETS_SECONDS_MAX,
    Bringing,
    Brought,
    left_behind,
)
from node_reporter.executor.parcels.returning import Returning
from node_reporter.executor.reserved_names import ReservedNames
from node_reporter.executor.runner import Bound, Grant, Limits, NotStarted, Run, Runner
from node_reporter.executor.sandbox import PATH, JobUser, make_folder
from node_reporter.executor.state import ExecutorSettings
from node_reporter.executor.usage import CGROUPS, Group, WorkMeter, write_counters
from node_reporter.executor.volume_store import Mount, NotErased, VolumeStore, remove_folder
from node_reporter.executor.work import (
    ENDPOINT_KINDS,
    LEASE,
    Running,
    Start,
    Stop,
    Work,
    WorkUnreadable,
    share_variables,
)
from node_reporter.reports.client import Unreachable
from node_reporter.terminal import printable

Apart = Callable[[], AbstractContextManager[ExecutorClient]]
"""Makes a client with a connection of its own, and lets go of it."""
JOBS_MAX = 64
LOG_SECONDS_MAX = 5
WALLS_MAX = 8
"""Processes of the walls around a job, which are in its group and are not its own."""
UNSEEN_LOOKS_MAX = 3
WRONGS_MAX = 20
FOLDER_EVERY_US = 2_000_000
SECOND_US = 1_000_000


WELL_EVERY_US, UNWELL_EVERY_US = 10_000_000, 1_000_000
"""How often an endpoint is looked at; every look is told, so that silence is told apart."""
ANSWER_SECONDS_MAX = 0.2


def answers(port: int) -> bool:
    """Whether something on this machine takes connections on a port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS_MAX):
            return True
    except OSError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What the owner of the machine lets every job have."""

    limits: Limits = field(default_factory=Limits)
    network: bool = False
    read_only: tuple[str, ...] = ()
    host: str | None = None  # where renters reach this machine; with it go the ports
    ports: range = range(0)


@dataclass(slots=True)
class Job:
    """One job of ours. `exit_code` is known once nothing of it runs."""

    start: Start
    runner: Runner
    run: Run | None = None
    log: JobLog | None = None
    folder: Path | None = None
    port: int | None = None
    token: str = ""
    paid_from_us: int | None = None  # monotonic: `ready` is said by then; None: no bound
    is_ready: bool = False
    is_open: bool = False  # the server lists it among what runs
    has_answered: bool = False  # its endpoint, ever: until then it starts, and is not unwell
    is_well: bool | None = None  # whether its endpoint answers; None: not told yet
    looked_us: int = 0  # when that was last seen
    is_told: bool = False  # its end
    is_limited: bool = False
    is_lost: bool = False  # it ended because we went away
    exit_code: int | None = None
    until_us: int | None = None
    stopping_since_us: int | None = None
    folder_seen_us: int = 0
    volumes: dict[Mount, Path] = field(default_factory=dict)
    meter: WorkMeter | None = None
    metered_us: int = 0
    group: Group | None = None  # which the kernel holds to the limits; None: we look
    unseen: dict[int, int] = field(default_factory=dict)  # processes that hide: for how many looks
    bringing: Bringing | None = None  # the renter's folder, under way
    brought: Brought | None = None
    returning: Returning | None = None  # what the renter asked back, under way
    is_returned: bool = False
    is_stopped: bool = False  # its stop is acknowledged

    @property
    def is_over(self) -> bool:
        return self.exit_code is not None

    @property
    def waits(self) -> bool:
        """Whether its program may not begin yet: what runs while a gang waits, nobody pays."""
        return self.start.waits_for_gang and not self.is_open

    @property
    def held_port(self) -> int | None:
        """The port of this machine that is its own: of its endpoint, or reserved for it."""
        return self.start.reserved.port if self.start.reserved else self.port


class Executor:
    """Everything one executor knows while it runs."""

    def __init__(
        self,
        settings: ExecutorSettings,
        client: ExecutorClient,
        runners: Sequence[Runner],
        jobs: Path,
        clock: Clock,
        *,
        allowed: Allowed | None = None,
        user: JobUser | None = None,
        devices: DeviceFiles | None = None,
        volumes: VolumeStore | None = None,
        datastores: Datastores | None = None,
        names: ReservedNames | None = None,
        used: Path | None = None,
        apart: Apart | None = None,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._settings = settings
        self._client = client
        self._runners = runners
        self._folder = jobs
        self._clock = clock
        self._allowed = allowed or Allowed()
        self._user = user
        self._devices = devices or DeviceFiles()
        self._volumes = volumes
        self._datastores = datastores
        self._names = names
        self._used = used  # the folder where the reporter finds what work uses
        # A client with a connection of its own, for files; None: the one there is.
        self._apart: Apart = apart or (lambda: nullcontext(client))
        self._tell = tell
        self.jobs: dict[str, Job] = {}
        self._refused: set[str] = set()
        self._erased: set[str] = set()

    # --- one step ------------------------------------------------------------------------------

    def step(self) -> None:
        """Ask the server once, look at every job once."""
        try:
            work = self._client.work()
            self._follow(work)
            self._erase(work)
        except Unreachable as error:
            self._tell(f"the server cannot be reached: {error}")
        except WorkUnreadable as error:
            self._tell(str(error))
        for job in list(self.jobs.values()):
            self._look_at(job)

    def take_over(self) -> None:
        """Leave nothing of the jobs of an executor that was killed; the server is told of each as
        lost as soon as it asks for it. Only while no other executor works in this folder.
        """
        left = self._folder.iterdir() if self._folder.is_dir() else ()
        for folder in left_behind(self._folder):
            remove_folder(folder)
        for folder in sorted(left):
            if LEASE.fullmatch(folder.name) is None:
                continue
            try:
                for runner in self._runners:
                    runner.forget(folder.name)
            except NotStarted as error:
                self._tell(f"{folder.name}, left by an executor that was killed, stays: {error}")
                continue
            group = Group.make(CGROUPS, f"tallystick-{folder.name}")
            if group is not None:
                group.end()
            if self._volumes is not None:
                self._volumes.forget(folder.name)
            remove_folder(folder)  # last of all, for it is what tells of the others
            self._tell(f"{folder.name} was left by an executor that was killed")

    def close(self) -> None:
        """End every job: the executor goes away, and nothing runs without it."""
        for job in self.jobs.values():
            if job.run is not None and not job.is_over:
                job.is_lost = True
                job.run.end()
        for job in list(self.jobs.values()):
            self._await_over(job)
            if job.run is not None:
                self._look_at(job)
            self._clean(job)

    def _await_over(self, job: Job) -> None:
        ends_us = self._clock.now().mono_us + LOG_SECONDS_MAX * SECOND_US
        while job.run is not None and job.run.poll() is None:
            if self._clock.now().mono_us > ends_us:
                self._tell(f"{job.start.lease_id}: its processes do not end")
                return
            time.sleep(0.01)

    def _follow(self, work: Work) -> None:
        for stop in work.stops:
            self._stop(stop)
        for start in work.starts:
            if start.lease_id not in self.jobs and start.lease_id not in self._refused:
                self._start(start)
        over = {stop.lease_id for stop in work.stops}
        for running in work.running.values():
            self._check_running(running, running.lease_id in over)
        self._refused &= {start.lease_id for start in work.starts}

    # --- volumes -------------------------------------------------------------------------------

    def _erase(self, work: Work) -> None:
        """Leave nothing of volumes that were deleted, once no job of ours has them. Raises
        Unreachable.
        """
        mounted = {one.volume_id for job in self.jobs.values() for one in job.volumes}
        for volume_id in work.to_erase if self._volumes is not None else ():
            if volume_id in mounted or volume_id in self._erased:
                continue
            assert self._volumes is not None
            try:
                self._volumes.erase(volume_id)
            except NotErased as error:
                self._tell(f"a deleted volume is not erased yet: {error}")
                continue
            said = self._client.tell_erased(volume_id)
            if said.is_final:
                self._erased.add(volume_id)
                self._tell(f"{volume_id} is erased")
        self._erased &= set(work.to_erase)

    def _mounted(self, job: Job) -> tuple[Bound, ...]:
        """The job's volumes as folders. Raises NotStarted: no store here, or one that is full."""
        bound = []
        for mount in job.start.volumes:
            if self._volumes is None:
                raise NotStarted("this node has no store of volumes")
            folder = self._volumes.open(mount, job.start.lease_id)
            job.volumes[mount] = folder
            used = self._volumes.used_bytes(folder, mount.size_bytes)
            if used > mount.size_bytes and not mount.read_only:
                raise NotStarted(f"{mount.volume_id} holds more than its size")
            bound.append(Bound(folder, mount.path, mount.read_only))
        return tuple(bound)

    def _stores(self, start: Start) -> tuple[Bound, ...]:
        """The folders of datastores, mounted. Raises NotStarted."""
        if start.stores and self._datastores is None:
            raise NotStarted("this node mounts no datastores")
        return self._datastores.open(start.lease_id, start.stores) if self._datastores else ()

    def _over_a_volume(self, job: Job) -> str:
        """Which volume of a job holds more than its size; nothing, when all is well."""
        for mount, folder in job.volumes.items():
            if mount.read_only or self._volumes is None:
                continue
            if self._volumes.used_bytes(folder, mount.size_bytes) > mount.size_bytes:
                return f"more than {mount.size_bytes} bytes of {mount.volume_id}"
        return ""

    def _unmount(self, job: Job) -> None:
        """Let go of a job's name, volumes and stores; what could not be kept stands in its log."""
        lease_id = job.start.lease_id
        if self._names is not None:
            self._names.withdraw(lease_id)
        wrongs = [] if self._datastores is None else [self._datastores.close(lease_id)]
        for mount, folder in job.volumes.items():
            assert self._volumes is not None
            wrongs.append(self._volumes.close(mount, lease_id, folder))
        for wrong in wrongs:
            if wrong:
                self._tell(f"{job.start.lease_id}: {wrong}")
                if job.log is not None:
                    job.log.note(wrong)
        job.volumes.clear()

    # --- starting ------------------------------------------------------------------------------

    def _start(self, start: Start) -> None:
        """Acknowledge and start, or give the lease back with the reason in its log."""
        if start.executor not in (None, self._settings.executor) or len(self.jobs) >= JOBS_MAX:
            return
        why_not, runner = self._runner_for(start)
        if runner is None:
            self._decline(start, why_not)
            return
        said = self._answer(start.lease_id, "start", start.workload_sha256, runner.name)
        if said is None or not said.is_done:
            if said is not None and said.code == "workload_mismatch":
                self._decline(start, "the server takes this work for another one")
            elif said is not None and said.is_final:
                self._refused.add(start.lease_id)
            return
        job = self.jobs[start.lease_id] = Job(start, runner)
        if said.free_us is not None:
            job.paid_from_us = self._clock.now().mono_us + said.free_us
        if start.workspace is None:
            self._begin_or_decline(job)
            return
        job.bringing = Bringing(
            self._apart,
            start.lease_id,
            start.workspace,
            self._folder,
            self._allowed.limits,
            self._user,
            self._settings.sealing_key,
            HURRIED_SECONDS_MAX if said.free_us == 0 else SECRETS_SECONDS_MAX,
        )
        job.bringing.start()

    def _await_files(self, job: Job) -> None:
        """Begin once the renter's folder is here, or give the lease back."""
        assert job.bringing is not None
        if not job.bringing.is_done:
            return
        job.brought, is_stopped = job.bringing.brought, job.bringing.is_stopped
        if job.brought is None or is_stopped:
            self._clean(job)
            if not is_stopped:
                self._give_back(job, f"its files did not come: {job.bringing.error}")
            return
        job.bringing = None
        self._begin_or_decline(job)

    def _begin_or_decline(self, job: Job) -> None:
        if job.waits:
            return
        try:
            self._begin(job)
        except (NotStarted, OSError) as error:
            self._clean(job)
            self._give_back(job, f"could not be started: {error}")

    def _await_gang(self, job: Job) -> None:
        """All but the program is there: say so, and begin it once the gang is paid."""
        if not job.is_ready:
            try:
                self._check_reserved(job)
                self._take_port(job)
                self._say_ready(job)
            except NotStarted as error:
                self._clean(job)
                self._give_back(job, f"could not be started: {error}")
                return
            except Unreachable:
                return
        if not job.is_told:
            self._begin_or_decline(job)

    def _give_back(self, job: Job, why: str) -> None:
        """The lease ends and nothing of it is paid, whether or not `ready` was said for it."""
        if not job.is_ready:
            self._decline(job.start, why)
            return
        self._tell(f"{job.start.lease_id} not started: {why}")
        note = f"not started, and not charged: {printable(why)}\n".encode()
        body = {"executor": self._settings.executor, "outcome": "not_started", "exit_code": None}
        with suppress(Unreachable):
            self._client.send_log(job.start.lease_id, 0, [("note", note)], 0)
            self._client.tell(job.start.lease_id, "ended", body)

    def _runner_for(self, start: Start) -> tuple[str, Runner | None]:
        if not start.is_what_was_asked:
            return "the command is not the job's hash", None
        for runner in self._runners:
            if runner.takes(start.image):
                return "", runner
        return ("this node runs no images" if start.image else "this node runs no commands"), None

    def _begin(self, job: Job) -> None:
        start = job.start
        self._check_reserved(job)
        job.folder = make_folder(self._folder, start.lease_id, self._user)
        if job.brought is not None:
            (job.folder / "work").rmdir()
            job.brought.folder.rename(job.folder / "work")
        self._take_port(job)
        granted, missing = self._settings.granted(start.account_id, start.env_refs)
        if start.image is None:
            job.group = _group(start.lease_id, self._allowed.limits)
        grant = Grant(
            lease_id=start.lease_id,
            command=start.command,
            image=start.image,
            environment={**granted, **self._variables(job)},
            folder=job.folder,
            device_ids=start.device_ids,
            device_files=self._devices.of(start.device_ids),
            read_only=self._allowed.read_only,
            volumes=(*self._mounted(job), *self._stores(start)),
            variables={} if job.brought is None else job.brought.variables,
            network=self._allowed.network,
            limits=self._allowed.limits,
            port=job.held_port,
            groups=() if job.group is None else job.group.doors,
        )
        job.run = job.runner.start(grant)
        job.log = JobLog(*job.run.outputs)
        if self._used is not None:
            job.meter = self._begin_meter(job)
        self._publish(job)
        for name in missing:
            job.log.note(f"{name} is not known on this node: the job runs without it")
        notes = () if job.brought is None else job.brought.notes
        for line in (*notes, *_not_there(job)):
            job.log.note(line)
        if job.brought is not None:  # the job has its secrets now, and we keep none
            job.brought = replace(job.brought, variables={})
        self._tell(f"{start.lease_id} started by {job.runner.name}")

    def _variables(self, job: Job) -> dict[str, str]:
        """What every job finds, and its share."""
        home, tmp = "/work", "/tmp"  # noqa: S108
        if job.runner.name == "trusted" and job.folder is not None:
            home, tmp = str(job.folder / "work"), str(job.folder / "tmp")
        told = {"PATH": PATH, "HOME": home, "TMPDIR": tmp, "LANG": "C.UTF-8"}
        if job.start.references:
            names = [{"kind": one.kind, "name": one.name} for one in job.start.references]
            told["TALLYSTICK_REFERENCES"] = json.dumps(names)
        if job.port is not None:
            told |= {"TALLYSTICK_PORT": str(job.port), "TALLYSTICK_TOKEN": job.token}
        return {**told, **share_variables(job.start)}

    def _take_port(self, job: Job) -> None:
        """Where an endpoint is reached; its renter is told with `ready`. Raises NotStarted."""
        if job.port is None and job.start.kind in ENDPOINT_KINDS and self._allowed.network:
            job.port = job.start.reserved.port if job.start.reserved else self._free_port()
            job.token = secrets.token_urlsafe(24)

    def _free_port(self) -> int:
        """Raises NotStarted."""
        taken = {job.held_port for job in self.jobs.values()}
        free = next((port for port in self._allowed.ports if port not in taken), None)
        if free is None:
            raise NotStarted("no port is free for an endpoint")
        return free

    def _check_reserved(self, job: Job) -> None:
        """Raises NotStarted."""
        if job.start.reserved is None:
            return
        job.start.reserved.check()
        others = (one for one in self.jobs.values() if one is not job)
        if any(one.held_port == job.held_port for one in others):
            raise NotStarted(f"port {job.held_port} is another job's here")
        if self._allowed.network and answers(job.start.reserved.port):
            raise NotStarted(f"port {job.held_port} is taken on this machine by another program")

    def _publish(self, job: Job) -> None:
        """Tell the network the name that is reserved for it, or its log why not."""
        assert job.log is not None
        if job.start.reserved is None:
            return
        if self._names is not None and self._allowed.network:
            self._names.publish(job.start.lease_id, job.start.reserved)
            return
        why = "publishes no names" if self._allowed.network else "lets jobs use no network"
        job.log.note(f"{job.start.reserved.full_name} is not published: this node {why}")

    def _decline(self, start: Start, why: str) -> None:
        """Give the lease back: it ends uncharged, close code 10006, and the renter reads why."""
        self._tell(f"{start.lease_id} declined: {why}")
        try:
            self._client.send_log(
                start.lease_id, 0, [("note", f"declined: {printable(why)}\n".encode())], 0
            )
            said = self._client.tell(start.lease_id, "decline", {})
        except Unreachable:
            return
        if said.is_final:
            self._refused.add(start.lease_id)

    # --- while it runs ---------------------------------------------------------------------------

    def _look_at(self, job: Job) -> None:
        if job.bringing is not None:
            self._say_ready_if_due(job)
            self._await_files(job)
            return
        if job.run is None:
            self._await_gang(job)
            return
        if not job.is_over:
            self._meter(job)
            self._keep_published(job)
            self._check_limits(job)
            self._end_if_due(job)
            job.exit_code = job.run.poll()
            if job.is_over:
                assert job.log is not None
                job.log.wait_read(LOG_SECONDS_MAX)
                if job.group is not None and job.group.ran_out() and not job.is_limited:
                    job.is_limited = True
                    job.log.note(f"ended: more memory than {self._allowed.limits.memory_bytes}")
                self._unmount(job)
                self._tell(f"{job.start.lease_id} ended with {job.exit_code}")
        try:
            if not job.is_ready and self._may_be_used(job):
                self._say_ready(job)
            self._watch_endpoint(job)
            assert job.log is not None
            is_sent = self._send_log(job)
            if job.is_over and is_sent and job.is_ready and not job.is_told:
                self._say_ended(job)
        except Unreachable:
            return
        is_done = job.is_stopped or (job.is_told and job.stopping_since_us is None)
        if job.is_over and is_done and self._is_returned(job):
            self._clean(job)

    def _is_returned(self, job: Job) -> bool:
        """Whether nothing is left to send of what the renter asked back; that is begun here, when
        nothing is charged any more. What was left out stands in the log.
        """
        wanted = () if job.brought is None or job.is_lost else job.brought.results
        if not wanted or job.is_returned or job.folder is None:
            return True
        if job.returning is None:
            owner = os.geteuid() if self._user is None else self._user.uid
            lease_id, folder = job.start.lease_id, job.folder / "work"
            most = self._allowed.limits.folder_bytes
            job.returning = Returning(self._apart, lease_id, folder, wanted, owner, most)
            job.returning.start()
            return False
        if not job.returning.is_done:
            return False
        for wrong in job.returning.wrongs[:WRONGS_MAX]:
            assert job.log is not None
            job.log.note(wrong)
            self._tell(f"{job.start.lease_id}: {wrong}")
        job.is_returned = True
        with suppress(Unreachable):
            self._send_log(job)
        return True

    def _begin_meter(self, job: Job) -> WorkMeter | None:
        """None where its processes are not known yet, or run on another machine."""
        assert job.run is not None
        assert job.folder is not None
        pid, container = job.run.pid, job.run.container
        if pid is None:
            return None
        named = job.start.lease_id, self._clock.boot_id, self._clock.now().mono_us, pid
        if container is None:
            return WorkMeter.begin(*named, job.folder, job.group)
        return WorkMeter.join(*named, container, job.folder)

    def _meter(self, job: Job) -> None:
        """Look at what the work has used, and hand it to the reporter."""
        now_us = self._clock.now().mono_us
        if self._used is None or now_us < job.metered_us + SECOND_US:
            return
        job.metered_us = now_us
        job.meter = job.meter or self._begin_meter(job)
        if job.meter is None:
            return
        try:
            write_counters(self._used, job.meter.look(now_us))
        except OSError as error:
            self._tell(f"{job.start.lease_id}: its use cannot be told: {error}")

    def _keep_published(self, job: Job) -> None:
        assert job.log is not None
        now_us = self._clock.now().mono_us
        for wrong in self._names.look(job.start.lease_id, now_us) if self._names else ():
            self._tell(f"{job.start.lease_id}: {wrong}")
            job.log.note(wrong)

    def _say_ready_if_due(self, job: Job) -> None:
        """The renter's folder is still under way, and the time is over that costs nothing. No
        secret can come after it.
        """
        assert job.bringing is not None
        if job.is_ready or job.bringing.awaits_secrets or not self._is_paid(job):
            return
        with suppress(Unreachable, NotStarted):  # without a port it is given back when it begins
            self._take_port(job)
            self._say_ready(job)

    def _is_paid(self, job: Job) -> bool:
        """Whether the time is over that a start is given for nothing: or a program that never
        answers would use the device free of charge until the start's timeout.
        """
        return job.paid_from_us is not None and self._clock.now().mono_us >= job.paid_from_us

    def _may_be_used(self, job: Job) -> bool:
        """An endpoint is ready when it answers, a container when it runs, other work at once."""
        if job.is_over or self._is_paid(job):
            return True
        assert job.run is not None
        if job.port is None:
            return job.run.pid is not None
        job.has_answered = answers(job.port)
        return job.has_answered

    def _watch_endpoint(self, job: Job) -> None:
        """Tell the server whether an endpoint answers, soon after it ceases to and all along.

        Raises Unreachable.
        """
        now_us = self._clock.now().mono_us
        due_us = job.looked_us + (WELL_EVERY_US if job.is_well else UNWELL_EVERY_US)
        if job.port is None or not job.is_ready or job.is_over or now_us < due_us:
            return
        is_well = answers(job.port)
        job.has_answered = job.has_answered or is_well
        if not job.has_answered:
            job.looked_us = now_us
            return
        detail = "" if is_well else f"port {job.port} does not answer"
        self._client.tell(job.start.lease_id, "health", {"well": is_well, "detail": detail})
        job.is_well, job.looked_us = is_well, now_us

    def _say_ready(self, job: Job) -> None:
        body: dict[str, Any] = {}
        if job.port is not None and self._allowed.host is not None:
            body["endpoint"] = f"http://{self._allowed.host}:{job.port}"
            if job.start.encryption_key is not None:
                box = SealedBox(PublicKey(job.start.encryption_key))
                sealed = box.encrypt(json.dumps({"token": job.token}).encode())
                body["credentials"] = base64.b64encode(sealed).decode()
        said = self._client.tell(job.start.lease_id, "ready", body)
        if said.is_final and not said.is_done:
            # The lease is over, or is not ours any more: nothing of it may run on.
            self._tell(f"{job.start.lease_id} may not begin: {said.code}")
            job.is_told = True
            if job.bringing is not None:
                job.bringing.ask_to_stop()
            if job.run is not None:
                job.run.end()
        job.is_ready = said.is_final

    def _send_log(self, job: Job) -> bool:
        """Whether everything that was printed is with the server."""
        assert job.log is not None
        lease_id = job.start.lease_id
        sent = job.log.send(
            lambda seq, pieces, left_out: self._client.send_log(lease_id, seq, pieces, left_out)
        )
        while sent and job.is_over and not job.log.is_empty:
            sent = job.log.send(
                lambda seq, pieces, left_out: self._client.send_log(lease_id, seq, pieces, left_out)
            )
        return sent and job.log.is_empty

    def _say_ended(self, job: Job) -> None:
        outcome = "lost" if job.is_lost else "limited" if job.is_limited else "exited"
        said = self._client.tell(
            job.start.lease_id,
            "ended",
            {"executor": self._settings.executor, "outcome": outcome, "exit_code": job.exit_code},
        )
        job.is_told = said.is_final

    def _check_limits(self, job: Job) -> None:
        """Memory and processes of the whole tree, and the folder; over one, the job ends."""
        assert job.run is not None
        limits, using = self._allowed.limits, job.run.using()
        over = ""
        if using.memory_bytes is not None and using.memory_bytes > limits.memory_bytes:
            over = f"{using.memory_bytes} bytes of memory, of {limits.memory_bytes}"
        elif using.processes is not None and using.processes > limits.processes:
            over = f"{using.processes} processes, of {limits.processes}"
        elif using.image_bytes > limits.image_bytes:
            over = f"an image of {using.image_bytes} bytes, of {limits.image_bytes}"
        elif job.group is None and _hides(job, using.unseen):
            over = "a process that hides which files it holds"
        elif self._clock.now().mono_us >= job.folder_seen_us + FOLDER_EVERY_US:
            assert job.folder is not None
            deleted = using.deleted_bytes
            over = _over_its_folder(job.folder, limits, deleted) or self._over_a_volume(job)
            job.folder_seen_us = self._clock.now().mono_us
        if over and not job.is_limited:
            job.is_limited = True
            assert job.log is not None
            job.log.note(f"ended: it used {over}")
            job.run.end()

    def _end_if_due(self, job: Job) -> None:
        """Without a word from the server nothing runs longer than its lease is paid for."""
        now, run = self._clock.now(), job.run
        assert run is not None
        is_unpaid = job.until_us is not None and now.wall_us >= job.until_us
        if is_unpaid and job.stopping_since_us is None:
            job.stopping_since_us = now.mono_us
            run.ask_to_stop()
        if job.stopping_since_us is None:
            return
        if now.mono_us - job.stopping_since_us >= self._allowed.limits.grace_s * SECOND_US:
            run.end()

    # --- stopping ------------------------------------------------------------------------------

    def _stop(self, stop: Stop) -> None:
        """A lease is over: ask its job to stop, end it, and only then acknowledge."""
        job = self.jobs.get(stop.lease_id)
        if job is not None and job.run is not None and not job.is_over:
            if job.stopping_since_us is None:
                self._tell(f"{stop.lease_id} is over")
                job.stopping_since_us = self._clock.now().mono_us
                job.run.ask_to_stop()
            return
        if job is not None and job.bringing is not None:
            job.bringing.ask_to_stop()  # and acknowledged once it has
            return
        name = job.runner.name if job is not None else self._runners[0].name
        said = self._answer(stop.lease_id, "stop", stop.workload_sha256, name)
        if said is None or not said.is_final or job is None:
            return
        job.is_stopped = True
        if self._is_returned(job):
            self._clean(job)

    def _check_running(self, running: Running, is_over: bool) -> None:
        """Learn how long it is paid for; what we should have and have not, we lost."""
        job = self.jobs.get(running.lease_id)
        if job is not None:
            job.until_us, job.is_open = running.until_us, not is_over
            return
        if running.executor == self._settings.executor and not running.ended:
            body = {"executor": self._settings.executor, "outcome": "lost", "exit_code": None}
            self._tell(f"{running.lease_id} was lost: it does not run here")
            try:
                self._client.tell(running.lease_id, "ended", body)
            except Unreachable:
                return

    def _answer(self, lease_id: str, command: str, sha256: str, runner: str) -> Said | None:
        """Acknowledge a command; None: the server cannot be reached."""
        body: Mapping[str, str] = {
            "command": command,
            "workload_sha256": sha256,
            "runner": runner,
            "executor": self._settings.executor,
        }
        try:
            return self._client.tell(lease_id, "acknowledge", body)
        except Unreachable:
            return None

    def _clean(self, job: Job) -> None:
        """Forget a job that is over, with everything it left behind."""
        self.jobs.pop(job.start.lease_id, None)
        if job.bringing is not None:
            job.bringing.stop()
        if job.brought is not None:
            remove_folder(job.brought.folder)
        if job.run is not None:
            job.run.close()
        self._unmount(job)
        if job.meter is not None:
            job.meter.close()
        if job.group is not None:
            job.group.remove()
        if job.folder is not None:
            remove_folder(job.folder)
            if job.folder.exists():
                self._tell(f"{job.start.lease_id}: {job.folder} could not be removed")


def _not_there(job: Job) -> list[str]:
    """A word on a program that this node does not have, before the job fails of it."""
    name, folder = job.start.command[0] if job.start.command else "", job.folder
    if job.start.image is not None or not name or folder is None or name.startswith("/"):
        return []
    if "/" in name:
        found = folder / "work" / name
        if found.exists() and not os.access(found, os.X_OK):
            return [f"{name} may not be started as a program: chmod +x, or name its interpreter"]
        return [] if found.exists() else [f"{name} is not in the folder of the job"]
    if job.brought is not None and "PATH" in job.brought.variables:
        return []
    names = (name, "python3") if name == "python" else (name,)
    if any(shutil.which(each, path=PATH) for each in names):
        return []
    return [f"{name} is no program of this node: name another, or an image"]


def _group(lease_id: str, limits: Limits) -> Group | None:
    """A group of the kernel that holds a job to its limits; None where none can be made."""
    group = Group.make(CGROUPS, f"tallystick-{lease_id}")
    if group is not None and not group.limit(limits.memory_bytes, limits.processes + WALLS_MAX):
        group.remove()
        return None
    return group


def _hides(job: Job, unseen: frozenset[int]) -> bool:
    """Whether a process has hidden its files for several looks: while a program is exchanged for
    another it may be for one.
    """
    job.unseen = {pid: job.unseen.get(pid, 0) + 1 for pid in unseen}
    return any(looks >= UNSEEN_LOOKS_MAX for looks in job.unseen.values())


def _over_its_folder(folder: Path, limits: Limits, deleted_bytes: int = 0) -> str:
    """What of a job's folder is more than it may be; nothing, when all is well. A folder that
    cannot be looked into is too much: a job must not hide what it holds.
    """
    found_bytes, entries = deleted_bytes, 0
    closed: list[OSError] = []
    for where, folders, files in os.walk(folder, onerror=closed.append):
        entries += len(folders) + len(files)
        if entries > limits.folder_entries:
            return f"more than {limits.folder_entries} files"
        for name in files:
            try:
                found_bytes += os.lstat(os.path.join(where, name)).st_blocks * BLOCK_BYTES
            except FileNotFoundError:
                continue
    if found_bytes > limits.folder_bytes:
        return f"{found_bytes} bytes of files, of {limits.folder_bytes}"
    if any(not isinstance(error, FileNotFoundError) for error in closed):
        return "a folder that it has closed, where nothing can be counted"
    return ""
