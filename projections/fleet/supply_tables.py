"""The fleet's tables beyond what is free: what regions refuse, who is worked on when, who said what
of whom, who stands behind which ingress, which seats are licensed. Part of the fleet's projection,
so that the matcher sees all of it at one position.
"""

from __future__ import annotations

from projections.runner import Rule

TABLES = """
    CREATE TABLE own.region_policy (
        region_id text COLLATE "C" PRIMARY KEY, setting text NOT NULL,
        refused_workloads text[] NOT NULL, down_ranked_workloads text[] NOT NULL,
        security_tier int NOT NULL, hardware_rules text[] NOT NULL);
    COMMENT ON TABLE own.region_policy IS 'K-8; edge regions start with a policy of their own';
    CREATE TABLE own.maintenance (
        maintenance_id text COLLATE "C" PRIMARY KEY, node_id text COLLATE "C" NOT NULL,
        kind text NOT NULL, from_us bigint NOT NULL, until_us bigint NOT NULL,
        keep_leases boolean NOT NULL, cancelled_at_us bigint, at_us bigint NOT NULL,
        position bigint NOT NULL);
    CREATE INDEX ON own.maintenance (node_id, until_us);
    CREATE TABLE own.standing (
        node_id text COLLATE "C", position bigint, at_us bigint NOT NULL,
        is_away boolean NOT NULL, PRIMARY KEY (node_id, position));
    COMMENT ON TABLE own.standing IS 'When a node took no leases: not active, or quarantined';
    CREATE TABLE own.attribute (
        statement_id text COLLATE "C" PRIMARY KEY, subject_id text COLLATE "C" NOT NULL,
        name text COLLATE "C" NOT NULL, value text NOT NULL,
        signer_account_id text COLLATE "C" NOT NULL, key_id text NOT NULL,
        signature text NOT NULL, stated_at_us bigint NOT NULL, expires_at_us bigint,
        revoked_at_us bigint, at_us bigint NOT NULL, position bigint NOT NULL);
    COMMENT ON TABLE own.attribute IS 'Subject: a node or a provider; it counts for its nodes too';
    CREATE INDEX ON own.attribute (subject_id, name);
    CREATE INDEX ON own.attribute (name, value);
    CREATE TABLE own.role (
        node_id text COLLATE "C" PRIMARY KEY, role text NOT NULL,
        ingress_node_id text COLLATE "C", at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE INDEX ON own.role (ingress_node_id);
    CREATE TABLE own.mining (
        node_id text COLLATE "C", position bigint, at_us bigint NOT NULL, is_on boolean NOT NULL,
        PRIMARY KEY (node_id, position));
    COMMENT ON TABLE own.mining IS 'C-10: from when on a node mines on devices without a lease';
    CREATE TABLE own.admission (
        admission_id text COLLATE "C" PRIMARY KEY, account_id text COLLATE "C" NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE INDEX ON own.admission (account_id, position);
    CREATE TABLE own.licence (
        licence_id text COLLATE "C" PRIMARY KEY, provider_id text COLLATE "C" NOT NULL,
        vendor text NOT NULL, model text NOT NULL, seats int NOT NULL,
        terms_sha256 text NOT NULL, from_us bigint NOT NULL, until_us bigint,
        revoked_at_us bigint, at_us bigint NOT NULL, position bigint NOT NULL);
    CREATE TABLE own.kind (
        kind text COLLATE "C", vendor text COLLATE "C", dimensions text[] NOT NULL,
        memory text NOT NULL, is_divisible boolean NOT NULL, capacity_asset text NOT NULL,
        effective_from_us bigint NOT NULL, at_us bigint NOT NULL, position bigint PRIMARY KEY);
    CREATE TABLE own.model_class (
        vendor text NOT NULL, model text NOT NULL, gpu_class text NOT NULL,
        effective_from_us bigint NOT NULL, at_us bigint NOT NULL, position bigint PRIMARY KEY);
    CREATE TABLE own.cloud_account (
        provider_id text COLLATE "C" PRIMARY KEY, project_id text NOT NULL,
        project_made_on text NOT NULL, done text[] NOT NULL, missing text[] NOT NULL,
        at_us bigint NOT NULL, position bigint NOT NULL);
    COMMENT ON TABLE own.cloud_account IS 'C-27: the last checklist of a cloud provider';
    CREATE TABLE own.cloud_quota (
        region_id text COLLATE "C" PRIMARY KEY, quotas json NOT NULL, at_us bigint NOT NULL,
        position bigint NOT NULL);
    CREATE TABLE own.cloud_taken (
        region_id text COLLATE "C", lease_id text COLLATE "C", gpu text NOT NULL,
        jobs int NOT NULL, position bigint NOT NULL, PRIMARY KEY (region_id, lease_id));
    COMMENT ON TABLE own.cloud_taken IS 'C-28: by leases, since the last report';
"""

