"""Where epoch files are kept, and one node's row of one, found without reading the others.

    found == the node's row of read_cut(the file)

The file of a million nodes is 200 MB. Its nodes are in order of their ids, and a row of a node is
the only list of its length there, so the place is found by halving.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from domain.epochs.epoch_file import read_node
from domain.epochs.settlement import NodeCut

ROW_BYTES_MAX = 2**18
"""A node has at most so many devices and funding sources that its row is shorter."""
REWARDS = b'"rewards":['
REWARDS_AT_ONCE = 2**18
"""Bytes of rewards that are read together."""
NODE_PARTS = len(NodeCut._fields)
_LIST = re.compile(r'\["')


def epoch_path(data_dir: Path, epoch: int) -> Path:
    """Where the canonical epoch file is kept."""
    return data_dir / "epochs" / f"{epoch}.json"


def clients_path(data_dir: Path, epoch: int) -> Path:
    """Where it is kept whose work an epoch's rewards pay for (`domain/epochs/clients.py`)."""
    return data_dir / "epochs" / f"{epoch}.clients.json"


def parts_path(data_dir: Path, epoch: int) -> Path:
    """Where the steps of a settlement leave things for each other; it goes with the seal."""
    return data_dir / "epochs" / f"{epoch}.parts"


def find_node(path: Path, node_id: str) -> NodeCut | None:
    """What an epoch's cut says of one node; None when it says nothing.

    Raises FileNotFoundError.
    """
    with path.open("rb") as file:
        low, high = 0, path.stat().st_size
        while low < high:
            middle = (low + high) // 2
            row = _row_from(file, middle)
            if row is None or row[0] >= node_id:
                high = middle
            else:
                low = middle + 1
        row = _row_from(file, low)
    return read_node(row) if row is not None and row[0] == node_id else None


def rewards_in(path: Path) -> Iterator[tuple[str, int]]:
    """What an epoch file says that each account gets, in order, read piece by piece.

    Raises ValueError when it is no epoch file.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        # The policy's terms have the same name and are no list; in a text its marks are escaped.
        at = data.rfind(REWARDS)
        if at < 0:
            raise ValueError(f"{path.name}: no rewards")
        at += len(REWARDS)
        while data[at : at + 1] == b"[":
            text = data[at : at + REWARDS_AT_ONCE].decode("utf-8", errors="replace")
            rows, used = _whole_rows(text)
            yield from ((who, int(units)) for who, units in rows)
            at += len(text[:used].encode())


def _whole_rows(text: str) -> tuple[list[list[str]], int]:
    """The rows that a text begins with, and how much of it they are with the mark behind each."""
    rows, at = [], 0
    while text.startswith("[", at):
        try:
            row, end = json.JSONDecoder().raw_decode(text, at)
        except ValueError:  # cut off
            break
        if end == len(text):  # the mark behind it is in the next piece, and so is the row
            break
        rows.append(row)
        at = end + 1  # the comma, or the end of the list
    if not rows:
        raise ValueError("a reward that does not end")
    return rows, at


def _row_from(file: BinaryIO, offset: int) -> list[Any] | None:
    """The first row of a node that begins here or later; None behind the last one."""
    file.seek(offset)
    text = file.read(2 * ROW_BYTES_MAX).decode("utf-8", errors="replace")
    for begins in _LIST.finditer(text):
        try:
            found, _ = json.JSONDecoder().raw_decode(text, begins.start())
        except ValueError:  # cut off, or from the middle of a name on
            continue
        if len(found) == NODE_PARTS:
            return list(found)
    return None
