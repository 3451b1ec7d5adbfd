"""`payout.json` is canonical, comes back equal, and is refused when it contradicts itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.durable_file import write_durably
from contracts.manifest import ManifestInvalid, Payout, decode, encode, read
from contracts.payout_tree import payout_tree
from tests.contracts.payout_proofs import verify
from tests.contracts.stage import account

NO_ROOT = "0x" + "00" * 32

DISTRIBUTOR = account(0xD)


def payout(chain_id: int = 2**60 + 1) -> Payout:
    totals = [(account(n), 10**17 + n) for n in range(1, 6)]
    committed = sum(total for _, total in totals)
    tree = payout_tree(chain_id, DISTRIBUTOR, totals, previous={}, committed=committed)
    return Payout(
        epoch=3,
        cut="ab" * 32,
        policy_version=1,
        log_head="cd" * 32,
        chain_id=chain_id,
        distributor=DISTRIBUTOR,
        asset=account(0xA),
        seq=2,
        committed=committed,
        minted=committed,
        previous_root=NO_ROOT,
        manifest="ef" * 32,
        tree=tree,
    )


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "payout.json"
    write_durably(path, encode(payout()))
    assert read(path) == payout()
    assert path.read_bytes() == encode(payout())
    assert [entry.name for entry in tmp_path.iterdir()] == ["payout.json"]


def test_large_integers_are_strings() -> None:
    document = json.loads(encode(payout()))
    assert document["format"] == "tallystick-payout-v1"
    assert document["chainId"] == str(2**60 + 1)
    assert document["committed"] == str(5 * 10**17 + 15)


def test_every_leaf_of_the_file_proves_itself() -> None:
    there = payout()
    for row, leaf in zip(there.tree.rows, there.leaves(), strict=True):
        assert (leaf.account, leaf.total) == (row[2], row[3])
        assert verify(there.tree.root, row, leaf.proof)
    assert there.leaf(account(2).upper().replace("X", "x")) == there.leaves()[1]
    assert there.leaf(account(99)) is None


def other(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document[name] = value

    return change


def raise_a_total(document: dict[str, Any]) -> None:
    document["tree"]["values"][0]["value"][3] = "1"


def encoding(*kinds: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["tree"]["leafEncoding"] = list(kinds)

    return change


def total(value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        document["tree"]["values"][0]["value"][3] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        other("format", "tallystick-payout-v2"),
        other("root", NO_ROOT),
        other("committed", "1"),
        other("chainId", "1"),
        other("distributor", account(0xE)),
        other("surplus", 1),
        raise_a_total,
        other("seq", None),
        other("seq", 2.0),
        other("seq", True),
        other("epoch", -1),
        other("policyVersion", 2**53),
        other("asset", {}),
        other("asset", "0x00"),
        other("distributor", 5),
        other("previousRoot", []),
        other("manifest", "\ud800"),
        other("committed", 1e999),
        other("minted", "1_0"),
        other("chainId", "\u0663"),
        other("tree", None),
        other("tree", {"leafEncoding": 5}),
        encoding("uint256", "uint256", "address", {}),
        total(float("inf")),
        total("-1"),
        total(str(2**256)),
        total("9" * 5_000),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    change: Callable[[dict[str, Any]], None],
) -> None:
    document = json.loads(encode(payout()))
    change(document)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    with pytest.raises(ManifestInvalid):
        decode(text.encode() + b"\n")


def test_bytes_that_are_not_canonical_are_refused() -> None:
    with pytest.raises(ManifestInvalid):
        decode(b" " + encode(payout()))


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"[]", b"5", b"\xff", b"[" * 100_000])
def test_bytes_that_are_no_payout_at_all_are_refused(data: bytes) -> None:
    with pytest.raises(ManifestInvalid):
        decode(data)
