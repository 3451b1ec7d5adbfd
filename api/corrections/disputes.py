"""Disputes: a party of a lease or volume contests charges, the other answers, governance rules."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from pydantic import Field, model_validator

from api.corrections import evidence
from api.corrections.evidence import Subject
from api.door.amounts import Money, Units, credits_, credits_or_none
from api.door.auth import with_scope
from api.door.call import After, Call, Caller, View
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    Hex32,
    LeaseId,
    LeaseQuery,
    Position,
    RequestModel,
    Told_at,
    VolumeId,
    VolumeQuery,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.door.second_person import checked
from domain.chain.reasons import ChainReason
from domain.corrections.dispute import (
    EVIDENCE_MAX,
    LINES_MAX,
    AnswerDispute,
    Claim,
    Dispute,
    DisputeAnswered,
    DisputeOpened,
    DisputeResolved,
    OpenDispute,
    RuleDispute,
    stream_of,
)
from domain.corrections.reasons import CorrectionsReason
from domain.funds.reasons import FundsReason
from domain.income.adjustment import ChargedLine
from domain.income.reasons import IncomeReason
from domain.lease.reasons import LeaseReason
from domain.money import PPM
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.storage.reasons import StorageReason
from ledger.beside import dispute_texts
from ledger.beside.charged import charged_line
from ledger.beside.dispute_texts import TEXT_MAX
from projections.corrections import disputes
from projections.corrections.disputes import DISPUTES
from projections.epochs.burning import read_unburned
from projections.epochs.epochs import EPOCHS

resource = Resource("disputes")

PARTY = with_scope("renter", "provider")
READ = with_scope("renter", "provider", "operator", "audit:read")

ClaimCode = Literal[
    "not_running", "unreachable", "too_slow", "wrong_hardware", "overcharged", "other"
]
State = Literal["opened", "answered", "upheld", "rejected", "split", "timed_out"]
Side = Literal["renter", "provider"]
DisputeId = Annotated[str, Field(pattern=r"^dispute_[0-9a-f]{32}$")]
DisputeInPath = Annotated[str, Path(pattern=r"^dispute_[0-9a-f]{32}$")]
Text = Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
SplitPpm = Annotated[int, Field(ge=0, le=PPM, description="The renter's part of the claim")]


class DisputeEvidenceRequest(RequestModel):
    """`usage_report`: lane and position in the usage log, of this lease, or of a lease that had
    this volume mounted after the last disputed charge began. `market_fact`: a position of the
    market log, about this lease or volume. `statement`: the SHA-256 of anything else.
    """

    kind: Literal["usage_report", "market_fact", "statement"]
    lane: Annotated[int, Field(ge=0, le=63)] | None = None
    position: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    sha256: Hex32 | None = None

    @model_validator(mode="after")
    def _as_its_kind_has_it(self) -> DisputeEvidenceRequest:
        given = (self.lane is not None, self.position is not None, self.sha256 is not None)
        wanted = {
            "usage_report": (True, True, False),
            "market_fact": (False, True, False),
            "statement": (False, False, True),
        }[self.kind]
        if given != wanted:
            raise ValueError("usage_report: lane, position; market_fact: position; else sha256")
        return self


EvidenceList = Annotated[
    list[DisputeEvidenceRequest], Field(max_length=EVIDENCE_MAX, default_factory=list)
]


class DisputedLineRequest(RequestModel):
    """A charge of the lease or volume, by its market position. Without `claimed` all of it."""

    position: Annotated[int, Field(ge=1, le=2**53 - 1)]
    claimed: Money | None = None


class DisputeRequest(RequestModel):
    """Charges of one lease, or of one volume, that should not have been charged. `claim` can be
    erased later.
    """

    lease_id: LeaseId | None = None
    volume_id: VolumeId | None = None
    lines: Annotated[list[DisputedLineRequest], Field(min_length=1, max_length=LINES_MAX)]
    claim_code: ClaimCode
    claim: Text | None = None
    evidence: EvidenceList

    model_config = with_examples(
        {
            "lease_id": "lease_" + "1" * 32,
            "lines": [{"position": 42}],
            "claim_code": "not_running",
            "claim": "The container never answered.",
        }
    )

    @model_validator(mode="after")
    def _about_one(self) -> DisputeRequest:
        if (self.lease_id is None) == (self.volume_id is None):
            raise ValueError("lease_id or volume_id, one of them")
        return self


class DisputeAnswerRequest(RequestModel):
    """A statement, evidence, or both."""

    statement: Text | None = None
    evidence: EvidenceList

    model_config = with_examples({"statement": "The logs show it running."})


class DisputeRulingRequest(RequestModel):
    """`upheld_ppm` for a split only: the renter's part; remainders are the provider's."""

    outcome: Literal["upheld", "rejected", "split"]
    upheld_ppm: SplitPpm | None = None
    reason: Text | None = None

    model_config = with_examples(
        {"outcome": "split", "upheld_ppm": 500_000, "reason": "Half of the hour was lost."}
    )

    @model_validator(mode="after")
    def _a_split_says_how(self) -> DisputeRulingRequest:
        if (self.outcome == "split") != (self.upheld_ppm is not None):
            raise ValueError("upheld_ppm belongs to a split, and to nothing else")
        return self


class DisputeEvidenceAnswer(AnswerModel):
    """`signed`: the server found a valid signature over it, and that it is about the lease
    or volume.
    """

    kind: Literal["usage_report", "market_fact", "statement"]
    lane: Count | None = None
    position: Position | None = None
    sha256: Hex32 | None = None
    signed: bool


class DisputedLineAnswer(AnswerModel):
    position: Position
    charge: Money
    claimed: Money
    gpu_us: Units
    upheld: Money | None = None
    adjustment_id: str | None = None


class DisputeStatementAnswer(AnswerModel):
    """A statement of one side. `text` absent although `sha256` is present: the text was erased."""

    side: Side | Literal["arbiter"]
    sha256: Hex32 | None = None
    text: str | None = None
    evidence: list[DisputeEvidenceAnswer]
    by: str
    at: Told_at
    position: Position


class DisputeAnswer(AnswerModel):
    """`reserved` waits in `dispute:{id}` until the ruling, at the latest until `expires_at`."""

    dispute_id: DisputeId
    lease_id: LeaseId | None = None
    volume_id: VolumeId | None = None
    account_id: AccountId
    provider_account_id: AccountId
    opened_by: Side
    state: State
    claim_code: ClaimCode
    claimed: Money
    reserved: Money
    upheld: Money | None = None
    upheld_ppm: SplitPpm | None = None
    unfounded: bool | None = None
    opened_at: Told_at
    expires_at: Told_at
    resolved_at: Told_at | None = None
    position: Position | None = None


class DisputeDetailAnswer(DisputeAnswer):
    """A dispute with every line and every statement."""

    lines: list[DisputedLineAnswer]
    statements: list[DisputeStatementAnswer]


@resource.post(
    "/v1/disputes",
    PARTY,
    DisputeAnswer,
    status=201,
    problems=[
        LeaseReason.LEASE_UNKNOWN,
        StorageReason.VOLUME_UNKNOWN,
        CorrectionsReason.LINE_UNKNOWN,
        IncomeReason.LINE_DISPUTED,
        CorrectionsReason.DISPUTE_TOO_LATE,
        IncomeReason.ADJUSTMENT_TOO_LARGE,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        CorrectionsReason.EVIDENCE_UNKNOWN,
    ],
)
def open_dispute(body: DisputeRequest, call: Caller) -> Response:
    """Opens a dispute over charges of a lease or volume, inside their window. The owners' parts are
    held.
    """
    dispute_id = call.id("dispute")

    def commands() -> OpenDispute:
        positions = [line.position for line in body.lines]
        about = _own_subject(call, body.lease_id, body.volume_id, positions)
        claims = tuple(_claim(call, about, line) for line in body.lines)
        found = _evidence(call, body.evidence, about, dispute_id, body.claim)
        return OpenDispute(
            dispute_id=dispute_id,
            claims=claims,
            party_account_id=call.principal.account_id,
            claim_code=body.claim_code,
            claim_sha256=dispute_texts.digest(body.claim),
            evidence=found,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _after(after, dispute_id))


@resource.get("/v1/disputes", READ, page_of(DisputeAnswer), problems=["cursor_invalid"])
def list_disputes(
    call: Caller,
    order: InOrder,
    lease_id: LeaseQuery = None,
    volume_id: VolumeQuery = None,
    state: Annotated[Literal["open", "resolved"] | None, Query()] = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists disputes of which you are a party; all of them for operators and auditors."""
    place = call.place(cursor, [0], order)
    with call.read(DISPUTES) as view:
        rows = disputes.read_disputes(
            view.connection,
            account_id=call.principal.only,
            lease_id=lease_id,
            volume_id=volume_id,
            is_open=None if state is None else state == "open",
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(
            view,
            place,
            rows,
            limit,
            lambda row: [row.position],
            lambda row: DisputeAnswer(**_plain(row)),
        )


@resource.get(
    "/v1/disputes/{dispute_id}",
    READ,
    DisputeDetailAnswer,
    problems=[CorrectionsReason.DISPUTE_UNKNOWN],
)
def read_dispute(dispute_id: DisputeInPath, call: Caller) -> Response:
    """Returns a dispute with its lines, its evidence and its statements."""
    with call.read(DISPUTES) as view:
        row = _visible(call, view, dispute_id)
        lines = disputes.read_disputed_lines(view.connection, dispute_id=dispute_id)
        told = DisputeDetailAnswer(
            **_plain(row),
            lines=[
                DisputedLineAnswer(
                    position=line.position,
                    charge=credits_(line.charge),
                    claimed=credits_(line.claimed),
                    gpu_us=str(line.gpu_us),
                    upheld=credits_or_none(line.upheld),
                    adjustment_id=line.adjustment_id,
                )
                for line in lines
            ],
            statements=_statements(call, view, dispute_id),
        )
        return call.answer(view, told)


@resource.post(
    "/v1/disputes/{dispute_id}/answer",
    PARTY,
    DisputeAnswer,
    problems=[
        CorrectionsReason.DISPUTE_UNKNOWN,
        CorrectionsReason.DISPUTE_STATE,
        PartiesReason.COUNT_OUT_OF_RANGE,
        CorrectionsReason.EVIDENCE_UNKNOWN,
    ],
)
def answer_dispute(dispute_id: DisputeInPath, body: DisputeAnswerRequest, call: Caller) -> Response:
    """Adds a statement or evidence to a dispute, as either side, until the ruling."""

    def commands() -> AnswerDispute:
        opened = _dispute(call, dispute_id).opened
        unknown = Refused(CorrectionsReason.DISPUTE_UNKNOWN, dispute_id=dispute_id)
        if opened is None:
            raise unknown
        parties = (opened.account_id, opened.provider_account_id)
        if call.principal.account_id not in parties:
            raise unknown
        positions = [line.position for line in opened.lines]
        about = _subject(call, opened.lease_id, opened.volume_id, positions)
        found = _evidence(call, body.evidence, about, dispute_id, body.statement)
        return AnswerDispute(
            dispute_id=dispute_id,
            party_account_id=call.principal.account_id,
            statement_sha256=dispute_texts.digest(body.statement),
            evidence=found,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(commands, lambda after: _after(after, dispute_id))


@resource.post(
    "/v1/disputes/{dispute_id}/rule",
    with_scope("operator"),
    DisputeAnswer,
    problems=[
        CorrectionsReason.DISPUTE_UNKNOWN,
        CorrectionsReason.DISPUTE_STATE,
        PartiesReason.NOT_PERMITTED,
        PartiesReason.SHARE_OUT_OF_RANGE,
        FundsReason.CREDIT_TOO_LOW,
        ChainReason.BURN_STATE,
    ],
    checked=True,
)
def rule_dispute(dispute_id: DisputeInPath, body: DisputeRulingRequest, call: Caller) -> Response:
    """Rules on a dispute, as an operator that is neither party. The ruling is final and booked."""

    def commands() -> RuleDispute:
        opened = _dispute(call, dispute_id).opened
        if opened is None:
            raise Refused(CorrectionsReason.DISPUTE_UNKNOWN, dispute_id=dispute_id)
        whole = {"upheld": PPM, "rejected": 0}
        with call.read(EPOCHS) as view:
            dispute_texts.keep(view.connection, dispute_id, body.reason)
            unburned = read_unburned(view.connection, [line.position for line in opened.lines])
        ppm = body.upheld_ppm
        return RuleDispute(
            dispute_id=dispute_id,
            outcome=body.outcome,
            upheld_ppm=whole[body.outcome] if ppm is None else ppm,
            lines=tuple(_line(call, line.position) for line in opened.lines),
            unburned=unburned,
            arbiter_account_id=call.principal.account_id,
            reason_sha256=dispute_texts.digest(body.reason),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(
        lambda: checked(call, commands()),
        lambda after: _after(after, dispute_id),
        again_on=frozenset({ChainReason.BURN_STATE}),
    )


# --- what commands are made of -----------------------------------------------------------------


def _own_subject(
    call: Call, lease_id: str | None, volume_id: str | None, positions: list[int]
) -> Subject:
    """A lease or volume of which the caller is renter or provider; else it is unknown."""
    about = _subject(call, lease_id, volume_id, positions)
    if call.principal.account_id not in about.parties:
        if volume_id is not None:
            raise Refused(StorageReason.VOLUME_UNKNOWN, volume_id=volume_id)
        raise Refused(LeaseReason.LEASE_UNKNOWN, lease_id=lease_id)
    return about


def _subject(
    call: Call, lease_id: str | None, volume_id: str | None, positions: list[int]
) -> Subject:
    """What is disputed. `positions`: the charges of it."""
    market = call.service.ledger.market
    if volume_id is not None:
        return evidence.volume_subject(market, volume_id, positions)
    assert lease_id is not None
    return evidence.lease_subject(market, lease_id)


def _claim(call: Call, about: Subject, asked: DisputedLineRequest) -> Claim:
    line = _line(call, asked.position)
    if line.subject != (about.lease_id, about.volume_id):
        raise Refused(CorrectionsReason.LINE_UNKNOWN, position=asked.position)
    if asked.claimed is not None and asked.claimed.asset != "CREDIT":
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, asset=asked.claimed.asset)
    claimed = line.charge if asked.claimed is None else asked.claimed.amount().units
    return Claim(line=line, claimed=claimed)


def _line(call: Call, position: int) -> ChargedLine:
    ledger = call.service.ledger
    return charged_line(ledger.market, ledger.books, position)


def _evidence(
    call: Call,
    asked: list[DisputeEvidenceRequest],
    about: Subject,
    dispute_id: str,
    text: str | None,
) -> tuple[Any, ...]:
    """Checked evidence; the text that comes with it is kept."""
    with call.service.connection() as connection:
        dispute_texts.keep(connection, dispute_id, text)
        return tuple(
            evidence.checked(
                connection,
                call.service.ledger.market,
                about,
                one.kind,
                one.lane,
                one.position,
                one.sha256,
            )
            for one in asked
        )


def _dispute(call: Call, dispute_id: str) -> Dispute:
    return call.service.ledger.market.state_of(stream_of(dispute_id))


# --- what is told -------------------------------------------------------------------------------


def _visible(call: Call, view: View, dispute_id: str) -> disputes.DisputeRow:
    found = disputes.read_dispute(view.connection, dispute_id, account_id=call.principal.only)
    if found is None:
        raise Refused(CorrectionsReason.DISPUTE_UNKNOWN, dispute_id=dispute_id)
    return found


def _plain(row: disputes.DisputeRow) -> dict[str, Any]:
    return {
        "dispute_id": row.dispute_id,
        "lease_id": row.lease_id,
        "volume_id": row.volume_id,
        "account_id": row.account_id,
        "provider_account_id": row.provider_account_id,
        "opened_by": row.side,
        "state": row.state,
        "claim_code": row.claim_code,
        "claimed": credits_(row.claimed),
        "reserved": credits_(row.reserved),
        "upheld": credits_or_none(row.upheld),
        "upheld_ppm": row.upheld_ppm,
        "unfounded": row.unfounded,
        "opened_at": moment(row.opened_at_us),
        "expires_at": moment(row.expires_at_us),
        "resolved_at": moment_or_none(row.resolved_at_us),
    }


def _after(after: After, dispute_id: str) -> DisputeAnswer:
    state = after.state(stream_of(dispute_id))
    opened, resolved = state.opened, state.resolved
    assert opened is not None
    told: Any = {"state": state.status, "claim_code": opened.claim_code, "opened_by": opened.side}
    return DisputeAnswer(
        dispute_id=dispute_id,
        lease_id=opened.lease_id,
        volume_id=opened.volume_id,
        account_id=opened.account_id,
        provider_account_id=opened.provider_account_id,
        claimed=credits_(opened.claimed.units),
        reserved=credits_(opened.reserved.units),
        upheld=None if resolved is None else credits_(resolved.upheld.units),
        upheld_ppm=None if resolved is None else resolved.upheld_ppm,
        unfounded=None if resolved is None else resolved.unfounded,
        opened_at=moment(opened.at_us),
        expires_at=moment(opened.expires_at_us),
        resolved_at=None if resolved is None else moment(resolved.at_us),
        **told,
    )


def _statements(call: Call, view: View, dispute_id: str) -> list[DisputeStatementAnswer]:
    """What the log holds of a dispute up to the view's position, with the texts still there."""
    texts = dispute_texts.read(view.connection, dispute_id)
    told: list[DisputeStatementAnswer] = []
    for recorded in call.service.ledger.market.read_stream(stream_of(dispute_id)):
        fact = recorded.fact
        if recorded.position > view.position:
            break
        side: Any
        match fact:
            case DisputeOpened():
                side, sha256, found = fact.side, fact.claim_sha256, fact.evidence
            case DisputeAnswered():
                side, sha256, found = fact.side, fact.statement_sha256, fact.evidence
            case DisputeResolved():
                side, sha256, found = "arbiter", fact.reason_sha256, ()
            case _:
                raise AssertionError(fact)
        told.append(
            DisputeStatementAnswer(
                side=side,
                sha256=sha256,
                text=texts.get(sha256 or ""),
                evidence=[_evidence_told(one) for one in found],
                by=fact.by,
                at=moment(fact.at_us),
                position=recorded.position,
            )
        )
    return told


def _evidence_told(one: Any) -> DisputeEvidenceAnswer:
    return DisputeEvidenceAnswer(
        kind=one.kind, lane=one.lane, position=one.position, sha256=one.sha256, signed=one.signed
    )
