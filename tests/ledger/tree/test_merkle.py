"""The audit tree against RFC 6962 read literally, against pymerkle, and against tampering."""

from __future__ import annotations

from hashlib import sha256

import pymerkle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.tree import merkle
from tests.examples import examples

SIZES = [1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 70_000]
LEAVES = [merkle.leaf(b"entry %d" % i) for i in range(70_000)]


@pytest.fixture(scope="module")
def tiles() -> merkle.Tiles:
    tree = merkle.Tiles()
    tree.extend(b"".join(LEAVES))
    return tree


@pytest.fixture(scope="module")
def roots() -> dict[int, bytes]:
    """Every root on the way, from the compact range."""
    frontier, found = merkle.Frontier(), {0: merkle.EMPTY_ROOT}
    for leaf in LEAVES:
        frontier.append(leaf)
        if frontier.size in SIZES or frontier.size <= 300:
            found[frontier.size] = frontier.root()
    return found


def literal_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962 2.1, word for word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return sha256(b"\x01" + literal_root(leaves[:k]) + literal_root(leaves[k:])).digest()


@pytest.mark.parametrize("size", SIZES)
def test_tiles_and_frontier_have_the_root_of_the_rfc(
    size: int, tiles: merkle.Tiles, roots: dict[int, bytes]
) -> None:
    assert tiles.root(size) == roots[size] == literal_root(LEAVES[:size])


def test_the_root_of_nothing_is_the_hash_of_nothing() -> None:
    assert merkle.Frontier().root() == merkle.Tiles().root() == sha256(b"").digest()


def test_tile_shapes_are_those_of_tlog_tiles(tiles: merkle.Tiles) -> None:
    widths = {key: len(tile) // 32 for key, tile in tiles.changed.items()}
    full = [key for key, width in widths.items() if width == 256]
    assert sum(level == 0 for level, _ in full) == 273
    assert widths[0, 273] == 112
    assert widths[1, 0] == 256
    assert widths[1, 1] == 17
    assert widths[2, 0] == 1
    assert len(widths) == 277


@pytest.mark.parametrize("size", SIZES)
def test_every_kind_of_leaf_is_proved_and_nothing_else_is(
    size: int, tiles: merkle.Tiles, roots: dict[int, bytes]
) -> None:
    for index in sorted({0, 1, 254, 255, 256, size // 2, size - 2, size - 1}):
        if not 0 <= index < size:
            continue
        path = merkle.inclusion(index, size, tiles.hash_at)
        leaf, root = LEAVES[index], roots[size]
        assert merkle.verify_inclusion(index, size, leaf, path, root)
        assert not merkle.verify_inclusion(index, size, flip(leaf), path, root)
        assert not merkle.verify_inclusion(index, size, leaf, path, flip(root))
        assert not merkle.verify_inclusion(index, size, leaf, [*path, leaf], root)
        assert not merkle.verify_inclusion(size, size, leaf, path, root)
        assert not merkle.verify_inclusion(-1, size, leaf, path, root)
        if path:
            assert not merkle.verify_inclusion(index, size, leaf, path[:-1], root)
            assert not merkle.verify_inclusion(index, size, leaf, [flip(path[0]), *path[1:]], root)
            assert not merkle.verify_inclusion(index ^ 1, size, leaf, path, root)


@pytest.mark.parametrize("size", SIZES)
def test_every_prefix_is_proved_and_no_other_history_is(
    size: int, tiles: merkle.Tiles, roots: dict[int, bytes]
) -> None:
    for old in [0, *(s for s in SIZES if s <= size)]:
        proof = merkle.consistency(old, size, tiles.hash_at)
        before, after = roots[old], roots[size]
        assert merkle.verify_consistency(old, size, before, after, proof)
        assert not merkle.verify_consistency(old, size, flip(before), after, proof)
        assert not merkle.verify_consistency(old, size, before, after, [*proof, before])
        assert not merkle.verify_consistency(size + 1, size, before, after, proof)
        if 0 < old < size:
            assert not merkle.verify_consistency(old, size, before, flip(after), proof)
            assert not merkle.verify_consistency(old, size, before, after, proof[:-1])
            wrong = [flip(proof[0]), *proof[1:]]
            assert not merkle.verify_consistency(old, size, before, after, wrong)


def test_all_small_trees_are_proved_exhaustively(
    tiles: merkle.Tiles, roots: dict[int, bytes]
) -> None:
    for size in range(1, 70):
        for index in range(size):
            path = merkle.inclusion(index, size, tiles.hash_at)
            assert merkle.verify_inclusion(index, size, LEAVES[index], path, roots[size])
        for old in range(size + 1):
            proof = merkle.consistency(old, size, tiles.hash_at)
            assert merkle.verify_consistency(old, size, roots[old], roots[size], proof)


@examples(40)
@given(steps=st.lists(st.integers(0, 700), max_size=8))
def test_growing_in_any_steps_gives_the_same_tiles(steps: list[int]) -> None:
    kept: dict[tuple[int, int], bytes] = {}
    size = 0
    for step in steps:
        tree = merkle.Tiles(size, lambda level, index: kept[level, index])
        tree.extend(b"".join(LEAVES[size : size + step]))
        kept.update(tree.changed)
        size += step
    whole = merkle.Tiles()
    whole.extend(b"".join(LEAVES[:size]))
    assert kept == whole.changed
    assert whole.root() == merkle.root_of(LEAVES[:size])


def test_an_older_size_is_proved_from_tiles_that_have_grown(
    tiles: merkle.Tiles, roots: dict[int, bytes]
) -> None:
    path = merkle.inclusion(100, 257, tiles.hash_at)
    assert merkle.verify_inclusion(100, 257, LEAVES[100], path, roots[257])


def test_pymerkle_computes_the_same_roots_and_paths(tiles: merkle.Tiles) -> None:
    other = pymerkle.InmemoryTree(algorithm="sha256")
    for i in range(1000):
        other.append_entry(b"entry %d" % i)
    for size in (1, 2, 3, 255, 256, 257, 700, 1000):
        assert other.get_root(size) == tiles.root(size)
    for index, size in ((0, 2), (5, 900), (899, 900), (256, 257), (999, 1000)):
        theirs = other.prove_inclusion(index + 1, size).path
        assert theirs == [LEAVES[index], *merkle.inclusion(index, size, tiles.hash_at)]


def flip(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]
