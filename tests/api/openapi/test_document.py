"""The OpenAPI document: current, complete, and true, down to its examples."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from fastapi import APIRouter
from pydantic import BaseModel

from api import index, main
from api.door import errors
from api.door.auth import EXECUTOR, NODE
from api.door.call import _plain as _dumped
from api.door.call import _stored
from api.door.door import Door
from api.door.moments import moment
from api.main import operations
from api.openapi.write import DOCUMENT, INDEX, client_texts, document_text, index_text, ways
from domain.parties.account import WALLET_DELAY_US
from tallystick_client import NEVER, ApiProblem, Client, NotFound, Unauthenticated
from tallystick_client.forms import Money
from tests.scenes.governors import ANNA, Governor, enrol_once, signed_by_two
from tests.scenes.holdings import (
    added_edge_device,
    added_of_team,
    admission,
    approved_region,
    dataset,
    datastore,
    deployed_edge_device,
    reservation,
    used_volume,
    volume,
    with_plan_team,
)
from tests.scenes.server import Caller, Provider, Scene
from tests.scenes.wallets import link

DOCUMENTED: dict[str, Any] = json.loads(DOCUMENT.read_bytes())
"""The committed document; a test here says that it is the code's."""


def _operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path, operation)
        for path, methods in DOCUMENTED["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_committed_document_is_current() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document_text(), (
        "run: python -m api.openapi.write"
    )


def test_the_committed_index_is_current_and_names_every_operation_once_as_verb_noun() -> None:
    """A server starts by it, without the files of operations."""
    assert INDEX.read_text(encoding="utf-8") == index_text(), "run: python -m api.openapi.write"
    assert ways() == index.WAYS
    names = [name for room in index.WAYS.values() for name in room]
    assert sorted(names) == sorted(operation["operationId"] for _, _, operation in _operations())


def test_doors_that_two_threads_make_at_once_are_each_of_their_own_operation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reference makes doors in a thread, beside those of requests."""
    router, add = APIRouter(route_class=Door), APIRouter.add_api_route
    beside, made = list[threading.Thread](), list[Door]()

    def slow(self: APIRouter, *told: Any, **named: Any) -> None:
        add(self, *told, **named)
        if not beside:
            beside.append(threading.Thread(target=make, args=("list_alerts",)))
            beside[0].start()
            beside[0].join(0.5)

    def make(name: str) -> None:
        made.append(main._opened(router, "monitoring", name))

    monkeypatch.setattr(APIRouter, "add_api_route", slow)
    make("list_timers")
    beside[0].join()
    assert {door.path for door in made} == {"/v1/timers", "/v1/alerts"}


def test_the_committed_client_is_current() -> None:
    made = client_texts()
    committed = {path: path.read_text(encoding="utf-8") for path in made}
    assert committed == made, "run: python -m api.openapi.write"


def test_every_operation_is_there_once_under_a_verb_and_a_noun() -> None:
    names = [operation["operationId"] for _, _, operation in _operations()]
    assert sorted(names) == sorted(operation.name for operation in operations())
    assert len(set(names)) == len(names)
    verbs = {
        "accept",
        "acknowledge",
        "activate",
        "add",
        "admit",
        "answer",
        "apply",
        "approve",
        "attach",
        "cancel",
        "change",
        "close",
        "confirm",
        "countersign",
        "create",
        "decline",
        "delete",
        "deploy",
        "detach",
        "do",
        "drain",
        "end",
        "erase",
        "explain",
        "export",
        "extend",
        "fail",
        "finish",
        "fund",
        "grant",
        "ingest",
        "install",
        "invite",
        "issue",
        "join",
        "link",
        "list",
        "open",
        "pause",
        "place",
        "preview",
        "propose",
        "provision",
        "publish",
        "push",
        "quote",
        "read",
        "reclaim",
        "redeem",
        "refuse",
        "register",
        "rehearse",
        "reject",
        "release",
        "remove",
        "replace",
        "replay",
        "report",
        "request",
        "reshape",
        "restart",
        "resume",
        "retire",
        "revise",
        "revoke",
        "rotate",
        "rule",
        "scale",
        "schedule",
        "search",
        "set",
        "ship",
        "sign",
        "start",
        "state",
        "stop",
        "stream",
        "submit",
        "suspend",
        "take",
        "test",
        "validate",
        "verify",
        "vote",
        "withdraw",
    }
    assert {name.partition("_")[0] for name in names} <= verbs


def test_every_operation_declares_its_problems_security_and_summary() -> None:
    for method, path, operation in _operations():
        assert operation["summary"], path
        assert "security" in operation, path
        statuses = set(operation["responses"])
        assert {"400", "401", "422", "429", "500", "503"} <= statuses, (method, path)
        for status, response in _problems(operation):
            content = _shared(response)["content"]
            assert list(content) == [errors.MEDIA_TYPE], (path, status)
            for code in content[errors.MEDIA_TYPE]["examples"]:
                assert str(errors.status_of(code)) == status


def _problems(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The responses of an operation that are no success, by status."""
    for status, response in operation["responses"].items():
        if not status.startswith("2"):
            yield status, response


