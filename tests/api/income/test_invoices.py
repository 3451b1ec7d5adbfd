"""Invoices over HTTP: what a month cost, once, exact, on paper, and with names that can go."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from api.income import invoice_paper, invoicing, issuer
from api.income.issuer import Issuer
from api.process.timer import Timer
from api.settings import SettingsInvalid
from api.timers import Timers
from domain.income.invoice import InvoiceIssued, InvoiceLine, period_bounds_us
from domain.income.tax import TaxParty
from domain.money import credit
from ledger.beside.billing_details import Details
from tests.scenes.server import Caller, Scene
from tests.scenes.serving import Market
from tests.scenes.work import hours_of_work

PERIOD = "2026-11"
_, ENDS_US = period_bounds_us(PERIOD)
BILLING = """
name = "Example Compute GmbH"
address = ["Musterstraße 12", "10115 Berlin"]
country = "DE"
tax_id = "DE123456789"
[vat]
DE = "19"
"""


def month_later(scene: Scene) -> None:
    clock: Any = scene.clock
    clock.advance(ENDS_US + 2 * 3_600_000_000 - clock.now_us())


def path_of(caller: Caller) -> str:
    return f"/v1/accounts/{caller.account_id}/invoices"


def run_job(scene: Scene) -> int:
    job = Timer("invoices", 1, 1, invoicing.run_invoices)
    return Timers(scene.service, [job]).run_once()["invoices"]


@pytest.fixture
def billed(founded_market: Market, tmp_path: Path) -> Any:
    """A market whose operator charges VAT, after a month in which one lease cost 2 credits."""
    billing = tmp_path / "billing.toml"
    billing.write_text(BILLING, encoding="utf-8")
    with founded_market.copied(tmp_path / "data", billing_file=billing) as scene:
        scene.renter.made(
            f"/v1/accounts/{scene.renter.account_id}/billing-details",
            {"name": "Rendering <b>& Söhne</b>", "address": ["Gasse 1", "Wien"], "country": "DE"},
        )
        hours_of_work(scene)
        month_later(scene)
        yield scene


def test_the_monthly_job_bills_renters_and_bills_for_providers_once(billed: Scene) -> None:
    """Invoices and self-billed provider invoices of a closed month."""
    assert run_job(billed) == 2
    assert run_job(billed) == 0
    (listed,) = billed.renter.read(path_of(billed.renter))["data"]
    assert (listed["written_number"], listed["kind"], listed["period"]) == (
        "INV-000001",
        "charges",
        PERIOD,
    )
    told = billed.renter.read(f"{path_of(billed.renter)}/INV-000001")
    assert told["total"]["units"] == "2000000", "what was drawn from the balance"
    (line,) = told["lines"]
    assert (line["what"], line["detail"], line["quantity"]) == ("usage", "datacenter", "3600000000")
    (tax,) = told["taxes"]
    assert (tax["name"], tax["rate_ppm"], tax["tax"]["units"]) == ("VAT DE", 190_000, "319327")
    assert int(told["net"]["units"]) + int(tax["tax"]["units"]) == 2_000_000
    statement = billed.renter.read(f"/v1/accounts/{billed.renter.account_id}/statements/{PERIOD}")
    assert statement["charge"] == told["total"]
    (own,) = billed.owner.read(path_of(billed.owner))["data"]
    assert (own["written_number"], own["kind"], own["total"]["units"]) == (
        "SB-000001",
        "earnings",
        "875000",
    )
    assert sha256(told["canonical"].encode()).hexdigest() == told["document_sha256"]
    assert json.loads(told["canonical"])["written_number"] == "INV-000001"
    assert billed.service.ledger.books.books_balanced(), "an invoice moves no money"


def test_the_operator_issues_a_month_once_and_never_before_it_is_over(billed: Scene) -> None:
    path = path_of(billed.renter)
    asked = {"period": PERIOD, "kind": "charges"}
    made = billed.operator.made(path, asked)
    assert (made["written_number"], made["total"]["units"]) == ("INV-000001", "2000000")
    again = billed.operator.made(path, asked)
    assert again["written_number"] == "INV-000001"
    refusals = {
        "period_not_over": {"period": "2026-12"},
        "nothing_to_invoice": {"period": "2026-10"},
        "invalid": {"period": "2026-13"},
    }
    for code, body in refusals.items():
        assert billed.operator.post(path, body).json()["code"] == code
    assert billed.renter.post(path, asked).status_code == 403
    assert run_job(billed) == 1, "the provider's; the renter has one"


def test_a_credit_note_has_its_own_number_and_points_at_the_line(billed: Scene) -> None:
    run_job(billed)
    path = f"{path_of(billed.renter)}/INV-000001"
    body = {
        "lines": [{"line": 1, "amount": {"asset": "CREDIT", "units": "500000"}}],
        "cause": "adjustment:77",
        "reason": "Outage",
    }
    note = billed.operator.made(f"{path}/credit", body)
    assert (note["written_number"], note["total"]["units"]) == ("CN-000001", "500000")
    assert billed.operator.post(f"{path}/credit", body).json()["code"] == "credit_note_exists"
    more = {
        **body,
        "cause": "adjustment:78",
        "lines": [{"line": 1, "amount": {"asset": "CREDIT", "units": "1500001"}}],
    }
    assert billed.operator.post(f"{path}/credit", more).json()["code"] == "credit_above_line"
    told = billed.renter.read(path)
    assert told["credit_notes"] == ["CN-000001"]
    assert told["lines"][0]["credited"]["units"] == "500000"
    assert told["total"]["units"] == "2000000", "never edited"
    shown = billed.renter.read(f"{path_of(billed.renter)}/CN-000001")
    assert (shown["corrects"], shown["reason"]) == ("INV-000001", "Outage")
    html = billed.renter.get(f"{path_of(billed.renter)}/CN-000001.html").text
    assert "Credit note" in html
    assert "Line 1 of INV-000001" in html


def test_html_and_pdf_are_made_from_the_fact_and_escape_what_people_wrote(billed: Scene) -> None:
    run_job(billed)
    path = f"{path_of(billed.renter)}/INV-000001"
    page, file = (billed.renter.get(f"{path}.{ending}") for ending in ("html", "pdf"))
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "Rendering &lt;b&gt;&amp; Söhne&lt;/b&gt;" in page.text
    assert "<b>" not in page.text
    assert "Example Compute GmbH" in page.text
    assert "1.680673" in page.text
    assert file.headers["content-type"] == "application/pdf"
    assert file.content.startswith(b"%PDF-")
    clock: Any = billed.clock
    clock.advance(86_400_000_000)
    assert billed.renter.get(f"{path}.pdf").content == file.content, "the same fact, the same bytes"
    assert billed.renter.get(f"{path}.html").content == page.content


def test_a_name_is_in_no_fact_and_no_stored_answer_and_can_be_erased(billed: Scene) -> None:
    run_job(billed)
    path = f"/v1/accounts/{billed.renter.account_id}"
    with billed.service.connection() as connection:
        for table in ("market_events", "command"):
            rows = connection.execute(f"SELECT t::text FROM {table} t").fetchall()
            assert "hne" not in str(rows).encode().decode("unicode_escape", "ignore")
            states = connection.execute(
                f"SELECT convert_from({'state' if table == 'market_events' else 'body'}, 'UTF8')"
                f" FROM {table}"
            ).fetchall()
            assert "Söhne" not in str(states)
    assert billed.renter.read(f"{path}/billing-details")["name"].endswith("Söhne</b>")
    assert billed.renter.delete(f"{path}/billing-details").status_code == 200
    page = billed.renter.get(f"{path}/invoices/INV-000001.html").text
    assert "Söhne" not in page
    assert billed.renter.account_id in page
    assert "VAT DE 19%" in page, "what was taxed stays as it was"


def test_an_invoice_of_another_party_does_not_exist(billed: Scene) -> None:
    run_job(billed)
    for ending in ("", ".html", ".pdf"):
        answer = billed.stranger.get(f"{path_of(billed.renter)}/INV-000001{ending}")
        assert (answer.status_code, answer.json()["code"]) == (404, "account_unknown")
    assert billed.auditor.read(path_of(billed.renter))["data"]


# --- paper, without a server -------------------------------------------------------------------


def invoice(lines: tuple[InvoiceLine, ...], **changes: Any) -> InvoiceIssued:
    total = sum(line.amount.units for line in lines)
    told: dict[str, Any] = {
        "invoice_id": "charges/acct_a/2026-11",
        "account_id": "acct_a",
        "kind": "charges",
        "period": PERIOD,
        "series": "INV",
        "number": 7,
        "first_position": 0,
        "last_position": 9,
        "lines": lines,
        "taxes": (),
        "net": credit(total),
        "total": credit(total),
        "document_sha256": "0a" * 32,
        "by": "job",
        "at_us": ENDS_US + 3_600_000_000,
    }
    return InvoiceIssued(**{**told, **changes})


def test_cents_are_shown_as_cents_and_anything_finer_everywhere_with_six_decimals() -> None:
    whole = invoice((InvoiceLine("device_fee", None, None, None, credit(1_234_500_000)),))
    paper = invoice_paper.paper_of(whole, whole, Issuer(), None)
    assert (paper.total, paper.rows[0].amount) == ("1,234.50", "1,234.50")
    fine = invoice(
        (
            InvoiceLine("usage", "datacenter", 3_600_000_001, "GPU-microsecond", credit(1)),
            InvoiceLine("device_fee", None, None, None, credit(2_000_000)),
        )
    )
    paper = invoice_paper.paper_of(fine, fine, Issuer(), None)
    assert [row.amount for row in paper.rows] == ["0.000001", "2.000000"]
    assert paper.rows[0].quantity == "1.0000 GPU hours"
    assert paper.total == "2.000001"


def test_a_self_billed_invoice_is_from_the_provider_to_the_operator() -> None:
    fact = invoice(
        (InvoiceLine("earning", None, None, None, credit(5)),), kind="earnings", series="SB/acct_a"
    )
    details = Details("Provider \u4e2d\u6587", ("Road",), "FR", None)
    paper = invoice_paper.paper_of(fact, fact, Issuer("The Operator"), details)
    assert (paper.title, paper.number) == ("Self-billed invoice", "SB-000007")
    assert (paper.seller.name, paper.buyer.name) == ("Provider \u4e2d\u6587", "The Operator")
    assert invoice_paper.pdf(paper) == invoice_paper.pdf(paper), "no date, no random id in it"
    assert "\u4e2d\u6587" in invoice_paper.html(paper).decode()


def test_a_long_invoice_goes_over_pages() -> None:
    lines = tuple(
        InvoiceLine("usage", f"class {n}", n, "GPU-microsecond", credit(n)) for n in range(1, 101)
    )
    fact = invoice(lines)
    file = invoice_paper.pdf(invoice_paper.paper_of(fact, fact, Issuer(), None))
    assert file.count(b"/Type /Page\n") == 6


def test_the_issuers_file_is_read_strictly(tmp_path: Path) -> None:
    path = tmp_path / "billing.toml"
    path.write_text(BILLING, encoding="utf-8")
    found = issuer.read(path)
    (line,) = found.taxes.lines(TaxParty("DE"), 119)
    assert (found.name, line.tax.units) == ("Example Compute GmbH", 19)
    assert issuer.read(None).taxes.lines(TaxParty("DE"), 119) == ()
    wrong = {
        "unknown": 'vaat = "x"',
        "texts": "name = 5",
        "country": 'country = "Germany"',
        "percentage": 'country = "DE"\n[vat]\nDE = 19',
        "needs a country": '[vat]\nDE = "19"',
        "billing_file": "name = ",
    }
    for number, (rule, text) in enumerate(wrong.items()):
        broken = tmp_path / f"{number}.toml"
        broken.write_text(text, encoding="utf-8")
        with pytest.raises(SettingsInvalid, match=rule):
            issuer.read(broken)
    with pytest.raises(SettingsInvalid, match="absent"):
        issuer.read(tmp_path / "absent.toml")


def test_every_kind_of_an_invoice_is_a_kind_of_bills_and_has_a_name_on_paper() -> None:
    from projections.income.invoices import KINDS_OF
    from projections.income.movements import KINDS

    known = {
        each for kinds in KINDS.values() for each in ([kinds] if isinstance(kinds, str) else kinds)
    }
    known.add("federated_fee")  # of an accrual too, by the escrow that pays it
    billed = {kind for kinds in KINDS_OF.values() for kind in kinds}
    assert billed <= known
    assert billed | {"late_usage"} == invoice_paper.WHAT.keys()


# --- corrections ---------------------------------------------------------------------------------


def test_what_an_adjustment_gives_back_becomes_a_credit_note_on_the_line_it_was_charged_on(
    billed: Scene,
) -> None:
    """Corrections point at what they correct; the invoice is never edited."""
    from tests.api.income.test_focus import must_be_valid, read_csv

    charged = billed.renter.read("/v1/leases")["data"][0]["lease_id"]
    position = billed.renter.read(f"/v1/leases/{charged}/charges")["data"][0]["position"]
    goodwill = {"corrects_position": position, "amount": {"asset": "CREDIT", "units": "300000"}}
    billed.operator.made("/v1/adjustments", goodwill)
    assert run_job(billed) == 3, "two invoices, and the credit note that waited for one"
    assert run_job(billed) == 0
    told = billed.renter.read(f"{path_of(billed.renter)}/CN-000001")
    assert (told["corrects"], told["reason"]) == ("INV-000001", "goodwill")
    assert told["total"]["units"] == "300000"
    more = {"corrects_position": position, "amount": {"asset": "CREDIT", "units": "825000"}}
    billed.operator.made("/v1/adjustments", more)
    assert run_job(billed) == 1
    invoice = billed.renter.read(f"{path_of(billed.renter)}/INV-000001")
    assert invoice["lines"][0]["credited"]["units"] == "1125000"
    notes = [
        billed.renter.read(f"{path_of(billed.renter)}/{number}")
        for number in invoice["credit_notes"]
    ]
    taxes = [int(note["taxes"][0]["tax"]["units"]) for note in notes]
    assert sum(taxes) == 319_327 * 1_125_000 // 2_000_000, "one floor for both together"

    rows = read_csv(
        billed.renter.get(f"/v1/accounts/{billed.renter.account_id}/statements/2026-12.csv").content
    )
    must_be_valid(rows)
    assert [(row["InvoiceId"], row["BilledCost"], row["ChargeClass"]) for row in rows] == [
        ("CN-000001", "-0.3", "Correction"),
        ("CN-000002", "-0.825", "Correction"),
    ]
