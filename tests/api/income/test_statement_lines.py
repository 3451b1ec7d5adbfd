"""A renter with nothing but `billing:read` takes a line of the bill down to the signed reports.

The renter believes no sum and no hash it is told: signatures, trees, charges and shares are
computed here from the formulas of `docs/reference/formats.md`, with a hash and a curve alone.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from tests.scenes.server import Caller, Scene
from tests.scenes.work import accrue_now, hours_of_work, pin_and_sign, run

LANES = 64


# --- the renter's own arithmetic --------------------------------------------------------------


def _lp4(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


def _root(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes:
    """RFC 6962: the root that this path leads to."""
    at, last, found = index, size - 1, leaf
    for sibling in path:
        assert last > 0
        if at % 2 or at == last:
            found = _node(sibling, found)
            while not at % 2 and at:
                at, last = at // 2, last // 2
        else:
            found = _node(found, sibling)
        at, last = at // 2, last // 2
    assert last == 0
    return found


def _signed_head(note: str, verifier_key: str) -> tuple[int, bytes]:
    """Size and root of a checkpoint, its signature checked with the log's public key."""
    text, _, signatures = note.partition("\n\n")
    name, _, key = verifier_key.split("+", 2)
    public = base64.b64decode(key)[1:]
    line = next(one for one in signatures.splitlines() if one.startswith(f"\u2014 {name} "))
    signature = base64.b64decode(line.split(" ")[2])[4:]
    VerifyKey(public).verify((text + "\n").encode(), signature)
    _, size, root = text.split("\n")[:3]
    return int(size), base64.b64decode(root)


def _proof(text: str) -> tuple[dict[str, Any], int, list[bytes], str]:
    head, _, checkpoint = text.partition("\n\n")
    _, extra, index, *path = head.split("\n")
    return (
        json.loads(base64.b64decode(extra.removeprefix("extra "))),
        int(index.removeprefix("index ")),
        [base64.b64decode(one) for one in path],
        checkpoint,
    )


def _fact(text: str, verifier_key: str) -> tuple[int, dict[str, Any], bytes]:
    """Position and body of the fact a proof shows, under the signed head; and its leaf."""
    extra, index, path, note = _proof(text)
    entry = extra["entry"]
    leaf = sha256(
        b"\0"
        + UUID(entry["originator_id"]).bytes
        + int(entry["version"]).to_bytes(8, "big")
        + _lp4(entry["name"].encode())
        + _lp4(base64.b64decode(entry["body"]))
    ).digest()
    size, root = _signed_head(note, verifier_key)
    assert _root(index, size, leaf, path) == root
    return index + 1, json.loads(base64.b64decode(entry["body"])), leaf


def _report(text: str, verifier_key: str, keys: dict[str, bytes]) -> tuple[dict[str, Any], Any]:
    """The report a proof shows: signed by its node, in its lane, in a pin, under the head."""
    _, pin, _ = _fact(text, verifier_key)
    extra = _proof(text)[0]
    told, lane = extra["report"], extra["lane"]
    stored = base64.b64decode(told["body"])
    signed_size = int.from_bytes(stored[:4], "big")
    signed, rest = stored[4 : 4 + signed_size], stored[4 + signed_size :]
    key_size = int.from_bytes(rest[:4], "big")
    key_id, signature = rest[4 : 4 + key_size].decode(), rest[8 + key_size :]
    kind = b"org.tallystick.usage.reported.v1"
    pae = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(signed), signed)
    VerifyKey(keys[key_id]).verify(pae, signature)
    leaf = sha256(
        b"\0"
        + bytes([told["lane"]])
        + _lp4(told["node_id"].encode())
        + int(told["node_seq"]).to_bytes(8, "big")
        + _lp4(b"usage.reported.v1")
        + _lp4(stored)
    ).digest()
    path = [base64.b64decode(one) for one in lane["path"]]
    lane_root = _root(told["position"] - 1, lane["size"], leaf, path)
    record = (
        bytes([told["lane"]])
        + int(lane["size"]).to_bytes(8, "big")
        + base64.b64decode(lane["head"])
        + lane_root
    )
    record_path = [base64.b64decode(one) for one in lane["record_path"]]
    record_leaf = sha256(b"\0" + record).digest()
    assert _root(told["lane"], LANES, record_leaf, record_path).hex() == pin["lanes_root"]
    return {**told, "leaf": leaf.hex(), "hash": sha256(pae).hexdigest()}, json.loads(signed)


def _ppm_us(report: dict[str, Any], lease_id: str, share_ppm: int) -> int:
    """What the rows of a lease come to in an honest report: every row inside the window."""
    cols, n = report["cols"], report["n"]

    def column(name: str) -> list[Any]:
        value = cols[name]
        return value if isinstance(value, list) else [value] * n

    ours = report["leases"].index(lease_id)
    return sum(
        min(share_ppm, report["devices"][device]["share_ppm"]) * us
        for device, lease, us in zip(
            column("device"), column("lease"), column("available_us"), strict=True
        )
        if lease == ours
    )


# --- the way down -----------------------------------------------------------------------------


def _billing_key(scene: Scene, whose: Caller) -> Caller:
    made = whose.made(f"/v1/accounts/{whose.account_id}/api-keys", {"scopes": ["billing:read"]})
    return Caller(scene.http, made["key"], whose.account_id)


