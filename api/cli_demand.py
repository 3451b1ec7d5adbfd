"""`tallystick job | client | group | project | counterparty`: demand, and its limits."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url, credits_of, ppm_of
from api.cli_terminal import AsJson, InputUnusable, amount, columns, facts, group, note, tell

if TYPE_CHECKING:
    from api.client import NewClient, NewClientQuota, NewGroup, NewJob, PlanAsked

job = group("Jobs: work, and the leases its plan opens.", "tallystick job list")
client = group("Compute clients and their instances.", "tallystick client show ACCOUNT")
groups = group("Groups that share a quota of GPUs.", "tallystick group list")
project = group("Projects: what to do when a quota is full.", "tallystick project list ACCOUNT")
counterparty = group("With whom an account deals.", "tallystick counterparty list ACCOUNT")

JobId = Annotated[str, typer.Argument(metavar="JOB", help="job_...")]
ClientId = Annotated[str, typer.Argument(metavar="CLIENT", help="acct_... of the client.")]
GroupId = Annotated[str, typer.Argument(metavar="GROUP", help="group_...")]
AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
Kind = Literal["batch", "notebook", "endpoint", "scheduled", "queue", "interactive"]
Work = Literal["training", "inference"]
MemberKind = Literal["project", "member", "account"]
Gpus = Annotated[
    str | None, typer.Option(metavar="GPUS", help="At once, like 16 or 0.5; else no limit.")
]
GPU_PPM = 1_000_000
_REFERENCES = ("third_party_key", "checkpoint", "dataset")


# --- jobs --------------------------------------------------------------------------------------


@job.command(
    "submit",
    epilog='Example: tallystick job submit --command "python train.py" --max-price 3 --chunks 8',
)
def submit_job(
    max_price: Annotated[str, typer.Option(metavar="CREDITS", help="At most, per GPU-hour.")],
    command: Annotated[str | None, typer.Option(help="What to run, as in a shell.")] = None,
    image: Annotated[str | None, typer.Option(help="Container image to run.")] = None,
    kind: Annotated[Kind, typer.Option(help="What sort of job.")] = "batch",
    work: Annotated[Work | None, typer.Option(help="What it does.")] = None,
    gpus: Annotated[int, typer.Option(min=1, max=64, help="GPUs of each lease.")] = 1,
    share: Annotated[str, typer.Option(metavar="PART", help="Of each GPU, like 0.37.")] = "1",
    model: Annotated[list[str] | None, typer.Option(help="Allowed model; may be repeated.")] = None,
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
    project: Annotated[str, typer.Option(help="Your own mark on the bill.")] = "",
    end_user: Annotated[str, typer.Option(help="Who it is for, in your own words.")] = "",
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Submit a job; with a plan, the server opens and replaces its leases."""
    if command is None and image is None:
        raise InputUnusable("what is to run? give --command or --image")
    body: NewJob = {
        "kind": kind, "image": image, "command": [] if command is None else shlex.split(command),
        "gpu_count": gpus, "share_ppm": ppm_of(share), "models": model or [],
        "max_price_per_gpu_hour": credits_of(max_price), "project_id": project,
        "end_user_ref": end_user, "work": work, "parent_job_id": parent,
        "references": [_reference(one) for one in reference or []],
        "plan": _plan(chunks, members, tasks_per_member, schedule, run_seconds),
    }  # fmt: skip
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.submit_job(body, idempotency_key=remote.key))
    names = ("job_id", "kind", "state", "workload_sha256", "submitted_at")
    shown: dict[str, Any] = dict(told)
    tell(told, facts({name: shown[name] for name in names}), as_json=as_json)


