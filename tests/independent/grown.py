"""What else a network has beside rewards, week by week: a region of homes with its wait list, a
pool with components, volumes, datasets, leases that mount them and use other resources, stores and
reserved ports of a site, and edge devices. All of it is decided by the domain and books credits
only, so the rewards of the year are what they were without it.

    charged to renters == what provider, platform and burn got            at the end of every week
    fees of devices == what the network's revenue of devices got
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from domain.duration import HOUR_US, SECOND_US
from domain.fleet.growth import GrowthTerms, SetRegionGrowth
from domain.fleet.node import (
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    DeviceSpec,
    HostSpec,
    IssueJoinCode,
    JoinNode,
)
from domain.fleet.provider import OpenRegion, RegisterProvider
from domain.funds.deposit import ConfirmDeposit
from domain.jobs.job import SubmitJob
from domain.lease.lease import (
    CloseLease,
    ReadyLease,
    RequestLease,
    ReserveLease,
    SettleLease,
    UsageAccrued,
)
from domain.lease.mounts import VolumeMount
from domain.leasing.other_resources import PATIENCE_US, AccrueResource, ResourceAccrued
from domain.market.offer import PublishOffer
from domain.metering.counting import UsageRow
from domain.metering.report import lane_of
from domain.metering.resources import MeteredRow
from domain.money import credit
from domain.parties.account import AccountOpened
from domain.parties.plan import TEAM, SetAccountPlan
from domain.pools.component import RegisterComponent, ReportComponentHealth
from domain.pools.pool import DEFAULT_POLICY, CreatePool
from domain.prices.tariff import MARKETPLACE, NETWORK, MeterMax, TariffPublished, publish
from domain.regions.wait_list import JoinWaitList, LeaveWaitList, SetWaitListTerms
from domain.sites.datastore import AddDatastore, RemoveDatastore
from domain.sites.device_config import DeviceWork, SetDeviceConfig
from domain.sites.edge_device import (
    AddEdgeDevice,
    ChargeDeviceFee,
    DeviceFeeCharged,
    RemoveEdgeDevice,
    ReportEdgeDevice,
)
from domain.sites.inference import DeployDeviceConfig, ReportInference
from domain.sites.reservation import AddReservation, RemoveReservation
from domain.storage.dataset import PlaceDataset
from domain.storage.volume import (
    ChargeVolume,
    ConfirmErased,
    DeleteVolume,
    ProvisionVolume,
    VolumeCharged,
)
from domain.stream import Stream

if TYPE_CHECKING:
    from tests.independent.year import World

OWNER, RENTER = "acct_grown_owner", "acct_grown_renter"
PROVIDER, SITE, HOMES = "prov_grown", "region_site", "region_homes"
NODE, DEVICE, OFFER = "node_" + "a" * 32, "GPU-grown", "offer_grown"
POOL, EDGE = "pool_grown", "region_edge"
PRICE = 3_600_000
DEPOSIT = 100_000_000


def begin(world: World, at_us: int) -> None:
    """Accounts, prices, a site with a node, a region of homes and a pool."""
    at: dict[str, Any] = {"at_us": at_us}
    by: dict[str, Any] = {"by": "key_op", **at}
    for account_id in (OWNER, RENTER):
        fact = AccountOpened(account_id=account_id, kind="party", opened_by="key_op", **at)
        world.record(Stream("account", account_id), fact)
    tariff = publish(MARKETPLACE, version=1, effective_from_us=at_us, by="key_op", at_us=at_us)
    told = {row.name: getattr(tariff, row.name) for row in fields(tariff)}
    # As a fact: the year's first policy pays more than a tariff is published beside today.
    world.record(NETWORK, TariffPublished(**told))
    provider = RegisterProvider(
        provider_id=PROVIDER, account_id=OWNER, kind="physical", payment_mode="credits", **at
    )
    world.handle(provider)
    for region, setting in ((SITE, "datacenter"), (EDGE, "datacenter"), (HOMES, "edge")):
        opening = OpenRegion(
            region_id=region,
            provider_id=PROVIDER,
            name=region.replace("_", "-"),
            storage_mode="central" if region == EDGE else "local",
            setting=setting,
            admission="operator",
            allow_public_jobs=True,
            **at,
        )
        world.handle(opening)
    terms = GrowthTerms(workers_min=1_000, workers_max=2_000, owner_share_ppm=900_000)
    world.handle(SetRegionGrowth(region_id=HOMES, terms=terms, waitlisted=True, **by))
    enough = SetWaitListTerms(list_id=HOMES, threshold=100, first_user_administers=False, **by)
    world.handle(enough)
    for command in _joining(at, by):
        world.handle(command)
    pool = CreatePool(
        pool_id=POOL,
        account_id=OWNER,
        name="grown",
        policy=DEFAULT_POLICY,
        controller_address=None,
        **by,
    )
    world.handle(pool)
    world.handle(SetAccountPlan(account_id=OWNER, plan=TEAM, **by))


def _deposit(number: int, account_id: str, at: dict[str, Any]) -> ConfirmDeposit:
    return ConfirmDeposit(
        deposit_id=f"deposit_{account_id}_{number}",
        account_id=account_id,
        source="cash",
        amount=credit(DEPOSIT),
        reference=f"{account_id}/{number}",
        confirmed_by="key_op",
        **at,
    )


def _joining(at: dict[str, Any], by: dict[str, Any]) -> tuple[Any, ...]:
    code = "22" * 32
    return (
        IssueJoinCode(code_sha256=code, provider_id=PROVIDER, region_id=SITE, **by),
        JoinNode(
            code_sha256=code,
            node_id=NODE,
            key_id="nk_1",
            public_key="33" * 32,
            token_sha256="44" * 32,
            agent="test",
            client_id=None,
            devices=(DeviceSpec(DEVICE, "nvidia", "A100", 81_920),),
            host=HostSpec("x86_64", "linux"),
            **at,
        ),
        ConfirmNodeKey(node_id=NODE, key_id="nk_1", **by),
        AdmitNode(node_id=NODE, **by),
        ActivateNode(node_id=NODE, **by),
        PublishOffer(
            offer_id=OFFER,
            provider_id=PROVIDER,
            node_id=NODE,
            price_per_gpu_hour=credit(PRICE),
            pay_with="cash",
            fractions=True,
            available_until_us=None,
            **at,
        ),
    )


def week(world: World, number: int, start_us: int) -> None:
    """One more of each, and what the week before left is brought to its end."""
    at: dict[str, Any] = {"at_us": start_us}
    by: dict[str, Any] = {"by": "key_grown", **at}
    for who in (RENTER, OWNER):
        world.handle(_deposit(number, who, at))
    _homes(world, number, at, by)
    _pool(world, number, by)
    dataset = PlaceDataset(
        dataset_id=f"dataset_{number}",
        account_id=RENTER,
        name=f"corpus-{number}",
        region_ids=(SITE,),
        pinned=bool(number % 2),
        **by,
    )
    world.handle(dataset)
    _site(world, number, at, by)
    _volume_and_lease(world, number, at, by)
    check(world)


def _homes(world: World, number: int, at: dict[str, Any], by: dict[str, Any]) -> None:
    """Somebody waits for a region at home, and every second one gives up."""
    who = f"acct_home_{number:03d}"
    fact = AccountOpened(account_id=who, kind="party", opened_by="key_op", **at)
    world.record(Stream("account", who), fact)
    waits: dict[str, Any] = {"list_id": HOMES, "account_id": who, **by}
    world.handle(JoinWaitList(latitude_e6=52_520_000, longitude_e6=13_405_000, **waits))
    if number % 2 == 0:
        world.handle(LeaveWaitList(**waits))


def _pool(world: World, number: int, by: dict[str, Any]) -> None:
    named: dict[str, Any] = {"pool_id": POOL, "component_id": f"component_{number}", **by}
    gateway = RegisterComponent(
        kind="gateway", name=f"gateway-{number}", endpoint=None, licence_id=None, **named
    )
    world.handle(gateway)
    world.handle(ReportComponentHealth(health="well", detail="", **named))


def _site(world: World, number: int, at: dict[str, Any], by: dict[str, Any]) -> None:
    """A store and a reserved port for a week, and a device that runs the week's model."""
    named: dict[str, Any] = {"region_id": SITE, "machines": 1, **by}
    store = AddDatastore(
        datastore_id=f"store_{number}",
        name=f"store-{number}",
        kind="nfs",
        address="10.0.0.5",
        root_path="/exports",
        has_login=False,
        **named,
    )
    port = AddReservation(
        reservation_id=f"port_{number}",
        name=f"port-{number}",
        kind="port",
        host_name="site",
        port=8_888,
        **named,
    )
    if number > 1:
        world.handle(RemoveDatastore(datastore_id=f"store_{number - 1}", **by))
        world.handle(RemoveReservation(reservation_id=f"port_{number - 1}", **by))
        before = RemoveEdgeDevice(device_id=f"edge_{number - 1}", account_id=OWNER, **by)
        world.handle(before)
    world.handle(store)
    world.handle(port)
    device: dict[str, Any] = {"device_id": f"edge_{number}", "account_id": OWNER, **by}
    added = AddEdgeDevice(
        region_id=EDGE,
        name=f"gate-{number}",
        minion_id=f"minion-{number}",
        model="jetson-orin-nano",
        **device,
    )
    config = SetDeviceConfig(
        region_id=EDGE,
        name="counter",
        revision=number,
        work=DeviceWork(image=f"counter:{number}", model="models/counter", command=("run",)),
        **by,
    )
    deploy = DeployDeviceConfig(config="counter", **device)
    tells = ReportInference(
        deployment=1, boot_id="3f0c9a52", status="running", exit_code=None, **device
    )
    every: tuple[Any, ...] = (added, ReportEdgeDevice(**device), config, deploy, tells)
    for command in every:
        world.handle(command)
    charged = -1
    while charged != (charged := len(world.facts)):  # a day each time
        world.handle(ChargeDeviceFee(account_id=OWNER, **at))


