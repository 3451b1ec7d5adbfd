"""What does each epoch pay? The weights so far of the open one, sealed results, rewards, payouts.

    weight of epoch e == burned value of the cut: credits retired at use in e + burns confirmed in e

A preview until the epoch closes; from the seal on the facts decide, and the rewards here are copies
of them. A provider's own use has no weight, nor has what was paid from subsidised or unconfirmed
sources (design economics 5 and 8).

    weight of a contested part == 0       in the epoch of the dispute, if the part was counted there
    what a ruling leaves of it            counts in the epoch of the ruling

A part that had been counted in an epoch whose cut was past keeps its weight (economics 17).
"""

from __future__ import annotations

from dataclasses import dataclass

from projections import read
from projections.earnings import CUT_RULE, CUTS, EPOCH_OF
from projections.runner import Connection, Projection, Rule

_TABLES = (
    CUTS
    + """
    CREATE TABLE own.epoch (
        epoch int PRIMARY KEY, start_us bigint NOT NULL, end_us bigint NOT NULL,
        policy_version int NOT NULL, opened_at_us bigint NOT NULL, position bigint NOT NULL,
        closing_at_us bigint, sealed_position bigint, sealed_at_us bigint, cut_position bigint,
        emission bigint, compute_pool bigint, availability_pool bigint, treasury_pool bigint,
        compute_carry_before bigint, compute_carry bigint, rewards bigint, recipients int,
        chunks int, file_sha256 text, credited int NOT NULL, matured int NOT NULL,
        minted bigint, mint_tx_hash text) WITH (fillfactor = 70);
    CREATE TABLE own.burning (
        position bigint PRIMARY KEY, account_id text COLLATE "C" NOT NULL, units bigint NOT NULL,
        weight bigint NOT NULL);
    COMMENT ON TABLE own.burning IS 'Charged by an accrual to be burned; weight once it is';
    CREATE TABLE own.burn (
        burn_id bigint PRIMARY KEY, first_position bigint NOT NULL, last_position bigint NOT NULL,
        credits bigint NOT NULL, tokens bigint NOT NULL, price_micro_usd bigint NOT NULL,
        state text NOT NULL, tx_hash text, at_us bigint NOT NULL, position bigint NOT NULL,
        confirmed_position bigint);
    CREATE TABLE own.disputed (
        position bigint PRIMARY KEY, dispute_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, opened_position bigint NOT NULL,
        gpu_us bigint NOT NULL, burned bigint NOT NULL, to_burn bigint NOT NULL,
        resolved_position bigint, kept_gpu_us bigint, kept_burned bigint, kept_to_burn bigint);
    COMMENT ON TABLE own.disputed IS 'Weights of the contested part of a charge, by its position';
    CREATE TABLE own.weight (
        epoch int, account_id text COLLATE "C", burned bigint NOT NULL, gpu_us bigint NOT NULL,
        PRIMARY KEY (epoch, account_id)) WITH (fillfactor = 70);
    CREATE TABLE own.reward (
        epoch int, account_id text COLLATE "C", chunk int NOT NULL, credited bigint NOT NULL,
        matured bigint NOT NULL, PRIMARY KEY (epoch, account_id));
    CREATE TABLE own.lifetime (
        account_id text COLLATE "C" PRIMARY KEY, credited bigint NOT NULL, matured bigint NOT NULL);
    COMMENT ON TABLE own.lifetime IS 'Ever credited, and ever matured: the payout leaf';
    CREATE TABLE own.root (
        epoch int, seq int, root text NOT NULL, manifest_sha256 text NOT NULL,
        previous_root text NOT NULL, committed bigint NOT NULL, leaves int NOT NULL,
        state text NOT NULL, valid_at_us bigint, tx_hash text, reason text, at_us bigint NOT NULL,
        position bigint NOT NULL, PRIMARY KEY (epoch, seq, position));
    CREATE TABLE own.claim (
        position bigint PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        address text COLLATE "C" NOT NULL, distributor text NOT NULL, seq int NOT NULL,
        amount bigint NOT NULL, cumulative bigint NOT NULL, tx_hash text NOT NULL,
        block_number bigint NOT NULL, at_us bigint NOT NULL);
"""
)

