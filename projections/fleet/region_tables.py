"""The fleet's tables of regions: how each grows, where it is, who looks after it, who waits for it,
who owns parts of its nodes, and what those measured of the way to it.

Part of the fleet's projection, so that a match sees all of it at one position.
"""

from __future__ import annotations

from projections.runner import Rule

TABLES = """
    CREATE TABLE own.region_growth (
        region_id text COLLATE "C" PRIMARY KEY, phase text NOT NULL, cause text, phase_at_us bigint,
        workers_min int NOT NULL, workers_max int, homogeneous boolean NOT NULL,
        cpu_and_gpu boolean NOT NULL, owner_share_ppm int NOT NULL,
        CHECK (phase IN ('waitlisted', 'opening', 'open', 'draining', 'closed')));
    COMMENT ON TABLE own.region_growth IS 'K-5, K-7; a region without a row is open and mixed';
    CREATE TABLE own.region_place (
        region_id text COLLATE "C" PRIMARY KEY, boundaries json NOT NULL, address text,
        latitude_e6 int, longitude_e6 int);
    CREATE TABLE own.region_admin (
        region_id text COLLATE "C", account_id text COLLATE "C", cause text NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL, PRIMARY KEY (region_id, account_id));
    COMMENT ON TABLE own.region_admin IS 'K-16: beside the account of the provider';
    CREATE TABLE own.wait_list (
        list_id text COLLATE "C" PRIMARY KEY, threshold int NOT NULL,
        first_user_administers boolean NOT NULL, reached_at_us bigint);
    CREATE TABLE own.waiting (
        list_id text COLLATE "C", account_id text COLLATE "C", number int NOT NULL,
        latitude_e6 int, longitude_e6 int, at_us bigint NOT NULL, position bigint NOT NULL,
        PRIMARY KEY (list_id, account_id));
    CREATE TABLE own.owner (
        node_id text COLLATE "C", account_id text COLLATE "C", share_ppm int NOT NULL,
        PRIMARY KEY (node_id, account_id));
    COMMENT ON TABLE own.owner IS 'Who shares what a node earns with its provider, now';
    CREATE TABLE own.latency (
        node_id text COLLATE "C", target text COLLATE "C", rtt_us bigint NOT NULL,
        samples int NOT NULL, at_us bigint NOT NULL, PRIMARY KEY (node_id, target));
    CREATE TABLE own.neighbours (
        node_id text COLLATE "C" PRIMARY KEY, region_id text COLLATE "C" NOT NULL,
        addresses text[] NOT NULL, reached text[] NOT NULL, missed text[] NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE INDEX ON own.neighbours (region_id);
    COMMENT ON TABLE own.neighbours IS 'C-3: private addresses of a node, and which it reached';
    CREATE TABLE own.ingress_bytes (
        node_id text COLLATE "C", day int, bytes_in bigint NOT NULL, bytes_out bigint NOT NULL,
        until_us bigint NOT NULL, PRIMARY KEY (node_id, day));
    COMMENT ON TABLE own.ingress_bytes IS 'K-12: through an ingress node by UTC day, as it signed';
"""

INDEXES = """
    CREATE INDEX ON own.region_admin (account_id);
    CREATE INDEX ON own.waiting (account_id);
    CREATE INDEX ON own.owner (account_id);
    CREATE INDEX ON own.node (owner_account_id) WHERE owner_account_id IS NOT NULL;
"""

