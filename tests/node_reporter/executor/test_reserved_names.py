"""Reserved names on the network: what is asked of the system's program, and a real responder.

Row C-38: name and port are published while a lease's work runs, and move with it to another rig.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from node_reporter.__main__ import main
from node_reporter.executor.executor import Allowed
from node_reporter.executor.reserved_names import ReservedNames, ReservedPort
from node_reporter.executor.runner import Limits, RunnerUnusable
from tests.node_reporter.confined import MIB, needs_walls
from tests.node_reporter.executor.test_executor import Make, World, lease_of, world

__all__ = ["world"]

ADDRESS = "10.99.0.1"
VIEWER = ReservedPort("viewer", 8_888)
SECONDS_MAX = 30.0
PROGRAMS = ("avahi-daemon", "avahi-publish", "avahi-resolve", "avahi-browse", "dbus-daemon", "ip")


def until(holds: Callable[[], object], what: str) -> None:
    ends = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < ends, what
        time.sleep(0.05)


# --- what is asked of `avahi-publish` ----------------------------------------------------------


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named `avahi-publish` that stays; while it does, a file holds what it was asked."""
    folder = tmp_path / "told"
    (tmp_path / "bin").mkdir()
    folder.mkdir()
    program = tmp_path / "bin" / "avahi-publish"
    program.write_text(
        f'#!/bin/sh\ntrap "rm {folder}/$$; exit 0" TERM\necho "$@" > {folder}/$$\n'
        "while :; do sleep 0.05; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return folder


def asked(folder: Path) -> list[str]:
    return sorted(one.read_text().strip() for one in folder.iterdir())


WANTED = [
    f"--no-fail --address --no-reverse viewer.local {ADDRESS}",
    "--no-fail --service --host=viewer.local viewer 8888 _tallystick._tcp 8888",
]


def _allowed(*, network: bool = True) -> Allowed:
    return Allowed(limits=Limits(memory_bytes=256 * MIB, grace_s=0), network=network)


def _asks(here: World, number: str, script: str, port: int = 8_888, kind: str = "batch") -> str:
    work = {"kind": kind, "reserved_port": {"host_name": "viewer", "port": port}}
    return here.server.asks(number, script, work=work)


@needs_walls
@pytest.mark.parametrize("way", ["exits", "is killed", "is closed", "executor goes"])
def test_c_38_name_and_port_are_published_while_the_work_runs(
    world: Make, told: Path, tmp_path: Path, way: str
) -> None:
    here = world(_allowed(), names=ReservedNames(ADDRESS))
    go = tmp_path / "jobs" / lease_of("1") / "work" / "go"
    end = {"exits": "exit 0", "is killed": "kill -9 $$"}.get(way, "sleep 60")
    script = (
        f"echo $TALLYSTICK_HOST_NAME:$TALLYSTICK_PORT; until [ -e go ]; do sleep 0.05; done; {end}"
    )
    lease_id = _asks(here, "1", script)
    here.until(lambda: asked(told) == WANTED, "it is published")
    here.until(lambda: here.server.out(lease_id) == "viewer.local:8888\n", "it knows its name")
    go.touch()
    if way == "executor goes":
        here.executor.close()
    else:
        if way == "is closed":
            here.server.closes(lease_id)
        here.until_settled(lease_id)
    assert asked(told) == []


@needs_walls
def test_c_38_an_endpoint_is_reached_at_the_reserved_port(world: Make, told: Path) -> None:
    here = world(_allowed(), names=ReservedNames(ADDRESS))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = 'exec python3 -m http.server --bind 127.0.0.1 "$TALLYSTICK_PORT"'
    lease_id = _asks(here, "1", script, port=port, kind="endpoint")
    here.until(lambda: here.server.said(lease_id, "ready"), "it answers there")
    here.until(lambda: len(asked(told)) == 2, "it is published")
    other = _asks(here, "2", "true", port=port)
    here.until_settled(other)
    assert f"port {port} is another job's here" in here.server.out(other, "note")
    assert len(asked(told)) == 2


@needs_walls
def test_a_port_where_another_program_of_the_machine_answers_is_not_taken(
    world: Make, told: Path
) -> None:
    """The endpoint was ready at once and billed: the other program answered."""
    here = world(_allowed(), names=ReservedNames(ADDRESS))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        lease_id = _asks(here, "1", "sleep 60", port=port, kind="endpoint")
        here.until_settled(lease_id)
    assert "is taken on this machine by another program" in here.server.out(lease_id, "note")
    assert not here.server.said(lease_id, "ready")
    assert asked(told) == []


@needs_walls
@pytest.mark.parametrize(
    ("names", "network", "why"),
    [
        (None, True, "this node publishes no names"),
        (ReservedNames(ADDRESS), False, "this node lets jobs use no network"),
    ],
)
def test_where_no_name_is_published_the_work_s_log_says_so(
    world: Make, told: Path, names: ReservedNames | None, network: bool, why: str
) -> None:
    here = world(_allowed(network=network), names=names)
    lease_id = _asks(here, "1", "echo ran")
    here.until_settled(lease_id)
    assert here.server.out(lease_id) == "ran\n"
    assert f"viewer.local is not published: {why}" in here.server.out(lease_id, "note")
    assert asked(told) == []


@needs_walls
@pytest.mark.parametrize(("host", "port"), [("viewer", 22), ("../a", 8_888), ("-v", 8_888)])
def test_a_port_of_the_machine_and_what_is_no_name_are_not_taken(
    world: Make, told: Path, host: str, port: int
) -> None:
    here = world(_allowed(), names=ReservedNames(ADDRESS))
    work = {"reserved_port": {"host_name": host, "port": port}}
    lease_id = here.server.asks("1", "echo ran", work=work)
    here.until_settled(lease_id)
    assert here.server.said(lease_id, "decline")
    assert asked(told) == []


def test_a_name_that_another_has_is_asked_for_again(told: Path, tmp_path: Path) -> None:
    """Until the other lets go of it; what is wrong is said once."""
    program = tmp_path / "bin" / "avahi-publish"
    stays = program.read_text()
    program.write_text("#!/bin/sh\necho Host name conflict >&2\nexit 1\n")
    names, said, now_us = ReservedNames(ADDRESS), [], 0
    names.publish("lease_1", VIEWER)

    def conflict() -> bool:
        said.extend(names.look("lease_1", now_us))
        return len(said) == 2

    until(conflict, "both end")
    assert said[0] == "viewer.local is not published, and tried again: Host name conflict"
    program.write_text(stays)
    assert names.look("lease_1", now_us) == []
    assert asked(told) == [], "not at once"
    now_us = 10_000_000
    assert names.look("lease_1", now_us) == []
    until(lambda: asked(told) == WANTED, "it is published")
    names.withdraw("lease_1")
    names.withdraw("lease_1")
    assert asked(told) == []


def test_the_program_says_what_publishing_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["exec", "--mdns", "viewer.local"])
    (tmp_path / "executor.toml").write_text(
        'url = "http://127.0.0.1:1"\nnode_id = "node_12345678"\nexecutor = "e0e0e0e0e0e0e0e0"\n'
    )
    words = ["exec", "--executor-state", str(tmp_path), "--trusted", "--seconds", "1"]
    words += ["--mdns", ADDRESS]
    assert main(words) == 2
    assert "--mdns needs --network" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([*words, "--network"]) == 1
    assert "apt-get install avahi-utils" in capsys.readouterr().err
    with pytest.raises(RunnerUnusable):
        ReservedNames(ADDRESS).check()


