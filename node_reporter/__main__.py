"""`tallystick-node`: join, run, rotate, doctor, install; enroll, exec. Small: argparse alone.

Exit codes: 0 done, 1 the answer is no, 2 wrong usage or unreadable input, 75 start me again,
78 only a person can go on from here. Results on standard output, everything else on standard error.
"""

from __future__ import annotations

import argparse
import json
import signal
import sqlite3
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any

from node_reporter import (
    config,
    doctor,
    executor_program,
    install_program,
    inventory,
    rotation,
    server_view,
)
from node_reporter.agent import Reporter
from node_reporter.client import HttpTransport, Unreachable, UrlRefused, printable
from node_reporter.clock import Clock, SystemClock
from node_reporter.config import ConfigUnreadable, NotJoined, Settings, StateFolder
from node_reporter.delivery import EXIT_RESTART, EXIT_STOPPED, Stopped
from node_reporter.executor_program import EnrollRefused
from node_reporter.executor_state import AlreadyRuns
from node_reporter.gpus import Backend, MonitorBlind
from node_reporter.identity import KeyUnreadable, fingerprint, key_id, public_key
from node_reporter.install import InstallRefused
from node_reporter.joining import JoinRefused, join
from node_reporter.loop import Loop
from node_reporter.reports import AGENT
from node_reporter.rotation import RotationRefused
from node_reporter.runner import RunnerUnusable
from node_reporter.sd_notify import BeatingTransport, Notifier
from node_reporter.server_view import ServerView
from node_reporter.simulated import SimulatedGpus
from node_reporter.spool import SpoolUnreadable

EXIT_NO = 1
EXIT_USAGE = 2


class AlreadyRunning(Exception):
    """Another agent works on this state folder."""


def main(arguments: list[str] | None = None) -> int:
    """Entry point of `tallystick-node`."""
    assert __debug__, "run without -O: the reporter's invariants are assertions"
    options = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except (ConfigUnreadable, KeyUnreadable, NotJoined, UrlRefused) as error:
        return _say(f"tallystick-node: {error}", EXIT_USAGE)
    except (
        JoinRefused,
        EnrollRefused,
        InstallRefused,
        RotationRefused,
        RunnerUnusable,
        Unreachable,
        AlreadyRunning,
        AlreadyRuns,
    ) as error:
        return _say(f"tallystick-node: {error}", EXIT_NO)
    except (Stopped, SpoolUnreadable) as error:
        return _say(f"tallystick-node: stopped, nothing was deleted: {error}", EXIT_STOPPED)
    except (MonitorBlind, sqlite3.Error, OSError) as error:
        return _say(f"tallystick-node: {error}; start again", EXIT_RESTART)


def _run(options: argparse.Namespace) -> int:
    folder = config.state_folder(options.state, config.process_environment())
    clock = SystemClock()
    backend = _backend(options, clock)
    with _only_one(folder):
        rotation.settle(folder)
        settings = config.load(folder, config.process_environment(), options.url)
        notifier = Notifier(config.process_environment())
        transport = HttpTransport(settings.url, allow_http=options.allow_http)
        reporter = Reporter(
            settings.node_id,
            settings.signing_key,
            backend,
            clock,
            settings.spool,
            BeatingTransport(transport, notifier),
            node_key=settings.node_key,
            tick_us=options.tick * 1_000,
            interval_us=options.interval * 1_000_000,
            tell=_tell,
            lease_files=folder.lease_files,
        )
        loop = Loop(reporter, backend, clock, notifier.beat)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: loop.stop())
        _tell(f"metering {len(reporter.devices)} device(s) as {settings.node_id}")
        note = inventory.driver_note(reporter.devices)
        if note is not None:
            _tell(note)
        with _page(options, reporter, backend, clock, folder, settings):
            try:
                return loop.run(options.seconds)
            finally:
                notifier.stopping()


