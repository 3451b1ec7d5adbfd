"""Earnings on a running market, with its jobs and a clock: each accrual by itself, every day."""

from __future__ import annotations

from typing import Any

import pytest

from api.income.maturing_timer import MoneyOutStopped, mature, sweep
from domain.duration import DAY_US, HOUR_US
from domain.income.maturity import DEFAULT_WINDOW_US, EarningsMatured, EarningsSwept, SetPaymentMode
from domain.money import credit
from tests.scenes.paying import EARNED_AN_HOUR, MIDNIGHT_US, Paying, paying
from tests.scenes.running_market import OWNER, RENTER

__all__ = ["paying"]


@pytest.mark.parametrize(
    "window_days",
    [
        pytest.param(
            0, marks=pytest.mark.slow("::test_a_sixty_day_lease_pays_its_owner_every_day")
        ),
        3,
    ],
)
def test_a_sixty_day_lease_pays_its_owner_every_day(paying: Paying, window_days: int) -> None:
    """C-23 and C-24: each posting matures by itself, swept every 24 h, spendable at once."""
    days = 60
    paying.set_window(window_days * DAY_US)
    paying.open(days)
    a_day = 24 * EARNED_AN_HOUR
    for day in range(days + window_days):
        opens_us = MIDNIGHT_US + day * DAY_US
        if day < days:
            paying.live(opens_us, opens_us + DAY_US)
        else:
            paying.clock.move_to(opens_us + DAY_US)
        paying.run()
        held, payable, earned = paying.books()
        paid_days = max(0, day + 1 - window_days)
        assert earned == paid_days * a_day, f"day {day}"
        assert payable == 0
        assert held == (min(day + 1, days) - paid_days) * a_day
    matured = paying.market.facts(EarningsMatured)
    swept = paying.market.facts(EarningsSwept)
    assert [fact.amount for fact in swept] == [credit(a_day)] * days
    assert len({fact.day for fact in swept}) == days
    assert [one.through_position for one in matured[:-1]] == [
        one.after_position for one in matured[1:]
    ]
    assert paying.market.ledger.books.books_balanced()


def test_an_accrual_matures_its_window_after_its_own_posting_to_the_microsecond(
    paying: Paying,
) -> None:
    """C-23; nobody set a window, so it is 72 hours."""
    paying.open(10)
    paying.live(MIDNIGHT_US, MIDNIGHT_US + HOUR_US)
    paying.run()
    paying.live(MIDNIGHT_US + HOUR_US, MIDNIGHT_US + 2 * HOUR_US)
    paying.run()
    assert paying.books() == (2 * EARNED_AN_HOUR, 0, 0)
    due_us = MIDNIGHT_US + HOUR_US + DEFAULT_WINDOW_US
    paying.clock.move_to(due_us - 1)
    assert paying.run(jobs="maturity") == {"maturity": 0}
    paying.clock.move_to(due_us)
    assert paying.run(jobs="maturity") == {"maturity": 1}
    assert paying.books() == (EARNED_AN_HOUR, EARNED_AN_HOUR, 0)
    assert paying.run(jobs="maturity") == {"maturity": 0}


def test_double_runs_and_a_stop_between_the_jobs_change_nothing(paying: Paying) -> None:
    """C-24: a second run in the same 24 h does nothing; balance after = 0."""
    paying.set_window(0)
    paying.open(3)
    paying.live(MIDNIGHT_US, MIDNIGHT_US + DAY_US)
    assert paying.run(jobs="accrual maturity")["maturity"] == 1
    # The process stops here; another one begins from the start, and then once more.
    a_day = 24 * EARNED_AN_HOUR
    assert paying.books() == (0, a_day, 0)
    assert paying.run() == {"accrual": 0, "maturity": 0, "sweep": 1}
    head = paying.market.head
    assert paying.run() == {"accrual": 0, "maturity": 0, "sweep": 0}
    assert paying.market.head == head
    assert paying.books() == (0, 0, a_day)
    paying.live(MIDNIGHT_US + DAY_US, MIDNIGHT_US + DAY_US + HOUR_US)
    assert paying.run() == {"accrual": 1, "maturity": 1, "sweep": 0}
    assert paying.books() == (0, EARNED_AN_HOUR, a_day), "swept once on this UTC day"


