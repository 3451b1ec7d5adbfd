"""Why a lease ended: codes whose range names the party at fault, and who may give which.

    0-99 nobody, 100-9999 renter, 10000-19999 provider, 20000-29999 network, 30000-39999 client

Only codes move money or reputation; free text never does. A code that is not in the table is
refused, and so is one that is not for the party that gives it. Source: marketplace 1.
"""

from __future__ import annotations

from domain.record import dataclass

COMPLETED, RENTER_CLOSED, RECLAIMED, TERM_REACHED, SCALED_DOWN, NO_MATCH, EXPIRED = range(7)
FUNDS_ENDED, CANCELLED_BEFORE_START, PAYMENT_REVERSED, POLICY_BREACH = range(100, 104)
UNSTABLE, DECOMMISSION, UNSPECIFIED, START_TIMEOUT, UNREACHABLE, RESHAPED, SPEC_MISMATCH = range(
    10_000, 10_007
)
REGION_CLOSED, EMERGENCY_STOP, GANG_TIMEOUT, INGRESS_FAILURE = range(20_001, 20_005)
CLIENT_WITHDREW = 30_000

FAULTS = (
    ("none", range(100)),
    ("renter", range(100, 10_000)),
    ("provider", range(10_000, 20_000)),
    ("network", range(20_000, 30_000)),
    ("client", range(30_000, 40_000)),
)
"""The party at fault and the range of its codes."""


@dataclass(frozen=True, slots=True)
class CloseReason:
    """One code: its name, what it says, and which parties may give it."""

    code: int
    name: str
    meaning: str
    given_by: tuple[str, ...]  # of "renter", "client", "provider", "operator", "job"

    @property
    def fault(self) -> str:
        return fault_of(self.code)


_ALL = (
    CloseReason(COMPLETED, "completed", "the work is done", ("renter", "client", "job")),
    CloseReason(RENTER_CLOSED, "renter_closed", "the renter ended it", ("renter", "job")),
    CloseReason(
        RECLAIMED,
        "reclaimed_after_notice",
        "the provider waited for the quoted window",
        ("provider",),
    ),
    CloseReason(TERM_REACHED, "term_reached", "the fixed term is over", ("job",)),
    CloseReason(
        SCALED_DOWN,
        "scaled_down",
        "an elastic job needs fewer",
        ("renter", "client", "operator", "job"),
    ),
    CloseReason(NO_MATCH, "no_match", "no node fits any longer", ("job",)),
    CloseReason(EXPIRED, "expired", "no quote was accepted in time", ("job",)),
    CloseReason(FUNDS_ENDED, "funds_ended", "the escrow is used up to the second", ("job",)),
    CloseReason(
        CANCELLED_BEFORE_START,
        "cancelled_before_start",
        "the renter ended it before it ran",
        ("renter", "job"),
    ),
    CloseReason(
        PAYMENT_REVERSED,
        "payment_reversed",
        "the money behind it was taken back",
        ("operator", "job"),
    ),
    CloseReason(POLICY_BREACH, "policy_breach", "the work broke the rules", ("operator",)),
    CloseReason(UNSTABLE, "unstable", "the node does not run well", ("provider", "job")),
    CloseReason(DECOMMISSION, "decommission", "the node goes away", ("provider",)),
    CloseReason(UNSPECIFIED, "unspecified", "the provider gave no reason", ("provider",)),
    CloseReason(START_TIMEOUT, "start_timeout", "the node was not ready in time", ("job",)),
    CloseReason(UNREACHABLE, "unreachable", "the node was silent for too long", ("job",)),
    CloseReason(RESHAPED, "reshaped", "the partition of the device is gone", ("provider", "job")),
    CloseReason(
        SPEC_MISMATCH,
        "spec_mismatch",
        "the node is not what was offered",
        ("provider", "operator", "job"),
    ),
    CloseReason(REGION_CLOSED, "region_closed", "its region closed", ("operator", "job")),
    CloseReason(EMERGENCY_STOP, "emergency_stop", "the network was stopped", ("operator",)),
    CloseReason(
        GANG_TIMEOUT,
        "gang_timeout",
        "another member of its gang was not ready",
        ("operator", "job"),
    ),
    CloseReason(
        INGRESS_FAILURE,
        "ingress_failure",
        "the node worked, the path to it did not",
        ("operator", "job"),
    ),
    CloseReason(
        CLIENT_WITHDREW,
        "client_withdrew",
        "the compute client withdrew the job",
        ("renter", "client"),
    ),
)

CLOSE_REASONS = {one.code: one for one in _ALL}
"""Every code there is, in order."""

PARTIES = ("renter", "client", "provider", "operator", "job")


def fault_of(code: int) -> str:
    """The party at fault: "none", "renter", "provider", "network" or "client"."""
    return next(party for party, codes in FAULTS if code in codes)


def may_give(party: str, code: int) -> bool:
    """Whether a party may end a lease with a code."""
    reason = CLOSE_REASONS.get(code)
    return reason is not None and party in reason.given_by
