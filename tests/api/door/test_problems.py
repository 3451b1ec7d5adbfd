"""Problems: one form, one table, a page for each; and every code of the door seen over HTTP."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from api.door import errors
from api.main import operations
from api.process.service import Service
from domain.chain.reasons import ChainReason
from domain.corrections.reasons import CorrectionsReason
from domain.epochs.reasons import EpochsReason
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.governance.reasons import GovernanceReason
from domain.income.reasons import IncomeReason
from domain.jobs.reasons import JobsReason
from domain.lease.reasons import LeaseReason
from domain.market.reasons import MarketReason
from domain.metering.reasons import MeteringReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.reasons import REASONS, STORED_REFUSALS, reason_of
from domain.refusal import Refused
from tests.scenes.server import Caller, Scene


def test_every_reason_has_a_status_and_a_meaning() -> None:
    for reason in REASONS.values():
        assert errors.STATUS[reason] in (402, 403, 404, 409, 412, 422), reason
        assert errors.meaning_of(reason.value).endswith(".")
        assert reason.value not in errors.DOOR, "a code means one thing"


def test_402_is_credit_too_low_and_nothing_else() -> None:
    assert [r for r, status in errors.STATUS.items() if status == 402] == [
        FundsReason.CREDIT_TOO_LOW
    ]


def test_every_refusal_by_state_of_a_recording_operation_is_kept_with_its_key() -> None:
    for operation in operations():
        for code in operation.problems if operation.records else ():
            if code in errors.DOOR or reason_of(code) in STRANGERS_ASK | ASKED_AGAIN:
                continue
            by_state = errors.status_of(code) in (402, 404, 409)
            assert (reason_of(code) in STORED_REFUSALS) == by_state, (operation.name, code)


ASKED_AGAIN = {LeaseReason.LEASE_NOT_DUE, ChainReason.BURN_STATE}
"""Too early, or a burn began meanwhile: the same request with the same key may pass later."""
STRANGERS_ASK = {
    FleetReason.JOIN_CODE_UNKNOWN,
    FleetReason.JOIN_CODE_USED,
    FleetReason.JOIN_CODE_EXPIRED,
    PartiesReason.INVITATION_UNKNOWN,
    PartiesReason.INVITATION_ENDED,
}
RECORDS_NOTHING = {JobsReason.SECRETS_UNUSABLE}
READS_ONLY = {PartiesReason.WALLET_UNKNOWN, CorrectionsReason.ADJUSTMENT_UNKNOWN}
JOBS_AND_SCRIPTS_ASK_AGAIN = {
    PartiesReason.OPERATOR_EXISTS,
    FleetReason.DEVICE_INTERVAL,
    MeteringReason.ACCRUAL_NOT_DUE,
    MeteringReason.USAGE_POSITION_FELL,
    MeteringReason.USAGE_INCOMPLETE,
    LeaseReason.LEASE_NOT_DUE,
    FundsReason.PURCHASE_EXISTS,
    EpochsReason.PROPOSAL_NEEDED,
    EpochsReason.EPOCH_NOT_OVER,
    EpochsReason.EPOCH_OUT_OF_ORDER,
    MeteringReason.CUT_INCOMPLETE,
    EpochsReason.CHUNK_OUT_OF_ORDER,
    ChainReason.PAYOUT_EXISTS,
    ChainReason.CHAIN_TX_STATE,
    ChainReason.BURN_STATE,
    IncomeReason.EARNINGS_STATE,
    MeteringReason.STREAM_MOVED,
    FundsReason.PAYMENT_NOT_DUE,
    GovernanceReason.BREAKER_LIMIT,
    PricesReason.PRICE_SNAPSHOT,
    PricesReason.ORACLE_DORMANT,
    FleetReason.REGION_DAY,
    EpochsReason.FORFEIT_NOT_DUE,
}


def test_a_refusal_by_state_is_kept_unless_no_caller_with_a_key_can_meet_it() -> None:
    """A new reason has to be put somewhere: kept with its key, or among those with a why."""
    by_state = {reason for reason, status in errors.STATUS.items() if status in (402, 404, 409)}
    others = RECORDS_NOTHING | READS_ONLY | JOBS_AND_SCRIPTS_ASK_AGAIN
    assert by_state - STORED_REFUSALS == STRANGERS_ASK | others


def test_every_stored_refusal_has_the_status_of_one() -> None:
    assert {errors.STATUS[reason] for reason in STORED_REFUSALS} == {402, 404, 409}


def test_every_problem_has_a_page(shared: Scene) -> None:
    index = shared.http.get("/problems").text
    for code in [*errors.DOOR, *REASONS]:
        page = shared.http.get(f"/problems/{code}")
        assert page.status_code == 200, code
        assert page.headers["content-type"].startswith("text/html")
        assert f"<code>{code}</code>" in page.text
        assert f"/problems/{code}" in index
    assert shared.http.get("/problems/%3Cscript%3E").status_code == 404


def test_a_problem_document_has_every_field_and_absent_ones_are_absent(shared: Scene) -> None:
    response = shared.renter.get("/v1/leases/lease_" + "0" * 32)
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["Cache-Control"] == "private, no-store"
    told = response.json()
    assert told == {
        "type": "/problems/lease_unknown",
        "title": "Lease unknown",
        "status": 404,
        "code": "lease_unknown",
        "retryable": False,
        "instance": "/v1/leases/lease_" + "0" * 32,
        "request_id": response.headers["Request-Id"],
        "detail": "There is no lease lease_" + "0" * 32 + " that you may see."
        " `tallystick lease list` shows yours.",
        "facts": {"lease_id": "lease_" + "0" * 32},
    }
    assert shared.http.get(told["type"]).status_code == 200


def _seen(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def _lease(scene: Scene) -> str:
    return str(scene.lease()["lease_id"])


def test_each_rule_of_the_marketplace_answers_with_its_code(scene: Scene) -> None:
    """The rules a caller can meet over HTTP; the rest belong to jobs and to the domain's tests."""
    renter, owner, operator = scene.renter, scene.owner, scene.operator
    mine = f"/v1/accounts/{renter.account_id}"
    node = f"/v1/nodes/{scene.provider.node_id}"
    price = {"asset": "CREDIT", "units": "2000000"}
    offer = {
        "provider_id": scene.provider.provider_id,
        "node_id": scene.provider.node_id,
        "price_per_gpu_hour": price,
    }
    region = {
        "provider_id": scene.provider.provider_id,
        "name": "alpha",
        "storage_mode": "local",
        "setting": "edge",
        "admission": "operator",
        "allow_public_jobs": True,
    }
    lease_id = _lease(scene)
    member = renter.read(f"{mine}/members")["data"][0]["member_id"]
    key_id = renter.read(f"{mine}/api-keys")["data"][0]["key_id"]
    deposit = {"source": "cash", "amount": price, "reference": "twice"}
    operator.made(f"{mine}/deposits", deposit)
    other_amount = {**deposit, "amount": {**price, "units": "1"}}
    huge = {**deposit, "amount": {**price, "units": "9" * 39}, "reference": "huge"}
    nothing = {**deposit, "amount": {**price, "units": "0"}, "reference": "nothing"}
    cheap = {**price, "units": "1"}
    broke = scene.account()
    client = scene.account(kind="client")
    seen = {
        "not_permitted": client.post(
            f"/v1/accounts/{client.account_id}/api-keys", {"scopes": ["provider"]}
        ),
        "account_unknown": operator.post("/v1/accounts/acct_no/deposits", deposit),
        "member_exists": renter.post(
            f"{mine}/invitations", {"role": "viewer", "member_id": member, "scopes": ["account"]}
        ),
        "member_unknown": renter.post(f"{mine}/members/nobody/remove"),
        "last_owner": renter.post(f"{mine}/members/{member}/remove"),
        "api_key_unknown": renter.post(f"{mine}/api-keys/00000000/rotate"),
        "deposit_exists": operator.post(f"{mine}/deposits", other_amount),
        "amount_out_of_range": operator.post(f"{mine}/deposits", huge),
        "amount_not_positive": operator.post(f"{mine}/deposits", nothing),
        "provider_unknown": owner.post("/v1/regions", {**region, "provider_id": "prov_no"}),
        "region_exists": owner.post("/v1/regions", region),
        "region_unknown": owner.post("/v1/nodes/join-codes", {"region_id": "region_no"}),
        "join_code_unknown": scene.anybody.post(
            "/v1/nodes/join", scene.provider.joining("AAAAAAAA", "x")
        ),
        "node_unknown": owner.post("/v1/nodes/node_no/activate"),
        "node_key_mismatch": owner.post(f"{node}/confirm", {"key_id": "0" * 16}),
        "node_busy": owner.post(f"{node}/retire"),
        "offer_unknown": owner.post("/v1/offers/offer_no/withdraw"),
        "price_below_usage_fee": owner.post(
            "/v1/offers", {**offer, "price_per_gpu_hour": {**price, "units": "1"}}
        ),
        "job_unknown": renter.post("/v1/leases", {"job_id": "job_no"}),
        "match_impossible": renter.post("/v1/leases", {"job": scene.job(gpu_count=64)}),
        "no_match": renter.post("/v1/leases", {"job": scene.job(max_price_per_gpu_hour=cheap)}),
        "credit_too_low": broke.post("/v1/leases", {"job": scene.job()}),
        "lease_unknown": renter.post("/v1/leases/lease_no/close"),
        "close_code_party": renter.post(f"/v1/leases/{lease_id}/close", {"code": 10_000}),
        "challenge_unknown": renter.post(
            f"{mine}/wallets", {"nonce": "0" * 22, "signature": "0x" + "00" * 65}
        ),
    }
    for code, response in seen.items():
        assert _seen(response) == (errors.status_of(code), code), response.text
    renter.made(f"{mine}/api-keys/{key_id}/rotate")
    assert _seen(renter.post(f"{mine}/api-keys/{key_id}/rotate")) == (409, "api_key_revoked")
    job_id = renter.made("/v1/jobs", scene.job())["job_id"]
    renter.made(f"/v1/jobs/{job_id}/cancel")
    assert _seen(renter.post("/v1/leases", {"job_id": job_id})) == (409, "job_state")


