-- Usage lanes that lie on another server, and how far the market's server has seen them.
--
--   a lane takes reports on the server whose usage_head has its row, and on no other
--   usage_elsewhere(lane).pos == tree_head(lane).size on the market's server: an hour that was
--   accrued from a report elsewhere has its report in every later pin
--
-- The rows of the lane, its keys and its tiles lie beside its head. `TALLYSTICK_USAGE_LANES` says at
-- which address; `tallystick move-lanes` moves the rows of usage_head.

SET LOCAL ROLE tallystick_owner;

CREATE TABLE usage_elsewhere (
    lane int2 PRIMARY KEY CHECK (lane BETWEEN 0 AND 63),
    pos int8 NOT NULL,
    hash bytea NOT NULL,
    recorded_us int8 NOT NULL,
    is_stopped bool NOT NULL DEFAULT false,
    moving_to text
) WITH (fillfactor = 10);
COMMENT ON COLUMN usage_elsewhere.is_stopped IS
    'The lane could not be seen at the last look: nothing is decided by how far it goes';
COMMENT ON COLUMN usage_elsewhere.moving_to IS
    'Where the lane goes: it was taken out here, and is not yet put in there';

CREATE VIEW usage_lane AS
    SELECT lane, pos FROM usage_head UNION ALL SELECT lane, pos FROM usage_elsewhere;
COMMENT ON VIEW usage_lane IS 'How far each lane goes, wherever it lies';

GRANT SELECT ON usage_elsewhere, usage_lane
    TO tallystick_app, tallystick_projections, tallystick_audit;
GRANT UPDATE ON usage_elsewhere TO tallystick_app, tallystick_projections;

RESET ROLE;
