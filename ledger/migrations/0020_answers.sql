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
