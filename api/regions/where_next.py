"""Where next: wait lists, unmet demand and utilisation by region in one view, and as a map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fastapi import Response

from api.door.auth import with_scope
from api.door.call import Caller, View
from api.door.models import AnswerModel, Count, Position, RegionId, Short
from api.door.operation import Resource
from api.fleet.growth import Phase
from domain.duration import DAY_US
from domain.money import PPM
from domain.regions.wait_list import PLACE
from projections.fleet import regions, utilisation
from projections.fleet.fleet import FLEET
from projections.fleet.utilisation import START, UTILISATION
from projections.lease import unmet
from projections.lease.leases import LEASES
from projections.market.unmatched import UNMATCHED, read_refused

resource = Resource("regions")

READ = with_scope("provider", "operator", "audit:read")
DAYS = 7
"""Utilisation and requests that were given up count so far back."""
REGIONS_MAX = NODES_MAX = 10_000


class UnmetDemandAnswer(AnswerModel):
    """GPUs that are asked for and that no node gives: now, by requests that wait; lately, by those
    that were given up, and by those refused at once (the largest one of each account).
    """

    waiting_gpus: Count
    given_up_gpus: Count
    refused_gpus: Count


class WhereRegionAnswer(AnswerModel):
    """`leased_ppm`: of what its devices could have sold in the last seven days; absent: nothing
    was booked.
    """

    region_id: RegionId
    name: Short
    phase: Phase
    setting: Literal["edge", "datacenter"]
    workers: Count
    workers_max: Count | None = None
    leased_ppm: Count | None = None
    waiting_people: Count
    threshold: Count | None = None
    demand: UnmetDemandAnswer
    latitude_e6: int | None = None
    longitude_e6: int | None = None


class WherePlaceAnswer(AnswerModel):
    """A place that no region holds. `place`: ISO 3166."""

    place: Short
    waiting_people: Count
    threshold: Count
    reached: bool


class WhereNextAnswer(AnswerModel):
    """`demand`: of requests that name no region. Places with the most people first."""

    regions: list[WhereRegionAnswer]
    places: list[WherePlaceAnswer]
    demand: UnmetDemandAnswer
    position: Position


class RegionMapFeatureAnswer(AnswerModel):
    type: Literal["Feature"]
    geometry: dict[str, Any]
    properties: dict[str, Any]


class RegionMapAnswer(AnswerModel):
    """GeoJSON (RFC 7946). `kind` of a feature: `region`, `waiting` or `node`; longitude comes
    first.
    """

    type: Literal["FeatureCollection"]
    features: list[RegionMapFeatureAnswer]
    position: Position


@resource.get("/v1/where-next", READ, WhereNextAnswer)
def read_where_next(call: Caller) -> Response:
    """Shows where regions are wanted: accounts that wait, unmet demand, and what is used."""
    with call.read(FLEET, UTILISATION, LEASES, UNMATCHED) as view:
        since_us = call.now_us - DAYS * DAY_US
        demand = _Demand(
            unmet.read_unmet(view.connection, since_us), read_refused(view.connection, since_us)
        )
        lists = {row.list_id: row for row in regions.read_wait_lists(view.connection, None)}
        used = _used(view, since_us, call.now_us)
        told = WhereNextAnswer(
            regions=[
                _region(row, lists.get(row.region_id), used.get(row.region_id), demand)
                for row in regions.read_placed(view.connection, limit=REGIONS_MAX)
            ],
            places=[
                WherePlaceAnswer(
                    place=row.list_id.removeprefix(PLACE),
                    waiting_people=row.waiting,
                    threshold=row.threshold,
                    reached=row.reached_at_us is not None,
                )
                for row in lists.values()
                if row.list_id.startswith(PLACE)
            ],
            demand=demand.of(""),
            position=view.position,
        )
        return call.answer(view, told)


@resource.get("/v1/where-next/map", READ, RegionMapAnswer)
def read_region_map(call: Caller) -> Response:
    """Returns regions, where people wait, and your own nodes with their devices (operators and
    auditors: all nodes) as dots of a map in GeoJSON. A node stands where its region does.
    """
    with call.read(FLEET) as view:
        features = [
            _feature(
                row.longitude_e6,
                row.latitude_e6,
                {
                    "kind": "region",
                    "region_id": row.region_id,
                    "name": row.name,
                    "phase": row.phase,
                    "workers": row.workers,
                },
            )
            for row in regions.read_placed(view.connection, limit=REGIONS_MAX)
            if row.latitude_e6 is not None and row.longitude_e6 is not None
        ]
        features += [
            _feature(
                dot.longitude_e6,
                dot.latitude_e6,
                {"kind": "waiting", "list_id": dot.list_id, "people": dot.waiting},
            )
            for dot in regions.read_dots(view.connection)
        ]
        features += [
            _feature(
                node.longitude_e6,
                node.latitude_e6,
                {
                    "kind": "node",
                    "node_id": node.node_id,
                    "region_id": node.region_id,
                    "phase": node.phase,
                    "devices": node.devices,
                },
            )
            for node in regions.read_mapped(view.connection, call.principal.only, limit=NODES_MAX)
        ]
        told = RegionMapAnswer(type="FeatureCollection", features=features, position=view.position)
        return call.answer(view, told)


def _used(view: View, from_us: int, to_us: int) -> dict[str, int]:
    """By region: the leased part of what could be sold, in ppm."""
    rows = utilisation.read_utilisation(
        view.connection,
        by=("region",),
        from_us=from_us,
        to_us=to_us,
        account_id=None,
        pool_id=None,
        after=tuple(START),
        limit=REGIONS_MAX,
    )
    told: dict[str, int] = {}
    for row in rows:
        if row.region and row.physical:
            told[row.region] = row.leased * PPM // row.physical
    return told


@dataclass(frozen=True, slots=True)
class _Demand:
    """By region; "" for what names none."""

    unmet: dict[str, unmet.Unmet]
    refused: dict[str, int]

    def of(self, region_id: str) -> UnmetDemandAnswer:
        row = self.unmet.get(region_id)
        return UnmetDemandAnswer(
            waiting_gpus=0 if row is None else row.waiting,
            given_up_gpus=0 if row is None else row.given_up,
            refused_gpus=self.refused.get(region_id, 0),
        )


def _region(
    row: regions.Placed, waits: regions.WaitList | None, leased_ppm: int | None, demand: _Demand
) -> WhereRegionAnswer:
    told: Any = row
    return WhereRegionAnswer(
        region_id=row.region_id,
        name=row.name,
        phase=told.phase,
        setting=told.setting,
        workers=row.workers,
        workers_max=row.workers_max,
        leased_ppm=leased_ppm,
        waiting_people=0 if waits is None else waits.waiting,
        threshold=None if waits is None else waits.threshold,
        demand=demand.of(row.region_id),
        latitude_e6=row.latitude_e6,
        longitude_e6=row.longitude_e6,
    )


def _feature(east_e6: int, north_e6: int, properties: dict[str, Any]) -> RegionMapFeatureAnswer:
    """RFC 7946 asks for numbers: these are drawn, and no money depends on them."""
    point = {"type": "Point", "coordinates": [east_e6 / 1_000_000, north_e6 / 1_000_000]}
    return RegionMapFeatureAnswer(type="Feature", geometry=point, properties=properties)
