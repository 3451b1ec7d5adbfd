"""What nodes of a region sign for each other, and tell of it: the words, without the rules.

    proof       a node's key over the challenge, the node that asks and the node that answers
    statement   a node's key over its own addresses and all proofs that it got

Reporters make them and the server checks them; what they come to is in `neighbours.py`. Apart from
that, as a reporter that starts imports these few lines and none of the market's rules.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from domain.duration import MINUTE_US
from domain.fleet.keys import envelope

PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
"""RFC 1918."""
PORTS = range(1_024, 65_536)
ADDRESSES_MAX = 8
PEERS_MAX = 128
"""Nodes that one node tries: all others of a region that is not larger."""
CHALLENGE_US = 10 * MINUTE_US
"""So old a challenge may be, and so far a clock may differ from the server's."""

TRIED_TYPE = "org.tallystick.node.neighbours.v1"
ANSWER_TYPE = "org.tallystick.node.neighbour-answer.v1"


@dataclass(frozen=True, slots=True)
class Tried:
    """Another node of the region. `proof`: what it signed, hex; empty: nothing of it answered."""

    node_id: str
    proof: str


def answer_text(challenge: int, asked_by: str, node_id: str) -> bytes:
    """What a node signs for another one that reached it."""
    return envelope(ANSWER_TYPE, "\n".join((str(challenge), asked_by, node_id)).encode())


def statement(
    node_id: str, challenge: int, addresses: Collection[str], tried: Collection[Tried]
) -> bytes:
    """What a node signs of all that it tells: one line each, in the order told."""
    lines = [node_id, str(challenge), *addresses]
    lines += [f"{one.node_id} {one.proof}" for one in tried]
    return envelope(TRIED_TYPE, "\n".join(lines).encode())


def private_address(text: str) -> tuple[str, int] | None:
    """Host and port of `10.1.2.3:7714`; None where it is no address of RFC 1918."""
    host, _, port = text.rpartition(":")
    if not is_private(host) or not (port.isascii() and port.isdigit() and len(port) <= 5):
        return None
    return (host, int(port)) if int(port) in PORTS else None


def is_private(host: str) -> bool:
    """Whether it is an address of RFC 1918, written as such."""
    try:
        address = IPv4Address(host)
    except ValueError:
        return False
    return any(address in network for network in PRIVATE)