def test_a_view_that_lags_never_matures_anything_twice(paying: Paying) -> None:
    """The range a view found must begin where the log ended: else nothing is recorded."""
    paying.set_window(0)
    paying.open(3)
    paying.live(MIDNIGHT_US, MIDNIGHT_US + HOUR_US)
    paying.run()
    view = paying.service.connect()
    view.execute("UPDATE proj_money_out.payee SET matured_through = 0")
    view.execute("INSERT INTO proj_money_out.held SELECT 1, %s, 5, %s", (OWNER, MIDNIGHT_US))
    head = paying.market.head
    with pytest.raises(MoneyOutStopped, match=OWNER):
        mature(paying.service.ledger, view, paying.clock.now_us())
    view.close()
    assert paying.market.head == head


def test_an_account_that_fails_stops_alone(paying: Paying) -> None:
    paying.set_window(0)
    paying.open(3)
    paying.live(MIDNIGHT_US, MIDNIGHT_US + HOUR_US)
    paying.run(jobs="accrual maturity")
    with paying.service.connect() as view:
        sweep_of_nobody = "INSERT INTO proj_money_out.payee (account_id, payable) VALUES (%s, 7)"
        view.execute(sweep_of_nobody, ("acct_a_stranger",))
        assert sweep(paying.service.ledger, view, paying.clock.now_us()) == 1
    assert paying.books()[2] == EARNED_AN_HOUR


def test_swept_earnings_of_a_billing_account_are_spendable_at_once(paying: Paying) -> None:
    """C-24: credits to the billing account, and C-25: they pay for its next lease."""
    paying.set_window(0)
    now_us = paying.clock.now_us()
    mode: dict[str, Any] = {"destination": None, "by": "mem", "at_us": now_us}
    paying.market.do(
        now_us, SetPaymentMode(account_id=OWNER, mode="credits", billing_account_id=RENTER, **mode)
    )
    paying.open(3)
    paying.live(MIDNIGHT_US, MIDNIGHT_US + 3 * HOUR_US)
    paying.run()
    assert paying.books(RENTER)[2] == 3 * EARNED_AN_HOUR
    paying.market.close(paying.lease, paying.clock.now_us())
    paying.run()
    paying.market.lease("b", "one", funds=3 * EARNED_AN_HOUR, at_us=paying.clock.now_us())
    assert paying.books(RENTER)[2] == 0, "earned is spent before cash"


def test_only_accounts_with_something_due_are_looked_at(paying: Paying) -> None:
    """100,000 accounts with earnings, one of them due: one row is read."""
    with paying.service.connect() as view:
        view.execute(
            "INSERT INTO proj_money_out.held SELECT 1000000 + n, 'acct_' || n, 5, 0"
            " FROM generate_series(1, 100000) n"
        )
        view.execute("INSERT INTO proj_money_out.held VALUES (1, 'acct_due', 5, 0)")
        view.execute("ANALYZE proj_money_out.held")
        plan = view.execute(
            "EXPLAIN (ANALYZE, FORMAT JSON) SELECT account_id, sum(units) FROM"
            " proj_money_out.held WHERE position <= 10 AND account_id > '' GROUP BY account_id"
        ).fetchone()
    assert plan is not None
    scans = [node for node in _nodes(plan[0][0]["Plan"]) if "Relation Name" in node]
    assert [(node["Node Type"], node["Actual Rows"]) for node in scans] in (
        [("Index Scan", 1)],
        [("Index Only Scan", 1)],
        [("Bitmap Heap Scan", 1)],
    )
    assert all(node.get("Rows Removed by Filter", 0) == 0 for node in scans)


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for each in plan.get("Plans", ()) for node in _nodes(each))]
