"""What the contract does with a proof, said in Python: the reference of the tests."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.payout_tree import PAYOUT_ENCODING, Row, keccak256


def leaf_hash(row: Row, encoding: Sequence[str] = PAYOUT_ENCODING) -> bytes:
    """The hash of one row; the row must already have passed `check_rows`."""
    words = b"".join(word(kind, value) for kind, value in zip(encoding, row, strict=True))
    return keccak256(keccak256(words))


def node_hash(one: bytes, other: bytes) -> bytes:
    return keccak256(one + other if one < other else other + one)


def word(kind: str, value: int | str) -> bytes:
    if kind == "address":
        return bytes(12) + bytes.fromhex(str(value)[2:])
    return int(value).to_bytes(32, "big")


def verify(
    root: bytes, row: Row, proof: Sequence[bytes], encoding: Sequence[str] = PAYOUT_ENCODING
) -> bool:
    """Whether `row` is a leaf under `root`.

    Takes the row and hashes it here: given a ready-made hash, an inner node would pass for a leaf.
    """
    node = leaf_hash(row, encoding)
    for sibling in proof:
        node = node_hash(node, sibling)
    return node == root
