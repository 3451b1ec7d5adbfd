"""`tallystick-node join | rotate | doctor`: a node's key and how it stands."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any, TypeAlias

from node_reporter.agent import doctor
from node_reporter.clock import SystemClock
from node_reporter.gpus import backends
from node_reporter.gpus.seam import Backend, MonitorBlind
from node_reporter.identity import KeyUnreadable, fingerprint, key_id, public_key
from node_reporter.machine import config, inventory
from node_reporter.machine.config import NotJoined, StateFolder
from node_reporter.programs.run import MakeBackend, only_one
from node_reporter.reports import rotation, server_view
from node_reporter.reports.client import HttpTransport
from node_reporter.reports.joining import JoinRefused, join
from node_reporter.reports.reports import AGENT
from node_reporter.reports.server_view import ServerView
from node_reporter.terminal import print_line, tell

_CODE = re.compile(r"[0-9A-Za-z-]{8,16}")
Common: TypeAlias = Callable[[argparse.ArgumentParser], None]


def join_node(options: argparse.Namespace, make_backend: MakeBackend) -> int:
    """Make the key, ask to join. Raises JoinRefused, UrlRefused, Unreachable.

    Whatever can be refused without the server is refused before anything is written.
    """
    folder = config.state_folder(options.state, config.process_environment())
    if folder.node_key.exists():
        raise JoinRefused(f"{folder.path} holds a node already")
    if _CODE.fullmatch(options.code) is None:
        raise JoinRefused(
            f"{options.code!r} is no join code, which has eight letters and digits, like 7KQ2M9XD:"
            " copy it again from `tallystick node code REGION`"
        )
    transport = HttpTransport(options.url, allow_http=options.allow_http)
    specs = _specs(make_backend(options, SystemClock()))
    key = folder.signing_key_or_new()
    public = public_key(key)
    tell(f"fingerprint of this node's key: {fingerprint(public)}")
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
        print_line(json.dumps(result))
    else:
        print_line(f"{joined.node_id} asks to join with {len(specs['devices'])} device(s).")
        print_line("Compare the fingerprint where you got the code, and confirm it there.")
    return 0


def _specs(backend: Backend) -> dict[str, Any]:
    """What this machine is. Raises JoinRefused where its driver cannot be asked: unlike `run`,
    nobody starts this command again."""
    try:
        backend.open()
    except MonitorBlind as blind:
        todo = "`tallystick-node doctor` says what to do; --backend names another maker"
        raise JoinRefused(f"{blind}; {todo}") from blind
    try:
        return inventory.specs(backend.inventory(), backend.vendor)
    finally:
        backend.close()


def rotate(options: argparse.Namespace) -> int:
    """Sign with a new key. Raises RotationRefused, AlreadyRunning, Stopped."""
    folder = config.state_folder(options.state, config.process_environment())
    with only_one(folder):
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
        print_line(json.dumps(result))
    else:
        print_line(f"{settings.node_id} signs with a new key: {result['fingerprint']}")
        if not is_told:
            print_line("The server did not answer: it is told when the node runs again.")
    return 0


def examine(options: argparse.Namespace, make_backend: MakeBackend) -> int:
    """Say how this machine stands; 1 where something has failed."""
    folder = config.state_folder(options.state, config.process_environment())
    backend = make_backend(options, SystemClock())
    result = doctor.examine(backend.vendor, doctor.probe(backend), folder, _seen(options, folder))
    if options.json:
        print_line(json.dumps(result))
    else:
        for line in doctor.lines(result):
            print_line(line)
    return 0 if result["ok"] else 1


def _seen(options: argparse.Namespace, folder: StateFolder) -> ServerView | None:
    """What the server says of this node; None where it has joined none."""
    try:
        settings = config.load(folder, config.process_environment(), options.url)
    except (NotJoined, KeyUnreadable):
        return None
    with closing(HttpTransport(settings.url, allow_http=options.allow_http)) as transport:
        return server_view.look(settings, transport, SystemClock())


def add_parsers(commands: Any, common: Common, make_backend: MakeBackend) -> None:
    """The three commands, as `tallystick-node` lists them."""
    _join_parser(commands, common, make_backend)
    _rotate_parser(commands)
    _doctor_parser(commands, make_backend)


def _join_parser(commands: Any, common: Common, make_backend: MakeBackend) -> None:
    command = commands.add_parser(
        "join",
        help="ask a server to become one of its nodes",
        epilog="example: tallystick-node join https://tallystick.example 7Q4K-9XWD --json",
    )
    command.add_argument("url", metavar="URL", help="address of the server")
    command.add_argument(
        "code", metavar="CODE", help="single-use code, from `tallystick node code REGION`"
    )
    common(command)
    command.add_argument("--client", metavar="ACCOUNT", help="compute client that brings this node")
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(command=partial(join_node, make_backend=make_backend))


def _rotate_parser(commands: Any) -> None:
    command = commands.add_parser(
        "rotate",
        help="sign with a new key from now on; the node must not be running",
        epilog="example: tallystick-node rotate --json",
    )
    command.add_argument("--state", metavar="DIR", help="folder of this node's keys and spool")
    command.add_argument("--url", help="server, when not the one joined")
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(command=rotate)


def _doctor_parser(commands: Any, make_backend: MakeBackend) -> None:
    command = commands.add_parser(
        "doctor",
        help="say what this machine can tell, what it cannot, and what to do",
        epilog="example: tallystick-node doctor --json",
    )
    command.add_argument("--state", metavar="DIR", help="folder of this node's keys and spool")
    backends.add_options(command, may_search=True)
    command.add_argument("--url", help="server, when not the one joined")
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(command=partial(examine, make_backend=make_backend))
