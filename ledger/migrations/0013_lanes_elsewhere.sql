-- Usage lanes that lie on another server, and how far the market's server has seen them.
--
--   a lane takes reports on the server whose usage_head has its row, where the market's row of
--   usage_elsewhere names that server, and on no other
--   usage_elsewhere(lane).pos == tree_head(lane).size on the market's server: an hour that was
--   accrued from a report elsewhere has its report in every later pin
--
-- The rows of the lane, its keys and its tiles lie beside its head. `TALLYSTICK_USAGE_LANES` says at
-- which address; `tallystick move-lanes` moves the rows of usage_head.

SET LOCAL ROLE tallystick_owner;

CREATE TABLE usage_server (
    is_only bool PRIMARY KEY DEFAULT true CHECK (is_only),
    server uuid NOT NULL,
    market uuid NOT NULL
);
COMMENT ON TABLE usage_server IS
    'Which database this is, and of which market: of its own, until it is made a server of lanes';
INSERT INTO usage_server SELECT true, id, id FROM (SELECT gen_random_uuid() AS id) AS new;

CREATE TABLE usage_elsewhere (
    lane int2 PRIMARY KEY CHECK (lane BETWEEN 0 AND 63),
    pos int8 NOT NULL,
    hash bytea NOT NULL,
    recorded_us int8 NOT NULL,
    is_stopped bool NOT NULL DEFAULT true,
    server uuid,
    moving_to uuid
) WITH (fillfactor = 10);
COMMENT ON COLUMN usage_elsewhere.is_stopped IS
    'The lane could not be seen at the last look: nothing is decided by how far it goes';
COMMENT ON COLUMN usage_elsewhere.server IS
    'At the market: who holds the lane; none while it is on its way from here';
COMMENT ON COLUMN usage_elsewhere.moving_to IS
    'The lane was taken out here to go there, and this server has not heard that it arrived';

CREATE VIEW usage_lane AS
    SELECT lane, pos FROM usage_head UNION ALL SELECT lane, pos FROM usage_elsewhere;
COMMENT ON VIEW usage_lane IS 'How far each lane goes, wherever it lies';

GRANT SELECT ON usage_server, usage_elsewhere, usage_lane
    TO tallystick_app, tallystick_projections, tallystick_audit;
GRANT UPDATE (pos, hash, recorded_us, is_stopped) ON usage_elsewhere
    TO tallystick_app, tallystick_projections;

RESET ROLE;