def _shared(response: dict[str, Any]) -> dict[str, Any]:
    """What a response refers to."""
    found: dict[str, Any] = DOCUMENTED["components"]["responses"][
        response["$ref"].removeprefix("#/components/responses/")
    ]
    return found


def test_no_problem_response_is_written_twice() -> None:
    shared = DOCUMENTED["components"]["responses"]
    told = [
        response["$ref"]
        for _, _, operation in _operations()
        for _, response in _problems(operation)
    ]
    assert {ref.removeprefix("#/components/responses/") for ref in told} == shared.keys()
    texts = [json.dumps(response, sort_keys=True) for response in shared.values()]
    assert len(set(texts)) == len(texts) > 100
    assert max(map(len, shared)) <= 64


def test_text_is_declared_as_text() -> None:
    texts = {
        operation["operationId"]
        for _, _, operation in _operations()
        if "text/plain" in operation["responses"].get("200", {}).get("content", ())
    }
    assert texts == {one.name for one in operations() if one.is_text}
    assert texts == {
        "read_checkpoint",
        "read_proof",
        "read_usage_proof",
        "read_statement_line_proof",
        "read_statement_line_report_proof",
    }


def test_no_number_with_a_fraction_and_no_form_of_the_framework_leaks_out() -> None:
    text = json.dumps(DOCUMENTED)
    assert '"type": "number"' not in text
    assert list(_floats(DOCUMENTED)) == []
    assert "HTTPValidationError" not in text
    schemas = DOCUMENTED["components"]["schemas"]
    used = text.count("#/components/schemas/")
    assert used > len(schemas)
    for name in schemas:
        assert f'"#/components/schemas/{name}"' in text, f"nobody uses {name}"


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _floats(inner)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_r_23_every_answer_is_told_under_the_names_of_the_document() -> None:
    told = {form for operation in operations() for form in _forms(operation.answers)}
    assert len(told) > 300
    for form in told:
        schema = DOCUMENTED["components"]["schemas"][form.__name__.replace("Told", "")]
        names = {*_dumped(_stand_in(form)), *json.loads(_stored(200, _stand_in(form)).body)}
        assert names == schema["properties"].keys(), form


def _forms(annotation: Any) -> set[type[BaseModel]]:
    """The form and every form in its fields, however deep."""
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return {form for inner in get_args(annotation) for form in _forms(inner)}
    inside = (field.annotation for field in annotation.model_fields.values())
    return {annotation}.union(*map(_forms, inside))


def _stand_in(form: type[BaseModel]) -> Any:
    """An answer with something in each field: only its names are looked at."""
    values: dict[str, Any] = {f.alias or name: 0 for name, f in form.model_fields.items()}
    return form.model_construct(**values)


def test_every_bound_of_a_parameter_is_declared_in_words_of_json_schema() -> None:
    schemas = [
        one["schema"]
        for _, _, operation in _operations()
        for one in operation.get("parameters", ())
    ]
    assert schemas
    for schema in schemas:
        for each in [schema, *schema.get("anyOf", ())]:
            assert not each.keys() & {"ge", "le", "gt", "lt"}, schema
            if each.get("type") == "integer":
                assert {"minimum", "maximum"} <= each.keys(), schema


def test_every_request_body_has_an_example() -> None:
    for _, path, operation in _operations():
        body = operation.get("requestBody")
        if body is None:
            continue
        for content in body["content"].values():
            reference = content["schema"].get("$ref") or content["schema"]["items"]["$ref"]
            schema = DOCUMENTED["components"]["schemas"][reference.rpartition("/")[2]]
            assert schema["examples"], (path, reference)


# --- the examples, run -----------------------------------------------------------------------


