"""Charges to be corrected: a lease of some hours, billed hour by hour, in a world with books."""

from __future__ import annotations

from dataclasses import replace

from domain.corrections.dispute import Claim, OpenDispute, RuleDispute
from domain.duration import HOUR_US
from domain.income.adjustment import (
    BURN_DUE,
    AdjustmentBooked,
    ChargedLine,
    Unburned,
    UnburnedCharge,
)
from domain.income.maturity import MatureEarnings, SetMaturityWindow, SweepEarnings
from domain.lease.lease import AccrueUsage
from domain.prices.tariff import TariffPublished
from domain.stream import Stream
from tests.domain.scenes import market
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.market import NOON_US, OFFER, OWNER, RENTER

ARBITER = "acct_operator"
HOLDBACK, PAYABLE, EARNED, OWED = (
    f"party:{OWNER}:{part}" for part in ("holdback", "payable", "earned", "owed")
)
RESERVE = "dispute:dispute_1"
CASH = {f"party:{RENTER}:cash": 100_000_000}


def billed(
    hours: int = 3,
    *,
    balances: dict[str, int] | None = None,
    offer: str = OFFER,
    gpus: int = 1,
    burn_share_ppm: int = 0,
    provider_share_ppm: int = 500_000,
    used_us: int = HOUR_US,
) -> Booked:
    """A lease that has run for whole hours since noon, each of them used for `used_us` and billed
    two seconds after its end.
    """
    held = dict(CASH if balances is None else balances)
    funds = sum(units for name, units in held.items() if name.startswith("party:"))
    world = Booked.of(market.scene(held))
    tariff = world.state(Stream("tariff", "network")).published[-1]
    world._states[Stream("tariff", "network")] = type(world.state(Stream("tariff", "network")))(
        (_priced(tariff, burn_share_ppm, provider_share_ppm),)
    )
    world.do(market.job(gpus))
    world.do(market.request(funds=min(funds, 90_000_000)))
    world.do(market.reserve(gpus, offer))
    world.do(market.ready)
    for hour in range(hours):
        accrue(world, hour, gpus, used_us)
    return world


def _priced(tariff: TariffPublished, burn: int, provider: int) -> TariffPublished:
    return replace(tariff, burn_share_ppm=burn, provider_share_ppm=provider)


def accrue(world: Booked, hour: int, gpus: int = 1, used_us: int = HOUR_US) -> None:
    """Bill one hour of the lease."""
    start_us, end_us = hour * HOUR_US, (hour + 1) * HOUR_US
    rows = []
    for device in market.DEVICES[:gpus]:
        row = market.usage(start_us, end_us, device, position=hour + 1)
        rows.append(replace(row, available_us=used_us))
    at_us = NOON_US + end_us + 2_000_000
    world.do(
        AccrueUsage(
            lease_id=market.LEASE, lane=1, usage_position=hour + 1, rows=tuple(rows), at_us=at_us
        )
    )


def open_dispute(
    lines: list[ChargedLine], claimed: int | None = None, *, party: str = RENTER, at_us: int = 0
) -> OpenDispute:
    """A dispute over the whole of these lines, or so much of each; right after the last one."""
    claims = tuple(Claim(line=line, claimed=claimed or line.charge) for line in lines)
    return OpenDispute(
        dispute_id="dispute_1",
        claims=claims,
        party_account_id=party,
        claim_code="not_running",
        claim_sha256="ab" * 32,
        evidence=(),
        by="member_1",
        at_us=at_us or lines[-1].posted_at_us + 1,
    )


def rule(
    world: Booked, ppm: int, *, by: str = ARBITER, at_us: int = 0, read: Unburned | None = None
) -> RuleDispute:
    """`read`: what was read of burns before; else what there is now, when none has begun."""
    outcome = {0: "rejected", 1_000_000: "upheld"}.get(ppm, "split")
    return RuleDispute(
        dispute_id="dispute_1",
        outcome=outcome,
        upheld_ppm=ppm,
        lines=tuple(world.lines()),
        unburned=unburned(world) if read is None else read,
        arbiter_account_id=by,
        reason_sha256=None,
        by="member_9",
        at_us=at_us or NOON_US + 100 * HOUR_US,
    )


def unburned(world: Booked) -> Unburned:
    """What no burn covers of each line, where none has begun."""
    found = []
    for line in world.lines():
        booked = [
            fact
            for fact in world.facts(AdjustmentBooked)
            if fact.corrects_position == line.position
        ]
        taken = sum(one.units for fact in booked for one in fact.lines if one.account == BURN_DUE)
        due = sum(payee.units for payee in line.payees if payee.account == BURN_DUE)
        found.append(UnburnedCharge(line.position, due - taken, len(booked)))
    return Unburned(0, tuple(found))


def no_window(world: Booked) -> None:
    """The CloudBender preset: what is earned from now on is payable at once."""
    at_us = NOON_US - HOUR_US
    world.do(
        SetMaturityWindow(version=1, window_us=0, effective_from_us=at_us, by="op", at_us=at_us)
    )


def mature(world: Booked, at_us: int) -> None:
    """All that is held back becomes payable."""
    state = world.state(Stream("earnings", OWNER))
    gross = sum(
        -units
        for change in world.log[state.matured_through :]
        for account, units in world.booked(change.fact).items()
        if account == HOLDBACK and units < 0
    )
    world.do(
        MatureEarnings(
            account_id=OWNER,
            after_position=state.matured_through,
            through_position=len(world.log),
            through_us=0,
            gross=gross,
            at_us=at_us,
        )
    )


def sweep(world: Booked, at_us: int) -> None:
    world.do(SweepEarnings(account_id=OWNER, at_us=at_us))
