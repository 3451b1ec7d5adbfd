"""Stores and reserved ports over HTTP, under production's settings: from the plan to the mount."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.pools.test_pools import run
from tests.scenes.server import Provider, Scene

STORE = {"name": "renders", "kind": "nfs", "address": "10.0.0.5", "root_path": "/dir2"}
SMB = {
    "name": "office",
    "kind": "smb",
    "address": "files.example",
    "root_path": "/",
    "user": "farm",
    "password": "s3cret-of-smb",
}
PORT = {"name": "viewer", "host_name": "viewer", "port": 8_888}
MODEL = "NVIDIA A100-PCIE-80GB"


@pytest.fixture
def site(scene: Scene) -> Scene:
    """The owner has the plan team, money, and nodes of two accounts' regions."""
    scene.operator.made(f"/v1/accounts/{scene.owner.account_id}/plan", {"plan": "team"})
    scene.deposit(scene.owner, 100_000_000)
    return scene


def _region(scene: Scene) -> str:
    return f"/v1/regions/{scene.provider.region_id}"


def _store(scene: Scene, **changes: Any) -> str:
    told = scene.owner.made(f"{_region(scene)}/datastores", {**STORE, **changes})
    return str(told["datastore_id"])


def _port(scene: Scene) -> str:
    return str(scene.owner.made(f"{_region(scene)}/reservations", PORT)["reservation_id"])


def _mounting(store: str, path: str = "/subdir2", use: str = "input") -> dict[str, Any]:
    return {"mounts": [{"datastore_id": store, "path": path, "use": use}]}


# --- C-9 -------------------------------------------------------------------------------------


def test_c_9_stores_and_ports_need_the_plan_team_and_a_machine_in_the_region(scene: Scene) -> None:
    owner, plan = scene.owner, f"/v1/accounts/{scene.owner.account_id}/plan"
    assert owner.read(plan)["plan"] == "individual"
    wanted = ((f"{_region(scene)}/datastores", STORE), (f"{_region(scene)}/reservations", PORT))
    for path, body in wanted:
        refused = owner.post(path, body)
        assert (refused.status_code, refused.json()["code"]) == (409, "plan_needed")
        assert "plan team" in refused.json()["detail"]
    assert owner.post(plan, {"plan": "team"}).status_code == 403, "the operator sets it"
    scene.operator.made(plan, {"plan": "team"})
    empty = owner.made(
        "/v1/regions",
        {
            "provider_id": scene.provider.provider_id,
            "name": "empty",
            "storage_mode": "local",
            "setting": "datacenter",
            "admission": "operator",
            "allow_public_jobs": True,
        },
    )["region_id"]
    for sort, body in (("datastores", STORE), ("reservations", PORT)):
        refused = owner.post(f"/v1/regions/{empty}/{sort}", body)
        assert (refused.status_code, refused.json()["code"]) == (409, "region_empty")
    for path, body in wanted:
        owner.made(path, body)
        assert scene.rival.post(path, body).status_code == 404


def test_c_9_a_job_that_is_attached_runs_in_that_region_only(site: Scene) -> None:
    """Also where another node of the same owner is as good, and when the region's is busy."""
    owner = site.owner
    second = Provider(site, owner, "gamma", MODEL, 1_000_000)
    job = site.job(models=[MODEL], attached=_mounting(_store(site)))
    leases = [site.lease(owner, job=job) for _ in range(2)]
    assert {one["node_id"] for one in leases} == {site.provider.node_id}
    full = owner.post("/v1/leases", {"job": job})
    assert (full.status_code, full.json()["code"]) == (409, "no_match")
    free = site.lease(owner, job=site.job(models=[MODEL]))
    assert free["node_id"] == second.node_id
    away = {**job, "constraints": {"regions": [second.region_id]}}
    refused = owner.post("/v1/jobs", away)
    assert (refused.status_code, refused.json()["code"]) == (422, "attached_elsewhere")
    assert owner.post("/v1/leases", {"job": away}).json()["code"] == "no_match"


WAYS = ("job", "lease", "bid", "auction", "month", "quote", "plan", "gang", "queue")


