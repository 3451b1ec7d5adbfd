"""What anybody may check in pages: epochs, proposals, solvency, reputation, the log, the map."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from api import main
from api.audit import solvency
from tests.api.console.test_sessions import Browser
from tests.api.console.test_sessions import app as app
from tests.api.console.test_sessions import browser as browser
from tests.scenes.governors import enrol_once
from tests.scenes.server import Scene
from tests.scenes.work import seal_an_epoch_of_work

PAGES = ("/", "/epochs", "/proposals", "/solvency", "/room", "/log")


@pytest.fixture(scope="module")
def worked(shared: Scene) -> Scene:
    """One sealed epoch with a settled lease hour, and a signed head over all of it."""
    seal_an_epoch_of_work(shared)
    shared.sign_head()
    return shared


def titles(text: str, test_id: str) -> list[str]:
    """All digits of the amounts of a part of a page."""
    part = text.split(f'data-testid="{test_id}"', 1)[1].split("</section>", 1)[0]
    return re.findall(r'<data value="[^"]*" title="([^"]*)"', part)


@pytest.mark.parametrize("path", PAGES)
def test_the_pages_of_the_network_are_public_and_have_empty_states(
    shared: Scene, browser: Browser, path: str
) -> None:
    told = browser.get(path)
    assert told.status_code == 200, told.text[-2000:]
    assert len(re.findall(r"<h1[ >]", told.text)) == 1
    for role in (shared.renter, shared.owner, shared.operator, shared.auditor):
        browser.sign_in(role.key)
        assert browser.get(path).status_code == 200, (path, browser.get(path).text[-1500:])


def test_an_epoch_shows_what_the_api_says_and_its_file(worked: Scene, browser: Browser) -> None:
    epoch = worked.anybody.read("/v1/epochs/1")
    shown = browser.get("/epochs").text
    units = int(epoch["emission"]["units"])
    assert f'<data value="{units}"' in shown
    assert shown.index('href="/epochs/2"') < shown.index('href="/epochs/1"'), "newest first"
    one = browser.get("/epochs/1").text
    for name in ("emission", "compute_pool", "availability_pool", "rewards"):
        assert f'<data value="{epoch[name]["units"]}"' in one, name
    burned = worked.anybody.read("/v1/epochs/preview", epoch=1)["weights"]
    assert len(titles(one, "burned")) == 2 * len(burned)
    kept = browser.get("/epochs/1/epoch.json")
    assert kept.status_code == 200
    assert kept.headers["content-disposition"] == 'attachment; filename="epoch-1.json"'
    assert browser.get("/epochs/2/epoch.json").status_code == 404
    assert browser.get("/epochs/x").status_code == 404


def test_solvency_is_the_books_added_up(
    worked: Scene, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solvency, "KEPT_S", 0)  # the page's application keeps its own
    head = {"Tallystick-Min-Position": str(worked.head())}
    told: Any = worked.anybody.get("/v1/solvency", head).json()
    assert told["balanced"] is True
    assert told["held"] == told["claimed"], "all that came in is somebody's"
    for asset in ("CREDIT", "TOKEN"):
        for side in ("held", "claimed"):
            (total,) = [one for one in told[side] if one["asset"] == asset]
            parts = [
                int(one["amount"]["units"])
                for one in told["data"]
                if (one["side"], one["amount"]["asset"]) == (side, asset)
            ]
            assert sum(parts) == int(total["units"]) > 0
    kinds = {one["kind"]: one["amount"]["units"] for one in told["data"]}
    assert kinds["outside_bank"] == "100000000"
    assert kinds["paid_in_by_parties"] == "98000000"
    assert not any("acct_" in one["kind"] for one in told["data"]), "no party is named"
    shown = browser.get("/solvency").text
    assert "The books balance" in shown
    for one in told["data"]:
        assert f'<data value="{one["amount"]["units"]}"' in shown


def test_reputation_shows_its_arithmetic_and_evidence(worked: Scene, browser: Browser) -> None:
    node = worked.provider.node_id
    path = f"/v1/nodes/{node}/reputation"
    told, shown = worked.anybody.read(path), browser.get(path.removeprefix("/v1")).text
    score = f"{told['score_ppm'] // 10_000}.{told['score_ppm'] % 10_000:04d}".rstrip("0")
    assert f'data-testid="score">{score} %' in shown
    for one in told["inputs"]:
        assert one["name"].capitalize() in shown
    evidence = worked.anybody.read(f"{path}/evidence")["data"]
    assert evidence
    assert all(f">{one['fact_position']}<" in shown for one in evidence)
    assert browser.get("/nodes/node_0/reputation").status_code in (404, 422)


def test_a_fact_and_its_proof_are_shown_to_its_party_alone(worked: Scene, browser: Browser) -> None:
    account = f"/v1/accounts/{worked.renter.account_id}/statements"
    month = {"from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z", "kind": "usage"}
    (line,) = worked.renter.read(account, **month)["lines"]
    path = f"/log/{line['position']}"
    assert browser.get(path).headers["location"].startswith("/sign-in")
    asked = browser.get(f"/log?position={line['position']}").text
    assert "There is no such proof for you" in asked
    browser.sign_in(worked.renter.key)
    shown = browser.get(path).text
    assert worked.renter.read(f"/v1/audit/events/{line['position']}")["leaf"] in shown
    proof = worked.renter.get(f"/v1/audit/proofs/{line['position']}").text
    assert browser.get(f"{path}/fact.tlog-proof").text == proof
    assert proof.split("\n")[1] in browser.get(f"/log?position={line['position']}").text
    head = worked.anybody.get("/v1/audit/log/checkpoint").text
    assert head.split("\n")[2] in browser.get("/log").text
    assert path in browser.get("/log").text
    browser.sign_in(worked.stranger.key)
    assert browser.get(path).status_code == 404
    assert browser.get(f"{path}/fact.tlog-proof").status_code == 404
    for wrong in ("-1", "x", "1" * 30, "%2e%2e"):
        assert browser.get(f"/log/{wrong}").status_code in (404, 422)
    assert "There is no such proof" in browser.get("/log?report=a/b").text


def test_a_proposal_shows_its_difference_its_votes_and_a_rehearsal(
    worked: Scene, browser: Browser
) -> None:
    from cli.commands.governance.terms import started
    from domain.governance.told_terms import terms_of

    enrol_once(worked.operator)
    (in_force,) = [one for one in worked.anybody.read("/v1/policies")["data"] if one["in_force"]]
    terms = {**terms_of(in_force), "availability_ppm": 250_000}
    terms["compute_ppm"] = int(terms["compute_ppm"]) - 50_000
    tariff = worked.anybody.read("/v1/tariffs")["data"][0]
    document = started(terms, tariff, number=1, created="2026-11-20", epoch=40)
    document["proposal"] |= {"title": "<b>More</b> for being there", "authors": ["<i>A</i>"]}
    worked.operator.made("/v1/policies/proposals", {"document": document})
    assert 'href="/proposals/1"' in browser.get("/proposals").text
    shown = browser.get("/proposals/1").text
    assert "&lt;b&gt;More" in shown
    assert "<i>A</i>" not in shown
    compute = in_force["compute_ppm"] // 10_000
    assert f"<del>{compute} %</del>" in shown
    assert f"<ins>{compute - 5} %</ins>" in shown
    assert "hard_cap</small>" not in shown, "what stays is not a difference"
    assert "tallystick policy approve 1 --key me.key" in shown
    assert "Rehearse it" not in shown, "only the operator may ask for one"
    assert browser.send("/proposals/1", browser.marks("/sign-in")).status_code == 401
    browser.sign_in(worked.operator.key)
    assert "Rehearse it" in browser.get("/proposals/1").text
    assert browser.send("/proposals/1", {"csrf": ""}).status_code == 403, "no other site asks"
    rehearsed = browser.send("/proposals/1", browser.marks("/proposals/1"))
    assert rehearsed.status_code == 200, rehearsed.text[-1500:]
    told = worked.operator.made("/v1/policies/dry-run", {"document": document, "limit": 100})
    assert f'<data value="{told["would_be"]["emission"]["units"]}"' in rehearsed.text
    for one in told["winners"] + told["losers"]:
        assert one["account_id"] in rehearsed.text
    assert browser.get("/proposals/99").status_code == 404
    assert browser.get("/proposals/x").status_code == 404


def test_a_process_adds_up_the_books_for_one_stranger_at_a_time(worked: Scene) -> None:
    told: Any = worked.anybody.get("/v1/solvency").json()
    worked.renter.made("/v1/jobs", worked.job())
    newer = {"Tallystick-Min-Position": str(worked.head())}
    with solvency._turn:
        assert worked.anybody.get("/v1/solvency").json() == told, "what is kept is told"
        busy = worked.anybody.get("/v1/solvency", newer)
        assert (busy.status_code, busy.json()["code"]) == (503, "projection_behind")
        assert busy.headers["Retry-After"] == "1"
    assert worked.anybody.get("/v1/solvency", newer).json()["position"] >= worked.head()


def test_what_takes_all_forms_is_made_where_no_request_waits_for_it(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may ask for the reference of the API, and the first answer takes a second to make."""
    made = list[bool]()

    def noted(make: Any) -> Any:
        def told() -> Any:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                made.append(True)
            else:
                made.append(False)
            return make()

        return told

    monkeypatch.setattr(main, "operations", noted(main.operations))
    monkeypatch.setattr(main, "document", noted(lambda: {"openapi": "3.1.0"}))
    visitor = Browser(main.create_app(shared.service, with_console=True))
    for path in ("/docs", "/docs/timers", "/openapi.json"):
        made.clear()
        assert visitor.get(path).status_code == 200, path
        assert made, path
        assert all(made), path
