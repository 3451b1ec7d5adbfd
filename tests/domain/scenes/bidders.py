"""The small market with more providers, each with a node of four A100s and credits to deposit."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from domain.duration import HOUR_US
from domain.lease.lease import ReadyLease
from domain.leasing.bidding import PlaceBid, award
from domain.market.auction import OpenAuction
from domain.money import credit
from domain.stream import Stream
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.market import LEASE, NOON_US, RENTER, job, request, scene

LETTERS = "abc"
OWNERS = {
    letter: "acct_owner" if letter == "a" else f"acct_owner_{letter}"
    for letter in "abcdefghijklmnopqrstu"
}
CLOSES_US = NOON_US + HOUR_US


def market(letters: str = LETTERS) -> Booked:
    """One provider for each letter; the renter has 100 credits, each bidder 1 earned and 1 paid."""
    base = scene({})
    for letter in letters[1:]:
        base = base.given(
            *(_of(letter, where, fact) for where, fact in scene({}).past if _is_supply(where))
        )
    held = {f"party:{RENTER}:cash": 100_000_000}
    for letter in letters:
        held |= {f"party:{OWNERS[letter]}:{source}": 1_000_000 for source in ("earned", "cash")}
    return Booked.of(base.having(held))


def _is_supply(where: Stream[Any]) -> bool:
    of_supply = where.kind in ("provider", "node", "device", "offer")
    return of_supply or (where.kind == "account" and where.id == OWNERS["a"])


def _of(letter: str, where: Stream[Any], fact: Any) -> tuple[Stream[Any], Any]:
    """The same fact of another provider."""

    def renamed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(renamed, value))
        if hasattr(value, "device_id"):
            return replace(value, device_id=renamed(value.device_id))
        if not isinstance(value, str):
            return value
        named = {
            "acct_owner": OWNERS[letter],
            "prov_a": f"prov_{letter}",
            "node_aaaaaaaa": f"node_{letter * 8}",
        }
        if value.startswith(("GPU-", "offer_")):
            return f"{value}-{letter}"
        return named.get(value, value)

    values = {field.name: renamed(getattr(fact, field.name)) for field in fields(fact)}
    return Stream(where.kind, renamed(where.id)), replace(fact, **values)


def asked(world: Booked, pricing: str = "reverse_auction", **terms: Any) -> Booked:
    """A request of one device with an auction open for an hour."""
    world.do(job())
    world.do(replace(request(), pricing=pricing))
    terms = {"closes_at_us": CLOSES_US, **terms}
    world.do(OpenAuction(lease_id=LEASE, pricing=pricing, at_us=NOON_US, **terms))
    return world


def bid(letter: str, price: int, **changes: Any) -> PlaceBid:
    """The provider's bid, with its first device."""
    suffix = "" if letter == "a" else f"-{letter}"
    placed = PlaceBid(
        lease_id=LEASE,
        bid_id=f"bid_{letter}",
        account_id=OWNERS[letter],
        provider_id=f"prov_{letter}",
        offer_id=f"offer_cash{suffix}",
        device_ids=(f"GPU-0{suffix}",),
        price_per_gpu_hour=credit(price),
        at_us=NOON_US,
    )
    return replace(placed, **changes)


def awarded(world: Booked, at_us: int = CLOSES_US, pick: str | None = None) -> str:
    """Award it now, as the job does; the bid that won."""
    found = award(world, LEASE, pick, at_us)
    assert found is not None
    bid_id, commands = found
    for command in commands:
        world.do(command)
    return bid_id


def started(world: Booked, letter: str, at_us: int = CLOSES_US) -> None:
    world.do(ReadyLease(lease_id=LEASE, node_id=f"node_{letter * 8}", endpoint=None, at_us=at_us))