# --- a real responder on each of two rigs ------------------------------------------------------


@dataclass
class Rig:
    """A machine of its own on a network of two: its responder, reached by its own bus."""

    address: str
    folder: Path
    first: subprocess.Popen[bytes]  # of its namespaces

    @property
    def bus(self) -> str:
        return f"unix:path={self.folder}/bus"

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        inside = ["nsenter", "--target", str(self.first.pid), "--mount", "--net", *argv]
        log = (self.folder / "log").open("ab")
        with log:
            return subprocess.Popen(inside, env=self.environment, stdout=log, stderr=log)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.bus}

    def finds(self, *argv: str) -> str:
        done = subprocess.run(
            argv, env=self.environment, check=False, capture_output=True, timeout=20
        )
        return done.stdout.decode()


BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><listen>unix:path={bus}</listen><auth>EXTERNAL</auth><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/><allow user="*"/></policy></busconfig>"""
RESPONDER = """[server]
host-name={name}
use-ipv6=no
allow-interfaces=net0
"""


def _rig(folder: Path, name: str, address: str) -> Rig:
    """Namespaces of its own, where /run is empty and there is the responder's user."""
    folder.mkdir()
    (folder / "passwd").write_text("root:x:0:0::/:/bin/sh\navahi:x:65534:65534::/:/bin/false\n")
    (folder / "group").write_text("root:x:0:\navahi:x:65533:\n")
    (folder / "bus.conf").write_text(BUS.format(bus=f"{folder}/bus"))
    (folder / "avahi.conf").write_text(RESPONDER.format(name=name))
    script = (
        f"mount -t tmpfs none /run && mount --bind {folder}/passwd /etc/passwd"
        f" && mount --bind {folder}/group /etc/group && touch {folder}/made && exec sleep 600"
    )
    first = subprocess.Popen(["unshare", "--mount", "--net", "sh", "-c", script])
    until((folder / "made").exists, "it has namespaces")
    return Rig(address, folder, first)


