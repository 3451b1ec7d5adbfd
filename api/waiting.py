"""Who is behind what: named here, because service, jobs, probes and problems all know it."""

from __future__ import annotations

from dataclasses import dataclass


class ProjectionBehind(Exception):
    """A view has not reached the position asked for in time. Ask again."""


@dataclass(frozen=True, slots=True)
class JobLag:
    """How far one background job is behind what it follows."""

    name: str
    position: int
    head: int
    waiting_since_us: int | None = None

    @property
    def behind(self) -> int:
        return max(0, self.head - self.position)
