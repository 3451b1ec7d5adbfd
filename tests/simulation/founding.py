"""The market that every run begins with: made once in a process, byte for byte the same in all.

Keys and ids that a server draws are drawn here from a fixed stream, so a seed gives one log in
every process. Runs begin with a copy of the database and of the folder with the keys.
"""

from __future__ import annotations

import itertools
import os
import random
import secrets
import shutil
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.money import token
from domain.parties.account import WALLET_DELAY_US, LinkWallet
from ledger import migrate
from projections import tables
from tests.conftest import Databases, running
from tests.scenes import server, wallets
from tests.scenes.server import NOW_US, Scene, opened
from tests.simulation import chain
from tests.simulation.chain import Deployed
from tests.simulation.reference_epochs import AVAILABILITY_PPM, COMPUTE_PPM, MILLION

MATURES_S = 3_600
LEAST_CASH_OUT = 10_000
"""A cent: what a lease of minutes earns is enough."""
CASH = 100_000_000
SETTINGS: dict[str, Any] = {"requests_per_second": 1_000_000, "requests_burst": 1_000_000}
SETTINGS |= {"reports_per_second": 1_000_000, "reports_burst": 1_000_000, "spec_ttl_s": 0}
EPOCH_S = 4 * 86_400
FIRST_EPOCH_S = 600
"""What is left of the first epoch when a run begins."""
GENESIS_S = NOW_US // 10**6 + FIRST_EPOCH_S - EPOCH_S
EMISSION, EPOCHS = 7_000_000_000_003, 7
"""All that is ever emitted, and over how many epochs: they do not divide."""
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Founded:
    """A server with databases to copy, the one that was founded, its keys and its callers."""

    postgres: Databases
    admin: psycopg.Connection[Any]
    template: str
    keys: Path
    scene: Scene
    chain: Deployed

    @contextmanager
    def copied(self) -> Generator[tuple[str, Path], None, None]:
        """The name of a new copy of the database, and a folder with the same keys."""
        name = f"sim_{next(_numbers)}"
        self.postgres.create_database(name, template=self.template)
        with tempfile.TemporaryDirectory(prefix="sim", dir=self.keys.parent) as folder:
            shutil.copytree(self.keys, folder, dirs_exist_ok=True)
            yield name, Path(folder)
        self.postgres.drop_database(name)


@contextmanager
def founded(
    postgres: Databases | None = None, with_views: str = ""
) -> Generator[Founded, None, None]:
    """On this server and from its template with views, or on a server of its own."""
    with ExitStack() as stack:
        if postgres is None:
            postgres = stack.enter_context(running())
            with_views = _with_views(postgres)
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sims", dir="/dev/shm")))
        admin = stack.enter_context(psycopg.connect(postgres.uri, autocommit=True))
        name, keys = f"sim_founded_{next(_numbers)}", base / "keys"
        keys.mkdir()
        address = postgres.create_database(name, template=with_views)
        with _drawn(), opened(address, keys, **SETTINGS) as scene:
            _terms(scene)
            _epochs(scene)
        caps = (EMISSION // EPOCHS + 1,) * EPOCHS
        made = stack.enter_context(chain.deployed(GENESIS_S, NOW_US // 10**6, EPOCH_S, caps))
        yield Founded(postgres, admin, name, keys, scene, made)


def _with_views(postgres: Databases) -> str:
    address = postgres.create_database("sim_template")
    migrate.migrate(address)
    with psycopg.connect(address, autocommit=True) as connection:
        tables.ensure(connection)
    return "sim_template"


def _terms(scene: Scene) -> None:
    now = datetime.fromtimestamp(scene.clock.now_us() // 10**6, UTC).isoformat()
    window = {"version": 1, "window_seconds": MATURES_S, "effective_from": now}
    scene.operator.made("/v1/cash-outs/terms/window", window)
    least = {"minimum": {"asset": "CREDIT", "units": str(LEAST_CASH_OUT)}}
    scene.operator.made("/v1/cash-outs/terms/minimum", least)
    mode = {"mode": "cash", "destination": "bank_of_owner"}
    scene.owner.made(f"/v1/accounts/{scene.owner.account_id}/payment-mode", mode)
    scene.deposit(scene.stranger, CASH)


def _epochs(scene: Scene) -> None:
    """As `tallystick policy start` and `epoch open` do it; the owner has a wallet in effect."""
    now_us = scene.clock.now_us()
    policy = PublishPolicy(
        version=1,
        epoch_length_us=EPOCH_S * 10**6,
        segments=(EmissionSegment(1, EPOCHS, EMISSION),),
        hard_cap=token(EMISSION),
        compute_ppm=COMPUTE_PPM,
        availability_ppm=AVAILABILITY_PPM,
        treasury_ppm=MILLION - COMPUTE_PPM - AVAILABILITY_PPM,
        compute_base="gpu_time",
        holdback_epochs=0,
        effective_from_epoch=1,
        by="operator",
        at_us=now_us,
    )
    first = OpenEpoch(epoch=1, start_us=GENESIS_S * 10**6, at_us=now_us)
    wallet = LinkWallet(
        account_id=scene.owner.account_id,
        address=wallets.ADDRESSES[0],
        message="m",
        signature="s",
        at_us=now_us - WALLET_DELAY_US,
    )
    scene.service.ledger.handle([policy, first, wallet], key=None, now_us=now_us)


@contextmanager
def _drawn() -> Generator[None, None, None]:
    """Everything that would be drawn is drawn from a stream that begins anew each time."""
    drawn = random.Random("the market of all runs")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(secrets, "token_bytes", lambda count=32: drawn.randbytes(count))
        patched.setattr(secrets, "token_hex", lambda count=32: drawn.randbytes(count).hex())
        patched.setattr(os, "urandom", drawn.randbytes)
        patched.setattr(server, "_numbers", itertools.count(1))
        yield
