-- What lies beside the logs: in no hash and no export, and no balance follows from it. It may be
-- written over, forgotten or erased, and what was decided stays as it is.

SET LOCAL ROLE tallystick_owner;

-- Texts that wallets were asked to sign. Not facts: a linked wallet's fact holds its text, and an
-- unused one is deleted when its ten minutes are over.

CREATE TABLE wallet_challenge (
    nonce text COLLATE "C" PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    message text NOT NULL,
    expires_at_us bigint NOT NULL
);
CREATE INDEX ON wallet_challenge (expires_at_us);
COMMENT ON TABLE wallet_challenge IS 'Single use: the row is deleted before the wallet is linked';

GRANT INSERT, DELETE ON wallet_challenge TO tallystick_app, tallystick_projections;

-- Salts of secrets that are shown once, for 24 hours. UNLOGGED: in no write-ahead log and in no
-- physical backup; a crash forgets them, and whoever lost an answer replaces the secret.

CREATE UNLOGGED TABLE secret_salt (
    name bytea PRIMARY KEY,
    salt bytea NOT NULL,
    made_us bigint NOT NULL
);
CREATE INDEX ON secret_salt (made_us);
COMMENT ON TABLE secret_salt IS 'With it and the server key the secret is made again; erased after 24 hours';

GRANT INSERT, UPDATE, DELETE ON secret_salt TO tallystick_app, tallystick_projections;

-- How each background job last went: one row a job, written by whichever process led it. Not a
-- log: it answers "is anything stuck" and is in no hash and no export.

CREATE TABLE job_run (
    name text COLLATE "C" PRIMARY KEY,
    ran_us bigint NOT NULL,
    succeeded_us bigint,
    alarm_us bigint NOT NULL,
    error text,
    CONSTRAINT job_run_error_bounded CHECK (length(error) <= 1000)
) WITH (fillfactor = 50);
COMMENT ON COLUMN job_run.alarm_us IS 'Without success for longer than this, somebody should look';

GRANT INSERT, UPDATE ON job_run TO tallystick_app, tallystick_projections;

-- How the telling of facts to webhooks went. Not facts: they can be sent again, and old rows may go.

CREATE TABLE webhook_delivery (
    endpoint_id text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    attempts int NOT NULL CHECK (attempts >= 0),
    outcome text NOT NULL CHECK (outcome IN ('waiting', 'delivered', 'failed')),
    answer int,          -- the last HTTP status
    error text,          -- what went wrong last, without anything of the answer's body
    first_at_us bigint NOT NULL,
    last_at_us bigint NOT NULL,
    next_at_us bigint,   -- when it is tried again
    PRIMARY KEY (endpoint_id, position),
    CHECK ((outcome = 'waiting') = (next_at_us IS NOT NULL))
);
COMMENT ON TABLE webhook_delivery IS 'One row per endpoint and fact that it was, or is to be, told';

GRANT SELECT ON webhook_delivery TO tallystick_app, tallystick_projections, tallystick_audit;
GRANT INSERT, UPDATE, DELETE ON webhook_delivery TO tallystick_app, tallystick_projections;

-- Names and addresses that stand on invoices. Not facts: they may have to be erased, so they are
-- in no log, no hash and no export. An invoice that is shown after that shows ids alone.

CREATE TABLE billing_details (
    account_id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    address text[] NOT NULL,
    country text COLLATE "C",
    tax_id text,
    updated_us bigint NOT NULL,
    CONSTRAINT billing_details_bounded CHECK (
        length(name) BETWEEN 1 AND 200 AND cardinality(address) <= 6
        AND length(array_to_string(address, '')) <= 1000
        AND country ~ '^[A-Z]{2}$' AND length(tax_id) <= 40
    )
) WITH (fillfactor = 70);
COMMENT ON TABLE billing_details IS 'Erasable: whoever is named here may have the row deleted';

GRANT INSERT, UPDATE, DELETE ON billing_details TO tallystick_app, tallystick_projections;

-- The service accounts of cloud providers, by e-mail address: in no log. Their keys are kept nowhere.

CREATE TABLE service_account (
    provider_id text COLLATE "C" PRIMARY KEY,
    email text NOT NULL CHECK (length(email) BETWEEN 3 AND 200),
    updated_us bigint NOT NULL
) WITH (fillfactor = 70);
COMMENT ON TABLE service_account IS 'Erasable, like every address';

GRANT INSERT, UPDATE, DELETE ON service_account TO tallystick_app, tallystick_projections;

-- What signs webhooks, logins of SMB datastores and variables of device configurations: in no log,
-- sealed with a key that lies in a file, so that the database alone gives none of them back.

CREATE TABLE sealed_secret (
    name text COLLATE "C" PRIMARY KEY,
    sealed bytea NOT NULL CHECK (octet_length(sealed) BETWEEN 40 AND 1048576),
    kept_us bigint NOT NULL,
    until_us bigint      -- it is erased then; NULL: it is in use
) WITH (fillfactor = 70);
CREATE INDEX ON sealed_secret (until_us) WHERE until_us IS NOT NULL;
COMMENT ON TABLE sealed_secret IS 'Sealed with keys/sealing.key, which lies in no backup of the database';

GRANT INSERT, UPDATE, DELETE ON sealed_secret TO tallystick_app, tallystick_projections;

-- The words of disputes: claims, statements, reasons of rulings. The log holds their SHA-256 only, so
-- a text can be erased here and what was decided stays proven.

CREATE TABLE dispute_text (
    dispute_id text COLLATE "C" NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (dispute_id, sha256),
    CONSTRAINT dispute_text_bounded CHECK (length(body) BETWEEN 1 AND 4000)
);
COMMENT ON TABLE dispute_text IS 'sha256 of the UTF-8 body, hex; the fact of the dispute names it';

GRANT INSERT, DELETE ON dispute_text TO tallystick_app, tallystick_projections;

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

RESET ROLE;
