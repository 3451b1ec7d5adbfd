"""A small market for tests: one provider with an active node of four A100s on offer, one renter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.fleet.device import DeviceRegistered
from domain.fleet.node import (
    DeviceSpec,
    HostSpec,
    NodeActivated,
    NodeAdmitted,
    NodeJoinRequested,
    NodeKeyConfirmed,
    NodeSpecReported,
)
from domain.fleet.provider import ProviderRegistered
from domain.jobs.job import SubmitJob
from domain.lease.lease import (
    CloseLease,
    LeaseOpened,
    ReadyLease,
    RequestLease,
    ReserveLease,
    SettleLease,
)
from domain.market.offer import OfferPublished, OfferTerms
from domain.metering.counting import UsageRow
from domain.money import Asset, credit
from domain.parties.account import AccountOpened
from domain.prices.tariff import CLOUDBENDER, TariffPublished
from domain.stream import Stream
from tests.given import Scene

NOON_US = 1_795_176_000_000_000
HOUR_US = 3_600_000_000
RENTER, OWNER, PROVIDER, NODE = "acct_renter", "acct_owner", "prov_a", "node_aaaaaaaa"
JOB, LEASE, OFFER, BURN_OFFER = "job_1", "lease_11111111", "offer_cash", "offer_burn"
DEVICES = ("GPU-0", "GPU-1", "GPU-2", "GPU-3")

lease_stream = Stream("lease", LEASE)


def scene(balances: dict[str, int] | None = None) -> Scene:
    """The market at noon; the renter has 100 credits of cash unless told otherwise."""
    node = Stream("node", NODE)
    at: dict[str, Any] = {"at_us": NOON_US - HOUR_US}
    devices = tuple(DeviceSpec(device, "nvidia", "A100", 81_920) for device in DEVICES)
    host = HostSpec("x86_64", "linux")
    offer = OfferPublished(
        offer_id=OFFER,
        provider_id=PROVIDER,
        node_id=NODE,
        price_per_gpu_hour=credit(2_780_000),
        pay_with="cash",
        fractions=True,
        available_until_us=None,
        **at,
        terms=OfferTerms(),
    )
    parties = (
        (
            Stream("account", account),
            AccountOpened(account_id=account, kind="party", opened_by="op", **at),
        )
        for account in (RENTER, OWNER)
    )
    return (
        Scene()
        .given(
            *parties,
            (
                Stream("tariff", "network"),
                TariffPublished(
                    version=1,
                    usage_fees=CLOUDBENDER.usage_fees,
                    provider_share_ppm=CLOUDBENDER.provider_share_ppm,
                    burn_share_ppm=CLOUDBENDER.burn_share_ppm,
                    effective_from_us=0,
                    by="op",
                    at_us=at["at_us"],
                    split=None,
                    federated=None,
                    device_fee_per_month=None,
                    storage_node_per_hour=None,
                    meters=(),
                    sla=(),
                    notice_us=0,
                    free_start=None,
                ),
            ),
            (
                Stream("provider", PROVIDER),
                ProviderRegistered(
                    provider_id=PROVIDER,
                    account_id=OWNER,
                    kind="physical",
                    payment_mode="credits",
                    **at,
                ),
            ),
            (
                node,
                NodeJoinRequested(
                    node_id=NODE,
                    provider_id=PROVIDER,
                    region_id="region_a",
                    client_id=None,
                    owner_account_id=None,
                    key_id="k",
                    public_key="00",
                    token_sha256="00",
                    agent="0.1.0",
                    **at,
                ),
            ),
            (
                node,
                NodeSpecReported(
                    node_id=NODE, devices=devices, host=host, hardware=None, agent="0.1.0", **at
                ),
            ),
            (node, NodeKeyConfirmed(node_id=NODE, key_id="k", public_key="00", by="o", **at)),
            (node, NodeAdmitted(node_id=NODE, by="op", **at, waived=())),
            (node, NodeActivated(node_id=NODE, by="op", **at)),
            *(
                (
                    Stream("device", device),
                    DeviceRegistered(
                        device_id=device,
                        node_id=NODE,
                        provider_id=PROVIDER,
                        vendor="nvidia",
                        model="A100",
                        gpu_class="datacenter",
                        memory_mib=81_920,
                        **at,
                        kind="gpu",
                        memory="dedicated",
                        is_divisible=True,
                        capacity_asset=Asset.GPU_MS,
                    ),
                )
                for device in DEVICES
            ),
            (Stream("offer", OFFER), offer),
            (Stream("offer", BURN_OFFER), replace(offer, offer_id=BURN_OFFER, pay_with="burn")),
        )
        .having({f"party:{RENTER}:cash": 100_000_000} if balances is None else balances)
    )


def job(gpus: int = 1, share_ppm: int = 1_000_000, **changes: object) -> SubmitJob:
    asked = SubmitJob(
        job_id=JOB,
        account_id=RENTER,
        client_id="direct",
        project_id="p",
        end_user_ref="u",
        kind="batch",
        image=None,
        command=("python", "train.py"),
        env_refs=(),
        gpu_count=gpus,
        share_ppm=share_ppm,
        mem_ppm=share_ppm,
        models=(),
        max_price_per_gpu_hour=credit(3_000_000),
        at_us=NOON_US,
    )
    return replace(asked, **changes)  # type: ignore[arg-type]


def request(term_us: int | None = None, funds: int | None = None) -> RequestLease:
    return RequestLease(
        lease_id=LEASE,
        job_id=JOB,
        account_id=RENTER,
        term_us=term_us,
        funds=None if funds is None else credit(funds),
        at_us=NOON_US,
    )


def reserve(gpus: int = 1, offer: str = OFFER) -> ReserveLease:
    return ReserveLease(
        lease_id=LEASE,
        rule="lowest_cost/1",
        fleet_position=1,
        candidates=(),
        considered=1,
        node_id=NODE,
        offer_id=offer,
        device_ids=DEVICES[:gpus],
        at_us=NOON_US,
    )


ready = ReadyLease(lease_id=LEASE, node_id=NODE, endpoint=None, at_us=NOON_US)


def opened(
    gpus: int = 1,
    share_ppm: int = 1_000_000,
    term_us: int | None = None,
    funds: int | None = None,
    balances: dict[str, int] | None = None,
    offer: str = OFFER,
    account: str = RENTER,
) -> Scene:
    """A lease that runs since noon."""
    asked = replace(request(term_us, funds), account_id=account)
    return (
        scene(balances)
        .after(job(gpus, share_ppm, account_id=account))
        .after(asked)
        .after(reserve(gpus, offer))
        .after(ready)
    )


def opening(where: Scene) -> LeaseOpened:
    return next(fact for _, fact in where.past if isinstance(fact, LeaseOpened))


def usage(from_us: int, to_us: int, device: str = "GPU-0", position: int = 1) -> UsageRow:
    """Honest time of one device, in microseconds after noon."""
    return UsageRow(
        position=position,
        device_id=device,
        boot="b",
        mono_start_us=10**9 + from_us,
        mono_end_us=10**9 + to_us,
        wall_start_us=NOON_US + from_us,
        wall_end_us=NOON_US + to_us,
        available_us=to_us - from_us,
        share_ppm=1_000_000,
        received_us=NOON_US + to_us,
    )


def close(after_us: int, party: str = "renter", code: int = 1) -> CloseLease:
    return CloseLease(
        lease_id=LEASE,
        closed_at_us=NOON_US + after_us,
        party=party,
        code=code,
        at_us=NOON_US + after_us,
    )


def settle(at_us: int, rows: tuple[UsageRow, ...] = (), position: int = 9) -> SettleLease:
    return SettleLease(
        lease_id=LEASE, lane=1, usage_position=position, rows=rows, at_us=NOON_US + at_us
    )
