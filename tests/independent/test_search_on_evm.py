"""The search for a coalition that gains, with its TOKEN on a real EVM.

    credits of a purchase  == what the burner's event says             at each purchase
    rewards of an epoch    == minted == newly claimed by proof         at each seal
    nobody claims twice, nor more
    supply                 == at the start - burned + minted           at the end of each run
    claimed of an account  == its rewards in memory

So the coalition's wealth, which the search bounds, counts TOKEN that are there. Contracts are the
deployed ones on the embedded chain; credits are decided and booked in memory. The price of a TOKEN
does not move here. The long form are seeds of 5 runs each:
`python -m tests.passes cheats-on-evm 0 100`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

from api.chain.timer import account_ref
from contracts.payout_tree import StandardTree
from contracts.tally import TOKEN_UNIT
from domain.chain.burn import BurnConfirmed
from domain.epochs.settlement import TREASURY
from domain.funds.deposit import CreditsPurchaseConfirmed
from domain.money import PPM
from domain.stream import Change
from tests.contracts.conftest import deployed_chain, deployed_set, stage, staged
from tests.contracts.stage import CAP, DAY_S, FILE_HASH, GENESIS_S, PRICE, Stage
from tests.contracts.stage import account as address
from tests.domain.adversary.network import (
    COALITION,
    HONEST,
    OPERATOR,
    STRANGER,
    TOKEN_PRICE,
    Network,
)
from tests.domain.adversary.search import STEPS, Search, Terms, sound_terms, terms_of
from tests.domain.adversary.splitting import NEW_ACCOUNTS
from tests.seeds.machines import QUIET, run_machine

__all__ = ["deployed_chain", "stage"]

TERMS = terms_of({"platform": 300_000, "provider": 350_000}, "burn", 500_000)
RUNS = 5
ADDRESSES = {
    one: address(0xC0DE00 + at)
    for at, one in enumerate((*COALITION, *NEW_ACCOUNTS, STRANGER, HONEST, OPERATOR, TREASURY))
}


class ChainNetwork(Network):
    """The network in memory; what burns, mints and pays TOKEN is done on the chain, too."""

    stage: Stage
    burned: int
    minted: int
    claims: int

    def on(self, stage: Stage) -> ChainNetwork:
        assert TOKEN_PRICE == PRICE, "one price here and there"
        self.stage, self.burned, self.minted, self.claims = stage, 0, 0, 0
        stage.give_tokens(10**6)
        return self

    def do(self, command: Any) -> list[Change]:
        changes = super().do(command)
        for change in changes:
            match change.fact:
                case CreditsPurchaseConfirmed(account_id=str(account)) as bought:
                    told = self._burn(bought.tokens_burned.units, account)
                    assert told["credits"] == bought.credits.units
                case BurnConfirmed(tokens=tokens):
                    self._burn(tokens.units, OPERATOR)
        return changes

    def _burn(self, tokens: int, account: str) -> Any:
        tally, ref = self.stage.tally, account_ref(account)
        call = tally.burn_for_credits(tokens, self.stage.quote(), account_ref=ref)
        receipt = self.stage.do("user", call)
        self.burned += tokens
        events = tally.events(receipt.block_number, receipt.block_number)
        told = next(one.arguments for one in events if one.name == "CreditsPurchased")
        assert (told["accountRef"], told["tokensBurned"]) == (ref, tokens)
        return told

    def end_epoch(self) -> None:
        epoch, before = self.rewards.epoch, dict(self.tokens)
        super().end_epoch()
        new = sum(self.tokens.values()) - sum(before.values())
        assert 0 <= new <= CAP
        self.stage.devnet.travel_to(GENESIS_S + epoch * DAY_S)
        self.stage.do("emitter", self.stage.tally.mint_epoch(epoch, new, FILE_HASH))
        self.minted += new
        if not new:
            return
        totals = {ADDRESSES[one]: units for one, units in self.tokens.items() if units}
        tree = self.stage.publish(totals)
        for one, units in self.tokens.items():
            if units > before.get(one, 0):
                self._claim(tree, ADDRESSES[one], units)

    def _claim(self, tree: StandardTree, wallet: str, units: int) -> None:
        """Everybody's next reward; what is not theirs is refused by its name."""
        tally = self.stage.tally
        index = next(at for at, row in enumerate(tree.rows) if row[2] == wallet)
        proof = tree.proof(index)
        more = self.stage.refuse("relay", tally.claim(wallet, units + 1, proof))
        assert more.error == "BadProof"
        self.stage.do("relay", self.stage.claim_call(tree, index))
        again = self.stage.refuse("relay", tally.claim(wallet, units, proof))
        assert again.error == "NothingToClaim"
        self.claims += 1

    def compare(self) -> None:
        tally = self.stage.tally
        start = 10**9 * TOKEN_UNIT
        assert tally.total_supply() == start - self.burned + self.minted
        assert tally.claimed_total() == tally.committed_total() == self.minted
        for one, wallet in ADDRESSES.items():
            units = self.tokens.get(one, 0)
            assert tally.claimed(wallet) == tally.balance(wallet) == units, one


def on_chain(stage: Stage) -> type[Search]:
    class OnChain(Search):
        @initialize(terms=sound_terms, has_cash=st.lists(st.booleans(), min_size=4, max_size=4))
        def begin(self, terms: Terms, has_cash: list[bool]) -> None:
            self.mark = stage.devnet.snapshot()
            stage.totals = {}
            made = ChainNetwork.under(terms.tariff, terms.policy)
            assert isinstance(made, ChainNetwork)
            self.found(terms, made.on(stage), has_cash)

        def move_price(self, price: int) -> None:
            """No step here: the chain bounds each move of its price."""

        def teardown(self) -> None:
            if not hasattr(self, "mark"):
                return
            try:
                super().teardown()
                if hasattr(self, "network"):
                    assert isinstance(self.network, ChainNetwork)
                    self.network.compare()
            finally:
                stage.devnet.revert(self.mark)

    return OnChain


@pytest.fixture
def search(stage: Stage) -> type[Search]:
    return on_chain(stage)


@contextmanager
def seeded_scene() -> Generator[type[Search], None, None]:
    with deployed_set() as deployed, staged(deployed) as stage:
        yield on_chain(stage)


def run(seed: int, search: type[Search]) -> None:
    """5 runs under this seed."""
    run_machine(search, seed, runs=RUNS, steps=STEPS, shrinks=False)


def test_a_washed_lease_is_paid_on_the_chain_and_both_epochs_are_claimed(
    search: type[Search],
) -> None:
    """So the search has something to compare."""
    state = search()
    state.begin(terms=TERMS, has_cash=[True] * 4)
    for pay_with in ("burn", "cash"):
        state.wash("acct_r1", "node_evil1", pay_with, [PPM] * 4, False, PPM)
        state.end_epoch(burns=True)
    network = state.network
    assert isinstance(network, ChainNetwork)
    assert (network.claims, network.minted > 10**8) == (2, True)
    state.teardown()


def test_what_the_search_is_paid_in_token_is_there_on_the_chain(search: type[Search]) -> None:
    run_state_machine_as_test(
        search,
        settings=settings(
            max_examples=2,
            stateful_step_count=STEPS,
            suppress_health_check=QUIET,
            phases=[Phase.explicit, Phase.generate],
            deadline=None,
            print_blob=True,
        ),
    )
