"""Receipts: a fact or a report is shown to be in the log offline, and nothing else can be shown."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from nacl.signing import SigningKey

from domain.metering.report import lane_of
from ledger.tree import proof, prove
from ledger.tree.checkpoint import VerifierKey
from ledger.tree.prove import NotCovered
from tests.conftest import Databases
from tests.scenes.audit import LOG_SEED, ORIGIN, Node, open_scene

KEY = VerifierKey(ORIGIN, bytes(SigningKey(LOG_SEED).verify_key))


@dataclass(frozen=True)
class Made:
    """A log with 3 pins, 6 pinned reports of one node, one unpinned, and an unsigned tail."""

    conninfo: str
    node: Node
    lane: int
    pins: list[int]


@pytest.fixture(scope="module")
def made(
    postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Made, None, None]:
    conninfo = postgres.create_database("test_proof", template=template)
    scene = open_scene(conninfo)
    with closing(scene.conn):
        node, pins = scene.join(1), list[int]()
        scene.join(2)
        for _ in range(3):
            scene.send(node.report(), node.report())
            scene.anything(9)
            pins.append(scene.pin())
        scene.sign(tmp_path_factory.mktemp("proof"))
        scene.send(node.report())
        scene.pin()
        yield Made(conninfo, node, lane_of(node.id), pins)
    postgres.drop_database("test_proof")


@pytest.mark.parametrize("position", [1, 2, 3, 16, 32])
def test_every_signed_fact_is_proved(made: Made, position: int) -> None:
    text = prove.prove(made.conninfo, str(position))
    assert text.startswith("c2sp.org/tlog-proof@v1\nextra ")
    assert f"\nindex {position - 1}\n" in text
    checked = proof.check(text, KEY)
    assert (checked.position, checked.checkpoint.size) == (position, 32)
    assert checked.report is None
    assert str(checked).endswith(f"is fact {position} of {ORIGIN} at 32 facts")


@pytest.mark.parametrize("position", range(1, 7))
def test_every_pinned_report_is_proved_under_the_first_pin_that_covers_it(
    made: Made, position: int
) -> None:
    text = prove.prove(made.conninfo, f"usage/{made.lane}/{position}")
    checked = proof.check(text, KEY, made.node.public)
    assert checked.report is not None
    assert (checked.report.node_id, checked.report.node_seq) == (made.node.id, position)
    assert checked.position == made.pins[(position - 1) // 2]
    assert f"report {position} of {made.node.id}" in str(checked)


@pytest.mark.parametrize(
    "event", ["0", "33", "999", "{lane}/0", "{lane}/7", "{lane}/8", "{other}/1"]
)
def test_what_no_checkpoint_covers_is_not_proved(made: Made, event: str) -> None:
    named = event.format(lane=made.lane, other=(made.lane + 1) % 64)
    with pytest.raises(NotCovered):
        prove.prove(made.conninfo, named)


def test_nothing_is_proved_before_something_is_signed(database: str) -> None:
    with pytest.raises(NotCovered):
        prove.prove(database, "1")


def change_extra(text: str, change: Callable[[dict[str, Any]], None]) -> str:
    lines = text.split("\n")
    extra = json.loads(base64.b64decode(lines[1].removeprefix("extra ")))
    change(extra)
    lines[1] = "extra " + base64.b64encode(json.dumps(extra).encode()).decode()
    return "\n".join(lines)


def other_hash(text: str) -> str:
    raw = base64.b64decode(text)
    return base64.b64encode(bytes([raw[0] ^ 1]) + raw[1:]).decode()


CHANGES: list[tuple[str, Callable[[dict[str, Any]], None]]] = [
    ("the fact's name", lambda x: x["entry"].update(name="other.v1")),
    ("the fact's version", lambda x: x["entry"].update(version=9)),
    ("the fact's body", lambda x: x["entry"].update(body=other_hash(x["entry"]["body"]))),
    ("the report's body", lambda x: x["report"].update(body=other_hash(x["report"]["body"]))),
    ("the report's number", lambda x: x["report"].update(node_seq=9)),
    ("the report's position", lambda x: x["report"].update(position=3)),
    ("position zero", lambda x: x["report"].update(position=0)),
    ("the report's node", lambda x: x["report"].update(node_id="node_" + "0" * 32)),
    ("the lane", lambda x: x["report"].update(lane=(x["report"]["lane"] + 1) % 64)),
    ("no lane", lambda x: x["report"].update(lane=64)),
    ("the lane's size", lambda x: x["lane"].update(size=99)),
    ("the lane's root", lambda x: x["lane"].update(root=other_hash(x["lane"]["root"]))),
    ("the lane's head", lambda x: x["lane"].update(head=other_hash(x["lane"]["head"]))),
    ("a shorter path", lambda x: x["lane"]["path"].pop()),
    ("a shorter record path", lambda x: x["lane"]["record_path"].pop()),
    ("text that is no UTF-8", lambda x: x["report"].update(node_id="\ud800")),
    ("a number as text", lambda x: x["report"].update(node_seq="4")),
    ("no report", lambda x: x.pop("report")),
    ("another kind", lambda x: x.update(kind="other")),
]


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in CHANGES])
def test_extra_is_recomputed_not_believed(
    made: Made, change: Callable[[dict[str, Any]], None]
) -> None:
    text = prove.prove(made.conninfo, f"{made.lane}/4")
    assert proof.check(change_extra(text, lambda _: None), KEY).report is not None
    with pytest.raises(proof.ProofInvalid):
        proof.check(change_extra(text, change), KEY)


def test_no_character_of_a_proof_is_free(made: Made) -> None:
    text = prove.prove(made.conninfo, f"{made.lane}/4")
    for at in range(0, len(text) - 1, 61):
        other = "x" if text[at] != "x" else "y"
        with pytest.raises(proof.ProofInvalid):
            proof.check(text[:at] + other + text[at + 1 :], KEY, made.node.public)


def test_another_logs_key_or_another_nodes_key_proves_nothing(made: Made) -> None:
    text = prove.prove(made.conninfo, f"{made.lane}/4")
    stranger = bytes(SigningKey(bytes(32)).verify_key)
    with pytest.raises(proof.ProofInvalid, match="checkpoint"):
        proof.check(text, VerifierKey(ORIGIN, stranger))
    with pytest.raises(proof.ProofInvalid, match="not signed by this node key"):
        proof.check(text, KEY, stranger)


def test_a_proof_of_a_fact_that_is_no_pin_covers_no_report(made: Made) -> None:
    report = prove.prove(made.conninfo, f"{made.lane}/4")
    fact = prove.prove(made.conninfo, "1").split("\n")
    entry = json.loads(base64.b64decode(fact[1].removeprefix("extra ")))["entry"]
    mixed = change_extra(report, lambda extra: extra.update(entry=entry)).split("\n")
    with pytest.raises(proof.ProofInvalid, match="is not a pin"):
        proof.check("\n".join([*fact[:1], mixed[1], *fact[2:]]), KEY)


@pytest.mark.parametrize("text", ["", "c2sp.org/tlog-proof@v1\n\n", "x" * (1 << 23)])
def test_what_is_no_proof_file_is_refused(text: str) -> None:
    with pytest.raises(proof.ProofInvalid):
        proof.check(text, KEY)
