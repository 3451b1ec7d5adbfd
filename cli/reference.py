"""Writes docs/reference/cli.md and `index.py` from the commands: `python -m cli.reference`.

the committed page == page()        the committed index == index()        a test compares them
"""

from __future__ import annotations

import io
import json
import pkgutil
import textwrap
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from cli import index as cli_index
from cli import main as cli
from cli.terminal import TOP_LEVEL

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
INDEX = Path(cli_index.__file__)
WIDTH = 96

OF_THE_PROGRAM = ("__main__", "index", "main", "reference")
"""Modules of `cli` that hold no commands."""

_PACKAGES = (
    "cli",
    "cli.commands",
    "cli.commands.governance",
    "cli.commands.regions",
    "cli.operating",
)
"""Where commands are."""

INDEX_HEAD = '''\
"""Where each command and group is, and what it is about.

Written by `python -m cli.reference` from the files of commands: do not edit.
"""

from __future__ import annotations

COMMANDS = {
'''
ABOUT_HEAD = '''\
}
"""The module of each command and group, and the Typer there that has it."""

ABOUT = {
'''

HEAD = """\
# Commands of `tallystick`

Written by `python -m cli.reference` from the commands' own help: do not edit.

Exit codes: 0 done, 1 the answer is no (refused, a check failed), 2 wrong usage or unreadable input.
With `--json` standard output is exactly one JSON document; of a command that fails
it is the refusal, or `{"failed": WHY}`. Everything else goes to standard error.
Settings come from flags, then `TALLYSTICK_*`, then the TOML file named by `--config` or
`TALLYSTICK_CONFIG`; `tallystick config` shows what is in force. `tallystick-node` has its own
`--help`.
"""


def page() -> str:
    """The page as it should be."""
    out = io.StringIO()
    out.write(HEAD)
    for path, text in helps():
        out.write(f"\n## `{path}`\n\n```text\n{text.rstrip()}\n```\n")
    return out.getvalue()


def modules() -> Iterator[ModuleType]:
    """Every module that may hold commands."""
    for package in _PACKAGES:
        for found in pkgutil.iter_modules(import_module(package).__path__):
            if not found.ispkg and found.name not in OF_THE_PROGRAM:
                yield import_module(f"{package}.{found.name}")


def commands_of(module: ModuleType) -> Iterator[tuple[str, tuple[str, str]]]:
    """The groups and commands of a module: name, and where it is."""
    for attribute, found in vars(module).items():
        if isinstance(found, typer.Typer):
            group = typer.main.get_group(found)
            names = list(group.commands) if attribute == TOP_LEVEL else [str(group.name)]
            yield from ((name, (module.__name__, attribute)) for name in names)


def all_commands(found: Iterable[ModuleType]) -> dict[str, tuple[str, str]]:
    """Every command and group by name. Raises AssertionError when two have one name."""
    pairs = sorted(pair for module in found for pair in commands_of(module))
    named = dict(pairs)
    assert len(named) == len(pairs), "two commands have one name"
    return named


def about() -> dict[str, str]:
    """The first sentence of the help of each command and group."""
    named = all_commands(modules())
    return {name: cli.opened(name, named).get_short_help_str(1_000) for name in named}


def index() -> str:
    """The index as it should be."""
    where = [
        f'    "{name}": ("{module}", "{attribute}"),\n'
        for name, (module, attribute) in all_commands(modules()).items()
    ]
    entries = [_entry(name, told) for name, told in about().items()]
    return INDEX_HEAD + "".join(where) + ABOUT_HEAD + "".join(entries) + "}\n"


def _entry(name: str, told: str) -> str:
    line = f'    "{name}": {json.dumps(told, ensure_ascii=False)},\n'
    if len(line) <= 101:
        return line
    parts = textwrap.wrap(told, 90, drop_whitespace=False)
    quoted = [f"        {json.dumps(part, ensure_ascii=False)}\n" for part in parts]
    return "".join([f'    "{name}": (\n', *quoted, "    ),\n"])


def helps() -> Iterator[tuple[str, str]]:
    """Every command's name and help, groups before their commands."""
    yield from _helps(typer.main.get_command(cli.app), None, "tallystick")


def _helps(command: Any, parent: Any, name: str) -> Iterator[tuple[str, str]]:
    context = command.make_context(
        name.rpartition(" ")[2],
        [],
        parent,
        resilient_parsing=True,
        max_content_width=WIDTH,
        terminal_width=WIDTH,
    )
    yield name, context.command.get_help(context)
    for child in getattr(context.command, "commands", {}).values():
        yield from _helps(child, context, f"{name} {child.name}")


if __name__ == "__main__":
    named, told = all_commands(modules()), about()
    cli_index.COMMANDS.clear()
    cli_index.COMMANDS.update(named)
    cli_index.ABOUT.clear()
    cli_index.ABOUT.update(told)
    INDEX.write_text(index(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
