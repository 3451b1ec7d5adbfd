"""What the room `governance` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.governance import breakers, grant, proposal, vote

FILES = (breakers, grant, proposal, vote)
FACTS: dict[str, type[Any]] = {
    "breaker.set.v1": breakers.BreakerSet,
    "breaker.passed.v1": breakers.BreakerPassed,
    "breaker.tripped.v1": breakers.BreakerTripped,
    "grant.proposed.v1": grant.GrantProposed,
    "grant.opened.v1": grant.GrantOpened,
    "grant.clawback_proposed.v1": grant.ClawbackProposed,
    "grant.clawed_back.v1": grant.GrantClawedBack,
    "milestone.proposed.v1": grant.MilestoneProposed,
    "milestone.accepted.v1": grant.MilestoneAccepted,
    "policy_proposal.proposed.v1": proposal.PolicyProposed,
    "policy_proposal.revised.v1": proposal.PolicyProposalRevised,
    "policy_proposal.linted.v1": proposal.PolicyProposalLinted,
    "policy_proposal.review_opened.v1": proposal.PolicyReviewOpened,
    "policy_proposal.withdrawn.v1": proposal.PolicyProposalWithdrawn,
    "policy_proposal.scheduled.v1": proposal.PolicyProposalScheduled,
}
