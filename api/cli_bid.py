"""`tallystick bid`: auctions, standing bids, whole months, price lists. Thin clients of the API."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url, credits_of, ppm_of
from api.cli_terminal import AsJson, InputUnusable, amount, columns, facts, group, tell

if TYPE_CHECKING:
    from api.client import NewLease

app = group(
    "Prices that are bid for: auctions, interruptible leases, whole months.", "tallystick bid list"
)

LeaseId = Annotated[str, typer.Argument(metavar="LEASE", help="lease_...")]
BidId = Annotated[str, typer.Argument(metavar="BID", help="bid_...")]
OfferId = Annotated[str, typer.Argument(metavar="OFFER", help="offer_...")]
Price = Annotated[str, typer.Argument(metavar="CREDITS", help="Per GPU-hour, like 1.90.")]
Pick = Literal["cheapest", "renter"]
SECONDS = 600


@app.command(
    "ask",
    epilog='Example: tallystick bid ask --command "python train.py" --max-price 3 --auction 60',
)
def ask(
    max_price: Annotated[str, typer.Option(metavar="CREDITS", help="At most, per GPU-hour.")],
    command: Annotated[str | None, typer.Option(help="What to run, as in a shell.")] = None,
    image: Annotated[str | None, typer.Option(help="Container image to run.")] = None,
    gpus: Annotated[int, typer.Option(min=1, max=64, help="GPUs, all of one node.")] = 1,
    share: Annotated[str, typer.Option(metavar="PART", help="Of each GPU, like 0.37.")] = "1",
    model: Annotated[list[str] | None, typer.Option(help="Allowed model; may be repeated.")] = None,
    auction: Annotated[
        int | None, typer.Option(min=1, metavar="SECONDS", help="Take providers' bids so long.")
    ] = None,
    sealed: Annotated[bool, typer.Option(help="Second price: the lowest ask wins.")] = False,
    pick: Annotated[Pick, typer.Option(help="Who wins: the cheapest, or whom you accept.")] = (
        "cheapest"
    ),
    bid: Annotated[
        str | None, typer.Option(metavar="CREDITS", help="Interruptible, at this standing bid.")
    ] = None,
    months: Annotated[int | None, typer.Option(help="Reserve 1, 3 or 6 months, prepaid.")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Ask for a lease by auction (the default), by a standing bid, or for whole months."""
    if command is None and image is None:
        raise InputUnusable("what is to run? give --command or --image")
    pricing = _pricing(auction, sealed, pick, bid, months)
    body: NewLease = {
        "job": {
            "image": image,
            "command": [] if command is None else shlex.split(command),
            "gpu_count": gpus,
            "share_ppm": ppm_of(share),
            "models": model or [],
            "max_price_per_gpu_hour": credits_of(max_price),
        },
        "pricing": pricing,
    }
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.open_lease(body, idempotency_key=remote.key))
    tell(told, _facts(told), as_json=as_json)


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
def requests(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Requests that take bids now."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_auctions(limit=size, cursor=cursor), limit
    )
    rows = [
        {**row, "at_most": amount(row["max_price_per_gpu_hour"]), "deposit": amount(row["deposit"])}
        for row in found["data"]
    ]
    names = ("lease_id", "gpu_count", "share_ppm", "at_most", "deposit", "bids", "closes_at")
    tell(found, columns(rows, names), as_json=as_json)


