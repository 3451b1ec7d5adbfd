"""The corrections job on a running market: SLA credits after settlement, disputes nobody ruled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from api.corrections.corrections_timer import correct_due
from domain.corrections.dispute import TIMEOUT_US
from domain.duration import MINUTE_US
from domain.lease.lease import LATE_WINDOW_US
from domain.prices.tariff import CLOUDBENDER, SlaClass, SlaTier, publish
from domain.stream import Stream
from tests.api.corrections.test_disputes import charge_of, contested, part
from tests.scenes.server import Scene
from tests.scenes.work import accrue_now, hours_of_work, reported, run, send


def correct(scene: Scene) -> int:
    with scene.service.connect() as connection:
        return correct_due(scene.service.ledger, connection, scene.clock.now_us())


def promise(scene: Scene) -> None:
    """From now on `standard` promises 99 %: below it a tenth of the charge comes back."""
    now_us = scene.clock.now_us()
    tariff = publish(CLOUDBENDER, version=2, effective_from_us=now_us, by="op", at_us=now_us)
    classes = (SlaClass("standard", (SlaTier(990_000, 100_000),)),)
    scene.service.ledger.handle(replace(tariff, sla=classes), key=None, now_us=now_us)


def test_v_6_a_lease_that_was_down_is_credited_right_after_settlement(scene: Scene) -> None:
    """55 of 60 minutes: 916,666 ppm; 10 % of 1.833333 come back, from provider and platform."""
    promise(scene)
    clock: Any = scene.clock
    lease = scene.running(job=scene.job(sla_class="standard"))
    run(scene, lease, minutes=54)
    clock.advance(5 * MINUTE_US)
    run(scene, lease, first=59, minutes=1)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    assert correct(scene) == 1
    held = part(scene, f"party:{scene.owner.account_id}:holdback")
    told = scene.renter.read("/v1/adjustments", lease_id=lease["lease_id"])["data"]
    assert [(one["reason"], one["returned"]["units"]) for one in told] == [("sla", "183333")]
    state = scene.service.ledger.market.load(Stream("sla", lease["lease_id"])).state
    assert state.assessed.availability_ppm == 916_666
    assert correct(scene) == 0, "once"
    assert part(scene, f"party:{scene.owner.account_id}:holdback") == held
    assert scene.service.ledger.books.books_balanced()


def test_a_dispute_that_nobody_ruled_leaves_standing_what_the_node_signed(scene: Scene) -> None:
    """H3: after 90 days without a ruling the renter had everything back, and the network paid."""
    (lease,) = hours_of_work(scene)
    cash = part(scene, f"party:{scene.renter.account_id}:cash")
    take = part(scene, "network:revenue:take")
    dispute = contested(scene, lease)
    clock: Any = scene.clock
    clock.advance(TIMEOUT_US - 1)
    assert correct(scene) == 0
    clock.advance(1)
    assert correct(scene) == 1
    told = scene.renter.read(f"/v1/disputes/{dispute['dispute_id']}")
    assert (told["state"], told["upheld"]["units"]) == ("timed_out", "0")
    assert part(scene, f"party:{scene.renter.account_id}:cash") == cash
    assert part(scene, f"party:{scene.owner.account_id}:payable") == 875_000
    assert part(scene, f"dispute:{dispute['dispute_id']}") == 0
    assert part(scene, "network:revenue:take") == take


def test_what_the_network_owes_for_a_ruling_is_paid_as_soon_as_it_has_it(scene: Scene) -> None:
    """H3: a ruling that the network could not pay whole was refused, and the renter got nothing."""
    first, second = hours_of_work(scene, 2)
    cash = part(scene, f"party:{scene.renter.account_id}:cash")
    spent = {
        "corrects_position": charge_of(scene, second)["position"],
        "amount": {"asset": "CREDIT", "units": "2000000"},
    }
    scene.operator.made("/v1/adjustments", spent)
    dispute = contested(scene, first)
    path = f"/v1/disputes/{dispute['dispute_id']}"
    ruled = scene.operator.made(f"{path}/rule", {"outcome": "upheld"})
    assert ruled["upheld"]["units"] == "2000000"
    booked = scene.renter.read("/v1/adjustments", lease_id=first["lease_id"])["data"][-1]
    assert (booked["returned"]["units"], booked["owed"]["units"]) == ("2000000", "875000")
    mine = f"party:{scene.renter.account_id}:cash"
    assert part(scene, mine) == cash + 2_000_000 + 1_125_000
    assert correct(scene) == 1, "it is looked at, and nothing is there"
    assert part(scene, mine) == cash + 2_000_000 + 1_125_000
    third = scene.running()
    run(scene, third, minutes=60, first=60)
    scene.renter.made(f"/v1/leases/{third['lease_id']}/close")
    accrue_now(scene, third["lease_id"])
    before = part(scene, mine)
    assert correct(scene) == 1
    assert part(scene, mine) == before + 875_000
    paid = scene.renter.read("/v1/adjustments", lease_id=first["lease_id"])["data"][-1]
    assert (paid["reason"], paid["owed"]["units"]) == ("owed", "-875000")
    assert correct(scene) == 0
    assert scene.service.ledger.books.books_balanced()


def test_usage_that_came_after_settlement_is_paid_by_an_adjustment_only(scene: Scene) -> None:
    clock: Any = scene.clock
    lease = scene.running()
    clock.advance(60 * MINUTE_US)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    clock.advance(LATE_WINDOW_US)
    accrue_now(scene, lease["lease_id"])
    body = {"lease_id": lease["lease_id"]}
    path = "/v1/adjustments/late-usage"
    assert scene.operator.post(path, body).json()["code"] == "no_late_usage"
    sent = send(scene, scene.provider, reported(scene.provider, lease))
    assert sent.status_code == 200, sent.text
    settled = scene.renter.read(f"/v1/leases/{lease['lease_id']}")
    assert (settled["state"], settled["charge"]["units"]) == ("settled", "0"), "unbilled"
    assert scene.owner.post(path, body).status_code == 403
    cash = part(scene, f"party:{scene.renter.account_id}:cash")
    made = scene.operator.made(path, body)
    assert (made["reason"], made["charge_new"]["units"]) == ("late_usage", "2000000")
    assert part(scene, f"party:{scene.renter.account_id}:cash") == cash - 2_000_000
    assert part(scene, f"party:{scene.owner.account_id}:holdback") == 875_000
    assert scene.operator.post(path, body).json()["code"] == "no_late_usage"
