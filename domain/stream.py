"""Where facts live: streams, the ids that name them, and what a decision may look at.

A decision is a pure function `decide(command, world) -> changes`. It reads the folded states of
the streams it needs and the balances of the books through `World`, and answers with the facts to
append, each to its stream. The command carries the time and every id, so the same command on the
same world always gives the same changes.
"""

from __future__ import annotations

from hashlib import sha1
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID, uuid5

from domain.record import dataclass

NAMESPACE = UUID("6f9a1d5e-0c44-5b6e-9d0a-7a11757c0001")
"""The one namespace of all derived ids. It can never change: ids are hashed into the log."""
_NAMESPACE_BYTES = NAMESPACE.bytes


S = TypeVar("S")
"""What a stream folds to."""


class Stream(NamedTuple, Generic[S]):
    """The history of one thing that folds to an `S`. The file of the thing has the function that
    names it: `lease_stream(lease_id) -> Stream[Lease]` is `Stream("lease", lease_id)`.

    A tuple, for it is looked up more often than anything else: hundreds of times in one decision.
    """

    kind: str
    id: str

    @property
    def uuid(self) -> UUID:
        """The stored id: natural keys are unique by the primary key of the events table."""
        # uuid5(NAMESPACE, "kind:id"), spelled out: it is taken for every fact that is appended.
        digest = sha1(_NAMESPACE_BYTES + f"{self.kind}:{self.id}".encode()).digest()  # noqa: S324
        return UUID(bytes=digest[:16], version=5)


@dataclass(frozen=True, slots=True)
class Change:
    """One fact to append to one stream."""

    stream: Stream[Any]
    fact: Any


class World(Protocol):
    """What a decision may look at: folded states and present balances, nothing else."""

    def state(self, stream: Stream[S]) -> S:
        """The folded state of a stream; the kind's initial state if it has no facts."""
        ...

    def balance(self, account: str) -> int:
        """Units of a book account on its normal side; 0 if it does not exist."""
        ...


def derive_id(kind: str, account: str, key: str, ordinal: int = 0) -> str:
    """A server-made id: equal on every replay of the same request (design api 4).

    `kind` is the prefix without underscore; only `key` may contain the separator `|`.
    """
    return f"{kind}_{uuid5(NAMESPACE, '|'.join((account, key, kind, str(ordinal)))).hex}"
