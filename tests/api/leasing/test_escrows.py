"""One escrow for all leases of a job, over HTTP: they draw on it together and end together."""

from __future__ import annotations

from typing import Any

from api.jobs.plan_timer import run_plans
from api.leasing.watch_timer import run_watch
from tests.scenes.server import HOUR_US, Scene
from tests.scenes.work import MINUTE_US, accrue_now, run


def credits_of(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def funded_job(scene: Scene, units: int, **changes: Any) -> str:
    """A job for one device of the first provider's model, 2 credits an hour, with an escrow."""
    asked = scene.job(models=["NVIDIA A100-PCIE-80GB"], **changes)
    job_id = str(scene.renter.made("/v1/jobs", asked)["job_id"])
    told = scene.renter.made(f"/v1/jobs/{job_id}/escrow", {"amount": credits_of(units)})
    assert (told["held"], told["put_in"], told["leases"]) == (
        credits_of(units),
        credits_of(units),
        [],
    )
    return job_id


def started(scene: Scene, job_id: str) -> dict[str, Any]:
    lease = scene.renter.made("/v1/leases", {"job_id": job_id})
    assert lease["held"] == credits_of(0), "it holds nothing of its own"
    scene.provider.node.made(f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready")
    return lease


def cash(scene: Scene) -> int:
    rows = scene.renter.read(f"/v1/accounts/{scene.renter.account_id}/balances")["data"]
    return next(int(row["balance"]["units"]) for row in rows if row["part"] == "cash")


def read(scene: Scene, lease: dict[str, Any]) -> dict[str, Any]:
    return scene.renter.read(f"/v1/leases/{lease['lease_id']}")


def test_two_leases_on_one_escrow_end_at_the_same_second_and_pay_their_own_parts(
    scene: Scene,
) -> None:
    """6 credits, 2 an hour each: an hour and a half, 3 and 3. A timer that comes two hours late
    closes both there.
    """
    job_id = funded_job(scene, 6_000_000)
    assert cash(scene) == 94_000_000
    leases = [started(scene, job_id), started(scene, job_id)]
    ends = {read(scene, one)["funds_end_at"] for one in leases}
    escrow = scene.renter.read(f"/v1/jobs/{job_id}/escrow")
    assert ends == {escrow["funds_end_at"]}
    assert [one["phase"] for one in escrow["leases"]] == ["running", "running"]
    run(scene, *leases, minutes=120)
    scene.clock.advance(2 * HOUR_US)  # type: ignore[attr-defined]
    for one in leases:
        accrue_now(scene, one["lease_id"])
    for one in leases:
        told = read(scene, one)
        assert (told["state"], told["close_code"], told["closed_at"]) == ("settled", 100, *ends)
        assert told["charge"] == credits_of(3_000_000)
    after = scene.renter.read(f"/v1/jobs/{job_id}/escrow")
    assert (after["held"], after["leases"]) == (credits_of(0), [])
    assert scene.service.ledger.books.faults() == []


def test_the_end_is_told_anew_when_a_lease_joins_or_leaves_or_somebody_tops_up(
    scene: Scene,
) -> None:
    """S-L15: the account that paid some of it is told of its own deposits alone."""
    job_id = funded_job(scene, 12_000_000)
    first = started(scene, job_id)
    alone = read(scene, first)["funds_end_at"]
    second = started(scene, job_id)
    both = read(scene, first)["funds_end_at"]
    assert both == read(scene, second)["funds_end_at"] < alone
    scene.deposit(scene.stranger, 4_000_000)
    path = f"/v1/jobs/{job_id}/escrow"
    told = scene.stranger.made(path, {"amount": credits_of(4_000_000)})
    owners = scene.renter.read(path)
    assert [one["account_id"] for one in owners["deposits"]] == [
        scene.renter.account_id,
        scene.stranger.account_id,
    ]
    assert both < read(scene, second)["funds_end_at"] == owners["funds_end_at"]
    for theirs in (told, scene.stranger.read(path)):
        assert theirs.keys() & {"put_in", "funds_end_at"} == set(), "S-L15"
        assert [one["account_id"] for one in theirs["deposits"]] == [scene.stranger.account_id]
        assert (theirs["held"], theirs["leases"]) == (credits_of(4_000_000), [])
    top_up = scene.renter.made(
        f"/v1/leases/{second['lease_id']}/top-up", {"amount": credits_of(4_000_000)}
    )
    assert top_up["funds_end_at"] == read(scene, first)["funds_end_at"] > owners["funds_end_at"]
    run(scene, first, second, minutes=60)
    scene.renter.made(f"/v1/leases/{second['lease_id']}/close")
    accrue_now(scene, second["lease_id"])
    assert read(scene, second)["charge"] == credits_of(2_000_000)
    left = scene.renter.read(path)
    assert left["funds_end_at"] == read(scene, first)["funds_end_at"] > top_up["funds_end_at"]
    early = scene.renter.post(f"{path}/withdraw", {})
    assert (early.status_code, early.json()["code"]) == (409, "job_state")
    scene.renter.made(f"/v1/jobs/{job_id}/cancel")
    scene.renter.made(f"/v1/leases/{first['lease_id']}/close")
    accrue_now(scene, first["lease_id"])
    assert scene.renter.read(path)["held"] == credits_of(0), "the job is over: the rest went back"
    assert cash(scene) == 100_000_000 - 4_000_000, "the first deposits paid, in their order"
    rows = scene.stranger.read(f"/v1/accounts/{scene.stranger.account_id}/balances")["data"]
    assert [row["balance"] for row in rows if row["part"] == "cash"] == [credits_of(4_000_000)]
    assert scene.service.ledger.books.faults() == []


def test_the_end_of_a_shared_escrow_is_warned_of_for_each_of_its_leases(scene: Scene) -> None:
    job_id = funded_job(scene, 6_000_000)
    leases = [started(scene, job_id), started(scene, job_id)]
    for minutes, count in ((45, 2), (36, 4)):  # 1 h and 10 min ahead of minute 90
        scene.clock.advance(minutes * MINUTE_US)  # type: ignore[attr-defined]
        with scene.service.connect() as connection:
            run_watch(scene.service, connection, scene.clock.now_us())
        warned = [
            event
            for lease in leases
            for event in scene.renter.read(f"/v1/leases/{lease['lease_id']}/events")["data"]
            if event["type"] == "lease.funds_end_warned.v1"
        ]
        assert len(warned) == count


def test_members_of_an_elastic_job_and_of_a_gang_draw_on_the_escrow_of_their_job(
    scene: Scene,
) -> None:
    job_id = funded_job(scene, 8_000_000, plan={"min_members": 2, "max_members": 2})
    with scene.service.connect() as connection:
        run_plans(scene.service, connection, scene.clock.now_us())
    escrow = scene.renter.read(f"/v1/jobs/{job_id}/escrow")
    assert [one["phase"] for one in escrow["leases"]] == ["reserved", "reserved"]
    for one in escrow["leases"]:
        scene.renter.made(f"/v1/leases/{one['lease_id']}/close")
    scene.renter.made(f"/v1/jobs/{job_id}/cancel")
    assert cash(scene) == 100_000_000
    other = funded_job(scene, 4_000_000)
    scene.renter.made("/v1/gangs", {"job_id": other, "members": 2})
    members = scene.renter.read(f"/v1/jobs/{other}/escrow")["leases"]
    assert len(members) == 2
    for one in members:
        node = scene.provider.node_id
        scene.provider.node.made(f"/v1/nodes/{node}/assignments/{one['lease_id']}/ready")
    told = scene.renter.read(f"/v1/jobs/{other}/escrow")
    assert {one["phase"] for one in told["leases"]} == {"running"}
    assert {read(scene, one)["funds_end_at"] for one in members} == {told["funds_end_at"]}


def test_a_lease_that_the_escrow_cannot_carry_an_hour_is_refused_whatever_the_balance(
    scene: Scene,
) -> None:
    job_id = funded_job(scene, 3_000_000)
    started(scene, job_id)
    second = scene.renter.post("/v1/leases", {"job_id": job_id})
    assert (second.status_code, second.json()["code"]) == (402, "credit_too_low")
    own = scene.renter.made("/v1/leases", {"job_id": job_id, "funds": credits_of(2_000_000)})
    assert own["held"] == credits_of(2_000_000), "it may have an escrow of its own"
    assert "escrow_id" not in read(scene, own)


def test_an_account_is_not_closed_while_an_escrow_of_its_jobs_holds_something(scene: Scene) -> None:
    scene.deposit(scene.stranger, 1_000_000)
    job_id = scene.stranger.made("/v1/jobs", scene.job())["job_id"]
    path = f"/v1/jobs/{job_id}/escrow"
    scene.stranger.made(path, {"amount": credits_of(1_000_000)})
    close = f"/v1/accounts/{scene.stranger.account_id}/close"
    refused = scene.stranger.post(close, {})
    assert (refused.status_code, refused.json()["code"]) == (409, "account_not_empty")
    assert scene.stranger.made(f"{path}/withdraw")["held"] == credits_of(0)
