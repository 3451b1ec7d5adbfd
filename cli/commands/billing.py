"""`tallystick statement | usage | earnings | forecast | invoice`: what a party reads about money.

Thin clients of the API: every sum is the server's, and every line names the position it comes from.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.arguments import AccountId, OwnAccount
from cli.checking import line_proof
from cli.remote import (
    AS_IT_IS,
    BY_NUMBER,
    IN_ORDER,
    Remote,
    credits_of,
    lists,
    moment_of,
    reads,
    records,
)
from cli.terminal import InputUnusable, amount, columns, facts, gpu_hours, group, note, top_level

commands = top_level()
usage = group(
    "usage", "Usage: what your leases used.", "tallystick usage summary --by day,project_id"
)

Account = Annotated[
    str | None, typer.Option("--account", metavar="ACCOUNT", help="Default: the key's own account.")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="TIME", help="From then on: 2026-11-01, or 7d for seven days ago."
    ),
]
To = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="Up to this moment, not included.")
]
Group = Literal["client_id", "project_id", "end_user_ref", "lease_id"]


statement = group(
    "statement",
    "Statement: what an account had, what moved and for what, and what is not billed yet.",
    "tallystick statement --from 2026-11-01 --by project_id",
    is_command=True,
)


@statement.callback()
@lists(BY_NUMBER)
def show_statement(
    remote: Remote,
    called: typer.Context,
    from_: From = None,
    to: To = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME|POSITION", help="As it stood at that moment.")
    ] = None,
    by: Annotated[Group | None, typer.Option(help="Sum the usage by this field.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only lines of this kind, like usage.")] = None,
    account: Account = None,
) -> None:
    """What an account had, what moved and for what, and what is not billed yet.

    Each line names the position of its fact: `statement line POSITION` leads on to the signed
    reports behind it.
    """
    if called.invoked_subcommand is not None:
        return
    who = remote.own(account)
    asked: dict[str, Any] = {"from_": _time(from_), "to": _time(to), "by": by, "kind": kind}
    asked |= {} if as_of is None else _moment(as_of)
    told = remote.list(lambda c, page: c.read_account_statement(who, **asked, **page), rows="lines")
    remote.tell(told, _statement(told))


@statement.command("line", epilog="Example: tallystick statement line 498 --proof line.json")
@reads
def show_line(
    remote: Remote,
    position: Annotated[
        int, typer.Argument(min=1, metavar="POSITION", help="Of the line, as the statement has it.")
    ],
    proof: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the line, its signed reports and all proofs."),
    ] = None,
    account: Account = None,
) -> None:
    """One line of a bill: its arithmetic, and the signed reports that it was made from.

    With `--proof` everything goes into one file, which `audit verify FILE` checks without a server.
    """
    who = remote.own(account)
    if proof is None:
        told: Any = remote.ask(lambda c: c.read_statement_line(who, position))
        found = remote.list(
            lambda c, page: c.list_statement_line_reports(who, position, **page),
            line_proof.REPORTS_MAX,
        )
        told = {**told, "reports": found["data"]}
        remote.tell(told, _line(told))
        return
    if proof.exists():
        raise InputUnusable(f"{proof} is there already: name a new file")
    told = line_proof.fetch(remote, who, position)
    proof.write_text(json.dumps(told, ensure_ascii=False) + "\n", encoding="utf-8")
    told = {"position": position, "written": str(proof), "reports": len(told["reports"])}
    remote.tell(told, facts(told))
    note(f"check it, without the server: tallystick audit verify {proof} --key KEY|FILE|URL")


def _line(told: dict[str, Any]) -> list[str]:
    """What moved, why it is so much, and what the nodes signed."""
    moved = [{**one, "movement": amount(one["movement"])} for one in told["lines"]]
    reports = [
        {**one, "gpu_us": int(one["ppm_us"]) // 1_000_000 if "ppm_us" in one else None}
        for one in told["reports"]
    ]
    names = ("lane", "usage_position", "node_id", "seq", "received_at", "rows", "gpu_us")
    return [
        *facts({name: told[name] for name in ("position", "type", "recorded_at")}),
        "",
        *columns(moved, ("kind", "part", "movement", "lease_id")),
        *(["", *columns(told["arithmetic"], ("name", "new", "formula"))]),
        "",
        *(columns(reports, names) if reports else ["this line was made from no reports"]),
    ]


def _statement(told: dict[str, Any]) -> list[str]:
    """Balances, sums by kind, the lines, and what is still to come."""
    parts = {one["part"]: amount(one["balance"]) for one in told["opening"]}
    balances = [
        {"part": one["part"], "opening": parts.get(one["part"]), "closing": amount(one["balance"])}
        for one in told["closing"]
    ]
    kinds = [{**one, "movement": amount(one["movement"])} for one in told["kinds"]]
    lines = [{**one, "movement": amount(one["movement"])} for one in told["lines"]]
    shown = [
        *columns(balances, ("part", "opening", "closing")),
        "",
        *columns(kinds, ("kind", "part", "lines", "movement")),
        "",
        *columns(lines, ("position", "at", "kind", "part", "movement", "lease_id")),
    ]
    used = told.get("usage")
    if used is not None:
        groups = [{**one, "charge": amount(one["charge"])} for one in used["groups"]]
        shown += ["", *columns(groups, ("group", "gpu_us", "charge", "accruals")), ""]
        said = ("matched", "unconfirmed", "contested", "disputed")
        shown += facts({name: f"{gpu_hours(used[f'{name}_gpu_us'])} GPU-hours" for name in said})
    estimate = told.get("unbilled_estimate")
    if estimate is not None:
        shown += _running(estimate)
    return shown


@usage.command("summary", epilog="Example: tallystick usage summary --by day,model --json")
@lists(AS_IT_IS)
def usage_summary(
    remote: Remote,
    by: Annotated[
        str, typer.Option(help="hour or day; client_id, project_id, end_user_ref, model.")
    ] = "day",
    from_: From = None,
    to: To = None,
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
    account: Account = None,
) -> None:
    """Show GPU time and charge by hour, day, client, project, end user and model."""
    found = remote.list(
        lambda c, page: c.list_usage_summary(
            by=by, from_=_time(from_), to=_time(to), project_id=project, account_id=account, **page
        )
    )
    rows = [
        {**row, "charge": amount(row["charge"]), "charge_max": amount(row["charge_max"])}
        for row in found["data"]
    ]
    names = (*by.split(","), "accruals", "gpu_us", "gpu_us_max", "charge", "charge_max")
    running = found.get("unbilled_estimate")
    remote.tell(found, [*columns(rows, names), *([] if running is None else _running(running))])


def _running(told: dict[str, Any]) -> list[str]:
    """What leases that still run have used and is not billed yet: an estimate, marked with `~`."""
    used = f"~{gpu_hours(told['gpu_us'])} GPU-hours, ~{amount(told['charge'])}"
    return ["", f"not billed yet, from reports received so far: {used}"]


@commands.command(epilog="Example: tallystick earnings --by hour --json")
@lists(AS_IT_IS)
def earnings(
    remote: Remote,
    by: Annotated[str, typer.Option(help="node_id, lease_id, hour, epoch.")] = "node_id,epoch",
    from_: From = None,
    to: To = None,
    explain: Annotated[
        int | None,
        typer.Option(metavar="POSITION", help="One accrual, step by step, instead of sums."),
    ] = None,
    account: Account = None,
) -> None:
    """What was earned, by node, lease, hour and epoch; or why one accrual was shared as it was."""
    if explain is not None:
        told: Any = remote.ask(lambda c: c.explain_earning(explain))
        remote.tell(told, _explained(told))
        return
    found = remote.list(
        lambda c, page: c.list_earnings(
            by=by, from_=_time(from_), to=_time(to), account_id=account, **page
        )
    )
    money = ("charge", "fee", "provider", "platform", "burn", "client", "earned")
    rows = [{**row, **{name: amount(row[name]) for name in money}} for row in found["data"]]
    names = (*by.split(","), "accruals", "gpu_us", "charge", "fee", "provider", "earned")
    who = account or _only_account(remote, found)
    maturing: Any = None if who is None else remote.ask(lambda c: c.read_maturity(who))
    remote.tell({**found, "maturity": maturing}, [*columns(rows, names), *_maturing(maturing)])


def _only_account(remote: Remote, found: dict[str, Any]) -> str | None:
    """Whose earnings these are; None: of several accounts."""
    whose = {row["account_id"] for row in found["data"]}
    if len(whose) > 1:
        return None
    return whose.pop() if whose else remote.own_account_or_none()


def _maturing(told: Any) -> list[str]:
    """What is held back until when, and what can be paid out."""
    if told is None:
        return []
    rows = [{**row, "amount": amount(row["amount"])} for row in told["upcoming"]]
    shown = {name: amount(told[name]) for name in ("held_back", "payable", "earned")}
    return ["", *facts(shown), *(columns(rows, ("matures_at", "amount")) if rows else [])]


def _explained(told: dict[str, Any]) -> list[str]:
    terms = {
        name: told[name]
        for name in ("position", "lease_id", "node_id", "until", "tariff_version", "gpu_class")
    }
    moved = [{**one, "movement": amount(one["movement"])} for one in told["entry"]]
    return [
        *facts(terms),
        "",
        *columns(told["steps"], ("name", "before", "after", "new", "formula")),
        "",
        *columns(moved, ("name", "movement")),
    ]


@commands.command(epilog="Example: tallystick forecast --json")
@reads
def forecast(remote: Remote, account: Account = None) -> None:
    """The second when the funds of each lease end, and until when the balance would last."""
    who = remote.own(account)
    told: Any = remote.ask(lambda c: c.read_forecast(who))
    leases = [
        {**one, "held": amount(one["held"]), "charge_per_hour": amount(one["charge_per_hour"])}
        for one in told["leases"]
    ]
    balances = [
        {
            **one,
            "spendable": amount(one["spendable"]),
            "charge_per_hour": amount(one["charge_per_hour"]),
        }
        for one in told["balances"]
    ]
    names = ("lease_id", "settlement", "held", "charge_per_hour", "ends_at")
    lines = [
        *columns(leases, names),
        "",
        *columns(balances, ("settlement", "spendable", "charge_per_hour", "lasts_until")),
    ]
    remote.tell(told, lines)


def _moment(text: str) -> dict[str, Any]:
    return {"as_of_position": int(text)} if text.isdecimal() else {"as_of": moment_of(text)}


def _time(text: str | None) -> str | None:
    return None if text is None else moment_of(text)


# --- invoice -----------------------------------------------------------------------------------

invoice = group("invoice", "Invoices and credit notes.", "tallystick invoice list acct_1f0c...")

Number = Annotated[str, typer.Argument(metavar="NUMBER", help="INV-000001")]
Kind = Literal["charges", "earnings"]


@invoice.command("list", epilog="Example: tallystick invoice list acct_1f0c...")
@lists(IN_ORDER)
def list_invoices(remote: Remote, account_id: OwnAccount = None) -> None:
    """List invoices and credit notes of an account."""
    who = remote.own(account_id)
    found = remote.list(lambda c, page: c.list_invoices(who, **page))
    rows = [
        {**row, "number": row["written_number"], "total": amount(row["total"])}
        for row in found["data"]
    ]
    names = ("number", "document", "kind", "period", "corrects", "total", "issued_at")
    remote.tell(found, columns(rows, names))


@invoice.command(
    "show", epilog="Example: tallystick invoice show acct_1f0c... INV-000001 --out i.pdf"
)
@reads
def show_invoice(
    remote: Remote,
    account_id: AccountId,
    number: Number,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it here: .pdf, .html or .json.")
    ] = None,
) -> None:
    """Show one document: its lines, taxes and total. With `--out`, save the paper itself.

    A `.json` file is the text that the SHA-256 in the ledger was made from.
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


@invoice.command("issue", epilog="Example: tallystick invoice issue acct_1f0c... 2026-11")
@records
def issue_invoice(
    remote: Remote,
    account_id: AccountId,
    period: Annotated[str, typer.Argument(metavar="MONTH", help="2026-11")],
    kind: Annotated[Kind, typer.Option(help="Kind: its charges, or its earnings.")] = "charges",
) -> None:
    """Issue the invoice of one closed month now (operator). The monthly job issues all others."""
    told = remote.ask(
        lambda c: c.issue_invoice(
            account_id, {"period": period, "kind": kind}, idempotency_key=remote.key
        )
    )
    remote.tell(told, facts(told))


@invoice.command(
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
        list[str], typer.Option("--line", metavar="LINE=CREDITS", help="May be repeated.")
    ],
    cause: Annotated[str, typer.Option(help="Reference of the repayment; one note for each.")],
    reason: Annotated[str, typer.Option(help="Text on the credit note.")],
) -> None:
    """Credit lines of an invoice, with a credit note of its own number (operator)."""
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
