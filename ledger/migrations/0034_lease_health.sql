-- How the two halves of a lease last said they were: the renter's machine, and the node's work.
-- Not facts: one row for each half, written over, forgotten a week after it was last heard.

CREATE TABLE lease_half (
    lease_id text COLLATE "C" NOT NULL,
    half text NOT NULL CHECK (half IN ('initiator', 'acceptor')),
    machine text NOT NULL CHECK (length(machine) <= 200),
    arch text CHECK (length(arch) <= 200),
    os text CHECK (length(os) <= 200),
    kernel text CHECK (length(kernel) <= 200),
    is_well boolean NOT NULL,
    detail text NOT NULL CHECK (length(detail) <= 200),
    since_us bigint NOT NULL,
    seen_us bigint NOT NULL CHECK (seen_us >= since_us),
    PRIMARY KEY (lease_id, half)
) WITH (fillfactor = 50);
COMMENT ON COLUMN lease_half.since_us IS 'since when it is as well, or as unwell, as it is';
CREATE INDEX ON lease_half (seen_us);

GRANT SELECT, INSERT, UPDATE, DELETE ON lease_half TO tallystick_app, tallystick_projections;
