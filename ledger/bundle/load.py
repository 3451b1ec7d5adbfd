"""Takes the logs of a verified export into a database of one's own, through their own appends.

    rows of the database   == rows of the export: position, chain, time and flags of each
    heads, trees           == the signed checkpoint, and the last pin under it
    books                  == entries of the facts, booked by the append

PostgreSQL chains and books each fact anew, and takes no report that does not follow the one before
it: what comes out different ends the load at its position. What is there already is compared and
passed by, so a load that was killed goes on, and a later export of the same log adds what is new.
A database that holds anything else is refused before anything is written.

What an export says is data: bytes of parameters, never SQL, and no name in it is a path. Not here:
whether the rows are signed (`ledger/bundle/verify.py`), views, and files beside the logs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from eventsourcing.persistence import StoredEvent

from domain.metering.report import LANES, genesis
from domain.nesting import read_json
from ledger import advisory
from ledger.books.entry import Entry
from ledger.books.postings import entries_for
from ledger.bundle import parquet
from ledger.bundle.lane_walk import said
from ledger.bundle.shape import (
    CHECKPOINT_FILE,
    KEYS_FILE,
    MANIFEST_FILE,
    LoadRefused,
    LogFile,
    MarketNotes,
    PinFact,
    log_file,
)
from ledger.bundle.verify import Step, not_told
from ledger.log import codec, lane_store, market, pgbin, usage
from ledger.log.append import Append
from ledger.log.chain import split_body
from ledger.log.durable import DurableConnection
from ledger.log.rebooked import names_booked
from ledger.log.recorder import APP_ROLE, record_again
from ledger.tree import cut, trees
from ledger.tree.checkpoint import Checkpoint, NoteInvalid, open_checkpoint, parse_verifier_key

Connection = psycopg.Connection[Any]
Begin = Callable[[Connection, str, str], None]
"""Of a connection, the origin of the log and its key (`ledger/beside/loaded_log.py`)."""
TOGETHER = 1_000
"""Rows of one transaction. A kill loses at most so many, and they are loaded again."""
KEEPER = "tallystick_projections"
_OWNER = "tallystick_owner"
_LOADING = 0x7A11_7576
_FACTS = """
    SELECT notification_id, chain, recorded_us FROM public.market_events
    WHERE notification_id BETWEEN %s AND %s ORDER BY notification_id
"""
_REPORTS = """
    SELECT position, chain, flags, recorded_us FROM public.usage_event
    WHERE lane = %s AND position BETWEEN %s AND %s ORDER BY position
"""
_OTHER_NOTES = "DELETE FROM public.checkpoint WHERE size = %s AND note <> %s"
FORGED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What a fact that no door has let in may raise where it is read."""


class LoadDiffers(Exception):
    """What the database made of a row is not what the export says: `log`, `position`, `what`.

    What was loaded before is kept; it is no whole copy, and no server answers from it.
    """

    def __init__(self, log: str, position: int, what: str) -> None:
        super().__init__(f"{log} position {position}: {what}")
        self.log = log
        self.position = position
        self.what = what


@dataclass(frozen=True, slots=True)
class Loaded:
    """Both logs as they stand in the database now, and how much of them was there before."""

    checkpoint: Checkpoint
    log_key: str
    facts: int
    reports: int
    facts_before: int
    reports_before: int
    times_sha256: str
    """Over when each fact and each report was recorded, as the export says: two who have the same
    signed head compare it, because no signature covers these times. Of each the time in 8 bytes,
    big-endian, in order of positions, of the market log and then of lane 0 to 63.
    """
    epochs: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    """SHA-256 of the epoch file, and of the file by client, as each seal says."""
    roots: dict[int, str] = field(default_factory=dict)
    """Root of the payouts of each epoch that has one."""


