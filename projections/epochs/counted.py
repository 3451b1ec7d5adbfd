"""What do the nodes of an epoch count with, once corrections of earlier epochs are set off?

    counted == what the epoch moved, less what its account owes        `domain/epochs/taken_back.py`

Only accounts from which a correction ever took more than an epoch had are looked at again, from
their first epoch on: all others count with what they moved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from domain.epochs.taken_back import owed_after, set_off
from domain.frozen import replace
from projections.epochs.epochs import Preview, Tokens, Weight, read_burned_tokens, read_tokens_until
from projections.runner import Connection

_OWING = """
    SELECT account_id FROM proj_epochs.weight
    WHERE (burned < 0 OR gpu_us < 0) AND epoch <= %(epoch)s
    UNION SELECT account_id FROM proj_epochs.burnt WHERE credits < 0 AND epoch <= %(epoch)s
    UNION SELECT account_id FROM proj_epochs.used
    WHERE credits < 0 AND epoch <= %(epoch)s AND account_id <> ''
"""
_EARLIER = """
    SELECT account_id, source, sum(burned)::bigint, sum(gpu_us)::bigint FROM proj_epochs.weight
    WHERE account_id = ANY(%(accounts)s) AND epoch < %(epoch)s
    GROUP BY account_id, source, epoch ORDER BY epoch
"""
_OWED = """
    SELECT node_id, account_id, source, burned, gpu_us FROM proj_epochs.weight
    WHERE epoch = %(epoch)s AND account_id = ANY(%(accounts)s) AND (burned <> 0 OR gpu_us <> 0)
"""
_NODES = """
    SELECT DISTINCT node_id, account_id FROM proj_epochs.weight
    WHERE account_id = ANY(%(accounts)s) AND epoch <= %(epoch)s
"""


def read_owing(connection: Connection, epoch: int) -> list[str]:
    """Accounts from which corrections took more than there was, in some epoch up to this one."""
    rows = connection.execute(_OWING, {"epoch": epoch}).fetchall()
    return sorted(str(account_id) for (account_id,) in rows)


def read_weights(connection: Connection, preview: Preview) -> Preview:
    """The preview with the weights that count: none is below zero."""
    owing = frozenset(read_owing(connection, preview.epoch))
    if not owing:
        return preview
    kept = [one for one in preview.weights if one.account_id not in owing]
    moved = [one for one in preview.weights if one.account_id in owing]
    kept += _counted(connection, preview.epoch, sorted(owing), moved)
    return replace(preview, weights=tuple(sorted(kept)))


def read_owed_weights(connection: Connection, epoch: int, owing: Sequence[str]) -> list[Weight]:
    """The weights that count of accounts that owe, in a closed epoch."""
    if not owing:
        return []
    rows = connection.execute(_OWED, {"accounts": owing, "epoch": epoch})
    return _counted(connection, epoch, owing, [Weight(*row) for row in rows])


def _counted(
    connection: Connection, epoch: int, owing: Sequence[str], weights: Iterable[Weight]
) -> list[Weight]:
    asked = {"accounts": owing, "epoch": epoch}
    before: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for account_id, source, burned, gpu_us in connection.execute(_EARLIER, asked):
        before[account_id, source].append((burned, gpu_us))
    moved: dict[tuple[str, str], list[Weight]] = defaultdict(list)
    for one in weights:
        moved[one.account_id, one.source].append(one)
    found: list[Weight] = []
    for place, of_place in moved.items():
        credits = _set_off(
            {one.node_id: one.burned for one in of_place}, (b for b, _ in before[place])
        )
        times = _set_off(
            {one.node_id: one.gpu_us for one in of_place}, (us for _, us in before[place])
        )
        found += [
            one._replace(burned=credits[one.node_id], gpu_us=times[one.node_id]) for one in of_place
        ]
    return found


def read_tokens(connection: Connection, epoch: int) -> dict[str, Tokens]:
    """TOKEN burned for each node that count in an epoch: none is below zero."""
    tokens = read_burned_tokens(connection, epoch)
    return tokens | read_owed_tokens(connection, epoch, read_owing(connection, epoch))


def read_owed_tokens(connection: Connection, epoch: int, owing: Sequence[str]) -> dict[str, Tokens]:
    """The tokens that count of nodes whose accounts owe."""
    if not owing:
        return {}
    rows: list[Any] = connection.execute(_NODES, {"accounts": owing, "epoch": epoch}).fetchall()
    owner_of = {str(node_id): str(account_id) for node_id, account_id in rows}
    history = read_tokens_until(connection, epoch, owner_of)
    epochs: dict[str, dict[int, Tokens]] = defaultdict(lambda: defaultdict(Tokens))
    now: dict[str, dict[str, Tokens]] = defaultdict(dict)
    for (at, node_id), units in history.items():
        if at == epoch:
            now[owner_of[node_id]][node_id] = units
        else:
            epochs[owner_of[node_id]][at] += units
    tokens: dict[str, Tokens] = {}
    for account_id, nodes in now.items():
        earlier = [units for _, units in sorted(epochs[account_id].items())]
        network = _set_off(
            {node: units.network for node, units in nodes.items()}, (e.network for e in earlier)
        )
        bought = _set_off(
            {node: units.bought for node, units in nodes.items()}, (e.bought for e in earlier)
        )
        tokens |= {node: Tokens(network[node], bought[node]) for node in nodes}
    return tokens


def _set_off(moved: dict[str, int], earlier: Iterable[int]) -> dict[str, int]:
    return set_off(moved, owed_after(earlier)).counted
