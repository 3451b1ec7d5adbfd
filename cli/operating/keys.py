"""`tallystick keys`: key files of this server, checked against its log, exported and imported."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.remote import Remote, reads
from cli.settings import ConfigFile, DataDir, in_force
from cli.terminal import AnswerIsNo, AsJson, InputUnusable, columns, facts, group, note, tell

if TYPE_CHECKING:
    from api.process.key_files import Finding
    from api.settings import Settings

app = group(
    "keys", "The key files of this server: check, export, import, rotate.", "tallystick keys check"
)

OVERLAP_DAYS = 14
"""Design reliability 6: a log key stays beside its successor for two weeks."""
ROTATION = ("number", "old", "new", "position", "old_key_signed", "old_key_signs_until")

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help="The first line is the passphrase; else the command asks for it.",
    ),
]


@app.command(epilog="Example: tallystick keys check --json")
def check(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Compare each key file with the log. Makes nothing. Exit 1 when a file is missing or differs.

    Run it after a restore, before the server starts.
    """
    from api.process.secret_files import folder_of

    settings = in_force(config, data_dir=data_dir)
    found = _examined(settings)
    folder, wrong = folder_of(settings.data_dir), [each for each in found if each.is_wrong]
    rows = [{"file": each.file, "state": each.state, "why": each.why} for each in found]
    told = {"folder": str(folder), "ok": not wrong, "files": rows}
    tell(told, columns(rows, ("file", "state", "why")), as_json=as_json)
    if wrong:
        raise AnswerIsNo(
            f"{', '.join(each.file for each in wrong)}: put the log's own file back into {folder},"
            " or bring it with `tallystick keys import FILE`\nOf a file that is lost for good"
            f" `tallystick keys make --help` says what follows{_of_signer(wrong)}"
        )


@app.command(epilog="Example: tallystick keys export keys.sealed")
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file.")],
    passphrase_file: PassphraseFile = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write the key files into one file, encrypted with a passphrase of 12 characters or more.

    Keep the file apart from the backups of the database, and the passphrase apart from the file.
    """
    from api.door.moments import moment
    from api.process import key_export, key_files, secret_files
    from contracts.durable_file import entry_to_disk

    settings = in_force(config, data_dir=data_dir)
    if file.exists():
        raise InputUnusable(f"{file} is there already: name a new file")
    folder, files = secret_files.folder_of(settings.data_dir), dict[str, str]()
    for name in key_files.CARRIED:
        if (folder / name).exists():
            files[name] = (folder / name).read_text(encoding="ascii")
    if key_files.HEADS in files:
        last = key_files.last_head(folder / key_files.HEADS, settings.log_origin)
        files[key_files.HEADS] = "" if last is None else last.line
    if not files:
        raise InputUnusable(f"{folder} has no key files: give the server's --data-dir")
    made_at = moment(time.time_ns() // 1_000)
    sealed = key_export.seal(
        settings.log_origin, files, _passphrase(passphrase_file, twice=True), made_at
    )
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(sealed)
        out.flush()
        os.fsync(out.fileno())
    entry_to_disk(file.parent)
    result = {"file": str(file), "origin": settings.log_origin, "files": sorted(files)}
    tell(result, facts(result), as_json=as_json)


@app.command("import", epilog="Example: tallystick keys import keys.sealed")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `keys export` wrote.")],
    passphrase_file: PassphraseFile = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write the key files of an export into the data folder.

    Refused, with nothing written, when a file there holds another key. Run it while no server runs.
    """
    from api.process import key_export, secret_files
    from ledger.tree.checkpoint import append_head, remembered

    settings = in_force(config, data_dir=data_dir)
    header, files = key_export.open_export(_read(file), _passphrase(passphrase_file, twice=False))
    origin = settings.log_origin
    if header["origin"] != origin:
        raise AnswerIsNo(
            f"these are keys of the log {header['origin']}, and TALLYSTICK_LOG_ORIGIN is"
            f" {origin}: set it, or take another file"
        )
    folder = secret_files.made_folder(settings.data_dir)
    with _no_signer(folder):
        states = {name: _state(folder, name, text, origin) for name, text in files.items()}
        other = sorted(name for name, state in states.items() if state == "other")
        if other:
            raise AnswerIsNo(
                f"{folder} holds another {', '.join(other)}: nothing was written. Move it away"
                " if the keys of the export are the right ones",
                {"refused": "other_keys", "facts": {"files": ", ".join(other)}},
            )
        for name, state in states.items():
            if state == "written":
                _make(folder / name, files[name])
            elif state == "later":
                append_head(folder / name, next(remembered(files[name], origin)))
    result = {"folder": str(folder), "files": states}
    tell(result, facts(result), as_json=as_json)
    note("Next: `tallystick keys check` compares them with the log.")


