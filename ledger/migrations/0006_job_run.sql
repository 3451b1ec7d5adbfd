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
