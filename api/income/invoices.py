"""Invoices and credit notes of an account: JSON, HTML and PDF; and what stands on them besides.

A document is its fact and never changes. Names and addresses stand beside it and can be erased;
they are in no fact, and not in the stored answer of any request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door import errors
from api.door.amounts import Money, SignedUnits, credits_, money
from api.door.auth import with_scope
from api.door.call import After, Call, Caller, View
from api.door.models import (
    LIST_MAX,
    AccountId,
    AccountInPath,
    AnswerModel,
    Count,
    Position,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.door.positions import POSITION
from api.income import invoice_paper, invoicing, issuer
from api.income.invoicing import VIEWS
from api.parties.accounts import own, visible
from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.income.invoice import (
    LINES_MAX,
    CreditLine,
    CreditNoteIssued,
    InvoiceIssued,
    IssueCreditNote,
    canonical,
    document_of,
    invoice_id_of,
    invoice_stream,
)
from domain.income.invoice import written_number as number_of
from domain.income.reasons import IncomeReason
from domain.income.tax import TaxLine
from domain.money import MoneyReason
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from ledger.beside import billing_details
from ledger.beside.billing_details import Details
from ledger.log.market import facts_at
from projections.income import invoices
from projections.income.invoices import INVOICES, Document
from projections.parties import access
from projections.parties.access import ACCESS

resource = Resource("invoices")

READ = with_scope("account", "billing:read", "operator")
ISSUE = with_scope("operator")
ADMIN = with_scope("account:admin")

Number = Annotated[str, Field(pattern=r"^(INV|CN|SB|SBCN)-[0-9]{6,15}$", examples=["INV-000001"])]
NumberInPath = Annotated[str, Path(pattern=r"^(INV|CN|SB|SBCN)-[0-9]{6,15}$")]
Kind = Literal["charges", "earnings"]
Month = Annotated[str, Field(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$", examples=["2026-11"])]


Quantity = Annotated[
    str,
    Field(
        pattern=r"^(0|-?[1-9][0-9]{0,38})$",
        description="How many units of the line's `unit`, as a decimal string",
        examples=["3600000000"],
    ),
]


class InvoiceLineAnswer(AnswerModel):
    """One line: how much of what, at which amount. `credited`: what later credit notes took off."""

    what: Annotated[str, Field(examples=["usage"])]
    detail: str | None = None
    quantity: Quantity | None = None
    unit: Annotated[str | None, Field(examples=["GPU-microsecond"])] = None
    amount: Money
    credited: Money | None = None


class InvoiceTaxAnswer(AnswerModel):
    """Part of the total: prices include tax. `remainder` is what the floor left out."""

    name: str
    rate_ppm: Count
    net: Money
    tax: Money
    remainder: SignedUnits


class InvoiceSummaryAnswer(AnswerModel):
    """An invoice, or a credit note that corrects one."""

    account_id: AccountId
    written_number: Number
    document: Literal["invoice", "credit_note"]
    kind: Kind
    period: Month | None = None
    corrects: Number | None = None
    net: Money
    total: Money
    document_sha256: str
    issued_at: Told_at
    recorded_position: Position


class InvoiceAnswer(InvoiceSummaryAnswer):
    """The whole document. `canonical` is the text whose SHA-256 is in the fact."""

    lines: list[InvoiceLineAnswer]
    taxes: list[InvoiceTaxAnswer]
    first_position: Position | None = None
    last_position: Position | None = None
    cause: str | None = None
    reason: str | None = None
    credit_notes: list[Number]
    canonical: str
    position: Position


class InvoiceIssuedAnswer(AnswerModel):
    """What was issued; it is read at its address."""

    account_id: AccountId
    written_number: Number
    total: Money
    document_sha256: str
    position: Position | None = None


class InvoiceRequest(RequestModel):
    """Issue one month's invoice now; the monthly job issues all others."""

    model_config = with_examples({"period": "2026-10", "kind": "charges"})

    period: Month
    kind: Kind = "charges"


class CreditNoteLineRequest(RequestModel):
    """A line of the invoice, counted from 1, and what comes off it."""

    line: Annotated[int, Field(ge=1, le=LINES_MAX)]
    amount: Money