_INDEXES = """
    CREATE INDEX ON own.reward (account_id, epoch);
    CREATE INDEX ON own.claim (account_id, position);
    CREATE INDEX ON own.disputed (dispute_id);
"""

_ROOT_STATES = """CASE topic WHEN 'payout.root_proposed.v1' THEN 'proposed'
    WHEN 'payout.root_vetoed.v1' THEN 'vetoed' ELSE 'accepted' END"""

_PAID = """CROSS JOIN LATERAL (
        SELECT coalesce(sum(units), 0) AS total,
            coalesce(sum(units) FILTER (WHERE source = 'cash' AND NOT is_own), 0) AS cash,
            coalesce(sum(units) FILTER (WHERE source = 'burned' AND NOT is_own), 0) AS burned,
            coalesce(sum(units) FILTER (WHERE source IN ('cash', 'burned') AND NOT is_own), 0)
                AS counted,
            coalesce(bool_or(source = 'burned'), false) AS is_burned
        FROM (
            SELECT (part->'amount'->>'units')::numeric AS units, part->>'source' AS source,
                coalesce(part->>'account_id' = provider_account_id, false) AS is_own
            FROM json_array_elements(drawn) part WHERE part->>'purpose' IS NULL) p) d"""
"""SQL: what of an accrual's `drawn` paid for usage and has weight, and whether it was bought by
burning. What the provider itself paid, for whomever, has none: it would be its own renter.
"""


def _epoch(position: str) -> str:
    """SQL: the epoch of a position."""
    found = f"SELECT max(c.epoch) FROM own.cut c WHERE c.position < {position}"
    return f"(coalesce(({found}), 0) + 1)"


_BURNT_AT = """(SELECT b.confirmed_position FROM own.burn b
    WHERE b.state = 'confirmed' AND d.position BETWEEN b.first_position AND b.last_position
        AND d.position < b.position)"""
"""SQL: where the burn of a disputed charge was confirmed; at most one burn covers a charge."""
_WAS_OUT = f"{_epoch('f.line')} = {_epoch('f.opened_position')}"
_WAS_BURNT = f"""(f.burnt_at < f.opened_position
    AND {_epoch("f.burnt_at")} = {_epoch("f.opened_position")})"""
_OUT_GPU_US = f"CASE WHEN {_WAS_OUT} THEN f.gpu_us ELSE 0 END"
_OUT_BURNED = f"CASE WHEN {_WAS_OUT} THEN f.burned ELSE 0 END"
_OUT_TO_BURN = f"CASE WHEN {_WAS_BURNT} THEN f.to_burn ELSE 0 END"
_BACK_GPU_US = f"CASE WHEN {_WAS_OUT} THEN f.kept_gpu_us ELSE 0 END"
_BACK_BURNED = f"CASE WHEN {_WAS_OUT} THEN f.kept_burned ELSE 0 END"
_BACK_TO_BURN = f"""CASE WHEN {_WAS_BURNT}
    OR (f.burnt_at > f.opened_position AND f.burnt_at < f.position)
    THEN f.kept_to_burn ELSE 0 END"""

