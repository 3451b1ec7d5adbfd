"""Both halves of a lease, over HTTP: who pays and who earns, how each is, and since when."""

from __future__ import annotations

from typing import Any

from api.leasing.log_timer import run_lease_logs
from ledger.beside import lease_halves as lease_health
from tests.api.leasing.test_work import executor_of
from tests.scenes.server import HOUR_US, Scene
from tests.scenes.work import MINUTE_US, accrue_now, run

RENTERS = {"machine": "workstation-7", "arch": "x86_64", "os": "linux", "kernel": "6.8.0-31"}


def _health(scene: Scene, lease: dict[str, Any]) -> dict[str, Any]:
    return scene.renter.read(f"/v1/leases/{lease['lease_id']}/health")


def test_v_5_the_initiator_pays_the_acceptors_owner_earns_and_both_are_named(scene: Scene) -> None:
    lease = scene.running(remoting_session_id="session-1")
    run(scene, lease, minutes=60)
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    accrue_now(scene, lease["lease_id"])
    told = _health(scene, lease)
    assert told["remoting_session_id"] == "session-1"
    assert told["initiator"]["account_id"] == scene.renter.account_id
    assert told["acceptor"]["account_id"] == scene.owner.account_id
    assert told["acceptor"]["node_id"] == scene.provider.node_id
    charge = scene.renter.read(f"/v1/leases/{lease['lease_id']}")["charge"]["units"]
    books = scene.service.ledger.books
    assert books.balance(f"party:{scene.renter.account_id}:cash") == 100_000_000 - int(charge)
    assert books.balance(f"party:{scene.owner.account_id}:holdback") > 0


def test_v_5_and_v_15_each_half_tells_its_machine_and_how_it_is_and_silence_is_seen(
    scene: Scene,
) -> None:
    """Kernel and architecture of both sides; the node's word is its signed reports."""
    told = scene.provider.joining("", "NVIDIA A100-PCIE-80GB")
    host = {**told["host"], "kernel": "6.1.0-13-amd64", "substrate": ["bare_metal"]}
    specs = {"devices": told["devices"], "host": host, "hardware": told["hardware"]}
    scene.provider.node.made(f"/v1/nodes/{scene.provider.node_id}/specs", specs)
    lease = scene.running()
    before = _health(scene, lease)
    assert (before["initiator"]["health"], before["acceptor"]["health"]) == ("unknown", "unknown")
    run(scene, lease, minutes=1)
    check_in = f"/v1/leases/{lease['lease_id']}/check-in"
    scene.renter.made(check_in, RENTERS)
    both = _health(scene, lease)
    mine, theirs = both["initiator"], both["acceptor"]
    assert {name: mine[name] for name in RENTERS} == RENTERS
    assert (mine["health"], theirs["health"]) == ("well", "well")
    assert (theirs["kernel"], theirs["arch"]) == ("6.1.0-13-amd64", "x86_64")
    assert theirs["substrate"] == ["bare_metal"]
    scene.renter.made(check_in, {**RENTERS, "well": False, "detail": "the link is lossy"})
    assert _health(scene, lease)["initiator"]["detail"] == "the link is lossy"
    clock: Any = scene.clock
    clock.advance(4 * MINUTE_US)
    both = _health(scene, lease)
    assert (both["initiator"]["health"], both["acceptor"]["health"]) == ("silent", "silent")
    run(scene, lease, first=1, minutes=5)
    scene.renter.made(check_in, RENTERS)
    both = _health(scene, lease)
    assert (both["initiator"]["health"], both["acceptor"]["health"]) == ("well", "well")


def test_a_renter_is_told_why_a_lease_waits_for_its_node(scene: Scene) -> None:
    lease = scene.lease()
    theirs = _health(scene, lease)["acceptor"]
    assert (theirs["node_state"], theirs["has_executor"]) == ("active", False)
    executor_of(scene, scene.provider)
    assert _health(scene, lease)["acceptor"]["has_executor"]
    clock: Any = scene.clock
    clock.advance(5 * MINUTE_US)
    theirs = _health(scene, lease)["acceptor"]
    node = scene.owner.read(f"/v1/nodes/{scene.provider.node_id}")
    assert (theirs["node_state"], theirs["heard_at"]) == (node["state"], node["heard_at"])
    assert theirs["node_state"] == "offline"
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/close")
    over = _health(scene, lease)["acceptor"]
    assert not {"node_state", "heard_at", "has_executor"} & set(over), "it is no business of theirs"


def test_a_node_tells_how_its_work_is_and_nobody_else_does(scene: Scene) -> None:
    lease = scene.running()
    run(scene, lease, minutes=1)
    at = f"/v1/nodes/{scene.provider.node_id}/assignments/{lease['lease_id']}/health"
    executor = executor_of(scene, scene.provider)
    executor.made(at, {"well": False, "detail": "port 9000 does not answer"})
    theirs = _health(scene, lease)["acceptor"]
    assert (theirs["health"], theirs["detail"]) == ("unwell", "port 9000 does not answer")
    since = theirs["since"]
    clock: Any = scene.clock
    clock.advance(MINUTE_US)
    executor.made(at, {"well": False})
    assert _health(scene, lease)["acceptor"]["since"] == since, "since it first was"
    executor.made(at, {"well": True})
    assert _health(scene, lease)["acceptor"]["health"] == "well"
    check_in = f"/v1/leases/{lease['lease_id']}/check-in"
    for who in (scene.stranger, scene.owner):
        assert who.post(check_in, RENTERS).status_code in (403, 404)
    other = executor_of(scene, scene.other)
    assert other.post(at, {"well": True}).json()["code"] == "lease_unknown"
    assert scene.stranger.get(f"/v1/leases/{lease['lease_id']}/health").status_code == 404


def test_what_a_half_said_is_forgotten_a_week_after_its_last_word(scene: Scene) -> None:
    lease = scene.running()
    scene.renter.made(f"/v1/leases/{lease['lease_id']}/check-in", RENTERS)
    now_us = scene.clock.now_us()
    with scene.service.connect() as connection:
        assert run_lease_logs(scene.service, connection, now_us + 24 * HOUR_US) == 0
        assert lease_health.read(connection, lease["lease_id"])
        assert run_lease_logs(scene.service, connection, now_us + lease_health.KEPT_US) == 1
        assert lease_health.read(connection, lease["lease_id"]) == {}
