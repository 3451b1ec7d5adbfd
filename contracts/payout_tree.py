"""The payout tree: OpenZeppelin's StandardMerkleTree ("standard-v1"), byte for byte.

    leaf = keccak256(keccak256(abi.encode(row)))      node = keccak256(min || max)
    tree = 2n - 1 hashes: root at 0, children of k at 2k+1 and 2k+2, i-th smallest leaf at 2n-2-i

A leaf is hashed twice, so no inner node can pass for one. keccak-256 is Ethereum's hash and is
not `hashlib.sha3_256`. This file knows trees and totals; it knows neither chain nor ledger.

    sum(leaves) == committed      and      leaf(account) never falls from one root to the next
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

import sha3

from domain.chain.reasons import ChainReason
from domain.epochs.lanes import Map
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused

PAYOUT_ENCODING = ("uint256", "address", "address", "uint256")
"""Chain id, distributor, account, lifetime total in token units."""

WORD_END = 1 << 256

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")

LEAVES_AT_ONCE = 16_384

Row = tuple[int | str, ...]
"""The fields of one leaf in the order of the encoding: int for uint256, 0x-text for address."""


class TotalFell(Exception):
    """An account's lifetime total is below the one in the previous root."""


class CommittedMismatch(Exception):
    """The leaves do not add up to the total that the ledger commits to."""


def keccak256(data: bytes) -> bytes:
    """Ethereum's hash."""
    digest: bytes = sha3.keccak_256(data).digest()
    return digest


@dataclass(frozen=True, slots=True)
class StandardTree:
    """A built tree: its rows, its 2n - 1 hashes, and where each row's leaf stands."""

    rows: Sequence[Row]
    hashes: Sequence[bytes]
    index_by_row: Sequence[int]
    encoding: Sequence[str]

    @property
    def root(self) -> bytes:
        return self.hashes[0]

    def proof(self, row_index: int) -> list[bytes]:
        """Sibling hashes from the row's leaf up to the root; empty for a tree of one leaf."""
        at_index = self.index_by_row[row_index]
        siblings = []
        while at_index > 0:
            siblings.append(self.hashes[at_index + (1 if at_index % 2 else -1)])
            at_index = (at_index - 1) // 2
        return siblings

    def dump(self) -> dict[str, Any]:
        """The library's own file form: everything needed to load, prove and check it elsewhere."""
        return {
            "format": "standard-v1",
            "leafEncoding": list(self.encoding),
            "tree": [_hex(node) for node in self.hashes],
            "values": [
                {"value": [str(field) for field in row], "treeIndex": index}
                for row, index in zip(self.rows, self.index_by_row, strict=True)
            ],
        }


def build(
    rows: Sequence[Row], encoding: Sequence[str] = PAYOUT_ENCODING, *, apply: Map = map
) -> StandardTree:
    """The tree over `rows`; proofs keep the order of the rows, the root does not depend on it.
    Leaves are hashed by `apply`, a slice of rows at a time: `map`, or what shares work out.

    Raises Refused, in this order: EMPTY_TREE, BAD_ADDRESS, AMOUNT_OUT_OF_RANGE, ZERO_AMOUNT (last
    field), DUPLICATE_LEAF (equal in all fields but the last). Rule: conformance suite `merkle`.
    """
    check_rows(rows, encoding)
    keccak = sha3.keccak_256  # bound once: what follows is the time of a large tree
    slices = (rows[at : at + LEAVES_AT_ONCE] for at in range(0, len(rows), LEAVES_AT_ONCE))
    hashed = apply(partial(_leaves, tuple(encoding)), slices)
    leaves = [leaf for some in hashed for leaf in some]
    count = len(leaves)
    order = sorted(range(count), key=leaves.__getitem__)
    index_by_row = [0] * count
    for rank, row_index in enumerate(order):
        index_by_row[row_index] = 2 * count - 2 - rank
    hashes = [leaves[row_index] for row_index in order]  # back to front: the root comes last
    following = iter(hashes)
    for one, other in zip(following, following, strict=False):  # reads what it appends
        hashes.append(keccak(one + other if one < other else other + one).digest())
    hashes.reverse()
    return StandardTree(tuple(rows), hashes, index_by_row, tuple(encoding))


def _leaves(encoding: Sequence[str], rows: Sequence[Row]) -> list[bytes]:
    keccak = sha3.keccak_256
    columns = zip(*rows, strict=True)
    words = [_words(kind, column) for kind, column in zip(encoding, columns, strict=True)]
    return [keccak(keccak(b"".join(row)).digest()).digest() for row in zip(*words, strict=True)]


