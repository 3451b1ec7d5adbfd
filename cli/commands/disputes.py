"""`tallystick dispute`: contest charges, answer, rule. Thin clients of the API."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import typer

from cli.remote import IN_ORDER, Remote, acts, credits_of, lists, ppm_of, reads, records
from cli.terminal import InputUnusable, amount, columns, facts, group

dispute = group(
    "dispute",
    "Disputes: charges that should not have been charged.",
    "tallystick dispute list --json",
)

Disputed = Annotated[
    str, typer.Argument(metavar="SUBJECT", help="What was charged for: lease_... or volume_...")
]
DisputeId = Annotated[str, typer.Argument(metavar="DISPUTE", help="dispute_...")]
ClaimCode = Literal[
    "not_running", "unreachable", "too_slow", "wrong_hardware", "overcharged", "other"
]
Outcome = Literal["upheld", "rejected", "split"]
EvidenceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence", help="report:LANE/POSITION, fact:POSITION or sha256:HEX; may be repeated."
    ),
]


@dispute.command(
    "open", epilog="Example: tallystick dispute open lease_1f0c... --line 42 --why not_running"
)
@records
def open_dispute(
    remote: Remote,
    subject: Disputed,
    line: Annotated[
        list[str],
        typer.Option(
            help="POSITION of a charge (tallystick lease charges, tallystick statement), or"
            " POSITION=CREDITS."
        ),
    ],
    why: Annotated[ClaimCode, typer.Option(help="Reason of the dispute.")],
    claim: Annotated[
        str | None, typer.Option(help="Your statement; its text can be erased later.")
    ] = None,
    evidence: EvidenceOption = None,
) -> None:
    """Open a dispute over charges of a lease or volume, inside their window. The provider's part is
    held.
    """
    body: Any = {
        "volume_id" if subject.startswith("volume_") else "lease_id": subject,
        "lines": [_line(each) for each in line],
        "claim_code": why,
        "evidence": _evidence(evidence),
    }
    if claim is not None:
        body["claim"] = claim
    told = remote.ask(lambda c: c.open_dispute(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@dispute.command("list", epilog="Example: tallystick dispute list --state open")
@lists(IN_ORDER)
def list_disputes(
    remote: Remote,
    lease: Annotated[str | None, typer.Option(metavar="LEASE", help="Of this lease only.")] = None,
    volume: Annotated[
        str | None, typer.Option(metavar="VOLUME", help="Of this volume only.")
    ] = None,
    state: Annotated[
        Literal["open", "resolved"] | None, typer.Option(help="Only disputes in this state.")
    ] = None,
) -> None:
    """List disputes of which you are a party; all of them for the operator."""
    found = remote.list(
        lambda c, page: c.list_disputes(lease_id=lease, volume_id=volume, state=state, **page)
    )
    rows = [
        {
            **row,
            "subject": row.get("lease_id") or row.get("volume_id"),
            "claimed": amount(row["claimed"]),
        }
        for row in found["data"]
    ]
    names = ("dispute_id", "subject", "opened_by", "state", "claimed", "expires_at")
    remote.tell(found, columns(rows, names))


@dispute.command("show", epilog="Example: tallystick dispute show dispute_1f0c...")
@reads
def show_dispute(remote: Remote, dispute_id: DisputeId) -> None:
    """Show a dispute with its charges, its evidence and its statements."""
    told = remote.ask(lambda c: c.read_dispute(dispute_id))
    whole: Any = dict(told)
    lines = [
        {
            **row,
            **{name: amount(row[name]) for name in ("charge", "claimed", "upheld") if name in row},
        }
        for row in whole.pop("lines")
    ]
    said = [
        {
            "side": one["side"],
            "at": one["at"],
            "evidence": len(one["evidence"]),
            "text": one.get("text", one.get("sha256", "")),
        }
        for one in whole.pop("statements")
    ]
    shown = [
        *facts(whole),
        *columns(lines, ("position", "charge", "claimed", "upheld", "adjustment_id")),
        *columns(said, ("side", "at", "evidence", "text")),
    ]
    remote.tell(told, shown)


@dispute.command(
    "answer", epilog="Example: tallystick dispute answer dispute_1f0c... --evidence report:17/204"
)
@records
def answer_dispute(
    remote: Remote,
    dispute_id: DisputeId,
    statement: Annotated[str | None, typer.Option(help="In words.")] = None,
    evidence: EvidenceOption = None,
) -> None:
    """Add a statement or evidence to a dispute, as either side, until the ruling."""
    body: Any = {"evidence": _evidence(evidence)}
    if statement is not None:
        body["statement"] = statement
    told = remote.ask(lambda c: c.answer_dispute(dispute_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@dispute.command(
    "rule", epilog="Example: tallystick dispute rule dispute_1f0c... split --renter-part 0.5"
)
@acts
def rule_dispute(
    remote: Remote,
    dispute_id: DisputeId,
    outcome: Annotated[
        Outcome, typer.Argument(help="In favour of the renter, the provider, or split.")
    ],
    renter_part: Annotated[
        str | None,
        typer.Option(metavar="PART", help="Of a split: the renter's part of one, like 0.5."),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="In words.")] = None,
) -> None:
    """Rule on a dispute, as the operator. The ruling is final and booked as adjustments."""
    body: Any = {"outcome": outcome}
    if renter_part is not None:
        body["upheld_ppm"] = ppm_of(renter_part)
    if reason is not None:
        body["reason"] = reason
    told = remote.ask(lambda c: c.rule_dispute(dispute_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


def _line(text: str) -> dict[str, Any]:
    """`42` or `42=1.5`. Raises InputUnusable."""
    position, _, claimed = text.partition("=")
    if re.fullmatch(r"[1-9][0-9]{0,15}", position) is None:
        raise InputUnusable(f"{text!r} is no charge: a position like 42, or 42=1.50 credits of it")
    told: dict[str, Any] = {"position": int(position)}
    if claimed:
        told["claimed"] = credits_of(claimed)
    return told


def _evidence(given: list[str] | None) -> list[dict[str, Any]]:
    """Raises InputUnusable."""
    found: list[dict[str, Any]] = []
    for text in given or ():
        report = re.fullmatch(r"report:([0-9]{1,2})/([1-9][0-9]{0,15})", text)
        fact = re.fullmatch(r"fact:([1-9][0-9]{0,15})", text)
        digest = re.fullmatch(r"sha256:([0-9a-f]{64})", text)
        if report:
            found.append(
                {"kind": "usage_report", "lane": int(report[1]), "position": int(report[2])}
            )
        elif fact:
            found.append({"kind": "market_fact", "position": int(fact[1])})
        elif digest:
            found.append({"kind": "statement", "sha256": digest[1]})
        else:
            raise InputUnusable(
                f"{text!r} is no evidence: report:LANE/POSITION, fact:POSITION or sha256:HEX"
            )
    return found
