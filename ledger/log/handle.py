"""The only door into the market log: load, fold, decide, append.

    recorded  <=>  every rule said yes of exactly the state that was there before

The decision is a pure function of the streams it reads and of the balances. The append happens
only if none of those streams has moved, and PostgreSQL itself refuses an entry that does not sum
to zero or takes an account below zero; then the door reads again and decides again. Only what is
short when it is looked at anew is refused: who was merely slower gets what is left elsewhere. No
rule of the marketplace is here.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import Any, Protocol
from uuid import UUID

from eventsourcing.persistence import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    PersistenceError,
)
from psycopg_pool import PoolTimeout, TooManyRequests

from domain import rules as market_rules
from domain.funds.reasons import FundsReason
from domain.parties.reasons import PartiesReason
from domain.reasons import STORED_REFUSALS, reason_of
from domain.refusal import Reason, Refused
from domain.stream import Change, S, Stream, World, derive_id
from ledger.books import postings
from ledger.books.books import Books
from ledger.books.chart import guards_for, kind_of, refusal_of_guards
from ledger.books.entry import Entry
from ledger.log.append import REFUSAL, Append, Appended, CommandRow
from ledger.log.durable import NotReplicated
from ledger.log.market import CONNECTIONS_MAX, SNAPSHOT_EVERY, Envelope, Held, Market, Rules
from ledger.log.recorder import APP_ROLE
from ledger.log.sharing import Overtaken, was_rolled_back

ATTEMPTS_MAX = 50
"""Every lost race was won by somebody else, so the log moves on. Then it is 503, no refusal."""
ATTEMPTS_APART = 2
"""Who loses more races than this waits for its turn: one at a time of a process."""
AGAIN_MAX = 10
"""How often a command is made anew after a refusal of `again_on`."""
TOGETHER_ATTEMPTS_MAX = 5
TURN_SECONDS_MAX = 10
LOSSES_MAX = 20
FACTS_MAX = 1_000
"""Facts of one append: the head row, for which everybody waits, is held while they are written."""
DATABASE_AWAY: tuple[type[Exception], ...] = (OperationalError, InterfaceError)
"""What reading raises when the database does not answer: for whoever turns errors into answers."""
JOB_ACCOUNT = "job"
"""The account of commands that come from our own jobs; their keys are natural."""


class StreamMoved(Exception):
    """Somebody else kept changing what this decision depends on. Try again later."""


class InProgress(Exception):
    """The same command is being handled right now. Ask again for its answer."""


class LogBusy(Exception):
    """The log did not become free in time. Nothing was recorded; try again later."""


class OutcomeUnknown(Exception):
    """The connection was lost while appending a command that has no key; or the commit stands on
    one server alone, and may still be lost. The same command with its key finds what became of it.
    """


LOG_AWAY: tuple[type[Exception], ...] = (LogBusy, OutcomeUnknown, *DATABASE_AWAY)
"""No fault of what was asked: whatever is asked next would wait as long."""


class BooksRefused(Exception):
    """An entry would break the books in a way no rule answers for: a bug, nothing was recorded."""


class FollowedAlready(Exception):
    """Another worker has moved this tracking position on. Nothing was recorded."""


class RefusedBefore(Refused):
    """The stored refusal of an earlier handling of the same command; facts are strings."""


@dataclass(frozen=True, slots=True)
class CommandKey:
    """Which command this is. The same key with another fingerprint is refused.

    Jobs use the account "job" and a natural key: `accrue/<lease>/<version>`.
    """

    account: str
    key: str
    fingerprint: bytes = b""

    @property
    def command_id(self) -> str:
        """The id in the body of every fact the command leads to."""
        if self.account == JOB_ACCOUNT:
            return self.key
        return derive_id("cmd", self.account, self.key)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the caller was told: kept with the key, and told again to whoever asks again."""

    status: int
    body: bytes


