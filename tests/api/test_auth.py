"""Who may call what: the matrix of operations and callers, and what makes a key good.

own -> let through      foreign, absent -> 404, alike      no key -> 401      wrong scope -> 403
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import APIRouter

from api import auth, keys
from api.auth import KEY, NODE, PUBLIC, Access
from api.door import Door
from api.main import operations
from api.operation import Operation
from tests.api.scene import Caller, Scene

ABSENT = "f" * 32
PASSED = {200, 201, 402, 409, 422}
"""Through the door and past the question whose it is; what the rules say then is not asked here."""

BY_NAME = {operation.name: operation for operation in operations()}
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Row:
    """Whose an object is, who stands for everybody else, and what is sent."""

    own: str
    foreign: str | None = None  # None: nothing in the path belongs to anybody
    body: Callable[[Scene], dict[str, Any]] | None = None
    query: str = ""


def _nothing(_scene: Scene) -> dict[str, Any]:
    return {}


RENTERS = Row("renter", "stranger")
OWNERS = Row("owner", "rival")
ROWS: dict[str, Row] = {
    "create_account": Row("operator", body=lambda _s: {"kind": "party"}),
    "list_accounts": Row("renter"),
    "read_account": RENTERS,
    "close_account": Row("renter", "stranger", _nothing),
    "list_members": RENTERS,
    "add_member": Row("renter", "stranger", lambda _s: {"role": "viewer"}),
    "remove_member": Row("renter", "stranger", _nothing),
    "list_api_keys": RENTERS,
    "create_api_key": Row("renter", "stranger", lambda _s: {"scopes": ["billing:read"]}),
    "rotate_api_key": Row("renter", "stranger", _nothing),
    "delete_api_key": RENTERS,
    "create_wallet_challenge": Row("renter", "stranger", lambda _s: {"address": "0x" + "1" * 40}),
    "link_wallet": Row(
        "renter", "stranger", lambda _s: {"nonce": "0" * 22, "signature": "0x" + "00" * 65}
    ),
    "list_wallets": RENTERS,
    "create_deposit": Row("operator", None, lambda _s: _deposit()),
    "list_deposits": RENTERS,
    "register_provider": Row("owner", body=lambda _s: {"kind": "physical"}),
    "list_providers": Row("owner"),
    "read_provider": OWNERS,
    "open_region": Row("owner", None, lambda s: _region(s, s.provider.provider_id)),
    "list_regions": Row("owner"),
    "read_region": OWNERS,
    "set_region_policy": Row("owner", "rival", lambda _s: {"allow_public_jobs": True}),
    "list_region_nodes": OWNERS,
    "create_join_code": Row("owner", None, lambda s: {"region_id": s.provider.region_id}),
    "join_node": Row("anybody", None, lambda s: s.provider.joining("ZZZZZZZZ", "x")),
    "confirm_node": Row("owner", "rival", lambda s: {"key_id": s.provider.signing.key_id}),
    "admit_node": Row("operator", "rival", _nothing),
    "activate_node": Row("owner", "rival", _nothing),
    "start_maintenance": Row("owner", "rival", _nothing),
    "retire_node": Row("owner", "rival", _nothing),
    "report_specs": Row("node", "other_node", lambda s: _specs(s)),
    "list_nodes": Row("owner"),
    "read_node": OWNERS,
    "list_assignments": Row("node", "other_node"),
    "start_lease": Row("node", "other_node", _nothing),
    "read_usage_head": Row("node", "other_node"),
    "ingest_usage": Row("anybody", None, _nothing),
    "read_node_usage": Row("node", "other_node"),
    "list_node_hours": OWNERS,
    "list_devices": Row("owner"),
    "read_device": OWNERS,
    "publish_offer": Row("owner", None, lambda s: _offer(s)),
    "search_offers": Row("anybody"),
    "read_offer": Row("anybody"),
    "withdraw_offer": Row("owner", "rival", _nothing),
    "submit_job": Row("renter", None, lambda s: s.job()),
    "list_jobs": Row("renter"),
    "read_job": RENTERS,
    "cancel_job": Row("renter", "stranger", _nothing),
    "explain_job": RENTERS,
    "open_lease": Row("renter", None, lambda s: {"job": s.job()}),
    "close_lease": Row("renter", "stranger", _nothing),
    "list_leases": Row("renter"),
    "read_lease": RENTERS,
    "list_lease_usage": RENTERS,
    "list_lease_charges": RENTERS,
    "list_lease_history": RENTERS,
    "report_usage_events": Row("owner", None, _nothing),
    "list_usage_events": Row("owner"),
    "list_unmatched_usage": Row("owner"),
    "list_lease_resources": RENTERS,
    "list_resource_charges": RENTERS,
    "list_lease_transfers": RENTERS,
    "release_storage": Row("renter", "stranger", _nothing),
    "add_edge_device": Row("owner", None, lambda s: _edge_device(s)),
    "remove_edge_device": Row("owner", "rival", _nothing),
    "list_edge_devices": Row("owner"),
    "list_device_fees": Row("owner"),
    "provision_storage_node": Row("owner", "rival", lambda _s: {"storage_class": "pd-ssd"}),
    "confirm_storage_node": Row("operator", None, _nothing),
    "remove_storage_node": Row("owner", "rival", _nothing),
    "read_storage_node": OWNERS,
    "read_balances": RENTERS,
    "list_journal": RENTERS,
    "read_statement": RENTERS,
    "list_earnings": Row("owner"),
    "export_focus_csv": RENTERS,
    "export_focus_parquet": RENTERS,
    "export_journal": RENTERS,
    "export_lines_csv": RENTERS,
    "export_lines_json": RENTERS,
    "list_invoices": RENTERS,
    "read_invoice": RENTERS,
    "read_invoice_html": RENTERS,
    "read_invoice_pdf": RENTERS,
    "issue_invoice": Row("operator", None, lambda _s: {"period": "2020-01"}),
    "issue_credit_note": Row("operator", None, lambda _s: _credit_note()),
    "read_billing_details": RENTERS,
    "set_billing_details": Row("renter", "stranger", lambda _s: {"name": "A", "address": []}),
    "erase_billing_details": RENTERS,
    "list_epochs": Row("anybody"),
    "preview_epoch": Row("anybody"),
    "read_epoch": Row("anybody"),
    "list_epoch_rewards": Row("anybody"),
    "read_payout_file": Row("anybody"),
    "list_payouts": Row("anybody"),
    "list_claims": Row("renter"),
    "read_rewards": RENTERS,
    "read_payout_proof": Row("anybody", query="?address=0x" + "1" * 40),
    "list_events": Row("renter"),
    "read_event": Row("renter", "stranger"),
    "read_checkpoint": Row("anybody"),
    "read_log_key": Row("anybody"),
    "read_proof": Row("renter", "stranger"),
    "read_usage_proof": Row("owner"),
}
"""Every operation has a row; the marketplace's own rules are tested elsewhere."""

