"""What the room `lease` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.lease import (
    countersign,
    free_start,
    lease,
    reserved_term,
    shared_escrow,
    turns,
    work_commands,
)

FILES = (countersign, free_start, lease, reserved_term)
FACTS: dict[str, type[Any]] = {
    "account.signing_key_added.v1": countersign.SigningKeyAdded,
    "account.signing_key_revoked.v1": countersign.SigningKeyRevoked,
    "escrow.funded.v1": shared_escrow.EscrowFunded,
    "escrow.member_told.v1": shared_escrow.EscrowMemberTold,
    "escrow.drawn.v1": shared_escrow.EscrowDrawn,
    "escrow.returned.v1": shared_escrow.EscrowReturned,
    "escrow.funds_taken.v1": shared_escrow.EscrowFundsTaken,
    "lease.requested.v1": lease.LeaseRequested,
    "lease.queued.v1": lease.LeaseQueued,
    "lease.match_decided.v1": lease.MatchDecided,
    "lease.reserved.v1": lease.LeaseReserved,
    "lease.ready.v1": lease.LeaseReady,
    "lease.opened.v1": lease.LeaseOpened,
    "lease.topped_up.v1": lease.LeaseToppedUp,
    "lease.usage_countersigned.v1": countersign.UsageCountersigned,
    "lease.usage_accrued.v1": lease.UsageAccrued,
    "lease.closed.v1": lease.LeaseClosed,
    "lease.settled.v1": lease.LeaseSettled,
    "lease.restarted.v1": lease.LeaseRestarted,
    "lease.start_failed.v1": free_start.StartFailed,
    "lease.command_acknowledged.v1": work_commands.LeaseCommandAcknowledged,
    "lease.work_ended.v1": work_commands.LeaseWorkEnded,
    "lease.term_ended_early.v1": reserved_term.TermEndedEarly,
    "lease.quoted.v1": turns.LeaseQuoted,
    "lease.paused.v1": turns.LeasePaused,
    "lease.resumed.v1": turns.LeaseResumed,
    "lease.degraded.v1": turns.LeaseDegraded,
    "lease.recovered.v1": turns.LeaseRecovered,
    "lease.reclaim_started.v1": turns.ReclaimStarted,
    "lease.reclaim_cancelled.v1": turns.ReclaimCancelled,
    "lease.extended.v1": turns.LeaseExtended,
    "lease.funds_moved.v1": turns.LeaseFundsMoved,
    "lease.funds_taken.v1": turns.LeaseFundsTaken,
    "lease.funds_end_warned.v1": turns.FundsEndWarned,
    "lease.fault_revised.v1": turns.FaultRevised,
    "lease.disputed.v1": turns.LeaseDisputed,
    "lease.resolved.v1": turns.LeaseResolved,
    "lease.archived.v1": turns.LeaseArchived,
}
