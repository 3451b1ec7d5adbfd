"""Further ways of a coalition: escrows that accounts share, auctions, meters beside GPU time,
cash-outs.

Each does what commands let a party do, and says nothing when it is refused.
"""

from __future__ import annotations

import re
from dataclasses import replace

from domain.duration import HOUR_US
from domain.income.cash_out import (
    CancelCashOut,
    ConfirmCashOutPaid,
    ConfirmCashOutSent,
    RequestCashOut,
    ReturnCashOut,
    StartCashOut,
    cash_out_of,
)
from domain.income.maturity import SetPaymentMode, earnings_of
from domain.lease.lease import LATE_WINDOW_US, ReadyLease, RequestLease, TopUpLease, lease_of
from domain.leasing.bidding import PlaceBid, award
from domain.leasing.escrow_sharing import FundEscrow, ReturnEscrow
from domain.leasing.other_resources import PATIENCE_US, AccrueResource
from domain.market.auction import OpenAuction, WithdrawBid, auction_of
from domain.metering.resources import MeteredRow
from domain.money import credit
from domain.prices.tariff import MeterMax
from domain.storage.volume import ChargeVolume, DeleteVolume, ProvisionVolume, volume_of
from ledger.books.books import CUSTOMERS_CASH
from tests.domain.adversary.network import PRICE, REGION, Network

METER = "network"
BIDDING_US = 60_000_000


def share_escrow(
    network: Network, renter: str, depositor: str, node: str, credits: tuple[int, int], leases: int
) -> list[str]:
    """Leases of one job that draw on what two accounts put in; the names of those that run then."""
    asked = network.job_of(renter, client=True)
    if not network.try_(asked, _fund(network, asked.job_id, renter, credits[0])):
        return []
    network.shared.append(asked.job_id)
    network.try_(_fund(network, asked.job_id, depositor, credits[1]))
    return [
        one for one in (_drawing(network, asked.job_id, renter, node) for _ in range(leases)) if one
    ]


def _fund(network: Network, job_id: str, account: str, units: int) -> FundEscrow:
    return FundEscrow(job_id=job_id, account_id=account, amount=credit(units), at_us=network.now_us)


def _drawing(network: Network, job_id: str, renter: str, node: str) -> str | None:
    lease_id, free = network.name("lease"), network.free(node)
    if free is None or not network.try_(
        RequestLease(
            lease_id=lease_id,
            job_id=job_id,
            account_id=renter,
            term_us=None,
            funds=None,
            at_us=network.now_us,
        ),
        network.reservation(lease_id, node, "cash", free, "lowest_cost/1"),
        ReadyLease(lease_id=lease_id, node_id=node, endpoint=None, at_us=network.now_us),
    ):
        return None
    network.leases.append(lease_id)
    return lease_id


def return_escrow(network: Network, job_id: str) -> None:
    network.try_(ReturnEscrow(job_id=job_id, at_us=network.now_us, by_owner=True))


def top_up(network: Network, lease_id: str, account: str, units: int) -> None:
    """Any account puts more into the escrow of a lease."""
    network.try_(
        TopUpLease(
            lease_id=lease_id, account_id=account, amount=credit(units), at_us=network.now_us
        )
    )


def auction(
    network: Network, renter: str, pricing: str, bids: list[tuple[str, int]], *, leaves: bool
) -> str | None:
    """Owners bid (node, price) for a lease; the lowest may leave after the closing, and forfeits
    its deposit. The name of the lease that runs then.
    """
    lease_id, asked = network.name("lease"), network.job_of(renter, client=True)
    closes_us = network.now_us + BIDDING_US
    if not network.try_(
        asked,
        RequestLease(
            lease_id=lease_id,
            job_id=asked.job_id,
            account_id=renter,
            term_us=None,
            funds=credit(PRICE * 5),
            pricing=pricing,
            at_us=network.now_us,
        ),
        OpenAuction(
            lease_id=lease_id, pricing=pricing, closes_at_us=closes_us, at_us=network.now_us
        ),
    ):
        return None
    for node, price in bids:
        _bid(network, lease_id, node, price)
    network.now_us = closes_us
    standing = auction_of(network, lease_id).bids.values()
    lowest = min(standing, key=lambda one: (one.price_per_gpu_hour.units, one.number), default=None)
    if leaves and lowest is not None:
        network.do(
            WithdrawBid(
                lease_id=lease_id,
                bid_id=lowest.bid_id,
                account_id=lowest.account_id,
                by="m",
                at_us=network.now_us,
            )
        )
    won = award(network, lease_id, None, network.now_us)
    if won is None:
        return None
    node = auction_of(network, lease_id).bids[won[0]].node_id
    ready = ReadyLease(lease_id=lease_id, node_id=node, endpoint=None, at_us=network.now_us)
    if not network.try_(*won[1], ready):
        return None
    network.leases.append(lease_id)
    return lease_id


