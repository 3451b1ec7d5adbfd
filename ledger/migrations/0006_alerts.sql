-- Alerts that hold now: one row an alert and what it is about, gone when it ended and that was told.
-- Not facts: losing these rows sends a message again.

SET LOCAL ROLE tallystick_owner;

CREATE TABLE alert (
    name text COLLATE "C" NOT NULL,
    about text COLLATE "C" NOT NULL CHECK (length(about) <= 200),
    since_us bigint NOT NULL,
    told_us bigint,      -- when the message that it began was sent; NULL: not yet
    PRIMARY KEY (name, about)
) WITH (fillfactor = 70);
COMMENT ON TABLE alert IS 'What holds now; told_us is NULL until it held long enough and was told';

GRANT SELECT ON alert TO tallystick_app, tallystick_projections, tallystick_audit;
GRANT INSERT, UPDATE, DELETE ON alert TO tallystick_app, tallystick_projections;

RESET ROLE;
