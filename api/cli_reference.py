"""Writes docs/reference/cli.md from the commands themselves: `python -m api.cli_reference`.

the committed page == page()        a test compares them
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from api.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
WIDTH = 96

HEAD = """\
# Commands of `tallystick`

Written by `python -m api.cli_reference` from the commands' own help: do not edit.

Exit codes: 0 done, 1 the answer is no (refused, a check failed), 2 wrong usage or unreadable input.
With `--json` standard output is exactly one JSON document; everything else goes to standard error.
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


def helps() -> Iterator[tuple[str, str]]:
    """Every command's name and help, groups before their commands."""
    yield from _helps(typer.main.get_command(app), None, "tallystick")


def _helps(command: Any, parent: Any, name: str) -> Iterator[tuple[str, str]]:
    context = command.make_context(
        name.rpartition(" ")[2], [], parent, resilient_parsing=True, max_content_width=WIDTH,
        terminal_width=WIDTH,
    )  # fmt: skip
    yield name, command.get_help(context)
    for child in getattr(command, "commands", {}).values():
        yield from _helps(child, context, f"{name} {child.name}")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
