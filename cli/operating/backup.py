"""`tallystick backup | restore | drill`: copies of the whole market, and the proof that they are.

Only wiring: `api/backup` copies, restores and proves.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.settings import ConfigFile, DataDir, in_force
from cli.terminal import (
    EXIT_NO,
    AnswerIsNo,
    AsJson,
    InputUnusable,
    facts,
    note,
    progress,
    stages,
    tell,
    top_level,
)
from cli.this_machine import database, stopping

if TYPE_CHECKING:
    from api.backup.archive import Archive, Backup
    from api.backup.programs import Programs
    from api.backup.proof import Proof
    from api.settings import Settings
    from ledger.tree.checkpoint import Checkpoint, VerifierKey

commands = top_level()

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of backups.")]
Until = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only what was committed by then; RFC 3339 with an offset."),
]
Label = Annotated[
    str | None, typer.Option("--backup", metavar="NAME", help="This backup; else the newest.")
]
Root = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A signed head that another person kept.")
]
Key = Annotated[
    str | None,
    typer.Option(help="A verifier key of the log that signed the heads, from another source."),
]
Postgres = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Programs of another PostgreSQL than the embedded one."),
]


@commands.command(epilog="Example: tallystick backup /srv/backup --json")
def backup(
    folder: Folder,
    full: Annotated[
        bool, typer.Option("--full", help="Copy everything, not only what changed.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Stream the WAL into the folder until stopped.")
    ] = False,
    synchronous: Annotated[
        bool | None,
        typer.Option(
            "--synchronous/--asynchronous",
            help="With --follow: let every answer wait until the stream has it, or no longer.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Take none: check all that lies there.")
    ] = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Copy the database and the files of the data folder, while the market runs.

    The first backup is full; later ones hold what changed, where the server has `summarize_wal` on.
    `--follow` keeps what is written between backups; with `--synchronous` no answer is given before
    it is kept, and the market stands still while the stream does. Keys are not in a backup: keep
    `tallystick keys export` elsewhere. The database's login needs the right REPLICATION.
    """
    from api.backup import following, taking

    if sum((full, follow, check)) > 1:
        raise InputUnusable("--full, --follow, --check: one of them")
    if synchronous is not None and not follow:
        raise InputUnusable("--synchronous and --asynchronous belong to --follow")
    archive = _archive(folder)
    if check:
        _check_all(archive, as_json=as_json)
        return
    settings = in_force(config, data_dir=data_dir)
    with database(settings) as conninfo:
        taking.require_whole(conninfo)
        if follow:
            with stopping() as stop:
                following.follow(conninfo, archive, stop, note, synchronous=synchronous)
            return
        source = taking.Source(conninfo, settings.data_dir, settings.log_origin)
        with stages() as stage:
            made = taking.take(source, archive, full=full, stage=stage)
    result = _told(made, archive)
    tell(result, facts(result), as_json=as_json)
    note(
        "Keys are not in it: `tallystick keys export FILE` writes them, sealed, for another place."
    )


