"""Three machines of the recipe for Patroni, as processes of this one: each has etcd,
Patroni and PostgreSQL.

`docs/howto/fail-over/patroni.yml` and `etcd.env` are run as they stand, but for addresses, folders
and passwords. Debian's etcd and PostgreSQL; Patroni is installed by the command of the page.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from api.backup.programs import Programs, environment
from tests.e2e.test_tutorial import blocks
from tests.processes import free_port, kill_with_children, until
from tests.servers.certificates import certify
from tests.servers.standby import Server, folder

RECIPE = Path(__file__).parents[2] / "docs" / "howto" / "fail-over"
ETCD = shutil.which("etcd") if shutil.which("etcdctl") else None
PASSWORD = "one of this test"
NAMES = ("a", "b", "c")
CLIENT, PEER = "ETCD_ADVERTISE_CLIENT_URLS", "ETCD_INITIAL_ADVERTISE_PEER_URLS"
SECONDS_MAX = 90.0


def debians_programs() -> Path | None:
    """The newest PostgreSQL that Debian installed: it has TLS, which the embedded one lacks."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return max((path.parent for path in found), key=lambda bin: int(bin.parent.name), default=None)


@dataclass
class Machine(Server):
    """One machine of the three: its PostgreSQL is started, watched and promoted by Patroni."""

    name: str = ""
    patroni: Path = Path()
    watch: int = field(default_factory=free_port)
    client: int = field(default_factory=free_port)
    peer: int = field(default_factory=free_port)
    etcd: dict[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.folder.parent

    @property
    def uri(self) -> str:
        return _address(self, options="sslmode=require")

    def start(self) -> None:
        """What its services start when the machine comes up."""
        self._run("etcd", [str(ETCD)], self.etcd)
        self._run("patroni", [str(self.patroni), str(self.root / "patroni.yml")], {})

    def kill(self) -> None:
        """SIGKILL to all three: nobody tidies up, and the leader's key stays until it expires."""
        for process in self.processes.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        with suppress(OSError, ProcessLookupError):
            kill_with_children(self.pid)
        self.processes.clear()

    def stop(self) -> None:
        self.kill()

    def says(self) -> list[dict[str, Any]]:
        """The members as its Patroni knows them; none where it does not answer."""
        url = f"http://127.0.0.1:{self.watch}/cluster"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return list(json.load(answer)["members"])
        except (OSError, ValueError):
            return []

    def _run(self, name: str, command: list[str], settings: dict[str, str]) -> None:
        with (self.root / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                self.programs.as_user(command),
                env=environment() | {"HOME": str(self.root)} | settings,
                cwd="/",
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


@dataclass
class Cluster:
    """Three machines, of which one leads; a `Database` of a stand."""

    machines: tuple[Machine, ...]
    killed: Machine | None = None

    @property
    def uri(self) -> str:
        """The libpq address of all: whichever leads answers."""
        options = "target_session_attrs=read-write&connect_timeout=2&sslmode=require"
        return _address(*self.machines, options=options)

    @property
    def pid(self) -> int:
        return self.primary.pid

    def ensure_running(self) -> None:
        """Patroni does."""

    @property
    def primary(self) -> Machine:
        return self._named(self._members("leader")[0])

    @property
    def standby(self) -> Machine:
        return self._named(self._members("quorum_standby")[0])

    def fail_over(self) -> None:
        """Kill the machine that leads; another takes its place by itself."""
        self.killed = self.primary
        self.killed.kill()

    def restore_standby(self) -> None:
        """The killed machine comes back with an empty disk: by the commands of the page."""
        lost = self.killed
        assert lost is not None
        shutil.rmtree(lost.folder)
        shutil.rmtree(lost.root / "etcd")
        (script,) = blocks(RECIPE.with_suffix(".md"), "sh etcd")
        known = {
            "ETCD": next(one for one in self.machines if one is not lost).etcd[CLIENT],
            "PEER": lost.etcd[PEER],
            "NAME": lost.name,
            "PATH": os.environ["PATH"],
            "ETCDCTL_API": "3",
        }
        subprocess.run(["bash", "-eu", "-c", script], env=known, check=True, capture_output=True)
        lost.etcd["ETCD_INITIAL_CLUSTER_STATE"] = "existing"
        self.come_back()

    def come_back(self) -> None:
        """The killed machine comes back as it was."""
        assert self.killed is not None
        self.killed.start()
        self.killed = None
        self.wait()

    def await_leader(self) -> None:
        """Until another machine than the killed one leads."""
        gone = [] if self.killed is None else [self.killed.name]
        until(lambda: self._members("leader") not in ([], gone), SECONDS_MAX)

    def wait(self) -> None:
        """Until one leads and both others are in the quorum."""
        self.await_leader()
        others = len(NAMES) - 1
        until(lambda: len(self._members("quorum_standby")) == others, SECONDS_MAX)

    def _members(self, role: str) -> list[str]:
        for machine in self.machines:
            if members := machine.says():
                return [
                    one["name"]
                    for one in members
                    if one["role"] == role and one["state"] in ("running", "streaming")
                ]
        return []

    def _named(self, name: str) -> Machine:
        (found,) = (machine for machine in self.machines if machine.name == name)
        return found


@contextmanager
def cluster(install: Callable[[Path], Path], programs: Path) -> Generator[Cluster, None, None]:
    """Three machines of the recipe; `install` puts Patroni into a folder and says where it is."""
    with folder() as root:
        patroni = install(root / "patroni")
        machines = tuple(_machine(root / name, name, patroni, programs) for name in NAMES)
        made = Cluster(machines)
        try:
            for machine in machines:
                _write_recipe(machine, machines)
                machine.etcd = _etcd_settings(machine, machines)
                machine.programs.give(machine.root)
            for machine in machines:
                machine.start()
            made.wait()
            yield made
        finally:
            for machine in machines:
                machine.kill()


def _machine(root: Path, name: str, patroni: Path, programs: Path) -> Machine:
    root.mkdir()
    certify(root)
    return Machine(
        folder=root / "data", programs=Programs(programs, durable=False), name=name, patroni=patroni
    )


def _write_recipe(machine: Machine, machines: tuple[Machine, ...]) -> None:
    """The recipe of one machine, with what differs on this one."""
    recipe = yaml.safe_load((RECIPE / "patroni.yml").read_text(encoding="utf-8"))
    at, watch = f"127.0.0.1:{machine.port}", f"127.0.0.1:{machine.watch}"
    recipe["name"] = machine.name
    recipe["restapi"] |= {"listen": watch, "connect_address": watch}
    recipe["etcd3"]["hosts"] = [f"127.0.0.1:{one.client}" for one in machines]
    server = recipe["postgresql"]
    server |= {
        "listen": at,
        "connect_address": at,
        "data_dir": str(machine.folder),
        "bin_dir": str(machine.programs.folder),
        "pgpass": str(machine.root / "pgpass"),
    }
    server["parameters"] |= {
        "ssl_cert_file": str(machine.root / "certificate.pem"),
        "ssl_key_file": str(machine.root / "key.pem"),
        "unix_socket_directories": str(machine.root),
        "shared_buffers": "32MB",
    }
    for login in server["authentication"].values():
        login["password"] = PASSWORD
    server["pg_hba"] = [line.replace("10.0.3.0/24", "127.0.0.0/8") for line in server["pg_hba"]]
    (machine.root / "patroni.yml").write_text(yaml.safe_dump(recipe), encoding="utf-8")


def _etcd_settings(machine: Machine, machines: tuple[Machine, ...]) -> dict[str, str]:
    """`etcd.env` of the recipe, with addresses of this machine."""
    lines = (RECIPE / "etcd.env").read_text(encoding="utf-8").splitlines()
    found = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    client = f"http://127.0.0.1:{machine.client}"
    peers = {one.name: f"http://127.0.0.1:{one.peer}" for one in machines}
    changed = {
        "ETCD_NAME": machine.name,
        "ETCD_DATA_DIR": str(machine.root / "etcd"),
        "ETCD_LISTEN_CLIENT_URLS": client,
        CLIENT: client,
        "ETCD_LISTEN_PEER_URLS": peers[machine.name],
        PEER: peers[machine.name],
        "ETCD_INITIAL_CLUSTER": ",".join(f"{name}={peer}" for name, peer in peers.items()),
    }
    assert changed.keys() <= found.keys()
    return found | changed


def _address(*machines: Machine, options: str) -> str:
    ports = ",".join(f"127.0.0.1:{machine.port}" for machine in machines)
    return f"postgresql://postgres:{quote(PASSWORD)}@{ports}/postgres?{options}"
