"""Groups with quotas, counterparties, and usage by kind, over HTTP and in PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from domain.duration import HOUR_US
from tests.scenes.server import Caller, Scene
from tests.scenes.work import accrue_now, reported, send


def group_of(scene: Scene, *projects: str, gpus: int, **more: Any) -> str:
    told = scene.renter.made("/v1/groups", {"gpu_ppm_max": gpus * 1_000_000, **more})
    for project in projects:
        path = f"/v1/groups/{told['group_id']}/members"
        scene.renter.made(path, {"kind": "project", "target": project})
    return str(told["group_id"])


def used(scene: Scene, group_id: str) -> int:
    return int(scene.renter.read(f"/v1/groups/{group_id}")["used_ppm"])


def asked(scene: Scene, project: str, **changes: Any) -> Any:
    return scene.renter.post("/v1/leases", {"job": scene.job(project_id=project, **changes)})


def test_a_group_holds_no_more_than_its_quota_and_gets_back_what_ends(scene: Scene) -> None:
    outer = group_of(scene, gpus=2)
    inner = group_of(scene, "train", gpus=1, parent_id=outer)
    first = asked(scene, "train")
    assert first.status_code == 201, first.text
    assert (used(scene, inner), used(scene, outer)) == (1_000_000, 1_000_000)
    refused = asked(scene, "train", share_ppm=1)
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_exhausted")
    assert refused.json()["facts"]["quota_id"] == inner
    assert asked(scene, "other").status_code == 201, "it is in no group"
    scene.renter.made(f"/v1/leases/{first.json()['lease_id']}/close")
    assert (used(scene, inner), used(scene, outer)) == (0, 0)
    scene.renter.made(f"/v1/groups/{inner}/quota", {"gpu_ppm_max": 500_000})
    assert asked(scene, "train").json()["code"] == "quota_exhausted"
    assert asked(scene, "train", share_ppm=500_000).status_code == 201
    members = scene.renter.read(f"/v1/groups/{inner}")["members"]
    assert [(one["kind"], one["target"]) for one in members] == [("project", "train")]


def test_leases_that_are_asked_for_at_once_never_pass_the_quota_together(scene: Scene) -> None:
    group_id = group_of(scene, "train", gpus=1)
    with ThreadPoolExecutor(6) as together:
        answers = list(together.map(lambda _: asked(scene, "train", share_ppm=400_000), range(6)))
    codes = sorted(answer.status_code for answer in answers)
    assert codes.count(201) == 2, [answer.text for answer in answers]
    assert {one.json()["code"] for one in answers if one.status_code != 201} == {"quota_exhausted"}
    assert used(scene, group_id) == 800_000


def test_own_the_base_rent_the_burst(scene: Scene) -> None:
    """C-39. The owner's node is the base; above its quota a project is refused, or rents."""
    owner = scene.owner
    scene.deposit(owner, 100_000_000)
    group_id = owner.made("/v1/groups", {"gpu_ppm_max": 1_000_000})["group_id"]
    owner.made(f"/v1/groups/{group_id}/members", {"kind": "project", "target": "train"})
    body = {"job": scene.job(project_id="train")}
    base = owner.made("/v1/leases", body)
    assert base["node_id"] == scene.provider.node_id
    assert owner.post("/v1/leases", body).json()["code"] == "quota_exhausted"
    path = f"/v1/accounts/{owner.account_id}/projects"
    owner.made(path, {"project_id": "train", "overflow": "rent"})
    burst = owner.made("/v1/leases", body)
    assert burst["node_id"] == scene.other.node_id, "rented, though one device at home is free"
    told = owner.read(f"/v1/leases/{burst['lease_id']}")
    assert (told["overflow"], told["own_node"]) == (True, False)
    assert owner.read(f"/v1/groups/{group_id}")["used_ppm"] == 1_000_000, "the burst is not counted"
    owner.made(f"/v1/leases/{base['lease_id']}/close")
    again = owner.made("/v1/leases", body)
    assert again["node_id"] == scene.provider.node_id, "the base has room again"
    assert owner.read(path)["data"] == [{"project_id": "train", "overflow": "rent"}]


def test_a_project_that_refuses_rents_nothing_when_its_own_nodes_are_full(scene: Scene) -> None:
    """C-39. The third lease of two GPUs at home went to the rival, though the project refuses."""
    owner = scene.owner
    scene.deposit(owner, 100_000_000)
    body = {"job": scene.job(project_id="train")}
    at_home = [owner.made("/v1/leases", body) for _ in range(2)]
    assert {one["node_id"] for one in at_home} == {scene.provider.node_id}
    path = f"/v1/accounts/{owner.account_id}/projects"
    owner.made(path, {"project_id": "train", "overflow": "refuse"})
    refused = owner.post("/v1/leases", body)
    assert (refused.status_code, refused.json()["code"]) == (409, "base_full"), refused.text
    assert refused.json()["facts"]["project_id"] == "train"
    assert "`tallystick project overflow`" in refused.json()["detail"]
    elsewhere = {"job": scene.job(project_id="other")}
    unasked = owner.made("/v1/leases", elsewhere)
    assert unasked["node_id"] == scene.other.node_id, "a project that said nothing rents as before"
    owner.made(f"/v1/leases/{at_home[0]['lease_id']}/close")
    assert owner.made("/v1/leases", body)["node_id"] == scene.provider.node_id
    owner.made(path, {"project_id": "train", "overflow": "rent"})
    assert owner.made("/v1/leases", body)["node_id"] == scene.other.node_id


