"""The market log as an application of the event sourcing library: names, bytes, streams, snapshots.

    state(stream) == fold(evolve, initial, facts of the stream)        snapshot or not

Reading is here. Appending goes through `ledger/log/handle.py`, which is the only caller of `put`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from threading import Lock
from typing import Any, LiteralString, Protocol, cast
from uuid import UUID

import psycopg
from eventsourcing.application import AggregateNotFoundError, Application
from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import (
    EventStore,
    InfrastructureFactory,
    IntegrityError,
    InternalError,
    JSONTranscoder,
    Mapper,
    Recording,
    StoredEvent,
)
from eventsourcing.utils import Environment
from psycopg.errors import ReadOnlySqlTransaction

from domain import rules as market_rules
from domain.stream import Change, S, Stream, World
from ledger.fan_out.fingerprint import fingerprint_of
from ledger.log import codec, pgbin
from ledger.log.recorder import APP_ROLE, MarketDatastore, MarketFactory

SNAPSHOT_EVERY = 100
CONNECTIONS_MAX = 16
FOLDED_MAX = 16_384
"""Streams whose state is kept between loads, as long as nobody asks for room for more."""
FOLDED_MOST = 262_144
"""And then at most so many. A lease takes about 6 kB."""
_SNAPSHOT = "state/"
_NEWER: LiteralString = (
    "SELECT k.place, e.originator_version, e.topic, e.state"
    " FROM unnest(%s::uuid[], %s::int8[]) WITH ORDINALITY k(id, version, place)"
    " CROSS JOIN LATERAL (SELECT * FROM market_events e WHERE e.originator_id = k.id"
    " AND e.originator_version > k.version ORDER BY e.originator_version) e"
)
_MOVED: LiteralString = """
    SELECT 1 FROM unnest(%s::uuid[], %s::int8[]) AS read (id, version) WHERE EXISTS (
        SELECT FROM market_events e
        WHERE e.originator_id = read.id AND e.originator_version > read.version) LIMIT 1
"""
_LAST_SNAPSHOTS: LiteralString = (
    "SELECT k.place, s.originator_version, s.topic, s.state"
    " FROM unnest(%s::uuid[]) WITH ORDINALITY k(id, place)"
    " CROSS JOIN LATERAL (SELECT * FROM market_snapshots s WHERE s.originator_id = k.id"
    " ORDER BY s.originator_version DESC LIMIT 1) s"
)
_KEEP_SNAPSHOTS: LiteralString = (
    "INSERT INTO market_snapshots SELECT * FROM unnest(%s::uuid[], %s::int8[], %s::text[],"
    " %s::bytea[]) ON CONFLICT DO NOTHING"
)
_SELECT: LiteralString = (
    "SELECT notification_id, originator_id, originator_version, topic, state, recorded_us"
    " FROM market_events "
)


class Rules(Protocol):
    """What the door needs to know about the domain; `domain.rules` is one."""

    def initial(self, kind: str) -> Any: ...

    def evolve(self, kind: str, state: Any, fact: Any) -> Any: ...

    def decide(self, command: Any, world: World) -> Sequence[Change]: ...


@dataclass(frozen=True, slots=True)
class Envelope:
    """A fact on its way into or out of its stream."""

    originator_id: UUID
    originator_version: int
    fact: Any
    command_id: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """A stream folded up to a version; also what a snapshot holds."""

    kind: str
    originator_id: UUID
    originator_version: int
    state: Any

    @classmethod
    def take(cls, held: Held) -> Held:
        """A snapshot of what is held: the same."""
        return held


@dataclass(frozen=True, slots=True)
class Recorded:
    """One fact of the log with everything that is known about it."""

    position: int
    stream: UUID
    version: int
    name: str
    fact: Any
    recorded_us: int


class SnapshotOutdated(Exception):
    """A snapshot was taken by other code than this: fold the stream instead."""


@cache
def domain_fingerprint() -> str:
    """Changes with every byte of the domain, in every folder: a state folded by other code is not
    trusted. Read once: a process runs the code that it started with.
    """
    with resources.as_file(resources.files("domain")) as folder:
        return fingerprint_of(folder)


class MarketMapper(Mapper[UUID]):
    """Facts to stored names and bytes and back, by `ledger/log/codec.py`; nothing of the
    library's.
    """

    def __init__(self, blinding_key: bytes, rules: Rules, fingerprint: str) -> None:
        super().__init__(JSONTranscoder())
        assert len(blinding_key) >= 16
        self._blinding_key = blinding_key
        self._rules = rules
        self._fingerprint = fingerprint

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> StoredEvent:
        stream, version = domain_event.originator_id, domain_event.originator_version
        if isinstance(domain_event, Held):
            name = f"{_SNAPSHOT}{domain_event.kind}/{self._fingerprint}"
            return StoredEvent(stream, version, name, codec.encode_state(domain_event.state))
        assert isinstance(domain_event, Envelope)
        blind = codec.blind(self._blinding_key, stream, version)
        name, body = codec.encode(domain_event.fact, domain_event.command_id, blind)
        return StoredEvent(stream, version, name, body)

    def to_domain_event(self, stored_event: StoredEvent) -> DomainEventProtocol[UUID]:
        stream, version = stored_event.originator_id, stored_event.originator_version
        assert isinstance(stream, UUID)
        if stored_event.topic.startswith(_SNAPSHOT):
            return self._to_held(stream, version, stored_event)
        return Envelope(stream, version, codec.decode(stored_event.topic, stored_event.state))

    def _to_held(self, stream: UUID, version: int, stored: StoredEvent) -> Held:
        _, kind, fingerprint = stored.topic.split("/")
        if fingerprint != self._fingerprint:
            raise SnapshotOutdated
        state_type = type(self._rules.initial(kind))
        return Held(kind, stream, version, codec.decode_state(state_type, stored.state))


class MarketEvents(EventStore[UUID]):
    """The library's store of events, without a description of what was stored: nobody reads it."""

    def put(
        self, domain_events: Sequence[DomainEventProtocol[UUID]], **kwargs: Any
    ) -> list[Recording[UUID]]:
        """Append all of them or none; how it ended is in `append.appended`."""
        stored = [self.mapper.to_stored_event(event) for event in domain_events]
        self.recorder.insert_events(stored, **kwargs)
        return []


