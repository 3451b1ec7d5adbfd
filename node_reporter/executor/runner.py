"""The seam between the executor and what runs a job: a confined process, Docker, something else.

A runner says whether it can be used here and which work it takes, and starts it. What a job gets is
in its `Grant` and nowhere else: whatever is not granted there must not be reachable for it. A
cluster client or a remoting layer plugs in here: implement `Runner` and hand it to `Executor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class RunnerUnusable(Exception):
    """This machine offers no way to run work as the owner wants it run."""


class NotStarted(Exception):
    """The work could not be started; nothing of it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one job may use. Memory and processes are those of its whole tree."""

    memory_bytes: int = 8 * 1024**3
    processes: int = 512
    open_files: int = 4_096
    folder_bytes: int = 10 * 1024**3
    folder_entries: int = 100_000
    image_bytes: int = 64 * 1024**3  # of an image that is pulled for it
    cpu_seconds: int | None = None
    grace_s: int = 10  # between asking it to stop and ending it


@dataclass(frozen=True, slots=True)
class Bound:
    """A volume: a folder of this machine, and the path at which the job finds it."""

    folder: Path
    path: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Everything a job may see and use."""

    lease_id: str
    command: tuple[str, ...]
    image: str | None
    environment: Mapping[str, str]
    folder: Path  # its own; it finds its `work` as /work
    device_ids: tuple[str, ...]
    device_files: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()  # more of the machine that the owner lets jobs read
    volumes: tuple[Bound, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """The renter's own: they are set inside the walls, and no program of ours runs with them."""
    network: bool = False
    port: int | None = None  # of this machine, where its endpoint is reached
    limits: Limits = field(default_factory=Limits)
    groups: tuple[str, ...] = ()  # of the kernel, which it joins before it begins: their files


@dataclass(frozen=True, slots=True)
class Using:
    """What a job uses now; None: not known here."""

    memory_bytes: int | None = None
    processes: int | None = None
    deleted_bytes: int = 0  # of files on the disk that have no name any more
    image_bytes: int = 0  # of an image that was pulled for it
    unseen: frozenset[int] = frozenset()  # processes that hide which files they hold


class Run(Protocol):
    """One job that was started."""

    @property
    def outputs(self) -> tuple[int, int]:
        """File descriptors of what it prints: standard output, standard error."""
        ...

    @property
    def pid(self) -> int | None:
        """The process that all of its others are below; None: not known yet, or not here."""
        ...

    @property
    def container(self) -> str | None:
        """The id of the container that these processes are in; None: they are in none."""
        ...

    def poll(self) -> int | None:
        """Its exit code (128 + number, when a signal ended it); None while anything of it runs."""
        ...

    def ask_to_stop(self) -> None:
        """SIGTERM, or what comes nearest."""
        ...

    def end(self) -> None:
        """End every process of it, at once; nothing of it runs when `poll` answers."""
        ...

    def using(self) -> Using: ...

    def close(self) -> None:
        """Let go of its outputs, once it is over and they were read."""
        ...


class Runner(Protocol):
    """A way to run work."""

    @property
    def name(self) -> str:
        """As the server knows it: process, trusted, docker or other."""
        ...

    def takes(self, image: str | None) -> bool:
        """Whether work with this image, or without one, is for it."""
        ...

    def check(self) -> None:
        """Raises RunnerUnusable."""
        ...

    def start(self, grant: Grant) -> Run:
        """Raises NotStarted."""
        ...

    def forget(self, lease_id: str) -> None:
        """End what runs of a lease whose executor was killed; nothing to end is well too. Raises
        NotStarted, where it could not be ended.
        """
        ...
