"""Invoices and credit notes as people read them: one page of content, as HTML and as PDF.

    the same fact, issuer and details  =>  the same bytes

Made from the fact and from what stands beside it, and from nothing else: no clock, no count of
views. Amounts are exact: micro-credits are US dollars with six decimals, all six of them
on a page where any amount has a part of a cent. HTML escapes everything; PDF knows the letters of
Latin-1.
"""

from __future__ import annotations

import io
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from api.door.moments import moment
from api.income.issuer import Issuer
from domain.gpu_time import GPU_HOUR_US
from domain.income.invoice import (
    CreditNoteIssued,
    InvoiceIssued,
    InvoiceLine,
    period_bounds_us,
    written_number,
)
from domain.record import dataclass
from ledger.beside.billing_details import Details

if TYPE_CHECKING:
    from jinja2 import Environment

CENT, CENTS, EXACT = 10_000, 2, 6
CURRENCY = "USD"
"""One credit is one US dollar of compute."""
WHAT = {
    "usage": "GPU time",
    "federated_fee": "Federated jobs",
    "resources": "Other resources",
    "volume": "Volumes",
    "storage_node": "Storage nodes of regions",
    "device_fee": "Edge devices",
    "early_end": "Reserved terms ended early",
    "late_usage": "GPU time reported late",
    "earning": "GPU time provided",
}
"""How the kinds of a bill are called on paper; a kind without a name here is shown as it is."""


@dataclass(frozen=True, slots=True)
class Party:
    name: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    detail: str
    quantity: str
    amount: str


@dataclass(frozen=True, slots=True)
class Paper:
    """What stands on the page, already as text."""

    title: str
    number: str
    seller: Party
    buyer: Party
    buyer_title: str
    about: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    sums: tuple[tuple[str, str], ...]
    total: str
    note: str
    small_print: tuple[str, ...]
    sha256: str
    currency: str = field(default=CURRENCY)


def paper_of(
    fact: InvoiceIssued | CreditNoteIssued,
    invoice: InvoiceIssued,
    issuer: Issuer,
    details: Details | None,
) -> Paper:
    """The page of a document; `invoice` is the one itself or the one that it corrects."""
    us = Party(issuer.name, _lines(issuer.address, issuer.country, issuer.tax_id))
    them = Party(
        fact.account_id if details is None else details.name,
        ()
        if details is None
        else (
            *_lines(details.address, details.country, details.tax_id),
            f"Account {fact.account_id}",
        ),
    )
    is_self_billed = fact.kind == "earnings"
    decimals = decimals_of(fact)
    seller, buyer = (them, us) if is_self_billed else (us, them)
    from_us, to_us = period_bounds_us(invoice.period)
    about = [
        ("Date of issue", moment(fact.at_us)[:10]),
        ("Period", f"{moment(from_us)[:10]} to {moment(to_us - 1)[:10]}"),
    ]
    if isinstance(fact, CreditNoteIssued):
        about.append(("Corrects", fact.corrects))
        rows = tuple(
            _credited(each.line, each.amount.units, invoice, decimals) for each in fact.lines
        )
        title = "Self-billed credit note" if is_self_billed else "Credit note"
        note = f"Reason: {fact.reason}. The amount went back the way it came; nothing is due."
    else:
        rows = tuple(_row(line, decimals) for line in fact.lines)
        title = "Self-billed invoice" if is_self_billed else "Invoice"
        note = (
            "Issued by the customer in the supplier's name. The amount was credited to the"
            " supplier's earnings."
            if is_self_billed
            else "Paid in full from the account's prepaid balance. Nothing is due."
        )
    sums = [("Net", money(fact.net.units, decimals))] if fact.taxes else []
    sums += [
        (_tax_name(tax.name, tax.rate_ppm), money(tax.tax.units, decimals)) for tax in fact.taxes
    ]
    place = f"Covers market log positions {invoice.first_position + 1} to {invoice.last_position}."
    taxed = "The amounts of the lines include tax. " if fact.taxes else ""
    return Paper(
        title=title,
        number=written_number(fact.series, fact.number),
        seller=seller,
        buyer=buyer,
        buyer_title="Billed to" if not is_self_billed else "Customer",
        about=tuple(about),
        rows=rows,
        sums=tuple(sums),
        total=money(fact.total.units, decimals),
        note=note,
        small_print=tuple(each for each in (issuer.note, taxed + place) if each),
        sha256=fact.document_sha256,
    )


def money(units: int, decimals: int) -> str:
    """Micro-credits as dollars: `1,234.56`, or with six decimals."""
    assert units >= 0, units
    whole, rest = divmod(units, 1_000_000)
    assert decimals == EXACT or rest % CENT == 0, units
    return f"{whole:,}.{rest:06d}"[: decimals - EXACT or None]


