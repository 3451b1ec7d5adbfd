"""Which client brought what an account earned: told of every fact to the unit (row R-1)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.brought import (
    CLIENTS_MAX,
    NO_CLIENT,
    ClientPart,
    after_inflow,
    apportioned,
    as_parts,
    by_client,
)

brought = st.dictionaries(
    st.sampled_from([NO_CLIENT, "a", "b", "c", "d"]), st.integers(0, 10**30), max_size=5
)


@given(units=st.integers(0, 10**30), known=brought)
def test_the_parts_are_the_amount_and_each_is_its_proportion_to_less_than_a_unit(
    units: int, known: dict[str, int]
) -> None:
    parts, whole = apportioned(units, known), sum(known.values())
    assert sum(parts.values()) == units
    for client_id, part in known.items():
        got = parts.get(client_id, 0)
        if units <= whole:
            assert abs(got * whole - units * part) < max(1, whole)
        else:
            assert got == part + (units - whole if client_id == NO_CLIENT else 0)
    assert sum(part.units for part in as_parts(parts)) == units


def test_the_largest_remainders_come_first_and_of_equals_the_first_by_id() -> None:
    assert apportioned(2, {"b": 1, "a": 1, "c": 1}) == {"a": 1, "b": 1}
    assert apportioned(5, {"a": 7, "b": 3}) == {"a": 4, "b": 1}


def test_what_nothing_is_known_of_has_no_client() -> None:
    assert apportioned(9, {"a": 4}) == {"a": 4, NO_CLIENT: 5}
    assert apportioned(9, {}) == {NO_CLIENT: 9}
    assert apportioned(0, {"a": 4}) == {}


@given(before=st.integers(0, 10**12), known=brought, came=brought)
def test_after_something_came_in_what_is_remembered_is_the_balance(
    before: int, known: dict[str, int], came: dict[str, int]
) -> None:
    after = after_inflow(before, known, as_parts(came))
    assert sum(after.values()) == before + sum(came.values())


def test_more_clients_than_a_fact_names_are_told_together() -> None:
    many = {f"c{number:03d}": 2 for number in range(CLIENTS_MAX + 5)}
    parts = as_parts({**many, NO_CLIENT: 1})
    assert len(parts) == CLIENTS_MAX + 1
    assert parts[-1] == ClientPart(NO_CLIENT, 11)
    assert by_client(parts)["c000"] == 2
