"""What is burned of a resource beside the GPU weighs as what is burned of GPU time (R-7, R-8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from domain.income.adjustment import AdjustmentBooked
from domain.lease.funds import EscrowPart
from domain.leasing.other_resources import ResourceAccrued, stream_of
from domain.money import credit
from domain.prices.charge_split import NOTHING
from projections.epochs import epochs
from projections.epochs.epochs import Tokens, Weight
from tests.projections import story
from tests.projections.epochs.test_burned_tokens import SIZE, bought, burnt, closing, told, used
from tests.projections.story import Told

OWNER = "acct_provider"


def charged(units: int, source: str = "cash", *, by: str = "acct_cash") -> Told:
    """A charge for the network of a lease on the first node, half of it to be burned."""
    facts = (fact for _, fact in story._resources(SIZE, 0, "network", story.START_US))
    fact = next(one for one in facts if isinstance(one, ResourceAccrued))
    parts = replace(NOTHING, provider=units - units // 2, burn=units // 2)
    if source == "burned":
        parts = replace(NOTHING, burn=units)
    return stream_of(fact.lease_id, "network"), replace(
        fact,
        account_id=by,
        charge=credit(units),
        charge_new=credit(units),
        parts=parts,
        parts_new=parts,
        drawn=(EscrowPart(source, credit(units)),),
        refused=(),
    )


def weights(connection: psycopg.Connection[Any], facts: list[Told]) -> list[Weight]:
    told(connection, facts)
    return list(epochs.read_preview(connection, 1).weights)


PAID = [charged(1_000), bought(1, 7_000, 700), charged(700, "burned")]
OF_BURNED = Weight(SIZE.node(0), OWNER, "burned", 700, 0)


def test_burned_credits_weigh_at_once_and_cash_not_before_it_is_burned(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        assert weights(connection, PAID) == [OF_BURNED]


def test_what_cash_paid_weighs_once_it_is_burned(database: str) -> None:
    facts = [*PAID, *burnt(1, 1, 3, 500, 50_000), closing(1)]
    with psycopg.connect(database, autocommit=True) as connection:
        of_cash = Weight(SIZE.node(0), OWNER, "cash", 500, 0)
        assert weights(connection, facts) == [OF_BURNED, of_cash]
        tokens = epochs.read_burned_tokens(connection, 1)
        assert tokens == {SIZE.node(0): Tokens(50_000, 7_000)}, "all that was burned, to the unit"


def test_a_resource_has_the_weight_that_gpu_time_of_the_same_price_has(database: str) -> None:
    """By burned value; by GPU time it has none."""
    facts = [charged(1_000), used(1, "cash", 500), *burnt(1, 1, 2, 1_000, 80_000)]
    with psycopg.connect(database, autocommit=True) as connection:
        first, second = weights(connection, facts)
    assert (first.burned, second.burned) == (500, 500)
    assert second.gpu_us > first.gpu_us == 0


@pytest.mark.parametrize("source", ["cash", "burned"])
def test_what_an_owner_pays_to_itself_has_no_weight(database: str, source: str) -> None:
    """The related rule of GPU time; burned credits are used up all the same."""
    facts = [bought(1, 7_000, 1_000, OWNER), charged(1_000, source, by=OWNER)]
    facts += list(burnt(1, 1, 2, 500, 50_000)) if source == "cash" else []
    with psycopg.connect(database, autocommit=True) as connection:
        assert weights(connection, facts) == []
        assert epochs.read_burned_tokens(connection, 1) == {}


def test_card_money_and_grants_have_the_weight_of_their_source_and_no_other(database: str) -> None:
    facts = [charged(1_000, "grant.spring"), *burnt(1, 1, 1, 500, 50_000)]
    with psycopg.connect(database, autocommit=True) as connection:
        (one,) = weights(connection, facts)
        assert (one.source, one.burned) == ("grant.spring", 500)
        assert epochs.read_burned_tokens(connection, 1) == {}, "a grant lifts no bound"


def test_what_is_given_back_of_a_charge_is_taken_from_its_weight(database: str) -> None:
    booked = ((one, fact) for one, fact in story.story(SIZE) if isinstance(fact, AdjustmentBooked))
    stream, fact = next(booked)
    given = replace(fact, corrects_position=1, returned=250, lines=(), late=None)
    facts = [charged(1_000), *burnt(1, 1, 1, 500, 50_000), (stream, given)]
    with psycopg.connect(database, autocommit=True) as connection:
        (one,) = weights(connection, facts)
        assert one.burned == 500 - 125
