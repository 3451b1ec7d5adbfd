"""The spool's file: its tables, its transactions, and how rows and events are written in them.

    a transaction is on disk whole or not at all; what `transaction` returned from stays

SQLite in WAL mode with synchronous FULL, so neither kill -9 nor power loss takes back what was
committed. Three things can be wrong with a file and each has its own error: it is another node's or
damaged (`SpoolUnreadable`, only a person can go on), the disk takes nothing (`SpoolBlocked`, time
may heal it), one row or event in it makes no sense (`ValueError`, the caller sets it aside).
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from domain.metering import report
from domain.metering.resources import ResourceRow
from node_reporter.clock import ClockOffset, Moment
from node_reporter.identity import give_to_owner_of
from node_reporter.meter.rows import Stretch

PACK_LEVEL = 6
INFLATED_BYTES_MAX = report.BODY_BYTES_MAX

COUNTERS = tuple(
    field.name for field in fields(report.Row) if field.name not in ("device", "lease", "reason")
)
NULLABLE = {"busy_us", "mem_byte_s", "energy_mj", "throttle_power_ns", "throttle_thermal_ns"}
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS row(
  id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, device INTEGER NOT NULL, lease INTEGER,
  reason INTEGER NOT NULL, is_open INTEGER NOT NULL, {", ".join(COUNTERS)});
CREATE INDEX IF NOT EXISTS row_order ON row(is_open, boot, mono_start_us);
CREATE TABLE IF NOT EXISTS event(
  id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, device INTEGER, type TEXT NOT NULL,
  mono_us INTEGER NOT NULL, wall_us INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS report(
  seq INTEGER PRIMARY KEY, body BLOB NOT NULL, signature BLOB NOT NULL, hash BLOB NOT NULL,
  prev BLOB NOT NULL, state INTEGER NOT NULL DEFAULT 0, acked_us INTEGER, flags TEXT);
CREATE INDEX IF NOT EXISTS report_state ON report(state, seq);
CREATE TABLE IF NOT EXISTS used(
  id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, lease TEXT NOT NULL, clock_offset_us INTEGER,
  row TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS used_last(lease TEXT PRIMARY KEY, counted TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS device_end(
  device TEXT PRIMARY KEY, boot TEXT NOT NULL, mono_end_us INTEGER NOT NULL,
  wall_minus_mono_us INTEGER NOT NULL, driver_epoch INTEGER NOT NULL) WITHOUT ROWID;
"""
_LATER_COLUMNS = (
    ("row", "boot_minus_mono_us"),
    ("device_end", "boot_minus_mono_us"),
    ("row", "clock_offset_us"),
    ("row", "clock_rtt_us"),
)
"""Added to files that an earlier version began."""
EVENT_BYTES_MAX = 1_024


class SpoolUnreadable(Exception):
    """The spool belongs to another node, is damaged, or was written by a newer version."""


def _make(path: Path) -> None:
    """An empty file is a database; the files beside it get its mode, so that nobody else reads what
    renters did, and its owner, which may be another than who opens it first: root changes a
    service's key before the service has ever run.
    """
    if str(path) != ":memory:" and not path.exists():
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "ab") as file:
            give_to_owner_of(path.parent, file.fileno())