_RULES = (
    CUT_RULE,
    # Before everything that counts weights, for those rules look here what is contested.
    Rule(
        ("dispute.opened.v1",),
        "dispute_id text, lines json",
        f"""INSERT INTO own.disputed
        SELECT e.notification_id, f.dispute_id, a.provider_account_id, f.position,
            (l->>'gpu_us')::bigint,
            CASE WHEN is_burned THEN div(div(burn * burned, total) * claimed, charge) ELSE 0 END,
            CASE WHEN is_burned OR total = 0 THEN 0
                ELSE div(div(burn * cash, total) * claimed, charge) END,
            NULL, NULL, NULL, NULL
        FROM facts f CROSS JOIN LATERAL json_array_elements(f.lines) l
        JOIN public.market_events e ON e.notification_id = (l->>'position')::bigint
            AND e.topic = 'lease.usage_accrued.v1'
        CROSS JOIN LATERAL json_to_record(convert_from(e.state, 'UTF8')::json)
            AS a(account_id text, provider_account_id text, parts_new json, drawn json)
        {_PAID}
        CROSS JOIN LATERAL (
            SELECT (a.parts_new->>'burn')::numeric AS burn,
                (l->'claimed'->>'units')::numeric AS claimed,
                (l->'charge'->>'units')::numeric AS charge) n
        WHERE a.account_id <> a.provider_account_id""",
    ),
    Rule(
        ("dispute.resolved.v1",),
        "lines json",
        """UPDATE own.disputed d SET resolved_position = r.position,
            kept_gpu_us = d.gpu_us - div(d.gpu_us * r.upheld, r.claimed),
            kept_burned = d.burned - div(d.burned * r.upheld, r.claimed),
            kept_to_burn = d.to_burn - div(d.to_burn * r.upheld, r.claimed)
        FROM (
            SELECT f.position, (l->>'position')::bigint AS line,
                (l->'upheld'->>'units')::numeric AS upheld,
                (l->'claimed'->>'units')::numeric AS claimed
            FROM facts f CROSS JOIN LATERAL json_array_elements(f.lines) l) r
        WHERE d.position = r.line""",
    ),
    Rule(
        ("epoch.opened.v1",),
        "epoch int, start_us bigint, end_us bigint, policy_version int, at_us bigint",
        """INSERT INTO own.epoch (epoch, start_us, end_us, policy_version, opened_at_us, position,
            credited, matured)
        SELECT epoch, start_us, end_us, policy_version, at_us, position, 0, 0 FROM facts""",
    ),
    Rule(
        ("epoch.closing.v1",),
        "epoch int, at_us bigint",
        "UPDATE own.epoch e SET closing_at_us = f.at_us FROM facts f WHERE e.epoch = f.epoch",
    ),
    Rule(
        ("epoch.sealed.v1",),
        "epoch int, cut_position bigint, policy_version int, emission json, compute_pool json,"
        " availability_pool json, treasury_pool json, compute_carry_before json,"
        " compute_carry json, rewards json, recipients int, chunks int, file_sha256 text,"
        " at_us bigint",
        """UPDATE own.epoch e SET sealed_position = f.position, sealed_at_us = f.at_us,
            cut_position = f.cut_position, policy_version = f.policy_version,
            emission = (f.emission->>'units')::bigint,
            compute_pool = (f.compute_pool->>'units')::bigint,
            availability_pool = (f.availability_pool->>'units')::bigint,
            treasury_pool = (f.treasury_pool->>'units')::bigint,
            compute_carry_before = (f.compute_carry_before->>'units')::bigint,
            compute_carry = (f.compute_carry->>'units')::bigint,
            rewards = (f.rewards->>'units')::bigint, recipients = f.recipients,
            chunks = f.chunks, file_sha256 = f.file_sha256
        FROM facts f WHERE e.epoch = f.epoch""",
    ),
    # Credits that were bought by burning are retired at use and have weight at once. Others have it
    # when their burn is confirmed, and then the part that cash paid of the charge. GPU time counts
    # in the same proportion: what a card that may be reversed, a grant or earned credits paid has
    # no weight, and what nobody paid has none either.
    Rule(
        ("lease.usage_accrued.v1",),
        "account_id text, provider_account_id text, gpu_us_new bigint, parts_new json, drawn json",
        f""", paid AS (
            SELECT f.position, account_id, provider_account_id, gpu_us_new, d.*,
                (parts_new->>'burn')::bigint AS burn
            FROM facts f {_PAID}
        ), due AS (
            INSERT INTO own.burning
            SELECT position, provider_account_id, burn, CASE
                WHEN account_id = provider_account_id THEN 0
                ELSE div(burn * cash, total)::bigint END
            FROM paid WHERE burn > 0 AND NOT is_burned
        )
        INSERT INTO own.weight AS w
        SELECT {EPOCH_OF}, provider_account_id,
            sum(CASE WHEN is_burned THEN div(burn * burned, total) ELSE 0 END)::bigint,
            sum(CASE WHEN total > 0 THEN div(gpu_us_new * counted, total) ELSE 0 END)::bigint
        FROM paid f WHERE account_id <> provider_account_id GROUP BY 1, 2
        ON CONFLICT (epoch, account_id) DO UPDATE
            SET burned = w.burned + excluded.burned, gpu_us = w.gpu_us + excluded.gpu_us""",
    ),
    # What no node signed is burned like any charge, and has no weight for rewards.
    Rule(
        ("resource.accrued.v1",),
        "provider_account_id text, parts_new json, drawn json",
        """INSERT INTO own.burning
        SELECT position, provider_account_id, units, 0 FROM (
            SELECT position, provider_account_id, (parts_new->>'burn')::bigint - coalesce((
                SELECT sum((part->'amount'->>'units')::bigint)
                FROM json_array_elements(f.drawn) part WHERE part->>'source' = 'burned'
            ), 0)::bigint AS units
            FROM facts f) due
        WHERE units > 0""",
    ),
    Rule(
        ("burn.intended.v1",),
        "burn_id bigint, first_position bigint, last_position bigint, credits json, tokens json,"
        " price_micro_usd bigint, at_us bigint",
        """INSERT INTO own.burn
        SELECT burn_id, first_position, last_position, (credits->>'units')::bigint,
            (tokens->>'units')::bigint, price_micro_usd, 'intended', NULL, at_us, position, NULL
        FROM facts""",
    ),
    Rule(
        ("burn.confirmed.v1", "burn.failed.v1"),
        "burn_id bigint, tx_hash text",
        """UPDATE own.burn b SET tx_hash = f.tx_hash,
            state = CASE f.topic WHEN 'burn.confirmed.v1' THEN 'confirmed' ELSE 'failed' END,
            confirmed_position = CASE f.topic WHEN 'burn.confirmed.v1' THEN f.position END
        FROM facts f WHERE b.burn_id = f.burn_id""",
    ),
    Rule(
        ("burn.confirmed.v1",),
        "burn_id bigint",
        f"""INSERT INTO own.weight AS w
        SELECT {EPOCH_OF}, g.account_id, sum(g.weight - CASE
            WHEN d.position IS NULL OR d.opened_position > f.position THEN 0
            WHEN d.resolved_position < f.position THEN d.to_burn - d.kept_to_burn
            ELSE d.to_burn END), 0
        FROM facts f JOIN own.burn b ON b.burn_id = f.burn_id
        JOIN own.burning g ON g.position BETWEEN b.first_position AND b.last_position
            AND g.position < b.position
        LEFT JOIN own.disputed d ON d.position = g.position
        GROUP BY 1, 2
        ON CONFLICT (epoch, account_id) DO UPDATE SET burned = w.burned + excluded.burned""",
    ),
    Rule(
        ("dispute.opened.v1",),
        "dispute_id text",
        f"""INSERT INTO own.weight AS w
        SELECT {EPOCH_OF}, account_id, -sum({_OUT_BURNED} + {_OUT_TO_BURN}), -sum({_OUT_GPU_US})
        FROM (SELECT f.position, d.*, {_BURNT_AT} AS burnt_at
            FROM facts f JOIN own.disputed d ON d.dispute_id = f.dispute_id) AS f (
            position, line, dispute_id, account_id, opened_position, gpu_us, burned, to_burn,
            resolved_position, kept_gpu_us, kept_burned, kept_to_burn, burnt_at)
        GROUP BY 1, 2
        ON CONFLICT (epoch, account_id) DO UPDATE
            SET burned = w.burned + excluded.burned, gpu_us = w.gpu_us + excluded.gpu_us""",
    ),
    Rule(
        ("dispute.resolved.v1",),
        "dispute_id text",
        f"""INSERT INTO own.weight AS w
        SELECT {EPOCH_OF}, account_id, sum({_BACK_BURNED} + {_BACK_TO_BURN}), sum({_BACK_GPU_US})
        FROM (SELECT f.position, d.*, {_BURNT_AT} AS burnt_at
            FROM facts f JOIN own.disputed d ON d.dispute_id = f.dispute_id) AS f (
            position, line, dispute_id, account_id, opened_position, gpu_us, burned, to_burn,
            resolved_position, kept_gpu_us, kept_burned, kept_to_burn, burnt_at)
        GROUP BY 1, 2
        ON CONFLICT (epoch, account_id) DO UPDATE
            SET burned = w.burned + excluded.burned, gpu_us = w.gpu_us + excluded.gpu_us""",
    ),
    # An adjustment that gives credits back which were charged to be burned makes the next burn
    # smaller; usage that is charged late has its weight now.
    Rule(
        ("adjustment.booked.v1",),
        "provider_account_id text, lines json",
        """INSERT INTO own.burning
        SELECT position, provider_account_id, due, CASE
            WHEN due > 0 AND paid > 0 THEN div(due * cash, paid)::bigint ELSE 0 END
        FROM facts f CROSS JOIN LATERAL (
            SELECT -sum(units) FILTER (WHERE account = 'network:burn_due') AS due,
                coalesce(sum(units) FILTER (WHERE units > 0), 0) AS paid,
                coalesce(sum(units) FILTER (WHERE account LIKE 'party:%%:cash' AND units > 0), 0)
                    AS cash
            FROM (
                SELECT line->>'account' AS account, (line->>'units')::numeric AS units
                FROM json_array_elements(f.lines) line) l) s
        WHERE due <> 0""",
    ),
    Rule(
        ("adjustment.booked.v1",),
        "account_id text, provider_account_id text, lines json, late json",
        f"""INSERT INTO own.weight AS w
        SELECT {EPOCH_OF}, provider_account_id, sum(burned)::bigint,
            sum((late->>'gpu_us_new')::bigint)
        FROM facts f CROSS JOIN LATERAL (
            SELECT coalesce(-sum((line->>'units')::numeric), 0) AS burned
            FROM json_array_elements(f.lines) line
            WHERE line->>'account' = 'world:burned') l
        WHERE late IS NOT NULL AND account_id <> provider_account_id GROUP BY 1, 2
        ON CONFLICT (epoch, account_id) DO UPDATE
            SET burned = w.burned + excluded.burned, gpu_us = w.gpu_us + excluded.gpu_us""",
    ),
    Rule(
        ("epoch.rewards_credited.v1", "epoch.rewards_matured.v1"),
        "epoch int, chunk int, rewards json",
        """INSERT INTO own.reward AS r
        SELECT epoch, reward->>'account_id', min(chunk),
            coalesce(sum((reward->'amount'->>'units')::bigint)
                FILTER (WHERE topic = 'epoch.rewards_credited.v1'), 0),
            coalesce(sum((reward->'amount'->>'units')::bigint)
                FILTER (WHERE topic = 'epoch.rewards_matured.v1'), 0)
        FROM facts, json_array_elements(rewards) reward GROUP BY 1, 2
        ON CONFLICT (epoch, account_id) DO UPDATE SET
            credited = r.credited + excluded.credited, matured = r.matured + excluded.matured""",
    ),
    Rule(
        ("epoch.rewards_credited.v1", "epoch.rewards_matured.v1"),
        "rewards json",
        """INSERT INTO own.lifetime AS t
        SELECT reward->>'account_id', coalesce(sum((reward->'amount'->>'units')::bigint)
                FILTER (WHERE topic = 'epoch.rewards_credited.v1'), 0),
            coalesce(sum((reward->'amount'->>'units')::bigint)
                FILTER (WHERE topic = 'epoch.rewards_matured.v1'), 0)
        FROM facts, json_array_elements(rewards) reward GROUP BY 1
        ON CONFLICT (account_id) DO UPDATE SET
            credited = t.credited + excluded.credited, matured = t.matured + excluded.matured""",
    ),
    Rule(
        ("epoch.rewards_credited.v1", "epoch.rewards_matured.v1"),
        "epoch int",
        """UPDATE own.epoch e SET credited = e.credited + f.credited,
            matured = e.matured + f.matured
        FROM (
            SELECT epoch, count(*) FILTER (WHERE topic = 'epoch.rewards_credited.v1') AS credited,
                count(*) FILTER (WHERE topic = 'epoch.rewards_matured.v1') AS matured
            FROM facts GROUP BY epoch) f
        WHERE e.epoch = f.epoch""",
    ),
    Rule(
        ("epoch.mint_confirmed.v1",),
        "epoch int, amount json, tx_hash text",
        """UPDATE own.epoch e SET minted = (f.amount->>'units')::bigint, mint_tx_hash = f.tx_hash
        FROM facts f WHERE e.epoch = f.epoch""",
    ),
    Rule(
        ("payout.root_built.v1",),
        "epoch int, seq int, root text, manifest_sha256 text, previous_root text,"
        " committed json, leaves int, at_us bigint",
        """INSERT INTO own.root
        SELECT epoch, seq, root, manifest_sha256, previous_root, (committed->>'units')::bigint,
            leaves, 'built', NULL, NULL, NULL, at_us, position
        FROM facts""",
    ),
    # After a veto the same numbers are built again: a fact means the newest build before it.
    Rule(
        ("payout.root_proposed.v1", "payout.root_vetoed.v1", "payout.root_accepted.v1"),
        "epoch int, seq int, root text, valid_at_us bigint, tx_hash text, reason text",
        f"""UPDATE own.root r SET state = f.state, tx_hash = f.tx_hash,
            valid_at_us = coalesce(f.valid_at_us, r.valid_at_us), reason = f.reason
        FROM (
            SELECT built, (array_agg(state ORDER BY position DESC))[1] AS state,
                (array_agg(tx_hash ORDER BY position DESC))[1] AS tx_hash,
                (array_agg(reason ORDER BY position DESC))[1] AS reason,
                max(valid_at_us) AS valid_at_us
            FROM (
                SELECT {_ROOT_STATES} AS state, f.*, (
                    SELECT max(r.position) FROM own.root r
                    WHERE r.epoch = f.epoch AND r.seq = f.seq AND r.position < f.position) AS built
                FROM facts f) g
            GROUP BY built) f
        WHERE r.position = f.built""",
    ),
    Rule(
        ("payout.confirmed.v1",),
        "account_id text, address text, distributor text, seq int, amount json, cumulative json,"
        " tx_hash text, block_number bigint, at_us bigint",
        """INSERT INTO own.claim
        SELECT position, account_id, address, distributor, seq, (amount->>'units')::bigint,
            (cumulative->>'units')::bigint, tx_hash, block_number, at_us
        FROM facts""",
    ),
)

