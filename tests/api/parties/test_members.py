"""Nobody makes a second person out of one key: the attacks of the security review, over HTTP."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from api.parties.new_keys import ScopeName
from domain.parties.account import SCOPES
from tests.scenes.server import Caller, Scene

DAY_US = 86_400_000_000


def seen(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def key(scene: Scene, caller: Caller, *scopes: str, **more: Any) -> Caller:
    """Another key of a caller, for these scopes."""
    mine = f"/v1/accounts/{caller.account_id}/api-keys"
    told = caller.made(mine, {"scopes": list(scopes), **more})
    return Caller(scene.http, told["key"], caller.account_id)


@pytest.mark.parametrize("scope", ["operator", "payout:approve", "oracle:write"])
def test_a_key_with_only_account_admin_does_not_become_operator_or_governor(
    shared: Scene, scope: str
) -> None:
    """The attack: it issues itself the scopes that it lacks."""
    weak = key(shared, shared.operator, "account:admin")
    mine, head = "/v1/accounts/acct_operator", shared.head()
    asked: dict[str, Any] = {"scopes": [scope]}
    assert seen(weak.post(f"{mine}/api-keys", asked)) == (403, "key_exceeds_issuer")
    for role in ("owner", "admin", "member", "billing", "viewer"):
        invited = weak.post(f"{mine}/invitations", {**asked, "role": role})
        assert invited.status_code == 403, role
    assert shared.head() == head


def test_a_key_that_ends_tomorrow_issues_none_without_an_end(scene: Scene) -> None:
    """The attack: a stolen key, good for a day, issues one that is good for ever."""
    ends = {"expires_at": "2026-11-21T00:00:00Z"}
    weak = key(scene, scene.operator, "account:admin", "operator", **ends)
    mine = "/v1/accounts/acct_operator/api-keys"
    told = weak.made(mine, {"scopes": ["operator"]})
    assert told["expires_at"] == "2026-11-21T00:00:00.000000Z"
    later = {"scopes": ["operator"], "expires_at": "2026-11-22T00:00:00Z"}
    assert seen(weak.post(mine, later)) == (403, "key_exceeds_issuer")


def test_nobody_names_a_member_of_their_own_invention(shared: Scene) -> None:
    """The attack: ghosts with the role viewer approve what their maker proposed."""
    mine = "/v1/accounts/acct_operator"
    named = {"scopes": ["operator"], "member_id": "member_ghost"}
    assert shared.operator.post(f"{mine}/api-keys", named).status_code == 422
    assert shared.operator.post(f"{mine}/members", {"role": "viewer"}).status_code == 405
    invited = {"role": "viewer", "scopes": ["operator"]}
    refused = shared.operator.post(f"{mine}/invitations", invited)
    assert seen(refused) == (403, "role_lacks_scope")
    unknown = {"role": "viewer", "scopes": ["account"], "member_id": "member_ghost"}
    assert seen(shared.operator.post(f"{mine}/invitations", unknown)) == (404, "member_unknown")


def test_an_administrator_is_shown_no_key_of_a_colleague(shared: Scene) -> None:
    """The attack: rotate Boris' key, or issue one in the name of Cleo, and vote as both."""
    mine = "/v1/accounts/acct_operator"
    boris = shared.member(shared.operator, "owner", ["operator", "account:admin"])
    listed = shared.operator.read(f"{mine}/api-keys")["data"]
    theirs = next(one["key_id"] for one in listed if one["member_id"] == boris.member_id)
    rotated = shared.operator.post(f"{mine}/api-keys/{theirs}/rotate")
    assert seen(rotated) == (403, "key_of_another")
    invited = {"role": "owner", "scopes": ["operator"], "member_id": boris.member_id}
    code = shared.operator.made(f"{mine}/invitations", invited)["code"]
    for thief in (shared.anybody, shared.operator, shared.stranger):
        refused = thief.post("/v1/invitations/redeem", {"code": code})
        assert seen(refused) == (403, "key_of_another")
    told = boris.made("/v1/invitations/redeem", {"code": code})
    assert (told["member_id"], told["scopes"]) == (boris.member_id, ["operator"])


def test_a_weak_key_of_the_owner_takes_no_account(shared: Scene) -> None:
    """The attack: it rotates the owner's strong key, or adds an owner and removes the real one."""
    mine = f"/v1/accounts/{shared.renter.account_id}"
    weak = key(shared, shared.renter, "account:admin")
    (owner,) = shared.renter.read(f"{mine}/members")["data"]
    strong = shared.renter.read(f"{mine}/api-keys")["data"][0]["key_id"]
    assert seen(weak.post(f"{mine}/api-keys/{strong}/rotate")) == (403, "key_exceeds_issuer")
    shared.member(weak, "owner", ["account:admin"])
    removed = weak.post(f"{mine}/members/{owner['member_id']}/remove")
    assert seen(removed) == (403, "key_exceeds_issuer")
    assert shared.renter.get(mine).status_code == 200


