"""What one's own hardware costs: the usage fee of its class, an hour and GPU, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.duration import HOUR_US
from domain.fleet.device import DeviceRegistered
from domain.lease.lease import AccrueUsage, LeaseSettled, UsageAccrued
from domain.money import credit
from tests.domain.scenes.market import (
    LEASE,
    NOON_US,
    OWNER,
    close,
    job,
    ready,
    request,
    reserve,
    scene,
    settle,
    usage,
)
from tests.given import Scene


def _own_lease(gpu_class: str, gpus: int, hours: int) -> Scene:
    """The owner's job on the owner's node, for whole hours."""
    market = scene({f"party:{OWNER}:cash": 100_000_000})
    devices = tuple(
        (stream, replace(fact, gpu_class=gpu_class) if type(fact) is DeviceRegistered else fact)
        for stream, fact in market.past
    )
    where = (
        replace(market, past=devices)
        .after(job(gpus, account_id=OWNER))
        .after(replace(request(term_us=hours * HOUR_US), account_id=OWNER))
        .after(reserve(gpus))
        .after(ready)
    )
    for hour in range(hours):
        rows = tuple(
            usage(hour * HOUR_US, (hour + 1) * HOUR_US, f"GPU-{gpu}", hour + 1)
            for gpu in range(gpus)
        )
        if hour < hours - 1:
            where = where.after(
                AccrueUsage(
                    lease_id=LEASE,
                    lane=1,
                    usage_position=hour + 1,
                    rows=rows,
                    at_us=NOON_US + (hour + 1) * HOUR_US,
                )
            )
    end_us = hours * HOUR_US
    return where.after(close(end_us, "job", 3)).after(settle(end_us, rows))


@pytest.mark.parametrize("gpus", [1, 4])
@pytest.mark.parametrize(
    ("gpu_class", "per_gpu_hour"),
    [("development", 50_000), ("professional", 100_000), ("datacenter", 250_000)],
)
def test_own_hardware_pays_its_class_fee_per_hour_and_gpu(
    gpu_class: str, per_gpu_hour: int, gpus: int
) -> None:
    """C-20: Development 0.05, Professional 0.10, Datacenter 0.25 credits, charged to the owner."""
    facts = [fact for _, fact in _own_lease(gpu_class, gpus, hours=3).past]
    (settled,) = (fact for fact in facts if isinstance(fact, LeaseSettled))
    assert settled.charge == credit(3 * gpus * per_gpu_hour)
    assert settled.account_id == OWNER
    accrued = [fact for fact in facts if isinstance(fact, UsageAccrued)]
    assert [fact.parts_new.fee for fact in accrued] == 3 * [gpus * per_gpu_hour]
    assert all(fact.parts.total == fact.parts.fee for fact in accrued)
