"""`tallystick export`: the books and the bills, in forms that other people's tools read.

The books come from this machine's data, as an operator's do; what concerns one account comes from a
server, with that account's key; the logs come from the folder of an export. What the forms are is
said in `ledger/bundle/journal.py`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

import typer

from cli.arguments import AccountId
from cli.remote import Remote, reads
from cli.settings import ConfigFile, DataDir, opened
from cli.terminal import AsJson, InputUnusable, columns, facts, group, progress, tell

app = group(
    "export",
    "Books and bills for other tools: hledger, beancount, FOCUS, CSV, JSON.",
    "tallystick export journal --format hledger --output books.journal",
)


class BooksFormat(StrEnum):
    """Tools that the books can be written for: `ledger.bundle.journal.Form`, which is heavy to
    import.
    """

    HLEDGER = "hledger"
    BEANCOUNT = "beancount"


Output = Annotated[Path, typer.Option("--output", metavar="FILE", help="New file to write.")]


class Sink:
    """A new file that appears when it is complete, and what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = sha256()
        self.bytes = 0

    def write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._hash.update(piece)
        self.bytes += len(piece)

    def told(self) -> dict[str, Any]:
        return {"bytes": self.bytes, "sha256": self._hash.hexdigest()}


@contextmanager
def sink(path: Path) -> Generator[Sink, None, None]:
    """Write here. Raises InputUnusable when something is there already."""
    if path.exists():
        raise InputUnusable(f"{path} is there already: name a new file")
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            yield Sink(file)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


@app.command(
    epilog="Example: tallystick export journal --format beancount --output books.beancount"
)
def journal(
    output: Output,
    form: Annotated[
        BooksFormat, typer.Option("--format", help="Tool to write for.")
    ] = BooksFormat.HLEDGER,
    last: Annotated[
        int | None, typer.Option(min=1, help="Up to this position of the market log.")
    ] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write all books of this machine's data as one hledger journal or beancount ledger.

    One transaction for each posting, whole minor units, and what every account must hold at the
    end. The same log and position give the same bytes. Check it: `hledger -f FILE check --strict`
    or `bean-check FILE`.
    """
    from ledger.bundle.journal import Form, export

    with (
        sink(output) as into,
        opened(config, data_dir=data_dir) as service,
        service.connect() as connection,
        progress() as step,
    ):
        done = export(
            connection,
            Form(form),
            into.write,
            last=last,
            progress=lambda count, of: step("postings", count, of),
        )
    result = {
        "output": str(output),
        "format": form.value,
        "position": done.position,
        "postings": done.postings,
        "accounts": done.accounts,
        **into.told(),
    }
    tell(result, facts(result), as_json=as_json)


class FocusFormat(StrEnum):
    """Forms of a FOCUS file."""

    CSV = "csv"
    PARQUET = "parquet"


class FocusVersion(StrEnum):
    """Versions of the specification that a server writes."""

    V1_2 = "1.2"
    V1_3 = "1.3"


class LinesFormat(StrEnum):
    """Forms of an account's own lines."""

    CSV = "csv"
    JSON = "json"
    JOURNAL = "journal"


Month = Annotated[str, typer.Argument(metavar="MONTH", help="2026-11")]


@app.command(epilog="Example: tallystick export focus acct_1f0c... 2026-11 --output focus.csv")
@reads
def focus(
    remote: Remote,
    account_id: AccountId,
    month: Month,
    output: Output,
    form: Annotated[FocusFormat, typer.Option("--format", help="Form.")] = FocusFormat.CSV,
    version: Annotated[
        FocusVersion, typer.Option("--focus", help="Version of FOCUS; 1.3 names providers too.")
    ] = FocusVersion.V1_2,
) -> None:
    """Write an account's charges of a month in the columns of FOCUS 1.2 or 1.3."""
    told = {"account_id": account_id, "period": month, "format": form.value, "focus": version.value}
    _download(remote, account_id, f"{month}.{form}", output, told, query=f"?focus={version}")


@app.command(epilog="Example: tallystick export lines acct_1f0c... 2026-11 --output lines.csv")
@reads
def lines(
    remote: Remote,
    account_id: AccountId,
    month: Month,
    output: Output,
    form: Annotated[LinesFormat, typer.Option("--format", help="Form.")] = LinesFormat.CSV,
) -> None:
    """Write every movement on an account's books in a month: CSV, JSON lines, hledger journal."""
    name = {
        LinesFormat.CSV: f"{month}/lines.csv",
        LinesFormat.JSON: f"{month}/lines.jsonl",
        LinesFormat.JOURNAL: f"{month}.journal",
    }[form]
    told = {"account_id": account_id, "period": month, "format": form.value}
    _download(remote, account_id, name, output, told)


@app.command(epilog="Example: tallystick export iceberg bundle --catalog lake")
def iceberg(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an export.")],
    catalogue: Annotated[
        str | None, typer.Option("--catalog", metavar="NAME", help="As pyiceberg knows it.")
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="Where the two tables are.")
    ] = "tallystick",
    as_json: AsJson = False,
) -> None:
    """Register an export of `audit export` as the tables `market` and `usage` of Iceberg.

    The export's files become those of the tables where they lie: nothing is copied, so leave them
    there. The same export again changes nothing; a later one takes the place of the one before.
    Whether the files are as the manifest says is checked; the rows, `audit verify` checks.
    """
    from ledger.bundle.iceberg import register

    if not directory.is_dir():
        raise InputUnusable(f"{directory} is not there: give the folder of an export")
    with progress() as step:
        tables = [asdict(one) for one in register(directory, catalogue, namespace, step=step)]
    names = ("table", "files", "rows", "added", "removed")
    told = {"directory": str(directory), "catalog": catalogue or "default", "tables": tables}
    tell(told, columns(tables, names), as_json=as_json)


def _download(
    remote: Remote,
    account_id: str,
    name: str,
    output: Path,
    told: dict[str, Any],
    *,
    query: str = "",
) -> None:
    """One file of a server into a new file, a piece at a time."""
    path = f"/v1/accounts/{quote(account_id, safe='')}/statements/{quote(name)}{query}"
    with sink(output) as into, progress() as step:

        def fetch(client: Any) -> None:
            for piece in client.download(path):
                into.write(piece)
                step("bytes", into.bytes, into.bytes)

        remote.ask(fetch)
        result = {"output": str(output), **told, **into.told()}
    remote.tell(result, facts(result))