@pytest.mark.parametrize("way", WAYS)
def test_c_9_where_its_gpu_type_is_absent_it_is_refused_at_once_with_the_reason(
    site: Scene, way: str
) -> None:
    """The H100 of the rival would do, and the source would let the job wait for ever."""
    owner = site.owner
    job = site.job(models=["NVIDIA H100 PCIe"], attached=_mounting(_store(site)))
    path = "/v1/leases"
    body: dict[str, Any] = {"job": job}
    if way == "job":
        path, body = "/v1/jobs", job
    elif way == "gang":
        path, body = "/v1/gangs", {"job": job, "members": 1}
    elif way == "bid":
        bid = {"asset": "CREDIT", "units": "600000"}
        body = {"job": job, "pricing": {"module": "continuous_bid", "bid": bid}}
    elif way == "auction":
        body["pricing"] = {"module": "reverse_auction", "closes_in_seconds": 60}
    elif way == "month":
        body["pricing"] = {"module": "reserved", "months": 1}
    elif way == "quote":
        path = "/v1/lease-quotes"
    elif way == "plan":
        path, body = "/v1/jobs", {**job, "plan": {"chunks": 2}}
    elif way == "queue":
        pool = owner.made("/v1/pools", {"name": "q", "policy": {"scheduler": "drf"}})["pool_id"]
        owner.made(f"/v1/pools/{pool}/nodes", {"node_id": site.provider.node_id})
        in_pool = {"constraints": {"pool_id": pool}}
        for _ in range(3):
            owner.made("/v1/leases", {"job": site.job(models=[MODEL], **in_pool)})
        run(site)
        body = {"job": {**job, **in_pool}}
    refused = owner.post(path, body)
    assert (refused.status_code, refused.json()["code"]) == (409, "match_impossible"), refused.text
    if way != "gang":
        assert refused.json()["facts"]["pinned_region"] == site.provider.region_id
        assert "waiting does not help" in refused.json()["detail"]


# --- C-36, C-37 ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "work"),
    [("notebook", None), ("batch", "training"), ("batch", "inference"), ("endpoint", None)],
)
def test_c_36_work_of_every_kind_mounts_input_output_and_scratch_below_the_root(
    site: Scene, kind: str, work: str | None
) -> None:
    nfs, smb = _store(site), _store(site, **SMB)
    mounts = [
        {"datastore_id": nfs, "path": "/subdir2", "use": "input"},
        {"datastore_id": nfs, "path": "/out", "use": "output"},
        {"datastore_id": smb, "path": "/", "use": "scratch"},
    ]
    job = site.job(kind=kind, work=work, attached={"mounts": mounts})
    lease = site.lease(site.owner, job=job)
    assert site.owner.read(f"/v1/jobs/{lease['job_id']}")["attached"] == {"mounts": mounts}
    path = f"/v1/nodes/{site.provider.node_id}/assignments"
    (pending,) = site.provider.node.read(path)["pending"]
    told = pending["work"]["mounts"]
    assert [(one["kind"], one["path"], one["use"]) for one in told] == [
        ("nfs", "/dir2/subdir2", "input"),
        ("nfs", "/dir2/out", "output"),
        ("smb", "/", "scratch"),
    ]
    assert [(one["root_path"], one["at"]) for one in told] == [
        ("/dir2", "/data/input/renders/subdir2"),
        ("/dir2", "/data/output/renders/out"),
        ("/", "/data/scratch/office"),
    ]
    assert (told[2]["user"], told[2]["password"]) == ("farm", "s3cret-of-smb")
    # The owner and the operator read the same list without the password.
    for who in (site.owner, site.operator):
        assert "s3cret" not in who.get(path).text


def test_c_36_the_password_is_in_no_log_and_is_forgotten_with_the_store(site: Scene) -> None:
    store = _store(site, **SMB)
    listed = site.owner.get("/v1/datastores")
    assert "s3cret" not in listed.text
    assert [one["has_login"] for one in listed.json()["data"]] == [True]
    with site.service.connect() as connection:
        for table, column in (("market_events", "state"), ("sealed_secret", "sealed")):
            found = connection.execute(
                f"SELECT count(*) FROM {table} WHERE position('s3cret'::bytea IN {column}) > 0"
            ).fetchone()
            assert found == (0,), table
    site.owner.made(f"/v1/datastores/{store}/remove")
    with site.service.connect() as connection:
        assert connection.execute("SELECT count(*) FROM sealed_secret").fetchone() == (0,)
    gone = site.owner.post("/v1/leases", {"job": site.job(attached=_mounting(store))})
    assert gone.json()["code"] == "datastore_unknown"
    assert site.owner.read("/v1/datastores")["data"] == []


def test_c_36_a_store_that_is_refused_leaves_no_login(site: Scene) -> None:
    _store(site, **SMB)
    taken = site.owner.post(f"{_region(site)}/datastores", SMB)
    assert (taken.status_code, taken.json()["code"]) == (409, "site_name_taken")
    with site.service.connect() as connection:
        assert connection.execute("SELECT count(*) FROM sealed_secret").fetchone() == (1,)


def test_c_36_names_are_unique_logins_are_smb_s_and_strangers_see_nothing(site: Scene) -> None:
    store, path = _store(site), f"{_region(site)}/datastores"
    taken = site.owner.post(path, STORE)
    assert (taken.status_code, taken.json()["code"]) == (409, "site_name_taken")
    for wrong in (
        {**STORE, "name": "b", "user": "x", "password": "y"},
        {**SMB, "password": None},
        {**STORE, "name": "b", "kind": "ftp"},
        {**STORE, "name": "b", "root_path": "/dir2/.."},
        {**STORE, "name": "b", "address": "user:pw@host/share"},
    ):
        assert site.owner.post(path, wrong).status_code == 422
    assert site.rival.read("/v1/datastores")["data"] == []
    assert site.rival.post(f"/v1/datastores/{store}/remove").status_code == 404
    stolen = site.rival.post("/v1/leases", {"job": site.job(attached=_mounting(store))})
    assert (stolen.status_code, stolen.json()["code"]) == (404, "datastore_unknown")


