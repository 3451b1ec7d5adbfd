"""TOKEN said to be burned for nodes: from burns and purchases, to the unit, never twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from domain.chain import burn
from domain.epochs import epoch
from domain.funds import deposit
from domain.lease.funds import EscrowPart
from domain.money import credit, token
from domain.stream import Stream
from projections import tables
from projections.epochs import epochs
from projections.epochs.epochs import EPOCHS
from projections.runner import step
from tests.examples import examples
from tests.projections import story
from tests.projections.story import Size, Told, Writer

AT_US = story.START_US
SIZE = Size(nodes=3, hours=1)


def used(
    node: int, source: str, units: int, *, own: bool = False, payer: str | None = None
) -> Told:
    """An accrual of so many micro-credits, all of them burned, on one of three nodes."""
    fact = story._accrual(node, 0, SIZE, "acct_cash", source, 1_000_000, AT_US)
    account = fact.provider_account_id if own else "acct_cash"
    parts = replace(fact.parts_new, provider=0, platform=0, fee=0, burn=units)
    return Stream("lease", fact.lease_id), replace(
        fact,
        account_id=account,
        charge_new=credit(units),
        parts_new=parts,
        drawn=(EscrowPart(source, credit(units), None, payer),),
    )


def bought(number: int, tokens: int, credits: int, account: str = "acct_cash") -> Told:
    return Stream("purchase", f"0xb/{number}"), deposit.CreditsPurchaseConfirmed(
        burner="0xb",
        purchase_id=number,
        account_id=account,
        payer="0xp",
        tokens_burned=token(tokens),
        credits=credit(credits),
        price_round=1,
        tx_hash="0x",
        log_index=0,
        block_number=1,
        at_us=AT_US,
    )


def burnt(number: int, first: int, last: int, credits: int, tokens: int) -> Iterator[Told]:
    at: dict[str, Any] = {"credits": credit(credits), "tokens": token(tokens), "at_us": AT_US}
    yield (
        Stream("burn", str(number)),
        burn.BurnIntended(
            burn_id=number,
            first_position=first,
            last_position=last,
            price_micro_usd=1,
            price_round=1,
            **at,
            price_snapshot=None,
        ),
    )
    yield (
        Stream("burn", str(number)),
        burn.BurnConfirmed(burn_id=number, tx_hash="0", block_number=1, **at),
    )


def closing(number: int) -> Told:
    return Stream("epoch", str(number)), epoch.EpochClosing(epoch=number, by="op", at_us=AT_US)


def tokens(connection: psycopg.Connection[Any], number: int) -> list[int]:
    """Tokens burned for each of the three nodes in an epoch."""
    found = epochs.read_burned_tokens(connection, number)
    return [sum(found.get(SIZE.node(node), ())) for node in range(3)]


def told(connection: psycopg.Connection[Any], facts: list[Told], facts_max: int = 100) -> None:
    tables.ensure(connection, [EPOCHS])
    Writer(connection).write(facts)
    while step(connection, EPOCHS, facts_max=facts_max):
        pass


def test_a_burn_is_divided_by_the_credits_that_each_node_has_in_it(
    connection: psycopg.Connection[Any],
) -> None:
    """What grants paid, and a provider for itself, is burned too, and is said of nobody."""
    charges = [
        used(0, "cash", 600),
        used(1, "cash", 300),
        used(2, "grant.spring", 60),
        used(2, "cash", 40, own=True),
    ]
    told(connection, [*charges, *burnt(1, 1, 4, 1_000, 101), closing(1)])
    assert tokens(connection, 1) == [60, 30, 0]


def test_burned_credits_cost_their_average_epoch_by_epoch(
    connection: psycopg.Connection[Any],
) -> None:
    facts = [
        bought(1, 1_000, 100),
        used(0, "burned", 30),
        used(1, "burned", 10),
        closing(1),
        bought(2, 600, 60),
        used(0, "burned", 60),
        used(2, "burned", 30, own=True),
        closing(2),
        used(1, "burned", 30),
        closing(3),
    ]
    told(connection, facts)
    # 40 of 100 credits took 400 of 1,000 tokens; then 90 of 120 took 900 of 1,200, of which a third
    # was the provider's own use; then the rest.
    assert [tokens(connection, number) for number in (1, 2, 3)] == [
        [300, 100, 0],
        [600, 0, 0],
        [0, 300, 0],
    ]


CHARGE = st.tuples(
    st.integers(0, 2), st.sampled_from(["cash", "burned"]), st.integers(1, 999), st.booleans()
)


@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(st.one_of(CHARGE, st.sampled_from(["cut", "burn", "buy"])), max_size=14),
    tokens_each=st.integers(1, 10**6),
    facts_max=st.integers(1, 7),
)
def test_no_more_tokens_are_said_to_be_burned_for_nodes_than_were_burned(
    connection: psycopg.Connection[Any], words: list[Any], tokens_each: int, facts_max: int
) -> None:
    """Over all epochs together, and however the log is cut into ranges."""
    facts: list[Told] = [bought(1, tokens_each, 2_000)]
    purchases, burns, cut, due, first = 1, 0, 0, 0, 1
    for word in [*words, "burn", "cut"]:
        if word == "cut":
            cut += 1
            facts.append(closing(cut))
        elif word == "buy":
            purchases += 1
            facts.append(bought(purchases, tokens_each, 777))
        elif word == "burn":
            if due:
                burns += 1
                facts += burnt(burns, first, len(facts), due, tokens_each)
                first, due = len(facts) - 1, 0
        else:
            node, source, units, own = word
            facts.append(used(node, source, units, own=own))
            due += units if source == "cash" else 0
    tables.ensure(connection, [EPOCHS])
    connection.execute("BEGIN")
    try:
        told(connection, facts, facts_max)
        given_out = sum(sum(tokens(connection, number + 1)) for number in range(cut))
        assert 0 <= given_out <= (purchases + burns) * tokens_each
        assert epochs.read_recyclable(connection, cut, 10**6) == (purchases + burns) * tokens_each
        is_all = all(isinstance(word, str) or (word[1] == "cash" and not word[3]) for word in words)
        if is_all:  # nothing but rounding is missing of the burns
            assert given_out > burns * tokens_each - 3 * burns * max(cut, 1) or not burns
    finally:
        connection.execute("ROLLBACK")


def test_a_plain_log_says_what_its_burns_were(connection: psycopg.Connection[Any]) -> None:
    """The story of the tests, its disputes too: never more than was burned, and nothing twice."""
    told(connection, list(story.story(Size())))
    row = connection.execute(
        "SELECT (SELECT coalesce(sum(tokens), 0) FROM proj_epochs.burn WHERE state = 'confirmed')"
        " + (SELECT coalesce(sum(tokens), 0) FROM proj_epochs.purchase)"
    ).fetchone()
    assert row is not None
    given_out = sum(
        sum(map(sum, epochs.read_burned_tokens(connection, number).values())) for number in (1, 2)
    )
    assert 0 < given_out <= row[0]
