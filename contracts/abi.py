"""The compiled contracts and how to speak to them: calldata in, values, events and errors out.

Reads the committed artifacts; needs no compiler and no connection. It says nothing about where a
contract is deployed (`deployment.py`) or how bytes reach a node (`chain.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError

from contracts.payout_tree import keccak256

ARTIFACTS = Path(__file__).parent / "artifacts"
CONTRACTS = ("TallyToken", "RewardsDistributor", "EmissionController", "CreditBurner")
"""The set that moves TOKEN, deployed once for a network."""
POOL_CONTROLLER = "PoolController"
"""Deployed once for each pool that has one."""

_BUILT_IN_ERRORS: tuple[Mapping[str, Any], ...] = (
    {"name": "Error", "inputs": [{"name": "message", "type": "string"}]},
    {"name": "Panic", "inputs": [{"name": "code", "type": "uint256"}]},
)


class ContractRefused(Exception):
    """A contract refused the call by a named error; nothing changed on chain."""

    def __init__(self, error: str, arguments: Mapping[str, Any], data: bytes) -> None:
        super().__init__(error, dict(arguments))
        self.error = error
        self.arguments = dict(arguments)
        self.data = data

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"{self.error}({told})"


@dataclass(frozen=True, slots=True)
class DecodedLog:
    """One event: its name and its arguments, addresses checksummed as eth-abi gives them."""

    event: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Artifact:
    """One compiled contract as committed in `contracts/artifacts`."""

    name: str
    abi: tuple[Mapping[str, Any], ...]
    initcode: bytes
    runtime: bytes
    immutables: tuple[tuple[int, int], ...]
    input_sha256: str

    def deploy_data(self, *arguments: Any) -> bytes:
        """Init code followed by the encoded constructor arguments."""
        found = [item for item in self.abi if item["type"] == "constructor"]
        types = _types(found[0]["inputs"]) if found else []
        return self.initcode + encode(types, arguments)

    def call_data(self, function: str, *arguments: Any) -> bytes:
        """Selector and encoded arguments of one function. Raises KeyError for an unknown name."""
        item = self._named("function", function)
        return _selector(item) + encode(_types(item["inputs"]), arguments)

    def results(self, function: str, data: bytes) -> tuple[Any, ...]:
        """What a call of `function` returned."""
        return decode(_types(self._named("function", function)["outputs"]), data)

    def topic(self, event: str) -> bytes:
        """The first topic of an event's logs."""
        return keccak256(_signature(self._named("event", event)).encode())

    def events(self) -> Iterator[str]:
        """Names of all events, inherited ones included."""
        return (item["name"] for item in self.abi if item["type"] == "event")

    def decode_log(self, topics: Sequence[bytes], data: bytes) -> DecodedLog | None:
        """The event in a log; None when it is none of ours or does not decode."""
        item = self._event_by_topic.get(bytes(topics[0])) if topics else None
        if item is None:
            return None
        indexed = [field for field in item["inputs"] if field["indexed"]]
        plain = [field for field in item["inputs"] if not field["indexed"]]
        if len(topics) != 1 + len(indexed):
            return None
        values: dict[str, Any] = {}
        try:
            for field, topic in zip(indexed, topics[1:], strict=True):
                values[field["name"]] = decode([field["type"]], bytes(topic))[0]
            decoded = decode(_types(plain), data)
        except DecodingError:
            return None
        values |= {field["name"]: value for field, value in zip(plain, decoded, strict=True)}
        return DecodedLog(item["name"], {f["name"]: values[f["name"]] for f in item["inputs"]})

    def runtime_matches(self, code: bytes) -> bool:
        """Whether deployed code is this contract, whatever values its immutables have."""
        if len(code) != len(self.runtime):
            return False
        masked = bytearray(code)
        for start, length in self.immutables:
            masked[start : start + length] = bytes(length)
        return bytes(masked) == self.runtime

    @property
    def _event_by_topic(self) -> Mapping[bytes, Mapping[str, Any]]:
        return _events_of(self.name)

    def _named(self, kind: str, name: str) -> Mapping[str, Any]:
        for item in self.abi:
            if item["type"] == kind and item["name"] == name:
                return item
        raise KeyError(f"{self.name} has no {kind} {name}")


@cache
def artifact(name: str) -> Artifact:
    """The committed artifact of one contract. Raises FileNotFoundError for an unknown name."""
    found = json.loads((ARTIFACTS / f"{name}.json").read_bytes())
    return Artifact(
        name=found["contract"],
        abi=tuple(found["abi"]),
        initcode=bytes.fromhex(found["initcode"][2:]),
        runtime=bytes.fromhex(found["runtime"][2:]),
        immutables=tuple((at["start"], at["length"]) for at in found["immutable_references"]),
        input_sha256=found["input_sha256"],
    )


@cache
def errors_by_selector() -> Mapping[bytes, Mapping[str, Any]]:
    """Every error that our contracts and the compiler itself can answer with."""
    names = (*CONTRACTS, POOL_CONTROLLER)
    items = [e for name in names for e in artifact(name).abi if e["type"] == "error"]
    return {_selector(item): item for item in (*items, *_BUILT_IN_ERRORS)}


def refusal(data: bytes) -> ContractRefused:
    """The named exception in revert data; `Unknown` when no known error fits."""
    item = errors_by_selector().get(data[:4])
    if item is None:
        return ContractRefused("Unknown", {"data": "0x" + data.hex()}, data)
    try:
        values = decode(_types(item["inputs"]), data[4:])
    except DecodingError:
        return ContractRefused("Unknown", {"data": "0x" + data.hex()}, data)
    names = [field["name"] for field in item["inputs"]]
    return ContractRefused(item["name"], dict(zip(names, values, strict=True)), data)


@cache
def _events_of(name: str) -> Mapping[bytes, Mapping[str, Any]]:
    items = [item for item in artifact(name).abi if item["type"] == "event"]
    return {keccak256(_signature(item).encode()): item for item in items}


def _selector(item: Mapping[str, Any]) -> bytes:
    return keccak256(_signature(item).encode())[:4]


def _signature(item: Mapping[str, Any]) -> str:
    return f"{item['name']}({','.join(_types(item['inputs']))})"


def _types(fields: Sequence[Mapping[str, Any]]) -> list[str]:
    return [_type(field) for field in fields]


def _type(field: Mapping[str, Any]) -> str:
    kind: str = field["type"]
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(_types(field['components']))}){kind.removeprefix('tuple')}"
