"""Top-ups, federated jobs and owners' shares over HTTP."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from domain.duration import HOUR_US
from domain.metering import report
from tests.scenes.server import NOW_US, Caller, Scene
from tests.scenes.work import accrue_now, reported, run, send


def credits_of(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def test_another_account_tops_up_a_lease_and_its_end_moves(scene: Scene) -> None:
    lease = scene.running(funds=credits_of(2_000_000))
    path = f"/v1/leases/{lease['lease_id']}"
    before = scene.renter.read(path)["funds_end_at"]
    empty = scene.stranger.post(f"{path}/top-up", {"amount": credits_of(2_000_000)})
    assert (empty.status_code, empty.json()["code"]) == (402, "credit_too_low")
    scene.deposit(scene.stranger, 30_000_000)
    told = scene.stranger.made(f"{path}/top-up", {"amount": credits_of(2_000_000)})
    assert told["deposited"] == credits_of(2_000_000)
    after = scene.renter.read(path)
    assert before < after["funds_end_at"]
    assert "funds_end_at" not in told, "S-L15: a stranger does not read the lease by paying into it"
    assert after["escrow"] == credits_of(4_000_000)
    scene.renter.made(f"{path}/close")
    balances = scene.stranger.read(f"/v1/accounts/{scene.stranger.account_id}/balances")
    cash = next(row for row in balances["data"] if row["part"] == "cash")
    assert cash["balance"] == credits_of(30_000_000)
    late = scene.stranger.post(f"{path}/top-up", {"amount": credits_of(1)})
    assert (late.status_code, late.json()["code"]) == (409, "lease_state")


def test_an_account_is_not_closed_while_a_lease_holds_its_credits_or_owes_it_a_part(
    scene: Scene,
) -> None:
    """Its rest would go back to an account that nobody can open any more."""
    lease = scene.running(funds=credits_of(2_000_000))
    path = f"/v1/leases/{lease['lease_id']}"
    scene.deposit(scene.stranger, 2_000_000)
    scene.stranger.made(f"{path}/top-up", {"amount": credits_of(2_000_000)})
    close = f"/v1/accounts/{scene.stranger.account_id}/close"
    refused = scene.stranger.post(close, {})
    assert (refused.status_code, refused.json()["code"]) == (409, "account_not_empty")
    scene.renter.made(f"{path}/close")
    balances = scene.stranger.read(f"/v1/accounts/{scene.stranger.account_id}/balances")
    assert [row["balance"] for row in balances["data"] if row["part"] == "cash"] == [
        credits_of(2_000_000)
    ]


def test_a_provider_is_not_told_who_else_paid_nor_a_renter_who_shares_the_earnings(
    scene: Scene,
) -> None:
    """Amounts are for both parties; the names of others are for the one they belong to."""
    shares = [{"account_id": scene.rival.account_id, "share_ppm": 250_000}]
    scene.owner.made(f"/v1/nodes/{scene.provider.node_id}/revenue-shares", {"shares": shares})
    scene.deposit(scene.stranger, 30_000_000)
    lease = scene.running(funds=credits_of(2_000_000))
    path = f"/v1/leases/{lease['lease_id']}"
    scene.stranger.made(f"{path}/top-up", {"amount": credits_of(2_000_000)})
    run(scene, lease, minutes=120)
    accrue_now(scene, lease["lease_id"])

    def told(caller: Caller) -> tuple[set[str], set[str]]:
        rows = caller.read(f"{path}/charges")["data"]
        payers = {one.get("account_id", "") for row in rows for one in row["drawn"]}
        owners = {one["account_id"] for row in rows for one in row["owners"]}
        return payers, owners

    payers, owners = told(scene.operator)
    assert scene.stranger.account_id in payers
    assert scene.rival.account_id in owners
    assert told(scene.renter) == (payers, set())
    assert told(scene.owner) == ({""}, owners)


def test_an_account_takes_part_in_a_federated_job_and_the_creator_holds_the_fee(
    scene: Scene,
) -> None:
    """C-21 over HTTP."""
    scene.deposit(scene.owner, 10_000_000)
    job = scene.renter.made(
        "/v1/jobs", scene.job(federated="training", participants=[scene.owner.account_id])
    )
    assert scene.stranger.post("/v1/leases", {"job_id": job["job_id"]}).status_code == 404
    opened = scene.owner.made(
        "/v1/leases", {"job_id": job["job_id"], "term_seconds": 3600, "project_id": "home"}
    )
    lease = scene.owner.read(f"/v1/leases/{opened['lease_id']}")
    assert lease["node_id"] == scene.provider.node_id
    assert lease["project_id"] == "home"
    assert lease["federated_account_id"] == scene.renter.account_id
    assert lease["federated_fee_per_hour"] == credits_of(2_650_000)
    assert lease["escrow"] == credits_of(2_650_000 + 250_000)
    alone = scene.renter.post("/v1/jobs", scene.job(federated="training"))
    assert (alone.status_code, alone.json()["code"]) == (422, "invalid")


@pytest.mark.parametrize(
    ("model", "fee"),
    [
        ("NVIDIA GeForce RTX 3090", 50_000),
        ("NVIDIA RTX A6000", 100_000),
        ("NVIDIA A100-SXM4-80GB", 250_000),
    ],
)
def test_c_20_own_hardware_costs_the_fee_of_its_class_an_hour_and_gpu(
    scene: Scene, model: str, fee: int
) -> None:
    """Charged to the account of the project, and nobody earns by it."""
    scene.deposit(scene.owner, 10_000_000)
    own = copy.copy(scene.provider)
    own.join(scene, "own", model, 4_000_000)
    job = scene.job(models=[model], gpu_count=2, project_id="lab")
    lease = scene.lease(scene.owner, job=job, funds=credits_of(2_000_000))
    assert (lease["node_id"], len(lease["device_ids"])) == (own.node_id, 2)
    own.node.made(f"/v1/nodes/{own.node_id}/assignments/{lease['lease_id']}/ready")
    clock: Any = scene.clock
    clock.advance(2 * HOUR_US)
    both = tuple(
        report.Row(
            device=device,
            lease=0,
            driver_epoch=1,
            mono_start_us=hour * HOUR_US,
            len_us=HOUR_US,
            wall_minus_mono_us=NOW_US,
            available_us=HOUR_US,
            unavailable_us=0,
            unknown_us=0,
            samples=60,
        )
        for hour in range(2)
        for device in range(2)
    )
    sent = send(scene, own, reported(own, lease, minutes=120, rows=both))
    assert sent.status_code == 200, sent.text
    scene.owner.made(f"/v1/leases/{lease['lease_id']}/close")
    for _ in range(2):  # an hour at a time
        accrue_now(scene, lease["lease_id"])
    told = scene.owner.read(f"/v1/leases/{lease['lease_id']}")
    assert told["charge"] == credits_of(2 * 2 * fee)
    lines = scene.owner.read(f"/v1/accounts/{scene.owner.account_id}/statements", kind="usage")
    assert {one["project_id"] for one in lines["lines"]} == {"lab"}
    assert sum(int(one["movement"]["units"]) for one in lines["lines"]) == -4 * fee
    for row in scene.owner.read(f"/v1/leases/{lease['lease_id']}/charges")["data"]:
        assert (row["provider"], row["fee"]) == (credits_of(0), row["charge"])


def test_a_provider_shares_the_revenue_of_a_node_with_its_owners(scene: Scene) -> None:
    """K-1 over HTTP."""
    path = f"/v1/nodes/{scene.provider.node_id}/revenue-shares"
    shares = [{"account_id": scene.stranger.account_id, "share_ppm": 800_000}]
    told = scene.owner.made(path, {"shares": shares})
    assert (told["shares"], told["provider_ppm"]) == (shares, 200_000)
    assert scene.owner.read(path)["shares"] == shares
    for other in (scene.rival, scene.stranger):
        assert other.post(path, {"shares": []}).status_code == 404
    more = [{"account_id": scene.rival.account_id, "share_ppm": 1_000_000}]
    refused = scene.owner.post(path, {"shares": [*shares, *more]})
    assert (refused.status_code, refused.json()["code"]) == (422, "share_out_of_range")


def test_a_co_owner_leaves_by_itself_and_nobody_else_for_it(scene: Scene) -> None:
    """Economics M8: only the provider could end a share, under whatever terms it had set."""
    path = f"/v1/nodes/{scene.provider.node_id}/revenue-shares"
    shares = [
        {"account_id": one.account_id, "share_ppm": 300_000} for one in (scene.rival, scene.renter)
    ]
    scene.owner.made(path, {"shares": shares})
    refused = scene.stranger.post(f"{path}/release", {})
    assert (refused.status_code, refused.json()["code"]) == (404, "node_unknown")
    assert scene.rival.made(f"{path}/release", {})["node_id"] == scene.provider.node_id
    told = scene.owner.read(path)
    assert (told["shares"], told["provider_ppm"]) == (shares[1:], 700_000)
    assert scene.rival.post(f"{path}/release", {}).status_code == 404
