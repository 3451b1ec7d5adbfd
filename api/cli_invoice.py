"""`tallystick invoice`: what a month cost or earned, on paper. Thin clients of the API."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url, credits_of
from api.cli_terminal import AsJson, InputUnusable, amount, columns, facts, group, tell

app = group("Invoices and credit notes.", "tallystick invoice list acct_1f0c...")

AccountId = Annotated[str, typer.Argument(metavar="ACCOUNT", help="acct_...")]
Number = Annotated[str, typer.Argument(metavar="NUMBER", help="INV-000001")]
Kind = Literal["charges", "earnings"]


@app.command("list", epilog="Example: tallystick invoice list acct_1f0c...")
def list_invoices(
    account_id: AccountId,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Invoices and credit notes of an account, oldest first."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_invoices(account_id, limit=size, cursor=cursor), limit
    )
    rows = [{**row, "number": row["written_number"], "total": amount(row["total"])}
            for row in found["data"]]  # fmt: skip
    names = ("number", "document", "kind", "period", "corrects", "total", "issued_at")
    tell(found, columns(rows, names), as_json=as_json)


@app.command("show", epilog="Example: tallystick invoice show acct_1f0c... INV-000001 --out i.pdf")
def show_invoice(
    account_id: AccountId,
    number: Number,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it here: .pdf, .html or .json.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """One document: its lines, taxes and total; with `--out` the paper itself.

    A `.json` file is the text whose SHA-256 is in the ledger.
    """
    if out is not None:
        if out.exists():
            raise InputUnusable(f"{out} is there already: name a new file")
        if out.suffix not in (".pdf", ".html", ".json"):
            raise InputUnusable(f"{out}: a name that ends with .pdf, .html or .json")
    remote = Remote(url, api_key)
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
    tell(found, [*facts(told), "", *table], as_json=as_json)


def _file(remote: Remote, account_id: str, number: str, suffix: str, canonical: str) -> bytes:
    if suffix == ".json":
        return canonical.encode()
    if suffix == ".html":
        return remote.ask(lambda c: c.read_invoice_html(account_id, number))
    return remote.ask(lambda c: c.read_invoice_pdf(account_id, number))


@app.command("issue", epilog="Example: tallystick invoice issue acct_1f0c... 2026-11")
def issue_invoice(
    account_id: AccountId,
    period: Annotated[str, typer.Argument(metavar="MONTH", help="2026-11")],
    kind: Annotated[Kind, typer.Option(help="What it paid, or what it earned.")] = "charges",
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Issue one closed month's invoice now (operator); the monthly job does it for everybody."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.issue_invoice(
            account_id, {"period": period, "kind": kind}, idempotency_key=remote.key
        )
    )
    tell(told, facts({**told, "total": amount(told["total"])}), as_json=as_json)


@app.command(
    "credit",
    epilog="Example: tallystick invoice credit acct_1f0c... INV-000001 --line 1=2.50"
    " --cause adjustment:812 --reason Outage",
)
def credit_invoice(
    account_id: AccountId,
    number: Number,
    line: Annotated[
        list[str], typer.Option("--line", metavar="LINE=CREDITS", help="May be given often.")
    ],
    cause: Annotated[str, typer.Option(help="What gave the money back; one note for each.")],
    reason: Annotated[str, typer.Option(help="What stands on the credit note.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Take something off lines of an invoice, with a credit note of its own number (operator)."""
    lines: list[Any] = [_credited(text) for text in line]
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(
        lambda c: c.issue_credit_note(
            account_id,
            number,
            {"lines": lines, "cause": cause, "reason": reason},
            idempotency_key=remote.key,
        )
    )
    tell(told, facts({**told, "total": amount(told["total"])}), as_json=as_json)


def _credited(text: str) -> dict[str, Any]:
    form = re.fullmatch(r"([0-9]{1,3})=(.+)", text)
    if form is None:
        raise InputUnusable(f"--line {text!r}: the line's number and credits, like 1=2.50")
    return {"line": int(form[1]), "amount": credits_of(form[2])}
