"""`tallystick lease pause | resume | extend | reclaim | quote | accept | events`: its turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli_arguments import JobId, LeaseId
from api.cli_remote import Limit, Remote, credits_of, reads, records
from api.cli_stick import lease as lease
from api.cli_terminal import InputUnusable, amount, columns, facts

if TYPE_CHECKING:
    from tallystick_client.forms import NewQuote

Seconds = Annotated[int, typer.Argument(min=1, metavar="SECONDS", help="How much longer.")]


@lease.command("pause", epilog="Example: tallystick lease pause lease_1f0c...")
@records
def pause_lease(remote: Remote, lease_id: LeaseId) -> None:
    """Stop the compute of an interruptible lease; until it goes on it costs nothing."""
    told = remote.ask(lambda c: c.pause_lease(lease_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@lease.command("resume", epilog="Example: tallystick lease resume lease_1f0c...")
@records
def resume_lease(remote: Remote, lease_id: LeaseId) -> None:
    """Hold the same devices again, if they are free, and go on."""
    told = remote.ask(lambda c: c.resume_lease(lease_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@lease.command("extend", epilog="Example: tallystick lease extend lease_1f0c... 3600")
@records
def extend_lease(remote: Remote, lease_id: LeaseId, seconds: Seconds) -> None:
    """A later end of a fixed term, held in full now, at the locked price."""
    told = remote.ask(
        lambda c: c.extend_lease(lease_id, {"seconds": seconds}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@lease.command("reclaim", epilog="Example: tallystick lease reclaim lease_1f0c... --code 10001")
@records
def reclaim_lease(
    remote: Remote,
    lease_id: LeaseId,
    code: Annotated[
        int, typer.Option(min=10_000, max=19_999, help="Why: 10000, 10001 or 10002.")
    ] = 10_002,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Leave the devices with the renter after all.")
    ] = False,
) -> None:
    """Ask for the devices back: the window that was quoted begins (provider)."""
    if cancel:
        told = remote.ask(lambda c: c.cancel_reclaim(lease_id, {}, idempotency_key=remote.key))
    else:
        told = remote.ask(
            lambda c: c.reclaim_lease(lease_id, {"code": code}, idempotency_key=remote.key)
        )
    remote.tell(told, facts(told))


@lease.command("quote", epilog="Example: tallystick lease quote job_1f0c... --term 3600")
@records
def quote_lease(
    remote: Remote,
    job_id: JobId,
    term: Annotated[int | None, typer.Option(min=1, help="A fixed term, in seconds.")] = None,
    funds: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="What an open-ended lease holds.")
    ] = None,
    valid: Annotated[
        int, typer.Option(min=1, max=86_400, help="For so many seconds the price is promised.")
    ] = 900,
) -> None:
    """A price for a job that is promised for a while; `lease accept` takes it."""
    if term is not None and funds is not None:
        raise InputUnusable("--term or --funds: a fixed term holds the largest possible charge")
    body: NewQuote = {"job_id": job_id, "valid_seconds": valid}
    if term is not None:
        body["term_seconds"] = term
    if funds is not None:
        body["funds"] = credits_of(funds)
    told = remote.ask(lambda c: c.quote_lease(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@lease.command("accept", epilog="Example: tallystick lease accept lease_1f0c... quote_77ab...")
@records
def accept_quote(
    remote: Remote,
    lease_id: LeaseId,
    quote_id: Annotated[str, typer.Argument(metavar="QUOTE", help="quote_...")],
) -> None:
    """Take a quote before it expires: devices and money are held from now on."""
    told = remote.ask(
        lambda c: c.accept_quote(lease_id, {"quote_id": quote_id}, idempotency_key=remote.key)
    )
    remote.tell(told, facts(told))


@lease.command("events", epilog="Example: tallystick lease events lease_1f0c...")
@reads
def list_events(remote: Remote, lease_id: LeaseId, limit: Limit = 50) -> None:
    """The life of a lease: each fact, who caused it and why, and what it moved (--json: all)."""
    found = remote.list(
        lambda c, size, cursor: c.list_lease_steps(lease_id, limit=size, cursor=cursor), limit
    )
    rows = [
        {
            **row,
            "code": row.get("code", ""),
            "reason": row.get("reason", ""),
            "moved": _moved(row["money"]),
        }
        for row in found["data"]
    ]
    names = ("at", "type", "state", "party", "code", "reason", "moved")
    remote.tell(found, columns(rows, names))


def _moved(money: list[dict[str, Any]]) -> str:
    """Credits that left an account on one side: what the fact moved in all."""
    units = sum(max(0, int(one["units"])) for one in money if one["asset"] == "CREDIT")
    return (amount({"asset": "CREDIT", "units": str(units)}) or "") if units else ""
