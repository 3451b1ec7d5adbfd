"""Arrays in PostgreSQL's binary form, built in one step from plain lists.

Not a type system: six element types, one dimension, no NULLs. psycopg's own list dumper walks
every element through Python classes, which at thousands of reports a second is the largest single
cost of an append.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import ClassVar

from psycopg import AsyncConnection, Connection
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

_HEAD = Struct("!iiIii").pack


class Array:
    """The bytes of one array parameter; the class says which element type."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Int2s(Array):
    __slots__ = ()


class Int4s(Array):
    __slots__ = ()


class Int8s(Array):
    __slots__ = ()


class Texts(Array):
    __slots__ = ()


class Uuids(Array):
    __slots__ = ()


class Byteas(Array):
    __slots__ = ()


def int2s(values: Sequence[int]) -> Int2s:
    """An `int2[]`."""
    return Int2s(_fixed(21, 2, "h", values))


def int4s(values: Sequence[int]) -> Int4s:
    """An `int4[]`."""
    return Int4s(_fixed(23, 4, "i", values))


def int8s(values: Sequence[int]) -> Int8s:
    """An `int8[]`."""
    return Int8s(_fixed(20, 8, "q", values))


def texts(values: Sequence[bytes]) -> Texts:
    """A `text[]` from UTF-8 bytes without NUL."""
    return Texts(_variable(25, values))


def uuids(values: Sequence[bytes]) -> Uuids:
    """A `uuid[]` from 16 bytes each."""
    return Uuids(_variable(2950, values))


def byteas(values: Sequence[bytes]) -> Byteas:
    """A `bytea[]`."""
    return Byteas(_variable(17, values))


@lru_cache(maxsize=4_096)
def _packer(code: str, count: int) -> Callable[..., bytes]:
    return Struct("!" + ("i" + code) * count).pack


def _fixed(element_oid: int, width: int, code: str, values: Sequence[int]) -> bytes:
    count = len(values)
    flat = [width] * (2 * count)
    flat[1::2] = values
    return _HEAD(1, 0, element_oid, count, 1) + _packer(code, count)(*flat)


def _variable(element_oid: int, values: Sequence[bytes]) -> bytes:
    head = _HEAD(1, 0, element_oid, len(values), 1)
    lengths = set(map(len, values))
    if len(lengths) == 1:  # ids, hashes, one name over and over
        prefix = lengths.pop().to_bytes(4, "big")
        return b"".join((head, prefix, prefix.join(values)))
    parts = [head] * (2 * len(values) + 1)
    parts[1::2] = [len(value).to_bytes(4, "big") for value in values]
    parts[2::2] = values
    return b"".join(parts)


class _ArrayDumper(Dumper):
    format: ClassVar[Format] = Format.BINARY  # type: ignore[misc]

    def dump(self, obj: Array) -> Buffer:
        return obj.data


class _Int2sDumper(_ArrayDumper):
    oid = 1005


class _Int4sDumper(_ArrayDumper):
    oid = 1007


class _Int8sDumper(_ArrayDumper):
    oid = 1016


class _TextsDumper(_ArrayDumper):
    oid = 1009


class _UuidsDumper(_ArrayDumper):
    oid = 2951


class _ByteasDumper(_ArrayDumper):
    oid = 1001


def register(connection: Connection[object] | AsyncConnection[object]) -> None:
    """Teach one connection to send these arrays."""
    adapters = connection.adapters
    adapters.register_dumper(Int2s, _Int2sDumper)
    adapters.register_dumper(Int4s, _Int4sDumper)
    adapters.register_dumper(Int8s, _Int8sDumper)
    adapters.register_dumper(Texts, _TextsDumper)
    adapters.register_dumper(Uuids, _UuidsDumper)
    adapters.register_dumper(Byteas, _ByteasDumper)
