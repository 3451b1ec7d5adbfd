"""Reads the openb trace format: GPU nodes and the tasks that ran on them.

The format is that of Alibaba's clusterdata, `cluster-trace-gpu-v2023` (Weng et al., "Beware of
Fragmentation", USENIX ATC 2023). Only GPUs, share and model are used; CPU and memory are not
matched, because two tasks of the published file ask for more of both than any node has.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from domain.record import dataclass

NODE_COLUMNS = ("sn", "gpu", "model")
TASK_COLUMNS = (
    "name",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)


class TraceUnreadable(Exception):
    """The file is not a trace of this format; the message names file, line and rule."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One machine with `gpus` accelerators of one model."""

    name: str
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class TraceTask:
    """One task: it asks at `created_s` and runs for `length_s`; None: it never ran."""

    name: str
    gpus: int
    share_ppm: int  # of each GPU
    models: tuple[str, ...]  # allowed; empty: any
    created_s: int
    length_s: int | None


def read_nodes(path: Path) -> list[TraceNode]:
    """The nodes, in file order. Raises TraceUnreadable."""
    nodes = []
    for line, row in _rows(path, NODE_COLUMNS):
        gpus = _number(path, line, "gpu", row["gpu"])
        if not 1 <= gpus <= 64 or not row["model"]:
            raise TraceUnreadable(f"{path}:{line}: gpu must be 1 to 64, model not empty")
        nodes.append(TraceNode(row["sn"], gpus, row["model"]))
    return nodes


def read_tasks(path: Path) -> list[TraceTask]:
    """The tasks, in file order. Raises TraceUnreadable."""
    return [_task(path, line, row) for line, row in _rows(path, TASK_COLUMNS)]


def _task(path: Path, line: int, row: dict[str, str]) -> TraceTask:
    gpus = _number(path, line, "num_gpu", row["num_gpu"])
    milli = _number(path, line, "gpu_milli", row["gpu_milli"]) if gpus else 1_000
    if not 1 <= milli <= 1_000:
        raise TraceUnreadable(f"{path}:{line}: gpu_milli must be 1 to 1000")
    length_s = None
    if row["scheduled_time"]:
        started = _number(path, line, "scheduled_time", row["scheduled_time"])
        length_s = _number(path, line, "deletion_time", row["deletion_time"]) - started
        if length_s <= 0:
            raise TraceUnreadable(f"{path}:{line}: deletion_time must be after scheduled_time")
    return TraceTask(
        name=row["name"],
        gpus=gpus,
        share_ppm=milli * 1_000,
        models=tuple(sorted(filter(None, row["gpu_spec"].split("|")))),
        created_s=_number(path, line, "creation_time", row["creation_time"]),
        length_s=length_s,
    )


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = set(columns) - set(reader.fieldnames or ())
            if missing:
                raise TraceUnreadable(f"{path}: no column {min(missing)}")
            for row in reader:
                if None in row or None in row.values():  # what csv gives for a wrong count
                    expected = len(reader.fieldnames or ())
                    raise TraceUnreadable(f"{path}:{reader.line_num}: not {expected} columns")
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceUnreadable(f"{path}: {error}") from error


def _number(path: Path, line: int, column: str, text: str) -> int:
    try:
        return int(text)
    except (TypeError, ValueError):
        raise TraceUnreadable(f"{path}:{line}: {column} must be an integer") from None
