"""A region's storage node: a fixed cost per hour, until it is removed (row C-30)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.account_closing import CloseAccount
from domain.duration import HOUR_US
from domain.fleet.node import AdmitNode, IssueJoinCode, RetireNode
from domain.fleet.reasons import FleetReason
from domain.fleet.storage_node import (
    ChargeStorageNode,
    NodeServed,
    ProvisionStorageNode,
    ReadyStorageNode,
    RemoveStorageNode,
    ReplaceStorageNode,
    StorageNodeCharged,
    StorageNodeProvisioned,
    StorageNodeReady,
    StorageNodeRemoved,
    storage_node_of,
    stream_of,
)
from domain.funds.draw import Drawn
from domain.funds.reasons import FundsReason
from domain.money import credit
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.prices.tariff import NETWORK
from domain.stream import Change, Stream
from tests.domain.scenes import supply
from tests.domain.scenes.supply import (
    ALICE,
    NOON_US,
    PROVIDER,
    REGION,
    region_named,
    region_opened,
    tariff,
    with_confirmed_node,
    with_provider,
    with_region,
)
from tests.given import Scene

PER_HOUR = 100_000
NODE = stream_of(REGION)
priced = replace(tariff, effective_from_us=0, storage_node_per_hour=credit(PER_HOUR))
central = replace(region_opened, storage_mode="central")
opened_central = with_provider.given(
    (Stream("region-name", f"{PROVIDER}|home"), region_named), (Stream("region", REGION), central)
).having({f"party:{ALICE}:cash": 10**9})
region = opened_central.given((NETWORK, priced))
provision = ProvisionStorageNode(region_id=REGION, storage_class="ssd", by="mem", at_us=NOON_US)
standing = region.after(provision)


def charge(after_us: int) -> ChargeStorageNode:
    return ChargeStorageNode(region_id=REGION, at_us=NOON_US + after_us)


def remove(after_us: int) -> RemoveStorageNode:
    return RemoveStorageNode(region_id=REGION, by="mem", at_us=NOON_US + after_us)


def charged(scene: Scene) -> list[StorageNodeCharged]:
    return [fact for _, fact in scene.past if isinstance(fact, StorageNodeCharged)]


def test_a_region_has_one_storage_node_at_the_price_of_its_day() -> None:
    """C-30: of a chosen storage class, locked when it is provisioned."""
    fact = StorageNodeProvisioned(
        region_id=REGION,
        number=1,
        provider_id=PROVIDER,
        account_id=ALICE,
        storage_class="ssd",
        per_hour=credit(PER_HOUR),
        tariff_version=1,
        by="mem",
        at_us=NOON_US,
    )
    region.when(provision).then((NODE, fact))
    standing.when(provision).then_nothing()
    standing.when(replace(provision, storage_class="hdd")).then_refused(
        FleetReason.STORAGE_NODE_STATE
    )
    region.when(replace(provision, region_id="region_no")).then_refused(FleetReason.REGION_UNKNOWN)
    opened_central.when(provision).then_refused(PricesReason.TARIFF_UNKNOWN)


def test_whole_hours_are_charged_at_the_locked_price_and_a_late_run_catches_up() -> None:
    dearer = replace(priced, version=2, storage_node_per_hour=credit(9 * PER_HOUR))
    scene = standing.given((NETWORK, dearer))
    scene.when(charge(HOUR_US - 1)).then_nothing()
    scene.when(charge(3 * HOUR_US + 5)).then(
        (
            NODE,
            StorageNodeCharged(
                region_id=REGION,
                number=1,
                account_id=ALICE,
                until_us=NOON_US + 3 * HOUR_US,
                elapsed_us=3 * HOUR_US,
                charge=credit(3 * PER_HOUR),
                charge_new=credit(3 * PER_HOUR),
                owed=credit(0),
                drawn=(Drawn(ALICE, "cash", credit(3 * PER_HOUR)),),
                at_us=NOON_US + 3 * HOUR_US + 5,
            ),
        )
    )
    scene.after(charge(3 * HOUR_US)).when(charge(3 * HOUR_US + 9)).then_nothing()


def test_what_is_not_there_is_owed() -> None:
    poor = standing.having({f"party:{ALICE}:cash": 30_000})
    (fact,) = charged(poor.after(charge(HOUR_US)))
    assert (fact.drawn[0].amount, fact.owed) == (credit(30_000), credit(70_000))


def test_the_removal_charges_the_last_part_of_an_hour_and_the_next_one_is_another() -> None:
    """C-30: fixed cost until removed."""
    scene = standing.after(charge(HOUR_US))
    half = HOUR_US + HOUR_US // 2
    changes = scene.when(remove(half)).changes()
    assert [type(change.fact) for change in changes] == [StorageNodeCharged, StorageNodeRemoved]
    gone = scene.after(remove(half))
    assert [one.charge_new.units for one in charged(gone)] == [PER_HOUR, PER_HOUR // 2]
    assert storage_node_of(gone, REGION).provisioned is None
    gone.when(remove(2 * half)).then_nothing()
    gone.when(charge(9 * HOUR_US)).then_nothing()
    again = gone.after(replace(provision, at_us=NOON_US + 9 * HOUR_US))
    assert storage_node_of(again, REGION).number == 2


@given(st.lists(st.integers(1, 50 * HOUR_US), max_size=6), st.integers(0, 10**7))
def test_runs_at_any_time_charge_exactly_the_time_it_stood(runs: list[int], price: int) -> None:
    tariffs = replace(priced, storage_node_per_hour=credit(price))
    scene = opened_central.given((NETWORK, tariffs)).after(provision)
    for after_us in sorted(runs):
        scene = scene.after(charge(after_us))
    end_us = max(runs, default=0) + 1
    facts = charged(scene.after(remove(end_us)))
    assert sum(fact.charge_new.units for fact in facts) == price * end_us // HOUR_US
    assert all(
        sum(one.amount.units for one in fact.drawn) + fact.owed.units == fact.charge_new.units
        for fact in facts
    )


def test_a_central_region_lets_no_node_join_before_its_storage_is_ready() -> None:
    """C-8, C-30: also one of machines of one's own. A local region needs none, and gets none."""
    code = IssueJoinCode(
        code_sha256="c1" * 32, provider_id=PROVIDER, region_id=REGION, by="mem", at_us=NOON_US
    )
    local = with_region.given((NETWORK, priced)).having({f"party:{ALICE}:cash": 10**9})
    assert len(local.when(code).changes()) == 1
    local.when(provision).then_refused(FleetReason.REGION_NOT_SUITED, what="storage_node")
    ready = ReadyStorageNode(region_id=REGION, by="mem", at_us=NOON_US)
    region.when(ready).then_refused(FleetReason.STORAGE_NODE_STATE)
    region.when(code).then_refused(FleetReason.STORAGE_NODE_STATE)
    standing.when(code).then_refused(FleetReason.STORAGE_NODE_STATE)
    fact = StorageNodeReady(region_id=REGION, number=1, by="mem", at_us=NOON_US)
    standing.when(ready).then((NODE, fact))
    opened = standing.after(ready)
    opened.when(ready).then_nothing()
    assert len(opened.when(code).changes()) == 1
    opened.after(remove(5)).when(code).then_refused(FleetReason.STORAGE_NODE_STATE)


