"""Invoices: what a closed month cost or earned, under a number that no gap precedes.

    number == numbers given in its series before + 1         so numbers are 1, 2, 3 ... for ever
    sum(lines) == total == net + sum(taxes)                  every invoice, every credit note
    sum of credits on a line <= the line                     every line, always

There is one invoice for each (account, month, kind): `charges` for what an account paid, and
`earnings`, self-billed, for what a provider earned. It covers the positions of the market log that
were recorded in the month, which never change, so it never does either: what was wrong is a credit
note that points at its lines. Prices are paid from balances, so an invoice moves no money.

The series of charges are the operator's (`INV`, credit notes `CN`); a self-billed invoice is issued
in a provider's name, so each provider has its own (`SB`, `SBCN`). The canonical JSON of a document
is made from its fact alone, and the fact holds its SHA-256. Names and addresses are not here and
never in the log: they are shown beside the document, from a table that can be erased.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, assert_never

from domain.calendar import day_start_us, first_day, month_named
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.funds.reasons import FundsReason
from domain.income.reasons import IncomeReason
from domain.income.tax import TaxLine
from domain.money import Amount, Asset, Big, MoneyReason, credit
from domain.parties.account import existing_account
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts.


@dataclass(frozen=True, slots=True)
class InvoiceLine:
    """One sort of charge or earning, in micro-credits."""

    what: str  # the kind a statement knows it by: "usage"
    detail: str | None  # what distinguishes lines of one kind: the class of the accelerators
    quantity: Big | None
    unit: str | None  # "GPU-microsecond"
    amount: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentNumbered:
    """Stream `invoice-series:{series}`: the fact's version in it is the number."""

    series: str
    number: int
    invoice_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceIssued:
    """Stream `invoice:{kind}/{account_id}/{period}`. Covers positions (first, last]."""

    invoice_id: str
    account_id: str
    kind: str  # KINDS
    period: str  # "2026-11"
    series: str
    number: int
    first_position: int
    last_position: int
    lines: tuple[InvoiceLine, ...]
    taxes: tuple[TaxLine, ...]
    net: Amount
    total: Amount
    document_sha256: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True)
class CreditLine:
    """What comes off one line of the invoice; lines count from 1."""

    line: int
    amount: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditNoteIssued:
    """Stream of the invoice. `cause` is what gave the money back, each once."""

    invoice_id: str
    account_id: str
    kind: str
    series: str
    number: int
    corrects: str  # the invoice's written number
    lines: tuple[CreditLine, ...]
    taxes: tuple[TaxLine, ...]
    net: Amount
    total: Amount
    cause: str
    reason: str
    document_sha256: str
    by: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueInvoice:
    """The lines are those of the statement of positions (first, last], the taxes the rules'."""

    account_id: str
    kind: str
    period: str
    first_position: int
    last_position: int
    lines: tuple[InvoiceLine, ...]
    taxes: tuple[TaxLine, ...]
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueCreditNote:
    invoice_id: str
    lines: tuple[CreditLine, ...]
    cause: str
    reason: str
    by: str
    at_us: int


KINDS = ("charges", "earnings")
LINES_MAX = 100
GRACE_US = 3_600_000_000
"""A month is closed an hour after its end: nothing is recorded in it any more."""

# State.


@dataclass(frozen=True, slots=True)
class SeriesState:
    last: int = 0


@dataclass(frozen=True, slots=True)
class InvoiceState:
    """The invoice, and what its credit notes took off: per line, per tax, and for which cause."""

    issued: InvoiceIssued | None = None
    credited: dict[int, int] = field(default_factory=dict)
    taxes_credited: tuple[Big, ...] = ()
    causes: dict[str, int] = field(default_factory=dict)  # cause -> number of the credit note

    @property
    def credited_total(self) -> int:
        return sum(self.credited.values())


def evolve_series(_state: SeriesState, fact: DocumentNumbered) -> SeriesState:
    return SeriesState(fact.number)


def evolve(state: InvoiceState, fact: InvoiceIssued | CreditNoteIssued) -> InvoiceState:
    match fact:
        case InvoiceIssued():
            return replace(state, issued=fact, taxes_credited=(0,) * len(fact.taxes))
        case CreditNoteIssued():
            credited = dict(state.credited)
            for each in fact.lines:
                credited[each.line] = credited.get(each.line, 0) + each.amount.units
            pairs = zip(state.taxes_credited, fact.taxes, strict=True)
            return replace(
                state,
                credited=credited,
                taxes_credited=tuple(before + new.tax.units for before, new in pairs),
                causes={**state.causes, fact.cause: fact.number},
            )
        case _:
            assert_never(fact)


