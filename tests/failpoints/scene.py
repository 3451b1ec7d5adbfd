"""What every scene of failpoints is: a market, the work that passes by, and what must hold after.

acknowledged            =>  there, once
not acknowledged        =>  asked again, and there once
books balance, chains verify, views are what a rebuild gives
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import psycopg

from ledger.log.handle import Ledger
from projections import tables
from tests.conftest import Databases
from tests.e2e.checks import check_chains
from tests.failpoints.arming import Armed, install, observe, observed
from tests.failpoints.lives import Life, Tell, await_quiet, lived
from tests.failpoints.places import Failpoint, Fault

IN_DATABASE = (Fault.DEATH, Fault.LOST, Fault.FULL, Fault.TIMEOUT)
"""What a statement may meet in the middle."""
VIEWS_MORE = 6
BLINDING = b"the blinding key of failpoints"
_numbers: Iterator[int] = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Ground:
    """Where scenes are built: a server, and the name of a migrated database with empty views."""

    postgres: Databases
    template: str

    @contextmanager
    def database(self) -> Generator[str, None, None]:
        """The address of a fresh one."""
        name = f"failpoints_{next(_numbers)}"
        yield self.postgres.create_database(name, template=self.template)
        self.postgres.drop_database(name)


@dataclass
class Scene:
    """One market for all failpoints of a kind. `round` counts the lives: each does new work."""

    failpoints: ClassVar[tuple[Failpoint, ...]]
    views: ClassVar[tuple[str, ...]] = ()
    """The views that are rebuilt after the last life; seeds other than 0 rebuild some more."""
    is_in_order: ClassVar[bool] = False
    """Whether a life leads to the place of the next one, so that seeds change no order."""
    is_long: ClassVar[bool] = False
    """Whether a life takes so long that `make test` leaves the scene to the long form."""
    conninfo: str
    folder: Path
    observer: psycopg.Connection[Any]
    ledger: Ledger
    round: int = 0
    is_again: bool = False
    reached: set[str] = field(default_factory=set)

    def found(self) -> None:
        """Once, before the first life."""

    def prepare(self) -> None:
        """Before each life, with no fault about."""

    def act(self, tell: Tell) -> None:
        """The work of one life, or of the next one after it: a restart finds what was done."""
        raise NotImplementedError

    def check(self, told: list[Any], again: list[Any]) -> None:
        """What a life told, and what its repetition without a fault told."""
        raise NotImplementedError

    def end(self, views: tuple[str, ...]) -> None:
        """Once, after the last life."""
        check_log(self.ledger, self.observer, views)

    def close(self) -> None:
        """Let go of what outlives a life, and not the scene."""

    # --- one life ----------------------------------------------------------------------------

    def play(self, failpoint: Failpoint, fault: Fault, nth: int) -> None:
        """A life with a fault, a restart that does the same again, and the checks."""
        try:
            self.round += 1
            self.is_again = False
            self.prepare()
            armed = Armed(failpoint, fault, nth, self.conninfo)
            with armed.in_database(self.observer):
                life = self.live(armed)
            assert life.reached, f"its scene did not pass by: {str(life)[:500]}"
            assert life.died == (fault is Fault.DEATH), life
            self.is_again, again = True, list[Any]()
            self.act(again.append)
            self.check(life.told, again)
            self.reached.add(failpoint.name)
        except BaseException as error:
            error.add_note(f"failpoint {failpoint.name}, {fault.value}, passing {nth}")
            raise

    def live(self, armed: Armed) -> Life:
        life = lived(self.act, armed)
        await_quiet(self.observer)
        return life

    # --- for those who live; the tests have `observer` and `ledger` ------------------------------

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.conninfo, autocommit=True)

    def open_ledger(self) -> Ledger:
        return Ledger(self.conninfo, blinding_key=BLINDING, connections_max=2)


def check_log(ledger: Ledger, connection: psycopg.Connection[Any], views: tuple[str, ...]) -> None:
    """Chains from their first byte, books, and these views beside a rebuild."""
    check_chains(connection)
    assert ledger.books.faults() == []
    for name in views:
        tables.step_all(connection, only=(name,))
        assert tables.rebuild(connection, tables.BY_NAME[name]).differing == (), name


def play_all(kind: type[Scene], ground: Ground, seed: int, *, first: int | None = None) -> set[str]:
    """Every failpoint of a scene once, or so many of the first; which were reached. Seed 0: each
    dies at its first passing. Any other picks the fault and the passing, and with them the order.
    """
    random = Random(f"{seed}/{kind.__name__}")
    failpoints = list(kind.failpoints)[:first]
    if seed and not kind.is_in_order:
        random.shuffle(failpoints)
    with (
        ground.database() as conninfo,
        tempfile.TemporaryDirectory(prefix="tally") as folder,
        observe(conninfo) as observer,
        Ledger(observed(conninfo), blinding_key=BLINDING, connections_max=2) as ledger,
    ):
        install(observer)
        scene = kind(conninfo, Path(folder), observer, ledger)
        with closing(scene):
            scene.found()
            for failpoint in failpoints:
                fault, nth = failpoint.faults[0], 1
                if seed:
                    fault = random.choice(failpoint.faults)
                    nth = random.randint(1, failpoint.reaches)
                scene.play(failpoint, fault, nth)
            others = random.sample(tuple(tables.BY_NAME), VIEWS_MORE) if seed else []
            scene.end((*kind.views, *others))
    return scene.reached
