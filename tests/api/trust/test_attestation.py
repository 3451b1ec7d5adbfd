"""The seam of tier 4: a nonce bound to the chain, evidence checked by a plug-in."""

from __future__ import annotations

import base64
import hashlib
from importlib import metadata
from typing import Any

import pytest
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from api.trust.attestation import GROUP, Verdict
from tests.api.trust.test_tiers import trust
from tests.scenes.server import Scene
from tests.scenes.work import reported, send

MAKER = SigningKey(hashlib.sha256(b"the maker's key of a test device").digest())


class TestMaker:
    """Evidence is the maker's signature over the nonce and the device's id."""

    __test__ = False

    def verify(self, evidence: bytes, nonce: bytes, device_id: str) -> Verdict:
        try:
            VerifyKey(bytes(MAKER.verify_key)).verify(nonce + device_id.encode(), evidence)
        except BadSignatureError:
            return Verdict(False, "not signed by the maker")
        return Verdict(True, "signed by the maker")


@pytest.fixture(autouse=True)
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class above, installed as a package would install it."""
    point = metadata.EntryPoint("maker", f"{__name__}:TestMaker", GROUP)
    found = metadata.entry_points

    def entry_points(**asked: Any) -> Any:
        return (point,) if asked == {"group": GROUP} else found(**asked)

    monkeypatch.setattr("api.trust.attestation.metadata.entry_points", entry_points)


def path_of(scene: Scene) -> str:
    return f"/v1/nodes/{scene.provider.node_id}/devices/{scene.provider.device_ids[0]}"


def evidence(nonce: str, device_id: str) -> str:
    signed = MAKER.sign(bytes.fromhex(nonce) + device_id.encode()).signature
    return base64.b64encode(signed).decode()


def test_the_nonce_is_made_of_the_servers_and_the_head_of_the_chain(shared: Scene) -> None:
    body = reported(shared.provider, rows=(), devices=(), leases=())
    assert send(shared, shared.provider, body).status_code == 200
    told = shared.provider.node.made(f"{path_of(shared)}/attestation-nonce")
    assert (told["acked_seq"], told["head"]) == (1, shared.provider.signing.head.hex())
    made = hashlib.sha256(bytes.fromhex(told["server_nonce"] + told["head"])).hexdigest()
    assert told["nonce"] == made


def test_evidence_counts_once_and_a_nonce_of_another_time_does_not(shared: Scene) -> None:
    device_id, node = shared.provider.device_ids[0], shared.provider.node
    nonce = node.made(f"{path_of(shared)}/attestation-nonce")
    body = {
        "server_nonce": nonce["server_nonce"],
        "plugin": "maker",
        "evidence": evidence(nonce["nonce"], device_id),
    }
    assert node.made(f"{path_of(shared)}/attestation", body)["passed"] is True
    findings = trust(shared, shared.provider, device_id)["findings"]
    assert "attestation" not in {one["rule"] for one in findings}
    again = node.post(f"{path_of(shared)}/attestation", body)
    assert again.json()["code"] == "reference_invalid", "a nonce is answered once"
    clock: Any = shared.clock
    late = node.made(f"{path_of(shared)}/attestation-nonce")
    clock.advance(600_000_000)
    body = {**body, "server_nonce": late["server_nonce"]}
    assert node.post(f"{path_of(shared)}/attestation", body).json()["code"] == "reference_invalid"


def test_evidence_of_another_device_is_recorded_as_failed(shared: Scene) -> None:
    node, device_id = shared.provider.node, shared.provider.device_ids[0]
    nonce = node.made(f"{path_of(shared)}/attestation-nonce")
    body = {
        "server_nonce": nonce["server_nonce"],
        "plugin": "maker",
        "evidence": evidence(nonce["nonce"], "GPU-of-somebody-else"),
    }
    told = node.made(f"{path_of(shared)}/attestation", body)
    assert (told["passed"], told["detail"]) == (False, "not signed by the maker")
    findings = trust(shared, shared.provider, device_id)["findings"]
    assert next(one["detail"] for one in findings if one["rule"] == "attestation") == "failed"


def test_a_plugin_that_is_not_installed_attests_nothing(shared: Scene) -> None:
    node = shared.provider.node
    nonce = node.made(f"{path_of(shared)}/attestation-nonce")
    body = {"server_nonce": nonce["server_nonce"], "plugin": "nobody", "evidence": "AAAA"}
    refused = node.post(f"{path_of(shared)}/attestation", body)
    assert refused.json()["code"] == "reference_invalid"
    assert refused.json()["facts"]["field"] == "plugin"
