"""Tokens for a charge: worth at least the charge, and less than one unit more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.prices.reasons import PricesReason
from domain.prices.token_burn import BPS, PRICE_MIN, TOKEN_UNITS, TokenBurn, burn_for, tokens_for
from domain.refusal import Reason, Refused

charges = st.integers(1, 10**18)
prices = st.integers(PRICE_MIN, 10**15)


@given(charges, prices)
def test_a_burn_is_worth_its_charge_and_less_than_one_unit_more(charge: int, price: int) -> None:
    tokens = tokens_for(charge, price)
    assert tokens >= 1
    assert (tokens - 1) * price < charge * TOKEN_UNITS <= tokens * price


@given(charges, prices, st.integers(0, 10_000))
def test_fee_and_burn_add_up_to_the_gross_charge(gross: int, price: int, fee_bps: int) -> None:
    burn = burn_for(gross, price, fee_bps)
    assert burn.fee + burn.burn == gross
    assert burn.fee * 10_000 <= gross * fee_bps < (burn.fee + 1) * 10_000
    assert burn.tokens == (tokens_for(burn.burn, price) if burn.burn else 0)


def test_one_micro_credit_never_burns_nothing() -> None:
    assert tokens_for(1, 1_870_000) == 54
    assert tokens_for(1, 300_000_000_000) == 1
    assert tokens_for(19_000_000, 1_870_000) == 1_016_042_781
    assert tokens_for(0, 1_870_000) == 0


@pytest.mark.parametrize(
    ("gross", "price", "fee_bps", "reason"),
    [
        (0, 0, -1, PricesReason.ZERO_AMOUNT),
        (-5, 2_000, 0, PricesReason.ZERO_AMOUNT),
        (1, 999, -1, PricesReason.PRICE_TOO_LOW),
        (1, 1_000, -1, PricesReason.FEE_OUT_OF_RANGE),
        (1, 1_000, 10_001, PricesReason.FEE_OUT_OF_RANGE),
    ],
)
def test_the_first_rule_that_is_broken_refuses(
    gross: int, price: int, fee_bps: int, reason: Reason
) -> None:
    with pytest.raises(Refused) as caught:
        burn_for(gross, price, fee_bps)
    assert caught.value.reason is reason


def test_a_fee_may_be_nothing_or_all_of_the_charge() -> None:
    """Basis points: 10,000 are the whole. What is all fee burns nothing."""
    assert burn_for(7, 1_000, 0) == TokenBurn(0, 7, 700_000)
    assert burn_for(7, 1_000, 10_000) == TokenBurn(7, 0, 0)
    assert burn_for(10_001, 1_000, 9_999).fee == 9_999, "floored: 9,999.9999"


def test_a_price_of_one_thousandth_of_a_cent_is_the_lowest_and_a_charge_of_one_unit() -> None:
    assert burn_for(1, 1_000, 0).burn == 1


def test_a_token_has_eight_decimals_and_a_fee_is_told_in_basis_points() -> None:
    assert (TOKEN_UNITS, BPS, PRICE_MIN) == (100_000_000, 10_000, 1_000)
