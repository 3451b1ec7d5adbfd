"""Invoices: numbers without gaps, once for each month, sums exact, credit notes and taxes."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fleet.reasons import FleetReason
from domain.funds.reasons import FundsReason
from domain.income.invoice import (
    GRACE_US,
    LINES_MAX,
    CreditLine,
    CreditNoteIssued,
    DocumentNumbered,
    InvoiceIssued,
    InvoiceLine,
    IssueCreditNote,
    IssueInvoice,
    canonical,
    document_of,
    invoice_id_of,
    invoice_of,
    period_bounds_us,
    written_number,
)
from domain.income.reasons import IncomeReason
from domain.income.tax import NoTax, TaxParty, VatTable, included
from domain.money import MoneyReason, credit, token
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Reason
from domain.stream import Stream
from tests.domain.scenes.supply import ALICE, opened, with_account
from tests.given import Scene

PERIOD = "2026-11"
_, ENDS_US = period_bounds_us(PERIOD)
CLOSED_US = ENDS_US + GRACE_US
LINES = (
    InvoiceLine("usage", "datacenter", 36_000_000_000, "GPU-microsecond", credit(27_800_000)),
    InvoiceLine("device_fee", None, None, None, credit(15_000_000)),
)


def issuing(
    account: str = ALICE,
    period: str = PERIOD,
    kind: str = "charges",
    lines: tuple[InvoiceLine, ...] = LINES,
    at_us: int = CLOSED_US,
) -> IssueInvoice:
    total = sum(line.amount.units for line in lines)
    taxes = NoTax().lines(TaxParty(), total)
    return IssueInvoice(
        account_id=account,
        kind=kind,
        period=period,
        first_position=3,
        last_position=9,
        lines=lines,
        taxes=taxes,
        by="job",
        at_us=at_us,
    )


def crediting(*lines: tuple[int, int], cause: str = "adjustment:12") -> IssueCreditNote:
    return IssueCreditNote(
        invoice_id=invoice_id_of("charges", ALICE, PERIOD),
        lines=tuple(CreditLine(line, credit(units)) for line, units in lines),
        cause=cause,
        reason="dispute",
        by="job",
        at_us=CLOSED_US + 1,
    )


BOB = "acct_bob"
MARKET = with_account.given((Stream("account", BOB), replace(opened, account_id=BOB)))


def issued_in(scene: Scene) -> list[InvoiceIssued]:
    return [fact for _, fact in scene.past if isinstance(fact, InvoiceIssued)]


def test_an_invoice_takes_the_next_number_in_the_same_append() -> None:
    numbered, issued = (each.fact for each in MARKET.when(issuing()).changes())
    assert isinstance(issued, InvoiceIssued)
    assert numbered == DocumentNumbered(
        series="INV", number=1, invoice_id=issued.invoice_id, at_us=CLOSED_US
    )
    assert written_number(issued.series, issued.number) == "INV-000001"
    assert (issued.net, issued.total) == (credit(42_800_000), credit(42_800_000))


def test_the_hash_in_the_fact_is_that_of_the_documents_canonical_json() -> None:
    (issued,) = issued_in(MARKET.after(issuing()))
    document = document_of(issued)
    body = canonical(document)
    assert issued.document_sha256 == sha256(body).hexdigest()
    assert json.loads(body) == document
    assert document["written_number"] == "INV-000001"
    assert document["lines"][0]["quantity"] == "36000000000"
    assert b"document_sha256" not in body
    assert b"null" not in body, "what there is not has no name in it"


@given(
    st.lists(
        st.tuples(
            st.sampled_from([ALICE, BOB]),
            st.integers(1, 12),
            st.sampled_from(["charges", "earnings"]),
        ),
        max_size=20,
    )
)
def test_numbers_of_a_series_have_no_gap_and_no_number_twice(
    asked: list[tuple[str, int, str]],
) -> None:
    scene = MARKET
    for account, month, kind in asked:
        scene = scene.after(issuing(account, f"2025-{month:02d}", kind))
    by_series: dict[str, list[int]] = {}
    for fact in issued_in(scene):
        by_series.setdefault(fact.series, []).append(fact.number)
    assert sum(map(len, by_series.values())) == len(set(asked)), "each month once"
    for series, numbers in by_series.items():
        assert numbers == list(range(1, len(numbers) + 1)), series
    assert set(by_series) <= {"INV", f"SB/{ALICE}", f"SB/{BOB}"}


def test_the_same_invoice_again_changes_nothing_and_another_is_refused() -> None:
    scene = MARKET.after(issuing())
    scene.when(replace(issuing(), at_us=CLOSED_US + 5)).then_nothing()
    other = issuing(lines=LINES[:1])
    scene.when(other).then_refused(IncomeReason.INVOICE_EXISTS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"account_id": "acct_nobody"}, PartiesReason.ACCOUNT_UNKNOWN),
        ({"kind": "gifts"}, IncomeReason.INVOICE_KIND_UNKNOWN),
        ({"period": "2026-13"}, FleetReason.BAD_PERIOD),
        ({"at_us": CLOSED_US - 1}, IncomeReason.PERIOD_NOT_OVER),
        ({"lines": ()}, IncomeReason.NOTHING_TO_INVOICE),
    ],
)
def test_what_an_invoice_is_refused_for(change: dict[str, object], reason: Reason) -> None:
    MARKET.when(replace(issuing(), **change)).then_refused(reason)  # type: ignore[arg-type]


# --- credit notes --------------------------------------------------------------------------


def test_a_credit_note_points_at_the_lines_and_has_a_number_of_its_own() -> None:
    scene = MARKET.after(issuing()).after(crediting((2, 15_000_000)))
    note = scene.past[-1][1]
    assert isinstance(note, CreditNoteIssued)
    assert (note.corrects, written_number(note.series, note.number)) == ("INV-000001", "CN-000001")
    assert note.total == credit(15_000_000)
    invoice = invoice_of(scene, note.invoice_id)
    assert invoice.issued == issued_in(scene)[0], "the invoice itself never changes"
    assert invoice.credited == {2: 15_000_000}
    scene.when(crediting((2, 15_000_000))).then_refused(
        IncomeReason.CREDIT_NOTE_EXISTS, number="CN-000001"
    )
    scene.when(crediting((2, 1), cause="another")).then_refused(IncomeReason.CREDIT_ABOVE_LINE)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), FundsReason.AMOUNT_NOT_POSITIVE),
        (((1, 0),), FundsReason.AMOUNT_NOT_POSITIVE),
        (((0, 5),), IncomeReason.INVOICE_LINE_UNKNOWN),
        (((3, 5),), IncomeReason.INVOICE_LINE_UNKNOWN),
        (((1, 5), (1, 5)), MoneyReason.DUPLICATE_ID),
        (((2, 15_000_001),), IncomeReason.CREDIT_ABOVE_LINE),
    ],
)
def test_what_a_credit_note_is_refused_for(
    lines: tuple[tuple[int, int], ...], reason: Reason
) -> None:
    MARKET.after(issuing()).when(crediting(*lines)).then_refused(reason)
    empty = MARKET.after(issuing()).when(crediting())
    empty.then_refused(FundsReason.AMOUNT_NOT_POSITIVE, units=0)


def test_only_credits_are_credited_and_only_on_an_invoice_that_is_there() -> None:
    MARKET.when(crediting((1, 1))).then_refused(IncomeReason.INVOICE_UNKNOWN)
    tokens = replace(crediting((1, 1)), lines=(CreditLine(1, token(1)),))
    MARKET.after(issuing()).when(tokens).then_refused(PricesReason.AMOUNT_OUT_OF_RANGE)


@given(
    st.integers(1, 10**12),
    st.integers(1, 300_000),
    st.lists(st.integers(1, 10**12), min_size=1, max_size=6),
)
def test_credit_notes_together_never_exceed_the_line_and_end_with_exactly_its_tax(
    total: int, rate: int, wanted: list[int]
) -> None:
    line = InvoiceLine("usage", None, None, None, credit(total))
    tax = included("VAT", rate, total)
    scene = MARKET.after(replace(issuing(lines=(line,)), taxes=(tax,)))
    left, credited_tax = total, 0
    for number, units in enumerate([*wanted, 10**12]):
        part = min(units, left) if number < len(wanted) else left
        if not part:
            continue
        scene = scene.after(crediting((1, part), cause=f"cause {number}"))
        note = scene.past[-1][1]
        assert isinstance(note, CreditNoteIssued)
        (taxed,) = note.taxes
        assert 0 <= taxed.tax.units <= part
        assert taxed.net.units + taxed.tax.units == note.total.units == part
        credited_tax += taxed.tax.units
        left -= part
    assert (left, credited_tax) == (0, tax.tax.units)


# --- taxes -----------------------------------------------------------------------------------

VAT = VatTable("DE", {"DE": 190_000, "FR": 200_000})


@given(st.integers(0, 10**18), st.integers(1, 1_000_000))
def test_net_and_tax_are_the_total_and_the_remainder_is_stated(total: int, rate: int) -> None:
    line = included("VAT", rate, total)
    assert line.net.units + line.tax.units == total
    assert line.tax.units * (1_000_000 + rate) + line.remainder == total * rate
    assert 0 <= line.remainder < 1_000_000 + rate


def test_vat_is_by_country_and_a_business_abroad_accounts_for_it_itself() -> None:
    (line,) = VAT.lines(TaxParty("DE", is_business=True), 119_000_000)
    assert (line.name, line.net, line.tax) == ("VAT DE", credit(100_000_000), credit(19_000_000))
    (abroad,) = VAT.lines(TaxParty("FR"), 120_000_000)
    assert abroad.tax == credit(20_000_000)
    (reverse,) = VAT.lines(TaxParty("FR", is_business=True), 120_000_000)
    assert (reverse.tax, reverse.net) == (credit(0), credit(120_000_000))
    assert VAT.lines(TaxParty("US"), 5) == VAT.lines(TaxParty(), 5) == NoTax().lines(TaxParty(), 5)


def test_an_invoice_with_tax_still_totals_what_was_charged() -> None:
    taxes = VAT.lines(TaxParty("DE"), 42_800_000)
    (issued,) = issued_in(MARKET.after(replace(issuing(), taxes=taxes)))
    assert issued.total == credit(42_800_000)
    assert issued.net + issued.taxes[0].tax == issued.total


def test_a_document_is_utf_8_json_with_sorted_keys_and_without_spaces() -> None:
    document = {"b": 1, "a": {"ü": "€", "c": ["x", "y"]}}
    assert canonical(document) == '{"a":{"c":["x","y"],"ü":"€"},"b":1}'.encode()


def test_a_tax_on_nothing_is_credited_as_nothing() -> None:
    """A rate under which nothing of the invoice fell, beside one under which all of it did."""
    total = 42_800_000
    taxed = included("VAT", 190_000, total)
    taxes = (taxed, included("VAT", 70_000, 0))
    scene = MARKET.after(replace(issuing(), taxes=taxes))
    _, note = scene.when(crediting((1, 27_800_000), (2, 15_000_000))).changes()
    assert note.fact.taxes == (replace(taxed, remainder=0), replace(taxes[1], remainder=0))
    assert note.fact.net == credit(total - taxed.tax.units)


def test_an_invoice_waits_an_hour_after_its_month_and_has_a_hundred_lines_at_most() -> None:
    assert (GRACE_US, LINES_MAX) == (3_600_000_000, 100)
