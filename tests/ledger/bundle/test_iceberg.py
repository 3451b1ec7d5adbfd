"""An export in a catalogue: the rows are counted, no data file is copied, twice is once.

Needs `tallystick[iceberg]`; with it: `pip install 'pyiceberg[sql-sqlite]>=0.12,<1'`.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ledger.bundle.export import export_bundle
from ledger.bundle.shape import manifest_bytes
from tests.ledger.bundle.test_export import KEY
from tests.ledger.bundle.test_verify import Made, adjust_manifest, lane_file, market_file
from tests.ledger.bundle.test_verify import bundle as bundle
from tests.ledger.bundle.test_verify import original as original
from tests.scenes.audit import open_scene
from tests.scenes.shell import tallystick

needs_iceberg = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("pyiceberg", "sqlalchemy")),
    reason="tallystick[iceberg]: pyiceberg, or sqlalchemy for the catalogue, is not installed",
)
"""SQLAlchemy is what a catalogue in SQLite takes."""


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A catalogue in a folder, under the name `lake`: a function that opens a table of it."""
    from pyiceberg.catalog import load_catalog

    lake = tmp_path / "lake"
    lake.mkdir()
    settings = {
        "type": "sql",
        "uri": f"sqlite:///{lake}/catalogue.db",
        "warehouse": f"file://{lake}",
    }
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG.config", {"catalog": {"lake": settings}})
    return lambda name: load_catalog("lake").load_table(name)


def registered(bundle: Path, *more: str) -> dict[str, tuple[int, int, int, int]]:
    from ledger.bundle.iceberg import register

    found = register(bundle, "lake", *(more or ("tallystick",)))
    return {one.table: (one.files, one.rows, one.added, one.removed) for one in found}


def data_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


@needs_iceberg
def test_the_rows_of_an_export_are_those_of_two_tables_and_no_file_is_copied(
    bundle: Path, catalogue: Callable[[str], Any], tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in data_files(tmp_path)}
    assert registered(bundle) == {
        "tallystick.market": (1, 26, 1, 0),
        "tallystick.usage": (2, 10, 2, 0),
    }
    assert {path: path.read_bytes() for path in data_files(tmp_path)} == before
    market, usage = catalogue("tallystick.market"), catalogue("tallystick.usage")
    assert market.scan().to_arrow()["position"].to_pylist() == list(range(1, 27))
    lane = int(usage.scan().to_arrow()["lane"][0].as_py())
    assert usage.scan().to_arrow().num_rows == 10
    some = usage.scan(row_filter=f"lane = {lane} AND position = 1").to_arrow()
    assert some.num_rows == 1


@needs_iceberg
def test_the_same_export_twice_is_registered_once(
    bundle: Path, catalogue: Callable[[str], Any]
) -> None:
    registered(bundle)
    first = catalogue("tallystick.usage").current_snapshot()
    assert registered(bundle) == {
        "tallystick.market": (1, 26, 0, 0),
        "tallystick.usage": (2, 10, 0, 0),
    }
    assert catalogue("tallystick.usage").current_snapshot() == first
    assert catalogue("tallystick.usage").scan().to_arrow().num_rows == 10


@needs_iceberg
def test_a_later_export_takes_the_place_of_the_one_before_and_never_the_other_way(
    database: str, catalogue: Callable[[str], Any], tmp_path: Path
) -> None:
    from ledger.bundle.iceberg import ExportUnfit

    scene = open_scene(database)
    with closing(scene.conn):
        node = scene.join(1)
        for name in ("first", "second"):
            scene.send(node.report())
            scene.pin()
            scene.sign(tmp_path)
            export_bundle(database, tmp_path / name, KEY, "0.1.0")
    registered(tmp_path / "first")
    assert registered(tmp_path / "second") == {
        "tallystick.market": (1, 3, 1, 1),
        "tallystick.usage": (1, 2, 1, 1),
    }
    assert catalogue("tallystick.usage").scan().to_arrow()["position"].to_pylist() == [1, 2]
    assert len(data_files(tmp_path / "first")) == 2, "what was registered before is not removed"
    with pytest.raises(ExportUnfit, match="a later export, of 3 facts"):
        registered(tmp_path / "first")


