"""kill -9 of the server, of the jobs and of PostgreSQL, at random points under load.

    acknowledged  =>  there, exactly once          reports, leases, deposits, payouts
    sent and not acknowledged  =>  sent again, and there exactly once in the end
    the chains verify, the books balance, views equal a rebuild, every lease comes to its time

Nothing is mocked: real processes, real signals, a durable PostgreSQL, HTTP between them. A failure
names the seed; `TALLYSTICK_TEST_SEED=<seed>` plays the same choices again. The long form takes any
range of seeds: `python -m tests.passes kills`.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from api.process.embedded_postgres import EmbeddedPostgres
from tests.e2e import stand as stands
from tests.e2e.checks import check
from tests.e2e.load import Load
from tests.e2e.stand import TERMS_US, Stand

SEED = "TALLYSTICK_TEST_SEED"
TARGETS = ("server", "jobs", "postgres")
NINE = ("server", "jobs", *("postgres",) * 3, "server", "jobs", *("postgres",) * 2)
THREE = NINE[:3]
KILLS = 10
"""Of one seed of the long suite: `python -m tests.passes kills 0 50` are five hundred."""
ACKNOWLEDGED_MAX = 40
"""At most so many answers between a start and the next kill."""

Connection = psycopg.Connection[Any]


@contextmanager
def installed(group: str) -> Generator[Stand, None, None]:
    """A whole installation, with leases for one group of kills."""
    with tempfile.TemporaryDirectory(prefix="tally") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL does not run as root
        with EmbeddedPostgres(folder) as postgres:
            made = stands.build(folder, postgres, (group,))
            try:
                for process in ("server", "jobs", "payer"):  # none delays the start of another
                    made.start(process)
                    made.await_up(process)
                yield made
            finally:
                made.stop()


@pytest.mark.timeout(900)
def test_a_kill_of_each_process_loses_nothing_that_was_acknowledged() -> None:
    with installed("each") as stand:
        kill_and_check(stand, "each", THREE, any_seed())


@pytest.mark.timeout(900)
@pytest.mark.slow("::test_a_kill_of_each_process_loses_nothing_that_was_acknowledged")
def test_nine_kills_lose_nothing_that_was_acknowledged() -> None:
    """With the three of `tests/node_reporter/executor/test_kill.py` they are twelve."""
    with installed("each") as stand:
        kill_and_check(stand, "each", NINE, any_seed())


def any_seed() -> int:
    return int(os.environ.get(SEED) or secrets.randbits(32))


def run(seed: int) -> None:
    """Ten kills of what the seed draws, one after the other, under one load."""
    random = Random(seed)
    killed = [random.choice(TARGETS) for _ in range(KILLS)]
    with installed("drawn") as stand:
        kill_and_check(stand, "drawn", killed, seed)


def kill_and_check(stand: Stand, group: str, killed: Sequence[str], seed: int) -> None:
    try:
        random = Random(seed)
        step_us = sum(TERMS_US) // (4 * 20 * len(killed))  # leases end while the killing goes on
        with Load(stand, group, step_us, random) as load:
            for target in killed:
                _kill_once(stand, load, target, random)
            assert load.journal.wait_for_more(20), "nothing more was acknowledged"
            assert stand.payouts.wait_for_more(3), "no more payouts"
        load.check()
        load.finish_reports()
        load.ask_again()
        check(stand, load)
    except BaseException as error:
        error.add_note(f"{SEED}={seed}, killed: {', '.join(killed)}")
        raise


def _kill_once(stand: Stand, load: Load, target: str, random: Random) -> None:
    """Kill after a random number of answers, at a random moment of the next one."""
    assert load.journal.wait_for_more(random.randrange(1, ACKNOWLEDGED_MAX)), "nothing happens"
    load.check()
    load.stopping.wait(random.random() * (1.0 if target == "jobs" else 0.05))
    killed = ("jobs", "payer") if target == "jobs" else (target,)
    for name in killed:
        stand.kill(name)
    for name in killed:
        stand.restart(name)
    if target != "postgres":
        for name in killed:
            stand.await_up(name)
