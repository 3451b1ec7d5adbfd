"""Sharing out a pool: nothing appears, nothing disappears, and more weight never earns less."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.money import Amount, Asset, MoneyReason, credit, share_out, share_out_all, token
from domain.refusal import Refused

Weights = list[tuple[str, int]]

pools = st.integers(0, 10**20)
weights = st.dictionaries(st.text(max_size=4), st.integers(0, 10**15), max_size=8).map(
    lambda by_id: list(by_id.items())
)
some_weights = weights.filter(bool)


@given(pools, weights)
def test_shares_and_carry_add_up_to_exactly_the_pool(pool: int, weights: Weights) -> None:
    shares = share_out(pool, weights)
    assert sum(shares.by_id.values()) + shares.carry == pool


@given(pools, some_weights)
def test_less_than_one_unit_per_recipient_is_carried(pool: int, weights: Weights) -> None:
    whole = sum(weight for _, weight in weights)
    assert share_out(pool, weights).carry < (len(weights) if whole else pool + 1)


@given(pools, pools, weights)
def test_a_larger_pool_never_lowers_a_share(pool: int, more: int, weights: Weights) -> None:
    before, after = share_out(pool, weights), share_out(pool + more, weights)
    assert all(after.by_id[who] >= units for who, units in before.by_id.items())


@given(pools, some_weights, st.data(), st.integers(0, 10**15))
def test_more_weight_never_earns_less(
    pool: int, weights: Weights, data: st.DataObject, more: int
) -> None:
    index = data.draw(st.integers(0, len(weights) - 1))
    who, weight = weights[index]
    heavier = [*weights[:index], (who, weight + more), *weights[index + 1 :]]
    assert share_out(pool, heavier).by_id[who] >= share_out(pool, weights).by_id[who]


@given(pools, weights, st.lists(st.integers(0, 10**15), min_size=1, max_size=6))
def test_one_owner_with_several_names_never_earns_more(
    pool: int, others: Weights, parts: list[int]
) -> None:
    as_one = share_out(pool, [*others, ("owner", sum(parts))])
    names = [(f"owner {number}", part) for number, part in enumerate(parts)]
    as_many = share_out(pool, [*others, *names])
    assert sum(as_many.by_id[name] for name, _ in names) <= as_one.by_id["owner"]


@given(pools, weights, st.randoms(use_true_random=False))
def test_the_order_of_recipients_changes_nothing(
    pool: int, weights: Weights, random: object
) -> None:
    shuffled = sorted(weights, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert share_out(pool, shuffled) == share_out(pool, weights)


@given(pools, st.integers(1, 10**15), st.integers(1, 8))
def test_equal_weights_earn_equally(pool: int, weight: int, count: int) -> None:
    shares = share_out(pool, [(str(index), weight) for index in range(count)])
    assert len(set(shares.by_id.values())) == 1


@given(pools, some_weights)
def test_the_largest_remainder_leaves_nothing_behind(pool: int, weights: Weights) -> None:
    shares = share_out_all(pool, weights)
    floors = share_out(pool, weights).by_id
    assert sum(shares.by_id.values()) + shares.carry == pool
    assert shares.carry in (0, pool)
    assert all(0 <= units - floors[who] <= 1 for who, units in shares.by_id.items())


@pytest.mark.parametrize("split", [share_out, share_out_all])
def test_weights_must_make_sense(split: object) -> None:
    assert callable(split)
    for pool, weights, reason in (
        (-1, [("a", -1), ("a", 1)], MoneyReason.NEGATIVE_POOL),
        (1, [("a", -1), ("a", 1)], MoneyReason.DUPLICATE_ID),
        (1, [("a", -1)], MoneyReason.NEGATIVE_WEIGHT),
    ):
        with pytest.raises(Refused) as caught:
            split(pool, weights)
        assert caught.value.reason is reason


def test_without_weight_the_whole_pool_is_carried() -> None:
    assert share_out(500, [("a", 0)]).carry == 500
    assert share_out_all(500, []).carry == 500


def test_amounts_of_two_assets_never_mix() -> None:
    assert credit(2) + credit(3) - credit(1) == Amount(Asset.CREDIT, 4)
    with pytest.raises(AssertionError):
        credit(1) + token(1)
    with pytest.raises(AssertionError):
        credit(1) - token(1)