class SpoolBlocked(OSError):
    """The disk takes nothing now: it is full, read-only or failing. Nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEnd:
    """Where the metered time of a device ends on disk, in the boot that metered it."""

    device_id: str
    boot: str
    mono_end_us: int
    wall_minus_mono_us: int
    driver_epoch: int
    boot_minus_mono_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEvent:
    """An event waiting for the next report."""

    type: str
    at: Moment
    device: report.Device | None
    data: dict[str, int | str | bool | None]


@dataclass(frozen=True, slots=True)
class Used:
    """A resource row waiting for the next report, and the offset by which its times were told."""

    id: int
    lease: str
    clock_offset_us: int | None
    row: ResourceRow


class SpoolFile:
    """One open file. Used from one thread."""

    def __init__(self, path: Path | str) -> None:
        """Open or create. Raises SpoolUnreadable, SpoolBlocked."""
        self._names: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._devices: dict[int, report.Device] = {}
        with _errors():
            _make(Path(path))
            self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.execute("PRAGMA synchronous=FULL")
            self.db.create_function("packed", 1, _packed, deterministic=True)
            self.db.executescript(_SCHEMA)
            for table, column in _LATER_COLUMNS:
                self._add_column(table, column)
            damage = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise SpoolUnreadable(f"the spool's file is damaged: {damage}")

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. Raises SpoolBlocked, SpoolUnreadable."""
        try:
            with _errors():
                self.db.execute("BEGIN IMMEDIATE")
                yield
                self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            self._names.clear()
            self._texts.clear()
            self._devices.clear()
            raise

    def count(self, query: str, *arguments: Any) -> int:
        return int(self.db.execute(query, arguments).fetchone()[0])

    # --- small memory ------------------------------------------------------------------------

    def meta(self, key: str, default: Any) -> Any:
        found = self.db.execute("SELECT v FROM meta WHERE k = ?", (key,)).fetchone()
        return default if found is None else found[0]

    def set(self, key: str, value: Any) -> None:
        """Inside a transaction only."""
        assert self.db.in_transaction, key
        self.db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))

    def name(self, text: str) -> int:
        """The number that stands for a boot, device or lease in the rows; larger for later ones."""
        if text not in self._names:
            self.db.execute("INSERT OR IGNORE INTO name(text) VALUES(?)", (text,))
            found = self.db.execute("SELECT id FROM name WHERE text = ?", (text,)).fetchone()
            self._names[text] = int(found[0])
        return self._names[text]

    def text(self, name: int) -> str:
        """Raises ValueError where the number stands for nothing."""
        if name not in self._texts:
            query = "SELECT text FROM name WHERE id = ?"
            found = self.db.execute(query, (name,)).fetchone()
            if found is None:
                raise ValueError(f"no text has the number {name!r}")
            self._texts[name] = str(found[0])
        return self._texts[name]

    def forget_names(self) -> None:
        """Delete the texts that nothing refers to any more. Inside a transaction only."""
        self.db.execute(
            "DELETE FROM name WHERE id NOT IN (SELECT boot FROM row UNION SELECT device FROM row"
            " UNION SELECT lease FROM row WHERE lease IS NOT NULL UNION SELECT boot FROM event"
            " UNION SELECT boot FROM used"
            " UNION SELECT device FROM event WHERE device IS NOT NULL)"
        )

    # --- rows and events ---------------------------------------------------------------------

    def insert_row(self, boot: int, stretch: Stretch, *, is_open: int) -> int:
        values = (
            boot,
            self.name(_device_text(stretch.device)),
            None if stretch.lease is None else self.name(stretch.lease),
            report.REASONS.index(stretch.row.reason),
            is_open,
            stretch.boot_minus_mono_us,
            None if stretch.clock is None else stretch.clock.offset_us,
            None if stretch.clock is None else stretch.clock.rtt_us,
            *(getattr(stretch.row, name) for name in COUNTERS),
        )
        marks = ", ".join("?" * len(values))
        cursor = self.db.execute(
            "INSERT INTO row(boot, device, lease, reason, is_open, boot_minus_mono_us,"
            " clock_offset_us, clock_rtt_us,"
            f" {', '.join(COUNTERS)}) VALUES({marks})",
            values,
        )
        return int(cursor.lastrowid or 0)

    def closed_rows(
        self, boot: int, limit: int, from_us: int | None = None
    ) -> list[tuple[int, Any]]:
        """(row id, what stands in the row) of unsigned closed rows of a boot, by their start."""
        behind = "" if from_us is None else f" AND mono_start_us >= {from_us:d}"
        query = (
            "SELECT id, device, lease, reason, boot_minus_mono_us, clock_offset_us,"  # noqa: S608
            f" clock_rtt_us, {', '.join(COUNTERS)} FROM row WHERE is_open = 0 AND boot = ?"
            f"{behind} ORDER BY mono_start_us, device, lease LIMIT ?"
        )
        found = self.db.execute(query, (boot, limit))
        return [(row[0], row[1:]) for row in found]

    def stretch(self, row: Sequence[Any]) -> Stretch:
        """What `closed_rows` found, read. Raises ValueError where it makes no sense."""
        device, lease, reason, boot_minus_mono_us, offset_us, rtt_us, *counters = row
        told = dict(zip(COUNTERS, counters, strict=True))
        absent = {name for name, value in told.items() if value is None}
        whole = (reason, boot_minus_mono_us, offset_us, rtt_us, *counters)
        if not all(map(_is_whole, whole)) or absent - NULLABLE:
            raise ValueError("something else stands where a number belongs")
        try:
            return Stretch(
                device=self.device(device),
                lease=None if lease is None else self.text(lease),
                boot_minus_mono_us=boot_minus_mono_us,
                clock=_clock(offset_us, rtt_us),
                row=report.Row(device=0, lease=None, reason=report.REASONS[reason], **told),
            )
        except (TypeError, IndexError) as error:
            raise ValueError(str(error)) from error

    def insert_used(
        self, boot: int, lease: str, row: ResourceRow, clock: ClockOffset | None
    ) -> None:
        offset_us = None if clock is None else clock.offset_us
        self.db.execute(
            "INSERT INTO used(boot, lease, clock_offset_us, row) VALUES(?, ?, ?, ?)",
            (boot, lease, offset_us, json.dumps(asdict(row))),
        )

    def used_rows(self, boot: int, limit: int) -> list[Used]:
        """Unsigned resource rows of a boot, oldest first."""
        query = (
            "SELECT id, lease, clock_offset_us, row FROM used WHERE boot = ? ORDER BY id LIMIT ?"
        )
        return [
            Used(one, lease, offset_us, ResourceRow(**json.loads(row)))
            for one, lease, offset_us, row in self.db.execute(query, (boot, limit))
        ]

    def insert_event(self, boot: int, event: PendingEvent) -> None:
        device = None if event.device is None else self.name(_device_text(event.device))
        data = json.dumps(event.data)
        assert len(data) <= EVENT_BYTES_MAX, "100 events must fit into one report"
        self.db.execute(
            "INSERT INTO event(boot, device, type, mono_us, wall_us, data)"
            " VALUES(?, ?, ?, ?, ?, ?)",
            (boot, device, event.type, event.at.mono_us, event.at.wall_us, data),
        )

    def events(self, boot: int, limit: int) -> list[tuple[int, Any]]:
        """(event id, what stands in it) of a boot's waiting events, oldest first."""
        query = (
            "SELECT id, device, type, mono_us, wall_us, data FROM event WHERE boot = ?"
            " ORDER BY id LIMIT ?"
        )
        return [(row[0], row[1:]) for row in self.db.execute(query, (boot, limit))]

    def event(self, row: Sequence[Any]) -> PendingEvent:
        """What `events` found, read. Raises ValueError where it makes no sense."""
        device, name, mono_us, wall_us, data = row
        if type(data) is not str or not (_is_whole(mono_us) and _is_whole(wall_us)):
            raise ValueError("something else stands where a number or a text belongs")
        return PendingEvent(
            type=name,
            at=Moment(mono_us, mono_us, wall_us),
            device=None if device is None else self.device(device),
            data=json.loads(data),
        )

    def device(self, name: int) -> report.Device:
        """Raises ValueError."""
        if name not in self._devices:
            told = json.loads(self.text(name))
            try:
                device = report.Device(**told)
                hash(device)
            except TypeError as error:
                raise ValueError(str(error)) from error
            self._devices[name] = device
        return self._devices[name]

    # --- inside ------------------------------------------------------------------------------

    def _add_column(self, table: str, column: str) -> None:
        known = {row[1] for row in self.db.execute(f"PRAGMA table_info({table})")}
        if column not in known:
            self.db.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER")


