"""Proposals: what each changes of the version in force, what it would have paid, and its votes."""

from __future__ import annotations

from starlette.responses import Response

from api.console.drawing.words import amount, percent
from api.console.visits.reading import Told, refused
from api.console.visits.visit import Visit
from domain.governance import told_terms

ROWS_MAX, RECIPIENTS_MAX = 100, 100


async def show_all(visit: Visit) -> Response:
    """`/proposals`"""
    found = await visit.read("/v1/policies/proposals", order="desc", limit=ROWS_MAX)
    versions = await visit.read("/v1/policies", order="desc", limit=ROWS_MAX)
    return visit.show("public/proposals.html", found=found, versions=versions)


async def show(visit: Visit) -> Response:
    """`/proposals/{number}`"""
    return await _page(visit, await _proposal(visit), None)


async def take(visit: Visit) -> Response:
    """Settle the past once more under the proposal, for the operator. It records nothing, but takes
    the server a while, so a page of ours asks for it and no link.
    """
    told = await _proposal(visit)
    body = {"document": told["document"], "limit": RECIPIENTS_MAX}
    return await _page(visit, told, await visit.record("/v1/policies/dry-run", body))


async def _proposal(visit: Visit) -> Told:
    number = visit.params["number"]
    if not number.isdecimal() or not number.isascii():
        raise refused("not_found", "a proposal has a number")
    return await visit.read(f"/v1/policies/proposals/{number}")


async def _page(visit: Visit, told: Told, rehearsal: Told | None) -> Response:
    governors = await visit.read("/v1/governors")
    before = await _compared_with(visit, told)
    terms = told["document"].get("terms")
    changes = None
    if before is not None and isinstance(terms, dict):
        changes = [_shown(one) for one in told_terms.changes(told_terms.terms_of(before), terms)]
    return visit.show(
        "public/proposal.html",
        told=told,
        governors=governors,
        before=before,
        changes=changes,
        rehearsal=rehearsal,
    )


async def _compared_with(visit: Visit, told: Told) -> Told | None:
    """The version in force; of a proposal that was published, the version before its own."""
    own = told.get("policy_version")
    if own is not None:
        return None if own < 2 else await visit.read(f"/v1/policies/{own - 1}")
    published = await visit.read("/v1/policies", order="desc", limit=ROWS_MAX)
    return next((one for one in published["data"] if one["in_force"]), None)


def _shown(change: Told) -> Told:
    """A term that differs, in percent and TOKEN."""
    place = str(change["term"])
    name = place.rpartition(".")[2]
    return {
        "term": place,
        "in_force": _people(name, change["in_force"]),
        "proposed": _people(name, change["proposed"]),
    }


def _people(name: str, value: str | None) -> str | None:
    if value is None or not value.isdecimal():
        return value
    if name.endswith("ppm"):
        return percent(int(value))
    if name in told_terms.TOKENS:
        return amount({"asset": "TOKEN", "units": value})
    if name == "burned_per_gpu_hour":
        return amount({"asset": "CREDIT", "units": value})
    return value
