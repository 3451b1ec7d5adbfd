"""The recipe for Patroni keeps its word: a machine that leads is killed under load, another takes
its place by itself, and nothing acknowledged is lost.

    acknowledged  =>  there, exactly once, at the new leader     reports, leases, deposits
    outage        <   30 s, from the kill to the next acknowledgement, by itself

Real processes on one machine: three times etcd, Patroni and PostgreSQL with TLS, as
`docs/howto/fail-over` has them, and the server and the jobs.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from ledger import migrate
from tests.e2e import stand as stands
from tests.e2e.stand import Stand
from tests.e2e.test_failover import fail_over_and_check
from tests.e2e.test_tutorial import blocks
from tests.servers.patroni import ETCD, RECIPE, Cluster, cluster, debians_programs

PROGRAMS = debians_programs()
GROUPS = ("lost", "back")

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(ETCD is None, reason="needs apt-get install etcd-server etcd-client"),
    pytest.mark.skipif(PROGRAMS is None, reason="needs PostgreSQL of Debian"),
]


def install(folder: Path) -> Path:
    """Patroni, by the command of the page."""
    (script,) = blocks(RECIPE.with_suffix(".md"), "sh patroni")
    script = script.replace("/opt/patroni", str(folder))
    subprocess.run(["bash", "-eu", "-c", script], check=True, capture_output=True)
    return folder / "bin" / "patroni"


@pytest.fixture(scope="module")
def market() -> Generator[tuple[Stand, Cluster], None, None]:
    assert PROGRAMS is not None
    with cluster(install, PROGRAMS) as servers, tempfile.TemporaryDirectory(prefix="tally") as at:
        migrate.migrate(servers.uri)
        made = stands.build(Path(at), servers, GROUPS)
        try:
            for process in ("server", "jobs"):
                made.start(process)
                made.await_up(process)
            yield made, servers
        finally:
            made.stop()


def test_a_leader_that_loses_its_disk_is_replaced_by_itself_and_made_anew(
    market: tuple[Stand, Cluster],
) -> None:
    fail_over_and_check(*market, "lost", 2)


def test_a_leader_that_comes_back_with_its_disk_follows_the_new_one(
    market: tuple[Stand, Cluster],
) -> None:
    stand, servers = market
    before = servers.primary
    servers.fail_over()
    servers.await_leader()
    servers.come_back()
    assert servers.primary is not before
    fail_over_and_check(stand, servers, "back", 1)