RULES = (
    Rule(
        ("region.growth_set.v1",),
        "region_id text, terms json",
        """INSERT INTO own.region_growth
        SELECT DISTINCT ON (region_id) region_id, 'open', NULL, NULL,
            (terms->>'workers_min')::int, (terms->>'workers_max')::int,
            (terms->>'homogeneous')::boolean, (terms->>'cpu_and_gpu')::boolean,
            (terms->>'owner_share_ppm')::int
        FROM facts ORDER BY region_id, position DESC
        ON CONFLICT (region_id) DO UPDATE SET workers_min = excluded.workers_min,
            workers_max = excluded.workers_max, homogeneous = excluded.homogeneous,
            cpu_and_gpu = excluded.cpu_and_gpu, owner_share_ppm = excluded.owner_share_ppm""",
    ),
    Rule(
        ("region.phase_set.v1",),
        "region_id text, phase text, cause text, at_us bigint",
        """INSERT INTO own.region_growth
        SELECT DISTINCT ON (region_id) region_id, phase, cause, at_us, 0, NULL::int, false, true,
            1000000
        FROM facts ORDER BY region_id, position DESC
        ON CONFLICT (region_id) DO UPDATE SET phase = excluded.phase, cause = excluded.cause,
            phase_at_us = excluded.phase_at_us""",
    ),
    Rule(
        ("region.place_set.v1",),
        "region_id text, boundaries json, address text, latitude_e6 int, longitude_e6 int",
        """INSERT INTO own.region_place
        SELECT DISTINCT ON (region_id) region_id, boundaries, address, latitude_e6, longitude_e6
        FROM facts ORDER BY region_id, position DESC
        ON CONFLICT (region_id) DO UPDATE SET boundaries = excluded.boundaries,
            address = excluded.address, latitude_e6 = excluded.latitude_e6,
            longitude_e6 = excluded.longitude_e6""",
    ),
    Rule(
        ("region.admin_granted.v1", "region.admin_revoked.v1"),
        "region_id text, account_id text, cause text, at_us bigint",
        """, last AS (
            SELECT DISTINCT ON (region_id, account_id) * FROM facts
            ORDER BY region_id, account_id, position DESC
        ), gone AS (
            DELETE FROM own.region_admin a USING last f WHERE f.topic = 'region.admin_revoked.v1'
                AND a.region_id = f.region_id AND a.account_id = f.account_id
        )
        INSERT INTO own.region_admin SELECT region_id, account_id, cause, at_us, position
        FROM last WHERE topic = 'region.admin_granted.v1'
        ON CONFLICT (region_id, account_id) DO UPDATE SET cause = excluded.cause,
            at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("region.waitlist_joined.v1", "region.wait_list_terms_set.v1"),
        "list_id text",
        """INSERT INTO own.wait_list SELECT DISTINCT list_id, 10, false, NULL::bigint FROM facts
        ON CONFLICT (list_id) DO NOTHING""",
    ),
    Rule(
        ("region.wait_list_terms_set.v1",),
        "list_id text, threshold int, first_user_administers boolean",
        """UPDATE own.wait_list w SET threshold = f.threshold,
            first_user_administers = f.first_user_administers
        FROM (SELECT DISTINCT ON (list_id) * FROM facts ORDER BY list_id, position DESC) f
        WHERE w.list_id = f.list_id""",
    ),
    Rule(
        ("region.threshold_reached.v1",),
        "list_id text, at_us bigint",
        """UPDATE own.wait_list w SET reached_at_us = f.at_us FROM facts f
        WHERE w.list_id = f.list_id""",
    ),
    Rule(
        ("region.waitlist_joined.v1", "region.waitlist_left.v1"),
        "list_id text, account_id text, number int, latitude_e6 int, longitude_e6 int,"
        " at_us bigint",
        """, last AS (
            SELECT DISTINCT ON (list_id, account_id) * FROM facts
            ORDER BY list_id, account_id, position DESC
        ), gone AS (
            DELETE FROM own.waiting a USING last f WHERE f.topic = 'region.waitlist_left.v1'
                AND a.list_id = f.list_id AND a.account_id = f.account_id
        )
        INSERT INTO own.waiting
        SELECT list_id, account_id, number, latitude_e6, longitude_e6, at_us, position
        FROM last WHERE topic = 'region.waitlist_joined.v1'
        ON CONFLICT (list_id, account_id) DO UPDATE SET number = excluded.number,
            latitude_e6 = excluded.latitude_e6, longitude_e6 = excluded.longitude_e6,
            at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("node.ownership_transferred.v1",),
        "node_id text, from_account_id text",
        """UPDATE own.node n SET owner_account_id = NULL FROM facts f
        WHERE n.node_id = f.node_id AND n.owner_account_id = f.from_account_id""",
    ),
    Rule(
        ("node.revenue_shares_set.v1", "node.ownership_transferred.v1"),
        "node_id text, shares json",
        """, last AS (
            SELECT DISTINCT ON (node_id) * FROM facts ORDER BY node_id, position DESC
        ), told AS (
            SELECT node_id, s->>'account_id' AS account_id, (s->>'share_ppm')::int AS share_ppm
            FROM last, json_array_elements(shares) s
        ), gone AS (
            DELETE FROM own.owner o USING last f WHERE o.node_id = f.node_id
                AND NOT EXISTS (SELECT FROM told t
                    WHERE t.node_id = o.node_id AND t.account_id = o.account_id)
        )
        INSERT INTO own.owner SELECT node_id, account_id, share_ppm FROM told
        ON CONFLICT (node_id, account_id) DO UPDATE SET share_ppm = excluded.share_ppm""",
    ),
    Rule(
        ("node.latency_reported.v1",),
        "node_id text, ways json, at_us bigint",
        """, last AS (
            SELECT DISTINCT ON (node_id) * FROM facts ORDER BY node_id, position DESC
        ), gone AS (
            DELETE FROM own.latency l USING last f WHERE l.node_id = f.node_id
                AND NOT EXISTS (SELECT FROM json_array_elements(f.ways) w
                    WHERE w->>'target' = l.target)
        )
        INSERT INTO own.latency
        SELECT node_id, w->>'target', (w->>'rtt_us')::bigint, (w->>'samples')::int, at_us
        FROM last, json_array_elements(ways) w
        ON CONFLICT (node_id, target) DO UPDATE SET rtt_us = excluded.rtt_us,
            samples = excluded.samples, at_us = excluded.at_us""",
    ),
    Rule(
        ("node.neighbours_tried.v1",),
        "node_id text, region_id text, addresses json, tried json, at_us bigint",
        """INSERT INTO own.neighbours
        SELECT DISTINCT ON (node_id) node_id, region_id,
            ARRAY(SELECT json_array_elements_text(addresses)),
            ARRAY(SELECT t->>'node_id' FROM json_array_elements(tried) t WHERE t->>'proof' <> ''),
            ARRAY(SELECT t->>'node_id' FROM json_array_elements(tried) t WHERE t->>'proof' = ''),
            at_us, position
        FROM facts ORDER BY node_id, position DESC
        ON CONFLICT (node_id) DO UPDATE SET region_id = excluded.region_id,
            addresses = excluded.addresses, reached = excluded.reached, missed = excluded.missed,
            at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("node.ingress_bytes_reported.v1",),
        "node_id text, from_us bigint, until_us bigint, bytes_in bigint, bytes_out bigint",
        """INSERT INTO own.ingress_bytes AS b
        SELECT node_id, (from_us / 86400000000)::int, sum(bytes_in)::bigint,
            sum(bytes_out)::bigint, max(until_us)
        FROM facts GROUP BY 1, 2
        ON CONFLICT (node_id, day) DO UPDATE SET bytes_in = b.bytes_in + excluded.bytes_in,
            bytes_out = b.bytes_out + excluded.bytes_out,
            until_us = greatest(b.until_us, excluded.until_us)""",
    ),
)