class CreditNoteRequest(RequestModel):
    """`cause`: what gave the money back, a reference of yours; one credit note for each."""

    model_config = with_examples(
        {
            "lines": [{"line": 1, "amount": {"asset": "CREDIT", "units": "1000000"}}],
            "cause": "adjustment:812",
            "reason": "Outage on 12 November",
        }
    )

    lines: Annotated[
        list[CreditNoteLineRequest], Field(min_length=1, max_length=min(LINES_MAX, LIST_MAX))
    ]
    cause: Short
    reason: Short


class BillingDetailsRequest(RequestModel):
    """The name and address on invoices, beside the account's id. A `tax_id` marks a business."""

    model_config = with_examples(
        {"name": "Example Rendering Ltd", "address": ["1 High Street", "London"], "country": "GB"}
    )

    name: Annotated[str, Field(min_length=1, max_length=200)]
    address: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=150)]], Field(max_length=6)
    ]
    country: Annotated[str | None, Field(pattern=r"^[A-Z]{2}$")] = None
    tax_id: Annotated[str | None, Field(min_length=1, max_length=40)] = None


class BillingDetailsAnswer(AnswerModel):
    account_id: AccountId
    name: str | None = None
    address: list[str]
    country: str | None = None
    tax_id: str | None = None
    position: Position


# --- reading ---------------------------------------------------------------------------------


