"""What an owner keeps for the books and for an audit: exports and proofs.

Files are the API's own, byte for byte.
"""

from __future__ import annotations

from starlette.responses import Response

from api.console.visits.months import month_of
from api.console.visits.reading import refused
from api.console.visits.visit import Visit

FILES = {
    "lines.csv": ("/lines.csv", "Every movement on your books, as plain CSV"),
    "lines.jsonl": ("/lines.jsonl", "The same, one JSON object a line"),
    "books.journal": (".journal", "Your books, for hledger"),
    "charges.csv": (".csv", "What you were charged, in the columns of FOCUS, as CSV"),
    "charges.parquet": (".parquet", "The same as Parquet"),
}
"""Names of files: what the API calls them beneath a month's statement, and what they are."""


async def show_files(visit: Visit) -> Response:
    """`/earn/{month}/files`: what can be downloaded of a month, and what proves it."""
    month = month_of(visit)
    told = await visit.read(f"/v1/accounts/{visit.account_id}/statements/{month.text}", limit=1)
    return visit.show("owner/files.html", month=month, told=told, files=FILES)


async def send_file(visit: Visit) -> Response:
    """`/earn/{month}/files/{name}`"""
    month = month_of(visit)
    if visit.params["name"] == "log-key.json":
        return await visit.file("/v1/audit/log/key")
    if visit.params["name"] not in FILES:
        raise refused("not_found")
    ending, _ = FILES[visit.params["name"]]
    return await visit.file(f"/v1/accounts/{visit.account_id}/statements/{month.text}{ending}")


async def send_proof(visit: Visit) -> Response:
    """`/earn/{month}/lines/{position}/line.tlog-proof`: the fact under the last signed head."""
    position = visit.params["position"]
    if not position.isdecimal():
        raise refused("not_found", "a position is a whole number")
    path = f"/v1/accounts/{visit.account_id}/statements/lines/{position}"
    return await visit.file(f"{path}/proof")
