"""`tallystick`: the module of a command is imported when it is asked for.

    tallystick --help           imports no command: `index.py` knows where and about what each is
    tallystick lease --help     imports the module of `lease`

Nothing is decided here; `terminal.py` says how all commands speak.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from cli import terminal as cli_terminal
from cli.extras import version_line
from cli.index import ABOUT, COMMANDS
from cli.terminal import COMPLETE, TOP_LEVEL, tell


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


def opened(name: str, commands: Mapping[str, tuple[str, str]] = COMMANDS) -> Any:
    """The command or group itself; its module is imported."""
    module, attribute = commands[name]
    found = typer.main.get_group(getattr(import_module(module), attribute))
    if attribute == TOP_LEVEL:
        return found.commands[name]
    found.name = name
    return found


app = cli_terminal.group(
    "tallystick",
    "Event-sourced marketplace and settlement ledger for pooled GPUs.",
    "tallystick demo",
    cls=Commands,
)


def main() -> int:
    """Run one command; the exit code. What it writes is its owner's alone: the database, the log's
    exports, epochs, payouts, keys.
    """
    before = os.umask(0o077)
    own_name = os.environ.get("PGAPPNAME")
    command = next((word for word in _own_words() if word in COMMANDS), "")
    # By this name the database, and a process that waits for a lock, tells whose a session is.
    os.environ["PGAPPNAME"] = own_name or f"tallystick {command}".rstrip()
    if COMPLETE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    try:
        return cli_terminal.run(app, as_json="--json" in _own_words())
    finally:
        os.umask(before)
        if own_name is None:
            del os.environ["PGAPPNAME"]


def _own_words() -> list[str]:
    """What was said to us: after `--` it is said to the program that is run."""
    words = sys.argv[1:]
    return words[: words.index("--")] if "--" in words else words


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
