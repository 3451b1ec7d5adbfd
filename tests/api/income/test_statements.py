"""Statements of any moment over HTTP: balances, lines, usage by group, what is not billed yet."""

from __future__ import annotations

from typing import Any

import pytest

from api.metering import unbilled
from domain.duration import HOUR_US, MINUTE_US
from tests.api.corrections.test_countersign import added, half
from tests.scenes.server import Scene
from tests.scenes.work import accrue_now, hours_of_work, reported, run, send


def _units(told: list[dict[str, Any]]) -> dict[str, int]:
    return {one["part"]: int(one["balance"]["units"]) for one in told}


def _path(scene: Scene) -> str:
    return f"/v1/accounts/{scene.renter.account_id}/statements"


def _close(told: dict[str, Any], lines: list[dict[str, Any]]) -> None:
    """Closing is opening and the sum of the lines, from what was told alone."""
    expected = _units(told["opening"])
    for line in lines:
        moved = int(line["movement"]["units"])
        expected[line["part"]] = expected.get(line["part"], 0) + moved
    assert expected == _units(told["closing"])
    for kind in told["kinds"]:
        of_kind = [
            int(line["movement"]["units"])
            for line in lines
            if (line["kind"], line["part"]) == (kind["kind"], kind["part"])
        ]
        assert (kind["lines"], int(kind["movement"]["units"])) == (len(of_kind), sum(of_kind))


def test_a_statement_shows_every_line_between_two_balances(scene: Scene) -> None:
    before = scene.head()
    lease = hours_of_work(scene)[0]
    told = scene.renter.read(_path(scene), limit=500)
    _close(told, told["lines"])
    assert _units(told["closing"]) == {"cash": 98_000_000, "escrow.cash": 0}
    assert [(line["kind"], line["part"], line["movement"]["units"]) for line in told["lines"]] == [
        ("deposit", "cash", "100000000"),
        ("hold", "cash", "-2000000"),
        ("hold", "escrow.cash", "2000000"),
        ("usage", "escrow.cash", "-2000000"),
    ]
    usage = told["lines"][-1]
    assert (usage["type"], usage["lease_id"]) == ("lease.usage_accrued.v1", lease["lease_id"])
    since = scene.renter.read(_path(scene), **{"from": "2026-11-20T08:30:00Z"})
    assert _units(since["opening"]) == {"cash": 98_000_000, "escrow.cash": 2_000_000}
    _close(since, since["lines"])
    assert {line["kind"] for line in since["lines"]} == {"usage"}
    early = scene.renter.read(_path(scene), as_of_position=before)
    assert _units(early["closing"]) == {"cash": 100_000_000}
    assert "unbilled_estimate" not in early
    assert early["position"] == before
    earned = scene.owner.read(f"/v1/accounts/{scene.owner.account_id}/statements")
    assert [(one["kind"], one["part"]) for one in earned["kinds"]] == [("earning", "holdback")]
    assert scene.stranger.get(_path(scene)).json()["code"] == "account_unknown"


def test_closing_balances_are_those_of_the_books_at_every_position(scene: Scene) -> None:
    leases = hours_of_work(scene, 2)
    books = scene.service.ledger.books
    names = [f"escrow:{lease['lease_id']}:1:cash" for lease in leases]
    cash = f"party:{scene.renter.account_id}:cash"
    for at in range(scene.head() - 20, scene.head() + 1):
        told = scene.renter.read(_path(scene), as_of_position=at, limit=500)
        _close(told, told["lines"])
        then = _units(told["closing"])
        assert then["cash"] == books.balance_at(cash, at)
        assert then.get("escrow.cash", 0) == sum(books.balance_at(name, at) for name in names)
    present = _units(scene.renter.read(_path(scene))["closing"])
    assert present["cash"] == books.balance(cash)


