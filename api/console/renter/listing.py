"""A list of the API as a page shows it: newest first, a page at a time, never cut in silence.

rows shown so far, and a link to the rest where `has_more` says that there are any
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from api.console.drawing.words import percent
from api.console.visits.reading import Told, Value
from api.console.visits.visit import Visit
from api.door.models import IDS_MAX

ROWS = 25


async def rows(
    visit: Visit, path: str, name: str = "cursor", field: str = "data", **query: Value
) -> Told:
    """A page of the list `field`, from where the parameter `name` of the address says; `rest` is
    the address of the next one, or empty. Raises Refused.
    """
    found = await visit.read(path, cursor=visit.asked(name) or None, limit=ROWS, **query)
    kept = {key: value for key, value in visit.request.query_params.items() if key != name}
    rest = {**kept, name: found["next_cursor"]} if found["has_more"] else {}
    return {
        "data": found[field],
        "rest": f"{visit.here}?{urlencode(rest)}" if rest else "",
        "is_first": not visit.asked(name),
    }


async def newest(
    visit: Visit, path: str, name: str = "cursor", field: str = "data", **query: Value
) -> Told:
    """As `rows`, of a list that the API gives in both directions. Raises Refused."""
    return await rows(visit, path, name, field, order="desc", **query)


async def offers_of(visit: Visit, leases: Iterable[Told]) -> dict[str, Told]:
    """The offers that leases were made on, by id: they say which GPU it is."""
    ids = sorted({str(one["offer_id"]) for one in leases if one.get("offer_id")})
    if not ids:
        return {}
    assert len(ids) <= IDS_MAX, len(ids)
    found = await visit.read("/v1/offers", offer_ids=",".join(ids), limit=len(ids))
    return {str(one["offer_id"]): one for one in found["data"]}


def gpu_of(lease: Told, offers: dict[str, Told]) -> str:
    """`2 x NVIDIA H100`, by the offer; else what was asked for."""
    offer = offers.get(str(lease.get("offer_id")))
    models = (offer or {}).get("models") or lease["models"] or [lease.get("gpu_class") or "any GPU"]
    share = int(lease["share_ppm"])
    part = "" if share == 1_000_000 else f"{percent(share)} of "
    return f"{part}{lease['gpu_count']} x {' or '.join(models)}"
