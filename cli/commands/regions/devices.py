"""`tallystick device`: edge devices, what they run, and what they cost. Thin clients of the API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import RegionId
from cli.remote import AS_IT_IS, BY_NUMBER, IN_ORDER, Remote, lists, reads, records
from cli.terminal import InputUnusable, amount, columns, facts, group
from cli.work_options import words_of

if TYPE_CHECKING:
    from tallystick_client.forms import DeviceConfigRequest, DeviceWorkRequest

device = group("device", "Edge devices, which pay by the month.", "tallystick device list")

DeviceId = Annotated[str, typer.Argument(metavar="DEVICE", help="edge_...")]
ConfigName = Annotated[
    str, typer.Argument(metavar="CONFIG", help="Name of a configuration, unique in the region.")
]
Boot = Annotated[
    str | None,
    typer.Option("--boot", metavar="ID", help="Of the device's boot; else this machine's."),
]
Model = Literal[
    "jetson-agx-xavier", "jetson-xavier-nx", "jetson-agx-orin", "jetson-orin-nx", "jetson-orin-nano"
]


@device.command(
    "add",
    epilog="Example: tallystick device add region_1f0c... jetson-orin-nano --name gate-1 "
    "--minion minion-4f21",
)
@records
def add_device(
    remote: Remote,
    region_id: RegionId,
    model: Annotated[Model, typer.Argument(help="Model of the device.")],
    name: Annotated[str, typer.Option(help="Unique in the region, like gate-1.")],
    minion: Annotated[str, typer.Option(metavar="MINION", help="The id that the device shows.")],
) -> None:
    """Add an edge device. Each add is a new device, charged from today on."""
    told = remote.ask(
        lambda c: c.add_edge_device(
            {"region_id": region_id, "name": name, "minion_id": minion, "model": model},
            idempotency_key=remote.key,
        )
    )
    remote.tell(told, facts(told))


@device.command("report", epilog="Example: tallystick device report edge_1f0c...")
@records
def report_device(remote: Remote, device_id: DeviceId) -> None:
    """Report that an edge device runs: it is active. The device runs this itself."""
    told = remote.ask(lambda c: c.report_edge_device(device_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@device.command("remove", epilog="Example: tallystick device remove edge_1f0c...")
@records
def remove_device(remote: Remote, device_id: DeviceId) -> None:
    """Remove an edge device. Today is still charged."""
    told = remote.ask(lambda c: c.remove_edge_device(device_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@device.command("list", epilog="Example: tallystick device list --json")
@lists(IN_ORDER)
def list_devices(remote: Remote) -> None:
    """List edge devices, removed ones too."""
    found = remote.list(lambda c, page: c.list_edge_devices(**page))
    names = ["device_id", "name", "model", "region_id", "state", "config", "revision", "inference"]
    names += ["inference_at", "first_day", "last_day"]
    remote.tell(found, columns(found["data"], names))


@device.command("fees", epilog="Example: tallystick device fees")
@lists(AS_IT_IS)
def list_fees(remote: Remote) -> None:
    """List what edge devices cost, day by day."""
    found = remote.list(lambda c, page: c.list_device_fees(**page))
    names = ("day", "devices", "fee_per_month", "charge", "owed")
    money = ("fee_per_month", "charge", "owed")
    rows = [{**row, **{name: amount(row[name]) for name in money}} for row in found["data"]]
    remote.tell(found, columns(rows, names))


@device.command(
    "configure",
    epilog="Example: tallystick device configure region_1f0c... counter --image counter:1 "
    "--model models/counter --command 'python run.py'",
)
@records
def configure_devices(
    remote: Remote,
    region_id: RegionId,
    config: ConfigName,
    image: Annotated[str, typer.Option(help="Container image to run.")],
    model: Annotated[str, typer.Option(metavar="ADDRESS", help="Where the model's code is kept.")],
    command: Annotated[str, typer.Option(help="Start command, as in a shell.")],
    revision: Annotated[int, typer.Option(min=1, help="One more than the last one's.")] = 1,
    checkpoint: Annotated[
        list[str] | None, typer.Option(metavar="ADDRESS", help="Of a checkpoint; may be repeated.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option("--datastore", metavar="DATASTORE[:PATH]", help="Folder for the command."),
    ] = None,
    env_file: Annotated[
        Path | None, typer.Option(help="Lines of NAME=VALUE; values enter no log.")
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Name of a key in a secret store of yours; may be repeated."
        ),
    ] = None,
) -> None:
    """Set a revision of a device configuration; devices get it with `device deploy`."""
    work: DeviceWorkRequest = {
        "image": image,
        "model": model,
        "command": words_of(command),
        "checkpoints": checkpoint or [],
        "environment": [] if env_file is None else _variables(env_file),
        "keys": secret or [],
    }
    if store is not None:
        name, _, path = store.partition(":")
        work["datastore"] = {"datastore_id": name, "path": path or "/"}
    body: DeviceConfigRequest = {"name": config, "revision": revision, "work": work}
    told = remote.ask(lambda c: c.set_device_config(region_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@device.command("configs", epilog="Example: tallystick device configs --region region_1f0c...")
@lists(IN_ORDER)
def list_configs(
    remote: Remote,
    region: Annotated[
        str | None, typer.Option("--region", metavar="REGION", help="Only of this region.")
    ] = None,
) -> None:
    """List your device configurations, each with its last revision."""
    found = remote.list(lambda c, page: c.list_device_configs(region_id=region, **page))
    remote.tell(found, columns(found["data"], ("name", "revision", "region_id", "set_at")))


@device.command("revisions", epilog="Example: tallystick device revisions region_1f0c... counter")
@lists(BY_NUMBER)
def list_revisions(remote: Remote, region_id: RegionId, config: ConfigName) -> None:
    """List the revisions of a device configuration, from the first on."""
    found = remote.list(lambda c, page: c.list_device_config_revisions(region_id, config, **page))
    shown = [{**one, **one["work"]} for one in found["data"]]
    remote.tell(found, columns(shown, ("revision", "image", "model", "command", "set_at")))


@device.command("deploy", epilog="Example: tallystick device deploy edge_1f0c... counter")
@records
def deploy_config(remote: Remote, device_id: DeviceId, config: ConfigName) -> None:
    """Deploy the last revision of a configuration to a device, in the place of what it runs."""
    told = remote.ask(
        lambda c: c.deploy_device_config(device_id, {"config": config}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@device.command("work", epilog="Example: tallystick device work edge_1f0c... --json")
@reads
def read_work(remote: Remote, device_id: DeviceId, boot: Boot = None) -> None:
    """Show what a device runs in this boot. The device runs this itself.

    It shows the values of the environment, and the login of a datastore.
    """
    asked = _boot_id(boot)
    told = remote.ask(lambda c: c.read_device_work(device_id, boot_id=asked))
    shown: dict[str, Any] = dict(told)
    run = shown.pop("run", None)
    remote.tell(told, [*facts(shown), *(facts(run) if run else ["nothing to run in this boot"])])


@device.command(
    "inference", epilog="Example: tallystick device inference edge_1f0c... 1 exited --exit-code 3"
)
@records
def report_inference(
    remote: Remote,
    device_id: DeviceId,
    deployment: Annotated[int, typer.Argument(min=1, help="As `device work` told it.")],
    status: Annotated[Literal["running", "exited"], typer.Argument(help="How it goes.")],
    exit_code: Annotated[
        int | None, typer.Option(min=0, max=255, help="Of a command that exited.")
    ] = None,
    boot: Boot = None,
) -> None:
    """Report how a device's inference goes. The device runs this itself."""
    asked = _boot_id(boot)
    told = remote.ask(
        lambda c: c.report_inference(
            device_id,
            {"deployment": deployment, "boot_id": asked, "status": status, "exit_code": exit_code},
            idempotency_key=remote.key,
        )
    )
    remote.tell(told, facts(told))


_BOOT_FILE = Path("/proc/sys/kernel/random/boot_id")


def _boot_id(told: str | None) -> str:
    """The boot of this machine, unless it is told. Raises InputUnusable: it has no such file."""
    if told is not None:
        return told
    try:
        return _BOOT_FILE.read_text(encoding="ascii").strip()
    except OSError as error:
        raise InputUnusable(f"this machine names no boot ({error}): give --boot") from error


def _variables(file: Path) -> Any:
    """`NAME=VALUE`, one a line; empty lines and comments are skipped. A line that is wrong is not
    repeated: it may hold a secret. Raises InputUnusable.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputUnusable(f"{file} cannot be read as text: {error}") from error
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise InputUnusable(f"{file}, line {number}: write NAME=VALUE")
        found.append({"name": name, "value": value})
    return found
