"""Row J-6: disk and network of a node are given to leases with its devices, and only once."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.hardware.constraints import Constraints
from domain.lease.lease import CloseLease, ReadyLease, ReserveLease
from domain.lease.turns import PauseLease, ResumeLease
from domain.market.offer import OfferTerms, offer_stream
from domain.market.reasons import MarketReason
from domain.refusal import Refused
from domain.storage.node_room import NodeRoomReturned, NodeRoomTaken, Room, room_of, room_stream
from tests.domain.scenes import market
from tests.domain.scenes.market import NODE, NOON_US, OFFER
from tests.given import Scene

ROOM = room_stream(NODE)
DEVICES = market.DEVICES


def offering(storage_gib: int | None, network_mbps: int | None) -> Scene:
    """The market with an offer of so much disk and network."""
    scene = market.scene()
    terms = OfferTerms(storage_gib=storage_gib, network_mbps=network_mbps, interruptible=True)
    published = scene.state(offer_stream(OFFER)).published
    offered = replace(published, terms=terms)
    return scene.given((offer_stream(OFFER), offered))


def demanding(
    scene: Scene, number: int, storage_gib: int | None, network_mbps: int | None = None
) -> Scene:
    """A request for one device with so much disk and network."""
    demands = Constraints(storage_gib=storage_gib, network_mbps=network_mbps, interruptible=True)
    job = market.job(job_id=f"job_{number}", constraints=demands)
    asked = replace(market.request(), lease_id=lease(number), job_id=f"job_{number}")
    return scene.after(job).after(asked)


def lease(number: int) -> str:
    return f"lease_{number:08d}"


def reserve(number: int) -> ReserveLease:
    return replace(market.reserve(), lease_id=lease(number), device_ids=(DEVICES[number],))


def test_a_lease_takes_its_disk_and_network_with_its_devices() -> None:
    scene = demanding(offering(100, 1_000), 0, 60, 400)
    taken = [one.fact for one in scene.when(reserve(0)).changes() if one.stream == ROOM]
    assert taken == [
        NodeRoomTaken(
            node_id=NODE,
            lease_id=lease(0),
            storage_gib=60,
            network_mbps=400,
            storage_of_gib=100,
            network_of_mbps=1_000,
            at_us=NOON_US,
        )
    ]


def test_a_lease_without_such_demands_takes_nothing() -> None:
    scene = demanding(offering(100, 1_000), 0, None)
    assert not [one for one in scene.when(reserve(0)).changes() if one.stream == ROOM]


def test_two_leases_of_100_gib_do_not_fit_an_offer_of_100() -> None:
    scene = demanding(offering(100, None), 0, 100).after(reserve(0))
    scene = demanding(scene, 1, 100)
    facts = {"dimension": "storage", "offered": 0}
    scene.when(reserve(1)).then_refused(MarketReason.OFFER_MISMATCH, **facts)


def test_what_a_lease_holds_comes_back_once_when_it_closes() -> None:
    scene = demanding(offering(100, None), 0, 100).after(reserve(0))
    close = CloseLease(
        lease_id=lease(0), closed_at_us=NOON_US, party="renter", code=101, at_us=NOON_US
    )
    returned = [one.fact for one in scene.when(close).changes() if one.stream == ROOM]
    assert returned == [
        NodeRoomReturned(
            node_id=NODE, lease_id=lease(0), storage_gib=100, network_mbps=0, at_us=NOON_US
        )
    ]
    again = scene.after(close)
    assert not [one for one in again.when(close).changes() if one.stream == ROOM]
    demanding(again, 1, 100).after(reserve(1))


def test_leases_of_another_offer_of_the_node_count() -> None:
    scene = offering(100, None)
    published = scene.state(offer_stream(OFFER)).published
    small = replace(published, offer_id="offer_small", terms=OfferTerms(storage_gib=50))
    scene = scene.given((offer_stream("offer_small"), small))
    scene = demanding(scene, 0, 40).after(reserve(0))
    scene = demanding(scene, 1, 11)
    place = replace(reserve(1), offer_id="offer_small")
    scene.when(place).then_refused(MarketReason.OFFER_MISMATCH, dimension="storage", offered=10)
    scene.after(reserve(1))


_sizes = st.sampled_from((None, 1, 2, 3))
_steps = st.lists(
    st.tuples(st.sampled_from(("reserve", "pause", "resume", "close")), st.integers(0, 3)),
    max_size=14,
)


@given(st.lists(st.tuples(_sizes, _sizes), min_size=4, max_size=4), _steps)
def test_allocated_never_exceeds_capacity_and_is_given_back_exactly_once(
    sizes: list[tuple[int | None, int | None]], steps: list[tuple[str, int]]
) -> None:
    """At every position, for every order of taking, pausing, going on and closing."""
    most = Room(4, 4)
    scene = offering(most.storage_gib, most.network_mbps)
    for number, (storage, network) in enumerate(sizes):
        scene = demanding(scene, number, storage, network)
    for step, number in [*steps, *(("close", number) for number in range(4))]:
        made: dict[str, list[object]] = {
            "reserve": [
                reserve(number),
                ReadyLease(lease_id=lease(number), node_id=NODE, endpoint=None, at_us=NOON_US),
            ],
            "pause": [PauseLease(lease_id=lease(number), reason="renter", by="r", at_us=NOON_US)],
            "resume": [ResumeLease(lease_id=lease(number), by="r", at_us=NOON_US)],
            "close": [
                CloseLease(
                    lease_id=lease(number),
                    closed_at_us=NOON_US,
                    party="renter",
                    code=1,
                    at_us=NOON_US,
                )
            ],
        }
        for command in made[step]:
            try:
                scene = scene.after(command)
            except Refused:
                break
            state = room_of(scene, NODE)
            assert state.held.within(most)
            assert all(
                min(one.storage_gib, one.network_mbps) >= 0 for one in state.holders.values()
            )
    assert room_of(scene, NODE).holders == {}
    taken = [fact for where, fact in scene.past if where == ROOM]
    for number in range(4):
        mine = [fact for fact in taken if fact.lease_id == lease(number)]
        gained = [one for one in mine if isinstance(one, NodeRoomTaken)]
        lost = [one for one in mine if isinstance(one, NodeRoomReturned)]
        for what in ("storage_gib", "network_mbps"):
            assert sum(getattr(one, what) for one in gained) == sum(
                getattr(one, what) for one in lost
            )
