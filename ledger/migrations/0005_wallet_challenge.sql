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