def decimals_of(fact: InvoiceIssued | CreditNoteIssued) -> int:
    """Two where every amount on the page is whole cents, else six for all of them."""
    amounts = [fact.net, fact.total, *(line.amount for line in fact.lines)]
    amounts += [tax.tax for tax in fact.taxes]
    return CENTS if all(each.units % CENT == 0 for each in amounts) else EXACT


def quantity(line: InvoiceLine) -> str:
    """How much: GPU time in hours with four decimals, cut; the document has the exact number."""
    if line.quantity is None:
        return ""
    if line.unit == "GPU-microsecond":
        cut = line.quantity * 10_000 // GPU_HOUR_US
        return f"{cut // 10_000:,}.{cut % 10_000:04d} GPU hours"
    return f"{line.quantity:,} {line.unit}s" if line.unit else f"{line.quantity:,}"


def _row(line: InvoiceLine, decimals: int) -> Row:
    detail = (line.detail or "").capitalize()
    if detail and line.unit == "GPU-microsecond":
        detail += " class accelerators"
    amount = money(line.amount.units, decimals)
    return Row(WHAT.get(line.what, line.what), detail, quantity(line), amount)


def _credited(number: int, units: int, invoice: InvoiceIssued, decimals: int) -> Row:
    line = _row(invoice.lines[number - 1], EXACT)
    detail = f"Line {number} of {written_number(invoice.series, invoice.number)}"
    detail += f": {line.detail}" if line.detail else ""
    return Row(f"{line.what}, credited", detail, "", money(units, decimals))


def _lines(address: tuple[str, ...], country: str | None, tax_id: str | None) -> tuple[str, ...]:
    found = [*address, country or ""]
    found.append(f"Tax ID {tax_id}" if tax_id else "")
    return tuple(each for each in found if each)


def _tax_name(name: str, rate_ppm: int) -> str:
    if not rate_ppm:
        return name
    percent = f"{rate_ppm // 10_000}.{rate_ppm % 10_000:04d}".rstrip("0").rstrip(".")
    return f"{name} {percent}%"


# --- HTML ------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent / "templates"
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def html(paper: Paper) -> bytes:
    """The page for a browser; complete in itself, it loads nothing."""
    return _environment().get_template("invoice.html").render(paper=paper).encode()


# --- PDF -------------------------------------------------------------------------------------

INK, GREY, LINE = "#17324d", "#6a7684", "#e2e6eb"


def pdf(paper: Paper) -> bytes:
    """The same page on A4."""
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.units import mm
    from reportlab.platypus import SimpleDocTemplate, Spacer

    file = io.BytesIO()
    document = SimpleDocTemplate(
        file,
        pagesize=A4,
        leftMargin=20 * mm,
        rightMargin=20 * mm,
        topMargin=22 * mm,
        bottomMargin=20 * mm,
        invariant=1,
        title=f"{paper.title} {paper.number}",
        author=_latin(paper.seller.name),
        lang="en",
    )
    width = A4[0] - 40 * mm
    story = [
        _head(paper, width),
        Spacer(1, 12 * mm),
        _parties(paper, width),
        Spacer(1, 10 * mm),
        _table(paper, width),
        Spacer(1, 8 * mm),
        _note(paper, width),
        Spacer(1, 10 * mm),
        *_small_print(paper),
    ]
    document.build(story, onFirstPage=_band, onLaterPages=_band)
    return file.getvalue()


def _latin(text: str) -> str:
    """The letters the PDF's fonts have; others are a question mark, and the HTML has them."""
    return text.encode("cp1252", "replace").decode("cp1252")


def _text(
    text: str,
    size: float = 9.5,
    *,
    color: str = "#1c2430",
    right: bool = False,
    bold: bool = False,
    indent: float = 0,
) -> Any:
    from reportlab.lib.colors import HexColor
    from reportlab.lib.enums import TA_LEFT, TA_RIGHT
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph

    style = ParagraphStyle(
        "text",
        fontName="Helvetica-Bold" if bold else "Helvetica",
        fontSize=size,
        leading=size * 1.4,
        textColor=HexColor(color),
        alignment=TA_RIGHT if right else TA_LEFT,
        leftIndent=indent,
    )
    return Paragraph(escape(_latin(text)), style)


def _party(party: Party, *, right: bool) -> list[Any]:
    lines = [_text(each, right=right) for each in party.lines]
    return [_text(party.name, 10.5, bold=True, right=right), *lines]


