-- Whether this database is a copy that was loaded from an export of a log. Such a database is read
-- and never recorded in: its facts are of another machine, which goes on with them.

SET LOCAL ROLE tallystick_owner;

CREATE TABLE loaded_log (
    is_only bool PRIMARY KEY DEFAULT true CHECK (is_only),
    origin text NOT NULL CHECK (length(origin) <= 1000),
    log_key text NOT NULL CHECK (length(log_key) <= 2000),
    facts bigint CHECK (facts >= 0)
);
COMMENT ON TABLE loaded_log IS 'Where the log was loaded from; no row: this database has a log of its own';
COMMENT ON COLUMN loaded_log.log_key IS 'The verifier key of the log in the export';
COMMENT ON COLUMN loaded_log.facts IS 'So many are loaded, compared and in every view; NULL: a load has not ended';

GRANT SELECT, INSERT, UPDATE ON loaded_log TO tallystick_projections;

RESET ROLE;