def load_logs(
    keeper: Connection,
    conninfo: str,
    directory: Path,
    verified: Checkpoint | None,
    begin: Begin,
    step: Step = not_told,
) -> Loaded:
    """Append what a verified export has and this database has not.

    `keeper` holds the lock of the load (`opened`) and keeps what is beside the logs; another
    connection appends, as a server does. `verified` is the head that was verified: what changed in
    the folder since has not its root. `begin` says of the database that it is a copy, and refuses
    one that is anything else. `step` counts facts and reports.
    Raises LoadRefused, LoadDiffers, LanesMisplaced.
    """
    export = _Export.read(directory)
    if export.head != verified:
        raise LoadRefused("the export has another head than the one that was verified")
    keeper.execute(f"SET ROLE {KEEPER}".encode())
    facts, reports = market.head(keeper), _reports(keeper)
    _require_same_history(keeper, export, facts)
    begin(keeper, export.head.origin, export.log_key)
    with DurableConnection.connect(conninfo, autocommit=True) as writer:
        pgbin.register(writer)
        writer.execute(f"SET ROLE {APP_ROLE}".encode())
        work = _Load(export, keeper, writer, step)
        work.facts()
        work.reports()
        work.require_signed()
        return Loaded(
            export.head,
            export.log_key,
            *(market.head(keeper), _reports(keeper), facts, reports),
            work.times.hexdigest(),
            {one.epoch: (one.file_sha256, one.clients_sha256) for one in work.notes.sealed},
            work.notes.roots,
        )


@contextmanager
def opened(conninfo: str) -> Generator[Connection, None, None]:
    """A connection of the login's own role, with the lock of this load until it is closed: the
    next load begins when views, files and the word that all is there are done. Raises LockHeld.
    """
    with DurableConnection.connect(conninfo, autocommit=True) as keeper:
        advisory.lock(keeper, _LOADING, "this copy, into which another process loads")
        lane_store.require_market(keeper)
        yield keeper


def _reports(connection: Connection) -> int:
    return sum(head.position for head in usage.lane_heads(connection))


def _require_same_history(connection: Connection, export: _Export, facts: int) -> None:
    """That the export has all that is here, with the same times. Raises LoadRefused."""
    if facts > export.head.size:
        raise LoadRefused(
            f"this copy has {facts} facts already, and the export {export.head.size}: load a later"
            " export, or name another data folder"
        )
    heads = {head.lane: head.position for head in usage.lane_heads(connection)}
    for lane in (None, *range(LANES)):
        last = facts if lane is None else heads[lane]
        try:
            for rows in _groups(islice(export.rows(lane), last), lane):
                _require_same(connection, lane, rows)
            if last > export.size(lane):
                raise LoadDiffers(_log(lane), export.size(lane) + 1, "it is not in the export")
        except LoadDiffers as differs:
            raise LoadRefused(
                f"this copy has another {differs.log} position {differs.position} than the export,"
                " or another time of it: they are not of one history. Name another data folder, and"
                " ask which of the two was signed, and which times are right"
            ) from None


# --- what an export has ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Export:
    directory: Path
    head: Checkpoint
    note: str
    log_key: str
    files: tuple[LogFile, ...]
    sizes: tuple[int, ...]  # of the lanes

    @classmethod
    def read(cls, directory: Path) -> _Export:
        """Of a folder that was verified. Raises LoadRefused."""
        manifest = read_json((directory / MANIFEST_FILE).read_bytes())
        if manifest["format"] == 1:
            raise LoadRefused(
                "an export of format 1 does not say when its facts were recorded, and views tell"
                " that: ask for one that this version of tallystick wrote"
            )
        note = (directory / CHECKPOINT_FILE).read_text(encoding="utf-8")
        log_key = str(read_json((directory / KEYS_FILE).read_bytes())["log"])
        try:
            head = open_checkpoint(note, parse_verifier_key(log_key))
        except NoteInvalid as error:
            raise LoadRefused(f"the key of the export has not signed its head: {error}") from None
        named = (log_file(entry["path"]) for entry in manifest["files"])
        cut_there = manifest["cut"]
        return cls(
            directory,
            *(head, note, log_key),
            tuple(sorted({one for one in named if one}, key=lambda file: file.first)),
            tuple(cut_there["sizes"]) if cut_there else (0,) * LANES,
        )

    def rows(self, lane: int | None) -> Iterator[parquet.Row]:
        """Of a lane, or of the market log. Raises FileDamaged."""
        schema = parquet.MARKET if lane is None else parquet.USAGE
        for file in self.files:
            if file.lane == lane:
                yield from parquet.read_log(self.directory / file.path, schema)

    def size(self, lane: int | None) -> int:
        return self.head.size if lane is None else self.sizes[lane]


