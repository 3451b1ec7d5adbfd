"""What is wrong, and what waits for a person: the first page of a day."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from api.console.visits.reading import Refused, Told
from api.console.visits.visit import Visit

ROWS_MAX = 200
UNDECIDED = ("draft", "linted", "in_review", "approved")
OUTSIDE = (
    ("tallystick_chain_block", "Chain: the last block read"),
    ("tallystick_chain_behind_seconds", "Chain: seconds behind"),
    ("tallystick_chain_unfinished", "Chain: transactions that are not final yet"),
    ("tallystick_payout_differences", "Processor: payouts that differ from ours"),
    ("tallystick_cash_out_waiting_seconds", "Processor: seconds that the oldest cash-out waits"),
    ("tallystick_cash_out_holds", "Holds on cash-outs"),
    ("tallystick_webhooks_waiting", "Webhooks that wait to be tried again"),
    ("tallystick_nodes_silent", "Active nodes without a report for 15 minutes"),
    ("tallystick_leases_open", "Leases that are not settled"),
    ("tallystick_books_unbalanced", "Books: debits less credits"),
)
"""Which numbers of the server stand on the page, and what they are called."""


async def show(visit: Visit) -> Response:
    """`/operate`"""
    alerts = await visit.read("/v1/alerts")
    timers = await visit.read("/v1/timers")
    differences = await visit.read("/v1/cash-outs/differences", open=True, limit=ROWS_MAX)
    breakers = await visit.read("/v1/breakers")
    price = await visit.read("/v1/oracle")
    waiting = await _waiting(visit)
    rows = sorted(timers["data"], key=lambda one: ("error" not in one, not one["late"]))
    return visit.show(
        "operator/operate.html",
        alerts=alerts["data"],
        said=said(alerts["data"]),
        outside=outside(alerts["figures"]),
        ready=await ready(visit),
        timers=rows,
        differences=differences["data"],
        breakers=breakers["breakers"],
        price=price,
        waiting=waiting,
        wrong=len(alerts["data"]),
    )


async def settle(visit: Visit) -> Response:
    """Explain a difference, which ends its alarm."""
    path = f"/v1/cash-outs/differences/{visit.params['difference_id']}/settle"
    await visit.record(path, {"note": visit.form.get("note", "").strip()})
    return visit.to("/operate")


async def ready(visit: Visit) -> Told:
    """What `/readyz` says; of a server that is not ready too."""
    try:
        return await visit.read("/readyz")
    except Refused as found:
        return dict(found.problem)


def said(alerts: list[Told]) -> str:
    """What is wrong, in one sentence; the same alerts of many things are counted."""
    if not alerts:
        return "No alert holds."
    counts = Counter(one["told"] for one in alerts)
    told = [text if count == 1 else f"{text} ({count})" for text, count in counts.items()]
    return f"{len(alerts)} alert{'s hold' if len(alerts) > 1 else ' holds'} now: {'; '.join(told)}"


def outside(figures: list[Told]) -> list[Told]:
    names = dict(OUTSIDE)
    order = list(names)
    shown = [one for one in figures if one["name"] in names]
    shown.sort(key=lambda one: order.index(one["name"]))
    return [
        {"name": names[one["name"]], "of": one.get("of"), "value": one["value"]} for one in shown
    ]


async def _waiting(visit: Visit) -> list[Told]:
    """Everything that a person has to look at: what, since when, and where."""
    nodes = await visit.read("/v1/nodes", phase="confirmed", limit=ROWS_MAX)
    asked = await visit.read("/v1/admissions", order="desc", limit=ROWS_MAX)
    cash_outs = await visit.read("/v1/cash-outs", open=True, order="desc", limit=ROWS_MAX)
    roots = await visit.read("/v1/payouts", order="desc", limit=ROWS_MAX)
    return [
        *(
            _row("Node to admit", one["node_id"], one["phase_at"], "/operate/admissions")
            for one in nodes["data"]
        ),
        *(
            _row(
                f"Machine asks to come in: {one['gpus']} x {one['vendor']} {one['model']}",
                one["admission_id"],
                one["requested_at"],
                f"/operate/admissions/{one['admission_id']}",
            )
            for one in asked["data"]
            if one["state"] in ("requested", "validated")
        ),
        *(
            _row(
                f"Cash-out {one['state']}",
                one["cash_out_id"],
                one["requested_at"],
                f"/operate/payouts/{one['account_id']}/{one['cash_out_id']}",
                one["amount"],
            )
            for one in cash_outs["data"]
        ),
        *(
            _row(
                f"Payout root of epoch {one['epoch']}, {one['state']}: a second person",
                one["root"],
                one["built_at"],
                "/operate/payouts",
                one["committed"],
            )
            for one in roots["data"]
            if one["state"] in ("built", "proposed")
        ),
        *await _undecided(visit),
    ]


async def _undecided(visit: Visit) -> list[Told]:
    """What governors vote on."""
    fixes = await visit.read("/v1/reward-corrections", order="desc", limit=ROWS_MAX)
    proposals = await visit.read("/v1/policies/proposals", order="desc", limit=ROWS_MAX)
    return [
        *(
            _row(
                f"{one['kind'].capitalize()} of a reward, epoch {one['epoch']}: votes",
                one["correction_id"],
                one["proposed_at"],
                "/operate/payouts",
            )
            for one in fixes["data"]
            if one["state"] == "proposed"
        ),
        *(
            _row(
                f"Proposal {one['number']}, {one['title']}: {one['status'].replace('_', ' ')}",
                None,
                one["proposed_at"],
                f"/proposals/{one['number']}",
            )
            for one in proposals["data"]
            if one["status"] in UNDECIDED
        ),
    ]


def _row(what: str, ident: str | None, since: str, path: str, amount: Told | None = None) -> Told:
    return {"what": what, "ident": ident, "since": since, "path": path, "amount": amount}
