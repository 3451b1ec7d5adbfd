"""`tallystick breaker`: how much may be minted and paid out in a while. Thin client of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from api.cli_remote import Remote, reads, records
from api.cli_terminal import columns, facts, group

if TYPE_CHECKING:
    from tallystick_client.forms import NewLimit

app = group("Breakers: limits of minting and paying.", "tallystick breaker list")


@app.command("list", epilog="Example: tallystick breaker list --json")
@reads
def list_breakers(remote: Remote) -> None:
    """Each breaker: its limit, what counts against it now, and what waits."""
    told = remote.ask(lambda c: c.list_breakers())
    rows = [{**row, "waiting": len(row["waiting"])} for row in told["breakers"]]
    lines = columns(rows, ("breaker", "asset", "limit", "window_seconds", "aggregate", "waiting"))
    waits = [
        {**one, "breaker": row["breaker"]} for row in told["breakers"] for one in row["waiting"]
    ]
    remote.tell(told, lines + columns(waits, ("breaker", "ref", "amount", "reason", "since")))


@app.command(
    "set", epilog='Example: tallystick breaker set mint --limit 1500000000000 --reason "A week"'
)
@records
def set_breaker(
    remote: Remote,
    breaker: Annotated[str, typer.Argument(metavar="mint|payout|cash_out")],
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
    limit: Annotated[
        str | None, typer.Option(metavar="UNITS", help="10^-8 TOKEN or 10^-6 CREDIT; else none.")
    ] = None,
    window: Annotated[int, typer.Option(metavar="SECONDS", min=1)] = 86_400,
) -> None:
    """Set or lift a limit (governance). What waits is asked about again."""
    body: NewLimit = {"window_seconds": window, "reason": reason}
    if limit is not None:
        body["limit"] = limit
    name: Literal["mint", "payout", "cash_out"] = breaker  # type: ignore[assignment]
    told = remote.ask(lambda c: c.set_breaker(name, body, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "waiting": len(told["waiting"])}))
