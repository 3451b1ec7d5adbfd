"""`tallystick bid`: auctions, standing bids, whole months, price lists. Thin clients of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.arguments import LeaseId, OfferId
from cli.remote import IN_ORDER, Remote, credits_of, lists, ppm_of, reads, records
from cli.terminal import InputUnusable, amount, columns, facts, group
from cli.work_options import (
    Command,
    Gpus,
    Image,
    MaxMeters,
    MaxPrice,
    Models,
    RemotingSession,
    Route,
    Share,
    Split,
    remoted,
    work_of,
)

if TYPE_CHECKING:
    from tallystick_client.forms import LeaseRequest

app = group("bid", "Bids: auctions, interruptible leases, whole months.", "tallystick bid list")

BidId = Annotated[str, typer.Argument(metavar="BID", help="bid_...")]
Price = Annotated[str, typer.Argument(metavar="CREDITS", help="Per GPU-hour, like 1.90.")]
Pick = Literal["cheapest", "renter"]
SECONDS = 600


@app.command(
    "ask",
    epilog='Example: tallystick bid ask --command "python train.py" --max-price 3 --auction 60',
)
@records
def ask(
    remote: Remote,
    max_price: MaxPrice,
    command: Command = None,
    image: Image = None,
    gpus: Gpus = 1,
    share: Share = "1",
    model: Models = None,
    auction: Annotated[
        int | None, typer.Option(min=1, metavar="SECONDS", help="Time for providers' bids.")
    ] = None,
    sealed: Annotated[
        bool,
        typer.Option(help="Sealed bids: the lowest wins, and is paid the price of the next one."),
    ] = False,
    pick: Annotated[
        Pick, typer.Option(help="The winner: the cheapest bid, or the bid you accept.")
    ] = ("cheapest"),
    bid: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="Interruptible, at this standing bid.")
    ] = None,
    months: Annotated[int | None, typer.Option(help="Reserve 1, 3 or 6 months, prepaid.")] = None,
    max_meter: MaxMeters = None,
    session: RemotingSession = None,
    split: Split = None,
    route: Route = None,
) -> None:
    """Request a lease by auction (the default), by a standing bid, or for whole months."""
    pricing = _pricing(auction, sealed, pick, bid, months)
    body: LeaseRequest = {
        "job": {
            **work_of(command, image, gpus, model, max_price, max_meter),
            "share_ppm": ppm_of(share),
        },
        "pricing": pricing,
        **remoted(session, split, route),
    }
    told = remote.ask(lambda c: c.open_lease(body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


def _pricing(
    auction: int | None, sealed: bool, pick: str, bid: str | None, months: int | None
) -> Any:
    """Raises InputUnusable: one way, not several."""
    if sum((auction is not None or sealed, bid is not None, months is not None)) > 1:
        raise InputUnusable("an auction, a standing bid or months: one of them")
    if bid is not None:
        return {"module": "continuous_bid", "bid": credits_of(bid)}
    if months is not None:
        return {"module": "reserved", "months": months}
    module = "second_price" if sealed else "reverse_auction"
    return {"module": module, "closes_in_seconds": auction or SECONDS, "pick": pick}


@app.command("requests", epilog="Example: tallystick bid requests --json")
@lists(IN_ORDER)
def requests(remote: Remote) -> None:
    """List requests that take bids now."""
    found = remote.list(lambda c, page: c.list_auctions(**page))
    rows = [
        {**row, "at_most": amount(row["max_price_per_gpu_hour"]), "deposit": amount(row["deposit"])}
        for row in found["data"]
    ]
    names = ("lease_id", "gpu_count", "share_ppm", "at_most", "deposit", "bids", "closes_at")
    remote.tell(found, columns(rows, names))


@app.command("place", epilog="Example: tallystick bid place lease_1f0c... offer_1f0c... 1.90")
@records
def place(
    remote: Remote,
    lease_id: LeaseId,
    offer_id: OfferId,
    price: Price,
    device: Annotated[
        list[str] | None, typer.Option(help="Of the offer's node; else free ones.")
    ] = None,
) -> None:
    """Place a bid on a request with one of your offers. The deposit is held until a bid wins."""
    body: Any = {"offer_id": offer_id, "price_per_gpu_hour": credits_of(price)}
    if device:
        body["device_ids"] = device
    told = remote.ask(lambda c: c.submit_bid(lease_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@app.command("list", epilog="Example: tallystick bid list --lease lease_1f0c...")
@lists(IN_ORDER)
def list_all(
    remote: Remote,
    lease: Annotated[str | None, typer.Option(help="Bids for this request of yours.")] = None,
) -> None:
    """List your bids and their state, or all bids of one of your requests."""
    if lease is None:
        found = remote.list(lambda c, page: c.list_bids(**page))
    else:
        found = remote.list(lambda c, page: c.list_auction_bids(lease, **page))
    rows = [
        {**row, "price": amount(row["price_per_gpu_hour"]), "deposit": amount(row["deposit"])}
        for row in found["data"]
    ]
    names = ("bid_id", "lease_id", "price", "state", "deposit", "deposit_state", "expires_at")
    remote.tell(found, columns(rows, names))


@app.command("withdraw", epilog="Example: tallystick bid withdraw lease_1f0c... bid_1f0c...")
@records
def withdraw(remote: Remote, lease_id: LeaseId, bid_id: BidId) -> None:
    """Withdraw a bid. Its deposit comes back."""
    told = remote.ask(lambda c: c.withdraw_bid(lease_id, bid_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@app.command("accept", epilog="Example: tallystick bid accept lease_1f0c... bid_1f0c...")
@records
def accept(remote: Remote, lease_id: LeaseId, bid_id: BidId) -> None:
    """Accept a bid of a request whose winner you pick."""
    told = remote.ask(lambda c: c.accept_bid(lease_id, bid_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@app.command("set", epilog="Example: tallystick bid set lease_1f0c... 1.60")
@records
def set_standing(remote: Remote, lease_id: LeaseId, price: Price) -> None:
    """Raise or lower the standing bid of an interruptible lease."""
    body: Any = {"bid": credits_of(price)}
    told = remote.ask(lambda c: c.set_standing_bid(lease_id, body, idempotency_key=remote.key))
    remote.tell(told, facts(told))


@app.command("show", epilog="Example: tallystick bid show lease_1f0c...")
@reads
def show(remote: Remote, lease_id: LeaseId) -> None:
    """Show the standing bid of a lease, and the bid to beat."""
    told = remote.ask(lambda c: c.read_standing_bid(lease_id))
    remote.tell(told, facts(told))


@app.command("prices", epilog="Example: tallystick bid prices --json")
@reads
def prices(
    remote: Remote,
    pool: Annotated[str | None, typer.Option(help="In this pool only: pool_...")] = None,
) -> None:
    """Show the present prices of winning standing bids. Needs no key."""
    found = remote.ask(lambda c: c.read_market_prices(pool_id=pool))
    rows = [
        {**row, "lowest": amount(row["lowest"]), "highest": amount(row["highest"])}
        for row in found["data"]
    ]
    names = ("gpu_class", "holding", "lowest", "highest")
    remote.tell(found, columns(rows, names))


@app.command("modules", epilog="Example: tallystick bid modules")
@reads
def modules(remote: Remote) -> None:
    """List the pricing modules of the installation, plug-ins too. Needs no key."""
    found = remote.ask(lambda c: c.list_pricing_modules())
    remote.tell(found, columns(found["data"], ("pricing", "kind", "meaning")))


@app.command(
    "offer", epilog="Example: tallystick bid offer offer_1f0c... --floor 0.90 --reserved 3:1.80:0.5"
)
@records
def offer(
    remote: Remote,
    offer_id: OfferId,
    floor: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="Interruptible leases from this bid on.")
    ] = None,
    reserved: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MONTHS:CREDITS:PART",
            help="A price for 1, 3 or 6 months, and the part that an early end gives back.",
        ),
    ] = None,
) -> None:
    """Set the price list of an offer. Prices that are not named are removed."""
    body: Any = {"reserved": [_line(each) for each in reserved or []]}
    if floor is not None:
        body["interruptible_floor"] = credits_of(floor)
    told = remote.ask(lambda c: c.set_offer_prices(offer_id, body, idempotency_key=remote.key))
    shown = {**told, "reserved": "; ".join(map(_line_told, told["reserved"]))}
    remote.tell(told, facts(shown))


def _line(text: str) -> dict[str, Any]:
    """Raises InputUnusable."""
    parts = text.split(":")
    if len(parts) != 3 or not parts[0].isdecimal():
        raise InputUnusable(f"{text!r} is not MONTHS:CREDITS:PART, like 3:1.80:0.5")
    refund = 0 if parts[2] in ("0", "0.0") else ppm_of(parts[2])
    price = credits_of(parts[1])
    return {"months": int(parts[0]), "price_per_gpu_hour": price, "refund_ppm": refund}


def _line_told(line: Mapping[str, Any]) -> str:
    price, refund = amount(line["price_per_gpu_hour"]), line["refund_ppm"]
    return f"{line['months']} months at {price}, {refund} ppm back"
