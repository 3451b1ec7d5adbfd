"""Pools, queues and gangs as a stranger uses them over HTTP, and the job that places who waits."""

from __future__ import annotations

from typing import Any

import pytest

from api.metering.accrual import due_leases, run_accrual
from api.pools.scheduling import _record, look, run_schedule
from domain.pools.queue import ScheduleDecided, inputs_of
from domain.pools.reasons import PoolsReason
from domain.pools.scheduling import next_request
from domain.refusal import Refused
from domain.stream import Stream
from projections import tables
from tests.scenes.server import Caller, Provider, Scene
from tests.scenes.shell import tallystick_at

MINUTE_US = 60_000_000
FUNDS = {"asset": "CREDIT", "units": "8000000"}


def pool(scene: Scene, *providers: Provider, **policy: Any) -> str:
    """A pool of the operator with the nodes of these providers."""
    told = scene.operator.made("/v1/pools", {"name": "research", "policy": policy})
    pool_id = str(told["pool_id"])
    for provider in providers:
        node = {"node_id": provider.node_id}
        provider.owner.made(f"/v1/pools/{pool_id}/nodes", node)
    return pool_id


def job(scene: Scene, pool_id: str | None, gpus: int = 1, **changes: Any) -> dict[str, Any]:
    constraints = {} if pool_id is None else {"constraints": {"pool_id": pool_id}}
    return scene.job(gpu_count=gpus, **constraints, **changes)


def ask(scene: Scene, pool_id: str, gpus: int = 1, by: Caller | None = None) -> dict[str, Any]:
    body = {"job": job(scene, pool_id, gpus)}
    return (by or scene.renter).made("/v1/leases", body)


def run(scene: Scene) -> int:
    with scene.service.connect() as connection:
        return run_schedule(scene.service, connection, scene.clock.now_us())


def state(scene: Scene, lease_id: str) -> str:
    return str(scene.operator.read(f"/v1/leases/{lease_id}")["state"])


def decisions(scene: Scene, pool_id: str) -> list[ScheduleDecided]:
    facts = scene.service.ledger.market.read_stream(Stream("pool_queue", pool_id))
    return [one.fact for one in facts if isinstance(one.fact, ScheduleDecided)]


# Pools.


def test_nodes_of_several_providers_and_kinds_are_one_pool(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider, scene.other)
    told = scene.anybody.read(f"/v1/pools/{pool_id}")
    assert [one["model"] for one in told["accelerators"]] == [
        "NVIDIA A100-PCIE-80GB",
        "NVIDIA H100 PCIe",
    ]
    assert {one["devices"] for one in told["accelerators"]} == {2}
    nodes = scene.anybody.read(f"/v1/pools/{pool_id}/nodes")["data"]
    assert [one["node_id"] for one in nodes] == [scene.provider.node_id, scene.other.node_id]
    assert scene.anybody.read("/v1/pools")["data"][0]["nodes"] == 2


def test_a_node_is_in_one_pool_at_most_and_only_its_provider_puts_it_there(scene: Scene) -> None:
    pool_id, other = pool(scene, scene.provider), pool(scene)
    node = {"node_id": scene.provider.node_id}
    taken = scene.owner.post(f"/v1/pools/{other}/nodes", node)
    assert (taken.status_code, taken.json()["code"]) == (409, "node_pooled")
    stranger = scene.rival.post(f"/v1/pools/{other}/nodes", node)
    assert stranger.json()["code"] == "node_unknown"
    removed = scene.operator.made(f"/v1/pools/{pool_id}/nodes/{scene.provider.node_id}/remove")
    assert removed["is_in"] is False
    assert scene.owner.made(f"/v1/pools/{other}/nodes", node)["is_in"] is True


def test_a_pool_closed_to_others_takes_its_owner_s_nodes_only(scene: Scene) -> None:
    told = scene.owner.made("/v1/pools", {"name": "mine", "policy": {"open_to_providers": False}})
    path = f"/v1/pools/{told['pool_id']}/nodes"
    refused = scene.rival.post(path, {"node_id": scene.other.node_id})
    assert refused.json()["code"] == "not_permitted"
    assert scene.owner.made(path, {"node_id": scene.provider.node_id})["is_in"] is True