EPOCHS = Projection("epochs", _TABLES, _RULES, _INDEXES)


@dataclass(frozen=True, slots=True)
class EpochRow:
    """Token units. `state`: open, closing, sealed, credited or settled, as in `domain.epoch`."""

    epoch: int
    state: str
    start_us: int
    end_us: int
    policy_version: int
    opened_at_us: int
    position: int
    closing_at_us: int | None
    sealed_position: int | None
    sealed_at_us: int | None
    cut_position: int | None
    emission: int | None
    compute_pool: int | None
    availability_pool: int | None
    treasury_pool: int | None
    compute_carry_before: int | None
    compute_carry: int | None
    rewards: int | None
    recipients: int | None
    chunks: int | None
    file_sha256: str | None
    credited: int
    matured: int
    minted: int | None
    mint_tx_hash: str | None


@dataclass(frozen=True, slots=True)
class RewardRow:
    epoch: int
    account_id: str
    chunk: int
    credited: int
    matured: int


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Token units ever credited and ever matured; `claimed` on chain so far."""

    account_id: str
    credited: int
    matured: int
    claimed: int


@dataclass(frozen=True, slots=True)
class Root:
    """`state`: built, proposed, vetoed or accepted."""

    epoch: int
    seq: int
    root: str
    manifest_sha256: str
    previous_root: str
    committed: int
    leaves: int
    state: str
    valid_at_us: int | None
    tx_hash: str | None
    reason: str | None
    at_us: int
    position: int


@dataclass(frozen=True, slots=True)
class Claim:
    position: int
    account_id: str
    address: str
    distributor: str
    seq: int
    amount: int
    cumulative: int
    tx_hash: str
    block_number: int
    at_us: int


@dataclass(frozen=True, slots=True)
class Burn:
    """`state`: intended, confirmed or failed; micro-credits and token units."""

    burn_id: int
    first_position: int
    last_position: int
    credits: int
    tokens: int
    price_micro_usd: int
    state: str
    tx_hash: str | None
    at_us: int
    position: int
    confirmed_position: int | None


@dataclass(frozen=True, slots=True)
class Preview:
    """The weights of an epoch as far as the log has been read. Final once its cut is behind."""

    epoch: int
    position: int
    is_final: bool
    burned: tuple[tuple[str, int], ...]
    gpu_us: tuple[tuple[str, int], ...]

    def weights(self, compute_base: str) -> tuple[tuple[str, int], ...]:
        """(account id, weight) by the policy's base, for `domain.epoch`; none of them zero."""
        chosen = {"burned_value": self.burned, "gpu_time": self.gpu_us}[compute_base]
        return tuple((account, weight) for account, weight in chosen if weight)