def _with_ids(value: Any, scene: Scene, **suited: Any) -> Any:
    """The example with ids of this market in the places of its own; some must suit the call."""
    ids: dict[str, Any] = {
        "provider_id": scene.provider.provider_id,
        "region_id": scene.provider.region_id,
        "region_ids": [scene.provider.region_id],
        "list_id": scene.provider.region_id,
        "node_id": scene.provider.node_id,
        "account_id": scene.renter.account_id,
        "funded_account_id": scene.stranger.account_id,
        "counterparty_id": scene.stranger.account_id,
        **suited,
    }
    if isinstance(value, dict) and "client_id" in value:
        ids["client_id"] = scene.account(kind="client").account_id
    if isinstance(value, dict):
        return {
            name: ids.get(name, _with_ids(inner, scene, **suited)) for name, inner in value.items()
        }
    return (
        [_with_ids(inner, scene, **suited) for inner in value] if isinstance(value, list) else value
    )


NOT_AS_THEY_STAND = {
    "create_attestation": "needs the evidence of a real device",
    "join_node": "needs a code that was just issued",
    "sign_up": "needs a market that lets anybody in",
    "confirm_node": "needs the key of a real machine",
    "link_wallet": "needs a real signature",
    "approve_policy_proposal": "needs a second person",
    "reject_policy_proposal": "needs a second person",
    "schedule_policy_proposal": "needs a proposal that was approved",
    "cancel_policy_proposal": "needs a scheduled one; see tests/api/governance/test_policies.py",
    "apply_governor_change": "needs a second epoch; see tests/api/authority/test_governors.py",
    "revise_policy_proposal": "needs a document with the number of the address",
    "countersign_usage": "needs a real signature",
    "acknowledge_command": "needs the hash of the job",
    "end_work": "needs work that was taken up",
    "read_workspace_pieces": "needs a job with a workspace",
    "add_lease_results": "needs work that was taken up",
    "add_result_pieces": "needs work that was taken up",
    "rotate_webhook": "needs an endpoint that was added",
    "stop_webhook": "needs an endpoint that was added",
    "start_webhook": "needs an endpoint that was added",
    "test_webhook": "needs an endpoint that listens",
    "replay_webhook": "needs an endpoint that was added",
    "revoke_signing_key": "needs a key that was added",
    "close_account": "needs an account without money",
    "issue_invoice": "needs a closed month with charges",
    "issue_credit_note": "needs an invoice",
    "propose_milestone": "needs a grant that is open",
    "propose_clawback": "needs a grant that is open",
    "accept_grant": "needs a second person",
    "propose_slash": "needs a sealed epoch",
    "propose_reward_adjustment": "needs a sealed epoch",
    "accept_reward_correction": "needs a second person",
    "cancel_key_recovery": "needs a recovery, which is announced on the server's machine",
    "restart_job": "needs a lease whose funds have ended",
    "open_dispute": "needs a charge; tests/api/corrections/test_disputes.py does what it shows",
    "answer_dispute": "needs a dispute",
    "rule_dispute": "needs a dispute",
    "create_adjustment": "needs a charge",
    "create_late_usage_adjustment": "needs usage that came late",
    "submit_cash_out": "needs earned credits",
    "cancel_cash_out": "needs a cash-out",
    "confirm_cash_out": "needs a cash-out",
    "report_cash_out_failed": "needs a cash-out",
    "close_payout_difference": "needs a difference",
    "ingest_payment_event": "needs the signature of a processor",
    "set_auto_top_up": "needs a card that was saved",
    "create_write_off": "needs a debt",
    "add_reserve": "needs take revenue",
    "release_storage": "needs a closed lease",
    "report_cloud_quotas": "needs a region of a cloud provider",
    "release_revenue_shares": "needs a node that several own",
    "accept_node_transfer": "needs a part that is offered",
    "report_neighbours": "needs a challenge of now and a real signature",
    "report_ingress_bytes": "needs an ingress node and a real signature",
    "scale_job": "needs a job with members; tests/api/jobs/test_plans.py does what it shows",
    "push_tasks": "needs a queue job",
    "take_task": "needs a lease of a queue job",
    "finish_task": "needs a task that was taken",
    "reshape_device": "needs a device with a partition",
    "revoke_licence": "needs a licence",
    "cancel_maintenance": "needs an announced maintenance",
    "set_node_role": "needs an ingress node",
    "rotate_node_key": "needs two real signatures",
    "revoke_node_key": "needs a key of the node; tests/api/ingest/test_node_keys.py takes one back",
    "add_attribute": "needs a real signature",
    "revoke_attribute": "needs a statement",
    "pause_lease": "needs an interruptible lease that runs",
    "resume_lease": "needs a paused lease",
    "extend_lease": "needs a lease that runs",
    "reclaim_lease": "needs a lease that runs",
    "cancel_reclaim": "needs a lease that is reclaimed",
    "accept_quote": "needs a quoted lease",
    "submit_bid": "needs a request that takes bids",
    "withdraw_bid": "needs a bid",
    "accept_bid": "needs a bid",
    "set_standing_bid": "needs an interruptible lease",
}


