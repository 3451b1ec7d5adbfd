"""What an append to the market log promises, on a real PostgreSQL."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from domain.funds.deposit import DepositConfirmed
from domain.funds.reasons import FundsReason
from domain.lease.reasons import LeaseReason
from domain.market.offer import OfferWithdrawn
from domain.market.reasons import MarketReason
from domain.money import Asset, credit
from domain.parties.account import AccountClosed
from domain.parties.reasons import PartiesReason
from domain.refusal import Reason, Refused
from domain.stream import Change, Stream, World
from ledger.books.entry import Entry
from ledger.log.chain import GENESIS_MARKET, chain, market_leaf
from ledger.log.handle import ATTEMPTS_MAX, FACTS_MAX, BooksRefused, CommandKey, StreamMoved
from tests.scenes.told import (
    NOW_US,
    Do,
    deposited,
    do,
    key,
    ledger_on,
    offer,
    reserved,
    spend,
    withdrawn,
)


def _positions(database: str) -> list[int]:
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT notification_id FROM market_events ORDER BY 1")
        return [row[0] for row in rows]


def test_positions_count_from_one_without_gaps_whatever_fails_between(database: str) -> None:
    with ledger_on(database) as ledger:
        first = ledger.handle(do(withdrawn("a"), withdrawn("b")), key=None, now_us=NOW_US)
        assert first.position == 2
        with ledger_on(database, entries_for=spend(1)) as overdrawn, pytest.raises(Refused):
            overdrawn.handle(do(withdrawn("c")), key=None, now_us=NOW_US)
        assert ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US).position == 3
    assert _positions(database) == [1, 2, 3]


def test_every_stored_byte_is_in_the_chain(database: str) -> None:
    with ledger_on(database) as ledger:
        for number in range(3):
            ledger.handle(
                do(withdrawn(f"a{number}"), withdrawn("b")), key=key(f"k{number}"), now_us=NOW_US
            )
        head = ledger.market.head()
    before = GENESIS_MARKET
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT originator_id, originator_version, topic, state, leaf, chain"
            " FROM market_events ORDER BY notification_id"
        )
        for stream, version, name, body, leaf, linked in rows:
            assert leaf == market_leaf(stream, version, name, body)
            before = chain(before, leaf)
            assert linked == before
    assert head == (6, before)


def test_a_body_is_json_with_sorted_keys_its_command_and_a_blind(database: str) -> None:
    with ledger_on(database) as ledger:
        ledger.handle(do(deposited("dep_1", 5)), key=key("k"), now_us=NOW_US)
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT state, topic FROM market_events").fetchone()
    assert row is not None
    values = json.loads(row[0])
    assert row[0].decode() == json.dumps(values, sort_keys=True, separators=(",", ":"))
    assert row[1] == "deposit.confirmed.v1"
    assert values["amount"] == {"asset": "CREDIT", "units": "5"}
    assert values["command_id"] == key("k").command_id
    assert len(values["blind"]) == 32


def test_the_same_commands_in_another_database_give_the_same_head(
    database: str, empty_database: str
) -> None:
    from ledger.migrate import migrate

    migrate(empty_database)
    heads = []
    for where in (database, empty_database):
        with ledger_on(where) as ledger:
            ledger.handle(do(deposited("dep_1", 5)), key=key("k"), now_us=NOW_US)
            heads.append(ledger.market.head())
    assert heads[0] == heads[1]


def test_facts_of_several_streams_are_recorded_together_or_not_at_all(database: str) -> None:
    with ledger_on(database) as ledger, ledger_on(database) as other:
        ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US)
        interrupted = False

        def decide(world: World) -> list[Change]:
            nonlocal interrupted
            seen = world.state(offer("a")).facts
            if not interrupted:
                interrupted = True
                other.handle(do(withdrawn("a")), key=None, now_us=NOW_US)
            return [withdrawn("new"), withdrawn("a", f"-{seen}")]

        outcome = ledger.handle(Do(decide), key=None, now_us=NOW_US)
        assert outcome.position == 4
        assert [r.fact.offer_id for r in ledger.market.read_facts(0, 9)] == ["a", "a", "new", "a-2"]
        assert ledger.market.load(offer("new")).originator_version == 1


def test_a_decision_is_made_again_when_a_stream_it_only_read_has_moved(database: str) -> None:
    with ledger_on(database) as ledger, ledger_on(database) as other:
        answers: list[int] = []

        def decide(world: World) -> list[Change]:
            answers.append(world.state(offer("read")).facts)
            if len(answers) == 1:
                other.handle(do(withdrawn("read")), key=None, now_us=NOW_US)
            return [withdrawn("written")]

        ledger.handle(Do(decide), key=None, now_us=NOW_US)
        assert answers == [0, 1]


def test_a_stream_that_never_rests_ends_as_stream_moved(database: str) -> None:
    with ledger_on(database) as ledger, ledger_on(database) as other:

        def decide(world: World) -> list[Change]:
            world.state(offer("a"))
            other.handle(do(withdrawn("a")), key=None, now_us=NOW_US)
            return [withdrawn("a")]

        with pytest.raises(StreamMoved):
            ledger.handle(Do(decide), key=None, now_us=NOW_US)
        assert ledger.market.load(offer("a")).originator_version == ATTEMPTS_MAX


def test_commands_of_one_call_see_what_the_earlier_ones_decided(database: str) -> None:
    with ledger_on(database) as ledger:
        seen: list[tuple[int, int]] = []

        def look(world: World) -> list[Change]:
            seen.append((world.state(offer("a")).facts, world.balance("party:acct_a:cash")))
            return [withdrawn("a"), deposited(f"dep_{len(seen)}", 7)]

        outcome = ledger.handle([Do(look), Do(look), Do(look)], key=key("k"), now_us=NOW_US)
        assert seen == [(0, 0), (1, 7), (2, 14)]
        assert outcome.position == 6
        assert ledger.books.balance("party:acct_a:cash") == 21


def test_recorded_time_never_falls(database: str) -> None:
    with ledger_on(database) as ledger:
        for now_us in (NOW_US, NOW_US - 5, NOW_US + 5):
            ledger.handle(do(withdrawn("a")), key=None, now_us=now_us)
        times = [r.recorded_us for r in ledger.market.read_facts(0, 9)]
        assert times == [NOW_US, NOW_US, NOW_US + 5]
        assert [ledger.market.position_at(NOW_US + d) for d in (-1, 0, 4, 5, 9)] == [0, 2, 2, 3, 3]


def test_an_append_is_announced_after_its_commit(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as listener, ledger_on(database) as ledger:
        listener.execute("LISTEN market_events")
        ledger.handle(do(withdrawn("a"), withdrawn("b")), key=None, now_us=NOW_US)
        heard = next(listener.notifies(timeout=5, stop_after=1))
        assert heard.payload == "2"


# Books.


def test_books_follow_every_fact(database: str) -> None:
    with ledger_on(database) as ledger:
        ledger.handle(do(deposited("d1", 5), deposited("d2", 7)), key=None, now_us=NOW_US)
        ledger.handle(do(deposited("d3", 1, "acct_b")), key=None, now_us=NOW_US)
        balance = ledger.books.balance
        assert balance("world:bank") == 13
        assert balance("party:acct_a:cash") == 12
        assert ledger.books.balances("party:") == {"party:acct_a:cash": 12, "party:acct_b:cash": 1}
        assert [ledger.books.balance_at("world:bank", p) for p in range(4)] == [0, 5, 12, 13]
        assert ledger.books.postings(2) == {
            Asset.CREDIT: {"world:bank": 7, "party:acct_a:cash": -7}
        }
        assert ledger.books.books_balanced()


def test_postgresql_itself_refuses_an_entry_that_does_not_sum_to_zero(database: str) -> None:
    def lopsided(_: object) -> tuple[Entry, ...]:
        return (Entry(Asset.CREDIT, (("world:bank", 5), ("party:acct_a:cash", -4))),)

    with ledger_on(database, entries_for=lopsided) as ledger:
        with pytest.raises(BooksRefused, match="posting_zero_sum"):
            ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US)
        assert ledger.market.head()[0] == 0
        assert ledger.books.trial_balance() == []


def test_postgresql_itself_refuses_an_account_in_another_asset(database: str) -> None:
    with ledger_on(database) as ledger:
        ledger.handle(do(deposited("d1", 5)), key=None, now_us=NOW_US)

        def mixed(_: object) -> tuple[Entry, ...]:
            return (Entry(Asset.TOKEN, (("world:bank", 5), ("party:acct_a:cash", -5))),)

        ledger._entries_for = mixed
        with pytest.raises(BooksRefused, match="account_exists"):
            ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US)
        assert ledger.books.books_balanced()


def test_no_account_is_below_zero_after_any_fact_not_even_inside_a_batch(database: str) -> None:
    units = iter([10, -10])

    def dip(_: object) -> tuple[Entry, ...]:
        moved = next(units)
        lines = (("party:acct_a:cash", moved), ("network:suspense", -moved))
        return (Entry(Asset.CREDIT, lines),)

    with ledger_on(database, entries_for=dip) as ledger:
        with pytest.raises((Refused, StopIteration)):
            ledger.handle(do(withdrawn("a"), withdrawn("b")), key=None, now_us=NOW_US)
        assert ledger.books.trial_balance() == []


def test_an_overdraft_is_decided_again_and_refused_for_want_of_credit(database: str) -> None:
    with ledger_on(database) as ledger:
        ledger.handle(do(deposited("d1", 5)), key=None, now_us=NOW_US)
    balances: list[int] = []

    def decide(world: World) -> list[Change]:
        balances.append(world.balance("party:acct_a:cash"))
        return [withdrawn("a")]

    with ledger_on(database, entries_for=spend(6)) as ledger:
        with pytest.raises(Refused) as refused:
            ledger.handle(Do(decide), key=key("k"), now_us=NOW_US)
        assert refused.value.reason is FundsReason.CREDIT_TOO_LOW
        assert balances == [5, 5], "once more, for what others may have changed"
        with pytest.raises(Refused) as again:
            ledger.handle(do(withdrawn("other")), key=key("k"), now_us=NOW_US)
        assert again.value.reason is FundsReason.CREDIT_TOO_LOW, "a retry never changes the outcome"
        assert ledger.market.head()[0] == 1
        assert ledger.books.books_balanced()


@pytest.mark.parametrize("once", [None, key("k")])
def test_who_is_overtaken_again_and_again_is_not_told_that_credits_are_short(
    database: str, once: CommandKey | None
) -> None:
    """Nine others take from the balance between reading it and the append; then nobody does."""
    with ledger_on(database) as ledger:
        ledger.handle(do(deposited("d1", 20)), key=None, now_us=NOW_US)
    takes: list[int] = []

    def drawn(fact: Any) -> tuple[Entry, ...]:
        units = int(fact.offer_id.rpartition("/")[2])
        lines = (("party:acct_a:cash", units), ("network:suspense", -units))
        return (Entry(Asset.CREDIT, lines),)

    with (
        ledger_on(database, entries_for=drawn) as ledger,
        ledger_on(database, entries_for=drawn) as other,
    ):

        def decide(world: World) -> list[Change]:
            takes.append(world.balance("party:acct_a:cash"))
            if len(takes) < 10:
                other.handle(do(withdrawn(f"b{len(takes)}", "/1")), key=None, now_us=NOW_US)
            return [withdrawn("a", f"/{takes[-1]}")]

        ledger.handle(Do(decide), key=once, now_us=NOW_US)
        assert takes == list(range(20, 10, -1))
        assert ledger.books.balance("party:acct_a:cash") == 0
        assert ledger.books.books_balanced()


def test_an_account_with_anything_in_its_books_is_not_recorded_as_closed(database: str) -> None:
    """The books have the last word: whatever was decided, money that has just come is seen."""
    closed = AccountClosed(account_id="acct_a", by="mem_a", at_us=NOW_US)
    change = Change(Stream("account", "acct_a"), closed)
    with ledger_on(database) as ledger:
        ledger.handle(do(deposited("d1", 50)), key=None, now_us=NOW_US)
        for once in (None, key("k1")):
            with pytest.raises(Refused) as refused:
                ledger.handle(do(change), key=once, now_us=NOW_US)
            assert refused.value.reason is PartiesReason.ACCOUNT_NOT_EMPTY
        ledger.handle(do(reserved("lease_1", "acct_a", credit(50))), key=None, now_us=NOW_US)
        ledger.handle(do(change), key=key("k2"), now_us=NOW_US)


def test_who_owes_opens_no_lease(database: str) -> None:
    def owed(_: object) -> tuple[Entry, ...]:
        return (Entry(Asset.CREDIT, (("party:acct_a:owed", 1), ("network:suspense", -1))),)

    with ledger_on(database) as ledger:
        ledger.handle(do(deposited("d1", 50)), key=None, now_us=NOW_US)
        ledger.handle(do(reserved("lease_1", "acct_a", credit(10))), key=key("k1"), now_us=NOW_US)
        with ledger_on(database, entries_for=owed) as debt:
            debt.handle(do(withdrawn("a")), key=None, now_us=NOW_US)
        with pytest.raises(Refused) as refused:
            ledger.handle(
                do(reserved("lease_2", "acct_a", credit(10))), key=key("k2"), now_us=NOW_US
            )
        assert refused.value.reason is FundsReason.UNPAID_DEBT
        assert ledger.books.balance("party:acct_a:cash") == 40


def test_one_fact_of_a_kind_is_the_first_of_its_stream_or_the_last(database: str) -> None:
    """A payout is cut after the last chunk of its epoch's rewards, however many there are."""
    with ledger_on(database) as ledger:
        ledger.handle(do(withdrawn("a", "_1"), deposited("d1", 5)), key=None, now_us=NOW_US)
        ledger.handle(do(withdrawn("a", "_2"), withdrawn("b")), key=None, now_us=NOW_US)
        ledger.handle(do(withdrawn("a", "_3"), withdrawn("b")), key=None, now_us=NOW_US)
        first = ledger.market.one_of(offer("a"), OfferWithdrawn)
        last = ledger.market.one_of(offer("a"), OfferWithdrawn, last=True)
        assert first is not None
        assert last is not None
        assert (first.fact.offer_id, last.fact.offer_id) == ("a_1", "a_3")
        assert ledger.market.one_of(offer("a"), DepositConfirmed, last=True) is None