def _two(left: list[Any], right: list[Any], width: float, share: float = 0.5) -> Any:
    from reportlab.platypus import Table, TableStyle

    table = Table([[left, right]], colWidths=[width * share, width * (1 - share)])
    edges = [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LEFTPADDING", (0, 0), (0, -1), 0),
        ("RIGHTPADDING", (-1, 0), (-1, -1), 0),
        ("TOPPADDING", (0, 0), (-1, -1), 0),
    ]
    table.setStyle(TableStyle(edges))
    return table


def _head(paper: Paper, width: float) -> Any:
    left = [_text(paper.title, 22, color=INK, bold=True), _text(paper.number, 11)]
    return _two(left, _party(paper.seller, right=True), width)


def _parties(paper: Paper, width: float) -> Any:
    left = [
        _text(paper.buyer_title.upper(), 7.5, color=GREY, bold=True),
        *_party(paper.buyer, right=False),
    ]
    return _two(left, [_about(paper, width * 0.45 - 6)], width, 0.55)


def _about(paper: Paper, width: float) -> Any:
    from reportlab.platypus import Table, TableStyle

    rows = [[_text(name, color=GREY), _text(value, right=True)] for name, value in paper.about]
    table = Table(rows, colWidths=[width * 0.38, width * 0.62])
    flat = [
        ("TOPPADDING", (0, 0), (-1, -1), 0),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2),
        ("RIGHTPADDING", (-1, 0), (-1, -1), 0),
    ]
    table.setStyle(TableStyle(flat))
    return table


def _table(paper: Paper, width: float) -> Any:
    from reportlab.lib.colors import HexColor
    from reportlab.platypus import Table, TableStyle

    grey: dict[str, Any] = {"size": 7.5, "color": GREY, "bold": True}
    amounts = f"AMOUNT ({paper.currency})"
    head = [
        _text("DESCRIPTION", **grey),
        _text("QUANTITY", right=True, **grey),
        _text(amounts, right=True, **grey),
    ]
    rows: list[list[Any]] = [head]
    for row in paper.rows:
        what = [_text(row.what)] + ([_text(row.detail, 8, color=GREY)] if row.detail else [])
        rows.append([what, _text(row.quantity, right=True), _text(row.amount, right=True)])
    sums = [["", _text(name, right=True), _text(value, right=True)] for name, value in paper.sums]
    total = [
        "",
        _text(f"Total {paper.currency}", 12, right=True, bold=True),
        _text(paper.total, 12, right=True, bold=True),
    ]
    table = Table(
        [*rows, *sums, total], colWidths=[width * 0.46, width * 0.29, width * 0.25], repeatRows=1
    )
    table.setStyle(
        TableStyle(
            [
                ("LINEBELOW", (0, 0), (-1, 0), 1.2, HexColor(INK)),
                ("LINEBELOW", (0, 1), (-1, len(rows) - 1), 0.5, HexColor(LINE)),
                ("LINEABOVE", (0, -1), (-1, -1), 1.2, HexColor(INK)),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("LEFTPADDING", (0, 0), (0, -1), 0),
                ("RIGHTPADDING", (-1, 0), (-1, -1), 0),
                ("TOPPADDING", (0, 1), (-1, -1), 6),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 6),
            ]
        )
    )
    return table


def _note(paper: Paper, width: float) -> Any:
    from reportlab.lib.colors import HexColor
    from reportlab.platypus import Table, TableStyle

    table = Table([[_text(paper.note)]], colWidths=[width])
    table.setStyle(
        TableStyle(
            [
                ("BACKGROUND", (0, 0), (-1, -1), HexColor("#f3f6f9")),
                ("LINEBEFORE", (0, 0), (0, -1), 2, HexColor(INK)),
                ("LEFTPADDING", (0, 0), (-1, -1), 10),
                ("TOPPADDING", (0, 0), (-1, -1), 7),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 8),
            ]
        )
    )
    return table


def _small_print(paper: Paper) -> list[Any]:
    lines = [*paper.small_print, f"SHA-256 of this document in the ledger: {paper.sha256}"]
    return [_text(each, 7, color=GREY, indent=-6) for each in lines]


def _band(canvas: Any, document: Any) -> None:
    """A band at the top of every page, its number at the bottom."""
    from reportlab.lib.colors import HexColor

    wide, high = document.pagesize
    canvas.saveState()
    canvas.setFillColor(HexColor(INK))
    canvas.rect(0, high - 8, wide, 8, stroke=0, fill=1)
    canvas.setFillColor(HexColor(GREY))
    canvas.setFont("Helvetica", 7)
    canvas.drawRightString(wide - document.rightMargin, 28, f"Page {document.page}")
    canvas.restoreState()
