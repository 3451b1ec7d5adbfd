"""`tallystick job`: work, the leases its plan opens, and what it came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import JobId
from cli.remote import (
    AS_IT_IS,
    BY_NUMBER,
    IN_ORDER,
    Remote,
    credits_of,
    lists,
    ppm_of,
    reads,
    records,
)
from cli.terminal import InputUnusable, amount, columns, facts, group, local_time, note
from cli.work_options import (
    Command,
    Image,
    MaxMeters,
    MaxPrice,
    Models,
    Mounts,
    Project,
    ReservationOption,
    Share,
    attached_of,
    work_of,
)

if TYPE_CHECKING:
    from tallystick_client.forms import EscrowFundingRequest, JobPlanForm, JobRequest

job = group("job", "Jobs: work, and the leases its plan opens.", "tallystick job list")

Kind = Literal["batch", "notebook", "endpoint", "scheduled", "queue", "interactive"]
Work = Literal["inference", "training"]
_REFERENCES = ("third_party_key", "checkpoint", "dataset")


@job.command(
    "submit",
    epilog='Example: tallystick job submit --command "python train.py" --max-price 3 --chunks 8',
)
@records
def submit_job(
    remote: Remote,
    max_price: MaxPrice,
    command: Command = None,
    image: Image = None,
    kind: Annotated[Kind, typer.Option(help="Kind of job.")] = "batch",
    work: Annotated[Work | None, typer.Option(help="Kind of work.")] = None,
    gpus: Annotated[int, typer.Option(min=1, max=64, help="GPUs of each lease.")] = 1,
    share: Share = "1",
    model: Models = None,
    chunks: Annotated[int | None, typer.Option(min=1, help="Parts of a batch job.")] = None,
    members: Annotated[
        str | None, typer.Option(metavar="MIN-MAX", help="Members that are kept running.")
    ] = None,
    tasks_per_member: Annotated[
        int | None, typer.Option(min=1, help="Of a queue: tasks for each member.")
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help='Five fields of cron, UTC: "30 2 * * *".')
    ] = None,
    run_seconds: Annotated[
        int | None, typer.Option(min=1, help="Fixed term of each lease of the plan.")
    ] = None,
    reference: Annotated[
        list[str] | None, typer.Option(metavar="KIND=NAME", help="Like dataset=s3://corpus/v3.")
    ] = None,
    parent: Annotated[str | None, typer.Option(help="The job it is a part of.")] = None,
    project: Project = "",
    end_user: Annotated[str, typer.Option(help="The end user, in your own words.")] = "",
    max_meter: MaxMeters = None,
    mount: Mounts = None,
    reservation: ReservationOption = None,
) -> None:
    """Submit a job. With a plan, the server opens and replaces its leases."""
    body: JobRequest = {
        **work_of(command, image, gpus, model, max_price, max_meter),
        **attached_of(mount, reservation),
        "kind": kind,
        "share_ppm": ppm_of(share),
        "project_id": project,
        "end_user_ref": end_user,
        "work": work,
        "parent_job_id": parent,
        "references": [_reference(one) for one in reference or []],
        "plan": _plan(chunks, members, tasks_per_member, schedule, run_seconds),
    }
    told = remote.ask(lambda c: c.submit_job(body, idempotency_key=remote.key))
    names = ("job_id", "kind", "state", "workload_sha256", "submitted_at")
    shown: dict[str, Any] = dict(told)
    remote.tell(told, facts({name: shown[name] for name in names}))


def _plan(
    chunks: int | None,
    members: str | None,
    tasks_per_member: int | None,
    schedule: str | None,
    run_seconds: int | None,
) -> JobPlanForm | None:
    plan: JobPlanForm = {}
    if chunks is not None:
        plan["chunks"] = chunks
    if members is not None:
        least, _, most = members.partition("-")
        if not (least.isascii() and least.isdecimal() and (most or least).isdecimal()):
            raise InputUnusable(f"members are MIN-MAX, like 1-4, not {members!r}")
        plan["min_members"], plan["max_members"] = int(least), int(most or least)
    if tasks_per_member is not None:
        plan["tasks_per_member"] = tasks_per_member
    if schedule is not None:
        plan["schedule"] = schedule
    if run_seconds is not None:
        plan["run_seconds"] = run_seconds
    return plan or None


def _reference(text: str) -> Any:
    kind, _, name = text.partition("=")
    if kind not in _REFERENCES or not name:
        raise InputUnusable(f"a reference is KIND=NAME, with one of {', '.join(_REFERENCES)}")
    return {"kind": kind, "name": name}


@job.command("list", epilog="Example: tallystick job list --state open")
@lists(IN_ORDER)
def list_jobs(
    remote: Remote,
    state: Annotated[
        Literal["open", "cancelled", "completed", "failed"] | None,
        typer.Option(help="Only jobs in this state."),
    ] = None,
) -> None:
    """List your jobs; all of them for operators and auditors."""
    found = remote.list(lambda c, page: c.list_jobs(state=state, **page))
    names = ("job_id", "kind", "work", "state", "project_id", "submitted_at")
    remote.tell(found, columns(found["data"], names))


@job.command("show", epilog="Example: tallystick job show job_1f0c... --json")
@reads
def show_job(remote: Remote, job_id: JobId) -> None:
    """Show a job as it was submitted, and whether it is open."""
    told = remote.ask(lambda c: c.read_job(job_id))
    shown = {name: value for name, value in told.items() if isinstance(value, str | int)}
    remote.tell(told, facts(shown))


@job.command("parts", epilog="Example: tallystick job parts job_1f0c...")
@lists(BY_NUMBER)
def list_parts(remote: Remote, job_id: JobId) -> None:
    """List the chunks or members of a job, each with its latest lease."""
    found = remote.list(lambda c, page: c.list_job_parts(job_id, **page))
    rows = [{**row, "charge": amount(row["charge"])} for row in found["data"]]
    names = ("part", "attempt", "lease_id", "state", "close_code", "charge")
    remote.tell(found, columns(rows, names))


@job.command("cost", epilog="Example: tallystick job cost job_1f0c... --json")
@reads
def show_cost(remote: Remote, job_id: JobId) -> None:
    """Show the cost of a job and of all its parts so far."""
    told = remote.ask(lambda c: c.read_job_cost(job_id))
    rows = [{**row, "charge": amount(row["charge"])} for row in told["jobs"]]
    rows.append(
        {
            "job_id": "together",
            "leases": told["leases"],
            "gpu_us": told["gpu_us"],
            "charge": amount(told["charge"]),
        }
    )
    names = ("job_id", "kind", "state", "leases", "gpu_us", "charge")
    remote.tell(told, columns(rows, names))


@job.command("scale", epilog="Example: tallystick job scale job_1f0c... 3")
@records
def scale_job(
    remote: Remote,
    job_id: JobId,
    members: Annotated[int, typer.Argument(min=0, help="So many, within the plan.")],
) -> None:
    """Change how many members an elastic job has."""
    told = remote.ask(
        lambda c: c.scale_job(job_id, {"members": members}, idempotency_key=remote.key)
    )
    remote.tell(told, facts({**told, "closing": ",".join(told["closing"])}))


@job.command("escrow", epilog="Example: tallystick job escrow job_1f0c... --add 25")
@records
def use_escrow(
    remote: Remote,
    job_id: JobId,
    add: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="Credits to add, like 25.00.")
    ] = None,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Withdraw the rest, when no lease draws on it.")
    ] = False,
) -> None:
    """Show the escrow that the leases of a job share; add credits to it, or withdraw them."""
    key = remote.key
    if add is not None:
        body: EscrowFundingRequest = {"amount": credits_of(add)}
        told = remote.ask(lambda c: c.fund_escrow(job_id, body, idempotency_key=key))
    elif withdraw:
        told = remote.ask(lambda c: c.withdraw_escrow(job_id, {}, idempotency_key=key))
    else:
        told = remote.ask(lambda c: c.read_escrow(job_id))
    of_all = f" of {amount(told['put_in'])}" if "put_in" in told else ""
    ends = local_time(told.get("funds_end_at", "a lease runs"))
    note(f"held {amount(told['held'])}{of_all}, until {ends}")
    rows = [{**row, "charged": amount(row["charged"])} for row in told["leases"]]
    remote.tell(told, columns(rows, ("lease_id", "phase", "gpu_ppm", "charged")))


@job.command("push", epilog="Example: tallystick job push job_1f0c... shard-1=s3://in/1 shard-2")
@records
def push_tasks(
    remote: Remote,
    job_id: JobId,
    tasks: Annotated[list[str], typer.Argument(metavar="ID[=PAYLOAD]...", help="At most 100.")],
) -> None:
    """Add tasks to the queue of a job. Known ids are not added again."""
    split = [task.partition("=") for task in tasks]
    told = remote.ask(
        lambda c: c.push_tasks(
            job_id,
            {"tasks": [{"task_id": one, "payload": what} for one, _, what in split]},
            idempotency_key=remote.key,
        )
    )
    remote.tell(told, facts(told))


@job.command("restart", epilog="Example: tallystick job restart job_1f0c...")
@records
def restart_job(remote: Remote, job_id: JobId) -> None:
    """Lease again for a job that ended because its credits did."""
    told = remote.ask(lambda c: c.restart_job(job_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@job.command("cancel", epilog="Example: tallystick job cancel job_1f0c...")
@records
def cancel_job(remote: Remote, job_id: JobId) -> None:
    """Cancel a job: no new leases, and the leases of its plan are closed."""
    told = remote.ask(lambda c: c.cancel_job(job_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@job.command("usage", epilog="Example: tallystick job usage --by kind,node_id --as-provider")
@lists(AS_IT_IS)
def show_usage(
    remote: Remote,
    by: Annotated[str, typer.Option(help="Like day,kind: see the reference.")] = "kind",
    as_provider: Annotated[
        bool, typer.Option("--as-provider", help="Usage on your nodes, as their provider.")
    ] = False,
) -> None:
    """Show usage of the last 31 days by kind of job, node, pool, client, project, end user or
    group.
    """
    found = remote.list(
        lambda c, page: c.list_usage_breakdown(by=by, as_provider=as_provider, **page)
    )
    rows = [{**row, "charge": amount(row["charge"])} for row in found["data"]]
    remote.tell(found, columns(rows, (*by.split(","), "accruals", "gpu_us", "charge")))
