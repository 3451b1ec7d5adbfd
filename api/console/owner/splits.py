"""Who owns a node together, and what each gets of what it earns.

parts of the owners + the provider's part = 100 %, of leases that are reserved from then on
"""

from __future__ import annotations

from starlette.responses import Response

from api.console.drawing.words import percent
from api.console.owner.own import machine
from api.console.visits import entering
from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit
from domain.fleet.revenue_share import OWNERS_MAX

MORE = 3
"""Empty rows to write another owner into."""


async def show(visit: Visit) -> Response:
    """`/nodes/{node_id}/split`"""
    return await _page(visit, None)


async def take(visit: Visit) -> Response:
    """Split it anew, or give up one's own part (`do` is `set` or `leave`)."""
    path = f"/v1/nodes/{visit.params['node_id']}/revenue-shares"
    try:
        if visit.form.get("do") == "set":
            await visit.record(path, {"shares": _shares(visit)})
        elif visit.form.get("do") == "leave":
            entering.sure(visit.form.get("sure", ""), "I give up my part")
            await visit.record(f"{path}/release")
            return visit.to("/nodes")
        else:
            raise refused("invalid", "this form is unknown")
    except Refused as problem:
        if problem.ends_visit:
            raise
        return await _page(visit, problem)
    return visit.to(visit.here)


def _shares(visit: Visit) -> list[Told]:
    """The rows of the form that name an account. Raises Refused."""
    found = []
    for number in range(OWNERS_MAX):
        account_id = visit.form.get(f"account-{number}", "").strip()
        if account_id:
            text = visit.form.get(f"part-{number}", "")
            share = entering.ppm_of(text, f"the part of {account_id}")
            found.append({"account_id": account_id, "share_ppm": share})
    return found


async def _page(visit: Visit, problem: Refused | None) -> Response:
    node = await visit.read(f"/v1/nodes/{visit.params['node_id']}")
    shares = await visit.read(f"/v1/nodes/{node['node_id']}/revenue-shares")
    fields = _sent(visit) or _fields(shares["shares"])
    return visit.show(
        "owner/split.html",
        200 if problem is None else problem.status,
        node=node,
        name=machine(node),
        shares=shares,
        fields=fields,
        is_mine=node["account_id"] == visit.account_id,
        has_part=any(one["account_id"] == visit.account_id for one in shares["shares"]),
        problem=problem,
    )


def _fields(shares: list[Told]) -> list[tuple[str, str]]:
    """What the rows of the form hold: each owner with the part in per cent, and empty ones."""
    told = [(one["account_id"], percent(one["share_ppm"]).removesuffix(" %")) for one in shares]
    return _with_empty(told)


def _sent(visit: Visit) -> list[tuple[str, str]]:
    """What was written into the form that was refused; nothing: there was none."""
    if visit.form.get("do") != "set":
        return []
    rows = [
        (visit.form.get(f"account-{number}", ""), visit.form.get(f"part-{number}", ""))
        for number in range(OWNERS_MAX)
    ]
    return _with_empty([one for one in rows if any(one)])


def _with_empty(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return (rows + [("", "")] * MORE)[:OWNERS_MAX]
