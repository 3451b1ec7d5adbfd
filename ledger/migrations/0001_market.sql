-- The market log: one gapless, hash-chained order of facts, with the books and the idempotency rows
-- that every append writes in its own transaction. No rule of the marketplace is here; what is here
-- is what must hold whoever writes:
--
--   chain(p) = sha256(chain(p - 1) || leaf(p));   positions = 1 .. market_events_head.pos, no gaps
--   every posting sums to zero;   no account is below zero after any fact
--   account.units = the balances_after of its last posting

-- Roles belong to the server, not to one database: another database may have made them already.
DO $$
DECLARE
    role_name text;
    -- May we SET ROLE to it? PostgreSQL 15 lets every member; since 16 a membership says so itself.
    may_become text := CASE WHEN current_setting('server_version_num')::int < 160000
        THEN 'MEMBER' ELSE 'SET' END;
BEGIN
    FOREACH role_name IN ARRAY ARRAY[
        'tallystick_owner', 'tallystick_app', 'tallystick_projections', 'tallystick_audit'
    ] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
        IF NOT pg_has_role(current_user, role_name, may_become) THEN
            EXECUTE format('GRANT %I TO %I', role_name, current_user);
        END IF;
    END LOOP;
    EXECUTE format('GRANT CREATE ON DATABASE %I TO tallystick_owner, tallystick_projections',
        current_database());
END $$;

GRANT USAGE, CREATE ON SCHEMA public TO tallystick_owner;
GRANT USAGE ON SCHEMA public TO tallystick_app, tallystick_projections, tallystick_audit;

SET LOCAL ROLE tallystick_owner;

-- Whatever the owner creates, now and in later migrations: everybody of ours may read it, nobody
-- may call its functions unless told so.
ALTER DEFAULT PRIVILEGES IN SCHEMA public
    GRANT SELECT ON TABLES TO tallystick_app, tallystick_projections, tallystick_audit;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- The library's four columns and its notification id, then ours.
CREATE TABLE market_events (
    originator_id uuid NOT NULL,
    originator_version bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    state bytea NOT NULL,
    notification_id bigint NOT NULL,
    leaf bytea NOT NULL,
    chain bytea NOT NULL,
    recorded_us bigint NOT NULL,
    CONSTRAINT market_events_pkey PRIMARY KEY (originator_id, originator_version),
    CONSTRAINT market_events_position UNIQUE (notification_id)
);
COMMENT ON TABLE market_events IS 'The market log, in the order of notification_id';
COMMENT ON COLUMN market_events.topic IS 'The stored name of the fact: lease.opened.v1';
COMMENT ON COLUMN market_events.state IS 'The body: UTF-8 JSON, keys sorted, no spaces; as hashed';
COMMENT ON COLUMN market_events.notification_id IS 'The position: 1, 2, 3 and so on';
COMMENT ON COLUMN market_events.recorded_us IS 'Answers as_of=<time>; never an input to money';

