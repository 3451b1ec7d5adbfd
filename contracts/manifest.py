"""`payout.json`: all that the payout scripts need, and nothing of the database.

Canonical JSON (sorted keys, no spaces, UTF-8, one trailing newline), so equal payouts are equal
bytes. Integers that may pass 2^53 - 1 are decimal strings. The file is not trusted: reading it
rebuilds the tree from its values and compares root, sum, chain and contract.

    root == root(tree)      committed == sum(leaves)      leaf = (this chain, this distributor, ...)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.payout_tree import PAYOUT_ENCODING, StandardTree, load
from domain.nesting import is_too_deep
from domain.refusal import Refused

FORMAT = "tallystick-payout-v1"
COUNT_MAX = 2**53 - 1


class ManifestInvalid(Exception):
    """The payout file contradicts itself or is not of this format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One account's claim: its lifetime total and the proof of it."""

    account: str
    total: int
    proof: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Payout:
    """One epoch's payout as proposed on chain. Amounts are token units, hashes lower-case hex."""

    epoch: int
    cut: str
    policy_version: int
    log_head: str
    chain_id: int
    distributor: str
    asset: str
    seq: int
    committed: int
    minted: int
    previous_root: str
    manifest: str
    tree: StandardTree

    @property
    def root(self) -> str:
        return "0x" + self.tree.root.hex()

    def leaf(self, account: str) -> Leaf | None:
        """The claim of an account (address in any case); None when the root pays it nothing."""
        for index, row in enumerate(self.tree.rows):
            if str(row[2]).lower() == account.lower():
                return self._leaf(index)
        return None

    def leaves(self) -> list[Leaf]:
        """Every claim, in the order of the file."""
        return [self._leaf(index) for index in range(len(self.tree.rows))]

    def _leaf(self, index: int) -> Leaf:
        _, _, account, total = self.tree.rows[index]
        return Leaf(account=str(account), total=int(total), proof=tuple(self.tree.proof(index)))


def encode(payout: Payout) -> bytes:
    """The canonical bytes. Raises ManifestInvalid like `decode`."""
    _check(payout)
    document = {
        "format": FORMAT,
        "epoch": payout.epoch,
        "cut": payout.cut,
        "policyVersion": payout.policy_version,
        "logHead": payout.log_head,
        "chainId": str(payout.chain_id),
        "distributor": payout.distributor,
        "asset": payout.asset,
        "seq": payout.seq,
        "committed": str(payout.committed),
        "minted": str(payout.minted),
        "previousRoot": payout.previous_root,
        "root": payout.root,
        "manifest": payout.manifest,
        "tree": payout.tree.dump(),
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def decode(data: bytes) -> Payout:
    """Read the bytes and check that they agree with themselves. Raises ManifestInvalid."""
    try:
        payout = _decode(_document(data))
        _check(payout)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, Refused) as error:
        raise ManifestInvalid(str(error)) from error
    if encode(payout) != data:
        raise ManifestInvalid("not canonical, or with fields that this format does not have")
    return payout


def read(path: Path) -> Payout:
    """Raises ManifestInvalid like `decode`, OSError when the file cannot be read."""
    return decode(path.read_bytes())


_NUMBER, _HASH, _ADDRESS = r"[1-9][0-9]{0,77}|0", r"[0-9a-f]{64}", r"0x[0-9a-fA-F]{40}"
_TEXTS = {
    "cut": r"[0-9a-f]{1,64}",
    "logHead": _HASH,
    "chainId": _NUMBER,
    "distributor": _ADDRESS,
    "asset": _ADDRESS,
    "committed": _NUMBER,
    "minted": _NUMBER,
    "previousRoot": f"0x{_HASH}",
    "root": f"0x{_HASH}",
    "manifest": _HASH,
}
_COUNTS = ("epoch", "policyVersion", "seq")


def _document(data: bytes) -> dict[str, Any]:
    """Every field but the tree has its form. Raises ManifestInvalid, ValueError, KeyError."""
    text = data.decode()
    if is_too_deep(text):
        raise ManifestInvalid("nested too deep")
    document = json.loads(text)
    if type(document) is not dict or document["format"] != FORMAT:
        raise ManifestInvalid(f"not of the format {FORMAT!r}")
    for name, form in _TEXTS.items():
        value = document[name]
        if type(value) is not str or re.fullmatch(form, value) is None:
            raise ManifestInvalid(f"{name}: needed {form}")
    for name in _COUNTS:
        value = document[name]
        if type(value) is not int or not 0 <= value <= COUNT_MAX:
            raise ManifestInvalid(f"{name}: needed a whole number")
    return document


def _decode(document: dict[str, Any]) -> Payout:
    if document["tree"]["leafEncoding"] != list(PAYOUT_ENCODING):
        raise ManifestInvalid(f"the leaves are not {', '.join(PAYOUT_ENCODING)}")
    tree = load(document["tree"])
    if document["root"] != "0x" + tree.root.hex():
        raise ManifestInvalid("the root is not the root of the tree")
    return Payout(
        epoch=document["epoch"],
        cut=document["cut"],
        policy_version=document["policyVersion"],
        log_head=document["logHead"],
        chain_id=int(document["chainId"]),
        distributor=document["distributor"],
        asset=document["asset"],
        seq=document["seq"],
        committed=int(document["committed"]),
        minted=int(document["minted"]),
        previous_root=document["previousRoot"],
        manifest=document["manifest"],
        tree=tree,
    )


def _check(payout: Payout) -> None:
    if tuple(payout.tree.encoding) != PAYOUT_ENCODING:
        raise ManifestInvalid(f"leaf encoding {list(payout.tree.encoding)}")
    for chain_id, distributor, _, _ in payout.tree.rows:
        if chain_id != payout.chain_id or str(distributor).lower() != payout.distributor.lower():
            raise ManifestInvalid("a leaf is bound to another chain or contract")
    if sum(int(row[-1]) for row in payout.tree.rows) != payout.committed:
        raise ManifestInvalid("the leaves do not add up to `committed`")
