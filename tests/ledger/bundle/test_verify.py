"""The offline verifier against everything an operator or a carrier could do to a bundle."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from nacl.signing import SigningKey

from domain.epochs.clients import CLIENTS_FORMAT, wrong_in
from domain.epochs.epoch import EpochSealed
from domain.metering import report
from domain.metering.report import lane_of
from domain.money import token
from domain.stream import Stream
from ledger.bundle import parquet
from ledger.bundle.export import export_bundle
from ledger.bundle.shape import KEY_FACTS, BodyWrong, MarketNotes, manifest_bytes
from ledger.bundle.verify import VerifyReport, verify_bundle
from ledger.fan_out.processes import Processes
from ledger.log.chain import (
    GENESIS_MARKET,
    chain,
    genesis_usage,
    market_leaf,
    split_body,
    stored_body,
    usage_leaf,
)
from ledger.tree import merkle
from ledger.tree.checkpoint import Checkpoint, VerifierKey, sign_note
from tests.conftest import Databases
from tests.scenes.audit import LOG_SEED, ORIGIN, open_scene

KEY = VerifierKey(ORIGIN, bytes(SigningKey(LOG_SEED).verify_key))
EPOCH_FILE = b'{"epoch":1}'
BY_CLIENT: dict[str, Any] = {
    "format": CLIENTS_FORMAT,
    "epoch": 1,
    "epoch_file_sha256": sha256(EPOCH_FILE).hexdigest(),
    "rewards": [["acct_a", "7", [["client_a", "5"], ["", "2"]]]],
}
CLIENTS_FILE = json.dumps(BY_CLIENT).encode()
Rows = list[list[Any]]


def sealed(cut: int) -> EpochSealed:
    nothing = token(0)
    return EpochSealed(
        epoch=1,
        cut_position=cut,
        policy_version=1,
        emission=nothing,
        compute_pool=nothing,
        availability_pool=nothing,
        treasury_pool=nothing,
        compute_carry_before=nothing,
        rewards=nothing,
        compute_carry=nothing,
        recipients=0,
        chunks=0,
        file_sha256=sha256(EPOCH_FILE).hexdigest(),
        at_us=0,
        unissued=token(0),
        recyclable=token(0),
        release=token(0),
        returned=token(0),
        returned_release=token(0),
        availability_carry_before=token(0),
        availability_carry=token(0),
        compute_weight=0,
        availability_weight=0,
        availability_tier_2_weight=0,
        adjustments_open=(),
        price_snapshot=None,
        clients_sha256=sha256(CLIENTS_FILE).hexdigest(),
    )


@dataclass(frozen=True)
class Made:
    """A bundle, an earlier and a later published root, and the lane its first node reports into."""

    directory: Path
    earlier: Path
    later: Path
    lane: int


@pytest.fixture(scope="module")
def original(
    postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Made, None, None]:
    folder = tmp_path_factory.mktemp("audit")
    conninfo = postgres.create_database("test_verify", template=template)
    scene = open_scene(conninfo)
    with closing(scene.conn):
        first, second = scene.join(1), scene.join(2)
        scene.send(first.report(), second.report())
        scene.pin()
        (folder / "earlier").write_text(scene.sign(folder))
        scene.send(first.report(), first.broken(), first.report(), second.report())
        cut = scene.pin()
        scene.send(*(first.report() for _ in range(4)))
        scene.pin()
        scene.fact(Stream("epoch", "1"), sealed(cut))
        scene.anything(20)
        scene.sign(folder)
        scene.pin()
        beside: Any = {"epochs": {1: EPOCH_FILE}, "clients": {1: CLIENTS_FILE, 2: CLIENTS_FILE}}
        export_bundle(conninfo, folder / "out", KEY, "0.1.0", last=26, **beside)
        scene.join(3)
        (folder / "later").write_text(scene.sign(folder))
        yield Made(folder / "out", folder / "earlier", folder / "later", lane_of(first.id))
    postgres.drop_database("test_verify")


@pytest.fixture
def bundle(original: Made, tmp_path: Path) -> Path:
    shutil.copytree(original.directory, tmp_path / "bundle")
    return tmp_path / "bundle"


# --- an attacker's tools ---------------------------------------------------------------------


def market_file(bundle: Path) -> Path:
    return next((bundle / "log").glob("market-*"))


def lane_file(bundle: Path, lane: int) -> Path:
    return next((bundle / "log").glob(f"usage-{lane}-*"))


def rewrite(bundle: Path, path: Path, schema: Any, change: Callable[[Rows], None]) -> None:
    """Change the rows of a file and make the manifest agree."""
    rows = [list(row) for row in parquet.read_log(path, schema)]
    change(rows)
    written = parquet.write_log(bundle, "log/new", schema, map(tuple, rows))
    (bundle / written[0].path).rename(path)
    adjust_manifest(bundle, path, len(rows))


def adjust_manifest(bundle: Path, path: Path, rows: int | None = None, **more: Any) -> None:
    manifest = json.loads((bundle / "manifest.json").read_bytes()) | more
    for entry in manifest["files"]:
        if entry["path"] == path.relative_to(bundle).as_posix():
            entry["sha256"] = parquet.sha256_of(path)
            entry["bytes"] = path.stat().st_size
            entry["rows"] = entry["rows"] if rows is None else rows
    (bundle / "manifest.json").write_bytes(manifest_bytes(manifest))


def rechain_market(rows: Rows) -> None:
    """Make leaves and chain agree with what the rows say now."""
    head = GENESIS_MARKET
    for row in rows:
        row[5] = market_leaf(UUID(bytes=row[1]), row[2], row[3], row[4])
        row[6] = head = chain(head, row[5])


def rechain_lane(rows: Rows) -> None:
    head = genesis_usage(rows[0][0])
    for row in rows:
        row[6] = usage_leaf(row[0], row[2], row[3], row[5])
        row[7] = head = chain(head, row[6])


def resign(bundle: Path, seed: bytes = LOG_SEED) -> None:
    """What the holder of a log key can do: sign the facts as they are now."""
    path = market_file(bundle)
    leaves = [row[5] for row in parquet.read_log(path, parquet.MARKET)]
    checkpoint = Checkpoint(ORIGIN, len(leaves), merkle.root_of(leaves))
    note = sign_note(checkpoint.text, ORIGIN, SigningKey(seed))
    (bundle / "checkpoint").write_text(note)
    keys = json.loads((bundle / "keys.json").read_bytes())
    keys["log"] = str(VerifierKey(ORIGIN, bytes(SigningKey(seed).verify_key)))
    (bundle / "keys.json").write_text(json.dumps(keys))
    adjust_manifest(bundle, bundle / "keys.json")
    said = {"size": checkpoint.size, "root": checkpoint.root.hex()}
    path = bundle / "checkpoint"
    adjust_manifest(bundle, path, checkpoint=said, last=checkpoint.size)


def first_bad(found: VerifyReport) -> tuple[str, int]:
    assert not found.ok
    assert found.first_bad is not None
    assert str(found).endswith("NOT VERIFIED")
    assert f"first bad: {found.first_bad}" in str(found)
    return found.first_bad.where, found.first_bad.position


# --- an honest bundle ------------------------------------------------------------------------


def test_an_honest_bundle_is_verified(original: Made) -> None:
    found = verify_bundle(original.directory)
    assert found.problems == ()
    assert (found.facts, found.reports, found.pins, found.nodes) == (26, 10, 3, 2)
    assert "not checked against a published root" in str(found)
    assert "the log's key was taken from the bundle itself" in str(found)
    assert str(found).endswith("verified")


def test_an_honest_bundle_begins_with_every_earlier_root(original: Made) -> None:
    found = verify_bundle(original.directory, root=original.earlier, key=str(KEY))
    assert found.ok
    assert "begins with the 3 facts of the published root" in str(found)
    assert "not checked" not in str(found)
    assert "taken from the bundle" not in str(found)


def test_a_bare_root_got_elsewhere_will_do(original: Made, tmp_path: Path) -> None:
    bare = original.earlier.read_text().split("\n\n")[0] + "\n"
    (tmp_path / "root").write_text(bare)
    assert verify_bundle(original.directory, root=tmp_path / "root").ok


def test_no_network_and_no_driver_are_needed(original: Made) -> None:
    script = """
