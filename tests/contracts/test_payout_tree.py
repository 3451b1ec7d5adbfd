"""The tree is OpenZeppelin's, and no wrong leaf ever passes for a right one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.payout_tree import (
    PAYOUT_ENCODING,
    CommittedMismatch,
    Row,
    TotalFell,
    build,
    conform,
    keccak256,
    load,
    payout_tree,
)
from domain.chain.reasons import ChainReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.reasons import reason_of
from domain.refusal import Reason, Refused
from tests.contracts.payout_proofs import leaf_hash, verify
from tests.contracts.stage import account
from tests.examples import examples

VECTORS = json.loads((Path(__file__).parent / "openzeppelin_trees.json").read_bytes())["trees"]
CHAIN_ID, DISTRIBUTOR = 31337, account(0xD)

totals = st.dictionaries(
    st.integers(1, 2**160 - 1).map(account), st.integers(1, 2**200), min_size=1, max_size=40
)


def tree_of(lifetime: dict[str, int], previous: dict[str, int] | None = None) -> Any:
    return payout_tree(
        CHAIN_ID,
        DISTRIBUTOR,
        list(lifetime.items()),
        previous=previous or {},
        committed=sum(lifetime.values()),
    )


def case(*rows: tuple[str, ...]) -> dict[str, Any]:
    return {"leaf_encoding": ["address", "uint256"], "values": [list(row) for row in rows]}


@pytest.mark.parametrize("vector", VECTORS, ids=[str(vector["count"]) for vector in VECTORS])
def test_roots_proofs_and_dumps_equal_openzeppelins(vector: dict[str, Any]) -> None:
    rows = [entry["value"] for entry in vector["dump"]["values"]]
    answer = conform({"leaf_encoding": list(PAYOUT_ENCODING), "values": rows})
    assert answer == {"root": vector["root"], "proofs": vector["proofs"]}
    assert load(vector["dump"]).dump() == vector["dump"]


def test_keccak_is_ethereums_and_not_the_standard_sha3() -> None:
    empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert keccak256(b"").hex() == empty


def test_a_tree_of_one_leaf_is_its_leaf_with_an_empty_proof() -> None:
    tree = tree_of({account(1): 5})
    assert tree.root == leaf_hash(tree.rows[0])
    assert tree.proof(0) == []


@examples(60)
@given(totals)
def test_every_proof_of_a_random_tree_verifies(lifetime: dict[str, int]) -> None:
    tree = tree_of(lifetime)
    for index, row in enumerate(tree.rows):
        assert verify(tree.root, row, tree.proof(index))


@examples(60)
@given(totals, st.data())
def test_any_changed_bit_of_leaf_or_proof_fails(lifetime: dict[str, int], data: Any) -> None:
    tree = tree_of(lifetime)
    index = data.draw(st.integers(0, len(tree.rows) - 1))
    row, proof = tree.rows[index], tree.proof(index)
    words = [int(str(field), 0) for field in row]
    widths = (256, 160, 160, 256)
    place = data.draw(st.integers(0, len(words) + len(proof) - 1))
    if place < len(words):
        words[place] ^= 1 << data.draw(st.integers(0, widths[place] - 1))
    else:
        node = bytearray(proof[place - len(words)])
        node[data.draw(st.integers(0, 31))] ^= 1 << data.draw(st.integers(0, 7))
        proof[place - len(words)] = bytes(node)
    changed: Row = (words[0], account(words[1]), account(words[2]), words[3])
    assert not verify(tree.root, changed, proof)


@examples(30)
@given(totals, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_change_the_root(
    lifetime: dict[str, int], shuffler: Any
) -> None:
    items = list(lifetime.items())
    shuffler.shuffle(items)
    assert tree_of(dict(items)).root == tree_of(lifetime).root


def test_an_inner_node_never_passes_for_a_leaf() -> None:
    tree = tree_of({account(n): n for n in range(1, 5)})
    left, right = tree.hashes[1], tree.hashes[2]
    assert keccak256(min(left, right) + max(left, right)) == tree.root
    assert not any(leaf_hash(row) in (left, right) for row in tree.rows)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], ChainReason.EMPTY_TREE),
        ([("0x12", "-1")], PartiesReason.BAD_ADDRESS),
        ([(account(1), "0"), ("11" * 21, "5")], PartiesReason.BAD_ADDRESS),
        ([(account(1), "0"), (account(2), str(2**256))], PricesReason.AMOUNT_OUT_OF_RANGE),
        ([(account(1), "0"), (account(2), "-1")], PricesReason.AMOUNT_OUT_OF_RANGE),
        ([(account(1), "5"), (account(1), "5"), (account(2), "0")], PricesReason.ZERO_AMOUNT),
        ([(account(1), "5"), (account(1), "5")], "duplicate_leaf"),
        ([(account(1), "5"), (account(1), "6")], "duplicate_leaf"),
        ([(account(1), "5"), (account(2), "5"), (account(1), "6")], "duplicate_leaf"),
        ([(account(0xAB), "5"), (account(0xAB).upper().replace("X", "x"), "6")], "duplicate_leaf"),
    ],
)
def test_refusals_come_in_the_order_of_the_suite(
    rows: list[tuple[str, ...]], reason: Reason | str
) -> None:
    with pytest.raises(Refused) as caught:
        conform(case(*rows))
    assert caught.value.reason is (reason if isinstance(reason, Reason) else reason_of(reason))


def test_a_falling_total_is_refused() -> None:
    with pytest.raises(TotalFell):
        tree_of({account(1): 4}, previous={account(1): 5})


def test_a_total_that_stays_is_taken() -> None:
    """The commonest case: who earned nothing this epoch is in the tree with what was there."""
    same = tree_of({account(1): 5}, previous={account(1): 5})
    assert same.root == tree_of({account(1): 5}).root


def test_a_vanished_account_is_a_falling_total() -> None:
    with pytest.raises(TotalFell):
        tree_of({account(1): 5}, previous={account(2).upper().replace("X", "x"): 1})


def test_leaves_must_add_up_to_what_is_committed() -> None:
    with pytest.raises(CommittedMismatch):
        payout_tree(CHAIN_ID, DISTRIBUTOR, [(account(1), 5)], previous={}, committed=6)


def test_a_dump_with_a_swapped_node_is_not_loaded() -> None:
    dump = build([(1, DISTRIBUTOR, account(n), n) for n in (1, 2, 3)]).dump()
    dump["tree"][1], dump["tree"][2] = dump["tree"][2], dump["tree"][1]
    with pytest.raises(ValueError, match="not the tree of its values"):
        load(dump)