def test_a_policy_has_versions_and_only_its_owner_or_an_operator_sets_it(scene: Scene) -> None:
    told = scene.owner.made("/v1/pools", {"name": "mine"})
    path = f"/v1/pools/{told['pool_id']}/policy"
    assert scene.rival.post(path, {"scheduler": "drf"}).json()["code"] == "pool_unknown"
    assert scene.owner.made(path, {"scheduler": "drf"})["version"] == 2
    assert scene.operator.made(path, {"scheduler": "drf"})["version"] == 2, "nothing changed"
    broken = {"scheduler": "drf", "precedence": ["arrival", "share"]}
    refused = scene.owner.post(path, broken).json()
    assert (refused["code"], refused["facts"]["field"]) == ("pool_policy_invalid", "precedence")
    assert scene.anybody.read(f"/v1/pools/{told['pool_id']}")["policy"]["scheduler"] == "drf"


def test_r_9_a_pool_that_ranks_by_score_places_by_reputation(scene: Scene) -> None:
    """The pool's `rank` was kept and told, and decided nothing."""
    pool_id = pool(scene, scene.provider, scene.other, scheduler="immediate")

    def matched(**demands: Any) -> dict[str, Any]:
        asked = job(scene, pool_id)
        asked["constraints"] |= demands
        told = scene.renter.made("/v1/leases", {"job": asked})
        found = scene.renter.read(f"/v1/jobs/{told['job_id']}/explain")["matches"]
        match: dict[str, Any] = found[0]
        assert (match["recomputed"], match["differences"]) == (True, [])
        return match

    assert matched()["rule"] == "lowest_cost/2", "a pool ranks by cost unless it says otherwise"
    path = f"/v1/pools/{pool_id}/policy"
    scene.operator.made(path, {"scheduler": "immediate", "rank": "best_score"})
    by_score = matched()
    assert (by_score["rule"], by_score["weights"]) == (
        "best_score/1",
        {**dict.fromkeys(by_score["weights"], 0), "reputation": 1_000_000},
    )
    assert [one["score_ppm"] for one in by_score["candidates"]] == [500_000] * 2, "both are new"
    assert matched(rank="lowest_cost")["rule"] == "lowest_cost/2", "the job's own word counts"


# Queues.


