"""Governors with passkeys over HTTP: they enrol, vote and sign acts by an assertion (WebAuthn)."""

from __future__ import annotations

from typing import Any

import pytest

from domain.authority.register import GOVERNORS
from tests.api.authority.test_governors import CHANGES, voted
from tests.api.authority.test_second_person import taken, verified
from tests.api.governance.test_grants import seen
from tests.scenes.governors import ANNA, PRESENT, PasskeyGovernor, enrol_all, signatures
from tests.scenes.server import NOW_US, Scene

EVE, KEN = PasskeyGovernor("eve", is_eddsa=False), PasskeyGovernor("ken", is_eddsa=True)


def test_passkeys_enrol_vote_and_sign_acts_and_an_export_shows_it(scene: Scene) -> None:
    op = scene.operator
    told = enrol_all(op, (EVE, ANNA, KEN))
    assert (told["version"], told["mode"], told["threshold"]) == (3, "shared", 2)
    assert [one["key"] for one in told["governors"]] == [EVE.key, ANNA.key, KEN.key]
    removal = {"action": "remove", "governors": 3, "governor_id": ANNA.governor_id}
    assert seen(op.post(CHANGES, removal)) == (422, "governor_change_invalid")
    threshold = {"action": "threshold", "governors": 3, "threshold": 3}
    change = op.made(CHANGES, threshold)["changes"][-1]
    for who in (EVE, KEN):
        change = voted(op, change, who).json()["changes"][-1]
    assert (change["status"], change["ballot"]["yes"]) == (
        "scheduled",
        [EVE.governor_id, KEN.governor_id],
    )
    path = "/v1/trust/libraries"
    body = {"driver": "575.57.08", "sha256": "a" * 64}
    named = signatures((EVE, KEN), told, path, body, key="act-1", not_after_us=NOW_US + 10**9)
    assert seen(op.post(path, body, key="act-0")) == (403, "checker_needed")
    op.made(path, body, key="act-1", **named)
    kept = scene.service.ledger.market.state_of(GOVERNORS).keys
    assert kept[EVE.governor_id] == EVE.key
    assert verified(scene), "by the facts alone"
    assert len([one for one in taken(scene) if one.signed]) == 1


@pytest.mark.parametrize("who", [EVE, KEN], ids=["es256", "eddsa"])
def test_an_assertion_of_another_page_person_or_text_is_refused(
    scene: Scene, who: PasskeyGovernor, monkeypatch: pytest.MonkeyPatch
) -> None:
    op = scene.operator
    network = op.read("/v1/governors")["network"]

    def tried(**told: Any) -> tuple[int, str]:
        with monkeypatch.context() as patched:
            for name, value in told.items():
                patched.setattr(who, name, value)
            body = who.enrolment(network, 0)
        return seen(op.post(CHANGES, body))

    invalid = (422, "signature_invalid")
    assert tried(origin="https://p00l.example") == invalid, "a page elsewhere"
    assert tried(origin="https://www.pool.example") == invalid
    assert tried(flags=PRESENT) == invalid, "the person was not verified"
    assert tried(flags=4) == invalid, "no person was there"
    assert tried(kind="webauthn.create") == invalid
    other = {**who.enrolment(network, 0), "signature": who.enrolment(network, 1)["signature"]}
    assert seen(op.post(CHANGES, other)) == invalid, "another text"
    good = who.enrolment(network, 0)
    head, client_data, signed = good["signature"].split(".")
    for forged in (
        f"{head}.{client_data}.{signed[:-2]}{int(signed[-2:], 16) ^ 1:02x}",
        f"{head[:-2]}08.{client_data}.{signed}",
        f"{head}.{client_data[:-2]}7d7d.{signed}",
        f"{head}.{'5b' * 512}.{signed}",
    ):
        assert seen(op.post(CHANGES, {**good, "signature": forged})) == invalid
    assert seen(op.post(CHANGES, {**good, "key": ANNA.key})) == invalid
    for bad in (good["key"].replace("https:", "http:"), good["key"] + "/", good["key"].upper()):
        assert seen(op.post(CHANGES, {**good, "key": bad}))[0] == 422
    long = {**good, "signature": f"{head}.{'7b' * 513}.{signed}"}
    assert seen(op.post(CHANGES, long))[0] == 422
    assert op.made(CHANGES, good)["version"] == 1


def test_a_vote_that_a_passkey_gave_serves_no_other_ballot(scene: Scene) -> None:
    op = scene.operator
    told = enrol_all(op, (EVE,))
    first = op.made(CHANGES, ANNA.enrolment(told["network"], 1))["changes"][-1]
    second = op.made(CHANGES, KEN.enrolment(told["network"], 1))["changes"][-1]
    vote = EVE.voting(first["ballot"])
    copied = {
        "choice": "yes",
        "vote": {**EVE.voting(second["ballot"]), "signature": vote["signature"]},
    }
    path = f"{CHANGES}/{second['number']}/votes"
    assert seen(op.post(path, copied)) == (422, "signature_invalid")
    assert voted(op, first, EVE).json()["version"] == 2
