"""Rows of a log come back from their file as they were written, whatever their columns hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ledger.bundle import parquet

TEXTS = ["", "node_" + "0" * 32, "ü", "x" * 300]
BYTES = [b"", b"\0", b"{}" * 4_000, b"\xff"]
COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int16(), [0, 63, -1, 2**15 - 1]),
    (pa.int32(), [0, 1, -(2**31), 2**31 - 1]),
    (pa.int64(), [1, -1, 2**63 - 1, -(2**63)]),
    (pa.string(), TEXTS),
    (pa.string(), ["", ""]),
    (pa.binary(), BYTES),
    (pa.binary(16), [bytes([n]) * 16 for n in range(4)]),
    (pa.binary(32), [bytes([n]) * 32 for n in range(4)]),
]


@pytest.mark.parametrize(("kind", "values"), COLUMNS)
def test_a_column_is_read_as_arrow_reads_it(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, kind)
    assert parquet._values(column) == column.to_pylist() == values
    for part in (column.slice(1), column.slice(0, 1), column.slice(0, 0), column.slice(1, 1)):
        assert parquet._values(part) == part.to_pylist()


def test_a_buffer_may_end_within_a_value_that_no_row_has() -> None:
    numbers = pa.py_buffer(b"\1\0\0\0\2\0\0\0\3")
    column = pa.Array.from_buffers(pa.int32(), 2, [None, numbers])
    assert parquet._values(column) == column.to_pylist() == [1, 2]
    text = pa.Array.from_buffers(pa.string(), 1, [None, numbers, pa.py_buffer(b"abc")])
    assert parquet._values(text) == text.to_pylist() == ["b"]


def test_rows_of_several_groups_come_back_in_order(tmp_path: Path) -> None:
    rows = [
        (n % 64, n, TEXTS[n % 4], n, "name", BYTES[n % 4], b"l" * 32, b"c" * 32, 0, n)
        for n in range(1, 2 * parquet.GROUP_ROWS + 5)
    ]
    (file,) = parquet.write_log(tmp_path, "log/usage-00", parquet.USAGE, rows)
    assert list(parquet.read_log(tmp_path / file.path, parquet.USAGE)) == rows