def _serve(rig: Rig) -> Generator[subprocess.Popen[bytes], None, None]:
    """Its network, its bus and its responder."""
    for words in (["addr", "add", f"{rig.address}/24"], ["link", "set", "up"]):
        rig.start("ip", *words, "dev", "net0").wait()
    yield rig.start(
        "dbus-daemon", f"--config-file={rig.folder}/bus.conf", "--nofork", "--nopidfile"
    )
    until((rig.folder / "bus").exists, "its bus is there")
    options = ["--no-drop-root", "--no-chroot", "--no-rlimits"]
    yield rig.start("avahi-daemon", *options, f"--file={rig.folder}/avahi.conf")
    until(lambda: "startup complete" in (rig.folder / "log").read_text(), "it answers")


@pytest.fixture
def rigs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[tuple[Rig, Rig], None, None]:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin:/sbin")
    missing = [one for one in PROGRAMS if shutil.which(one) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"a real responder needs root and {', '.join(missing) or 'its programs'}")
    first = _rig(tmp_path / "a", "rig-a", "10.99.0.1")
    second = _rig(tmp_path / "b", "rig-b", "10.99.0.2")
    words = ["ip", "link", "add", "net0", "netns", str(first.first.pid), "type", "veth"]
    words += ["peer", "name", "net0", "netns", str(second.first.pid)]
    made = subprocess.run(words, check=False, capture_output=True)
    started: list[subprocess.Popen[bytes]] = []
    try:
        if made.returncode != 0:
            pytest.skip(f"no network between two namespaces: {made.stderr.decode()}")
        for rig in (first, second):
            started.extend(_serve(rig))
        yield first, second
    finally:
        for process in (*started, first.first, second.first):
            process.kill()
            process.wait()


def test_c_38_a_real_responder_tells_it_and_the_name_moves_to_another_rig(
    rigs: tuple[Rig, Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second rig asks for the name before the first has let go of it, as a lease that moves."""
    first, second = rigs

    def keep(rig: Rig, names: ReservedNames) -> list[str]:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", rig.bus)
        return names.look("lease_1", time.monotonic_ns() // 1_000)

    def is_at(rig: Rig, by: Rig) -> bool:
        browsed = by.finds("avahi-browse", "-rtp", "_tallystick._tcp").splitlines()
        found = [one.split(";")[6:9] for one in browsed if one.startswith("=")]
        resolved = by.finds("avahi-resolve", "-4", "-n", "viewer.local").split()
        named = ["viewer.local", rig.address]
        return found == [[*named, "8888"]] and resolved == named

    here, there = ReservedNames(first.address), ReservedNames(second.address)
    here.publish("lease_1", VIEWER)
    try:
        until(lambda: keep(first, here) == [] and is_at(first, by=second), "the first rig has it")
        there.publish("lease_1", VIEWER)
        until(lambda: keep(second, there), "the second rig may not have it yet")
        assert is_at(first, by=first)
        here.withdraw("lease_1")
        until(lambda: keep(second, there) is None or is_at(second, by=first), "it has moved")
        there.withdraw("lease_1")
        until(lambda: not first.finds("avahi-resolve", "-4", "-n", "viewer.local"), "it is gone")
    finally:
        here.withdraw("lease_1")
        there.withdraw("lease_1")