def _bid(network: Network, lease_id: str, node: str, price: int) -> None:
    free = network.free(node)
    if free is None:
        return
    network.try_(
        PlaceBid(
            lease_id=lease_id,
            bid_id=network.name("bid"),
            account_id=network.owner_of[node],
            provider_id=f"prov_{node}",
            offer_id=f"{node}_cash",
            device_ids=(free,),
            price_per_gpu_hour=credit(price),
            at_us=network.now_us,
        )
    )


def rent_metered(network: Network, renter: str, node: str, pay_with: str, most: int) -> str | None:
    """A lease whose renter agreed to pay so much for what goes over the network."""
    maxima = (MeterMax(METER, credit(most)),)
    asked = replace(network.job_of(renter, client=True), meter_maxima=maxima)
    return network.run(asked, node, pay_with, PRICE * 2)


def meter_bytes(network: Network, lease_id: str, units: int) -> None:
    """The node signs what its owner wants: it went over the network, a micro-credit a byte."""
    lease = lease_of(network, lease_id)
    if lease.opened is None or lease.reserved is None:
        return
    from_us = lease.opened.opened_at_us
    to_us = min(from_us + HOUR_US, lease.window_end_us)
    if from_us >= to_us:
        return
    network.now_us = max(network.now_us, to_us + PATIENCE_US)
    network.made += 1
    row = MeteredRow(
        position=network.made,
        boot="boot",
        mono_start_us=from_us,
        mono_end_us=to_us,
        from_us=from_us,
        to_us=to_us,
        received_us=network.now_us,
        quantity=units,
    )
    network.try_(_accrue(network, lease_id, (row,)))


def end_meters(network: Network, lease_id: str) -> None:
    """What is left of a meter's maximum goes back once the lease is over."""
    lease = lease_of(network, lease_id)
    if lease.closed is not None:
        network.now_us = max(network.now_us, lease.closed.closed_at_us + LATE_WINDOW_US)
        network.try_(_accrue(network, lease_id, ()))


def _accrue(network: Network, lease_id: str, rows: tuple[MeteredRow, ...]) -> AccrueResource:
    return AccrueResource(lease_id=lease_id, meter=METER, rows=rows, at_us=network.now_us)


def cash_out(network: Network, account: str) -> str | None:
    """All that an account earned leaves as real money; the name of the cash-out that was paid."""
    cash_out_id = network.name("out")
    if earnings_of(network, account).destination is None:
        mode = SetPaymentMode(
            account_id=account,
            mode="credits",
            billing_account_id=account,
            destination="bank",
            by="m",
            at_us=network.now_us,
        )
        network.try_(mode)
        from_us = earnings_of(network, account).destination_from_us
        network.now_us = max(network.now_us, from_us or 0)
    asked = RequestCashOut(
        cash_out_id=cash_out_id, account_id=account, amount=None, by="m", at_us=network.now_us
    )
    if not network.try_(asked):
        return None
    start = StartCashOut(
        cash_out_id=cash_out_id,
        processor="stripe",
        leaving=0,
        customers_cash=customers_cash(network),
        at_us=network.now_us,
    )
    if not network.try_(start):
        network.do(CancelCashOut(cash_out_id=cash_out_id, by="m", at_us=network.now_us))
        return None
    network.do(
        ConfirmCashOutSent(
            cash_out_id=cash_out_id, reference=cash_out_id, instructions=None, at_us=network.now_us
        )
    )
    network.do(ConfirmCashOutPaid(cash_out_id=cash_out_id, by="stripe", at_us=network.now_us))
    network.paid_in -= _units(network, cash_out_id)
    return cash_out_id


def return_cash_out(network: Network, cash_out_id: str) -> None:
    """The bank of the payee sends it back."""
    units = _units(network, cash_out_id)
    back = ReturnCashOut(
        cash_out_id=cash_out_id, returned=credit(units), reason="closed", at_us=network.now_us
    )
    if cash_out_of(network, cash_out_id).status == "paid" and network.try_(back):
        network.paid_in += units


def _units(network: Network, cash_out_id: str) -> int:
    asked = cash_out_of(network, cash_out_id).requested
    assert asked is not None
    return asked.amount.units


def customers_cash(network: Network) -> int:
    """As the books count it: what customers paid for good and have not spent."""
    found = re.compile(CUSTOMERS_CASH)
    return sum(units for name, units in network.balances.items() if found.search(name))


def keep_volume(network: Network, account: str, hours: int) -> str | None:
    """Disk in the region that the first owner administers, charged for some hours; its name."""
    volume_id = network.name("volume")
    if not network.try_(
        ProvisionVolume(
            volume_id=volume_id,
            name="v",
            account_id=account,
            project_id=None,
            region_id=REGION,
            size_gib=1,
            by="m",
            at_us=network.now_us,
        )
    ):
        return None
    network.volumes.append(volume_id)
    for _ in range(hours):
        network.now_us += HOUR_US
        network.try_(ChargeVolume(volume_id=volume_id, at_us=network.now_us))
    return volume_id


def delete_volume(network: Network, volume_id: str) -> None:
    made = volume_of(network, volume_id).provisioned
    assert made is not None
    network.try_(
        DeleteVolume(volume_id=volume_id, account_id=made.account_id, by="m", at_us=network.now_us)
    )