def test_who_cannot_be_placed_now_waits_and_gets_its_turn_when_there_is_room(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    first = ask(scene, pool_id, gpus=2)
    assert first["state"] == "reserved"
    second = ask(scene, pool_id)
    assert (second["state"], second["waits_for"]) == ("requested", pool_id)
    assert "node_id" not in second
    queue = scene.renter.read(f"/v1/pools/{pool_id}/queue")["data"]
    assert [(one["request_id"], one["place"]) for one in queue] == [(second["lease_id"], 1)]
    assert run(scene) == 0
    scene.renter.made(f"/v1/leases/{first['lease_id']}/close")
    assert run(scene) == 1
    assert state(scene, second["lease_id"]) == "reserved"
    (decision,) = scene.renter.read(f"/v1/pools/{pool_id}/decisions")["data"]
    assert (decision["chosen"], decision["rule"]) == (second["lease_id"], "first_come/1")
    assert scene.renter.read(f"/v1/pools/{pool_id}/queue")["data"] == []


def test_a_pool_without_a_queue_refuses_what_it_cannot_place(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider, scheduler="immediate")
    ask(scene, pool_id, gpus=2)
    refused = scene.renter.post("/v1/leases", {"job": job(scene, pool_id)})
    assert refused.json()["code"] == "no_match"


def test_nobody_is_placed_before_those_who_wait(scene: Scene) -> None:
    """There is room for one GPU, but somebody waits for two: the newcomer joins the queue."""
    pool_id = pool(scene, scene.provider)
    ask(scene, pool_id)
    earlier = ask(scene, pool_id, gpus=2)
    later = ask(scene, pool_id)
    assert (earlier["state"], later["state"]) == ("requested", "requested")
    assert run(scene) == 1, "the later one fits and delays nobody who is patient"
    assert state(scene, later["lease_id"]) == "reserved"


def test_after_the_pool_s_patience_nobody_delays_the_earliest(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider, gang_patience_seconds=60)
    first = ask(scene, pool_id)
    earlier = ask(scene, pool_id, gpus=2)
    scene.clock.advance(2 * MINUTE_US)  # type: ignore[attr-defined]
    later = ask(scene, pool_id)
    assert run(scene) == 0, "its one free GPU is kept for the earliest"
    scene.renter.made(f"/v1/leases/{first['lease_id']}/close")
    assert run(scene) == 1
    assert state(scene, earlier["lease_id"]) == "reserved"
    assert state(scene, later["lease_id"]) == "requested"


def test_a_request_that_is_closed_while_it_waits_leaves_the_queue(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    ask(scene, pool_id, gpus=2)
    waiting = ask(scene, pool_id)
    scene.renter.made(f"/v1/leases/{waiting['lease_id']}/close")
    assert scene.renter.read(f"/v1/pools/{pool_id}/queue")["data"] == []
    assert state(scene, waiting["lease_id"]) == "settled"


def test_who_cannot_pay_when_its_turn_comes_ends_and_the_next_is_placed(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    first = ask(scene, pool_id, gpus=2)
    broke = scene.account()
    poor, rich = ask(scene, pool_id, by=broke), ask(scene, pool_id)
    scene.renter.made(f"/v1/leases/{first['lease_id']}/close")
    assert run(scene) == 1
    assert (state(scene, poor["lease_id"]), state(scene, rich["lease_id"])) == (
        "settled",
        "reserved",
    )
    assert scene.operator.read(f"/v1/leases/{poor['lease_id']}")["close_code"] == 101


def test_others_names_are_left_out_of_a_queue(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    ask(scene, pool_id, gpus=2)
    ask(scene, pool_id)
    (mine,) = scene.renter.read(f"/v1/pools/{pool_id}/queue")["data"]
    (theirs,) = scene.stranger.read(f"/v1/pools/{pool_id}/queue")["data"]
    assert mine["account_id"] == scene.renter.account_id
    assert "account_id" not in theirs


def test_dominant_resource_fairness_alternates_between_two_renters(scene: Scene) -> None:
    """One holds everything; its second request comes first, but the other has less."""
    pool_id = pool(scene, scene.provider, scheduler="drf")
    scene.deposit(scene.stranger, 50_000_000)
    held = [ask(scene, pool_id) for _ in range(2)]
    again = ask(scene, pool_id)
    other = ask(scene, pool_id, by=scene.stranger)
    scene.renter.made(f"/v1/leases/{held[0]['lease_id']}/close")
    assert run(scene) == 1
    assert state(scene, other["lease_id"]) == "reserved"
    assert state(scene, again["lease_id"]) == "requested"
    (decided,) = decisions(scene, pool_id)
    assert decided.rule == "drf/1"
    assert decided.waiting_count == 2


@pytest.mark.parametrize("scheduler", ["first_come", "fair_share", "drf"])
def test_a_recorded_decision_made_again_gives_the_same(scene: Scene, scheduler: str) -> None:
    queues = [{"name": "vip", "deserved_ppm": 1_000_000, "account_id": scene.renter.account_id}]
    pool_id = pool(scene, scene.provider, scheduler=scheduler, queues=queues, history_ppm=500_000)
    scene.deposit(scene.stranger, 50_000_000)
    held = ask(scene, pool_id, gpus=2)
    for by in (scene.stranger, scene.renter, scene.stranger, scene.renter):
        ask(scene, pool_id, by=by)
    scene.renter.made(f"/v1/leases/{held['lease_id']}/close")
    assert run(scene) == 2
    stored = scene.service.ledger.market.load(Stream("pool", pool_id)).state
    made = decisions(scene, pool_id)
    assert len(made) == 2
    for decided in made:
        assert next_request(stored.policy, inputs_of(decided)) == decided.chosen
    for row in scene.operator.read(f"/v1/pools/{pool_id}/decisions")["data"]:
        whole = scene.operator.read(f"/v1/pools/{pool_id}/decisions/{row['position']}")
        assert (whole["holds"], whole["recomputed"]) == (True, row["chosen"])
        assert whole["position"] == row["position"]
    first = made[0].chosen
    asked_by = scene.operator.read(f"/v1/leases/{first}")["account_id"]
    expected = scene.stranger if scheduler in ("first_come", "drf") else scene.renter
    assert asked_by == expected.account_id


def test_a_queue_that_moved_since_it_was_looked_at_is_looked_at_again(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    held = ask(scene, pool_id, gpus=2)
    waiting = ask(scene, pool_id)
    scene.renter.made(f"/v1/leases/{held['lease_id']}/close")
    with scene.service.connect() as connection:
        looked = look(scene.service, connection, pool_id, scene.clock.now_us())
    assert looked is not None
    ask(scene, pool_id)
    with pytest.raises(Refused) as refused:
        _record(scene.service, looked, waiting["lease_id"], scene.clock.now_us())
    assert refused.value.reason is PoolsReason.QUEUE_MOVED
    assert run(scene) == 2


# Gangs.


def gang(scene: Scene, members: int, pool_id: str | None = None, **changes: Any) -> dict[str, Any]:
    body = {"job": job(scene, pool_id), "members": members, **changes}
    return scene.renter.made("/v1/gangs", body)


def ready(scene: Scene, lease_id: str) -> dict[str, Any]:
    node_id = scene.operator.read(f"/v1/leases/{lease_id}")["node_id"]
    provider = scene.provider if node_id == scene.provider.node_id else scene.other
    return provider.node.made(f"/v1/nodes/{node_id}/assignments/{lease_id}/ready", {})


def pending(scene: Scene, lease_id: str) -> dict[str, Any]:
    """What the node of a lease is told to start."""
    node_id = scene.operator.read(f"/v1/leases/{lease_id}")["node_id"]
    told = scene.operator.read(f"/v1/nodes/{node_id}/assignments")["pending"]
    (found,) = [one for one in told if one["lease_id"] == lease_id]
    return dict(found)


def test_a_gang_over_two_nodes_starts_when_its_last_member_is_ready(scene: Scene) -> None:
    told = gang(scene, 4)
    last = pending(scene, told["lease_ids"][3])
    assert (last["waits_for_gang"], last["part"]) == (True, 3), "its program begins with the gang"
    assert (told["state"], len(told["lease_ids"])) == ("reserved", 4)
    nodes = {
        scene.operator.read(f"/v1/leases/{lease_id}")["node_id"] for lease_id in told["lease_ids"]
    }
    assert nodes == {scene.provider.node_id, scene.other.node_id}
    for lease_id in told["lease_ids"][:3]:
        waits = ready(scene, lease_id)
        assert waits["state"] == "gang_waiting"
        assert "opened_at" not in waits
    last = ready(scene, told["lease_ids"][3])
    after = scene.renter.read(f"/v1/gangs/{told['gang_id']}")
    assert (after["state"], after["ready"], after["opened_at"]) == ("open", 4, last["opened_at"])
    for lease_id in told["lease_ids"]:
        lease = scene.renter.read(f"/v1/leases/{lease_id}")
        assert (lease["state"], lease["opened_at"]) == ("active", last["opened_at"])


def test_a_gang_that_does_not_fit_leaves_no_lease_and_no_charge(scene: Scene) -> None:
    scene.lease()
    before = scene.renter.read("/v1/leases")["data"]
    refused = scene.renter.post("/v1/gangs", {"job": job(scene, None), "members": 4})
    assert refused.json()["code"] == "no_match"
    assert scene.renter.read("/v1/leases")["data"] == before


def test_a_gang_larger_than_the_fleet_is_refused_at_once_with_its_rule(scene: Scene) -> None:
    refused = scene.renter.post("/v1/gangs", {"job": job(scene, None), "members": 5}).json()
    assert refused["code"] == "gang_too_large"
    assert refused["facts"]["at_most"] == "4"
    pool_id = pool(scene, scene.provider)
    smaller = scene.renter.post("/v1/gangs", {"job": job(scene, pool_id), "members": 3}).json()
    assert (smaller["code"], smaller["facts"]["at_most"]) == ("gang_too_large", "2")


def test_a_gang_waits_in_the_queue_of_its_pool_and_holds_nothing(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    held = ask(scene, pool_id)
    told = gang(scene, 2, pool_id)
    assert (told["state"], told["place"], told["lease_ids"]) == ("requested", 1, [])
    assert run(scene) == 0
    devices = scene.anybody.read(f"/v1/pools/{pool_id}")["accelerators"][0]
    assert devices["whole_free"] == 1, "what it waits with"
    scene.renter.made(f"/v1/leases/{held['lease_id']}/close")
    assert run(scene) == 1
    after = scene.renter.read(f"/v1/gangs/{told['gang_id']}")
    assert (after["state"], len(after["lease_ids"])) == ("reserved", 2)
    (decided,) = decisions(scene, pool_id)
    assert (decided.chosen, decided.waiting[0].is_gang) == (told["gang_id"], True)


def test_two_gangs_that_want_the_same_both_complete_in_turn(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    first, second = gang(scene, 2, pool_id), gang(scene, 2, pool_id)
    assert (first["state"], second["state"]) == ("reserved", "requested")
    assert run(scene) == 0
    for lease_id in first["lease_ids"]:
        ready(scene, lease_id)
        scene.clock.advance(MINUTE_US)  # type: ignore[attr-defined]
    for lease_id in first["lease_ids"]:
        scene.renter.made(f"/v1/leases/{lease_id}/close")
    assert run(scene) == 1
    for lease_id in scene.renter.read(f"/v1/gangs/{second['gang_id']}")["lease_ids"]:
        ready(scene, lease_id)
    states = {one["state"] for one in scene.renter.read("/v1/gangs")["data"]}
    assert states == {"open"}


def test_the_timer_ends_a_gang_whose_last_member_is_late(scene: Scene) -> None:
    before = _cash(scene)
    told = gang(scene, 2, timeout_seconds=120)
    first, late = told["lease_ids"]
    ready(scene, first)
    scene.clock.advance(120_000_000 - 1)  # type: ignore[attr-defined]
    assert _due(scene) == set()
    scene.clock.advance(1)  # type: ignore[attr-defined]
    assert _due(scene) == {first, late}
    with scene.service.connect() as connection:
        run_accrual(scene.service, connection, scene.clock.now_us())
    codes = {
        lease_id: scene.renter.read(f"/v1/leases/{lease_id}")["close_code"]
        for lease_id in (first, late)
    }
    assert codes == {first: 20_003, late: 10_003}
    after = scene.renter.read(f"/v1/gangs/{told['gang_id']}")
    assert (after["state"], after["close_code"]) == ("closed", 20_003)
    assert _cash(scene) == before


def _cash(scene: Scene) -> int:
    return scene.service.ledger.world().balance(f"party:{scene.renter.account_id}:cash")


def _due(scene: Scene) -> set[str]:
    with scene.service.connect() as connection:
        tables.step_all(connection, only=("leases",))
        return set(due_leases(connection, scene.clock.now_us()))


def test_a_gang_is_cancelled_at_no_charge_before_it_opens(scene: Scene) -> None:
    told = gang(scene, 2)
    path = f"/v1/gangs/{told['gang_id']}"
    assert scene.stranger.post(f"{path}/cancel").json()["code"] == "gang_unknown"
    assert scene.stranger.get(path).status_code == 404
    assert scene.renter.made(f"{path}/cancel")["state"] == "closed"
    for lease_id in told["lease_ids"]:
        assert state(scene, lease_id) == "settled"


def test_an_open_gang_grows_to_what_it_wished_when_there_is_room(scene: Scene) -> None:
    held = scene.lease()
    told = gang(scene, 4, min_members=2)
    assert len(told["lease_ids"]) == 3
    for lease_id in told["lease_ids"]:
        ready(scene, lease_id)
    assert run(scene) == 0
    scene.renter.made(f"/v1/leases/{held['lease_id']}/close")
    assert run(scene) > 0
    after = scene.renter.read(f"/v1/gangs/{told['gang_id']}")
    assert len(after["lease_ids"]) == 4
    late = after["lease_ids"][3]
    assert "waits_for_gang" not in pending(scene, late), "billed by itself, it begins by itself"
    scene.clock.advance(MINUTE_US)  # type: ignore[attr-defined]
    assert ready(scene, late)["opened_at"] > after["opened_at"]


# From the shell.


def test_pools_and_gangs_from_the_shell(scene: Scene) -> None:
    def run_as(who: Caller, *words: object) -> Any:
        ran = tallystick_at(scene.http, who.key, *words, "--json")
        assert ran.code == 0, ran.err
        return ran.document

    made = run_as(scene.operator, "pool", "create", "research", "--scheduler", "drf")
    pool_id = made["pool_id"]
    run_as(scene.owner, "pool", "add", pool_id, scene.provider.node_id)
    told = run_as(
        scene.renter,
        "gang",
        "open",
        "--members",
        2,
        "--command",
        "train",
        "--max-price",
        5,
        "--pool",
        pool_id,
    )
    assert told["state"] == "reserved"
    waits = run_as(
        scene.renter,
        "gang",
        "open",
        "--members",
        1,
        "--command",
        "train",
        "--max-price",
        5,
        "--pool",
        pool_id,
    )
    assert run_as(scene.renter, "gang", "show", waits["gang_id"])["place"] == 1
    assert len(run_as(scene.renter, "gang", "list")["data"]) == 2
    (queued,) = run_as(scene.renter, "pool", "queue", pool_id)["data"]
    assert queued["request_id"] == waits["gang_id"]
    assert run_as(scene.renter, "gang", "cancel", told["gang_id"])["state"] == "closed"
    assert run(scene) == 1
    (decided,) = run_as(scene.renter, "pool", "decisions", pool_id)["data"]
    shown = run_as(scene.operator, "pool", "decision", pool_id, decided["position"])
    assert shown["holds"] is True
    assert run_as(scene.renter, "pool", "show", pool_id)["nodes"] == 1
    assert len(run_as(scene.renter, "pool", "nodes", pool_id)["data"]) == 1
    assert run_as(scene.renter, "pool", "list")["data"][0]["waiting"] == 0
    run_as(scene.operator, "pool", "set-policy", pool_id, "--scheduler", "immediate")
    assert run_as(scene.owner, "pool", "remove", pool_id, scene.provider.node_id)["is_in"] is False


# Quotas in a pool.


def test_a_clients_quota_of_a_pool_holds_there_and_nowhere_else(scene: Scene) -> None:
    pool_id = pool(scene, scene.provider)
    client = scene.client()
    scene.deposit(client, 50_000_000)
    quota = {"pool_id": pool_id, "gpu_ppm_max": 1_000_000}
    path = f"/v1/clients/{client.account_id}"
    scene.operator.made(f"{path}/quotas", quota)
    there = {"job": job(scene, pool_id)}
    first = client.made("/v1/leases", there)
    assert first["node_id"] == scene.provider.node_id
    refused = client.post("/v1/leases", there).json()
    assert refused["code"] == "quota_exhausted"
    elsewhere = scene.job(models=["NVIDIA H100 PCIe"])
    assert client.made("/v1/leases", {"job": elsewhere})["node_id"] == scene.other.node_id
    (told,) = client.read(path)["quotas"]
    assert told == {**quota, "used_ppm": 1_000_000}, "what is leased elsewhere is not counted"
    client.made(f"/v1/leases/{first['lease_id']}/close")
    client.made("/v1/leases", there)


def test_a_group_of_a_pool_shares_one_quota_among_accounts(scene: Scene) -> None:
    """The pool's owner groups accounts; together they hold no more than the group may."""
    pool_id = pool(scene, scene.provider, scene.other)
    scene.deposit(scene.stranger, 50_000_000)
    body = {"pool_id": pool_id, "gpu_ppm_max": 2_000_000}
    group_id = scene.operator.made("/v1/groups", body)["group_id"]
    for who in (scene.renter, scene.stranger):
        member = {"kind": "account", "target": who.account_id}
        scene.operator.made(f"/v1/groups/{group_id}/members", member)
    mine, theirs = ask(scene, pool_id), ask(scene, pool_id, by=scene.stranger)
    for who in (scene.renter, scene.stranger):
        refused = who.post("/v1/leases", {"job": job(scene, pool_id)}).json()
        assert refused["code"] == "quota_exhausted"
        assert refused["facts"]["quota_id"] == group_id
    assert scene.operator.read(f"/v1/groups/{group_id}")["used_ppm"] == 2_000_000
    scene.renter.made(f"/v1/leases/{mine['lease_id']}/close")
    assert ask(scene, pool_id, by=scene.stranger)["node_id"] in (
        scene.provider.node_id,
        scene.other.node_id,
    )
    assert theirs["lease_id"] != mine["lease_id"]
