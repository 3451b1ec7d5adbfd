"""A simulated network computed a second time, from its epoch files alone.

    every computed field of every file   == what SQL makes of the rest   tests/independent/
                                                                          settlement_sql.py
    what an epoch begins with            == what the one before left
    nodes of a file, and their sums      == what was drawn of all nodes in one piece
    the roots                            == a tree of its own rules over the rewards that matured
                                                                          payout_root.py

Nothing of the product takes part: DuckDB, exact integers and Keccak do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.independent import payout_root, settlement_sql

TOLD = "told.json"


@dataclass(frozen=True, slots=True)
class Told:
    """What a network says beside its epoch files, each by epoch: what all nodes did, what accounts
    are to be given or to give back, and the roots.
    """

    drawn: dict[int, dict[str, int]]
    adjusted: dict[int, dict[str, int]]
    roots: dict[int, str]

    def write(self, folder: Path) -> None:
        (folder / TOLD).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Told:
        told = json.loads((folder / TOLD).read_bytes())
        return cls(*({int(n): one for n, one in told[name].items()} for name in cls.__slots__))


def wallet_of(account_id: str) -> str | None:
    """Where an account is paid; one in twenty never says."""
    drawn = sha256(account_id.encode()).hexdigest()
    return None if int(drawn[40:48], 16) % 20 == 0 else "0x" + drawn[:40]


def wrong_in(folder: Path, chain_id: int, distributor: str, holdback: int) -> list[str]:
    """What differs, in words; empty where nothing does."""
    told = Told.read(folder)
    wrong: list[str] = []
    whole: list[dict[str, Any]] = []
    burned: dict[int, int] = {}
    lifetime: dict[str, int] = {}
    rewards: dict[int, Any] = {}
    for epoch in sorted(told.drawn):
        document = json.loads((folder / f"{epoch}.json").read_bytes())
        wrong += settlement_sql.differences(document)
        wrong += _not_drawn(document.pop("nodes"), epoch, told)
        burned[epoch], rewards[epoch] = told.drawn[epoch]["tokens"], document.pop("rewards")
        whole.append(document)
        for account_id, units in rewards.pop(epoch - holdback, ()):
            lifetime[account_id] = lifetime.get(account_id, 0) + int(units)
        if lifetime:
            wrong += _another_root(lifetime, chain_id, distributor, told.roots.get(epoch), epoch)
    return wrong + list(settlement_sql.breaks(whole, burned, told.adjusted))


def _not_drawn(nodes: list[Any], epoch: int, told: Told) -> Iterator[str]:
    """Each node once, and together what all of them did."""
    if any(one[0] >= other[0] for one, other in pairwise(nodes)):
        yield f"epoch {epoch}: its nodes are not in order, each once"
    found = {
        "nodes": len(nodes),
        "tokens": sum(int(node[3]) for node in nodes),
        "used_ms": sum(int(gpu_us) for node in nodes for _, _, gpu_us in node[2]) // 1_000,
        "there_ms": sum(int(gpu_us) for node in nodes for _, _, gpu_us, _ in node[5]) // 1_000,
    }
    if found != told.drawn[epoch]:
        yield f"epoch {epoch}: its nodes come to {found}, {told.drawn[epoch]} was drawn"


def _another_root(
    lifetime: dict[str, int], chain_id: int, distributor: str, said: str | None, epoch: int
) -> Iterator[str]:
    paid_at = ((wallet_of(who), units) for who, units in lifetime.items())
    totals = {wallet: units for wallet, units in paid_at if wallet is not None}
    computed = payout_root.root_of(chain_id, distributor, totals)
    if computed != said:
        yield f"epoch {epoch}: the root is {said}, computed again it is {computed}"