_STATE = """CASE WHEN sealed_position IS NULL AND closing_at_us IS NULL THEN 'open'
    WHEN sealed_position IS NULL THEN 'closing' WHEN credited < chunks THEN 'sealed'
    WHEN matured < chunks THEN 'credited' ELSE 'settled' END AS state"""


# One statement, so that position and weights are of one moment.
_PREVIEW = """
    SELECT p.position, c.closed, c.wanted, w.account_id, w.burned, w.gpu_us
    FROM proj_epochs.position p CROSS JOIN (
        SELECT coalesce(max(epoch), 0) AS closed,
            coalesce(%(epoch)s::int, max(epoch) + 1, 1) AS wanted
        FROM proj_epochs.cut) c
    LEFT JOIN proj_epochs.weight w ON w.epoch = c.wanted
    WHERE p.source = 'market' ORDER BY w.account_id
"""


def read_epoch(connection: Connection, epoch: int) -> EpochRow | None:
    sql = f"SELECT *, {_STATE} FROM proj_epochs.epoch WHERE epoch = %(epoch)s"
    return read.one(connection, EpochRow, sql, epoch=epoch)


def read_epochs(connection: Connection, *, after: int = 0, limit: int = 50) -> list[EpochRow]:
    """In order; `after` is the last epoch of the page before."""
    sql = f"""SELECT *, {_STATE} FROM proj_epochs.epoch WHERE epoch > %(after)s
        ORDER BY epoch LIMIT %(limit)s"""
    return read.many(connection, EpochRow, sql, after=after, limit=limit)


