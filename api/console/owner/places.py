"""Where the devices are: regions as tiles, from what the API tells, without anybody's map."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from api.console.drawing.tiles import Placed, Tile, tile_at
from api.console.visits.reading import Told
from api.console.visits.visit import Visit


async def show(visit: Visit) -> Response:
    """`/map`"""
    told = await visit.read("/v1/where-next")
    cut = await visit.read("/v1/fragmentation", by="region")
    devices = {str(one.get("region")): one for one in cut["data"]}
    rows = [_row(one, devices.get(one["region_id"])) for one in told["regions"]]
    rows.sort(key=lambda one: (-int(one["devices"]), str(one["name"])))
    placed = [one for one in rows if one["tile"] is not None]
    return visit.show(
        "owner/map.html",
        rows=rows,
        placed=_placed(placed),
        total=sum(int(one["devices"]) for one in rows),
        places=told["places"],
        unplaced=len(rows) - len(placed),
    )


def _row(region: Told, cut: Told | None) -> dict[str, Any]:
    latitude, longitude = region.get("latitude_e6"), region.get("longitude_e6")
    return {
        "region_id": region["region_id"],
        "name": region["name"],
        "phase": region["phase"],
        "setting": region["setting"],
        "workers": region["workers"],
        "devices": cut["devices"] if cut else 0,
        "free": cut["whole_free"] if cut else 0,
        "leased_ppm": region.get("leased_ppm"),
        "waiting": region["waiting_people"],
        "wanted": region["demand"]["waiting_gpus"] + region["demand"]["refused_gpus"],
        "tile": None if latitude is None or longitude is None else tile_at(latitude, longitude),
    }


def _placed(rows: list[dict[str, Any]]) -> list[tuple[Tile, Placed]]:
    """What stands on each tile. The leased part of several regions is weighed by their devices."""
    by_tile: dict[str, list[dict[str, Any]]] = {}
    for one in rows:
        by_tile.setdefault(one["tile"].code, []).append(one)
    found = []
    for group in by_tile.values():
        devices = sum(int(one["devices"]) for one in group)
        known = [one for one in group if one["leased_ppm"] is not None and one["devices"]]
        weight = sum(int(one["devices"]) for one in known)
        leased = (
            sum(int(one["leased_ppm"]) * int(one["devices"]) for one in known) // weight
            if weight
            else None
        )
        names = tuple(str(one["name"]) for one in group)
        path = f"#{group[0]['region_id']}"
        found.append((group[0]["tile"], Placed(devices, leased, names, path)))
    return found
