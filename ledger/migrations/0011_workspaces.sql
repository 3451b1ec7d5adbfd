-- Folders that travel to nodes with work, and what comes back: pieces by content, of one account
-- each. Not facts: a job's hash covers the digest of its workspace, and what was in it may go.

SET LOCAL ROLE tallystick_owner;

CREATE TABLE workspace (
    account_id text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL CHECK (octet_length(sha256) = 32),
    document bytea NOT NULL CHECK (octet_length(document) <= 700000),
    at_us bigint NOT NULL,
    PRIMARY KEY (account_id, sha256)
);
CREATE INDEX ON workspace (at_us);
COMMENT ON COLUMN workspace.at_us IS 'When it was last kept or named by new work';

CREATE TABLE workspace_piece (
    account_id text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL CHECK (octet_length(sha256) = 32),
    bytes int NOT NULL CHECK (bytes BETWEEN 1 AND 524288),
    body bytea CHECK (octet_length(body) = bytes),
    PRIMARY KEY (account_id, sha256)
);
ALTER TABLE workspace_piece ALTER COLUMN body SET STORAGE EXTERNAL;
COMMENT ON TABLE workspace_piece IS 'A key holds the account: its hash opens no piece of another one. body NULL: named, and not here yet';

CREATE TABLE workspace_part (
    account_id text COLLATE "C" NOT NULL,
    workspace bytea NOT NULL,
    piece bytea NOT NULL,
    PRIMARY KEY (account_id, workspace, piece),
    FOREIGN KEY (account_id, workspace) REFERENCES workspace ON DELETE CASCADE,
    FOREIGN KEY (account_id, piece) REFERENCES workspace_piece
);
CREATE INDEX ON workspace_part (account_id, piece);

CREATE TABLE workspace_job (
    account_id text COLLATE "C" NOT NULL,
    workspace bytea NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, workspace, job_id),
    FOREIGN KEY (account_id, workspace) REFERENCES workspace ON DELETE CASCADE
);
COMMENT ON TABLE workspace_job IS 'Jobs that were asked for with it: while one has open leases or a plan, it stays';

-- What the work of a lease left for its renter, and the variables that only its executor opens.

CREATE TABLE lease_result (
    lease_id text COLLATE "C" PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL,
    document bytea NOT NULL CHECK (octet_length(document) <= 700000),
    bytes bigint NOT NULL CHECK (bytes >= 0),
    at_us bigint NOT NULL
);
CREATE INDEX ON lease_result (at_us);
CREATE INDEX ON lease_result (account_id);

CREATE TABLE lease_result_piece (
    lease_id text COLLATE "C" NOT NULL REFERENCES lease_result ON DELETE CASCADE,
    sha256 bytea NOT NULL CHECK (octet_length(sha256) = 32),
    bytes int NOT NULL CHECK (bytes BETWEEN 1 AND 524288),
    body bytea CHECK (octet_length(body) = bytes),
    PRIMARY KEY (lease_id, sha256)
);
ALTER TABLE lease_result_piece ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE lease_secret (
    lease_id text COLLATE "C" PRIMARY KEY,
    sealed bytea NOT NULL CHECK (octet_length(sealed) BETWEEN 49 AND 200000),
    at_us bigint NOT NULL
);
COMMENT ON TABLE lease_secret IS 'A sealed box that the node''s executor alone opens; gone once the work has begun';

GRANT SELECT, INSERT, UPDATE, DELETE ON workspace, workspace_piece, workspace_part, workspace_job,
    lease_result, lease_result_piece, lease_secret TO tallystick_app, tallystick_projections;

RESET ROLE;