class Market(Application[UUID]):
    """The application named `market`. Its settings are the arguments: no environment variable of
    the machine reaches the library.
    """

    name = "market"
    is_snapshotting_enabled = True
    snapshot_class = Held

    def __init__(
        self,
        conninfo: str,
        *,
        blinding_key: bytes,
        rules: Rules = market_rules,
        role: str = APP_ROLE,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self.rules = rules
        self._blinding_key = blinding_key
        self._fingerprint = domain_fingerprint()
        self._folded = _Folded(FOLDED_MAX)
        self.datastore = MarketDatastore(conninfo, role=role, connections_max=connections_max)
        self.datastore.when_lost.append(self._folded.clear)
        super().__init__()

    def construct_env(self, name: str, env: Mapping[str, str] | None = None) -> Environment:
        """Only these settings. The library would merge in `os.environ`."""
        assert env is None
        nothing = dict.fromkeys(
            ("POSTGRES_DBNAME", "POSTGRES_HOST", "POSTGRES_USER", "POSTGRES_PASSWORD"), ""
        )
        return Environment(name, {**nothing, "IS_SNAPSHOTTING_ENABLED": "y"})

    def construct_factory(self, env: Environment) -> InfrastructureFactory[Any]:
        return MarketFactory(env, self.datastore)

    def construct_mapper(self) -> Mapper[UUID]:
        return MarketMapper(self._blinding_key, self.rules, self._fingerprint)

    def construct_event_store(self) -> EventStore[UUID]:
        return MarketEvents(self.mapper, self.recorder)

    def load(self, stream: Stream[Any]) -> Held:
        """The present state of a stream, version 0 and the initial state if it has no facts."""
        known = self._folded.get(stream.uuid)
        held = self._fold_all(stream) if known is None else self._fold_on(stream, known)
        if held.originator_version:
            self._folded.put(held)
        return held

    def state_of(self, stream: Stream[S]) -> S:
        """The present state of a stream; the initial state if it has no facts."""
        state: S = self.load(stream).state
        return state

    def has_moved(self, read: Sequence[tuple[UUID, int]]) -> bool:
        """Whether any of these streams has facts after the version that was read, all at once."""
        ids, versions = [one for one, _ in read], [version for _, version in read]
        return bool(self.datastore.rows(_MOVED, (ids, versions)))

    def load_many(self, streams: Sequence[Stream[Any]]) -> dict[Stream[Any], Held]:
        """`load` for many streams, with two queries at most."""
        ids = [stream.uuid for stream in streams]
        held = [self._folded.get(id_) for id_ in ids]
        unknown = [place for place, known in enumerate(held) if known is None]
        for place, known in self._snapshots([ids[place] for place in unknown]).items():
            held[unknown[place]] = known
        found = [
            known or Held(stream.kind, id_, 0, self.rules.initial(stream.kind))
            for stream, id_, known in zip(streams, ids, held, strict=True)
        ]
        versions = [known.originator_version for known in found]
        newer = self.datastore.tuples(
            _NEWER, (pgbin.uuids([id_.bytes for id_ in ids]), pgbin.int8s(versions))
        )
        states = [known.state for known in found]
        for place, version, name, body in newer:
            at = place - 1
            assert version == versions[at] + 1, (streams[at], version)
            fact = codec.decode(name, body)
            states[at] = self.rules.evolve(streams[at].kind, states[at], fact)
            versions[at] = version
        now = {
            stream: known
            if known.originator_version == version
            else Held(stream.kind, id_, version, state)
            for stream, id_, known, version, state in zip(
                streams, ids, found, versions, states, strict=True
            )
        }
        self.remember(held for held in now.values() if held.originator_version)
        return now

    def make_room(self, streams: int) -> None:
        """Keep so many states, for a job that goes through all of them again and again.

        With fewer each would be thrown away just before it is asked for again.
        """
        self._folded.most = min(max(FOLDED_MAX, streams), FOLDED_MOST)

    def remember(self, some: Iterable[Held]) -> None:
        """States to start folding from: as they stand after facts that are recorded."""
        for held in some:
            self._folded.put(held)

    def load_as_of(self, stream: Stream[Any], position: int) -> Held:
        """The state of a stream after the facts recorded up to a position of the log."""
        state, version = self.rules.initial(stream.kind), 0
        for recorded in self.read_stream(stream):
            if recorded.position <= position:
                state = self.rules.evolve(stream.kind, state, recorded.fact)
                version = recorded.version
        return Held(stream.kind, stream.uuid, version, state)

    def snapshot(self, stream: Stream[Any], version: int) -> None:
        """Keep the state of a stream, so that folding starts there. Another worker may be first."""
        with suppress(IntegrityError, SnapshotOutdated):
            self.take_snapshot(stream.uuid, version, projector_func=self._projector(stream.kind))

    def keep(self, some: Sequence[Held]) -> None:
        """Keep these states as snapshots."""
        if not some:
            return
        stored = [self.mapper.to_stored_event(held) for held in some]
        with self.datastore.get_connection() as connection:
            connection.execute(
                _KEEP_SNAPSHOTS,
                (
                    pgbin.uuids([held.originator_id.bytes for held in some]),
                    pgbin.int8s([held.originator_version for held in some]),
                    pgbin.texts([snapshot.topic.encode() for snapshot in stored]),
                    pgbin.byteas([snapshot.state for snapshot in stored]),
                ),
            )

    def read_facts(self, start: int, limit: int) -> list[Recorded]:
        """The facts after position `start`, at most `limit`, in the order of the log."""
        rows = self.datastore.rows(
            _SELECT + "WHERE notification_id > %s ORDER BY notification_id LIMIT %s", (start, limit)
        )
        return [_recorded(row) for row in rows]

    def read_stream(self, stream: Stream[Any]) -> list[Recorded]:
        """All facts of one stream, oldest first."""
        rows = self.datastore.rows(
            _SELECT + "WHERE originator_id = %s ORDER BY originator_version", (stream.uuid,)
        )
        return [_recorded(row) for row in rows]

    def one_of(
        self, stream: Stream[Any], kind: type[Any], *, last: bool = False
    ) -> Recorded | None:
        """The first fact of a kind in a stream, or the last; None when there is none. Reads it
        alone: the rewards of an epoch are thousands of facts.
        """
        order: LiteralString = "DESC" if last else "ASC"
        rows = self.datastore.rows(
            _SELECT + "WHERE originator_id = %s AND topic = %s"
            " ORDER BY originator_version " + order + " LIMIT 1",
            (stream.uuid, codec.NAME_OF[kind]),
        )
        return _recorded(rows[0]) if rows else None

    def head(self) -> tuple[int, bytes]:
        """The last position and the chain there."""
        row = self.datastore.rows("SELECT pos, hash FROM market_events_head")[0]
        return row["pos"], row["hash"]

    def position_at(self, at_us: int) -> int:
        """The last position recorded at or before a time; 0 before the first."""
        row = self.datastore.rows("SELECT market_position_at(%s) AS position", (at_us,))[0]
        position: int = row["position"]
        return position

    def _fold_on(self, stream: Stream[Any], known: Held) -> Held:
        """From a state folded before: the log is asked for what came after it, every time."""
        newer = self.events.get(stream.uuid, gt=known.originator_version)
        return cast("Held", self._projector(stream.kind)(known, newer))

    def _fold_all(self, stream: Stream[Any]) -> Held:
        try:
            return self._fold(stream)
        except SnapshotOutdated:
            return self._fold_from_start(stream)
        except AggregateNotFoundError:
            return Held(stream.kind, stream.uuid, 0, self.rules.initial(stream.kind))

    def _fold(self, stream: Stream[Any]) -> Held:
        held = self.repository.get(stream.uuid, projector_func=self._projector(stream.kind))
        assert isinstance(held, Held)
        return held

    def _fold_from_start(self, stream: Stream[Any]) -> Held:
        events = self.events.get(stream.uuid)
        held = self._projector(stream.kind)(None, events)
        assert held is not None, "a snapshot of a stream without facts"
        # A server that records nothing leaves it to one that does.
        try:
            with self.datastore.get_connection() as connection:
                connection.execute(
                    "DELETE FROM market_snapshots WHERE originator_id = %s", (stream.uuid,)
                )
        except InternalError as error:
            if not isinstance(error.__cause__, ReadOnlySqlTransaction):
                raise
        return cast("Held", held)

    def _snapshots(self, ids: Sequence[UUID]) -> dict[int, Held]:
        """Place -> the last snapshot, of those that this code took."""
        if not ids:
            return {}
        found: dict[int, Held] = {}
        rows = self.datastore.tuples(_LAST_SNAPSHOTS, (pgbin.uuids([id_.bytes for id_ in ids]),))
        for place, version, name, body in rows:
            stored = StoredEvent(ids[place - 1], version, name, body)
            with suppress(SnapshotOutdated):
                found[place - 1] = cast("Held", self.mapper.to_domain_event(stored))
        return found

    def _projector(self, kind: str) -> Any:
        evolve = self.rules.evolve

        def project(held: Held | None, events: Iterable[Any]) -> Held | None:
            state, version, stream = self.rules.initial(kind), 0, None
            if held is not None:
                state, version, stream = held.state, held.originator_version, held.originator_id
            for event in _unwrapped(events):
                stream, version = event.originator_id, event.originator_version
                state = event.state if isinstance(event, Held) else evolve(kind, state, event.fact)
            return None if stream is None else Held(kind, stream, version, state)

        return project


class _Folded:
    """The states folded last, of so many streams. Only ever a place to start folding from."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: OrderedDict[UUID, Held] = OrderedDict()
        self._lock = Lock()

    def get(self, stream: UUID) -> Held | None:
        with self._lock:
            held = self._held.get(stream)
            if held is not None:
                self._held.move_to_end(stream)
            return held

    def put(self, held: Held) -> None:
        with self._lock:
            self._held[held.originator_id] = held
            self._held.move_to_end(held.originator_id)
            while len(self._held) > self.most:
                self._held.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._held.clear()


Connection = psycopg.Connection[Any]


def head(connection: Connection) -> int:
    """The last position of the market log; 0 before the first fact."""
    row = connection.execute("SELECT pos FROM public.market_events_head").fetchone()
    assert row is not None
    return int(row[0])


def first(connection: Connection) -> tuple[UUID, int, bytes] | None:
    """Stream, version and bytes of the first fact; None before it."""
    row = connection.execute(
        "SELECT originator_id, originator_version, state FROM public.market_events"
        " ORDER BY notification_id LIMIT 1"
    ).fetchone()
    return None if row is None else (row[0], row[1], bytes(row[2]))


def facts_at(connection: Connection, positions: Sequence[int]) -> list[Any]:
    """The facts at these positions, in the order of the log; what is not there is left out."""
    rows = connection.execute(
        "SELECT topic, state FROM public.market_events WHERE notification_id = ANY(%s)"
        " ORDER BY notification_id",
        (list(positions),),
    )
    return [codec.decode(topic, bytes(state)) for topic, state in rows]


def last_recorded_us(connection: Connection) -> int | None:
    """When the last fact was recorded; None before the first."""
    row = connection.execute(
        "SELECT recorded_us FROM public.market_events ORDER BY notification_id DESC LIMIT 1"
    ).fetchone()
    return None if row is None else int(row[0])


def _recorded(row: dict[str, Any]) -> Recorded:
    return Recorded(
        row["notification_id"],
        row["originator_id"],
        row["originator_version"],
        row["topic"],
        codec.decode(row["topic"], row["state"]),
        row["recorded_us"],
    )


def _unwrapped(events: Iterable[Any]) -> Iterator[Held | Envelope]:
    for event in events:
        assert isinstance(event, Held | Envelope)
        yield event
