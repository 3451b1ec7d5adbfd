"""What is not yet receipted, on disk: rows wait unsigned, reports wait for their acknowledgement.

    a committed row is in exactly one place: unsigned, or inside exactly one signed report
    signing is one transaction: insert the report, delete its rows, move the head

SQLite in WAL mode with synchronous FULL: what `record` and `sign` return from survives kill -9 and
power loss. Nothing is ever dropped: near the cap reports get longer and adjoining rows of one lease
hour are merged. Acknowledged reports stay 14 days, for a server restored from an older backup.
Used from one thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

from domain import report
from node_reporter import rows
from node_reporter.clock import Moment
from node_reporter.identity import public_key
from node_reporter.leases import Window
from node_reporter.reports import BODY_BYTES_SOFT, ClockOffset, ReportChain, SignedReport
from node_reporter.rows import Stretch

CAP_BYTES = 64 * 1024 * 1024
KEEP_ACKED_US = 14 * 86_400_000_000
ROW_BYTES = 96
"""What an unsigned row costs on disk, measured and rounded up; counts against the cap."""
EVENT_BYTES_MAX = 1_024
MERGE_BATCH = 20_000
VERSION = 1

_COUNTERS = tuple(
    field.name for field in fields(report.Row) if field.name not in ("device", "lease", "reason")
)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta(k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS row(
  id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, device INTEGER NOT NULL, lease INTEGER,
  reason INTEGER NOT NULL, is_open INTEGER NOT NULL, {", ".join(_COUNTERS)});
CREATE INDEX IF NOT EXISTS row_order ON row(is_open, boot, mono_start_us);
CREATE TABLE IF NOT EXISTS event(
  id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, device INTEGER, type TEXT NOT NULL,
  mono_us INTEGER NOT NULL, wall_us INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS report(
  seq INTEGER PRIMARY KEY, body BLOB NOT NULL, signature BLOB NOT NULL, hash BLOB NOT NULL,
  prev BLOB NOT NULL, state INTEGER NOT NULL DEFAULT 0, acked_us INTEGER, flags TEXT);
CREATE INDEX IF NOT EXISTS report_state ON report(state, seq);
CREATE TABLE IF NOT EXISTS device_end(
  device TEXT PRIMARY KEY, boot TEXT NOT NULL, mono_end_us INTEGER NOT NULL,
  wall_minus_mono_us INTEGER NOT NULL, driver_epoch INTEGER NOT NULL) WITHOUT ROWID;
"""
_WAITING, _ACKED, _ORPHANED = 0, 1, 2


class Verdict(StrEnum):
    """What comparing our head with the server's told us."""

    EQUAL = "equal"
    RESEND = "resend"
    ADOPTED = "adopted"


class HistoryDiffers(Exception):
    """The server holds another history than this spool: exit 78, nothing is deleted."""


