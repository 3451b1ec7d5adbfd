"""Search over what the session may see: by id, by the beginning of one, or by name.

    what is found  =>  the API showed it to this very session

An id is asked for as it is; a part of one, or of a name, is looked for in the newest of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from api.console.visits.reading import Refused, Told
from api.console.visits.visit import Visit

NEWEST_MAX, FOUND_MAX, ASKED_MAX = 200, 20, 100


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing: its list, the field with its id, the fields with names, and its pages, of
    which the first that there is counts. `{}` stands for the id. `leaves_out`: a parameter of the
    list for what is dear to know and not looked at.
    """

    name: str
    prefix: str
    path: str
    ident: str
    names: tuple[str, ...]
    pages: tuple[str, ...]
    when: str = ""
    scopes: frozenset[str] = frozenset()
    leaves_out: str = ""


OPERATOR = frozenset({"operator"})
KINDS = (
    Kind(
        "Leases",
        "lease",
        "/v1/leases",
        "lease_id",
        ("project_id", "end_user_ref", "gpu_class", "models", "node_id", "state"),
        ("/leases/{}",),
        "requested_at",
        leaves_out="estimate",
    ),
    Kind(
        "Nodes",
        "node",
        "/v1/nodes",
        "node_id",
        ("minion_id", "state", "region_id", "provider_id"),
        ("/nodes/{}", "/nodes/{}/reputation"),
        "joined_at",
    ),
    Kind(
        "Jobs",
        "job",
        "/v1/jobs",
        "job_id",
        ("project_id", "end_user_ref", "image", "kind"),
        ("/jobs/{}",),
    ),
    Kind(
        "Regions", "region", "/v1/regions", "region_id", ("name", "site"), ("/regions/{}", "/map")
    ),
    Kind("Pools", "pool", "/v1/pools", "pool_id", ("name",), ("/pools/{}",)),
    Kind("Providers", "prov", "/v1/providers", "provider_id", ("kind",), ("/providers/{}",)),
    Kind(
        "Accounts",
        "acct",
        "/v1/accounts",
        "account_id",
        ("kind",),
        ("/operate/accounts/{}",),
        "opened_at",
        OPERATOR,
    ),
    Kind(
        "Admissions",
        "admission",
        "/v1/admissions",
        "admission_id",
        ("model", "vendor", "state"),
        ("/operate/admissions/{}",),
        "requested_at",
        OPERATOR,
    ),
    Kind("Disputes", "dispute", "/v1/disputes", "dispute_id", ("state",), ("/disputes/{}",)),
)


async def show(visit: Visit) -> Response:
    """`/search?q=`"""
    asked = visit.asked("q")[:ASKED_MAX].rstrip("…").strip()
    found: list[Told] = []
    if asked:
        if asked.isdecimal() and asked.isascii():
            found += await _fact(visit, asked)
        for kind in KINDS:
            found += await _of(visit, kind, asked)
    return visit.show("everybody/search.html", asked=asked, found=found, newest=NEWEST_MAX)


async def _fact(visit: Visit, position: str) -> list[Told]:
    """The fact at a position of the log."""
    try:
        fact = await visit.read(f"/v1/audit/events/{position}")
    except Refused as refused:
        _only_absent(refused)
        return []
    row = {"name": f"Fact {position}", "ident": None, "told": fact["type"]}
    return [{"kind": "Facts", **row, "at": fact["recorded_at"], "path": f"/log/{position}"}]


async def _of(visit: Visit, kind: Kind, asked: str) -> list[Told]:
    """What matches of one kind, an exact id first."""
    told: list[Told] = []
    try:
        if asked.startswith(f"{kind.prefix}_") and asked.replace("_", "").isalnum():
            told = [await visit.read(f"{kind.path}/{asked}")]
    except Refused as refused:
        _only_absent(refused)
    if not told:
        try:
            without = {kind.leaves_out: False} if kind.leaves_out else {}
            found = await visit.read(kind.path, order="desc", limit=NEWEST_MAX, **without)
            told = found["data"]
        except Refused as refused:
            _only_absent(refused)
    wanted = asked.casefold()
    rows = [one for one in told if any(wanted in text.casefold() for text in _texts(kind, one))]
    return [_row(visit, kind, one) for one in rows[:FOUND_MAX]]


def _texts(kind: Kind, one: Told) -> list[str]:
    """Everything of a thing that is looked at."""
    values = [one[kind.ident], *(one.get(name, "") for name in kind.names)]
    return [", ".join(each) if isinstance(each, list) else str(each) for each in values]


def _row(visit: Visit, kind: Kind, one: Told) -> Told:
    ident = str(one[kind.ident])
    shown = [path.format(ident) for path in kind.pages]
    may = not kind.scopes or visit.may(*kind.scopes)
    path = next((each for each in shown if may and visit.site.is_shown(each)), None)
    names = [text for text in _texts(kind, one)[1:] if text]
    return {
        "kind": kind.name,
        "name": one.get("name") or None,
        "ident": ident,
        "told": ", ".join(names[:3]),
        "at": one.get(kind.when),
        "path": path,
    }


def _only_absent(refused: Refused) -> None:
    """Go on without what this session may not see or what is not there; else say what failed."""
    if refused.status not in (400, 403, 404, 422):
        raise refused
