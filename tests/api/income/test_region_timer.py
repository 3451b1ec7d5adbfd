"""A region that shares what its nodes earn, on a running market with its jobs and a clock."""

from __future__ import annotations

from typing import Any

import pytest

from api.income.maturing_timer import run_maturity, run_sweep
from api.income.region_timer import WAIT_US, WAIT_US_MAX, RegionsStopped, node_time, run_regions
from api.metering.accrual import run_accrual
from api.metering.capacity_timer import run_capacity
from api.process.timer import Timer
from api.timers import Timers
from domain.calendar import day_of
from domain.corrections.dispute import Claim, OpenDispute
from domain.duration import DAY_US
from domain.fleet.revenue_share import OwnerShare, SetRevenueShares
from domain.fleet.roles import SetNodeRole
from domain.income.region_pool import RegionDayShared, RegionEarningsGathered, RegionSharesPaid
from domain.income.region_sharing import NOTICE_DAYS, NodeTime, SetRegionTerms
from domain.income.region_terms import InfraCost
from domain.money import PPM, credit
from ledger.beside.charged import charged_line
from projections import tables
from projections.income import regions
from tests.scenes.paying import EARNED_AN_HOUR, MIDNIGHT_US, Paying, paying
from tests.scenes.running_market import OWNER, REGION, RENTER

__all__ = ["paying"]

FIRST_US = MIDNIGHT_US + (NOTICE_DAYS + 1) * DAY_US
FIRST = day_of(FIRST_US)
"""The day on which the terms of these tests begin."""
A_DAY = 24 * EARNED_AN_HOUR
CONTROL = 1_000_000


def set_terms(paying: Paying, **changes: Any) -> None:
    """Two nodes, the second of which somebody else owns, and one that carries the control."""
    market, at_us = paying.market, paying.clock.now_us()
    market.join("two", gpus=1)
    market.join("three", gpus=1)
    infra = InfraCost(
        base=credit(0),
        control=credit(CONTROL),
        ingress=credit(0),
        most=credit(10**9),
        arrears_max=credit(10**9),
        per_gib=credit(0),
    )
    terms: dict[str, Any] = {
        "region_id": REGION,
        "account_id": OWNER,
        "version": 1,
        "effective_from_day": FIRST,
        "is_shared": True,
        "participation_ppm": 200_000,
        "availability_min_tier": 1,
        "infra": infra,
        "by": "mem",
        "at_us": at_us,
        **changes,
    }
    market.do(
        at_us,
        SetRevenueShares(
            node_id=market.nodes["two"].id,
            account_id=OWNER,
            by="mem",
            at_us=at_us,
            shares=(OwnerShare(RENTER, PPM),),
        ),
        SetNodeRole(
            node_id=market.nodes["three"].id,
            role="control",
            ingress_node_id=None,
            by="op",
            at_us=at_us,
        ),
        SetRegionTerms(**terms),
    )


def work(paying: Paying, day: int) -> None:
    """Both workers sign a day, hour by hour: one with its lease, two without any."""
    from_us = FIRST_US + day * DAY_US
    paying.market.report("one", paying.lease, from_us, from_us + DAY_US)
    paying.market.report("two", None, from_us, from_us + DAY_US)
    paying.clock.move_to(from_us + DAY_US)


def run(paying: Paying, jobs: str = "capacity accrual maturity regions sweep") -> dict[str, int]:
    every = {
        "capacity": run_capacity,
        "accrual": run_accrual,
        "maturity": run_maturity,
        "regions": run_regions,
        "sweep": run_sweep,
    }
    return Timers(paying.service, [Timer(n, 60, 60, every[n]) for n in jobs.split()]).run_once()


def opened(paying: Paying) -> None:
    paying.clock.move_to(FIRST_US)
    paying.lease = paying.market.lease("a", "one", term_us=30 * DAY_US, at_us=FIRST_US)


def revenue(paying: Paying) -> int:
    return paying.market.balance(f"region:{REGION}:revenue")