def test_lines_come_in_pages_of_one_snapshot(scene: Scene) -> None:
    hours_of_work(scene, 2)
    whole = scene.renter.read(_path(scene), limit=500)["lines"]
    told = scene.renter.read(_path(scene), limit=3)
    pages = [told]
    scene.deposit(scene.renter, 5)
    while pages[-1]["has_more"]:
        pages.append(scene.renter.read(_path(scene), limit=3, cursor=pages[-1]["next_cursor"]))
    joined = [line for page in pages for line in page["lines"]]
    assert joined == whole
    for page in pages:
        assert (page["closing"], page["kinds"]) == (told["closing"], told["kinds"])
        _close(page, joined)


def test_usage_adds_up_to_the_same_by_every_grouping_and_filter(scene: Scene) -> None:
    first = scene.running(job=scene.job(project_id="p1", end_user_ref="u1"))
    second = scene.running(job=scene.job(project_id="p2", end_user_ref="u1"))
    run(scene, first, second, minutes=60)
    for lease in (first, second):
        accrue_now(scene, lease["lease_id"])
        scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
        accrue_now(scene, lease["lease_id"])
    for by, groups in (
        ("project_id", {"p1", "p2"}),
        ("end_user_ref", {"u1"}),
        ("client_id", {"direct"}),
        ("lease_id", {first["lease_id"], second["lease_id"]}),
    ):
        told = scene.renter.read(_path(scene), by=by)["usage"]
        assert {one["group"] for one in told["groups"]} == groups
        assert told["gpu_us"] == str(2 * HOUR_US)
        assert told["charge"]["units"] == "4000000"
        assert sum(int(one["charge"]["units"]) for one in told["groups"]) == 4_000_000
    mine = scene.renter.read(_path(scene), project_id="p1", by="end_user_ref")
    assert mine["usage"]["charge"]["units"] == "2000000"
    assert [line["project_id"] for line in mine["lines"]] == ["p1"]
    assert mine["kinds"] == scene.renter.read(_path(scene))["kinds"], "of the whole account"
    held = scene.renter.read(_path(scene), kind="hold")["lines"]
    assert {line["kind"] for line in held} == {"hold"}


