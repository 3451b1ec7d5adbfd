"""How every command speaks: results on standard output, all else on standard error, exit codes.

    exit 0: done      exit 1: the answer is no      exit 2: wrong usage or unreadable input

With `--json` standard output is exactly one JSON document, whose times are UTC; of a command that
failed and told none it is `{"failed": WHY}`, or the refusal of a rule. Without, it is plain text in
columns with the times of this machine's zone, the same in a terminal and in a pipe. Progress bars
go to a terminal or nowhere. Nothing heavy is imported here: `tallystick --help` must be quick.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.extras import what_to_install

EXIT_NO = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]

Progress = Callable[[str, int, int], None]
"""What is being counted, how many are done, of how many."""


class AnswerIsNo(Exception):
    """The command was understood and the answer is no; `document` is what `--json` prints."""

    def __init__(
        self, message: str, document: Mapping[str, Any] | None = None, *, code: int = EXIT_NO
    ) -> None:
        super().__init__(message)
        self.document = document
        self.code = code


class InputUnusable(Exception):
    """What was given cannot be read or used; the message says what to do."""


COMPLETE = "_TALLYSTICK_COMPLETE"
"""A shell sets it to ask what may follow; `tallystick completion` prints the script that does."""
TOP_LEVEL = "commands"
"""What a module calls its Typer of commands that stand under `tallystick` itself. A group has its
name from `group`; `python -m cli.reference` finds both and writes them into `index.py`."""


def group(
    name: str,
    about: str,
    example: str,
    *,
    cls: type[TyperGroup] | None = None,
    is_command: bool = False,
) -> typer.Typer:
    """A group of commands under its name; alone it prints its help, or does what its callback does
    where it `is_command` itself.
    """
    return typer.Typer(
        name=name,
        cls=cls,
        help=about,
        epilog=f"Example: {example}",
        no_args_is_help=not is_command,
        invoke_without_command=is_command,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def top_level() -> typer.Typer:
    """Commands that stand under `tallystick` itself, see `TOP_LEVEL`."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


# --- results ---------------------------------------------------------------------------------


_documents: list[Any] = []
"""What `--json` printed in this run: one document, or none yet."""
_notes: list[str] = []
"""The last line that was said beside it."""


def tell(document: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """The result: as one JSON document, or as lines for people."""
    if as_json:
        _documents.append(document)
        sys.stdout.write(_json(document) + "\n")
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
    sys.stdout.flush()


def note(line: str) -> None:
    """Something to know beside the result."""
    _notes[:] = [line]
    sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.flush()


def facts(pairs: Mapping[str, Any]) -> list[str]:
    """`name  value`, one per line: amounts, GPU time and shares as people write them, a list in one
    line, a record as its parts, and what is absent left out.
    """
    shown = dict(_parts(pairs))
    width = max(map(len, shown), default=0)
    return [f"{name:<{width}}  {shown[name]}" for name in shown]


def columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """A table with a head; absent values are `-`. Never cut, so it can be piped."""
    cells = [[_heading(name).upper() for name in names]]
    cells += [[_cell(_in_people(name, row.get(name))) for name in names] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(names))]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]


def amount(money: Mapping[str, Any] | None) -> str | None:
    """`{"asset": "CREDIT", "units": "1265000"}` as `1.265000 CREDIT`, without a float."""
    if money is None:
        return None
    decimals = {"CREDIT": 6, "TOKEN": 8}.get(money["asset"], 0)
    units = money["units"]
    sign, digits = ("-", units[1:]) if units.startswith("-") else ("", units)
    digits = digits.rjust(decimals + 1, "0")
    whole = digits[: len(digits) - decimals]
    fraction = f".{digits[len(digits) - decimals :]}" if decimals else ""
    return f"{sign}{whole}{fraction} {money['asset']}"


def gpu_hours(us: int | str) -> str:
    """Microseconds of one GPU as GPU-hours with six decimals, rounded down; no float."""
    whole, rest = divmod(int(us), 3_600_000_000)
    return f"{whole}.{rest * 1_000_000 // 3_600_000_000:06d}"