@needs_iceberg
def test_a_table_of_exports_of_format_1_takes_one_that_tells_times(
    bundle: Path, catalogue: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.catalog import load_catalog

    from ledger.bundle import iceberg, parquet
    from ledger.bundle.iceberg import ExportUnfit

    load_catalog("lake").create_namespace("tallystick")
    table = load_catalog("lake").create_table("tallystick.market", schema=parquet.MARKET_1)
    rows = [row[:7] for row in parquet.read_log(market_file(bundle), parquet.MARKET)]
    (old,) = parquet.write_log(bundle, "before/market", parquet.MARKET_1, rows)
    told = {iceberg.ORIGIN: KEY.name, iceberg.FACTS: "26", iceberg.MANIFEST: "of format 1"}
    with table.transaction() as change:
        change.add_files([str(bundle / old.path)], told)
        change.set_properties(told)
    with monkeypatch.context() as patched:
        patched.setattr("pyiceberg.table.Transaction.add_files", Mock(side_effect=OSError("full")))
        with pytest.raises(OSError, match="full"):
            registered(bundle)
    assert "recorded_us" not in catalogue("tallystick.market").schema().column_names, "one commit"
    assert registered(bundle)["tallystick.market"] == (1, 26, 1, 1)
    times = catalogue("tallystick.market").scan().to_arrow()["recorded_us"].to_pylist()
    assert min(times) > 0
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    (bundle / "manifest.json").write_bytes(manifest_bytes({**manifest, "format": 1}))
    with pytest.raises(ExportUnfit, match="of an earlier format"):
        registered(bundle)


@needs_iceberg
def test_another_log_and_the_tables_of_another_program_are_left_alone(
    bundle: Path, catalogue: Callable[[str], Any]
) -> None:
    from pyiceberg.catalog import load_catalog

    from ledger.bundle import parquet
    from ledger.bundle.iceberg import ExportUnfit

    registered(bundle)
    with catalogue("tallystick.usage").transaction() as change:
        change.set_properties({"tallystick.origin": "another.log"})
    with pytest.raises(ExportUnfit, match=r"holds the log of another\.log"):
        registered(bundle)
    load_catalog("lake").create_namespace("mine")
    mine = load_catalog("lake").create_table("mine.usage", schema=parquet.USAGE)
    mine.add_files([f"file://{data_files(bundle)[-1]}"])
    with pytest.raises(ExportUnfit, match=r"mine\.usage holds rows of something else"):
        registered(bundle, "mine")


def stray(bundle: Path, made: Made) -> None:
    shutil.copyfile(lane_file(bundle, made.lane), bundle / "log/usage-63-1-8.parquet")


def damaged(bundle: Path, _made: Made) -> None:
    market_file(bundle).write_bytes(market_file(bundle).read_bytes() + b" ")


def missing(bundle: Path, _made: Made) -> None:
    market_file(bundle).unlink()


def miscounted(bundle: Path, _made: Made) -> None:
    adjust_manifest(bundle, market_file(bundle), rows=25)


def leaving(bundle: Path, _made: Made) -> None:
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    manifest["files"][0]["path"] = "../elsewhere.parquet"
    (bundle / "manifest.json").write_bytes(manifest_bytes(manifest))


@needs_iceberg
@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (stray, "usage-63-1-8.parquet is not in the manifest"),
        (damaged, "its SHA-256 is not the one in the manifest"),
        (missing, "missing"),
        (miscounted, "26 rows, the manifest says otherwise"),
        (leaving, "no such file belongs to a bundle"),
    ],
)
def test_files_that_are_not_those_of_the_manifest_are_refused_and_no_table_is_made(
    harm: Callable[[Path, Made], None],
    told: str,
    bundle: Path,
    original: Made,
    catalogue: Callable[[str], Any],
) -> None:
    from pyiceberg.exceptions import NoSuchTableError

    from ledger.bundle.iceberg import ExportUnfit

    harm(bundle, original)
    with pytest.raises(ExportUnfit, match=told):
        registered(bundle)
    with pytest.raises(NoSuchTableError):
        catalogue("tallystick.market")


@needs_iceberg
@pytest.mark.usefixtures("catalogue")
def test_the_command_tells_the_tables_and_what_to_do_without_a_catalogue(bundle: Path) -> None:
    done = tallystick("export", "iceberg", bundle, "--catalog", "lake", "--json")
    assert done.code == 0, done.err
    assert [(one["table"], one["rows"]) for one in json.loads(done.out)["tables"]] == [
        ("tallystick.market", 26),
        ("tallystick.usage", 10),
    ]
    refused = tallystick("export", "iceberg", bundle, "--catalog", "pond")
    assert refused.code == 1
    assert "PYICEBERG_CATALOG__" in refused.err
    damaged(bundle, Made(bundle, bundle, bundle, 0))
    refused = tallystick("export", "iceberg", bundle, "--catalog", "lake")
    assert refused.code == 1
    assert "nothing was registered" in refused.err


def test_without_the_extra_the_command_says_what_to_install(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyiceberg", "pyiceberg.catalog"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "ledger.bundle.iceberg", raising=False)
    refused = tallystick("export", "iceberg", bundle)
    assert refused.code == 2
    assert refused.err.endswith("pip install 'tallystick[iceberg]'\n")