def test_a_limit_that_no_rule_answers_for_is_a_bug_with_the_account_named(database: str) -> None:
    def double_lease(_: object) -> tuple[Entry, ...]:
        return (Entry(Asset.GPU_MS, (("device:GPU-a:leased", 5), ("device:GPU-a:idle", -5))),)

    with (
        ledger_on(database, entries_for=double_lease) as ledger,
        pytest.raises(BooksRefused, match="device:GPU-a:idle"),
    ):
        ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US)


def test_many_writers_keep_the_books_and_the_positions(database: str) -> None:
    with ledger_on(database) as ledger:

        def deposit(number: int) -> int:
            change = deposited(f"d{number}", number + 1, f"acct_{number % 3}")
            return ledger.handle(do(change), key=key(f"k{number}"), now_us=NOW_US).position

        with ThreadPoolExecutor(8) as pool:
            positions = sorted(pool.map(deposit, range(60)))
        assert positions == list(range(1, 61))
        assert ledger.books.balance("world:bank") == sum(range(1, 61))
        assert ledger.books.books_balanced()


# Idempotency.


def test_a_command_asked_again_gets_its_first_answer(database: str) -> None:
    from ledger.log.handle import Answer

    def say(changes: object, _state_of: object) -> Answer:
        return Answer(201, f"{len(changes)} recorded".encode())  # type: ignore[arg-type]

    with ledger_on(database) as ledger:
        first = ledger.handle(do(withdrawn("a")), key=key("k"), now_us=NOW_US, answer=say)
        ledger.handle(do(withdrawn("b")), key=None, now_us=NOW_US)
        again = ledger.handle(do(withdrawn("c")), key=key("k"), now_us=NOW_US, answer=say)
        assert not first.replayed
        assert again.replayed
        assert again.answer == first.answer == Answer(201, b"1 recorded")
        assert again.position == first.position == 1
        assert again.changes == ()
        assert ledger.market.head()[0] == 2