@app.command(epilog="Example: tallystick keys make sealing.key")
def make(
    name: Annotated[
        str, typer.Argument(metavar="FILE", help="sealing.key, server.key or signed-heads.")
    ],
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a new file in place of one that is lost for good; the other keys are never made anew.

    sealing.key: webhooks wait until their owners rotate the secret, logins of datastores are added
    again. server.key: lists that are being read begin anew. signed-heads: the signer remembers no
    head any more, so compare the log with a head that another person kept first.
    """
    import secrets

    from api.process import key_files, secret_files

    contents = {
        key_files.SEALING: secrets.token_hex(secret_files.SECRET_BYTES) + "\n",
        key_files.SERVER: secrets.token_hex(secret_files.SECRET_BYTES) + "\n",
        key_files.HEADS: "",
    }
    if name not in contents:
        raise InputUnusable(f"{name}: one of {', '.join(contents)}")
    folder = secret_files.made_folder(in_force(config, data_dir=data_dir).data_dir)
    with _no_signer(folder):
        _make(folder / name, contents[name])
    result = {"file": str(folder / name)}
    tell(result, facts(result), as_json=as_json)


@app.command(epilog="Example: tallystick keys rotate --json")
def rotate(
    overlap_days: Annotated[
        int,
        typer.Option(
            min=0, help="So long the old key signs heads too, at most 90; 0: it was stolen."
        ),
    ] = OVERLAP_DAYS,
    lost: Annotated[
        str | None,
        typer.Option(
            "--lost",
            metavar="KEY",
            help="signer.key is lost: its verifier key, from `GET /v1/audit/log/key` or an export.",
        ),
    ] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Replace signer.key, which signs the heads of the log, and announce that in the log.

    The old key signs the announcement, so an auditor with the old key follows to the new one.
    Stop every server and the timers first. A run that was interrupted is ended by the next one.
    """
    from api.door.moments import moment
    from api.process import key_files, key_rotation, secret_files
    from api.process.database_watch import warn_of_standby
    from api.process.service import Service
    from domain.duration import DAY_US
    from ledger.tree.checkpoint import parse_verifier_key

    settings = in_force(config, data_dir=data_dir)
    folder = secret_files.made_folder(settings.data_dir)
    given = None if lost is None else parse_verifier_key(lost).public
    signer = folder / key_files.SIGNER
    if lost is not None and signer.exists():
        raise InputUnusable(f"--lost: {signer} is there")
    if lost is None and not signer.exists():
        raise InputUnusable(f"{signer} is missing: import it, or give --lost KEY")
    known = frozenset({key_files.SIGNER})
    try:
        with _no_signer(folder), Service.open(settings, lost=known) as service:
            warn_of_standby(service)
            told = key_rotation.rotate(service, given, overlap_days * DAY_US)
    except KeyboardInterrupt:
        note(
            "interrupted: where a rotation had begun, no server starts until the command ran again"
        )
        raise
    result = {
        "rotation": told.number,
        "verifier_key": _verifier(told.origin, told.new_key),
        "replaces": _verifier(told.origin, told.old_key),
        "old_key_signed": told.old_signature is not None,
        "old_key_signs_until": moment(told.until_us),
    }
    tell(result, facts(result), as_json=as_json)
    note(
        "Export the keys again (`tallystick keys export`), and tell auditors the new verifier key."
    )


@app.command(epilog="Example: tallystick keys announced --json")
@reads
def announced(remote: Remote) -> None:
    """List the keys that signed the heads of a server's log, by its announcements. Anybody may."""
    told = remote.ask(lambda c: c.read_log_key())
    rows = told["rotations"]
    lines = [f"verifier_key  {told['verifier_key']}", *columns(rows, ROTATION)] if rows else None
    remote.tell(told, lines or [f"verifier_key  {told['verifier_key']}", "it was never replaced"])


def _of_signer(wrong: list[Finding]) -> str:
    """How to go on with another signing key than the log's: an older export has an older key."""
    from api.process import key_files

    if not any(one.file == key_files.SIGNER and one.state == key_files.DIFFERS for one in wrong):
        return ""
    return (
        "\nAn export from before the last `tallystick keys rotate` holds the key before: move"
        f" {key_files.SIGNER} away and import one from after it; where none is left,"
        " `tallystick keys rotate --lost KEY`"
    )


def _verifier(origin: str, public: str) -> str:
    from ledger.tree.checkpoint import VerifierKey

    return str(VerifierKey(origin, bytes.fromhex(public)))


def _examined(settings: Settings) -> list[Finding]:
    """Each file against the log; the database is read, and never migrated."""
    import psycopg

    from api.process import key_files, secret_files
    from cli.this_machine import database

    with database(settings) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        try:
            return key_files.examine(
                connection, secret_files.folder_of(settings.data_dir), settings.log_origin
            )
        except psycopg.errors.UndefinedTable:
            raise AnswerIsNo(
                "this database has no log yet: `tallystick migrate` makes one"
            ) from None


def _state(folder: Path, name: str, text: str, origin: str) -> str:
    """What an import does with one file: written, there, later (a head), or other (refused)."""
    from api.process import key_files
    from ledger.tree.checkpoint import remembered

    path = folder / name
    if name not in key_files.CARRIED:
        raise InputUnusable(f"{name} is no key file of this version")
    if not path.exists():
        return "written"
    if name != key_files.HEADS:
        here = path.read_text(encoding="ascii", errors="replace")
        return "there" if here.strip() == text.strip() else "other"
    mine, theirs = key_files.last_head(path, origin), next(remembered(text, origin), None)
    if theirs is None or (mine is not None and mine.size > theirs.size):
        return "there"
    if mine is None or mine.size < theirs.size:
        return "later"
    return "there" if mine == theirs else "other"


def _make(path: Path, content: str) -> None:
    """Raises AnswerIsNo: it is there, made by another process perhaps a moment ago."""
    from api.process import secret_files

    if not secret_files.make(path, content):
        raise AnswerIsNo(f"{path} is there: it was not made. Move it away first")


@contextmanager
def _no_signer(folder: Path) -> Generator[None, None, None]:
    """That no process signs heads now. Raises AnswerIsNo."""
    from api.process import key_files

    path = folder / key_files.HEADS
    if not path.exists():
        yield
        return
    with path.open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnswerIsNo(
                "a server uses these keys now: stop `tallystick serve` and `tallystick jobs` first"
            ) from None
        yield


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputUnusable(f"{file}: {error.strerror}") from None


def _passphrase(file: Path | None, *, twice: bool) -> str:
    if file is not None:
        told = _read(file).decode("utf-8", "replace").split("\n", 1)[0].rstrip("\r")
        if not told:
            raise InputUnusable(f"{file}: its first line is empty, and that is the passphrase")
        return told
    typed: Any = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True)
    return str(typed)