def test_k_2_a_day_of_a_region_pays_control_then_who_was_there_then_who_earned(
    paying: Paying,
) -> None:
    """A day's work of one node; the one that stood idle is paid for having been there."""
    paying.set_window(0)
    set_terms(paying)
    opened(paying)
    work(paying, 0)
    assert run(paying)["maturity"] == 2, "it matures, and is gathered in the same append"
    assert (paying.books(), revenue(paying)) == ((0, 0, 0), A_DAY)
    work(paying, 1)
    second_us = FIRST_US + 2 * DAY_US
    paying.clock.move_to(second_us + WAIT_US - 1)
    run(paying)
    assert not [one for one in paying.market.facts(RegionDayShared) if one.day > FIRST]
    paying.clock.move_to(second_us + WAIT_US)
    assert run(paying)["regions"] == 1
    assert run(paying)["regions"] == 0, "once per region and day"

    empty, total = paying.market.facts(RegionDayShared)
    assert (empty.gathered, empty.arrears) == (credit(0), credit(CONTROL))
    assert (total.day, total.control_nodes, total.infra) == (FIRST + 1, 1, credit(2 * CONTROL))
    rest = A_DAY - 2 * CONTROL
    there = rest * 200_000 // PPM
    assert (total.participation, total.carry) == (credit(there), credit(0))
    _, paid = paying.market.facts(RegionSharesPaid)
    by_node = {one.node_id: one for one in paid.shares}
    one, two = (by_node[paying.market.nodes[name].id] for name in ("one", "two"))
    assert one.available_us == two.available_us == DAY_US
    assert (one.participation, two.participation) == (there // 2, there // 2)
    assert (one.usage, two.usage, two.revenue) == (rest - there, 0, 0)
    # The sweep of the same run has made them spendable; the next day's work waits in the region.
    assert paying.books(RENTER) == (0, 0, there // 2)
    assert paying.books()[2] == 2 * CONTROL + rest - there + there // 2
    assert revenue(paying) == A_DAY
    assert paying.market.ledger.books.books_balanced()


def test_a_region_that_was_away_catches_up_day_by_day_and_its_views_come_back_equal(
    paying: Paying,
) -> None:
    paying.set_window(0)
    set_terms(paying, participation_ppm=333_333)
    opened(paying)
    for day in range(3):
        work(paying, day)
        run(paying, "capacity accrual maturity")
    paying.clock.move_to(FIRST_US + 4 * DAY_US + WAIT_US_MAX)
    assert run(paying)["regions"] == 4
    days = paying.market.facts(RegionDayShared)
    assert [one.day for one in days] == [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    assert all(
        (one.gathered + one.carry_before).units
        == (one.infra + one.participation + one.usage + one.carry).units
        for one in days
    )
    assert days[-1].participation == credit(0), "nobody signed for that day, so all is usage"
    taken = paying.market.facts(RegionEarningsGathered)
    assert sum(one.amount.units for one in taken) == sum(one.gathered.units for one in days)
    assert (revenue(paying), paying.market.balance(f"region:{REGION}:carry")) == (
        0,
        days[-1].carry.units,
    )
    with paying.service.connect() as connection:
        tables.step_all(connection)
        (view,) = (one for one in tables.PROJECTIONS if one.name == "regions")
        before = tables.digest(connection, view.schema, seed=7)
        tables.rebuild(connection, view)
        assert tables.digest(connection, view.schema, seed=7) == before
        told = regions.read_days(connection, REGION)
        assert [one.day for one in told] == [FIRST + 3, FIRST + 2, FIRST + 1, FIRST]
        mine = regions.read_shares(connection, REGION, day=FIRST + 1, account_id=RENTER)
        assert [one.node_id for one in mine] == [paying.market.nodes["two"].id]


def test_what_is_disputed_or_earned_before_the_terms_is_not_shared(paying: Paying) -> None:
    """With a window of three days: a contested hour stays where it was, and so does the past."""
    paying.set_window(3 * DAY_US)
    set_terms(paying)
    paying.clock.move_to(FIRST_US - DAY_US)
    paying.lease = paying.market.lease("a", "one", term_us=9 * DAY_US, at_us=FIRST_US - DAY_US)
    work(paying, -1)
    run(paying)
    work(paying, 0)
    run(paying)
    with paying.service.connect() as connection:
        tables.step_all(connection, only=("regions",))
        owed = connection.execute("SELECT position FROM proj_regions.owed ORDER BY 1").fetchall()
    ledger, at_us = paying.market.ledger, paying.clock.now_us()
    line = charged_line(ledger.market, ledger.books, owed[-1][0])
    paying.market.do(
        at_us,
        OpenDispute(
            dispute_id="dispute_a",
            party_account_id=RENTER,
            claim_code="too_slow",
            claims=(Claim(line=line, claimed=line.charge),),
            claim_sha256=None,
            evidence=(),
            by="mem",
            at_us=at_us,
        ),
    )
    paying.clock.move_to(FIRST_US + 4 * DAY_US)
    run(paying, "maturity")
    assert (paying.books()[1], revenue(paying)) == (A_DAY, A_DAY - EARNED_AN_HOUR)
    assert paying.market.balance("dispute:dispute_a") == EARNED_AN_HOUR


def test_a_region_that_fails_stops_alone_and_names_itself(paying: Paying) -> None:
    set_terms(paying)
    paying.clock.move_to(FIRST_US + DAY_US + WAIT_US)
    with paying.service.connect() as connection:
        tables.step_all(connection, only=("regions",))
        connection.execute(
            "INSERT INTO proj_regions.terms SELECT 'region_lost', version, effective_from_day, 1"
            " FROM proj_regions.terms"
        )
        with pytest.raises(RegionsStopped, match="1 regions stop, the first is region_lost"):
            run_regions(paying.service, connection, paying.clock.now_us())
    (total,) = paying.market.facts(RegionDayShared)
    assert (total.region_id, total.arrears) == (REGION, credit(CONTROL))


# --- attested time -----------------------------------------------------------------------------


def present(device: str, us: int, metered_us: int, told: str = "") -> regions.Present:
    return regions.Present("node_a", device, told or device, us, metered_us)


def test_time_counts_at_its_tier_and_never_beyond_what_was_there() -> None:
    devices = [present("g0", 10, 8), present("g1", 10, 12), present("g2", 10, 10)]
    tiers = {"g0": 3, "g1": 4, "g2": 2}
    assert node_time("node_a", devices, tiers, 3, 0) == NodeTime("node_a", 18, 10)
    assert node_time("node_a", devices, {}, 1, 0) == NodeTime("node_a", 0, 28)
    parts = [present("g0", 10, 9, "MIG-1"), present("g0", 10, 9, "MIG-2")]
    assert node_time("node_a", parts, {"MIG-1": 2, "MIG-2": 3}, 3, 0) == NodeTime("node_a", 9, 1)


def test_leased_time_that_a_renter_signed_for_makes_up_for_a_challenge_and_for_no_more() -> None:
    devices = [present("g0", 10, 10), present("g1", 10, 10)]
    assert node_time("node_a", devices, {"g0": 2, "g1": 1}, 3, 7) == NodeTime("node_a", 7, 13)
    assert node_time("node_a", devices, {"g0": 2, "g1": 1}, 3, 70) == NodeTime("node_a", 10, 10)
    assert node_time("node_a", devices, {"g0": 2, "g1": 1}, 4, 70) == NodeTime("node_a", 0, 20)