def counted(number: int, thing: str) -> str:
    """`1 file`, `1,200 files`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?Z", re.ASCII)
_SENTENCE_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})? UTC", re.ASCII)


def local_time(text: str) -> str:
    """A moment in UTC as the same moment of this machine's zone, with its offset: it can be given
    to any command as it stands. Text that is no moment stays as it is.
    """
    return _local(text) if _MOMENT.fullmatch(text) else text


def with_local_times(sentence: str) -> str:
    """A sentence of the server with its moments in the zone of this machine."""
    return _SENTENCE_MOMENT.sub(lambda found: _local(found[0].replace(" UTC", "Z")), sentence)


def _local(text: str) -> str:
    from datetime import UTC, datetime

    try:
        at = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return text  # the end of time has no later hour
    told = at.isoformat(timespec="microseconds" if at.microsecond else "seconds")
    return told if at.utcoffset() else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _json(document: Any) -> str:
    """One line. JSON escapes the control characters of ASCII alone; terminals obey others too."""
    text = json.dumps(document, ensure_ascii=False)
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def printable(text: str) -> str:
    """Text from elsewhere cannot move the cursor or change the colours of a terminal."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _parts(pairs: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """What is told by name; the parts of a record, and of each record of a list, under its name."""
    for name, value in pairs.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping) and value.keys() != {"asset", "units"}:
            yield from _parts(value, f"{path} ")
        elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
            yield from _parts({str(at): one for at, one in enumerate(value, 1)}, f"{path} ")
        elif value is not None:
            yield f"{above}{_heading(name)}", _fact(_in_people(name, value))


def _heading(name: str) -> str:
    """The name of a field as people read it: GPU time in hours, shares as parts of one."""
    return name.replace("gpu_us", "gpu_hours").replace("_ppm", "")


def _in_people(name: str, value: Any) -> Any:
    """GPU time of a field `gpu_us` in GPU-hours; parts per million of a field `_ppm` as a part of
    one. What is no whole number stays as it is.
    """
    if not re.fullmatch(r"-?[0-9]{1,20}", str(value)):
        return value
    if "gpu_us" in name:
        return gpu_hours(value)
    return part(value) if "_ppm" in name else value


def part(ppm: int | str) -> str:
    """Parts per million as a part of one, without zeros at its end; no float."""
    whole, rest = divmod(abs(int(ppm)), 1_000_000)
    sign = "-" if int(ppm) < 0 else ""
    return f"{sign}{whole}.{rest:06d}".rstrip("0").rstrip(".")


def _fact(value: Any) -> str:
    if isinstance(value, Mapping):
        return amount(value) or ""
    if isinstance(value, list | tuple):
        return ", ".join(map(_fact, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return local_time(str(value))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return local_time(str(value))


# --- progress --------------------------------------------------------------------------------


@contextmanager
def progress() -> Generator[Progress, None, None]:
    """Bars on standard error, one per thing counted; silent when it is not a terminal."""
    if not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bars(*shown, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def step(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield step


@contextmanager
def stages() -> Generator[Callable[[str], None], None, None]:
    """What is going on now and what is done, on standard error; silent when no terminal."""
    if not sys.stderr.isatty():
        yield lambda _stage: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bars(*shown, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=None)
        before: list[str] = []

        def enter(stage: str) -> None:
            if before:
                bars.console.print(f"  {before.pop()}", highlight=False)
            before.append(stage)
            bars.update(task, description=stage)

        yield enter


def _silent(what: str, done: int, of: int) -> None:
    del what, done, of


# --- failures --------------------------------------------------------------------------------

UNFIT = (
    "what was loaded so far is no whole copy, and no server answers from it; ask for the export"
    " again, or load it into another data folder"
)
_WITH_TEXT = "ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C.UTF-8' TEMPLATE template0"
EXPECTED: dict[str, tuple[int, str]] = {
    "api.settings.SettingsInvalid": (
        2,
        "docs/howto/operate.md has the settings; `tallystick config` shows those in force",
    ),
    "api.process.secret_files.SecretUnreadable": (2, ""),
    "api.process.key_files.KeysDiffer": (
        1,
        "put the log's own files back into that folder, or bring them with `tallystick keys import"
        " FILE`; `tallystick keys check` tells each file",
    ),
    "api.process.key_rotation.OldKeyDiffers": (
        1,
        "put back the signer.key that the log names, or give its verifier key: --lost KEY",
    ),
    "api.process.key_export.KeyExportInvalid": (2, "nothing was changed"),
    "api.process.embedded_postgres.EmbeddedPostgresFailed": (
        1,
        "to use a PostgreSQL of your own, set TALLYSTICK_DATABASE_URL",
    ),
    "api.backup.archive.BackupUnusable": (1, ""),
    "api.backup.programs.ProgramFailed": (
        1,
        "if it was not let in, the login needs the right REPLICATION: ALTER ROLE tally REPLICATION;"
        " and pg_hba.conf a line for `replication`",
    ),
    "api.process.service.NotReady": (1, ""),
    "ledger.log.lane_store.LanesMisplaced": (1, ""),
    "ledger.log.lane_store.LanesStopped": (1, "start that server, then try again"),
    "ledger.tree.lane_move.MoveRefused": (1, ""),
    "api.process.secret_files.KeyNotHere": (1, "put a copy of signer.key into `keys`"),
    "api.process.service.ProjectionBehind": (1, "try again in a moment"),
    "api.process.waiting.ProjectionBehind": (1, "try again in a moment"),
    "api.replay.trace_openb.TraceUnreadable": (2, ""),
    "api.chain.timer.Stopped": (1, "look at `tallystick payout reconcile`"),
    "api.epochs.closing.SealDiffers": (
        1,
        "nothing was recorded; keep the data and look at the log",
    ),
    "domain.refusal.Refused": (1, ""),
    "ledger.advisory.LockHeld": (
        1,
        "let that process end and try again; if it hangs, stop it, or as the database's owner end"
        " its session: SELECT pg_terminate_backend(number)",
    ),
    "ledger.fan_out.executor.WorkLost": (1, "give it more memory, or fewer processes (--executor)"),
    "ledger.log.handle.InProgress": (1, "try again in a moment"),
    "ledger.log.handle.LogBusy": (1, "try again in a moment"),
    "ledger.log.handle.StreamMoved": (1, "try again"),
    "ledger.log.handle.OutcomeUnknown": (1, "look whether it was recorded before you repeat it"),
    "ledger.log.durable.NotReplicated": (
        1,
        "it may be recorded: start the standby, then look; docs/howto/alerts.md#standbyaway",
    ),
    "ledger.migrate.HistoryChanged": (
        1,
        "this database was made by another version: run that version, or use another database",
    ),
    "ledger.migrate.PostgresTooOld": (1, "upgrade PostgreSQL, or set another database"),
    "ledger.migrate.TextUnusable": (
        1,
        f"make another: CREATE DATABASE name OWNER login {_WITH_TEXT}",
    ),
    "ledger.tree.checkpoint.SigningRefused": (
        1,
        "the database is older than what was signed, or another one: restore the right one",
    ),
    "ledger.tree.trees.KeyReplaced": (
        1,
        "bring the new signer.key with `tallystick keys import`, and start again",
    ),
    "ledger.tree.checkpoint.NoteInvalid": (2, ""),
    "ledger.bundle.export.NothingSigned": (1, "let `tallystick jobs` run, then try again"),
    "ledger.bundle.export.ExportRefused": (1, "the log was changed from outside; keep it as it is"),
    "ledger.bundle.shape.LoadRefused": (1, "nothing was changed"),
    "ledger.bundle.load.LoadDiffers": (1, UNFIT),
    "api.audit.loading.CopyUnfit": (1, UNFIT),
    "ledger.bundle.iceberg.ExportUnfit": (1, "nothing was registered"),
    "ledger.bundle.iceberg.CatalogueFailed": (
        1,
        "look at the catalogue's settings: .pyiceberg.yaml, or PYICEBERG_CATALOG__DEFAULT__URI",
    ),
    "ledger.tree.prove.NotCovered": (1, "let `tallystick jobs` run, then try again"),
    "ledger.tree.proof.ProofInvalid": (1, ""),
    "contracts.abi.ContractRefused": (1, ""),
    "contracts.chain.NodeFailed": (1, "look at the Ethereum node"),
    "contracts.chain.TransactionReverted": (1, ""),
    "contracts.outbox.FeeCapReached": (1, "wait until fees fall"),
    "contracts.outbox.IntentDiffers": (
        1,
        "the outbox folder holds another transaction under this name",
    ),
    "contracts.devnet.DevnetInUse": (1, "stop the process that has it open"),
    "contracts.deployment.DeploymentInvalid": (2, ""),
    "contracts.manifest.ManifestInvalid": (2, "do not use this payout file"),
    "contracts.payout_scripts.PayoutMismatch": (1, "use the payout file of this root"),
    "contracts.payout_scripts.RootAccepted": (1, "claim from it: `tallystick payout claim`"),
    "contracts.payout_scripts.NothingToClaim": (1, ""),
    "contracts.signers.PublicKeyRefused": (1, "use a key of your own"),
    "psycopg.errors.InsufficientPrivilege": (
        1,
        "the login needs CREATEROLE and a database of its own: CREATE ROLE tally LOGIN CREATEROLE;"
        f" CREATE DATABASE tally OWNER tally {_WITH_TEXT}. Where another login made the roles:"
        " GRANT tallystick_owner, tallystick_app, tallystick_projections, tallystick_audit TO tally"
        " WITH ADMIN OPTION",
    ),
    "psycopg.OperationalError": (1, "check that the database runs and TALLYSTICK_DATABASE_URL"),
    "psycopg.ProgrammingError": (1, "check that TALLYSTICK_DATABASE_URL may create and read"),
    "psycopg.Error": (1, "the database refused it: see its log"),
    "psycopg_pool.PoolTimeout": (1, "check that the database runs and TALLYSTICK_DATABASE_URL"),
    "psycopg_pool.errors.PoolTimeout": (1, "check that the database runs"),
    "eventsourcing.persistence.OperationalError": (1, "check that the database runs"),
    "eventsourcing.persistence.DatabaseError": (1, "the database refused it: see its log"),
    "requests.exceptions.ConnectionError": (1, "check that the Ethereum node runs, and its URL"),
    "requests.exceptions.RequestException": (1, "check the URL of the Ethereum node"),
    "httpx.RequestError": (1, "check that `tallystick serve` runs, and TALLYSTICK_URL"),
    "httpx.InvalidURL": (2, "give an address like https://tallystick.example"),
    "builtins.OSError": (2, ""),
}
"""Failures that happen in a healthy program, by class (bases count): exit code and what to do next.