import socket, sys
for name in ("psycopg", "psycopg_binary", "psycopg_pool", "eventsourcing"):
    sys.modules[name] = None
def refuse(*_, **__):
    raise OSError("no network here")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
from pathlib import Path
from ledger.bundle.verify import verify_bundle
found = verify_bundle(Path(sys.argv[1]))
print(found)
sys.exit(0 if found.ok else 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(original.directory)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- the market log --------------------------------------------------------------------------


def flip(rows: Rows) -> None:
    rows[9][4] = bytes([rows[9][4][0] ^ 1]) + rows[9][4][1:]


def delete(rows: Rows) -> None:
    del rows[9]


def swap(rows: Rows) -> None:
    rows[9], rows[10] = rows[10], rows[9]


def swap_contents(rows: Rows) -> None:
    rows[9][1:5], rows[10][1:5] = rows[10][1:5], rows[9][1:5]


def insert(rows: Rows) -> None:
    rows.insert(9, list(rows[9]))


def truncate(rows: Rows) -> None:
    del rows[9:]


@pytest.mark.parametrize("change", [flip, delete, swap, swap_contents, insert, truncate])
def test_a_changed_market_log_is_bad_where_it_changed(
    bundle: Path, change: Callable[[Rows], None]
) -> None:
    rewrite(bundle, market_file(bundle), parquet.MARKET, change)
    expected = 11 if change is insert else 10
    assert first_bad(verify_bundle(bundle)) == ("market", expected)


def renumber(change: Callable[[Rows], None]) -> Callable[[Rows], None]:
    def changed(rows: Rows) -> None:
        change(rows)
        for position, row in enumerate(rows, start=1):
            row[0] = position
        rechain_market(rows)

    return changed


@pytest.mark.parametrize(
    ("change", "expected"), [(flip, 26), (delete, 26), (swap, 26), (insert, 27), (truncate, 10)]
)
def test_a_rechained_market_log_has_not_the_signed_root(
    bundle: Path, change: Callable[[Rows], None], expected: int
) -> None:
    rewrite(bundle, market_file(bundle), parquet.MARKET, renumber(change))
    assert first_bad(verify_bundle(bundle)) == ("market", expected)


def test_a_tail_cut_off_and_signed_again_is_seen_by_a_published_root_only(
    bundle: Path, original: Made
) -> None:
    rewrite(
        bundle, market_file(bundle), parquet.MARKET, lambda rows: rows.__delitem__(slice(20, 26))
    )
    resign(bundle)
    alone = verify_bundle(bundle, key=str(KEY))
    assert alone.ok
    assert "not checked against a published root" in str(alone)
    assert verify_bundle(bundle, root=original.earlier, key=str(KEY)).ok
    found = verify_bundle(bundle, root=original.later, key=str(KEY))
    assert first_bad(found) == ("market", 21)


def test_a_history_written_anew_and_signed_again_is_seen_by_an_earlier_root(
    bundle: Path, original: Made
) -> None:
    def change(rows: Rows) -> None:
        rows[1][4] = rows[1][4].replace(b'"by":"test"', b'"by":"them"')
        rechain_market(rows)

    rewrite(bundle, market_file(bundle), parquet.MARKET, change)
    resign(bundle)
    assert verify_bundle(bundle, key=str(KEY)).ok
    found = verify_bundle(bundle, root=original.earlier, key=str(KEY))
    assert first_bad(found) == ("market", 3)
    assert found.first_bad is not None
    assert "not those published" in found.first_bad.what


def test_another_signer_is_not_the_log(bundle: Path, original: Made) -> None:
    resign(bundle, seed=bytes(32))
    assert verify_bundle(bundle).ok  # by its own key: hence the line that says so
    assert not verify_bundle(bundle, key=str(KEY)).ok
    assert not verify_bundle(bundle, root=original.earlier).ok


def test_a_pin_that_lies_about_a_lane_is_bad_even_when_signed(bundle: Path, original: Made) -> None:
    def change(rows: Rows) -> None:
        body = json.loads(rows[2][4])
        body["lanes"][original.lane]["size"] += 1
        rows[2][4] = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
        rechain_market(rows)

    rewrite(bundle, market_file(bundle), parquet.MARKET, change)
    resign(bundle)
    assert first_bad(verify_bundle(bundle)) == ("market", 3)


# --- the usage log ---------------------------------------------------------------------------


def body_flip(rows: Rows) -> None:
    signed, key_id, signature = split_body(rows[3][5])
    rows[3][5] = stored_body(signed.replace(b'"test"', b'"tesu"'), key_id, signature)


def body_delete(rows: Rows) -> None:
    del rows[3]


def body_swap(rows: Rows) -> None:
    rows[3], rows[4] = rows[4], rows[3]


def body_insert(rows: Rows) -> None:
    rows.insert(3, list(rows[3]))


def body_truncate(rows: Rows) -> None:
    del rows[3:]


LANE_CHANGES = [body_flip, body_delete, body_swap, body_insert, body_truncate]


@pytest.mark.parametrize("change", LANE_CHANGES)
def test_a_changed_lane_is_bad_where_it_changed(
    bundle: Path, original: Made, change: Callable[[Rows], None]
) -> None:
    rewrite(bundle, lane_file(bundle, original.lane), parquet.USAGE, change)
    expected = 5 if change is body_insert else 4
    assert first_bad(verify_bundle(bundle)) == (f"usage/{original.lane}", expected)


def test_lanes_walked_by_processes_come_to_the_same_report(original: Made, bundle: Path) -> None:
    counted: list[tuple[str, int, int]] = []
    rewrite(bundle, lane_file(bundle, original.lane), parquet.USAGE, body_flip)
    with Processes(2) as two:
        honest = verify_bundle(
            original.directory, executor=two, step=lambda *told: counted.append(told)
        )
        damaged = verify_bundle(bundle, executor=two)
    assert honest == verify_bundle(original.directory)
    assert honest.ok
    assert counted == [("lanes", done, 64) for done in range(1, 65)]
    assert damaged == verify_bundle(bundle)
    assert first_bad(damaged) == (f"usage/{original.lane}", 4)
    assert damaged.digest != honest.digest


@pytest.mark.parametrize("change", LANE_CHANGES)
def test_a_rechained_lane_is_bad_by_its_signatures_and_its_nodes_chain(
    bundle: Path, original: Made, change: Callable[[Rows], None]
) -> None:
    def changed(rows: Rows) -> None:
        change(rows)
        for position, row in enumerate(rows, start=1):
            row[1] = position
        rechain_lane(rows)

    rewrite(bundle, lane_file(bundle, original.lane), parquet.USAGE, changed)
    expected = 5 if change is body_insert else 4
    assert first_bad(verify_bundle(bundle)) == (f"usage/{original.lane}", expected)


def test_a_report_signed_anew_with_the_nodes_key_is_not_the_one_pinned(
    bundle: Path, original: Made
) -> None:
    def change(rows: Rows) -> None:
        signed, key_id, _ = split_body(rows[-1][5])
        signed = signed.replace(b'"test"', b'"tesu"')
        signature = SigningKey((1).to_bytes(32, "big")).sign(report.pae(signed)).signature
        rows[-1][5] = stored_body(signed, key_id, signature)
        rechain_lane(rows)

    rewrite(bundle, lane_file(bundle, original.lane), parquet.USAGE, change)
    found = verify_bundle(bundle)
    assert first_bad(found) == (f"usage/{original.lane}", 8)
    assert found.first_bad is not None
    assert "not those of the pin" in found.first_bad.what


def test_a_flag_on_a_report_that_breaks_no_rule_is_bad(bundle: Path, original: Made) -> None:
    def change(rows: Rows) -> None:
        rows[1][8] = 1

    rewrite(bundle, lane_file(bundle, original.lane), parquet.USAGE, change)
    assert first_bad(verify_bundle(bundle)) == (f"usage/{original.lane}", 2)


def test_a_flag_taken_from_a_report_that_breaks_a_rule_is_bad(bundle: Path, original: Made) -> None:
    def change(rows: Rows) -> None:
        assert [row[8] for row in rows].count(1) == 1
        rows[2][8] = 0

    rewrite(bundle, lane_file(bundle, original.lane), parquet.USAGE, change)
    found = verify_bundle(bundle)
    assert first_bad(found) == (f"usage/{original.lane}", 3)
    assert found.first_bad is not None
    assert "flagged 0, though the report breaks a rule" in found.first_bad.what


def test_a_lane_that_is_not_there_is_missed(bundle: Path, original: Made) -> None:
    file = lane_file(bundle, original.lane)
    name = file.relative_to(bundle).as_posix()
    file.unlink()
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    manifest["files"] = [entry for entry in manifest["files"] if entry["path"] != name]
    (bundle / "manifest.json").write_bytes(manifest_bytes(manifest))
    assert first_bad(verify_bundle(bundle)) == (f"usage/{original.lane}", 1)


# --- beside the logs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["checkpoint", "keys.json", "manifest.json", "epochs/1.json", "clients/1.json"]
)
@pytest.mark.parametrize("damage", ["flip", "empty", "gone"])
def test_every_other_file_is_checked(bundle: Path, name: str, damage: str) -> None:
    path = bundle / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        flipped = content[:40] + bytes([content[40] ^ 1]) + content[41:] if content[40:] else b"[]"
        path.write_bytes(flipped if damage == "flip" else b"")
    assert not verify_bundle(bundle).ok
    if name != "manifest.json" and damage != "gone":
        adjust_manifest(bundle, path)
        assert not verify_bundle(bundle).ok


