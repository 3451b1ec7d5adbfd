"""`tallystick-node`: join, run, rotate, doctor, install; enroll, exec; edge. Small: argparse alone.

Exit codes: 0 done, 1 the answer is no, 2 wrong usage or unreadable input, 75 start me again,
78 only a person can go on from here. Results on standard output, everything else on standard error.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Callable

from node_reporter.executor.runner import RunnerUnusable
from node_reporter.executor.state import AlreadyRuns
from node_reporter.gpus import backends
from node_reporter.gpus.seam import MonitorBlind
from node_reporter.identity import KeyUnreadable
from node_reporter.machine.config import NotJoined
from node_reporter.machine.machine import InstallRefused
from node_reporter.programs import edge as edge_program
from node_reporter.programs import execute as executor_program
from node_reporter.programs import install as install_program
from node_reporter.programs import join as join_program
from node_reporter.programs import run as run_program
from node_reporter.programs.execute import EnrollRefused
from node_reporter.programs.run import AlreadyRunning
from node_reporter.reports.client import Unreachable, UrlRefused
from node_reporter.reports.delivery import EXIT_RESTART, EXIT_STOPPED, Stopped
from node_reporter.reports.joining import JoinRefused
from node_reporter.reports.reports import AGENT
from node_reporter.reports.rotation import RotationRefused
from node_reporter.reports.spool import SpoolUnreadable
from node_reporter.terminal import ConfigUnreadable, between, tell

EXIT_NO = 1
EXIT_USAGE = 2


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tallystick-node",
        description="Meters this machine's GPUs and signs what it saw.",
        epilog="example: tallystick-node join https://tallystick.example 7Q4K-9XWD",
    )
    parser.add_argument("--version", action="version", version=AGENT)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    join_program.add_parsers(commands, _common, backends.build)
    run_program.add_parser(commands, _common, backends.build)
    install_program.add_parsers(commands, _common)
    executor_program.add_parsers(commands, between)
    edge_program.add_parser(commands, between)
    return parser


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--state", metavar="DIR", help="folder of this node's keys and spool")
    backends.add_options(command)


def _say(line: str, code: int) -> int:
    tell(line)
    return code


if __name__ == "__main__":
    sys.exit(main())
