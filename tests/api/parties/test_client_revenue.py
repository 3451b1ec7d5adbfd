"""R-17: a compute client connects with keys of its own, and has a share of what its work brings."""

from __future__ import annotations

from typing import Any

from domain.duration import HOUR_US
from tests.scenes.server import NOW_US, Caller, Scene
from tests.scenes.work import accrue_now, reported, send

SHARES = [
    {"bucket": "provider", "share_ppm": 350_000},
    {"bucket": "client", "share_ppm": 100_000},
    {"bucket": "platform", "share_ppm": 150_000},
]
TARIFF = {
    "version": 2,
    "usage_fees": [
        {"gpu_class": "datacenter", "per_gpu_hour": {"asset": "CREDIT", "units": "250000"}}
    ],
    "provider_share_ppm": 350_000,
    "effective_from": "2026-11-20T08:30:00Z",
    "split": {"shares": SHARES, "residual": "burn"},
    "notice_seconds": 86_400,
}


def held_back(who: Caller, account_id: str) -> int:
    return int(who.read(f"/v1/accounts/{account_id}/maturity")["held_back"]["units"])


def test_a_client_registers_leases_earns_its_share_and_reads_it_with_its_own_keys(
    scene: Scene,
) -> None:
    clock: Any = scene.clock
    scene.operator.made("/v1/tariffs", TARIFF)
    account = scene.account(kind="client")
    client_id = account.account_id
    unregistered = account.post(f"/v1/clients/{client_id}/instances/eu/keys")
    assert unregistered.status_code == 404, "the operator registers it first"
    scene.operator.made("/v1/clients", {"client_id": client_id})
    eu, us = scene.instance(account, "eu"), scene.instance(account, "us")
    scene.deposit(account, 10_000_000)
    before = held_back(account, client_id)
    now_us = clock.move_to(NOW_US + 30 * 60_000_000)
    assert now_us < NOW_US + HOUR_US
    lease = scene.lease(eu, job=scene.job(project_id="p", end_user_ref="user-7"))
    scene.provider.node.made(f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready")
    clock.move_to(now_us + HOUR_US)
    body = reported(scene.provider, lease, first=30, minutes=60)
    assert send(scene, scene.provider, body).status_code == 200
    eu.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    # 2.00 for the hour: 0.25 is the fee, and 10 % of the other 1.75 is the client's.
    told = scene.operator.read(f"/v1/leases/{lease['lease_id']}")
    assert told["charge"]["units"] == "2000000"
    assert before == 0
    for key in (account, eu, us):
        assert held_back(key, client_id) == 175_000
    (earned,) = eu.read("/v1/earnings", by="lease_id")["data"]
    assert (earned["lease_id"], earned["earned"]["units"]) == (lease["lease_id"], "175000")
    others = f"/v1/accounts/{scene.owner.account_id}/maturity"
    assert eu.get(others).status_code == 404, "and nobody else's"
    assert held_back(scene.owner, scene.owner.account_id) == 612_500, "35 % is the provider's"
    keys = account.read(f"/v1/clients/{client_id}")["keys"]
    assert {one["instance_id"] for one in keys} == {"eu", "us"}
    path = f"/v1/clients/{client_id}/keys/"
    (gone,) = [one["key_id"] for one in keys if one["instance_id"] == "us"]
    revoked = account.delete(path + gone)
    assert revoked.status_code == 200, revoked.text
    head = scene.head()
    assert us.get(f"/v1/accounts/{client_id}/maturity").status_code == 401
    assert us.post("/v1/leases", {"job": scene.job()}).status_code == 401
    assert scene.head() == head, "nothing is recorded of what was refused"
    assert held_back(eu, client_id) == 175_000, "the other instance goes on"
    assert scene.lease(eu)["state"] == "reserved"