@resource.get(
    "/v1/accounts/{account_id}/invoices",
    READ,
    page_of(InvoiceSummaryAnswer),
    problems=[PartiesReason.ACCOUNT_UNKNOWN, "cursor_invalid"],
)
def list_invoices(
    account_id: AccountInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists invoices and credit notes of an account, in the order of issue."""
    visible(call.principal, account_id)
    place = call.place(cursor, [0], order)
    with call.read(ACCESS, INVOICES) as view:
        _existing(view, account_id)
        rows = invoices.read_documents(
            view.connection, account_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _summary)


@resource.get(
    "/v1/accounts/{account_id}/invoices/{written_number}.html",
    READ,
    None,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, IncomeReason.INVOICE_UNKNOWN],
    media_type="text/html",
)
def read_invoice_html(
    account_id: AccountInPath, written_number: NumberInPath, call: Caller
) -> Response:
    """Returns one document as a complete HTML page."""
    return _paper(call, account_id, written_number, invoice_paper.html)


@resource.get(
    "/v1/accounts/{account_id}/invoices/{written_number}.pdf",
    READ,
    None,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, IncomeReason.INVOICE_UNKNOWN],
    media_type="application/pdf",
)
def read_invoice_pdf(
    account_id: AccountInPath, written_number: NumberInPath, call: Caller
) -> Response:
    """Returns one document as PDF. The same document gives the same bytes."""
    return _paper(call, account_id, written_number, invoice_paper.pdf)


@resource.get(
    "/v1/accounts/{account_id}/invoices/{written_number}",
    READ,
    InvoiceAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN, IncomeReason.INVOICE_UNKNOWN],
)
def read_invoice(account_id: AccountInPath, written_number: NumberInPath, call: Caller) -> Response:
    """Returns one invoice or credit note, with the text that was hashed."""
    visible(call.principal, account_id)
    with call.read(ACCESS, INVOICES) as view:
        row = _document(view, account_id, written_number)
        fact, invoice = _facts(view, row)
        notes = invoices.read_credit_notes(view.connection, row.invoice_id)
        told = InvoiceAnswer(
            **_summary(row).model_dump(),
            lines=_lines(view, fact, invoice, notes),
            taxes=[_tax(tax) for tax in fact.taxes],
            **_of_kind(fact),
            credit_notes=[] if isinstance(fact, CreditNoteIssued) else [n.number for n in notes],
            canonical=canonical(document_of(fact)).decode(),
            position=view.position,
        )
        return call.answer(view, told)


def _of_kind(fact: InvoiceIssued | CreditNoteIssued) -> dict[str, Any]:
    if isinstance(fact, InvoiceIssued):
        return {"first_position": fact.first_position, "last_position": fact.last_position}
    return {"cause": fact.cause, "reason": fact.reason}


def _lines(
    view: View,
    fact: InvoiceIssued | CreditNoteIssued,
    invoice: InvoiceIssued,
    notes: list[Document],
) -> list[InvoiceLineAnswer]:
    if isinstance(fact, CreditNoteIssued):
        return [
            InvoiceLineAnswer(
                what=invoice.lines[each.line - 1].what,
                detail=f"line {each.line}",
                amount=money(each.amount),
            )
            for each in fact.lines
        ]
    credited: dict[int, int] = {}
    for note in notes:
        found = _fact(view, note.position)
        assert isinstance(found, CreditNoteIssued)
        for each in found.lines:
            credited[each.line] = credited.get(each.line, 0) + each.amount.units
    return [
        InvoiceLineAnswer(
            what=line.what,
            detail=line.detail,
            quantity=None if line.quantity is None else str(line.quantity),
            unit=line.unit,
            amount=money(line.amount),
            credited=credits_(credited[number]) if number in credited else None,
        )
        for number, line in enumerate(fact.lines, start=1)
    ]


def _tax(line: TaxLine) -> InvoiceTaxAnswer:
    return InvoiceTaxAnswer(
        name=line.name,
        rate_ppm=line.rate_ppm,
        net=money(line.net),
        tax=money(line.tax),
        remainder=str(line.remainder),
    )


def _summary(row: Document) -> InvoiceSummaryAnswer:
    document: Any = row.document
    kind: Any = row.kind
    return InvoiceSummaryAnswer(
        account_id=row.account_id,
        written_number=row.number,
        document=document,
        kind=kind,
        period=row.period,
        corrects=row.corrects,
        net=credits_(row.net),
        total=credits_(row.total),
        document_sha256=row.sha256,
        issued_at=moment(row.at_us),
        recorded_position=row.position,
    )


def _paper(
    call: Call, account_id: str, written_number: str, make: Callable[[invoice_paper.Paper], bytes]
) -> Response:
    visible(call.principal, account_id)
    with call.read(ACCESS, INVOICES) as view:
        fact, invoice = _facts(view, _document(view, account_id, written_number))
        details = billing_details.read(view.connection, account_id)
    paper = invoice_paper.paper_of(
        fact, invoice, issuer.read(call.service.settings.billing_file), details
    )
    ending = call.operation.path.rpartition(".")[2]
    headers = {
        POSITION: str(view.position),
        "Content-Disposition": f'inline; filename="{written_number}.{ending}"',
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    return Response(make(paper), headers=headers, media_type=call.operation.media_type)


def _document(view: View, account_id: str, written_number: str) -> Document:
    _existing(view, account_id)
    row = invoices.read_document(view.connection, account_id, written_number)
    if row is None:
        raise Refused(IncomeReason.INVOICE_UNKNOWN, number=written_number)
    return row


def _facts(view: View, row: Document) -> tuple[InvoiceIssued | CreditNoteIssued, InvoiceIssued]:
    """The document, and the invoice it is or corrects."""
    fact = _fact(view, row.position)
    if isinstance(fact, InvoiceIssued):
        return fact, fact
    assert row.corrects is not None
    corrected = invoices.read_document(view.connection, row.account_id, row.corrects)
    assert corrected is not None
    invoice = _fact(view, corrected.position)
    assert isinstance(invoice, InvoiceIssued)
    return fact, invoice


def _fact(view: View, position: int) -> InvoiceIssued | CreditNoteIssued:
    fact: InvoiceIssued | CreditNoteIssued
    (fact,) = facts_at(view.connection, [position])
    return fact


def _existing(view: View, account_id: str) -> None:
    if access.read_account(view.connection, account_id) is None:
        raise Refused(PartiesReason.ACCOUNT_UNKNOWN, account_id=account_id)


# --- issuing ---------------------------------------------------------------------------------


@resource.post(
    "/v1/accounts/{account_id}/invoices",
    ISSUE,
    InvoiceIssuedAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        IncomeReason.PERIOD_NOT_OVER,
        IncomeReason.INVOICE_EXISTS,
        IncomeReason.NOTHING_TO_INVOICE,
        FleetReason.BAD_PERIOD,
    ],
)
def issue_invoice(account_id: AccountInPath, body: InvoiceRequest, call: Caller) -> Response:
    """Issues the invoice of a closed month, once for each account, month and kind."""

    def command() -> Any:
        with call.service.connection() as connection:
            call.service.follow(connection, VIEWS)
            return invoicing.command(
                call.service,
                connection,
                account_id,
                body.kind,
                body.period,
                by=call.principal.member_id,
                now_us=call.now_us,
            )

    def told(after: After) -> InvoiceIssuedAnswer:
        invoice_id = invoice_id_of(body.kind, account_id, body.period)
        issued = after.state(invoice_stream(invoice_id)).issued
        assert issued is not None, invoice_id
        return _issued(issued)

    return call.record(command, told)


@resource.post(
    "/v1/accounts/{account_id}/invoices/{written_number}/credit",
    ISSUE,
    InvoiceIssuedAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        IncomeReason.INVOICE_UNKNOWN,
        IncomeReason.INVOICE_LINE_UNKNOWN,
        FundsReason.AMOUNT_NOT_POSITIVE,
        PricesReason.AMOUNT_OUT_OF_RANGE,
        IncomeReason.CREDIT_ABOVE_LINE,
        MoneyReason.DUPLICATE_ID,
        IncomeReason.CREDIT_NOTE_EXISTS,
    ],
)
def issue_credit_note(
    account_id: AccountInPath, written_number: NumberInPath, body: CreditNoteRequest, call: Caller
) -> Response:
    """Credits lines of an invoice, with a credit note of its own number.

    The note documents money that an adjustment returned, and moves none itself.
    """

    def command() -> Any:
        with call.read(ACCESS, INVOICES) as view:
            row = _document(view, account_id, written_number)
            if row.document != "invoice":
                raise Refused(IncomeReason.INVOICE_UNKNOWN, number=written_number)
        return IssueCreditNote(
            invoice_id=row.invoice_id,
            lines=tuple(CreditLine(each.line, each.amount.amount()) for each in body.lines),
            cause=body.cause,
            reason=body.reason,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> InvoiceIssuedAnswer:
        (note,) = (c.fact for c in after.changes if isinstance(c.fact, CreditNoteIssued))
        return _issued(note)

    return call.record(command, told)


def _issued(fact: InvoiceIssued | CreditNoteIssued) -> InvoiceIssuedAnswer:
    return InvoiceIssuedAnswer(
        account_id=fact.account_id,
        written_number=number_of(fact.series, fact.number),
        total=money(fact.total),
        document_sha256=fact.document_sha256,
    )


# --- names and addresses ---------------------------------------------------------------------


@resource.get(
    "/v1/accounts/{account_id}/billing-details",
    READ,
    BillingDetailsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def read_billing_details(account_id: AccountInPath, call: Caller) -> Response:
    """Returns the name and address on the account's invoices."""
    visible(call.principal, account_id)
    with call.read(ACCESS) as view:
        _existing(view, account_id)
        return _details(call, view, account_id)


@resource.post(
    "/v1/accounts/{account_id}/billing-details",
    ADMIN,
    BillingDetailsAnswer,
    records=False,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def set_billing_details(
    account_id: AccountInPath, body: BillingDetailsRequest, call: Caller
) -> Response:
    """Sets the name and address on invoices. They replace earlier ones and are in no log."""
    own(call.principal, account_id)
    with call.read(ACCESS) as view:
        _existing(view, account_id)
        texts = [body.name, *body.address, body.tax_id or ""]
        if not all(each.isprintable() for each in texts):
            raise errors.problem("invalid", "names and addresses are printable text")
        details = Details(body.name, tuple(body.address), body.country, body.tax_id)
        billing_details.keep(view.connection, account_id, details, call.now_us)
        return _details(call, view, account_id)


@resource.delete(
    "/v1/accounts/{account_id}/billing-details",
    ADMIN,
    BillingDetailsAnswer,
    problems=[PartiesReason.ACCOUNT_UNKNOWN],
)
def erase_billing_details(account_id: AccountInPath, call: Caller) -> Response:
    """Erases name and address. Invoices show only the account's id from then on."""
    own(call.principal, account_id)
    with call.read(ACCESS) as view:
        _existing(view, account_id)
        billing_details.erase(view.connection, account_id)
        return _details(call, view, account_id)


def _details(call: Call, view: View, account_id: str) -> Response:
    found = billing_details.read(view.connection, account_id)
    told = BillingDetailsAnswer(
        account_id=account_id,
        name=None if found is None else found.name,
        address=[] if found is None else list(found.address),
        country=None if found is None else found.country,
        tax_id=None if found is None else found.tax_id,
        position=view.position,
    )
    return call.answer(view, told)
