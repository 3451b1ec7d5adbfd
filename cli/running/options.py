"""The options of `tallystick run`, and what those of one kind come to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.running.folder import MIB, Scanned, scan
from cli.running.parcels import Parcel
from cli.terminal import InputUnusable, progress
from domain.jobs.workspace import RESULTS_MAX, path_rule, value_rule, variable_rule

if TYPE_CHECKING:
    from tallystick_client.forms import VolumeMountForm

FILE_BYTES_MAX = 262_144

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- COMMAND", help="The program to run, with its arguments."),
]
Gpus = Annotated[int, typer.Option("--gpus", "-n", min=1, max=64, help="GPUs, all of one node.")]
Part = Annotated[
    str | None, typer.Option("-p", metavar="FRACTION", help="Part of each GPU, like 0.37.")
]
Memory = Annotated[
    int | None,
    typer.Option(
        "--mem", min=1, metavar="MB", help="Memory of each GPU, in MiB, where it costs least."
    ),
]
Model = Annotated[
    list[str] | None,
    typer.Option("--model", "--gpu", help="Allowed model of GPU; may be repeated. Default: any."),
]
MaxPrice = Annotated[
    str | None,
    typer.Option(
        metavar="CREDITS",
        help="Highest price per GPU-hour; default: that of the cheapest offer that fits, has room"
        " and can be paid for with what you have.",
    ),
]
Funds = Annotated[
    str | None,
    typer.Option(metavar="CREDITS", help="Highest total cost; default: the price of one hour."),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="Environment variable of the program. Without a value: one that the node's owner"
        " grants.",
    ),
]
EnvFile = Annotated[
    list[Path] | None,
    typer.Option("--env-file", metavar="FILE", help="File of lines NAME=VALUE; # is a comment."),
]
Secret = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME[=VALUE]",
        help="Variable sealed for the node's executor, never in a log or a list. Without a value:"
        " the one of this shell, which the list of this machine's processes does not show.",
    ),
]
Image = Annotated[
    str | None, typer.Option(help="Container image; the command runs in it. Default: none.")
]
Volume = Annotated[
    list[str] | None,
    typer.Option(
        "--volume", metavar="VOLUME:PATH[:ro]", help="Volume of yours to mount; may be repeated."
    ),
]
Get = Annotated[
    list[str] | None,
    typer.Option(
        "--get",
        metavar="PATH",
        help="File or folder of the program's folder that comes back; may be repeated.",
    ),
]
NoFiles = Annotated[
    bool, typer.Option("--no-files", help="Send nothing of this folder to the node.")
]
SizeMax = Annotated[
    int, typer.Option("--size-max", min=1, metavar="MIB", help="Most that travels, in MiB.")
]
WaitForGpu = Annotated[
    bool,
    typer.Option(
        "--wait-for-gpu",
        help="Wait while all matching GPUs are busy; without --max-price for the cheapest.",
    ),
]
KeyFile = Annotated[
    Path | None, typer.Option(help="File of the key that signs for the usage; created if missing.")
]
NoSign = Annotated[bool, typer.Option("--no-sign", help="Leave the usage unsigned.")]
Wait = Annotated[
    int, typer.Option(min=0, max=3_600, metavar="SECONDS", help="Seconds to wait for the bill.")
]


def parcel_of(
    env: list[str] | None,
    env_file: list[Path] | None,
    secret: list[str] | None,
    get: list[str] | None,
    *,
    no_files: bool,
    size_max: int,
) -> Parcel:
    """What goes with the command, this folder read. Raises InputUnusable."""
    variables: dict[str, str] = {}
    for path in env_file or []:
        variables |= _from_file(path)
    variables |= dict(_pair(one, "--env") for one in env or [] if "=" in one)
    secrets = dict(_secret(one) for one in secret or [])
    twice = sorted(set(variables) & set(secrets))
    if twice:
        raise InputUnusable(f"{twice[0]} is a variable and a secret: give it once")
    return Parcel(variables, secrets, _results(get), None if no_files else _folder(size_max))


def _folder(size_max: int) -> Scanned:
    with progress() as step:
        return scan(Path.cwd(), size_max * MIB, lambda done, of: step("reading files", done, of))


def granted(env: list[str] | None) -> list[str]:
    """The variables that the node's owner grants: named without a value."""
    return [one for one in env or [] if "=" not in one]


def mounts(volumes: list[str] | None) -> list[VolumeMountForm]:
    """Raises InputUnusable."""
    found: list[Any] = []
    for text in volumes or []:
        volume_id, _, rest = text.partition(":")
        path, _, mode = rest.partition(":")
        if not path.startswith("/") or mode not in ("", "ro", "rw"):
            raise InputUnusable(f"--volume {text!r}: VOLUME:PATH[:ro], like volume_1f:/vol/data:ro")
        found.append({"volume_id": volume_id, "path": path, "read_only": mode == "ro"})
    return found


def _results(get: list[str] | None) -> tuple[str, ...]:
    paths = tuple(dict.fromkeys(one.removeprefix("./").rstrip("/") for one in get or []))
    for path in paths:
        broken = path_rule(path)
        if broken is not None or ".git" in path.casefold().split("/"):
            rule = broken or "a path outside of .git"
            raise InputUnusable(f"--get {path!r}: {rule}, like out or out/model.bin")
    if len(paths) > RESULTS_MAX:
        raise InputUnusable(f"--get: at most {RESULTS_MAX} paths")
    return paths


def _secret(text: str) -> tuple[str, str]:
    if "=" in text:
        return _pair(text, "--secret")
    if text not in os.environ:
        raise InputUnusable(f"--secret {text}: there is no such variable here: give NAME=VALUE")
    return _pair(f"{text}={os.environ[text]}", "--secret")


def _pair(text: str, where: str) -> tuple[str, str]:
    """The value is never shown: it may be a secret."""
    name, _, value = text.partition("=")
    broken = variable_rule(name) or value_rule(value)
    if broken is not None:
        raise InputUnusable(f"{where} {name!r}: {broken}")
    return name, value


def _from_file(path: Path) -> dict[str, str]:
    try:
        text = path.read_bytes()[:FILE_BYTES_MAX].decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputUnusable(f"--env-file {path}: {error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if "=" not in line:
            raise InputUnusable(f"--env-file {path}, line {number}: NAME=VALUE")
        name, value = _pair(line.lstrip().removeprefix("export "), f"--env-file {path}:")
        found[name] = value
    return found
