"""All scenes, and the failpoints of all of them. `run` is one seed of the long suite."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg

from ledger import migrate
from projections import tables
from tests.conftest import running
from tests.failpoints.backups import Backups
from tests.failpoints.chain import OnChain
from tests.failpoints.epochs import Epochs
from tests.failpoints.exports import Exports
from tests.failpoints.jobs import Jobs
from tests.failpoints.keys import Keys
from tests.failpoints.market import MarketLog
from tests.failpoints.migration import Migrations
from tests.failpoints.node_keys import NodeKeys
from tests.failpoints.places import Failpoint
from tests.failpoints.scene import Ground, Scene, play_all
from tests.failpoints.spool import Spools
from tests.failpoints.trees import Trees
from tests.failpoints.usage import ReportLog
from tests.failpoints.views import Views
from tests.failpoints.work import Work

SCENES: tuple[type[Scene], ...] = (
    MarketLog,
    ReportLog,
    Views,
    Trees,
    Epochs,
    Migrations,
    Jobs,
    Spools,
    OnChain,
    Work,
    Keys,
    NodeKeys,
    Exports,
    Backups,
)

FAILPOINTS: dict[str, Failpoint] = {
    failpoint.name: failpoint for scene in SCENES for failpoint in scene.failpoints
}
TEMPLATE = "template_failpoints"


@contextmanager
def seeded_scene() -> Generator[Ground, None, None]:
    """One server for all seeds of a process."""
    with running() as postgres:
        address = postgres.create_database(TEMPLATE)
        migrate.migrate(address)
        with psycopg.connect(address, autocommit=True) as connection:
            tables.ensure(connection)
        yield Ground(postgres, TEMPLATE)


def run(seed: int, ground: Ground) -> None:
    """Every failpoint once, by a seed. Raises at the first thing that does not hold."""
    reached = set().union(*(play_all(scene, ground, seed) for scene in SCENES))
    assert reached == set(FAILPOINTS)
