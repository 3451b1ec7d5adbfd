"""Edge devices: each day of each device is charged once, whenever the job runs (row C-22)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.calendar import day_named, day_start_us, day_text, days_in, month_of_day
from domain.duration import DAY_US
from domain.fleet.reasons import FleetReason
from domain.funds.draw import Drawn
from domain.funds.reasons import FundsReason
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.tariff import NETWORK
from domain.sites.edge_device import (
    EDGE_MODELS,
    AddEdgeDevice,
    ChargeDeviceFee,
    DeviceFeeCharged,
    EdgeDeviceActivated,
    EdgeDeviceAdded,
    RemoveEdgeDevice,
    ReportEdgeDevice,
    edge_devices_of,
    stream_of,
)
from domain.stream import Stream
from tests.domain.scenes.supply import (
    ALICE,
    PROVIDER,
    REGION,
    region_opened,
    registered,
    tariff,
    with_account,
    with_provider,
    with_region,
)
from tests.given import Scene

FEE = 15_000_000
FIRST = day_named("2026-01-02")
MIDNIGHT_US = day_start_us(FIRST)
MOVED = stream_of(ALICE)
priced = replace(tariff, effective_from_us=0, device_fee_per_month=credit(FEE))
central = with_provider.given(
    (Stream("region", REGION), replace(region_opened, storage_mode="central"))
)
rich = central.given((NETWORK, priced)).having({f"party:{ALICE}:cash": 10**12})


def add(name: str, at_us: int = MIDNIGHT_US) -> AddEdgeDevice:
    return AddEdgeDevice(
        device_id=name,
        account_id=ALICE,
        region_id=REGION,
        name=name.replace("_", "-"),
        minion_id=f"minion-{name}",
        model=EDGE_MODELS[0],
        by="mem_alice",
        at_us=at_us,
    )


def remove(name: str, at_us: int) -> RemoveEdgeDevice:
    return RemoveEdgeDevice(device_id=name, account_id=ALICE, by="mem_alice", at_us=at_us)


def charge(at_us: int) -> ChargeDeviceFee:
    return ChargeDeviceFee(account_id=ALICE, at_us=at_us)


def charged_until(scene: Scene, at_us: int) -> Scene:
    """The scene after a run of the job at that moment."""
    while (after := scene.after(charge(at_us))).past != scene.past:
        scene = after
    return scene


def fees(scene: Scene) -> list[DeviceFeeCharged]:
    return [fact for _, fact in scene.past if isinstance(fact, DeviceFeeCharged)]


def test_a_device_is_added_once_and_charged_from_the_day_of_the_add() -> None:
    """C-34: added; C-22: charged when the day is over, from midnight UTC on."""
    at_us = MIDNIGHT_US + DAY_US - 1
    rich.when(add("edge_1", at_us)).then(
        (
            MOVED,
            EdgeDeviceAdded(
                device_id="edge_1",
                account_id=ALICE,
                region_id=REGION,
                name="edge-1",
                minion_id="minion-edge_1",
                model=EDGE_MODELS[0],
                first_day="2026-01-02",
                by="mem_alice",
                at_us=at_us,
            ),
        )
    )
    scene = rich.after(add("edge_1", at_us))
    scene.when(add("edge_1", at_us + 5)).then_nothing()
    scene.when(charge(at_us)).then_nothing()
    scene.when(charge(at_us + 1)).then(
        (
            MOVED,
            DeviceFeeCharged(
                account_id=ALICE,
                day="2026-01-02",
                unique=1,
                fee_per_month=credit(FEE),
                tariff_version=1,
                days_in_month=31,
                fee_days=FEE,
                due=credit(483_870),
                charge=credit(483_870),
                drawn=(Drawn(ALICE, "cash", credit(483_870)),),
                owed=credit(0),
                at_us=at_us + 1,
            ),
        )
    )
    scene.after(charge(at_us + 1)).when(charge(at_us + 1)).then_nothing()


def test_an_add_at_midnight_belongs_to_the_new_day() -> None:
    scene = rich.after(add("edge_1", MIDNIGHT_US - 1)).after(add("edge_2", MIDNIGHT_US))
    told = fees(charged_until(scene, MIDNIGHT_US + DAY_US))
    assert [(fee.day, fee.unique) for fee in told] == [("2026-01-01", 1), ("2026-01-02", 2)]


def test_adding_and_removing_five_times_is_five_devices_that_day_and_none_the_next() -> None:
    """C-22: each add is a new unique device; a removal takes effect the next day."""
    scene = rich
    for turn in range(5):
        scene = scene.after(add(f"edge_{turn}", MIDNIGHT_US + turn))
        scene = scene.after(remove(f"edge_{turn}", MIDNIGHT_US + turn))
        scene.when(remove(f"edge_{turn}", MIDNIGHT_US + 9 * DAY_US)).then_nothing()
    told = fees(charged_until(scene, MIDNIGHT_US + 9 * DAY_US))
    assert [(fee.day, fee.unique, fee.charge.units) for fee in told] == [
        ("2026-01-02", 5, 5 * FEE // 31)
    ]
    after = charged_until(scene, MIDNIGHT_US + 9 * DAY_US)
    assert edge_devices_of(after, ALICE).devices == {}
    after.when(remove("edge_0", MIDNIGHT_US)).then_refused(FleetReason.DEVICE_UNKNOWN)


def test_a_late_run_catches_up_day_by_day_and_the_fraction_starts_anew_each_month() -> None:
    """C-22: nobody asks whether the device is online: offline bills."""
    scene = charged_until(rich.after(add("edge_1")), day_start_us(day_named("2026-03-01")))
    told = fees(scene)
    assert [fee.day for fee in told] == [day_text(FIRST + index) for index in range(58)]
    january = [fee for fee in told if fee.day < "2026-02"]
    february = [fee for fee in told if fee.day >= "2026-02"]
    assert sum(fee.charge.units for fee in january) == FEE * 30 // 31
    assert sum(fee.charge.units for fee in february) == FEE
    assert february[0].due == february[0].charge == credit(FEE // 28)


def test_what_is_not_there_is_owed_and_the_rest_is_drawn_in_spend_order() -> None:
    poor = rich.having({f"party:{ALICE}:cash": 300_000, f"party:{ALICE}:grant": 100_000})
    (told,) = fees(charged_until(poor.after(add("edge_1")), MIDNIGHT_US + DAY_US))
    assert told.drawn == (
        Drawn(ALICE, "grant", credit(100_000)),
        Drawn(ALICE, "cash", credit(300_000)),
    )
    assert told.owed == credit(83_870)


def test_the_fee_is_that_of_the_tariff_in_force_when_the_day_began() -> None:
    other = replace(
        priced,
        version=2,
        effective_from_us=MIDNIGHT_US + DAY_US + 1,
        device_fee_per_month=credit(31_000_000),
    )
    scene = rich.given((NETWORK, other)).after(add("edge_1"))
    told = fees(charged_until(scene, MIDNIGHT_US + 3 * DAY_US))
    assert [(fee.tariff_version, fee.charge.units) for fee in told] == [
        (1, 483_870),
        (1, 483_871),
        (2, 1_000_000),
    ]


def test_a_day_that_began_without_a_tariff_is_free() -> None:
    free = central.having({f"party:{ALICE}:cash": 1}).after(add("edge_1"))
    told = fees(charged_until(free, MIDNIGHT_US + DAY_US))
    assert [(fee.tariff_version, fee.charge, fee.unique) for fee in told] == [(None, credit(0), 1)]


def test_only_a_known_model_in_a_region_of_ones_own_is_added() -> None:
    rich.when(replace(add("e"), region_id="region_no")).then_refused(FleetReason.REGION_UNKNOWN)
    rich.when(replace(add("e"), account_id="acct_no")).then_refused(PartiesReason.ACCOUNT_UNKNOWN)
    rich.when(replace(add("e"), model="toaster")).then_refused(PartiesReason.UNKNOWN_MODE)


def test_a_clock_behind_the_jobs_reopens_no_day() -> None:
    scene = charged_until(rich.after(add("edge_1")), MIDNIGHT_US + 2 * DAY_US)
    late = scene.after(add("edge_2", MIDNIGHT_US)).after(remove("edge_1", MIDNIGHT_US))
    told = fees(charged_until(late, MIDNIGHT_US + 3 * DAY_US))
    assert [fee.unique for fee in told] == [1, 1, 1]
    assert list(edge_devices_of(late, ALICE).devices) == ["edge_2"]


changes = st.lists(st.tuples(st.integers(0, 70), st.integers(0, 5), st.booleans()), max_size=12)


@pytest.mark.parametrize("fee", [FEE, 7])
@given(changes=changes, runs=st.lists(st.integers(0, 72), max_size=4))
def test_charges_are_the_formula_whenever_the_job_runs(
    fee: int, changes: list[tuple[int, int, bool]], runs: list[int]
) -> None:
    """C-22: due(d) = floor(sum of fee x U / D), for any changes and any times of running."""
    scene = rich.given((NETWORK, replace(priced, version=2, device_fee_per_month=credit(fee))))
    # The job runs at the beginning of a day, before what happens on that day.
    steps = sorted(
        [(day, 1, number, is_add) for day, number, is_add in changes]
        + [(day, 0, 0, False) for day in runs]
    )
    uses: dict[int, set[int]] = {day: set() for day in range(72)}
    present: dict[int, int] = {}  # slot -> number of the device in it
    count = 0
    for day, kind, slot, is_add in steps:
        at_us = MIDNIGHT_US + day * DAY_US
        if kind == 0:
            scene = charged_until(scene, at_us)
        elif is_add and slot not in present:
            count += 1
            present[slot] = count
            scene = scene.after(add(f"edge_{count}", at_us + 1))
            for later in range(day, 72):
                uses[later].add(count)
        elif not is_add and slot in present:
            gone = present.pop(slot)
            scene = scene.after(remove(f"edge_{gone}", at_us + 2))
            for later in range(day + 1, 72):
                uses[later].discard(gone)
    scene = charged_until(scene, MIDNIGHT_US + 72 * DAY_US)
    told = {fee.day: fee for fee in fees(scene)}
    assert set(told) == {day_text(FIRST + day) for day, used in uses.items() if used}
    sums: dict[int, int] = {}
    for day, used in uses.items():
        if not used:
            continue
        month = month_of_day(FIRST + day)
        sums[month] = sums.get(month, 0) + fee * len(used)
        one = told[day_text(FIRST + day)]
        assert one.unique == len(used)
        assert one.due.units == sums[month] // days_in(month)
        assert one.charge.units == sum(d.amount.units for d in one.drawn) + one.owed.units


def test_devices_stand_in_regions_that_are_physical_and_central_and_nowhere_else() -> None:
    """C-8, C-34."""
    assert len(rich.when(add("edge_1")).changes()) == 1
    local = with_region.given((NETWORK, priced)).having({f"party:{ALICE}:cash": 10**12})
    local.when(add("edge_1")).then_refused(FleetReason.REGION_NOT_SUITED, what="edge_device")
    cloud = with_account.given(
        (Stream("provider", PROVIDER), replace(registered, kind="gcp")),
        (Stream("region", REGION), replace(region_opened, storage_mode="central")),
    ).having({f"party:{ALICE}:cash": 10**12})
    cloud.when(add("edge_1")).then_refused(FleetReason.REGION_NOT_SUITED, what="edge_device")


def test_no_device_is_added_without_a_positive_balance() -> None:
    """C-25: it would run up a debt that nobody can refuse later."""
    poor = rich.having({f"party:{ALICE}:cash": 0})
    poor.when(add("edge_1")).then_refused(FundsReason.CREDIT_TOO_LOW, what="provisioning")
    in_debt = rich.having({f"party:{ALICE}:cash": 5, f"party:{ALICE}:owed": 1})
    in_debt.when(add("edge_1")).then_refused(FundsReason.UNPAID_DEBT)


def test_a_device_becomes_active_by_itself_when_it_reports() -> None:
    """C-6: a device that was removed does not."""
    report = ReportEdgeDevice(device_id="edge_1", account_id=ALICE, by="mem", at_us=MIDNIGHT_US)
    rich.when(report).then_refused(FleetReason.DEVICE_UNKNOWN)
    scene = rich.after(add("edge_1"))
    assert not edge_devices_of(scene, ALICE).devices["edge_1"].is_active
    fact = EdgeDeviceActivated(device_id="edge_1", account_id=ALICE, by="mem", at_us=MIDNIGHT_US)
    scene.when(report).then((MOVED, fact))
    active = scene.after(report)
    assert edge_devices_of(active, ALICE).devices["edge_1"].is_active
    active.when(report).then_nothing()
    gone = active.after(remove("edge_1", MIDNIGHT_US))
    gone.when(report).then_refused(FleetReason.DEVICE_UNKNOWN)