def invoice_stream(invoice_id: str) -> Stream[InvoiceState]:
    return Stream("invoice", invoice_id)


def invoice_of(world: World, invoice_id: str) -> InvoiceState:
    return world.state(invoice_stream(invoice_id))


# Names.


def invoice_id_of(kind: str, account_id: str, period: str) -> str:
    """The natural key: one invoice for each."""
    return f"{kind}/{account_id}/{period}"


def series_of(kind: str, account_id: str, *, is_credit: bool = False) -> str:
    """The series of numbers: the operator's, or for self-billed documents the provider's own."""
    if kind == "earnings":
        return f"{'SBCN' if is_credit else 'SB'}/{account_id}"
    return "CN" if is_credit else "INV"


def written_number(series: str, number: int) -> str:
    """`INV-000001`: what stands on the paper; of a provider's series without the provider."""
    return f"{series.partition('/')[0]}-{number:06d}"


def period_bounds_us(period: str) -> tuple[int, int]:
    """[first moment, first moment of the next month) in UTC. Raises ValueError."""
    month = month_named(period)
    return day_start_us(first_day(month)), day_start_us(first_day(month + 1))


# Documents.


def document_of(fact: InvoiceIssued | CreditNoteIssued) -> dict[str, Any]:
    """What a document says: everything in its fact but the hash of this."""
    told: dict[str, Any] = _plain(asdict(fact))
    del told["document_sha256"]
    told["document"] = "invoice" if isinstance(fact, InvoiceIssued) else "credit_note"
    told["written_number"] = written_number(fact.series, fact.number)
    return told


