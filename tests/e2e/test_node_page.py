"""A home machine from its code to its first earnings, and its own page in a real browser.

Everything runs: the server, the jobs, a `tallystick-node` process with simulated accelerators, the
owner's and the renter's calls over HTTP. Needs Chromium, as the console's test does.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.test_remote import Server
from tests.cli.test_remote import development_server as server
from tests.e2e.pages.browser import CHROMIUM, browsing, pictured
from tests.journeys.test_joining import Owner, run, stop
from tests.processes import free_port, until

__all__ = ["server"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
_numbers = itertools.count(1)


def post(server: Server, key: str, path: str, body: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"page-{next(_numbers)}"}
    answer = httpx.post(f"{server.url}{path}", json=body, headers=headers)
    assert answer.status_code in (200, 201), answer.text
    told: dict[str, Any] = answer.json()
    return told


def price(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def leased(server: Server, owner: Owner, node_id: str, state: Path) -> tuple[str, str]:
    """Somebody rents the node's only GPU, dearly: a lease that is running, and its renter's key."""
    body = {
        "provider_id": owner.provider_id,
        "node_id": node_id,
        "settlement": "cash",
        "price_per_gpu_hour": price(900_000_000),
        "fractions": False,
    }
    post(server, owner.key, "/v1/offers", body)
    renter, key = server.account()
    server.run("account", "deposit", renter, "5000", "--reference", "card")
    job = {"image": "work", "max_price_per_gpu_hour": price(900_000_000)}
    lease_id = post(server, key, "/v1/leases", {"job": job})["lease_id"]
    ready = f"/v1/nodes/{node_id}/assignments/{lease_id}/ready"
    post(server, (state / "node.key").read_text(), ready, {})
    return lease_id, key


def earned(server: Server, state: Path, node_id: str) -> int:
    """What the page asks, with the node's own key, after the jobs have had their turn."""
    server.jobs()
    headers = {"Authorization": f"Bearer {(state / 'node.key').read_text()}"}
    told = httpx.get(f"{server.url}/v1/nodes/{node_id}/earnings/today", headers=headers).json()
    return int(told["earned"]["units"])


def leased_us(server: Server, node_id: str) -> int:
    headers = {"Authorization": f"Bearer {server.operator_key}"}
    told = httpx.get(f"{server.url}/v1/nodes/{node_id}/usage/hours", headers=headers).json()
    return sum(int(hour["leased_gpu_us"]) for hour in told["data"])


@pytest.mark.pages(
    "tests/node_reporter/agent/test_page.py::test_a_node_that_runs_shows_itself_and_stays_small",
    "tests/node_reporter/agent/test_page.py::test_it_says_what_was_earned_and_how_the_node_is",
)
def test_an_owner_sees_on_the_machine_itself_what_it_earned(server: Server, tmp_path: Path) -> None:
    state = tmp_path / "node"
    owner = Owner.of(server)
    node_id = owner.active(state)
    port = free_port()
    running = run(Path("node"), "--page", str(port), cwd=tmp_path)
    until(lambda: owner.reports(node_id) > 0)
    lease_id, renter = leased(server, owner, node_id, state)
    until(lambda: leased_us(server, node_id) > 4_000_000)
    post(server, renter, f"/v1/leases/{lease_id}/close", {})
    until(lambda: earned(server, state, node_id) > 0)
    units = earned(server, state, node_id)
    with browsing(tmp_path) as page:
        page.goto(f"http://127.0.0.1:{port}/")
        assert page.get_by_role("heading", name="Earned today").is_visible()
        shown = page.locator(".big").inner_text()
        rows = " | ".join(" ".join(row.split()) for row in page.locator("tr").all_inner_texts())
        pictured(page, "node")
        assert page.evaluate("document.scripts.length") == 0
        for width in (1280, 360):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto(f"http://localhost:{port}/")
        assert page.get_by_role("heading", name="State").is_visible()
        refused = page.request.get(f"http://127.0.0.1:{port}/", headers={"Host": "evil.example"})
        assert refused.status == 421
    stop(running)
    assert shown == f"{units // 1_000_000}.{units % 1_000_000:06d} CREDIT"
    assert "joined ok active" in rows
    assert "agent ok metering now" in rows
    assert "NVIDIA H200" in rows
