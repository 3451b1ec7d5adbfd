"""What refusals say: attestation and its evidence."""

from __future__ import annotations

from api.refusals.sentence import ANY, INVALID, NOT_FOUND, Sentence, sentence, when
from domain.refusal import Reason
from domain.trust.reasons import TrustReason

SENTENCES: dict[Reason, Sentence] = {
    TrustReason.REFERENCE_INVALID: sentence(
        INVALID,
        when(
            "The nonce of the server is more than ten minutes old. Ask for a new one and attest "
            "again.",
            field="server_nonce",
            rule="ten minutes old",
        ),
        when(
            "This nonce was not issued for this device, or a newer one was. Ask for a new one "
            "and attest again.",
            field="server_nonce",
        ),
        when(
            "No verifier of this name is installed on the server. Ask the operator to install it.",
            field="plugin",
        ),
        when(
            "The {field:field} has another form: {rule:rule}. Correct it and send it again.",
            field=ANY,
        ),
        when(
            "The reference of the kind {kind:text} breaks its rule: {rule:rule}. Correct it and "
            "send it again.",
            kind=ANY,
        ),
        "A reference or a piece of evidence has another form. Correct it and send it again.",
    ),
    TrustReason.POLICY_INVALID: sentence(
        INVALID,
        "The policy was refused by this rule: {rule:rule}. Correct the document and check it "
        "with `tallystick policy lint`.",
        "The policy was refused by a rule of its terms. Correct the document and check it with "
        "`tallystick policy lint`.",
    ),
    TrustReason.JOB_UNKNOWN: sentence(
        NOT_FOUND,
        when(
            "There is no open challenge {challenge_id:text} for this node. Ask for the next one.",
            challenge_id=ANY,
        ),
        "There is no job[ {job_id:text}] that you may see. `tallystick job list` shows yours.",
    ),
}
