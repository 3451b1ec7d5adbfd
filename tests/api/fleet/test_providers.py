"""Providers, their kinds and their regions over HTTP, in production (rows C-2 and C-3)."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.test_remote import Server, server
from tests.scenes.server import Scene

__all__ = ["server"]

LATER = "2027-01-01T00:00:00Z"


def kind(units: int, **changes: Any) -> dict[str, Any]:
    cost = {"asset": "CREDIT", "units": str(units)}
    return {
        "kind": "acme",
        "cloud": True,
        "cost_per_gpu_hour": cost,
        "effective_from": LATER,
        **changes,
    }


def test_a_provider_is_enabled_together_with_its_payment_mode_or_not_at_all(scene: Scene) -> None:
    """C-2: one append; an account that has a mode keeps it."""
    stranger = scene.stranger
    bare = stranger.post("/v1/providers", {"kind": "physical"})
    assert (bare.status_code, bare.json()["code"]) == (409, "payment_mode_needed")
    cash = stranger.post("/v1/providers", {"kind": "physical", "payment_mode": "cash"})
    assert cash.json()["code"] == "payment_mode", "cash needs a destination"
    assert stranger.read("/v1/providers")["data"] == []
    made = stranger.made("/v1/providers", {"kind": "gcp", "payment_mode": "credits"})
    assert (made["kind"], made["payment_mode"]) == ("gcp", "credits")
    account = f"/v1/accounts/{stranger.account_id}/payment-mode"
    assert stranger.read(account)["mode"] == "credits"
    facts = scene.service.ledger.market
    assert facts.head()[0] == made["position"]
    again = stranger.made("/v1/providers", {"kind": "physical"})
    assert again["payment_mode"] == "credits"
    other = stranger.post("/v1/providers", {"kind": "physical", "payment_mode": "cash"})
    assert other.json()["code"] == "payment_mode_needed"
    listed = stranger.read("/v1/providers")["data"]
    assert [one["payment_mode"] for one in listed] == ["credits", "credits"]


def test_kinds_are_an_open_registry_and_physical_is_the_cheapest(scene: Scene) -> None:
    """C-2: a GPU-hour on any other kind costs more, and its offers ask at least that."""
    kinds = scene.anybody.read("/v1/provider-kinds")["data"]
    costs = {one["kind"]: int(one["cost_per_gpu_hour"]["units"]) for one in kinds}
    assert set(costs) == {"physical", "gcp"}
    assert costs["physical"] < costs["gcp"]
    unknown = {"kind": "acme", "payment_mode": "credits"}
    assert scene.owner.post("/v1/providers", unknown).json()["code"] == "provider_kind_unknown"
    cheap = scene.operator.post("/v1/provider-kinds", kind(0))
    assert (cheap.status_code, cheap.json()["code"]) == (409, "provider_kind_cost")
    dear = scene.operator.post(
        "/v1/provider-kinds", kind(costs["gcp"], kind="physical", cloud=False)
    )
    assert dear.json()["code"] == "provider_kind_cost"
    assert scene.owner.post("/v1/provider-kinds", kind(1)).status_code == 403
    scene.operator.made("/v1/provider-kinds", kind(400_000))
    early = scene.owner.post("/v1/providers", unknown)
    assert early.json()["code"] == "provider_kind_unknown", "it counts from its date on"
    scene.clock.advance(60 * 86_400_000_000)  # type: ignore[attr-defined]
    assert scene.owner.made("/v1/providers", {"kind": "acme"})["kind"] == "acme"
    listed = {one["kind"] for one in scene.anybody.read("/v1/provider-kinds")["data"]}
    assert listed == {"physical", "gcp", "acme"}


def test_kinds_of_providers_by_the_command_line(server: Server) -> None:
    """C-2."""
    assert "physical" in server.run("provider", "kinds").out
    add = ("provider", "add-kind", "acme", "--cloud", "--cost", "0.40", "--from", LATER, "--json")
    assert server.run(*add).document["cost_per_gpu_hour"]["units"] == "400000"
    told = json.loads(server.run("provider", "kinds", "--json").out)["data"]
    assert [one["kind"] for one in told] == ["physical", "gcp", "acme"]
    _, key = server.account()
    refused = server.run("provider", "register", "--json", key=key)
    assert refused.code == 1
    assert "--payment-mode" in refused.err


def test_c_4_a_region_has_its_name_alone_its_storage_for_ever_and_a_door_that_closes(
    scene: Scene,
) -> None:
    """C-4: another storage mode needs a new region."""
    owner, provider = scene.owner, scene.provider.provider_id
    body = {
        "provider_id": provider,
        "name": "site-1",
        "storage_mode": "local",
        "setting": "datacenter",
        "admission": "operator",
        "allow_public_jobs": True,
    }
    region = owner.made("/v1/regions", body)["region_id"]
    taken = owner.post("/v1/regions", {**body, "storage_mode": "central"})
    assert (taken.status_code, taken.json()["code"]) == (409, "region_exists")
    for wrong in ("Site 1", "-site", "a" * 64, ""):
        assert owner.post("/v1/regions", {**body, "name": wrong}).status_code == 422
    elsewhere = scene.other.provider_id
    scene.rival.made("/v1/regions", {**body, "provider_id": elsewhere})
    path = f"/v1/regions/{region}/policy"
    moved = owner.post(path, {"allow_public_jobs": True, "storage_mode": "central"})
    assert (moved.status_code, "storage_mode" in moved.text) == (422, True)
    assert owner.read(f"/v1/regions/{region}")["storage_mode"] == "local"
    assert owner.made("/v1/regions", {**body, "name": "site-2", "storage_mode": "central"})

    here = f"/v1/regions/{scene.provider.region_id}/policy"
    assert scene.lease()["node_id"] == scene.provider.node_id
    assert owner.made(here, {"allow_public_jobs": False})["allow_public_jobs"] is False
    assert scene.lease()["node_id"] == scene.other.node_id, "dearer, and open"
    scene.deposit(owner, 10_000_000)
    assert scene.lease(owner)["node_id"] == scene.provider.node_id
    assert scene.rival.post(here, {"allow_public_jobs": True}).status_code == 404
