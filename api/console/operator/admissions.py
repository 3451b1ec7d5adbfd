"""Who wants in: machines that ask, nodes that wait to be admitted, and the wait lists."""

from __future__ import annotations

from starlette.responses import Response

from api.console.visits.reading import refused
from api.console.visits.visit import Visit

ROWS_MAX = 200
FIELDS = {"validate": None, "ship": "tracking", "refuse": "why"}
"""The acts of the operator on an admission, and the field that each needs."""


async def show_all(visit: Visit) -> Response:
    """`/operate/admissions`"""
    asked = await visit.read("/v1/admissions", order="desc", limit=ROWS_MAX)
    confirmed = await visit.read("/v1/nodes", phase="confirmed", order="desc", limit=ROWS_MAX)
    joining = await visit.read("/v1/nodes", phase="joining", order="desc", limit=ROWS_MAX)
    lists = await visit.read("/v1/wait-lists")
    return visit.show(
        "operator/admissions.html",
        asked=asked,
        nodes=confirmed,
        joining=joining,
        lists=lists["data"],
    )


async def show(visit: Visit) -> Response:
    """`/operate/admissions/{admission_id}`"""
    one = await visit.read(f"/v1/admissions/{visit.params['admission_id']}")
    return visit.show("operator/admission.html", one=one)


async def take(visit: Visit) -> Response:
    """Validate, ship or refuse a machine."""
    act, admission_id = visit.form.get("act", ""), visit.params["admission_id"]
    if act not in FIELDS:
        raise refused("invalid", "an admission is validated, shipped or refused")
    field = FIELDS[act]
    body = {} if field is None else {field: visit.form.get("text", "").strip()}
    await visit.record(f"/v1/admissions/{admission_id}/{act}", body)
    return visit.to(f"/operate/admissions/{admission_id}")


async def admit(visit: Visit) -> Response:
    """Admit a confirmed node; `waive_RULE` leaves a rule of hardware aside."""
    waived = [name.removeprefix("waive_") for name in visit.form if name.startswith("waive_")]
    body = {"waive": sorted(waived)} if waived else {}
    await visit.record(f"/v1/nodes/{visit.params['node_id']}/admit", body)
    return visit.to("/operate/admissions")
