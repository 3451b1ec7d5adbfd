"""A market behind the console, with a clock that stands still: one server for a module's tests."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from api.process.clock import SimulatedClock
from api.process.service import Service
from api.replay.demo import serving
from tallystick_client.calls import authorities
from tests.scenes.server import Caller, Scene, opened
from tests.scenes.work import seal_an_epoch_of_work

GENEROUS = {"requests_per_second": 1_000_000, "requests_burst": 1_000_000, "spec_ttl_s": 0}
ROLES = ("renter", "owner", "operator", "auditor")


@dataclass(frozen=True)
class Market:
    """`keys` by role; `told` is what the work of the market came to."""

    address: str
    keys: dict[str, str]
    accounts: dict[str, str]
    told: dict[str, Any]
    service: Service

    def read(self, role: str, path: str, **query: Any) -> dict[str, Any]:
        """What the API answers the same party: what a page must show."""
        answer = httpx.get(
            f"http://{self.address}{path}",
            params=query,
            headers={"Authorization": f"Bearer {self.keys[role]}"},
            verify=authorities(),
        )
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def worked(scene: Scene) -> dict[str, Any]:
    """A sealed epoch with one settled lease hour of 2.00 credits, under a signed head."""
    seal_an_epoch_of_work(scene)
    scene.sign_head()
    path = f"/v1/accounts/{scene.renter.account_id}/statements"
    month = {"from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z", "kind": "usage"}
    (line,) = scene.renter.read(path, **month)["lines"]
    return {
        "lease_id": line["lease_id"],
        "position": line["position"],
        "node": scene.provider.node_id,
    }


@contextmanager
def market_in(folder: Path, database: str) -> Generator[Market, None, None]:
    """Founded and worked over the API, then served with pages on a port of this machine."""
    with opened(database, folder) as scene:
        told = worked(scene)
        settings, now_us = scene.service.settings, scene.clock.now_us()
        callers: dict[str, Caller] = {role: getattr(scene, role) for role in ROLES}
    with (
        Service.open(settings, clock=SimulatedClock(now_us)) as service,
        serving(service, with_console=True) as url,
    ):
        keys = {role: str(caller.key) for role, caller in callers.items()}
        accounts = {role: caller.account_id for role, caller in callers.items()}
        yield Market(url.removeprefix("http://"), keys, accounts, told, service)
