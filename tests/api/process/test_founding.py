"""The environment is a fact of the log: what is founded in one never runs in the other."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from api.process import founding
from api.process.service import Service
from api.settings import Settings, SettingsInvalid
from domain.parties.account import DEVELOPMENT, ENVIRONMENTS, PRODUCTION, BootstrapOperator
from tests.scenes.server import NOW_US, opened

ROOT = Path(__file__).parents[3]


def found(service: Service) -> None:
    command = BootstrapOperator(
        account_id="acct_operator",
        member_id="member_one",
        key_id="k" * 8,
        key_sha256="00" * 32,
        at_us=NOW_US,
        environment=service.settings.environment,
    )
    service.ledger.handle(command, key=None, now_us=NOW_US)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_log_starts_in_the_environment_that_it_was_founded_in_and_in_no_other(
    database: str, tmp_path: Path, environment: str
) -> None:
    """Security M12: with one variable of the environment production became development, silently,
    and a region opened so asked for no hardware for ever.
    """
    settings = Settings(data_dir=tmp_path, database_url=database, environment=environment)
    other = next(one for one in ENVIRONMENTS if one != environment)
    with Service.open(settings) as service:
        assert founding.environment_of(service.ledger, settings) == environment
        found(service)
    with pytest.raises(SettingsInvalid, match=f"founded in {environment} .* {other} is set"):
        Service.open(replace(settings, environment=other))
    with Service.open(settings) as service:
        assert founding.is_development(service.ledger) == (environment == DEVELOPMENT)


def test_a_log_that_is_not_founded_yet_starts_in_both(database: str, tmp_path: Path) -> None:
    for environment in ENVIRONMENTS:
        settings = Settings(data_dir=tmp_path, database_url=database, environment=environment)
        with Service.open(settings) as service:
            assert not founding.is_development(service.ledger)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "api.example"])
def test_development_is_refused_where_others_can_reach_it(host: str) -> None:
    assert Settings(host=host).environment == PRODUCTION
    with pytest.raises(SettingsInvalid, match="host: development listens on this machine alone"):
        Settings(host=host, environment=DEVELOPMENT)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_development_listens_on_this_machine(host: str) -> None:
    assert Settings(host=host, environment=DEVELOPMENT).host == host


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_environment_is_shown_where_a_server_is_watched(
    database: str, tmp_path: Path, environment: str, caplog: pytest.LogCaptureFixture
) -> None:
    is_development = environment == DEVELOPMENT
    with opened(database, tmp_path, environment=environment) as scene:
        assert scene.anybody.get("/readyz").json()["environment"] == environment
        line = f"tallystick_development {float(is_development)}"
        assert line in scene.anybody.get("/metrics").text.splitlines()
        with caplog.at_level(logging.WARNING):
            founding.warn(scene.service.ledger, scene.service.settings)
        assert (founding.WARNING in caplog.text) == is_development
        region = scene.owner.read(f"/v1/regions/{scene.provider.region_id}")
        assert (region["hardware_rules"] == []) == is_development


MAY_READ_THE_SETTING = {
    "api/settings.py",
    "api/process/founding.py",
    "api/parties/new_keys.py",  # the prefix of keys
    "api/replay/demo.py",
    "cli/admin.py",
}


def test_nothing_that_decides_who_joins_or_is_paid_reads_a_setting() -> None:
    reading = {
        str(file.relative_to(ROOT))
        for layer in ("api", "cli", "ledger", "projections", "domain")
        for file in (ROOT / layer).rglob("*.py")
        if "settings.environment" in file.read_text(encoding="utf-8")
    }
    assert reading <= MAY_READ_THE_SETTING, reading - MAY_READ_THE_SETTING