def test_it_stays_while_it_serves_a_node_and_another_one_may_take_its_place() -> None:
    """C-8: Replace Node; C-30: always on. The node is served from its admission on."""
    ready = standing.after(ReadyStorageNode(region_id=REGION, by="mem", at_us=NOON_US))
    confirmed = ready.given(*with_confirmed_node.past[len(with_region.past) :])
    admit = AdmitNode(node_id=supply.NODE, by="mem_ops", at_us=NOON_US)
    served = NodeServed(region_id=REGION, node_id=supply.NODE, at_us=NOON_US)
    assert confirmed.when(admit).changes()[-1] == Change(NODE, served)
    unready = confirmed.after(remove(0))
    unready.when(admit).then_refused(FleetReason.STORAGE_NODE_STATE, needs="ready")
    scene = confirmed.after(admit)
    scene.when(remove(9)).then_refused(FleetReason.STORAGE_NODE_STATE, nodes=1)
    change = ReplaceStorageNode(
        region_id=REGION, storage_class="hdd", by="mem", at_us=NOON_US + HOUR_US
    )
    facts = [change.fact for change in scene.when(change).changes()]
    kinds = [StorageNodeCharged, StorageNodeRemoved, StorageNodeProvisioned]
    assert [type(fact) for fact in facts] == kinds
    replaced = scene.after(change)
    assert storage_node_of(replaced, REGION).number == 2
    assert storage_node_of(replaced, REGION).nodes == {supply.NODE}
    replaced.when(remove(2 * HOUR_US)).then_refused(FleetReason.STORAGE_NODE_STATE, nodes=1)
    retire = RetireNode(node_id=supply.NODE, by="mem", at_us=NOON_US)
    gone = replaced.after(retire)
    assert storage_node_of(gone, REGION).nodes == frozenset()
    assert len(gone.when(remove(2 * HOUR_US)).changes()) == 2
    region.when(change).then_refused(FleetReason.STORAGE_NODE_STATE, needs="provisioned")


def test_nothing_is_provisioned_without_a_positive_balance() -> None:
    """C-25: neither the first one nor the one that takes its place."""
    poor = region.having({f"party:{ALICE}:cash": 0})
    poor.when(provision).then_refused(FundsReason.CREDIT_TOO_LOW, what="provisioning")
    in_debt = region.having({f"party:{ALICE}:cash": 5, f"party:{ALICE}:owed": 1})
    in_debt.when(provision).then_refused(FundsReason.UNPAID_DEBT)
    one = region.having({f"party:{ALICE}:cash": 1})
    assert len(one.when(provision).changes()) == 1
    change = ReplaceStorageNode(region_id=REGION, storage_class="hdd", by="mem", at_us=NOON_US)
    spent = standing.having({f"party:{ALICE}:cash": 0})
    spent.when(change).then_refused(FundsReason.CREDIT_TOO_LOW, what="provisioning")


def test_an_account_is_not_closed_while_a_region_of_it_has_a_storage_node() -> None:
    close = CloseAccount(
        account_id=ALICE, lease_ids=(), node_ids=(), region_ids=(REGION,), by="mem", at_us=NOON_US
    )
    empty = standing.having({f"party:{ALICE}:cash": 0})
    empty.when(close).then_refused(PartiesReason.ACCOUNT_NOT_EMPTY, storage_node="region_home")
    assert len(empty.after(remove(0)).when(close).changes()) == 1
