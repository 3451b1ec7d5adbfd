"""What nodes measure of the way to their region: latency, and the bytes that go through an ingress.

    intervals of bytes of one node never overlap, and none crosses midnight UTC
    bytes of an interval  <=  BYTES_PER_US_MAX x its length

The reporter times connections to the region's control and to the ingress that its node is behind;
the median counts. An ingress node's reporter reads the counters of the interface that workers come
through, and signs what it read with the node's key. The day's bytes are part of what a region's
infrastructure costs (`domain/income/region_sharing.py`). Source: rows K-5, K-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from domain.calendar import day_of
from domain.fleet.growth import INGRESS, growth_of
from domain.fleet.node import existing_node
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one way, round trip in microseconds: the median of `samples` connections."""

    target: str  # TARGETS
    rtt_us: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLatencyReported:
    """Stream `node-reach:{node_id}`; the latest counts."""

    node_id: str
    region_id: str
    ways: tuple[Latency, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IngressBytesReported:
    """Stream `node-reach:{node_id}`: what went through an ingress node in an interval."""

    node_id: str
    region_id: str
    from_us: int
    until_us: int
    bytes_in: int
    bytes_out: int
    key_id: str
    signature: str  # hex, over the DSSE encoding of the request's body
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLatency:
    node_id: str
    ways: tuple[Latency, ...]
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportIngressBytes:
    node_id: str
    from_us: int
    until_us: int
    bytes_in: int
    bytes_out: int
    signature: str
    at_us: int


TARGETS = CONTROL_WAY, INGRESS_WAY = ("control", "ingress")
RTT_US_MAX = 60_000_000
SAMPLES_MAX = 100
LATENCY_EVERY_US = 300_000_000
"""Told again sooner it is not recorded anew."""
BYTES_PER_US_MAX = 50_000
"""400 Gb/s."""
CLOCK_US = 60_000_000
"""So far a node's clock may be ahead."""
DAYS_KEPT = 64


@dataclass(frozen=True, slots=True)
class DayBytes:
    day: int
    total: int


@dataclass(frozen=True, slots=True)
class Reach:
    """`days`: bytes in and out, the newest days; `until_us`: up to there they are told."""

    latency: NodeLatencyReported | None = None
    bytes_told: IngressBytesReported | None = None
    days: tuple[DayBytes, ...] = ()

    def bytes_on(self, day: int) -> int:
        return next((one.total for one in self.days if one.day == day), 0)


def evolve(state: Reach, fact: NodeLatencyReported | IngressBytesReported) -> Reach:
    match fact:
        case NodeLatencyReported():
            return replace(state, latency=fact)
        case IngressBytesReported():
            day, new = day_of(fact.from_us), fact.bytes_in + fact.bytes_out
            rest = tuple(one for one in state.days if one.day != day)
            days = (*rest, DayBytes(day, state.bytes_on(day) + new))[-DAYS_KEPT:]
            return replace(state, bytes_told=fact, days=days)
        case _:
            assert_never(fact)


def reach_stream(node_id: str) -> Stream[Reach]:
    return Stream("node-reach", node_id)


def reach_of(world: World, node_id: str) -> Reach:
    return world.state(reach_stream(node_id))


def decide_latency(command: ReportLatency, world: World) -> list[Change]:
    """Raises Refused: NODE_UNKNOWN, NODE_STATE, COUNT_OUT_OF_RANGE, UNKNOWN_MODE."""
    region_id = _region_of_live(command.node_id, world)
    targets = [way.target for way in command.ways]
    if not targets or len(set(targets)) < len(targets) or set(targets) - set(TARGETS):
        raise Refused(PartiesReason.UNKNOWN_MODE, targets=",".join(targets)[:100])
    for way in command.ways:
        if not (1 <= way.rtt_us <= RTT_US_MAX and 1 <= way.samples <= SAMPLES_MAX):
            raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, rtt_us=way.rtt_us, samples=way.samples)
    present = reach_of(world, command.node_id).latency
    if present is not None and command.at_us < present.at_us + LATENCY_EVERY_US:
        return []
    told = NodeLatencyReported(
        node_id=command.node_id, region_id=region_id, ways=command.ways, at_us=command.at_us
    )
    return [Change(reach_stream(command.node_id), told)]


def decide_bytes(command: ReportIngressBytes, world: World) -> list[Change]:
    """The same interval told again changes nothing. Raises Refused: NODE_UNKNOWN, NODE_STATE,
    NODE_ROLE, BAD_PERIOD, COUNT_OUT_OF_RANGE.
    """
    region_id = _region_of_live(command.node_id, world)
    node = existing_node(world, command.node_id)
    told = IngressBytesReported(
        node_id=command.node_id,
        region_id=region_id,
        from_us=command.from_us,
        until_us=command.until_us,
        bytes_in=command.bytes_in,
        bytes_out=command.bytes_out,
        key_id=node.key_id,
        signature=command.signature,
        at_us=command.at_us,
    )
    present = reach_of(world, command.node_id).bytes_told
    if present is not None and replace(told, at_us=present.at_us) == present:
        return []
    member = growth_of(world, region_id).member(command.node_id)
    if member is None or member.role != INGRESS:
        raise Refused(FleetReason.NODE_ROLE, rule="an_ingress_tells_bytes")
    _require_interval(command, 0 if present is None else present.until_us)
    return [Change(reach_stream(command.node_id), told)]


def _region_of_live(node_id: str, world: World) -> str:
    node = existing_node(world, node_id)
    assert node.joined is not None
    if not node.is_admitted or node.is_quarantined:
        raise Refused(FleetReason.NODE_STATE, node_id=node_id, phase=node.phase)
    return node.joined.region_id


def _require_interval(command: ReportIngressBytes, known_until_us: int) -> None:
    from_us, until_us = command.from_us, command.until_us
    is_one_day = 0 <= from_us < until_us and day_of(from_us) == day_of(until_us - 1)
    if not is_one_day or from_us < known_until_us or until_us > command.at_us + CLOCK_US:
        raise Refused(
            FleetReason.BAD_PERIOD,
            from_us=from_us,
            until_us=until_us,
            known_until_us=known_until_us,
        )
    most = BYTES_PER_US_MAX * (until_us - from_us)
    if min(command.bytes_in, command.bytes_out) < 0 or command.bytes_in + command.bytes_out > most:
        raise Refused(
            PartiesReason.COUNT_OUT_OF_RANGE,
            bytes=command.bytes_in + command.bytes_out,
            at_most=most,
        )


STREAMS: dict[str, tuple[Any, Any]] = {"node-reach": (Reach(), evolve)}
DECIDERS: dict[type[Any], Any] = {ReportLatency: decide_latency, ReportIngressBytes: decide_bytes}
