"""Whose work the rewards of an epoch pay for, by compute client: told beside the leaves (row R-1).

    sum of an account's parts == its reward                                        to the unit
    a node's compute reward by client  ~  what the work of each weighs: sum(used x weight of source)

A leaf of the payout tree has an address and a total, as its contract reads them. Here is whose work
the rewards in it are for: from the sealed settlement, and from what each client's work moved of the
weights in the same epoch. Availability, the treasury and corrections have no client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from domain.brought import added, apportioned, as_parts, in_proportion
from domain.epochs.epoch_file import Texts, pieces_of, texts_of
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import NO_TERMS
from domain.epochs.settlement import Outcome, Settlement, used_by
from domain.nesting import read_json

CLIENTS_FORMAT = "tallystick-epoch-clients-v1"


class ClientUse(NamedTuple):
    """What the work of one client moved of a node's weights in an epoch, by who paid for it. Below
    zero where corrections took back more than there was.
    """

    node_id: str
    client_id: str
    source: str
    burned: int
    gpu_us: int


def weights_of(uses: Iterable[ClientUse], policy: PolicyPublished) -> dict[str, dict[str, int]]:
    """Node -> client -> what its work weighs; none is below zero."""
    terms = policy.rewards or NO_TERMS
    weight_of = {rated.name: rated.ppm for rated in terms.source_weights}
    used_of = used_by(terms, policy.compute_base)
    found: dict[str, dict[str, int]] = {}
    for one in uses:
        clients = found.setdefault(one.node_id, {})
        weighed = used_of(one.burned, one.gpu_us) * weight_of.get(one.source, 0)
        clients[one.client_id] = clients.get(one.client_id, 0) + weighed
    return {
        node_id: {client_id: units for client_id, units in clients.items() if units > 0}
        for node_id, clients in found.items()
    }


def parts_of(settlement: Settlement, uses: Iterable[ClientUse]) -> dict[str, dict[str, int]]:
    """Account -> client -> TOKEN units, of what nodes earned for what they served."""
    weights = weights_of(uses, settlement.cut.policy)
    parts: dict[str, dict[str, int]] = {}
    for node in settlement.nodes:
        if node.compute:
            worked = in_proportion(node.compute, weights.get(node.node_id, {}))
            parts[node.account_id] = added(parts.get(node.account_id, {}), worked)
    return parts


def clients_file(settlement: Settlement, epoch_sha256: str, uses: Iterable[ClientUse]) -> bytes:
    """Canonical bytes: `[account, reward, [[client, units]]]` by account, an empty client last."""
    rows = client_rows(settlement.rewards, parts_of(settlement, uses))
    return b"".join(clients_of(settlement, epoch_sha256, [rows]))


def clients_of(settled: Outcome, epoch_sha256: str, rows: Iterable[str]) -> Iterator[bytes]:
    """The same piece by piece. `rows`: of accounts in order, several to a text, as `client_rows`
    writes them.
    """
    document = {
        "format": CLIENTS_FORMAT,
        "epoch": settled.epoch,
        "epoch_file_sha256": epoch_sha256,
        "rewards": Texts(rows),
    }
    return pieces_of(document)


def client_rows(rewards: Sequence[tuple[str, int]], parts: Mapping[str, Mapping[str, int]]) -> str:
    """The rows of some accounts, of which each has a reward; JSON without its brackets. `parts`:
    account -> client -> units, of what its nodes served.
    """
    return ",".join(texts_of(rewards, partial(_client_row, parts)))


def _client_row(parts: Mapping[str, Mapping[str, int]], reward: tuple[str, int]) -> list[Any]:
    who, units = reward
    told = as_parts(apportioned(units, parts.get(who, {})))
    assert sum(one.units for one in told) == units, (who, told)
    return [who, str(units), [[one.client_id, str(one.units)] for one in told]]


def wrong_in(data: bytes, epoch: int, epoch_sha256: str) -> str | None:
    """What is wrong with the bytes of a clients file of an epoch, or nothing.

    sum of an account's parts == its reward                                        to the unit
    """
    try:
        told = read_json(data)
        rewards = {who: int(units) for who, units, _ in told["rewards"]}
        sums = {who: sum(int(part) for _, part in parts) for who, _, parts in told["rewards"]}
        about = (told["format"], told["epoch"], told["epoch_file_sha256"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        return f"cannot be read: {type(error).__name__}"
    if about != (CLIENTS_FORMAT, epoch, epoch_sha256):
        return "is of another epoch file"
    if sums != rewards or len(rewards) != len(told["rewards"]):
        return "its parts are not its rewards"
    return None