def _examples() -> list[Any]:
    found = []
    for method, path, operation in _operations():
        if "application/json" in operation.get("requestBody", {}).get("content", ()):
            reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            schema = DOCUMENTED["components"]["schemas"][reference.rpartition("/")[2]]
            for index, example in enumerate(schema["examples"]):
                name = operation["operationId"]
                found.append(pytest.param(name, method, path, example, id=f"{name}-{index}"))
    return found


BY_OPERATOR = {
    "create_account",
    "create_deposit",
    "admit_node",
    "invite_account",
    "verify_account",
    "set_client_policy",
    "remove_cash_out_hold",
}
BY_RENTER = {"close_lease", "rotate_api_key"}
BY_ANYBODY = {"redeem_invitation", "sign_up"}
BY_RIVAL = {"withdraw_offer", "retire_node"}
"""Whose calls these are; a scope says the rest. What the rival loses, no other example needs."""
ON_A_NODE_OF_THEIR_OWN = {
    "drain_node",
    "fail_node",
    "report_node_error",
    "schedule_maintenance",
    "set_capacity_class",
    "stop_node",
}
IN_A_MARKET_OF_ITS_OWN = {"set_idle_mining": "a wallet is paid only after days"}
SUITED_REGIONS: dict[str, Callable[[Scene], str]] = {
    "add_edge_device": lambda scene: scene.central_region("edges"),
    "request_admission": approved_region,
}
"""Where a thing of the body may lie, unless the first region takes it."""


@pytest.mark.parametrize(("name", "method", "path", "example"), _examples())
def test_an_example_does_what_it_shows(
    name: str, method: str, path: str, example: Any, request: pytest.FixtureRequest
) -> None:
    assert method == "POST"
    shared: Scene = request.getfixturevalue("scene" if name in IN_A_MARKET_OF_ITS_OWN else "shared")
    places = _places(shared, path)
    if name in BY_RIVAL:
        places |= {"node_id": shared.other.node_id, "offer_id": shared.other.offer_id}
    caller = _caller(shared, name)
    if name in ON_A_NODE_OF_THEIR_OWN:
        caller = shared.account()
        dear = Provider(shared, caller, f"own{shared.head()}", "NVIDIA A100-PCIE-80GB", 9_000_000)
        places["node_id"] = dear.node_id
        if name == "stop_node":
            caller.made(f"/v1/nodes/{dear.node_id}/maintenance")
        if name == "report_node_error":
            caller = dear.node
    if name == "report_price":
        fed = {"source": example["source"], "member_id": "member_operator"}
        path_, body = "/v1/oracle/sources", {"sources": [fed]}
        assert (
            caller.post(
                path_, body, **signed_by_two(shared.anybody, path_, body, shared.clock.now_us())
            ).status_code
            == 200
        )
        example = {**example, "published_at": moment(shared.clock.now_us())}
    if name == "add_client_key":
        caller = shared.account(kind="client")
        shared.operator.made("/v1/clients", {"client_id": caller.account_id})
        places["client_id"] = caller.account_id
    if name == "set_idle_mining":
        link(shared.owner, 0)
        clock: Any = shared.clock
        clock.advance(WALLET_DELAY_US)
    if name in ("add_datastore", "add_reservation"):
        with_plan_team(shared)
    suited = {"region_id": SUITED_REGIONS[name](shared)} if name in SUITED_REGIONS else {}
    example = _live(shared, name, example, places)
    operation = next(one for one in operations() if one.name == name)
    where, body = path.format(**places), _with_ids(example, shared, **suited)
    headers = {"If-Match": '"v2"'} if operation.guarded else {}
    if operation.checked:
        headers |= signed_by_two(shared.anybody, where, body, shared.clock.now_us())
    response = caller.post(where, body, **headers)
    if name in NOT_AS_THEY_STAND:
        assert response.json()["code"] not in ("invalid", "malformed_json")
        if "lease_id" in places and "/tasks/" not in path:
            shared.renter.made(f"/v1/leases/{places['lease_id']}/close")
        return
    assert response.status_code in (200, 201), response.text
    _undo(shared, name, response.json(), places)


