"""A service with an embedded chain: contracts for the log's own terms, an epoch minted by a job."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from api.chain.side import CHAIN_FILE, DEPLOYMENT_FILE, ChainNotReady, ChainSide
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.settings import Settings, SettingsInvalid
from api.timers import Timers
from contracts import deployment as deployments
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import first_policy
from domain.stream import Stream

START_US = 1_795_392_000_000_000


@pytest.fixture
def service(database: str, tmp_path: Path) -> Generator[Service, None, None]:
    settings = Settings(
        data_dir=tmp_path, database_url=database, environment="development", embedded_chain=True
    )
    with Service.open(settings, clock=SimulatedClock(START_US)) as opened:
        yield opened


def found(service: Service) -> None:
    now_us = service.clock.now_us()
    policy = first_policy(by="operator", at_us=now_us)
    opening = OpenEpoch(epoch=1, start_us=START_US, at_us=now_us)
    service.ledger.handle([policy, opening], key=None, now_us=now_us)


def test_without_a_policy_the_chain_waits(service: Service) -> None:
    with pytest.raises(ChainNotReady):
        ChainSide(service).step(START_US)
    assert Timers(service).run_once()["chain"] == 0


def test_the_contracts_are_deployed_once_for_the_terms_of_the_log(service: Service) -> None:
    found(service)
    Timers(service).run_once()
    deployment = deployments.read(service.settings.data_dir / DEPLOYMENT_FILE)
    assert deployment.terms.genesis_s == START_US // 1_000_000
    assert deployment.terms.epoch_length_s == 604_800
    Timers(service).run_once()
    assert deployments.read(service.settings.data_dir / DEPLOYMENT_FILE) == deployment
    assert (service.settings.data_dir / CHAIN_FILE).exists()


def test_a_sealed_epoch_is_minted_and_its_root_proposed_by_the_jobs(service: Service) -> None:
    found(service)
    Timers(service).run_once()
    clock = service.clock
    assert isinstance(clock, SimulatedClock)
    clock.move_to(START_US + 6 * 604_800_000_000)  # past the holdback of four epochs
    for _ in range(3):
        Timers(service).run_once()
    payout = service.ledger.market.load(Stream("payout", "1")).state
    assert payout.status == "proposed"
    assert service.ledger.books.balance("chain:distributor") > 0


def test_a_node_needs_its_deployment_and_its_keys(database: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database, chain_url="http://127.0.0.1:1")
    with Service.open(settings) as opened, pytest.raises(SettingsInvalid, match="keystores"):
        ChainSide(opened).step(START_US)


def test_an_embedded_chain_is_for_development_only() -> None:
    with pytest.raises(SettingsInvalid, match="development"):
        Settings(embedded_chain=True)
