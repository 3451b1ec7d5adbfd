"""What is tampered with: a market with leases and signed reports, two of them flagged, a market
with every view, an export, and a backup. Built once; what was changed is put back after each
tampering.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from nacl.signing import SigningKey

from api.backup import sums
from api.backup.archive import Archive, Backup
from domain.duration import HOUR_US
from domain.funds.deposit import ConfirmDeposit
from domain.money import credit
from ledger.bundle.export import export_bundle
from ledger.log.handle import Ledger
from ledger.log.report_form import FLAG_CONTENT
from ledger.tree import trees
from ledger.tree.checkpoint import Checkpoint, VerifierKey, parse_checkpoint, split_note
from projections import tables
from projections.runner import Projection
from tests.conftest import Databases
from tests.projections.reports import append_reports
from tests.projections.story import Size, Writer, story
from tests.scenes import audit
from tests.scenes.audit import LOG_SEED, ORIGIN
from tests.scenes.running_market import RENTER, START_US, Market
from tests.tampering.drawn import Table, defenceless

Connection = psycopg.Connection[Any]
KEY = VerifierKey(ORIGIN, bytes(SigningKey(LOG_SEED).verify_key))
LABEL = "20261125T231500Z"
RECEIVED = frozenset({"recorded_us"})
"""When a row arrived is under no hash, as `ledger/bundle/verify.py` says: it is not drawn."""
LOGS = {
    "market_events": RECEIVED,
    "market_events_head": RECEIVED | {"id"},
    "tree_head": frozenset[str](),
    "tree_tile": frozenset[str](),
    "checkpoint": RECEIVED,
}
USAGE = {
    "usage_event": RECEIVED,
    "usage_head": RECEIVED,
    "usage_key": frozenset[str](),
    "usage_node": frozenset[str](),
}
BOOKS = {"account": frozenset[str](), "posting": frozenset[str]()}


@dataclass
class Scene:
    """`head` was published when the last fact was in, `pinned` is of the last pin."""

    folder: Path
    market: Connection
    views: Connection
    head: Checkpoint
    drawn: dict[str, Table] = field(default_factory=dict)
    view_tables: list[tuple[Projection, str]] = field(default_factory=list)

    @property
    def bundle(self) -> Path:
        return self.folder / "bundle"

    @property
    def backup(self) -> Path:
        return self.folder / "backup"

    def restore(self, names: dict[str, frozenset[str]]) -> None:
        """These tables are as they were."""
        for name in names:
            self.market.execute(f"DELETE FROM {name}".encode())
            self.market.execute(f"INSERT INTO {name} SELECT * FROM spare.{name}".encode())


@contextmanager
def built(postgres: Databases, template: str) -> Generator[Scene, None, None]:
    with tempfile.TemporaryDirectory(prefix="tally") as name:
        folder = Path(name)
        logs = postgres.create_database("tampered_logs", template=template)
        shown = postgres.create_database("tampered_views", template=template)
        with (
            psycopg.connect(logs, autocommit=True) as market,
            psycopg.connect(shown, autocommit=True) as views,
        ):
            note = _market(logs, market, folder)
            export_bundle(logs, folder / "bundle", KEY, "0.1.0")
            (folder / "head").write_text(note)
            _backup(folder, note)
            scene = Scene(folder, market, views, parse_checkpoint(split_note(note)[0]))
            _unprotected(scene)
            _views(scene)
            yield scene
        for one in ("tampered_logs", "tampered_views"):
            postgres.drop_database(one)


def _market(conninfo: str, connection: Connection, folder: Path) -> str:
    """Two leases that were reported, paid and pinned; the note of the last head."""
    with Ledger(conninfo, blinding_key=b"tests/tampering/scene") as ledger:
        market = Market(ledger, connection)
        market.found("one", "two", gpus=2)
        told = audit.Scene(connection)
        for number, node in enumerate(("one", "two")):
            lease = market.lease(f"lease{number}", node)
            for hour in range(3):
                at_us = START_US + hour * HOUR_US
                market.report(node, lease, at_us, at_us + HOUR_US)
            market.store_unreadable(node, START_US + 3 * HOUR_US, FLAG_CONTENT)
            market.close(lease, START_US + 3 * HOUR_US)
            told.pin()
            told.sign(folder)
        for number in range(5):
            market.do(
                START_US,
                ConfirmDeposit(
                    deposit_id=f"deposit_{number}",
                    account_id=RENTER,
                    source="cash",
                    amount=credit(1_000 + number),
                    reference=str(number),
                    confirmed_by="operator",
                    at_us=START_US,
                ),
            )
        told.pin()
        return told.sign(folder)


def _backup(folder: Path, note: str) -> None:
    """A folder of backups as `tallystick backup` leaves it; the bytes of its data folder are made
    up, for a sum of bytes does not know what they mean.
    """
    base = folder / "backup" / "base" / LABEL
    pg = base / "pg"
    for number, name in enumerate(
        ("PG_VERSION", "base/5/1259", "global/pg_control", "pg_wal/0001")
    ):
        (pg / name).parent.mkdir(parents=True, exist_ok=True)
        (pg / name).write_bytes(bytes(range(256)) * (1 + 16 * number))
    (base / "files.tar").write_bytes(b"tar" * 4_000)
    (base / "signed-heads").write_text("1 abc\n")
    Backup(LABEL, None, 1, 2, 180_000, "1", "0" * 24, 1, 1, note, str(KEY)).write(base)
    sums.write(base)
    Archive(folder / "backup").wal.mkdir()


def _unprotected(scene: Scene) -> None:
    scene.market.execute("CREATE SCHEMA spare")
    for name, spared in {**LOGS, **USAGE, **BOOKS}.items():
        scene.market.execute(f"CREATE TABLE spare.{name} AS SELECT * FROM public.{name}".encode())
        defenceless(scene.market, f"public.{name}")
        scene.drawn[name] = Table(scene.market, f"public.{name}", spared)


def _views(scene: Scene) -> None:
    """Every view of the story, with its rows."""
    Writer(scene.views).write(story(Size()))
    append_reports(scene.views, nodes=5, reports=4)
    tables.ensure(scene.views)
    tables.step_all(scene.views)
    trees.follow_all(scene.views)
    for projection in tables.PROJECTIONS:
        digest = tables.digest(scene.views, projection.schema, seed=7)
        scene.view_tables += [(projection, table) for table, (rows, _) in digest.items() if rows]
