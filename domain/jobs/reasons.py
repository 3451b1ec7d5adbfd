"""What this room refuses: jobs, gangs and tasks.

The order inside a group is the order of checking; the first that applies wins. `STORED`: refusals
by state, which are kept with the idempotency key.
"""

from __future__ import annotations

from domain.refusal import Reason


class JobsReason(Reason):
    """Why a command of this room was refused."""

    JOB_EXISTS = "job_exists"
    JOB_STATE = "job_state"
    WORKLOAD_EMPTY = "workload_empty"
    GANG_UNKNOWN = "gang_unknown"
    GANG_EXISTS = "gang_exists"
    GANG_STATE = "gang_state"
    GANG_TOO_LARGE = "gang_too_large"
    PLAN_INVALID = "plan_invalid"
    SCHEDULE_INVALID = "schedule_invalid"
    TASK_UNKNOWN = "task_unknown"
    TASK_STATE = "task_state"
    WORKLOAD_MISMATCH = "workload_mismatch"
    WORKSPACE_INVALID = "workspace_invalid"
    WORKSPACE_UNKNOWN = "workspace_unknown"
    WORKSPACE_INCOMPLETE = "workspace_incomplete"
    WORKSPACE_TOO_LARGE = "workspace_too_large"
    SECRETS_UNUSABLE = "secrets_unusable"


REASONS = tuple(JobsReason)
STORED: frozenset[Reason] = frozenset(
    {
        JobsReason.JOB_EXISTS,
        JobsReason.JOB_STATE,
        JobsReason.GANG_UNKNOWN,
        JobsReason.GANG_EXISTS,
        JobsReason.GANG_STATE,
        JobsReason.GANG_TOO_LARGE,
        JobsReason.TASK_UNKNOWN,
        JobsReason.TASK_STATE,
        JobsReason.WORKSPACE_UNKNOWN,
        JobsReason.WORKSPACE_INCOMPLETE,
    }
)