def _page(
    options: argparse.Namespace,
    reporter: Reporter,
    backend: Backend,
    clock: Clock,
    folder: StateFolder,
    settings: Settings,
) -> AbstractContextManager[None]:
    if not options.page:
        return nullcontext()
    # A server of pages is not small: only who asks for one pays for it.
    from node_reporter import page_program

    return page_program.shown(
        options.page,
        reporter,
        backend.vendor,
        clock,
        folder,
        settings,
        allow_http=options.allow_http,
        tell=_tell,
    )


def _join(options: argparse.Namespace) -> int:
    folder = config.state_folder(options.state, config.process_environment())
    if folder.node_key.exists():
        return _say(f"tallystick-node: {folder.path} holds a node already", EXIT_NO)
    key = folder.signing_key_or_new()
    public = public_key(key)
    _tell(f"fingerprint of this node's key: {fingerprint(public)}")
    backend = _backend(options, SystemClock())
    backend.open()
    specs = inventory.specs(backend.inventory(), backend.vendor)
    backend.close()
    transport = HttpTransport(options.url, allow_http=options.allow_http)
    with closing(transport):
        joined = join(transport, options.code, key, specs, AGENT, options.client)
    folder.remember(url=options.url, node_id=joined.node_id, node_key=joined.node_key)
    result = {
        "node_id": joined.node_id,
        "fingerprint": fingerprint(public),
        "devices": len(specs["devices"]),
        "state": str(folder.path),
    }
    if options.json:
        _print(json.dumps(result))
    else:
        _print(f"{joined.node_id} asks to join with {len(specs['devices'])} device(s).")
        _print("Compare the fingerprint where you got the code, and confirm it there.")
    return 0


def _rotate(options: argparse.Namespace) -> int:
    folder = config.state_folder(options.state, config.process_environment())
    with _only_one(folder):
        rotation.settle(folder)
        settings = config.load(folder, config.process_environment(), options.url)
        transport = HttpTransport(settings.url, allow_http=options.allow_http)
        with closing(transport):
            key, is_told = rotation.rotate(folder, settings, transport, SystemClock())
    result = {
        "node_id": settings.node_id,
        "fingerprint": fingerprint(public_key(key)),
        "key_id": key_id(public_key(key)),
        "told": is_told,
    }
    if options.json:
        _print(json.dumps(result))
    else:
        _print(f"{settings.node_id} signs with a new key: {result['fingerprint']}")
        if not is_told:
            _print("The server did not answer: it is told when the node runs again.")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    folder = config.state_folder(options.state, config.process_environment())
    backend = _backend(options, SystemClock())
    result = doctor.examine(backend.vendor, doctor.probe(backend), folder, _seen(options, folder))
    if options.json:
        _print(json.dumps(result))
    else:
        for line in doctor.lines(result):
            _print(line)
    return 0 if result["ok"] else EXIT_NO


def _seen(options: argparse.Namespace, folder: StateFolder) -> ServerView | None:
    """What the server says of this node; None where it has joined none."""
    try:
        settings = config.load(folder, config.process_environment(), options.url)
    except (NotJoined, KeyUnreadable):
        return None
    with closing(HttpTransport(settings.url, allow_http=options.allow_http)) as transport:
        return server_view.look(settings, transport, SystemClock())


def _backend(options: argparse.Namespace, clock: Clock) -> Backend:
    if options.backend == "sim":
        return SimulatedGpus(
            clock,
            count=options.sim_gpus,
            seed=options.sim_seed,
            model=options.sim_model,
            maker=options.sim_vendor,
            kind=options.sim_kind,
            licence=options.sim_licence,
        )
    try:
        from node_reporter.nvml import NvmlGpus
    except ImportError as error:
        raise ConfigUnreadable("nvidia-ml-py is missing: install tallystick[node]") from error
    return NvmlGpus()


