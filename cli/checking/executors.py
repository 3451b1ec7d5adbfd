"""Where an audit does its work: the option `--executor`, and what is taken without it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.terminal import InputUnusable

if TYPE_CHECKING:
    from ledger.fan_out.executor import Executor

BYTES_APART = 20_000_000
"""Of usage reports, or of epoch files: with less, starting processes takes longer than the work."""

ExecutorOption = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="serial|processes[:COUNT]|ray[:ADDRESS]",
        help="What shares the work out; without it every processor, where it is worth starting.",
    ),
]


@contextmanager
def chosen(choice: str | None, files: list[Path]) -> Generator[Executor, None, None]:
    """The executor that was asked for; without one, processes for so much work as is in `files`.

    Raises InputUnusable: there is no such executor. WorkLost.
    """
    from ledger.fan_out.choice import ChoiceInvalid, opened

    if choice is None:
        choice = (
            "processes" if sum(file.stat().st_size for file in files) > BYTES_APART else "serial"
        )
    try:
        with opened(choice) as executor:
            yield executor
    except ChoiceInvalid as error:
        raise InputUnusable(str(error)) from None


def report_files(bundle: Path) -> list[Path]:
    """The files of an export that hold usage reports."""
    return list(bundle.glob("log/usage-*.parquet"))
