"""Concurrent lease commands at a real ledger: some order of them explains every answer."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import psycopg
import pytest

from domain.hardware.constraints import Constraints
from domain.jobs.job import SubmitJob
from domain.lease.lease import CloseLease, ReadyLease, RequestLease, ReserveLease
from domain.lease.turns import CancelReclaim, PauseLease, ResumeLease, StartReclaim
from domain.market.offer import OfferTerms, PublishOffer
from domain.money import PPM, credit
from domain.refusal import Refused
from domain.stream import Stream
from ledger.log.handle import Ledger, StreamMoved
from tests.conftest import Databases, fresh
from tests.scenes.linearizability import Operation, linearization
from tests.scenes.running_market import PRICE, PROVIDER, RENTER, START_US, Market
from tests.seeds.scenes import postgres_migrated

OFFER = "offer_interruptible"
NOW_US = START_US + 60_000_000
THREADS, CALLS = 8, 20


# --- the model -----------------------------------------------------------------------------------


class Seen(NamedTuple):
    """What the model remembers: the state of each lease, and who holds each device."""

    leases: tuple[tuple[str, str], ...]
    devices: tuple[tuple[str, str], ...]


def start(leases: Sequence[str], devices: Sequence[str]) -> Seen:
    return Seen(tuple((one, "requested") for one in leases), tuple((one, "") for one in devices))


def model(seen: Seen, asked: tuple[str, ...]) -> tuple[str, Seen]:
    """What one command is answered when nothing else happens: written here anew, and short."""
    verb, lease, device = asked
    state, holder = dict(seen.leases)[lease], dict(seen.devices)[device]
    held = tuple(name for name, who in seen.devices if who == lease)

    def to(target: str, holds: str | None) -> tuple[str, Seen]:
        leases = tuple((one, target if one == lease else was) for one, was in seen.leases)
        devices = tuple(
            (one, "" if who == lease and holds is None else lease if one == holds else who)
            for one, who in seen.devices
        )
        return "took", Seen(leases, devices)

    is_over = state in ("closing", "settled")
    if verb == "close":
        if is_over:
            return "nothing", seen
        return to("settled" if state in ("requested", "reserved") else "closing", None)
    if verb == "reserve":
        if state != "requested":
            return "lease_state", seen
        return ("device_taken", seen) if holder else to("reserved", device)
    if verb == "ready":
        if state in ("active", "paused", "reclaiming"):
            return "nothing", seen
        return to("active", held[0]) if state == "reserved" else ("lease_state", seen)
    if verb == "pause":
        if state == "paused":
            return "nothing", seen
        return to("paused", None) if state == "active" else ("lease_state", seen)
    if verb == "resume":
        if state == "active":
            return "nothing", seen
        if state != "paused":
            return "lease_state", seen
        return ("device_taken", seen) if holder else to("active", device)
    if verb == "reclaim":
        if state == "reclaiming":
            return "nothing", seen
        return to("reclaiming", held[0]) if state == "active" else ("lease_state", seen)
    assert verb == "cancel", verb
    if state == "active":
        return "nothing", seen
    return to("active", held[0]) if state == "reclaiming" else ("lease_state", seen)


# --- the checker can say no ----------------------------------------------------------------------


def call(first: int, last: int, answered: str, *asked: str) -> Operation:
    return Operation(first, last, asked, answered)


ONE = start(["a", "b"], ["gpu"])


def test_calls_at_the_same_time_may_be_taken_in_either_order() -> None:
    history = [
        call(0, 10, "device_taken", "reserve", "a", "gpu"),
        call(1, 9, "took", "reserve", "b", "gpu"),
    ]
    order = linearization(history, model, ONE)
    assert order is not None
    assert [one.asked[1] for one in order] == ["b", "a"]


def test_a_device_given_twice_is_no_history_of_the_model() -> None:
    history = [
        call(0, 10, "took", "reserve", "a", "gpu"),
        call(1, 9, "took", "reserve", "b", "gpu"),
    ]
    assert linearization(history, model, ONE) is None


def test_an_answer_from_before_what_was_already_answered_is_refused() -> None:
    """Both answers are possible, but not in the order in which they were given."""
    stale = [
        call(0, 1, "took", "reserve", "a", "gpu"),
        call(2, 3, "took", "close", "a", "gpu"),
        call(4, 5, "device_taken", "reserve", "b", "gpu"),
    ]
    assert linearization(stale, model, ONE) is None
    overlapping = [*stale[:1], replace(stale[1], returned_ns=6), stale[2]]
    assert linearization(overlapping, model, ONE) is not None


def test_a_lost_close_is_found_in_a_long_history() -> None:
    turns = [
        call(10 * at, 10 * at + 1, "took", verb, "a", "gpu")
        for at, verb in enumerate(["reserve", "ready", *["pause", "resume"] * 10, "close"])
    ]
    assert linearization(turns, model, ONE) is not None
    last = turns[-1].returned_ns
    assert (
        linearization([*turns, call(last + 1, last + 2, "took", "pause", "a", "gpu")], model, ONE)
        is None
    )


# --- the ledger ----------------------------------------------------------------------------------


def founded(ledger: Ledger, connection: psycopg.Connection[Any], leases: Sequence[str]) -> Market:
    """One node of two devices on an interruptible offer, and leases that are asked for."""
    market = Market(ledger, connection)
    market.found("one", gpus=2)
    at: dict[str, Any] = {"at_us": START_US}
    market.do(
        START_US,
        PublishOffer(
            offer_id=OFFER,
            provider_id=PROVIDER,
            node_id=market.nodes["one"].id,
            price_per_gpu_hour=credit(PRICE),
            pay_with="cash",
            fractions=True,
            available_until_us=None,
            terms=OfferTerms(interruptible=True),
            **at,
        ),
        SubmitJob(
            job_id="job_1",
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
            constraints=Constraints(interruptible=True),
            **at,
        ),
        *(
            RequestLease(
                lease_id=one,
                job_id="job_1",
                account_id=RENTER,
                term_us=None,
                funds=credit(10 * PRICE),
                **at,
            )
            for one in leases
        ),
    )
    return market


def command_of(market: Market, asked: tuple[str, ...]) -> Any:
    verb, lease_id, device = asked
    node, at = market.nodes["one"], {"lease_id": lease_id, "at_us": NOW_US}
    told: dict[str, Any] = dict(at)
    if verb == "reserve":
        return ReserveLease(
            rule="lowest_cost/1",
            fleet_position=1,
            candidates=(),
            considered=1,
            node_id=node.id,
            offer_id=OFFER,
            device_ids=(device,),
            **told,
        )
    if verb == "ready":
        return ReadyLease(node_id=node.id, endpoint=None, **told)
    if verb == "pause":
        return PauseLease(reason="outbid", by="job", **told)
    if verb == "resume":
        return ResumeLease(by="job", **told)
    if verb == "reclaim":
        return StartReclaim(code=10_001, by="prov", **told)
    if verb == "cancel":
        return CancelReclaim(by="prov", **told)
    return CloseLease(closed_at_us=NOW_US, party="operator", code=20_002, **told)


def asking(
    market: Market, calls: Sequence[tuple[str, ...]], gate: threading.Barrier, told: list[Operation]
) -> None:
    """One client: its calls, one after the other."""
    gate.wait()
    for asked in calls:
        invoked_ns = time.monotonic_ns()
        try:
            outcome = market.ledger.handle(command_of(market, asked), key=None, now_us=NOW_US)
            answered = "took" if outcome.changes else "nothing"
        except Refused as no:
            answered = no.reason.value
        except StreamMoved:
            continue  # too busy: nothing was recorded and nothing was answered about the lease
        told.append(Operation(invoked_ns, time.monotonic_ns(), asked, answered))


def together(market: Market, plans: Sequence[Sequence[tuple[str, ...]]]) -> list[Operation]:
    """Every plan by a thread of its own, at once."""
    told: list[Operation] = []
    gate = threading.Barrier(len(plans))
    threads = [threading.Thread(target=asking, args=(market, plan, gate, told)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


VERBS = [*("reserve", "ready", "pause", "pause", "resume", "reclaim", "cancel") * 6, "close"]
"""What is asked how often: few closes, so that there is a life to be told."""


@contextmanager
def seeded_scene() -> Generator[tuple[Databases, str], None, None]:
    with postgres_migrated() as made:
        yield made


def run(seed: int, scene: tuple[Databases, str]) -> None:
    """One history of eight threads that ask what the seed draws."""
    with fresh(*scene) as database:
        explained(database, seed)


@pytest.mark.parametrize("seed", range(4))
def test_lease_commands_of_eight_threads_are_linearizable(database: str, seed: int) -> None:
    """Every answer has its place in one order; each lease asks for one device only, and two ask
    for the same.
    """
    explained(database, seed)


def explained(database: str, seed: int) -> None:
    """Eight threads ask at once; some order of their calls explains every answer."""
    leases = [f"lease_{number}" for number in range(4)]
    with (
        Ledger(
            database, blinding_key=b"tests/ledger/test_linearizability", connections_max=THREADS
        ) as ledger,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        market = founded(ledger, connection, leases)
        devices = market.nodes["one"].device_ids
        wants = {lease: devices[number % 2] for number, lease in enumerate(leases)}
        chance = random.Random(seed)
        plans = [
            [
                (chance.choice(VERBS), lease, wants[lease])
                for lease in chance.choices(leases, k=CALLS)
            ]
            for _ in range(THREADS)
        ]
        first = start(leases, devices)
        for verb in ("reserve", "ready"):
            for lease in leases[:2]:
                asked = (verb, lease, wants[lease])
                ledger.handle(command_of(market, asked), key=None, now_us=NOW_US)
                _, first = model(first, asked)
        history = together(market, plans)
        assert len(history) > THREADS * CALLS * 3 // 4
        assert sum(one.answered == "took" for one in history) > 5
        order = linearization(history, model, first)
        assert order is not None, history
        found = dict(_replayed(order, first).leases)
        states = {one: market.ledger.market.load(Stream("lease", one)).state for one in leases}
        assert found == {one: state.status for one, state in states.items()}
        assert ledger.books.faults() == []


def _replayed(order: Sequence[Operation], seen: Seen) -> Seen:
    for one in order:
        _, seen = model(seen, one.asked)
    return seen


def test_eight_who_reserve_one_device_at_once_get_one_lease(database: str) -> None:
    leases = [f"lease_{number}" for number in range(THREADS)]
    with (
        Ledger(
            database, blinding_key=b"tests/ledger/test_linearizability", connections_max=THREADS
        ) as ledger,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        market = founded(ledger, connection, leases)
        device = market.nodes["one"].device_ids[0]
        history = together(market, [[("reserve", one, device)] for one in leases])
        answers = [one.answered for one in history]
        assert answers.count("took") == 1
        assert set(answers) <= {"took", "device_taken"}
        states = [market.ledger.market.load(Stream("lease", one)).state for one in leases]
        assert [state.status for state in states].count("reserved") == 1
        holders = market.ledger.market.load(Stream("device", device)).state.holders
        assert len(holders) == 1
