"""A copy of a log from its export: both logs, every view of them, and the files of its epochs.

    every view == what the rules of this version make of the facts and reports of the export

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
from contracts import manifest
from contracts.durable_file import write_durably
from contracts.manifest import ManifestInvalid
from ledger import migrate
from ledger.beside import loaded_log
from ledger.bundle.load import KEEPER, Loaded, LoadRefused, load_logs
from ledger.bundle.verify import Step, not_told
from ledger.tree.checkpoint import Checkpoint
from projections import tables
from projections.runner import Connection, GapInLog


def load_bundle(
    conninfo: str,
    data_dir: Path,
    directory: Path,
    verified: Checkpoint | None,
    step: Step = not_told,
) -> tuple[Loaded, Path]:
    """Load an export into this database, and the files beside it into the data folder; what came of
    it, and the file of the key that opens the copy. `verified`: its head, as it was verified.

    Done again it goes on where it was ended. `step` counts facts, reports and views. Raises
    LoadRefused, LoadDiffers, and as `migrate.migrate`.
    """
    migrate.migrate(conninfo)
    loaded = load_logs(conninfo, directory, verified, loaded_log.begin, step)
    _copy_files(directory, data_dir, loaded)
    key = secret_files.keep_auditor_key(data_dir, keys.new())
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f"SET ROLE {KEEPER}".encode())
        _build_views(connection, step)
        loaded_log.end(connection, loaded.log_key, loaded.facts)
    return loaded, key


def require_folder(data_dir: Path) -> None:
    """That no server has made this folder its own. Raises LoadRefused."""
    keys_there = secret_files.folder_of(data_dir)
    if any((keys_there / name).exists() for name in key_files.FILES):
        raise LoadRefused(
            f"{keys_there} holds the keys of a server, and a copy has none: name an empty folder"
        )


def _build_views(connection: Connection, step: Step) -> None:
    """Raises LoadRefused: no door would have let these facts in."""
    tables.remove_left(connection)
    for number, view in enumerate(tables.PROJECTIONS, 1):
        try:
            if tables.differing(connection, [view]):
                tables.rebuild(connection, view)
            tables.step_all(connection, [view])
        except psycopg.OperationalError:
            raise
        except (psycopg.Error, GapInLog, ValueError) as error:
            told = str(error).strip().split("\n", 1)[0]
            raise LoadRefused(
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
                raise LoadRefused(f"payouts/{epoch}.json: {invalid}") from None
            if not is_it:
                raise LoadRefused(f"payouts/{epoch}.json: not of the root that the facts give")
            _keep(payout_files.payout_path(data_dir, epoch), data)


def _copy(source: Path, target: Path, wanted: str | None) -> None:
    if wanted is not None and source.is_file():
        data = source.read_bytes()
        if sha256(data).hexdigest() != wanted:
            raise LoadRefused(f"{source.parent.name}/{source.name}: not the file that was sealed")
        _keep(target, data)


def _keep(target: Path, data: bytes) -> None:
    if not target.is_file() or target.read_bytes() != data:
        target.parent.mkdir(exist_ok=True)
        write_durably(target, data)
