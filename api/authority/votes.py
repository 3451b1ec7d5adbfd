"""Votes over HTTP: what is to be signed is told, and a signature is checked before its command.

    a vote reaches the domain  =>  the governor's personal key signed `vote_text` of it

The API key of the call only carries the vote; nothing is decided by it. The governor's public key
is the one that was enrolled: Ed25519, a wallet (EIP-191) or a passkey (WebAuthn).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from api.door import errors
from api.door.call import Call
from api.door.models import AnswerModel, Count, Hex32, RequestModel, with_examples
from api.door.second_person import signed_with
from domain.authority import ballot
from domain.authority.reasons import AuthorityReason
from domain.authority.register import Register, register_of
from domain.authority.vote import (
    CANCEL,
    GOVERNOR_PATTERN,
    NO,
    SIGNATURE_PATTERN,
    YES,
    SignedVote,
    Subject,
    VoteCast,
    vote_text,
)
from domain.refusal import Reason, Refused

GovernorId = Annotated[str, Field(pattern=f"^{GOVERNOR_PATTERN}$")]
Signature = Annotated[str, Field(pattern=f"^{SIGNATURE_PATTERN}$")]
Mode = Literal["single", "shared"]
ON_VOTE: tuple[str | Reason, ...] = (
    "signature_invalid",
    AuthorityReason.NO_GOVERNORS,
    AuthorityReason.VOTE_MISMATCH,
    AuthorityReason.GOVERNOR_UNKNOWN,
    AuthorityReason.VOTED_ALREADY,
)
EXAMPLE = {
    "governor_id": "gov_" + "1" * 32,
    "revision": 1,
    "content_sha256": "2" * 64,
    "governors": 3,
    "signature": "3" * 128,
}


class VoteRequest(RequestModel):
    """A governor's signed vote. `signature`: over the text of `tallystick vote v1`, in hex; of an
    Ed25519 key 64 bytes, of a wallet 65 bytes behind 0x. Of a passkey `passkey:`, then the
    authenticator data, the client data and the signature of an assertion, with dots between; its
    challenge is the SHA-256 of the text.
    """

    governor_id: GovernorId
    revision: Annotated[int, Field(ge=1, le=1_000_000)]
    content_sha256: Hex32
    governors: Annotated[int, Field(ge=1, le=1_000_000)]
    rehearsal_sha256: Hex32 | None = None
    signature: Signature

    model_config = with_examples(EXAMPLE)

    def signed(self) -> SignedVote:
        return SignedVote(**self.model_dump())


class BallotAnswer(AnswerModel):
    """What is voted on, and the votes that count. The text that a vote signs has these lines:
    `network`, `kind`, `subject`, `revision`, `content_sha256`, `governors`, the choice, and the
    hash of a rehearsal. `needed` yes votes carry it; in mode `single` that is one.
    """

    network: str
    kind: str
    subject: str
    revision: Count
    content: dict[str, Any] | None = None
    content_sha256: Hex32
    governors: Count
    mode: Mode
    needed: Count
    yes: list[str]
    no: list[str]
    cancel: list[str]


def ballot_told(
    register: Register,
    subject: Subject,
    votes: Iterable[VoteCast],
    *,
    content: dict[str, Any] | None = None,
    approvals: int = 1,
) -> BallotAnswer:
    """A ballot as it is told; `content` where it is not told beside it."""
    votes = tuple(votes)
    mode: Any = register.now.mode
    version = subject.governors
    return BallotAnswer(
        network=register.network,
        kind=subject.kind,
        subject=subject.subject,
        revision=subject.revision,
        content=content,
        content_sha256=subject.content_sha256,
        governors=version,
        mode=mode,
        needed=ballot.needed(register, version, approvals),
        yes=ballot.voters(register, votes, YES, version),
        no=ballot.voters(register, votes, NO, version),
        cancel=ballot.voters(register, votes, CANCEL, version),
    )


def checked(
    call: Call, kind: str, subject: str, body: VoteRequest, choice: str = YES
) -> SignedVote:
    """The vote, its signature checked. Raises Problem: 422 signature_invalid; Refused:
    GOVERNOR_UNKNOWN.
    """
    vote = body.signed()
    register = register_of(call.service.ledger.world())
    key = register.keys.get(vote.governor_id)
    if key is None:
        raise Refused(
            AuthorityReason.GOVERNOR_UNKNOWN, governor_id=vote.governor_id, rule="not a governor"
        )
    named = Subject(kind, subject, vote.revision, vote.content_sha256, vote.governors)
    text = vote_text(register.network, named, choice, vote.rehearsal_sha256)
    if not signed_with(key, text, vote.signature):
        raise errors.problem("signature_invalid", f"not signed by the key of {vote.governor_id}")
    return vote
