"""kill -9 of the primary under load, and the standby takes its place: nothing acknowledged is lost,
and the running server answers again without a restart.

    acknowledged  =>  there, exactly once, at the standby        reports, leases, deposits
    outage        <   30 s, from the kill to the next acknowledgement

The short form of this is `tests/api/process/test_failover.py`.

Real processes: a primary, its synchronous standby, the server and the jobs, which know one libpq
address of both.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from random import Random

import pytest

from ledger import migrate
from tests.e2e import stand as stands
from tests.e2e.checks import check
from tests.e2e.load import Load
from tests.e2e.stand import TERMS_US, Stand
from tests.processes import until
from tests.servers.patroni import Cluster
from tests.servers.standby import Pair, pair

SEED = "TALLYSTICK_TEST_SEED"
OUTAGE_SECONDS_MAX = 30.0
GROUPS = ("once", "often")
TIMES = 10


@pytest.fixture(scope="module")
def market() -> Generator[tuple[Stand, Pair], None, None]:
    with pair() as servers, tempfile.TemporaryDirectory(prefix="tally") as name:
        migrate.migrate(servers.uri)
        made = stands.build(Path(name), servers, GROUPS)
        try:
            for process in ("server", "jobs"):
                made.start(process)
                made.await_up(process)
            yield made, servers
        finally:
            made.stop()


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_killed_primary_loses_nothing_and_comes_back_as_a_standby(
    market: tuple[Stand, Pair],
) -> None:
    fail_over_and_check(*market, "once", 1)


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_ten_failovers_lose_nothing(market: tuple[Stand, Pair]) -> None:
    fail_over_and_check(*market, "often", TIMES)


def fail_over_and_check(stand: Stand, servers: Pair | Cluster, group: str, times: int) -> None:
    """Fail over under load this many times; see above for what must hold."""
    seed = int(os.environ.get(SEED) or secrets.randbits(32))
    outages: list[float] = []
    try:
        random = Random(seed)
        step_us = sum(TERMS_US) // (4 * 10 * times)
        with Load(stand, group, step_us, random) as load:
            for _ in range(times):
                assert load.journal.wait_for_more(random.randrange(10, 30)), "nothing happens"
                load.check()
                began = time.monotonic()
                servers.fail_over()
                # Each client may get one answer more to what it asked before the kill.
                more = len(load.clients) + 1
                assert load.journal.wait_for_more(more, OUTAGE_SECONDS_MAX), "it stays away"
                outages.append(time.monotonic() - began)
                servers.restore_standby()
            assert load.journal.wait_for_more(10), "nothing more was acknowledged"
        load.check()
        load.finish_reports()
        load.ask_again()
        check(stand, load, with_payouts=False)
        head = servers.primary.ask("SELECT pos, hash FROM market_events_head")
        until(lambda: servers.standby.ask("SELECT pos, hash FROM market_events_head") == head)
        assert max(outages) < OUTAGE_SECONDS_MAX
    except BaseException as error:
        error.add_note(f"{SEED}={seed}, outages: {outages}")
        raise
