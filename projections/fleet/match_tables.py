"""What else the matcher asks the fleet about: who deals with whom, and which disk and network of
nodes leases hold.

Part of the fleet's projection, so that a match sees all of it at one position.
"""

from __future__ import annotations

from projections.runner import Rule

TABLES = """
    CREATE TABLE own.listed (
        account_id text COLLATE "C", counterparty_id text COLLATE "C", verdict text NOT NULL,
        PRIMARY KEY (account_id, counterparty_id));
    CREATE TABLE own.held_room (
        node_id text COLLATE "C" PRIMARY KEY, storage_gib bigint NOT NULL,
        network_mbps bigint NOT NULL, storage_of bigint NOT NULL, network_of bigint NOT NULL,
        CONSTRAINT within_what_was_promised CHECK (
            storage_gib BETWEEN 0 AND storage_of AND network_mbps BETWEEN 0 AND network_of)
    ) WITH (fillfactor = 70);
    COMMENT ON TABLE own.held_room IS 'Disk and network of each node that leases hold';
    COMMENT ON TABLE own.listed IS 'Allow and deny lists: with whom an account deals';
"""

ROOM_TOPICS = ("node.room_taken.v1", "node.room_returned.v1")
RULES = (
    Rule(
        ROOM_TOPICS,
        "node_id text",
        """INSERT INTO own.held_room SELECT DISTINCT node_id, 0, 0, 0, 0 FROM facts
        ON CONFLICT (node_id) DO NOTHING""",
    ),
    Rule(
        ROOM_TOPICS,
        "node_id text, storage_gib bigint, network_mbps bigint, storage_of_gib bigint,"
        " network_of_mbps bigint",
        """UPDATE own.held_room h SET storage_gib = storage_gib + storage,
            network_mbps = network_mbps + network,
            storage_of = greatest(storage_of, storage_promised),
            network_of = greatest(network_of, network_promised)
        FROM (
            SELECT node_id AS told_id, sum(sign * storage_gib)::bigint AS storage,
                sum(sign * network_mbps)::bigint AS network,
                max(storage_of_gib) AS storage_promised, max(network_of_mbps) AS network_promised
            FROM (
                SELECT *, CASE topic WHEN 'node.room_taken.v1' THEN 1 ELSE -1 END AS sign
                FROM facts) signed
            GROUP BY node_id) f
        WHERE h.node_id = told_id""",
    ),
    Rule(
        ("counterparty.allowed.v1", "counterparty.denied.v1", "counterparty.removed.v1"),
        "account_id text, counterparty_id text",
        """INSERT INTO own.listed SELECT account_id, counterparty_id, CASE topic
            WHEN 'counterparty.allowed.v1' THEN 'allow'
            WHEN 'counterparty.denied.v1' THEN 'deny' ELSE 'none' END
        FROM (
            SELECT DISTINCT ON (account_id, counterparty_id) * FROM facts
            ORDER BY account_id, counterparty_id, position DESC) f
        ON CONFLICT (account_id, counterparty_id) DO UPDATE SET verdict = excluded.verdict""",
    ),
)
