"""`tallystick-node install | uninstall`: what their options mean and what they print."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from node_reporter.install.install import carry_out, install_plan, uninstall_plan
from node_reporter.machine import config
from node_reporter.machine.machine import Machine, Plan

PAGE_PORT = 8479


def install(options: argparse.Namespace, usual: Mapping[str, Any]) -> int:
    """Write the unit and start it, or show what would be done. Raises InstallRefused.

    `usual`: the options that `run` has too, and what each of them is when it is left out.
    """
    environment = config.process_environment()
    machine = Machine.here(environment)
    user = _is_for_user(options, machine)
    folder = config.state_folder(options.state, environment)
    plan = install_plan(
        machine,
        folder,
        _passed_on(options, usual),
        user=user,
        dry_run=options.dry_run,
        is_named=config.named_folder(options.state, environment) is not None,
    )
    return _finish(options, plan)


def uninstall(options: argparse.Namespace) -> int:
    """Stop the node and remove its unit; keys and spool stay. Raises InstallRefused."""
    machine = Machine.here(config.process_environment())
    user = _is_for_user(options, machine)
    return _finish(options, uninstall_plan(machine, user=user, dry_run=options.dry_run))


def add_parsers(commands: Any, common: Callable[[argparse.ArgumentParser], None]) -> None:
    """The two commands, as `tallystick-node` lists them."""
    command = commands.add_parser(
        "install",
        help="start the node with the machine",
        epilog="example: tallystick-node install --dry-run",
    )
    common(command)
    usual = argparse.ArgumentParser(add_help=False)
    common(usual)
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument(
        "--page",
        type=int,
        default=PAGE_PORT,
        metavar="PORT",
        help=f"port of the local page, default {PAGE_PORT}; 0: none",
    )
    _shared(command)
    command.set_defaults(command=partial(install, usual=vars(usual.parse_args([]))))
    command = commands.add_parser(
        "uninstall",
        help="start the node with the machine no more; its keys and its spool stay",
        epilog="example: tallystick-node uninstall --dry-run",
    )
    _shared(command)
    command.set_defaults(command=uninstall)


def _shared(command: argparse.ArgumentParser) -> None:
    whose = command.add_mutually_exclusive_group()
    whose.add_argument("--user", action="store_true", help="for your account only")
    whose.add_argument("--system", action="store_true", help="for the machine; default as root")
    command.add_argument("--dry-run", action="store_true", help="show what would be done")
    command.add_argument("--json", action="store_true", help="print the result as JSON")


def _is_for_user(options: argparse.Namespace, machine: Machine) -> bool:
    # On Windows nobody is root: a task of the machine is asked for with --system.
    return bool(options.user or not (options.system or machine.is_root))


def _passed_on(options: argparse.Namespace, usual: Mapping[str, Any]) -> list[str]:
    """What `run` is to be told: whatever is not as it would be anyway. The folder is told apart."""
    words: list[str] = []
    for name, value in usual.items():
        given = getattr(options, name)
        if name != "state" and given != value:
            words += [f"--{name.replace('_', '-')}", *([] if given is True else [str(given)])]
    if options.allow_http:
        words.append("--allow-http")
    return [*words, "--page", str(options.page)] if options.page else words


def _finish(options: argparse.Namespace, plan: Plan) -> int:
    if not options.dry_run:
        carry_out(plan)
    told = {**plan.told(), "done": not options.dry_run}
    lines = [json.dumps(told)] if options.json else _lines(plan, dry_run=options.dry_run)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _lines(plan: Plan, *, dry_run: bool) -> Sequence[str]:
    wrote, ran = ("would write", "would run") if dry_run else ("wrote", "ran")
    lines: list[str] = []
    if plan.path is not None:
        if plan.text is None:
            lines.append(f"{'would remove' if dry_run else 'removed'} {plan.path}")
        else:
            lines.append(f"{wrote} {plan.path}")
            lines += [f"  {line}" for line in plan.text.splitlines() if dry_run]
    lines += [f"{ran} {shlex.join(command)}" for command in (*plan.attempts, *plan.commands)]
    return [*lines, *plan.notes]
