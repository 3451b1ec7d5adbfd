"""A server on a real standby: reading calls answer and say how far, recording calls are refused."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from starlette.testclient import TestClient

from api.main import create_app
from api.process.service import Service
from api.settings import Settings
from projections import tables
from tests.processes import until
from tests.scenes.shell import tallystick
from tests.servers.standby import Pair, pair

pytestmark = pytest.mark.timeout(180)


@dataclass
class Market:
    """A market with one account on a primary, and its standby."""

    servers: Pair
    data: Path
    key: str
    account: str
    head: int

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Generator[Market, None, None]:
    data = tmp_path_factory.mktemp("data")
    with pair() as servers:
        at = {"DATABASE_URL": servers.primary.uri, "DATA_DIR": data}
        begun = tallystick("admin", "bootstrap", "--json", **at)
        assert begun.code == 0, begun.err
        signed = tallystick("jobs", "--once", "--json", **at)
        assert signed.code == 0, signed.err
        with psycopg.connect(servers.primary.uri, autocommit=True) as connection:
            tables.step_all(connection)
        key, account = begun.document["api_key"], begun.document["account_id"]
        (head,) = servers.primary.ask("SELECT pos FROM market_events_head")
        assert isinstance(head, int)
        until(lambda: servers.standby.ask("SELECT pos FROM market_events_head") == (head,))
        yield Market(servers, data, key, account, head)


@pytest.fixture(scope="module")
def http(
    market: Market, tmp_path_factory: pytest.TempPathFactory
) -> Generator[TestClient, None, None]:
    """A server on the standby, whose data folder has no keys."""
    data = tmp_path_factory.mktemp("reader")
    settings = Settings(data_dir=data, database_url=market.servers.standby.uri, read_only=True)
    with Service.open(settings) as service, TestClient(create_app(service)) as client:
        yield client
    assert not (data / "keys").exists(), "a server that records nothing made a key"


def test_reading_calls_answer_with_the_position_of_the_standby(
    market: Market, http: TestClient
) -> None:
    for path in ("/v1/accounts", f"/v1/accounts/{market.account}", "/v1/epochs", "/v1/offers"):
        read = http.get(path, headers=market.headers)
        assert read.status_code == 200, (path, read.text)
        assert 0 < int(read.headers["Tallystick-Position"]) <= market.head
    checkpoint = http.get("/v1/audit/log/checkpoint")
    assert checkpoint.status_code == 200, checkpoint.text


def test_ready_says_that_it_only_reads_and_how_far(market: Market, http: TestClient) -> None:
    told = http.get("/readyz")
    assert told.status_code == 200, told.text
    assert (told.json()["read_only"], told.json()["position"]) == (True, market.head)


def test_a_position_that_the_standby_has_is_waited_for_and_a_later_one_is_told(
    market: Market, http: TestClient
) -> None:
    asked = market.headers | {"Tallystick-Min-Position": str(market.head)}
    assert http.get("/v1/epochs", headers=asked).status_code == 200
    later = market.headers | {"Tallystick-Min-Position": str(market.head + 1)}
    answer = http.get("/v1/epochs", headers=later)
    assert (answer.status_code, answer.json()["code"]) == (503, "projection_behind")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/accounts"),
        ("POST", "/v1/leases"),
        ("POST", "/v1/nodes/node_00000000000000000000000000000000/usage"),
        ("DELETE", "/v1/accounts/acct_00000000000000000000000000000000/api-keys/tsk_1"),
    ],
)
def test_a_recording_call_is_refused_with_what_to_do(
    market: Market, http: TestClient, method: str, path: str
) -> None:
    headers = market.headers | {"Idempotency-Key": "one"}
    answer = http.request(method, path, json={}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (503, "read_only"), answer.text
    page = http.get("/problems/read_only")
    assert "main address" in page.text.replace("&#x27;", "'")


def test_without_the_log_s_key_its_key_is_not_made_up(http: TestClient) -> None:
    answer = http.get("/v1/audit/log/key")
    assert (answer.status_code, answer.json()["code"]) == (503, "read_only")


def test_reading_commands_work_on_a_standby(market: Market, tmp_path: Path) -> None:
    at = {"DATABASE_URL": market.servers.standby.uri, "DATA_DIR": market.data}
    refused = tallystick("audit", "export", tmp_path / "no", **at)
    assert refused.code == 1
    assert "is a standby" in refused.err.replace("\n", " ")
    assert "TALLYSTICK_READ_ONLY" in refused.err
    exported = tallystick("audit", "export", tmp_path / "bundle", "--json", READ_ONLY="true", **at)
    assert exported.code == 0, exported.err
    verified = tallystick("audit", "verify", tmp_path / "bundle", "--json")
    assert verified.code == 0, verified.out + verified.err


def test_a_read_only_server_records_nothing_at_a_primary_either(
    market: Market, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path, database_url=market.servers.primary.uri, read_only=True)
    with Service.open(settings) as service, TestClient(create_app(service)) as client:
        assert client.get("/v1/accounts", headers=market.headers).status_code == 200
        refused = client.post(
            "/v1/accounts", json={}, headers=market.headers | {"Idempotency-Key": "two"}
        )
        assert refused.status_code == 503
    assert market.servers.primary.ask("SELECT pos FROM market_events_head") == (market.head,)


def test_a_database_of_another_version_is_named_and_left_alone(tmp_path: Path) -> None:
    with pair() as servers:
        at = {"DATABASE_URL": servers.standby.uri, "DATA_DIR": tmp_path, "READ_ONLY": "true"}
        refused = tallystick("audit", "export", tmp_path / "bundle", **at)
        assert refused.code == 1
        assert "start this version at the primary first" in refused.err
