-- What the chain jobs must not forget: transactions on their way, blocks read, events seen.
--
--   one intent = one nonce of one key;    one effect enters the market log once
--
-- Raw rows: what they mean is decided by `contracts`. The market log repeats the lives of the
-- transactions as facts, but never holds the signed bytes.

SET LOCAL ROLE tallystick_owner;

CREATE TABLE chain_intent (
    id text COLLATE "C" PRIMARY KEY,
    sender text COLLATE "C" NOT NULL CHECK (sender = lower(sender)),
    chain_id bigint NOT NULL,
    recipient text NOT NULL,
    data bytea NOT NULL,
    state text NOT NULL,
    nonce bigint CHECK (nonce >= 0),
    gas bigint NOT NULL,
    mined json,
    note text NOT NULL,
    told boolean NOT NULL,
    CONSTRAINT chain_intent_nonce UNIQUE (sender, chain_id, nonce)
) WITH (fillfactor = 50);
COMMENT ON TABLE chain_intent IS 'One transaction to be made, named by its purpose: mint/7';
COMMENT ON COLUMN chain_intent.mined IS 'The receipt of the attempt that is in a block';
COMMENT ON COLUMN chain_intent.told IS 'Whether the market log knows this state';

CREATE TABLE chain_attempt (
    hash text COLLATE "C" PRIMARY KEY,
    intent_id text COLLATE "C" NOT NULL REFERENCES chain_intent,
    ordinal int NOT NULL,
    raw bytea NOT NULL,
    max_fee numeric(78) NOT NULL,
    tip numeric(78) NOT NULL,
    block bigint NOT NULL,
    is_cancel boolean NOT NULL,
    UNIQUE (intent_id, ordinal)
);
COMMENT ON TABLE chain_attempt IS 'Signed bytes, durable before anybody else sees them';

CREATE TABLE chain_cursor (
    deployment text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,
    hash text NOT NULL,
    final bigint NOT NULL,
    settled bigint NOT NULL,
    settled_us bigint NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE chain_cursor IS 'The last block read of each deployment we follow';
COMMENT ON COLUMN chain_cursor.settled IS 'Every effect up to this final block is in the market log';
COMMENT ON COLUMN chain_cursor.settled_us IS 'The time of that block';

CREATE TABLE chain_block (
    deployment text COLLATE "C" NOT NULL REFERENCES chain_cursor,
    number bigint NOT NULL,
    hash text NOT NULL,
    PRIMARY KEY (deployment, number)
);

CREATE TABLE chain_observation (
    deployment text COLLATE "C" NOT NULL REFERENCES chain_cursor,
    block_hash text COLLATE "C" NOT NULL,
    log_index int NOT NULL,
    block_number bigint NOT NULL,
    chain_id bigint NOT NULL,
    transaction text NOT NULL,
    contract text NOT NULL,
    event text NOT NULL,
    arguments json NOT NULL,
    effect_key text COLLATE "C",
    orphaned boolean NOT NULL,
    PRIMARY KEY (deployment, block_hash, log_index)
);
COMMENT ON TABLE chain_observation IS 'One event as seen in one block, on whichever branch';

CREATE TABLE chain_effect (
    deployment text COLLATE "C" NOT NULL,
    effect_key text COLLATE "C" NOT NULL,
    PRIMARY KEY (deployment, effect_key)
);
COMMENT ON TABLE chain_effect IS 'Effects that the market log has taken';

CREATE INDEX chain_intent_unfinished ON chain_intent (sender, nonce)
    WHERE state NOT IN ('final', 'cancelled', 'failed');
CREATE INDEX chain_intent_untold ON chain_intent (id) WHERE NOT told;
CREATE INDEX chain_observation_effects ON chain_observation (deployment, block_number, log_index)
    WHERE effect_key IS NOT NULL AND NOT orphaned;

GRANT INSERT, UPDATE ON chain_intent, chain_cursor, chain_observation
    TO tallystick_app, tallystick_projections;
GRANT INSERT ON chain_attempt, chain_effect TO tallystick_app, tallystick_projections;
GRANT INSERT, UPDATE, DELETE ON chain_block TO tallystick_app, tallystick_projections;

-- The facts that payouts and reconciliation follow from, found without reading the whole log.
CREATE INDEX market_events_payouts ON market_events (topic, notification_id)
    WHERE topic IN (
        'account.wallet_linked.v1', 'burn.confirmed.v1', 'burn.intended.v1',
        'deposit.credits_purchased.v1', 'epoch.mint_confirmed.v1', 'epoch.rewards_matured.v1',
        'epoch.sealed.v1', 'payout.confirmed.v1', 'payout.root_built.v1'
    );

RESET ROLE;
