"""Card money that may still be reversed earns nobody a reward, whatever weights are counted by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from domain.lease.funds import EscrowPart
from domain.lease.lease import UsageAccrued
from domain.leasing.other_resources import ResourceAccrued
from domain.money import credit
from projections import tables
from projections.epochs import epochs
from tests.projections.story import Size, Told, Writer, story

CHARGED = (UsageAccrued, ResourceAccrued)


def _paid_by(told: Iterator[Told], cash_ppm: int, other: str) -> Iterator[Told]:
    """The story, but every accrual that cash paid is paid by cash only in part."""
    for stream, fact in told:
        if isinstance(fact, CHARGED) and fact.drawn and fact.drawn[0].source == "cash":
            whole = fact.drawn[0].amount.units
            cash = whole * cash_ppm // 1_000_000
            parts = (EscrowPart("cash", credit(cash)), EscrowPart(other, credit(whole - cash)))
            fact = replace(fact, drawn=tuple(part for part in parts if part.amount.units))
        yield stream, fact


def _weights(database: str, cash_ppm: int, other: str) -> tuple[dict[str, int], list[Any]]:
    """Weights of epoch 1 by each base, and per accrual (burn, cash, all, weight) of cash leases."""
    with psycopg.connect(database, autocommit=True) as connection:
        writer = Writer(connection)
        facts = [told for told in _paid_by(story(Size()), cash_ppm, other) if _is_weighed(told[1])]
        writer.write(facts)
        tables.step_all(connection, only=("epochs",))
        final = epochs.read_preview(connection, 1)
        sums = {who: used for who, *used in final.by_account()}
        bases = dict(
            zip(("burned_value", "gpu_time"), sums.get("acct_provider", (0, 0)), strict=True)
        )
        rows = connection.execute(
            "SELECT position, coalesce(max(c.burned) FILTER (WHERE c.source = 'cash'), 0)"
            " FROM proj_epochs.due JOIN proj_epochs.counted c USING (position) GROUP BY 1"
        ).fetchall()
    weights: dict[int, int] = dict(rows)
    accruals = []
    for position, (_, fact) in enumerate(facts, start=1):
        if isinstance(fact, CHARGED) and position in weights:
            cash = sum(part.amount.units for part in fact.drawn if part.source == "cash")
            whole = sum(part.amount.units for part in fact.drawn)
            accruals.append((fact.parts_new.burn, cash, whole, weights[position]))
    return bases, accruals


@pytest.mark.parametrize("other", ["card", "earned", "grant.spring"])
def test_only_the_part_that_cash_paid_has_weight(database: str, other: str) -> None:
    """Design economics 5 and 20.5: card 0 until confirmed, grants and earned credits 0."""
    _, accruals = _weights(database, 300_000, other)
    assert accruals
    for burn, cash, whole, weight in accruals:
        assert 0 < weight == burn * cash // whole < burn


def test_usage_paid_with_card_money_alone_has_no_weight_by_value_or_by_gpu_time(
    database: str,
) -> None:
    bases, accruals = _weights(database, 0, "card")
    assert accruals
    assert {weight for _, _, _, weight in accruals} == {0}
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(
            "SELECT sum(burned), sum(gpu_us) FROM proj_epochs.weight"
            " WHERE epoch = 1 AND source IN ('burned', 'cash')"
        ).fetchone()
    assert row is not None
    assert bases == {"burned_value": row[0], "gpu_time": row[1]}
    assert row[0] > 0, "the leases in burned credits still count"
    assert row[1] == _burned_gpu_us(), "and only their GPU time does"


def _is_weighed(fact: Any) -> bool:
    """What is contested has no weight (tests/projections/epochs/test_disputed_weights.py): left
    out.
    """
    return type(fact).__module__ not in ("domain.corrections.dispute", "domain.income.adjustment")


@pytest.mark.parametrize("payer", ["acct_provider", "acct_payer"])
def test_what_the_provider_itself_pays_for_others_has_no_weight(database: str, payer: str) -> None:
    """Anti-wash, with one payer for many accounts: a provider that funds its renter gains none."""

    def paid_by(told: Iterator[Told]) -> Iterator[Told]:
        for stream, fact in told:
            if isinstance(fact, CHARGED):
                drawn = tuple(replace(part, account_id=payer) for part in fact.drawn)
                fact = replace(fact, drawn=drawn)
            yield stream, fact

    with psycopg.connect(database, autocommit=True) as connection:
        Writer(connection).write(list(paid_by(story(Size()))))
        tables.step_all(connection, only=("epochs",))
        rows = connection.execute("SELECT burned, gpu_us FROM proj_epochs.weight").fetchall()
    assert any(burned for burned, _ in rows) == (payer != "acct_provider")
    assert all(gpu_us >= 0 and gpu_us + burned > 0 for burned, gpu_us in rows)


def _burned_gpu_us() -> int:
    """GPU time of the leases of epoch 1 that burned credits paid."""
    found = 0
    for _, fact in story(Size()):
        if type(fact).__name__ == "EpochClosing":
            return found
        if isinstance(fact, UsageAccrued) and fact.drawn[0].source == "burned":
            found += fact.gpu_us_new
    raise AssertionError("the story closes an epoch")
