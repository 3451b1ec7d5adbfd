"""All that a cut says of the nodes: the input of a settlement, judged from the rows of the views.

    nodes == f(the log up to the cut, the lanes up to the sizes it pins)

Reading is one thing (`projections/epochs/cut_rows.py`) and judging another, which any process can
do. The rules themselves are in `domain/`: this gathers. Source: design economics 8, 10, 13 and 16.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from domain.epochs.clients import ClientUse
from domain.epochs.settlement import Attested, NodeCut, Use
from domain.trust.lifting import lifted_us
from domain.trust.tiers import CHALLENGED, Evidence, Identity, Metered, Place, standing
from projections.epochs.cut_rows import CutRows, read_rows
from projections.epochs.epochs import Tokens, part_of_burn
from projections.epochs.streams import Row
from projections.runner import Connection
from projections.trust.evidence import METERED_FIELDS
from projections.trust.scores import standings_of


def read_nodes(
    connection: Connection, epoch: int, cut_position: int, *, development: bool = False
) -> list[NodeCut]:
    """Every node that was used or was there in a closed epoch, by id; all of them in memory."""
    slices = read_rows(connection, epoch, cut_position, development=development)
    return [node for rows in slices for node in nodes_of(rows)]


def nodes_of(rows: CutRows) -> list[NodeCut]:
    """The nodes of a slice, by id."""
    uses: dict[str, list[Use]] = defaultdict(list)
    accounts: dict[str, str] = {}
    for node_id, account_id, source, burned, gpu_us in rows.weights:
        if burned or gpu_us:
            uses[node_id].append(Use(source, burned, gpu_us))
        accounts[node_id] = account_id
    attested = attested_of(rows)
    for node_id, _, account_id, *_ in (*rows.there, *rows.late):
        if node_id in attested and node_id not in accounts:
            assert account_id is not None, node_id
            accounts[node_id] = account_id
    tokens = _tokens(rows)
    standings = standings_of(rows.standings, accounts)
    scores = {node_id: one.score_ppm for node_id, one in standings.items()}
    nothing = Tokens()
    return [
        NodeCut(
            node_id,
            accounts[node_id],
            tuple(uses.get(node_id, ())),
            sum(tokens.get(node_id, nothing)),
            scores.get(node_id),
            tuple(attested.get(node_id, ())),
            tokens.get(node_id, nothing).bought,
        )
        for node_id in sorted(accounts)
    ]


def uses_of(rows: CutRows) -> list[ClientUse]:
    """The weights of a slice by client, by node."""
    return [ClientUse(*row) for row in rows.brought]


def _tokens(rows: CutRows) -> dict[str, Tokens]:
    """TOKEN burned for each node that count."""
    network: dict[str, int] = defaultdict(int)
    for node_id, *burn in rows.burnt:
        network[node_id] += part_of_burn(*burn)
    found = {node_id: Tokens(units) for node_id, units in network.items()}
    for node_id, units in rows.bought:
        found[node_id] = Tokens(network.get(node_id, 0), units)
    return found | {node_id: Tokens(*counted) for node_id, *counted in rows.tokens}


# --- attested time ---------------------------------------------------------------------------


def attested_of(rows: CutRows) -> dict[str, list[Attested]]:
    """Available time of every board by node, at the trust tier it has as of the cut.

    A board that moved to another node has promised its time once: the promise is divided among its
    nodes as its time is, so that the part of it that was kept is the same on each. What was late
    stands for itself, with its part of what its own epoch was promised. Time that renters signed
    for before the cut is lifted; of late time none is.
    """
    tiers = tiers_of(rows)
    signed: dict[str, int] = dict(rows.signed)
    found: dict[str, list[Attested]] = defaultdict(list)
    for node_id, boards in _by_node(rows.there):
        told = [(*row, tiers.get((node_id, board_id), 1)) for board_id, *row in boards]
        lifted = lifted_us([(tier, us) for _, us, _, _, tier in told], signed.get(node_id, 0))
        for (name, us, promised_us, of_all_us, tier), up_us in zip(told, lifted, strict=True):
            found[node_id] += _parts(name, CHALLENGED, up_us, promised_us, of_all_us)
            found[node_id] += _parts(name, tier, us - up_us, promised_us, of_all_us)
    for node_id, board_id, _, name, us, promised_us, of_all_us in rows.late:
        tier = tiers.get((node_id, board_id), 1)
        found[node_id] += _parts(name, tier, us, promised_us, of_all_us)
    return {node_id: sorted(devices) for node_id, devices in found.items() if devices}


def _by_node(there: Iterable[Row]) -> Iterator[tuple[str, list[Sequence[Any]]]]:
    found: dict[str, list[Sequence[Any]]] = defaultdict(list)
    for node_id, board_id, _, *row in there:
        found[node_id].append((board_id, *row))
    yield from found.items()


def _parts(name: str, tier: int, us: int, promised_us: int, of_all_us: int) -> list[Attested]:
    """Time of one board at one tier, with its part of the promise; none where there is no time."""
    if not us:
        return []
    return [Attested(name, tier, us, -(-promised_us * us // of_all_us))]


# --- tiers -----------------------------------------------------------------------------------

_identity = msgspec.json.Decoder(Identity).decode


def tiers_of(rows: CutRows) -> dict[tuple[str, str], int]:
    """The tier of every board that was metered in an epoch, by (node, board), as of its cut.

    A board whose parts are judged each for itself has the highest of their tiers: a challenge is
    passed on a part. But one part that is not believed at all is enough to believe none.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    boards: dict[tuple[str, str], str] = {}
    for node_id, device_id, board_id, _, lane, position, *sums in rows.metered:
        metered = Metered(**dict(zip(METERED_FIELDS, sums, strict=True)))
        found[node_id, device_id] = {"metered": metered, "metered_at": Place(lane, position)}
        boards[node_id, device_id] = board_id
    for node_id, device_id, told, lane, position in rows.identities:
        if (node_id, device_id) in found:
            found[node_id, device_id]["identity"] = _identity(told)
            found[node_id, device_id]["told_at"] = Place(lane, position)
    for node_id, device_id, nodes in rows.elsewhere:
        if (node_id, device_id) in found:
            found[node_id, device_id]["elsewhere"] = tuple(nodes)
    for node_id, device_id, kind, verdict, position in rows.proofs:
        if (node_id, device_id) in found:
            when = "challenged_at" if kind == "challenge" else "attested_at"
            found[node_id, device_id] |= {kind: verdict, when: Place(None, position)}
    faster = {(node_id, device_id): Place(None, at) for node_id, device_id, at in rows.faster}
    quarantined = {node_id for (node_id,) in rows.quarantined}
    tiers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for (node_id, device_id), told in found.items():
        board_id = boards[node_id, device_id]
        evidence = Evidence(
            device_id=device_id,
            quarantined=node_id in quarantined,
            faster_at=faster.get((node_id, device_id)) or faster.get((node_id, board_id)),
            **told,
        )
        judged = standing(evidence, rows.libraries, development=rows.is_development)
        tiers[node_id, board_id].append(judged.tier)
    return {board: min(parts) and max(parts) for board, parts in tiers.items()}
