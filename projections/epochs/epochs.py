"""What does each epoch pay? The weights so far of the open one, sealed results, rewards, payouts.

    weight of epoch e == burned value of the cut: credits retired at use in e + burns confirmed in e
                         - what adjustments of e take back of either

By node and by the funding source that paid, so that a policy may weigh any of them. A preview until
the epoch closes; from the seal on the facts decide, and the rewards here are copies of them. What
one party pays to a related one has no weight (`domain/trust/related.py`), nor has what nobody has
paid: the parts of a charge are those of the whole charge (design economics 5 and 8).

    weight of a contested part == 0       in the epoch of the dispute, if the part was counted there
    what was contested comes back         in the epoch of the ruling

    taken back of a charge, so far == floor(counted x returned so far / charge)

What an adjustment gives back of a charge is taken back from its weights, and from the TOKEN that
were burned for it, in the epoch in which the adjustment is booked, whatever its reason: a sealed
epoch never changes, so a weight may be below zero here. `domain/epochs/taken_back.py` sets it off.

    sum of TOKEN said to be burned for nodes, over all epochs <= TOKEN burned           of each burn
    and <= TOKEN that the payer burned for credits                                of each payer

Only what cash and burned credits paid counts as burned for a node: it bounds a reward, and a grant
must not lift that bound (economics 13).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from domain.epochs.clients import ClientUse
from projections import read
from projections.epochs import burning, signed
from projections.epochs.cuts import CUT_RULE, CUTS, EPOCH_OF
from projections.read import OLDEST, Way
from projections.runner import Connection, Projection, Rule
from projections.trust.ties import TIE_RULES, TIES, is_paid_back, is_paid_to

_TABLES = (
    CUTS
    + TIES
    + burning.TABLES
    + signed.TABLES
    + """
    CREATE TABLE own.epoch (
        epoch int PRIMARY KEY, start_us bigint NOT NULL, end_us bigint NOT NULL,
        policy_version int NOT NULL, opened_at_us bigint NOT NULL, position bigint NOT NULL,
        closing_at_us bigint, sealed_position bigint, sealed_at_us bigint, cut_position bigint,
        emission bigint, compute_pool bigint, availability_pool bigint, treasury_pool bigint,
        compute_carry_before bigint, compute_carry bigint, rewards bigint, recipients int,
        chunks int, file_sha256 text, clients_sha256 text, unissued bigint, recyclable bigint,
        release bigint,
        returned bigint, returned_release bigint, availability_carry_before bigint,
        availability_carry bigint, compute_weight bigint, availability_weight bigint,
        availability_tier_2_weight bigint,
        credited int NOT NULL, matured int NOT NULL,
        minted bigint, mint_tx_hash text) WITH (fillfactor = 70);
    CREATE TABLE own.counted (
        position bigint, source text COLLATE "C", payer_id text COLLATE "C",
        node_id text COLLATE "C" NOT NULL, account_id text COLLATE "C" NOT NULL,
        burned bigint NOT NULL, gpu_us bigint NOT NULL, charge bigint NOT NULL,
        client_id text COLLATE "C" NOT NULL, PRIMARY KEY (position, source, payer_id));
    COMMENT ON TABLE own.counted IS 'What strangers paid of a charge; it weighs once burned';
    COMMENT ON COLUMN own.counted.node_id IS 'Empty: used without weight (burned credits)';
    CREATE TABLE own.lease_node (
        lease_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C",
        client_id text COLLATE "C" NOT NULL);
    CREATE TABLE own.purchase (
        position bigint PRIMARY KEY, account_id text COLLATE "C", tokens bigint NOT NULL,
        credits bigint NOT NULL);
    CREATE INDEX ON own.purchase (account_id);
    CREATE TABLE own.used (
        epoch int, payer_id text COLLATE "C", node_id text COLLATE "C",
        account_id text COLLATE "C" NOT NULL, credits bigint NOT NULL,
        PRIMARY KEY (payer_id, epoch, node_id)) WITH (fillfactor = 70);
    COMMENT ON TABLE own.used IS 'Burned credits that a payer used; without a node, without weight';
    CREATE INDEX ON own.used (epoch);
    CREATE INDEX ON own.used (node_id);
    CREATE INDEX ON own.used (account_id) WHERE credits < 0;
    CREATE TABLE own.burnt (
        epoch int, burn_id bigint, node_id text COLLATE "C",
        account_id text COLLATE "C" NOT NULL, credits bigint NOT NULL,
        PRIMARY KEY (burn_id, node_id, epoch)) WITH (fillfactor = 70);
    COMMENT ON TABLE own.burnt IS 'Of a confirmed burn, the credits that cash paid for a node';
    CREATE INDEX ON own.burnt (epoch);
    CREATE INDEX ON own.burnt (node_id);
    CREATE INDEX ON own.burnt (account_id) WHERE credits < 0;
    CREATE TABLE own.disputed (
        position bigint, source text COLLATE "C", payer_id text COLLATE "C",
        dispute_id text COLLATE "C" NOT NULL, node_id text COLLATE "C" NOT NULL,
        account_id text COLLATE "C" NOT NULL, opened_position bigint NOT NULL,
        gpu_us bigint NOT NULL, burned bigint NOT NULL, resolved_position bigint,
        client_id text COLLATE "C" NOT NULL, PRIMARY KEY (position, source, payer_id));
    COMMENT ON TABLE own.disputed IS 'Weights of the contested part of a charge, by its position';
    CREATE TABLE own.weight (
        epoch int, node_id text COLLATE "C", account_id text COLLATE "C", source text COLLATE "C",
        burned bigint NOT NULL, gpu_us bigint NOT NULL,
        PRIMARY KEY (epoch, node_id, account_id, source)) WITH (fillfactor = 70);
    COMMENT ON TABLE own.weight IS 'Below zero where corrections took back more than there was';
    CREATE INDEX ON own.weight (account_id) WHERE burned < 0 OR gpu_us < 0;
    CREATE TABLE own.brought (
        epoch int, node_id text COLLATE "C", client_id text COLLATE "C", source text COLLATE "C",
        burned bigint NOT NULL, gpu_us bigint NOT NULL,
        PRIMARY KEY (epoch, node_id, client_id, source)) WITH (fillfactor = 70);
    COMMENT ON TABLE own.brought IS 'The same weights by the compute client that brought the work';
    CREATE TABLE own.reward (
        epoch int, account_id text COLLATE "C", chunk int NOT NULL, credited bigint NOT NULL,
        matured bigint NOT NULL, slashed bigint NOT NULL, PRIMARY KEY (epoch, account_id));
    CREATE TABLE own.lifetime (
        account_id text COLLATE "C" PRIMARY KEY, credited bigint NOT NULL, matured bigint NOT NULL);
    COMMENT ON TABLE own.lifetime IS 'Ever credited, and ever matured and not forfeited: the leaf';
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

