"""Nodes of one region reach each other on private addresses, as they tried (C-3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fleet.provider import RegionOpened
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.regions.neighbour_proofs import (
    ADDRESSES_MAX,
    CHALLENGE_US,
    PEERS_MAX,
    Tried,
    private_address,
)
from domain.regions.neighbours import (
    CHANGED_EVERY_US,
    CONNECTED,
    DISCONNECTED,
    ENOUGH,
    FRESH_US,
    PAIRS,
    SINGLE,
    TOLD_EVERY_US,
    UNKNOWN,
    NodeNeighboursTried,
    TellNeighbours,
    Told,
    is_tried,
    neighbours_stream,
    see,
    verdict_of,
)
from domain.stream import Stream
from tests.domain.scenes.supply import (
    NODE,
    NOON_US,
    REGION,
    joined,
    with_active_node,
    with_confirmed_node,
    with_joined_node,
)
from tests.examples import examples
from tests.given import Scene

PEER, FAR = "node_2", "node_far"
PROOF = "ab" * 64


def beside(scene: Scene) -> Scene:
    """With another node in the region, and one in another region."""
    return scene.given(
        (Stream("node", PEER), replace(joined, node_id=PEER)),
        (Stream("node", FAR), replace(joined, node_id=FAR, region_id="region_far")),
    )


def tell(*tried: Tried, **changes: Any) -> TellNeighbours:
    command = TellNeighbours(
        node_id=NODE,
        challenge=NOON_US,
        addresses=("10.0.0.7:7714",),
        tried=tried,
        signature="00" * 64,
        at_us=NOON_US,
    )
    return replace(command, **changes)


def test_a_node_tells_its_private_addresses_and_whom_it_reached_from_its_confirmed_key_on() -> None:
    tried = (Tried(PEER, PROOF),)
    for scene in (beside(with_confirmed_node), beside(with_active_node)):
        (change,) = scene.when(tell(*tried)).changes()
        assert change.stream == neighbours_stream(NODE)
        fact = change.fact
        assert isinstance(fact, NodeNeighboursTried)
        assert (fact.region_id, fact.addresses, fact.tried) == (REGION, ("10.0.0.7:7714",), tried)
    beside(with_joined_node).when(tell(*tried)).then_refused(FleetReason.NODE_STATE)


def test_the_same_is_recorded_every_six_hours_and_a_change_every_five_minutes() -> None:
    scene = beside(with_active_node).after(tell(Tried(PEER, PROOF)))

    def again(after_us: int, proof: str) -> list[Any]:
        at_us = NOON_US + after_us
        told = tell(Tried(PEER, proof), challenge=at_us, at_us=at_us)
        return list(scene.when(told).changes())

    assert again(TOLD_EVERY_US - 1, "cd" * 64) == [], "another proof of the same is no news"
    assert len(again(TOLD_EVERY_US, PROOF)) == 1
    assert again(CHANGED_EVERY_US - 1, "") == []
    assert len(again(CHANGED_EVERY_US, "")) == 1


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (tell(Tried(FAR, PROOF)), FleetReason.NODE_UNKNOWN),
        (tell(Tried(NODE, PROOF)), FleetReason.NODE_UNKNOWN),
        (tell(Tried("node_nobody", "")), FleetReason.NODE_UNKNOWN),
        (tell(Tried(PEER, ""), Tried(PEER, PROOF)), PartiesReason.COUNT_OUT_OF_RANGE),
        (tell(addresses=("203.0.113.7:7714",)), PartiesReason.UNKNOWN_MODE),
        (tell(addresses=("10.0.0.7:22",)), PartiesReason.UNKNOWN_MODE),
        (tell(addresses=("10.0.0.7:7714",) * 2), PartiesReason.COUNT_OUT_OF_RANGE),
        (
            tell(addresses=tuple(f"10.0.0.{n}:7714" for n in range(ADDRESSES_MAX + 1))),
            PartiesReason.COUNT_OUT_OF_RANGE,
        ),
        (
            tell(*(Tried(f"node_x{n}", "") for n in range(PEERS_MAX + 1))),
            PartiesReason.COUNT_OUT_OF_RANGE,
        ),
        (tell(challenge=NOON_US + 1), FleetReason.BAD_PERIOD),
        (tell(challenge=NOON_US - CHALLENGE_US - 1), FleetReason.BAD_PERIOD),
        (tell(node_id="node_nobody"), FleetReason.NODE_UNKNOWN),
    ],
)
def test_what_cannot_be_so_is_refused(command: TellNeighbours, reason: Any) -> None:
    beside(with_active_node).when(command).then_refused(reason)


def test_a_region_of_a_cloud_is_not_asked() -> None:
    past = tuple(
        (stream, replace(fact, cloud_region="us-central1", site=None))
        if isinstance(fact, RegionOpened)
        else (stream, fact)
        for stream, fact in with_active_node.past
    )
    replace(with_active_node, past=past).when(tell()).then_refused(FleetReason.REGION_NOT_SUITED)


@pytest.mark.parametrize(
    ("text", "is_private"),
    [
        ("10.255.255.255:1024", True),
        ("172.16.0.1:7714", True),
        ("172.31.255.254:65535", True),
        ("192.168.0.1:7714", True),
        ("172.32.0.1:7714", False),
        ("192.169.0.1:7714", False),
        ("11.0.0.1:7714", False),
        ("127.0.0.1:7714", False),
        ("169.254.1.1:7714", False),
        ("10.0.0.1:1023", False),
        ("10.0.0.1:65536", False),
        ("10.0.0.1", False),
        ("010.0.0.1:7714", False),
        ("lab.example:7714", False),
    ],
)
def test_private_addresses_are_those_of_rfc_1918(text: str, is_private: bool) -> None:
    assert (private_address(text) is not None) == is_private


def told(reached: str = "", missed: str = "", at_us: int = NOON_US) -> Told:
    return Told(at_us, frozenset(reached), frozenset(missed))


@pytest.mark.parametrize(
    ("nodes", "verdict"),
    [
        ({"a": told()}, SINGLE),
        ({"a": None, "b": None}, UNKNOWN),
        ({"a": told("b"), "b": None}, UNKNOWN),
        ({"a": told("b"), "b": told("a")}, CONNECTED),
        ({"a": told("b"), "b": told("a"), "c": told("ab")}, UNKNOWN),
        ({"a": told("bc"), "b": told("ac"), "c": told("ab")}, CONNECTED),
        ({"a": told("bc"), "b": told("ac"), "c": told("a", "b")}, DISCONNECTED),
        ({"a": told("b"), "b": told("a", at_us=NOON_US - FRESH_US)}, UNKNOWN),
        ({"a": told("", "b"), "b": None}, DISCONNECTED),
        ({"a": told("", "b", at_us=NOON_US - FRESH_US), "b": None}, UNKNOWN),
        ({"a": told("z"), "b": told("z", "y")}, UNKNOWN),
    ],
)
def test_a_region_is_connected_when_every_node_reached_every_other(
    nodes: dict[str, Told | None], verdict: str
) -> None:
    assert verdict_of(see(nodes, NOON_US).values()) == verdict


LARGE = tuple(f"node_{number:04d}" for number in range(400))


def drawn(at_us: int, apart: frozenset[str] = frozenset()) -> dict[str, Told | None]:
    """A region where all nodes tried what is drawn, and those that are apart reach each other."""
    found: dict[str, Told | None] = {}
    for node in LARGE:
        peers = [one for one in LARGE if one != node and is_tried(node, one, len(LARGE), at_us)]
        reached = frozenset(one for one in peers if (one in apart) == (node in apart))
        found[node] = Told(at_us, reached, frozenset(peers) - reached)
    return found


def test_a_large_region_is_known_from_pairs_that_are_drawn_and_one_node_apart_shows() -> None:
    """Of 400 nodes no pair is asked of one side alone, and no node tries more than 128."""
    whole = see(drawn(NOON_US), NOON_US)
    assert verdict_of(whole.values()) == CONNECTED
    counts = [len(one.reached) for one in whole.values()]
    assert min(counts) >= ENOUGH
    assert max(counts) <= PEERS_MAX
    assert abs(sum(counts) / len(LARGE) - PAIRS) < 2
    for apart in (frozenset(LARGE[:1]), frozenset(LARGE[100:103])):
        seen = see(drawn(NOON_US, apart), NOON_US)
        assert verdict_of(seen.values()) == DISCONNECTED
        assert all(seen[one].missed for one in apart)
    silent = {**drawn(NOON_US), LARGE[7]: None}
    assert verdict_of(see(silent, NOON_US).values()) == UNKNOWN, "what tells nothing is not known"


def test_pairs_of_a_large_region_are_drawn_anew_a_quarter_at_a_time() -> None:
    def pairs(at_us: int) -> set[str]:
        return {one for one in LARGE[1:] if is_tried(LARGE[0], one, len(LARGE), at_us)}

    now = pairs(NOON_US)
    assert pairs(NOON_US + TOLD_EVERY_US // 12) <= now | pairs(NOON_US + TOLD_EVERY_US)
    assert len(now & pairs(NOON_US + TOLD_EVERY_US)) > len(now) // 2
    assert len(now & pairs(NOON_US + FRESH_US)) < len(now) // 2
    ever = {one for day in range(90) for one in pairs(NOON_US + day * FRESH_US)}
    assert len(ever) > len(LARGE) * 99 // 100
    assert all(is_tried("a", "b", PEERS_MAX + 1, NOON_US + day * FRESH_US) for day in range(9))


NAMES = "abcde"
sets = st.frozensets(st.sampled_from(NAMES))


@examples(60)
@given(
    st.dictionaries(
        st.sampled_from(NAMES), st.none() | st.builds(Told, st.just(NOON_US), sets, sets)
    )
)
def test_each_node_is_seen_by_the_pairs_that_it_is_in(nodes: dict[str, Told | None]) -> None:
    """Both of a pair see the same, and nobody's word makes a pair connected alone."""
    seen = see(nodes, NOON_US)
    for node_id, one in seen.items():
        for peer in one.reached:
            assert node_id in seen[peer].reached
            mine, other = nodes[node_id], nodes[peer]
            assert mine is not None
            assert other is not None
            assert peer in mine.reached
            assert node_id in other.reached
        assert all(node_id in seen[peer].missed for peer in one.missed)
        assert len(one.reached) + len(one.missed) + one.untried == len(nodes) - 1
        mine = nodes[node_id]
        named = frozenset[str]() if mine is None else mine.reached | mine.missed
        near = {
            peer: told
            for peer, told in nodes.items()
            if peer in named | {node_id}
            or (told is not None and node_id in told.reached | told.missed)
        }
        assert see(near, NOON_US, len(nodes) - 1)[node_id] == one, "as from its own pairs alone"
    if seen:
        worst = {one.verdict for one in seen.values()}
        order = (DISCONNECTED, UNKNOWN, CONNECTED, SINGLE)
        assert verdict_of(seen.values()) == next(one for one in order if one in worst)
