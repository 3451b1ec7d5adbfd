"""The way back for an operator who lost every key: announced, 72 hours late, stopped by one."""

from __future__ import annotations

from typing import Any

import pytest

from api.authority.waiting_timer import run_key_recovery
from api.door import keys
from domain.authority.key_recovery import KEY_RECOVERY_US, AnnounceKeyRecovery, EndKeyRecovery
from domain.refusal import Refused
from tests.api.parties.test_members import key, seen
from tests.scenes.governors import ANNA, DIDO, WalletGovernor, enrol_all
from tests.scenes.server import Caller, Scene

RECOVERIES = "/v1/key-recoveries"
CANCEL = f"{RECOVERIES}/1/cancel"


def announced(scene: Scene, member: str | None = None) -> Caller:
    """What `tallystick admin recover-key` does on the server's machine; the new key's caller."""
    secret = keys.new(live=False)
    key_id = keys.key_id(secret)
    assert key_id is not None
    command = AnnounceKeyRecovery(
        key_id=key_id, key_sha256=keys.digest(secret), member_id=member, at_us=scene.clock.now_us()
    )
    scene.service.ledger.handle(command, key=None, now_us=scene.clock.now_us())
    return Caller(scene.http, secret, "acct_operator")


def passed(scene: Scene, time_us: int) -> int:
    """Time passes, and the timer has its turn."""
    scene.clock.advance(time_us)  # type: ignore[attr-defined]
    with scene.service.connect() as connection:
        return run_key_recovery(scene.service, connection, scene.clock.now_us())


def status(scene: Scene, number: int = 1) -> str:
    told = scene.anybody.read(RECOVERIES)["data"][number - 1]["status"]
    return str(told)


def ballot(scene: Scene) -> dict[str, Any]:
    """What a governor signs to cancel: the set is that of today."""
    told = scene.anybody.read(RECOVERIES)["data"][0]["ballot"]
    return {**told, "governors": scene.anybody.read("/v1/governors")["version"]}


def test_a_lost_key_comes_back_after_72_hours_that_everybody_sees(scene: Scene) -> None:
    new = announced(scene)
    told = scene.anybody.read(RECOVERIES)["data"]
    assert [(one["status"], one["member_id"]) for one in told] == [("waiting", "member_operator")]
    assert "tallystick_key_recovery_waiting 1" in scene.http.get("/metrics").text
    assert passed(scene, KEY_RECOVERY_US - 1) == 0
    assert new.get("/v1/accounts/acct_operator").status_code == 401
    assert passed(scene, 1) == 1
    assert new.read("/v1/accounts/acct_operator")["account_id"] == "acct_operator"
    assert (status(scene), passed(scene, 1)) == ("ended", 0)
    assert "tallystick_key_recovery_waiting 0" in scene.http.get("/metrics").text
    mine = "/v1/accounts/acct_operator/api-keys"
    lost = new.read(mine)["data"][0]["key_id"]
    assert new.delete(f"{mine}/{lost}").status_code == 200
    assert seen(scene.operator.get(mine)) == (401, "credential_invalid")


def test_a_present_operator_stops_a_recovery_that_nobody_asked_for(scene: Scene) -> None:
    """The attack: whoever got into the server's machine announces a key of their own."""
    thief = announced(scene)
    assert passed(scene, KEY_RECOVERY_US - 1) == 0
    now_us = scene.clock.now_us()
    early = EndKeyRecovery(number=1, at_us=now_us)
    with pytest.raises(Refused, match="key_recovery_state"):  # not even past the timer
        scene.service.ledger.handle(early, key=None, now_us=now_us)
    assert thief.get("/v1/accounts/acct_operator").status_code == 401
    weak = key(scene, scene.operator, "operator")
    assert seen(weak.post(CANCEL, {})) == (403, "administrator_needed")
    assert scene.owner.post(CANCEL, {}).status_code == 403
    assert scene.operator.made(CANCEL, {})["data"][0]["status"] == "cancelled"
    assert passed(scene, KEY_RECOVERY_US) == 0
    assert thief.get("/v1/accounts/acct_operator").status_code == 401
    assert seen(scene.operator.post(CANCEL, {})) == (409, "key_recovery_state")
    assert seen(scene.operator.post(f"{RECOVERIES}/2/cancel", {})) == (404, "key_recovery_unknown")


def test_whoever_stole_the_operators_key_does_not_keep_its_owner_out(scene: Scene) -> None:
    """The attack: with the stolen key each recovery is cancelled. A governor may, and no key."""
    enrol_all(scene.operator, (ANNA,))
    new = announced(scene)
    assert seen(scene.operator.post(CANCEL, {})) == (409, "second_person_needed")
    forged = ANNA.voting(ballot(scene), "cancel")
    forged["signature"] = DIDO.sign("anything")
    assert seen(scene.operator.post(CANCEL, {"vote": forged})) == (422, "signature_invalid")
    assert passed(scene, KEY_RECOVERY_US) == 1
    assert new.get("/v1/accounts/acct_operator").status_code == 200


def test_one_governor_is_enough_to_stop_a_recovery(scene: Scene) -> None:
    grace = WalletGovernor("grace")
    enrol_all(scene.operator, (ANNA, grace, DIDO))
    announced(scene)
    vote = grace.voting(ballot(scene), "cancel")
    told = scene.operator.made(CANCEL, {"vote": vote})["data"][0]
    assert (told["status"], told["ballot"]["cancel"]) == ("cancelled", [grace.governor_id])
    assert passed(scene, KEY_RECOVERY_US) == 0


def test_one_recovery_waits_at_a_time_and_is_for_an_owner(scene: Scene) -> None:
    member = scene.member(scene.operator, "admin", ["operator"])
    with pytest.raises(Refused, match="owner_needed"):
        announced(scene, member.member_id)
    announced(scene, "member_operator")
    with pytest.raises(Refused, match="key_recovery_state"):
        announced(scene)


def test_a_recovery_for_an_owner_who_has_left_gives_no_key(scene: Scene) -> None:
    all_scopes = scene.operator.read("/v1/accounts/acct_operator/api-keys")["data"][0]["scopes"]
    second = scene.member(scene.operator, "owner", all_scopes)
    new = announced(scene, second.member_id)
    scene.operator.made(f"/v1/accounts/acct_operator/members/{second.member_id}/remove")
    assert passed(scene, KEY_RECOVERY_US) == 1
    assert (status(scene), new.get("/v1/accounts/acct_operator").status_code) == ("cancelled", 401)
