"""What refusals say: jobs, their plans, tasks and gangs."""

from __future__ import annotations

from api.refusals.sentence import ANY, CONFLICT, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.jobs.reasons import JobsReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    JobsReason.TASK_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no task[ {task_id:text}] in this queue. Check the id, or push the task with "
        "`tallystick job push`.",
    ),
    JobsReason.TASK_STATE: sentence(
        CONFLICT,
        "The task[ {task_id:text}] is not held by the lease[ {lease_id:text}]. Take the task "
        "again before you report on it.",
    ),
    JobsReason.JOB_EXISTS: sentence(
        CONFLICT,
        "The job[ {job_id:text}] exists already, with other contents. Submit the new one under "
        "a new id.",
    ),
    JobsReason.JOB_STATE: sentence(
        CONFLICT,
        when(
            "The leases of the job {job_id:text} are opened by its plan. Change the number of "
            "its members with `tallystick job scale`.",
            rule=ANY,
        ),
        when(
            "Attempt {attempt:count} of part {part:count} of the job {job_id:text} is not the "
            "next one. Nothing needs to be done.",
            attempt=ANY,
        ),
        when(
            "A run of the job {job_id:text} is not due at {run_due_us:time}. The schedule "
            "decides when it runs.",
            run_due_us=ANY,
        ),
        when(
            "Part {part:count} of the job {job_id:text} cannot be started now: it runs, is "
            "done, or is not in the plan.",
            part=ANY,
        ),
        when(
            "{leases:leases} of the job {job_id:text} still use its escrow. Close them first.",
            leases=ANY,
        ),
        when(
            "A job of the kind {kind:word} that is {phase:word} takes no tasks[ "
            "({job_id:text})]. Submit a job of the kind queue.",
            kind=ANY,
        ),
        when(
            "A job of the kind {kind:word} has no tasks[ ({job_id:text})]. Submit a job of the "
            "kind queue.",
            kind=ANY,
        ),
        "The job {job_id:text} is {phase:word}, which does not allow this. Submit a new job for "
        "more work.",
        "The state of the job does not allow this. `tallystick job show` shows it.",
    ),
    JobsReason.WORKLOAD_EMPTY: sentence(
        INVALID, "The job[ {job_id:text}] has nothing to run. Name an image or a command."
    ),
    JobsReason.PLAN_INVALID: sentence(
        INVALID,
        when(
            "A job with a plan cannot be restarted automatically as well, because its plan "
            "replaces lost parts. Leave automatic restart out.",
            field="auto_restart",
        ),
        "The {field:field} of the job's plan breaks its rule: {rule:rule}. Change it and send the "
        "job again.",
        "The plan of the job breaks a rule. Change the plan and send the job again.",
    ),
    JobsReason.SCHEDULE_INVALID: sentence(
        INVALID,
        when(
            "The {field:field} of the schedule breaks its rule: {rule:rule}. Write five fields "
            'in UTC, like "30 2 * * *".',
            field=ANY,
        ),
        'The schedule was refused[: {rule:rule}]. Write five fields in UTC, like "30 2 * * *".',
    ),
    JobsReason.WORKLOAD_MISMATCH: sentence(
        INVALID,
        "The executor acknowledged other work than the job describes (image, command or "
        "environment). Read the work of the lease again and start that.",
    ),
    JobsReason.WORKSPACE_INVALID: sentence(
        INVALID, "The workspace breaks its rule[: {rule:rule}]. Change it and send it again."
    ),
    JobsReason.WORKSPACE_UNKNOWN: sentence(
        NOT_FOUND,
        when("The job of the lease {lease_id:text} brings no folder.", lease_id=ANY),
        "Your account keeps no workspace of this digest. Send its list of files first.",
    ),
    JobsReason.WORKSPACE_INCOMPLETE: sentence(
        CONFLICT,
        "The server still waits for {missing:count} pieces of the workspace. Send them, then ask "
        "for the work again.",
        "The server still waits for pieces of the workspace. Send them, then ask for the work "
        "again.",
    ),
    JobsReason.WORKSPACE_TOO_LARGE: sentence(
        INVALID,
        when(
            "The files have {bytes:bytes}; the server takes {most:bytes} of one folder. Leave "
            "some out with a .tallystickignore.",
            limit="one folder",
        ),
        when(
            "Folders of your open work have {bytes:bytes} together with this one; the server keeps "
            "{most:bytes} for an account. Wait until work has ended, or leave files out.",
            limit="account",
        ),
        "The server has no room for more folders now. Try again later, or leave files out.",
    ),
    JobsReason.SECRETS_UNUSABLE: sentence(
        CONFLICT,
        "Secrets for the lease[ {lease_id:text}] are taken once, before its work begins. Open "
        "another lease for others.",
    ),
    JobsReason.GANG_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no gang[ {gang_id:text}] that you may see. `tallystick gang list` shows yours.",
    ),
    JobsReason.GANG_EXISTS: sentence(
        CONFLICT,
        "The gang[ {gang_id:text}] exists already, with other contents. Open the new one under "
        "a new id.",
    ),
    JobsReason.GANG_STATE: sentence(
        CONFLICT,
        when(
            "The gang {gang_id:text} starts with at least {min_members:count} members, and "
            "{reserved:count} were reserved. Reserve enough of them together.",
            min_members=ANY,
        ),
        when(
            "A lease is a member of the gang {gang_id:text} already. Name new leases only.",
            members=ANY,
        ),
        when(
            "The gang is {status:word} and has until {ready_until_us:time} to become ready. It "
            "can be ended after that.",
            ready_until_us=ANY,
        ),
        when(
            "The gang is {status:word} and waits for GPUs until {waits_until_us:time}. It can "
            "be ended after that, or cancelled with `tallystick gang cancel`.",
            waits_until_us=ANY,
        ),
        when(
            "The gang {gang_id:text} is open and cannot be cancelled as a whole. Close its "
            "leases one by one.",
            status="open",
        ),
        "The gang {gang_id:text} is {status:word}, which does not allow this. `tallystick gang "
        "show` shows it.",
        "The state of the gang does not allow this. `tallystick gang show` shows it.",
    ),
    JobsReason.GANG_TOO_LARGE: sentence(
        CONFLICT,
        when(
            "The gang needs {min_members:count} members with {gpus_per_member:gpus} each; all "
            "registered nodes together have room for {at_most:count}. Ask for fewer members or "
            "fewer GPUs each.",
            models="any",
        ),
        "The gang needs {min_members:count} members with {gpus_per_member:gpus} each; the "
        "registered nodes with {models:text} have room for {at_most:count}. Ask for fewer "
        "members, or allow more models.",
        "The gang needs more members than the registered nodes have room for. Ask for fewer.",
    ),
}
