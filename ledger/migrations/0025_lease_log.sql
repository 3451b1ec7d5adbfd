-- What the work of leases printed, for the two parties of the lease. Not facts: bounded for each
-- lease, kept for a week, and gone without a trace in any book.

CREATE TABLE lease_log (
    lease_id text COLLATE "C" PRIMARY KEY,
    next_seq int NOT NULL CHECK (next_seq >= 0),
    bytes int NOT NULL CHECK (bytes BETWEEN 0 AND 2097152),
    left_out bigint NOT NULL CHECK (left_out >= 0),
    at_us bigint NOT NULL
);
COMMENT ON COLUMN lease_log.left_out IS 'bytes that were printed and are not kept';
CREATE INDEX ON lease_log (at_us);

CREATE TABLE lease_log_chunk (
    lease_id text COLLATE "C" NOT NULL REFERENCES lease_log ON DELETE CASCADE,
    seq int NOT NULL,
    stream text NOT NULL CHECK (stream IN ('stdout', 'stderr', 'note')),
    at_us bigint NOT NULL,
    body bytea NOT NULL CHECK (octet_length(body) BETWEEN 1 AND 16384),
    PRIMARY KEY (lease_id, seq)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON lease_log, lease_log_chunk
    TO tallystick_app, tallystick_projections;
