-- The meter log: usage of resources other than GPUs, as CloudEvents that a party sent. One gapless,
-- hash-chained order. Holds no balances and judges no worth: which event earns is in the facts.
--
--   chain(p) = sha256(chain(p - 1) || leaf(p));   positions = 1 .. meter_head.pos, no gaps
--   (account, source, event_id) is there once;  windows of one (account, source, lease, meter) are
--   disjoint: what was metered is not metered again under another id

SET LOCAL ROLE tallystick_owner;

CREATE TABLE meter_event (
    position int8 PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    lease_id text COLLATE "C" NOT NULL,
    meter text COLLATE "C" NOT NULL,
    quantity int8 NOT NULL CHECK (quantity >= 0),
    from_us int8 NOT NULL,
    to_us int8 NOT NULL,
    route text COLLATE "C",
    dataset text COLLATE "C",
    body bytea NOT NULL,
    leaf bytea NOT NULL,
    chain bytea NOT NULL,
    recorded_us int8 NOT NULL,
    CONSTRAINT meter_event_key UNIQUE (account_id, source, event_id),
    CONSTRAINT meter_event_window CHECK (from_us < to_us)
);
-- pglz, all the embedded server has, costs more than the bytes it saves.
ALTER TABLE meter_event ALTER body SET STORAGE EXTERNAL;
COMMENT ON TABLE meter_event IS 'Metered usage of leases, in the order of position';
COMMENT ON COLUMN meter_event.account_id IS 'Who sent it; whether that party may is judged later';
COMMENT ON COLUMN meter_event.quantity IS 'Core-seconds, GB-seconds or bytes, by the meter';
COMMENT ON COLUMN meter_event.body IS 'The event: UTF-8 JSON, keys sorted, no spaces; as hashed';
CREATE INDEX meter_event_of_lease ON meter_event (lease_id, meter, position);
CREATE UNIQUE INDEX meter_event_windows
    ON meter_event (account_id, source, lease_id, meter, from_us) INCLUDE (to_us);
CREATE INDEX meter_event_of_account ON meter_event (account_id, position);

-- Room on the page: these rows are rewritten by every append and must stay HOT.
CREATE TABLE meter_head (
    id int PRIMARY KEY CHECK (id = 1),
    pos int8 NOT NULL,
    hash bytea NOT NULL,
    recorded_us int8 NOT NULL
) WITH (fillfactor = 10);
INSERT INTO meter_head VALUES (1, 0, sha256('meter'), 0);

CREATE TABLE meter_last (
    lease_id text COLLATE "C" NOT NULL,
    meter text COLLATE "C" NOT NULL,
    position int8 NOT NULL,
    PRIMARY KEY (lease_id, meter)
) WITH (fillfactor = 50);
COMMENT ON TABLE meter_last IS 'The last event of each meter of each lease: where work may wait';

CREATE FUNCTION meter_refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = '42501';
END $$;
CREATE TRIGGER meter_event_keep BEFORE UPDATE OR DELETE ON meter_event
    FOR EACH ROW EXECUTE FUNCTION meter_refuse_change();
CREATE TRIGGER meter_event_keep_all BEFORE TRUNCATE ON meter_event
    FOR EACH STATEMENT EXECUTE FUNCTION meter_refuse_change();
-- ALWAYS: session_replication_role = replica must not pass them.
ALTER TABLE meter_event ENABLE ALWAYS TRIGGER meter_event_keep;
ALTER TABLE meter_event ENABLE ALWAYS TRIGGER meter_event_keep_all;

-- Append the events of one sender in one transaction. One row out per event in, in their order:
-- status 0 stored, 1 duplicate (the same payload under its id), 2 another payload under the id,
-- 3 its window overlaps one that is stored, 4 too early or too late; pos: of the (first) storing,
-- or of the event in the way.
CREATE FUNCTION meter_append(
    p_account text, p_source text[], p_id text[], p_lease text[], p_meter text[],
    p_quantity int8[], p_from int8[], p_to int8[], p_route text[], p_dataset text[],
    p_body bytea[], p_leaf bytea[], p_timely bool[], p_now_us int8
) RETURNS TABLE (i int4, status int2, pos int8)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
-- A plan cached while the tables were empty would keep its sequential scans for ever.
SET enable_seqscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    n int4 := cardinality(p_source);
    l_pos int8;
    l_hash bytea;
    l_now int8;
    known record;
    stored bool := false;
BEGIN
    SELECT h.pos, h.hash, greatest(p_now_us, h.recorded_us) INTO l_pos, l_hash, l_now
    FROM meter_head h WHERE h.id = 1 FOR UPDATE;
    FOR k IN 1 .. n LOOP
        i := k;
        SELECT e.position, e.leaf INTO known FROM meter_event e
        WHERE e.account_id = p_account AND e.source = p_source[k] AND e.event_id = p_id[k];
        IF FOUND THEN
            status := CASE WHEN known.leaf = p_leaf[k] THEN 1 ELSE 2 END;
            pos := known.position;
            RETURN NEXT;
            CONTINUE;
        END IF;
        pos := NULL;
        IF NOT p_timely[k] THEN
            status := 4;
            RETURN NEXT;
            CONTINUE;
        END IF;
        -- Stored windows are disjoint, so the last one that starts before our end decides.
        SELECT e.position, e.to_us INTO known FROM meter_event e
        WHERE e.account_id = p_account AND e.source = p_source[k] AND e.lease_id = p_lease[k]
            AND e.meter = p_meter[k] AND e.from_us < p_to[k]
        ORDER BY e.from_us DESC LIMIT 1;
        IF FOUND AND known.to_us > p_from[k] THEN
            status := 3;
            pos := known.position;
            RETURN NEXT;
            CONTINUE;
        END IF;
        l_pos := l_pos + 1;
        l_hash := sha256(l_hash || p_leaf[k]);
        INSERT INTO meter_event VALUES (
            l_pos, p_account, p_source[k], p_id[k], p_lease[k], p_meter[k], p_quantity[k],
            p_from[k], p_to[k], p_route[k], p_dataset[k], p_body[k], p_leaf[k], l_hash, l_now);
        INSERT INTO meter_last AS m VALUES (p_lease[k], p_meter[k], l_pos)
        ON CONFLICT (lease_id, meter) DO UPDATE SET position = excluded.position;
        stored := true;
        status := 0;
        pos := l_pos;
        RETURN NEXT;
    END LOOP;
    IF stored THEN
        UPDATE meter_head SET pos = l_pos, hash = l_hash, recorded_us = l_now WHERE id = 1;
    END IF;
END $$;

REVOKE ALL ON FUNCTION meter_append FROM PUBLIC;
GRANT SELECT ON meter_event, meter_head, meter_last
    TO tallystick_app, tallystick_projections, tallystick_audit;
GRANT EXECUTE ON FUNCTION meter_append TO tallystick_app;
