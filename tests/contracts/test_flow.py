"""Burn, mint, root, timelock, claim: the whole way, and the ways in which it may not be bent."""

from __future__ import annotations

import pytest

from contracts.abi import artifact
from contracts.chain import Call, TransactionReverted
from contracts.payout_tree import payout_tree
from contracts.reconcile import LedgerTotals, SealedEpoch, read_chain, reconcile
from contracts.signers import LocalKeySigner
from contracts.tally import TOKEN_UNIT
from tests.contracts.stage import (
    ACCOUNT_REF,
    CAP,
    DAY_S,
    FILE_HASH,
    PRICE,
    RECYCLE_CAP,
    TIMELOCK_S,
    Stage,
    account,
)

ALWAYS_VALID_ERC1271 = "6d631626ba7e60e01b5f5260205ff35f52600e6012f3"
"""Init code of a contract that approves every signature: returns 0x1626ba7e to any call."""


def test_from_a_burn_to_a_claim_the_books_of_chain_and_ledger_agree(stage: Stage) -> None:
    stage.give_tokens()
    stage.burn(100)
    stage.mint(1, CAP + 100 * TOKEN_UNIT)
    totals = {account(1): CAP, account(2): 99 * TOKEN_UNIT, account(3): TOKEN_UNIT}
    tree = stage.publish(totals)
    for index in range(3):
        stage.do("relay", stage.claim_call(tree, index))
    assert stage.tally.balance(account(2)) == 99 * TOKEN_UNIT
    assert stage.tally.balance(stage.at.distributor) == 0
    ledger = LedgerTotals(
        sealed={1: SealedEpoch(CAP + 100 * TOKEN_UNIT, FILE_HASH.hex())},
        lifetime=totals,
        payouts_confirmed=CAP + 100 * TOKEN_UNIT,
        purchases=1,
        credits_from_burns=100 * PRICE,
        tokens_burned=100 * TOKEN_UNIT,
    )
    assert reconcile(read_chain(stage.tally), ledger) == []


def test_a_purchase_tells_the_ledger_whom_to_credit(stage: Stage) -> None:
    stage.give_tokens()
    receipt = stage.burn(100)
    told = {
        event.name: event.arguments
        for event in stage.tally.events(receipt.block_number, receipt.block_number)
    }
    assert told["CreditsPurchased"] == {
        "purchaseId": 1,
        "payer": stage.address("user").lower(),
        "accountRef": ACCOUNT_REF,
        "memo": bytes(32),
        "tokensBurned": 100 * TOKEN_UNIT,
        "credits": stage.quote().quote.credits(100 * TOKEN_UNIT),
        "round": 1,
    }
    assert told["PriceAccepted"] == {"round": 1, "microUsdPerToken": PRICE}
    assert told["BurnRecorded"] == {"epoch": 1, "amount": 100 * TOKEN_UNIT}


