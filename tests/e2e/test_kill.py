"""kill -9 of the server, of the jobs and of PostgreSQL, at random points under load.

    acknowledged  =>  there, exactly once          reports, leases, deposits, payouts
    sent and not acknowledged  =>  sent again, and there exactly once in the end
    the chains verify, the books balance, views equal a rebuild, every lease comes to its time

Nothing is mocked: real processes, real signals, a durable PostgreSQL, HTTP between them. A failure
names the seed; `TALLYSTICK_TEST_SEED=<seed>` plays the same choices again.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Generator, Sequence
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
GROUPS = ("each", *TARGETS)
ACKNOWLEDGED_MAX = 40
"""At most so many answers between a start and the next kill."""

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def stand() -> Generator[Stand, None, None]:
    """One installation for all tests here: what the first left must survive the others too."""
    with tempfile.TemporaryDirectory(prefix="tally") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL does not run as root
        with EmbeddedPostgres(folder) as postgres:
            made = stands.build(folder, postgres, GROUPS)
            try:
                for process in ("server", "jobs", "payer"):
                    made.start(process)
                for process in ("server", "jobs", "payer"):
                    made.await_up(process)
                yield made
            finally:
                made.stop()


def test_a_kill_of_each_loses_nothing_that_was_acknowledged(stand: Stand) -> None:
    _kill_and_check(stand, "each", TARGETS)


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("target", TARGETS)
def test_twenty_kills_lose_nothing_that_was_acknowledged(stand: Stand, target: str) -> None:
    _kill_and_check(stand, target, (target,) * 20)


def _kill_and_check(stand: Stand, group: str, killed: Sequence[str]) -> None:
    seed = int(os.environ.get(SEED) or secrets.randbits(32))
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
