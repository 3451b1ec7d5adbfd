"""`tallystick`: every command, and the module it is in, which is imported when it is asked for.

    tallystick --help           imports no command: `cli_index.py` knows what each is about
    tallystick lease --help     imports the module of `lease`

Nothing is decided here; `cli_terminal.py` says how all commands speak.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from api import cli_terminal
from api.cli_index import ABOUT
from api.cli_install import version_line
from api.cli_terminal import TOP_LEVEL, tell

COMMANDS = {
    "statement": ("api.cli_billing", "commands"),
    "earnings": ("api.cli_billing", "commands"),
    "forecast": ("api.cli_billing", "commands"),
    "run": ("api.cli_run", "commands"),
    "quote": ("api.cli_market", "commands"),
    "explain": ("api.cli_market", "commands"),
    "utilisation": ("api.cli_pools", "commands"),
    "fragmentation": ("api.cli_pools", "commands"),
    "demo": ("api.cli_server", "commands"),
    "serve": ("api.cli_server", "commands"),
    "jobs": ("api.cli_server", "commands"),
    "migrate": ("api.cli_server", "commands"),
    "config": ("api.cli_server", "commands"),
    "conformance": ("api.cli_server", "commands"),
    "admin": ("api.cli_admin", "app"),
    "account": ("api.cli_market", "account"),
    "provider": ("api.cli_supply", "provider"),
    "region": ("api.cli_region", "region"),
    "node": ("api.cli_supply", "node"),
    "maintenance": ("api.cli_supply", "maintenance"),
    "attribute": ("api.cli_attribute", "attribute"),
    "reputation": ("api.cli_attribute", "reputation"),
    "kind": ("api.cli_attribute", "kind"),
    "licence": ("api.cli_attribute", "licence"),
    "pool": ("api.cli_pools", "pool"),
    "gang": ("api.cli_pools", "gang"),
    "offer": ("api.cli_market", "offer"),
    "lease": ("api.cli_lease", "lease"),
    "bid": ("api.cli_bid", "app"),
    "dispute": ("api.cli_dispute", "dispute"),
    "tariff": ("api.cli_prices", "tariff"),
    "oracle": ("api.cli_prices", "oracle"),
    "webhook": ("api.cli_parties", "webhook"),
    "promotion": ("api.cli_funds", "promotion"),
    "payer": ("api.cli_funds", "payer"),
    "budget": ("api.cli_funds", "budget"),
    "payment": ("api.cli_funds", "payment"),
    "cash-out": ("api.cli_cash_out", "app"),
    "meter": ("api.cli_meters", "meter"),
    "device": ("api.cli_meters", "device"),
    "storage": ("api.cli_meters", "storage"),
    "grant": ("api.cli_governance", "grant"),
    "reward": ("api.cli_epochs", "reward"),
    "breaker": ("api.cli_governance", "breaker"),
    "job": ("api.cli_job", "job"),
    "client": ("api.cli_parties", "client"),
    "group": ("api.cli_parties", "groups"),
    "project": ("api.cli_parties", "project"),
    "counterparty": ("api.cli_parties", "counterparty"),
    "epoch": ("api.cli_epochs", "epoch"),
    "payout": ("api.cli_payout", "app"),
    "policy": ("api.cli_policy", "app"),
    "audit": ("api.cli_audit", "app"),
    "trace": ("api.cli_trace", "app"),
    "usage": ("api.cli_billing", "usage"),
    "export": ("api.cli_export", "app"),
    "invoice": ("api.cli_billing", "invoice"),
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
