"""An export as tables of an Iceberg catalogue: the one file that speaks pyiceberg, of the extra
`tallystick[iceberg]`.

    rows of NAMESPACE.market == facts of the export;   rows of NAMESPACE.usage == its reports

The export's Parquet files become the data files of the two tables where they lie: nothing is
copied, and the catalogue's readers need these files under the same paths. An export holds the log
from its first row, so a later one takes the place of the one before in a new snapshot. That the
files are those of the manifest is checked; what is in them, `ledger/bundle/verify.py` checks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.bundle import parquet
from ledger.bundle.shape import FORMAT, log_file
from ledger.bundle.verify import Step, check_files, not_told

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

OF_CATALOGUES = {"botocore", "google", "pyiceberg", "requests", "sqlalchemy", "thrift"}
"""Libraries whose errors a catalogue answers with."""
ORIGIN, FACTS, MANIFEST = "tallystick.origin", "tallystick.facts", "tallystick.manifest-sha256"
METRICS = {
    "write.metadata.metrics.default": "none",
    "write.metadata.metrics.column.position": "full",
}
"""The statistics that the files have."""


class CatalogueFailed(Exception):
    """The catalogue is not configured, cannot be reached, or refused it; the message is its own."""


class ExportUnfit(Exception):
    """The files are not those of the export, or the tables hold another log or a later export."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A table as it now is: `files` and `rows` of the export; `added`, files that were not in it
    before; `removed`, files of an earlier export that no longer are.
    """

    table: str
    files: int
    rows: int
    added: int
    removed: int


def register(
    directory: Path, catalogue: str | None, namespace: str, *, step: Step = not_told
) -> tuple[Registered, ...]:
    """Make the tables `market` and `usage` of `namespace` those of an export, without copying.

    `catalogue` is a name of pyiceberg's configuration (`.pyiceberg.yaml`, or the environment's
    `PYICEBERG_CATALOG__NAME__URI`); None, its default. Each table changes in one commit, or not at
    all; the same export again changes nothing. `step` counts files.

    Raises ExportUnfit, CatalogueFailed.
    """
    with _answers():
        into = _opened(catalogue)
    directory = directory.resolve()
    manifest = _checked(directory)
    files = _log_files(directory, manifest["files"], step)
    with _answers():
        into.create_namespace_if_not_exists(namespace)
        tables = {
            name: into.create_table_if_not_exists(
                f"{namespace}.{name}", schema=schema, properties=METRICS
            )
            for name, schema in (("market", parquet.MARKET), ("usage", parquet.USAGE))
        }
        for table in tables.values():
            _require_successor(table, manifest)
        return tuple(
            _set(f"{namespace}.{name}", table, files[name], manifest)
            for name, table in tables.items()
        )


def _checked(directory: Path) -> Mapping[str, Any]:
    """The manifest of an export whose files are as it says. Raises ExportUnfit."""
    manifest, problems = check_files(directory)
    if problems:
        raise ExportUnfit("; ".join(map(str, problems)))
    if manifest["format"] != FORMAT:
        raise ExportUnfit("of an earlier format: have it written again by this version")
    listed = {str(file["path"]) for file in manifest["files"]}
    for path in sorted(directory.glob("log/*.parquet")):
        name = path.relative_to(directory).as_posix()
        if name not in listed:
            raise ExportUnfit(f"{name} is not in the manifest of this export")
    return manifest


def _log_files(
    directory: Path, listed: list[dict[str, Any]], step: Step
) -> dict[str, dict[str, int]]:
    """By table, the rows of each file by its address. Raises ExportUnfit."""
    found: dict[str, dict[str, int]] = {"market": {}, "usage": {}}
    for number, entry in enumerate(listed, 1):
        file, path = log_file(entry["path"]), directory / entry["path"]
        step("files", number, len(listed))
        if file is None:
            continue
        is_market = file.lane is None
        try:
            rows = parquet.count_rows(path, parquet.MARKET if is_market else parquet.USAGE)
        except parquet.FileDamaged as damage:
            raise ExportUnfit(str(damage)) from None
        if rows != entry.get("rows"):
            raise ExportUnfit(f"{file.path}: {rows} rows, the manifest says otherwise")
        found["market" if is_market else "usage"][f"file://{path}"] = rows
    return found


@contextmanager
def _answers() -> Generator[None, None, None]:
    """Tell what a catalogue answered as one error, whichever library speaks to it."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in OF_CATALOGUES:
            raise
        raise CatalogueFailed(f"{type(error).__name__}: {error}") from error


def _opened(name: str | None) -> Catalog:
    from pyiceberg.catalog import load_catalog

    try:
        return load_catalog(name)
    except ValueError as error:  # pyiceberg's word for what is not configured
        raise CatalogueFailed(str(error)) from None


def _require_successor(table: Table, manifest: Mapping[str, Any]) -> None:
    """The table is empty, or holds an export of the same log that is no later. Raises ExportUnfit.

    A table with files that no export brought is not ours to change.
    """
    name, has = ".".join(table.name()), table.properties
    if MANIFEST not in has:
        if table.current_snapshot() is not None:
            raise ExportUnfit(f"{name} holds rows of something else: give another --namespace")
        return
    if has[ORIGIN] != manifest["origin"]:
        raise ExportUnfit(f"{name} holds the log of {has[ORIGIN]}: give another --namespace")
    if int(has[FACTS]) > int(manifest["last"]):
        raise ExportUnfit(f"{name} holds a later export, of {has[FACTS]} facts")


def _set(
    name: str, table: Table, files: Mapping[str, int], manifest: Mapping[str, Any]
) -> Registered:
    before = _paths(table)
    if table.properties.get(MANIFEST) == manifest["sha256"] and before == files.keys():
        return _told(name, files, (), ())
    from pyiceberg.expressions import AlwaysTrue

    told = {
        ORIGIN: str(manifest["origin"]),
        FACTS: str(manifest["last"]),
        MANIFEST: str(manifest["sha256"]),
    }
    with table.transaction() as change:
        if name.endswith(".market"):
            with change.update_schema(allow_incompatible_changes=True) as columns:
                columns.union_by_name(parquet.MARKET)  # a table of format 1 tells no times
        if before:
            change.delete(AlwaysTrue())  # whole files: no row is read, no file is removed
        if files:
            change.add_files(list(files), told, check_duplicate_files=False)
        change.set_properties(told)
    return _told(name, files, files.keys() - before, before - files.keys())


def _told(
    name: str, files: Mapping[str, int], added: Iterable[str], removed: Iterable[str]
) -> Registered:
    return Registered(name, len(files), sum(files.values()), len(list(added)), len(list(removed)))


def _paths(table: Table) -> set[str]:
    """The data files of a table as it now is."""
    return {str(path) for path in table.inspect.files()["file_path"].to_pylist()}
