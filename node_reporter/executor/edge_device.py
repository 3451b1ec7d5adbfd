"""An edge device runs the one model that was deployed to it, always on, in a container. Row C-34.

    begins        <=>  the server tells a deployment to run in this boot, and no container of this
                       boot and this deployment is there
    begins again   =>  the device was rebooted, or something was deployed
    exited         =>  told with its exit code, and not begun again

What was begun stands in Docker alone, as labels of the one container: boot and deployment. So
this program may be stopped and started, and what runs goes on. While the server cannot be reached,
it goes on too; at a boot without the server nothing begins. Never run on a Jetson.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import Any

from domain.paths import confined_rule
from node_reporter.executor.datastores import Datastores, StoreMount
from node_reporter.executor.docker import CLIENTS_OWN
from node_reporter.executor.runner import Bound, NotStarted
from node_reporter.executor.work import (
    WorkUnreadable,
    is_variable,
    told_items,
    told_stores,
    told_text,
    told_texts,
    told_whole,
)
from node_reporter.reports.client import Transport, Unreachable, parsed

ASK_SECONDS_MAX = 30
PULL_SECONDS_MAX = 3_600
STOP_S = 10
REFUSED = (400, 404, 409, 422)
REMOVED = "device_unknown"
MODEL = "/model"
DEVICE_LABEL, BOOT_LABEL = "tallystick.edge", "tallystick.boot"
DEPLOYMENT_LABEL = "tallystick.deployment"
TEGRA = "/dev/nvmap"
"""Of a Jetson: its accelerator is reached through the runtime that NVIDIA brings along."""
VIDEO = ("/dev/video*", "/dev/media*", "/dev/v4l2-*")
_STATE = re.compile(r"(\w+) (\d+) ([0-9A-Za-z-]+) (\d+)")
_DAEMON, _NO_PROGRAM = 125, (126, 127)
_MACHINES_OWN = re.compile(r"(LD_|DOCKER_|GCONV|GLIBC|GO|SSL_).*|.*_PROXY", re.IGNORECASE)
"""Variables by which the docker client or its loader would do something else, as root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeWork:
    """A deployment to run."""

    deployment: int
    image: str
    model: str
    command: tuple[str, ...]
    checkpoints: tuple[str, ...]
    keys: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    stores: tuple[StoreMount, ...] = ()

    @property
    def variables(self) -> dict[str, str]:
        """What the command finds, beside what its owner set."""
        names = [("model", self.model)]
        names += [("checkpoint", one) for one in self.checkpoints]
        names += [("key", one) for one in self.keys]
        told = [{"kind": kind, "name": name} for kind, name in names]
        return {**self.environment, "TALLYSTICK_REFERENCES": json.dumps(told)}


def parse_work(document: Any) -> EdgeWork | None:
    """The answer of `GET /v1/edge-devices/{id}/work`. Raises WorkUnreadable."""
    try:
        run = document.get("run")
        if run is None:
            return None
        work, mount = run["work"], run.get("mount")
        return EdgeWork(
            deployment=told_whole(run["deployment"]),
            image=told_text(work["image"]),
            model=told_text(work["model"]),
            command=told_texts(work["command"]),
            checkpoints=told_texts(work["checkpoints"]),
            keys=told_texts(work["keys"]),
            environment={
                _variable(one["name"]): told_text(one["value"])
                for one in told_items(run["environment"])
            },
            stores=told_stores(None if mount is None else [mount]),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise WorkUnreadable(repr(error)) from error


def _variable(value: Any) -> str:
    if type(value) is not str or not is_variable(value):
        raise WorkUnreadable("needed the name of a variable")
    return value


class EdgeClient:
    """An edge device before its server, with a key of its owner's account."""

    def __init__(self, device_id: str, key: str, transport: Transport) -> None:
        self._path = f"/v1/edge-devices/{device_id}"
        self._transport = transport
        self._headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Authorization": f"Bearer {key}",
        }

    def work(self, boot_id: str) -> EdgeWork | None:
        """None: nothing, also of a device that was removed. Raises Unreachable, WorkUnreadable.

        Only our server's word for a removed device ends what runs: 404 is also the answer of a
        proxy with no server behind it, and of a datastore that was removed.
        """
        path = f"{self._path}/work?boot_id={boot_id}"
        answer = self._transport.request("GET", path, self._headers, None)
        if answer.status in (401, 403):
            raise WorkUnreadable("the key is not good here")
        if answer.status == 404 and _code_of(answer.body) == REMOVED:
            return None
        if answer.status != 200:
            raise Unreachable(f"answered {answer.status}")
        try:
            return parse_work(parsed(answer.body))
        except ValueError as error:
            raise WorkUnreadable(str(error)) from error

    def tell(self, what: str, told: Mapping[str, Any]) -> None:
        """`report` or `inference`. Raises Unreachable, also where it was not taken for now."""
        body = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
        path = f"{self._path}/{what}"
        key = sha256(path.encode() + b"\0" + body).hexdigest()[:32]
        headers = {**self._headers, "Idempotency-Key": key}
        answer = self._transport.request("POST", path, headers, body)
        if not (200 <= answer.status < 300 or answer.status in REFUSED):
            raise Unreachable(f"answered {answer.status}")