WITHOUT_ABSENT = {"read_statement"}
NOTHING_YET = {
    "read_usage_proof", "read_invoice", "read_invoice_html", "read_invoice_pdf",
    "issue_credit_note",
}  # fmt: skip
"""Nothing was made of these yet: who is let through is told so."""


def _credit_note() -> dict[str, Any]:
    line = {"line": 1, "amount": {"asset": "CREDIT", "units": "1"}}
    return {"lines": [line], "cause": "matrix", "reason": "matrix"}


def _deposit() -> dict[str, Any]:
    amount = {"asset": "CREDIT", "units": "1"}
    return {"source": "cash", "amount": amount, "reference": f"matrix {next(_numbers)}"}


def _region(scene: Scene, provider_id: str) -> dict[str, Any]:
    del scene
    return {
        "provider_id": provider_id, "name": f"m{next(_numbers)}", "storage_mode": "local",
        "setting": "edge", "admission": "operator", "allow_public_jobs": True,
    }  # fmt: skip


def _specs(scene: Scene) -> dict[str, Any]:
    joining = scene.provider.joining("ZZZZZZZZ", "NVIDIA A100-PCIE-80GB")
    return {"devices": joining["devices"], "host": joining["host"]}


def _edge_device(scene: Scene) -> dict[str, Any]:
    return {"region_id": scene.provider.region_id, "model": "jetson-orin-nano"}