def check_rows(rows: Sequence[Row], encoding: Sequence[str] = PAYOUT_ENCODING) -> None:
    """Raise like `build`, without building."""
    if not rows:
        raise Refused(ChainReason.EMPTY_TREE)
    kinds = tuple(encoding)
    assert set(kinds) <= {"address", "uint256"}, encoding
    assert all(len(row) == len(kinds) for row in rows), "a row has another number of fields"
    columns = list(zip(kinds, zip(*rows, strict=True), strict=True))
    for kind, column in columns:
        for value in dict.fromkeys(column) if kind == "address" else ():
            if not _ADDRESS.fullmatch(str(value)):
                raise Refused(PartiesReason.BAD_ADDRESS, address=value)
    for kind, column in columns:
        for value in dict.fromkeys(column) if kind == "uint256" else ():
            if not 0 <= int(value) < WORD_END:
                raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, amount=value)
    for row in rows:
        if int(row[-1]) == 0:
            raise Refused(PricesReason.ZERO_AMOUNT, row=row)
    varying = [column for _, column in columns[:-1] if not _is_same(column)]
    seen = set()
    for row, key in zip(rows, _keys(varying), strict=False):
        if key in seen:
            raise Refused(ChainReason.DUPLICATE_LEAF, row=row)
        seen.add(key)


def _keys(columns: Sequence[Sequence[int | str]]) -> Iterable[Any]:
    """What tells rows apart, addresses in one case; the same for all where nothing does."""
    lowered = [
        [value.lower() if isinstance(value, str) else value for value in column]
        for column in columns
    ]
    if len(lowered) == 1:
        return lowered[0]
    return zip(*lowered, strict=True) if lowered else repeat(())


def _is_same(column: Sequence[int | str]) -> bool:
    return column.count(column[0]) == len(column)


def payout_tree(
    chain_id: int,
    distributor: str,
    totals: Sequence[tuple[str, int]],
    *,
    previous: Mapping[str, int],
    committed: int,
    apply: Map = map,
) -> StandardTree:
    """The tree of one root: a leaf per account with the lifetime total it may have claimed.

    `totals` is (account address, lifetime total in token units); `previous` the totals of the last
    accepted root, by address in any case; `committed` the sum that the ledger stands for.
    `apply` as in `build`. Raises Refused like it, TotalFell when an account has less than before or
    is missing, CommittedMismatch when the leaves do not add up. Corrections go into later epochs.
    """
    rows: list[Row] = [(chain_id, distributor, account, total) for account, total in totals]
    tree = build(rows, apply=apply)
    now = {account.lower(): total for account, total in totals}
    for account, before in previous.items():
        if now.get(account.lower(), 0) < before:
            raise TotalFell(f"{account}: {now.get(account.lower(), 0)} after {before}")
    if sum(now.values()) != committed:
        raise CommittedMismatch(f"leaves {sum(now.values())}, committed {committed}")
    return tree


def load(dump: Mapping[str, Any]) -> StandardTree:
    """A tree from its file form, rebuilt from the values alone and compared with what is written.

    Raises ValueError when the file is not the tree of its values; Refused like `build`.
    """
    encoding = tuple(dump["leafEncoding"])
    rows = [_row(encoding, entry["value"]) for entry in dump["values"]]
    tree = build(rows, encoding)
    if tree.dump() != dict(dump):
        raise ValueError("the tree in the file is not the tree of its values")
    return tree


def conform(case_input: Mapping[str, Any]) -> dict[str, Any]:
    """Conformance suite `merkle`: root and proofs of the rows. Raises Refused like `build`."""
    encoding = tuple(case_input["leaf_encoding"])
    tree = build([_row(encoding, values) for values in case_input["values"]], encoding)
    proofs = [[_hex(node) for node in tree.proof(index)] for index in range(len(tree.rows))]
    return {"root": _hex(tree.root), "proofs": proofs}


def _row(encoding: Sequence[str], values: Sequence[str]) -> Row:
    pairs = zip(encoding, values, strict=True)
    return tuple(int(value) if kind == "uint256" else value for kind, value in pairs)


def _word(kind: str, value: int | str) -> bytes:
    if kind == "address":
        return bytes(12) + bytes.fromhex(str(value)[2:])
    return int(value).to_bytes(32, "big")


def _words(kind: str, column: Sequence[int | str]) -> Iterable[bytes]:
    """The words of one field of all rows; what all rows share is encoded once."""
    if _is_same(column):
        return repeat(_word(kind, column[0]), len(column))
    return [_word(kind, value) for value in column]


def _hex(node: bytes) -> str:
    return "0x" + node.hex()
