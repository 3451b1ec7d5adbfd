"""Chain and ledger tell the same story, and every single lie is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from contracts.abi import artifact
from contracts.chain import Call
from contracts.deployment import role_id
from contracts.reconcile import (
    ChainTotals,
    LedgerTotals,
    Minted,
    SealedEpoch,
    read_chain,
    reconcile,
)
from contracts.tally import TOKEN_UNIT
from tests.contracts.stage import CAP, FILE_HASH, PRICE, Stage, account


def told() -> tuple[ChainTotals, LedgerTotals]:
    """Two epochs minted, one recycled from; 7 of 10 promised units claimed."""
    minted = tuple(
        Minted(epoch=epoch, amount=amount, ceiling=110, cap=100, settlement_id="aa")
        for epoch, amount in ((1, 90), (2, 104))
    )
    chain = ChainTotals(
        number=9,
        genesis_supply=1_000,
        total_supply=1_000 + 194 - 30,
        minted=minted,
        recyclable=16,
        burned_in=20,
        burned=30,
        purchase_ids=(1, 2),
        tokens_bought_with=20,
        credits_bought=40,
        claimed={account(1): 4, account(2): 3},
        claims_paid=7,
        claimed_total=7,
        committed_total=10,
        seq=2,
        roots_accepted=(1, 2),
        balance=194 - 7 + 5,
        donated=5,
        deployment=(),
    )
    ledger = LedgerTotals(
        sealed={1: SealedEpoch(90, "aa"), 2: SealedEpoch(104, "aa"), 3: SealedEpoch(50, "bb")},
        mint_due=50,
        distributor=187,
        lifetime={account(1): 6, account(2): 4},
        payouts_confirmed=7,
        purchases=2,
        credits_from_burns=40,
        tokens_burned=20,
    )
    return chain, ledger


def names(chain: ChainTotals, ledger: LedgerTotals) -> set[str]:
    return {difference.name for difference in reconcile(chain, ledger)}


def test_one_story_has_no_differences() -> None:
    assert reconcile(*told()) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"total_supply": 1_165}, {"total supply"}),
        ({"recyclable": 17}, {"recycled pool"}),
        ({"burned_in": 21, "recyclable": 17}, {"burns recorded"}),
        ({"claims_paid": 6}, {"claims paid"}),
        ({"claimed": {account(1): 4, account(2): 2}}, {"sum of claimed"}),
        ({"committed_total": 11}, {"committed"}),
        ({"balance": 191}, {"distributor balance", "ledger distributor"}),
        ({"donated": 0}, {"distributor balance", "ledger distributor"}),
        ({"roots_accepted": (1, 3)}, {"roots accepted"}),
        ({"purchase_ids": (1, 3)}, {"purchase ids"}),
        ({"credits_bought": 41}, {"credits from burns"}),
    ],
)
def test_a_lie_of_the_chain_is_named(change: dict[str, Any], found: set[str]) -> None:
    chain, ledger = told()
    assert names(replace(chain, **change), ledger) == found


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"mint_due": 49}, {"mint due"}),
        ({"distributor": 188}, {"ledger distributor"}),
        ({"payouts_confirmed": 8}, {"payouts confirmed"}),
        ({"purchases": 3}, {"purchases"}),
        ({"tokens_burned": 19}, {"tokens burned"}),
        ({"credits_from_burns": 0}, {"credits from burns"}),
        ({"lifetime": {account(1): 3, account(2): 7}}, {f"claimed by {account(1)} at most"}),
    ],
)
def test_a_lie_of_the_ledger_is_named(change: dict[str, Any], found: set[str]) -> None:
    chain, ledger = told()
    assert names(chain, replace(ledger, **change)) == found


def test_an_epoch_minted_without_a_seal_is_named() -> None:
    chain, ledger = told()
    sealed = {3: ledger.sealed[3], 1: ledger.sealed[1], 4: ledger.sealed[2]}
    assert names(chain, replace(ledger, sealed=sealed)) == {"epoch 2"}


def test_another_amount_or_file_than_was_sealed_is_named() -> None:
    chain, ledger = told()
    sealed = {**ledger.sealed, 1: SealedEpoch(91, "aa"), 3: SealedEpoch(49, "bb")}
    assert names(chain, replace(ledger, sealed=sealed)) == {"epoch 1 minted"}
    sealed = {**ledger.sealed, 1: SealedEpoch(90, "bb")}
    assert names(chain, replace(ledger, sealed=sealed)) == {"epoch 1 settlement"}


def test_a_mint_above_its_ceiling_is_named() -> None:
    chain, ledger = told()
    greedy = (chain.minted[0], replace(chain.minted[1], ceiling=103))
    assert names(replace(chain, minted=greedy), ledger) == {"epoch 2 ceiling"}


def test_a_hole_in_the_distributor_is_named() -> None:
    chain, ledger = told()
    empty = replace(chain, balance=2, claimed_total=7)
    assert "distributor holds at least" in names(empty, ledger)
    over = replace(chain, committed_total=6)
    assert "claimed at most" in names(over, ledger)


# Read from a real machine.


def bent_deployment(stage: Stage) -> None:
    who = stage.address("other")
    data = artifact("RewardsDistributor").call_data("grantRole", role_id("PROPOSER_ROLE"), who)
    stage.do("admin", Call(stage.at.distributor, data))


def burned_by_a_holder(stage: Stage) -> None:
    data = artifact("TallyToken").call_data("burn", TOKEN_UNIT)
    stage.do("user", Call(stage.at.token, data))


def donated_to_the_distributor(stage: Stage) -> None:
    stage.do("user", stage.tally.transfer(stage.at.distributor, TOKEN_UNIT))


def one_more_purchase(stage: Stage) -> None:
    stage.wait(120)
    stage.burn(1, stage.quote(2))


@pytest.mark.parametrize(
    ("act", "found"),
    [
        (bent_deployment, {"RewardsDistributor PROPOSER_ROLE"}),
        (burned_by_a_holder, set()),
        (donated_to_the_distributor, set()),
        (one_more_purchase, {"purchases", "credits from burns", "tokens burned"}),
    ],
)
def test_what_happened_on_chain_is_read_as_it_was(
    stage: Stage, act: Callable[[Stage], None], found: set[str]
) -> None:
    stage.give_tokens()
    stage.burn(5)
    stage.mint(1, CAP)
    tree = stage.publish({account(1): 60, account(2): 40})
    stage.do("relay", stage.claim_call(tree, 0))
    ledger = LedgerTotals(
        sealed={1: SealedEpoch(CAP, FILE_HASH.hex())},
        distributor=CAP - 60,
        lifetime={account(1): 60, account(2): 40},
        payouts_confirmed=60,
        purchases=1,
        credits_from_burns=5 * PRICE,
        tokens_burned=5 * TOKEN_UNIT,
    )
    assert reconcile(read_chain(stage.tally), ledger) == []
    act(stage)
    assert names(read_chain(stage.tally), ledger) == found


def test_an_earlier_block_can_still_be_read(stage: Stage) -> None:
    stage.mint(1, 100)
    tree = stage.publish({account(1): 100})
    before = stage.chain.head().number
    stage.do("relay", stage.claim_call(tree, 0))
    assert read_chain(stage.tally, number=before).claimed_total == 0
    assert read_chain(stage.tally).claimed_total == 100