def _offer(scene: Scene) -> dict[str, Any]:
    price = {"asset": "CREDIT", "units": "2500000"}
    return {
        "provider_id": scene.provider.provider_id, "node_id": scene.provider.node_id,
        "price_per_gpu_hour": price,
    }  # fmt: skip


@pytest.fixture(scope="module")
def places(shared: Scene) -> dict[str, str]:
    """Ids of one object of each kind, the renter's and the owner's."""
    lease = shared.running()
    facts = shared.renter.read(f"/v1/leases/{lease['lease_id']}/history")["data"]
    member = shared.renter.made(
        f"/v1/accounts/{shared.renter.account_id}/members", {"role": "viewer"}
    )
    renter_key = keys.key_id(shared.renter.key or "")
    assert renter_key is not None
    return {
        "account_id": shared.renter.account_id,
        "member_id": member["member_id"],
        "key_id": renter_key,
        "provider_id": shared.provider.provider_id,
        "region_id": shared.provider.region_id,
        "node_id": shared.provider.node_id,
        "device_id": shared.provider.device_ids[0],
        "edge_device_id": shared.owner.made("/v1/edge-devices", _edge_device(shared))["device_id"],
        "meter": "cpu",
        "offer_id": shared.provider.offer_id,
        "job_id": lease["job_id"],
        "lease_id": lease["lease_id"],
        "epoch": "1",
        "position": str(facts[0]["position"]),
        "lane": "0",
        "usage_position": "1",
        "period": "2026-11",
        "written_number": "INV-000001",
    }


def _caller(scene: Scene, name: str) -> Caller:
    if name == "node":
        return scene.provider.node
    if name == "other_node":
        return scene.other.node
    found: Caller = getattr(scene, name)
    return found


def _call(scene: Scene, operation: Operation, caller: Caller, places: dict[str, str]) -> Any:
    row = ROWS[operation.name]
    path = operation.path.format(**places) + row.query
    if operation.method == "GET":
        return caller.get(path)
    if operation.method == "DELETE":
        return caller.delete(path)
    assert row.body is not None
    return caller.post(path, row.body(scene), **{"Content-Type": operation.media_type})


def test_every_operation_has_a_row_in_the_matrix() -> None:
    assert ROWS.keys() == BY_NAME.keys()


@pytest.mark.parametrize(
    "name", [n for n, o in BY_NAME.items() if PUBLIC not in o.access.audiences]
)
def test_a_call_without_a_key_is_answered_401(
    name: str, shared: Scene, places: dict[str, str]
) -> None:
    response = _call(shared, BY_NAME[name], shared.anybody, places)
    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("name", [n for n, o in BY_NAME.items() if KEY in o.access.audiences])
def test_a_key_without_any_of_the_scopes_is_answered_403(
    name: str, shared: Scene, places: dict[str, str]
) -> None:
    operation = BY_NAME[name]
    useless = next(
        s for s in ("meter", "audit:read", "payout:read") if s not in operation.access.scopes
    )
    caller = _with_scopes(shared, useless)
    response = _call(shared, operation, caller, places)
    assert (response.status_code, response.json()["code"]) == (403, "scope_missing")


_by_scope: dict[tuple[int, str], Caller] = {}


def _with_scopes(scene: Scene, scope: str) -> Caller:
    found = _by_scope.get((id(scene), scope))
    if found is None:
        found = _by_scope[id(scene), scope] = scene.account(scopes=[scope])
    return found


@pytest.mark.parametrize("name", [n for n, o in BY_NAME.items() if o.access.audiences == {KEY}])
def test_a_node_may_not_make_the_calls_of_people(
    name: str, shared: Scene, places: dict[str, str]
) -> None:
    response = _call(shared, BY_NAME[name], shared.provider.node, places)
    assert (response.status_code, response.json()["code"]) == (403, "audience_wrong")


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row.foreign is not None])
def test_what_belongs_to_another_is_answered_like_what_does_not_exist(
    name: str, shared: Scene, places: dict[str, str]
) -> None:
    row, operation = ROWS[name], BY_NAME[name]
    assert row.foreign is not None
    caller = _caller(shared, row.foreign)
    foreign = _call(shared, operation, caller, places)
    absent = _call(shared, operation, caller, _absent(operation, places))
    assert foreign.status_code == absent.status_code == 404, (foreign.text, absent.text)
    told, expected = foreign.json(), absent.json()
    assert (told["code"], told["title"]) == (expected["code"], expected["title"])


