"""What goes to the chain and comes back: minting, roots of payouts, and what final blocks tell.

One epoch after the other, phase by phase; a life goes on until it meets its failpoint, and the next
one begins with the phase in which that one died. The chain is in memory, so a life is in here.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, ClassVar

from api.chain.timer import reconcile
from api.epochs.closing import epoch_state
from contracts.chain import Chain, NodeFailed
from contracts.tally import Tally
from domain.chain.transaction import stream_of
from tests.contracts import stage
from tests.failpoints.arming import Armed
from tests.failpoints.lives import Life, Tell, thrown
from tests.failpoints.places import After, Before, Failpoint, Fault, Inside
from tests.failpoints.scene import IN_DATABASE, Scene
from tests.scenes import chain as chain_scene

DEATH, LOST, FULL, AWAY = Fault.DEATH, Fault.LOST, Fault.FULL, Fault.AWAY
STORE, TIMER = "ledger.beside.chain_store:", "api.chain.timer:"
SEND = "contracts.chain:Chain.send"
PHASES = 3
"""Of an epoch: it ends; it is sealed, minted and its root proposed; its root is accepted."""
PHASES_MAX = 4 * PHASES
TWICE = """
    SELECT topic, originator_id FROM market_events
    WHERE topic ~ '^payout[.]root' OR topic ~ '^epoch[.](mint|seal|clos)'
    GROUP BY 1, 2 HAVING count(*) > 1
"""
STATES = ("intended", "signed", "broadcast", "mined", "finalized")


class OnChain(Scene):
    views = ("epochs",)
    is_in_order = True
    failpoints: ClassVar = (
        Failpoint("chain.read", After(STORE + "advance"), (DEATH, LOST)),
        Failpoint("chain.kept", After(STORE + "keep_intent"), (DEATH, LOST), 4),
        Failpoint("chain.signed", After("contracts.outbox:Outbox._attempt"), (DEATH, LOST)),
        Failpoint("chain.row_written", Inside("chain_intent", "INSERT"), IN_DATABASE, 4),
        Failpoint("chain.told", Before(STORE + "mark_told"), (DEATH, LOST), 4),
        Failpoint("chain.sending", Before(SEND), (DEATH, LOST, AWAY), 2, NodeFailed),
        Failpoint("chain.sent", After(SEND), (DEATH, LOST, AWAY), 2, NodeFailed),
        Failpoint("chain.receipt", After("contracts.chain:Chain.receipt"), (DEATH, LOST), 3),
        Failpoint("chain.taken", After(TIMER + "ChainJobs._take"), (DEATH, LOST), 2),
        Failpoint("chain.done", After(STORE + "mark_done"), (DEATH, LOST), 2),
        Failpoint("payout.drafting", Before("os:fsync"), (DEATH, FULL), 2),
        Failpoint("payout.file_written", After(TIMER + "write_durably"), (DEATH, LOST)),
        Failpoint("payout.root_built", After(TIMER + "ChainJobs._build"), (DEATH, LOST)),
    )

    def found(self) -> None:
        self.stack = ExitStack()
        devnet, deployment = self.stack.enter_context(chain_scene.deployed())
        node = Chain(devnet.w3)
        played = stage.Stage(devnet, node, Tally(node, deployment), stage.wallets(devnet))
        self.market = chain_scene.Scene(
            self.open_ledger(), self.conninfo, self.connect(), devnet, played, self.folder
        )
        self.market.found(epochs=60)
        self.phase, self.epoch, self.waiting = 0, 1, list[str]()

    def close(self) -> None:
        self._stop()
        self.stack.close()

    def _stop(self) -> None:
        while self.market.jobs_made:
            self.market.jobs_made.pop().close()
        self.market.ledger.close()
        self.market.connection.close()

    def live(self, armed: Armed) -> Life:
        life = thrown(self.act, armed)
        self._stop()
        self.market.ledger, self.market.connection = self.open_ledger(), self.connect()
        return life

    def act(self, tell: Tell) -> None:
        """Phase by phase until one ends in a fault; the next life begins with the same one."""
        for _ in range(0 if self.is_again else PHASES_MAX):
            self._phase()
            tell([self.epoch, self.phase, self.waiting])

    def _phase(self) -> None:
        match self.phase % PHASES:
            case 0:
                self.epoch = self.phase // PHASES + 1
                self.market.end_epoch(self.epoch)
            case 1:
                assert self.market.settle_epochs() == ()
            case 2:
                self.market.travel(chain_scene.TIMELOCK_S)
        self.waiting = self.market.jobs().step(self.market.now_us).waiting
        self.phase += 1

    def check(self, told: list[Any], again: list[Any]) -> None:
        del told, again
        assert self.ledger.books.faults() == []

    def end(self, views: tuple[str, ...]) -> None:
        """Carry on what is on its way; then each thing happened once, and nothing differs."""
        left = -self.phase % PHASES
        for _ in range(left + PHASES):
            self._phase()
        tally, people = self.market.tally, self.market.stage
        intents = self.observer.execute("SELECT id, sender FROM chain_intent").fetchall()
        for intent_id, _ in intents:
            facts = self.ledger.market.read_stream(stream_of(intent_id))
            assert [one.name for one in facts] == [f"chain_tx.{state}.v1" for state in STATES]
        for who in ("emitter", "proposer"):
            sent = [one for one, sender in intents if sender == people.address(who).lower()]
            assert tally.chain.transaction_count(people.address(who)) == len(sent) > 0
        assert self.observer.execute(TWICE).fetchall() == []
        assert epoch_state(self.ledger, self.epoch).sealed is not None
        treasury = self.market.treasury.address
        assert reconcile(self.ledger, self.observer, tally, treasury=treasury) == []
        super().end(views)