def test_joining_twice_or_too_late_or_as_a_node_that_is_there_names_the_rule(scene: Scene) -> None:
    region = {"region_id": scene.provider.region_id}
    code = scene.owner.made("/v1/nodes/join-codes", region)["code"]
    joining = scene.provider.joining(code, "NVIDIA A100-PCIE-80GB", "77" * 32)
    node_id = scene.anybody.made("/v1/nodes/join", joining)["node_id"]
    used = scene.anybody.post("/v1/nodes/join", scene.provider.joining(code, "x", "78" * 32))
    assert _seen(used) == (409, "join_code_used")
    assert _seen(scene.operator.post(f"/v1/nodes/{node_id}/admit")) == (409, "node_state")
    key_id = {"key_id": joining["key_id"]}
    scene.owner.made(f"/v1/nodes/{node_id}/confirm", key_id)
    assert _seen(scene.owner.post(f"/v1/nodes/{node_id}/admit")) == (403, "not_permitted")
    late = scene.owner.made("/v1/nodes/join-codes", region)["code"]
    scene.clock.advance(600_000_000)  # type: ignore[attr-defined]
    expired = scene.anybody.post("/v1/nodes/join", {**joining, "code": late})
    assert _seen(expired) == (409, "join_code_expired")
    with scene.service.connection() as connection:
        rows = connection.execute("SELECT count(*) FROM command WHERE account LIKE 'join:%'")
        assert rows.fetchone() == (3,), "one for each node that joined, none for who did not"


