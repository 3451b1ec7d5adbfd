"""What a restored data folder is worth: the drill of design reliability, section 8.

    whole  <=>  both logs hash to their heads, nothing that was signed is missing, the books
                balance and are those of the facts, and every view, built anew, has the rows that
                it had

Compared with heads from outside: those that the signer remembers (`signed-heads`), those in the
backup, and any that is given. Fewer facts than were signed is the worst that can be found: the next
head would be a fork, so the signer refuses, and so does this. The chain is not asked here: the
chain timer scans it to the settled block before it sends anything, and takes the higher nonce.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg.rows import dict_row

from api.backup.archive import Backup, BackupUnusable
from ledger import migrate
from ledger.books.books import Books
from ledger.fan_out.processes import Processes
from ledger.log import rebooked
from ledger.tree import recompute, trees
from ledger.tree.checkpoint import (
    Checkpoint,
    NoteInvalid,
    VerifierKey,
    parse_checkpoint,
    parse_verifier_key,
    remembered,
    split_note,
)
from ledger.tree.kept import note_faults
from ledger.tree.log_keys import open_by_any
from projections import anew

FACTS_APART = 50_000
BOOKED_TOGETHER = 250_000
"""Facts of a range of the books: what its process holds are its accounts."""
WORKERS_MAX = 8
"""Each has a connection, and one that folds reports is a process."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a restored market holds; `problems` empty: it may be opened.

    `signed` is the largest head it was compared with, `missing` how many facts of it are not here.
    """

    facts: int
    reports: int
    signed: int
    missing: int
    views: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def prove(
    conninfo: str,
    backup: Backup,
    signed: Sequence[Checkpoint],
    known: Sequence[Checkpoint] = (),
    *,
    note: str | None = None,
    key: VerifierKey | None = None,
    stage: Callable[[str], None] = lambda _stage: None,
    with_views: bool = True,
    workers: int | None = None,
) -> Proof:
    """Check the restored database: all of `signed` must be in it, `known` heads agree where they
    are not of a later time. `note`: of a head in `signed`, as it was signed. `key`: a key of the
    log from another source than the backup, with which all signed heads are checked; the restored
    log says which keys followed it and which came before it.
    Without `with_views` no view is built; all else is proved.
    `workers`: so many processors share the work; None: those of this machine, eight at most.
    Migrates nothing: a database of an older version is proved by that version.
    Raises HistoryChanged, WorkLost.
    """
    problems: list[str] = []
    workers = workers or min(WORKERS_MAX, os.cpu_count() or 1)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        stage("recomputing both logs")
        if missing := migrate.missing(connection):
            problems.append(f"the database is of an older version: {missing[0].name} is missing")
        found = recompute.recompute(connection, signed, known, stage)
        problems += found.problems
        if key is None and backup.log_key:
            key = parse_verifier_key(backup.log_key)
        if note is not None and key is not None:
            try:
                open_by_any(note, key, trees.rotations(connection))
            except NoteInvalid as invalid:
                problems.append(f"the head that was given cannot be used: {invalid}")
        problems += note_faults(connection, key, trees.rotations(connection))
        for name, here, then in (
            ("facts", found.facts, backup.facts),
            ("reports", found.reports, backup.reports),
        ):
            if here < then:
                problems.append(f"{then - here} {name} are missing that the backup began with")
        views = 0
        if not problems:
            trees.follow_all(connection)
            views, differing = _derived(
                conninfo, found.facts, workers, stage, with_views=with_views
            )
            problems += differing
    if problems:
        # Entries that are those of the facts balance, and so do accounts that are their sums.
        stage("adding up the books")
        with psycopg.connect(conninfo, row_factory=dict_row) as patient:
            problems += Books(_Patient(patient)).faults()
    largest = max((head.size for head in signed), default=0)
    return Proof(found.facts, found.reports, largest, found.missing, views, tuple(problems))


class _Patient:
    """Answers the books without the limit of a request: their sums of a large log take longer."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self._connection = connection

    def rows(self, query: LiteralString, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        return self._connection.execute(query, parameters).fetchall()


def _derived(
    conninfo: str, facts: int, workers: int, stage: Callable[[str], None], *, with_views: bool
) -> tuple[int, list[str]]:
    """What follows from a log that is whole: how many views were built, and what of views and books
    is otherwise.
    """
    with psycopg.connect(conninfo, autocommit=True) as connection:
        last = rebooked.last(connection)
    views, problems = 0, list[str]()
    with _booked(conninfo, max(facts, last), workers) as books:
        if with_views:
            stage("building the views anew")
            built = anew.compare(conninfo, workers=workers)
            views = sum(one.failed is None for one in built)
            problems += [
                f"view {one.name} cannot be built from these facts: {one.failed}"
                for one in built
                if one.failed is not None
            ]
            problems += [
                f"view {one.name}: {table} differs"
                for one in built
                for table in one.differing or ()
            ]
        stage("booking every fact anew")
        return views, problems + books()


@contextmanager
def _booked(
    conninfo: str, facts: int, workers: int
) -> Generator[Callable[[], list[str]], None, None]:
    """Book every fact anew; what is asked for the faults found. Of a large log in ranges, by
    processes of their own, beside the views: one that decodes facts takes a second to start.
    """
    if workers == 1 or facts < FACTS_APART:
        yield lambda: booked_anew(conninfo)
        return
    size = min(BOOKED_TOGETHER, -(-facts // workers))
    spans = [(low, min(facts, low + size)) for low in range(0, facts, size)]
    with ThreadPoolExecutor(1) as beside, Processes(workers) as processes:
        done = processes.map(partial(booked_between, conninfo), spans)
        ranges = beside.submit(list[rebooked.Booked], done)
        yield lambda: _joined(conninfo, ranges.result())


def booked_anew(conninfo: str) -> list[str]:
    """Where the books are not those of the facts, by a connection of its own."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return rebooked.faults(connection)


def booked_between(conninfo: str, span: tuple[int, int]) -> rebooked.Booked:
    """The books of a range, made again by a connection of its own."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return rebooked.between(connection, *span)


def _joined(conninfo: str, ranges: Sequence[rebooked.Booked]) -> list[str]:
    """Where the books are not those of the facts."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return rebooked.joined(connection, ranges)


# --- heads from outside -----------------------------------------------------------------------


def heads_of_signer(path: Path, origin: str) -> list[Checkpoint]:
    """The heads that a signer remembers; none where there is no such file. Raises BackupUnusable
    where it is damaged.
    """
    if not path.exists():
        return []
    try:
        return list(remembered(path.read_text(encoding="ascii", errors="replace"), origin))
    except NoteInvalid as invalid:
        raise BackupUnusable(f"{path} is damaged: {invalid}") from invalid


def head_of_note(note: str) -> Checkpoint:
    """A head as a file holds it: a signed note, whose signature is not checked here, or the three
    lines alone. Raises BackupUnusable.
    """
    try:
        return parse_checkpoint(split_note(note)[0] if "\n\n" in note else note)
    except NoteInvalid as invalid:
        raise BackupUnusable(f"the head cannot be used: {invalid}") from invalid