@commands.command(epilog="Example: tallystick restore /srv/backup --data-dir /var/lib/new")
def restore(
    folder: Folder,
    until: Until = None,
    label: Label = None,
    root: Root = None,
    key: Key = None,
    views: Annotated[
        bool, typer.Option("--views/--no-views", help="Build every view anew and compare.")
    ] = True,
    postgres: Postgres = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a data folder of a backup, and prove that nothing is missing or changed.

    The folder must be empty, but for `keys`; what its `signed-heads` remembers is compared, too.
    With the WAL that `backup --follow` kept, all comes back that was answered; with `--until`, what
    was committed by then. Exit 1 when the proof fails: the folder stays for a look, and no server
    should be opened on it.
    """
    settings = in_force(config, data_dir=data_dir)
    _restore(
        folder,
        settings.data_dir,
        settings,
        (until, label),
        (root, key),
        postgres,
        views,
        durable=True,
        as_json=as_json,
    )
    if until is not None:
        note(
            "It is for looking only: `tallystick serve --read-only`. What came later is not in it."
        )
    elif postgres is not None:
        note(f"Next: start it with the programs in {postgres}, and set TALLYSTICK_DATABASE_URL.")
    else:
        note("Next: `tallystick keys import FILE`, `keys check`, then `tallystick serve`.")


@commands.command(epilog="Example: tallystick drill /srv/backup --root head.txt --json")
def drill(
    folder: Folder,
    until: Until = None,
    label: Label = None,
    root: Root = None,
    key: Key = None,
    views: Annotated[
        bool, typer.Option("--views/--no-views", help="Build every view anew and compare.")
    ] = True,
    postgres: Postgres = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Restore into a temporary folder, prove it, and remove it: is this backup good?

    Also compared are the heads that this machine's signer remembers (`keys/signed-heads` of the
    data folder). Exit 1 when anything is missing or differs.
    """
    settings = in_force(config, data_dir=data_dir)
    with tempfile.TemporaryDirectory(prefix="tallystick-") as name:
        Path(name).chmod(0o755)  # PostgreSQL may run as another user
        _restore(
            folder,
            Path(name) / "data",
            settings,
            (until, label),
            (root, key),
            postgres,
            views,
            durable=False,
            as_json=as_json,
        )


def _restore(
    folder: Path,
    data_dir: Path,
    settings: Settings,
    which: tuple[str | None, str | None],
    outside: tuple[Path | None, str | None],
    postgres: Path | None,
    views: bool,
    *,
    durable: bool,
    as_json: bool,
) -> None:
    """Check, restore, prove and tell. Exit 1 when the proof fails; without `durable` the folder is
    one that is removed.
    """
    from time import perf_counter

    from api.backup import proof as proofs
    from api.backup import restoring
    from api.backup.programs import Programs
    from api.process.embedded_postgres import EmbeddedPostgres

    archive, known = _archive(folder), _remembered(settings)
    started = perf_counter()
    until, label = which
    until_us = None if until is None else _moment(until)
    programs = Programs(postgres, durable=durable)
    restoring.require_room(data_dir)
    chain = archive.chain(label, until_us)
    signed = _heads(archive, chain[-1], settings.log_origin, outside[0], with_signer=until is None)
    key = _verifier(outside[1])
    _require_whole(archive, chain, programs)
    checked = perf_counter()
    with stages() as stage:
        restoring.restore(
            archive,
            chain,
            data_dir,
            until_us=until_us,
            programs=programs,
            durable=durable,
            stage=stage,
        )
        restored = perf_counter()
        with EmbeddedPostgres(data_dir, durable=durable, binaries=postgres) as server:
            found = proofs.prove(
                server.uri_of(chain[-1].database),
                chain[-1],
                signed if until else [*signed, *known],
                known,
                note=_signed_note(outside[0]),
                key=key,
                stage=stage,
                with_views=views,
            )
    times = started, checked, restored, perf_counter()
    where = {"data_dir": str(data_dir)} if durable else {}
    result = {**where, **_shown_proof(found, chain, times), "until": until}
    tell(result, [*facts(_shown(result)), *result["problems"]], as_json=as_json)
    if not found.ok:
        raise typer.Exit(EXIT_NO)


def _require_whole(archive: Archive, chain: Sequence[Backup], programs: Programs) -> None:
    """Exit 1 when any byte of these backups, or of the WAL after them, is another."""
    with progress() as told:
        problems = archive.faults(chain, programs, told)
    if problems:
        raise AnswerIsNo(
            f"it is not whole, and nothing was restored: {problems[0]}\nTake another one of"
            f" `tallystick backup {archive.folder} --check`",
            {"damaged": problems},
        )


def _shown_proof(
    found: Proof, chain: Sequence[Backup], times: tuple[float, float, float, float]
) -> dict[str, Any]:
    """What was found of which backups; how long checking, restoring and proving took."""
    took = [round(end - start, 2) for start, end in pairwise(times)]
    return {
        "whole": found.ok,
        "backup": chain[-1].label,
        "backups": len(chain),
        "facts": found.facts,
        "reports": found.reports,
        "signed_facts": found.signed,
        "missing_facts": found.missing,
        "views_compared": found.views,
        "check_seconds": took[0],
        "restore_seconds": took[1],
        "prove_seconds": took[2],
        "problems": list(found.problems),
    }


def _remembered(settings: Settings) -> list[Checkpoint]:
    """The heads that the signer of the data folder signed."""
    from api.backup import proof as proofs
    from api.process import key_files, secret_files

    path = secret_files.folder_of(settings.data_dir) / key_files.HEADS
    return proofs.heads_of_signer(path, settings.log_origin)


def _heads(
    archive: Archive, last: Backup, origin: str, root: Path | None, *, with_signer: bool
) -> list[Checkpoint]:
    """The heads to compare with: the one given, those in the backup."""
    from api.backup import proof as proofs
    from api.process import key_files

    found: list[Checkpoint] = []
    if last.head:
        # Only to compare: whoever could change it could change the sums of the backup, too.
        found.append(proofs.head_of_note(last.head))
    if with_signer:
        found += proofs.heads_of_signer(archive.base / last.label / key_files.HEADS, origin)
    if root is not None:
        if not root.is_file():
            raise InputUnusable(f"{root} is not there: give the file of a signed head")
        found.append(proofs.head_of_note(root.read_text(encoding="utf-8")))
    return found


def _signed_note(root: Path | None) -> str | None:
    """The head that was given, where it is signed."""
    told = "" if root is None else root.read_text(encoding="utf-8")
    return told if "\n\n" in told else None


def _verifier(key: str | None) -> VerifierKey | None:
    from ledger.tree.checkpoint import parse_verifier_key

    return None if key is None else parse_verifier_key(key)


def _check_all(archive: Archive, *, as_json: bool) -> None:
    """Every backup, whether all that it needs is there, and the WAL after the newest. Exit 1 when
    anything is damaged or missing.
    """
    from api.backup.programs import Programs

    there = archive.backups()
    if not there:
        raise archive.no_backup()
    with progress() as told:
        problems = archive.faults(there, Programs(durable=False), told)
    problems += archive.orphans()
    for older in there[:-1]:
        # A gap after the newest one is told already, for all of them.
        gaps = (gap for gap in archive.gaps_after(older) if gap not in problems)
        problems += [f"{older.label}: cannot be restored: {gap}; remove it" for gap in gaps]
    result = {
        "whole": not problems,
        "backups": [_told(one, archive) for one in there],
        "wal_segments": len(archive.segments()),
        "problems": problems,
    }
    lines = [f"{one.label}  {'full' if one.needs is None else f'on {one.needs}'}" for one in there]
    tell(result, [*lines, *problems, "not whole" if problems else "whole"], as_json=as_json)
    if problems:
        raise typer.Exit(EXIT_NO)


def _told(made: Backup, archive: Archive) -> dict[str, Any]:
    from api.door.moments import moment

    path = archive.base / made.label
    return {
        "backup": made.label,
        "folder": str(path),
        "kind": "full" if made.needs is None else "incremental",
        "needs": made.needs,
        "began_at": moment(made.began_us),
        "ended_at": moment(made.ended_us),
        "facts": made.facts,
        "reports": made.reports,
        "bytes": sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
        "keys": "not in it",
    }


def _shown(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "problems"}


def _archive(folder: Path) -> Archive:
    from api.backup.archive import Archive

    return Archive(folder.expanduser().resolve())


def _moment(text: str) -> int:
    from api.door.moments import parse_moment

    try:
        return parse_moment(text)
    except ValueError as error:
        raise InputUnusable(f"--until {text!r}: {error}, such as 2026-11-25T23:00:00Z") from None
