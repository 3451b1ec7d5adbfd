"""Which leased time have renters of their own signed for? Tables and rules of the view
`projections/epochs/epochs.py`.

    signed == accruals up to a lease's last signature, if it stands for all metered up to there

An accrual belongs to the span in which it ends. Time that a related party rents proves nothing
(`domain/trust/related.py`). What it is worth: `domain/trust/lifting.py`.
"""

from __future__ import annotations

from projections.runner import Connection, Rule
from projections.trust.ties import IS_OWN_USE

TABLES = """
    CREATE TABLE own.leased (
        position bigint PRIMARY KEY, lease_id text COLLATE "C" NOT NULL,
        node_id text COLLATE "C" NOT NULL, until_us bigint NOT NULL, gpu_us bigint NOT NULL,
        is_related boolean NOT NULL);
    COMMENT ON TABLE own.leased IS 'Leased time as accrued; is_related: its payer is paid for it';
    CREATE TABLE own.signed (
        lease_id text COLLATE "C", position bigint, gpu_us bigint NOT NULL,
        until_us bigint NOT NULL, PRIMARY KEY (lease_id, position));
    COMMENT ON TABLE own.signed IS 'Cumulative: the last one stands for all before it';
"""

INDEXES = """
    CREATE INDEX ON own.leased (lease_id);
    CREATE INDEX ON own.leased (until_us);
"""

RULES = (
    Rule(
        ("lease.usage_accrued.v1",),
        "lease_id text, node_id text, until_us bigint, gpu_us_new bigint, account_id text,"
        " provider_account_id text, client_account_id text, owners json, drawn json",
        f"""INSERT INTO own.leased
        SELECT position, lease_id, node_id, until_us, gpu_us_new,
            {IS_OWN_USE}
        FROM facts f WHERE gpu_us_new > 0""",
    ),
    Rule(
        ("lease.usage_countersigned.v1",),
        "lease_id text, gpu_us bigint, until_us bigint",
        "INSERT INTO own.signed SELECT lease_id, position, gpu_us, until_us FROM facts",
    ),
)

SIGNED = """
    SELECT a.node_id, sum(a.gpu_us)::bigint
    FROM proj_epochs.leased a JOIN LATERAL (
        SELECT gpu_us, until_us FROM proj_epochs.signed s
        WHERE s.lease_id = a.lease_id AND s.position <= %(as_of)s
        ORDER BY position DESC LIMIT 1) s ON true
    WHERE a.until_us > %(from)s AND a.until_us <= %(to)s AND a.position <= %(as_of)s
        AND a.until_us <= s.until_us AND NOT a.is_related
        AND s.gpu_us >= (SELECT sum(b.gpu_us) FROM proj_epochs.leased b
            WHERE b.lease_id = a.lease_id AND b.until_us <= s.until_us
                AND b.position <= %(as_of)s)
    GROUP BY a.node_id ORDER BY a.node_id
"""


def read_signed(connection: Connection, from_us: int, to_us: int, as_of: int) -> dict[str, int]:
    """GPU-microseconds by node of accruals that end after `from_us` and until `to_us`; by facts up
    to the market-log position `as_of`. The view of epochs must have read as far.
    """
    asked = {"from": from_us, "to": to_us, "as_of": as_of}
    return dict(connection.execute(SIGNED.encode(), asked).fetchall())
