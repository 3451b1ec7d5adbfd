"""What `tallystick run` asks for: which part of a GPU, and at which price at most.

    no --max-price  =>  the price of the node that a quote names for this renter and this job
    --mem           =>  the part of the GPU on which so much memory costs least an hour

The quote is the matcher's own answer: it knows with what the renter can pay, and what fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cli.remote import Remote, credits_of, ppm_of
from cli.terminal import AnswerIsNo, InputUnusable, amount, note
from cli.work_options import ANY_PRICE

if TYPE_CHECKING:
    from tallystick_client import Client
    from tallystick_client.forms import JobQuoteRequest, LeaseRequest, Money

PPM = 1_000_000
OFFERS_MAX = 1_000
SIZES_MAX = 8
"""The cheapest share is looked for among so many offers, and so many sizes of a GPU's memory."""


def any_price(max_price: str | None) -> Money:
    """The highest price that the renter sets, else the highest that there is. Raises
    InputUnusable.
    """
    return credits_of(max_price or ANY_PRICE)


@dataclass(frozen=True, slots=True)
class Found:
    """A node that a quote names for a share of its GPUs. `missing`: None, room or money."""

    share_ppm: int
    price_units: int
    missing: str | None = None

    @property
    def costs(self) -> int:
        """Micro-credits of an hour of one GPU's share, in millionths."""
        return self.share_ppm * self.price_units


def ask_for(
    remote: Remote,
    body: LeaseRequest,
    part: str | None,
    memory: int | None,
    max_price: str | None,
    *,
    waits: bool,
) -> None:
    """Write the share into a request, and unless its renter has set one, the highest price. The
    renter `waits`: rather for the cheapest. Raises AnswerIsNo, InputUnusable.
    """
    job: Any = body["job"]
    is_capped = max_price is not None
    if memory is None:
        shares = [PPM if part is None else ppm_of(part)]
    else:
        shares = _shares(remote, job["models"], memory)
    share_ppm, price = shares[0], None
    if not is_capped or len(shares) > 1:
        found = [
            one
            for share in shares
            for one in _quoted(remote, body, {**job, **_part(share, memory)}, share)
        ]
        chosen = _chosen(found, int(job["gpu_count"]), waits=waits, is_capped=is_capped)
        if chosen is not None:
            share_ppm = chosen.share_ppm
            price = {"asset": "CREDIT", "units": str(chosen.price_units)}
    job |= _part(share_ppm, memory)
    if not is_capped:
        cap = price or _cheapest(remote, job["models"])["price_per_gpu_hour"]
        job["max_price_per_gpu_hour"] = cap


def _part(share_ppm: int, memory: int | None) -> dict[str, Any]:
    """A share as a job asks for it."""
    constraints: dict[str, Any] = {} if memory is None else {"memory_mib": memory}
    if share_ppm < PPM:
        # Memory is parted, compute is shared: what a program that asks for a part expects.
        constraints["mode"] = "memory"
    told: dict[str, Any] = {"share_ppm": share_ppm, "mem_ppm": share_ppm}
    return told | ({"constraints": constraints} if constraints else {})


def _shares(remote: Remote, models: list[str], memory: int) -> list[int]:
    """Which part so many MiB are of the GPUs on offer, once for each size of them, those first that
    would cost least. Raises AnswerIsNo, InputUnusable.
    """
    cheapest: dict[int, int] = {}
    for model in models or (None,):
        offers = remote.list(partial(_offers_with, model, memory), OFFERS_MAX)["data"]
        for offer in offers:
            size = int(offer.get("memory_mib") or 0)
            if size >= memory:
                price = int(offer["price_per_gpu_hour"]["units"])
                cheapest[size] = min(price, cheapest.get(size, price))
    if not cheapest:
        return [share_of(memory, _cheapest(remote, models).get("memory_mib"))]
    costs = [(share_of(memory, size) * price, size) for size, price in cheapest.items()]
    return [share_of(memory, size) for _, size in sorted(costs)[:SIZES_MAX]]


def _quoted(remote: Remote, body: LeaseRequest, job: Any, share_ppm: int) -> list[Found]:
    """The node that the job would get, and the one that it would get with more money or once others
    let go of it. Raises AnswerIsNo.
    """
    asked: JobQuoteRequest = {"job": job}
    if "funds" in body:
        asked["funds"] = body["funds"]
    told: Any = remote.ask(lambda c: c.quote_job(asked))
    return [
        Found(share_ppm, int(one["price_per_gpu_hour"]["units"]), one.get("missing"))
        for one in (told.get("offered"), told.get("nearest"))
        if one is not None
    ]


def _chosen(found: list[Found], gpus: int, *, waits: bool, is_capped: bool) -> Found | None:
    """The cheapest that is free, else that others hold, else that takes more money; for a renter
    who `waits` and has set no price the cheapest of the first two. What it costs is told where a
    cheaper one is busy.
    """
    free, busy, dear = (
        min((one for one in found if one.missing == missing), key=_costs, default=None)
        for missing in (None, "room", "money")
    )
    if free is None or busy is None or busy.costs >= free.costs:
        return free or busy or dear
    of_free, of_busy = (
        amount(_hour(one.price_units, gpus * one.share_ppm)) for one in (free, busy)
    )
    if waits and not is_capped:
        note(f"waiting for the cheapest: {of_busy} an hour; what is free now costs {of_free}")
        return busy
    waiting = "" if is_capped else "; --wait-for-gpu waits for it"
    note(f"what is free now costs {of_free} an hour; the cheapest is busy, at {of_busy}{waiting}")
    return free


def _costs(one: Found) -> int:
    return one.costs


def _cheapest(remote: Remote, models: list[str]) -> Any:
    """The cheapest open offer of an allowed model. Raises AnswerIsNo."""
    offers: list[Any] = []
    for model in models or (None,):
        offers += remote.ask(partial(_first_offer, model))["data"]
    if not offers:
        raise AnswerIsNo(
            "no match: nothing of this kind is for rent\ntallystick offer list shows what is"
        )
    return min(offers, key=lambda offer: int(offer["price_per_gpu_hour"]["units"]))


def _offers_with(model: str | None, memory: int, client: Client, page: dict[str, Any]) -> Any:
    return client.search_offers(model=model, memory_mib=memory, **page)


def _first_offer(model: str | None, client: Client) -> Any:
    return client.search_offers(model=model, limit=1)


def share_of(memory_mib: int, whole_mib: int | None) -> int:
    """So many MiB as a part of a GPU, rounded up. Raises InputUnusable."""
    if not whole_mib:
        raise InputUnusable("the memory of these GPUs is not known: say -p FRACTION")
    if memory_mib > whole_mib:
        raise InputUnusable(f"{memory_mib} MiB: these GPUs have {whole_mib}")
    return -(-memory_mib * PPM // whole_mib)


def told(body: LeaseRequest) -> str:
    """What a request costs at most, before anything is held or paid."""
    job: Any = body["job"]
    price = job["max_price_per_gpu_hour"]
    hour = _hour(int(price["units"]), int(job["gpu_count"]) * int(job["share_ppm"]))
    held = amount(body.get("funds") or hour)
    return (
        f"at most {amount(price)} per GPU-hour: {amount(hour)} an hour for what you ask;"
        f" {held} will be held for it, and what is not used comes back"
    )


def _hour(price_units: int, share_ppm: int) -> dict[str, str]:
    """What an hour of a share costs, rounded up."""
    return {"asset": "CREDIT", "units": str(-(-price_units * share_ppm // PPM))}
