"""Who may do what as a party: clients with keys, owners with regions, and everybody who audits."""

from __future__ import annotations

from typing import Any

import pytest

from api.door import keys
from api.income.maturing_timer import mature
from domain.duration import HOUR_US
from domain.income.cash_out import CashOutPaid, CashOutRequested, CashOutSent
from domain.income.maturity import DESTINATION_DELAY_US, EarningsMatured, EarningsSwept
from tests.scenes.server import Scene
from tests.scenes.work import accrue_now, credits_, reported, send
from tests.scenes.work import run_income as run


def test_only_authorised_instances_of_a_client_submit_jobs_and_others_leave_no_fact(
    scene: Scene,
) -> None:
    """R-2."""
    account = scene.account(kind="client")
    head = scene.head()
    refused = account.post("/v1/jobs", scene.job())
    assert (refused.status_code, refused.json()["code"]) == (403, "client_not_authorised")
    assert scene.head() == head, "it is not registered"
    scene.operator.made("/v1/clients", {"client_id": account.account_id})
    client = scene.instance(account, "main")
    told = client.made("/v1/jobs", scene.job(project_id="prj", end_user_ref="user-7"))
    assert (told["client_id"], told["project_id"]) == (client.account_id, "prj")
    assert told["instance_id"] == "main"
    path = f"/v1/accounts/{account.account_id}/api-keys"
    unbound = account.made(path, {"scopes": ["client"]})["key"]
    reader = account.made(path, {"scopes": ["billing:read"]})["key"]
    revoked = scene.instance(account, "main").key
    mine = f"/v1/clients/{account.account_id}"
    account.delete(f"{mine}/keys/{keys.key_id(revoked or '')}")
    head, lease = scene.head(), {"job": scene.job()}
    for key, status in (
        (None, 401),
        (revoked, 401),
        (keys.new(live=False), 401),
        (reader, 403),
        (unbound, 403),
    ):
        caller = type(client)(scene.http, key)
        assert caller.post("/v1/jobs", scene.job()).status_code == status
        assert caller.post("/v1/leases", lease).status_code == status
        assert scene.head() == head
    second = scene.instance(account, "second")
    assert second.made("/v1/jobs", scene.job())["instance_id"] == "second"

    scene.operator.made(f"{mine}/suspend")
    head = scene.head()
    refused = second.post("/v1/jobs", scene.job())
    assert (refused.status_code, refused.json()["code"]) == (403, "client_not_authorised")
    assert scene.head() == head
    scene.operator.made(f"{mine}/resume")
    second.made("/v1/jobs", scene.job())
    told = account.read(mine)
    bound = {one["instance_id"]: "revoked_at" in one for one in told["keys"]}
    assert bound == {"main": True, "second": False}, "the latest of each"


def test_a_client_sees_its_own_jobs_and_several_sell_the_same_node(scene: Scene) -> None:
    """R-1: what a client brought is told to it alone, and stays its own down to the cash-out."""
    first, second = scene.client(), scene.client()
    for client in (first, second):
        scene.deposit(client, 10_000_000)
    asked = scene.job(project_id="prj", end_user_ref="u-1")
    leases = [scene.lease(client, job=asked) for client in (first, second)]
    assert {lease["node_id"] for lease in leases} == {scene.provider.node_id}
    for client, lease in zip((first, second), leases, strict=True):
        (job,) = client.read("/v1/jobs")["data"]
        told = client.read(f"/v1/leases/{lease['lease_id']}")
        assert job["job_id"] == lease["job_id"]
        for one in (job, told):
            assert _brought(one) == (client.account_id, "prj", "u-1")
    assert second.get(f"/v1/jobs/{leases[0]['job_id']}").status_code == 404
    for lease in leases:
        scene.provider.node.made(
            f"/v1/nodes/{lease['node_id']}/assignments/{lease['lease_id']}/ready"
        )
    clock: Any = scene.clock
    clock.advance(HOUR_US)
    assert send(scene, scene.provider, reported(scene.provider, *leases)).is_success
    for client, lease in zip((first, second), leases, strict=True):
        client.made(f"/v1/leases/{lease['lease_id']}/close")
        accrue_now(scene, lease["lease_id"])
        lines = scene.operator.read(f"/v1/accounts/{client.account_id}/statements")["lines"]
        used = {_brought(one) for one in lines if one["type"] == "lease.usage_accrued.v1"}
        assert used == {(client.account_id, "prj", "u-1")}
    usage = scene.owner.read(
        "/v1/usage/breakdown", by="client_id", as_provider="true", to="2026-11-21T00:00:00Z"
    )
    assert {one["client_id"] for one in usage["data"]} == {first.account_id, second.account_id}
    clock.advance(100 * HOUR_US)
    with scene.service.connect() as connection:
        assert mature(scene.service.ledger, connection, scene.clock.now_us()) == 1
    facts = scene.service.ledger.market.read_facts(0, 100_000)
    (matured,) = [one.fact for one in facts if isinstance(one.fact, EarningsMatured)]
    told = {one.client_id: one.units for one in matured.clients or ()}
    assert set(told) == {first.account_id, second.account_id}
    assert sum(told.values()) == matured.amount.units > 0
    _assert_paid_by_client(scene, told)