class SpoolUnreadable(Exception):
    """The spool belongs to another node or was written by a newer version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEnd:
    """Where the metered time of a device ends on disk, in the boot that metered it."""

    device_id: str
    boot: str
    mono_end_us: int
    wall_minus_mono_us: int
    driver_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEvent:
    """An event waiting for the next report."""

    type: str
    at: Moment
    device: report.Device | None
    data: dict[str, int | str | bool | None]


class Spool:
    """One node's file."""

    def __init__(
        self, path: Path | str, node_id: str, key: SigningKey, *, cap_bytes: int = CAP_BYTES
    ) -> None:
        """Open or create. Raises SpoolUnreadable."""
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._key, self.node_id, self.cap_bytes = key, node_id, cap_bytes
        self._names: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._devices: dict[int, report.Device] = {}
        self._db.executescript(_SCHEMA)
        with self._transaction():
            self._claim()
            self._db.execute("UPDATE row SET is_open = 0 WHERE is_open = 1")

    def close(self) -> None:
        self._db.close()

    # --- the chain ---------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        """Number of the last report signed or adopted."""
        return int(self._meta("seq", 0))

    @property
    def head(self) -> bytes:
        """Hash of that report; genesis before the first."""
        found = self._meta("head", None)
        return bytes(found) if found else report.genesis(self.node_id, public_key(self._key))

    @property
    def acked_seq(self) -> int:
        return int(self._meta("acked_seq", 0))

    @property
    def lost_reports(self) -> int:
        """Reports set aside because the server already had others under their numbers."""
        return self._count("SELECT count(*) FROM report WHERE state = ?", _ORPHANED)

    def reconcile(self, acked_seq: int, head: bytes | None, wall_us: int) -> Verdict:
        """Compare heads before the first signature after a start, and after a fork.

        Server behind: what it lacks becomes unacknowledged again. Server ahead: our disk went back
        in time, so its head is adopted and our own later reports are set aside, never sent.
        Raises HistoryDiffers where both hold another report under one number.
        """
        theirs = head or report.genesis(self.node_id, public_key(self._key))
        if acked_seq > self.seq:
            self._adopt(acked_seq, theirs)
            return Verdict.ADOPTED
        if self._hash_at(acked_seq) != theirs:
            raise HistoryDiffers(f"report {acked_seq} of the server is not ours")
        missing = self.seq - acked_seq
        if missing != self._count("SELECT count(*) FROM report WHERE seq > ?", acked_seq):
            raise HistoryDiffers(f"the server lacks reports after {acked_seq} that we gave away")
        with self._transaction():
            self._db.execute(
                "UPDATE report SET state = ? WHERE seq > ? AND state = ?",
                (_WAITING, acked_seq, _ACKED),
            )
            self._mark_acked(acked_seq, wall_us)
        return Verdict.EQUAL if missing == 0 else Verdict.RESEND

    def ack(self, acked_seq: int, head: bytes | None, wall_us: int) -> None:
        """The server holds everything up to `acked_seq`. Raises HistoryDiffers."""
        if acked_seq == 0:
            return
        if acked_seq > self.seq:
            raise HistoryDiffers(f"an acknowledgement of report {acked_seq}, never signed here")
        ours = self._hash_at(acked_seq)
        if ours is not None and ours != head:
            raise HistoryDiffers(f"report {acked_seq} of the server is not ours")
        with self._transaction():
            self._mark_acked(max(acked_seq, self.acked_seq), wall_us)
            self._db.execute(
                "DELETE FROM report WHERE state = ? AND acked_us < ?",
                (_ACKED, wall_us - KEEP_ACKED_US),
            )

    def unacked(self, count: int, bytes_max: int) -> list[SignedReport]:
        """The next reports to send, at least one where any waits."""
        found: list[SignedReport] = []
        size = 0
        query = (
            "SELECT seq, body, signature, hash, prev FROM report WHERE state = ? AND seq > ?"
            " ORDER BY seq LIMIT ?"
        )
        for seq, body, signature, digest, prev in self._db.execute(
            query, (_WAITING, self.acked_seq, count)
        ):
            size += len(body)
            if found and size > bytes_max:
                break
            found.append(
                SignedReport(seq=seq, body=body, signature=signature, hash=digest, prev=prev)
            )
        return found

    def flag(self, seq: int, flags: str) -> None:
        """Remember why the server stored a report but gave it no worth."""
        self._db.execute("UPDATE report SET flags = ? WHERE seq = ?", (flags, seq))

    def flagged(self) -> list[tuple[int, str]]:
        """(seq, flags) of the reports that earned nothing, for `doctor`."""
        query = "SELECT seq, flags FROM report WHERE flags IS NOT NULL ORDER BY seq"
        return list(self._db.execute(query))

    # --- rows --------------------------------------------------------------------------------

    def record(
        self,
        boot: str,
        closed: Iterable[Stretch],
        still_open: Iterable[Stretch],
        ends: Iterable[DeviceEnd],
        events: Iterable[PendingEvent] = (),
    ) -> None:
        """Write closed rows for good, and the open ones as they would stand if we died now."""
        with self._transaction():
            self._db.execute("DELETE FROM row WHERE is_open = 1")
            boot_name = self._name(boot)
            for stretch in closed:
                self._insert(boot_name, stretch, is_open=0)
            for stretch in still_open:
                self._insert(boot_name, stretch, is_open=1)
            for end in ends:
                self._db.execute(
                    "INSERT OR REPLACE INTO device_end VALUES(?, ?, ?, ?, ?)",
                    tuple(getattr(end, field.name) for field in fields(end)),
                )
            for event in events:
                self._insert_event(boot_name, event)

    def ends(self, boot: str) -> dict[str, DeviceEnd]:
        """Where each device's time ended, of those metered in this boot."""
        query = "SELECT * FROM device_end WHERE boot = ?"
        found = (DeviceEnd(**_named(DeviceEnd, row)) for row in self._db.execute(query, (boot,)))
        return {end.device_id: end for end in found}

    def unsigned_count(self) -> int:
        return self._count("SELECT count(*) FROM row WHERE is_open = 0")

    def sign(
        self, now: Moment, boot: str, *, clock: ClockOffset | None, agent: str
    ) -> SignedReport | None:
        """Sign the oldest waiting rows and events of one boot; None where nothing waits."""
        first = self._db.execute(
            "SELECT min(boot) FROM (SELECT boot FROM row WHERE is_open = 0"
            " UNION ALL SELECT boot FROM event)"
        ).fetchone()[0]
        if first is None:
            return None
        of_boot = self._text(first)
        limit = report.ROWS_MAX
        while True:
            events = self._waiting_events(first)
            picked = _within_bounds(self._waiting(first, limit), events)
            chain = ReportChain(self.node_id, self._key, seq=self.seq, head=self._head_or_none())
            signed = _signed(chain, picked, events, now, of_boot, boot, clock, agent)
            if len(signed.body) <= BODY_BYTES_SOFT or limit <= 1:
                break
            limit = max(1, len(picked) // 2)
        self._store(signed, [row for row, _ in picked], [event for event, _ in events])
        return signed

    # --- the cap -----------------------------------------------------------------------------

    def used_bytes(self) -> int:
        """What must not be lost: unacknowledged reports and unsigned rows."""
        bodies = self._count("SELECT coalesce(sum(length(body)), 0) FROM report WHERE state = 0")
        return bodies + ROW_BYTES * self._count("SELECT count(*) FROM row")

    def fullness_ppm(self) -> int:
        """Share of the cap in use, in parts per million; may pass 1,000,000."""
        return self.used_bytes() * 1_000_000 // self.cap_bytes

    def merge(self) -> int:
        """Join adjoining unsigned rows of one (device, lease, epoch, shape) within their hour.

        Returns how many rows it saved. Time, energy and samples stay what they were.
        """
        saved = 0
        boots = [boot for (boot,) in self._db.execute("SELECT DISTINCT boot FROM row")]
        with self._transaction():
            for boot in boots:
                saved += self._merge_boot(boot)
        return saved

    def _merge_boot(self, boot: int) -> int:
        open_rows: dict[tuple[report.Device, str | None], tuple[int, Stretch]] = {}
        saved = 0
        for row_id, stretch in self._waiting(boot, MERGE_BATCH):
            key = (stretch.device, stretch.lease)
            before = open_rows.get(key)
            joined = rows.merge(before[1], stretch) if before else None
            if before is None or joined is None:
                open_rows[key] = (row_id, stretch)
                continue
            self._db.execute("DELETE FROM row WHERE id IN (?, ?)", (before[0], row_id))
            open_rows[key] = (self._insert(boot, joined, is_open=0), joined)
            saved += 1
        return saved

    # --- small memory ------------------------------------------------------------------------

    def next_driver_epoch(self) -> int:
        """One more than ever before: counters compare within one opening of the driver only."""
        with self._transaction():
            epoch = int(self._meta("driver_epoch", 0)) + 1
            self._set("driver_epoch", epoch)
        return epoch

    def remember_windows(self, windows: Sequence[Window]) -> None:
        """Keep the assignments for a restart without the server."""
        self._set("windows", json.dumps([asdict(window) for window in windows]))

    def windows(self) -> tuple[Window, ...]:
        return tuple(Window(**item) for item in json.loads(self._meta("windows", "[]")))

    def specs_told(self) -> str:
        """Digest of the inventory the server last took; empty before the first."""
        return str(self._meta("specs", ""))

    def remember_specs(self, digest: str) -> None:
        self._set("specs", digest)

    # --- inside ------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            self._names.clear()
            self._texts.clear()
            self._devices.clear()
            raise
        self._db.execute("COMMIT")

    def _claim(self) -> None:
        owner = f"{self.node_id} {public_key(self._key).hex()} {VERSION}"
        if self._meta("owner", owner) != owner:
            raise SpoolUnreadable(f"this spool is of {self._meta('owner', '')}, not {owner}")
        self._set("owner", owner)

    def _adopt(self, acked_seq: int, head: bytes) -> None:
        with self._transaction():
            self._db.execute("UPDATE report SET state = ? WHERE state = ?", (_ORPHANED, _WAITING))
            self._set("seq", acked_seq)
            self._set("acked_seq", acked_seq)
            self._set("head", head)

    def _mark_acked(self, acked_seq: int, wall_us: int) -> None:
        self._db.execute(
            "UPDATE report SET state = ?, acked_us = ? WHERE seq <= ? AND state = ?",
            (_ACKED, wall_us, acked_seq, _WAITING),
        )
        self._set("acked_seq", acked_seq)

    def _store(self, signed: SignedReport, row_ids: list[int], event_ids: list[int]) -> None:
        with self._transaction():
            self._db.execute(
                "INSERT INTO report(seq, body, signature, hash, prev) VALUES(?, ?, ?, ?, ?)",
                (signed.seq, signed.body, signed.signature, signed.hash, signed.prev),
            )
            self._db.executemany("DELETE FROM row WHERE id = ?", [(i,) for i in row_ids])
            self._db.executemany("DELETE FROM event WHERE id = ?", [(i,) for i in event_ids])
            self._set("seq", signed.seq)
            self._set("head", signed.hash)

    def _head_or_none(self) -> bytes | None:
        return self.head if self.seq else None

    def _hash_at(self, seq: int) -> bytes | None:
        """Hash of our report `seq`; None where we no longer, or never, had it."""
        if seq == self.seq:
            return self.head
        if seq == 0:
            return report.genesis(self.node_id, public_key(self._key))
        query = (
            "SELECT hash FROM report WHERE seq = ? AND state <> ?"
            " UNION ALL SELECT prev FROM report WHERE seq = ? AND state <> ?"
        )
        found = self._db.execute(query, (seq, _ORPHANED, seq + 1, _ORPHANED)).fetchone()
        return bytes(found[0]) if found else None

    def _waiting(self, boot: int, limit: int) -> list[tuple[int, Stretch]]:
        """Unsigned rows of a boot in the order of their start, within a report's bounds."""
        query = (
            f"SELECT id, device, lease, reason, {', '.join(_COUNTERS)} FROM row"  # noqa: S608
            " WHERE is_open = 0 AND boot = ? ORDER BY mono_start_us, device, lease LIMIT ?"
        )
        return [(row[0], self._stretch(row)) for row in self._db.execute(query, (boot, limit))]

    def _waiting_events(self, boot: int) -> list[tuple[int, PendingEvent]]:
        query = (
            "SELECT id, device, type, mono_us, wall_us, data FROM event WHERE boot = ?"
            " ORDER BY id LIMIT ?"
        )
        found = self._db.execute(query, (boot, report.EVENTS_MAX)).fetchall()
        return [
            (
                event_id,
                PendingEvent(
                    type=name,
                    at=Moment(mono_us, mono_us, wall_us),
                    device=None if device is None else self._device(device),
                    data=json.loads(data),
                ),
            )
            for event_id, device, name, mono_us, wall_us, data in found
        ]

    def _stretch(self, row: Sequence[Any]) -> Stretch:
        _, device, lease, reason, *counters = row
        return Stretch(
            device=self._device(device),
            lease=None if lease is None else self._text(lease),
            row=report.Row(
                device=0,
                lease=None,
                reason=report.REASONS[reason],
                **dict(zip(_COUNTERS, counters, strict=True)),
            ),
        )

    def _insert(self, boot: int, stretch: Stretch, *, is_open: int) -> int:
        values = (
            boot,
            self._name(_device_text(stretch.device)),
            None if stretch.lease is None else self._name(stretch.lease),
            report.REASONS.index(stretch.row.reason),
            is_open,
            *(getattr(stretch.row, name) for name in _COUNTERS),
        )
        marks = ", ".join("?" * len(values))
        cursor = self._db.execute(
            "INSERT INTO row(boot, device, lease, reason, is_open,"
            f" {', '.join(_COUNTERS)}) VALUES({marks})",
            values,
        )
        return int(cursor.lastrowid or 0)

    def _insert_event(self, boot: int, event: PendingEvent) -> None:
        device = None if event.device is None else self._name(_device_text(event.device))
        data = json.dumps(event.data)
        assert len(data) <= EVENT_BYTES_MAX, "100 events must fit into one report"
        self._db.execute(
            "INSERT INTO event(boot, device, type, mono_us, wall_us, data)"
            " VALUES(?, ?, ?, ?, ?, ?)",
            (boot, device, event.type, event.at.mono_us, event.at.wall_us, data),
        )

    def _name(self, text: str) -> int:
        """The number that stands for a boot, device or lease in the rows."""
        if text not in self._names:
            self._db.execute("INSERT OR IGNORE INTO name(text) VALUES(?)", (text,))
            found = self._db.execute("SELECT id FROM name WHERE text = ?", (text,)).fetchone()
            self._names[text] = int(found[0])
        return self._names[text]

    def _text(self, name: int) -> str:
        if name not in self._texts:
            query = "SELECT text FROM name WHERE id = ?"
            self._texts[name] = str(self._db.execute(query, (name,)).fetchone()[0])
        return self._texts[name]

    def _device(self, name: int) -> report.Device:
        if name not in self._devices:
            self._devices[name] = report.Device(**json.loads(self._text(name)))
        return self._devices[name]

    def _meta(self, key: str, default: Any) -> Any:
        found = self._db.execute("SELECT v FROM meta WHERE k = ?", (key,)).fetchone()
        return default if found is None else found[0]

    def _set(self, key: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))

    def _count(self, query: str, *arguments: Any) -> int:
        return int(self._db.execute(query, arguments).fetchone()[0])