def _absent(operation: Operation, places: dict[str, str]) -> dict[str, str]:
    """The same address with an id nobody has, in the place of the thing asked about."""
    first = operation.path.split("{", 1)[1].split("}", 1)[0]
    prefix = places[first].partition("_")[0]
    absent = "999999999" if first == "position" else f"{prefix}_{ABSENT}"
    return {**places, first: absent}


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row.own != "anybody"])
def test_the_owner_is_let_through(name: str, shared: Scene, places: dict[str, str]) -> None:
    harmful = {"delete_api_key", "rotate_api_key", "remove_member"}
    if name in harmful:
        places = _spare(shared, places)
    expected = PASSED | ({404} if name in NOTHING_YET else set())
    response = _call(shared, BY_NAME[name], _caller(shared, ROWS[name].own), places)
    assert response.status_code in expected, response.text


def _spare(scene: Scene, places: dict[str, str]) -> dict[str, str]:
    path = f"/v1/accounts/{scene.renter.account_id}"
    key = scene.renter.made(f"{path}/api-keys", {"scopes": ["meter"]})
    member = scene.renter.made(f"{path}/members", {"role": "viewer"})
    return {**places, "key_id": key["key_id"], "member_id": member["member_id"]}


@pytest.mark.parametrize("who", ["operator", "auditor"])
@pytest.mark.parametrize(
    "name",
    ["read_account", "list_members", "list_wallets", "list_events", "read_event", "list_leases",
     "read_lease", "read_balances", "read_node", "read_provider", "list_devices", "list_jobs",
     "list_earnings"],
)  # fmt: skip
def test_operators_and_auditors_read_what_is_not_theirs(
    who: str, name: str, shared: Scene, places: dict[str, str]
) -> None:
    response = _call(shared, BY_NAME[name], _caller(shared, who), places)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("name", [n for n, o in BY_NAME.items() if o.method != "GET"])
def test_an_auditor_records_nothing(name: str, shared: Scene, places: dict[str, str]) -> None:
    operation = BY_NAME[name]
    if KEY not in operation.access.audiences:
        assert operation.access.audiences <= {PUBLIC, NODE}
        return
    head = shared.head()
    response = _call(shared, operation, shared.auditor, places)
    assert response.status_code == 403
    assert shared.head() == head


def test_a_key_of_the_operators_account_without_its_scope_is_like_anybodys(
    shared: Scene, places: dict[str, str]
) -> None:
    made = shared.operator.made(
        "/v1/accounts/acct_operator/api-keys",
        {"scopes": ["account", "renter", "provider", "billing:read"]},
    )
    clerk, head = Caller(shared.http, made["key"], "acct_operator"), shared.head()
    for name in ("admit_node", "activate_node", "start_maintenance", "close_lease", "read_lease",
                 "read_node", "read_balances", "read_account"):  # fmt: skip
        response = _call(shared, BY_NAME[name], clerk, places)
        assert response.status_code == 404, (name, response.text)
    for path in ("/v1/leases", "/v1/nodes", "/v1/jobs"):
        assert clerk.read(path)["data"] == [], path
    assert shared.head() == head


def test_lists_hold_nothing_of_others(shared: Scene, places: dict[str, str]) -> None:
    for path in ("/v1/leases", "/v1/jobs", "/v1/nodes", "/v1/devices", "/v1/providers",
                 "/v1/regions", "/v1/earnings", "/v1/payouts/claims"):  # fmt: skip
        assert shared.stranger.read(path)["data"] == [], path
    accounts = shared.stranger.read("/v1/accounts")["data"]
    assert [one["account_id"] for one in accounts] == [shared.stranger.account_id]
    mine = shared.stranger.account_id
    for event in shared.stranger.read("/v1/audit/events")["data"]:
        assert mine in str(event["body"])
    assert shared.stranger.read("/v1/audit/events", party=places["lease_id"])["data"] == []


