"""A copy of a log from its export: both logs, every view of them, and the files of its epochs.

    every view == what the rules of this version make of the facts and reports of the export
    one load at a time, from the first look at the database to the word that all is there

Nothing of the operator's database is needed or believed; what an export does not have, no copy has
(docs/howto/load-an-export.md). The copy is answered from by `serve --read-only` alone.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import psycopg

from api.door import keys
from api.epochs import files, payout_files
from api.process import key_files, secret_files
from api.process.leading import keeping_out
from contracts import manifest
from contracts.durable_file import write_durably
from contracts.manifest import ManifestInvalid
from ledger import migrate
from ledger.beside import loaded_log
from ledger.bundle.load import FORGED, Loaded, load_logs, opened
from ledger.bundle.shape import LoadRefused
from ledger.bundle.verify import Step, VerifyReport, not_told
from ledger.log import market
from ledger.tree import trees
from projections import tables
from projections.runner import Connection, GapInLog


class CopyUnfit(Exception):
    """The facts were taken, and a view or a file of them is not to be had: no server answers from
    what is there.
    """


def load_bundle(
    conninfo: str, data_dir: Path, directory: Path, verified: VerifyReport, step: Step = not_told
) -> tuple[Loaded, Path]:
    """Load an export into this database, and the files beside it into the data folder; what came of
    it, and the file of the key that opens the copy. `verified`: what its verification found.

    Done again it goes on where it was ended. A database that has a log of its own is not migrated.
    `step` counts facts, reports and views. Raises LoadRefused, LoadDiffers, CopyUnfit, LockHeld,
    and as `migrate.migrate`.
    """
    head = verified.checkpoint
    assert head is not None, "no export is verified without a head"
    with opened(conninfo) as connection:
        loaded_log.require_room(connection, head.origin)
        migrate.migrate_on(connection)
        loaded = load_logs(connection, conninfo, directory, head, _begin, step)
        _copy_files(directory, data_dir, loaded)
        key = secret_files.keep_auditor_key(data_dir, keys.new())
        _build_views(connection, step)
        _end(connection, loaded, verified)
    return loaded, key


def _begin(connection: Connection, origin: str, log_key: str) -> None:
    """While no server makes keys of a log: what it finds afterwards is a copy."""
    with keeping_out(connection, key_files.MAKING):
        loaded_log.begin(connection, origin, log_key)


def _end(connection: Connection, loaded: Loaded, verified: VerifyReport) -> None:
    """Raises CopyUnfit: somebody wrote into it meanwhile."""
    reached, head = trees.head(connection), loaded.checkpoint
    is_there = market.head(connection) == head.size == reached.size and reached.root == head.root
    if not is_there or any(part.behind for part in tables.lag(connection)):
        raise CopyUnfit("the database has other facts than the export, or views that lack some")
    loaded_log.end(
        connection,
        loaded.log_key,
        loaded.facts,
        key_given=verified.key_given,
        root_given=verified.against is not None,
    )


def require_folder(data_dir: Path) -> None:
    """That no server has made this folder its own. Raises LoadRefused."""
    keys_there = secret_files.folder_of(data_dir)
    if any((keys_there / name).exists() for name in key_files.FILES):
        raise LoadRefused(
            f"{keys_there} holds the keys of a server, and a copy has none: name an empty folder"
        )


def _build_views(connection: Connection, step: Step) -> None:
    """Raises CopyUnfit: no door would have let these facts in."""
    tables.remove_left(connection)
    for number, view in enumerate(tables.PROJECTIONS, 1):
        try:
            if tables.differing(connection, [view]):
                tables.rebuild(connection, view)
            tables.step_all(connection, [view])
        except psycopg.OperationalError:
            raise
        except (psycopg.Error, GapInLog, *FORGED) as error:
            told = f"{type(error).__name__}: {error}".strip().split("\n", 1)[0]
            raise CopyUnfit(
                f"the view {view.name} cannot be built from these facts: {told}"
            ) from None
        step("views", number, len(tables.PROJECTIONS))


def _copy_files(directory: Path, data_dir: Path, loaded: Loaded) -> None:
    """Those that the facts commit to, under names that are made here of their numbers."""
    for epoch, (of_epoch, of_clients) in sorted(loaded.epochs.items()):
        _copy(directory / "epochs" / f"{epoch}.json", files.epoch_path(data_dir, epoch), of_epoch)
        _copy(
            directory / "clients" / f"{epoch}.json", files.clients_path(data_dir, epoch), of_clients
        )
    for epoch, root in sorted(loaded.roots.items()):
        source = directory / "payouts" / f"{epoch}.json"
        if source.is_file():
            data = source.read_bytes()
            try:
                is_it = manifest.decode(data).root == root
            except ManifestInvalid as invalid:
                raise CopyUnfit(f"payouts/{epoch}.json: {invalid}") from None
            if not is_it:
                raise CopyUnfit(f"payouts/{epoch}.json: not of the root that the facts give")
            _keep(payout_files.payout_path(data_dir, epoch), data)


def _copy(source: Path, target: Path, wanted: str | None) -> None:
    if wanted is not None and source.is_file():
        data = source.read_bytes()
        if sha256(data).hexdigest() != wanted:
            raise CopyUnfit(f"{source.parent.name}/{source.name}: not the file that was sealed")
        _keep(target, data)


def _keep(target: Path, data: bytes) -> None:
    if not target.is_file() or target.read_bytes() != data:
        target.parent.mkdir(exist_ok=True)
        write_durably(target, data)
