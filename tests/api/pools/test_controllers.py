"""A pool's controller from its deployment to a lie that is found: REST, commands, a real EVM."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from api.leasing.watch_timer import run_watch
from api.pools.controller_timer import record_of
from contracts import pool_controller
from contracts.abi import POOL_CONTROLLER, artifact
from contracts.chain import Call
from ledger.log.chain import market_leaf
from projections import tables
from tests.scenes.desk import Desk
from tests.scenes.server import HOUR_US, Scene
from tests.scenes.work import MINUTE_US, run


@pytest.fixture(scope="module")
def desk(shared: Scene, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk.beside(shared, tmp_path_factory.mktemp("chain"))


def pool(desk: Desk, *, with_contract: bool = True) -> str:
    words: list[object] = ["pool", "create", "research"]
    if with_contract:
        deployed = desk.told(desk.scene.owner, "pool", "deploy-controller", on_chain=True)
        words += ["--controller", deployed["address"]]
    return str(desk.told(desk.scene.owner, *words)["pool_id"])


def send(desk: Desk, address: str, function: str, *arguments: Any) -> None:
    data = artifact(POOL_CONTROLLER).call_data(function, *arguments)
    desk.on_chain(lambda chain, signer: chain.execute(signer, Call(address, data)))


def test_j_4_a_pool_has_a_contract_that_says_what_the_log_says(desk: Desk) -> None:
    scene, owner = desk.scene, desk.scene.owner
    pool_id = pool(desk)
    licence = scene.owner.made(
        "/v1/licences",
        {
            "provider_id": scene.provider.provider_id,
            "vendor": "thirdai",
            "model": "ThirdAI Bolt",
            "seats": 2,
            "terms_sha256": "0a" * 32,
            "from": "2026-11-20T00:00:00Z",
        },
    )["licence_id"]
    gateway = desk.told(owner, "pool", "add-component", pool_id, "gateway", "gateway-1")
    desk.told(owner, "pool", "add-component", pool_id, "licence", "bolt", "--licence", licence)
    desk.told(owner, "pool", "set-metadata", pool_id, "region=eu-west", "tier=2")
    owner.made(f"/v1/pools/{pool_id}/nodes", {"node_id": scene.provider.node_id})
    body = {"job": scene.job(constraints={"pool_id": pool_id})}
    lease = scene.renter.made("/v1/leases", body)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    scene.owner.made(f"/v1/licences/{licence}/revoke")

    sent = desk.told(owner, "pool", "publish", pool_id, on_chain=True)["sent"]
    assert [one["act"].split()[0] for one in sent] == ["register", "register", "set", "anchor"]
    assert desk.told(owner, "pool", "publish", pool_id, on_chain=True)["sent"] == []
    assert desk.check() == 1
    assert desk.check() == 0
    told = scene.anybody.read(f"/v1/pools/{pool_id}/controller")
    assert (told["checked"]["agrees"], told["checked"]["differences"]) == (True, [])
    assert desk.told(owner, "pool", "controller", pool_id)["checked"]["agrees"]

    # A stranger with the log computes the same: leaves of the facts that count, in order.
    facts = _facts(scene)
    mine = [(leaf, name, body) for leaf, name, body in facts if _is_of(body, lease, pool_id)]
    kinds = ("lease.reserved.v1", "lease.closed.v1")
    allocation = [leaf for leaf, name, _ in mine if name in kinds]
    assert len(allocation) == 2
    assert told["heads"]["allocation_head"] == _fold("allocation", pool_id, allocation)
    licences = [leaf for leaf, name, body in facts if _is_licence(name, body, pool_id, licence)]
    assert len(licences) == 2
    assert told["heads"]["licence_head"] == _fold("licence", pool_id, licences)
    text = f'{{"metadata":{{"region":"eu-west","tier":"2"}},"pool_id":"{pool_id}","version":1}}'
    assert told["metadata"]["sha256"] == sha256(text.encode()).hexdigest()

    # Components are discovered from the chain alone, by the reference that the API tells.
    address = told["address"]
    there = desk.on_chain(lambda chain, _signer: pool_controller.read(chain, address))
    listed = scene.anybody.read(f"/v1/pools/{pool_id}/components")["data"]
    assert {one["reference"] for one in listed} == {one.hex() for one in there.components}
    desk.told(owner, "pool", "remove-component", pool_id, gateway["component_id"])
    sent = desk.told(owner, "pool", "publish", pool_id, on_chain=True)["sent"]
    assert [one["act"].split()[0] for one in sent] == ["retire"]
    assert desk.check() == 0


def test_j_4_a_contract_that_lies_is_told_with_its_pool_and_stops_nobody_else(desk: Desk) -> None:
    pool_id = pool(desk)
    address = desk.scene.anybody.read(f"/v1/pools/{pool_id}/controller")["address"]
    assert desk.check() >= 1
    send(desk, address, "anchorHeads", 1, b"\x01" * 32, b"\x02" * 32)
    assert desk.check() == 1
    told = desk.scene.anybody.read(f"/v1/pools/{pool_id}/controller")["checked"]
    assert not told["agrees"]
    assert told["differences"] == ["position of the heads: expected one that the log cut, got 1"]
    ran = desk.run(desk.scene.owner, "pool", "controller", pool_id)
    assert ran.code == 1
    assert ran.document["checked"]["differences"] == told["differences"]
    assert desk.scene.lease()["state"] == "reserved"


def test_j_4_an_address_without_our_code_is_told(desk: Desk) -> None:
    body = {"name": "bare", "controller_address": "0x" + "5a" * 20}
    pool_id = desk.scene.owner.made("/v1/pools", body)["pool_id"]
    again = desk.scene.operator.post("/v1/pools", body)
    assert (again.status_code, again.json()["code"]) == (409, "controller_taken")
    desk.check()
    told = desk.scene.anybody.read(f"/v1/pools/{pool_id}/controller")["checked"]
    assert told["differences"] == ["controller code: expected the committed artifact, got no code"]
    ran = desk.run(desk.scene.owner, "pool", "publish", pool_id, on_chain=True)
    assert (ran.code, "no controller" in ran.err) == (2, True)


def test_a_pool_without_a_contract_has_heads_all_the_same(desk: Desk) -> None:
    pool_id = pool(desk, with_contract=False)
    told = desk.scene.anybody.read(f"/v1/pools/{pool_id}/controller")
    assert "address" not in told
    ran = desk.run(desk.scene.owner, "pool", "publish", pool_id, on_chain=True)
    assert (ran.code, "without a contract" in ran.err) == (2, True)
    cut = desk.scene.owner.made(f"/v1/pools/{pool_id}/heads")
    assert cut["allocation_head"] == _fold("allocation", pool_id, [])
    (listed,) = desk.scene.anybody.read(f"/v1/pools/{pool_id}/heads")["data"]
    assert listed["cut_position"] == cut["cut_position"]
    with desk.scene.service.connect() as connection:
        tables.step_all(connection, only=("controllers",))
        assert set(record_of(connection, pool_id).cuts) == {cut["cut_position"]}


def test_only_its_owner_and_operators_change_a_pool(desk: Desk) -> None:
    pool_id = pool(desk, with_contract=False)
    other = desk.scene.other.owner
    component = desk.scene.owner.made(
        f"/v1/pools/{pool_id}/components", {"kind": "monitor", "name": "watch"}
    )["component_id"]
    for path, body in (
        ("components", {"kind": "monitor", "name": "mine"}),
        (f"components/{component}/remove", {}),
        (f"components/{component}/health", {"health": "down"}),
        ("metadata", {"metadata": {"a": "b"}}),
        ("heads", {}),
    ):
        refused = other.post(f"/v1/pools/{pool_id}/{path}", body)
        assert (refused.status_code, refused.json()["code"]) == (404, "pool_unknown"), path
    mail = {"kind": "monitor", "name": "a@b.example"}
    refused = desk.scene.owner.post(f"/v1/pools/{pool_id}/components", mail)
    assert refused.status_code == 422


def test_j_8_the_health_of_nodes_and_components_is_seen(scene: Scene, tmp_path: Path) -> None:
    desk, owner = Desk(scene, tmp_path), scene.owner
    pool_id = owner.made("/v1/pools", {"name": "watched"})["pool_id"]
    owner.made(f"/v1/pools/{pool_id}/nodes", {"node_id": scene.provider.node_id})
    gateway = desk.told(owner, "pool", "add-component", pool_id, "gateway", "gate")
    component_id = gateway["component_id"]

    def counts() -> tuple[dict[str, int], dict[str, int]]:
        told = desk.told(scene.renter, "pool", "health", pool_id)
        nodes, parts = (
            {one["health"]: one["count"] for one in told[name]} for name in ("nodes", "components")
        )
        return nodes, parts

    assert counts() == ({"silent": 1}, {"unknown": 1})
    job = scene.job(constraints={"pool_id": pool_id})
    lease = scene.running(job=job)
    run(scene, lease, minutes=1)
    desk.told(owner, "pool", "report-health", pool_id, component_id, "well")
    assert counts() == ({"well": 1}, {"well": 1})
    told = scene.anybody.read(f"/v1/pools/{pool_id}/health")
    assert told["troubled_nodes"] == told["troubled_components"] == []

    words = (component_id, "degraded", "--detail", "one link")
    desk.told(owner, "pool", "report-health", pool_id, *words)
    assert counts() == ({"well": 1}, {"degraded": 1})
    clock: Any = scene.clock
    clock.advance(4 * MINUTE_US)
    assert counts() == ({"silent": 1}, {"degraded": 1})
    with scene.service.connect() as connection:
        run_watch(scene.service, connection, scene.clock.now_us())
    told = scene.anybody.read(f"/v1/pools/{pool_id}/health")
    assert told["degraded_leases"] == 1
    assert [(one["health"], one["degraded_leases"]) for one in told["troubled_nodes"]] == [
        ("silent", 1)
    ]
    assert told["troubled_components"][0]["detail"] == "one link"
    clock.advance(3 * HOUR_US)
    assert counts()[1] == {"silent": 1}
    listed = desk.told(scene.renter, "pool", "components", pool_id)["data"]
    assert [(one["health"], one["kind"]) for one in listed] == [("silent", "gateway")]
    desk.told(owner, "pool", "remove-component", pool_id, component_id)
    assert counts()[1] == {}


def _facts(scene: Scene) -> list[tuple[bytes, str, dict[str, Any]]]:
    """The log as an export has it: each fact with a leaf that is computed again here."""
    with scene.service.connect() as connection:
        rows = connection.execute(
            "SELECT originator_id, originator_version, topic, state"
            " FROM public.market_events ORDER BY notification_id"
        ).fetchall()
    return [
        (market_leaf(stream, version, topic, bytes(state)), topic, json.loads(bytes(state)))
        for stream, version, topic, state in rows
    ]


def _is_of(body: dict[str, Any], lease: dict[str, Any], pool_id: str) -> bool:
    return body.get("lease_id") == lease["lease_id"] or body.get("pool_id") == pool_id


def _is_licence(name: str, body: dict[str, Any], pool_id: str, licence_id: str) -> bool:
    if name == "pool.component_registered.v1":
        return body["pool_id"] == pool_id and body.get("licence_id") == licence_id
    return name == "licence.revoked.v1" and body["licence_id"] == licence_id


def _fold(name: str, pool_id: str, leaves: list[bytes]) -> str:
    """The formula of the page, written again."""
    head = sha256(f"tallystick/pool-{name}/v1/{pool_id}".encode()).digest()
    for leaf in leaves:
        head = sha256(head + leaf).digest()
    return head.hex()