def _brought(told: dict[str, Any]) -> tuple[str, str, str]:
    return told["client_id"], told["project_id"], told["end_user_ref"]


def _assert_paid_by_client(scene: Scene, matured: dict[str, int]) -> None:
    """What two clients brought is swept and paid in cash: each fact and answer names them."""
    mine = f"/v1/accounts/{scene.owner.account_id}"
    scene.operator.made("/v1/cash-outs/terms/minimum", {"minimum": credits_(10_000)})
    scene.owner.made(f"{mine}/payment-mode", {"mode": "credits", "destination": "acct_bank"})
    run(scene, "sweep")
    scene.clock.advance(DESTINATION_DELAY_US)  # type: ignore[attr-defined]
    asked = scene.owner.made(f"{mine}/cash-outs")
    run(scene, "cash_out", "payout_match")
    one = f"{mine}/cash-outs/{asked['cash_out_id']}"
    assert scene.operator.made(f"{one}/paid")["state"] == "paid"
    told = scene.owner.read(one)
    parts = {part["client_id"]: int(part["amount"]["units"]) for part in told["clients"]}
    whole = int(told["amount"]["units"])
    assert sum(parts.values()) == whole > 0
    assert parts.keys() == matured.keys()
    for client_id, part in parts.items():
        assert abs(part * sum(matured.values()) - whole * matured[client_id]) < 2 * 10**6
    rows = scene.owner.read(f"{mine}/maturity")["clients"]
    for name, due in (("matured", matured), ("swept", matured), ("paid", parts)):
        assert {row["client_id"]: int(row[name]["units"]) for row in rows} == due, name
    facts = [one.fact for one in scene.service.ledger.market.read_facts(0, 100_000)]
    kinds = (EarningsSwept, CashOutRequested, CashOutSent, CashOutPaid)
    for kind in kinds:
        (fact,) = [one for one in facts if isinstance(one, kind)]
        due = matured if kind is EarningsSwept else parts
        assert {each.client_id: each.units for each in fact.clients} == due, kind
    assert scene.rival.get(one).status_code == 404


def test_a_closed_region_runs_its_owners_jobs_only_and_an_open_one_everybodys(scene: Scene) -> None:
    """C-5. The renter's lease goes elsewhere while the cheapest region is closed."""
    region = f"/v1/regions/{scene.provider.region_id}/policy"
    scene.owner.made(region, {"allow_public_jobs": False})
    assert scene.lease()["node_id"] == scene.other.node_id
    scene.deposit(scene.owner, 10_000_000)
    assert scene.lease(scene.owner)["node_id"] == scene.provider.node_id
    scene.owner.made(region, {"allow_public_jobs": True})
    assert scene.lease()["node_id"] == scene.provider.node_id


def test_an_owners_own_job_runs_at_home_although_a_strangers_node_is_offered_for_less(
    shared: Scene,
) -> None:
    shared.deposit(shared.rival, 10_000_000)
    lease = shared.lease(shared.rival)
    assert lease["node_id"] == shared.other.node_id, "3.00 at home, 2.00 elsewhere"
    assert lease["price_per_gpu_hour"] == lease["usage_fee_per_gpu_hour"]


