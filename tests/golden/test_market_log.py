"""Old bytes stay readable for ever: every committed body decodes, and encodes back to itself.

`market_log.jsonl` holds one line per stored form: [name, body]. Lines are only ever added: a
changed meaning is a new name and an upcaster. To add the forms that are missing:

    python -m tests.golden.test_market_log
"""

from __future__ import annotations

import json
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
        76,
        "5ce7dee9c78b8a780037a18e6bd05c4672a94cc14514a9c198ec26c6c34b2b78",
        "d5f045f122947b4cd03a3dffc1143265d37aa97394a629c6004d864c43437609",
    ),
)
"""So many first lines as a log, line n in stream n: its hash chain and its tree's root."""


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


@pytest.mark.parametrize(("count", "head", "root"), HEADS)
def test_heads_and_roots_of_committed_bytes_never_change(count: int, head: str, root: str) -> None:
    before, tree = GENESIS_MARKET, merkle.Tiles()
    for number, (name, body) in enumerate(_lines()[:count], start=1):
        leaf = market_leaf(UUID(int=number), 1, name, body)
        before = chain(before, leaf)
        tree.extend(leaf)
    assert (before.hex(), tree.root().hex()) == (head, root)


def add_missing() -> None:
    """Append what is stored today and has no line yet; no line is changed."""
    known = set(_lines()) if FILE.exists() else set()
    with FILE.open("a", encoding="utf-8") as file:
        for _, fact in every_fact():
            line = codec.encode(fact, "cmd_0123456789abcdef0123456789abcdef", "00" * 16)
            if line not in known:
                known.add(line)
                pair = [line[0], line[1].decode()]
                file.write(json.dumps(pair, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    add_missing()
