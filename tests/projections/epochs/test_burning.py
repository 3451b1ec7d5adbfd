"""What is to be burned: open lots equal the books at every position, ripe when their money is, and
what is taken back of rewards follows each charge.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from domain.chain.burn import BurnFailed
from domain.funds.card_money import CardMoneyMoved
from domain.funds.debt import DebtRepaid, Repaid
from domain.funds.draw import Drawn
from domain.income.adjustment import AdjustmentBooked, BookLine
from domain.lease.funds import EscrowPart
from domain.lease.lease import Unfunded
from domain.lease.reserved_term import TermEndedEarly
from domain.money import credit
from domain.prices.charge_split import NOTHING
from domain.storage.volume import VolumeCharged, volume_stream
from domain.stream import Stream
from ledger.books.postings import entries_for
from projections import tables
from projections.epochs import burning, counted, epochs
from projections.epochs.epochs import EPOCHS
from projections.runner import step
from tests.examples import examples
from tests.projections.epochs.test_burned_tokens import (
    AT_US,
    SIZE,
    bought,
    burnt,
    closing,
    told,
    used,
)
from tests.projections.epochs.test_burned_tokens import tokens as tokens_of
from tests.projections.story import Told, Writer

RENTER = "acct_cash"


def mixed(node: int, cash: int, card: int, owed: int) -> Told:
    """A charge that several paid, or nobody; all of it is to be burned."""
    stream, fact = used(node, "cash", cash + card + owed)
    parts = (EscrowPart("cash", credit(cash)), EscrowPart("card", credit(card)))
    return stream, replace(
        fact,
        drawn=tuple(part for part in parts if part.amount.units),
        owed=Unfunded(RENTER, credit(owed)) if owed else None,
    )


def ended_early(cash: int) -> Told:
    fact = TermEndedEarly(
        lease_id="lease_t",
        account_id=RENTER,
        provider_account_id="acct_provider",
        months=1,
        refund_ppm=0,
        unused=credit(cash),
        refunded=credit(0),
        kept=credit(cash),
        parts=replace(NOTHING, burn=cash),
        drawn=(EscrowPart("cash", credit(cash)),),
        at_us=AT_US,
        client_account_id=None,
        owners=(),
        node_id=SIZE.node(0),
    )
    return Stream("lease", "lease_t"), fact


def volume_hours(number: int, cash: int, card: int, reserve: int) -> Told:
    """What a volume costs, of the balance and of a reserve of card money; all of it is burned."""
    units = cash + card + reserve
    whole = replace(NOTHING, burn=units)
    drawn = (Drawn(RENTER, "cash", credit(cash)), Drawn(RENTER, "card", credit(card)))
    fact = VolumeCharged(
        volume_id=f"volume_{number}",
        account_id=RENTER,
        provider_account_id="acct_provider",
        project_id=None,
        size_gib=1,
        until_us=AT_US,
        elapsed_us=1,
        elapsed_us_new=1,
        rate=None,
        tariff_version=1,
        charge=credit(units),
        charge_new=credit(units),
        parts=whole,
        parts_new=whole,
        drawn=tuple(one for one in drawn if one.amount.units),
        reserve_drawn=(EscrowPart("card", credit(reserve)),) if reserve else (),
        at_us=AT_US,
    )
    return volume_stream(fact.volume_id), fact


def given_back(number: int, charge: int, units: int, unburned: int) -> Told:
    """An SLA credit; what of it comes from what was to be burned, the rest from the revenue."""
    lines = (
        BookLine("network:burn_due", unburned),
        BookLine("network:revenue:take", units - unburned),
        BookLine(f"party:{RENTER}:cash", -units),
    )
    fact = AdjustmentBooked(
        adjustment_id=f"adj_{number}",
        corrects_position=charge,
        lease_id="lease_1",
        volume_id=None,
        account_id=RENTER,
        provider_account_id="acct_provider",
        reason="sla",
        cause="x",
        returned=units,
        recovered=units,
        owed=0,
        lines=tuple(line for line in lines if line.units),
        late=None,
        by="job",
        at_us=AT_US,
    )
    return Stream("adjustment", str(charge)), fact


def settled(units: int) -> Told:
    """So much of the renter's card money is confirmed and was spent."""
    fact = CardMoneyMoved(
        account_id=RENTER,
        cause="x",
        exposed=credit(0),
        settled=credit(units),
        to_cash=credit(0),
        at_us=AT_US,
    )
    return Stream("card", RENTER), fact


