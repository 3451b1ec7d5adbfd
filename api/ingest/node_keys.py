"""The keys of the nodes in memory, for the door of the usage log.

    lookup(node) == the node's newest confirmed key, as of the last refresh, with those before it

A node that is not confirmed yet is unknown here; a retired one still empties its spool. Refreshed
after every change made by this process, and every second for those made elsewhere.
"""

from __future__ import annotations

from typing import Literal

from api.ingest.door import NodeKey
from ledger.log import market
from projections import read, runner
from projections.parties import access
from projections.parties.access import ACCESS
from projections.runner import Connection

REFRESH_SECONDS = 1.0

_CHANGED = """
    SELECT count(*) FROM public.market_events
    WHERE notification_id > %(after)s AND notification_id <= %(to)s AND topic LIKE 'node.%%'
"""


class NodeKeyCache:
    """What `api.ingest.door.NodeKeys` asks for. Reading needs no lock: the table is replaced
    whole.
    """

    def __init__(self) -> None:
        self._keys: dict[str, NodeKey] = {}
        self._position = -1

    def lookup(self, node_id: str) -> NodeKey | None:
        return self._keys.get(node_id)

    def refresh(self, connection: Connection) -> bool:
        """Read what changed since the last time; whether anything did."""
        head = market.head(connection)
        first = self._position < 0
        if not first and not read.number(connection, _CHANGED, after=self._position, to=head):
            self._position = max(self._position, head)
            return False
        while runner.step(connection, ACCESS):
            pass
        found: dict[str, NodeKey] = {}
        for key in access.read_node_keys(connection):
            if key.confirmed_at_us is not None:
                found[key.node_id] = _node_key(key, found.get(key.node_id))
        self._keys = found
        self._position = head
        return True


def _node_key(key: access.NodeKey, before: NodeKey | None) -> NodeKey:
    status: Literal["ok", "revoked", "quarantined"] = "ok"
    if key.revoked_at_us is not None:
        status = "revoked"
    elif key.equivocated_at_us is not None:
        status = "quarantined"
    public = bytes.fromhex(key.public_key)
    return NodeKey(key.key_id, public, status, key.from_seq, before, key.old_revoked)
