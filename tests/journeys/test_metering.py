"""From a signed report to earnings, statements and proofs, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api.ingest.door import MEDIA_TYPE
from domain.duration import HOUR_US
from domain.metering import report
from ledger.tree import trees
from ledger.tree.checkpoint import open_checkpoint, parse_verifier_key
from node_reporter.clock import SystemClock
from node_reporter.reports.client import Response, UsageClient
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import hours_of_work, pin_and_sign, reported, send


def test_an_hour_of_work_is_charged_and_shared_to_the_unit(scene: Scene) -> None:
    lease = hours_of_work(scene)[0]
    path = f"/v1/leases/{lease['lease_id']}"
    settled = scene.renter.read(path)
    assert settled["state"] == "settled"
    assert (settled["gpu_us"], settled["charge"]["units"]) == (str(HOUR_US), "2000000")
    hours = scene.renter.read(f"{path}/usage")["data"]
    assert [one["gpu_us"] for one in hours] == [str(HOUR_US)]
    charges = scene.owner.read(f"{path}/charges")["data"]
    parts = [charges[0][name]["units"] for name in ("fee", "provider", "platform", "burn")]
    assert parts == ["250000", "875000", "875000", "0"]
    assert charges[0]["drawn"] == [{"source": "cash", "amount": charges[0]["charge"]}]
    earned = scene.owner.read("/v1/earnings", by="lease_id")["data"]
    assert [(one["lease_id"], one["provider"]["units"]) for one in earned] == [
        (lease["lease_id"], "875000")
    ]
    assert scene.rival.read("/v1/earnings")["data"] == []
    history = scene.renter.read(f"{path}/history")["data"]
    assert [one["state"] for one in history][-1] == "settled"
    assert scene.service.ledger.books.books_balanced()


@dataclass
class Through:
    """The server in this process as a reporter's transport; what it was answered is kept."""

    scene: Scene
    statuses: list[int] = field(default_factory=list)

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        got = self.scene.http.request(method, path, headers=dict(headers), content=body)
        self.statuses.append(got.status_code)
        return Response(status=got.status_code, headers=got.headers, body=got.content)


def test_assignments_that_have_not_changed_are_not_sent_again_however_the_log_grows(
    scene: Scene,
) -> None:
    provider, wire = scene.provider, Through(scene)
    key = provider.node.key or ""
    node = UsageClient(provider.node_id, "", wire, SystemClock(), key)
    assert node.assignments() == node.assignments() == ()
    scene.deposit(scene.renter, 5)
    assert node.assignments() == ()
    lease = scene.running()
    assert lease["node_id"] == provider.node_id
    (window,) = node.assignments() or ()
    assert node.assignments() == (window,)
    assert window.lease_id == lease["lease_id"]
    assert wire.statuses == [200, 304, 304, 200, 304]
    path = f"/v1/nodes/{provider.node_id}/assignments"
    tag = provider.node.get(path).headers["ETag"]
    same = provider.node.get(path, {"If-None-Match": f'"other", W/{tag}'})
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["Tallystick-Position"] == str(scene.head())
    assert scene.rival.get(path, {"If-None-Match": tag}).status_code == 404


def test_a_statement_says_what_the_month_cost(scene: Scene) -> None:
    lease = hours_of_work(scene)[0]
    path = f"/v1/accounts/{scene.renter.account_id}/statements"
    told = scene.renter.read(f"{path}/2026-11")
    assert told["opening"] == []
    cash = next(one for one in told["closing"] if one["part"] == "cash")
    assert cash["balance"]["units"] == "98000000"
    assert told["charge"]["units"] == "2000000"
    assert [one["lease_id"] for one in told["leases"]] == [lease["lease_id"]]
    assert told["is_final"] is False
    after = scene.renter.read(f"{path}/2026-12")
    assert after["opening"] == after["closing"] == told["closing"]
    assert after["leases"] == []


def test_a_statements_totals_are_of_the_whole_month_and_its_lines_go_over_pages(
    scene: Scene,
) -> None:
    leases = sorted(lease["lease_id"] for lease in hours_of_work(scene, 2))
    path = f"/v1/accounts/{scene.renter.account_id}/statements/2026-11"
    first = scene.renter.read(path, limit=1)
    scene.deposit(scene.renter, 5)
    second = scene.renter.read(path, limit=1, cursor=first["next_cursor"])
    assert [one["lease_id"] for one in first["leases"] + second["leases"]] == leases
    assert (first["has_more"], second["has_more"]) == (True, False)
    for page in (first, second):
        assert (page["charge"]["units"], page["gpu_us"]) == ("4000000", str(2 * HOUR_US))
    assert first["closing"] == second["closing"], "pages are one snapshot"
    assert scene.renter.read(path)["closing"] != first["closing"]
    refused = scene.renter.get(path, cursor="not a cursor")
    assert (refused.status_code, refused.json()["code"]) == (400, "cursor_invalid")