def test_a_line_of_the_bill_leads_to_the_signed_reports_and_their_proofs(scene: Scene) -> None:
    renter = _billing_key(scene, scene.renter)
    funds = {"asset": "CREDIT", "units": "10000000"}
    lease, other = scene.running(funds=funds), scene.running(funds=funds)
    for first in (0, 30, 60):
        run(scene, lease, other, first=first, minutes=30)
    accrue_now(scene, lease["lease_id"])
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    pin_and_sign(scene)
    log_key = scene.anybody.read("/v1/audit/log/key")["verifier_key"]
    base = f"/v1/accounts/{renter.account_id}/statements"
    bill = renter.read(base, kind="usage")
    lines = [one for one in bill["lines"] if one["lease_id"] == lease["lease_id"]]
    assert len(lines) == 2, "one hour, and the rest"
    reserved = next(
        one
        for one in renter.read(base, kind="hold")["lines"]
        if one["lease_id"] == lease["lease_id"]
    )
    proof = renter.get(f"{base}/lines/{reserved['position']}/proof").text
    terms = _fact(proof, log_key)[1]
    price, share = int(terms["price_per_gpu_hour"]["units"]), terms["share_ppm"]
    fee_rate = int(terms["fee_per_gpu_hour"]["units"])
    ppm_us = charged = provider_before = 0
    for line in lines:
        at = f"{base}/lines/{line['position']}"
        position, fact, leaf = _fact(renter.get(f"{at}/proof").text, log_key)
        assert position == line["position"]
        detail = renter.read(at)
        assert detail["position"] == line["position"]
        assert detail["leaf"] == leaf.hex()
        assert {name: value for name, value in fact.items() if name != "blind"} == detail["body"]
        for told in renter.read(f"{at}/reports")["data"]:
            keys = {
                one["key_id"]: bytes.fromhex(one["public_key"])
                for one in scene.anybody.read(f"/v1/nodes/{told['node_id']}/keys")["data"]
            }
            file = renter.get(f"{at}/reports/{told['usage_position']}/proof").text
            shown, signed = _report(file, log_key, keys)
            assert (shown["leaf"], shown["hash"]) == (told["leaf"], told["hash"])
            assert shown["position"] == told["usage_position"]
            worth = _ppm_us(signed, lease["lease_id"], share)
            assert str(worth) == told["ppm_us"]
            ppm_us += worth
        charge = ppm_us // 1_000_000 * price // 3_600_000_000
        fee = charge * fee_rate // price
        provider = (charge - fee) * terms["provider_share_ppm"] // 1_000_000
        assert (fact["ppm_us"], int(fact["charge"]["units"])) == (str(ppm_us), charge)
        assert int(line["movement"]["units"]) == charged - charge, "the line, to the unit"
        entry = {one["name"]: int(one["movement"]["units"]) for one in detail["entry"]}
        assert sum(entry.values()) == 0
        assert entry[f"party:{scene.owner.account_id}:holdback"] == provider_before - provider
        steps = {one["name"]: one for one in detail["arithmetic"]}
        assert (steps["charge"]["before"], steps["charge"]["after"]) == (str(charged), str(charge))
        assert (steps["fee"]["after"], steps["provider"]["after"]) == (str(fee), str(provider))
        charged, provider_before = charge, provider
    assert charged == 3_000_000, "an hour and a half at 2.00"


def test_a_proof_with_one_byte_changed_shows_nothing(scene: Scene) -> None:
    hours_of_work(scene)
    pin_and_sign(scene)
    log_key = scene.anybody.read("/v1/audit/log/key")["verifier_key"]
    base = f"/v1/accounts/{scene.renter.account_id}/statements"
    line = scene.renter.read(base, kind="usage")["lines"][0]
    text = scene.renter.get(f"{base}/lines/{line['position']}/proof").text
    extra, *_ = _proof(text)
    body = base64.b64decode(extra["entry"]["body"]).replace(b'"units":"2000000"', b'"units":"1"')
    extra["entry"]["body"] = base64.b64encode(body).decode()
    forged = base64.b64encode(json.dumps(extra).encode()).decode()
    lines = text.split("\n")
    with pytest.raises(AssertionError):
        _fact("\n".join([lines[0], f"extra {forged}", *lines[2:]]), log_key)
    head = text.index("\n\n") + 2
    size = text[head:].split("\n")[1]
    with pytest.raises((BadSignatureError, AssertionError)):
        _fact(text[:head] + text[head:].replace(size, str(int(size) + 1), 1), log_key)


def test_a_line_is_shown_to_those_whose_books_it_moved(scene: Scene) -> None:
    hours_of_work(scene)
    base = f"/v1/accounts/{scene.renter.account_id}/statements"
    line = scene.renter.read(base, kind="usage")["lines"][0]
    at = f"lines/{line['position']}"
    assert scene.stranger.get(f"{base}/{at}").json()["code"] == "account_unknown"
    own = f"/v1/accounts/{scene.stranger.account_id}/statements/{at}"
    assert scene.stranger.get(own).json()["code"] == "not_found"
    earned = f"/v1/accounts/{scene.owner.account_id}/statements/{at}"
    assert scene.owner.read(earned)["lines"][0]["kind"] == "earning"
    (consumed,) = scene.owner.read(f"{earned}/reports")["data"]
    assert consumed["rows"] == 60
    assert scene.renter.get(f"{base}/{at}/proof").json()["code"] == "not_covered"
    report = f"{base}/{at}/reports/{consumed['usage_position'] + 1}/proof"
    assert scene.renter.get(report).json()["code"] == "not_found"
    hold = scene.renter.read(base, kind="hold")["lines"][0]
    told = scene.renter.read(f"{base}/lines/{hold['position']}")
    assert (told["arithmetic"], told["type"]) == ([], "lease.reserved.v1")
    assert scene.renter.read(f"{base}/lines/{hold['position']}/reports")["data"] == []
