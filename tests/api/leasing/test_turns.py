"""The turns of a lease over HTTP, and by the timer that watches it."""

from __future__ import annotations

from typing import Any

from api.door.moments import moment
from api.leasing.watch_timer import run_watch
from api.metering.accrual import due_leases
from domain.duration import HOUR_US, MINUTE_US
from domain.lease.lease import DEGRADED_AFTER_US, DEGRADED_LIMIT_US
from domain.money import Asset
from projections import tables
from tests.scenes.server import Scene
from tests.scenes.work import accrue_now, hours_of_work, reported, run, send

WINDOW_S = 3_600


def credits_of(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def interruptible(scene: Scene, **asked: Any) -> dict[str, Any]:
    """A running lease that may be paused, with an hour's notice of a reclaim."""
    for provider in (scene.provider, scene.other):
        provider.owner.made(f"/v1/offers/{provider.offer_id}/withdraw")
    provider = scene.provider
    provider.owner.made(
        "/v1/offers",
        {
            "provider_id": provider.provider_id,
            "node_id": provider.node_id,
            "settlement": "cash",
            "price_per_gpu_hour": credits_of(3_600_000),
            "fractions": True,
            "terms": {"interruptible": True, "reclaim_window_seconds": WINDOW_S},
        },
    )
    job = scene.job(constraints={"interruptible": True})
    return scene.running(**{"job": job, "funds": credits_of(7_200_000), **asked})


def watch(scene: Scene) -> int:
    with scene.service.connect() as connection:
        return run_watch(scene.service, connection, scene.clock.now_us())


def due(scene: Scene) -> list[str]:
    """What the accrual job lists now."""
    now_us = scene.clock.now_us()
    with scene.service.connect() as connection:
        tables.step_all(connection, only=("leases",))
        return list(due_leases(connection, now_us))


def test_a_dispute_moves_a_settled_lease_and_its_ruling_moves_it_on(scene: Scene) -> None:
    (lease,) = hours_of_work(scene)
    path = f"/v1/leases/{lease['lease_id']}"
    line = scene.renter.read(f"{path}/charges")["data"][0]["position"]
    dispute = scene.renter.made(
        "/v1/disputes",
        {"lease_id": lease["lease_id"], "lines": [{"position": line}], "claim_code": "not_running"},
    )
    assert state(scene, path) == "disputed"
    ruling = {"outcome": "rejected"}
    scene.operator.made(f"/v1/disputes/{dispute['dispute_id']}/rule", ruling)
    assert state(scene, path) == "resolved"
    types = [one["type"] for one in scene.renter.read(f"{path}/events")["data"]]
    assert types[-2:] == ["lease.disputed.v1", "lease.resolved.v1"]


def state(scene: Scene, path: str) -> str:
    return str(scene.renter.read(path)["state"])


def pass_time(scene: Scene, us: int) -> None:
    clock: Any = scene.clock
    clock.advance(us)


def test_a_lease_is_paused_and_resumed_and_pays_for_what_it_ran(scene: Scene) -> None:
    lease = interruptible(scene)
    path = f"/v1/leases/{lease['lease_id']}"
    run(scene, lease, minutes=10)
    told = scene.renter.made(f"{path}/pause")
    assert (told["state"], "funds_end_at" in told) == ("paused", False)
    assert scene.renter.read(path)["paused_at"] == told["paused_at"]
    assignments = scene.provider.node.read(f"/v1/nodes/{lease['node_id']}/assignments")["data"]
    assert [one["state"] for one in assignments] == ["paused"]
    pass_time(scene, 50 * MINUTE_US)
    assert scene.renter.made(f"{path}/resume")["state"] == "active"
    run(scene, lease, minutes=10, first=60)
    scene.renter.made(f"{path}/close")
    accrue_now(scene, lease["lease_id"])
    assert scene.renter.read(path)["charge"] == credits_of(1_200_000), "20 of 70 minutes"
    assert scene.service.ledger.books.faults() == []


def test_who_is_not_a_party_takes_no_turn_and_each_party_only_its_own(scene: Scene) -> None:
    lease = interruptible(scene)
    path, head = f"/v1/leases/{lease['lease_id']}", scene.head()

    def told(answer: Any) -> tuple[int, str]:
        return answer.status_code, answer.json()["code"]

    for turn in ("pause", "reclaim"):
        for caller in (scene.stranger, scene.rival):
            assert told(caller.post(f"{path}/{turn}", {})) == (404, "lease_unknown")
    assert told(scene.provider.owner.post(f"{path}/pause", {})) == (404, "lease_unknown")
    assert told(scene.renter.post(f"{path}/reclaim", {})) == (404, "lease_unknown")
    assert state(scene, path) == "active"
    assert scene.head() == head, "and nothing was recorded"


def test_a_provider_closes_after_the_hour_it_quoted_and_not_a_second_before(scene: Scene) -> None:
    lease = interruptible(scene)
    path, owner = f"/v1/leases/{lease['lease_id']}", scene.provider.owner
    assert scene.renter.read(path)["reclaim_window_seconds"] == WINDOW_S
    early = owner.post(f"{path}/close", {"code": 10_001})
    assert (early.status_code, early.json()["code"]) == (409, "lease_not_due")
    told = owner.made(f"{path}/reclaim", {"code": 10_001})
    assert told["state"] == "reclaiming"
    pass_time(scene, WINDOW_S * 1_000_000 - 1_000_000)
    early = owner.post(f"{path}/close", {"code": 2})
    assert (early.status_code, early.json()["code"]) == (409, "lease_not_due")
    pass_time(scene, 1_000_000)
    assert owner.made(f"{path}/close", {"code": 2})["close_code"] == 2


def test_a_reclaim_is_called_off(scene: Scene) -> None:
    lease = interruptible(scene)
    path, owner = f"/v1/leases/{lease['lease_id']}", scene.provider.owner
    owner.made(f"{path}/reclaim")
    assert owner.made(f"{path}/reclaim/cancel")["state"] == "active"


def test_a_fixed_term_is_extended_and_the_whole_of_it_is_held(scene: Scene) -> None:
    lease = scene.running(term_seconds=600)
    path = f"/v1/leases/{lease['lease_id']}"
    before = scene.renter.read(path)
    told = scene.renter.made(f"{path}/extend", {"seconds": 600})
    after = scene.renter.read(path)
    assert before["term_end_at"] < after["term_end_at"] == told["term_end_at"]
    assert int(after["escrow"]["units"]) == 2 * int(before["escrow"]["units"])
    as_of = scene.renter.read(f"{path}?as_of_position={before['position']}")
    assert as_of["term_end_at"] == before["term_end_at"]


def test_a_quote_is_accepted_while_it_lasts(scene: Scene) -> None:
    asked = {"job": scene.job(), "valid_seconds": 60}
    told = scene.renter.made("/v1/lease-quotes", asked)
    path = f"/v1/leases/{told['lease_id']}"
    assert scene.renter.read(path)["state"] == told["state"] == "quoted"
    reserved = scene.renter.made(f"{path}/accept", {"quote_id": told["quote_id"]})
    assert reserved["state"] == "reserved"
    assert reserved["price_per_gpu_hour"] == told["price_per_gpu_hour"]
    late = scene.renter.made("/v1/lease-quotes", asked)
    pass_time(scene, 61_000_000)
    path = f"/v1/leases/{late['lease_id']}"
    refused = scene.renter.post(f"{path}/accept", {"quote_id": late["quote_id"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "lease_state")
    assert due(scene) == [late["lease_id"]], "the first one waits for its node"
    accrue_now(scene, late["lease_id"])
    assert due(scene) == []
    ended = scene.renter.read(path)
    assert (ended["state"], ended["close_code"]) == ("settled", 6)


# --- the timer -----------------------------------------------------------------------------------


def test_silence_degrades_reports_recover_and_half_an_hour_ends_it(scene: Scene) -> None:
    lease = interruptible(scene, funds=credits_of(36_000_000))
    path = f"/v1/leases/{lease['lease_id']}"
    run(scene, lease, minutes=10)
    pass_time(scene, DEGRADED_AFTER_US - 1_000_000)
    assert watch(scene) == 0
    pass_time(scene, 1_000_000)
    assert watch(scene) == 1
    assert state(scene, path) == "degraded"
    assert watch(scene) == 0, "once is enough"
    pass_time(scene, 2 * MINUTE_US)
    sent = send(scene, scene.provider, reported(scene.provider, lease, first=14, minutes=1))
    assert sent.status_code == 200
    assert watch(scene) == 1
    assert state(scene, path) == "active"
    pass_time(scene, DEGRADED_LIMIT_US + HOUR_US)
    assert watch(scene) == 1
    assert due(scene) == [lease["lease_id"]]
    accrue_now(scene, lease["lease_id"])
    ended = scene.renter.read(path)
    assert (ended["state"], ended["close_code"]) == ("closing", 10_004)
    pass_time(scene, 25 * HOUR_US)
    accrue_now(scene, lease["lease_id"])
    assert scene.renter.read(path)["charge"] == credits_of(660_000), "eleven minutes were proven"


def test_reports_that_come_late_say_that_the_path_failed_and_not_the_node(scene: Scene) -> None:
    lease = interruptible(scene)
    path = f"/v1/leases/{lease['lease_id']}"
    run(scene, lease, minutes=10)
    pass_time(scene, 31 * MINUTE_US)
    assert watch(scene) == 1
    accrue_now(scene, lease["lease_id"])
    assert scene.renter.read(path)["close_code"] == 10_004
    assert watch(scene) == 0
    late = reported(scene.provider, lease, first=10, minutes=30)
    assert send(scene, scene.provider, late).status_code == 200
    assert watch(scene) == 1
    ended = scene.renter.read(path)
    assert (ended["close_code"], ended["revised_close_code"]) == (10_004, 20_004)
    accrue_now(scene, lease["lease_id"])
    assert scene.renter.read(path)["charge"] == credits_of(2_400_000), "and it is paid for"


def test_funds_that_end_are_warned_of_once(scene: Scene) -> None:
    lease = interruptible(scene)
    path = f"/v1/leases/{lease['lease_id']}"
    run(scene, lease, minutes=61)
    assert watch(scene) == 1
    assert watch(scene) == 0
    events = scene.renter.read(f"{path}/events")["data"]
    assert events[-1]["type"] == "lease.funds_end_warned.v1"


def test_v_8_a_backend_is_upgraded_while_its_lease_is_kept(scene: Scene) -> None:
    """Announced with its leases kept: two silent hours, and it goes on; unannounced it ends."""
    lease = interruptible(scene, funds=credits_of(36_000_000))
    path, node = f"/v1/leases/{lease['lease_id']}", f"/v1/nodes/{scene.provider.node_id}"
    run(scene, lease, minutes=10)
    from_us = scene.clock.now_us() + MINUTE_US
    span = {"from": moment(from_us), "until": moment(from_us + 2 * HOUR_US)}
    scene.owner.made(f"{node}/maintenances", {"kind": "planned", "keep_leases": True, **span})
    drained = scene.owner.made(f"{node}/drain", {"keep_leases": True})
    assert (drained["phase"], state(scene, path)) == ("draining", "active")
    refused = scene.renter.post("/v1/leases", {"job": scene.job()})
    assert (refused.status_code, refused.json()["code"]) == (409, "no_match"), "no new lease"
    pass_time(scene, DEGRADED_AFTER_US)
    assert watch(scene) == 1
    assert state(scene, path) == "degraded"
    pass_time(scene, MINUTE_US + 2 * HOUR_US - DEGRADED_AFTER_US)
    watch(scene)
    accrue_now(scene, lease["lease_id"])
    assert state(scene, path) == "degraded", "it is not ended"
    sent = send(scene, scene.provider, reported(scene.provider, lease, first=131, minutes=1))
    assert sent.status_code == 200, sent.text
    pass_time(scene, MINUTE_US)
    assert watch(scene) == 1
    assert state(scene, path) == "active"
    assert scene.owner.made(f"{node}/activate")["phase"] == "active"
    assert scene.lease()["node_id"] == scene.provider.node_id
    # The next silence was not announced.
    pass_time(scene, DEGRADED_LIMIT_US + HOUR_US)
    watch(scene)
    accrue_now(scene, lease["lease_id"])
    assert scene.renter.read(path)["close_code"] == 10_004


# --- the life of a lease -------------------------------------------------------------------------


def money_of(steps: list[dict[str, Any]], account: str) -> int:
    return sum(
        int(line["units"])
        for step in steps
        for line in step["money"]
        if line["account"] == account and line["asset"] == Asset.CREDIT.value
    )


def test_a_lease_is_followed_from_its_request_to_its_archive_with_cause_and_money(
    scene: Scene,
) -> None:
    lease = interruptible(scene)
    path = f"/v1/leases/{lease['lease_id']}"
    run(scene, lease, minutes=10)
    scene.renter.made(f"{path}/pause")
    scene.renter.made(f"{path}/resume")
    scene.provider.owner.made(f"{path}/reclaim", {"code": 10_001})
    run(scene, lease, minutes=50, first=10)
    scene.provider.owner.post(f"{path}/close", {"code": 2})
    scene.renter.made(f"{path}/close")
    accrue_now(scene, lease["lease_id"])
    steps = scene.operator.read(f"{path}/events")["data"]
    told = [(step["type"].split(".")[1], step["state"], step["party"]) for step in steps]
    assert told == [
        ("requested", "requested", "renter"),
        ("match_decided", "requested", "matcher"),
        ("reserved", "reserved", "matcher"),
        ("ready", "reserved", "node"),
        ("opened", "active", "node"),
        ("paused", "paused", "renter"),
        ("resumed", "active", "renter"),
        ("reclaim_started", "reclaiming", "provider"),
        ("closed", "closing", "renter"),
        ("usage_accrued", "closing", "timer"),
        ("settled", "settled", "timer"),
    ]
    befores = [step.get("state_before") for step in steps]
    assert befores == [None, *(step["state"] for step in steps[:-1])]
    closed = next(step for step in steps if step["type"] == "lease.closed.v1")
    assert (closed["code"], closed["reason"], closed["fault"]) == (1, "renter_closed", "none")
    assert all(sum(int(line["units"]) for line in step["money"]) == 0 for step in steps)
    escrow = f"escrow:{lease['lease_id']}:1:cash"
    assert money_of(steps, escrow) == 0, "what went in came out"
    paid = int(scene.renter.read(path)["charge"]["units"])
    assert money_of(steps, f"party:{scene.renter.account_id}:cash") == paid == 3_600_000
    seen = scene.renter.read(f"{path}/events")["data"]
    names = {line["account"] for step in seen for line in step["money"]}
    assert not any(scene.provider.owner.account_id in name for name in names)
    assert "party:*:holdback" in names
    page = scene.renter.read(f"{path}/events?limit=4")
    rest = scene.renter.read(f"{path}/events?limit=20&cursor={page['next_cursor']}")
    assert [*page["data"], *rest["data"]] == seen