def test_the_file_by_client_is_of_a_sealed_epoch_and_adds_up(bundle: Path) -> None:
    """Whose work the rewards pay for is in the bundle, and not only its hash in the log."""
    assert (bundle / "clients/1.json").read_bytes() == CLIENTS_FILE
    assert not (bundle / "clients/2.json").exists(), "no fact seals it"
    told = sha256(EPOCH_FILE).hexdigest()
    assert wrong_in(CLIENTS_FILE, 1, told) is None
    one = ["acct_a", "7", [["client_a", "5"], ["", "1"]]]
    for changes, said in (
        ({"rewards": [one]}, "its parts are not its rewards"),
        ({"rewards": [*BY_CLIENT["rewards"], *BY_CLIENT["rewards"]]}, "not its rewards"),
        ({"epoch": 2}, "another epoch file"),
        ({"epoch_file_sha256": "00" * 32}, "another epoch file"),
        ({"rewards": [["acct_a"]]}, "cannot be read"),
    ):
        found = wrong_in(json.dumps({**BY_CLIENT, **changes}).encode(), 1, told)
        assert found is not None
        assert said in found


@pytest.mark.parametrize("at", range(0, 100, 9))
def test_a_flipped_bit_in_a_parquet_file_is_seen(bundle: Path, at: int) -> None:
    for path in (bundle / "log").iterdir():
        content = bytearray(path.read_bytes())
        content[len(content) * at // 100] ^= 4
        path.write_bytes(content)
        found = verify_bundle(bundle)
        assert any(problem.where == f"log/{path.name}" for problem in found.problems)
        content[len(content) * at // 100] ^= 4
        path.write_bytes(content)
    assert verify_bundle(bundle).ok


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"files":[1]}', '{"files":{}}', "[" * 100_000, '{"files":[{}]}']
)
def test_any_manifest_gets_an_answer(bundle: Path, content: str) -> None:
    """Also where a library has lifted the limit of recursion, as those of wallets do."""
    (bundle / "manifest.json").write_text(content)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        assert not verify_bundle(bundle).ok
    finally:
        sys.setrecursionlimit(limit)


def test_files_outside_the_bundle_are_not_read(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    manifest["files"].append({"path": "../earlier", "sha256": "", "bytes": 0, "rows": 0})
    (bundle / "manifest.json").write_bytes(manifest_bytes(manifest))
    found = verify_bundle(bundle)
    assert [problem.where for problem in found.problems] == ["../earlier"]


def test_the_scene_is_what_the_numbers_above_say(original: Made) -> None:
    file = lane_file(original.directory, original.lane)
    rows = list(parquet.read_log(file, parquet.USAGE))
    assert len(rows) == 8
    assert [row[8] for row in rows] == [0, 0, 1, 0, 0, 0, 0, 0]
    assert all(b[1] == a[1] + 1 for a, b in pairwise(rows))


def test_the_name_of_a_node_that_is_no_text_is_a_problem_and_no_error() -> None:
    body = b'{"node_id": "\\ud800", "key_id": "k", "public_key": "00"}'
    with pytest.raises(BodyWrong):
        MarketNotes().take(1, KEY_FACTS[0], body)
