"""What part of a price is the owner's: told before anything is offered, and what is then paid.

fee + provider + platform + burn == price        of one GPU-hour
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from api.income.owner_part import _part
from domain.money import credit
from domain.prices.tariff import usage_fee
from tests.domain.scenes.supply import tariff
from tests.examples import examples
from tests.scenes.server import Scene
from tests.scenes.shell import tallystick_at
from tests.scenes.work import hours_of_work

PARTS = ("fee", "provider", "platform", "burn")


def _path(scene: Scene) -> str:
    return f"/v1/nodes/{scene.provider.node_id}/earnings/per-hour"


def _units(told: dict[str, Any]) -> dict[str, int]:
    return {name: int(told[name]["units"]) for name in (*PARTS, "price")}


def test_an_owner_is_told_the_part_of_a_price_before_offering(shared: Scene) -> None:
    told = shared.owner.read(_path(shared), price=2_500_000)
    (part,) = told["data"]
    assert _units(part) == {
        "price": 2_500_000,
        "fee": 250_000,
        "provider": 1_125_000,
        "platform": 1_125_000,
        "burn": 0,
    }
    assert (part["gpu_class"], "offer_id" in part) == ("datacenter", False)
    assert told["held_back_seconds"] == told["destination_seconds"] == 72 * 3_600
    assert told["cash_out_minimum"]["units"] == "25000000"
    assert told["tariff_version"] == 1


def test_without_a_price_the_parts_are_those_of_the_open_offers(shared: Scene) -> None:
    (part,) = shared.owner.read(_path(shared))["data"]
    assert part["offer_id"] == shared.provider.offer_id
    assert _units(part)["price"] == 2_000_000
    assert shared.provider.node.read(_path(shared))["data"] == [part], "the node's page asks too"


def test_what_was_told_is_what_a_lease_of_an_hour_pays(scene: Scene) -> None:
    (part,) = scene.owner.read(_path(scene))["data"]
    (lease,) = hours_of_work(scene, 1)
    (charge,) = scene.owner.read(f"/v1/leases/{lease['lease_id']}/charges")["data"]
    assert {name: charge[name] for name in PARTS} == {name: part[name] for name in PARTS}
    assert charge["charge"] == part["price"]


def test_a_price_below_the_fee_is_refused_and_strangers_see_nothing(shared: Scene) -> None:
    low = shared.owner.get(f"{_path(shared)}?price=249999")
    assert (low.status_code, low.json()["code"]) == (422, "price_below_usage_fee")
    for caller in (shared.renter, shared.rival):
        assert caller.get(f"{_path(shared)}?price=2500000").status_code in (403, 404)
    assert shared.anybody.get(_path(shared)).status_code == 401


@given(st.integers(250_000, 10**12))
@examples(60)
def test_the_parts_sum_to_the_price(price: int) -> None:
    part = _part(tariff, "datacenter", credit(price), "cash", None)
    assert sum(int(getattr(part, name).units) for name in PARTS) == price
    assert int(part.fee.units) == usage_fee(tariff, "datacenter").units


def test_offer_create_tells_the_part_and_warns_of_a_second_offer(scene: Scene) -> None:
    of = ("--provider", scene.provider.provider_id, "--node", scene.provider.node_id)
    words = ("offer", "create", *of, "--price", "2.50")
    tried = tallystick_at(scene.http, scene.owner.key, *words, "--dry-run")
    assert "you get 1.125 of 2.5 CREDIT per GPU-hour (datacenter): usage fee 0.25" in tried.err
    assert "it matures 72 hours after it was earned" in tried.err
    assert f"warning: the offer {scene.provider.offer_id} of this node at 2.000000" in tried.err
    assert len(scene.owner.read("/v1/offers", node_id=scene.provider.node_id)["data"]) == 1
    made = tallystick_at(scene.http, scene.owner.key, *words, "--json")
    assert (made.code, made.document["price_per_gpu_hour"]["units"]) == (0, "2500000")
    second = tallystick_at(scene.http, scene.owner.key, "provider", "register")
    assert f"warning: your account has the provider {scene.provider.provider_id}" in second.err
