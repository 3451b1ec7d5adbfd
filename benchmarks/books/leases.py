"""The facts by which a lease of one whole device comes about, made and not decided.

`names` is what they have in common: lease, job, account, client, project, user, `at_us`.
"""

from __future__ import annotations

from typing import Any

from domain.gpu_time import GPU_HOUR_US
from domain.lease import lease
from domain.lease.funds import EscrowPart
from domain.metering.counting import Watermark
from domain.money import PPM, Amount, credit
from domain.prices.charge_split import NOTHING, Parts, peel


def requested(
    names: dict[str, Any], price_max: Amount, funds: Amount | None
) -> lease.LeaseRequested:
    """A request that asks for nothing but one device."""
    return lease.LeaseRequested(
        **names,
        gpu_count=1,
        share_ppm=PPM,
        mem_ppm=PPM,
        models=(),
        max_price_per_gpu_hour=price_max,
        funds=funds,
        refill=False,
        overflow=False,
        meter_maxima=(),
        volumes=(),
        datasets=(),
        pay_with=None,
        term_us=None,
        sla_class=None,
        key_id=None,
        restart_of=None,
        constraints=None,
        encryption_key=None,
        remoting_session_id=None,
        split_label=None,
        route_id=None,
        pricing=None,
        months=None,
        part=None,
        attempt=None,
        run_due_us=None,
        gang_id=None,
        start_timeout_us=None,
        escrow_id=None,
    )


def reserved(
    names: dict[str, Any],
    offer: dict[str, Any],
    device_id: str,
    prices: tuple[int, int],
    hours: int,
) -> lease.LeaseReserved:
    """`offer`: node, provider, its account and the offer. `prices`: units an hour, and the usage
    fee in it. The escrow holds so many hours, paid in cash.
    """
    price, fee = prices
    return lease.LeaseReserved(
        **names,
        **offer,
        device_ids=(device_id,),
        share_ppm=PPM,
        mem_ppm=PPM,
        gpu_class="datacenter",
        price_per_gpu_hour=credit(price),
        pay_with="cash",
        own=False,
        tariff_version=1,
        fee_per_gpu_hour=credit(fee),
        provider_share_ppm=500_000,
        burn_share_ppm=0,
        escrow=(EscrowPart("cash", credit(hours * price)),),
        mode="whole",
        interruptible=False,
        meter_maxima=(),
        owners=(),
        counted=(),
        quotas=(),
        split=None,
        client_account_id=None,
        federated=None,
        sla_class=None,
        prepaid=None,
        gang_id=None,
        pool_id=None,
        mig=None,
        reclaim_window_us=None,
        quote_id=None,
        by=None,
    )


def parts_of(prices: tuple[int, int], hours: int) -> Parts:
    """Who gets what of so many hours at the full price."""
    price, fee = prices
    return peel(hours * price, price, fee, 500_000, 0) if hours else NOTHING


def accrued(
    names: dict[str, Any],
    placed: dict[str, Any],
    device_id: str,
    prices: tuple[int, int],
    lane: int,
    began_us: int,
    hour: int,
) -> lease.UsageAccrued:
    """A whole hour at the full price. `names`: lease, account, client, project and user. `placed`:
    the node and the account of its provider. `prices`: as in `reserved`.
    """
    price, _ = prices
    used_us, until_us = (hour + 1) * GPU_HOUR_US, began_us + (hour + 1) * GPU_HOUR_US
    before, parts = parts_of(prices, hour), parts_of(prices, hour + 1)
    return lease.UsageAccrued(
        **names,
        **placed,
        hour_index=hour,
        until_us=until_us,
        lane=lane,
        usage_position=hour + 1,
        resume_position=hour + 1,
        ppm_us=used_us * PPM,
        gpu_us=used_us,
        gpu_us_new=GPU_HOUR_US,
        charge=credit((hour + 1) * price),
        charge_new=credit(price),
        parts=parts,
        parts_new=parts - before,
        drawn=(EscrowPart("cash", credit(price)),),
        watermarks=(Watermark(device_id, "boot", used_us, until_us, used_us),),
        refused=(),
        at_us=until_us,
        client_account_id=None,
        owners=(),
        federated=None,
        owed=None,
        escrow_id=None,
    )
