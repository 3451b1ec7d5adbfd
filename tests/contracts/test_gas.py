"""What each act may cost at most. Gas is exact, so a rise is a change and not noise."""

from __future__ import annotations

from contracts.abi import CONTRACTS
from contracts.payout_tree import StandardTree, build
from contracts.tally import TOKEN_UNIT
from tests.contracts.stage import CAP, FILE_HASH, TIMELOCK_S, Stage, account

TEN_THOUSAND = 10_000


def big_tree(stage: Stage, total: int) -> StandardTree:
    """10,000 leaves: a proof of depth 13 or 14."""
    place = (stage.chain.chain_id, stage.at.distributor)
    return build([(*place, account(1_000 + n), total + n) for n in range(TEN_THOUSAND)])


def propose_and_accept(stage: Stage, tree: StandardTree) -> tuple[int, int]:
    committed = sum(int(row[-1]) for row in tree.rows)
    seq = stage.tally.seq() + 1
    call = stage.tally.propose_root(seq, tree.root, FILE_HASH, committed)
    proposed = stage.do("proposer", call).gas_used
    stage.wait(TIMELOCK_S)
    return proposed, stage.do("relay", stage.tally.accept_root()).gas_used


def test_deploying_the_four_contracts(stage: Stage) -> None:
    gas = []
    for block in range(stage.at.block, stage.at.block + len(CONTRACTS)):
        (transaction,) = stage.devnet.w3.eth.get_block(block)["transactions"]
        receipt = stage.chain.receipt("0x" + bytes(transaction).hex())  # type: ignore[arg-type]
        assert receipt is not None
        assert receipt.contract is not None
        gas.append(receipt.gas_used)
    assert sum(gas) <= 8_900_000


def test_burning_and_minting(stage: Stage) -> None:
    stage.give_tokens()
    price = stage.quote()
    first = stage.burn(100, price).gas_used
    same_round = stage.burn(100, price).gas_used
    stage.wait(120)
    next_round = stage.burn(100, stage.quote(2)).gas_used
    mint = stage.mint(1, CAP + 200 * TOKEN_UNIT).gas_used
    assert first <= 130_000
    assert same_round <= 85_000
    assert next_round <= 90_000
    assert mint <= 95_000


def test_proposing_accepting_and_vetoing(stage: Stage) -> None:
    stage.mint(1, CAP)
    first = propose_and_accept(stage, big_tree(stage, 10**6))
    second = propose_and_accept(stage, big_tree(stage, 10**6 + 1))
    assert max(first[0], second[0]) <= 140_000
    assert first[1] <= 120_000
    assert second[1] <= 55_000
    stage.do("proposer", stage.tally.propose_root(3, FILE_HASH, FILE_HASH, CAP))
    assert stage.do("guardian", stage.tally.veto_root(FILE_HASH)).gas_used <= 45_000


def test_claiming(stage: Stage) -> None:
    stage.mint(1, CAP)
    tree = big_tree(stage, 10**6)
    propose_and_accept(stage, tree)
    assert stage.do("relay", stage.claim_call(tree, 0)).gas_used <= 125_000
    assert stage.do("relay", stage.claim_call(tree, 1)).gas_used <= 115_000
    many = [
        (str(tree.rows[n][2]), int(tree.rows[n][3]), tree.proof(n)) for n in range(100, 9_900, 98)
    ]
    assert len(many) == 100
    assert stage.do("relay", stage.tally.claim_many(many)).gas_used // 100 <= 68_000
    again = big_tree(stage, 10**6 + 777)
    propose_and_accept(stage, again)
    assert stage.do("relay", stage.claim_call(again, 1)).gas_used <= 75_000