def test_a_device_of_another_node_is_not_admitted_twice(scene: Scene) -> None:
    code = scene.rival.made("/v1/nodes/join-codes", {"region_id": scene.other.region_id})["code"]
    joining = scene.provider.joining(code, "NVIDIA A100-PCIE-80GB", "79" * 32)
    node_id = scene.anybody.made("/v1/nodes/join", joining)["node_id"]
    scene.rival.made(f"/v1/nodes/{node_id}/confirm", {"key_id": joining["key_id"]})
    response = scene.operator.post(f"/v1/nodes/{node_id}/admit")
    assert _seen(response) == (409, "device_elsewhere")


def test_a_rival_does_not_take_the_devices_of_a_node_that_leaves_to_join_anew(scene: Scene) -> None:
    region = scene.rival.made(
        "/v1/regions",
        {
            "provider_id": scene.other.provider_id,
            "name": "open",
            "storage_mode": "local",
            "setting": "edge",
            "admission": "permissionless",
            "allow_public_jobs": True,
        },
    )
    code = scene.rival.made("/v1/nodes/join-codes", {"region_id": region["region_id"]})["code"]
    joining = scene.provider.joining(code, "NVIDIA A100-PCIE-80GB", "7b" * 32)
    node_id = scene.anybody.made("/v1/nodes/join", joining)["node_id"]
    scene.rival.made(f"/v1/nodes/{node_id}/confirm", {"key_id": joining["key_id"]})
    scene.owner.made(f"/v1/nodes/{scene.provider.node_id}/retire")
    response = scene.rival.post(f"/v1/nodes/{node_id}/admit")
    assert _seen(response) == (409, "device_elsewhere")
    told = scene.operator.made(f"/v1/nodes/{node_id}/admit")
    assert told["phase"] == "maintenance", "a machine that was sold joins with the operator's leave"


