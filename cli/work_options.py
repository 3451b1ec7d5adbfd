"""What a lease is wanted for: the options that say it, and the part of a request they become."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.remote import credits_of
from cli.terminal import InputUnusable

if TYPE_CHECKING:
    from tallystick_client.forms import JobRequest, LeaseRequest

ANY_PRICE = "1000000"
"""The highest price that an offer may have."""
MaxPrice = Annotated[str, typer.Option(metavar="CREDITS", help="Highest price per GPU-hour.")]
Command = Annotated[str | None, typer.Option(help="What to run, as in a shell.")]
Image = Annotated[str | None, typer.Option(help="Container image to run.")]
Gpus = Annotated[int, typer.Option(min=1, max=64, help="GPUs, all of one node.")]
Share = Annotated[str, typer.Option(metavar="PART", help="Part of each GPU, like 0.37.")]
Models = Annotated[list[str] | None, typer.Option(help="Allowed model; may be repeated.")]
MaxMeters = Annotated[
    list[str] | None,
    typer.Option(
        "--max-meter",
        metavar="NAME=CREDITS",
        help="The most for cpu, memory, storage or network; may be repeated. Default: nothing.",
    ),
]
Mounts = Annotated[
    list[str] | None,
    typer.Option(
        "--mount",
        metavar="DATASTORE:PATH:USE",
        help="Folder of a datastore, for input, output or scratch; may be repeated.",
    ),
]
ReservationOption = Annotated[
    str | None,
    typer.Option("--reservation", metavar="RESERVATION", help="Host name and port to keep."),
]
RemotingSession = Annotated[
    str | None,
    typer.Option(
        "--session", metavar="NAME", help="Session of the layer that forwards calls to the GPUs."
    ),
]
Split = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="The part of the program that is forwarded to the GPUs."),
]
Route = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Network route across clusters that the traffic takes."),
]
Project = Annotated[str, typer.Option(help="Your own label on the bill.")]


def work_of(
    command: str | None,
    image: str | None,
    gpus: int,
    models: list[str] | None,
    max_price: str,
    max_meters: list[str] | None = None,
) -> JobRequest:
    """The work, of which it is said at least what runs. Raises InputUnusable."""
    if command is None and image is None:
        raise InputUnusable("what is to run? give --command or --image")
    return {
        "image": image,
        "command": words_of(command),
        "gpu_count": gpus,
        "models": models or [],
        "max_price_per_gpu_hour": credits_of(max_price),
        "meter_maxima": [_meter_max(one) for one in max_meters or []],
    }


def remoted(session: str | None, split: str | None, route: str | None) -> LeaseRequest:
    """What a request says of the session that it is used through and of its part (row V-13), and of
    its network route (row J-10).
    """
    named = {"remoting_session_id": session, "split_label": split, "route_id": route}
    told: Any = {name: word for name, word in named.items() if word is not None}
    request: LeaseRequest = told
    return request


def _meter_max(text: str) -> Any:
    """`network=0.5` as the most that a resource costs. Raises InputUnusable."""
    meter, equals, most = text.partition("=")
    if not equals:
        raise InputUnusable(f"--max-meter {text!r}: a name and credits, like network=0.5")
    return {"meter": meter, "amount": credits_of(most)}


def words_of(command: str | None) -> list[str]:
    """A command as a shell splits it. Raises InputUnusable: a quote that is not closed."""
    try:
        return [] if command is None else shlex.split(command)
    except ValueError as error:
        raise InputUnusable(f"--command {command!r}: {error}") from error


def attached_of(mounts: list[str] | None, reservation: str | None) -> Any:
    """What a job is attached to, as a part of the request. Raises InputUnusable."""
    if not mounts and reservation is None:
        return {}
    attached: Any = {"mounts": [_mount(one) for one in mounts or []]}
    if reservation is not None:
        attached["reservation_id"] = reservation
    return {"attached": attached}


def _mount(text: str) -> dict[str, str]:
    parts = text.split(":")
    if len(parts) != 3:
        raise InputUnusable(f"--mount {text!r}: DATASTORE:PATH:USE, like datastore_1f:/in:input")
    return dict(zip(("datastore_id", "path", "use"), parts, strict=True))
