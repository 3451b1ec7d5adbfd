"""A region of homes as AEP-60 has it, from its wait list to the withdrawal: strangers wait, their
region opens, one machine works and another stands by, the day is shared, and the money leaves.
REST and commands, under production's settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from api.income.region_timer import WAIT_US
from domain.calendar import day_of, day_start_us, day_text
from domain.duration import DAY_US, HOUR_US
from domain.fleet import keys as node_key
from domain.income.maturity import DEFAULT_WINDOW_US
from domain.income.region_sharing import NOTICE_DAYS
from tests.journeys.test_home_region import (
    BERLIN,
    DESKTOP,
    MAC,
    SPARK,
    at_work,
    code_for,
    from_address,
    interval,
    job_in,
    market,
    offer,
    reporter,
)
from tests.scenes.desk import Desk
from tests.scenes.server import NOW_US, Caller, Scene
from tests.scenes.work import MINUTE_US, present, reported, send

__all__ = ["market"]

HOURS = 10
CHARGE = HOURS * 1_000_000
FEE = HOURS * 20_000  # of a GPU with unified memory
EARNED = (CHARGE - FEE) // 2
CONTROL, PER_GIB, GIB = 500_000, 100_000, 2**30
FIRST_US = day_start_us(day_of(NOW_US) + NOTICE_DAYS + 1)
"""When the region's terms begin."""
GATHERED_US = FIRST_US + DEFAULT_WINDOW_US
"""The day on which what was earned on the first one has matured."""


def region_of_homes(desk: Desk) -> str:
    """Waits for two workers, and gives the owner of each nine tenths of what it earns."""
    words = ("--setting", "edge", "--admission", "permissionless")
    owner, provider = desk.scene.owner, desk.scene.provider
    opening = ("region", "open", provider.provider_id, "--name", "berlin", *words)
    region: str = desk.told(owner, *opening)["region_id"]
    growth = {"waitlisted": True, "workers_min": 2, "workers_max": 3, "owner_share_ppm": 900_000}
    owner.made(f"/v1/regions/{region}/growth", growth)
    place = {
        "boundaries": [{"kind": "state", "value": "DE-BE"}],
        "address": "berlin.example:8420",
        "latitude_e6": 52_520_000,
        "longitude_e6": 13_405_000,
    }
    owner.made(f"/v1/regions/{region}/place", place)
    desk.told(owner, "home", "list-terms", region, 2)
    return region


def checked_in(scene: Scene, who: Caller) -> dict[str, Any]:
    return from_address(scene, who, BERLIN).made("/v1/check-ins", {})


def earned(who: Caller) -> int:
    return int(who.read(f"/v1/accounts/{who.account_id}/maturity")["earned"]["units"])


def move_to(desk: Desk, us: int) -> None:
    clock: Any = desk.scene.clock
    clock.move_to(us)


