"""The search for a coalition that gains, on a real log: PostgreSQL decides, books and counts alike.

    facts of the log == facts decided in memory        command by command; a refusal has one reason
    balances of the books == balances in memory        at the end of each run
    what no burn covers, by the view == in memory      at the end of each run
    weights and TOKEN of each epoch  == in memory      by node, corrections set off, where the run
                                                       has no dispute

Each run has a database of its own. Epochs are closed on both sides and paid in memory
(`tests/domain/adversary/`). Not compared are grants of a program, which weigh nothing, and epochs
of runs with a dispute, because memory counts contested weights in full.
The long form are seeds of 5 runs each: `python -m tests.passes cheats-on-postgres 0 100`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

from domain.epochs.epoch import EpochClosing
from domain.market.offer import OfferWithdrawn
from domain.money import Asset
from domain.refusal import Refused
from domain.stream import Change, Stream
from ledger.beside.charged import charge_of
from ledger.books.entry import Entry
from ledger.log.handle import Ledger
from projections import tables
from projections.epochs import counted
from projections.epochs.burning import read_unburned
from projections.epochs.epochs import read_preview
from tests.conftest import Databases
from tests.domain.adversary.network import OTHERS, STRANGER, Network, deposit_of, found
from tests.domain.adversary.search import STEPS, Search, Terms, sound_terms
from tests.domain.scenes.market import NOON_US
from tests.scenes.told import BLINDING_KEY, ToldRules, do
from tests.seeds.machines import QUIET, run_machine
from tests.seeds.scenes import postgres_with_views

RUNS = 5
_numbers = count(1)


def _past_of_others(fact: Any) -> tuple[Entry, ...]:
    """What others paid before is in the bank, as the network's revenue; nothing else is booked."""
    if not isinstance(fact, OfferWithdrawn):
        return ()
    lines = (("world:bank", OTHERS), ("network:revenue:usage", -OTHERS))
    return (Entry(Asset.CREDIT, lines),)


class RealNetwork(Network):
    """The network in memory, and beside it the same commands through the door of a real log."""

    ledger: Ledger
    database: str
    closed: list[Any]

    @classmethod
    def on(cls, database: str, terms: Terms) -> RealNetwork:
        past = OfferWithdrawn(offer_id="others", by="test", at_us=NOON_US)
        scene = found(terms.tariff).given((Stream("offer", "others"), past))
        told = [Change(stream, fact) for stream, fact in scene.past]
        with Ledger(
            database, blinding_key=BLINDING_KEY, rules=ToldRules(), entries_for=_past_of_others
        ) as founding:
            founding.handle(do(*told), key=None, now_us=NOON_US)
        made = cls.of(scene)
        made.policy = terms.policy
        made.ledger = Ledger(database, blinding_key=BLINDING_KEY, connections_max=2)
        made.database, made.closed = database, []
        made.balances |= {"world:bank": OTHERS, "network:revenue:usage": OTHERS}
        made.do(deposit_of(STRANGER, OTHERS, "deposit_stranger", NOON_US))
        return made

    def do(self, command: Any) -> list[Change]:
        try:
            changes = super().do(command)
        except Refused as refused:
            self._require_refused(command, refused)
            raise
        assert self._ask(command) == [change.fact for change in changes], command
        return changes

    def end_epoch(self) -> None:
        """The closing is a fact on both sides; who pins and seals has no part in what counts."""
        closing = EpochClosing(epoch=self.rewards.epoch, by="test", at_us=self.now_us)
        told = Change(Stream[Any]("epoch", str(closing.epoch)), closing)
        with Ledger(self.database, blinding_key=BLINDING_KEY, rules=ToldRules()) as plain:
            plain.handle(do(told), key=None, now_us=self.now_us)
        self.log.append(told)
        self.closed.append(self.rewards.told())
        super().end_epoch()

    def _require_refused(self, command: Any, refused: Refused) -> None:
        with pytest.raises(Refused) as real:
            self._ask(command)
        assert real.value.reason is refused.reason, command

    def _ask(self, command: Any) -> list[Any]:
        outcome = self.ledger.handle(command, key=None, now_us=self.now_us)
        return [change.fact for change in outcome.changes]

    def compare(self, database: str) -> None:
        """Balances, and what no burn covers of each charge, by the view and in memory."""
        names = sorted(self.balances)
        assert self.ledger.books.balances_of(names) == {one: self.balances[one] for one in names}
        assert self.ledger.books.faults() == []
        charges = [at for at, one in enumerate(self.log, 1) if charge_of(one.fact)]
        with closing(psycopg.connect(database, autocommit=True)) as connection:
            tables.ensure(connection)
            tables.step_all(connection, only=("epochs",))
            real, ours = read_unburned(connection, charges), self.rewards.unburned(charges)
            if not self.disputes:
                self._compare_epochs(connection)
        assert real.burns == ours.burns
        for charge in charges:
            assert real.of(charge) == ours.of(charge), charge

    def _compare_epochs(self, connection: psycopg.Connection[Any]) -> None:
        for epoch, (uses, tokens) in enumerate(self.closed, 1):
            preview = counted.read_weights(connection, read_preview(connection, epoch))
            assert preview.is_final, epoch
            found = {
                (one.node_id, one.source): (one.burned, one.gpu_us)
                for one in preview.weights
                if (one.burned or one.gpu_us) and not one.source.startswith("grant.")
            }
            assert found == uses, epoch
            told = counted.read_tokens(connection, epoch)
            assert {node: tuple(one) for node, one in told.items() if any(one)} == tokens, epoch


def on_postgres(postgres: Databases, template: str) -> type[Search]:
    class OnPostgres(Search):
        @initialize(terms=sound_terms, has_cash=st.lists(st.booleans(), min_size=4, max_size=4))
        def begin(self, terms: Terms, has_cash: list[bool]) -> None:
            self.name = f"search_{next(_numbers)}"
            self.database = postgres.create_database(self.name, template=template)
            self.found(terms, RealNetwork.on(self.database, terms), has_cash)

        def teardown(self) -> None:
            if not hasattr(self, "network"):
                return
            network = self.network
            assert isinstance(network, RealNetwork)
            try:
                super().teardown()
                network.compare(self.database)
            finally:
                network.ledger.close()
                postgres.drop_database(self.name)

    return OnPostgres


@pytest.fixture
def search(postgres: Databases, template_with_views: str) -> type[Search]:
    return on_postgres(postgres, template_with_views)


@contextmanager
def seeded_scene() -> Generator[type[Search], None, None]:
    with postgres_with_views() as (postgres, template):
        yield on_postgres(postgres, template)


def run(seed: int, search: type[Search]) -> None:
    """5 runs under this seed."""
    run_machine(search, seed, runs=RUNS, steps=STEPS, shrinks=False)


def test_postgres_decides_and_books_what_the_search_does_in_memory(search: type[Search]) -> None:
    run_state_machine_as_test(
        search,
        settings=settings(
            max_examples=RUNS,
            stateful_step_count=STEPS,
            suppress_health_check=QUIET,
            phases=[Phase.explicit, Phase.generate],
            deadline=None,
            print_blob=True,
        ),
    )
