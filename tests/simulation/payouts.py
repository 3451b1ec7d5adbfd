"""Epochs and payouts in a run: who brings them on, who claims, and what goes wrong on the chain."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg

from api.chain.timer import ChainJobs, account_ref
from contracts.chain import NodeFailed
from contracts.tally import Tally
from ledger.advisory import LockHeld
from ledger.log.handle import Ledger
from tests.scenes import wallets
from tests.simulation.chain import CONFIRMATIONS, FAULTS, TIMELOCK_S, keys_of
from tests.simulation.founding import EPOCH_S, GENESIS_S
from tests.simulation.lines import LOCKED_MS
from tests.simulation.people import SECOND_US

if TYPE_CHECKING:
    from tests.simulation.run import Run

HOUR_US = 3_600 * SECOND_US
CHAIN_STATEMENTS = 120
"""About as many as a round of the chain's timer has."""
EPOCHS_LEAST = 2
ROUNDS_MAX = 24
VETO = b"\x0e" * 32


class Payouts:
    """Each step is drawn; a veto is taken back, or stands, by the toss of a coin."""

    def __init__(self, run: Run) -> None:
        self.run, self.rng = run, run.rng
        treasury = run.network.treasury().address.lower()
        self.wallets = {"owner": wallets.ADDRESSES[0].lower(), "treasury": treasury}
        self.tokens_before = {one: self._tokens(one) for one in self.wallets.values()}
        self.supply_before = run.network.tally.total_supply()
        self.is_held, self.may_veto = False, True

    def _tokens(self, address: str) -> int:
        return self.run.network.tally.balance(address)

    # --- a step ------------------------------------------------------------------------------

    def step(self) -> None:
        can = [self.pass_hours, self.pass_hours, self.settle, self.chain, self.chain, self.chain]
        can += [self.claim, self.buy, self.reorganise, self.two_at_once]
        if self.run.network.tally.pending() is not None:
            can += [self.veto]
        self.rng.choice(can)()

    def aside(self) -> None:
        """What somebody else does between two statements of a step."""
        self.rng.choice((self.two_at_once, self.settle, self.chain, self.buy))()

    def pass_hours(self) -> None:
        self.run.clock.advance(self.rng.randint(1, 30) * HOUR_US)
        self.run.timers("lease_watch", "accrual")

    def settle(self) -> None:
        self.run.timers("epochs", statements=CHAIN_STATEMENTS)

    def chain(self) -> None:
        """A round of the timer, on a chain that has gone on meanwhile."""
        self.blocks(self.rng.randint(0, CONFIRMATIONS + 1))
        if not self.run.is_calm and self.rng.random() < 0.5:
            self.run.way.next = self.rng.choice(FAULTS)
        self.run.timers("chain", statements=CHAIN_STATEMENTS)
        self.run.way.next = None

    def blocks(self, count: int) -> None:
        self.run.network.pass_time(self.run.clock.now_us() // SECOND_US, count)

    def reorganise(self) -> None:
        depth = self.rng.randint(1, CONFIRMATIONS)
        gone = self.run.network.reorganise(depth, forgets=self.rng.random() < 0.3)
        if gone:
            self.run.people.note("blocks reorganised")

    def two_at_once(self) -> None:
        """Another process that takes itself for the leader, from beginning to end. What it may
        fail by: the node, and a lock that the first one holds.
        """
        try:
            with self._executor() as jobs:
                report = jobs.step(self.run.clock.now_us())
            assert not report.differences, report.differences
            told = str(report.done)
        except (NodeFailed, psycopg.OperationalError, LockHeld) as failed:
            told = type(failed).__name__
        self.run.people.note("two executors")
        self.run._note(f"the other executor: {told}", "")

    def _executor(self) -> Any:
        """With books and connections of its own, which wait for nobody for long."""
        run, server = self.run, self.run.server
        address = f"{server.address} options='-c lock_timeout={LOCKED_MS}'"
        keys = keys_of(run.network)
        ledger = Ledger(address, blinding_key=server.service._key("blinding.key"))
        jobs = ChainJobs(
            ledger,
            lambda: psycopg.connect(address, autocommit=True),
            Tally(run.way, run.network.at.deployment),
            data_dir=server.settings.data_dir,
            emitter=keys.emitter,
            proposer=keys.proposer,
            treasury=keys.treasury,
        )
        plain = jobs.close

        def close() -> None:
            plain()
            ledger.close()

        jobs.close = close  # type: ignore[method-assign]
        return closing(jobs)

    # --- people on the chain -----------------------------------------------------------------

    def claim(self) -> None:
        """Somebody claims what the accepted root promises to a wallet: anybody may send it."""
        accepted = self.run.checks.payouts.accepted
        if not accepted:
            return
        address = self.rng.choice(sorted(self.wallets.values()))
        path = f"/v1/payouts/{accepted[-1]}/proof?address={address}"
        answer = self.run.call("proof", "GET", path, {})
        if answer is None or answer.status_code != 200:
            return
        told = answer.json()
        proof = [bytes.fromhex(one.removeprefix("0x")) for one in told["proof"]]
        call = self.run.network.tally.claim(told["account"], int(told["total"]["units"]), proof)
        done = self.run.network.do("relay", call)
        self.run._note(f"claim for {address}: {'paid' if done else 'refused'}", "")

    def buy(self) -> None:
        """A renter burns TOKEN for credits."""
        self.blocks(0)
        tokens = self.rng.randint(1, 5)
        if self.run.network.burn(account_ref(self.run.scene.renter.account_id), tokens):
            self.run._note(f"{tokens} TOKEN burned for credits", "")

    def veto(self) -> None:
        pending = self.run.network.tally.pending()
        assert pending is not None
        if self.run.network.do("guardian", self.run.network.tally.veto_root(VETO)):
            self.run.people.note("root vetoed")

    # --- the end -----------------------------------------------------------------------------

    def finish(self) -> None:
        """All epochs that are over are sealed, minted, promised and claimed, but what is held."""
        run = self.run
        for _ in range(ROUNDS_MAX):
            self._round()
            if self._is_quiet():
                break
        else:
            raise AssertionError(f"payouts never end: {self.waits()}")
        self.is_held = self.run.checks.payouts.state == "vetoed"
        if self.is_held and self.rng.random() < 0.5:
            self._take_back()
            return self.finish()
        for address in sorted(self.wallets.values()):
            self._claim_all(address)
        self.blocks(CONFIRMATIONS + 1)
        run.timers("chain")
        run.checks.after_a_step()
        return None

    def waits(self) -> str:
        checks = self.run.checks.payouts
        told = f"over {self._over()}, sealed {len(checks.sealed)}, minted {len(checks.minted)}"
        return f"{told}, accepted {checks.accepted}, {checks.state}"

    def _round(self) -> None:
        self.run.clock.advance(TIMELOCK_S * SECOND_US)
        self.blocks(CONFIRMATIONS + 1)
        if self.may_veto and self.run.network.tally.pending() and self.rng.random() < 0.3:
            self.may_veto = False
            self.veto()
        self.run.timers("chain", "epochs")
        self.run.checks.after_a_step()

    def _is_quiet(self) -> bool:
        checks, over = self.run.checks.payouts, self._over()
        is_held = checks.state == "vetoed" and len(checks.minted) == over
        return over >= EPOCHS_LEAST and (is_held or checks.is_through(over))

    def _over(self) -> int:
        """How many epochs are over by the clock."""
        return (self.run.clock.now_us() // SECOND_US - GENESIS_S) // EPOCH_S

    def _take_back(self) -> None:
        """The operator proposes a vetoed root once more."""
        with self._executor() as jobs:
            epoch = self.run.checks.payouts.vetoed[-1]
            self.run.checks.payouts.taken_back.append(epoch)
            jobs.propose_again(epoch, self.run.clock.now_us())

    def _claim_all(self, address: str) -> None:
        run = self.run
        if not run.checks.payouts.accepted:
            return
        path = f"/v1/payouts/{run.checks.payouts.accepted[-1]}/proof?address={address}"
        answer = run.server.call("GET", path, {})
        if answer.status_code != 200:
            return
        told = answer.json()
        proof = [bytes.fromhex(one.removeprefix("0x")) for one in told["proof"]]
        call = run.network.tally.claim(told["account"], int(told["total"]["units"]), proof)
        run.network.do("relay", call)