NO_ANSWER = Answer(204, b"")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a command. `position` is the last fact's, or the log's if there was none.

    `replayed` is true when the command had been handled before: then `changes` is empty and answer
    and position are those of the first time.
    """

    position: int
    answer: Answer
    replayed: bool
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """One of several calls that share an append: its commands, and the answer kept with its key.

    `is_whole`: all of its commands are recorded or none; else those before the first that is
    refused. `answer` is made from the world right after them.
    """

    commands: Sequence[Any]
    key: CommandKey | None = None
    answer: Callable[[World], Answer] | None = None
    is_whole: bool = True


class States(Protocol):
    """States that somebody has at hand; None: not this one."""

    def get(self, stream: Stream[Any], /) -> Held | None: ...


@dataclass(frozen=True, slots=True)
class Ahead:
    """States and balances loaded together before they are asked for one by one."""

    states: States
    balances: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of one order: how many of its commands were recorded, what refused the next, and
    the outcome of a whole one that was recorded.

    Fewer than all without a refusal: the append was full, or somebody else was faster.
    """

    done: int
    refusal: Refused | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class _Decided:
    """An order as it was decided: so many commands, and the facts of the append up to there."""

    order: Order
    done: int
    facts: int
    answer: Answer = NO_ANSWER
    refusal: Refused | None = None

    @property
    def row(self) -> tuple[CommandRow, int] | None:
        """What is kept with its key."""
        key = self.order.key
        if key is None or not self.done:
            return None
        answer = self.answer
        row = CommandRow(key.account, key.key, key.fingerprint, answer.status, answer.body)
        return row, self.facts

    def handled(self, first: int) -> Handled:
        """Once it is recorded after position `first`."""
        if not (self.order.is_whole and self.done):
            return Handled(self.done, self.refusal)
        return Handled(self.done, None, Outcome(first + self.facts, self.answer, False))


class _Later(Exception):
    """Decide again; `refusal` is the answer when there is no more again."""

    def __init__(self, refusal: Reason | None) -> None:
        super().__init__()
        self.refusal = refusal


_NONE_AHEAD: dict[Stream[Any], Held] = {}
NOTHING_AHEAD = Ahead(_NONE_AHEAD, {})


