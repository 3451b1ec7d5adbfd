"""The small market with a tariff for resources, and leases whose renter agreed to maxima."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.jobs.job import existing_job
from domain.lease.work_commands import START
from domain.leasing.work import AcknowledgeCommand
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
    taken_up: bool = False,
    **job: Any,
) -> Scene:
    """A lease that runs since noon; its renter agreed to these maxima, by default to some for all
    that is priced. `taken_up`: an executor of the node acknowledged its work.
    """
    named = {one.meter: MOST for one in rates} if maxima is None else maxima
    asked = tuple(MeterMax(meter, credit(units)) for meter, units in named.items())
    reserved = (
        with_meters(market.scene({f"party:{account}:{source}": 10**18}), rates)
        .after(market.job(account_id=account, meter_maxima=asked, **job))
        .after(replace(market.request(funds=24 * 2_780_000), account_id=account))
        .after(market.reserve(offer=offer))
    )
    if taken_up:
        reserved = reserved.after(acknowledged(reserved))
    return reserved.after(market.ready)


EXECUTOR = "e0" * 8


def acknowledged(reserved: Scene) -> AcknowledgeCommand:
    """The node's executor takes up the work of the lease."""
    return AcknowledgeCommand(
        lease_id=market.LEASE,
        node_id=market.NODE,
        command=START,
        workload_sha256=existing_job(reserved, market.JOB).workload_sha256,
        executor=EXECUTOR,
        runner="process",
        at_us=market.NOON_US,
    )
