"""The facts by which a lease of one whole device comes about, made and not decided.

`names` is what they have in common: lease, job, account, client, project, user, `at_us`.
"""

from __future__ import annotations

from typing import Any

from domain.lease import lease
from domain.lease.funds import EscrowPart
from domain.money import PPM, Amount, credit


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