class _World:
    """What one decision sees: stored states and balances, and on top what it decided already."""

    def __init__(self, market: Market, books: Books, entries_for: EntriesFor) -> None:
        self._market = market
        self._books = books
        self._entries_for = entries_for
        self._ahead: States = _NONE_AHEAD
        self._known: Mapping[str, int] = {}
        self._held: dict[Stream[Any], Held] = {}
        self._balances: dict[str, int] = {}
        self.changes: list[Change] = []
        self.versions: dict[Stream[Any], int] = {}
        self.entries: list[tuple[int, Entry]] = []

    def foresee(self, ahead: States, balances: Mapping[str, int] | None = None) -> None:
        """States and balances loaded before they are asked for; one that is never asked for was
        never seen.
        """
        self._ahead = ahead
        self._known = balances or {}

    def mark(self) -> Callable[[], None]:
        """Where the world stands now; calling it undoes everything decided since."""
        held, versions, balances = dict(self._held), dict(self.versions), dict(self._balances)
        changes, entries = len(self.changes), len(self.entries)

        def undo() -> None:
            self._held, self.versions, self._balances = held, versions, balances
            del self.changes[changes:], self.entries[entries:]

        return undo

    def state(self, stream: Stream[S]) -> S:
        state: S = self._hold(stream).state
        return state

    def shown(self, stream: Stream[S]) -> S:
        """For an answer: as the decision saw it, with the changes; what it did not look at as it
        stands now, and nothing rests on that.
        """
        held = self._held.get(stream) or self._market.load(stream)
        state: S = held.state
        return state

    def balance(self, account: str) -> int:
        if account not in self._balances:
            # What this call has decided before it asked for this account counts, too.
            moved = sum(
                u for _, entry in self.entries for name, u in entry.lines if name == account
            )
            side = kind_of(account).side if moved else 1
            known = self._known.get(account)
            units = self._books.balance(account) if known is None else known
            self._balances[account] = units + side * moved
        return self._balances[account]

    def apply(self, changes: Sequence[Change]) -> None:
        """Let the next decision of the same call see these changes."""
        for change in changes:
            held = self._hold(change.stream)
            state = self._market.rules.evolve(change.stream.kind, held.state, change.fact)
            version = self.versions.get(change.stream, held.originator_version) + 1
            self.versions[change.stream] = version
            self._held[change.stream] = Held(
                held.kind, held.originator_id, held.originator_version, state
            )
            self.changes.append(change)
            for entry in self._entries_for(change.fact):
                self.entries.append((len(self.changes), entry))
                self._move(entry)

    def envelopes(self, command_id: Callable[[int], str]) -> list[Envelope]:
        """The changes with the versions they get if no stream has moved; `command_id` of a place
        names what led to the fact there.
        """
        versions: dict[Stream[Any], int] = {}
        wrapped: list[Envelope] = []
        for place, change in enumerate(self.changes):
            held = self._held[change.stream]
            version = versions.get(change.stream, held.originator_version) + 1
            versions[change.stream] = version
            natural = command_id(place) or f"{change.stream.kind}/{change.stream.id}/{version}"
            wrapped.append(Envelope(held.originator_id, version, change.fact, natural))
        return wrapped

    def seen(self) -> list[tuple[UUID, int]]:
        """Streams that were read and are not written, with the versions read."""
        return [
            (held.originator_id, held.originator_version)
            for stream, held in self._held.items()
            if stream not in self.versions
        ]

    def read(self) -> list[tuple[UUID, int]]:
        """All streams that were read, written or not, with the versions read."""
        return [(held.originator_id, held.originator_version) for held in self._held.values()]

    def written(self) -> list[Held]:
        """The written streams as they stand when the changes are recorded."""
        return [
            Held(held.kind, held.originator_id, version, held.state)
            for held, version in ((self._held[s], v) for s, v in self.versions.items())
        ]

    def is_short(self) -> bool:
        """Whether the changes take more from a party or a fund than it has: by what the decision
        saw of it, or by what is there now where it did not look.
        """
        moved: dict[str, int] = {}
        for _, entry in self.entries:
            for account, units in entry.lines:
                moved[account] = moved.get(account, 0) + kind_of(account).side * units
        drawn = [name for name, units in moved.items() if units < 0 and _is_limited(name)]
        return any(
            self._balances[name] < 0
            if name in self._balances
            else self._books.balance(name) + moved[name] < 0
            for name in drawn
        )

    def due_for_snapshot(self) -> list[tuple[Stream[Any], int]]:
        """Streams that have crossed a multiple of 100 versions, and the versions reached."""
        return [
            (stream, version)
            for stream, version in self.versions.items()
            if version // SNAPSHOT_EVERY > self._held[stream].originator_version // SNAPSHOT_EVERY
        ]

    def _hold(self, stream: Stream[Any]) -> Held:
        if stream not in self._held:
            held = self._ahead.get(stream)
            self._held[stream] = self._market.load(stream) if held is None else held
        return self._held[stream]

    def _move(self, entry: Entry) -> None:
        for account, units in entry.lines:
            if account in self._balances:
                self._balances[account] += kind_of(account).side * units


EntriesFor = Callable[[Any], Sequence[Entry]]
StateOf = Callable[[Stream[Any]], Any]
MakeAnswer = Callable[[Sequence[Change], StateOf], Answer]
Reads = Callable[[Sequence[Any]], Iterable[Stream[Any]]]


def _is_limited(account: str) -> bool:
    """Whose shortage is a refusal: of a party or of a fund. Of any other account it is a bug."""
    return account.startswith(("party:", "grant:"))


