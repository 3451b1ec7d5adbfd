"""Calls that share an append are recorded as if each had come alone, and answered alike."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from domain.hardware.reasons import HardwareReason
from domain.jobs.job import SubmitJob
from domain.lease.lease import RequestLease, ReserveLease, lease_stream
from domain.money import PPM, credit
from domain.refusal import Refused
from domain.stream import Stream, World
from ledger.log.handle import Ahead, Answer, CommandKey, Ledger, Order, Outcome
from tests.conftest import Databases
from tests.examples import examples
from tests.scenes.running_market import PRICE, RENTER, START_US, Market, SignedNode
from tests.scenes.written import written

BLINDING_KEY = b"tests/ledger/test_handle_together"
NOTHING = Ahead({}, {})


def handled(market: Market, orders: list[Order], ahead: Ahead = NOTHING) -> list[Outcome | None]:
    return [one.outcome for one in market.ledger.handle_all(orders, ahead=ahead, now_us=START_US)]


@contextmanager
def open_market(database: str) -> Generator[Market, None, None]:
    with (
        Ledger(database, blinding_key=BLINDING_KEY, connections_max=3) as ledger,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        yield Market(ledger, connection)


@pytest.fixture
def founded(database: str) -> str:
    with open_market(database) as market:
        market.found("one", gpus=4)
    return database


@pytest.fixture
def copy(founded: str, postgres: Databases) -> Iterator[str]:
    name = founded.split("/")[-1].split("?")[0]
    yield postgres.create_database(f"{name}_copy", template=name)
    postgres.drop_database(f"{name}_copy")


def opening(market: Market, name: str, slot: int) -> list[Any]:
    """Job, request and reservation of one device."""
    node = market.nodes["one"]
    at: dict[str, Any] = {"at_us": START_US}
    lease_id, job_id = f"lease_{name:0>32}", f"job_{name}"
    return [
        SubmitJob(
            job_id=job_id,
            account_id=RENTER,
            client_id="direct",
            project_id="p",
            end_user_ref="u",
            kind="batch",
            image=None,
            command=("true",),
            env_refs=(),
            gpu_count=1,
            share_ppm=PPM,
            mem_ppm=PPM,
            models=(),
            max_price_per_gpu_hour=credit(PRICE),
            **at,
        ),
        RequestLease(
            lease_id=lease_id,
            job_id=job_id,
            account_id=RENTER,
            term_us=None,
            funds=credit(24 * PRICE),
            **at,
        ),
        ReserveLease(
            lease_id=lease_id,
            rule="lowest_cost/1",
            fleet_position=1,
            candidates=(),
            considered=1,
            node_id=node.id,
            offer_id=node.offer_id,
            device_ids=(node.device_ids[slot],),
            **at,
        ),
    ]


def answer_of(world: World, name: str) -> Answer:
    lease = world.state(lease_stream(f"lease_{name:0>32}"))
    return Answer(201, f"{name} {lease.status} {lease.held_units}".encode())


def order(market: Market, name: str, slot: int) -> Order:
    return Order(
        opening(market, name, slot), CommandKey(RENTER, name), lambda world: answer_of(world, name)
    )


@pytest.mark.parametrize("slots", [(0, 1, 2), (0, 0, 1), (3, 3, 3)])
def test_the_log_is_that_of_one_call_after_the_other(
    founded: str, copy: str, slots: tuple[int, ...]
) -> None:
    names = ("a", "b", "c")
    with open_market(founded) as together, open_market(copy) as apart:
        for market in (together, apart):
            market.nodes["one"] = SignedNode("one", 4)
        orders = [order(together, *each) for each in zip(names, slots, strict=True)]
        outcomes = handled(together, orders)
        for each, outcome in zip(
            [order(apart, *each) for each in zip(names, slots, strict=True)], outcomes, strict=True
        ):
            if outcome is None:
                with pytest.raises(Refused) as refused:
                    apart.ledger.handle(each.commands, key=None, now_us=START_US)
                assert refused.value.reason is HardwareReason.DEVICE_TAKEN
            else:
                alone = apart.ledger.handle(
                    each.commands,
                    key=each.key,
                    now_us=START_US,
                    answer=lambda _changes, _state_of: Answer(201, b""),
                )
                assert alone.position == outcome.position
        assert written(together) == written(apart)
        assert [one is not None for one in outcomes] == [
            slots.index(slot) == place for place, slot in enumerate(slots)
        ]


def test_each_call_is_answered_alike_when_it_comes_again(founded: str) -> None:
    with open_market(founded) as market:
        market.nodes["one"] = SignedNode("one", 4)
        orders = [order(market, "a", 0), order(market, "b", 1)]
        outcomes = handled(market, orders)
        for each, outcome in zip(orders, outcomes, strict=True):
            assert outcome is not None
            assert each.key is not None
            again = market.ledger.told_before(each.key)
            assert again is not None
            assert (again.answer, again.position) == (outcome.answer, outcome.position)
            assert again.answer.body.split()[1] == b"reserved"


def test_a_key_that_is_known_stops_all_and_nothing_is_recorded(founded: str) -> None:
    with open_market(founded) as market:
        market.nodes["one"] = SignedNode("one", 4)
        first = order(market, "a", 0)
        handled(market, [first])
        known = Order(opening(market, "c", 2), first.key, lambda world: answer_of(world, "c"))
        before = written(market)
        outcomes = handled(market, [order(market, "d", 3), known])
        assert outcomes == [None, None]
        assert written(market) == before


def test_one_key_twice_in_an_append_is_recorded_by_neither(founded: str) -> None:
    with open_market(founded) as market:
        market.nodes["one"] = SignedNode("one", 4)
        twice = Order(
            opening(market, "b", 1), CommandKey(RENTER, "a"), lambda world: answer_of(world, "b")
        )
        head = market.head
        outcomes = handled(market, [order(market, "a", 0), twice])
        assert outcomes == [None, None]
        assert market.head == head


def test_who_decided_on_what_has_moved_records_nothing(founded: str) -> None:
    with open_market(founded) as market:
        market.nodes["one"] = SignedNode("one", 4)
        device = Stream("device", market.nodes["one"].device_ids[0])
        old = Ahead(market.ledger.market.load_many([device]), {})
        market.do(START_US, *opening(market, "a", 0))
        head = market.head
        outcomes = handled(market, [order(market, "b", 0)], old)
        assert outcomes == [None]
        assert market.head == head


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(slots=st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_no_device_is_given_twice_and_the_books_balance(founded: str, slots: list[int]) -> None:
    with open_market(founded) as market:
        market.nodes["one"] = SignedNode("one", 4)
        run = market.head
        orders = [order(market, f"{run}x{place}", slot) for place, slot in enumerate(slots)]
        outcomes = handled(market, orders)
        for slot in range(4):
            device = market.ledger.market.load(
                Stream("device", market.nodes["one"].device_ids[slot])
            ).state
            assert sum(held.share_ppm for held in device.holders.values()) <= PPM
        first = {slot: slots.index(slot) for slot in slots}
        taken = {place for place, outcome in enumerate(outcomes) if outcome is not None}
        assert taken <= set(first.values())
        assert market.ledger.books.faults() == []
