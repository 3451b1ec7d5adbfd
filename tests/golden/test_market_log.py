"""Old bytes stay readable for ever: every committed body decodes, and encodes back to itself.

`market_log.jsonl` holds one line per stored form: [name, body]. Lines are only ever added: a
changed meaning is a new name and an upcaster. To add the forms that are missing, and to see the
row that `HEADS` then needs:

    python -m tests.golden.test_market_log

Before 0.1.0 is released, the file may be written anew once per change set, said in the changelog
(decision 0003): `python -m tests.golden.test_market_log --reset`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from uuid import UUID

import pytest

from ledger.log import codec
from ledger.log.chain import GENESIS_MARKET, chain, market_leaf
from ledger.tree import merkle
from tests.scenes.samples import every_fact

FILE = Path(__file__).with_name("market_log.jsonl")
HEADS = (
    (
        472,
        "76bce0e47e75e4d24fbd2b5561ea4e4d3852b1b21a4838381971981d66fa1c26",
        "094998e85b4848eba199c99dbc35a29d01a43ec081165ab98296a1d0c1ffe4f4",
    ),
    (
        473,
        "2014c2937aedc8475289c94bfb93cc526713ed33cc5e57864d7a8224357bc368",
        "d9b2393f09b1eea61c4a2977bf992b590b400257d42b0b271ac43162a4166f8f",
    ),
    (
        474,
        "65dfa8bd30c1584ac2c95964c9f6b3fe2c928049df3bdb695a86d151436ba0c0",
        "65525370200a4a529923e85809f96db85821e2e454aff61688f8cfb6f9d91f99",
    ),
    (
        477,
        "f96247785903a3587cc25576e3e5355e420017631fb2c3a58d0928abc1869638",
        "cee9862cd6583a94950cc2d2b7b777a98d9f240981e0a37c555fa439b43897af",
    ),
)
"""So many first lines as a log, line n in stream n: its hash chain and its tree's root. Rows are
only ever added, and the last one covers every line.
"""


def _lines() -> list[tuple[str, bytes]]:
    pairs = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    return [(name, body.encode()) for name, body in pairs]


@pytest.mark.parametrize(("name", "body"), _lines())
def test_committed_bytes_are_read_and_written_alike(name: str, body: bytes) -> None:
    fact = codec.decode(name, body)
    values = json.loads(body)
    again_name, again = codec.encode(fact, values["command_id"], values["blind"])
    if name in codec.NAMES:
        assert (again_name, again) == (name, body)


def test_every_stored_name_has_golden_lines() -> None:
    assert {name for name, _ in _lines()} >= codec.NAMES.keys()


def _heads(count: int) -> tuple[int, str, str]:
    before, tree = GENESIS_MARKET, merkle.Tiles()
    for number, (name, body) in enumerate(_lines()[:count], start=1):
        leaf = market_leaf(UUID(int=number), 1, name, body)
        before = chain(before, leaf)
        tree.extend(leaf)
    return count, before.hex(), tree.root().hex()


@pytest.mark.parametrize(("count", "head", "root"), HEADS)
def test_heads_and_roots_of_committed_bytes_never_change(count: int, head: str, root: str) -> None:
    assert _heads(count) == (count, head, root)


def test_every_golden_line_is_pinned() -> None:
    assert HEADS[-1][0] == len(_lines())


def add_missing() -> None:
    """Append what is stored today and has no line yet; no line is changed."""
    known = set(_lines())
    with FILE.open("a", encoding="utf-8") as file:
        for _, fact in every_fact():
            line = codec.encode(fact, "cmd_0123456789abcdef0123456789abcdef", "00" * 16)
            if line not in known:
                known.add(line)
                pair = [line[0], line[1].decode()]
                file.write(json.dumps(pair, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if "--reset" in sys.argv:
        FILE.write_text("", encoding="utf-8")
    add_missing()
    sys.stdout.write(f"{_heads(len(_lines()))}\n")