def _within_bounds(
    picked: Sequence[tuple[int, Stretch]], events: Sequence[tuple[int, PendingEvent]]
) -> list[tuple[int, Stretch]]:
    """As many of the first rows as one report has places for, in devices and in leases."""
    devices = {event.device for _, event in events if event.device}
    leases: set[str] = set()
    for count, (_, stretch) in enumerate(picked):
        devices.add(stretch.device)
        leases |= {stretch.lease} if stretch.lease else set()
        if len(devices) > report.DEVICES_MAX or len(leases) > report.LEASES_MAX:
            return list(picked[:count])
    return list(picked)


def _signed(
    chain: ReportChain,
    picked: Sequence[tuple[int, Stretch]],
    events: Sequence[tuple[int, PendingEvent]],
    now: Moment,
    of_boot: str,
    boot: str,
    clock: ClockOffset | None,
    agent: str,
) -> SignedReport:
    devices, leases, placed = rows.place(stretch for _, stretch in picked)
    devices = tuple(dict.fromkeys([*devices, *(e.device for _, e in events if e.device)]))
    ends = [row.mono_end_us for row in placed] + [event.at.mono_us for _, event in events]
    return chain.sign(
        placed,
        devices,
        leases,
        mono_us=now.mono_us if of_boot == boot else max(ends),
        wall_us=now.wall_us,
        boot=of_boot,
        clock=clock,
        events=[_placed_event(event, devices) for _, event in events],
        agent=agent,
    )


def _placed_event(event: PendingEvent, devices: Sequence[report.Device]) -> report.Event:
    return report.Event(
        type=event.type,
        mono_us=event.at.mono_us,
        wall_us=event.at.wall_us,
        device=None if event.device is None else devices.index(event.device),
        data=event.data,
    )


def _device_text(device: report.Device) -> str:
    return json.dumps(asdict(device), separators=(",", ":"))


def _named(kind: type[Any], row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((field.name for field in fields(kind)), row, strict=True))