def _plan(
    chunks: int | None,
    members: str | None,
    tasks_per_member: int | None,
    schedule: str | None,
    run_seconds: int | None,
) -> PlanAsked | None:
    plan: PlanAsked = {}
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
def list_jobs(
    state: Annotated[
        Literal["open", "cancelled", "completed", "failed"] | None, typer.Option(help="Only those.")
    ] = None,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Your jobs; all of them for operators and auditors."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_jobs(state=state, limit=size, cursor=cursor), limit
    )
    names = ("job_id", "kind", "work", "state", "project_id", "submitted_at")
    tell(found, columns(found["data"], names), as_json=as_json)


@job.command("show", epilog="Example: tallystick job show job_1f0c... --json")
def show_job(
    job_id: JobId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """A job as it was submitted, and whether it is open."""
    told = Remote(url, api_key).ask(lambda c: c.read_job(job_id))
    shown = {name: value for name, value in told.items() if isinstance(value, str | int)}
    tell(told, facts(shown), as_json=as_json)


@job.command("parts", epilog="Example: tallystick job parts job_1f0c...")
def list_parts(
    job_id: JobId, limit: Limit = 50, url: Url = None, api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """The chunks or members of a job, each with its latest lease."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_job_parts(job_id, limit=size, cursor=cursor), limit
    )
    rows = [{**row, "charge": amount(row["charge"])} for row in found["data"]]
    names = ("part", "attempt", "lease_id", "state", "close_code", "charge")
    tell(found, columns(rows, names), as_json=as_json)


@job.command("cost", epilog="Example: tallystick job cost job_1f0c... --json")
def show_cost(
    job_id: JobId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """What a job and all that is part of it came to so far."""
    told = Remote(url, api_key).ask(lambda c: c.read_job_cost(job_id))
    rows = [{**row, "charge": amount(row["charge"])} for row in told["jobs"]]
    rows.append({"job_id": "together", "leases": told["leases"], "gpu_us": told["gpu_us"],
                 "charge": amount(told["charge"])})  # fmt: skip
    names = ("job_id", "kind", "state", "leases", "gpu_us", "charge")
    tell(told, columns(rows, names), as_json=as_json)


@job.command("scale", epilog="Example: tallystick job scale job_1f0c... 3")
def scale_job(
    job_id: JobId,
    members: Annotated[int, typer.Argument(min=0, help="So many, within the plan.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Change how many members an elastic job has."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.scale_job(job_id, {"members": members}, idempotency_key=remote.key)
    )
    tell(told, facts({**told, "closing": ",".join(told["closing"])}), as_json=as_json)


@job.command("push", epilog="Example: tallystick job push job_1f0c... shard-1=s3://in/1 shard-2")
def push_tasks(
    job_id: JobId,
    tasks: Annotated[list[str], typer.Argument(metavar="ID[=PAYLOAD]...", help="At most 100.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Add tasks to the queue of a job; ids that are known are not added again."""
    remote = Remote(url, api_key, key=idempotency_key)
    split = [task.partition("=") for task in tasks]
    told = remote.ask(
        lambda c: c.push_tasks(
            job_id, {"tasks": [{"task_id": one, "payload": what} for one, _, what in split]},
            idempotency_key=remote.key,
        )
    )  # fmt: skip
    tell(told, facts(told), as_json=as_json)


@job.command("cancel", epilog="Example: tallystick job cancel job_1f0c...")
def cancel_job(
    job_id: JobId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """No new leases for a job; those that its plan opened are closed."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.cancel_job(job_id, {}, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


@job.command("usage", epilog="Example: tallystick job usage --by kind,node_id --as-provider")
def show_usage(
    by: Annotated[str, typer.Option(help="Like day,kind: see the reference.")] = "kind",
    as_provider: Annotated[bool, typer.Option("--as-provider", help="On your nodes.")] = False,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Usage of the last 31 days by kind of job, node, pool, client, project, end user or group."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_usage_breakdown(
            by=by, as_provider=as_provider, limit=size, cursor=cursor
        ),
        limit,
    )
    rows = [{**row, "charge": amount(row["charge"])} for row in found["data"]]
    tell(found, columns(rows, (*by.split(","), "accruals", "gpu_us", "charge")), as_json=as_json)


# --- clients -----------------------------------------------------------------------------------


@client.command("register", epilog="Example: tallystick client register acct_1f0c...")
def register_client(
    client_id: ClientId,
    min_reputation_ppm: Annotated[int | None, typer.Option(min=0, max=1_000_000)] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Let an account of the kind client bring jobs (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewClient = {"client_id": client_id}
    if min_reputation_ppm is not None:
        body["min_reputation_ppm"] = min_reputation_ppm
    told = remote.ask(lambda c: c.register_client(body, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


@client.command("list", epilog="Example: tallystick client list --json")
def list_clients(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Compute clients: yourself, or all for operators and auditors."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_clients(limit=size, cursor=cursor), limit
    )
    names = ("client_id", "suspended", "min_reputation_ppm", "registered_at")
    tell(found, columns(found["data"], names), as_json=as_json)


@client.command("show", epilog="Example: tallystick client show acct_1f0c...")
def show_client(
    client_id: ClientId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """The keys of a client's instances."""
    told = Remote(url, api_key).ask(lambda c: c.read_client(client_id))
    names = ("instance_id", "key_id", "bound_at", "revoked_at")
    tell(told, columns(told.get("keys", []), names), as_json=as_json)


@client.command("key", epilog="Example: tallystick client key acct_1f0c... ci")
def add_key(
    client_id: ClientId,
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="A name of yours.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Issue a key for an instance of a client and print it, once."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.add_client_key(client_id, instance, {}, idempotency_key=remote.key)
    )
    tell(told, facts(told), as_json=as_json)
    note("The key is not kept anywhere: give it to the instance now.")


@client.command("revoke", epilog="Example: tallystick client revoke acct_1f0c... 1a2b3c4d")
def revoke_key(
    client_id: ClientId,
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Its 8 public characters.")],
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Take back the key of an instance at once."""
    told = Remote(url, api_key).ask(lambda c: c.revoke_client_key(client_id, key_id))
    tell(told, facts(told), as_json=as_json)


@client.command("suspend", epilog="Example: tallystick client suspend acct_1f0c...")
def suspend_client(
    client_id: ClientId,
    resume: Annotated[bool, typer.Option("--resume", help="Let it submit again.")] = False,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Nothing is submitted for a client until it is resumed (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: (c.resume_client if resume else c.suspend_client)(
            client_id, {}, idempotency_key=remote.key
        )
    )
    tell(told, facts(told), as_json=as_json)


@client.command("quota", epilog="Example: tallystick client quota acct_1f0c... --gpus 64")
def set_client_quota(
    client_id: ClientId,
    gpus: Gpus = None,
    pool: Annotated[str | None, typer.Option(help="In this pool, else everywhere.")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """How many GPUs a client holds at once (operator)."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewClientQuota = {"pool_id": pool, "gpu_ppm_max": _gpu_ppm(gpus)}
    told = remote.ask(lambda c: c.set_client_quota(client_id, body, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


# --- groups ------------------------------------------------------------------------------------


@groups.command("create", epilog="Example: tallystick group create --gpus 16")
def create_group(
    gpus: Gpus = None,
    parent: Annotated[str | None, typer.Option(help="The group it is part of.")] = None,
    pool: Annotated[
        str | None, typer.Option(help="A group of accounts in a pool of yours.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Make a group that shares a quota of GPUs."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: NewGroup = {"pool_id": pool, "parent_id": parent, "gpu_ppm_max": _gpu_ppm(gpus)}
    told = remote.ask(lambda c: c.create_group(body, idempotency_key=remote.key))
    tell(told, facts(told), as_json=as_json)


@groups.command("list", epilog="Example: tallystick group list --json")
def list_groups(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Your groups, with what they hold and may hold."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_groups(limit=size, cursor=cursor), limit
    )
    names = ("group_id", "parent_id", "pool_id", "used_ppm", "gpu_ppm_max", "created_at")
    tell(found, columns(found["data"], names), as_json=as_json)


@groups.command("show", epilog="Example: tallystick group show group_1f0c...")
def show_group(
    group_id: GroupId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Who is in a group."""
    told = Remote(url, api_key).ask(lambda c: c.read_group(group_id))
    tell(told, columns(told.get("members", []), ("kind", "target", "since")), as_json=as_json)


@groups.command("quota", epilog="Example: tallystick group quota group_1f0c... --gpus 8")
def set_quota(
    group_id: GroupId,
    gpus: Gpus = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Change how many GPUs a group holds at once; without --gpus there is no limit."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.set_group_quota(
            group_id, {"gpu_ppm_max": _gpu_ppm(gpus)}, idempotency_key=remote.key
        )
    )
    tell(told, facts(told), as_json=as_json)


@groups.command("add", epilog="Example: tallystick group add group_1f0c... project train-7b")
def add_member(
    group_id: GroupId,
    kind: Annotated[MemberKind, typer.Argument(help="What it is.")],
    target: Annotated[str, typer.Argument(help="Its name or id.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take it out again.")] = False,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """What it leases from now on counts in the group, or with --remove no more."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: (c.remove_group_member if remove else c.add_group_member)(
            group_id, {"kind": kind, "target": target}, idempotency_key=remote.key
        )
    )
    tell(told, facts(told), as_json=as_json)


def _gpu_ppm(gpus: str | None) -> int | None:
    """GPUs as people write them, in ppm. Raises InputUnusable."""
    if gpus is None:
        return None
    whole, _, part = gpus.partition(".")
    if not (whole + part).isascii() or not (whole + part).isdecimal() or len(part) > 6:
        raise InputUnusable(f"GPUs are a number like 16 or 0.5, not {gpus!r}")
    return int(whole or "0") * GPU_PPM + int(part.ljust(6, "0"))


# --- projects and counterparties ---------------------------------------------------------------


@project.command("overflow", epilog="Example: tallystick project overflow ACCOUNT train-7b rent")
def set_overflow(
    account_id: AccountId,
    project_id: Annotated[str, typer.Argument(metavar="PROJECT", help="A name of yours.")],
    overflow: Annotated[Literal["refuse", "rent"], typer.Argument(help="When a quota is full.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Own the base, rent the burst: what a project does when a quota is full."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.set_project_policy(
            account_id, {"project_id": project_id, "overflow": overflow},
            idempotency_key=remote.key,
        )
    )  # fmt: skip
    tell(told, facts(told), as_json=as_json)


@project.command("list", epilog="Example: tallystick project list acct_1f0c...")
def list_projects(
    account_id: AccountId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Projects that have a policy; all others are refused."""
    told = Remote(url, api_key).ask(lambda c: c.list_project_policies(account_id))
    tell(told, columns(told["data"], ("project_id", "overflow")), as_json=as_json)


@counterparty.command("set", epilog="Example: tallystick counterparty set ACCOUNT OTHER deny")
def set_counterparty(
    account_id: AccountId,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="acct_... of the other one.")],
    verdict: Annotated[Literal["allow", "deny", "none"], typer.Argument(help="none: off it.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Put an account on a list, or take it off."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.set_counterparty(
            account_id, {"counterparty_id": other, "verdict": verdict},
            idempotency_key=remote.key,
        )
    )  # fmt: skip
    tell(told, facts(told), as_json=as_json)


@counterparty.command("list", epilog="Example: tallystick counterparty list acct_1f0c...")
def list_counterparties(
    account_id: AccountId, limit: Limit = 50, url: Url = None, api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Whom an account allows and denies."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_counterparties(account_id, limit=size, cursor=cursor), limit
    )
    names = ("counterparty_id", "verdict", "since")
    tell(found, columns(found["data"], names), as_json=as_json)
