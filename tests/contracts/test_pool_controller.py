"""A pool's controller on a real EVM: what the ledger has comes onto it, and a lie is named."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from contracts import pool_controller
from contracts.abi import POOL_CONTROLLER, ContractRefused, artifact
from contracts.chain import Call
from contracts.pool_controller import Component, Heads, PoolRecord
from tests.contracts.stage import Stage

GATEWAY, LICENCE = Component("comp_1", "gateway", False), Component("comp_2", "licence", False)
CUTS = {40: Heads(40, b"\x01" * 32, b"\x02" * 32), 90: Heads(90, b"\x03" * 32, b"\x04" * 32)}
RECORD = PoolRecord((GATEWAY, LICENCE), (b"\x08" * 32, b"\x05" * 32), CUTS)


@pytest.fixture
def address(stage: Stage) -> str:
    return pool_controller.deploy(
        stage.chain,
        stage.people["admin"],
        registrar=stage.address("admin"),
        anchorer=stage.address("admin"),
    )


def publish(stage: Stage, address: str, record: PoolRecord = RECORD) -> list[str]:
    """Send what is missing; what each transaction did."""
    there = pool_controller.read(stage.chain, address)
    done = []
    for words, call in pool_controller.missing(record, there, address):
        stage.do("admin", call)
        done.append(words)
    return done


def differing(stage: Stage, address: str, record: PoolRecord = RECORD) -> list[str]:
    last = stage.chain.head().number
    return [one.name for one in pool_controller.differences(stage.chain, address, record, last)]


def send(stage: Stage, address: str, function: str, *arguments: Any) -> int:
    data = artifact(POOL_CONTROLLER).call_data(function, *arguments)
    return stage.do("admin", Call(address, data)).gas_used


def test_publishing_brings_all_of_it_and_a_second_time_nothing(stage: Stage, address: str) -> None:
    assert publish(stage, address) == [
        "register gateway comp_1",
        "register licence comp_2",
        "set the hash of the metadata",
        "anchor the heads at position 90",
    ]
    assert publish(stage, address) == []
    there = pool_controller.read(stage.chain, address)
    assert there.heads == CUTS[90]
    assert there.metadata_hash == b"\x05" * 32
    assert there.components == {
        sha256(b"tallystick/component/v1comp_1").digest(): (b"gateway".ljust(32, b"\0"), False),
        sha256(b"tallystick/component/v1comp_2").digest(): (b"licence".ljust(32, b"\0"), False),
    }
    assert differing(stage, address) == []


def test_a_component_that_left_is_retired(stage: Stage, address: str) -> None:
    publish(stage, address)
    left = replace(RECORD, components=(GATEWAY, replace(LICENCE, is_retired=True)))
    assert publish(stage, address, left) == ["retire licence comp_2"]
    assert differing(stage, address, left) == []


def test_what_was_not_published_yet_is_no_difference(stage: Stage, address: str) -> None:
    assert differing(stage, address) == []
    publish(stage, address, replace(RECORD, metadata_hashes=(b"\x08" * 32,), cuts={40: CUTS[40]}))
    assert differing(stage, address) == []


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (("registerComponent", b"\x09" * 32, b"\x01" * 32), f"component 0x{'09' * 32}"),
        (("registerComponent", GATEWAY.reference, LICENCE.kind_bytes), "kind of comp_1"),
        (("setMetadataHash", b"\x06" * 32), "metadata hash"),
        (("anchorHeads", 41, b"\x01" * 32, b"\x02" * 32), "position of the heads"),
        (("anchorHeads", 40, b"\x07" * 32, b"\x02" * 32), "allocation head at 40"),
        (("anchorHeads", 40, b"\x01" * 32, b"\x07" * 32), "licence head at 40"),
    ],
)
def test_a_controller_that_contradicts_the_log_is_named(
    stage: Stage, address: str, call: tuple[Any, ...], name: str
) -> None:
    send(stage, address, *call)
    assert differing(stage, address) == [name]


def test_a_component_retired_behind_the_log_is_named(stage: Stage, address: str) -> None:
    publish(stage, address)
    send(stage, address, "retireComponent", GATEWAY.reference)
    assert differing(stage, address) == ["component comp_1"]


def test_another_code_is_no_controller(stage: Stage) -> None:
    for address in (stage.at.token, "0x" + "11" * 20):
        assert not pool_controller.is_ours(stage.chain, address)
        assert differing(stage, address) == ["controller code"]
    with pytest.raises(ContractRefused):
        pool_controller.read(stage.chain, stage.at.token)


def test_components_are_found_by_their_place(stage: Stage, address: str) -> None:
    publish(stage, address)
    data = artifact(POOL_CONTROLLER).call_data("componentAt", 1)
    told = stage.chain.call(Call(address, data))
    reference, kind, retired = artifact(POOL_CONTROLLER).results("componentAt", told)
    assert (bytes(reference), bytes(kind), retired) == (
        LICENCE.reference,
        LICENCE.kind_bytes,
        False,
    )


def test_what_the_acts_cost(stage: Stage, address: str) -> None:
    block = stage.chain.head().number
    (transaction,) = stage.devnet.w3.eth.get_block(block)["transactions"]
    receipt = stage.chain.receipt("0x" + bytes(transaction).hex())  # type: ignore[arg-type]
    assert receipt is not None
    gas = {
        "deploy": receipt.gas_used,
        "register": send(stage, address, "registerComponent", GATEWAY.reference, b"\x01" * 32),
        "first": send(stage, address, "anchorHeads", 40, b"\x01" * 32, b"\x02" * 32),
        "next": send(stage, address, "anchorHeads", 90, b"\x03" * 32, b"\x04" * 32),
        "metadata": send(stage, address, "setMetadataHash", b"\x05" * 32),
    }
    bounds = {
        "deploy": 900_000,
        "register": 95_000,
        "first": 100_000,
        "next": 45_000,
        "metadata": 50_000,
    }
    assert {name: cost for name, cost in gas.items() if cost > bounds[name]} == {}, gas