class Ledger:
    """The market log of one database, and the door into it. Safe to use from many threads.

    `blinding_key` (at least 16 bytes) blinds the leaves; it is fixed for a log, and in replays.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        blinding_key: bytes,
        rules: Rules = market_rules,
        entries_for: EntriesFor = postings.entries_for,
        role: str = APP_ROLE,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self.market = Market(
            conninfo,
            blinding_key=blinding_key,
            rules=rules,
            role=role,
            connections_max=connections_max,
        )
        self.books = Books(self.market.datastore)
        self._entries_for = entries_for
        self._turn = Lock()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self.market.close()

    def handle(
        self,
        commands: Any,
        *,
        key: CommandKey | None,
        now_us: int,
        answer: MakeAnswer | None = None,
        tracking: tuple[str, int] | None = None,
        again_on: frozenset[Reason] = frozenset(),
        reads: Reads | None = None,
    ) -> Outcome:
        """Record what the command leads to, or several commands decided one after the other.

        All facts or none. `answer` makes the answer kept with the key, from the changes and from
        the states that they were decided on, whatever others have recorded since. `tracking` moves
        a follower's position in the same transaction. `commands` may be a function that makes them:
        it is asked at every attempt, may raise Refused, and after a refusal of `again_on` once
        more, for what it was made from has changed. `reads` names streams that deciding on these
        commands will read: they are loaded together.

        Raises Refused (RefusedBefore for a stored one), StreamMoved, InProgress, LogBusy,
        OutcomeUnknown, FollowedAlready; BooksRefused for a bug.
        """
        attempt = losses = 0
        while True:
            attempt += 1
            call = _Call(commands, key, now_us, answer, tracking, attempt, again_on, reads)
            try:
                with self._in_turn(attempt):
                    return self._attempt(call)
            except _Later as later:
                if attempt >= ATTEMPTS_MAX:
                    # A limit that only others kept reaching first is no want of credits.
                    if later.refusal not in (None, FundsReason.CREDIT_TOO_LOW):
                        raise Refused(later.refusal) from later.__cause__
                    raise StreamMoved from later.__cause__
            except (OperationalError, InterfaceError) as error:
                _raise_if_not_lost(error)
                losses += 1
                attempt -= 1
                if key is None:
                    raise OutcomeUnknown from error
                if losses > LOSSES_MAX:
                    raise LogBusy from error
                # If it was committed, the command row of the next attempt says so.
                self.market.datastore.forget_lost_connections()

    def handle_all(
        self, orders: Sequence[Order], *, now_us: int, ahead: Ahead = NOTHING_AHEAD
    ) -> list[Handled]:
        """Record several orders in one append, decided one after the other.

        The facts are those of handling one order after the other. Returns what became of each that
        it came to, in order: an order that is not whole ends the append where it is full. An order
        with a key was made by its caller from what the caller saw: where somebody else was faster
        or its key is known already, none of all is recorded, and each is to be handled by itself.
        Orders without keys are decided again. `ahead`: what the caller has loaded already.

        Raises LogBusy, OutcomeUnknown; of orders without keys StreamMoved, Refused when the books
        refuse, BooksRefused for a bug.
        """
        has_keys = any(order.key is not None for order in orders)
        for attempt in range(1, TOGETHER_ATTEMPTS_MAX + 1):
            try:
                return self._attempt_all(orders, ahead, now_us)
            except (_Later, BooksRefused) as error:
                if has_keys:
                    return [Handled(0)] * len(orders)
                if not isinstance(error, _Later):
                    raise
                if attempt == TOGETHER_ATTEMPTS_MAX:
                    if error.refusal is not None:
                        raise Refused(error.refusal) from error.__cause__
                    raise StreamMoved from error.__cause__
                ahead = self._ahead_again(ahead)
            except (OperationalError, InterfaceError) as error:
                _raise_if_not_lost(error)
                raise OutcomeUnknown from error
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _ahead_again(self, ahead: Ahead) -> Ahead:
        """The same states as they stand now, where they are known by name."""
        names = list(ahead.states) if isinstance(ahead.states, Mapping) else []
        return Ahead(self.market.load_many(names), {})

    def _attempt_all(self, orders: Sequence[Order], ahead: Ahead, now_us: int) -> list[Handled]:
        world = self._world(ahead)
        decided: list[_Decided] = []
        for order in orders:
            one = self._decide(order, world)
            decided.append(one)
            is_full = one.refusal is None and one.done < len(order.commands)
            if is_full and not order.is_whole:
                break
        if not world.changes:
            return [one.handled(0) for one in decided]
        rows = [row for one in decided if (row := one.row) is not None]
        appended = self._append(world, now_us, answered=rows)
        first = appended.position - len(world.changes)
        return [one.handled(first) for one in decided]

    def _decide(self, order: Order, world: _World) -> _Decided:
        """The commands of an order, one after the other: all or none of a whole one."""
        undo = world.mark() if order.is_whole else None
        before, done, refusal = len(world.changes), 0, None
        for command in order.commands:
            try:
                changes = self.market.rules.decide(command, world)
            except Refused as refused:
                refusal = refused
                break
            if world.changes and len(world.changes) + len(changes) > FACTS_MAX:
                break
            world.apply(changes)
            done += 1
        facts = len(world.changes)
        if undo is not None and (done < len(order.commands) or facts == before):
            undo()
            return _Decided(order, 0, before, refusal=refusal)
        answer = NO_ANSWER if order.answer is None else order.answer(world)
        return _Decided(order, done, facts, answer, refusal)

    @contextmanager
    def _in_turn(self, attempt: int) -> Generator[None, None, None]:
        """The first attempts are made side by side; later ones of a process one after the other.

        Raises LogBusy: the turn did not come in time.
        """
        if attempt <= ATTEMPTS_APART:
            yield
            return
        if not self._turn.acquire(timeout=TURN_SECONDS_MAX):
            raise LogBusy
        try:
            yield
        finally:
            self._turn.release()

    def world(self, ahead: Ahead | None = None) -> World:
        """The states and balances as they stand now, or stood when they were loaded ahead."""
        return self._world(NOTHING_AHEAD if ahead is None else ahead)

    def _world(self, ahead: Ahead) -> _World:
        world = _World(self.market, self.books, self._entries_for)
        world.foresee(ahead.states, ahead.balances)
        return world

    def told_before(self, key: CommandKey) -> Outcome | None:
        """How a command ended that was handled before; None if it was not.

        Raises Refused: its stored refusal, or IDEMPOTENCY_KEY_REUSED for another fingerprint.
        """
        stored = self.stored(key)
        return None if stored is None else self._replay(_Call((), key, 0), stored)

    def _replay(self, call: _Call, stored: Appended) -> Outcome:
        """The stored answer, once no standby lacks it. Raises the stored refusal."""
        self.market.datastore.wait_for_standbys()
        return _replayed(call, stored)

    def _attempt(self, call: _Call) -> Outcome:
        world = self._world(NOTHING_AHEAD)
        try:
            commands = call.asked()
            if call.reads is not None:
                world.foresee(self.market.load_many(list(call.reads(commands))))
            for command in commands:
                world.apply(self.market.rules.decide(command, world))
        except Refused as refused:
            if refused.reason in call.again_on and call.attempt < AGAIN_MAX:
                raise _Later(None) from refused
            if self._has_moved(world):
                raise _Later(None) from refused
            return self._refuse(call, refused)
        except Exception as error:
            # States that never stood side by side break what always holds; anything else is a bug.
            if self._has_moved(world):
                raise _Later(None) from error
            raise
        if not world.changes and self._has_moved(world):
            raise _Later(None)
        answer = call.answer(world.changes, world.shown) if call.answer else NO_ANSWER
        appended = self._append_one(call, world, answer)
        if not appended.recorded:
            return self._replay(call, appended)
        return Outcome(appended.position, answer, False, tuple(world.changes))

    def _has_moved(self, world: _World) -> bool:
        """Whether a stream that was read has grown since. Facts are appended only where none has;
        a "no" needs it as much, when it rests on several streams read one after the other: those
        states may never have stood side by side. One stream alone was as it was read.
        """
        read = world.read()
        return len(read) > 1 and self.market.has_moved(read)

    def _append_one(self, call: _Call, world: _World, answer: Answer) -> Appended:
        if not world.changes and call.key is None:
            return Appended(True, self.market.head()[0])
        # Once a limit was violated: by somebody who was faster, or are there really too few?
        is_short = call.attempt > 1 and world.is_short()
        if is_short and call.key is None:
            raise Refused(FundsReason.CREDIT_TOO_LOW)
        return self._append(
            world,
            call.now_us,
            command=call.row(answer.status, answer.body),
            limit_is_final=is_short and call.key is not None,
            tracking=call.tracking,
        )

    def _append(
        self,
        world: _World,
        now_us: int,
        *,
        command: CommandRow | None = None,
        answered: Sequence[tuple[CommandRow, int]] = (),
        limit_is_final: bool = False,
        tracking: tuple[str, int] | None = None,
    ) -> Appended:
        """The one append: of the changes of a world, with one command or with several.

        Raises _Later, FollowedAlready, BooksRefused.
        """
        assert len(world.changes) <= FACTS_MAX, f"{len(world.changes)} facts in one append"
        guarded = refusal_of_guards(change.fact for change in world.changes)
        append = Append(
            now_us=now_us,
            entries=world.entries,
            seen=world.seen(),
            guards=[name for change in world.changes for name in guards_for(change.fact)],
            command=command,
            answered=answered,
            limit_is_final=limit_is_final,
            limit_body=_refusal_body(Refused(FundsReason.CREDIT_TOO_LOW)),
            guard_body=_refusal_body(Refused(guarded)),
            tracking=tracking,
        )
        try:
            self.market.events.put(world.envelopes(_id_of(command, answered)), append=append)
        except Overtaken as error:
            raise _Later(None) from error
        except IntegrityError as error:
            raise _meaning(error, guarded) from error
        assert append.appended is not None
        if append.appended.recorded:
            self._remember(world)
        return append.appended

    def _remember(self, world: _World) -> None:
        """What was written is where the next folding starts, here and from its snapshots on."""
        written = world.written()
        self.market.remember(written)
        due = {stream.uuid for stream, _ in world.due_for_snapshot()}
        self.market.keep([held for held in written if held.originator_id in due])

    def _refuse(self, call: _Call, refused: Refused) -> Outcome:
        """A refusal is the answer, unless the command was handled before: then that answer is."""
        if call.key is None:
            raise refused
        if refused.reason in STORED_REFUSALS:
            append = Append(now_us=call.now_us, command=call.row(REFUSAL, _refusal_body(refused)))
            self.market.events.put([], append=append)
            assert append.appended is not None
            if append.appended.recorded:
                raise refused
            return self._replay(call, append.appended)
        stored = self.stored(call.key)
        if stored is None:
            raise refused
        return self._replay(call, stored)

    def forget_refusals(self, before_us: int) -> int:
        """Delete stored refusals that are older, some thousands at a time; how many."""
        rows = self.market.datastore.rows(
            "SELECT command_forget_refusals(%s) AS gone", (before_us,)
        )
        return int(rows[0]["gone"])

    def known(self, keys: Sequence[CommandKey]) -> set[tuple[str, str]]:
        """Account and key of those that were handled before, whatever was asked then."""
        rows = self.market.datastore.rows(
            "SELECT c.account, c.key FROM command c JOIN unnest(%s::text[], %s::text[])"
            " k(account, key) ON c.account = k.account AND c.key = k.key",
            ([one.account for one in keys], [one.key for one in keys]),
        )
        return {(row["account"], row["key"]) for row in rows}

    def stored(self, key: CommandKey) -> Appended | None:
        """How a command ended that was handled before; None if it was not."""
        rows = self.market.datastore.rows(
            "SELECT position, fingerprint, status, body FROM command"
            " WHERE account = %s AND key = %s",
            (key.account, key.key),
        )
        if not rows:
            return None
        row = rows[0]
        return Appended(False, row["position"], row["fingerprint"], row["status"], row["body"])


@dataclass(frozen=True, slots=True)
class _Call:
    """One attempt at one call of the door."""

    commands: Any
    key: CommandKey | None
    now_us: int
    answer: MakeAnswer | None = None
    tracking: tuple[str, int] | None = None
    attempt: int = 1
    again_on: frozenset[Reason] = frozenset()
    reads: Reads | None = None

    def asked(self) -> Sequence[Any]:
        """The commands, made now if they are to be made."""
        commands = self.commands() if callable(self.commands) else self.commands
        return commands if isinstance(commands, list | tuple) else (commands,)

    def row(self, status: int, body: bytes) -> CommandRow | None:
        if self.key is None:
            return None
        return CommandRow(self.key.account, self.key.key, self.key.fingerprint, status, body)


def _id_of(
    command: CommandRow | None, answered: Sequence[tuple[CommandRow, int]]
) -> Callable[[int], str]:
    """Which command led to the fact at a place of the append; "": none that has a key."""
    if not answered:
        command_id = "" if command is None else CommandKey(command.account, command.key).command_id
        return lambda _: command_id
    ids = [CommandKey(row.account, row.key).command_id for row, _ in answered]
    ends = [end for _, end in answered]
    return lambda place: ids[bisect_right(ends, place)]


def _replayed(call: _Call, stored: Appended) -> Outcome:
    assert call.key is not None
    if stored.fingerprint != call.key.fingerprint:
        raise Refused(PartiesReason.IDEMPOTENCY_KEY_REUSED)
    if stored.status == REFUSAL:
        told = json.loads(stored.body)
        raise RefusedBefore(reason_of(told["reason"]), **told["facts"])
    return Outcome(stored.position, Answer(stored.status, stored.body), True)


def _refusal_body(refused: Refused) -> bytes:
    facts = {name: str(value) for name, value in refused.facts.items() if value is not None}
    return json.dumps({"reason": refused.reason.value, "facts": facts}).encode()


def _meaning(error: IntegrityError, guarded: Reason) -> Exception:
    """What a violated constraint asks the door to do."""
    diagnosis = getattr(error.__cause__, "diag", None)
    constraint = getattr(diagnosis, "constraint_name", None)
    detail = getattr(diagnosis, "message_detail", None) or ""
    match constraint:
        case "market_events_pkey" | "command_pkey":
            return _Later(None)
        case "account_guard":
            return _Later(guarded)
        case "posting_limit":
            return _Later(FundsReason.CREDIT_TOO_LOW)
        case "account_limit" if ", party:" in detail or ", grant:" in detail:
            return _Later(FundsReason.CREDIT_TOO_LOW)
        case "tracking_moved":
            return FollowedAlready(str(error))
        case _:
            return BooksRefused(f"{constraint}: {error} {detail}")


def _raise_if_not_lost(error: PersistenceError) -> None:
    """Pass on what the server said; come back when the connection was lost."""
    cause = error.__cause__
    if isinstance(cause, NotReplicated):
        raise OutcomeUnknown from error
    if isinstance(cause, PoolTimeout | TooManyRequests):
        raise LogBusy from error
    state = getattr(cause, "sqlstate", None)
    if state == "55P03":
        where = getattr(getattr(cause, "diag", None), "context", None) or ""
        if "market_events_head" in where:
            raise LogBusy from error
        raise InProgress from error
    if was_rolled_back(error):
        raise error
