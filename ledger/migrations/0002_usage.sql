-- The usage log: 64 permanent lanes of signed reports, each lane with its own gapless positions and
-- hash chain. Holds no balances and judges no worth: the door judges authorship, order and form.
--
--   chain(p) = sha256(chain(p - 1) || leaf(p));   positions of a lane = 1 .. usage_head.pos, no gaps
--   usage_key = { (lane, node, seq) of every row of usage_event }: a report sent twice meets its key

SET LOCAL ROLE tallystick_owner;

CREATE TABLE usage_event (
    lane int2 NOT NULL,
    position int8 NOT NULL,
    node_id text COLLATE "C" NOT NULL,
    node_seq int8 NOT NULL,
    name text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    leaf bytea NOT NULL,
    chain bytea NOT NULL,
    flags int4 NOT NULL,
    recorded_us int8 NOT NULL,
    PRIMARY KEY (lane, position)
);
-- pglz, all the embedded server has, costs more than the bytes it saves.
ALTER TABLE usage_event ALTER body SET STORAGE EXTERNAL;
COMMENT ON TABLE usage_event IS 'Signed usage reports, byte for byte, in the order of their lane';
COMMENT ON COLUMN usage_event.body IS 'lp4(signed bytes) || lp4(key id) || lp4(signature)';
COMMENT ON COLUMN usage_event.flags IS 'bit 0: the content breaks a rule of the report; earns nothing';

-- What an owner asks for; next to nothing to keep, as few reports are flagged.
CREATE INDEX usage_event_flagged ON usage_event (lane, node_id, position) WHERE flags <> 0;

CREATE TABLE usage_key (
    lane int2 NOT NULL,
    node_id text COLLATE "C" NOT NULL,
    node_seq int8 NOT NULL,
    position int8 NOT NULL,
    leaf bytea NOT NULL,
    PRIMARY KEY (lane, node_id, node_seq)
);
COMMENT ON TABLE usage_key IS 'The dedupe: which reports of a node are stored, and where';

-- Room on the page: these rows are rewritten by every append and must stay HOT.
CREATE TABLE usage_head (
    lane int2 PRIMARY KEY CHECK (lane BETWEEN 0 AND 63),
    pos int8 NOT NULL,
    hash bytea NOT NULL,
    recorded_us int8 NOT NULL
) WITH (fillfactor = 10);
INSERT INTO usage_head
SELECT g, 0, sha256(convert_to('usage/' || g, 'UTF8')), 0 FROM generate_series(0, 63) g;