_INDEXES = (
    signed.INDEXES
    + """
    CREATE INDEX ON own.reward (account_id, epoch);
    CREATE INDEX ON own.claim (account_id, position);
    CREATE INDEX ON own.disputed (dispute_id);
"""
)

_ROOT_STATES = """CASE topic WHEN 'payout.root_proposed.v1' THEN 'proposed'
    WHEN 'payout.root_vetoed.v1' THEN 'vetoed' ELSE 'accepted' END"""

_PAID = f""", paid AS (
            SELECT f.*, d.source, d.payer_id, d.units, d.is_burned,
                {is_paid_back("f.account_id")}
                OR d.payer_id <> f.account_id AND {is_paid_back("d.payer_id")} AS is_own
            FROM facts f CROSS JOIN LATERAL (
                SELECT json_array_length(f.drawn) = 1 AND strpos(f.drawn::text, '"purpose"') = 0
                    AND strpos(f.drawn::text, '"account_id"') = 0 AS is_one OFFSET 0) o
            CROSS JOIN LATERAL (
                SELECT source, f.account_id AS payer_id, units, source = 'burned' AS is_burned
                FROM (
                    SELECT f.drawn #>> '{{0,source}}' AS source,
                        (f.drawn #>> '{{0,amount,units}}')::numeric AS units
                    WHERE o.is_one OFFSET 0) one WHERE units > 0
                UNION ALL
                SELECT *, bool_or(source = 'burned') OVER () FROM (
                    SELECT part->>'source' AS source,
                        coalesce(part->>'account_id', f.account_id) AS payer_id,
                        sum((part->'amount'->>'units')::numeric) AS units
                    FROM json_array_elements(f.drawn) part
                    WHERE NOT o.is_one AND part->>'purpose' IS NULL
                    GROUP BY 1, 2) each WHERE units > 0) d
            OFFSET 0
        )"""
"""SQL: who paid what of a charge for usage, and whether it comes back to one who is related. Most
charges are paid from one source, by one account: of those nothing is added up.
"""


_LATE_PAYEES = """(
        SELECT f.provider_account_id AS payee_id
        UNION SELECT substring(line->>'account' FROM '^party:(.+):holdback$')
        FROM json_array_elements(f.lines) line
        WHERE line->>'account' ~ '^party:.+:holdback$' AND (line->>'units')::numeric < 0)"""
"""SQL: who is paid by an adjustment for late usage."""


def _epoch(position: str) -> str:
    """SQL: the epoch of a position."""
    found = f"SELECT max(c.epoch) FROM own.cut c WHERE c.position < {position}"
    return f"(coalesce(({found}), 0) + 1)"


# Burned credits were retired at the charge itself, others when their burn was confirmed.
_WAS_OUT = f"{_epoch('d.position')} = {_epoch('d.opened_position')}"
_WAS_BURNT = f"""CASE WHEN d.source = 'burned' THEN {_WAS_OUT} ELSE coalesce(
    b.burnt_at < d.opened_position
    AND {_epoch("b.burnt_at")} = {_epoch("d.opened_position")}, false) END"""
