-- The audit trees: RFC 6962 hashes over the leaves of both logs, and the heads that were signed.
--
--   tree_head(log) = (n, the root over the first n leaves of that log)    at every commit
--
-- The trees follow from the logs and can be dropped and built again; `checkpoint` holds what was
-- signed and handed out.

SET LOCAL ROLE tallystick_owner;

-- Logs 0 to 63 are the usage lanes, 64 is the market log. The rows stand from the start, so that
-- there is always one to lock.
CREATE TABLE tree_head (
    log smallint PRIMARY KEY CHECK (log BETWEEN 0 AND 64),
    size bigint NOT NULL CHECK (size >= 0),
    root bytea NOT NULL CHECK (octet_length(root) = 32)
) WITH (fillfactor = 20);
INSERT INTO tree_head SELECT log, 0, sha256('') FROM generate_series(0, 64) AS log;

CREATE TABLE tree_tile (
    log smallint NOT NULL REFERENCES tree_head,
    level smallint NOT NULL CHECK (level BETWEEN 0 AND 7),
    index bigint NOT NULL CHECK (index >= 0),
    hashes bytea NOT NULL CHECK (
        octet_length(hashes) BETWEEN 32 AND 8192 AND octet_length(hashes) % 32 = 0
    ),
    PRIMARY KEY (log, level, index)
);
ALTER TABLE tree_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;
COMMENT ON TABLE tree_tile IS 'Up to 256 hashes of every eighth level, as C2SP tlog-tiles lays out';

CREATE TABLE checkpoint (
    size bigint PRIMARY KEY CHECK (size >= 0),
    root bytea NOT NULL CHECK (octet_length(root) = 32),
    note text NOT NULL,
    recorded_us bigint NOT NULL
);
COMMENT ON TABLE checkpoint IS 'Signed heads of the market log: C2SP checkpoint notes';

GRANT INSERT, UPDATE, DELETE ON tree_head, tree_tile TO tallystick_app, tallystick_projections;
GRANT INSERT ON checkpoint TO tallystick_app, tallystick_projections;

-- The pin that covers a report is found by bisection over the pins.
CREATE INDEX market_events_pins ON market_events (notification_id)
    WHERE topic = 'usage.pinned.v1';

RESET ROLE;
