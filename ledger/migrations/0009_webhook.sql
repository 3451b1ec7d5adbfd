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
