"""What a lease is wanted for: the options that say it, and the part of a request they become."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from cli.remote import credits_of
from cli.terminal import InputUnusable

if TYPE_CHECKING:
    from tallystick_client.forms import JobRequest

MaxPrice = Annotated[str, typer.Option(metavar="CREDITS", help="Highest price per GPU-hour.")]
Command = Annotated[str | None, typer.Option(help="What to run, as in a shell.")]
Image = Annotated[str | None, typer.Option(help="Container image to run.")]
Gpus = Annotated[int, typer.Option(min=1, max=64, help="GPUs, all of one node.")]
Share = Annotated[str, typer.Option(metavar="PART", help="Part of each GPU, like 0.37.")]
Models = Annotated[list[str] | None, typer.Option(help="Allowed model; may be repeated.")]
Project = Annotated[str, typer.Option(help="Your own label on the bill.")]


def work_of(
    command: str | None, image: str | None, gpus: int, models: list[str] | None, max_price: str
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
    }


def words_of(command: str | None) -> list[str]:
    """A command as a shell splits it. Raises InputUnusable: a quote that is not closed."""
    try:
        return [] if command is None else shlex.split(command)
    except ValueError as error:
        raise InputUnusable(f"--command {command!r}: {error}") from error
