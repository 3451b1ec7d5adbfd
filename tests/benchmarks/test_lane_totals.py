"""The lanes of a cut: the same sums by every executor, in every order, and by DuckDB; one root."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from benchmarks.epochs import settle as synthetic
from benchmarks.epochs.lane_totals import (
    FIELDS,
    SUMS,
    SumTooWide,
    lane_totals,
    totals,
    totals_of,
    write_lane,
)
from benchmarks.size import Size
from ledger.fan_out.executor import Executor, Serial
from ledger.fan_out.processes import Processes

SIZE = synthetic.SIZES[Size.TINY].epoch


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return synthetic.write_lanes(tmp_path_factory.mktemp("lanes"), SIZE)


def test_the_golden_root_comes_of_every_executor_and_of_every_order(
    files: list[Path], tmp_path: Path
) -> None:
    shuffled = synthetic.write_lanes(tmp_path, SIZE, shuffle=5)
    with Processes(2) as two:
        found: list[tuple[Executor, list[Path], bool]] = [
            (Serial(), files, False),
            (Serial(), shuffled, True),
            (two, shuffled, False),
        ]
        roots = {
            synthetic.root_of(SIZE, totals(executor, lanes), is_backwards=is_backwards)
            for executor, lanes, is_backwards in found
        }
        both: tuple[Executor, Executor] = (Serial(), two)
        for number, executor in enumerate(both):
            store = tmp_path / f"store_{number}"
            store.mkdir()
            roots.add(synthetic.root_by_lanes(SIZE, shuffled, executor, store))
    assert roots == {synthetic.GOLDEN[Size.TINY]}


def test_duckdb_adds_up_the_same(files: list[Path]) -> None:
    sums = ", ".join(f"sum({name})::bigint" for name in SUMS)
    for lane in (0, 63):
        ours = lane_totals(files[lane]).columns
        with np.load(files[lane]) as rows, duckdb.connect() as connection:
            table = np.stack([rows[name] for name in FIELDS], axis=1).tolist()
            connection.execute(f"CREATE TABLE rows ({', '.join(f'{n} bigint' for n in FIELDS)})")
            connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", table)
            told = connection.execute(
                f"SELECT node, source, {sums} FROM rows GROUP BY ALL ORDER BY node, source"
            ).fetchall()
        assert told == list(zip(*(ours[name].tolist() for name in FIELDS), strict=True))


def test_a_sum_that_might_not_fit_is_refused_and_none_is_a_sum_too(tmp_path: Path) -> None:
    def rows(*values: int) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        zeros = np.zeros(len(values), np.int64)
        return {**dict.fromkeys(FIELDS, zeros), "burned": np.array(values, np.int64)}

    assert totals_of(rows(2**62 - 1, 2**62 - 1)).columns["burned"].tolist() == [2**63 - 2]
    for wrong in ((2**62, 2**62), (-1, 5)):
        with pytest.raises(SumTooWide, match="burned"):
            totals_of(rows(*wrong))
    write_lane(tmp_path / "none.npz", rows())
    assert len(lane_totals(tmp_path / "none.npz").columns["node"]) == 0