_IS_BACK = f"""({_WAS_BURNT} OR coalesce(
    b.burnt_at > d.opened_position AND b.burnt_at < f.position, false))"""


def _lost(what: str, until: str) -> str:
    """SQL: of what was counted, what the adjustments before a position have taken back."""
    return f"""div(g.{what} * coalesce((SELECT sum(r.returned) FROM own.given_back r
        WHERE r.charge = g.position AND r.position < {until}), 0), g.charge)"""


_ADDED = """ON CONFLICT (epoch, node_id, account_id, source) DO UPDATE
            SET burned = w.burned + excluded.burned, gpu_us = w.gpu_us + excluded.gpu_us"""
_USED = """INSERT INTO own.used AS u
        SELECT epoch, payer_id, node_id, min(account_id), sum(burned)::bigint
        FROM moved WHERE source = 'burned' AND burned <> 0 GROUP BY 1, 2, 3
        ON CONFLICT (payer_id, epoch, node_id) DO UPDATE
            SET credits = u.credits + excluded.credits"""
_BURNT = """INSERT INTO own.burnt AS t
        SELECT epoch, burn_id, node_id, min(account_id), sum(burned)::bigint
        FROM moved WHERE source = 'cash' AND burn_id IS NOT NULL AND burned <> 0 GROUP BY 1, 2, 3
        ON CONFLICT (burn_id, node_id, epoch) DO UPDATE
            SET credits = t.credits + excluded.credits"""
_WEIGHED = f"""INSERT INTO own.weight AS w
        SELECT epoch, node_id, account_id, source, sum(burned)::bigint, sum(gpu_us)::bigint
        FROM moved WHERE (burned <> 0 OR gpu_us <> 0) AND node_id <> ''
        GROUP BY 1, 2, 3, 4 {_ADDED}"""


_BROUGHT = """INSERT INTO own.brought AS c
        SELECT epoch, node_id, client_id, source, sum(burned)::bigint, sum(gpu_us)::bigint
        FROM moved WHERE (burned <> 0 OR gpu_us <> 0) AND node_id <> '' GROUP BY 1, 2, 3, 4
        ON CONFLICT (epoch, node_id, client_id, source) DO UPDATE
            SET burned = c.burned + excluded.burned, gpu_us = c.gpu_us + excluded.gpu_us"""


def _moved(rows: str) -> str:
    """SQL after `facts`: rows (epoch, node_id, account_id, source, payer_id, client_id, burn_id,
    burned, gpu_us) go where they count: into weights, also by client, into what a payer used, into
    what was burned.
    """
    return f""", moved AS ({rows}), used AS ({_USED}), burnt AS ({_BURNT}),
        brought AS ({_BROUGHT}) {_WEIGHED}"""


