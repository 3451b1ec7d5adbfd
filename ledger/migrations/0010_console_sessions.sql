-- Sessions of the console: one row for each browser that is signed in. Not facts: losing these rows
-- signs everybody out. The cookie's token is kept as a hash only, and no API key is here: the row
-- names the key or the wallet, which is looked up again at each request.

SET LOCAL ROLE tallystick_owner;

CREATE TABLE console_session (
    token_sha256 text COLLATE "C" PRIMARY KEY CHECK (token_sha256 ~ '^[0-9a-f]{64}$'),
    session_id text COLLATE "C" NOT NULL UNIQUE,
    account_id text COLLATE "C" NOT NULL,
    member_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C",
    wallet text COLLATE "C",
    browser text NOT NULL CHECK (length(browser) <= 200),
    begun_us bigint NOT NULL,
    seen_us bigint NOT NULL CHECK (seen_us >= begun_us),
    ends_us bigint NOT NULL CHECK (ends_us > begun_us),
    CHECK ((key_id IS NULL) <> (wallet IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX ON console_session (account_id, member_id);
CREATE INDEX ON console_session (ends_us);
COMMENT ON TABLE console_session IS 'A browser that is signed in; deleted when it signs out';

GRANT SELECT, INSERT, UPDATE, DELETE ON console_session TO tallystick_app, tallystick_projections;

RESET ROLE;