class _Fact(NamedTuple):
    position: int
    stream: bytes
    version: int
    name: str
    body: bytes
    leaf: bytes
    chain: bytes
    recorded_us: int


class _Report(NamedTuple):
    lane: int
    position: int
    node_id: str
    node_seq: int
    name: str
    body: bytes
    leaf: bytes
    chain: bytes
    flags: int
    recorded_us: int


# --- the load ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Load:
    export: _Export
    keeper: Connection
    writer: Connection
    step: Step
    notes: MarketNotes = field(default_factory=MarketNotes)
    times: Any = field(default_factory=sha256)
    _accounts: dict[str, int] = field(default_factory=dict)
    _recorded_us: int = 0

    def facts(self) -> None:
        """The market log to its end. Raises LoadDiffers."""
        there, booked = market.head(self.keeper), frozenset(names_booked())
        for rows in _groups(self.export.rows(None), None):
            self._take_times(rows)
            for one in rows:
                with _refusals("market", one.position):
                    self.notes.take(one.position, one.name, one.body)
            with self.writer.transaction():
                new = [one for one in rows if one.position > there]
                for recorded_us, together in groupby(new, itemgetter(7)):
                    self._append(recorded_us, list(together), booked)
                _require_same(self.writer, None, rows)
            self._recorded_us = rows[-1].recorded_us
            self.step("facts", rows[-1].position, self.export.head.size)

    def _take_times(self, rows: Sequence[_Fact | _Report]) -> None:
        self.times.update(pack(f">{len(rows)}q", *(one.recorded_us for one in rows)))

    def _append(self, recorded_us: int, rows: list[_Fact], booked: frozenset[str]) -> None:
        """Facts of one moment. Raises LoadDiffers at the first that is not to be had."""
        first = rows[0].position
        entries = [
            (offset, entry) for offset, one in enumerate(rows, 1) for entry in _entries(one, booked)
        ]
        events = [
            StoredEvent(UUID(bytes=one.stream), one.version, one.name, one.body) for one in rows
        ]
        append = Append(now_us=recorded_us, entries=entries)
        with _refusals("market", first):
            record_again(self.writer, events, append, self._accounts)

    def reports(self) -> None:
        """Every lane to the last pin. Raises LoadDiffers."""
        heads = {head.lane: head.position for head in usage.lane_heads(self.keeper)}
        done, due = 0, sum(self.export.sizes)
        for lane in range(LANES):
            for rows in _groups(self.export.rows(lane), lane):
                self._take_times(rows)
                with self.writer.transaction():
                    for together in _moments(one for one in rows if one.position > heads[lane]):
                        self._send(together)
                    _require_same(self.writer, lane, rows)
                done += len(rows)
                self.step("reports", done, due)

    def _send(self, rows: Sequence[_Report]) -> None:
        """Reports that came together, so that each is stored at its position."""
        with _refusals(f"usage/{rows[0].lane}", rows[0].position):
            receipts = usage.append(
                self.writer, [self._item(one) for one in rows], rows[0].recorded_us
            )
        for one, receipt in zip(rows, receipts, strict=True):
            if receipt.status is not usage.Status.STORED:
                what = f"the log takes it for: {receipt.status.name.lower().replace('_', ' ')}"
                raise LoadDiffers(f"usage/{one.lane}", one.position, what)

    def _item(self, one: _Report) -> usage.Item:
        signed, key_id, signature = split_body(one.body)
        told = said(signed)
        if told is None:
            raise ValueError("its bytes name no report")
        start = b""
        if one.node_seq == 1:
            start = genesis(one.node_id, self.notes.node_keys[one.node_id, key_id].public_key)
        prev = bytes.fromhex(str(told[2]))
        return usage.item(
            one.node_id, one.node_seq, prev, signed, key_id, signature, start, one.flags
        )

    def require_signed(self) -> None:
        """That both logs are now what was signed; the signed head is kept. Raises LoadDiffers."""
        head, conn = self.export.head, self.keeper
        trees.follow_all(conn)
        reached = trees.head(conn)
        if (reached.size, reached.root) != (head.size, head.root):
            raise LoadDiffers(
                "market", reached.size, "these facts have not the root that is signed"
            )
        lanes = cut.pin(conn).lanes
        pinned = self.notes.pins[-1] if self.notes.pins else PinFact(0, (), b"")
        for here, there in zip(lanes, pinned.lanes, strict=False):
            if here != there:
                what = f"these reports are not those of the pin {pinned.position}"
                raise LoadDiffers(f"usage/{here.lane}", here.size, what)
        with conn.transaction():
            conn.execute(f"SET LOCAL ROLE {_OWNER}".encode())
            # A load without a key may have kept one that another key signed.
            conn.execute(_OTHER_NOTES, (head.size, self.export.note))
            trees.keep_note(conn, reached, self.export.note, self._recorded_us)
            conn.execute(b"ANALYZE market_events, posting, account, usage_event, usage_key")


