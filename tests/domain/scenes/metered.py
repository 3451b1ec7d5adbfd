"""The small market with a tariff for resources, and leases whose renter agreed to maxima."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.money import credit
from domain.prices.tariff import MeterMax, MeterRate, TariffPublished
from tests.domain.scenes import market
from tests.domain.scenes.market import RENTER
from tests.given import Scene

RATES = (
    MeterRate("cpu", credit(36_000), 3_600),
    MeterRate("storage", credit(1_000), 7),
    MeterRate("network", credit(10_000), 10**9),
)


def with_meters(scene: Scene, rates: tuple[MeterRate, ...] = RATES) -> Scene:
    """The same market under a tariff that prices CPU, storage and network; memory is free."""
    past = tuple(
        (stream, replace(fact, meters=rates) if isinstance(fact, TariffPublished) else fact)
        for stream, fact in scene.past
    )
    return replace(scene, past=past)


MOST = 10**11


def agreed(
    maxima: dict[str, int] | None = None,
    rates: tuple[MeterRate, ...] = RATES,
    *,
    source: str = "cash",
    offer: str = market.OFFER,
    account: str = RENTER,
    **job: Any,
) -> Scene:
    """A lease that runs since noon; its renter agreed to these maxima, by default to some for all
    that is priced.
    """
    named = {one.meter: MOST for one in rates} if maxima is None else maxima
    asked = tuple(MeterMax(meter, credit(units)) for meter, units in named.items())
    return (
        with_meters(market.scene({f"party:{account}:{source}": 10**18}), rates)
        .after(market.job(account_id=account, meter_maxima=asked, **job))
        .after(replace(market.request(funds=24 * 2_780_000), account_id=account))
        .after(market.reserve(offer=offer))
        .after(market.ready)
    )
