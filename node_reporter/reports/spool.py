"""What is not yet receipted, on disk: rows wait unsigned, reports wait for their acknowledgement.

    a committed row is in exactly one place: unsigned, or inside exactly one signed report
    signing is one transaction: insert the report, delete its rows, move the head

Nothing is ever dropped: near the cap reports get longer and adjoining rows of one lease hour are
merged. Acknowledged reports stay 14 days, packed, for a server restored from an older backup. A
report is read back by the rules of its reader before it is signed, and a row that breaks one is set
aside alone: it would cost every other row of its report its worth. Used from one thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

from domain.metering import report
from domain.metering.resources import ResourceRow
from node_reporter.clock import ClockOffset, Moment
from node_reporter.identity import Rotation, key_id, public_key, unsealed
from node_reporter.meter import rows
from node_reporter.meter.leases import Window
from node_reporter.meter.rows import WALL_JUMP_US, Stretch
from node_reporter.meter.used import Counted
from node_reporter.reports.reports import BODY_BYTES_SOFT, ReportChain, SignedReport
from node_reporter.reports.spool_file import (
    DeviceEnd,
    PendingEvent,
    SpoolBlocked,
    SpoolFile,
    SpoolUnreadable,
    Used,
    unpacked,
)

__all__ = [
    "DeviceEnd",
    "HistoryDiffers",
    "PendingEvent",
    "Spool",
    "SpoolBlocked",
    "SpoolUnreadable",
    "Verdict",
]

CAP_BYTES = 64 * 1024 * 1024
KEEP_ACKED_US = 14 * 86_400_000_000
ROW_BYTES = 96
"""What an unsigned row costs on disk, measured and rounded up; counts against the cap."""
EVENT_BYTES = 256
"""The same for an event, with its data."""
MERGE_BATCH = 20_000
ROWS_PER_EVENT = 6
"""So many rows fewer go into a report for each event in it: all of both would be too long."""
USED_MAX = 300
"""Resource rows in a report, so that they fit beside its rows."""
ATTEMPTS_MAX = 10_000
"""How often one signature may find something to set aside, or a smaller report to make."""
BOOTS_KEPT = 8
"""Boots whose clock is remembered, for rows of theirs that wait."""
VERSION = 1
_WAITING, _ACKED, _ORPHANED = 0, 1, 2
_CLOSED, _OPEN, _ASIDE = 0, 1, 2


class Verdict(StrEnum):
    """What comparing our head with the server's told us."""

    EQUAL = "equal"
    RESEND = "resend"
    ADOPTED = "adopted"


class HistoryDiffers(Exception):
    """The server holds another history than this spool: exit 78, nothing is deleted."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A signed report and what of the spool is in it."""

    signed: SignedReport
    row_ids: list[int]
    event_ids: list[int]
    used_ids: list[int]


@dataclass(frozen=True, slots=True)
class _Signing:
    """When a report is signed, of which boot its rows are, and in which we are."""

    now: Moment
    of_boot: str
    boot: str
    clock: ClockOffset | None
    agent: str