def _log(lane: int | None) -> str:
    return "market" if lane is None else f"usage/{lane}"


def _groups(rows: Iterable[parquet.Row], lane: int | None) -> Iterator[list[Any]]:
    """Rows of one transaction, under the names of their columns. Raises LoadDiffers."""
    kind: type[Any] = _Fact if lane is None else _Report
    position, rest = 0, iter(rows)
    try:
        while group := list(islice(rest, TOGETHER)):
            named = [kind._make(row) for row in group]
            position = named[-1].position
            yield named
    except parquet.FileDamaged as damage:
        raise LoadDiffers(_log(lane), position + 1, str(damage)) from None


def _entries(one: _Fact, booked: frozenset[str]) -> tuple[Entry, ...]:
    """What the fact books; a fact that this version does not know is none to load."""
    if one.name not in booked:
        if one.name not in codec.NAMES:
            raise LoadDiffers("market", one.position, f"this version knows no fact {one.name!r}")
        return ()
    try:
        fact_type, fact = codec.reading(one.name, one.body)
        return entries_for(fact, fact_type)
    except FORGED as error:
        raise LoadDiffers("market", one.position, f"cannot be booked: {error}") from None


def _moments(rows: Iterable[_Report]) -> Iterator[list[_Report]]:
    """Runs of reports that one append takes at one time, in the order in which it sorts them."""
    run: list[_Report] = []
    for one in rows:
        if run and (
            one.recorded_us != run[0].recorded_us
            or (one.node_id, one.node_seq) <= (run[-1].node_id, run[-1].node_seq)
            or len(run) == usage.BATCH_REPORTS_MAX
        ):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


@contextmanager
def _refusals(log: str, position: int) -> Generator[None, None, None]:
    """What the log's own append does not take. Raises LoadDiffers with the first it was asked."""
    try:
        yield
    except psycopg.OperationalError:
        raise
    except (psycopg.Error, *FORGED) as error:
        told = str(error).strip().split("\n", 1)[0]
        raise LoadDiffers(log, position, f"the log does not take it: {told}") from None


def _require_same(connection: Connection, lane: int | None, rows: Sequence[Any]) -> None:
    """That the database has these rows. Raises LoadDiffers at the first position that differs."""
    span: tuple[int, ...] = (rows[0].position, rows[-1].position)
    wanted: list[tuple[int, ...]]
    if lane is None:
        wanted = [(one.position, one.chain, one.recorded_us) for one in rows]
        found = connection.execute(_FACTS, span, binary=True).fetchall()
    else:
        wanted = [(one.position, one.chain, one.flags, one.recorded_us) for one in rows]
        found = connection.execute(_REPORTS, (lane, *span), binary=True).fetchall()
    if found == wanted:
        return
    there = {row[0]: row for row in found}
    for row in wanted:
        if there.get(row[0]) != row:
            kind = "fact" if lane is None else "report"
            what = f"the database has another {kind} or another time here"
            raise LoadDiffers(_log(lane), row[0], what)
