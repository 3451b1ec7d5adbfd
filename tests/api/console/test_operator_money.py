"""Cash-outs in the operator's pages: what waits, what one person may say, and what takes two."""

from __future__ import annotations

import pytest

from api.console.operator import operate, payouts
from tests.api.console.test_sessions import Browser
from tests.api.console.test_sessions import app as app
from tests.api.console.test_sessions import browser as browser
from tests.api.income.test_cash_outs import swept, wait_for_destination
from tests.scenes.server import Scene
from tests.scenes.work import credits_, run_income


def test_a_cash_out_waits_is_paid_and_ended(
    shared: Scene, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = swept(shared)
    mode = {"mode": "credits", "destination": "acct_<b>bank"}
    shared.owner.made(f"{account}/payment-mode", mode)
    wait_for_destination(shared)
    _what_waits_is_seen_behind_what_ended(shared, browser, account, monkeypatch)
    asked = shared.owner.made(f"{account}/cash-outs")
    path = f"/operate/payouts/{shared.owner.account_id}/{asked['cash_out_id']}"
    browser.sign_in(shared.operator.key)
    assert "<h1>1 cash-out waits</h1>" in browser.get("/operate/payouts").text
    assert f'href="{path}"' in browser.get("/operate").text
    early = browser.send(path, {**browser.marks(path), "act": "paid"})
    assert early.status_code == 409, "nothing was sent yet"
    assert browser.send(path, {**browser.marks(path), "act": "x"}).status_code == 422
    run_income(shared, "cash_out", "payout_match")
    shown = browser.get(path).text
    assert "0.870000 CREDIT" in shown
    assert "Confirm that 0.870000 CREDIT were paid" in shown, "the amount is on the button"
    assert f"tallystick cash-out paid {shared.owner.account_id}" in shown
    sent = browser.send(path, {**browser.marks(path), "act": "paid"})
    assert sent.headers["location"] == path
    assert shared.owner.read(f"{account}/cash-outs/{asked['cash_out_id']}")["state"] == "paid"
    assert "<h1>No cash-out waits</h1>" in browser.get("/operate/payouts").text
    browser.sign_in(shared.rival.key)
    assert browser.get(path).status_code == 403, "a page of the operator"
    assert browser.get("/operate/payouts").status_code == 403


def _what_waits_is_seen_behind_what_ended(
    scene: Scene, browser: Browser, account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many came and ended since."""
    small = {"amount": credits_(100_000)}
    waits = scene.owner.made(f"{account}/cash-outs", small)
    newer = scene.owner.made(f"{account}/cash-outs", small)
    scene.owner.made(f"{account}/cash-outs/{newer['cash_out_id']}/cancel")
    browser.sign_in(scene.operator.key)
    path = f"/operate/payouts/{scene.owner.account_id}/{waits['cash_out_id']}"
    with monkeypatch.context() as patched:
        patched.setattr(operate, "ROWS_MAX", 1)
        patched.setattr(payouts, "ROWS_MAX", 1)
        for page in ("/operate", "/operate/payouts"):
            assert f'href="{path}"' in browser.get(page).text, page
    scene.owner.made(f"{account}/cash-outs/{waits['cash_out_id']}/cancel")
