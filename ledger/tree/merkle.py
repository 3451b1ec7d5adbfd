"""The audit tree: RFC 6962 hashes over the leaves of one log, roots, proofs and their checks.

Pure: no I/O, no log, no keys. A leaf here is already a hash (`ledger/log/chain.py` makes it).

    node = SHA-256(0x01 | left | right)        root of nothing = SHA-256("")
    verify_inclusion(i, n, leaf[i], inclusion(i, n), root(n))           for every i < n
    verify_consistency(m, n, root(m), root(n), consistency(m, n))       for every m <= n

Two forms of the same tree. `Frontier` is a compact range: the roots of the full subtrees of a
prefix, enough to go on appending and to know the root at every size on the way. `Tiles` keeps the
hashes themselves, 256 to a tile at every eighth level as C2SP tlog-tiles lays them out, so that a
proof at any past size reads a handful of tiles and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

HASH = 32
"""Bytes of one hash."""
TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT
"""Hashes in a full tile: 8,192 bytes."""
EMPTY_ROOT = sha256(b"").digest()

HashAt = Callable[[int, int], bytes]
"""(level, index) -> hash of the full subtree over leaves index << level .. (index + 1) << level."""
Fetch = Callable[[int, int], bytes]
"""(tile level, tile index) -> the hashes of a tile kept earlier."""


def node(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node (RFC 6962, 2.1)."""
    return sha256(b"\x01" + left + right).digest()


def leaf(entry: bytes) -> bytes:
    """The hash of an entry (RFC 6962, 2.1)."""
    return sha256(b"\x00" + entry).digest()


def fold(peaks: Sequence[bytes]) -> bytes:
    """The root over neighbouring full subtrees, largest first."""
    if not peaks:
        return EMPTY_ROOT
    result = peaks[-1]
    for peak in reversed(peaks[:-1]):
        result = node(peak, result)
    return result


class Frontier:
    """A compact range: append leaves one by one, read the root at any moment.

    Holds one hash for every 1 bit of the size, largest subtree first.
    """

    __slots__ = ("peaks", "size")

    def __init__(self) -> None:
        self.size = 0
        self.peaks: list[bytes] = []

    def append(self, leaf: bytes) -> None:
        """Add one leaf: merge while the lowest bit of the size is 1."""
        merged, rest = leaf, self.size
        while rest & 1:
            merged = node(self.peaks.pop(), merged)
            rest >>= 1
        self.peaks.append(merged)
        self.size += 1

    def root(self) -> bytes:
        """The root over every leaf so far."""
        return fold(self.peaks)


