"""What else the matcher asks the fleet about: who deals with whom.

Part of the fleet's projection, so that a match sees all of it at one position.
"""

from __future__ import annotations

from projections.runner import Rule

TABLES = """
    CREATE TABLE own.listed (
        account_id text COLLATE "C", counterparty_id text COLLATE "C", verdict text NOT NULL,
        PRIMARY KEY (account_id, counterparty_id));
    COMMENT ON TABLE own.listed IS 'Allow and deny lists: with whom an account deals';
"""

RULES = (
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