class Spool:
    """One node's file."""

    def __init__(
        self, path: Path | str, node_id: str, key: SigningKey, *, cap_bytes: int = CAP_BYTES
    ) -> None:
        """Open or create. Raises SpoolUnreadable, SpoolBlocked."""
        self._file = SpoolFile(path)
        self._db = self._file.db
        self._key, self.node_id, self.cap_bytes = key, node_id, cap_bytes
        self._merge_from: tuple[int, int] = (0, 0)
        with self._file.transaction():
            self._claim()
            self._db.execute("UPDATE row SET is_open = ? WHERE is_open = ?", (_CLOSED, _OPEN))
            self._file.forget_names()

    def close(self) -> None:
        self._file.close()

    # --- the chain ---------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        """Number of the last report signed or adopted."""
        return int(self._file.meta("seq", 0))

    @property
    def head(self) -> bytes:
        """Hash of that report; genesis before the first."""
        found = self._file.meta("head", None)
        return bytes(found) if found else self._genesis()

    @property
    def acked_seq(self) -> int:
        return int(self._file.meta("acked_seq", 0))

    @property
    def lost_reports(self) -> int:
        """Reports set aside because the server already had others under their numbers."""
        return self._file.count("SELECT count(*) FROM report WHERE state = ?", _ORPHANED)

    @property
    def lost_rows(self) -> int:
        """Rows set aside because what stood in them broke a rule of the format."""
        return self._file.count("SELECT count(*) FROM row WHERE is_open = ?", _ASIDE)

    def reconcile(self, acked_seq: int, head: bytes | None, server_us: int) -> Verdict:
        """Compare heads before the first signature after a start, and after a fork.

        Server behind: what it lacks becomes unacknowledged again. Server ahead: our disk went back
        in time, so its head is adopted and our own later reports are set aside, never sent.
        Raises HistoryDiffers where both hold another report under one number.
        """
        theirs = head or self._genesis()
        if acked_seq > self.seq:
            self._adopt(acked_seq, theirs)
            return Verdict.ADOPTED
        if self._hash_at(acked_seq) != theirs:
            raise HistoryDiffers(f"report {acked_seq} of the server is not ours")
        missing = self.seq - acked_seq
        if missing != self._file.count("SELECT count(*) FROM report WHERE seq > ?", acked_seq):
            raise HistoryDiffers(f"the server lacks reports after {acked_seq} that we gave away")
        with self._file.transaction():
            self._db.execute(
                "UPDATE report SET state = ? WHERE seq > ? AND state = ?",
                (_WAITING, acked_seq, _ACKED),
            )
            self._mark_acked(acked_seq, server_us)
        return Verdict.EQUAL if missing == 0 else Verdict.RESEND

    def ack(self, acked_seq: int, head: bytes | None, server_us: int) -> None:
        """The server holds everything up to `acked_seq`. Raises HistoryDiffers."""
        if acked_seq == 0:
            return
        if acked_seq > self.seq:
            raise HistoryDiffers(f"an acknowledgement of report {acked_seq}, never signed here")
        ours = self._hash_at(acked_seq)
        if ours is not None and ours != head:
            raise HistoryDiffers(f"report {acked_seq} of the server is not ours")
        with self._file.transaction():
            self._mark_acked(max(acked_seq, self.acked_seq), server_us)
            self._db.execute(
                "DELETE FROM report WHERE state = ? AND acked_us < ?",
                (_ACKED, server_us - KEEP_ACKED_US),
            )

    def unacked(self, count: int, bytes_max: int) -> list[SignedReport]:
        """The next reports to send, at least one where any waits.

        Raises SpoolUnreadable where one is not what was signed: the chain cannot go on without it.
        """
        found: list[SignedReport] = []
        size = 0
        query = (
            "SELECT seq, body, signature, hash, prev FROM report WHERE state = ? AND seq > ?"
            " ORDER BY seq LIMIT ?"
        )
        for seq, stored, signature, digest, prev in self._db.execute(
            query, (_WAITING, self.acked_seq, count)
        ):
            body = _as_signed(seq, stored, digest)
            size += len(body)
            if found and size > bytes_max:
                break
            found.append(
                SignedReport(
                    seq=seq,
                    body=body,
                    signature=signature,
                    hash=digest,
                    prev=prev,
                    key_id=self._key_id_of(seq),
                )
            )
        return found

    def waiting(self) -> tuple[int, int]:
        """(reports, bytes) that are signed and not acknowledged."""
        query = "SELECT count(*), coalesce(sum(length(body)), 0) FROM report WHERE state = ?"
        count, size = self._db.execute(query, (_WAITING,)).fetchone()
        return int(count), int(size)

    def flag(self, seq: int, flags: str) -> None:
        """Remember why the server stored a report but gave it no worth."""
        with self._file.transaction():
            self._db.execute("UPDATE report SET flags = ? WHERE seq = ?", (flags, seq))

    def flagged(self) -> list[tuple[int, str]]:
        """(seq, flags) of the reports that earned nothing, for `doctor`."""
        query = "SELECT seq, flags FROM report WHERE flags IS NOT NULL ORDER BY seq"
        return list(self._db.execute(query))

    # --- the key -----------------------------------------------------------------------------

    def hand_on(self, new: SigningKey) -> Rotation:
        """From the next report on `new` signs. The reports before it stay as they are."""
        rotation = Rotation.of(self.node_id, self.seq + 1, self._key, new)
        first = self._file.meta("first_key", public_key(self._key).hex())
        with self._file.transaction():
            self._file.set("first_key", first)
            known = [*self.rotations(), rotation]
            self._file.set("rotations", json.dumps([asdict(one) for one in known]))
            self._file.set("owner", _owner(self.node_id, new))
        self._key = new
        return rotation

    def rotations(self, *, after_seq: int = 0) -> list[Rotation]:
        """Changes of the key that concern reports after this one, first first."""
        told = [Rotation(**one) for one in json.loads(self._file.meta("rotations", "[]"))]
        return [one for one in told if one.from_seq > after_seq]

    def untold(self) -> Rotation | None:
        """The last change of the key, while no bearer key has come for it."""
        known = self.rotations()
        told = self._file.meta("told_key", "")
        return known[-1] if known and known[-1].public_key != told else None

    def unsealed(self, sealed: str) -> str:
        """What the server sealed for the present key; empty where another opens it, or none."""
        return unsealed(self._key, sealed)

    def remember_told(self, rotation: Rotation) -> None:
        self._remember("told_key", rotation.public_key)

    def _key_id_of(self, seq: int) -> str:
        """The key that signed a report, which may be one that was handed on since."""
        later = self.rotations(after_seq=seq)
        return later[0].previous_key_id if later else key_id(public_key(self._key))

    def _genesis(self) -> bytes:
        """What the first report follows: it names the first key for good."""
        first = self._file.meta("first_key", None)
        public = public_key(self._key) if first is None else bytes.fromhex(first)
        return report.genesis(self.node_id, public)

    # --- rows --------------------------------------------------------------------------------

    def record(
        self,
        boot: str,
        closed: Iterable[Stretch],
        still_open: Iterable[Stretch],
        ends: Iterable[DeviceEnd],
        events: Iterable[PendingEvent] = (),
        gone: Iterable[str] = (),
        used: Iterable[tuple[Counted, Sequence[ResourceRow]]] = (),
        clock: ClockOffset | None = None,
    ) -> None:
        """Write closed rows for good, and the open ones as they would stand if we died now.

        Devices that are `gone` are forgotten: should one come back, its time begins anew.
        """
        with self._file.transaction():
            self._db.execute("DELETE FROM row WHERE is_open = ?", (_OPEN,))
            boot_name = self._file.name(boot)
            for stretch in closed:
                self._file.insert_row(boot_name, stretch, is_open=_CLOSED)
            for stretch in still_open:
                self._file.insert_row(boot_name, stretch, is_open=_OPEN)
            for end in ends:
                self._db.execute(
                    "INSERT OR REPLACE INTO device_end VALUES(?, ?, ?, ?, ?, ?)",
                    tuple(getattr(end, field.name) for field in fields(end)),
                )
            for device_id in gone:
                self._db.execute("DELETE FROM device_end WHERE device = ?", (device_id,))
            for event in events:
                self._file.insert_event(boot_name, event)
            for counted, told in used:
                for row in told:
                    self._file.insert_used(boot_name, counted.lease_id, row, clock)
                self._db.execute(
                    "INSERT OR REPLACE INTO used_last VALUES(?, ?)",
                    (counted.lease_id, json.dumps(asdict(counted))),
                )

    def used_last(self, lease_id: str) -> Counted | None:
        """The counters up to which the use of a lease is on disk."""
        query = "SELECT counted FROM used_last WHERE lease = ?"
        found = self._db.execute(query, (lease_id,)).fetchone()
        return None if found is None else Counted(**json.loads(found[0]))

    def ends(self, boot: str) -> dict[str, DeviceEnd]:
        """Where each device's time ended, of those metered in this boot."""
        query = "SELECT * FROM device_end WHERE boot = ?"
        names = [field.name for field in fields(DeviceEnd)]
        found = (
            DeviceEnd(**dict(zip(names, row, strict=True)))
            for row in self._db.execute(query, (boot,))
        )
        return {end.device_id: end for end in found}

    def unsigned_count(self) -> int:
        return self._file.count("SELECT count(*) FROM row WHERE is_open = ?", _CLOSED)

    def sign(
        self, now: Moment, boot: str, *, clock: ClockOffset | None, agent: str
    ) -> SignedReport | None:
        """Sign the oldest waiting rows and events of one boot; None where nothing waits.

        Rows on either side of a wall clock that was set go into reports of their own, each with the
        offset its wall times need.
        """
        rows_max, events_max = report.ROWS_MAX, report.EVENTS_MAX
        for _ in range(ATTEMPTS_MAX):
            first = self._oldest_boot()
            if first is None:
                return None
            events = self._picked_events(first, events_max)
            rows_max = min(rows_max, report.ROWS_MAX - ROWS_PER_EVENT * len(events))
            picked = _within_bounds(self._picked(first, rows_max), events)
            if not picked and not events and not self._file.used_rows(first, 1):
                continue  # what there was made no sense and was set aside
            signing = _Signing(now, self._file.text(first), boot, clock, agent)
            used = self._file.used_rows(first, USED_MAX)
            if used and not _is_sound(self._draft([], [], signing, used).signed.body):
                used = self._sound_used(used, signing)
            draft = self._draft(picked, events, signing, used)
            too_long = len(draft.signed.body) > BODY_BYTES_SOFT and len(picked) > 1
            if not too_long and _is_sound(draft.signed.body):
                self._store(draft, signing)
                return draft.signed
            if not too_long and self._cull(picked, events, signing):
                rows_max, events_max = report.ROWS_MAX, report.EVENTS_MAX
            elif len(picked) > 1:
                rows_max = max(1, len(picked) // 2)
            else:
                events_max = max(1, len(events) // 2)
        return None

    # --- the cap -----------------------------------------------------------------------------

    def used_bytes(self) -> int:
        """What must not be lost: unacknowledged reports, unsigned rows, events."""
        _, bodies = self.waiting()
        return (
            bodies
            + ROW_BYTES * self._file.count("SELECT count(*) FROM row")
            + EVENT_BYTES * self._file.count("SELECT count(*) FROM event")
        )

    def fullness_ppm(self) -> int:
        """Share of the cap in use, in parts per million; may pass 1,000,000."""
        return self.used_bytes() * 1_000_000 // self.cap_bytes

    def merge(self) -> int:
        """Join adjoining unsigned rows of one (device, lease, epoch, shape) within their hour.

        Returns how many rows it saved. Time, energy and samples stay what they were. One call looks
        at MERGE_BATCH rows and the next goes on behind them, so that no call takes long.
        """
        boot, from_us = self._merge_from
        found = self._db.execute(
            "SELECT min(boot) FROM row WHERE is_open = ? AND boot >= ?", (_CLOSED, boot)
        ).fetchone()[0]
        if found is None:
            self._merge_from = (0, 0)
            return 0
        if found != boot:
            from_us = 0
        looked_at = self._readable(self._file.closed_rows(found, MERGE_BATCH, from_us))
        with self._file.transaction():
            saved = self._merge_rows(found, looked_at)
        if len(looked_at) < MERGE_BATCH:
            self._merge_from = (found + 1, 0)
        else:
            self._merge_from = (found, looked_at[-1][1].row.mono_start_us)
        return saved

    def _merge_rows(self, boot: int, looked_at: Iterable[tuple[int, Stretch]]) -> int:
        last: dict[tuple[report.Device, str | None], tuple[int, Stretch]] = {}
        saved = 0
        for row_id, stretch in looked_at:
            key = (stretch.device, stretch.lease)
            before = last.get(key)
            joined = rows.merge(before[1], stretch) if before else None
            if before is None or joined is None:
                last[key] = (row_id, stretch)
                continue
            self._db.execute("DELETE FROM row WHERE id IN (?, ?)", (before[0], row_id))
            last[key] = (self._file.insert_row(boot, joined, is_open=_CLOSED), joined)
            saved += 1
        return saved

    # --- small memory ------------------------------------------------------------------------

    def next_driver_epoch(self) -> int:
        """One more than ever before: counters compare within one opening of the driver only."""
        with self._file.transaction():
            epoch = int(self._file.meta("driver_epoch", 0)) + 1
            self._file.set("driver_epoch", epoch)
        return epoch

    def remember_windows(self, windows: Sequence[Window]) -> None:
        """Keep the assignments for a restart without the server."""
        self._remember("windows", json.dumps([asdict(window) for window in windows]))

    def windows(self) -> tuple[Window, ...]:
        return tuple(Window(**item) for item in json.loads(self._file.meta("windows", "[]")))

    def specs_told(self) -> str:
        """Digest of the inventory the server last took; empty before the first."""
        return str(self._file.meta("specs", ""))

    def remember_specs(self, digest: str) -> None:
        self._remember("specs", digest)

    # --- inside ------------------------------------------------------------------------------

    def _remember(self, key: str, value: Any) -> None:
        with self._file.transaction():
            self._file.set(key, value)

    def _claim(self) -> None:
        owner = _owner(self.node_id, self._key)
        held = self._file.meta("owner", owner)
        if held != owner:
            raise SpoolUnreadable(f"this spool is of {held}, not {owner}")
        self._file.set("owner", owner)

    def _adopt(self, acked_seq: int, head: bytes) -> None:
        with self._file.transaction():
            self._db.execute("UPDATE report SET state = ? WHERE state = ?", (_ORPHANED, _WAITING))
            self._file.set("seq", acked_seq)
            self._file.set("acked_seq", acked_seq)
            self._file.set("head", head)

    def _mark_acked(self, acked_seq: int, server_us: int) -> None:
        self._db.execute(
            "UPDATE report SET state = ?, acked_us = ?, body = packed(body)"
            " WHERE seq <= ? AND state = ?",
            (_ACKED, server_us, acked_seq, _WAITING),
        )
        self._file.set("acked_seq", acked_seq)

    def _store(self, draft: _Draft, signing: _Signing) -> None:
        signed = draft.signed
        with self._file.transaction():
            self._db.execute(
                "INSERT INTO report(seq, body, signature, hash, prev) VALUES(?, ?, ?, ?, ?)",
                (signed.seq, signed.body, signed.signature, signed.hash, signed.prev),
            )
            self._db.executemany("DELETE FROM row WHERE id = ?", [(i,) for i in draft.row_ids])
            self._db.executemany("DELETE FROM event WHERE id = ?", [(i,) for i in draft.event_ids])
            self._db.executemany("DELETE FROM used WHERE id = ?", [(i,) for i in draft.used_ids])
            self._file.set("seq", signed.seq)
            self._file.set("head", signed.hash)
            self._remember_clock(signing)

    def _remember_clock(self, signing: _Signing) -> None:
        """How far the server is from this boot's own clock, for rows that the next boot signs."""
        if signing.clock is None:
            return
        server_minus_boot_us = signing.clock.offset_us + signing.now.wall_us - signing.now.boot_us
        known = json.loads(self._file.meta("clocks", "{}"))
        known.pop(signing.boot, None)
        known[signing.boot] = [server_minus_boot_us, signing.clock.rtt_us]
        kept = dict(list(known.items())[-BOOTS_KEPT:])
        self._file.set("clocks", json.dumps(kept))

    def _offset_in(self, boot: str, first: Stretch | None) -> ClockOffset | None:
        """Server minus node in an earlier boot, whose wall clock may have been set otherwise than
        the present one's. Not known: the rows stand by their own wall clock.
        """
        known = json.loads(self._file.meta("clocks", "{}")).get(boot)
        if known is None or first is None or first.wall_minus_boot_us is None:
            return None
        return ClockOffset(offset_us=known[0] - first.wall_minus_boot_us, rtt_us=known[1])

    def _set_aside(self, row_ids: Sequence[int], event_ids: Sequence[int]) -> None:
        """Nobody can read these, and none of them may cost the others their worth."""
        with self._file.transaction():
            for row_id in row_ids:
                self._db.execute("UPDATE row SET is_open = ? WHERE id = ?", (_ASIDE, row_id))
            for event_id in event_ids:
                self._db.execute("DELETE FROM event WHERE id = ?", (event_id,))

    def _hash_at(self, seq: int) -> bytes | None:
        """Hash of our report `seq`; None where we no longer, or never, had it."""
        if seq == self.seq:
            return self.head
        if seq == 0:
            return self._genesis()
        query = (
            "SELECT hash FROM report WHERE seq = ? AND state <> ?"
            " UNION ALL SELECT prev FROM report WHERE seq = ? AND state <> ?"
        )
        found = self._db.execute(query, (seq, _ORPHANED, seq + 1, _ORPHANED)).fetchone()
        return bytes(found[0]) if found else None

    def _oldest_boot(self) -> int | None:
        found = self._db.execute(
            "SELECT min(boot) FROM (SELECT boot FROM row WHERE is_open = ?"
            " UNION ALL SELECT boot FROM event UNION ALL SELECT boot FROM used)",
            (_CLOSED,),
        ).fetchone()[0]
        return None if found is None else int(found)

    def _picked(self, boot: int, limit: int) -> list[tuple[int, Stretch]]:
        return self._readable(self._file.closed_rows(boot, limit))

    def _readable(self, found: Iterable[tuple[int, Any]]) -> list[tuple[int, Stretch]]:
        picked, damaged = [], []
        for row_id, row in found:
            try:
                picked.append((row_id, self._file.stretch(row)))
            except ValueError:
                damaged.append(row_id)
        if damaged:
            self._set_aside(damaged, [])
        return picked

    def _picked_events(self, boot: int, limit: int) -> list[tuple[int, PendingEvent]]:
        picked, damaged = [], []
        for event_id, event in self._file.events(boot, limit):
            try:
                picked.append((event_id, self._file.event(event)))
            except ValueError:
                damaged.append(event_id)
        if damaged:
            self._set_aside([], damaged)
        return picked

    def _cull(
        self,
        picked: Sequence[tuple[int, Stretch]],
        events: Sequence[tuple[int, PendingEvent]],
        signing: _Signing,
    ) -> bool:
        """Set aside each row and event that breaks a rule all by itself; whether there was any."""
        bad_rows = [one for one in picked if not self._is_fit([one], [], signing)]
        bad_events = [one for one in events if not self._is_fit([], [one], signing)]
        if not bad_rows and not bad_events:
            assert len(picked) + len(events) > 1, "alone it was fit, and there is nothing else"
            return False
        self._set_aside([row for row, _ in bad_rows], [event for event, _ in bad_events])
        return True

    def _is_fit(
        self,
        picked: Sequence[tuple[int, Stretch]],
        events: Sequence[tuple[int, PendingEvent]],
        signing: _Signing,
    ) -> bool:
        return _is_sound(self._draft(picked, events, signing).signed.body)

    def _draft(
        self,
        picked: Sequence[tuple[int, Stretch]],
        events: Sequence[tuple[int, PendingEvent]],
        signing: _Signing,
        used: Sequence[Used] = (),
    ) -> _Draft:
        chain = ReportChain(
            self.node_id, self._key, seq=self.seq, head=self.head if self.seq else None
        )
        mono_us, wall_us, offset = signing.now.mono_us, signing.now.wall_us, signing.clock
        if signing.of_boot != signing.boot:
            ends = [stretch.row.mono_end_us for _, stretch in picked]
            ends += [one.row.mono_end_us for one in used]
            mono_us = max([*ends, *(event.at.mono_us for _, event in events)])
            offset = self._offset_in(signing.of_boot, picked[0][1] if picked else None)
        elif picked:
            wall_us, offset = _on_the_clock_of(picked[0][1], signing.now, signing.clock)
        if picked and picked[0][1].clock is not None:
            offset = picked[0][1].clock
        devices, leases, placed = rows.place(_told_by(stretch, offset) for _, stretch in picked)
        devices = tuple(dict.fromkeys([*devices, *(e.device for _, e in events if e.device)]))
        named = tuple(dict.fromkeys([*leases, *(one.lease for one in used)]))
        if len(named) > report.LEASES_MAX:
            used, named = (), tuple(leases)  # they wait for the next report
        signed = chain.sign(
            placed,
            devices,
            named,
            mono_us=mono_us,
            wall_us=wall_us,
            boot=signing.of_boot,
            clock=offset,
            events=[_placed_event(event, devices) for _, event in events],
            resources=_placed_used(used, named, offset),
            agent=signing.agent,
        )
        return _Draft(
            signed,
            [row for row, _ in picked],
            [event for event, _ in events],
            [one.id for one in used],
        )

    def _sound_used(self, used: Sequence[Used], signing: _Signing) -> list[Used]:
        """Those that break no rule one after the other; the others cost nobody else their worth."""
        kept: list[Used] = []
        for one in used:
            if _is_sound(self._draft([], [], signing, [*kept, one]).signed.body):
                kept.append(one)
            else:
                with self._file.transaction():
                    self._db.execute("DELETE FROM used WHERE id = ?", (one.id,))
        return kept


def _as_signed(seq: int, stored: bytes, digest: bytes) -> bytes:
    try:
        body = unpacked(stored)
    except ValueError as error:
        raise SpoolUnreadable(f"report {seq} in the spool is damaged: {error}") from error
    if report.report_hash(body) != digest:
        raise SpoolUnreadable(f"report {seq} in the spool is not what was signed")
    return body


def _is_sound(body: bytes) -> bool:
    """Whether a reader will find worth in it: a broken report is stored and earns nothing."""
    try:
        report.parse(body)
    except report.ReportInvalid:
        return False
    return True


def owner_of(path: Path) -> str:
    """Public key (hex) whose spool this is; empty where there is none. Raises SpoolUnreadable."""
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            found = db.execute("SELECT v FROM meta WHERE k = 'owner'").fetchone()
    except sqlite3.Error as error:
        raise SpoolUnreadable(f"{path}: {error}") from error
    return "" if found is None else str(found[0]).split()[1]


def _owner(node_id: str, key: SigningKey) -> str:
    return f"{node_id} {public_key(key).hex()} {VERSION}"


def _within_bounds(
    picked: Sequence[tuple[int, Stretch]], events: Sequence[tuple[int, PendingEvent]]
) -> list[tuple[int, Stretch]]:
    """As many of the first rows as one report has room for: devices, leases, one wall clock."""
    devices = {event.device for _, event in events if event.device}
    leases: set[str] = set()
    for count, (_, stretch) in enumerate(picked):
        devices.add(stretch.device)
        leases |= {stretch.lease} if stretch.lease else set()
        too_many = len(devices) > report.DEVICES_MAX or len(leases) > report.LEASES_MAX
        was_moved = abs(rows.apart_us(stretch, picked[0][1].clock)) > WALL_JUMP_US
        if too_many or was_moved or _was_set(picked[0][1], stretch):
            return list(picked[:count])
    return list(picked)


def _was_set(first: Stretch, other: Stretch) -> bool:
    """Whether somebody set the wall clock between these rows of one boot."""
    a, b = first.wall_minus_boot_us, other.wall_minus_boot_us
    return a is not None and b is not None and abs(a - b) > WALL_JUMP_US


def _told_by(stretch: Stretch, clock: ClockOffset | None) -> Stretch:
    """The row as a report with this offset tells it: the server's times stay those of the cut."""
    moved_us = rows.apart_us(stretch, clock)
    if not moved_us:
        return stretch
    row = stretch.row
    return replace(stretch, row=replace(row, wall_minus_mono_us=row.wall_minus_mono_us + moved_us))


def _on_the_clock_of(
    first: Stretch, now: Moment, clock: ClockOffset | None
) -> tuple[int, ClockOffset | None]:
    """(now, server minus node) by the wall clock that these rows were stamped with."""
    if first.wall_minus_boot_us is None:
        return now.wall_us, clock
    set_by_us = now.wall_us - now.boot_us - first.wall_minus_boot_us
    if abs(set_by_us) <= WALL_JUMP_US:
        return now.wall_us, clock
    moved = None if clock is None else replace(clock, offset_us=clock.offset_us + set_by_us)
    return now.wall_us - set_by_us, moved


def _placed_used(
    used: Sequence[Used], leases: Sequence[str], clock: ClockOffset | None
) -> list[ResourceRow]:
    """By start and lease, as a report with this offset tells them."""
    offset_us = 0 if clock is None else clock.offset_us
    rows = []
    for one in used:
        moved_us = 0 if one.clock_offset_us is None else one.clock_offset_us - offset_us
        wall_us = one.row.wall_minus_mono_us + moved_us
        rows.append(replace(one.row, lease=leases.index(one.lease), wall_minus_mono_us=wall_us))
    return sorted(rows, key=lambda row: (row.mono_start_us, row.lease))


def _placed_event(event: PendingEvent, devices: Sequence[report.Device]) -> report.Event:
    return report.Event(
        type=event.type,
        mono_us=event.at.mono_us,
        wall_us=event.at.wall_us,
        device=None if event.device is None else devices.index(event.device),
        data=event.data,
    )
