"""What an account may spend, in spend order (design economics 5)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.funding import BURN_SOURCES, CASH_SOURCES, Source, sources_of
from tests.domain.market import NOON_US, RENTER
from tests.given import Scene

held = st.dictionaries(
    st.sampled_from((*CASH_SOURCES, *BURN_SOURCES)), st.integers(0, 10**12), max_size=5
)


@given(held, st.sampled_from(("cash", "burn")))
def test_sources_are_spent_least_regretted_first_and_only_those_that_hold_something(
    balances: dict[str, int], settlement: str
) -> None:
    world = Scene().having({f"party:{RENTER}:{name}": units for name, units in balances.items()})
    names = CASH_SOURCES if settlement == "cash" else BURN_SOURCES
    assert sources_of(world, RENTER, settlement, NOON_US) == tuple(
        Source(RENTER, name, balances[name]) for name in names if balances.get(name)
    )
