"""A job as a container: where it names an image, and Docker is there.

What a job may do is in the arguments alone: no network unless granted, no capability, a read-only
root, limits for memory, processes and time, the devices of its lease, and variables by name, so
that no value is in a command line that others can read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from node_reporter.executor import launch, nameless
from node_reporter.executor.runner import Grant, NotStarted, RunnerUnusable, Using
from node_reporter.executor.sandbox import JobUser, close_outputs
from node_reporter.executor.usage import groups_of

CHECK_SECONDS_MAX = 10
END_SECONDS_MAX = 30
LABEL = "tallystick.lease"
_INSPECTED = re.compile(r"([1-9][0-9]{0,9}) ([0-9a-f]{64})")
CLIENTS_OWN = ("PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR")
"""Variables the docker client needs itself; an image brings its own PATH."""


def arguments(docker: str, grant: Grant, user: JobUser | None = None) -> list[str]:
    """`docker run` for a grant, as the user whose the folders of jobs are."""
    argv = [docker, "run", "--rm", "--init", "--name", name_of(grant.lease_id)]
    argv += ["--label", f"{LABEL}={grant.lease_id}", "--pull", "missing", "--log-driver", "none"]
    argv += ["--network", "bridge" if grant.network else "none", *_confined(grant, user)]
    argv += ["--volume", f"{grant.folder / 'work'}:/work", "--workdir", "/work"]
    if grant.network and grant.port is not None:
        argv += ["--publish", f"{grant.port}:{grant.port}"]
    for path in grant.read_only:
        argv += ["--volume", f"{path}:{path}:ro"]
    for volume in grant.volumes:
        mode = ":ro" if volume.read_only else ""
        argv += ["--volume", f"{volume.folder}:{volume.path}{mode}"]
    if grant.device_files:
        argv += ["--gpus", '"device={}"'.format(",".join(grant.device_ids))]
    argv += ["--env", "HOME=/work"]
    for variable in sorted(grant.environment.keys() - set(CLIENTS_OWN)):
        argv += ["--env", variable]
    if grant.variables:
        argv += ["--env-file", "/dev/stdin"]
    assert grant.image is not None
    return [*argv, "--", grant.image, *grant.command]


def _told_variables(variables: Mapping[str, str]) -> IO[bytes] | None:
    """What the client reads on its standard input: the renter's variables, in a file of memory that
    has no name. Some of them are secrets, which no disk keeps; and they are not in the client's own
    environment, where LD_PRELOAD would run a renter's code outside of the container.

    Raises NotStarted: a value of several lines has no form in such a file.
    """
    if not variables:
        return None
    if any("\n" in value or "\r" in value for value in variables.values()):
        raise NotStarted("a variable of several lines cannot be given to a container")
    told = os.fdopen(os.memfd_create("variables"), "w+b")
    told.writelines(f"{name}={value}\n".encode() for name, value in variables.items())
    told.seek(0)
    return told


def _confined(grant: Grant, user: JobUser | None) -> list[str]:
    """What the container may not do, and the limits of what it may."""
    uid, gid = (os.getuid(), os.getgid()) if user is None else (user.uid, user.gid)
    limits = grant.limits
    memory = str(limits.memory_bytes)
    argv = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    argv += ["--user", f"{uid or 65_534}:{gid or 65_534}"]
    argv += ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes)]
    argv += ["--ulimit", f"nofile={limits.open_files}"]
    argv += ["--ulimit", f"fsize={limits.folder_bytes}", "--ulimit", "core=0"]
    if limits.cpu_seconds is not None:
        argv += ["--ulimit", f"cpu={limits.cpu_seconds}"]
    argv += ["--tmpfs", f"/tmp:size={limits.memory_bytes // 4}"]  # noqa: S108
    return [*argv, "--stop-timeout", str(limits.grace_s)]


def name_of(lease_id: str) -> str:
    return f"tallystick-{lease_id}"


@dataclass
class DockerRun:
    """A container in the foreground of one docker client."""

    docker: str
    name: str
    process: subprocess.Popen[bytes]
    image: str
    folder: Path
    is_pulled: bool  # for this job: the machine did not have the image before
    _found: tuple[int, str] | None = None
    _image_bytes: int | None = None

    @property
    def outputs(self) -> tuple[int, int]:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        return self.process.stdout.fileno(), self.process.stderr.fileno()

    @property
    def pid(self) -> int | None:
        """The container is its server's child, not this client's: the server is asked until it says
        which process that is. On another machine the number means nothing here (`Group.of`).
        """
        found = self._inspected()
        return None if found is None else found[0]

    @property
    def container(self) -> str | None:
        found = self._inspected()
        return None if found is None else found[1]

    def _inspected(self) -> tuple[int, str] | None:
        """Process and id of the container, once it runs."""
        if self._found is None:
            words = [self.docker, "inspect", "--format", "{{.State.Pid}} {{.Id}}", self.name]
            said = _INSPECTED.fullmatch(_asked(words) or "")
            if said is not None:
                self._found = int(said[1]), said[2]
        return self._found

    def poll(self) -> int | None:
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def ask_to_stop(self) -> None:
        self._tell("kill", "--signal", "TERM", self.name)

    def end(self) -> None:
        self._tell("rm", "--force", self.name)
        self.process.kill()

    def using(self) -> Using:
        """Docker holds the limits itself, but for what it pulled and for deleted files of /work."""
        if self._image_bytes is None and self.is_pulled and self._inspected() is not None:
            words = [self.docker, "image", "inspect", "--format", "{{.Size}}", "--", self.image]
            told = _asked(words)
            self._image_bytes = int(told) if told is not None and told.isdecimal() else 0
        held = nameless.held(self._processes(), self.folder.stat().st_dev)
        return Using(deleted_bytes=held.disk_bytes, image_bytes=self._image_bytes or 0)

    def _processes(self) -> list[int]:
        """Of the container, where it runs on this machine."""
        found = self._inspected()
        if found is None or not groups_of(*found):
            return []
        return [found[0], *launch.descendants(found[0])]

    def close(self) -> None:
        """What was pulled for this job goes with it, unless another job has the image too."""
        close_outputs(self.process)
        if self.is_pulled:
            self._tell("image", "rm", "--", self.image)

    def _tell(self, *words: str) -> None:
        subprocess.run(  # noqa: S603
            [self.docker, *words],
            check=False,
            timeout=END_SECONDS_MAX,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _asked(words: list[str], environment: Mapping[str, str] | None = None) -> str | None:
    """What the client says; None where it fails or takes too long."""
    try:
        told = subprocess.run(  # noqa: S603
            words, check=False, capture_output=True, timeout=CHECK_SECONDS_MAX, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if told.returncode else told.stdout.decode(errors="replace").strip()


class DockerRunner:
    """Work that names an image."""

    name = "docker"

    def __init__(self, environment: Mapping[str, str], user: JobUser | None = None) -> None:
        """`environment`: of the docker client: where its server is, and nothing else. `user`: of
        jobs; None: ours.
        """
        self._user = user
        self._environment = {name: environment[name] for name in CLIENTS_OWN if name in environment}

    def takes(self, image: str | None) -> bool:
        return image is not None

    def check(self) -> None:
        docker = shutil.which("docker")
        if docker is None:
            raise RunnerUnusable("docker is not installed")
        try:
            asked = subprocess.run(  # noqa: S603
                [docker, "version", "--format", "{{.Server.Version}}"],
                check=False,
                capture_output=True,
                timeout=CHECK_SECONDS_MAX,
                env=self._environment,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RunnerUnusable(f"docker does not answer: {error}") from error
        if asked.returncode != 0:
            said = asked.stderr.decode(errors="replace").strip().splitlines()
            raise RunnerUnusable(f"docker: {said[-1] if said else 'no server'}")

    def forget(self, lease_id: str) -> None:
        """A container is its server's child: it outlives an executor that was killed."""
        docker = shutil.which("docker")
        assert docker is not None, "it was checked"
        try:
            done = subprocess.run(  # noqa: S603
                [docker, "rm", "--force", name_of(lease_id)],
                check=False,
                capture_output=True,
                timeout=END_SECONDS_MAX,
                env=self._environment,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotStarted(f"docker does not answer: {error}") from error
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode != 0 and "no such" not in said.lower():
            raise NotStarted(f"docker: {said}")

    def start(self, grant: Grant) -> DockerRun:
        docker = shutil.which("docker")
        if docker is None:
            raise NotStarted("docker is not installed")
        assert grant.image is not None
        words = [docker, "image", "inspect", "--format", "{{.Id}}", "--", grant.image]
        is_pulled = _asked(words, self._environment) is None
        told = _told_variables(grant.variables)
        # The client passes on variables that are named; its own come last, so none is replaced.
        environment = {**grant.environment, **self._environment}
        try:
            process = subprocess.Popen(  # noqa: S603
                arguments(docker, grant, self._user),
                stdin=subprocess.DEVNULL if told is None else told,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise NotStarted(str(error)) from error
        finally:
            if told is not None:
                told.close()
        return DockerRun(
            docker, name_of(grant.lease_id), process, grant.image, grant.folder, is_pulled
        )
