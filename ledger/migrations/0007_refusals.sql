-- Refusals are kept for 30 days, so that a retry gets the same answer, and then they go: the timer
-- `refusals` asks for it (design reliability 3). Some thousands at a time, found by an index of
-- their own: among the keys of recorded facts, which stay for ever, they are few.

CREATE INDEX command_refusals ON command (recorded_us) WHERE status = 0;

CREATE OR REPLACE FUNCTION command_forget_refusals(before_us bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
BEGIN ATOMIC
    WITH gone AS (
        DELETE FROM command WHERE (account, key) IN (
            SELECT account, key FROM command WHERE status = 0 AND recorded_us < before_us
            ORDER BY recorded_us LIMIT 5000
        ) AND status = 0 RETURNING 1
    )
    SELECT count(*) FROM gone;
END;