@pytest.mark.parametrize("price", [PRICE * 13 // 10, PRICE * 7 // 10])
def test_s_l17_after_a_quiet_month_the_true_price_buys_at_once(stage: Stage, price: int) -> None:
    stage.give_tokens()
    stage.burn(1)
    stage.wait(30 * DAY_S)
    stage.burn(1, stage.quote(2, price))
    stage.wait(60)
    jump = stage.quote(3, price * 6 // 5 + 1)
    refused = stage.refuse("user", stage.tally.burn_for_credits(1, jump, account_ref=ACCOUNT_REF))
    assert refused.error == "PriceMoveTooLarge", "the month counts once"


def test_s_l17_a_stolen_admin_key_does_not_act_at_once(stage: Stage) -> None:
    assert stage.at.terms.admin_delay_s >= 2 * DAY_S
    thief = stage.address("other")
    for contract in ("CreditBurner", "EmissionController", "RewardsDistributor"):
        address = stage.at.address(contract)
        begin = artifact(contract).call_data("beginDefaultAdminTransfer", thief)
        stage.do("admin", Call(address, begin))
        accept = Call(address, artifact(contract).call_data("acceptDefaultAdminTransfer"))
        stage.wait(DAY_S)
        refused = stage.refuse("other", accept)
        assert refused.error == "AccessControlEnforcedDefaultAdminDelay"
        cancel = artifact(contract).call_data("cancelDefaultAdminTransfer")
        stage.do("admin", Call(address, cancel))


def test_purchase_ids_are_dense_from_one(stage: Stage) -> None:
    stage.give_tokens()
    price = stage.quote()
    for _ in range(3):
        stage.burn(1, price)
    events = stage.tally.events(stage.at.block, stage.chain.head().number)
    ids = [e.arguments["purchaseId"] for e in events if e.name == "CreditsPurchased"]
    assert ids == [1, 2, 3]


def test_a_smoothed_release_mints_in_an_epoch_without_burns(stage: Stage) -> None:
    stage.give_tokens(500)
    stage.burn(300)
    stage.mint(1, CAP + 100 * TOKEN_UNIT)
    assert stage.tally.recyclable() == 200 * TOKEN_UNIT
    stage.mint(2, CAP + 200 * TOKEN_UNIT)  # nothing was burned in epoch 2
    assert stage.tally.recyclable() == 0
    assert (stage.tally.burned_in(1), stage.tally.burned_in(2)) == (300 * TOKEN_UNIT, 0)
    assert stage.tally.ceiling(3) == stage.tally.cap(3) == CAP


def test_a_mint_within_the_schedule_leaves_the_recycled_pool_alone(stage: Stage) -> None:
    stage.give_tokens(5_000)
    stage.burn(5_000)
    assert stage.tally.ceiling(1) == CAP + RECYCLE_CAP
    stage.mint(1, CAP)
    assert stage.tally.recyclable() == 5_000 * TOKEN_UNIT


def test_an_epoch_without_rewards_mints_nothing_and_keeps_the_order(stage: Stage) -> None:
    stage.mint(1, 0)
    assert stage.tally.next_epoch() == 2
    assert stage.tally.balance(stage.at.distributor) == 0


def test_the_schedule_ends_after_its_last_period(stage: Stage) -> None:
    assert [stage.tally.cap(epoch) for epoch in (0, 1, 365, 366, 730, 731)] == [
        0,
        CAP,
        CAP,
        CAP // 2,
        CAP // 2,
        0,
    ]


def test_a_later_root_pays_only_the_difference(stage: Stage) -> None:
    stage.mint(1, 1_000)
    stage.do("relay", stage.claim_call(stage.publish({account(1): 100, account(2): 50}), 0))
    second = stage.publish({account(1): 130, account(2): 50})
    stage.do("relay", stage.claim_call(second, 0))
    assert stage.tally.balance(account(1)) == stage.tally.claimed(account(1)) == 130
    stage.do("relay", stage.claim_call(second, 1))  # missed the first root, lost nothing
    assert stage.tally.balance(account(2)) == 50


def test_a_stale_proof_is_refused(stage: Stage) -> None:
    stage.mint(1, 1_000)
    first = stage.publish({account(1): 100, account(2): 50})
    stage.publish({account(1): 130, account(2): 80})
    assert stage.refuse("relay", stage.claim_call(first, 0)).error == "BadProof"


@pytest.mark.parametrize("bound_to", ["another distributor", "another chain"])
def test_a_leaf_of_another_deployment_is_refused(stage: Stage, bound_to: str) -> None:
    chain_id = stage.chain.chain_id + (bound_to == "another chain")
    where = stage.at.burner if bound_to == "another distributor" else stage.at.distributor
    totals = [(account(1), 60), (account(2), 40)]
    tree = payout_tree(chain_id, where, totals, previous={}, committed=100)
    stage.mint(1, 100)
    stage.do("proposer", stage.tally.propose_root(1, tree.root, FILE_HASH, 100))
    stage.wait(TIMELOCK_S)
    stage.do("relay", stage.tally.accept_root())
    assert stage.refuse("relay", stage.claim_call(tree, 0)).error == "BadProof"


def test_a_vetoed_root_is_proposed_again_under_the_same_number(stage: Stage) -> None:
    stage.mint(1, 1_000)
    stage.propose({account(1): 999})
    pending = stage.tally.pending()
    assert pending is not None
    assert (pending.seq, pending.committed) == (1, 999)
    stage.do("guardian", stage.tally.veto_root(b"\x01" * 32))
    assert stage.tally.pending() is None
    assert stage.tally.seq() == 0
    tree = stage.publish({account(1): 100})
    assert stage.tally.seq() == 1
    assert stage.tally.root() == "0x" + tree.root.hex()
    stage.do("relay", stage.claim_call(tree, 0))
    assert stage.tally.balance(account(1)) == 100


def test_a_late_veto_wins_when_the_guardian_pauses_first(stage: Stage) -> None:
    stage.mint(1, 100)
    stage.propose({account(1): 100})
    stage.wait(TIMELOCK_S)
    stage.do("guardian", stage.tally.pause("RewardsDistributor"))
    assert stage.refuse("relay", stage.tally.accept_root()).error == "EnforcedPause"
    stage.do("guardian", stage.tally.veto_root(b"\x01" * 32))
    stage.do("admin", stage.tally.unpause("RewardsDistributor"))
    assert stage.refuse("relay", stage.tally.accept_root()).error == "NoPending"


def test_relayed_claims_skip_accounts_that_are_up_to_date(stage: Stage) -> None:
    stage.mint(1, 600)
    tree = stage.publish({account(n): 100 * n for n in (1, 2, 3)})
    stage.do("relay", stage.claim_call(tree, 1))
    rows = [(str(row[2]), int(row[3]), tree.proof(n)) for n, row in enumerate(tree.rows)]
    stage.do("relay", stage.tally.claim_many(rows))
    stage.do("relay", stage.tally.claim_many(rows))
    assert [stage.tally.balance(account(n)) for n in (1, 2, 3)] == [100, 200, 300]
    assert stage.tally.claimed_total() == stage.tally.committed_total() == 600


def test_a_permit_buys_without_an_approval(stage: Stage) -> None:
    stage.do("admin", stage.tally.transfer(stage.address("user"), TOKEN_UNIT))
    call = _permit_call(stage)
    stage.do("user", call)
    assert stage.tally.balance(stage.address("user")) == 0


def test_a_front_run_permit_does_not_block_the_purchase(stage: Stage) -> None:
    stage.do("admin", stage.tally.transfer(stage.address("user"), TOKEN_UNIT))
    call = _permit_call(stage)
    user, deadline_s = stage.people["user"], stage.now_s + 60
    signature = stage.tally.sign_permit(user, TOKEN_UNIT, deadline_s=deadline_s)
    stolen = _permit(stage, signature, deadline_s)
    stage.do("other", stolen)  # somebody spends the permit first
    assert stage.refuse("other", stolen).error == "ERC2612InvalidSigner"
    stage.do("user", call)
    assert stage.tally.balance(stage.address("user")) == 0


def test_a_contract_may_be_the_oracle(stage: Stage) -> None:
    stage.give_tokens()
    made = stage.chain.execute(stage.people["other"], deploy=bytes.fromhex(ALWAYS_VALID_ERC1271))
    assert made.contract is not None
    stage.do("oracle_admin", stage.tally.set_oracle(made.contract, PRICE))
    stage.burn(1, stage.quote(signer=stage.people["other"]))


def test_a_key_that_used_up_the_rounds_is_overcome_by_a_new_oracle(stage: Stage) -> None:
    stage.give_tokens()
    stage.burn(1, stage.quote(2**64 - 1))
    stage.wait(120)
    call = stage.tally.burn_for_credits(TOKEN_UNIT, stage.quote(3), account_ref=ACCOUNT_REF)
    assert stage.refuse("user", call).error == "QuoteStale"
    stage.do("oracle_admin", stage.tally.set_oracle(stage.address("other"), PRICE))
    stage.burn(1, stage.quote(1, signer=stage.people["other"]))


def test_holders_can_always_leave(stage: Stage) -> None:
    """No pause and no role stands between a holder and a transfer."""
    stage.give_tokens()
    for contract in ("RewardsDistributor", "EmissionController", "CreditBurner"):
        stage.do("guardian", stage.tally.pause(contract))
    stage.do("user", stage.tally.transfer(account(9), TOKEN_UNIT))
    assert stage.tally.balance(account(9)) == TOKEN_UNIT


def test_a_mined_revert_is_an_error_of_its_own(stage: Stage) -> None:
    """Between estimate and block the world can change; `execute` must not call that done."""
    stage.mint(1, 100)
    tree = stage.publish({account(1): 100})
    first = stage.claim_call(tree, 0)

    class Hasty(LocalKeySigner):
        """Lets somebody else claim between the estimate and the send."""

        def sign_transaction(self, transaction: object) -> bytes:
            stage.do("other", first)
            return super().sign_transaction(transaction)  # type: ignore[arg-type]

    hasty = Hasty(stage.devnet.keys[8], stage.chain.chain_id)
    with pytest.raises(TransactionReverted):
        stage.chain.execute(hasty, first)


def _permit_call(stage: Stage) -> Call:
    return stage.tally.burn_with_permit(
        stage.people["user"],
        TOKEN_UNIT,
        stage.quote(),
        deadline_s=stage.now_s + 60,
        account_ref=ACCOUNT_REF,
    )


def _permit(stage: Stage, signature: bytes, deadline_s: int) -> Call:
    who = (stage.address("user"), stage.at.burner, TOKEN_UNIT, deadline_s)
    split = (signature[64], signature[:32], signature[32:64])
    return Call(stage.at.token, artifact("TallyToken").call_data("permit", *who, *split))
