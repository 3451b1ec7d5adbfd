"""The register of governors over HTTP: personal keys enrol, and an API key decides nothing."""

from __future__ import annotations

from typing import Any

from domain.epochs.epoch import CloseEpoch
from tests.api.governance.test_grants import seen
from tests.api.governance.test_policies import founded
from tests.domain.scenes.epochs import POLICY, START_US, pin
from tests.scenes.governors import ANNA, BORIS, CLEO, DIDO, WalletGovernor, enrol_all
from tests.scenes.server import Caller, Scene

CHANGES = "/v1/governors/changes"


def voted(carrier: Caller, change: Any, who: Any, choice: str = "yes") -> Any:
    body = {"choice": choice, "vote": who.voting(change["ballot"], choice)}
    return carrier.post(f"{CHANGES}/{change['number']}/votes", body)


def test_three_enrol_and_the_network_leaves_mode_single_for_good(scene: Scene) -> None:
    op = scene.operator
    empty = scene.anybody.read("/v1/governors")
    assert (empty["version"], empty["mode"], empty["governors"]) == (0, "single", [])
    grace = WalletGovernor("grace")
    told = enrol_all(op, (ANNA, grace))
    assert (told["version"], told["mode"], told["threshold"]) == (2, "single", 1)
    proposed = op.made(CHANGES, BORIS.enrolment(told["network"], 2))
    shared = voted(op, proposed["changes"][-1], grace).json()
    assert (shared["version"], shared["mode"], shared["threshold"]) == (3, "shared", 2)
    assert [one["key"] for one in shared["governors"]] == [ANNA.key, grace.key, BORIS.key]
    removal = {"action": "remove", "governors": 3, "governor_id": BORIS.governor_id}
    assert seen(op.post(CHANGES, removal)) == (422, "governor_change_invalid")


def test_an_operators_key_alone_enrols_no_ghost_beside_the_governors(scene: Scene) -> None:
    """Attack C1: one key makes the second and the third person."""
    op = scene.operator
    told = enrol_all(op)
    ghost = op.made(CHANGES, DIDO.enrolment(told["network"], told["version"]))["changes"][-1]
    assert seen(voted(op, ghost, DIDO)) == (409, "governor_unknown")
    stolen: Any = {"choice": "yes", "vote": DIDO.voting(ghost["ballot"])}
    stolen["vote"]["governor_id"] = ANNA.governor_id
    path = f"{CHANGES}/{ghost['number']}/votes"
    assert seen(op.post(path, stolen)) == (422, "signature_invalid")
    one = voted(op, ghost, ANNA).json()["changes"][-1]
    assert (one["status"], one["ballot"]["yes"], one["ballot"]["needed"]) == (
        "proposed",
        [ANNA.governor_id],
        2,
    )
    two = voted(op, ghost, CLEO).json()["changes"][-1]
    assert (two["status"], two["from_epoch"]) == ("scheduled", 2)
    assert seen(op.post(f"{CHANGES}/{ghost['number']}/apply", {})) == (409, "governor_change_state")


def test_a_change_that_two_voted_for_is_applied_once_its_epoch_was_opened(scene: Scene) -> None:
    op = scene.operator
    told = enrol_all(op)
    change = op.made(CHANGES, DIDO.enrolment(told["network"], told["version"]))["changes"][-1]
    apply = f"{CHANGES}/{change['number']}/apply"
    for who in (ANNA, CLEO):
        change = voted(op, change, who).json()["changes"][-1]
    assert (change["status"], change["from_epoch"]) == ("scheduled", 2)
    founded(scene)
    assert seen(op.post(apply, {})) == (409, "governor_change_state")
    end_us = START_US + POLICY.epoch_length_us
    closed = CloseEpoch(epoch=1, pin=pin(0, end_us), by="job", at_us=end_us)
    scene.service.ledger.handle([closed], key=None, now_us=end_us)
    after = op.made(apply, {})
    assert (after["version"], after["threshold"]) == (4, 2)
    assert DIDO.governor_id in [one["governor_id"] for one in after["governors"]]
    assert after["changes"][-1]["from_epoch"] == 2
    assert seen(op.post(apply, {})) == (409, "governor_change_state")


def test_who_enrols_holds_the_key_and_carries_it_with_the_operators_scope(shared: Scene) -> None:
    network = shared.anybody.read("/v1/governors")["network"]
    body = ANNA.enrolment(network, 0)
    for caller in (shared.renter, shared.auditor):
        assert seen(caller.post(CHANGES, body)) == (403, "scope_missing")
    forged = {**body, "signature": BORIS.enrolment(network, 0)["signature"]}
    assert seen(shared.operator.post(CHANGES, forged)) == (422, "signature_invalid")
    other = ANNA.enrolment("another.example/log", 0)
    assert seen(shared.operator.post(CHANGES, other)) == (422, "signature_invalid")