def _volume_and_lease(world: World, number: int, at: dict[str, Any], by: dict[str, Any]) -> None:
    """A lease of an hour that mounts the week's volume; the volume of the week before ends."""
    start_us, volume, lease = at["at_us"], f"volume_{number}", f"lease_grown_{number}"
    provision = ProvisionVolume(
        volume_id=volume,
        name=volume,
        account_id=RENTER,
        project_id=None,
        region_id=SITE,
        size_gib=100,
        **by,
    )
    world.handle(provision)
    job = SubmitJob(
        job_id=f"job_grown_{number}",
        account_id=RENTER,
        client_id="direct",
        project_id="p",
        end_user_ref="u",
        kind="batch",
        image=None,
        command=("true",),
        env_refs=(),
        gpu_count=1,
        share_ppm=1_000_000,
        mem_ppm=1_000_000,
        models=(),
        max_price_per_gpu_hour=credit(PRICE),
        volumes=(VolumeMount(volume, "/vol/data", False),),
        meter_maxima=(MeterMax("cpu", credit(DEPOSIT // 1_000)),),
        **at,
    )
    request = RequestLease(
        lease_id=lease, job_id=job.job_id, account_id=RENTER, term_us=HOUR_US, funds=None, **at
    )
    reserve = ReserveLease(
        lease_id=lease,
        rule="lowest_cost/1",
        fleet_position=1,
        candidates=(),
        considered=1,
        node_id=NODE,
        offer_id=OFFER,
        device_ids=(DEVICE,),
        **at,
    )
    ready = ReadyLease(lease_id=lease, node_id=NODE, endpoint=None, **at)
    end_us = start_us + HOUR_US
    close = CloseLease(lease_id=lease, closed_at_us=end_us, party="renter", code=1, at_us=end_us)
    settle = SettleLease(
        lease_id=lease,
        lane=lane_of(NODE),
        usage_position=number,
        rows=(_used(start_us, end_us),),
        at_us=end_us + SECOND_US,
    )
    charge = ChargeVolume(volume_id=volume, at_us=end_us)
    cores = AccrueResource(
        lease_id=lease, meter="cpu", rows=(_cores(start_us, end_us),), at_us=end_us + PATIENCE_US
    )
    every: tuple[Any, ...] = (job, request, reserve, ready, close, settle, cores, charge)
    for command in every:
        world.handle(command)
    if number > 1:
        before = f"volume_{number - 1}"
        gone: dict[str, Any] = {"volume_id": before, "at_us": end_us + SECOND_US}
        world.handle(DeleteVolume(account_id=RENTER, by="key_grown", **gone))
        world.handle(ConfirmErased(node_id=NODE, **gone))


def _used(from_us: int, to_us: int) -> UsageRow:
    return UsageRow(
        position=1,
        device_id=DEVICE,
        boot="b",
        mono_start_us=from_us,
        mono_end_us=to_us,
        wall_start_us=from_us,
        wall_end_us=to_us,
        available_us=to_us - from_us,
        share_ppm=1_000_000,
        received_us=to_us,
    )


def _cores(from_us: int, to_us: int) -> MeteredRow:
    """Four cores for all of the time."""
    return MeteredRow(
        position=1,
        boot="b",
        mono_start_us=from_us,
        mono_end_us=to_us,
        from_us=from_us,
        to_us=to_us,
        received_us=to_us,
        quantity=4 * (to_us - from_us),
    )


def check(world: World) -> None:
    """Leases, their resources and volumes have charged exactly what their provider and the network
    have got; and so have devices.
    """
    charged = sum(
        fact.charge_new.units
        for _, fact in world.facts
        if isinstance(fact, UsageAccrued | ResourceAccrued | VolumeCharged)
    )
    names = (f"party:{OWNER}:holdback", "network:revenue:usage", "network:revenue:take")
    got = sum(world.balance(name) for name in (*names, "network:burn_due"))
    assert charged == got > 0, (charged, got)
    fees = sum(fact.charge.units for _, fact in world.facts if isinstance(fact, DeviceFeeCharged))
    assert fees == world.balance("network:revenue:device"), fees
