"""Where an audit does its work, and where it says how far it is: `--executor` and `--go-on`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.terminal import InputUnusable

if TYPE_CHECKING:
    from ledger.fan_out.executor import Executor
    from ledger.fan_out.marks import Marks

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

GoOnOption = Annotated[
    Path | None,
    typer.Option(
        "--go-on",
        metavar="FOLDER",
        help="Keep here how far the lanes are, and go on from there: after a stop, say it again.",
    ),
]


def marks_in(folder: Path | None) -> Marks | None:
    """Raises InputUnusable: others may write there, or it is a folder of something else."""
    from ledger.fan_out.marks import FolderRefused, opened

    try:
        return None if folder is None else opened(folder)
    except FolderRefused as refused:
        raise InputUnusable(str(refused)) from None


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
