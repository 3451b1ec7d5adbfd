"""Rows of the two logs as Parquet files: written in bounded pieces, read back row by row.

The bytes of a Parquet file depend on who wrote it, so a file's SHA-256 finds transport damage only.
What a row is, is its leaf hash, recomputed from the row (`ledger/tree/walk.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

Row = tuple[Any, ...]

_HASH = pa.binary(32)
MARKET = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("originator_id", pa.binary(16), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
        pa.field("leaf", _HASH, nullable=False),
        pa.field("chain", _HASH, nullable=False),
        pa.field("recorded_us", pa.int64(), nullable=False),
    ]
)
MARKET_1 = MARKET.remove(MARKET.get_field_index("recorded_us"))
"""Of an export of format 1, which does not tell when a fact was recorded."""
OF_MARKET = {1: MARKET_1, 2: MARKET}
"""By the format of the manifest."""
USAGE = pa.schema(
    [
        pa.field("lane", pa.int16(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("node_id", pa.string(), nullable=False),
        pa.field("node_seq", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
        pa.field("leaf", _HASH, nullable=False),
        pa.field("chain", _HASH, nullable=False),
        pa.field("flags", pa.int32(), nullable=False),
        pa.field("recorded_us", pa.int64(), nullable=False),
    ]
)

GROUP_ROWS = 1_000
"""Rows of a row group: what a writer and a reader hold in memory at once."""
FILE_ROWS = 200_000
"""Rows of one file."""
_CODES: dict[int, Literal["h", "i", "q"]] = {16: "h", 32: "i", 64: "q"}
"""Signed integers of so many bits, as memoryview names them."""


class FileDamaged(ValueError):
    """Not a Parquet file with the columns of this log; the message says what it is."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of a bundle, as its manifest lists it."""

    path: str
    sha256: str
    bytes: int
    rows: int


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def info(root: Path, path: Path, rows: int) -> FileInfo:
    """What the manifest says of a file that was written."""
    return FileInfo(path.relative_to(root).as_posix(), sha256_of(path), path.stat().st_size, rows)


def write_log(
    root: Path, prefix: str, schema: pa.Schema, rows: Iterable[Row], first: int = 1
) -> list[FileInfo]:
    """Write the rows of a log as `<prefix>-<first>-<last>.parquet`, `FILE_ROWS` in a file.

    Rows come in order of position, from `first`. Nothing is written when there are none.
    """
    written: list[FileInfo] = []
    rest = iter(rows)
    while (head := next(rest, None)) is not None:
        part = root / f"{prefix}.part"
        part.parent.mkdir(parents=True, exist_ok=True)
        count = _write(part, schema, chain([head], islice(rest, FILE_ROWS - 1)))
        done = root / f"{prefix}-{first}-{first + count - 1}.parquet"
        part.rename(done)
        written.append(info(root, done, count))
        first += count
    return written


def _write(path: Path, schema: pa.Schema, rows: Iterator[Row]) -> int:
    count = 0
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=texts, write_statistics=["position"]
    ) as writer:
        while group := list(islice(rows, GROUP_ROWS)):
            columns = [
                pa.array(column, field.type)
                for column, field in zip(zip(*group, strict=True), schema, strict=True)
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            count += len(group)
    return count


def count_rows(path: Path, schema: pa.Schema) -> int:
    """How many rows a file says that it has. Reads its end only. Raises FileDamaged."""
    with _opened(path, schema) as file:
        return int(file.metadata.num_rows)


def read_log(path: Path, schema: pa.Schema) -> Iterator[Row]:
    """The rows of one file, in order. Raises FileDamaged."""
    with _opened(path, schema) as file:
        for batch in file.iter_batches(GROUP_ROWS):
            yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """What `to_pylist` gives, without an object of Arrow for each value on the way."""
    kind, count = column.type, len(column)
    _, *parts = column.buffers()
    if column.null_count or column.offset or not all(parts):
        return list(column.to_pylist())
    first = parts[0]
    if pa.types.is_fixed_size_binary(kind):
        width, content = kind.byte_width, first.to_pybytes()
        return [content[at : at + width] for at in range(0, count * width, width)]
    if pa.types.is_integer(kind):
        return _integers(first, kind.bit_width, count)
    ends = _integers(first, 32, count + 1)
    content = parts[1].to_pybytes()
    found = [content[begin:end] for begin, end in pairwise(ends)]
    return [one.decode() for one in found] if pa.types.is_string(kind) else found


def _integers(buffer: pa.Buffer, bits: int, count: int) -> list[int]:
    """The first `count` of a buffer, which may be longer and end within one."""
    return memoryview(buffer).cast("B")[: count * bits // 8].cast(_CODES[bits]).tolist()


@contextmanager
def _opened(path: Path, schema: pa.Schema) -> Generator[pq.ParquetFile, None, None]:
    """A file with these columns, while it is read. Raises FileDamaged."""
    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(schema):
                raise FileDamaged(f"{path.name}: other columns than those of this log")
            yield file
    except FileDamaged:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileDamaged(f"{path.name}: {str(error).splitlines()[0]}") from None