def _code_of(body: bytes) -> object:
    """Which problem an answer tells of; None: it is no problem of our server."""
    try:
        document = parsed(body)
    except ValueError:
        return None
    return document.get("code") if isinstance(document, dict) else None


@dataclass(frozen=True, slots=True)
class Container:
    """The one container of the device, as Docker knows it."""

    is_running: bool
    exit_code: int
    boot_id: str
    deployment: int


class Containers:
    """What a device asks of the docker client. Raises NotStarted where that does not answer."""

    def __init__(self, device_id: str, environment: Mapping[str, str]) -> None:
        self._name = f"tallystick-{device_id}"
        self._device_id = device_id
        self._environment = {name: environment[name] for name in CLIENTS_OWN if name in environment}

    def find(self) -> Container | None:
        labels = [f'{{{{index .Config.Labels "{one}"}}}}' for one in (BOOT_LABEL, DEPLOYMENT_LABEL)]
        words = " ".join(["{{.State.Status}} {{.State.ExitCode}}", *labels])
        code, said = self._ask("inspect", "--type", "container", "--format", words, self._name)
        if code != 0:
            if "no such" in said.lower():
                return None
            raise NotStarted(said)
        found = _STATE.fullmatch(said)
        if found is None:
            raise NotStarted(f"{self._name} is no container of ours")
        if (found[1], found[2]) == (
            "created",
            "0",
        ):  # made, and never begun: we were ended meanwhile
            return Container(False, 0, "", 0)
        is_running = found[1] not in ("exited", "dead", "created")
        return Container(is_running, int(found[2]), found[3], int(found[4]))

    def start(self, work: EdgeWork, boot_id: str, bound: tuple[Bound, ...]) -> int | None:
        """Its exit code, where the image has no such program; None: it runs. Raises NotStarted."""
        argv = ["run", "--detach", "--init", "--name", self._name, "--restart", "no"]
        argv += [
            "--label",
            f"{DEVICE_LABEL}={self._device_id}",
            "--label",
            f"{BOOT_LABEL}={boot_id}",
        ]
        argv += ["--label", f"{DEPLOYMENT_LABEL}={work.deployment}", "--pull", "missing"]
        argv += ["--log-driver", "local", "--log-opt", "max-size=10m"]
        argv += ["--security-opt", "no-new-privileges", *board_arguments()]
        for one in bound:
            argv += ["--volume", f"{one.folder}:{one.path}{':ro' if one.read_only else ''}"]
            argv += ["--workdir", MODEL] if one.path == MODEL else []
        told, by_name = _handed_over(work.variables)
        argv += ["--env-file", "/dev/stdin"]
        for name in sorted(by_name):
            argv += ["--env", name]
        argv += ["--", work.image, *work.command]
        code, said = self._ask(*argv, seconds=PULL_SECONDS_MAX, told=told, variables=by_name)
        if code in _NO_PROGRAM:
            return code
        if code != 0:
            self.remove()
            raise NotStarted(said)
        return None

    def stop(self) -> None:
        self._ask("stop", "--time", str(STOP_S), self._name, seconds=ASK_SECONDS_MAX + STOP_S)

    def remove(self) -> None:
        self._ask("rm", "--force", self._name)

    def _ask(
        self,
        *words: str,
        seconds: int = ASK_SECONDS_MAX,
        told: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """The code and the last line; its own variables come last, so that none is replaced. `told`
        is on its standard input.
        """
        try:
            done = subprocess.run(  # noqa: S603
                ["docker", *words],  # noqa: S607
                check=False,
                capture_output=True,
                timeout=seconds,
                input=told.encode(),
                env={**(variables or {}), **self._environment},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotStarted(f"docker: {error}") from error
        printed = done.stdout if done.returncode == 0 else done.stderr
        lines = printed.decode(errors="replace").strip().splitlines()
        return done.returncode, lines[-1] if lines else f"docker {words[0]}: {done.returncode}"


def _handed_over(variables: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """A file of variables, and those of several lines, which such a file cannot hold: they go
    through the client's own environment. So the owner of a configuration does not tell the client
    itself what to load (`LD_PRELOAD`) or whom to ask. Raises NotStarted.
    """
    lines, by_name = [], {}
    for name, value in sorted(variables.items()):
        if name in CLIENTS_OWN:  # the image brings its own
            continue
        if not {"\n", "\r"} & set(value):
            lines.append(f"{name}={value}\n")
        elif _MACHINES_OWN.fullmatch(name) is None:
            by_name[name] = value
        else:
            raise NotStarted(f"the variable {name} cannot have several lines")
    return "".join(lines), by_name


def board_arguments() -> list[str]:
    """The accelerator of the board, its video and its media devices, where they are."""
    argv = ["--runtime", "nvidia"] if os.path.exists(TEGRA) else []
    for path in sorted(one for pattern in VIDEO for one in glob(pattern)):
        argv += ["--device", path]
    return argv


@dataclass(slots=True, kw_only=True)
class EdgeDevice:
    """Everything that one device knows while this program runs. `models`: where code is kept."""

    device_id: str
    boot_id: str
    client: EdgeClient
    containers: Containers
    models: Path
    stores: Datastores | None = None
    tell: Callable[[str], None] = lambda _line: None
    _is_reported: bool = False
    _told: tuple[int, str] | None = None

    def step(self) -> None:
        """Ask the server once, look at the container once."""
        try:
            if not self._is_reported:
                self.client.tell("report", {})
                self._is_reported = True
            work = self.client.work(self.boot_id)
            found = self.containers.find()
            if work is None:
                self._end(found)
            elif found is None or (found.boot_id, found.deployment) != (
                self.boot_id,
                work.deployment,
            ):
                self._begin(work, found)
            else:
                self._say(work, None if found.is_running else found.exit_code)
        except Unreachable as error:
            self.tell(f"the server cannot be reached: {error}")
        except (WorkUnreadable, NotStarted, OSError) as error:
            self.tell(str(error))

    def _end(self, found: Container | None) -> None:
        """Nothing is to run. What has exited is kept, with what it printed, until the next one."""
        if found is not None and found.is_running:
            self.tell("nothing is to run: it is stopped")
            self.containers.stop()
        if self.stores is not None:
            self.stores.close(self.device_id)

    def _begin(self, work: EdgeWork, before: Container | None) -> None:
        """Raises NotStarted, OSError, Unreachable."""
        if before is not None:
            self.containers.stop()
            self.containers.remove()
        bound = self._bound(work)
        code = self.containers.start(work, self.boot_id, bound)
        self.tell(
            f"deployment {work.deployment} was begun" if code is None else "it has no program"
        )
        self._say(work, code)

    def _bound(self, work: EdgeWork) -> tuple[Bound, ...]:
        """The root folder of the model's code where it is kept here, and the datastore's folder.
        Raises NotStarted, OSError.
        """
        bound: tuple[Bound, ...] = ()
        if confined_rule(work.model) is None and (self.models / work.model).is_dir():
            code = (self.models / work.model).resolve()
            if not code.is_relative_to(self.models.resolve()):
                raise NotStarted(f"the model {work.model} leads out of {self.models}")
            bound = (Bound(code, MODEL, True),)
        if work.stores and self.stores is None:
            raise NotStarted("this device mounts no datastores")
        if self.stores is not None:
            self.stores.close(self.device_id)
            bound += self.stores.open(self.device_id, work.stores)
        return bound

    def _say(self, work: EdgeWork, exit_code: int | None) -> None:
        """How it goes, once. Raises Unreachable."""
        status = "running" if exit_code is None else "exited"
        if self._told == (work.deployment, status):
            return
        told: dict[str, Any] = {"deployment": work.deployment, "boot_id": self.boot_id}
        told |= {} if exit_code is None else {"exit_code": exit_code}
        self.client.tell("inference", {**told, "status": status})
        self._told = (work.deployment, status)
        if exit_code is not None:
            self.tell(f"deployment {work.deployment} exited with {exit_code}")