-- Room on the page: this row is rewritten by every append and must stay HOT.
CREATE TABLE market_events_head (
    id int PRIMARY KEY CHECK (id = 1),
    pos bigint NOT NULL,
    hash bytea NOT NULL,
    recorded_us bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO market_events_head VALUES (1, 0, sha256('market'), 0);

CREATE TABLE command (
    account text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    status int NOT NULL,
    body bytea NOT NULL,
    position bigint NOT NULL,
    recorded_us bigint NOT NULL,
    PRIMARY KEY (account, key)
) WITH (fillfactor = 50);
COMMENT ON TABLE command IS 'What was asked under which key, and the answer: idempotency';
COMMENT ON COLUMN command.status IS '0: a refusal, and body is its reason and facts';

CREATE TABLE account (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    asset text COLLATE "C" NOT NULL,
    side smallint NOT NULL CHECK (side IN (1, -1)),
    units bigint NOT NULL DEFAULT 0,
    CONSTRAINT account_limit CHECK (units >= 0)
) WITH (fillfactor = 50);
COMMENT ON TABLE account IS 'Present balances. Ids are local to this database: compare by name';
COMMENT ON COLUMN account.side IS '1: debits raise the balance; -1: credits do';
COMMENT ON COLUMN account.units IS 'The balance on the normal side';

CREATE FUNCTION sums_to_zero(units bigint[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    one bigint;
    total bigint := 0;
BEGIN
    FOREACH one IN ARRAY units LOOP
        total := total + one;
    END LOOP;
    RETURN total = 0;
END $$;
GRANT EXECUTE ON FUNCTION sums_to_zero TO PUBLIC;

CREATE TABLE posting (
    position bigint NOT NULL,
    asset text COLLATE "C" NOT NULL,
    accounts int[] NOT NULL,
    units bigint[] NOT NULL,
    balances_after bigint[] NOT NULL,
    PRIMARY KEY (position, asset),
    CONSTRAINT posting_equal_lengths CHECK (
        cardinality(accounts) > 1
        AND cardinality(accounts) = cardinality(units)
        AND cardinality(accounts) = cardinality(balances_after)
    ),
    CONSTRAINT posting_zero_sum CHECK (sums_to_zero(units)),
    CONSTRAINT posting_limit CHECK (0 <= ALL (balances_after))
);
COMMENT ON TABLE posting IS 'The books: one row per fact and asset, debits > 0, credits < 0';
COMMENT ON COLUMN posting.balances_after IS 'On the normal side of each account, after this fact';

-- How far a follower that answers with facts has read the log it follows.
CREATE TABLE market_tracking (
    name text COLLATE "C" PRIMARY KEY,
    position bigint NOT NULL
) WITH (fillfactor = 50);

-- Folded states, for speed only: any row may be deleted at any time.
CREATE TABLE market_snapshots (
    originator_id uuid NOT NULL,
    originator_version bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (originator_id, originator_version)
);
GRANT INSERT, DELETE ON market_snapshots TO tallystick_app;
CREATE TYPE stored_event_uuid AS (
    originator_id uuid, originator_version bigint, topic text, state bytea
);

CREATE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = '42501';
END $$;

DO $$
DECLARE
    kept text;
BEGIN
    FOREACH kept IN ARRAY ARRAY['market_events', 'posting'] LOOP
        EXECUTE format('CREATE TRIGGER %1$s_keep BEFORE UPDATE OR DELETE ON %1$I
            FOR EACH ROW EXECUTE FUNCTION refuse_change()', kept);
        EXECUTE format('CREATE TRIGGER %1$s_keep_all BEFORE TRUNCATE ON %1$I
            FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', kept);
        -- ALWAYS: session_replication_role = replica must not pass them.
        EXECUTE format('ALTER TABLE %1$I ENABLE ALWAYS TRIGGER %1$s_keep', kept);
        EXECUTE format('ALTER TABLE %1$I ENABLE ALWAYS TRIGGER %1$s_keep_all', kept);
    END LOOP;
END $$;

-- Facts and books of one append; called by market_events_append only.
--
--   ids .. leaves       the facts, in order
--   seen_*              streams that were read but not written, and their versions: moved = conflict
--   new_*               accounts the caller does not know the number of yet
--   account_*           the accounts touched, each once: number (or -k: the k-th of new_*), asset
--   row_*               the postings: offset of the fact from 1, asset, last line; together they
--                       hold every line once, in order
--   line_*              index into account_*, units
--   guards              accounts that must hold nothing
CREATE FUNCTION market_events_record(
    ids uuid[], versions bigint[], names text[], bodies bytea[], leaves bytea[], now_us bigint,
    seen_ids uuid[], seen_versions bigint[],
    new_names text[], new_assets text[], new_sides smallint[],
    account_ids int[], account_assets text[],
    row_facts int[], row_assets text[], row_ends int[],
    line_accounts int[], line_units bigint[],
    guards text[],
    OUT pos bigint, OUT new_ids int[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    n int := cardinality(ids);
    hash bytea;
    recorded bigint;
    chains bytea[];
    starts bigint[];
    sides smallint[];
    line_ids int[];
    line_sums bigint[];
    account_sums bigint[];
    row_starts int[];
    line int := 0;
    place int;
    after bigint;
    line_afters bigint[];
BEGIN
    -- From here to the commit this log has one writer. One fact takes the straight way: the same
    -- steps without arrays.
    IF n = 1 THEN
        UPDATE market_events_head h
        SET pos = h.pos + 1, hash = sha256(h.hash || leaves[1]),
            recorded_us = greatest(h.recorded_us, now_us)
        WHERE h.id = 1
        RETURNING h.pos - 1, h.hash, h.recorded_us INTO pos, hash, recorded;
    ELSE
        SELECT h.pos, h.hash, greatest(h.recorded_us, now_us) INTO pos, hash, recorded
        FROM market_events_head h WHERE h.id = 1 FOR UPDATE;
    END IF;

    IF cardinality(seen_ids) > 0 AND EXISTS (
        SELECT FROM unnest(seen_ids, seen_versions) s(id, version)
        JOIN market_events e ON e.originator_id = s.id AND e.originator_version = s.version + 1
    ) THEN
        RAISE unique_violation USING CONSTRAINT = 'market_events_pkey', MESSAGE = 'a stream moved';
    END IF;

    IF cardinality(guards) > 0 AND EXISTS (
        SELECT FROM unnest(guards) g(name) JOIN account a ON a.name = g.name WHERE a.units > 0
    ) THEN
        RAISE check_violation USING CONSTRAINT = 'account_guard', MESSAGE = 'a guarded account';
    END IF;

    IF n = 1 THEN
        INSERT INTO market_events VALUES
            (ids[1], versions[1], names[1], bodies[1], pos + 1, leaves[1], hash, recorded);
    ELSE
        chains := array_fill(''::bytea, ARRAY[n]);
        FOR i IN 1 .. n LOOP
            hash := sha256(hash || leaves[i]);
            chains[i] := hash;
        END LOOP;
        INSERT INTO market_events
        SELECT e.id, e.version, e.name, e.body, pos + e.place, e.leaf, e.chain, recorded
        FROM unnest(ids, versions, names, bodies, leaves, chains)
            WITH ORDINALITY e(id, version, name, body, leaf, chain, place);
        UPDATE market_events_head h SET pos = pos + n, hash = hash, recorded_us = recorded
        WHERE h.id = 1;
    END IF;

    new_ids := '{}';
    IF cardinality(account_ids) = 0 THEN
        RETURN;
    END IF;
    IF cardinality(new_names) > 0 THEN
        INSERT INTO account (name, asset, side)
        SELECT * FROM unnest(new_names, new_assets, new_sides) ON CONFLICT (name) DO NOTHING;
        SELECT array_agg(a.id ORDER BY w.place) INTO new_ids
        FROM unnest(new_names) WITH ORDINALITY w(name, place) JOIN account a ON a.name = w.name;
        FOR i IN 1 .. cardinality(account_ids) LOOP
            IF account_ids[i] < 0 THEN
                account_ids[i] := new_ids[-account_ids[i]];
            END IF;
        END LOOP;
    END IF;

    IF cardinality(row_facts) = 1 THEN
        -- The accounts are the lines: each occurs once, in this order.
        FOR i IN 1 .. cardinality(account_ids) LOOP
            UPDATE account a SET units = a.units + a.side * line_units[i]
            WHERE a.id = account_ids[i] AND a.asset = row_assets[1]
            RETURNING a.units INTO after;
            IF NOT FOUND THEN
                RAISE foreign_key_violation USING
                    CONSTRAINT = 'account_exists', MESSAGE = 'no such account in this asset';
            END IF;
            line_afters[i] := after;
        END LOOP;
        INSERT INTO posting VALUES
            (pos + row_facts[1], row_assets[1], account_ids, line_units, line_afters);
        RETURN;
    END IF;

    -- What each account holds follows from the lines that are stored, never from a caller's sum.
    account_sums := array_fill(0::bigint, ARRAY[cardinality(account_ids)]);
    line_sums := array_fill(0::bigint, ARRAY[cardinality(line_accounts)]);
    row_starts := array_fill(0, ARRAY[cardinality(row_facts)]);
    FOR r IN 1 .. cardinality(row_facts) LOOP
        row_starts[r] := line + 1;
        WHILE line < row_ends[r] LOOP
            line := line + 1;
            place := line_accounts[line];
            IF account_assets[place] IS DISTINCT FROM row_assets[r] THEN
                RAISE foreign_key_violation USING
                    CONSTRAINT = 'account_exists', MESSAGE = 'no such account in this asset';
            END IF;
            account_sums[place] := account_sums[place] + line_units[line];
            line_sums[line] := account_sums[place];
        END LOOP;
    END LOOP;
    IF line <> cardinality(line_accounts) OR line <> row_ends[cardinality(row_ends)] THEN
        RAISE check_violation
            USING CONSTRAINT = 'posting_lines', MESSAGE = 'a line stands in no posting';
    END IF;

    WITH moved AS (
        UPDATE account a SET units = a.units + a.side * t.sum
        FROM unnest(account_ids, account_assets, account_sums)
            WITH ORDINALITY t(id, asset, sum, place)
        WHERE a.id = t.id AND a.asset = t.asset
        RETURNING t.place, a.units - a.side * t.sum AS start, a.side
    )
    SELECT array_agg(m.start ORDER BY m.place), array_agg(m.side ORDER BY m.place)
    INTO starts, sides FROM moved m;
    IF cardinality(starts) IS DISTINCT FROM cardinality(account_ids) THEN
        RAISE foreign_key_violation
            USING CONSTRAINT = 'account_exists', MESSAGE = 'no such account in this asset';
    END IF;

    line_ids := ARRAY(SELECT account_ids[l.a] FROM unnest(line_accounts) l(a));
    line_afters := ARRAY(
        SELECT starts[l.a] + sides[l.a] * l.sum FROM unnest(line_accounts, line_sums) l(a, sum)
    );
    INSERT INTO posting
    SELECT pos + r.fact, r.asset, line_ids[r.lo:r.hi], line_units[r.lo:r.hi],
        line_afters[r.lo:r.hi]
    FROM unnest(row_facts, row_assets, row_starts, row_ends) r(fact, asset, lo, hi);
END $$;

-- The one way to append. In one transaction, in this order: the command row (a finished one wins:
-- nothing is appended, its answer comes back), the head row, the facts, the books, the guards, the
-- tracking row, the notification.
--
-- A violated limit or guard rolls everything back, so that the caller can decide again; with
-- limit_is_final the refusal handed in for that case (status 0) becomes the command's answer.
-- `recorded` is false when nothing new was recorded; status and body are then the stored answer.
CREATE FUNCTION market_events_append(
    ids uuid[], versions bigint[], names text[], bodies bytea[], leaves bytea[], now_us bigint,
    seen_ids uuid[], seen_versions bigint[],
    new_names text[], new_assets text[], new_sides smallint[],
    account_ids int[], account_assets text[],
    row_facts int[], row_assets text[], row_ends int[],
    line_accounts int[], line_units bigint[],
    guards text[],
    command_account text, command_key text, command_fingerprint bytea,
    answer_status int, answer_body bytea,
    limit_is_final boolean, limit_body bytea, guard_body bytea,
    tracking_name text, tracking_position bigint,
    OUT recorded boolean, OUT pos bigint, OUT fingerprint bytea, OUT status int, OUT body bytea,
    OUT new_ids int[]
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
SET lock_timeout = '2s'
-- A plan cached while the tables were empty would keep its sequential scans for ever.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    made record;
    violated text;
BEGIN
    recorded := true;
    IF command_key IS NOT NULL THEN
        -- Waits here for a concurrent duplicate, before anything that others wait for is locked.
        INSERT INTO command VALUES (command_account, command_key, command_fingerprint,
            answer_status, answer_body, 0, now_us)
        ON CONFLICT (account, key) DO NOTHING;
        IF NOT FOUND THEN
            SELECT false, c.position, c.fingerprint, c.status, c.body
            INTO STRICT recorded, pos, fingerprint, status, body
            FROM command c WHERE c.account = command_account AND c.key = command_key;
            RETURN;
        END IF;
    END IF;

    IF cardinality(ids) = 0 THEN
        SELECT h.pos INTO pos FROM market_events_head h WHERE h.id = 1;
    ELSIF limit_is_final THEN
        BEGIN
            made := market_events_record(
                ids, versions, names, bodies, leaves, now_us, seen_ids, seen_versions,
                new_names, new_assets, new_sides, account_ids, account_assets,
                row_facts, row_assets, row_ends, line_accounts, line_units, guards);
        EXCEPTION WHEN check_violation THEN
            GET STACKED DIAGNOSTICS violated = CONSTRAINT_NAME;
            body := CASE violated
                WHEN 'account_limit' THEN limit_body
                WHEN 'posting_limit' THEN limit_body
                WHEN 'account_guard' THEN guard_body
            END;
            IF body IS NULL THEN
                RAISE;
            END IF;
            recorded := false;
            status := 0;
            fingerprint := command_fingerprint;
            SELECT h.pos INTO pos FROM market_events_head h WHERE h.id = 1;
            UPDATE command c SET status = 0, body = body, position = pos
            WHERE c.account = command_account AND c.key = command_key;
            RETURN;
        END;
        pos := made.pos + cardinality(ids);
        new_ids := made.new_ids;
    ELSE
        made := market_events_record(
            ids, versions, names, bodies, leaves, now_us, seen_ids, seen_versions,
            new_names, new_assets, new_sides, account_ids, account_assets,
            row_facts, row_assets, row_ends, line_accounts, line_units, guards);
        pos := made.pos + cardinality(ids);
        new_ids := made.new_ids;
    END IF;

    IF tracking_name IS NOT NULL THEN
        INSERT INTO market_tracking AS t VALUES (tracking_name, tracking_position)
        ON CONFLICT (name) DO UPDATE SET position = excluded.position
        WHERE t.position < excluded.position;
        IF NOT FOUND THEN
            RAISE check_violation
                USING CONSTRAINT = 'tracking_moved', MESSAGE = 'this was already followed';
        END IF;
    END IF;
    IF command_key IS NOT NULL THEN
        UPDATE command c SET position = pos
        WHERE c.account = command_account AND c.key = command_key;
    END IF;
    IF cardinality(ids) > 0 THEN
        PERFORM pg_notify('market_events', pos::text);
    END IF;
END $$;
GRANT EXECUTE ON FUNCTION market_events_append TO tallystick_app;

-- The last position recorded at or before a time; 0 before the first. recorded_us never falls, so
-- a bisection needs no index of its own.
CREATE FUNCTION market_position_at(at_us bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    low bigint := 0;
    high bigint;
    middle bigint;
    recorded bigint;
BEGIN
    SELECT pos INTO high FROM market_events_head WHERE id = 1;
    WHILE low < high LOOP
        middle := (low + high + 1) / 2;
        SELECT recorded_us INTO STRICT recorded FROM market_events WHERE notification_id = middle;
        IF recorded <= at_us THEN
            low := middle;
        ELSE
            high := middle - 1;
        END IF;
    END LOOP;
    RETURN low;
END $$;
GRANT EXECUTE ON FUNCTION market_position_at
    TO tallystick_app, tallystick_projections, tallystick_audit;

-- Keys that recorded facts are kept for ever; refusals may go.
CREATE FUNCTION command_forget_refusals(before_us bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
BEGIN ATOMIC
    WITH gone AS (
        DELETE FROM command WHERE status = 0 AND recorded_us < before_us RETURNING 1
    )
    SELECT count(*) FROM gone;
END;
GRANT EXECUTE ON FUNCTION command_forget_refusals TO tallystick_app;

-- Several commands answered by one append: facts, books and guards as in market_events_append, and
-- for each command what was asked under which key, the answer, and the position of its last fact
-- (`answer_ends` counts facts from the first of the append).
--
-- A key that is there already rolls everything back (unique_violation, command_pkey), as does a
-- violated limit or guard: then each command is handled by itself, and gets its own answer.
CREATE FUNCTION market_events_append_answered(
    ids uuid[], versions bigint[], names text[], bodies bytea[], leaves bytea[], now_us bigint,
    seen_ids uuid[], seen_versions bigint[],
    new_names text[], new_assets text[], new_sides smallint[],
    account_ids int[], account_assets text[],
    row_facts int[], row_assets text[], row_ends int[],
    line_accounts int[], line_units bigint[],
    guards text[],
    command_accounts text[], command_keys text[], command_fingerprints bytea[],
    answer_statuses int[], answer_bodies bytea[], answer_ends int[],
    OUT pos bigint, OUT new_ids int[]
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
SET lock_timeout = '2s'
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
    made record;
BEGIN
    -- As in market_events_append, a concurrent duplicate is waited for before the head is locked;
    -- in order of the keys, so that two appends never wait for each other.
    INSERT INTO command
    SELECT a.account, a.key, a.fingerprint, a.status, a.body, 0, now_us
    FROM unnest(command_accounts, command_keys, command_fingerprints, answer_statuses,
        answer_bodies) AS a(account, key, fingerprint, status, body)
    ORDER BY a.account, a.key;
    made := market_events_record(
        ids, versions, names, bodies, leaves, now_us, seen_ids, seen_versions,
        new_names, new_assets, new_sides, account_ids, account_assets,
        row_facts, row_assets, row_ends, line_accounts, line_units, guards);
    pos := made.pos + cardinality(ids);
    new_ids := made.new_ids;
    UPDATE command c SET position = made.pos + a.ending
    FROM unnest(command_accounts, command_keys, answer_ends) AS a(account, key, ending)
    WHERE c.account = a.account AND c.key = a.key;
    PERFORM pg_notify('market_events', pos::text);
END $$;
GRANT EXECUTE ON FUNCTION market_events_append_answered TO tallystick_app;

RESET ROLE;
