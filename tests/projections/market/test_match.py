"""The fleet in memory answers as the reference does, node by node, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.market.dimensions import FreeDevice, Need, OfferedNode
from domain.market.explanation import explain
from domain.market.matching import choose
from domain.money import PPM
from projections.market.columns import Columns, key_of
from projections.market.match import answer
from tests.domain.scenes.fleets import (
    FEES,
    OWNER,
    RENTER,
    as_seen_by,
    fleets,
    needs,
    node_rows,
    with_peers,
)
from tests.examples import examples

LISTS = {OWNER: (frozenset[str](), frozenset({RENTER}))}


def _compare(columns: Columns, need: Need, rows: Sequence[OfferedNode]) -> None:
    found = answer(columns, need, FEES)
    seen = [as_seen_by(need.account_id, row) for row in with_peers(rows)]
    expected = choose(need, seen)
    assert choose(need, found.nodes) == (
        None if expected is None else replace(expected, considered=len(found.nodes))
    )
    assert found.considered == (0 if expected is None else expected.considered)
    assert found.explanation == explain(need, seen)


@examples(200)
@given(needs(), fleets())
def test_the_columns_agree_with_the_reference_on_any_fleet(
    need: Need, rows: list[OfferedNode]
) -> None:
    columns = Columns(capacity=2)
    columns.fill(rows)
    _compare(columns, need, rows)


@examples(40)
@given(needs(), fleets())
def test_lists_of_a_provider_are_asked_once_and_hold_for_all_its_nodes(
    need: Need, rows: list[OfferedNode]
) -> None:
    columns = Columns(capacity=2)
    columns.fill(rows)
    answer(columns, need, FEES)
    columns.deal_with(LISTS)
    listed = [
        replace(row, denied=LISTS[row.account_id][1]) if row.account_id in LISTS else row
        for row in rows
    ]
    _compare(columns, need, listed)


@examples(80)
@given(needs(), st.data())
def test_what_changes_and_goes_leaves_no_trace_in_the_columns(
    need: Need, data: st.DataObject
) -> None:
    columns, present = Columns(capacity=1), dict[str, list[OfferedNode]]()
    for _ in range(data.draw(st.integers(1, 8))):
        row = data.draw(node_rows(data.draw(st.integers(0, 3))))
        rows = [] if data.draw(st.integers(0, 3)) == 0 else [row]
        if data.draw(st.booleans()):
            rows += [one for one in present.get(row.node_id, []) if one.offer_id != row.offer_id]
        columns.put(row.node_id, rows)
        present[row.node_id] = rows
        answer(columns, need, FEES)  # what was read back must not be told when it has changed
    _compare(columns, need, [row for rows in present.values() for row in rows])


@examples(80)
@given(fleets())
def test_a_row_gives_back_what_was_put_in(rows: list[OfferedNode]) -> None:
    columns = Columns(capacity=1)
    columns.fill(rows)
    for row in with_peers(rows):
        place = columns.rows_of[row.node_id][key_of(row)[1:]]
        stated = row.terms.security_tier
        tier = row.security_tier if stated is None else min(row.security_tier, stated)
        assert columns.nodes([place])[0] == replace(row, security_tier=tier)


def test_a_fleet_larger_than_a_decision_lists_is_ranked_by_every_key() -> None:
    """Sixty equal nodes: only their ids tell them apart, and the first twenty are the best."""
    template = OfferedNode(
        node_id="",
        offer_id="offer",
        account_id=OWNER,
        price=3,
        pay_with="cash",
        fractions=True,
        served_gpu_us=0,
        devices=(),
        model="A100",
        gpu_class="datacenter",
        vendor="nvidia",
    )
    rows = [
        replace(template, node_id=f"node_{number:02}", devices=_two(number)) for number in range(60)
    ]
    columns = Columns()
    columns.fill(reversed(rows))
    need = Need(1, PPM // 2, PPM // 2, (), 5, RENTER, at_us=1, until_us=2)
    found = answer(columns, need, FEES)
    assert {node.node_id for node in found.nodes} == {f"node_{n:02}" for n in range(20)}
    assert found.considered == 60
    columns.put("node_00", [replace(rows[0], served_gpu_us=1)])
    columns.put("node_01", [])
    columns.put("node_005", [replace(rows[1], node_id="node_005")])
    names = {node.node_id for node in answer(columns, need, FEES).nodes}
    assert names == {"node_005", *(f"node_{n:02}" for n in range(2, 21))}


def _two(number: int) -> tuple[FreeDevice, ...]:
    return tuple(FreeDevice(f"GPU-{number}-{slot}", "A100", PPM, PPM) for slot in range(2))
