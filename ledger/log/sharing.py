"""Appends of many threads of one process in one transaction: whoever comes while one is written
shares the next.

    the log  ==  the log of the same appends one after the other, in some order of those at once

The head row has one writer at a time until its commit is on the disk, so appends made side by side
stand in line in PostgreSQL, each with a flush of its own. Here they stand in line in the process:
one thread writes for all that wait, and then hands on to the first that has come meanwhile. A
thread that comes alone writes at once and alone.

An append stands for a decision, made of streams as they were read. Two share a transaction only if
the later one read nothing, wrote nothing and guards nothing that the earlier one changes; else it
waits for the next, and is told that its streams have moved as soon as the earlier one is there. Of
a transaction that PostgreSQL refuses nothing is there, and each append is made again by itself: so
none is answered for another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from uuid import UUID

from eventsourcing.persistence import IntegrityError, InterfaceError, PersistenceError, StoredEvent

from ledger.books.entry import Entry
from ledger.log.append import Append, Appended, CommandRow

MEMBERS_MAX = 64
"""Appends of one transaction; the others wait for the next."""
SHARED_FACTS_MAX = 1_000
"""Facts of one transaction that several share."""
STREAMS_MAX = 65_536
"""Streams whose last version is remembered, to know at once what has moved."""

LINE_SECONDS_MAX = 2.0
"""So long an append stands in line; then it goes to PostgreSQL by itself, which ends the wait for
the head of the log. One thread that waits for a lost standby or machine stops no other."""
WRITE_SECONDS_MAX = 20.0
"""So long an append waits for the transaction that has it; a statement and a connection take less.
"""

Write = Callable[[Sequence[StoredEvent], Append], None]
"""Makes one append in a transaction of its own, and fills in `append.appended`."""


class Overtaken(IntegrityError):
    """A stream that the decision read has moved in this process. Nothing was recorded."""


class _Alone(Exception):
    """Nothing was recorded: make this append by itself."""


def was_rolled_back(error: PersistenceError) -> bool:
    """Whether PostgreSQL itself said no; else the connection was lost, and the outcome with it."""
    state = getattr(error.__cause__, "sqlstate", None)
    return state is not None and not state.startswith(("08", "57P"))


class _Member:
    """One append, and the thread that waits for it."""

    __slots__ = ("_woken", "append", "error", "events", "is_told", "leads", "versions")

    def __init__(self, events: Sequence[StoredEvent], append: Append) -> None:
        self.events = events
        self.append = append
        self.versions = dict(append.seen)
        """Stream -> the version that the decision read."""
        for event in reversed(events):
            stream = event.originator_id
            assert isinstance(stream, UUID)
            self.versions[stream] = event.originator_version - 1
        self.error: BaseException | None = None
        self.is_told = self.leads = False
        self._woken = Lock()
        self._woken.acquire()

    def wait(self, seconds: float) -> bool:
        """Whether it is told within this time how it ended, or that it is its turn to write."""
        return self._woken.acquire(timeout=seconds)

    def lead(self) -> None:
        self.leads = True
        self._woken.release()

    def tell(self, error: BaseException | None) -> None:
        self.error, self.is_told = error, True
        self._woken.release()

    def rows(self) -> Iterable[tuple[CommandRow, int]]:
        """What is kept with its keys, with the number of facts up to there."""
        if self.append.command is not None:
            return [(self.append.command, len(self.events))]
        return self.append.answered


class _Shared:
    """Appends that go together: each leaves alone what those before it change."""

    def __init__(self) -> None:
        self.members: list[_Member] = []
        self.repeats: list[_Member] = []
        """Commands of a member, sent twice at once: they find its answer afterwards."""
        self._facts = 0
        self._written: set[object] = set()
        self._moved: set[str] = set()

    def takes(self, member: _Member) -> bool:
        """Whether there is room for one more, and nothing before it changes what it rests on."""
        facts = self._facts + len(member.events)
        if self.members and (
            facts > SHARED_FACTS_MAX
            or not self._written.isdisjoint(member.versions)
            or not self._moved.isdisjoint(member.append.guards)
        ):
            return False
        self.members.append(member)
        self._facts = facts
        self._written.update(event.originator_id for event in member.events)
        self._moved.update(name for _, entry in member.append.entries for name, _ in entry.lines)
        return True

    def whole(self) -> tuple[list[StoredEvent], Append]:
        """All of them as one append."""
        events: list[StoredEvent] = []
        entries: list[tuple[int, Entry]] = []
        answered: list[tuple[CommandRow, int]] = []
        for member in self.members:
            before = len(events)
            entries += ((before + offset, entry) for offset, entry in member.append.entries)
            answered += ((row, before + end) for row, end in member.rows())
            events += member.events
        appends = [member.append for member in self.members]
        return events, Append(
            now_us=max(one.now_us for one in appends),
            entries=entries,
            seen=[read for one in appends for read in one.seen],
            guards=[name for one in appends for name in one.guards],
            answered=answered,
        )

    def told(self, last: int) -> None:
        """It is recorded up to this position: each append ended at its own last fact."""
        position = last - self._facts
        for member in self.members:
            position += len(member.events)
            member.append.appended = Appended(True, position)


class Sharing:
    """Where the threads of one process meet to append. `write` makes one append, in one
    transaction, and raises the library's errors.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._lock = Lock()
        self._waiting: deque[_Member] = deque()
        self._is_writing = False
        self._latest: dict[object, int] = {}

    def append(self, events: Sequence[StoredEvent], append: Append) -> None:
        """Append, with others if others wait; how it ended is in `append.appended`.

        Raises Overtaken, and what `write` raises for this append or, when the connection was lost,
        for those that shared it.
        """
        if not events or append.limit_is_final or append.tracking is not None:
            self._write(events, append)  # it may end in another way than recorded or not
            return
        member = _Member(events, append)
        with self._lock:
            self._waiting.append(member)
            must_wait, self._is_writing = self._is_writing, True
        if must_wait:
            self._wait(member)
        if not member.is_told:
            self._lead()
        if isinstance(member.error, _Alone):
            self._write(events, append)
        elif member.error is not None:
            raise member.error

    def forget(self) -> None:
        """What moved in a database that may not be the one any more."""
        self._latest.clear()

    def _wait(self, member: _Member) -> None:
        """Raises InterfaceError when the transaction that has it does not end."""
        try:
            if member.wait(LINE_SECONDS_MAX):
                return
        except BaseException:  # a thread that is interrupted leaves the line
            self._leave(member)
            raise
        if self._leave(member):
            member.error, member.is_told = _Alone(), True  # PostgreSQL says that the log is busy
        elif not member.wait(WRITE_SECONDS_MAX):
            raise InterfaceError("the transaction of this append has not ended")

    def _leave(self, member: _Member) -> bool:
        """Whether it still stood in line, and does not any more."""
        with self._lock:
            if member not in self._waiting:
                return False
            self._waiting.remove(member)
            if member.leads:
                self._hand_on()
            return True

    def _lead(self) -> None:
        """Write for all that wait; then the first that has come meanwhile does."""
        shared = _Shared()
        error: Exception | None = None
        try:
            with self._lock:
                self._gather(shared)
            error = self._record(shared)
        except BaseException:
            error = InterfaceError("the thread that appended was interrupted")
            raise
        finally:
            for member in shared.members:
                member.tell(error)
            for member in shared.repeats:
                member.tell(_Alone())
            with self._lock:
                self._hand_on()

    def _hand_on(self) -> None:
        self._is_writing = bool(self._waiting)
        if self._waiting:
            self._waiting[0].lead()

    def _gather(self, shared: _Shared) -> None:
        """Those that share the next transaction; those that need none any more are told so."""
        keys, moved, waiting = set[tuple[str, str]](), set[object](), list(self._waiting)
        self._waiting.clear()
        for member in waiting:
            own = {(row.account, row.key) for row, _ in member.rows()}
            ahead = {id_ for id_, at in member.versions.items() if self._latest.get(id_, 0) > at}
            if ahead:
                moved |= ahead
                member.tell(Overtaken("a stream moved"))
            elif not keys.isdisjoint(own):
                shared.repeats.append(member)
            else:
                keys |= own
                if len(shared.members) == MEMBERS_MAX or not shared.takes(member):
                    self._waiting.append(member)
        for id_ in moved:  # told once; after a failover only PostgreSQL knows what is there
            self._latest.pop(id_, None)

    def _record(self, shared: _Shared) -> Exception | None:
        """What all of them are told: None when they are recorded."""
        if not shared.members:
            return None
        one = shared.members[0]
        is_one = len(shared.members) == 1
        events, append = (one.events, one.append) if is_one else shared.whole()
        try:
            self._write(events, append)
        except PersistenceError as error:
            return _Alone() if was_rolled_back(error) and not is_one else error
        except Exception as error:  # it may have come after the commit
            return error if is_one else InterfaceError(repr(error))
        assert append.appended is not None
        if not append.appended.recorded:
            return None
        if not is_one:
            shared.told(append.appended.position)
        self._remember(events)
        return None

    def _remember(self, events: Sequence[StoredEvent]) -> None:
        if len(self._latest) > STREAMS_MAX:
            self._latest.clear()
        for event in events:
            self._latest[event.originator_id] = event.originator_version
