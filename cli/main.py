"""`tallystick`: every command, and the module it is in, which is imported when it is asked for.

    tallystick --help           imports no command: `index.py` knows what each is about
    tallystick lease --help     imports the module of `lease`

Nothing is decided here; `terminal.py` says how all commands speak.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cli import terminal as cli_terminal
from cli.extras import version_line
from cli.index import ABOUT
from cli.terminal import TOP_LEVEL, tell

COMMANDS = {
    "statement": ("cli.commands.billing", "commands"),
    "earnings": ("cli.commands.billing", "commands"),
    "forecast": ("cli.commands.billing", "commands"),
    "run": ("cli.run", "commands"),
    "quote": ("cli.commands.market", "commands"),
    "explain": ("cli.commands.market", "commands"),
    "utilisation": ("cli.commands.pools", "commands"),
    "fragmentation": ("cli.commands.pools", "commands"),
    "demo": ("cli.this_machine", "commands"),
    "serve": ("cli.this_machine", "commands"),
    "jobs": ("cli.this_machine", "commands"),
    "migrate": ("cli.this_machine", "commands"),
    "config": ("cli.this_machine", "commands"),
    "conformance": ("cli.this_machine", "commands"),
    "admin": ("cli.admin", "app"),
    "account": ("cli.commands.market", "account"),
    "provider": ("cli.commands.supply", "provider"),
    "region": ("cli.commands.region", "region"),
    "node": ("cli.commands.supply", "node"),
    "maintenance": ("cli.commands.supply", "maintenance"),
    "attribute": ("cli.commands.trust", "attribute"),
    "reputation": ("cli.commands.trust", "reputation"),
    "kind": ("cli.commands.trust", "kind"),
    "licence": ("cli.commands.trust", "licence"),
    "pool": ("cli.commands.pools", "pool"),
    "gang": ("cli.commands.pools", "gang"),
    "offer": ("cli.commands.market", "offer"),
    "lease": ("cli.commands.leases", "lease"),
    "bid": ("cli.commands.bids", "app"),
    "dispute": ("cli.commands.disputes", "dispute"),
    "tariff": ("cli.commands.prices", "tariff"),
    "oracle": ("cli.commands.prices", "oracle"),
    "webhook": ("cli.commands.parties", "webhook"),
    "promotion": ("cli.commands.funds", "promotion"),
    "payer": ("cli.commands.funds", "payer"),
    "budget": ("cli.commands.funds", "budget"),
    "payment": ("cli.commands.funds", "payment"),
    "cash-out": ("cli.commands.cash_out", "app"),
    "meter": ("cli.commands.metering", "meter"),
    "device": ("cli.commands.metering", "device"),
    "storage": ("cli.commands.metering", "storage"),
    "grant": ("cli.commands.governance", "grant"),
    "reward": ("cli.commands.epochs", "reward"),
    "breaker": ("cli.commands.governance", "breaker"),
    "job": ("cli.commands.jobs", "job"),
    "client": ("cli.commands.parties", "client"),
    "group": ("cli.commands.parties", "groups"),
    "project": ("cli.commands.parties", "project"),
    "counterparty": ("cli.commands.parties", "counterparty"),
    "epoch": ("cli.commands.epochs", "epoch"),
    "payout": ("cli.commands.payout", "app"),
    "policy": ("cli.commands.policy", "app"),
    "audit": ("cli.audit", "app"),
    "trace": ("cli.trace", "app"),
    "usage": ("cli.commands.billing", "usage"),
    "export": ("cli.commands.exports", "app"),
    "invoice": ("cli.commands.billing", "invoice"),
}
"""Every command and group in the order of the help: its module, and the Typer there that has it."""


class Unopened(TyperCommand):
    """A command or group that is not imported yet: what it is about, and where it is."""

    def make_context(self, *given: Any, **extra: Any) -> Any:
        """Open it, and go on with what was found."""
        return opened(str(self.name)).make_context(*given, **extra)


class Commands(TyperGroup):
    """The first word after `tallystick`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name in COMMANDS:
            self.add_command(Unopened(name, help=ABOUT.get(name), rich_markup_mode=None))


def opened(name: str) -> Any:
    """The command or group itself; its module is imported."""
    module, attribute = COMMANDS[name]
    found = typer.main.get_group(getattr(import_module(module), attribute))
    if attribute == TOP_LEVEL:
        return found.commands[name]
    found.name = name
    return found


app = cli_terminal.group(
    "Event-sourced marketplace and settlement ledger for pooled GPUs.",
    "tallystick demo",
    cls=Commands,
)


def main() -> int:
    """Run one command; the exit code."""
    return cli_terminal.run(app, as_json="--json" in sys.argv[1:])


def _version(wanted: bool) -> None:
    if wanted:
        tell(None, [version_line()], as_json=False)
        raise typer.Exit


@app.callback()
def _options(
    _asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Event-sourced marketplace and settlement ledger for pooled GPUs."""


if __name__ == "__main__":
    sys.exit(main())
