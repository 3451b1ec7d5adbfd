-- Whether this database is a copy that was loaded from an export of a log. Such a database is read
-- and never recorded in: its facts are of another machine, which goes on with them.
--
--   a row of loaded_log  =>  no row of key_set, and none can come; and the other way round

SET LOCAL ROLE tallystick_owner;

CREATE TABLE loaded_log (
    is_only bool PRIMARY KEY DEFAULT true CHECK (is_only),
    origin text NOT NULL CHECK (length(origin) <= 1000),
    log_key text NOT NULL CHECK (length(log_key) <= 2000),
    key_given bool NOT NULL,
    root_given bool NOT NULL,
    facts bigint CHECK (facts >= 0)
);
COMMENT ON TABLE loaded_log IS 'Where the log was loaded from; no row: this database has a log of its own';
COMMENT ON COLUMN loaded_log.log_key IS 'The verifier key of the log in the export';
COMMENT ON COLUMN loaded_log.key_given IS 'The last load held it against a key from elsewhere';
COMMENT ON COLUMN loaded_log.root_given IS 'The last load held it against a head from elsewhere';
COMMENT ON COLUMN loaded_log.facts IS 'So many are loaded, compared and in every view; NULL: a load has not ended';

-- One at a time, so that each sees what the other one committed.
CREATE FUNCTION own_log_or_copy() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(x'7A117577'::int);
    IF EXISTS (SELECT FROM public.key_set) AND EXISTS (SELECT FROM public.loaded_log) THEN
        RAISE EXCEPTION 'a database has a log of its own or a copy of another, never both'
            USING ERRCODE = 'exclusion_violation';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER own_log_or_copy AFTER INSERT ON key_set
    FOR EACH STATEMENT EXECUTE FUNCTION own_log_or_copy();
CREATE TRIGGER own_log_or_copy AFTER INSERT ON loaded_log
    FOR EACH STATEMENT EXECUTE FUNCTION own_log_or_copy();

-- Only the owner writes it: a load, which migrates, too. No role of a server makes a copy of a log.
GRANT SELECT ON loaded_log TO tallystick_app, tallystick_projections, tallystick_audit;

RESET ROLE;