def read_preview(connection: Connection, epoch: int | None = None) -> Preview:
    """The weights of an epoch (the open one if None), by account id.

    `is_final` is True when the projection has read the epoch's closing: nothing can change them.
    """
    rows = connection.execute(_PREVIEW, {"epoch": epoch}).fetchall()
    position, closed, wanted = (int(value) for value in rows[0][:3])
    weights = [(str(row[3]), int(row[4]), int(row[5])) for row in rows if row[3] is not None]
    return Preview(
        wanted,
        position,
        wanted <= closed,
        tuple((account, burned) for account, burned, _ in weights),
        tuple((account, gpu_us) for account, _, gpu_us in weights),
    )


def read_rewards(
    connection: Connection,
    *,
    epoch: int | None = None,
    account_id: str | None = None,
    after: tuple[int, str] = (0, ""),
    limit: int = 50,
) -> list[RewardRow]:
    """By epoch, then account; `after` is (epoch, account_id) of the last row before."""
    sql = """SELECT * FROM proj_epochs.reward WHERE (epoch, account_id) > (%(e)s, %(a)s)
        AND (%(epoch)s::int IS NULL OR epoch = %(epoch)s)
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY epoch, account_id LIMIT %(limit)s"""
    return read.many(
        connection, RewardRow, sql, epoch=epoch, account=account_id, e=after[0], a=after[1],
        limit=limit,
    )  # fmt: skip


