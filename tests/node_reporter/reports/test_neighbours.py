"""A reporter answers the nodes of its region on private addresses, and finds which it reaches."""

from __future__ import annotations

import socket
from collections.abc import Generator
from ipaddress import IPv4Network
from typing import Any

import pytest
from nacl.signing import SigningKey

from domain.regions import neighbour_proofs as rule
from domain.regions.neighbour_proofs import CHALLENGE_US, Tried, answer_text, is_private, statement
from node_reporter.reports import neighbours
from node_reporter.reports.neighbours import Answers, own_addresses, report, tried

NOW_US = 1_795_161_720_000_000
MINE, OTHER = "node_mine", "node_other"
KEY = SigningKey(b"\x09" * 32)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Generator[Answers]:
    """Another node that answers; loopback is a private network here."""
    monkeypatch.setattr(rule, "PRIVATE", (*rule.PRIVATE, IPv4Network("127.0.0.0/8")))
    made = Answers(OTHER, KEY, lambda: NOW_US)
    made.open(["127.0.0.1"], 0)
    yield made
    made.close()


def peer(addresses: list[str], key: SigningKey = KEY, node_id: str = OTHER) -> dict[str, Any]:
    public = bytes(key.verify_key).hex()
    return {"node_id": node_id, "addresses": addresses, "public_key": public}


def test_a_neighbour_that_answers_proves_it_with_its_key(answers: Answers) -> None:
    (one,) = tried(MINE, NOW_US, [peer(answers.addresses)])
    assert one.node_id == OTHER
    KEY.verify_key.verify(answer_text(NOW_US, MINE, OTHER), bytes.fromhex(one.proof))


def test_another_machine_at_the_same_address_is_no_neighbour(answers: Answers) -> None:
    """Two sites use 10.0.0.7 both: who answers is known by the key, and each address is tried."""
    stranger = SigningKey(b"\x01" * 32)
    assert tried(MINE, NOW_US, [peer(answers.addresses, stranger)]) == (Tried(OTHER, ""),)
    assert tried(MINE, NOW_US, [peer(answers.addresses, KEY, "node_third")]) == (
        Tried("node_third", ""),
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        closed = f"127.0.0.1:{silent.getsockname()[1]}"
    (one,) = tried(MINE, NOW_US, [peer([closed, *answers.addresses])])
    assert one.proof, "the second address answers"


def test_only_private_addresses_above_the_well_known_ports_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dialled(*_: Any, **__: Any) -> Any:
        raise AssertionError("a server makes this node try what is none of its business")

    monkeypatch.setattr(socket, "create_connection", dialled)
    strange = peer(["203.0.113.7:7714", "10.0.0.1:22", "lab.example:7714", "x"])
    keyless = {**peer(["10.0.0.1:7714"]), "public_key": "z"}
    assert tried(MINE, NOW_US, [strange, {"node_id": 7}, "x", peer([]), keyless]) == ()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"tallystick-neighbour",
        f"tallystick-neighbour {NOW_US} node_mine node_third".encode(),
        f"tallystick-neighbour {NOW_US + 3 * CHALLENGE_US} node_mine node_other".encode(),
        f"tallystick-neighbour {NOW_US - 3 * CHALLENGE_US} node_mine node_other".encode(),
        f"tallystick-neighbour {NOW_US} node_mine node_other more".encode(),
    ],
)
def test_what_is_no_question_of_now_is_not_signed(answers: Answers, line: bytes) -> None:
    assert answers.answer(line, "10.0.0.1", NOW_US) is None


def test_who_is_not_on_a_private_address_gets_no_answer(answers: Answers) -> None:
    line = f"tallystick-neighbour {NOW_US} node_mine node_other".encode()
    assert answers.answer(line, "203.0.113.7", NOW_US) is None
    assert answers.answer(line, "192.168.1.9", NOW_US) is not None


def test_a_long_line_and_a_caller_that_says_nothing_stop_nobody(answers: Answers) -> None:
    place = rule.private_address(answers.addresses[0])
    assert place is not None
    with socket.create_connection(place) as asked:
        asked.sendall(b"x" * 10_000)
        asked.settimeout(5)
        try:
            said = asked.recv(10)
        except ConnectionResetError:
            said = b""
        assert said == b""
    assert tried(MINE, NOW_US, [peer(answers.addresses)])[0].proof


def test_what_is_told_is_what_is_signed(answers: Answers) -> None:
    mine = Answers(MINE, SigningKey(b"\x03" * 32))
    mine.addresses = ["10.0.0.7:7714"]
    told = {"challenge": str(NOW_US), "data": [peer(answers.addresses), peer(["10.0.0.1:1"])]}
    found = report(mine, told)
    assert found is not None
    body, signed = found
    assert body["addresses"] == ["10.0.0.7:7714"]
    (one,) = body["tried"]
    assert signed == statement(
        MINE, NOW_US, body["addresses"], [Tried(one["node_id"], one["proof"])]
    )
    for nothing in (None, {}, {"challenge": "soon", "data": []}, {"challenge": "1", "data": None}):
        assert report(mine, nothing) is None


def test_own_addresses_are_private_and_an_address_that_is_not_here_is_left_out() -> None:
    assert all(is_private(one) for one in own_addresses())
    nobody = Answers(MINE, KEY)
    nobody.open(["203.0.113.250"], neighbours.PORT)
    assert nobody.addresses == []