def test_a_permissionless_region_lets_its_owner_admit(scene: Scene) -> None:
    region = scene.owner.made(
        "/v1/regions",
        {
            "provider_id": scene.provider.provider_id,
            "name": "open",
            "storage_mode": "local",
            "setting": "edge",
            "admission": "permissionless",
            "allow_public_jobs": True,
        },
    )
    code = scene.owner.made("/v1/nodes/join-codes", {"region_id": region["region_id"]})["code"]
    joining = scene.provider.joining(code, "NVIDIA A100-PCIE-80GB", "7a" * 32)
    joining["devices"] = [{**joining["devices"][0], "device_id": "GPU-of-its-own"}]
    node_id = scene.anybody.made("/v1/nodes/join", joining)["node_id"]
    scene.owner.made(f"/v1/nodes/{node_id}/confirm", {"key_id": joining["key_id"]})
    assert scene.owner.made(f"/v1/nodes/{node_id}/admit")["phase"] == "maintenance"


def test_a_database_that_is_gone_is_503_and_shows_no_internals(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_self: Service) -> Any:
        raise psycopg.OperationalError("host=secret password=secret")

    monkeypatch.setattr(Service, "connection", gone)
    response = scene.anybody.get("/v1/offers")
    assert _seen(response) == (503, "busy")
    assert "secret" not in response.text
    ready = scene.http.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    assert scene.http.get("/healthz").status_code == 200


def test_a_bug_is_500_and_shows_no_internals() -> None:
    app = FastAPI()
    errors.install(app)

    @app.get("/bug")
    def bug() -> None:
        raise RuntimeError("secret")

    @app.get("/refused")
    def refused() -> None:
        raise Refused(MarketReason.NO_MATCH, gpu_count=3, nothing=None)

    with TestClient(app, raise_server_exceptions=False) as http:
        response = http.get("/bug")
        assert _seen(response) == (500, "internal_error")
        assert "secret" not in response.text
        told = http.get("/refused").json()
        assert (told["status"], told["facts"]) == (409, {"gpu_count": "3"})


def test_nobody_can_guess_another_accounts_objects_by_the_answer(shared: Scene) -> None:
    mine = shared.renter.made("/v1/jobs", shared.job())["job_id"]
    caller = Caller(shared.http, shared.stranger.key)
    answers = [caller.get(f"/v1/jobs/{job}").json() for job in (mine, "job_" + "0" * 32)]
    told = [{**one, "instance": "", "request_id": "", "facts": 0, "detail": 0} for one in answers]
    assert told[0] == told[1]
