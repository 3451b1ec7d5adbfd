"""One line of a bill with all that proves it, in one file, and its check without a server.

    line -> fact -> signed head of the log
    each report that the accrual read -> pin -> signed head of the log

    GPU time of the fact <= available time of the lease in those reports, by the share, + 1 us

What the file says is compared with the proved bytes, all of it: that the fact stands at the line's
position and says this, that each report is signed by the key that it names, is of the fact's lane,
not after the last one it read, and names its lease, and that no more time was billed than the node
signed. That a report counted whole, that none is missing and that no line before read the same one
follows from the whole life of the lease, and whose a key is from the node's facts: `audit verify`
and `audit replay` of an export compute it again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.terminal import InputUnusable, progress

if TYPE_CHECKING:
    from cli.remote import Remote
    from domain.metering.report import Report
    from ledger.tree.checkpoint import VerifierKey
    from ledger.tree.proof import Checked, UsageEntry
    from tallystick_client import Client
    from tallystick_client.forms import NodeKeysAnswer

FORMAT = "tallystick-line-proof-v1"
FILE_BYTES_MAX = 1 << 28
REPORTS_MAX = 10_000
PPM = 1_000_000
FACT = ("position", "type", "version", "leaf", "body")
REPORT = ("lane", "usage_position", "node_id", "seq", "key_id", "hash", "leaf")
"""What is told of a line's fact and of a report: no more than its proof shows."""


def fetch(remote: Remote, account_id: str, position: int) -> dict[str, Any]:
    """The line, its fact and reports, each with its proof. Raises AnswerIsNo, also where a head or
    a pin does not cover them yet.
    """
    line: dict[str, Any] = {**remote.ask(lambda c: c.read_statement_line(account_id, position))}
    found = remote.list(
        lambda c, page: c.list_statement_line_reports(account_id, position, **page), REPORTS_MAX
    )
    if found["has_more"]:
        raise InputUnusable(f"the line read more than {REPORTS_MAX:,} reports: use `audit export`")
    return {
        "format": FORMAT,
        "line": {name: line[name] for name in FACT},
        "proof": remote.ask(lambda c: c.read_statement_line_proof(account_id, position)),
        "reports": _proved(remote, account_id, position, found["data"]),
    }


def _proved(
    remote: Remote, account_id: str, position: int, reports: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    proved = []
    keys = _node_keys(remote, sorted({str(one["node_id"]) for one in reports}))
    with progress() as step:
        for done, one in enumerate(reports, 1):
            at = int(one["usage_position"])

            def proof(client: Client, at: int = at) -> str:
                return client.read_statement_line_report_proof(account_id, position, at)

            told = {name: one[name] for name in REPORT}
            public = keys[one["node_id"], one["key_id"]]
            proved.append({**told, "public_key": public, "proof": remote.ask(proof)})
            step("reports", done, len(reports))
    return proved


def _node_keys(remote: Remote, node_ids: list[str]) -> dict[tuple[str, str], str]:
    """The public keys of nodes, by node and key id."""
    found = {}
    for node_id in node_ids:
        for one in remote.ask(partial(_keys_of, node_id))["data"]:
            found[node_id, one["key_id"]] = one["public_key"]
    return found


def _keys_of(node_id: str, client: Client) -> NodeKeysAnswer:
    return client.list_node_keys(node_id)


def read(path: Path) -> dict[str, Any] | None:
    """The file as it was written; None: it is none of these. Raises InputUnusable."""
    if path.stat().st_size > FILE_BYTES_MAX:
        raise InputUnusable(f"{path}: more than {FILE_BYTES_MAX:,} bytes")
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return dict(told) if told["format"] == FORMAT else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Proved:
    """What the file was shown to say."""

    fact: Checked
    lease_id: str | None
    reports: tuple[Checked, ...]
    billed_us: int
    signed_us: int


def check_line(told: dict[str, Any], key: VerifierKey) -> Proved:
    """Raises ProofInvalid: what does not hold, and where."""
    from domain.nesting import read_json
    from ledger.tree.proof import ProofInvalid, check

    billed_us = signed_us = 0
    try:
        fact, line = check(str(told["proof"]), key), told["line"]
        if fact.position != line["position"] or fact.report is not None:
            raise ProofInvalid(f"line: the proof is of {fact}, not of fact {line['position']}")
        body = read_json(fact.entry.body)
        _require_same("line", line, _fact_told(fact, body))
        told_reports = told["reports"]
        reports = tuple(_report(one, key, body) for one in told_reports)
        billed_us = int(body.get("gpu_us_new", 0))
        signed_us = sum(_available_ppm_us(one, body["lease_id"]) for one in reports) // PPM
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ProofInvalid):
            raise
        raise ProofInvalid(f"form: {error!r}") from None
    if len({one.report.position for one in reports if one.report}) != len(reports):
        raise ProofInvalid("a report is in the file twice")
    if billed_us > signed_us + 1:
        raise ProofInvalid(f"{billed_us} us of GPU time are billed, and {signed_us} us are signed")
    return Proved(fact, body.get("lease_id"), reports, billed_us, signed_us)


