"""What refusals say: policies, proposals, votes and milestone grants."""

from __future__ import annotations

from api.refusals.sentence import (
    ANY,
    CHANGED,
    CONFLICT,
    INVALID,
    NOT_FOUND,
    Sentence,
    sentence,
    when,
)
from domain.governance.reasons import GovernanceReason
from domain.refusal import Reason

SENTENCES: dict[Reason, Sentence] = {
    GovernanceReason.PROPOSAL_UNKNOWN: sentence(
        NOT_FOUND,
        "There is no policy proposal[ {number:count}]. `tallystick policy list` shows the "
        "proposals.",
    ),
    GovernanceReason.PROPOSAL_EXISTS: sentence(
        CONFLICT,
        "The policy proposal[ {number:count}] exists already. Revise it with `tallystick policy "
        "revise`, or choose another number.",
    ),
    GovernanceReason.PROPOSAL_MOVED: sentence(
        CHANGED,
        "The proposal {number:count} has changed since you read it: it has {found:count} "
        "changes, and you saw {expected:count}. Read it again, then decide.",
        "The proposal has changed since you read it. Read it again, then decide.",
    ),
    GovernanceReason.PROPOSAL_STATE: sentence(
        CONFLICT,
        when(
            "The proposal was not revised, because it has its last revision ({rule:rule}). "
            "Withdraw it with `tallystick policy withdraw`, and propose the text under a new "
            "number with `tallystick policy propose`.",
            rule=ANY,
        ),
        "The proposal {number:count} is {status:word}, which does not allow this. `tallystick "
        "policy show` shows what can be done with it.",
        "The state of the proposal does not allow this. `tallystick policy show` shows it.",
    ),
    GovernanceReason.PROPOSAL_INVALID: sentence(
        INVALID,
        when(
            "The field {field:text} of the document has a decimal fraction, and a policy has "
            "whole numbers only. Write it in the unit that the field names.",
            field=ANY,
            rule="is a float",
        ),
        when(
            "The field {field:text} of the document breaks its rule: {rule:rule}. Correct it "
            "and send it again.",
            field=ANY,
        ),
        when(
            "The document of the proposal is not JSON. Correct it and check it with `tallystick "
            "policy lint`.",
            rule="a document is JSON",
        ),
        when(
            "The document of the proposal was refused: {rule:rule}. Correct it and check it "
            "with `tallystick policy lint`.",
            rule=ANY,
        ),
        "The document of the proposal was refused. Correct it and check it with `tallystick "
        "policy lint`.",
    ),
    GovernanceReason.PROPOSAL_LINT: sentence(
        CONFLICT,
        "The proposal fails its lint with {errors:count} errors, the first is {rule:rule}. "
        "Correct them with `tallystick policy revise`.",
        "The proposal fails its lint. Correct the errors with `tallystick policy revise`.",
    ),
    GovernanceReason.PROPOSAL_WITHOUT_TERMS: sentence(
        CONFLICT,
        "The proposal[ {number:count}] has no terms, so there is nothing to put in force. "
        "Revise it with terms first.",
    ),
    GovernanceReason.PROPOSAL_NOTICE: sentence(
        CONFLICT,
        "Epoch {effective_from_epoch:count} is too early: the notice period ends with epoch "
        "{earliest:count}. Schedule it for that epoch or a later one.",
        "The start of the policy is too early for its notice period. Schedule it for a later "
        "epoch.",
    ),
    GovernanceReason.GRANT_UNKNOWN: sentence(
        NOT_FOUND, "There is no grant[ {grant_id:text}]. `tallystick grant list` shows the grants."
    ),
    GovernanceReason.GRANT_EXISTS: sentence(
        CONFLICT, "The grant[ {grant_id:text}] exists already, with other contents. Use a new id."
    ),
    GovernanceReason.GRANT_STATE: sentence(
        CONFLICT,
        when(
            "No clawback of the grant {grant_id:text} is proposed, so there is nothing to "
            "accept. Propose it with `tallystick grant clawback` first.",
            rule=ANY,
        ),
        "The grant {grant_id:text} is {status:word}, which does not allow this. `tallystick "
        "grant show` shows it.",
        "The state of the grant does not allow this. `tallystick grant show` shows it.",
    ),
    GovernanceReason.MILESTONE_STATE: sentence(
        CONFLICT,
        when(
            "The milestone {milestone_id:text} is accepted already. Nothing needs to be done.",
            rule="accepted already",
        ),
        "The milestone[ {milestone_id:text}] was not reported as reached, so it cannot be "
        "accepted. Report it with `tallystick grant done` first.",
    ),
    GovernanceReason.TREASURY_SHORT: sentence(
        CONFLICT,
        "The grant needs {needed:token}; the treasury has {matured:token} that have matured. "
        "Wait for more epochs, or grant less.",
        "The treasury has too little for this grant. Wait for more epochs, or grant less.",
    ),
    GovernanceReason.BAD_MILESTONE: sentence(
        INVALID,
        "The milestone[ {milestone_id:text}] needs a name and a text, neither empty nor too long. "
        "Shorten them, or write what is missing.",
    ),
    GovernanceReason.DUPLICATE_MILESTONE: sentence(
        INVALID, "A milestone is named twice. Name each milestone once."
    ),
    GovernanceReason.BAD_SHARE: sentence(
        INVALID,
        "The milestone {milestone_id:text} gets {share_ppm:percent} of the grant, which is out "
        "of range. Choose above 0 % and at most 100 %.",
        "The share of a milestone is out of range. Choose above 0 % and at most 100 %.",
    ),
    GovernanceReason.OVER_ASSIGNED: sentence(
        INVALID,
        "The shares of the milestones are more than 100 % together[: {shares_ppm:percent}]. "
        "Lower them.",
    ),
    GovernanceReason.UNKNOWN_MILESTONE: sentence(
        INVALID,
        "The grant has no milestone[ {milestone_id:text}]. `tallystick grant show` lists its "
        "milestones.",
    ),
    GovernanceReason.BREAKER_LIMIT: sentence(
        CONFLICT,
        "A breaker holds this back: with it, more would pass within the window than its limit "
        "allows. Wait until the window has passed, or raise the limit with `tallystick breaker "
        "set`.",
    ),
}