def repaid(units: int) -> Told:
    fact = DebtRepaid(
        account_id=RENTER, paid=(Repaid("cash", credit(units)),), cause="x", at_us=AT_US
    )
    return Stream("debt", RENTER), fact


def due_in_books(facts: list[Told]) -> int:
    return -sum(
        units
        for _, fact in facts
        for entry in entries_for(fact)
        for account, units in entry.lines
        if account == "network:burn_due"
    )


CHARGE = st.tuples(st.integers(0, 90), st.integers(0, 90), st.integers(0, 9)).filter(any)
WORDS = st.one_of(
    CHARGE,
    st.tuples(st.just("settled"), st.integers(0, 300)),
    st.tuples(st.just("repaid"), st.integers(1, 30)),
    st.tuples(st.just("back"), st.integers(0, 20), st.integers(1, 40)),
    st.tuples(st.just("early"), st.integers(1, 90)),
    st.tuples(st.just("volume"), st.integers(0, 90), st.integers(0, 90), st.integers(1, 9)),
    st.sampled_from(["burn", "fail"]),
)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, max_size=12), st.integers(1, 6))
def test_open_burning_equals_burn_due_at_every_position(
    connection: psycopg.Connection[Any], words: list[Any], facts_max: int
) -> None:
    """E-H6, E-H2: whatever is charged, given back, backed and burned, in whatever order, however
    the log is cut into ranges; and what a correction may take is never in a burn.
    """
    facts: list[Told] = []
    charges: dict[int, list[int]] = {}  # position: charge, given back, corrections
    burns, first = 0, 1
    tables.ensure(connection, [EPOCHS])
    connection.execute("BEGIN")
    try:
        writer = Writer(connection)

        def write(*some: Told) -> None:
            for one in some:
                facts.append(one)
                writer.write([one])
            if len(facts) % facts_max == 0:
                follow()

        def follow() -> None:
            while step(connection, EPOCHS, facts_max=facts_max):
                pass
            assert burning.read_burn_open(connection) == (len(facts), due_in_books(facts))

        for number, word in enumerate([*words, "burn"]):
            match word:
                case ("settled", units):
                    write(settled(units))
                case ("repaid", units):
                    write(repaid(units))
                case ("early", units):
                    write(ended_early(units))
                case ("volume", cash, card, reserve):
                    write(volume_hours(number, cash, card, reserve))
                case ("back", index, units) if charges:
                    follow()
                    position = sorted(charges)[index % len(charges)]
                    known = charges[position]
                    units = min(units, known[0] - known[1])
                    left = burning.read_unburned(connection, [position])
                    assert left.burns == burns
                    assert left.of(position).corrections == known[2]
                    assert 0 <= left.of(position).units <= known[0] - known[1]
                    if units:
                        part = min(units, left.of(position).units)
                        write(given_back(number, position, units, part))
                        known[1], known[2] = known[1] + units, known[2] + 1
                case "burn" | "fail":
                    follow()
                    ripe = burning.read_ripe(connection, first, len(facts)) if facts else []
                    if ripe:
                        through, credits = ripe[len(ripe) // 2]
                        burns += 1
                        intended, confirmed = burnt(burns, first, through, credits, 10**6)
                        write(intended)
                        if word == "burn":
                            write(confirmed)
                            first = through + 1
                        else:
                            stream, _ = intended
                            failed = BurnFailed(burn_id=burns, reason="x", at_us=AT_US)
                            write((stream, failed))
                case (cash, card, owed) if isinstance(cash, int):
                    write(mixed(number % 3, cash, card, owed))
                    charges[len(facts)] = [cash + card + owed, 0, 0]
        follow()
    finally:
        connection.execute("ROLLBACK")


def test_card_money_is_ripe_oldest_first_once_it_is_confirmed(
    connection: psycopg.Connection[Any],
) -> None:
    """E-H2: and what cash paid of the same charge does not wait for it."""
    facts = [
        mixed(0, 10, 60, 0),
        mixed(1, 0, 40, 0),
        mixed(2, 7, 0, 0),
        settled(60),
        mixed(0, 0, 0, 5),
        settled(100),
        repaid(5),
    ]
    told(connection, facts, 2)
    assert burning.read_ripe(connection, 1, 10) == [(1, 10), (3, 17), (4, 77), (6, 117), (7, 122)]


def test_card_money_in_a_balance_or_a_reserve_delays_the_burn_of_a_volume(
    connection: psycopg.Connection[Any],
) -> None:
    told(connection, [volume_hours(0, 10, 20, 5), settled(24), settled(25)], 2)
    assert burning.read_ripe(connection, 1, 10) == [(1, 10), (3, 35)]


@pytest.mark.parametrize("facts_max", [1, 2, 100])
def test_settled_money_that_was_taken_back_is_behind_nothing_that_is_charged_later(
    connection: psycopg.Connection[Any], facts_max: int
) -> None:
    """Found by the search for a coalition that gains, on a real log (seed 5001)."""
    facts = [
        mixed(0, 0, 60, 0),
        settled(100),
        settled(0),  # the bank took the payment back
        mixed(1, 0, 40, 0),
        settled(90),
        settled(100),
    ]
    told(connection, facts, facts_max)
    assert burning.read_ripe(connection, 1, 5) == [(2, 60)]
    assert burning.read_ripe(connection, 1, 10) == [(2, 60), (6, 100)]


def test_what_is_owed_has_no_weight(connection: psycopg.Connection[Any]) -> None:
    """E-M6: one credit of a hundred was paid, and the weight was that of all."""
    facts = [mixed(0, 1_000, 0, 99_000), *burnt(1, 1, 1, 1_000, 5_000), closing(1)]
    told(connection, facts)
    fact = facts[0][1]
    assert [(one.burned, one.gpu_us) for one in epochs.read_preview(connection, 1).weights] == [
        (1_000, fact.gpu_us_new // 100)
    ]
    assert tokens_of(connection, 1)[0] <= 5_000


def test_a_correction_takes_weight_and_tokens_back_when_it_is_booked_and_carries_what_is_left(
    connection: psycopg.Connection[Any],
) -> None:
    """E-C2: an SLA credit after the seal gave the money back, and the reward stayed."""
    facts = [
        used(0, "cash", 1_000),
        *burnt(1, 1, 1, 1_000, 5_000),
        closing(1),
        given_back(1, 1, 800, 0),
        used(1, "cash", 300),
        *burnt(2, 2, 6, 300, 1_500),
        closing(2),
        used(1, "cash", 700),
        *burnt(3, 7, 10**6, 700, 3_500),
        closing(3),
    ]
    told(connection, facts)
    weights, tokens = [], []
    for number in (1, 2, 3):
        preview = counted.read_weights(connection, epochs.read_preview(connection, number))
        weights.append({one.node_id: one.burned for one in preview.weights if one.burned})
        found = counted.read_tokens(connection, number)
        tokens.append({node: sum(one) for node, one in found.items() if sum(one)})
    first, second = SIZE.node(0), SIZE.node(1)
    assert weights == [{first: 1_000}, {}, {second: 200}]
    assert tokens == [{first: 5_000}, {}, {second: 1_000}]


def test_burned_credits_that_come_back_bring_their_tokens_with_them(
    connection: psycopg.Connection[Any],
) -> None:
    """E-H5: the next node that was paid with them had credits for which nothing was burned."""
    _, retired = given_back(1, 2, 80, 0)
    lines = (BookLine("world:burned", 80), BookLine(f"party:{RENTER}:burned", -80))
    facts = [
        bought(1, 1_000, 100),
        used(0, "burned", 100),
        closing(1),
        (Stream("adjustment", "2"), replace(retired, lines=lines)),
        used(1, "burned", 80),
        closing(2),
    ]
    told(connection, facts)
    assert tokens_of(connection, 1) == [1_000, 0, 0]
    assert tokens_of(connection, 2) == [-800, 800, 0]
    assert sum(map(sum, counted.read_tokens(connection, 2).values())) == 0, "one owner has both"
