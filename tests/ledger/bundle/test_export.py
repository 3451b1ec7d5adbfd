"""The export bundle: what is in it, and that it is never written over a row that fails."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from domain.epochs.policy import PolicyPublished
from domain.metering.report import lane_of
from domain.money import token
from domain.stream import Stream
from ledger.bundle import parquet
from ledger.bundle.export import ExportRefused, NothingSigned, export_bundle, read_epoch_files
from ledger.bundle.verify import verify_bundle
from ledger.tree.checkpoint import VerifierKey
from tests.ledger.bundle.test_verify import EPOCH_FILE, sealed
from tests.scenes.audit import LOG_SEED, ORIGIN, Scene, open_scene

KEY = VerifierKey(ORIGIN, bytes(SigningKey(LOG_SEED).verify_key))

POLICY = PolicyPublished(
    version=1,
    epoch_length_us=86_400_000_000,
    segments=(),
    hard_cap=token(10**15),
    compute_ppm=800_000,
    availability_ppm=100_000,
    treasury_ppm=100_000,
    compute_base="burned_value",
    holdback_epochs=0,
    effective_from_epoch=1,
    by="test",
    at_us=0,
    rewards=None,
    governance=None,
    proposal=None,
)


@pytest.fixture
def scene(database: str) -> Generator[Scene, None, None]:
    made = open_scene(database)
    with closing(made.conn):
        yield made


def test_a_bundle_holds_both_logs_under_one_checkpoint(
    scene: Scene, database: str, tmp_path: Path
) -> None:
    nodes = [scene.join(1), scene.join(2)]
    scene.send(*(node.report() for node in nodes))
    position = scene.pin()
    scene.fact(Stream("policy", "network"), POLICY)
    scene.send(nodes[0].report())  # after the pin: committed to by nothing yet
    note = scene.sign(tmp_path)
    made = export_bundle(database, tmp_path / "out", KEY, "0.1.0")
    assert (made.facts, made.reports, made.cut_position) == (4, 2, position)
    manifest = json.loads((tmp_path / "out/manifest.json").read_bytes())
    lanes = sorted(lane_of(node.id) for node in nodes)
    assert [file["path"] for file in manifest["files"]] == [
        "log/market-1-4.parquet",
        *(f"log/usage-{lane}-1-1.parquet" for lane in lanes),
        "checkpoint",
        "keys.json",
    ]
    assert (manifest["first"], manifest["last"], manifest["format"]) == (1, 4, 2)
    assert manifest["cut"]["position"] == position
    assert manifest["policy_versions"] == [1]
    assert (tmp_path / "out/checkpoint").read_text() == note
    keys = json.loads((tmp_path / "out/keys.json").read_bytes())
    assert keys["log"] == str(KEY)
    assert [key["public_key"] for key in keys["nodes"]] == [node.public.hex() for node in nodes]
    assert verify_bundle(tmp_path / "out").ok


def test_the_bytes_of_both_logs_come_back_as_stored(
    scene: Scene, database: str, tmp_path: Path
) -> None:
    node = scene.join(1)
    scene.send(node.report(), node.broken(), node.report())
    scene.pin()
    scene.sign(tmp_path)
    export_bundle(database, tmp_path / "out", KEY, "0.1.0")
    stored = scene.conn.execute("SELECT * FROM usage_event ORDER BY position").fetchall()
    (file,) = (tmp_path / "out/log").glob("usage-*")
    assert list(parquet.read_log(file, parquet.USAGE)) == stored
    facts = scene.conn.execute(
        "SELECT notification_id, uuid_send(originator_id), originator_version, topic, state, leaf,"
        " chain, recorded_us FROM market_events ORDER BY notification_id"
    ).fetchall()
    (file,) = (tmp_path / "out/log").glob("market-*")
    assert list(parquet.read_log(file, parquet.MARKET)) == facts


def test_what_stops_the_writing_of_a_lane_is_told(
    scene: Scene, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = scene.join(1)
    scene.send(node.report(), node.report())
    scene.pin()
    scene.sign(tmp_path)
    write = parquet.write_log

    def full(root: Path, prefix: str, form: Any, found: Any) -> Any:
        if "usage" in prefix and next(found, None):
            raise OSError(ENOSPC, "no space left on device")
        return write(root, prefix, form, found)

    monkeypatch.setattr(parquet, "write_log", full)
    with pytest.raises(OSError, match="no space left"):
        export_bundle(database, tmp_path / "out", KEY, "0.1.0")


def test_long_logs_become_several_files(
    scene: Scene, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "FILE_ROWS", 4)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)
    node = scene.join(1)
    scene.send(*(node.report() for _ in range(9)))
    scene.pin()
    scene.anything(7)
    scene.sign(tmp_path)
    export_bundle(database, tmp_path / "out", KEY, "0.1.0")
    lane = lane_of(node.id)
    assert {path.name for path in (tmp_path / "out/log").iterdir()} == {
        "market-1-4.parquet",
        "market-5-8.parquet",
        "market-9-9.parquet",
        f"usage-{lane}-1-4.parquet",
        f"usage-{lane}-5-8.parquet",
        f"usage-{lane}-9-9.parquet",
    }
    assert verify_bundle(tmp_path / "out").ok


def test_an_older_checkpoint_can_be_exported(scene: Scene, database: str, tmp_path: Path) -> None:
    node = scene.join(1)
    scene.send(node.report())
    scene.pin()
    scene.sign(tmp_path)
    scene.send(node.report())
    scene.pin()
    scene.sign(tmp_path)
    made = export_bundle(database, tmp_path / "out", KEY, "0.1.0", last=2)
    assert (made.facts, made.reports) == (2, 1)
    assert verify_bundle(tmp_path / "out").ok


def test_the_files_of_sealed_epochs_are_copied(scene: Scene, database: str, tmp_path: Path) -> None:
    (tmp_path / "epochs").mkdir()
    for name in ("1.json", "3.json", "draft.json"):
        (tmp_path / "epochs" / name).write_bytes(EPOCH_FILE)
    epochs = read_epoch_files(tmp_path / "epochs")
    assert sorted(epochs) == [1, 3]
    scene.join(1)
    scene.fact(Stream("epoch", "1"), sealed(scene.pin()))
    scene.sign(tmp_path)
    export_bundle(database, tmp_path / "out", KEY, "0.1.0", epochs=epochs)
    assert (tmp_path / "out/epochs/1.json").read_bytes() == EPOCH_FILE
    assert not (tmp_path / "out/epochs/3.json").exists(), "no exported fact seals it"


def test_nothing_is_exported_before_something_is_signed(
    scene: Scene, database: str, tmp_path: Path
) -> None:
    scene.join(1)
    with pytest.raises(NothingSigned):
        export_bundle(database, tmp_path / "out", KEY, "0.1.0")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_directory_is_left_alone(database: str, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        export_bundle(database, tmp_path, KEY, "0.1.0")


@pytest.mark.parametrize(
    ("change", "log", "position", "what"),
    [
        (
            "UPDATE market_events SET state = state || ' ' WHERE notification_id = 2",
            "market",
            2,
            "leaf hash",
        ),
        ("UPDATE market_events SET chain = leaf WHERE notification_id = 3", "market", 3, "chain"),
        ("DELETE FROM market_events WHERE notification_id = 2", "market", 2, "missing"),
        ("DELETE FROM market_events WHERE notification_id = 4", "market", 4, "missing"),
        ("UPDATE usage_event SET body = body || ' ' WHERE position = 2", "usage", 2, "leaf hash"),
        ("DELETE FROM usage_event WHERE position = 3", "usage", 3, "missing"),
    ],
)
def test_a_row_changed_by_a_superuser_stops_the_export(
    scene: Scene, database: str, tmp_path: Path, change: str, log: str, position: int, what: str
) -> None:
    node = scene.join(1)
    scene.join(2)
    scene.send(*(node.report() for _ in range(3)))
    scene.pin()
    scene.join(3)
    scene.sign(tmp_path)
    for table in ("market_events", "usage_event"):
        scene.conn.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL".encode())
    scene.conn.execute(change.encode())
    with pytest.raises(ExportRefused) as refused:
        export_bundle(database, tmp_path / "out", KEY, "0.1.0")
    assert (refused.value.log.split("/")[0], refused.value.position) == (log, position)
    assert what in refused.value.what
    assert [path.name for path in tmp_path.iterdir()] == ["signed"]