def test_the_same_key_with_another_request_is_refused(database: str) -> None:
    with ledger_on(database) as ledger:
        ledger.handle(do(withdrawn("a")), key=key("k", b"one"), now_us=NOW_US)
        with pytest.raises(Refused) as refused:
            ledger.handle(do(withdrawn("a")), key=key("k", b"two"), now_us=NOW_US)
        assert refused.value.reason is PartiesReason.IDEMPOTENCY_KEY_REUSED
        elsewhere = key("k", b"two", account="acct_b")
        assert ledger.handle(do(withdrawn("a")), key=elsewhere, now_us=NOW_US).position == 2


def test_eight_at_once_with_one_key_record_once_and_hear_the_same(database: str) -> None:
    with ledger_on(database) as ledger:

        def ask(_: int) -> tuple[int, bool]:
            outcome = ledger.handle(do(withdrawn("a")), key=key("k"), now_us=NOW_US)
            return outcome.position, outcome.replayed

        with ThreadPoolExecutor(8) as pool:
            heard = list(pool.map(ask, range(8)))
        assert sorted(heard) == [(1, False)] + [(1, True)] * 7
        assert ledger.market.head()[0] == 1


def test_a_refusal_by_state_is_kept_and_another_is_not(database: str) -> None:
    def say_no(reason: Reason) -> Do:
        def decide(_: World) -> list[Change]:
            raise Refused(reason, why=7)

        return Do(decide)

    with ledger_on(database) as ledger:
        with pytest.raises(Refused):
            ledger.handle(say_no(LeaseReason.LEASE_NOT_OPEN), key=key("kept"), now_us=NOW_US)
        with pytest.raises(Refused) as kept:
            ledger.handle(do(withdrawn("a")), key=key("kept"), now_us=NOW_US)
        assert kept.value.reason is LeaseReason.LEASE_NOT_OPEN
        assert kept.value.facts == {"why": "7"}
        with pytest.raises(Refused):
            ledger.handle(say_no(PartiesReason.NOT_PERMITTED), key=key("free"), now_us=NOW_US)
        assert ledger.handle(do(withdrawn("a")), key=key("free"), now_us=NOW_US).position == 1


