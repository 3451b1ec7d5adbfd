"""`tallystick invoice`: what a month cost or earned, on paper. Thin clients of the API."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from api.cli_arguments import AccountId
from api.cli_remote import Limit, Remote, credits_of, reads, records
from api.cli_terminal import InputUnusable, amount, columns, facts, group

app = group("Invoices and credit notes.", "tallystick invoice list acct_1f0c...")

Number = Annotated[str, typer.Argument(metavar="NUMBER", help="INV-000001")]
Kind = Literal["charges", "earnings"]


@app.command("list", epilog="Example: tallystick invoice list acct_1f0c...")
@reads
def list_invoices(remote: Remote, account_id: AccountId, limit: Limit = 50) -> None:
    """Invoices and credit notes of an account, oldest first."""
    found = remote.list(
        lambda c, size, cursor: c.list_invoices(account_id, limit=size, cursor=cursor), limit
    )
    rows = [{**row, "number": row["written_number"], "total": amount(row["total"])}
            for row in found["data"]]  # fmt: skip
    names = ("number", "document", "kind", "period", "corrects", "total", "issued_at")
    remote.tell(found, columns(rows, names))


@app.command("show", epilog="Example: tallystick invoice show acct_1f0c... INV-000001 --out i.pdf")
@reads
def show_invoice(
    remote: Remote,
    account_id: AccountId,
    number: Number,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it here: .pdf, .html or .json.")
    ] = None,
) -> None:
    """One document: its lines, taxes and total; with `--out` the paper itself.

    A `.json` file is the text whose SHA-256 is in the ledger.
    """
    if out is not None:
        if out.exists():
            raise InputUnusable(f"{out} is there already: name a new file")
        if out.suffix not in (".pdf", ".html", ".json"):
            raise InputUnusable(f"{out}: a name that ends with .pdf, .html or .json")
    found = remote.ask(lambda c: c.read_invoice(account_id, number))
    if out is not None:
        out.write_bytes(_file(remote, account_id, number, out.suffix, found["canonical"]))
    told: dict[str, Any] = {
        "number": found["written_number"],
        "document": found["document"],
        "kind": found["kind"],
        "period": found.get("period"),
        "corrects": found.get("corrects"),
        "net": amount(found["net"]),
        **{tax["name"]: amount(tax["tax"]) for tax in found["taxes"]},
        "total": amount(found["total"]),
        "sha256": found["document_sha256"],
        "written": None if out is None else str(out),
    }
    lines = [
        {**line, "amount": amount(line["amount"]), "credited": amount(line.get("credited"))}
        for line in found["lines"]
    ]
    table = columns(lines, ("what", "detail", "quantity", "unit", "amount", "credited"))
    remote.tell(found, [*facts(told), "", *table])


def _file(remote: Remote, account_id: str, number: str, suffix: str, canonical: str) -> bytes:
    if suffix == ".json":
        return canonical.encode()
    if suffix == ".html":
        return remote.ask(lambda c: c.read_invoice_html(account_id, number))
    return remote.ask(lambda c: c.read_invoice_pdf(account_id, number))


@app.command("issue", epilog="Example: tallystick invoice issue acct_1f0c... 2026-11")
@records
def issue_invoice(
    remote: Remote,
    account_id: AccountId,
    period: Annotated[str, typer.Argument(metavar="MONTH", help="2026-11")],
    kind: Annotated[Kind, typer.Option(help="What it paid, or what it earned.")] = "charges",
) -> None:
    """Issue one closed month's invoice now (operator); the monthly job does it for everybody."""
    told = remote.ask(
        lambda c: c.issue_invoice(
            account_id, {"period": period, "kind": kind}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@app.command(
    "credit",
    epilog="Example: tallystick invoice credit acct_1f0c... INV-000001 --line 1=2.50"
    " --cause adjustment:812 --reason Outage",
)
@records
def credit_invoice(
    remote: Remote,
    account_id: AccountId,
    number: Number,
    line: Annotated[
        list[str], typer.Option("--line", metavar="LINE=CREDITS", help="May be given often.")
    ],
    cause: Annotated[str, typer.Option(help="What gave the money back; one note for each.")],
    reason: Annotated[str, typer.Option(help="What stands on the credit note.")],
) -> None:
    """Take something off lines of an invoice, with a credit note of its own number (operator)."""
    lines: list[Any] = [_credited(text) for text in line]
    told = remote.ask(
        lambda c: c.issue_credit_note(
            account_id,
            number,
            {"lines": lines, "cause": cause, "reason": reason},
            idempotency_key=remote.key,
        )
    )
    remote.tell(told, facts(told))


def _credited(text: str) -> dict[str, Any]:
    form = re.fullmatch(r"([0-9]{1,3})=(.+)", text)
    if form is None:
        raise InputUnusable(f"--line {text!r}: the line's number and credits, like 1=2.50")
    return {"line": int(form[1]), "amount": credits_of(form[2])}
