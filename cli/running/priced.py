"""What `tallystick run` asks for: which part of a GPU, and at which price at most.

    no --max-price  =>  the price of the node that a quote names for this renter and this job

The quote is the matcher's own answer: it knows with what the renter can pay, and what fits.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cli.remote import Remote, credits_of, ppm_of
from cli.terminal import AnswerIsNo, InputUnusable, amount
from cli.work_options import ANY_PRICE

if TYPE_CHECKING:
    from tallystick_client import Client
    from tallystick_client.forms import JobQuoteRequest, LeaseRequest, Money

PPM = 1_000_000


def any_price(max_price: str | None) -> Money:
    """The highest price that the renter sets, else the highest that there is. Raises
    InputUnusable.
    """
    return credits_of(max_price or ANY_PRICE)


def ask_for(
    remote: Remote, body: LeaseRequest, part: str | None, memory: int | None, *, is_capped: bool
) -> None:
    """Write the share into a request, and unless its renter has set one, the highest price. Raises
    AnswerIsNo, InputUnusable.
    """
    job: Any = body["job"]
    share_ppm = PPM if part is None else ppm_of(part)
    if memory is not None:
        whole = {**job, "share_ppm": PPM, "mem_ppm": PPM, "constraints": {"memory_mib": memory}}
        share_ppm = share_of(memory, _place(remote, body, whole).get("memory_mib"))
    constraints: dict[str, Any] = {} if memory is None else {"memory_mib": memory}
    if share_ppm < PPM:
        # Memory is parted, compute is shared: what a program that asks for a part expects.
        constraints["mode"] = "memory"
    job |= {"share_ppm": share_ppm, "mem_ppm": share_ppm}
    job |= {"constraints": constraints} if constraints else {}
    if not is_capped:
        job["max_price_per_gpu_hour"] = _place(remote, body, job)["price_per_gpu_hour"]


def _place(remote: Remote, body: LeaseRequest, job: Any) -> Any:
    """The node that the job would get; else the one that it would get with more money or once
    others let go of it; else the cheapest that is for rent, for the server to say
    what else is missing. Raises AnswerIsNo.
    """
    asked: JobQuoteRequest = {"job": job}
    if "funds" in body:
        asked["funds"] = body["funds"]
    told: Any = remote.ask(lambda c: c.quote_job(asked))
    return told.get("offered") or told.get("nearest") or _cheapest(remote, job["models"])


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
    shares = int(job["gpu_count"]) * int(job["share_ppm"])
    hour = {"asset": "CREDIT", "units": str(-(-int(price["units"]) * shares // PPM))}
    held = amount(body.get("funds") or hour)
    return (
        f"at most {amount(price)} per GPU-hour: {amount(hour)} an hour for what you ask;"
        f" {held} will be held for it, and what is not used comes back"
    )
