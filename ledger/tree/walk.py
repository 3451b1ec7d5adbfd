"""Walking a log row by row: what every row must satisfy, whoever reads it and from wherever.

    position == position before + 1
    leaf     == SHA-256(0x00 || entry)         recomputed from the stored bytes
    chain    == SHA-256(chain before || leaf)

The tree grows along, so its root is known at every size on the way. Knows no file and no database.
"""

from __future__ import annotations

from ledger.log.chain import chain
from ledger.tree import merkle


class RowWrong(ValueError):
    """A row that is not what the log says it is: `position` where, `what` how."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"position {position}: {what}")
        self.position = position
        self.what = what


class Walk:
    """One log, from its first row on."""

    __slots__ = ("head", "position", "tree")

    def __init__(self, genesis: bytes) -> None:
        self.position = 0
        self.head = genesis
        self.tree = merkle.Frontier()

    def step(self, position: int, leaf: bytes, stored_leaf: bytes, stored_chain: bytes) -> None:
        """Take the next row; `leaf` is recomputed from its bytes. Raises RowWrong."""
        due = self.position + 1
        if position != due:
            raise RowWrong(due, f"missing: the next row has position {position}")
        if leaf != stored_leaf:
            raise RowWrong(due, "its bytes do not have its leaf hash")
        head = chain(self.head, leaf)
        if head != stored_chain:
            raise RowWrong(due, "the chain breaks here")
        self.position, self.head = due, head
        self.tree.append(leaf)
