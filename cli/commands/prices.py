"""`tallystick tariff | oracle`: what things cost, and the price of a TOKEN."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.remote import BY_NUMBER, Remote, acts, credits_of, lists, reads, records
from cli.terminal import InputUnusable, amount, columns, facts, group

if TYPE_CHECKING:
    from tallystick_client.forms import (
        PriceObservationRequest,
        PriceSourceRequest,
        PriceSourcesRequest,
    )

tariff = group(
    "tariff", "Tariffs: dated versions of what things cost.", "tallystick tariff list --json"
)

FILE_BYTES_MAX = 1_000_000


@tariff.command("list", epilog="Example: tallystick tariff list")
@reads
def list_tariffs(remote: Remote) -> None:
    """List every version ever published, oldest first."""
    told = remote.ask(lambda c: c.list_tariffs())
    rows = [
        {
            **row,
            "fees": ", ".join(
                f"{fee['gpu_class']} {amount(fee['per_gpu_hour'])}" for fee in row["usage_fees"]
            ),
        }
        for row in told["data"]
    ]
    names = ("version", "in_force", "effective_from", "provider_share_ppm", "fees")
    remote.tell(told, columns(rows, names))


@tariff.command("publish", epilog="Example: tallystick tariff publish tariff-2.json")
@acts
def publish(
    remote: Remote,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The body of POST /v1/tariffs.")],
) -> None:
    """Publish the next version. Leases that are reserved already keep theirs."""
    try:
        with file.open("rb") as opened:
            body: Any = json.loads(opened.read(FILE_BYTES_MAX))
    except (OSError, ValueError) as error:
        raise InputUnusable(f"{file}: {error}") from None
    told = remote.ask(lambda c: c.publish_tariff(body, idempotency_key=remote.key))
    shown = {name: told.get(name) for name in ("version", "effective_from", "in_force")}
    remote.tell(told, facts(shown))


# --- oracle ------------------------------------------------------------------------------------

oracle = group(
    "oracle", "Oracle: the price of a TOKEN, from its sources.", "tallystick oracle show --json"
)

_LISTED = ("source", "stale", "twap_micro_usd", "price_micro_usd", "published_at")
_SHOWN = ("snapshot", "health", "median_micro_usd", "deviation_bps", "at", "by")


@oracle.command("show", epilog="Example: tallystick oracle show --json")
@reads
def show(remote: Remote) -> None:
    """Show each price source, and the median or the reason why there is no price."""
    told = remote.ask(lambda c: c.read_price())
    remote.tell(told, _facts(told))


@oracle.command(
    "observe",
    epilog="Example: tallystick oracle observe exchange-a 1.87 --published-at 2026-11-20T08:00:00Z",
)
@records
def observe(
    remote: Remote,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="One of the sources.")],
    price: Annotated[str, typer.Argument(metavar="PRICE", help="Dollars per TOKEN, like 1.87.")],
    published_at: Annotated[
        str, typer.Option(help="The source's own time, RFC 3339: by it a price grows old.")
    ],
    observed_at: Annotated[
        str | None, typer.Option(help="Time of observation; default: now.")
    ] = None,
) -> None:
    """Record a price that a source published (its feeder's key: operator, or oracle:write)."""
    body: PriceObservationRequest = {
        "source": source,
        "price_micro_usd": int(credits_of(price)["units"]),
        "published_at": published_at,
    }
    if observed_at is not None:
        body["observed_at"] = observed_at
    told = remote.ask(lambda c: c.report_price(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@oracle.command("snapshots", epilog="Example: tallystick oracle snapshots --limit 10")
@lists(BY_NUMBER)
def snapshots(remote: Remote) -> None:
    """List every snapshot: the price at each burn or seal that needed it."""
    found = remote.list(lambda c, page: c.list_price_snapshots(**page))
    remote.tell(found, columns(found["data"], _SHOWN))


@oracle.command("snapshot", epilog="Example: tallystick oracle snapshot --json")
@records
def snapshot(remote: Remote) -> None:
    """Record the sources' prices now (operator, or a key with oracle:write)."""
    told = remote.ask(lambda c: c.take_price_snapshot({}, idempotency_key=remote.key))
    remote.tell(told, _facts(told))


@oracle.command(
    "sources", epilog="Example: tallystick oracle sources exchange-a=member_1 venue-b=member_2"
)
@acts
def sources(
    remote: Remote,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE=MEMBER...",
            help="All sources that count, each with the member whose keys feed it.",
        ),
    ],
) -> None:
    """Set the price sources that count. Prices of other sources are not kept."""
    body: PriceSourcesRequest = {"sources": [_fed_by(name) for name in names]}
    told = remote.ask(lambda c: c.set_price_sources(body, idempotency_key=remote.key))
    remote.tell(told, columns(told["sources"], ("source", "member_id")))


def _fed_by(text: str) -> PriceSourceRequest:
    source, equals, member_id = text.rpartition("=")
    if not equals:
        raise InputUnusable(f"{text}: name a source and its feeder, like exchange-a=member_1")
    return {"source": source, "member_id": member_id}


def _facts(told: Any) -> list[str]:
    shown = facts({name: told[name] for name in _SHOWN if name in told})
    return [*shown, *columns(told["sources"], _LISTED)] if told["sources"] else shown
