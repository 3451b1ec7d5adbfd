"""The simulation as a seeded suite: `python -m tests.passes simulation FROM TO`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tests.simulation.founding import Founded, founded
from tests.simulation.run import play


@contextmanager
def seeded_scene() -> Generator[Founded, None, None]:
    """A server with the market that every run begins with."""
    with founded() as made:
        yield made


def run(seed: int, made: Founded) -> None:
    """One history. Raises what it finds, with the seed and the last steps."""
    play(seed, made)
