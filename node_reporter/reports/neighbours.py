"""Which nodes of its region this one reaches on private addresses, and its answer to those (C-3).

A neighbour sends one line and gets one back:

    tallystick-neighbour <challenge> <node that asks> <node that is asked>
    <hex of this node's signature over the three>

So who answered is known by its key: at another place another machine may have the same private
address. The answer is open on private addresses alone, to private addresses alone, and signs
nothing but such a line of about now. What answers at an address that a neighbour told is believed
only with that neighbour's signature; ports below 1024 are never tried.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from domain.regions.neighbour_proofs import (
    ADDRESSES_MAX,
    CHALLENGE_US,
    PEERS_MAX,
    Tried,
    answer_text,
    is_private,
    private_address,
    statement,
)

PORT = 7_714
TIMEOUT_S = 2
TOGETHER = 16
LINE_MAX = 256
NOT_OURS = ("docker", "br-", "veth", "virbr", "cni", "lo")
"""Interfaces that every machine has for itself: their addresses reach nobody else."""
_SIOCGIFADDR = 0x8915
_ASKED = re.compile(rb"tallystick-neighbour ([0-9]{1,19}) (node_[0-9A-Za-z]{1,64}) (node_\w{1,64})")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")


def own_addresses() -> list[str]:
    """This machine's addresses of RFC 1918, each once; none where they cannot be read (only Linux
    tells them so).
    """
    try:
        import fcntl
    except ImportError:
        return []
    found: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            if name.startswith(NOT_OURS):
                continue
            with suppress(OSError):
                told = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                host = socket.inet_ntoa(told[20:24])
                if is_private(host) and host not in found:
                    found.append(host)
    return found[:ADDRESSES_MAX]


class Answers:
    """What this node answers its neighbours: a thread for each of its private addresses."""

    def __init__(
        self,
        node_id: str,
        key: SigningKey,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self.node_id, self.key, self._now_us = node_id, key, now_us
        self.addresses: list[str] = []
        self._open: list[socket.socket] = []

    def open(self, hosts: Iterable[str], port: int = PORT) -> None:
        """Answer on these addresses; one that cannot be opened is left out."""
        for host in hosts:
            with suppress(OSError):
                listening = socket.create_server((host, port), backlog=TOGETHER)
                self._open.append(listening)
                self.addresses.append(f"{host}:{listening.getsockname()[1]}")
                threading.Thread(target=self._serve, args=(listening,), daemon=True).start()

    def close(self) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()
        self.addresses.clear()

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                asked, (host, _) = listening.accept()
            except OSError:
                return
            with suppress(OSError), asked:
                asked.settimeout(TIMEOUT_S)
                answer = self.answer(_line(asked), host, self._now_us())
                if answer is not None:
                    asked.sendall(answer.encode() + b"\n")

    def answer(self, line: bytes, host: str, now_us: int) -> str | None:
        """The signature for a line of a neighbour at `host`; None: it is none."""
        found = _ASKED.fullmatch(line)
        if found is None or not is_private(host) or found[3].decode() != self.node_id:
            return None
        challenge = int(found[1])
        if abs(challenge - now_us) > 2 * CHALLENGE_US:
            return None
        text = answer_text(challenge, found[2].decode(), self.node_id)
        return self.key.sign(text).signature.hex()


def _line(asked: socket.socket) -> bytes:
    """Up to the first end of a line; what is longer is cut. Raises OSError."""
    told = b""
    until = time.monotonic() + TIMEOUT_S
    while b"\n" not in told and len(told) < LINE_MAX and time.monotonic() < until:
        piece = asked.recv(LINE_MAX - len(told))
        if not piece:
            break
        told += piece
    return told.partition(b"\n")[0]


def tried(node_id: str, challenge: int, peers: Iterable[Any]) -> tuple[Tried, ...]:
    """Every neighbour that the server names, tried at its addresses."""
    named = [one for one in peers if isinstance(one, dict)][:PEERS_MAX]
    if not named:
        return ()
    with ThreadPoolExecutor(TOGETHER) as pool:
        proofs = pool.map(lambda one: _proof(node_id, challenge, one), named)
        found = zip(named, proofs, strict=True)
        return tuple(Tried(str(one["node_id"]), proof) for one, proof in found if proof is not None)


def _proof(node_id: str, challenge: int, peer: Mapping[str, Any]) -> str | None:
    """What the neighbour signed; empty: nothing of it answers; None: there is nothing to try."""
    addresses, peer_id = peer.get("addresses"), peer.get("node_id")
    if not isinstance(addresses, list) or not isinstance(peer_id, str):
        return None
    try:
        key = VerifyKey(bytes.fromhex(str(peer.get("public_key"))))
    except ValueError:
        return None
    places = [private_address(str(one)) for one in addresses[:ADDRESSES_MAX]]
    for place in (one for one in places if one is not None):
        with suppress(OSError, UnicodeDecodeError, BadSignatureError, ValueError):
            with socket.create_connection(place, timeout=TIMEOUT_S) as asked:
                line = f"tallystick-neighbour {challenge} {node_id} {peer_id}\n"
                asked.sendall(line.encode())
                proof = _line(asked).decode("ascii")
            if _SIGNATURE.fullmatch(proof):
                key.verify(answer_text(challenge, node_id, peer_id), bytes.fromhex(proof))
                return proof
    return "" if any(places) else None


def report(answers: Answers, told: Any) -> tuple[dict[str, Any], bytes] | None:
    """What to tell the server, and what of it is signed; None: it asks for nothing."""
    if not isinstance(told, dict) or not isinstance(told.get("data"), list):
        return None
    challenge = told.get("challenge")
    if not isinstance(challenge, str) or not challenge.isascii() or not challenge.isdigit():
        return None
    found = tried(answers.node_id, int(challenge), told["data"])
    body = {
        "challenge": challenge,
        "addresses": list(answers.addresses),
        "tried": [
            {"node_id": one.node_id, **({"proof": one.proof} if one.proof else {})} for one in found
        ],
    }
    return body, statement(answers.node_id, int(challenge), answers.addresses, found)
