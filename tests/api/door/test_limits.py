"""How often one may call: token buckets per key and per address."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from api.door.limits import BUCKETS_MAX, Buckets, bucket_of
from api.ingest.door import MEDIA_TYPE
from api.main import build
from tests.scenes.serving import Market


class Hand:
    """A clock in nanoseconds, moved by hand."""

    def __init__(self) -> None:
        self.ns = 10**12

    def __call__(self) -> int:
        return self.ns


def test_a_burst_passes_and_then_the_rate() -> None:
    clock = Hand()
    buckets = Buckets(2, 3, clock)
    assert [buckets.spend("a").allowed for _ in range(4)] == [True, True, True, False]
    assert buckets.spend("b").allowed
    clock.ns += 500_000_000
    assert [buckets.spend("a").allowed for _ in range(2)] == [True, False]


def test_the_headers_say_what_is_left_and_when_to_come_back() -> None:
    clock = Hand()
    buckets = Buckets(1, 2, clock)
    assert buckets.spend("a").headers() == {
        "X-RateLimit-Limit": "2",
        "X-RateLimit-Remaining": "1",
        "X-RateLimit-Reset": "1",
    }
    buckets.spend("a")
    assert buckets.spend("a").headers()["Retry-After"] == "1"


@given(
    st.integers(1, 50), st.integers(1, 50), st.lists(st.integers(0, 10**9), min_size=1, max_size=60)
)
def test_no_stretch_of_time_lets_more_pass_than_burst_and_rate(
    rate: int, burst: int, waits: list[int]
) -> None:
    clock = Hand()
    buckets = Buckets(rate, burst, clock)
    started, passed = clock.ns, 0
    for wait in waits:
        clock.ns += wait
        passed += buckets.spend("a").allowed
        assert passed <= burst + rate * (clock.ns - started) / 10**9 + 1


def test_the_memory_of_buckets_is_bounded() -> None:
    buckets = Buckets(1, 1, Hand())
    for number in range(BUCKETS_MAX + 10):
        buckets.spend(str(number))
    assert len(buckets._full_at_ns) <= BUCKETS_MAX


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("testclient", "testclient", True),
        ("a:b", "a:b", True),
    ],
)
def test_the_addresses_of_one_customer_share_a_bucket(one: str, other: str, is_same: bool) -> None:
    assert (bucket_of(one) == bucket_of(other)) is is_same


def test_only_reports_themselves_are_exempt_from_the_bucket_of_the_address(
    founded_market: Market, tmp_path: Path
) -> None:
    with founded_market.copied(tmp_path, requests_per_second=1, requests_burst=10) as scene:
        for path in ("/v1/nodes/a/b/usage", "/v1/nodes/usage", "/v1/nodes/x/usage/"):
            assert any(scene.http.post(path).status_code == 429 for _ in range(40)), path
        assert scene.http.post("/v1/nodes/node_x/usage").status_code == 415


def test_who_posts_what_no_node_signed_is_turned_away_in_the_end_and_nodes_elsewhere_are_not(
    founded_market: Market, tmp_path: Path
) -> None:
    with founded_market.copied(tmp_path, requests_per_second=1, requests_burst=30) as scene:
        path = f"/v1/nodes/{scene.provider.node_id}/usage"
        named = {"Content-Type": MEDIA_TYPE}
        answers = [scene.http.post(path, content=b"[]", headers=named) for _ in range(50)]
        assert [answer.status_code for answer in answers[:30]] == [400] * 30
        last = answers[-1]
        assert (last.status_code, last.json()["code"]) == (429, "rate_limited")
        assert int(last.headers["Retry-After"]) >= 1
        assert scene.http.get("/v1/log/nothing").status_code == 404, "a bucket of its own"
        node = scene.provider.signing
        signed = json.dumps([node.envelope(node.next()[0])]).encode()
        elsewhere = TestClient(scene.http.app, client=("192.0.2.7", 1))
        elsewhere.portal = scene.http.portal
        assert elsewhere.post(path, content=signed, headers=named).status_code == 200


def test_reports_that_their_node_signed_never_use_up_the_address(
    founded_market: Market, tmp_path: Path
) -> None:
    limits = {"requests_per_second": 1, "requests_burst": 60, "reports_burst": 1_000}
    with founded_market.copied(tmp_path, **limits) as scene:
        node, path = scene.provider.signing, f"/v1/nodes/{scene.provider.node_id}/usage"
        signed = json.dumps([node.envelope(node.next()[0])]).encode()
        named = {"Content-Type": MEDIA_TYPE}
        answers = [scene.http.post(path, content=signed, headers=named) for _ in range(70)]
        assert {answer.status_code for answer in answers} == {200}


def test_an_address_that_calls_too_often_is_told_when_to_come_back(
    founded_market: Market, tmp_path: Path
) -> None:
    with founded_market.copied(tmp_path, requests_per_second=1, requests_burst=10) as scene:
        answers = [scene.http.get("/v1/offers") for _ in range(30)]
        turned_away = [answer for answer in answers if answer.status_code == 429]
        assert turned_away
        told = turned_away[0]
        assert told.json()["code"] == "rate_limited"
        assert int(told.headers["Retry-After"]) >= 1
        assert told.headers["X-RateLimit-Remaining"] == "0"
        assert told.headers["Request-Id"] == told.json()["request_id"]
        assert scene.http.get("/healthz").status_code == 200


def test_one_key_does_not_use_up_the_share_of_another(
    founded_market: Market, tmp_path: Path
) -> None:
    with founded_market.copied(tmp_path) as scene:
        app = build(scene.service)
        app.state.key_buckets = Buckets(1, 2)
        http = TestClient(app)  # its usage log is not started: this one only reads
        paths = [http.get("/v1/jobs", headers=scene.renter.headers) for _ in range(3)]
        assert [answer.status_code for answer in paths] == [200, 200, 429]
        assert paths[2].json()["code"] == "rate_limited"
        assert http.get("/v1/jobs", headers=scene.stranger.headers).status_code == 200