def unpacked(body: bytes) -> bytes:
    """A report's body as it was signed. Raises ValueError where it is damaged."""
    if body.startswith(b"{"):
        return body
    try:
        inflater = zlib.decompressobj()
        plain = inflater.decompress(body, INFLATED_BYTES_MAX)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not inflater.eof:
        raise ValueError("a packed report does not come to its end")
    return plain


def _packed(body: bytes) -> bytes:
    """An acknowledged report is kept for a fortnight and hardly ever read: a third of its size."""
    return body if not body.startswith(b"{") else zlib.compress(body, PACK_LEVEL)


@contextmanager
def _errors() -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise SpoolBlocked(f"the disk does not take the spool: {error}") from error
    except sqlite3.DatabaseError as error:
        raise SpoolUnreadable(f"the spool's file is damaged: {error}") from error


def _clock(offset_us: int | None, rtt_us: int | None) -> ClockOffset | None:
    if offset_us is None or rtt_us is None:
        return None
    return ClockOffset(offset_us=offset_us, rtt_us=rtt_us)


def _is_whole(value: Any) -> bool:
    return value is None or (type(value) is int and abs(value) <= report.INT_MAX)


def _device_text(device: report.Device) -> str:
    return json.dumps(asdict(device), separators=(",", ":"))
