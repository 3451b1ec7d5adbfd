"""What ties accounts to each other, as the log tells it: `domain/trust/related.py` in SQL.

A view that asks keeps the ties in a table of its own, `own.tie`, and asks as of a position: a tie
that becomes known later does not change what was counted before.
"""

from __future__ import annotations

from projections.runner import Rule

TIES = """
    CREATE TABLE own.tie (
        account_id text COLLATE "C", key text COLLATE "C", position bigint NOT NULL,
        PRIMARY KEY (account_id, key));
    CREATE INDEX ON own.tie (key);
    COMMENT ON TABLE own.tie IS 'What relates accounts: two with one key, or one with the other';
"""

_INSERT = """
    INSERT INTO own.tie SELECT account_id, key, min(position) FROM ({keys}) k
    WHERE key <> 'account:' || account_id GROUP BY 1, 2 ON CONFLICT DO NOTHING
"""
TIE_RULES = (
    Rule(
        ("account.wallet_linked.v1",),
        "account_id text, address text",
        _INSERT.format(
            keys="SELECT account_id, 'wallet:' || lower(address) AS key, position FROM facts"
        ),
    ),
    Rule(
        ("earnings.payment_mode_set.v1",),
        "account_id text, billing_account_id text",
        _INSERT.format(
            keys="""SELECT account_id, 'account:' || billing_account_id AS key, position
            FROM facts WHERE billing_account_id IS NOT NULL"""
        ),
    ),
    Rule(
        ("funding.payer_set.v1",),
        "account_id text, payer_account_id text",
        _INSERT.format(
            keys="SELECT account_id, 'account:' || payer_account_id AS key, position FROM facts"
        ),
    ),
)


def related(first: str, second: str) -> str:
    """SQL: whether two accounts are related, as was known at the position of fact `f`."""
    return f"""({first} = {second}
        OR EXISTS (SELECT FROM own.tie x LEFT JOIN own.tie y ON y.key = x.key
                AND y.account_id = {second} AND y.position < f.position
            WHERE x.account_id = {first} AND x.position < f.position
                AND (y.key IS NOT NULL OR x.key = 'account:' || ({second})))
        OR EXISTS (SELECT FROM own.tie y WHERE y.account_id = {second}
            AND y.key = 'account:' || ({first}) AND y.position < f.position))"""


PAYEES = """(
        SELECT f.provider_account_id AS payee_id
        UNION ALL SELECT f.client_account_id WHERE f.client_account_id IS NOT NULL
        UNION ALL SELECT owner->>'account_id' FROM json_array_elements(f.owners) owner)"""
"""SQL: who is paid for fact `f`, of its provider_account_id, client_account_id and owners."""

_IS_PAYEE = """((({payer}) IN (f.provider_account_id, f.client_account_id)) IS TRUE
        OR f.owners::text IS DISTINCT FROM '[]' AND EXISTS (
            SELECT FROM json_array_elements(f.owners) owner
            WHERE owner->>'account_id' = ({payer})))"""


def is_tied(account: str) -> str:
    """SQL: whether anything relates an account to another one. Of most renters nothing does, and
    then their payees need no look.
    """
    return f"""(EXISTS (SELECT FROM own.tie w WHERE w.account_id = ({account}))
        OR EXISTS (SELECT FROM own.tie w WHERE w.key = 'account:' || ({account})))"""


def is_paid_to(payer: str, payees: str) -> str:
    """SQL: whether an account is related to one of these, a relation of `payee_id`."""
    return f"EXISTS (SELECT FROM {payees} t WHERE {related(payer, 't.payee_id')})"


def is_paid_back(payer: str) -> str:
    """SQL: whether an account that pays for fact `f` is related to one that is paid for it."""
    is_payee = _IS_PAYEE.format(payer=payer)
    return f"({is_payee} OR {is_tied(payer)} AND {is_paid_to(payer, PAYEES)})"


IS_OWN_USE = f"""({is_paid_back("f.account_id")}
    OR strpos(f.drawn::text, '"account_id"') > 0 AND EXISTS (
        SELECT FROM json_array_elements(f.drawn) part
        WHERE part->>'account_id' <> f.account_id AND {is_paid_back("part->>'account_id'")}))"""
"""SQL: whether the renter of fact `f`, or who pays of its `drawn`, is paid for it. Most charges are
paid by the renter alone, and then nothing of `drawn` is taken apart.
"""
