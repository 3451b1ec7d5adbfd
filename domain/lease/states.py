"""The states of a lease, and every way from one to another: the table of design marketplace 1.

    a fact that is not in the table for the state it meets never happens    tested on random runs

The documentation's table and diagram are printed from here.
"""

from __future__ import annotations

from domain.record import dataclass

STATES = (
    "requested",
    "quoted",
    "reserved",
    "gang_waiting",
    "active",
    "paused",
    "degraded",
    "reclaiming",
    "closing",
    "settled",
    "disputed",
    "resolved",
    "archived",
)


@dataclass(frozen=True, slots=True)
class Transition:
    """From some states to one by a fact; who causes it, and what it does with money."""

    sources: tuple[str, ...]
    target: str
    fact: str
    who: str
    money: str = "none"


NEW = "unknown"
"""Before its first fact."""
_BEFORE = ("requested", "quoted", "reserved", "gang_waiting")
_RUNNING = ("active", "paused", "degraded", "reclaiming")
_OVER = ("settled", "disputed", "resolved")

TRANSITIONS = (
    Transition((NEW,), "requested", "LeaseRequested", "renter"),
    Transition(("requested", "quoted"), "quoted", "LeaseQuoted", "matcher, or a provider's bid"),
    Transition(
        ("requested", "quoted"),
        "reserved",
        "LeaseReserved",
        "renter, or the request's rule",
        "balance -> escrow",
    ),
    Transition(("reserved",), "gang_waiting", "LeaseReady", "node, in a gang"),
    Transition(
        ("reserved", "gang_waiting"),
        "active",
        "LeaseOpened",
        "node; in a gang its last one",
        "billing starts",
    ),
    Transition(
        ("active",), "paused", "LeasePaused", "matcher, or renter", "compute stops charging"
    ),
    Transition(("paused",), "active", "LeaseResumed", "matcher, or renter", "compute goes on"),
    Transition(
        ("active",), "degraded", "LeaseDegraded", "timer", "time without proof is not charged"
    ),
    Transition(("degraded",), "active", "LeaseRecovered", "timer"),
    Transition(("active", "degraded"), "reclaiming", "ReclaimStarted", "provider", "full rate"),
    Transition(("reclaiming",), "active", "ReclaimCancelled", "provider"),
    Transition(
        (*_BEFORE, *_RUNNING),
        "closing",
        "LeaseClosed",
        "renter, provider, operator, timer",
        "escrow above the largest charge still possible -> depositors",
    ),
    Transition(
        ("closing",),
        "settled",
        "LeaseSettled",
        "timer; at once if it never ran",
        "rest of the escrow -> depositors",
    ),
    Transition(
        ("closing",),
        "disputed",
        "LeaseSettled",
        "timer, with a dispute open",
        "rest of the escrow -> depositors",
    ),
    Transition(_OVER, "disputed", "LeaseDisputed", "renter, or provider", "holdback -> dispute"),
    Transition(
        ("disputed",),
        "resolved",
        "LeaseResolved",
        "arbiter, or timeout",
        "dispute -> renter and provider",
    ),
    Transition(("settled", "resolved"), "archived", "LeaseArchived", "timer"),
)
"""Every change of state."""

STAYING = {
    "LeaseQueued": ("requested",),
    "MatchDecided": ("requested", "quoted"),
    "LeaseReady": ("reserved",),
    "LeaseCommandAcknowledged": ("reserved", "gang_waiting", *_RUNNING, "closing", *_OVER),
    "LeaseWorkEnded": ("reserved", "gang_waiting", *_RUNNING, "closing", *_OVER),
    "LeaseToppedUp": ("reserved", "gang_waiting", *_RUNNING),
    "LeaseExtended": ("reserved", "gang_waiting", "active", "paused", "degraded"),
    "UsageAccrued": (*_RUNNING, "closing"),
    "LeaseFundsMoved": _RUNNING,
    "LeaseFundsTaken": (*_RUNNING, "closing"),
    "FundsEndWarned": ("active", "degraded", "reclaiming"),
    "LeaseDisputed": (*_RUNNING, "closing", "disputed"),
    "LeaseResolved": (*_RUNNING, "closing", "disputed", "settled", "resolved"),
    "FaultRevised": ("closing", *_OVER),
    "LeaseRestarted": ("closing", *_OVER, "archived"),
}
"""Facts that leave the state as it is, and in which states they happen."""