@contextmanager
def _only_one(folder: StateFolder) -> Generator[None, None, None]:
    """Two agents on one spool would sign two chains. Raises AlreadyRunning, NotJoined."""
    if not folder.path.is_dir():
        raise NotJoined(f"{folder.path} holds no node: run `tallystick-node join URL CODE`")
    try:
        import fcntl
    except ImportError:
        # Windows: SQLite's own lock still stops the second writer.
        yield
        return
    with folder.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning(f"another agent works in {folder.path}") from error
        yield


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tallystick-node",
        description="Meters this machine's GPUs and signs what it saw.",
        epilog="example: tallystick-node join https://tallystick.example 7Q4K-9XWD",
    )
    parser.add_argument("--version", action="version", version=AGENT)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _join_parser(commands)
    _run_parser(commands)
    _rotate_parser(commands)
    _doctor_parser(commands)
    install_program.add_parsers(commands, _common)
    executor_program.add_parsers(commands, _between)
    return parser


def _join_parser(commands: Any) -> None:
    command = commands.add_parser(
        "join",
        help="ask a server to become one of its nodes",
        epilog="example: tallystick-node join https://tallystick.example 7Q4K-9XWD --json",
    )
    command.add_argument("url", metavar="URL", help="address of the server")
    command.add_argument("code", metavar="CODE", help="single-use code shown by `Add device`")
    _common(command)
    command.add_argument("--client", metavar="ACCOUNT", help="compute client that brings this node")
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(command=_join)


def _run_parser(commands: Any) -> None:
    command = commands.add_parser(
        "run",
        help="meter until stopped",
        epilog="example: tallystick-node run --backend sim --sim-gpus 2",
    )
    _common(command)
    command.add_argument("--url", help="server, when not the one joined")
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument("--tick", type=_between(50, 60_000), default=1_000, metavar="MS",
                         help="milliseconds between polls, default 1000")  # fmt: skip
    command.add_argument("--interval", type=_between(1, 3_600), default=60, metavar="S",
                         help="seconds between reports, default 60")  # fmt: skip
    command.add_argument("--seconds", type=_between(1, 10**9), help="stop after this long")
    command.add_argument("--page", type=_between(0, 65_535), default=0, metavar="PORT",
                         help="show this node's state at http://127.0.0.1:PORT")  # fmt: skip
    command.set_defaults(command=_run)


def _rotate_parser(commands: Any) -> None:
    command = commands.add_parser(
        "rotate",
        help="sign with a new key from now on; the agent must not be running",
        epilog="example: tallystick-node rotate --json",
    )
    command.add_argument("--state", metavar="DIR", help="folder of this node's keys and spool")
    command.add_argument("--url", help="server, when not the one joined")
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(command=_rotate)


def _doctor_parser(commands: Any) -> None:
    command = commands.add_parser(
        "doctor",
        help="say what this machine can tell, what it cannot, and what to do",
        epilog="example: tallystick-node doctor --json",
    )
    _common(command)
    command.add_argument("--url", help="server, when not the one joined")
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(command=_doctor)


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--state", metavar="DIR", help="folder of this node's keys and spool")
    command.add_argument("--backend", choices=config.BACKENDS, default="nvml")
    command.add_argument("--sim-gpus", type=_between(1, 64), default=1, metavar="N",
                         help="devices of the backend sim, default 1")  # fmt: skip
    command.add_argument("--sim-seed", default="0", help="makes the UUIDs of the backend sim")
    command.add_argument("--sim-model", default="NVIDIA H200", help="model of the backend sim")
    command.add_argument("--sim-vendor", metavar="NAME", help="who made the devices of sim")
    command.add_argument("--sim-kind", metavar="KIND", help="gpu, ipu or any other kind")
    command.add_argument("--sim-licence", metavar="LICENCE",
                         help="the devices of sim are seats of this licence")  # fmt: skip


def _between(low: int, high: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"needed {low}..{high}")
        return value

    return number


def _print(line: str) -> None:
    sys.stdout.write(printable(line) + "\n")


def _tell(line: str) -> None:
    """Lines may hold what a server or a driver said."""
    sys.stderr.write(printable(line) + "\n")
    sys.stderr.flush()


def _say(line: str, code: int) -> int:
    _tell(line)
    return code


if __name__ == "__main__":
    sys.exit(main())
