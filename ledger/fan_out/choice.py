"""Which executor a command was asked for: `serial`, `processes[:COUNT]` or `ray[:ADDRESS]`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ledger.fan_out.executor import Executor, Serial
from ledger.fan_out.processes import Processes, usable

if TYPE_CHECKING:
    from ledger.fan_out.ray_tasks import RayTasks

PROCESSES_MAX = 1_024


class ChoiceInvalid(ValueError):
    """Not the name of an executor, or of one that is not installed or cannot be reached."""


@contextmanager
def opened(choice: str) -> Generator[Executor, None, None]:
    """The executor of that name, for as long as the context lasts; `processes` alone are as many as
    there are processors that may be used, `ray` alone is a cluster of this machine.

    Raises ChoiceInvalid.
    """
    kind, colon, value = choice.partition(":")
    if choice == "serial":
        yield Serial()
    elif kind == "processes":
        count = _count(value) if colon else usable()
        if count == 1:
            yield Serial()
            return
        with Processes(count) as processes:
            yield processes
    elif kind == "ray" and (value or not colon):
        with _ray(value or None) as tasks:
            yield tasks
    else:
        raise ChoiceInvalid(f"{choice!r} is none of serial, processes[:COUNT], ray[:ADDRESS]")


def _count(value: str) -> int:
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= PROCESSES_MAX):
        raise ChoiceInvalid(f"processes:{value}: needed a count from 1 to {PROCESSES_MAX}")
    return int(value)


def _ray(address: str | None) -> RayTasks:
    try:
        from ledger.fan_out.ray_tasks import RayTasks

        return RayTasks(address)
    except ModuleNotFoundError as missing:
        raise ChoiceInvalid(f"ray is not installed: tallystick[ray] ({missing})") from missing
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"at {address}" if address else "of this machine"
        said = str(error).strip().split("\n", 1)[0]
        raise ChoiceInvalid(
            f"the Ray cluster {where} cannot be reached: {said};"
            " see that it runs and that RAY_AUTH_TOKEN_PATH names its token"
        ) from error
