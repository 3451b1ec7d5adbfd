"""Leaves and chains: what makes a stored byte impossible to change quietly. Pure; no database here.

    leaf  == SHA-256(0x00 || entry)
    chain == SHA-256(chain before || leaf);   genesis == SHA-256(name of the log)

Integers are big-endian and every variable part carries its length: `a|b` joins are ambiguous. The
stored bytes are hashed, never a re-encoding of them.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any
from uuid import UUID

from domain.metering.reasons import MeteringReason
from domain.metering.report import LANES, NAME, lane_of
from domain.refusal import Refused

MARKET = "market"
GENESIS_MARKET = sha256(MARKET.encode()).digest()

_USAGE_NAME = NAME.encode()


def lp4(data: bytes) -> bytes:
    """The length in 4 bytes, then the bytes."""
    return len(data).to_bytes(4, "big") + data


def genesis_usage(lane: int) -> bytes:
    """The chain of a usage lane before its first report."""
    return sha256(b"usage/%d" % lane).digest()


def chain(before: bytes, leaf: bytes) -> bytes:
    """The chain after one more leaf."""
    return sha256(before + leaf).digest()


def market_leaf(originator_id: UUID, version: int, name: str, body: bytes) -> bytes:
    """The leaf of a market fact, from the bytes as stored."""
    topic = name.encode()
    return sha256(
        b"\0%b%b%b%b%b%b"
        % (
            originator_id.bytes,
            version.to_bytes(8, "big"),
            len(topic).to_bytes(4, "big"),
            topic,
            len(body).to_bytes(4, "big"),
            body,
        )
    ).digest()


def usage_leaf(
    lane: int, node_id: str, node_seq: int, body: bytes, name: bytes = _USAGE_NAME
) -> bytes:
    """The leaf of a usage report; `body` is the stored body (`stored_body`)."""
    node = node_id.encode()
    head = b"\0%c%b%b%b%b" % (
        lane,
        lp4(node),
        node_seq.to_bytes(8, "big"),
        lp4(name),
        len(body).to_bytes(4, "big"),
    )
    digest = sha256(head)
    digest.update(body)
    return digest.digest()


def stored_body(signed: bytes, key_id: str, signature: bytes) -> bytes:
    """What the usage log keeps of a report: the signed bytes, the key's id, the signature."""
    return b"".join((len(signed).to_bytes(4, "big"), signed, lp4(key_id.encode()), lp4(signature)))


def split_body(body: bytes) -> tuple[bytes, str, bytes]:
    """Signed bytes, key id and signature of a stored body. Raises ValueError if it is not one."""
    first = 4 + int.from_bytes(body[:4], "big")
    second = first + 4 + int.from_bytes(body[first : first + 4], "big")
    third = second + 4 + int.from_bytes(body[second : second + 4], "big")
    if third == len(body):
        return body[4:first], body[first + 4 : second].decode(), body[second + 4 :]
    raise ValueError(_split_fault(body))


def _split_fault(body: bytes) -> str:
    """Why a body does not fall into three parts."""
    at = 0
    while at < len(body):
        end = at + 4 + int.from_bytes(body[at : at + 4], "big")
        if end > len(body) or at + 4 > len(body):
            return "stored body: a length points past the end"
        at = end
    return "stored body: three parts are needed"


# --- conformance suite `chain_hash` ----------------------------------------------------------


def conform(case: dict[str, Any]) -> dict[str, Any]:
    """Answer one case of the suite: operations `lane`, `leaf` and `chain`.

    Raises Refused: UNKNOWN_LOG, WRONG_LANE, STREAM_MOVED, in this order.
    """
    if case["op"] == "lane":
        return {"lane": lane_of(case["node_id"])}
    lane = _lane_of_log(case["log"])
    entries = [case["entry"]] if case["op"] == "leaf" else case["entries"]
    if lane is not None and any(lane_of(entry["node_id"]) != lane for entry in entries):
        raise Refused(MeteringReason.WRONG_LANE, log=case["log"])
    if case["op"] == "leaf":
        return {"leaf": _leaf(lane, entries[0]).hex()}
    assert case["op"] == "chain", case["op"]
    return _conform_chain(case, lane)


def _lane_of_log(log: str) -> int | None:
    if log == MARKET:
        return None
    lanes = {f"usage/{lane}": lane for lane in range(LANES)}
    if log not in lanes:
        raise Refused(MeteringReason.UNKNOWN_LOG, log=log)
    return lanes[log]


def _leaf(lane: int | None, entry: dict[str, Any]) -> bytes:
    body = bytes.fromhex(entry["body_hex"])
    if lane is None:
        originator, version = UUID(entry["originator_id"]), int(entry["version"])
        return market_leaf(originator, version, entry["name"], body)
    node_id, node_seq = entry["node_id"], int(entry["node_seq"])
    return usage_leaf(lane, node_id, node_seq, body, entry["name"].encode())


def _conform_chain(case: dict[str, Any], lane: int | None) -> dict[str, Any]:
    log = _Chain(
        int(case.get("position", "0")),
        bytes.fromhex(case["head"]) if "head" in case else _genesis(lane),
    )
    if lane is None:
        versions = [(UUID(entry["originator_id"]), entry["version"]) for entry in case["entries"]]
        if len(set(versions)) != len(versions):
            raise Refused(MeteringReason.STREAM_MOVED)
        results = [log.append(_leaf(None, entry)) for entry in case["entries"]]
    else:
        results = _report_by_report(case["entries"], lane, log.append)
    return {"results": results, "position": str(log.position), "head": log.head.hex()}


def _genesis(lane: int | None) -> bytes:
    return GENESIS_MARKET if lane is None else genesis_usage(lane)


class _Chain:
    def __init__(self, position: int, head: bytes) -> None:
        self.position = position
        self.head = head

    def append(self, leaf: bytes) -> dict[str, Any]:
        self.position += 1
        self.head = chain(self.head, leaf)
        return {"position": str(self.position), "leaf": leaf.hex(), "head": self.head.hex()}


def _report_by_report(
    entries: list[dict[str, Any]], lane: int, append: Callable[[bytes], dict[str, Any]]
) -> list[dict[str, Any]]:
    receipts: dict[tuple[str, int], dict[str, Any]] = {}
    last: dict[str, int] = {}
    results: list[dict[str, Any]] = []
    for entry in entries:
        key = (entry["node_id"], int(entry["node_seq"]))
        leaf = _leaf(lane, entry)
        first = receipts.get(key)
        if first is not None:
            results.append(first if first["leaf"] == leaf.hex() else {"refused": "conflict"})
        elif key[1] <= last.get(key[0], 0):
            results.append({"refused": "out_of_order"})
        else:
            last[key[0]] = key[1]
            receipts[key] = append(leaf)
            results.append(receipts[key])
    return results