INDEXES = """
    CREATE INDEX ON own.attribute (position);
    CREATE INDEX ON own.licence (provider_id, position);
    CREATE INDEX ON own.licence (position);
    CREATE INDEX ON own.maintenance (position);
"""

_WORDS = "ARRAY(SELECT json_array_elements_text({}))"

RULES = (
    Rule(
        ("region.opened.v1",),
        "region_id text, setting text, hardware_rules json",
        f"""INSERT INTO own.region_policy
        SELECT region_id, setting,
            CASE setting WHEN 'edge' THEN ARRAY['ip_lease'] ELSE '{{}}' END,
            CASE setting WHEN 'edge' THEN ARRAY['large_storage'] ELSE '{{}}' END, 0,
            {_WORDS.format("hardware_rules")}
        FROM facts""",
    ),
    Rule(
        ("region.hardware_set.v1",),
        "region_id text, rules json",
        f"""UPDATE own.region_policy r SET hardware_rules = {_WORDS.format("f.rules")} FROM (
            SELECT DISTINCT ON (region_id) * FROM facts ORDER BY region_id, position DESC) f
        WHERE r.region_id = f.region_id""",
    ),
    Rule(
        ("region.policy_set.v1",),
        "region_id text, refused_workloads json, down_ranked_workloads json, security_tier int",
        f"""UPDATE own.region_policy r SET
            refused_workloads = {_WORDS.format("f.refused_workloads")},
            down_ranked_workloads = {_WORDS.format("f.down_ranked_workloads")},
            security_tier = f.security_tier
        FROM (SELECT DISTINCT ON (region_id) * FROM facts ORDER BY region_id, position DESC) f
        WHERE r.region_id = f.region_id""",
    ),
    Rule(
        ("provider.cloud_account_checked.v1",),
        "provider_id text, project_id text, project_made_on text, done json, missing json,"
        " at_us bigint",
        f"""INSERT INTO own.cloud_account
        SELECT DISTINCT ON (provider_id) provider_id, project_id, project_made_on,
            {_WORDS.format("done")}, {_WORDS.format("missing")}, at_us, position
        FROM facts ORDER BY provider_id, position DESC
        ON CONFLICT (provider_id) DO UPDATE SET project_id = excluded.project_id,
            project_made_on = excluded.project_made_on, done = excluded.done,
            missing = excluded.missing, at_us = excluded.at_us, position = excluded.position""",
    ),
    # What was taken, then what was given back, then what a report has counted: so that it does not
    # matter where the log is cut.
    Rule(
        ("region.cloud_quota_taken.v1",),
        "region_id text, lease_id text, gpu text, jobs int",
        """INSERT INTO own.cloud_taken
        SELECT region_id, lease_id, gpu, jobs, position FROM facts""",
    ),
    Rule(
        ("region.cloud_quota_returned.v1",),
        "region_id text, lease_id text",
        """DELETE FROM own.cloud_taken t USING facts f
        WHERE t.region_id = f.region_id AND t.lease_id = f.lease_id""",
    ),
    Rule(
        ("region.cloud_quota_reported.v1",),
        "region_id text",
        """DELETE FROM own.cloud_taken t USING facts f
        WHERE t.region_id = f.region_id AND t.position < f.position""",
    ),
    Rule(
        ("region.cloud_quota_reported.v1",),
        "region_id text, quotas json, at_us bigint",
        """INSERT INTO own.cloud_quota
        SELECT DISTINCT ON (region_id) region_id, quotas, at_us, position FROM facts
        ORDER BY region_id, position DESC
        ON CONFLICT (region_id) DO UPDATE SET quotas = excluded.quotas, at_us = excluded.at_us,
            position = excluded.position""",
    ),
    Rule(
        ("node.maintenance_scheduled.v1",),
        "maintenance_id text, node_id text, kind text, from_us bigint, until_us bigint,"
        " keep_leases boolean, at_us bigint",
        """INSERT INTO own.maintenance
        SELECT maintenance_id, node_id, kind, from_us, until_us, keep_leases, NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("node.maintenance_cancelled.v1",),
        "maintenance_id text, at_us bigint",
        """UPDATE own.maintenance m SET cancelled_at_us = f.at_us FROM facts f
        WHERE m.maintenance_id = f.maintenance_id""",
    ),
    # An admission counts once: later ones let more devices in and leave the node where it stands.
    Rule(
        (
            "node.admitted.v1",
            "node.activated.v1",
            "node.maintenance_started.v1",
            "node.stopped.v1",
            "node.errored.v1",
            "node.failed.v1",
            "node.equivocated.v1",
            "node.boots_alternated.v1",
            "node.key_revoked.v1",
        ),
        "node_id text, at_us bigint",
        """INSERT INTO own.standing
        SELECT node_id, position, at_us, topic <> 'node.activated.v1' FROM facts f
        WHERE topic <> 'node.admitted.v1' OR (
            NOT EXISTS (SELECT FROM own.standing s WHERE s.node_id = f.node_id)
            AND NOT EXISTS (SELECT FROM facts g
                WHERE g.node_id = f.node_id AND g.position < f.position))""",
    ),
    Rule(
        ("node.idle_mining_set.v1",),
        "node_id text, at_us bigint, is_on boolean",
        "INSERT INTO own.mining SELECT node_id, position, at_us, is_on FROM facts",
    ),
    Rule(
        ("admission.requested.v1",),
        "admission_id text, account_id text, at_us bigint",
        """INSERT INTO own.admission
        SELECT admission_id, account_id, at_us, position FROM facts""",
    ),
    Rule(
        ("attribute.stated.v1",),
        "statement_id text, subject_id text, name text, value text, signer_account_id text,"
        " key_id text, signature text, stated_at_us bigint, expires_at_us bigint, at_us bigint",
        """INSERT INTO own.attribute
        SELECT statement_id, subject_id, name, value, signer_account_id, key_id, signature,
            stated_at_us, expires_at_us, NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("attribute.revoked.v1",),
        "statement_id text, at_us bigint",
        """UPDATE own.attribute a SET revoked_at_us = f.at_us FROM facts f
        WHERE a.statement_id = f.statement_id""",
    ),
    Rule(
        ("node.role_set.v1",),
        "node_id text, role text, at_us bigint",
        """INSERT INTO own.role
        SELECT DISTINCT ON (node_id) node_id, role, NULL, at_us, position
        FROM facts ORDER BY node_id, position DESC
        ON CONFLICT (node_id) DO UPDATE SET role = excluded.role, ingress_node_id = NULL,
            at_us = excluded.at_us, position = excluded.position""",
    ),
    Rule(
        ("region.member_set.v1", "region.member_left.v1"),
        "node_id text, role text, ingress_node_id text, at_us bigint",
        """, last AS (
            SELECT DISTINCT ON (node_id) * FROM facts ORDER BY node_id, position DESC
        ), gone AS (
            DELETE FROM own.role r USING last f
            WHERE f.topic = 'region.member_left.v1' AND r.node_id = f.node_id
        )
        INSERT INTO own.role SELECT node_id, role, ingress_node_id, at_us, position
        FROM last WHERE topic = 'region.member_set.v1'
        ON CONFLICT (node_id) DO UPDATE SET role = excluded.role,
            ingress_node_id = excluded.ingress_node_id, at_us = excluded.at_us,
            position = excluded.position WHERE role.position < excluded.position""",
    ),
    Rule(
        ("licence.granted.v1",),
        "licence_id text, provider_id text, vendor text, model text, seats int,"
        " terms_sha256 text, from_us bigint, until_us bigint, at_us bigint",
        """INSERT INTO own.licence
        SELECT licence_id, provider_id, vendor, model, seats, terms_sha256, from_us, until_us,
            NULL, at_us, position
        FROM facts""",
    ),
    Rule(
        ("licence.revoked.v1",),
        "licence_id text, at_us bigint",
        """UPDATE own.licence l SET revoked_at_us = f.at_us FROM facts f
        WHERE l.licence_id = f.licence_id""",
    ),
    Rule(
        ("resource_kind.registered.v1",),
        "kind text, vendor text, dimensions json, memory text, is_divisible boolean,"
        " capacity_asset text, effective_from_us bigint, at_us bigint",
        f"""INSERT INTO own.kind
        SELECT kind, vendor, {_WORDS.format("dimensions")}, memory, is_divisible, capacity_asset,
            effective_from_us, at_us, position
        FROM facts""",
    ),
    Rule(
        ("resource_kind.model_classed.v1",),
        "vendor text, model text, gpu_class text, effective_from_us bigint, at_us bigint",
        """INSERT INTO own.model_class
        SELECT vendor, model, gpu_class, effective_from_us, at_us, position FROM facts""",
    ),
)