def test_a_refused_repeat_of_a_recorded_command_gets_the_first_answer(database: str) -> None:
    def once(world: World) -> list[Change]:
        if world.state(offer("a")).facts:
            raise Refused(MarketReason.OFFER_EXISTS)
        return [withdrawn("a")]

    with ledger_on(database) as ledger:
        assert not ledger.handle(Do(once), key=key("k"), now_us=NOW_US).replayed
        assert ledger.handle(Do(once), key=key("k"), now_us=NOW_US).replayed


def test_a_command_that_records_nothing_leaves_its_row(database: str) -> None:
    with ledger_on(database) as ledger:
        ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US)
        first = ledger.handle(do(), key=key("k"), now_us=NOW_US)
        assert (first.position, first.replayed) == (1, False)
        assert ledger.handle(do(withdrawn("b")), key=key("k"), now_us=NOW_US).replayed


def test_a_follower_moves_with_its_facts_and_never_back(database: str) -> None:
    from ledger.log.handle import FollowedAlready

    with ledger_on(database) as ledger:
        ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US, tracking=("job", 5))
        for position in (5, 4):
            with pytest.raises(FollowedAlready):
                ledger.handle(
                    do(withdrawn("a")), key=None, now_us=NOW_US, tracking=("job", position)
                )
        ledger.handle(do(withdrawn("a")), key=None, now_us=NOW_US, tracking=("job", 6))
        assert ledger.market.head()[0] == 2


def test_ids_of_commands_are_natural_for_jobs_and_derived_for_everybody_else() -> None:
    assert CommandKey("job", "accrue/lease_1/4").command_id == "accrue/lease_1/4"
    derived = CommandKey("acct_a", "k").command_id
    assert derived == CommandKey("acct_a", "k").command_id != CommandKey("acct_b", "k").command_id
    assert len(hashlib.sha256(derived.encode()).digest()) == 32


def test_an_append_of_more_facts_than_the_bound_is_a_bug(database: str) -> None:
    """The head row has one holder: whoever wants to append ten thousand facts takes turns."""
    with ledger_on(database) as ledger:
        many = [withdrawn(f"o{number}") for number in range(FACTS_MAX + 1)]
        with pytest.raises(AssertionError, match="1001 facts in one append"):
            ledger.handle(do(*many), key=None, now_us=NOW_US)
        assert ledger.handle(do(*many[1:]), key=None, now_us=NOW_US).position == FACTS_MAX