@app.command("place", epilog="Example: tallystick bid place lease_1f0c... offer_1f0c... 1.90")
def place(
    lease_id: LeaseId,
    offer_id: OfferId,
    price: Price,
    device: Annotated[
        list[str] | None, typer.Option(help="Of the offer's node; else free ones.")
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Bid for a request with an offer of yours; the deposit is held until somebody has won."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: Any = {"offer_id": offer_id, "price_per_gpu_hour": credits_of(price)}
    if device:
        body["device_ids"] = device
    told = remote.ask(lambda c: c.submit_bid(lease_id, body, idempotency_key=remote.key))
    tell(told, _facts(told), as_json=as_json)


@app.command("list", epilog="Example: tallystick bid list --lease lease_1f0c...")
def list_all(
    lease: Annotated[str | None, typer.Option(help="Bids for this request of yours.")] = None,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Your bids and what became of them, or all bids of a request of yours."""
    remote = Remote(url, api_key)
    if lease is None:
        found = remote.list(lambda c, size, cursor: c.list_bids(limit=size, cursor=cursor), limit)
    else:
        found = remote.list(
            lambda c, size, cursor: c.list_auction_bids(lease, limit=size, cursor=cursor), limit
        )
    rows = [
        {**row, "price": amount(row["price_per_gpu_hour"]), "deposit": amount(row["deposit"])}
        for row in found["data"]
    ]
    names = ("bid_id", "lease_id", "price", "state", "deposit", "deposit_state", "expires_at")
    tell(found, columns(rows, names), as_json=as_json)


@app.command("withdraw", epilog="Example: tallystick bid withdraw lease_1f0c... bid_1f0c...")
def withdraw(
    lease_id: LeaseId,
    bid_id: BidId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Take a bid back; its deposit comes back with it."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.withdraw_bid(lease_id, bid_id, {}, idempotency_key=remote.key))
    tell(told, _facts(told), as_json=as_json)


@app.command("accept", epilog="Example: tallystick bid accept lease_1f0c... bid_1f0c...")
def accept(
    lease_id: LeaseId,
    bid_id: BidId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Choose a bid of a request whose winner you pick."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.accept_bid(lease_id, bid_id, {}, idempotency_key=remote.key))
    tell(told, _facts(told), as_json=as_json)


@app.command("set", epilog="Example: tallystick bid set lease_1f0c... 1.60")
def set_standing(
    lease_id: LeaseId,
    price: Price,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Raise or lower the standing bid of an interruptible lease."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: Any = {"bid": credits_of(price)}
    told = remote.ask(lambda c: c.set_standing_bid(lease_id, body, idempotency_key=remote.key))
    tell(told, _facts(told), as_json=as_json)


@app.command("show", epilog="Example: tallystick bid show lease_1f0c...")
def show(
    lease_id: LeaseId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """The standing bid of a lease, and the one to beat."""
    told = Remote(url, api_key).ask(lambda c: c.read_standing_bid(lease_id))
    tell(told, _facts(told), as_json=as_json)


@app.command("prices", epilog="Example: tallystick bid prices --json")
def prices(
    pool: Annotated[str | None, typer.Option(help="In this pool only: pool_...")] = None,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """What the winning standing bids pay now. Needs no key."""
    found = Remote(url, api_key).ask(lambda c: c.read_market_prices(pool_id=pool))
    rows = [
        {**row, "lowest": amount(row["lowest"]), "highest": amount(row["highest"])}
        for row in found["data"]
    ]
    names = ("gpu_class", "holding", "lowest", "highest")
    tell(found, columns(rows, names), as_json=as_json)


@app.command("modules", epilog="Example: tallystick bid modules")
def modules(url: Url = None, api_key: ApiKey = None, as_json: AsJson = False) -> None:
    """The pricing modules of the installation, plug-ins too. Needs no key."""
    found = Remote(url, api_key).ask(lambda c: c.list_pricing_modules())
    tell(found, columns(found["data"], ("pricing", "kind", "meaning")), as_json=as_json)


@app.command(
    "offer",
    epilog="Example: tallystick bid offer offer_1f0c... --floor 0.90 --reserved 3:1.80:0.5",
)
def offer(
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
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Set the price list of an offer; what is not named is not offered any more."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: Any = {"reserved": [_line(each) for each in reserved or []]}
    if floor is not None:
        body["interruptible_floor"] = credits_of(floor)
    told = remote.ask(lambda c: c.set_offer_prices(offer_id, body, idempotency_key=remote.key))
    shown = {**told, "reserved": "; ".join(map(_line_told, told["reserved"]))}
    tell(told, _facts(shown), as_json=as_json)


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


def _facts(told: Mapping[str, Any]) -> Any:
    """Amounts as a person writes them."""
    shown = {
        name: amount(value) if isinstance(value, dict) and "units" in value else value
        for name, value in told.items()
    }
    return facts(shown)