@pytest.mark.parametrize("sort", ["mounts", "reservation"])
def test_a_guessed_id_tells_no_stranger_the_region_that_it_is_in(site: Scene, sort: str) -> None:
    """Not by `match_impossible` either, which names the region that a job is pinned to."""
    mine = _mounting(_store(site)) if sort == "mounts" else {"reservation_id": _port(site)}
    job = site.job(models=["NVIDIA H100 PCIe"], attached=mine)
    assert site.owner.post("/v1/jobs", job).json()["code"] == "match_impossible"
    for path, body in (("/v1/jobs", job), ("/v1/leases", {"job": job})):
        told = site.rival.post(path, body)
        assert told.status_code == 404, told.text
        assert told.json()["code"] in {"datastore_unknown", "reservation_unknown"}
        assert site.provider.region_id not in told.text


@pytest.mark.parametrize(
    "path", ["/../dir1", "subdir2", "//x", "/%2e%2e/dir1", "/a\\..\\b", "/\uff0e\uff0e", "/x.lnk"]
)
def test_c_36_a_path_that_leads_elsewhere_is_refused(site: Scene, path: str) -> None:
    refused = site.owner.post("/v1/jobs", site.job(attached=_mounting(_store(site), path)))
    assert (refused.status_code, refused.json()["code"]) == (422, "path_refused")


def test_c_37_the_report_of_a_node_advises_on_the_rights_of_an_nfs_export(site: Scene) -> None:
    node = f"/v1/nodes/{site.provider.node_id}"
    assert "advice" not in site.owner.read(node), "without such a server there is no advice"
    _store(site, **SMB)
    assert "advice" not in site.owner.read(node)
    told = site.owner.made(f"{_region(site)}/datastores", STORE)
    for advice in (told["advice"], site.owner.read(node)["advice"]):
        assert any("root_squash" in one for one in advice)
        assert any("anonuid" in one and "anongid" in one for one in advice)
    assert site.owner.read(node)["verdict"]["joinable"], "it stops nothing"


# --- C-38 ------------------------------------------------------------------------------------


def test_c_38_one_lease_at_a_time_holds_a_port_and_the_name_moves_with_the_work(
    site: Scene,
) -> None:
    reservation, owner = _port(site), site.owner
    job = site.job(attached={"reservation_id": reservation})
    first = site.lease(owner, job=job)
    (told,) = owner.read("/v1/reservations")["data"]
    assert (told["lease_id"], told["node_id"]) == (first["lease_id"], site.provider.node_id)
    assert (told["kind"], told["host_name"], told["port"]) == ("port", "viewer", 8_888)
    (pending,) = site.provider.node.read(f"/v1/nodes/{site.provider.node_id}/assignments")[
        "pending"
    ]
    assert pending["work"]["reserved_port"] == {"host_name": "viewer", "port": 8_888}
    held = owner.post("/v1/leases", {"job": job})
    assert (held.status_code, held.json()["code"]) == (409, "reservation_held")
    assert owner.post(f"/v1/reservations/{reservation}/remove").json()["code"] == "reservation_held"
    # The work moves to another rig of the region: the same name and port, held by its new lease.
    rig = _second_rig(site)
    owner.made(f"/v1/leases/{first['lease_id']}/close")
    owner.made(f"/v1/nodes/{site.provider.node_id}/maintenance")
    moved = site.lease(owner, job=job)
    assert moved["node_id"] == rig
    (told,) = owner.read("/v1/reservations")["data"]
    assert (told["lease_id"], told["node_id"], told["host_name"], told["port"]) == (
        moved["lease_id"],
        rig,
        "viewer",
        8_888,
    )
    owner.made(f"/v1/leases/{moved['lease_id']}/close")
    owner.made(f"/v1/reservations/{reservation}/remove")
    assert owner.read("/v1/reservations")["data"] == []


def _second_rig(scene: Scene) -> str:
    """Another node in the owner's region, on offer."""
    rig = object.__new__(Provider)
    rig.__dict__.update(scene.provider.__dict__)
    rig.join(scene, "rig-2", MODEL, 2_000_000)
    return rig.node_id


def test_c_38_host_name_and_port_are_unique_in_their_region(site: Scene) -> None:
    _port(site)
    path = f"{_region(site)}/reservations"
    for body in (PORT, {**PORT, "name": "other"}):
        taken = site.owner.post(path, body)
        assert (taken.status_code, taken.json()["code"]) == (409, "site_name_taken")
    site.owner.made(path, {**PORT, "name": "other", "port": 8_889})
    second = Provider(site, site.owner, "delta", MODEL, 1_000_000)
    site.owner.made(f"/v1/regions/{second.region_id}/reservations", PORT)
    assert site.rival.read("/v1/reservations")["data"] == []