def test_a_home_region_from_its_wait_list_to_the_withdrawal(market: Scene, tmp_path: Path) -> None:
    desk, owner, renter = Desk(market, tmp_path), market.owner, market.renter
    ann, ben = market.account(), market.account()
    region = region_of_homes(desk)

    # Where next? Two wait in Berlin, and everybody who decides sees it.
    assert [checked_in(market, who)["send_to"] for who in (ann, ben)] == ["wait_list"] * 2
    next_ = desk.told(market.operator, "home", "where-next")
    seen = {one["region_id"]: one for one in next_["regions"]}
    assert (seen[region]["waiting_people"], seen[region]["workers"]) == (2, 0)

    # The list has started the region: a check-in now sends each machine there with a code.
    spark, mac = (
        at_work(market, who, checked_in(market, who)["code"], name, device)
        for who, name, device in ((ann, "spark", SPARK), (ben, "mac", MAC))
    )
    assert desk.told(owner, "home", "growth", region)["phase"] == "open"
    control = at_work(market, owner, code_for(market, region), "control", DESKTOP)
    owner.made(f"/v1/nodes/{control.node_id}/role", {"role": "control"})
    ingress = at_work(market, owner, code_for(market, region), "ingress", DESKTOP)
    role = {"role": "ingress", "address": "in.example:51820"}
    owner.made(f"/v1/nodes/{ingress.node_id}/role", role)
    offer(market, spark.node_id)
    terms = ("--version", 1, "--from", day_text(day_of(FIRST_US)), "--min-tier", 1)
    costs = ("--participation", "0.2", "--control", "0.5", "--per-gib", "0.1", "--most", 5)
    desk.told(owner, "region", "set-terms", region, *terms, *costs)
    desk.told(ann, "cash-out", "mode", ann.account_id, "credits", "--to", "acct_of_ann")
    minimum = {"minimum": {"asset": "CREDIT", "units": "10000"}}
    market.operator.made("/v1/cash-outs/terms/minimum", minimum)

    # A renter is told what a home is before it buys, and one machine works; the other stands by.
    move_to(desk, FIRST_US)
    (found,) = desk.told(renter, "offer", "search", "--setting", "edge")["data"]
    assert (found["node_id"], found["supply"]["expect"]["setting"]) == (spark.node_id, "edge")
    lease = market.lease(job=job_in(market, region), term_seconds=HOURS * 3_600)
    spark.caller.made(f"/v1/nodes/{spark.node_id}/assignments/{lease['lease_id']}/ready")
    works, idles = reporter(market, spark, "spark"), reporter(market, mac, "mac")
    move_to(desk, FIRST_US + HOURS * HOUR_US)
    minutes = {"first": (FIRST_US - NOW_US) // MINUTE_US, "minutes": HOURS * 60}
    assert send(market, works, reported(works, lease, **minutes)).status_code == 200
    desk.timers("accrual")
    assert desk.told(renter, "lease", "show", lease["lease_id"])["charge"]["units"] == str(CHARGE)
    used = ann.read(f"/v1/nodes/{spark.node_id}/earnings/today")
    assert used["earned"]["units"] == str(EARNED * 9 // 10), "her part of what her machine made"

    # What has matured is the region's to share, with the day on which both machines are there.
    booked = 10 * MINUTE_US  # after an hour its capacity is booked
    move_to(desk, GATHERED_US + booked)
    desk.timers("capacity")
    move_to(desk, GATHERED_US + HOURS * HOUR_US)
    for machine in (works, idles):
        present(market, machine, GATHERED_US + HOURS * HOUR_US, GATHERED_US + 9 * HOUR_US)
    came = {"bytes_in": 3 * GIB, "bytes_out": GIB, **interval(desk.scene.clock.now_us())}
    path = f"/v1/nodes/{ingress.node_id}/ingress-bytes"
    assert ingress.signed(path, came, node_key.INGRESS_BYTES_TYPE).status_code == 200
    desk.timers("maturity")
    move_to(desk, GATHERED_US + DAY_US + booked)
    desk.timers("capacity")
    move_to(desk, GATHERED_US + DAY_US + WAIT_US)
    assert desk.timers("regions", "sweep")["regions"] == 4, "the day, and three without earnings"
    days = {one["date"]: one for one in desk.told(owner, "region", "shares", region)["data"]}
    shared = days[day_text(day_of(GATHERED_US))]
    assert (shared["ingress_nodes"], shared["ingress_bytes"]) == (1, 4 * GIB)
    infra = CONTROL + 4 * PER_GIB
    rest = EARNED - infra
    there = rest // 5
    parts = {"gathered": EARNED, "infra": infra, "participation": there, "usage": rest - there}
    assert {name: int(shared[name]["units"]) for name in parts} == parts
    of_ann, of_ben = (rest - there) * 9 // 10 + there // 2 * 9 // 10, there // 2 * 9 // 10
    assert (earned(ann), earned(ben)) == (of_ann, of_ben), "who had no work is not penalised"
    assert earned(owner) + of_ann + of_ben == EARNED, "control, ingress, and a tenth: to the unit"

    # And it leaves: whole cents to where its owner named before.
    asked = desk.told(ann, "cash-out", "request", ann.account_id)
    desk.timers("cash_out")
    desk.told(market.operator, "cash-out", "paid", ann.account_id, asked["cash_out_id"])
    assert earned(ann) == of_ann % 10_000
    assert desk.audited()["verified"]