_RULES = (
    CUT_RULE,
    *TIE_RULES,
    *burning.LOTS,
    *signed.RULES,
    Rule(
        ("lease.reserved.v1",),
        "lease_id text, node_id text, client_id text",
        """INSERT INTO own.lease_node
        SELECT DISTINCT ON (lease_id) lease_id, node_id, client_id FROM facts
        ORDER BY lease_id, position DESC
        ON CONFLICT (lease_id) DO UPDATE SET node_id = excluded.node_id""",
    ),
    # What strangers paid of a charge, by source. An accrual in burned credits retires all that it
    # burns at once; of others the part that each source paid waits for its burn. Burned credits
    # count as used all the same where they have no weight. A resource beside the GPU has no time.
    Rule(
        ("lease.usage_accrued.v1", "resource.accrued.v1"),
        "node_id text, account_id text, provider_account_id text, client_account_id text,"
        " owners json, gpu_us_new bigint, parts_new json, charge_new json, drawn json,"
        " client_id text",
        f"""{_PAID} INSERT INTO own.counted
        SELECT d.position, d.source, d.payer_id, CASE WHEN d.is_own THEN '' ELSE d.node_id END,
            CASE WHEN d.is_own THEN '' ELSE provider_account_id END,
            CASE WHEN d.is_burned AND d.source <> 'burned' THEN 0
                ELSE div((parts_new->>'burn')::numeric * d.units, c.charge) END,
            CASE WHEN d.is_own THEN 0 ELSE div(coalesce(gpu_us_new, 0) * d.units, c.charge) END,
            c.charge, coalesce(d.client_id, '')
        FROM paid d CROSS JOIN LATERAL (
            SELECT (charge_new->>'units')::numeric AS charge OFFSET 0) c
        WHERE NOT d.is_own OR d.source = 'burned'""",
    ),
    Rule(
        ("lease.term_ended_early.v1",),
        "account_id text, drawn json, kept json",
        """INSERT INTO own.counted
        SELECT f.position, 'burned', coalesce(part->>'account_id', f.account_id), '', '',
            sum((part->'amount'->>'units')::numeric), 0,
            (kept->>'units')::bigint, ''
        FROM facts f CROSS JOIN LATERAL json_array_elements(drawn) part
        WHERE part->>'source' = 'burned' AND (part->'amount'->>'units')::numeric > 0
        GROUP BY f.position, 3, 8""",
    ),
    # Usage that is charged late, by what paid it. GPU time that nobody paid has no weight.
    Rule(
        ("adjustment.booked.v1",),
        "lease_id text, account_id text, provider_account_id text, lines json, late json",
        f"""INSERT INTO own.counted
        SELECT f.position, d.source, d.payer_id, CASE WHEN d.is_own THEN '' ELSE n.node_id END,
            CASE WHEN d.is_own THEN '' ELSE provider_account_id END,
            CASE WHEN d.source = 'burned' THEN least(d.units, d.retired)
                ELSE div(d.due * d.units, c.charge) END,
            CASE WHEN d.is_own THEN 0
                ELSE div((late->>'gpu_us_new')::numeric * d.units, c.charge) END, c.charge,
            n.client_id
        FROM facts f JOIN own.lease_node n USING (lease_id)
        CROSS JOIN LATERAL (
            SELECT (late->'charge_new'->>'units')::numeric AS charge) c
        CROSS JOIN LATERAL (
            SELECT l.source, l.payer_id, l.units, m.retired, m.due,
                {is_paid_to("f.account_id", _LATE_PAYEES)}
                OR {is_paid_to("l.payer_id", _LATE_PAYEES)} AS is_own
            FROM (
                SELECT substring(line->>'account' FROM ':([^:]+)$') AS source,
                    substring(line->>'account' FROM '^party:(.+):[^:]+$') AS payer_id,
                    sum((line->>'units')::numeric) AS units
                FROM json_array_elements(f.lines) line
                WHERE line->>'account' LIKE 'party:%%' AND (line->>'units')::numeric > 0
                GROUP BY 1, 2) l
            CROSS JOIN (
                SELECT -coalesce(sum((line->>'units')::numeric)
                        FILTER (WHERE line->>'account' = 'world:burned'), 0) AS retired,
                    -coalesce(sum((line->>'units')::numeric)
                        FILTER (WHERE line->>'account' = 'network:burn_due'), 0) AS due
                FROM json_array_elements(f.lines) line) m
            WHERE l.source <> 'owed') d
        WHERE late IS NOT NULL AND (NOT d.is_own OR d.source = 'burned')""",
    ),
    # Before everything that counts weights, for those rules look here what is contested.
    Rule(
        ("dispute.opened.v1",),
        "dispute_id text, lines json",
        """INSERT INTO own.disputed
        SELECT c.position, c.source, c.payer_id, f.dispute_id, c.node_id, c.account_id, f.position,
            div(c.gpu_us * n.claimed, n.charge), div(c.burned * n.claimed, n.charge), NULL,
            c.client_id
        FROM facts f CROSS JOIN LATERAL json_array_elements(f.lines) l
        CROSS JOIN LATERAL (
            SELECT (l->'claimed'->>'units')::numeric AS claimed,
                (l->'charge'->>'units')::numeric AS charge) n
        JOIN own.counted c ON c.position = (l->>'position')::bigint""",
    ),
    Rule(
        ("dispute.resolved.v1",),
        "lines json",
        """UPDATE own.disputed d SET resolved_position = f.position
        FROM facts f CROSS JOIN LATERAL json_array_elements(f.lines) l
        WHERE d.position = (l->>'position')::bigint""",
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
        " clients_sha256 text, at_us bigint, unissued json, recyclable json, release json,"
        " returned json, returned_release json, availability_carry_before json,"
        " availability_carry json, compute_weight bigint, availability_weight bigint,"
        " availability_tier_2_weight bigint",
        """UPDATE own.epoch e SET sealed_position = f.position, sealed_at_us = f.at_us,
            cut_position = f.cut_position, policy_version = f.policy_version,
            emission = (f.emission->>'units')::bigint,
            compute_pool = (f.compute_pool->>'units')::bigint,
            availability_pool = (f.availability_pool->>'units')::bigint,
            treasury_pool = (f.treasury_pool->>'units')::bigint,
            compute_carry_before = (f.compute_carry_before->>'units')::bigint,
            compute_carry = (f.compute_carry->>'units')::bigint,
            rewards = (f.rewards->>'units')::bigint, recipients = f.recipients,
            chunks = f.chunks, file_sha256 = f.file_sha256, clients_sha256 = f.clients_sha256,
            unissued = (f.unissued->>'units')::bigint,
            recyclable = (f.recyclable->>'units')::bigint,
            release = (f.release->>'units')::bigint,
            returned = (f.returned->>'units')::bigint,
            returned_release = (f.returned_release->>'units')::bigint,
            availability_carry_before = (f.availability_carry_before->>'units')::bigint,
            availability_carry = (f.availability_carry->>'units')::bigint,
            compute_weight = f.compute_weight, availability_weight = f.availability_weight,
            availability_tier_2_weight = f.availability_tier_2_weight
        FROM facts f WHERE e.epoch = f.epoch""",
    ),
    # Credits that were bought by burning are retired at use and have weight at once. Others have it
    # when their burn is confirmed. GPU time counts at once, by the source that paid for it: what
    # nobody paid has no weight.
    Rule(
        (
            "lease.usage_accrued.v1",
            "resource.accrued.v1",
            "lease.term_ended_early.v1",
            "adjustment.booked.v1",
        ),
        "account_id text",
        _moved(
            f"""SELECT {EPOCH_OF} AS epoch, f.node_id, f.account_id, f.source, f.payer_id,
                f.client_id, NULL::bigint AS burn_id,
                CASE f.source WHEN 'burned' THEN f.burned ELSE 0 END AS burned, f.gpu_us
            FROM own.counted f WHERE f.position > %(first)s AND f.position <= %(last)s"""
        ),
    ),
    Rule(
        ("deposit.credits_purchased.v1",),
        "account_id text, tokens_burned json, credits json",
        """INSERT INTO own.purchase
        SELECT position, account_id, (tokens_burned->>'units')::bigint,
            (credits->>'units')::bigint FROM facts""",
    ),
    *burning.BURNS,
    # What an adjustment gives back of a charge: from the weights that were counted of it. What is
    # not burned yet is counted without it when it is.
    Rule(
        ("adjustment.booked.v1",),
        "late json",
        _moved(
            f"""SELECT {EPOCH_OF} AS epoch, g.node_id, g.account_id, g.source, g.payer_id,
                g.client_id, b.burn_id,
                CASE WHEN g.source = 'burned' OR b.burnt_at < f.position THEN
                    {_lost("burned", "f.position")} - {_lost("burned", "f.position + 1")}
                    ELSE 0 END AS burned,
                {_lost("gpu_us", "f.position")} - {_lost("gpu_us", "f.position + 1")} AS gpu_us
            FROM facts f JOIN own.given_back r ON r.position = f.position
            JOIN own.counted g ON g.position = r.charge {burning.burn_of("g")}"""
        ),
    ),
    Rule(
        ("burn.confirmed.v1",),
        "burn_id bigint",
        _moved(
            f"""SELECT {EPOCH_OF} AS epoch, g.node_id, g.account_id, g.source, g.payer_id,
                g.client_id, b.burn_id, g.burned - {_lost("burned", "f.position")} - CASE
                    WHEN d.opened_position < f.position
                        AND coalesce(d.resolved_position > f.position, true) THEN d.burned
                    ELSE 0 END AS burned, 0 AS gpu_us
            FROM facts f JOIN own.burn b ON b.burn_id = f.burn_id
            JOIN own.due u ON u.ripe {burning.COVERS}
            JOIN own.counted g ON {burning.lot_of("g")} AND g.source <> 'burned' AND g.burned > 0
            LEFT JOIN own.disputed d ON d.position = g.position AND d.source = g.source
                AND d.payer_id = g.payer_id"""
        ),
    ),
    Rule(
        ("dispute.opened.v1",),
        "dispute_id text",
        _moved(
            f"""SELECT {EPOCH_OF} AS epoch, d.node_id, d.account_id, d.source, d.payer_id,
                d.client_id, b.burn_id,
                CASE WHEN {_WAS_BURNT} THEN -d.burned ELSE 0 END AS burned,
                CASE WHEN {_WAS_OUT} THEN -d.gpu_us ELSE 0 END AS gpu_us
            FROM facts f JOIN own.disputed d ON d.dispute_id = f.dispute_id
            {burning.burn_of("d")}"""
        ),
    ),
    Rule(
        ("dispute.resolved.v1",),
        "dispute_id text",
        _moved(
            f"""SELECT {EPOCH_OF} AS epoch, d.node_id, d.account_id, d.source, d.payer_id,
                d.client_id, b.burn_id,
                CASE WHEN {_IS_BACK} THEN d.burned ELSE 0 END AS burned,
                CASE WHEN {_WAS_OUT} THEN d.gpu_us ELSE 0 END AS gpu_us
            FROM facts f JOIN own.disputed d ON d.dispute_id = f.dispute_id
            {burning.burn_of("d")}"""
        ),
    ),
    Rule(
        ("epoch.rewards_credited.v1", "epoch.rewards_matured.v1"),
        "epoch int, chunk int, rewards json",
        """INSERT INTO own.reward AS r
        SELECT epoch, reward->>'account_id', min(chunk),
            coalesce(sum((reward->'amount'->>'units')::bigint)
                FILTER (WHERE topic = 'epoch.rewards_credited.v1'), 0),
            coalesce(sum((reward->'amount'->>'units')::bigint)
                FILTER (WHERE topic = 'epoch.rewards_matured.v1'), 0), 0
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
    # What is slashed is the treasury's at once; what is forfeited had no leaf.
    Rule(
        ("epoch.reward_slashed.v1",),
        "epoch int, account_id text, amount json",
        """UPDATE own.reward r SET slashed = r.slashed + f.units FROM (
            SELECT epoch, account_id, sum((amount->>'units')::bigint) AS units FROM facts
            GROUP BY 1, 2) f
        WHERE r.epoch = f.epoch AND r.account_id = f.account_id""",
    ),
    Rule(
        ("epoch.reward_slashed.v1",),
        "amount json",
        """INSERT INTO own.lifetime AS t
        SELECT 'treasury', 0, sum((amount->>'units')::bigint) FROM facts
        HAVING count(*) > 0
        ON CONFLICT (account_id) DO UPDATE SET matured = t.matured + excluded.matured""",
    ),
    Rule(
        ("epoch.rewards_forfeited.v1",),
        "rewards json",
        """UPDATE own.lifetime t SET matured = t.matured - f.units FROM (
            SELECT reward->>'account_id' AS account_id,
                sum((reward->'amount'->>'units')::bigint) AS units
            FROM facts, json_array_elements(rewards) reward GROUP BY 1) f
        WHERE t.account_id = f.account_id""",
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
    """Token units. `state`: open, closing, sealed, credited or settled, as in
    `domain.epochs.epoch`.
    """

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
    clients_sha256: str | None
    unissued: int | None
    recyclable: int | None
    release: int | None
    returned: int | None
    returned_release: int | None
    availability_carry_before: int | None
    availability_carry: int | None
    compute_weight: int | None
    availability_weight: int | None
    availability_tier_2_weight: int | None
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
    slashed: int


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Token units ever credited, and ever matured and not forfeited; `claimed` on chain so far."""

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
    charged: int | None  # once it is confirmed: what it covers, without what was given back of that


class Weight(NamedTuple):
    """What strangers used of a node, by the funding source that paid."""

    node_id: str
    account_id: str
    source: str
    burned: int
    gpu_us: int


COUNTED_SOURCES = ("burned", "cash")
"""Sources that weigh in a new network's policy, and in a policy without terms."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What an epoch has moved of weights, as far as the log has been read. Final once its cut is
    behind. Below zero where corrections took back more than was added.
    """

    epoch: int
    position: int
    is_final: bool
    weights: tuple[Weight, ...]  # by node, account and source; none of them zero

    def largest(self, count: int) -> list[Weight]:
        """The lines of the largest value, then time, by node."""
        ordered = sorted(self.weights, key=lambda one: (-one.burned, -one.gpu_us, one))
        return sorted(ordered[:count])

    def by_account(
        self, sources: Iterable[str] = COUNTED_SOURCES
    ) -> tuple[tuple[str, int, int], ...]:
        """(account id, burned value, GPU time) that these sources paid, by account."""
        counted = frozenset(sources)
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for one in self.weights:
            if one.source in counted:
                sums[one.account_id][0] += one.burned
                sums[one.account_id][1] += one.gpu_us
        return tuple((who, burned, gpu_us) for who, (burned, gpu_us) in sorted(sums.items()))


_STATE = """CASE WHEN sealed_position IS NULL AND closing_at_us IS NULL THEN 'open'
    WHEN sealed_position IS NULL THEN 'closing' WHEN credited < chunks THEN 'sealed'
    WHEN matured < chunks THEN 'credited' ELSE 'settled' END AS state"""


# One statement, so that position and weights are of one moment.
_PREVIEW = """
    SELECT p.position, c.closed, c.wanted, w.node_id, w.account_id, w.source, w.burned, w.gpu_us
    FROM proj_epochs.position p CROSS JOIN (
        SELECT coalesce(max(epoch), 0) AS closed,
            coalesce(%(epoch)s::int, max(epoch) + 1, 1) AS wanted
        FROM proj_epochs.cut) c
    LEFT JOIN proj_epochs.weight w ON w.epoch = c.wanted AND (w.burned <> 0 OR w.gpu_us <> 0)
    WHERE p.source = 'market' ORDER BY w.node_id, w.account_id, w.source
"""


def read_epoch(connection: Connection, epoch: int) -> EpochRow | None:
    sql = f"SELECT *, {_STATE} FROM proj_epochs.epoch WHERE epoch = %(epoch)s"
    return read.one(connection, EpochRow, sql, epoch=epoch)


def read_epochs(
    connection: Connection, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[EpochRow]:
    """In order; `after` is the last epoch of the page before."""
    sql = f"""SELECT *, {_STATE} FROM proj_epochs.epoch WHERE epoch > %(after)s
        ORDER BY epoch LIMIT %(limit)s"""
    return read.listed(connection, EpochRow, sql, way, after=after, limit=limit)


def read_preview(connection: Connection, epoch: int | None = None) -> Preview:
    """The weights of an epoch (the open one if None), by node.

    `is_final` is True when the projection has read the epoch's closing: nothing can change them.
    """
    rows = connection.execute(_PREVIEW, {"epoch": epoch}).fetchall()
    position, closed, wanted = (int(value) for value in rows[0][:3])
    weights = tuple(Weight(*row[3:]) for row in rows if row[3] is not None)
    return Preview(wanted, position, wanted <= closed, weights)


def read_brought(connection: Connection, epoch: int, node_id: str) -> Iterator[ClientUse]:
    """The weights of a node in an epoch by client."""
    sql = """SELECT node_id, client_id, source, burned, gpu_us FROM proj_epochs.brought
        WHERE epoch = %(epoch)s AND node_id = %(node)s ORDER BY client_id, source"""
    for row in connection.execute(sql, {"epoch": epoch, "node": node_id}):
        yield ClientUse(*row)


class Tokens(NamedTuple):
    """TOKEN units burned for a node: by the network for what cash paid, and by renters for credits.

    Below zero where corrections took back more than there was.
    """

    network: int = 0
    bought: int = 0

    def __add__(self, other: object) -> Tokens:
        assert isinstance(other, Tokens), other
        return Tokens(self.network + other.network, self.bought + other.bought)


_BURN = """t.node_id, b.tokens, greatest(b.credits, b.charged), t.credits, coalesce((
        SELECT sum(o.credits) FROM proj_epochs.burnt o
        WHERE o.burn_id = t.burn_id AND o.node_id = t.node_id AND o.epoch < t.epoch), 0)::bigint
    FROM proj_epochs.burnt t JOIN proj_epochs.burn b USING (burn_id)"""
_BURNT = f"SELECT t.epoch, {_BURN} WHERE {{which}}"
_PURCHASED = """
    SELECT u.payer_id, p.epoch, sum(p.tokens)::bigint, sum(p.credits)::bigint
    FROM (SELECT DISTINCT payer_id FROM proj_epochs.used WHERE {which}) u
    JOIN (
        SELECT account_id, tokens, credits, 1 + coalesce((
            SELECT max(c.epoch) FROM proj_epochs.cut c WHERE c.position < p.position), 0) AS epoch
        FROM proj_epochs.purchase p) p ON p.account_id = u.payer_id AND p.epoch <= %(epoch)s
    GROUP BY 1, 2
"""
_USED_SO_FAR = """
    SELECT h.payer_id, h.epoch, h.node_id, h.credits
    FROM (SELECT DISTINCT payer_id FROM proj_epochs.used WHERE {which}) u
    JOIN proj_epochs.used h ON h.payer_id = u.payer_id AND h.epoch <= %(epoch)s
"""
_THIS_EPOCH = "epoch = %(epoch)s"
BURNT_OF_EPOCH = f"SELECT {_BURN} WHERE {_THIS_EPOCH} ORDER BY t.node_id"
"""By node, what `part_of_burn` takes."""
_THESE_NODES = "epoch <= %(epoch)s AND node_id = ANY(%(nodes)s)"


def read_burned_tokens(connection: Connection, epoch: int) -> dict[str, Tokens]:
    """TOKEN units burned for each node's use in a closed epoch; no price is asked.

    Of a burn by the network the part of the node's credits, of credits that renters bought by
    burning the average of what they cost. Rounded down, so the sum is never above what was burned.
    """
    found = _tokens(connection, _THIS_EPOCH, {"epoch": epoch})
    return {node_id: tokens for (at, node_id), tokens in found.items() if at == epoch}


def read_tokens_until(
    connection: Connection, epoch: int, nodes: Iterable[str]
) -> dict[tuple[int, str], Tokens]:
    """By epoch and node, what was burned for these nodes up to an epoch."""
    wanted = frozenset(nodes)
    found = _tokens(connection, _THESE_NODES, {"epoch": epoch, "nodes": sorted(wanted)})
    return {place: tokens for place, tokens in found.items() if place[1] in wanted}


def _tokens(
    connection: Connection, which: str, asked: dict[str, object]
) -> dict[tuple[int, str], Tokens]:
    found: dict[tuple[int, str], Tokens] = defaultdict(Tokens)
    burnt = connection.execute(_BURNT.format(which=which).encode(), asked)
    for epoch, node_id, *burn in burnt:
        found[epoch, node_id] += Tokens(network=part_of_burn(*burn))
    for epoch, node_id, units in _bought(connection, which, asked):
        found[epoch, node_id] += Tokens(bought=units)
    return found


def part_of_burn(burned: int, whole: int, now: int, before: int) -> int:
    """TOKEN of a burn for a node: `now` of the `whole` credits in this epoch, `before` earlier."""
    return burned * (before + now) // whole - burned * before // whole


def read_bought_tokens(connection: Connection, epoch: int) -> Iterator[tuple[int, str, int]]:
    """(epoch, node, TOKEN) of the burned credits of all payers who used some in this epoch; of the
    epochs before it, too.
    """
    return _bought(connection, _THIS_EPOCH, {"epoch": epoch})


def _bought(
    connection: Connection, which: str, asked: dict[str, object]
) -> Iterator[tuple[int, str, int]]:
    bought: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    purchased = connection.execute(_PURCHASED.format(which=which).encode(), asked)
    for payer_id, epoch, tokens, credits in purchased:
        bought[payer_id][epoch] = (tokens, credits)
    used: dict[str, dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    so_far = connection.execute(_USED_SO_FAR.format(which=which).encode(), asked)
    for payer_id, epoch, node_id, credits in so_far:
        used[payer_id][epoch][node_id] = credits
    for payer_id, by_epoch in used.items():
        for epoch, node_id, tokens in _at_average(bought[payer_id], by_epoch):
            if node_id:
                yield epoch, node_id, tokens


@dataclass(slots=True)
class _Spent:
    """What one payer's burned credits cost it for one node: in all, and what of it is left."""

    tokens: int = 0
    credits: int = 0  # of its own purchases: those that came from elsewhere cost it nothing
    used: int = 0


def _at_average(
    bought: dict[int, tuple[int, int]], used: dict[int, dict[str, int]]
) -> Iterator[tuple[int, str, int]]:
    """(epoch, node, TOKEN) of one payer's burned credits, epoch by epoch at their average cost.

    tokens of an epoch's use == floor(tokens left x used / credits left)
    credits that come back bring the tokens that they cost, rounded up
    """
    tokens_left = credits_left = 0
    spent: dict[str, _Spent] = defaultdict(_Spent)
    for epoch in sorted({*bought, *used}):
        tokens, credits = bought.get(epoch, (0, 0))
        tokens_left, credits_left = tokens_left + tokens, credits_left + credits
        nodes = used.get(epoch, {})
        for node_id, units in sorted(nodes.items()):
            one = spent[node_id]
            back = min(-units, one.used)
            if back > 0:  # of what earlier epochs used: it can be used again in this one
                part = -(-one.tokens * back // one.used)
                returned = one.credits * back // one.used
                one.tokens, one.used = one.tokens - part, one.used - back
                one.credits -= returned
                tokens_left, credits_left = tokens_left + part, credits_left + returned
                yield epoch, node_id, -part
        whole = sum(units for units in nodes.values() if units > 0)
        # Credits that came from somebody else cost this payer no tokens.
        taken = min(whole, credits_left)
        cost = tokens_left * taken // credits_left if credits_left else 0
        for node_id, units in sorted(nodes.items()):
            if units > 0:
                one, part = spent[node_id], cost * units // whole
                one.tokens, one.used = one.tokens + part, one.used + units
                one.credits += taken * units // whole
                yield epoch, node_id, part
        tokens_left, credits_left = tokens_left - cost, credits_left - taken


def read_recyclable(connection: Connection, epoch: int, cut_position: int) -> int:
    """TOKEN units that were burned up to the cut of an epoch and not released by earlier ones."""
    sql = """SELECT (SELECT coalesce(sum(tokens), 0) FROM proj_epochs.burn
            WHERE confirmed_position <= %(cut)s)
        + (SELECT coalesce(sum(tokens), 0) FROM proj_epochs.purchase WHERE position <= %(cut)s)
        - (SELECT coalesce(sum(release - returned_release), 0) FROM proj_epochs.epoch
            WHERE epoch < %(epoch)s)"""
    return read.number(connection, sql, epoch=epoch, cut=cut_position)


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
        connection,
        RewardRow,
        sql,
        epoch=epoch,
        account=account_id,
        e=after[0],
        a=after[1],
        limit=limit,
    )


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


def read_roots(
    connection: Connection, *, after: int = 0, way: Way = OLDEST, limit: int = 50
) -> list[Root]:
    """In order of building; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_epochs.root WHERE position > %(after)s
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Root, sql, way, after=after, limit=limit)


def read_root(connection: Connection, epoch: int) -> Root | None:
    """The newest root built for an epoch."""
    sql = "SELECT * FROM proj_epochs.root WHERE epoch = %(e)s ORDER BY position DESC LIMIT 1"
    return read.one(connection, Root, sql, e=epoch)


def read_claims(
    connection: Connection,
    *,
    account_id: str | None = None,
    after: int = 0,
    way: Way = OLDEST,
    limit: int = 50,
) -> list[Claim]:
    """Confirmed claims in order; `after` is the last position of the page before."""
    sql = """SELECT * FROM proj_epochs.claim WHERE position > %(after)s
        AND (%(account)s::text IS NULL OR account_id = %(account)s)
        ORDER BY position LIMIT %(limit)s"""
    return read.listed(connection, Claim, sql, way, account=account_id, after=after, limit=limit)


def read_burns(connection: Connection, *, after: int = 0, limit: int = 50) -> list[Burn]:
    """The network's own burns in order; `after` is the last burn id of the page before."""
    sql = "SELECT * FROM proj_epochs.burn WHERE burn_id > %(a)s ORDER BY burn_id LIMIT %(limit)s"
    return read.many(connection, Burn, sql, a=after, limit=limit)


def read_overdue(connection: Connection, now_us: int) -> tuple[int, int]:
    """The newest epoch, and for how long the oldest one has been over that is not sealed, in
    microseconds; 0 where none is.
    """
    sql = b"""SELECT coalesce(max(epoch), 0), coalesce(greatest(0, %(now)s - min(end_us)
        FILTER (WHERE sealed_position IS NULL)), 0) FROM proj_epochs.epoch"""
    row = connection.execute(sql, {"now": now_us}).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
