"""What pages of owners share: whose nodes, what they are called, sums of amounts.

An operator or an auditor may read every owner's nodes; these pages show the account's own.
"""

from __future__ import annotations

from typing import Any

from api.console.visits.reading import Told, Value
from api.console.visits.visit import Visit
from api.door.moments import moment

ROWS_MAX, EARNINGS_MAX, DEVICES_MAX = 200, 500, 500
TIMES = "\N{MULTIPLICATION SIGN}"
FLEET_READERS = ("provider", "operator", "audit:read")
"""Any one of these scopes reads nodes."""
SEE_ALL = frozenset({"operator", "auditor"})
"""Kinds of accounts that read everybody's: they ask for their own by name."""


def own_alone(visit: Visit) -> str | None:
    """The parameter `account_id` for lists that show operators and auditors all there is."""
    return visit.account_id if visit.principal.account_kind in SEE_ALL else None


async def nodes_of(visit: Visit, most: int, cursor: str | None = None) -> Told:
    """A page of the visitor's nodes, the newest first, of the page the retired ones last."""
    found = await visit.read(
        "/v1/nodes", account_id=own_alone(visit), order="desc", limit=most, cursor=cursor
    )
    return {**found, "data": sorted(found["data"], key=lambda one: one["phase"] == "retired")}


async def earned_by(visit: Visit, by: str, period: dict[str, str]) -> list[Told]:
    """The account's own earnings of [from, to) by these fields, every page of them."""
    rows: list[Told] = []
    asked: dict[str, Value] = {"by": by, "account_id": visit.account_id, **period}
    cursor: str | None = None
    while True:
        found = await visit.read("/v1/earnings", limit=EARNINGS_MAX, cursor=cursor, **asked)
        rows += found["data"]
        cursor = found.get("next_cursor")
        if cursor is None or not found["has_more"]:
            return rows


async def devices_of(visit: Visit, nodes: list[Told]) -> list[Told]:
    """The devices of these nodes, as far as one list tells them."""
    rows: list[Told] = []
    if nodes:
        asked = ",".join(one["node_id"] for one in nodes)
        rows = (await visit.read("/v1/devices", node_ids=asked, limit=DEVICES_MAX))["data"]
    return rows


async def offers_of(visit: Visit, nodes: list[Told]) -> list[Told]:
    """The open offers of these nodes, the cheapest first, as far as one list tells them."""
    rows: list[Told] = []
    if nodes:
        asked = ",".join(one["node_id"] for one in nodes)
        rows = (await visit.read("/v1/offers", node_ids=asked, limit=ROWS_MAX))["data"]
    return rows


def now_of(visit: Visit) -> str:
    """This moment, as the API writes it."""
    return moment(visit.service.clock.now_us())


def machine(node: Told) -> str:
    """What a machine is called: what is in it, `2x NVIDIA L40S`."""
    devices: list[Told] = (node.get("specs") or {}).get("devices", [])
    counts: dict[str, int] = {}
    for one in devices:
        counts[one["model"]] = counts.get(one["model"], 0) + 1
    return (
        ", ".join(f"{count}{TIMES} {model}" for model, count in counts.items()) or "no device told"
    )


def credits_(units: int) -> dict[str, Any]:
    """An amount as the API writes it."""
    return {"asset": "CREDIT", "units": str(units)}


def total(rows: list[Told], name: str) -> dict[str, Any]:
    """The sum of the same amount of all rows, in whole micro-credits."""
    return credits_(sum(int(one[name]["units"]) for one in rows))