def _live(scene: Scene, name: str, example: Any, places: dict[str, str]) -> Any:
    """The example with a code that waits, or signed by a governor, where it shows such a thing."""
    if name == "redeem_invitation":
        return {**example, "code": _invitation(scene)["code"]}
    if name == "propose_governor_change":
        governors = scene.anybody.read("/v1/governors")
        signed = Governor("proposed").enrolment(governors["network"], governors["version"])
        assert signed.keys() == example.keys()
        assert signed["action"] == example["action"]
        return signed
    if name == "vote_on_governor_change":
        change = scene.anybody.read("/v1/governors")["changes"][int(places["change"]) - 1]
        vote = ANNA.voting(change["ballot"], example["choice"])
        assert vote.keys() == example["vote"].keys()
        return {**example, "vote": vote}
    if name in ("attach_volume", "detach_volume"):
        mounted = {**example, "job_id": scene.renter.made("/v1/jobs", scene.job())["job_id"]}
        if name == "detach_volume":
            path = f"/v1/volumes/{places['volume_id']}/attach"
            scene.renter.made(path, {**mounted, "path": "/vol/data"})
        return mounted
    return example


def _invitation(scene: Scene) -> dict[str, Any]:
    """An invitation by the renter that waits."""
    asked = {"role": "viewer", "scopes": ["account"]}
    return scene.renter.made(f"/v1/accounts/{scene.renter.account_id}/invitations", asked)


def _caller(scene: Scene, name: str) -> Caller:
    access = next(one.access for one in operations() if one.name == name)
    if name in BY_OPERATOR or (access.scopes and access.scopes <= {"operator", "oracle:write"}):
        return scene.operator
    if name in BY_RIVAL:
        return scene.rival
    if name in BY_ANYBODY:
        return scene.anybody
    if access.audiences == {EXECUTOR}:
        path = f"/v1/nodes/{scene.provider.node_id}/executor-key"
        return Caller(scene.http, scene.provider.node.made(path)["executor_key"])
    if NODE in access.audiences:
        return scene.provider.node
    return scene.owner if "provider" in access.scopes and name not in BY_RENTER else scene.renter