def _report(told: dict[str, Any], key: VerifierKey, body: dict[str, Any]) -> Checked:
    """One report that the fact may have read."""
    from domain.fleet.keys import key_id_of
    from ledger.tree.proof import ProofInvalid, check

    checked = check(str(told["proof"]), key, bytes.fromhex(told["public_key"]))
    report, where = checked.report, f"report {told['lane']}/{told['usage_position']}"
    if report is None or (report.lane, report.position) != (told["lane"], told["usage_position"]):
        raise ProofInvalid(f"{where}: the proof is of {checked}")
    rest = {name: one for name, one in told.items() if name not in ("public_key", "proof")}
    _require_same(where, rest, _report_told(report))
    if key_id_of(told["public_key"]) != told["key_id"]:
        raise ProofInvalid(f"{where}: it names another key")
    last = int(body["usage_position" if "usage_position" in body else "through_position"])
    if report.lane != body["lane"] or report.position > last:
        raise ProofInvalid(f"{where}: the line read no reports that late")
    if str(body["lease_id"]) not in _signed(checked).leases:
        raise ProofInvalid(f"{where}: it does not name the lease of the line")
    return checked


def _require_same(where: str, told: dict[str, Any], proved: dict[str, Any]) -> None:
    """Nothing stands in the file that its proofs do not show. Raises ProofInvalid."""
    from ledger.tree.proof import ProofInvalid

    for name in {**proved, **told}:
        if name not in proved or told.get(name) != proved[name]:
            raise ProofInvalid(f"{where}: {name} is not what is proved")


def _fact_told(fact: Checked, body: dict[str, Any]) -> dict[str, Any]:
    """As `fetch` tells it; the blind stands in the proof alone."""
    shown = {name: value for name, value in body.items() if name != "blind"}
    entry = fact.entry
    said = (fact.position, entry.name, entry.version, entry.leaf.hex(), shown)
    return dict(zip(FACT, said, strict=True))


def _report_told(report: UsageEntry) -> dict[str, Any]:
    from domain.metering.report import report_hash
    from ledger.log.chain import split_body

    signed, key_id, _ = split_body(report.body)
    said = (report.lane, report.position, report.node_id, report.node_seq, key_id)
    rest = (report_hash(signed).hex(), report.leaf.hex())
    return dict(zip(REPORT, (*said, *rest), strict=True))


def _signed(checked: Checked) -> Report:
    from domain.metering.report import parse
    from ledger.log.chain import split_body

    assert checked.report is not None
    return parse(split_body(checked.report.body)[0])


def _available_ppm_us(checked: Checked, lease_id: str) -> int:
    """sum(share_ppm x available us) of the rows that name the lease."""
    report = _signed(checked)
    return sum(
        row.available_us * report.devices[row.device].share_ppm
        for row in report.rows
        if row.lease is not None and report.leases[row.lease] == lease_id
    )