By name, so that no command imports what it does not use.
"""
OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE}
"""An OSError that no other input mends: 1, so that systemd starts the server again."""


def run(app: Callable[[], Any], *, as_json: bool) -> int:
    """Run the application; the exit code. Bugs still show their traceback."""
    _documents.clear()
    _notes.clear()
    try:
        return _run(app, as_json=as_json)
    except BrokenPipeError:
        # Whoever read us has enough. Nothing more may be written, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_NO


def _run(app: Callable[[], Any], *, as_json: bool) -> int:
    try:
        app()
    except BrokenPipeError:
        raise
    except (SystemExit, KeyboardInterrupt, Exception) as error:
        code, said, document = _failure(error)
        for line in said:
            note(line)
        if as_json and document is not None and not _documents and sys.stdout is not None:
            try:
                tell(document, (), as_json=True)
            except BrokenPipeError:
                raise
            except OSError as full:
                note(f"standard output cannot be written: {full.strerror}")
        return code
    return 0


def _failure(error: BaseException) -> tuple[int, list[str], Mapping[str, Any] | None]:
    """The exit code, the lines for people, and what `--json` prints where no document was told.
    Raises the error itself where it is a bug.
    """
    match error:
        case SystemExit(code=code):
            return _ended(code if isinstance(code, int) else int(code is not None))
        case KeyboardInterrupt():
            return _ended(EXIT_INTERRUPTED)
        case AnswerIsNo():
            lines = str(error).splitlines()
            return error.code, lines, error.document or {"failed": "\n".join(lines)}
        case InputUnusable():
            code, said, advice = EXIT_USAGE, str(error), ""
        case ModuleNotFoundError() if missing := what_to_install(error):
            code, said, advice = EXIT_USAGE, missing, ""
        case _ if known := expected(error):
            (code, advice), said = known, sentence(error)
        case _:
            raise error
    told = _refusal(error) or {"failed": said, **({"next": advice} if advice else {})}
    return code, [f"tallystick: {said}", *filter(None, [advice])], told


def _ended(code: int) -> tuple[int, list[str], Mapping[str, Any] | None]:
    """A command that ended by itself said why; one that was interrupted may have said nothing, and
    one that was misused told nothing.
    """
    if code == EXIT_INTERRUPTED:
        return code, [] if _notes else ["interrupted"], {"failed": "interrupted"}
    if code == EXIT_USAGE:
        return code, [], {"failed": "the arguments are wrong: standard error says which"}
    return code, [], None


def expected(error: BaseException) -> tuple[int, str] | None:
    """Exit code and advice for a failure that is no bug."""
    for kind in type(error).__mro__:
        known = EXPECTED.get(f"{kind.__module__}.{kind.__qualname__}")
        if kind is OSError and getattr(error, "errno", None) in OF_THE_MACHINE:
            return EXIT_NO, "look at the disk and at the open files of this machine"
        if known is not None:
            return known
    return None


def _refusal(error: BaseException) -> dict[str, Any] | None:
    """What `--json` prints of a `domain.refusal.Refused`: the rule that said no, and its facts."""
    reason = getattr(error, "reason", None)
    if reason is None:
        return None
    told = {name: str(value) for name, value in getattr(error, "facts", {}).items()}
    return {"refused": str(getattr(reason, "value", reason)), "facts": told}


def _is_unread_address(error: BaseException) -> bool:
    """Whether psycopg could not make sense of the address: no server was asked."""
    kind = type(error)
    is_psycopgs = (kind.__module__, kind.__qualname__) == ("psycopg", "ProgrammingError")
    return is_psycopgs and getattr(error, "sqlstate", None) is None


def sentence(error: BaseException) -> str:
    """Its message; of an exception without one, what its class says it means."""
    if _is_unread_address(error):
        return "the address of the database cannot be read"  # its message would quote a password
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    told = str(error).strip().split("\n", 1)[0]
    if told and not isinstance(error, KeyError):
        return told
    return (type(error).__doc__ or type(error).__name__).strip().split("\n", 1)[0]
