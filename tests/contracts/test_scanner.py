"""Events come out once, final, and in order, over reorganisations, restarts and stubborn nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contracts.chain import Chain, NodeFailed
from contracts.scanner import FinalityBroken, Observation, Scanner, ScannerStore
from contracts.tally import TOKEN_UNIT, Event, Tally
from tests.contracts.fakes import MemoryScans
from tests.contracts.stage import ACCOUNT_REF, CAP, PRICE, Stage, account

FINALITY = 3


class Waiting(Chain):
    """The embedded chain, final only some blocks behind its head."""

    def finalized(self) -> int:
        return max(-1, self.head().number - FINALITY)


@pytest.fixture
def new_store() -> Callable[[], ScannerStore]:
    """Opens the store again, as after a restart."""
    memory = MemoryScans()
    return lambda: memory


def scanner(stage: Stage, store: ScannerStore, *, waits: bool = False) -> Scanner:
    blocks = Waiting(stage.devnet.w3) if waits else stage.chain
    return Scanner(store, blocks, stage.tally, first=stage.at.block)


def drain(scan: Scanner) -> list[Observation]:
    scan.catch_up()
    effects = scan.effects()
    for effect in effects:
        scan.done(effect)
    return effects


def test_the_whole_flow_comes_out_in_order_and_once(
    stage: Stage, new_store: Callable[[], ScannerStore]
) -> None:
    stage.give_tokens()
    stage.burn(5)
    stage.mint(1, CAP)
    tree = stage.publish({account(1): 7})
    stage.do("relay", stage.claim_call(tree, 0))
    effects = drain(scanner(stage, new_store()))
    assert [effect.event for effect in effects] == [
        "CreditsPurchased",
        "EpochMinted",
        "RootProposed",
        "RootAccepted",
        "Claimed",
    ]
    bought, claimed = effects[0].arguments, effects[-1].arguments
    assert bought["accountRef"] == "0x" + ACCOUNT_REF.hex()
    assert (bought["credits"], bought["tokensBurned"]) == (str(5 * PRICE), str(5 * TOKEN_UNIT))
    assert claimed == {"account": account(1), "seq": "1", "amount": "7", "cumulative": "7"}
    assert len({effect.effect_key for effect in effects}) == 5
    assert drain(scanner(stage, new_store())) == []


def test_an_effect_the_ledger_has_not_taken_comes_out_again(
    stage: Stage, new_store: Callable[[], ScannerStore]
) -> None:
    stage.give_tokens()
    stage.burn(5)
    first = scanner(stage, new_store())
    first.catch_up()
    waiting = first.effects()
    assert len(waiting) == 1
    again = scanner(stage, new_store())  # died before `done`
    again.catch_up()
    assert again.effects() == waiting


def test_nothing_comes_out_before_it_is_final(
    stage: Stage, new_store: Callable[[], ScannerStore]
) -> None:
    stage.give_tokens()
    stage.burn(5)
    assert drain(scanner(stage, new_store(), waits=True)) == []
    stage.devnet.mine(FINALITY - 1)
    assert drain(scanner(stage, new_store(), waits=True)) == []
    stage.devnet.mine()
    (effect,) = drain(scanner(stage, new_store(), waits=True))
    assert effect.event == "CreditsPurchased"


def test_a_reorganised_purchase_counts_once_where_it_ended_up(
    stage: Stage, new_store: Callable[[], ScannerStore]
) -> None:
    stage.give_tokens()
    stage.devnet.mine(FINALITY)
    before = stage.devnet.snapshot()
    price = stage.quote()
    stage.burn(5, price)
    scan = scanner(stage, new_store(), waits=True)
    scan.catch_up()
    stage.devnet.revert(before)
    stage.devnet.mine()
    moved = stage.burn(5, price)
    stage.devnet.mine(FINALITY)
    (effect,) = drain(scanner(stage, new_store(), waits=True))
    assert (effect.block_number, effect.block_hash) == (moved.block_number, moved.block_hash)


def test_a_purchase_that_a_reorganisation_undid_never_comes_out(
    stage: Stage, new_store: Callable[[], ScannerStore]
) -> None:
    stage.give_tokens()
    stage.devnet.mine(FINALITY)
    before = stage.devnet.snapshot()
    stage.burn(5)
    scanner(stage, new_store(), waits=True).catch_up()
    stage.devnet.revert(before)
    stage.wait(1_000)
    stage.devnet.mine(FINALITY + 1)
    assert drain(scanner(stage, new_store(), waits=True)) == []


def test_something_final_that_disappears_stops_the_scanner(
    stage: Stage, new_store: Callable[[], ScannerStore]
) -> None:
    before = stage.devnet.snapshot()
    stage.give_tokens()
    stage.burn(5)
    drain(scanner(stage, new_store()))
    stage.devnet.revert(before)
    stage.wait(1_000)
    stage.devnet.mine(5)
    for _ in range(2):
        with pytest.raises(FinalityBroken):
            scanner(stage, new_store()).catch_up()


@pytest.mark.parametrize("is_read_on", [True, False])
def test_a_block_that_became_final_after_it_was_read_may_not_go_either(
    stage: Stage, new_store: Callable[[], ScannerStore], is_read_on: bool
) -> None:
    stage.give_tokens()
    before = stage.devnet.snapshot()
    stage.burn(5)
    scan = scanner(stage, new_store(), waits=True)
    scan.catch_up()  # the hash is remembered, not final yet
    stage.devnet.mine(FINALITY)
    if is_read_on:
        scanner(stage, new_store(), waits=True).catch_up()
    else:
        (effect,) = scanner(stage, new_store()).effects()  # final to another node's taste
        scan.done(effect)
    stage.devnet.revert(before)
    stage.wait(1_000)
    stage.devnet.mine(5)
    with pytest.raises(FinalityBroken):
        scanner(stage, new_store(), waits=True).catch_up()


def test_a_range_the_node_refuses_is_halved(
    stage: Stage, new_store: Callable[[], ScannerStore]
) -> None:
    stage.give_tokens()
    stage.burn(5)
    stage.devnet.mine(20)

    asked: list[int] = []

    class Stubborn(Tally):
        def events(self, first: int, last: int) -> list[Event]:
            asked.append(last - first + 1)
            if last - first >= 4:
                raise NodeFailed("query returned more than 10000 results")
            return super().events(first, last)

    source = Stubborn(stage.chain, stage.at)
    scan = Scanner(new_store(), stage.chain, source, first=stage.at.block)
    assert [effect.event for effect in drain(scan)] == ["CreditsPurchased"]
    assert max(asked) > 4


def test_a_chain_that_moves_while_it_is_read_is_read_again(stage: Stage) -> None:
    """Logs of one branch with block hashes of another must never be kept."""
    stage.give_tokens()
    stage.devnet.mine(FINALITY)
    before = stage.devnet.snapshot()
    price = stage.quote()
    stage.burn(5, price)

    class Moving(Tally):
        moved = False

        def events(self, first: int, last: int) -> list[Event]:
            found = super().events(first, last)
            if not self.moved:
                self.moved = True
                stage.devnet.revert(before)
                stage.devnet.mine(2)
                stage.burn(5, price)
            return found

    store, chain = MemoryScans(), Waiting(stage.devnet.w3)
    scan = Scanner(store, chain, Moving(chain, stage.at), first=stage.at.block)
    scan.catch_up()
    scan.catch_up()
    stage.devnet.mine(FINALITY)
    (effect,) = drain(scan)
    block = stage.chain.block(effect.block_number)
    assert block is not None
    assert block.hash == effect.block_hash
    assert store.orphans == []
