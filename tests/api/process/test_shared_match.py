"""A round that looks at the fleet once gives each call what looking anew would have given it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from api.process.lease_desk import Round
from api.process.shared_match import Standings
from domain.market.dimensions import Need, OfferedNode
from domain.market.matching import CANDIDATES_MAX, choose, less
from domain.money import PPM
from projections.market.columns import Columns
from projections.market.match import answer
from tests.domain.scenes.fleets import FEES, OWNER, RENTER, fleets, needs
from tests.examples import examples
from tests.given import Scene

ACCOUNTS = (RENTER, OWNER, "acct_of_nobody", "acct_of_nobody_else")
LISTS = {OWNER: (frozenset[str](), frozenset({"acct_of_nobody_else"}))}


@examples(150)
@given(needs(), fleets(), st.data())
def test_every_call_of_a_round_gets_the_best_of_what_is_left(
    need: Need, rows: list[OfferedNode], data: st.DataObject
) -> None:
    calls = data.draw(st.lists(st.sampled_from(ACCOUNTS), min_size=1, max_size=6))
    lists = LISTS if data.draw(st.booleans()) else {}
    columns = Columns(capacity=2)
    columns.fill(rows)
    columns.deal_with(lists)
    here = Round(Scene(), need.at_us, Standings(len(calls)))
    for account_id in calls:
        asked = replace(need, account_id=account_id)
        if asked.price_max_funds is not None and data.draw(st.booleans()):
            richer = tuple((way, units + 1_000_000) for way, units in asked.price_max_funds)
            asked = replace(asked, price_max_funds=richer)
        met = answer(columns, asked, FEES, limit=CANDIDATES_MAX + len(calls)).nodes
        expected = choose(asked, [less(node, here.taken, here.rooms) for node in met])
        standing = here.standings.of(columns, 1, asked, FEES)
        assert standing.found.explanation == answer(columns, asked, FEES).explanation
        found = standing.best(here.taken, here.given_of, here.rooms)
        assert (found is None) == (expected is None)
        if found is None or expected is None:
            continue
        assert replace(found, considered=expected.considered) == expected
        here.give(found.node_id, found.device_ids, need)
    for share, mem, _ in here.taken.values():
        assert share <= PPM
        assert mem <= PPM


def test_renters_whom_no_row_tells_apart_share_one_look() -> None:
    columns = Columns()
    need = Need(1, PPM, PPM, (), 5, "acct_a", at_us=1, until_us=2)
    standings = Standings(2)
    assert standings.of(columns, 1, need, FEES) is standings.of(
        columns, 2, replace(need, account_id="acct_b"), FEES
    )
    columns.deal_with({OWNER: (frozenset(), frozenset({"acct_b"}))})
    assert standings.of(columns, 1, need, FEES) is not standings.of(
        columns, 2, replace(need, account_id="acct_b"), FEES
    )
