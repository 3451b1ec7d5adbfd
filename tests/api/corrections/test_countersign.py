"""Both halves of the stick over HTTP: the node's reports, and what the renter signed for."""

from __future__ import annotations

from typing import Any

from nacl.signing import SigningKey

from domain.duration import HOUR_US
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import hours_of_work

KEY = SigningKey(b"renter" + b"\0" * 26)


def added(scene: Scene) -> str:
    path = f"/v1/accounts/{scene.renter.account_id}/signing-keys"
    told = scene.renter.made(path, {"public_key": bytes(KEY.verify_key).hex()})
    return str(told["key_id"])


def half(lease_id: str, key_id: str, gpu_us: int, key: SigningKey = KEY) -> dict[str, Any]:
    """A signature for so much up to the end of the first hour, as a renter's program makes it."""
    lines = ["tallystick/countersign/v1", lease_id, f"gpu_us {gpu_us}"]
    lines.append(f"until_us {NOW_US + HOUR_US}")
    signature = key.sign("\n".join(lines).encode()).signature.hex()
    return {
        "key_id": key_id,
        "gpu_us": str(gpu_us),
        "until": "2026-11-20T09:02:00Z",
        "signature": signature,
    }


def test_a_renter_signs_for_an_hour_and_both_halves_match(scene: Scene) -> None:
    lease_id = hours_of_work(scene)[0]["lease_id"]
    path, key_id = f"/v1/leases/{lease_id}", added(scene)
    before = scene.renter.read(f"{path}/stick")
    assert (before["unconfirmed_gpu_us"], before["signatures"]) == (str(HOUR_US), [])
    told = scene.renter.made(f"{path}/countersign", half(lease_id, key_id, HOUR_US - 5))
    assert told["gpu_us"] == str(HOUR_US - 5)
    for reader in (scene.renter, scene.owner, scene.auditor):
        stick = reader.read(f"{path}/stick")
        parts = [stick[f"{part}_gpu_us"] for part in ("matched", "unconfirmed", "contested")]
        assert parts == [str(HOUR_US - 5), "0", "5"]
        assert [one["signature"] for one in stick["signatures"]] == [told["signature"]]
    month = f"/v1/accounts/{scene.renter.account_id}/statements/2026-11"
    (line,) = scene.renter.read(month)["leases"]
    assert [line[f"{part}_gpu_us"] for part in ("matched", "unconfirmed", "contested")] == parts
    scene.renter.made(f"{path}/countersign", half(lease_id, key_id, HOUR_US))
    assert scene.renter.read(f"{path}/stick")["matched_gpu_us"] == str(HOUR_US)
    assert scene.stranger.get(f"{path}/stick").status_code == 404


def test_only_a_signature_of_the_renters_own_key_counts(scene: Scene) -> None:
    lease_id = hours_of_work(scene)[0]["lease_id"]
    path, key_id = f"/v1/leases/{lease_id}/countersign", added(scene)
    forged = half(lease_id, key_id, HOUR_US, SigningKey(b"\1" * 32))
    refused = scene.renter.post(path, forged)
    assert (refused.status_code, refused.json()["code"]) == (422, "signature_invalid")
    other = scene.renter.post(path, {**half(lease_id, key_id, HOUR_US), "gpu_us": "1"})
    assert (other.status_code, other.json()["code"]) == (422, "signature_invalid")
    assert scene.stranger.post(path, half(lease_id, key_id, HOUR_US)).status_code == 404
    keys = f"/v1/accounts/{scene.renter.account_id}/signing-keys"
    told = scene.renter.made(f"{keys}/{key_id}/revoke")
    assert told["revoked_at"] is not None
    assert scene.renter.read(keys)["data"][0]["revoked_at"] == told["revoked_at"]
    gone = scene.renter.post(path, half(lease_id, key_id, HOUR_US))
    assert (gone.status_code, gone.json()["code"]) == (404, "signing_key_unknown")
    assert scene.renter.read(f"/v1/leases/{lease_id}/stick")["signatures"] == []