def test_an_invitee_redeems_once_and_alone_sees_the_key(scene: Scene) -> None:
    mine = f"/v1/accounts/{scene.renter.account_id}"
    asked = {"role": "billing", "scopes": ["earnings:read"]}
    made = scene.renter.made(f"{mine}/invitations", asked)
    assert made["expires_at"] == "2026-11-21T08:02:00.000000Z"
    (listed,) = scene.renter.read(f"{mine}/invitations")["data"]
    assert "code" not in listed
    assert listed["invitation_id"] == made["invitation_id"]
    told = scene.anybody.made("/v1/invitations/redeem", {"code": made["code"]}, key="redeem-1")
    again = scene.anybody.post(
        "/v1/invitations/redeem", {"code": made["code"]}, key="redeem-1"
    ).json()
    assert (again["key"], again["account_id"]) == (told["key"], scene.renter.account_id)
    second = scene.anybody.post("/v1/invitations/redeem", {"code": made["code"]})
    assert seen(second) == (404, "invitation_unknown")
    invitee = Caller(scene.http, told["key"], scene.renter.account_id)
    assert invitee.get(f"{mine}/members").status_code == 403
    assert invitee.get("/v1/earnings").status_code == 200
    members = scene.renter.read(f"{mine}/members")["data"]
    assert {"member_id": told["member_id"], "role": "billing"}.items() <= members[1].items()
    assert scene.renter.read(f"{mine}/invitations")["data"] == []


def test_an_invitation_that_is_over_or_withdrawn_or_foreign_gives_nothing(shared: Scene) -> None:
    mine = f"/v1/accounts/{shared.renter.account_id}/invitations"
    asked = {"role": "viewer", "scopes": ["account"]}
    first, second = shared.renter.made(mine, asked), shared.renter.made(mine, asked)
    withdraw = f"{mine}/{first['invitation_id']}/withdraw"
    assert seen(shared.stranger.post(withdraw)) == (404, "account_unknown")
    shared.renter.made(withdraw)
    refused = shared.anybody.post("/v1/invitations/redeem", {"code": first["code"]})
    assert seen(refused) == (404, "invitation_unknown")
    shared.clock.advance(DAY_US)  # type: ignore[attr-defined]
    late = shared.anybody.post("/v1/invitations/redeem", {"code": second["code"]})
    assert seen(late) == (409, "invitation_ended")
    assert shared.renter.read(mine)["data"] == []


def test_the_operator_is_shown_no_key_of_a_client(shared: Scene) -> None:
    """The attack: the operator issues a key for an instance of a client, in its owner's name."""
    account = shared.account(kind="client")
    shared.operator.made("/v1/clients", {"client_id": account.account_id})
    path = f"/v1/clients/{account.account_id}/instances/main/keys"
    assert seen(shared.operator.post(path)) == (404, "account_unknown")
    made = account.made(path)
    mine = f"/v1/clients/{account.account_id}/keys"
    assert shared.operator.delete(f"{mine}/{made['key_id']}").status_code == 200
    instance = Caller(shared.http, made["key"], account.account_id)
    assert instance.post("/v1/jobs", shared.job()).status_code == 401


def test_the_cap_of_a_key_goes_on_for_its_successor(shared: Scene) -> None:
    """The attack: rotate a capped key, and its successor opens a lease of 20 credits."""
    mine = f"/v1/accounts/{shared.renter.account_id}"
    made = shared.renter.made(f"{mine}/api-keys", {"scopes": ["renter", "account"]})
    capped = Caller(shared.http, made["key"], shared.renter.account_id)
    cap = {"asset": "CREDIT", "units": "1000000"}
    shared.renter.made(
        f"{mine}/budgets", {"scope": "key", "target": made["key_id"], "monthly": cap}
    )
    lease = {"job": shared.job(), "funds": {"asset": "CREDIT", "units": "20000000"}}
    assert seen(capped.post("/v1/leases", lease)) == (409, "budget_exhausted")
    told = capped.made(f"{mine}/api-keys/{made['key_id']}/rotate")
    successor = Caller(shared.http, told["key"], shared.renter.account_id)
    assert seen(successor.post("/v1/leases", lease)) == (409, "budget_exhausted")
    raised = {"asset": "CREDIT", "units": "25000000"}
    answer = shared.renter.made(
        f"{mine}/budgets", {"scope": "key", "target": told["key_id"], "monthly": raised}
    )
    assert answer["target"] == made["key_id"], "one cap for the whole chain"
    assert successor.post("/v1/leases", lease).status_code == 201
    (row,) = shared.renter.read(f"{mine}/budgets")["data"]
    assert (row["target"], row["used"]["units"]) == (made["key_id"], "20000000")


def test_the_api_names_the_scopes_of_the_domain() -> None:
    assert get_args(ScopeName) == SCOPES


@pytest.mark.parametrize("verb", ["role", "remove"])
def test_an_address_in_the_place_of_a_member_is_refused_by_its_field(
    shared: Scene, verb: str
) -> None:
    """It was answered 500."""
    path = f"/v1/accounts/{shared.renter.account_id}/members/me@example.org/{verb}"
    told = shared.renter.post(path, {"role": "admin"} if verb == "role" else {})
    assert seen(told) == (422, "invalid")
    assert "member_id" in told.text
