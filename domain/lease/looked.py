"""What the views tell when a lease is placed: it enters a decision with its command.

    decision == f(command, streams),   and every score in f is in the command

A reputation, an attribute that a third party signed and the age that a node's inventory may have
are no part of one stream. The shell looks them up and the decision compares them with the demands
of the lease. A decision that was told nothing takes nothing for granted: such a node is
provisional and nobody vouches for it.
"""

from __future__ import annotations

from domain.record import dataclass


@dataclass(frozen=True, slots=True)
class Stated:
    """An attribute that holds now: somebody signed it."""

    name: str
    value: str
    signer: str
    expires_at_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The scores of both sides in ppm (None: provisional), the node's attributes, how old its
    inventory may be in microseconds (0: of any age), and whether the renter has nodes of its own.
    """

    node_ppm: int | None = None
    renter_ppm: int | None = None
    attributes: tuple[Stated, ...] = ()
    spec_ttl_us: int = 0
    has_base: bool = False


NOT_LOOKED = Looked()
