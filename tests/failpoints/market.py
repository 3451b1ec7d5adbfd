"""An append of the market log: commands with a key, one that is refused, two in one append, a
follower's position, and a question for an answer that was given before.
"""

from __future__ import annotations

from typing import Any, ClassVar

from domain.funds.deposit import ConfirmDeposit
from domain.lease.lease import CloseLease
from domain.money import credit
from domain.refusal import Refused
from ledger.log.handle import Answer, CommandKey, Ledger, Order
from tests.failpoints.lives import Tell
from tests.failpoints.places import After, Answered, Before, Failpoint, Fault, Inside
from tests.failpoints.scene import IN_DATABASE, Scene
from tests.scenes.running_market import CASH_UNITS, OPERATOR, RENTER, START_US, Market

DEATH, LOST = Fault.DEATH, Fault.LOST
TOLD = Answer(200, b"{}")
DEPOSITS = 3
"""Of one life: one by itself, two in one append; each of as many micro-credits as its round."""


class MarketLog(Scene):
    views = ("statements",)
    failpoints: ClassVar = (
        Failpoint("market.decided", Before("ledger.log.market:MarketEvents.put"), (DEATH, LOST), 4),
        Failpoint("market.command_written", Inside("command", "INSERT"), IN_DATABASE, 4),
        Failpoint("market.head_moved", Inside("market_events_head", "UPDATE"), IN_DATABASE, 3),
        Failpoint("market.facts_written", Inside("market_events", "INSERT"), IN_DATABASE, 3),
        Failpoint("books.balances_moved", Inside("account", "UPDATE"), IN_DATABASE, 4),
        Failpoint("books.postings_written", Inside("posting", "INSERT"), IN_DATABASE, 3),
        Failpoint("market.tracking_moved", Inside("market_tracking", "INSERT"), IN_DATABASE),
        Failpoint("market.last_row_written", Inside("command", "UPDATE"), IN_DATABASE, 2),
        Failpoint("market.committed", Answered("command", "INSERT"), (DEATH, LOST), 4),
        Failpoint(
            "market.remembered", After("ledger.log.handle:Ledger._remember"), (DEATH, LOST), 3
        ),
        Failpoint(
            "market.answer_found",
            Before("ledger.log.recorder:MarketDatastore.wait_for_standbys"),
            (DEATH, LOST),
        ),
    )

    def found(self) -> None:
        ledger, connection = self.ledger, self.observer
        Market(ledger, connection).found()

    def prepare(self) -> None:
        """A command whose answer the life asks for again."""
        ledger = self.ledger
        self._deposit(ledger, "before")

    def act(self, tell: Tell) -> None:
        with self.open_ledger() as ledger:
            tell(["before", self._deposit(ledger, "before").position])
            tell(["one", self._deposit(ledger, "one").position])
            tell(["refused", self._refused(ledger)])
            orders = [self._order("two"), self._order("three")]
            for place, handled in enumerate(ledger.handle_all(orders, now_us=START_US)):
                if handled.outcome is None:  # its key is known: it is handled by itself
                    name = ("two", "three")[place]
                    tell([name, self._deposit(ledger, name).position])
                else:
                    tell([("two", "three")[place], handled.outcome.position])
            tell(["tracked", self._track(ledger)])

    def check(self, told: list[Any], again: list[Any]) -> None:
        names = ["before", "one", "refused", "two", "three", "tracked"]
        assert [name for name, _ in again] == names
        assert told == again[: len(told)], "an acknowledgement changed"
        ledger, connection = self.ledger, self.observer
        for name, position in again:
            if name != "refused":
                stored = ledger.stored(self._key(name))
                assert stored is not None
                assert stored.position == position
        counted = connection.execute(
            "SELECT count(*), count(DISTINCT originator_id) FROM market_events"
            " WHERE topic = 'deposit.confirmed.v1'"
        ).fetchone()
        assert counted == (1 + 5 * self.round,) * 2
        assert ledger.books.balance(f"party:{RENTER}:cash") == CASH_UNITS + 5 * self.round
        assert ledger.books.faults() == []

    def _key(self, name: str) -> CommandKey:
        return CommandKey(OPERATOR, f"{self.round}-{name}", b"the same body")

    def _command(self, name: str) -> ConfirmDeposit:
        return ConfirmDeposit(
            deposit_id=f"deposit_{self.round}_{name}",
            account_id=RENTER,
            source="cash",
            amount=credit(1),
            reference=f"{self.round}-{name}",
            confirmed_by="operator",
            at_us=START_US,
        )

    def _order(self, name: str) -> Order:
        return Order([self._command(name)], self._key(name), lambda _world: TOLD)

    def _deposit(self, ledger: Ledger, name: str) -> Any:
        return ledger.handle(self._command(name), key=self._key(name), now_us=START_US)

    def _track(self, ledger: Ledger) -> int:
        """A follower that records something moves its position with it."""
        return ledger.handle(
            self._command("tracked"),
            key=self._key("tracked"),
            now_us=START_US,
            tracking=("failpoints", self.round),
        ).position

    def _refused(self, ledger: Ledger) -> str:
        close = CloseLease(
            lease_id="lease_unknown", closed_at_us=START_US, party="renter", code=1, at_us=START_US
        )
        try:
            ledger.handle(close, key=self._key("refused"), now_us=START_US)
        except Refused as refused:
            return refused.reason.value
        raise AssertionError("a lease that is not there was closed")