class Tiles:
    """A tree kept as tiles of up to 256 hashes, each a prefix of what it will become.

    `fetch` reads a tile kept earlier; `changed` holds every tile that was made or grew since then.
    Level l of the tiles is level 8 l of the tree; a tile of level l + 1 holds roots of full tiles.
    """

    def __init__(self, size: int = 0, fetch: Fetch | None = None) -> None:
        self.size = size
        self.changed: dict[tuple[int, int], bytes] = {}
        self._fetch = fetch
        self._read: dict[tuple[int, int], bytes] = {}

    def extend(self, leaves: bytes) -> None:
        """Append leaves, concatenated, in order."""
        assert len(leaves) % HASH == 0, len(leaves)
        level, hashes = 0, leaves
        while hashes:
            hashes = self._grow(level, self.size >> (TILE_HEIGHT * level), hashes)
            level += 1
        self.size += len(leaves) // HASH

    def _grow(self, level: int, count: int, hashes: bytes) -> bytes:
        """Append to the tiles of a level that holds `count` hashes; the roots of those now full."""
        filled: list[bytes] = []
        at = 0
        while at < len(hashes):
            index, width = divmod(count + at // HASH, TILE_WIDTH)
            upto = at + (TILE_WIDTH - width) * HASH
            tile = (self.tile(level, index)[: width * HASH] if width else b"") + hashes[at:upto]
            self.changed[level, index] = tile
            if len(tile) == TILE_WIDTH * HASH:
                filled.append(_subtree_root(tile))
            at = upto
        return b"".join(filled)

    def tile(self, level: int, index: int) -> bytes:
        """The hashes of a tile, as many as there are."""
        key = (level, index)
        if key in self.changed:
            return self.changed[key]
        if key not in self._read:
            assert self._fetch is not None, key
            self._read[key] = self._fetch(level, index)
        return self._read[key]

    def hash_at(self, level: int, index: int) -> bytes:
        """The hash of one full subtree, computed from the tile below it."""
        tile_level, height = divmod(level, TILE_HEIGHT)
        tile_index, first = divmod(index << height, TILE_WIDTH)
        hashes = self.tile(tile_level, tile_index)[first * HASH : (first + (1 << height)) * HASH]
        assert len(hashes) == HASH << height, (level, index)
        return _subtree_root(hashes)

    def root(self, size: int | None = None) -> bytes:
        """The root over the first `size` leaves; over all of them without a size."""
        wanted = self.size if size is None else size
        assert 0 <= wanted <= self.size, (wanted, self.size)
        return root(wanted, self.hash_at)


def _subtree_root(hashes: bytes) -> bytes:
    """The root over a power of two of concatenated hashes: neighbours already lie together."""
    while len(hashes) > HASH:
        pairs = range(0, len(hashes), 2 * HASH)
        hashes = b"".join([sha256(b"\x01" + hashes[i : i + 2 * HASH]).digest() for i in pairs])
    return hashes


def root(size: int, hash_at: HashAt) -> bytes:
    """The root over the first `size` leaves (RFC 6962, 2.1)."""
    return _range_root(0, size, hash_at)


def inclusion(index: int, size: int, hash_at: HashAt) -> list[bytes]:
    """The audit path of a leaf, its sibling first (RFC 6962, 2.1.1)."""
    assert 0 <= index < size, (index, size)
    begin, end, siblings = 0, size, list[tuple[int, int]]()
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            siblings.append((middle, end))
            end = middle
        else:
            siblings.append((begin, middle))
            begin = middle
    return [_range_root(*sibling, hash_at) for sibling in reversed(siblings)]


def consistency(old: int, size: int, hash_at: HashAt) -> list[bytes]:
    """The proof that the first `old` leaves are a prefix of the first `size` (RFC 6962, 2.1.2)."""
    assert 0 <= old <= size, (old, size)
    if old == 0:
        return []
    begin, end, parts = 0, size, list[tuple[int, int]]()
    while old != end:
        middle = begin + _split(end - begin)
        if old <= middle:
            parts.append((middle, end))
            end = middle
        else:
            parts.append((begin, middle))
            begin = middle
    if begin:
        parts.append((begin, end))
    return [_range_root(*part, hash_at) for part in reversed(parts)]


def verify_inclusion(
    index: int, size: int, leaf: bytes, path: Sequence[bytes], root: bytes
) -> bool:
    """Whether the path leads from this leaf to this root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    fn, sn, result = index, size - 1, leaf
    for sibling in path:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            result = node(sibling, result)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            result = node(result, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and result == root


def verify_consistency(
    old: int, size: int, old_root: bytes, root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the tree of `size` leaves begins with the tree of `old` (RFC 9162, 2.1.4.2).

    The empty tree begins every tree; its proof is empty.
    """
    if old == 0 or old == size:
        known = EMPTY_ROOT if old == 0 else root
        return not proof and old <= size and old_root == known
    if not 0 < old < size or not proof:
        return False
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    fn, sn = old - 1, size - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    old_result = result = path[0]
    for sibling in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            old_result, result = node(sibling, old_result), node(sibling, result)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            result = node(result, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and old_result == old_root and result == root


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The root over a few leaves held in memory."""
    frontier = Frontier()
    for each in leaves:
        frontier.append(each)
    return frontier.root()


def _range_root(begin: int, end: int, hash_at: HashAt) -> bytes:
    return fold([hash_at(level, index) for level, index in _full_subtrees(begin, end)])


def _full_subtrees(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The largest full subtrees that make up a range whose start its length divides."""
    while begin < end:
        level = (end - begin).bit_length() - 1
        assert begin % (1 << level) == 0, (begin, end)
        yield level, begin >> level
        begin += 1 << level


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)