def read_lifetimes(
    connection: Connection, *, account_id: str | None = None, after: str = "", limit: int = 50
) -> list[Lifetime]:
    """By account id: what each payout leaf holds (`matured`), and what was claimed of it."""
    sql = """SELECT t.*, (SELECT coalesce(sum(c.amount), 0)::bigint FROM proj_epochs.claim c
            WHERE c.account_id = t.account_id) AS claimed
        FROM proj_epochs.lifetime t WHERE t.account_id > %(after)s
        AND (%(account)s::text IS NULL OR t.account_id = %(account)s)
        ORDER BY t.account_id LIMIT %(limit)s"""
    return read.many(connection, Lifetime, sql, account=account_id, after=after, limit=limit)


def read_roots(connection: Connection, *, after: int = 0, limit: int = 50) -> list[Root]:
    """In order of building; `after` is the last position of the page before."""
    sql = "SELECT * FROM proj_epochs.root WHERE position > %(a)s ORDER BY position LIMIT %(limit)s"
    return read.many(connection, Root, sql, a=after, limit=limit)


def read_root(connection: Connection, epoch: int) -> Root | None:
    """The newest root built for an epoch."""
    sql = "SELECT * FROM proj_epochs.root WHERE epoch = %(e)s ORDER BY position DESC LIMIT 1"
    return read.one(connection, Root, sql, e=epoch)


def read_claims(
    connection: Connection, *, account_id: str | None = None, after: int = 0, limit: int = 50
) -> list[Claim]:
    """Confirmed claims in order; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_epochs.claim WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.many(connection, Claim, sql, account=account_id, after=after, limit=limit)


def read_burns(connection: Connection, *, after: int = 0, limit: int = 50) -> list[Burn]:
    """The network's own burns in order; `after` is the last burn id of the page before."""
    sql = "SELECT * FROM proj_epochs.burn WHERE burn_id > %(a)s ORDER BY burn_id LIMIT %(limit)s"
    return read.many(connection, Burn, sql, a=after, limit=limit)


def read_burn_due(connection: Connection, first_position: int, last_position: int) -> int:
    """Micro-credits that accruals at these positions (both included) charged to be burned."""
    sql = """SELECT coalesce(sum(units), 0) FROM proj_epochs.burning
        WHERE position BETWEEN %(first)s AND %(last)s"""
    return read.number(connection, sql, first=first_position, last=last_position)
