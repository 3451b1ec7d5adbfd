"""One embedded chain for the room; each test finds the set freshly deployed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from contracts.chain import Chain
from contracts.deployment import Deployment
from contracts.devnet import Devnet
from contracts.tally import Tally
from tests.contracts.stage import GENESIS_S, Stage, deploy, wallets


@contextmanager
def deployed_set() -> Generator[tuple[Devnet, Deployment], None, None]:
    with Devnet(clock=lambda: GENESIS_S) as devnet:
        yield devnet, deploy(devnet, Chain(devnet.w3), wallets(devnet))


@contextmanager
def staged(deployed: tuple[Devnet, Deployment]) -> Generator[Stage, None, None]:
    """All that is done is undone in the end."""
    devnet, deployment = deployed
    chain = Chain(devnet.w3)
    mark = devnet.snapshot()
    yield Stage(devnet, chain, Tally(chain, deployment), wallets(devnet))
    devnet.revert(mark)


@pytest.fixture(scope="session")
def deployed_chain() -> Generator[tuple[Devnet, Deployment], None, None]:
    with deployed_set() as deployed:
        yield deployed


@pytest.fixture
def stage(deployed_chain: tuple[Devnet, Deployment]) -> Generator[Stage, None, None]:
    with staged(deployed_chain) as stage:
        yield stage
