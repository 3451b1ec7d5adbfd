"""Which nodes signed two bodies under one number? They go into quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from api.process.service import Service
from domain.fleet.node import RecordEquivocation
from ledger.log.usage import key_id_of
from ledger.log.usage_reads import TwiceSigned, nodes_that_signed_twice, twice_signed
from projections import tables
from projections.parties import access
from projections.runner import Connection


def run_equivocation(service: Service, connection: Connection, now_us: int) -> int:
    """A node that signed two bodies under one number is put into quarantine."""
    tables.step_all(connection, only=("access",))
    done = 0
    nodes = access.read_trusted(connection, nodes_that_signed_twice(connection))
    for one in twice_signed(connection, nodes):
        keys = access.read_node_keys(connection, one.node_id)
        if not _both_in_office(keys, one):
            continue
        command = RecordEquivocation(
            node_id=one.node_id,
            lane=one.lane,
            node_seq=one.node_seq,
            first_leaf=one.stored_leaf.hex(),
            second_leaf=one.other_leaf.hex(),
            at_us=now_us,
        )
        done += len(service.ledger.handle(command, key=None, now_us=now_us).changes)
    return done


def _both_in_office(keys: Sequence[access.NodeKey], one: TwiceSigned) -> bool:
    """Whether the key of this number signed both bodies, and the second before it was replaced.

    What a key signs out of its office shows that somebody else has found it, and nothing more.
    """
    place = max((n for n, key in enumerate(keys) if key.from_seq <= one.node_seq), default=0)
    is_own = {key_id_of(one.stored), key_id_of(one.other)} == {keys[place].key_id}
    replaced_us = keys[place + 1].confirmed_at_us if place + 1 < len(keys) else None
    return is_own and (replaced_us is None or one.received_us < replaced_us)
