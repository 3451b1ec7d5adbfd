"""The log: its signed head, its key, one fact with its proof, and a verifier in the page.

The verifier is a script of ours that computes in the reader's browser; this server is asked for
the head, the key and a proof, and believed in none of them.
"""

from __future__ import annotations

import json

from starlette.responses import Response

from api.console.visits.reading import Refused, Told, refused
from api.console.visits.visit import Visit

ROWS_MAX = 50


async def show(visit: Visit) -> Response:
    """`/log`; `?position=` or `?report=LANE/POSITION` fetches a proof into the form."""
    key = await visit.read("/v1/audit/log/key")
    head = await _text(visit, "/v1/audit/log/checkpoint")
    proof, problem = "", None
    try:
        proof = await _proof(visit)
    except Refused as found:
        problem = found.detail
    facts: Told | None = None
    if visit.session is not None and visit.may("audit:read", "account"):
        try:
            facts = await visit.read("/v1/audit/events", order="desc", limit=ROWS_MAX)
        except Refused:
            facts = None
    lines = head.split("\n")
    return visit.show(
        "public/log.html",
        key=key,
        head=head,
        origin=lines[0],
        size=int(lines[1]) if len(lines) > 3 else None,
        root=lines[2] if len(lines) > 3 else "",
        proof=proof,
        problem=problem,
        facts=facts,
    )


async def show_fact(visit: Visit) -> Response:
    """`/log/{position}`: one fact, as it was recorded."""
    position = _number(visit.params["position"])
    fact = await visit.read(f"/v1/audit/events/{position}")
    body = json.dumps(fact["body"], indent=1, ensure_ascii=False, sort_keys=True)
    return visit.show("public/fact.html", fact=fact, body=body)


async def save_proof(visit: Visit) -> Response:
    """`/log/{position}/fact.tlog-proof`: the proof of a fact, as a file."""
    position = _number(visit.params["position"])
    response = await visit.file(f"/v1/audit/proofs/{position}")
    response.headers["content-disposition"] = f'attachment; filename="fact-{position}.tlog-proof"'
    return response


async def _proof(visit: Visit) -> str:
    """The proof that the address asks for; empty: none. Raises Refused."""
    position, report = visit.asked("position"), visit.asked("report")
    if position:
        return await _text(visit, f"/v1/audit/proofs/{_number(position)}")
    if report:
        lane, _, number = report.partition("/")
        return await _text(visit, f"/v1/audit/proofs/usage/{_number(lane)}/{_number(number)}")
    return ""


async def _text(visit: Visit, path: str) -> str:
    """What the API answers as text; empty: no head was signed yet, or it covers no such fact."""
    try:
        return (await visit.reader.fetch("GET", path, {})).body.decode()
    except Refused as found:
        if found.code == "not_covered" and path.endswith("checkpoint"):
            return ""
        raise


def _number(text: str) -> str:
    if not (text.isdecimal() and text.isascii() and len(text) <= 16):
        raise refused("invalid", "a position is a whole number")
    return text
