"""Row R-20: a volume outlives jobs, many leases have it at once, and it is billed once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.account_closing import CloseAccount
from domain.duration import HOUR_US
from domain.fleet.growth import RegionMemberLeft, growth_stream
from domain.fleet.provider import RegionOpened
from domain.fleet.reasons import FleetReason
from domain.funds.draw import Drawn
from domain.funds.reasons import FundsReason
from domain.jobs.job import AttachVolume, DetachVolume, job_of
from domain.lease.funds import EscrowPart
from domain.lease.lease import CloseLease, lease_of
from domain.lease.looked import NOT_LOOKED
from domain.lease.mounts import VolumeMount
from domain.market.dimensions import BY_NAME
from domain.market.need import need_of
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.charge_split import Parts
from domain.prices.tariff import NETWORK, VOLUME, MeterRate
from domain.storage.reasons import StorageReason
from domain.storage.volume import (
    BYTES_PER_GIB,
    GRACE_US,
    ChargeVolume,
    ConfirmErased,
    DeleteVolume,
    ProvisionVolume,
    VolumeAttached,
    VolumeCharged,
    VolumeDeleted,
    VolumeDetached,
    VolumeErased,
    VolumeGraceEnded,
    VolumeGraceStarted,
    VolumeProvisioned,
    cost_units,
    reserve_units,
    volume_of,
    volume_stream,
)
from domain.stream import Stream
from tests.domain.scenes import market, supply
from tests.domain.scenes.market import LEASE, NODE, NOON_US, RENTER
from tests.given import Scene

VOLUME_ID = "volume_a"
STREAM = volume_stream(VOLUME_ID)
RATE = MeterRate(VOLUME, credit(100_000), 2_592_000)
REGION = "region_a"
CASH = f"party:{RENTER}:cash"
HOUR = cost_units(100, HOUR_US, RATE)
RESERVE = reserve_units(100, RATE)
MOUNT = VolumeMount(VOLUME_ID, "/vol/data", False)

opened = RegionOpened(
    region_id=REGION,
    provider_id=market.PROVIDER,
    name="a",
    storage_mode="local",
    setting="datacenter",
    admission="operator",
    allow_public_jobs=True,
    at_us=NOON_US,
    hardware_rules=(),
    cloud_region=None,
    site=None,
)
WORKER = replace(supply.member, region_id=REGION, node_id=NODE)
provision = ProvisionVolume(
    volume_id=VOLUME_ID,
    name="checkpoints",
    account_id=RENTER,
    project_id=None,
    region_id=REGION,
    size_gib=100,
    by="mem",
    at_us=NOON_US,
)


def founded(units: int = 10**9) -> Scene:
    """The market with a region and a tariff that prices volumes."""
    scene = market.scene({CASH: units})
    tariff = scene.state(NETWORK).published[-1]
    priced = replace(tariff, version=2, meters=(RATE,), effective_from_us=NOON_US)
    return scene.given(
        (Stream("region", REGION), opened), (growth_stream(REGION), WORKER), (NETWORK, priced)
    )


def charge(after_us: int) -> ChargeVolume:
    return ChargeVolume(volume_id=VOLUME_ID, at_us=NOON_US + after_us)


def delete(after_us: int = 0) -> DeleteVolume:
    return DeleteVolume(volume_id=VOLUME_ID, account_id=RENTER, by="mem", at_us=NOON_US + after_us)


def volume_facts(scene: Scene, kind: type[Any]) -> list[Any]:
    return [fact for where, fact in scene.past if where == STREAM and isinstance(fact, kind)]


def leased(scene: Scene, number: int = 0, **changes: Any) -> Scene:
    """A lease that is reserved, of a job that mounts the volume."""
    job = market.job(job_id=f"job_{number}", volumes=(MOUNT,), **changes)
    asked = replace(market.request(), lease_id=f"lease_{number}", job_id=f"job_{number}")
    place = replace(
        market.reserve(), lease_id=f"lease_{number}", device_ids=(market.DEVICES[number],)
    )
    return scene.after(job).after(asked).after(place)


def closed(scene: Scene, number: int) -> Scene:
    return scene.after(
        CloseLease(
            lease_id=f"lease_{number}",
            closed_at_us=NOON_US,
            party="renter",
            code=101,
            at_us=NOON_US,
        )
    )


# --- provisioned ------------------------------------------------------------------------------


def test_a_volume_is_provisioned_at_the_price_in_force_with_its_grace_held() -> None:
    founded().when(provision).then(
        (
            STREAM,
            VolumeProvisioned(
                volume_id=VOLUME_ID,
                name="checkpoints",
                account_id=RENTER,
                project_id=None,
                region_id=REGION,
                provider_account_id=market.OWNER,
                size_gib=100,
                rate=RATE,
                tariff_version=2,
                grace_us=72 * HOUR_US,
                reserve=(EscrowPart("cash", credit(RESERVE)),),
                by="mem",
                at_us=NOON_US,
            ),
        )
    )


def test_provisioning_again_changes_nothing_and_another_one_is_refused() -> None:
    scene = founded().after(provision)
    scene.when(provision).then_nothing()
    other = replace(provision, size_gib=101)
    scene.when(other).then_refused(StorageReason.VOLUME_EXISTS)


def test_nothing_is_provisioned_without_the_money_for_its_grace_and_an_hour() -> None:
    needed = RESERVE + HOUR
    founded(needed).when(provision).changes()
    founded(needed - 1).when(provision).then_refused(
        FundsReason.CREDIT_TOO_LOW, needed=needed, available=needed - 1
    )


def test_what_costs_nothing_needs_a_positive_balance_too() -> None:
    free = market.scene({CASH: 0}).given(
        (Stream("region", REGION), opened), (growth_stream(REGION), WORKER)
    )
    free.when(provision).then_refused(FundsReason.CREDIT_TOO_LOW, needed=1, available=0)
    (made,) = free.having({CASH: 1}).when(provision).changes()
    assert (made.fact.rate, made.fact.reserve) == (None, ())


def test_who_owes_provisions_nothing() -> None:
    owing = founded().having({f"party:{RENTER}:owed": 1})
    owing.when(provision).then_refused(FundsReason.UNPAID_DEBT)


def test_a_region_that_is_closed_to_others_takes_no_volume_of_theirs() -> None:
    closed_region = replace(opened, allow_public_jobs=False)
    scene = founded().given((Stream("region", REGION), closed_region))
    scene.when(provision).then_refused(FleetReason.REGION_UNKNOWN, region_id=REGION)
    own = replace(provision, account_id=market.OWNER)
    (made,) = scene.having({f"party:{market.OWNER}:cash": 1}).when(own).changes()
    assert made.fact.rate is None, "what lies with oneself costs nothing"


def test_a_region_without_a_machine_that_runs_jobs_sells_no_volume() -> None:
    no_worker = replace(WORKER, role="ingress")
    left = RegionMemberLeft(region_id=REGION, node_id=NODE, at_us=NOON_US)
    for told in (no_worker, left):
        scene = founded().given((growth_stream(REGION), told))
        for account in (RENTER, market.OWNER):
            scene.when(replace(provision, account_id=account)).then_refused(
                StorageReason.VOLUME_REGION, rule="no_node", region_id=REGION
            )


def test_a_size_is_from_one_gib_to_a_pebibyte() -> None:
    for size in (0, 2**20 + 1):
        founded().when(replace(provision, size_gib=size)).then_refused(
            PartiesReason.COUNT_OUT_OF_RANGE, field="size_gib", value=size
        )


# --- attached and detached --------------------------------------------------------------------


def test_many_leases_attach_a_volume_and_each_lets_go_once() -> None:
    scene = leased(leased(founded().after(provision), 0), 1)
    assert set(volume_of(scene, VOLUME_ID).attached) == {"lease_0", "lease_1"}
    assert volume_facts(scene, VolumeAttached)[0] == VolumeAttached(
        volume_id=VOLUME_ID,
        lease_id="lease_0",
        job_id="job_0",
        node_id=NODE,
        path="/vol/data",
        read_only=False,
        at_us=NOON_US,
    )
    scene.when(delete()).then_refused(StorageReason.VOLUME_ATTACHED, leases=2, lease_id="lease_0")
    scene = closed(scene, 0)
    scene.when(delete()).then_refused(StorageReason.VOLUME_ATTACHED, leases=1, lease_id="lease_1")
    scene = closed(closed(scene, 1), 1)
    assert [one.lease_id for one in volume_facts(scene, VolumeDetached)] == ["lease_0", "lease_1"]
    assert volume_of(scene, VOLUME_ID).state == "detached"
    scene = leased(scene, 2)
    assert set(volume_of(scene, VOLUME_ID).attached) == {"lease_2"}, "a later job has it again"
    closed(scene, 2).when(delete()).changes()


def test_a_job_runs_in_the_region_of_its_volumes() -> None:
    scene = leased(founded().after(provision), 0)
    asked = lease_of(scene, "lease_0").requested
    assert asked is not None
    need = need_of(scene, asked, NOON_US, NOT_LOOKED)
    assert need.constraints.regions == (REGION,)
    assert BY_NAME["place"].required(need) == (REGION,)


def test_a_job_cannot_mount_what_is_not_its_own() -> None:
    scene = founded().after(provision)
    job = market.job(volumes=(MOUNT,))
    scene.when(replace(job, account_id=market.OWNER)).then_refused(StorageReason.VOLUME_UNKNOWN)
    other = founded().after(replace(provision, project_id="q"))
    other.when(job).then_refused(StorageReason.VOLUME_STATE, project_id="q", rule="project")
    scene.after(delete()).when(job).then_refused(StorageReason.VOLUME_STATE, status="erased")


def test_volumes_of_two_regions_are_refused_together() -> None:
    away = replace(opened, region_id="region_b", name="b")
    second = replace(provision, volume_id="volume_b", region_id="region_b")
    founded_b = (growth_stream("region_b"), replace(WORKER, region_id="region_b", node_id="node_b"))
    scene = founded().given((Stream("region", "region_b"), away), founded_b)
    scene = scene.after(provision).after(second)
    mounts = (MOUNT, VolumeMount("volume_b", "/vol/b", True))
    scene.when(market.job(volumes=mounts)).then_refused(
        StorageReason.VOLUME_REGION, rule="one_region"
    )


def test_volumes_are_attached_to_a_job_for_its_next_leases() -> None:
    scene = founded().after(provision).after(market.job())
    attach = AttachVolume(job_id=market.JOB, mount=MOUNT, by="mem", at_us=NOON_US)
    later = scene.after(attach)
    assert job_of(later, market.JOB).volumes == (MOUNT,)
    later.when(attach).then_nothing()
    asked = later.after(market.request())
    assert lease_of(asked, LEASE).requested.volumes == (MOUNT,)  # type: ignore[union-attr]
    detach = DetachVolume(job_id=market.JOB, volume_id=VOLUME_ID, by="mem", at_us=NOON_US)
    assert job_of(later.after(detach), market.JOB).volumes == ()
    later.after(detach).when(detach).then_nothing()


# --- billed once ------------------------------------------------------------------------------


def test_hours_are_charged_once_however_many_leases_have_it() -> None:
    scene = leased(leased(founded().after(provision), 0), 1)
    after = 2 * HOUR_US + 1
    expected = 2 * HOUR_US * 100 * BYTES_PER_GIB * 100_000 // (2_592_000 * 10**15)
    half = expected // 2
    parts = Parts(fee=0, provider=half, platform=expected - half, burn=0)
    scene.when(charge(after)).then(
        (
            STREAM,
            VolumeCharged(
                volume_id=VOLUME_ID,
                account_id=RENTER,
                provider_account_id=market.OWNER,
                project_id=None,
                size_gib=100,
                until_us=NOON_US + 2 * HOUR_US,
                elapsed_us=2 * HOUR_US,
                elapsed_us_new=2 * HOUR_US,
                rate=RATE,
                tariff_version=2,
                charge=credit(expected),
                charge_new=credit(expected),
                parts=parts,
                parts_new=parts,
                drawn=(Drawn(RENTER, "cash", credit(expected)),),
                reserve_drawn=(),
                at_us=NOON_US + after,
            ),
        )
    )
    scene.after(charge(after)).when(charge(after)).then_nothing()


def test_a_deletion_charges_the_last_part_and_gives_the_reserve_back() -> None:
    scene = founded().after(provision).after(charge(HOUR_US))
    last, gone = (one.fact for one in scene.when(delete(HOUR_US + 30_000_000)).changes())
    total = cost_units(100, HOUR_US + 30_000_000, RATE)
    assert (last.charge.units, last.charge_new.units) == (total, total - HOUR)
    assert gone == VolumeDeleted(
        volume_id=VOLUME_ID,
        account_id=RENTER,
        region_id=REGION,
        cause="owner",
        refund=(EscrowPart("cash", credit(RESERVE)),),
        by="mem",
        deleted_at_us=NOON_US + HOUR_US + 30_000_000,
        at_us=NOON_US + HOUR_US + 30_000_000,
    )
    scene.after(delete()).when(delete()).then_nothing()


def test_what_a_late_timer_let_pass_is_owed_by_nobody() -> None:
    """Balance and reserve cover some hours; the deletion ends there and takes no more."""
    scene = founded().after(provision).having({CASH: HOUR})
    *_, gone = (one.fact for one in scene.when(delete(1_000 * HOUR_US)).changes())
    assert gone.deleted_at_us < NOON_US + 75 * HOUR_US
    assert sum(part.amount.units for part in gone.refund) <= HOUR


# --- when the funds end -----------------------------------------------------------------------


def test_the_grace_starts_with_the_hour_that_the_balance_does_not_cover() -> None:
    scene = founded().after(provision).having({CASH: 3 * HOUR + HOUR // 2})
    paid, started = (one.fact for one in scene.when(charge(9 * HOUR_US)).changes())
    assert paid.until_us == NOON_US + 3 * HOUR_US
    assert started == VolumeGraceStarted(
        volume_id=VOLUME_ID,
        account_id=RENTER,
        since_us=NOON_US + 3 * HOUR_US,
        deletes_at_us=NOON_US + 3 * HOUR_US + GRACE_US,
        at_us=NOON_US + 9 * HOUR_US,
    )


def in_grace() -> Scene:
    """Its funds ended at noon; it was attached before."""
    return leased(founded().after(provision)).having({CASH: 0}).after(charge(HOUR_US))


def test_in_the_grace_the_reserve_pays_and_nothing_attaches_it() -> None:
    scene = in_grace()
    (paid,) = (one.fact for one in scene.when(charge(HOUR_US)).changes())
    assert (paid.drawn, paid.reserve_drawn) == ((), (EscrowPart("cash", credit(HOUR)),))
    scene.when(market.job(volumes=(MOUNT,))).then_refused(
        StorageReason.VOLUME_STATE, status="grace"
    )
    asked = scene.after(replace(market.request(), job_id="job_0"))
    place = replace(market.reserve(), device_ids=(market.DEVICES[1],))
    asked.having({CASH: 10**8}).when(place).then_refused(StorageReason.VOLUME_STATE)


def test_at_the_end_of_the_grace_it_is_detached_and_deleted_at_the_told_moment() -> None:
    scene = in_grace().after(charge(HOUR_US))
    late = charge(GRACE_US + 9 * HOUR_US)
    facts = [one.fact for one in scene.when(late).changes()]
    assert [type(one) for one in facts] == [VolumeCharged, VolumeDetached, VolumeDeleted]
    paid, detached, gone = facts
    assert (detached.lease_id, detached.cause) == ("lease_0", "funds_ended")
    assert (gone.cause, gone.by, gone.deleted_at_us) == ("funds_ended", None, NOON_US + GRACE_US)
    assert paid.charge.units == cost_units(100, GRACE_US, RATE)
    assert sum(part.amount.units for part in gone.refund) == RESERVE - paid.charge.units
    after = scene.after(late)
    after.when(late).then_nothing()
    closed(after, 0)
    assert len(volume_facts(closed(after, 0), VolumeDetached)) == 1, "not detached twice"


def test_credits_that_come_in_time_end_the_grace_and_fill_the_reserve() -> None:
    scene = in_grace().after(charge(5 * HOUR_US))
    used = cost_units(100, 5 * HOUR_US, RATE)
    scene = scene.having({CASH: used + HOUR - 1})
    assert volume_of(scene.after(charge(5 * HOUR_US)), VOLUME_ID).grace is not None
    scene = scene.having({CASH: used + HOUR})
    scene.when(charge(5 * HOUR_US)).then(
        (
            STREAM,
            VolumeGraceEnded(
                volume_id=VOLUME_ID,
                account_id=RENTER,
                refilled=(EscrowPart("cash", credit(used), deposit=2),),
                at_us=NOON_US + 5 * HOUR_US,
            ),
        )
    )
    assert volume_of(scene.after(charge(5 * HOUR_US)), VOLUME_ID).state == "attached"


# --- erased, closed ---------------------------------------------------------------------------


def test_it_is_erased_when_every_node_that_had_it_has_said_so_once() -> None:
    """erased <=> deleted, and every node that ever attached it has said that nothing is left."""
    erased = ConfirmErased(volume_id=VOLUME_ID, node_id=NODE, at_us=NOON_US)
    scene = closed(leased(founded().after(provision)), 0)
    second = replace(volume_facts(scene, VolumeAttached)[0], lease_id="lease_9", node_id="node_b")
    away = VolumeDetached(
        volume_id=VOLUME_ID, lease_id="lease_9", cause="lease_over", at_us=NOON_US
    )
    scene = scene.given((STREAM, second), (STREAM, away))
    scene.when(erased).then_refused(StorageReason.VOLUME_STATE, status="detached")
    scene = scene.after(delete())
    stranger = replace(erased, node_id="node_c")
    scene.when(stranger).then_refused(StorageReason.VOLUME_UNKNOWN)
    fact = VolumeErased(volume_id=VOLUME_ID, node_id=NODE, at_us=NOON_US)
    scene.when(erased).then((STREAM, fact))
    scene = scene.after(erased)
    scene.when(erased).then_nothing()
    assert volume_of(scene, VOLUME_ID).state == "deleted", "the other node has not said it"
    scene = scene.after(replace(erased, node_id="node_b"))
    assert volume_of(scene, VOLUME_ID).state == "erased"


def test_what_no_lease_ever_attached_left_nothing_to_erase() -> None:
    assert volume_of(founded().after(provision).after(delete()), VOLUME_ID).state == "erased"


def test_an_account_with_a_volume_does_not_close() -> None:
    close = CloseAccount(
        account_id=RENTER,
        lease_ids=(),
        node_ids=(),
        volume_ids=(VOLUME_ID,),
        by="mem",
        at_us=NOON_US,
    )
    scene = founded().after(provision).having({CASH: 0})
    scene.when(close).then_refused(PartiesReason.ACCOUNT_NOT_EMPTY, volume_id=VOLUME_ID)
    scene.after(delete()).having({CASH: 0}).when(close).changes()


# --- exact, whatever happens ------------------------------------------------------------------

_steps = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(1, 90 * HOUR_US)),
        st.tuples(st.just("pay"), st.integers(0, 40 * HOUR)),
        st.tuples(st.just("delete"), st.just(0)),
    ),
    max_size=12,
)


@given(_steps, st.integers(RESERVE + HOUR, RESERVE + 30 * HOUR))
def test_every_unit_is_in_the_balance_in_the_reserve_or_charged(
    steps: list[tuple[str, int]], units: int
) -> None:
    """charge == cost of the time it stood; reserve put in == drawn + refunded + held; no debt."""
    now_us, put_in, cash = 0, units, units
    scene = founded(units).after(provision)
    cash -= RESERVE
    scene = scene.having({CASH: cash})

    def recorded(scene: Scene, command: Any, cash: int) -> tuple[Scene, int]:
        while changes := scene.when(command).changes():
            scene = scene.given(*((one.stream, one.fact) for one in changes))
            for one in changes:
                fact = one.fact
                if isinstance(fact, VolumeCharged):
                    cash -= sum(part.amount.units for part in fact.drawn)
                if isinstance(fact, VolumeGraceEnded):
                    cash -= sum(part.amount.units for part in fact.refilled)
                if isinstance(fact, VolumeDeleted):
                    cash += sum(part.amount.units for part in fact.refund)
            assert cash >= 0
            scene = scene.having({CASH: cash})
        return scene, cash

    for step, value in steps:
        if step == "wait":
            now_us += value
            scene, cash = recorded(scene, charge(now_us), cash)
        elif step == "pay":
            cash, put_in = cash + value, put_in + value
            scene = scene.having({CASH: cash})
        else:
            scene, cash = recorded(scene, delete(now_us), cash)
        state = volume_of(scene, VOLUME_ID)
        held = sum(part.amount.units for part in state.held)
        assert cash + held + state.charge_units == put_in
        elapsed_us = state.charged_until_us - NOON_US
        assert state.charge_units == cost_units(100, elapsed_us, RATE)
        assert state.parts.total == state.charge_units
        if state.deleted is not None:
            assert not state.attached
            assert held == 0
            assert state.charged_until_us == state.deleted.deleted_at_us