def test_a_list_asked_for_another_account_is_empty_and_not_ones_own(shared: Scene) -> None:
    for path in ("/v1/nodes", "/v1/providers", "/v1/earnings", "/v1/payouts/claims"):
        assert shared.owner.read(path, account_id=shared.rival.account_id)["data"] == [], path
        own = shared.owner.read(path, account_id=shared.owner.account_id)
        assert own == shared.owner.read(path), path
    asked = shared.auditor.read("/v1/nodes", account_id=shared.rival.account_id)["data"]
    assert {node["account_id"] for node in asked} == {shared.rival.account_id}


def test_a_route_that_declares_nobody_does_not_start() -> None:
    router = APIRouter(route_class=Door)

    def open_to_all() -> None:
        """Nobody said for whom."""

    with pytest.raises(AttributeError):
        router.add_api_route("/v1/open", open_to_all)


def test_an_access_for_nobody_or_with_unknown_scopes_cannot_be_made() -> None:
    for audiences, scopes in (((), ()), ((KEY,), ()), ((PUBLIC,), ("account",)), ((KEY,), ("x",))):
        with pytest.raises(AssertionError):
            Access(frozenset(audiences), frozenset(scopes))


@pytest.mark.parametrize(
    "header",
    ["Bearer nonsense", "Basic dXNlcjpwYXNz", "Bearer ts_live_" + "0" * 59, "Bearer",
     "Bearer ts_node_" + "0" * 43 + "_000000"],
)  # fmt: skip
def test_a_malformed_key_is_refused_before_the_database_is_asked(
    header: str, shared: Scene
) -> None:
    response = shared.http.get("/v1/accounts", headers={"Authorization": header})
    assert (response.status_code, response.json()["code"]) == (401, "credential_invalid")


def test_an_unknown_key_of_the_right_form_is_refused(shared: Scene) -> None:
    for key in (keys.new(), auth.node_key(bytes(range(32)))):
        response = Caller(shared.http, key).get("/v1/accounts")
        assert (response.status_code, response.json()["code"]) == (401, "credential_invalid")


def test_a_bad_key_is_refused_even_where_none_is_needed(shared: Scene) -> None:
    assert Caller(shared.http, keys.new()).get("/v1/offers").status_code == 401


def test_a_revoked_key_is_dead_at_once(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.renter.account_id}/api-keys"
    made = scene.renter.made(path, {"scopes": ["account"]})
    caller = Caller(scene.http, made["key"], scene.renter.account_id)
    assert caller.get("/v1/accounts").status_code == 200
    assert scene.renter.delete(f"{path}/{made['key_id']}").status_code == 200
    assert caller.get("/v1/accounts").status_code == 401


def test_a_key_dies_at_its_hour_and_a_rotated_one_after_a_day(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.renter.account_id}/api-keys"
    expires = {"scopes": ["account"], "expires_at": "2026-11-21T00:00:00Z"}
    made = scene.renter.made(path, expires)
    rotated = scene.renter.made(f"{path}/{made['key_id']}/rotate")
    old = Caller(scene.http, made["key"])
    new = Caller(scene.http, rotated["key"])
    assert old.get("/v1/accounts").status_code == new.get("/v1/accounts").status_code == 200
    scene.clock.advance(25 * 3_600_000_000)  # type: ignore[attr-defined]
    assert old.get("/v1/accounts").status_code == 401
    assert new.get("/v1/accounts").status_code == 200


def test_a_member_who_left_has_no_key(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.renter.account_id}"
    member = scene.renter.made(f"{path}/members", {"role": "billing"})["member_id"]
    key = scene.renter.made(f"{path}/api-keys", {"scopes": ["account"], "member_id": member})
    caller = Caller(scene.http, key["key"])
    assert caller.get(path).status_code == 200
    scene.renter.made(f"{path}/members/{member}/remove")
    assert caller.get(path).status_code == 401


def test_keys_are_never_stored(scene: Scene) -> None:
    made = scene.renter.made(
        f"/v1/accounts/{scene.renter.account_id}/api-keys", {"scopes": ["account"]}
    )
    with scene.service.connection() as connection:
        row = connection.execute(
            "SELECT count(*) FROM command WHERE position(%s IN convert_from(body, 'UTF8')) > 0",
            (made["key"],),
        ).fetchone()
        assert row == (0,)