def _places(scene: Scene, path: str) -> dict[str, str]:
    """Ids for the address of an example, made where it needs one of its own."""
    mine = f"/v1/accounts/{scene.renter.account_id}"
    places = {
        "written_number": "INV-000001",
        "epoch": "1",
        "correction_id": "correction_" + "1" * 32,
        "breaker": "payout",
        "edge_device_id": "edge_" + "1" * 32,
        "account_id": scene.renter.account_id,
        "region_id": scene.provider.region_id,
        "list_id": scene.provider.region_id,
        "node_id": scene.provider.node_id,
        "offer_id": scene.provider.offer_id,
        "device_id": scene.provider.device_ids[0],
        "licence_id": "lic_" + "1" * 32,
        "maintenance_id": "maint_" + "1" * 32,
        "statement_id": "stmt_" + "1" * 32,
        "bid_id": "bid_" + "1" * 32,
        "dispute_id": "dispute_" + "1" * 32,
        "cash_out_id": "cashout_1",
        "difference_id": "difference_1",
        "processor": "bank",
    }
    if "/tasks/" in path:
        places["lease_id"] = "lease_" + "1" * 32
    elif "{lease_id}" in path:
        places["lease_id"] = scene.lease()["lease_id"]
    if "{payment_id}" in path:
        places |= _transfer(scene, path)
    if "{job_id}" in path:
        places["job_id"] = scene.renter.made("/v1/jobs", scene.job())["job_id"]
    if "{endpoint_id}" in path:
        places["endpoint_id"] = "hook_" + "0" * 32
    if "{pool_id}" in path:
        pool = {"name": "shown", "policy": {"scheduler": "immediate"}}
        places["pool_id"] = scene.owner.made("/v1/pools", pool)["pool_id"]
    if "{component_id}" in path:
        where, watch = f"/v1/pools/{places['pool_id']}/components", {"kind": "monitor"}
        places["component_id"] = scene.owner.made(where, {**watch, "name": path[-6:]})[
            "component_id"
        ]
    if "{gang_id}" in path:
        gang = {"job": scene.job(), "members": 1}
        places["gang_id"] = scene.renter.made("/v1/gangs", gang)["gang_id"]
    if "signing-keys" in path:
        places["key_id"] = "0" * 16
    elif "{key_id}" in path:
        key = scene.renter.made(f"{mine}/api-keys", {"scopes": ["meter"]})
        places["key_id"] = key["key_id"]
    enrol_once(scene.operator)
    if "{grant_id}" in path:
        asked = {
            "account_id": scene.renter.account_id,
            "total": {"asset": "TOKEN", "units": "100"},
            "milestones": [{"milestone_id": "api-integration", "share_ppm": 100_000}],
        }
        places["grant_id"] = scene.operator.made("/v1/grants", asked)["grant_id"]
    if "{proposal_number}" in path:
        number = scene.head()
        heading = {
            "number": number,
            "title": "shown",
            "category": "Core",
            "authors": ["A"],
            "created": "2026-11-20",
        }
        document = {"format": "tallystick-policy-v1", "proposal": heading}
        scene.operator.made("/v1/policies/proposals", {"document": document})
        places["proposal_number"] = str(number)
    if "{client_id}" in path:
        places |= {"client_id": scene.client().account_id, "instance_id": "ci"}
    if "{group_id}" in path:
        places["group_id"] = scene.renter.made("/v1/groups", {})["group_id"]
    if "{task_id}" in path:
        places["task_id"] = "task-1"
    if "{provider_id}/cloud-account" in path:
        cloud = {"kind": "gcp", "payment_mode": "credits"}
        places["provider_id"] = scene.owner.made("/v1/providers", cloud)["provider_id"]
    places |= _held(scene, path)
    if "{funded_account_id}" in path:
        places["funded_account_id"] = scene.account().account_id
    if "{program}" in path:
        places["program"] = f"program-{scene.head()}"
        scene.deposit(scene.operator, 25_000_000)
        fund = {"program": places["program"], "amount": {"asset": "CREDIT", "units": "25000000"}}
        scene.operator.made("/v1/promotions", fund)
    if path == "/v1/promotions":
        scene.deposit(scene.operator, 1_000_000_000)
    if "{member_id}" in path:
        places["member_id"] = scene.member(scene.renter, "billing", ["account"]).member_id
    if "{invitation_id}" in path:
        places["invitation_id"] = _invitation(scene)["invitation_id"]
    if "{recovery}" in path:
        places["recovery"] = "1"
    if "{change}" in path:
        governors = scene.anybody.read("/v1/governors")
        asked = Governor("voted on").enrolment(governors["network"], governors["version"])
        told = scene.operator.made("/v1/governors/changes", asked)
        places["change"] = str(told["changes"][-1]["number"])
    return places


def _held(scene: Scene, path: str) -> dict[str, str]:
    """Storage, devices and machines that an address names, in the state that its call needs."""
    if "{edge_device_id}" in path:
        runs = path.rpartition("/")[2] in ("deploy", "inference")
        return {"edge_device_id": (deployed_edge_device if runs else added_edge_device)(scene)}
    if "{admission_id}" in path:
        return {"admission_id": admission(scene, ADMITTED_BEFORE[path.rpartition("/")[2]])}
    if "{datastore_id}" in path:
        return {"datastore_id": added_of_team(scene, "datastores", datastore())}
    if "{reservation_id}" in path:
        return {"reservation_id": added_of_team(scene, "reservations", reservation())}
    if "{dataset_id}" in path:
        return {"dataset_id": scene.renter.made("/v1/datasets", dataset(scene))["dataset_id"]}
    if "{volume_id}" in path:
        if path.endswith("/erased"):
            volume_id = used_volume(scene)
            scene.renter.made(f"/v1/volumes/{volume_id}/delete")
            return {"volume_id": volume_id}
        return {"volume_id": scene.renter.made("/v1/volumes", volume(scene))["volume_id"]}
    if "/storage-node" in path:
        _, _, step = path.partition("/storage-node")
        name = f"storage-{scene.head()}"
        if step in ("/replace", "/remove"):
            return {"region_id": scene.central_region(name)}
        scene.deposit(scene.owner, 1_000_000)
        region_id = scene.region(name, storage_mode="central")
        if step:
            where = f"/v1/regions/{region_id}/storage-node"
            scene.owner.made(where, {"storage_class": "pd-ssd"})
        return {"region_id": region_id}
    return {}