def test_what_has_run_since_the_last_accrual_is_what_the_next_one_charges(scene: Scene) -> None:
    """Design economics 4: the estimate is the domain's own formula on the reports received."""
    lease = scene.running()
    run(scene, lease, minutes=7)
    told = scene.renter.read(_path(scene))["unbilled_estimate"]
    assert told["charge"]["units"] == str(2_000_000 * 7 // 60)
    (live,) = told["leases"]
    assert (live["lease_id"], live["gpu_us"]) == (lease["lease_id"], str(7 * MINUTE_US))
    run(scene, lease, first=7, minutes=6)
    estimate = scene.renter.read(_path(scene))["unbilled_estimate"]
    before = scene.head()
    assert scene.renter.read(_path(scene))["unbilled_estimate"] == estimate
    assert scene.head() == before, "an estimate records nothing"
    path = f"/v1/leases/{lease['lease_id']}"
    shown = {name: estimate[name] for name in ("gpu_us", "charge")}
    shown["until"] = estimate["leases"][0]["until"]
    assert scene.renter.read(path)["estimate"] == shown
    assert [one["estimate"] for one in scene.renter.read("/v1/leases")["data"]] == [shown]
    assert scene.owner.read(path)["estimate"] == shown
    assert "estimate" not in scene.renter.read(path, as_of_position=before)
    assert scene.renter.read("/v1/usage/summary")["unbilled_estimate"] == estimate
    assert "unbilled_estimate" not in scene.renter.read("/v1/usage/summary", project_id="p1")
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    told = scene.renter.read(_path(scene))
    charged = [line for line in told["lines"] if line["kind"] == "usage"]
    assert [line["movement"]["units"] for line in charged] == [f"-{estimate['charge']['units']}"]
    assert told["unbilled_estimate"] == {
        "charge": {"asset": "CREDIT", "units": "0"},
        "gpu_us": "0",
        "leases": [],
        "leases_left_out": 0,
    }


def test_every_running_lease_is_in_the_sum_however_many_are_read_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred were, and the bill of a renter with more of them said too little."""
    leases = [scene.running() for _ in range(2)]
    run(scene, *leases, minutes=7)
    whole = scene.renter.read(_path(scene))["unbilled_estimate"]
    listed = scene.renter.read("/v1/leases")["data"]
    monkeypatch.setattr(unbilled, "AT_ONCE", 1)
    monkeypatch.setattr(unbilled, "LISTED_MAX", 1)
    parted = scene.renter.read(_path(scene))["unbilled_estimate"]
    assert parted["charge"] == whole["charge"] == {"asset": "CREDIT", "units": str(2 * 233_333)}
    assert (parted["leases"], parted["leases_left_out"]) == (whole["leases"][:1], 0)
    assert scene.renter.read("/v1/leases")["data"] == listed
    assert all("estimate" in one for one in listed)
    monkeypatch.setattr(unbilled, "SUMMED_MAX", 1)
    assert scene.renter.read(_path(scene))["unbilled_estimate"]["leases_left_out"] == 1


def test_usage_is_matched_unconfirmed_or_contested_and_disputed_usage_is_told(scene: Scene) -> None:
    """The renter signed for all but five microseconds of one lease and for nothing of the other."""
    signed, other = hours_of_work(scene, 2)
    key_id = added(scene)
    path = f"/v1/leases/{signed['lease_id']}"
    before = scene.head()

    def parts(**query: Any) -> list[int]:
        told = scene.renter.read(_path(scene), by="lease_id", **query)["usage"]
        names = ("matched", "unconfirmed", "contested")
        found = [int(told[f"{name}_gpu_us"]) for name in names]
        assert sum(found) == int(told["gpu_us"])
        return [*found, int(told["disputed_gpu_us"])]

    assert parts() == [0, 2 * HOUR_US, 0, 0]
    scene.renter.made(f"{path}/countersign", half(signed["lease_id"], key_id, HOUR_US - 5))
    assert parts() == [HOUR_US - 5, HOUR_US, 5, 0]
    stick = scene.renter.read(f"{path}/stick")
    assert stick["contested_gpu_us"] == "5", "as both halves of the lease say"
    assert parts(as_of_position=before) == [0, 2 * HOUR_US, 0, 0], "not signed yet"
    line = next(
        one
        for one in scene.renter.read(_path(scene), kind="usage")["lines"]
        if one["lease_id"] == other["lease_id"]
    )
    claim = {"lease_id": other["lease_id"], "lines": [{"position": line["position"]}]}
    scene.renter.made("/v1/disputes", {**claim, "claim_code": "not_running"})
    assert parts() == [HOUR_US - 5, HOUR_US, 5, HOUR_US]
    assert parts(as_of_position=before)[-1] == 0


def test_a4_an_owners_month_shows_what_was_earned_and_never_what_renters_paid(scene: Scene) -> None:
    owner, renter, clock = scene.owner, scene.renter, scene.clock
    scene.deposit(owner, 100_000_000)
    rented, own = scene.running(), scene.running(renter=owner)
    clock.advance(HOUR_US)  # type: ignore[attr-defined]
    send(scene, scene.provider, reported(scene.provider, rented, own))
    for who, lease in ((renter, rented), (owner, own)):
        who.made(f"/v1/leases/{lease['lease_id']}/close")
        accrue_now(scene, lease["lease_id"])
    told = owner.read(f"/v1/accounts/{owner.account_id}/statements/2026-11")
    (line,) = told["leases"]
    assert line["lease_id"] == own["lease_id"], "what it paid itself"
    assert told["charge"] == line["charge"] == {"asset": "CREDIT", "units": "250000"}, "the fee"
    assert told["earned"]["units"] == "875000", "of the 2.00 that the renter paid"
    assert rented["lease_id"] not in str(told)
    paid = renter.read(f"/v1/accounts/{renter.account_id}/statements/2026-11")
    assert (paid["charge"]["units"], paid["earned"]["units"]) == ("2000000", "0")
    assert [one["lease_id"] for one in paid["leases"]] == [rented["lease_id"]]
    before = owner.read(f"/v1/accounts/{owner.account_id}/statements/2026-10")
    assert (before["earned"]["units"], before["charge"]["units"]) == ("0", "0")