CREATE TABLE usage_node (
    lane int2 NOT NULL,
    node_id text COLLATE "C" NOT NULL,
    last_node_seq int8 NOT NULL,
    last_hash bytea NOT NULL,
    PRIMARY KEY (lane, node_id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN usage_node.last_hash IS 'SHA-256(PAE) of the last stored report: the next prev';

CREATE TABLE usage_evidence (
    lane int2 NOT NULL,
    node_id text COLLATE "C" NOT NULL,
    node_seq int8 NOT NULL,
    leaf bytea NOT NULL,
    body bytea NOT NULL,
    recorded_us int8 NOT NULL,
    PRIMARY KEY (lane, node_id, node_seq, leaf)
);
ALTER TABLE usage_evidence ALTER body SET STORAGE EXTERNAL;
COMMENT ON TABLE usage_evidence IS
    'Second signed bodies of equivocations; at most 4 a sequence number and 64 a node';

CREATE FUNCTION usage_refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = '42501';
END $$;

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['usage_event', 'usage_key', 'usage_evidence'] LOOP
        EXECUTE format('CREATE TRIGGER %1$s_keep BEFORE UPDATE OR DELETE ON %1$I
            FOR EACH ROW EXECUTE FUNCTION usage_refuse_change()', t);
        EXECUTE format('CREATE TRIGGER %1$s_keep_all BEFORE TRUNCATE ON %1$I
            FOR EACH STATEMENT EXECUTE FUNCTION usage_refuse_change()', t);
        -- ALWAYS: session_replication_role = replica must not pass them.
        EXECUTE format('ALTER TABLE %1$I ENABLE ALWAYS TRIGGER %1$s_keep', t);
        EXECUTE format('ALTER TABLE %1$I ENABLE ALWAYS TRIGGER %1$s_keep_all', t);
    END LOOP;
END $$;

-- Append verified reports, sorted by (lane, node, seq), in one transaction. One row out per row in:
-- status 0 stored, 1 duplicate, 2 equivocation, 3 gap, 4 fork, 5 not looked at (an earlier report of
-- the same node in this call was refused); position, chain, time and flags of the (first) storing;
-- acked and head: the node's last sequence number and hash after this row.
-- p_genesis is the hash a node without a row starts at. p_now_us: the caller's clock.
-- p_signed is the number of leading bytes of a body that hold the signed bytes with their length:
-- equal there means the same report, whatever its signature.
CREATE FUNCTION usage_append(
    p_lane int2[], p_node text[], p_seq int8[], p_prev bytea[], p_hash bytea[], p_genesis bytea[],
    p_leaf bytea[], p_body bytea[], p_signed int4[], p_flags int4[], p_name text, p_now_us int8
) RETURNS TABLE (
    i int4, status int2, pos int8, lane_hash bytea, recorded int8, flags int4,
    acked int8, head bytea
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
-- A plan cached while the tables were empty would keep its sequential scans for ever.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    n int4 := cardinality(p_lane);
    r record;
    first_one record;
    k int4;
    cur_lane int2;  cur_node text;
    l_pos int8;     l_chain bytea;   l_now int8;     l_moved bool := false;
    n_seq int8;     n_hash bytea;    n_moved bool := false;  n_stopped bool := false;
    a_pos int8[] := array_fill(0::int8, ARRAY[n]);
    a_chain bytea[] := array_fill(''::bytea, ARRAY[n]);
    a_now int8[] := array_fill(0::int8, ARRAY[n]);
    h_lane int2[];  h_pos int8[];    h_chain bytea[];  h_now int8[];
    m_lane int2[];  m_node text[];   m_seq int8[];     m_hash bytea[];
BEGIN
    -- Ascending everywhere: two appends can wait for each other, never lock each other out.
    PERFORM FROM usage_head h WHERE h.lane = ANY (p_lane) ORDER BY h.lane FOR UPDATE;
    FOR r IN
        SELECT u.o::int4 AS o, u.lane, u.node, u.seq, u.prev, u.hash, u.leaf,
            h.pos AS h_pos, h.hash AS h_hash, h.recorded_us AS h_now,
            coalesce(m.last_node_seq, 0) AS m_seq, coalesce(m.last_hash, u.genesis) AS m_hash
        FROM unnest(p_lane, p_node, p_seq, p_prev, p_hash, p_genesis, p_leaf)
            WITH ORDINALITY u(lane, node, seq, prev, hash, genesis, leaf, o)
        JOIN usage_head h ON h.lane = u.lane
        LEFT JOIN usage_node m ON m.lane = u.lane AND m.node_id = u.node
        ORDER BY u.o
    LOOP
        IF cur_node IS DISTINCT FROM r.node THEN
            IF n_moved THEN
                m_lane := m_lane || cur_lane;  m_node := m_node || cur_node;
                m_seq := m_seq || n_seq;       m_hash := m_hash || n_hash;
            END IF;
            IF cur_lane IS DISTINCT FROM r.lane THEN
                IF l_moved THEN
                    h_lane := h_lane || cur_lane;  h_pos := h_pos || l_pos;
                    h_chain := h_chain || l_chain; h_now := h_now || l_now;
                END IF;
                cur_lane := r.lane;  l_pos := r.h_pos;  l_chain := r.h_hash;
                l_now := greatest(p_now_us, r.h_now);   l_moved := false;
            END IF;
            cur_node := r.node;  n_seq := r.m_seq;  n_hash := r.m_hash;
            n_moved := false;    n_stopped := false;
        END IF;
        i := r.o;  pos := NULL;  lane_hash := NULL;  recorded := NULL;  flags := NULL;
        IF n_stopped THEN
            status := 5;
        ELSIF r.seq = n_seq + 1 THEN
            IF r.prev = n_hash THEN
                l_pos := l_pos + 1;  l_chain := sha256(l_chain || r.leaf);  l_moved := true;
                n_seq := r.seq;      n_hash := r.hash;                      n_moved := true;
                a_pos[r.o] := l_pos; a_chain[r.o] := l_chain;               a_now[r.o] := l_now;
                status := 0;  pos := l_pos;  lane_hash := l_chain;  recorded := l_now;
                flags := p_flags[r.o];
            ELSE
                status := 4;
            END IF;
        ELSIF r.seq > n_seq THEN
            status := 3;
        ELSE
            SELECT e.position, e.chain, e.recorded_us, e.flags,
                y.leaf = r.leaf OR substring(e.body FOR p_signed[r.o])
                    = substring(p_body[r.o] FOR p_signed[r.o]) AS same
            INTO first_one
            FROM usage_key y JOIN usage_event e ON e.lane = y.lane AND e.position = y.position
            WHERE y.lane = r.lane AND y.node_id = r.node AND y.node_seq = r.seq;
            IF FOUND THEN
                status := CASE WHEN first_one.same THEN 1 ELSE 2 END;
                pos := first_one.position;          lane_hash := first_one.chain;
                recorded := first_one.recorded_us;  flags := first_one.flags;
            ELSE  -- stored earlier in this call
                k := r.o - 1;
                WHILE p_seq[k] <> r.seq OR a_pos[k] = 0 LOOP k := k - 1; END LOOP;
                status := CASE WHEN substring(p_body[k] FOR p_signed[r.o])
                    = substring(p_body[r.o] FOR p_signed[r.o]) THEN 1 ELSE 2 END;
                pos := a_pos[k];  lane_hash := a_chain[k];  recorded := a_now[k];
                flags := p_flags[k];
            END IF;
            IF status = 2 THEN
                INSERT INTO usage_evidence
                SELECT r.lane, r.node, r.seq, r.leaf, p_body[r.o], l_now
                WHERE 4 > (SELECT count(*) FROM usage_evidence v
                        WHERE v.lane = r.lane AND v.node_id = r.node AND v.node_seq = r.seq)
                    AND 64 > (SELECT count(*) FROM usage_evidence v
                        WHERE v.lane = r.lane AND v.node_id = r.node)
                ON CONFLICT DO NOTHING;
            END IF;
        END IF;
        IF status BETWEEN 2 AND 4 THEN
            n_stopped := true;  pos := NULL;  lane_hash := NULL;  recorded := NULL;  flags := NULL;
        END IF;
        acked := n_seq;  head := n_hash;
        RETURN NEXT;
    END LOOP;
    IF i IS DISTINCT FROM n THEN
        RAISE EXCEPTION 'usage_append: a lane outside 0..63 or arrays of unequal length';
    END IF;
    IF n_moved THEN
        m_lane := m_lane || cur_lane;  m_node := m_node || cur_node;
        m_seq := m_seq || n_seq;       m_hash := m_hash || n_hash;
    END IF;
    IF l_moved THEN
        h_lane := h_lane || cur_lane;  h_pos := h_pos || l_pos;
        h_chain := h_chain || l_chain; h_now := h_now || l_now;
    END IF;
    IF h_lane IS NULL THEN
        RETURN;
    END IF;

    INSERT INTO usage_event
    SELECT u.lane, u.pos, u.node, u.seq, p_name, u.body, u.leaf, u.chain, u.flags, u.now_us
    FROM unnest(p_lane, a_pos, p_node, p_seq, p_body, p_leaf, a_chain, p_flags, a_now)
        u(lane, pos, node, seq, body, leaf, chain, flags, now_us)
    WHERE u.pos > 0;
    INSERT INTO usage_key
    SELECT u.lane, u.node, u.seq, u.pos, u.leaf
    FROM unnest(p_lane, p_node, p_seq, a_pos, p_leaf) u(lane, node, seq, pos, leaf)
    WHERE u.pos > 0;
    UPDATE usage_head h SET pos = u.pos, hash = u.chain, recorded_us = u.now_us
    FROM unnest(h_lane, h_pos, h_chain, h_now) u(lane, pos, chain, now_us)
    WHERE h.lane = u.lane;
    INSERT INTO usage_node AS m
    SELECT u.lane, u.node, u.seq, u.hash
    FROM unnest(m_lane, m_node, m_seq, m_hash) u(lane, node, seq, hash)
    ON CONFLICT (lane, node_id)
        DO UPDATE SET last_node_seq = excluded.last_node_seq, last_hash = excluded.last_hash;
END $$;

REVOKE ALL ON FUNCTION usage_append FROM PUBLIC;
GRANT SELECT ON usage_event, usage_key, usage_head, usage_node, usage_evidence
    TO tallystick_app, tallystick_projections, tallystick_audit;
GRANT EXECUTE ON FUNCTION usage_append TO tallystick_app;