@pytest.mark.parametrize(
    "path", ["/v1/audit/log/key", "/v1/audit/log/checkpoint", "/v1/epochs", "/v1/payouts"]
)
def test_everybody_may_audit_heads_epochs_and_payouts(path: str, shared: Scene) -> None:
    shared.sign_head()
    told = shared.anybody.get(path)
    assert told.status_code == 200, told.text
    assert told.content == shared.operator.get(path).content, "as much as the operator is told"


def test_an_account_is_closed_when_all_is_finished_and_its_keys_end_with_it(scene: Scene) -> None:
    caller, path = scene.account(), "/v1/accounts"
    mine = f"{path}/{caller.account_id}"
    assert scene.stranger.post(f"{mine}/close").json()["code"] == "account_unknown"
    assert scene.operator.post(f"{path}/acct_operator/close").json()["code"] == "not_permitted"
    busy = f"{path}/{scene.renter.account_id}/close"
    lease = scene.lease(funds={"asset": "CREDIT", "units": "100000000"})
    refused = scene.renter.post(busy, key="too-early")
    assert (refused.status_code, refused.json()["code"]) == (409, "account_not_empty")
    assert refused.json()["facts"] == {"lease_id": lease["lease_id"], "status": "reserved"}
    owner = scene.owner.post(f"{path}/{scene.owner.account_id}/close")
    assert owner.json()["facts"]["lease_id"] == lease["lease_id"], "as provider too"
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    told = scene.renter.post(busy).json()
    assert told["facts"]["book"] == f"party:{scene.renter.account_id}:cash"
    owner = scene.owner.post(f"{path}/{scene.owner.account_id}/close")
    assert owner.json()["facts"]["node_id"] == scene.provider.node_id
    scene.owner.made(f"/v1/nodes/{scene.provider.node_id}/retire")
    assert scene.owner.post(f"{path}/{scene.owner.account_id}/close").status_code == 200
    assert scene.owner.get(path).status_code == 401

    closed = caller.made(f"{mine}/close")
    assert caller.get(path).status_code == 401
    assert {**scene.operator.made(f"{mine}/close"), "position": 0} == {**closed, "position": 0}
    assert scene.operator.read(mine)["closed_at"] == closed["closed_at"]
    keys_told = scene.operator.read(f"{mine}/api-keys")["data"]
    assert [one["revoked_at"] for one in keys_told] == [closed["closed_at"]]
    deposit = {"source": "cash", "amount": {"asset": "CREDIT", "units": "1"}, "reference": "late"}
    late = scene.operator.post(f"{mine}/deposits", deposit)
    assert (late.status_code, late.json()["code"]) == (409, "account_closed")


def test_entries_of_the_log_are_told_by_role(scene: Scene) -> None:
    """A party sees what concerns it, an auditor everything, nobody without a key anything."""
    lease = scene.lease()
    path = "/v1/audit/events"
    assert scene.anybody.get(path).status_code == 401
    assert scene.auditor.read(path, party=scene.renter.account_id)["data"]
    assert scene.renter.read(path, party=lease["lease_id"])["data"]
    assert scene.stranger.read(path, party=lease["lease_id"])["data"] == []


def test_a_node_whose_key_id_names_another_key_does_not_join(shared: Scene) -> None:
    """The owner confirms the key id the machine shows: it must be the id of the key that joined."""
    code = shared.owner.made("/v1/nodes/join-codes", {"region_id": shared.provider.region_id})[
        "code"
    ]
    joining = shared.provider.joining(code, "NVIDIA A100-PCIE-80GB", "77" * 32)
    forged = {**joining, "key_id": shared.provider.signing.key_id}
    head = shared.head()
    response = shared.anybody.post("/v1/nodes/join", forged)
    assert (response.status_code, response.json()["code"]) == (422, "invalid")
    assert shared.head() == head
    shared.anybody.made("/v1/nodes/join", joining)