ADMITTED_BEFORE = {
    "validate": "requested",
    "refuse": "requested",
    "ship": "validated",
    "firmware": "shipped",
    "installed": "firmware",
    "join-codes": "installed",
}
"""How far a machine is let in before each step of its admission."""


def _transfer(scene: Scene, path: str) -> dict[str, str]:
    """A bank transfer that has arrived, unless its arrival is what is to be shown."""
    body: dict[str, Any] = {"method": "bank", "amount": {"asset": "CREDIT", "units": "25000000"}}
    made = scene.renter.made(f"/v1/accounts/{scene.renter.account_id}/payments", body)
    payment = f"/v1/payments/{made['payment_id']}"
    if path == "/v1/payments/{payment_id}/confirm":
        return {"payment_id": made["payment_id"]}
    scene.operator.made(f"{payment}/confirm", {"reference": made["payment_id"]})
    if "{refund_id}" not in path:
        return {"payment_id": made["payment_id"]}
    refund = scene.operator.made(f"{payment}/refunds", {"amount": body["amount"]})
    return {"payment_id": made["payment_id"], "refund_id": refund["refund_id"]}


def _undo(scene: Scene, name: str, told: dict[str, Any], places: dict[str, str]) -> None:
    """Leave the market as the next example needs it."""
    lease_id = told.get("lease_id", places.get("lease_id"))
    if lease_id is not None:
        scene.renter.made(f"/v1/leases/{lease_id}/close")
    if name == "set_region_policy":
        path = f"/v1/regions/{scene.provider.region_id}/policy"
        scene.owner.made(path, {"allow_public_jobs": True})
    if name == "open_gang":
        scene.renter.made(f"/v1/gangs/{told['gang_id']}/cancel")
    if name == "add_pool_node":
        scene.owner.made(f"/v1/pools/{told['pool_id']}/nodes/{told['node_id']}/remove")
    if name == "start_maintenance":
        scene.owner.made(f"/v1/nodes/{scene.provider.node_id}/activate")


# --- the client ------------------------------------------------------------------------------


CAP: Money = {"asset": "CREDIT", "units": "5000000"}


def _client(scene: Scene, key: str | None) -> Client:
    http: Any = scene.http
    return Client("", key, retry=NEVER, http=http)


def test_the_generated_client_goes_the_straight_way(scene: Scene) -> None:
    renter = _client(scene, scene.renter.key)
    node = _client(scene, scene.provider.node.key)
    lease = renter.open_lease(
        {
            "job": {
                "image": "work",
                "max_price_per_gpu_hour": {"asset": "CREDIT", "units": "5000000"},
            }
        }
    )
    assert lease["state"] == "reserved"
    assert renter.position == scene.head()
    node.start_lease(lease["node_id"], lease["lease_id"], {})
    renter.position = node.position
    assert renter.read_lease(lease["lease_id"])["state"] == "active"
    closed = renter.close_lease(lease["lease_id"], {})
    assert closed["closed_by"] == "renter"
    listed = [one["lease_id"] for one in renter.iter_leases(limit=1)]
    assert listed == [lease["lease_id"]]
    assert renter.read_balances(scene.renter.account_id, as_of_position=1)["data"] == []


def test_the_generated_client_raises_problems_by_their_code(shared: Scene) -> None:
    with pytest.raises(NotFound) as refused:
        _client(shared, shared.renter.key).read_lease("lease_" + "0" * 32)
    assert (refused.value.code, refused.value.status) == ("lease_unknown", 404)
    assert refused.value.document["facts"] == {"lease_id": "lease_" + "0" * 32}
    with pytest.raises(Unauthenticated) as unknown:
        _client(shared, None).list_jobs()
    assert unknown.value.code == "unauthenticated"
    assert isinstance(refused.value, ApiProblem)
    assert refused.value.request_id == refused.value.document["request_id"] != ""


def test_the_generated_client_repeats_a_call_with_its_key(shared: Scene) -> None:
    client = _client(shared, shared.renter.key)
    body: Any = shared.job()
    first = client.submit_job(body, idempotency_key="by the client".replace(" ", "-"))
    assert client.submit_job(body, idempotency_key="by-the-client") == first
