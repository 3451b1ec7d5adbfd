"""Under which name machines are offered, and where they stand: providers and regions with fees."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from api.console.owner.own import ROWS_MAX, own_alone
from api.console.visits.reading import Refused, Told
from api.console.visits.visit import Visit

DAYS_MAX = 62


async def show(visit: Visit) -> Response:
    """`/providers`"""
    return await _page(visit, None)


async def take(visit: Visit) -> Response:
    """Register a provider."""
    body: dict[str, Any] = {"kind": visit.form.get("kind", "")}
    if visit.form.get("payment_mode"):
        body["payment_mode"] = visit.form["payment_mode"]
    try:
        await visit.record("/v1/providers", body)
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _page(visit, problem)
    return visit.to("/providers")


async def _page(visit: Visit, problem: Refused | None) -> Response:
    kinds = await visit.read("/v1/provider-kinds")
    return visit.show(
        "owner/providers.html",
        200 if problem is None else problem.status,
        providers=await _mine(visit),
        kinds=kinds["data"],
        problem=problem,
    )


async def _mine(visit: Visit) -> list[Told]:
    asked = {"account_id": own_alone(visit), "order": "desc", "limit": ROWS_MAX}
    found = await visit.read("/v1/providers", **asked)
    rows: list[Told] = found["data"]
    return rows


async def show_regions(visit: Visit) -> Response:
    """`/regions`"""
    return await _regions(visit, None)


async def take_region(visit: Visit) -> Response:
    """Open a region."""
    form = visit.form
    body = {
        "provider_id": form.get("provider_id", ""),
        "name": form.get("name", "").strip(),
        "storage_mode": "local",
        "setting": form.get("setting", ""),
        "admission": form.get("admission", ""),
        "allow_public_jobs": form.get("public") == "yes",
    }
    try:
        made = await visit.record("/v1/regions", body)
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _regions(visit, problem)
    return visit.to(f"/regions/{made['region_id']}")


async def _regions(visit: Visit, problem: Refused | None) -> Response:
    regions = await visit.read("/v1/regions", order="desc", limit=ROWS_MAX)
    providers = await _mine(visit)
    mine, is_own = {one["provider_id"] for one in providers}, own_alone(visit) is None
    return visit.show(
        "owner/regions.html",
        200 if problem is None else problem.status,
        rows=[one for one in regions["data"] if is_own or one["provider_id"] in mine],
        has_more=regions["has_more"],
        providers=providers,
        problem=problem,
        name_text=visit.form.get("name", ""),
    )


async def show_region(visit: Visit) -> Response:
    """`/regions/{region_id}`: what it takes of what its nodes earn, and what it shared out."""
    path = f"/v1/regions/{visit.params['region_id']}"
    region = await visit.read(path)
    return visit.show(
        "owner/region.html",
        region=region,
        may_set=region["provider_id"] in {one["provider_id"] for one in await _mine(visit)}
        and visit.may("provider"),
        terms=await visit.read(f"{path}/terms"),
        growth=await visit.read(f"{path}/growth"),
        place=await visit.read(f"{path}/place"),
        days=await visit.read(f"{path}/shares", limit=DAYS_MAX),
    )


async def show_day(visit: Visit) -> Response:
    """`/regions/{region_id}/days/{date}`: every node's share of a day, and why."""
    region_id, date = visit.params["region_id"], visit.params["date"]
    told = await visit.read(f"/v1/regions/{region_id}/shares/{date}", limit=ROWS_MAX)
    return visit.show("owner/region_day.html", region_id=region_id, date=date, told=told)