def canonical(document: dict[str, Any]) -> bytes:
    """The bytes that are hashed: UTF-8 JSON, keys sorted, no spaces, amounts as strings."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    """Assets by name, and every integer that may pass 2^53 as a string."""
    if isinstance(value, dict):
        if value.keys() == {"asset", "units"}:
            return {"asset": value["asset"].value, "units": str(value["units"])}
        return {
            name: str(inner)
            if name in ("quantity", "remainder") and inner is not None
            else _plain(inner)
            for name, inner in value.items()
            if inner is not None
        }
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _hashed(fact: Any) -> Any:
    return replace(fact, document_sha256=sha256(canonical(document_of(fact))).hexdigest())


# Decisions.


def decide_issue(command: IssueInvoice, world: World) -> list[Change]:
    """One invoice for a closed month. The same again changes nothing; another is refused.

    Raises Refused: ACCOUNT_UNKNOWN, INVOICE_KIND_UNKNOWN, BAD_PERIOD, PERIOD_NOT_OVER,
    INVOICE_EXISTS, NOTHING_TO_INVOICE.
    """
    existing_account(world, command.account_id)
    if command.kind not in KINDS:
        raise Refused(IncomeReason.INVOICE_KIND_UNKNOWN, kind=command.kind)
    try:
        _, ends_us = period_bounds_us(command.period)
    except ValueError:
        raise Refused(FleetReason.BAD_PERIOD, period=command.period) from None
    if command.at_us < ends_us + GRACE_US:
        raise Refused(IncomeReason.PERIOD_NOT_OVER, period=command.period)
    invoice_id = invoice_id_of(command.kind, command.account_id, command.period)
    present = invoice_of(world, invoice_id).issued
    if present is not None:
        if (present.lines, present.taxes) == (command.lines, command.taxes):
            return []
        number = written_number(present.series, present.number)
        raise Refused(IncomeReason.INVOICE_EXISTS, invoice_id=invoice_id, number=number)
    if not command.lines:
        raise Refused(IncomeReason.NOTHING_TO_INVOICE, period=command.period, kind=command.kind)
    series = series_of(command.kind, command.account_id)
    total = _total_of([line.amount for line in command.lines])
    assert command.first_position < command.last_position, command
    issued = InvoiceIssued(
        invoice_id=invoice_id,
        account_id=command.account_id,
        kind=command.kind,
        period=command.period,
        series=series,
        number=_next_number(world, series),
        first_position=command.first_position,
        last_position=command.last_position,
        lines=command.lines,
        taxes=command.taxes,
        net=_net_of(total, command.taxes),
        total=credit(total),
        document_sha256="",
        by=command.by,
        at_us=command.at_us,
    )
    return _numbered(_hashed(issued))


def decide_credit(command: IssueCreditNote, world: World) -> list[Change]:
    """Take something off lines of an invoice. The tax on it is peeled from the invoice's, so that
    a wholly credited invoice has all of its tax credited and not a unit more.

    Raises Refused: INVOICE_UNKNOWN, CREDIT_NOTE_EXISTS, INVOICE_LINE_UNKNOWN, CREDIT_ABOVE_LINE,
    AMOUNT_NOT_POSITIVE, AMOUNT_OUT_OF_RANGE, DUPLICATE_ID.
    """
    state = invoice_of(world, command.invoice_id)
    invoice = state.issued
    if invoice is None:
        raise Refused(IncomeReason.INVOICE_UNKNOWN, invoice_id=command.invoice_id)
    if command.cause in state.causes:
        series = series_of(invoice.kind, invoice.account_id, is_credit=True)
        number = written_number(series, state.causes[command.cause])
        raise Refused(IncomeReason.CREDIT_NOTE_EXISTS, cause=command.cause, number=number)
    if not command.lines:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=0)
    if len({each.line for each in command.lines}) != len(command.lines):
        raise Refused(MoneyReason.DUPLICATE_ID, lines=[each.line for each in command.lines])
    for each in command.lines:
        _check_credit(each, invoice, state)
    total = _total_of([each.amount for each in command.lines])
    taxes = _taxes_credited(invoice, state, total)
    series = series_of(invoice.kind, invoice.account_id, is_credit=True)
    issued = CreditNoteIssued(
        invoice_id=invoice.invoice_id,
        account_id=invoice.account_id,
        kind=invoice.kind,
        series=series,
        number=_next_number(world, series),
        corrects=written_number(invoice.series, invoice.number),
        lines=command.lines,
        taxes=taxes,
        net=_net_of(total, taxes),
        total=credit(total),
        cause=command.cause,
        reason=command.reason,
        document_sha256="",
        by=command.by,
        at_us=command.at_us,
    )
    return _numbered(_hashed(issued))


def _check_credit(each: CreditLine, invoice: InvoiceIssued, state: InvoiceState) -> None:
    if not 1 <= each.line <= len(invoice.lines):
        raise Refused(IncomeReason.INVOICE_LINE_UNKNOWN, line=each.line, lines=len(invoice.lines))
    if each.amount.asset is not Asset.CREDIT:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, asset=each.amount.asset.value)
    if each.amount.units <= 0:
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, units=each.amount.units)
    left = invoice.lines[each.line - 1].amount.units - state.credited.get(each.line, 0)
    if each.amount.units > left:
        raise Refused(IncomeReason.CREDIT_ABOVE_LINE, line=each.line, left=left)


def _taxes_credited(invoice: InvoiceIssued, state: InvoiceState, total: int) -> tuple[TaxLine, ...]:
    """Each tax in proportion to all that is credited, less what was credited of it before."""
    whole, credited = invoice.total.units, state.credited_total + total
    found: list[TaxLine] = []
    for line, before in zip(invoice.taxes, state.taxes_credited, strict=True):
        part = line.net.units + line.tax.units
        base = part * credited // whole
        due, remainder = divmod(line.tax.units * base, part) if part else (0, 0)
        tax, new = due - before, base - part * state.credited_total // whole
        found.append(TaxLine(line.name, line.rate_ppm, credit(new - tax), credit(tax), remainder))
    return tuple(found)


def _total_of(amounts: Sequence[Amount]) -> int:
    assert len(amounts) <= LINES_MAX, len(amounts)
    assert all(each.asset is Asset.CREDIT and each.units > 0 for each in amounts), amounts
    return sum(each.units for each in amounts)


def _net_of(total: int, taxes: Sequence[TaxLine]) -> Amount:
    net = total - sum(line.tax.units for line in taxes)
    assert 0 <= net <= total, (total, taxes)
    return credit(net)


def series_stream(series: str) -> Stream[SeriesState]:
    return Stream("invoice-series", series)


def _next_number(world: World, series: str) -> int:
    state = world.state(series_stream(series))
    return state.last + 1


def _numbered(fact: InvoiceIssued | CreditNoteIssued) -> list[Change]:
    """The number is taken in the same append, so none is lost and none is given twice."""
    taken = DocumentNumbered(
        series=fact.series, number=fact.number, invoice_id=fact.invoice_id, at_us=fact.at_us
    )
    return [
        Change(series_stream(fact.series), taken),
        Change(invoice_stream(fact.invoice_id), fact),
    ]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "invoice": (InvoiceState(), evolve),
    "invoice-series": (SeriesState(), evolve_series),
}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    IssueInvoice: decide_issue,
    IssueCreditNote: decide_credit,
}
