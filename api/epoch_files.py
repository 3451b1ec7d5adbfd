"""Where epoch files are kept, and one node's row of one, found without reading the others.

    found == the node's row of read_cut(the file)

The file of a million nodes is 200 MB: its bytes are searched piece by piece.
"""

from __future__ import annotations

import json
from pathlib import Path

from domain.epoch_file import read_node
from domain.settlement import NodeCut

PIECE_BYTES = 8 * 2**20
ROW_BYTES_MAX = 2**20
"""A node has at most so many devices and funding sources that its row is shorter."""


def epoch_path(data_dir: Path, epoch: int) -> Path:
    """Where the canonical epoch file is kept."""
    return data_dir / "epochs" / f"{epoch}.json"


def find_node(path: Path, node_id: str) -> NodeCut | None:
    """What an epoch's cut says of one node; None when it says nothing.

    Raises FileNotFoundError.
    """
    # A row begins with an id and an account; lists of sources and classes go on with a number.
    mark = f"[{json.dumps(node_id, ensure_ascii=False)},".encode()
    with path.open("rb") as file:
        before, start = b"", 0
        while piece := file.read(PIECE_BYTES):
            text = before + piece
            at = text.find(mark)
            if at >= 0:
                file.seek(start - len(before) + at)
                return _row(file.read(ROW_BYTES_MAX))
            start += len(piece)
            before = text[-len(mark) :]
    return None


def _row(data: bytes) -> NodeCut:
    row, _ = json.JSONDecoder().raw_decode(data.decode(errors="ignore"))
    return read_node(row)
