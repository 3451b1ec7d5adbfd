"""`tallystick-node run`: the agent, its lock, its signs of life and its page."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeAlias

from node_reporter.agent.agent import Reporter
from node_reporter.agent.loop import Loop
from node_reporter.agent.sd_notify import BeatingTransport, Notifier
from node_reporter.clock import Clock, SystemClock
from node_reporter.executor.state import executor_folder
from node_reporter.gpus.seam import Backend
from node_reporter.identity import give_to_owner_of
from node_reporter.machine import config, inventory
from node_reporter.machine.config import NotJoined, Settings, StateFolder
from node_reporter.programs.signals import on_end
from node_reporter.reports import rotation
from node_reporter.reports.client import HttpTransport
from node_reporter.reports.neighbours import PORT, Answers, own_addresses
from node_reporter.reports.reach import Reach, keep_telling
from node_reporter.terminal import between, tell

MakeBackend: TypeAlias = Callable[[argparse.Namespace, Clock], Backend]


class AlreadyRunning(Exception):
    """Another agent works on this state folder."""


def run(options: argparse.Namespace, make_backend: MakeBackend) -> int:
    """Meter until stopped."""
    folder = config.state_folder(options.state, config.process_environment())
    clock = SystemClock()
    backend = make_backend(options, clock)
    with only_one(folder):
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
            tell=tell,
            lease_files=folder.lease_files,
            used_folder=executor_folder(options.executor_state, config.process_environment()).used,
            keep_key=folder.keep_node_key,
        )
        loop = Loop(reporter, backend, clock, notifier.beat)
        on_end(loop.stop)
        tell(f"metering {len(reporter.devices)} device(s) as {settings.node_id}")
        note = inventory.driver_note(reporter.devices)
        if note is not None:
            tell(note)
        _tell_reach(options, folder)
        with _page(options, reporter, backend, clock, folder, settings):
            try:
                return loop.run(options.seconds)
            finally:
                notifier.stopping()


def _tell_reach(options: argparse.Namespace, folder: StateFolder) -> None:
    """Measure the way to the region beside the meter, in a thread of its own that may fail."""
    ended = threading.Event()

    answers: Answers | None = None

    def make() -> Reach:
        nonlocal answers
        settings = config.load(folder, config.process_environment(), options.url)
        if answers is None and options.neighbour_port:
            answers = Answers(settings.node_id, settings.signing_key)
            answers.open(options.private_address or own_addresses(), options.neighbour_port)
        if answers is not None:
            answers.key = settings.signing_key
        return Reach(
            settings.node_id,
            settings.signing_key,
            settings.node_key,
            settings.url,
            HttpTransport(settings.url, allow_http=options.allow_http),
            interface=options.ingress_interface,
            answers=answers,
        )

    threading.Thread(target=keep_telling, args=(make, ended.wait), daemon=True).start()


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
    from node_reporter.programs import page as page_program

    return page_program.shown(
        options.page,
        reporter,
        backend.vendor,
        clock,
        folder,
        settings,
        allow_http=options.allow_http,
        tell=tell,
    )


@contextmanager
def only_one(folder: StateFolder) -> Generator[None, None, None]:
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
        give_to_owner_of(folder.path, lock.fileno())
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunning(f"another agent works in {folder.path}") from error
        yield


def add_parser(
    commands: Any, common: Callable[[argparse.ArgumentParser], None], make_backend: MakeBackend
) -> None:
    """The command, as `tallystick-node` lists it."""
    command = commands.add_parser(
        "run",
        help="meter until stopped",
        epilog="example: tallystick-node run --backend sim --sim-gpus 2",
    )
    common(command)
    command.add_argument("--url", help="server, when not the one joined")
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument(
        "--tick",
        type=between(50, 60_000),
        default=1_000,
        metavar="MS",
        help="milliseconds between polls, default 1000",
    )
    command.add_argument(
        "--interval",
        type=between(1, 3_600),
        default=60,
        metavar="S",
        help="seconds between reports, default 60",
    )
    command.add_argument("--seconds", type=between(1, 10**9), help="stop after this long")
    command.add_argument(
        "--executor-state", metavar="DIR", help="folder of the executor: what leases use"
    )
    command.add_argument(
        "--page",
        type=between(0, 65_535),
        default=0,
        metavar="PORT",
        help="show this node's state at http://127.0.0.1:PORT",
    )
    command.add_argument(
        "--ingress-interface",
        metavar="NAME",
        help="of an ingress node: the network interface that workers come through, like wg0",
    )
    command.add_argument(
        "--private-address",
        action="append",
        metavar="IP",
        help="where nodes of the region reach this one; default: its addresses of RFC 1918",
    )
    command.add_argument(
        "--neighbour-port",
        type=between(0, 65_535),
        default=PORT,
        metavar="PORT",
        help=f"port on private addresses that answers nodes of the region, default {PORT}; 0: none",
    )
    command.set_defaults(command=partial(run, make_backend=make_backend))