def test_a_renter_without_nodes_that_refuses_above_its_quota_rents_below_it(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.renter.account_id}/projects"
    scene.renter.made(path, {"project_id": "train", "overflow": "refuse"})
    assert asked(scene, "train").status_code == 201


def test_a_client_holds_no_more_than_its_quota(scene: Scene) -> None:
    client = scene.client()
    scene.deposit(client, 10_000_000)
    path = f"/v1/clients/{client.account_id}"
    scene.operator.made(f"{path}/quotas", {"gpu_ppm_max": 1_000_000})
    lease = scene.lease(client)
    refused = client.post("/v1/leases", {"job": scene.job()})
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_exhausted")
    assert client.read(path)["quotas"] == [{"gpu_ppm_max": 1_000_000, "used_ppm": 1_000_000}]
    client.made(f"/v1/leases/{lease['lease_id']}/close")
    scene.lease(client)


def lists(who: Caller, other: Caller, verdict: str) -> None:
    body = {"counterparty_id": other.account_id, "verdict": verdict}
    who.made(f"/v1/accounts/{who.account_id}/counterparties", body)


def test_nobody_leases_from_whom_it_denies_or_from_who_denies_it(scene: Scene) -> None:
    assert scene.lease()["node_id"] == scene.provider.node_id
    lists(scene.renter, scene.owner, "deny")
    assert scene.lease()["node_id"] == scene.other.node_id, "the cheaper one is denied"
    lists(scene.renter, scene.owner, "none")
    lists(scene.owner, scene.renter, "deny")
    assert scene.lease()["node_id"] == scene.other.node_id, "the provider's list counts too"
    lists(scene.rival, scene.stranger, "allow")
    refused = scene.renter.post("/v1/leases", {"job": scene.job(share_ppm=1)})
    assert (refused.status_code, refused.json()["code"]) == (409, "no_match")
    path = f"/v1/accounts/{scene.renter.account_id}/counterparties"
    assert scene.renter.read(path)["data"] == []
    told = scene.rival.read(f"/v1/accounts/{scene.rival.account_id}/counterparties")["data"]
    assert [(one["counterparty_id"], one["verdict"]) for one in told] == [
        (scene.stranger.account_id, "allow")
    ]
    scene.deposit(scene.owner, 10_000_000)
    assert scene.lease(scene.owner)["node_id"] == scene.provider.node_id, "one's own, always"


def test_usage_is_told_by_kind_node_client_group_and_end_user(scene: Scene) -> None:
    """R-16: the sums of any grouping are the sum of the accruals."""
    group_id = group_of(scene, "train", gpus=8)
    scene.deposit(scene.renter, 100_000_000)
    shapes = (
        ("batch", "training", "train", "ann"),
        ("notebook", None, "", "bob"),
        ("endpoint", None, "train", "ann"),
    )
    leases = []
    for kind, work, project, end_user in shapes:
        job = scene.job(kind=kind, work=work, project_id=project, end_user_ref=end_user)
        leases.append(scene.running(job=job))
    clock: Any = scene.clock
    clock.advance(HOUR_US)
    for provider in (scene.provider, scene.other):
        mine = [lease for lease in leases if lease["node_id"] == provider.node_id]
        assert send(scene, provider, reported(provider, *mine)).is_success
    for lease in leases:
        scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
        accrue_now(scene, lease["lease_id"])

    def told(who: Caller, by: str, **query: Any) -> dict[tuple[str, ...], int]:
        query = {"to": "2026-11-21T00:00:00Z", **query}
        data = who.read("/v1/usage/breakdown", by=by, **query)["data"]
        return {
            tuple(row.get(name, "") for name in by.split(",")): int(row["charge"]["units"])
            for row in data
        }

    me = scene.renter
    assert told(me, "kind") == {
        ("batch",): 2_000_000,
        ("notebook",): 2_000_000,
        ("endpoint",): 3_000_000,
    }
    assert told(me, "end_user_ref") == {("ann",): 5_000_000, ("bob",): 2_000_000}
    assert told(me, "group_id") == {("",): 2_000_000, (group_id,): 5_000_000}
    assert told(me, "kind,end_user_ref", end_user_ref="ann", group_id=group_id) == {
        ("batch", "ann"): 2_000_000,
        ("endpoint", "ann"): 3_000_000,
    }
    assert told(me, "work", kind="batch") == {("training",): 2_000_000}
    assert sum(told(me, "node_id,kind,client_id,project_id").values()) == 7_000_000
    assert told(scene.owner, "kind", as_provider="true") == {
        ("batch",): 2_000_000,
        ("notebook",): 2_000_000,
    }
    assert told(scene.owner, "kind") == {}
    assert told(scene.stranger, "kind", as_provider="true") == {}
    assert sum(told(scene.operator, "kind").values()) == 7_000_000
    foreign = scene.stranger.get("/v1/usage/breakdown", account_id=me.account_id)
    assert foreign.json()["code"] == "account_unknown"


def test_the_floor_of_a_client_holds_for_every_job_of_it(scene: Scene) -> None:
    client = scene.client(min_reputation_ppm=700_000)
    scene.deposit(client, 50_000_000)
    refused = client.post("/v1/leases", {"job": scene.job()})
    assert (refused.status_code, refused.json()["code"]) == (409, "no_match")
    assert refused.json()["facts"]["dimension"] == "provisional", "no node has a reputation yet"
    # The renter's own jobs know no floor, and without one the client's run too.
    assert scene.renter.made("/v1/leases", {"job": scene.job()})["lease_id"]
    scene.operator.made(f"/v1/clients/{client.account_id}/policy", {})
    assert client.made("/v1/leases", {"job": scene.job()})["lease_id"]
