-- How long the last round of each timer took, and when its next round is due.

SET LOCAL ROLE tallystick_owner;

ALTER TABLE job_run
    ADD COLUMN duration_us bigint CHECK (duration_us >= 0),
    ADD COLUMN next_us bigint;
COMMENT ON COLUMN job_run.next_us IS 'When the next round is due: after an error sooner or later than its usual interval';

RESET ROLE;