def test_a_node_reads_what_was_stored_and_what_earned_nothing(scene: Scene) -> None:
    clock: Any = scene.clock
    lease = scene.running()
    clock.advance(HOUR_US)
    node, path = scene.provider.node, f"/v1/nodes/{scene.provider.node_id}/usage"
    head = node.read(f"{path}/head")
    assert (head["acked_seq"], head["head"]) == (0, scene.provider.signing.head.hex())
    receipt = send(scene, scene.provider, reported(scene.provider, lease)).json()["results"][0]
    assert (receipt["status"], receipt["receipt"]["flags"]) == ("stored", 0)
    broken = reported(scene.provider, lease, agent="a name that is much too long for an agent")
    flagged = send(scene, scene.provider, broken).json()["results"][0]["receipt"]
    assert flagged["flags"] == 1
    lane = f"{flagged['lane']}:{flagged['position']}"
    told = node.get(path, {"Tallystick-Min-Usage": lane}).json()
    assert (told["reports"], told["reports_flagged"], told["last_seq"]) == (2, 1, 2)
    assert [(one["seq"], one["rule"]) for one in told["flagged"]] == [(2, "wrong_form")]
    hours = scene.owner.read(f"{path}/hours")["data"]
    assert sum(int(one["leased_gpu_us"]) for one in hours) == HOUR_US
    assert node.read(f"{path}/head")["acked_seq"] == 2


def test_a_forged_report_is_refused_with_a_problem(scene: Scene) -> None:
    lease = scene.running()
    body = reported(scene.provider, lease)
    envelope = {**scene.provider.signing.envelope(body), "signature": "AA" * 43 + "=="}
    response = scene.http.post(
        f"/v1/nodes/{scene.provider.node_id}/usage",
        json=[envelope],
        headers={"Content-Type": MEDIA_TYPE},
    )
    assert (response.status_code, response.json()["code"]) == (401, "bad_signature")
    assert response.headers["Request-Id"]


def test_the_lease_stays_in_the_assignments_until_it_is_reported_to_its_end(scene: Scene) -> None:
    clock: Any = scene.clock
    lease = scene.running()
    path = f"/v1/nodes/{scene.provider.node_id}/assignments"
    clock.advance(HOUR_US // 2)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    data = scene.provider.node.read(path)["data"]
    assert [(one["state"], one["until_us"]) for one in data] == [("closing", NOW_US + HOUR_US // 2)]
    assert (data[0]["from_us"], data[0]["share_ppm"]) == (NOW_US, 1_000_000)


def test_the_reporters_own_parser_reads_the_assignments(scene: Scene) -> None:
    from node_reporter.meter.leases import parse_windows

    lease = scene.running()
    path = f"/v1/nodes/{scene.provider.node_id}/assignments"
    windows = parse_windows(scene.provider.node.read(path))
    assert [window.lease_id for window in windows] == [lease["lease_id"]]


def test_a_fact_and_a_report_are_proved_under_the_signed_head(scene: Scene) -> None:
    lease = hours_of_work(scene)[0]
    proof = scene.auditor.get(f"/v1/audit/proofs/{lease['position']}")
    assert (proof.status_code, proof.json()["code"]) == (409, "not_covered")
    assert scene.anybody.get("/v1/audit/log/checkpoint").json()["code"] == "not_covered"
    pin_and_sign(scene)
    told = scene.anybody.get("/v1/audit/log/checkpoint")
    assert told.headers["content-type"] == "text/plain; charset=utf-8"
    assert told.headers["cache-control"] == "public, max-age=2"
    key = parse_verifier_key(scene.anybody.read("/v1/audit/log/key")["verifier_key"])
    assert open_checkpoint(told.content.decode(), key).size == scene.head()
    with scene.service.connect() as connection:
        assert trees.latest_checkpoint(connection) == (scene.head(), told.text), "verbatim"
    proof = scene.auditor.get(f"/v1/audit/proofs/{lease['position']}")
    assert proof.status_code == 200
    assert proof.headers["content-type"].startswith("text/plain")
    lane = report.lane_of(scene.provider.node_id)
    path = f"/v1/audit/proofs/usage/{lane}/1"
    assert scene.owner.get(path).status_code == 200
    assert scene.rival.get(path).status_code == 404
    assert scene.auditor.get(path).text.startswith("c2sp.org/tlog-proof")
