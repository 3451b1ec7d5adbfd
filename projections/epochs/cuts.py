"""To which epoch does a fact belong?

    epoch of a fact == 1 + the last epoch whose cut lies before it

A view that asks keeps the cuts in a table of its own, `own.cut`.
"""

from __future__ import annotations

from projections.runner import Rule

CUTS = """
    CREATE TABLE own.cut (position bigint PRIMARY KEY, epoch int NOT NULL);
    COMMENT ON TABLE own.cut IS 'EpochClosing: facts after it belong to a later epoch';
"""
CUT_RULE = Rule(
    ("epoch.closing.v1",), "epoch int", "INSERT INTO own.cut SELECT position, epoch FROM facts"
)
EPOCH_OF = """CASE WHEN coalesce((SELECT max(c.position) FROM own.cut c), 0) <= %(first)s
    THEN coalesce((SELECT c.epoch FROM own.cut c ORDER BY c.position DESC LIMIT 1), 0)
    ELSE coalesce((SELECT c.epoch FROM own.cut c WHERE c.position < f.position
        ORDER BY c.position DESC LIMIT 1), 0) END + 1"""
"""SQL: the epoch of fact `f` of the range; nothing but the pin lies between a closing and its cut.
Most ranges have no cut: then it is one epoch, looked up once.
"""
