"""How a region shares what its nodes earn: its terms, and the next version of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from api.console.drawing.words import PLACES, decimal, percent
from api.console.visits import entering
from api.console.visits.reading import Refused, Told
from api.console.visits.visit import Visit

FEES = (
    ("base", "In any case"),
    ("control", "For each control node"),
    ("ingress", "For each ingress node"),
    ("per_gib", "For each GiB that ingress nodes report"),
    ("most", "Together at most"),
    ("arrears_max", "Waits as arrears, at most"),
)
"""What is taken of a day, and how the form calls it."""


async def show(visit: Visit) -> Response:
    """`/regions/{region_id}/terms`"""
    return await _page(visit, None)


async def take(visit: Visit) -> Response:
    """Set the next version. It holds a whole notice period later."""
    region_id, form = visit.params["region_id"], visit.form
    try:
        body = {
            "version": entering.whole(form.get("version", ""), "the version", 1, 1_000_000),
            "effective_from": form.get("from", ""),
            "shared": form.get("shared") == "yes",
            "participation_ppm": entering.ppm_of(
                form.get("participation", ""), "the part for being there"
            ),
            "availability_min_tier": entering.whole(form.get("tier", ""), "the tier", 0, 4),
            "infra": {
                name: entering.credits_of(form.get(name, ""), said.lower()) for name, said in FEES
            },
        }
        await visit.record(f"/v1/regions/{region_id}/terms", body)
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _page(visit, problem)
    return visit.to(f"/regions/{region_id}")


async def _page(visit: Visit, problem: Refused | None) -> Response:
    path = f"/v1/regions/{visit.params['region_id']}"
    region, terms = await visit.read(path), await visit.read(f"{path}/terms")
    last = terms["versions"][-1] if terms["versions"] else None
    return visit.show(
        "owner/region_terms.html",
        200 if problem is None else problem.status,
        region=region,
        terms=terms,
        fees=FEES,
        values=_values(visit, last),
        version=1 if last is None else last["version"] + 1,
        earliest=_earliest(visit, terms["notice_days"]),
        problem=problem,
    )


def _values(visit: Visit, last: Told | None) -> dict[str, str]:
    """What the fields hold: what was sent and refused, else the last version, else nothing."""
    if visit.form:
        return dict(visit.form)
    if last is None:
        return {"shared": "yes", "tier": "3", **{name: "0" for name, _ in FEES}}
    fees = {name: _plain(last["infra"][name]) for name, _ in FEES}
    part = percent(last["participation_ppm"]).removesuffix(" %")
    return {
        "shared": "yes" if last["shared"] else "",
        "participation": part,
        "tier": str(last["availability_min_tier"]),
        **fees,
    }


def _plain(money: Told) -> str:
    """An amount as a field takes it."""
    return decimal(int(money["units"]), PLACES["CREDIT"]).replace(",", "")


def _earliest(visit: Visit, notice_days: int) -> str:
    """The first day of UTC that a change may hold from."""
    now = datetime.fromtimestamp(visit.service.clock.now_us() // 1_000_000, UTC)
    return (now + timedelta(days=notice_days + 1)).date().isoformat()
