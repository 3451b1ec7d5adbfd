"""A recovery of the operator's key at the command line: all see it, a governor stops it."""

from __future__ import annotations

from pathlib import Path

from api.door import keys
from domain.authority.key_recovery import AnnounceKeyRecovery
from tests.cli.commands.test_policy import governors
from tests.cli.test_remote import Server, server

__all__ = ["server"]


def test_a_governor_sees_a_recovery_and_stops_it(server: Server, tmp_path: Path) -> None:
    anna, _, _ = governors(server, tmp_path)
    secret, now_us = keys.new(), server.service.clock.now_us()
    command = AnnounceKeyRecovery(
        key_id=keys.key_id(secret) or "", key_sha256=keys.digest(secret), at_us=now_us
    )
    server.service.ledger.handle(command, key=None, now_us=now_us)
    listed = server.run("key", "recoveries", "--json").document["data"]
    assert [(one["number"], one["status"]) for one in listed] == [(1, "waiting")]
    alone = server.run("key", "cancel-recovery", 1)
    assert (alone.code, "Ask another governor" in alone.err) == (1, True), alone
    assert server.run("key", "cancel-recovery", 2, "--key", anna).code == 2
    stopped = server.run("key", "cancel-recovery", 1, "--key", anna, "--json")
    assert stopped.code == 0, stopped
    assert f'key_id: "{listed[0]["key_id"]}"' in stopped.err, "what is signed is shown"
    assert stopped.document["data"][0]["status"] == "cancelled"
