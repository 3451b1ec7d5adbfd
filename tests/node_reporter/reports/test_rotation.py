"""A node changes its key: one chain, two signatures, and no crash leaves it without a key."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from nacl.public import SealedBox
from nacl.signing import SigningKey, VerifyKey

from domain.fleet import keys as node_key
from domain.metering import report
from node_reporter.identity import key_id, load_key, make_key, public_key, unsealed
from node_reporter.machine.config import Settings, StateFolder
from node_reporter.programs.run import only_one
from node_reporter.reports import rotation
from node_reporter.reports.delivery import Stopped
from node_reporter.reports.rotation import RotationRefused
from node_reporter.reports.spool import Spool
from tests.node_reporter.model_server import NODE, ModelServer
from tests.node_reporter.reporter_scene import Scene


class Rotating(Scene):
    """A node whose key lies in its folder, as joining left it."""

    def __post_init__(self) -> None:
        self.state = StateFolder(self.folder)
        self.key = self.state.signing_key_or_new()
        super().__post_init__()

    def settings(self) -> Settings:
        rotation.settle(self.state)
        return Settings(
            url="",
            node_id=NODE,
            node_key=self.node_key,
            spool=self.folder / "spool.db",
            signing_key=load_key(self.state.signing_key),
        )

    def rotate(self) -> bool:
        """Stop, change the key, start; whether the server knows already."""
        self.reporter.stop()
        self.reporter.close()
        self.key, is_told = rotation.rotate(self.state, self.settings(), self.wire, self.clock)
        self.node_key = self.state.node_key.read_text()
        self.start()
        return is_told

    def reports_by_key(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for one in self.server.reports():
            name = key_id(self.server.key_at(one.seq))
            found[name] = found.get(name, 0) + 1
        return found


@pytest.fixture
def node(tmp_path: Path) -> Rotating:
    return Rotating(tmp_path)


def test_one_report_introduces_the_next_key_and_the_one_after_it_is_signed_by_it(
    node: Rotating,
) -> None:
    old = node.key
    node.run(3)
    assert node.rotate()
    node.run(3)
    (introducing,) = (one for one in node.server.reports() if _introduces(one))
    assert introducing.rows == ()
    assert node.server.rotations[0]["from_seq"] == introducing.seq + 1
    data = introducing.events[0].data
    said = node_key.introduction(NODE, public_key(old).hex(), public_key(node.key).hex())
    VerifyKey(public_key(node.key)).verify(said, bytes.fromhex(str(data["signature"])))
    assert set(node.reports_by_key()) == {key_id(public_key(old)), key_id(public_key(node.key))}
    assert node.server.alerts == []
    assert _is_one_chain(node.server)


def test_a_key_is_changed_again_and_again(node: Rotating) -> None:
    for _ in range(3):
        node.run(2)
        assert node.rotate()
    node.run(2)
    assert len(node.reports_by_key()) == 4
    assert _is_one_chain(node.server)


def test_a_bearer_key_is_taken_only_where_it_is_sealed_for_the_nodes_own_key(
    node: Rotating,
) -> None:
    node.run(2)
    before, other = node.node_key, SigningKey(b"x" * 32)
    node.state.keep_node_key(before)
    for_other = SealedBox(other.verify_key.to_curve25519_public_key())
    node.server.sealed_key = for_other.encrypt(b"of_another").hex()
    node.rotate()
    assert node.node_key == before, "what it cannot open is no key"
    node.server.sealed_key = None
    node.run(2)
    assert node.node_key == node.server.node_key != before
    assert unsealed(node.key, node.server.sealed()) == node.server.node_key
    assert unsealed(other, node.server.sealed()) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_who_changes_the_key_first_leaves_no_file_of_roots(tmp_path: Path) -> None:
    """The service has an account of its own, and could open neither lock nor spool of root's."""
    folder = StateFolder(tmp_path / "node")
    folder.path.mkdir(mode=0o700)
    nobody = 65_534
    os.chown(folder.path, nobody, nobody)
    with only_one(folder), closing(Spool(folder.spool, NODE, SigningKey(b"k" * 32))):
        found = sorted(folder.path.iterdir())
        assert {"agent.lock", "spool.db", "spool.db-wal"} <= {one.name for one in found}
        assert {one.stat().st_uid for one in found} == {nobody}


def test_without_the_server_nothing_is_changed(node: Rotating) -> None:
    node.run(2)
    node.wire.down = True
    before = node.key
    with pytest.raises(RotationRefused):
        node.rotate()
    assert load_key(node.state.signing_key) == before
    node.wire.down = False
    node.start()
    node.run(2)
    assert node.server.alerts == []


def test_a_server_that_was_not_told_is_told_before_the_first_report_of_the_new_key(
    node: Rotating,
) -> None:
    node.run(2)
    node.reporter.stop()
    node.reporter.close()
    _cut_off(node, keeps_next_file=False)
    node.start()
    node.run(2)
    assert node.server.alerts == []
    assert len(node.reports_by_key()) == 2


def test_a_crash_before_the_file_is_replaced_is_made_good_at_the_next_start(node: Rotating) -> None:
    node.run(2)
    node.reporter.stop()
    node.reporter.close()
    _cut_off(node, keeps_next_file=True)
    new = load_key(node.state.next_key)
    assert node.settings().signing_key == new
    assert not node.state.next_key.exists()
    node.key = new
    node.start()
    node.run(2)
    assert node.server.alerts == []


def test_a_crash_before_the_spool_changed_hands_leaves_the_old_key_in_office(
    node: Rotating,
) -> None:
    node.run(2)
    prepared = make_key(node.state.next_key)
    node.crash()
    assert node.settings().signing_key == node.key
    node.run(2)
    assert node.rotate()
    assert node.key == prepared


def test_a_key_is_changed_twice_before_the_server_gets_a_report(node: Rotating) -> None:
    """A change that the server did not hear of, and another one: told of the first again, the
    server refused it, and the node stopped for good.
    """
    node.run(2)
    node.reporter.stop()
    node.reporter.close()
    _cut_off(node, keeps_next_file=False)
    node.key, is_told = rotation.rotate(node.state, node.settings(), node.wire, node.clock)
    assert is_told
    node.node_key = node.state.node_key.read_text()
    node.start()
    node.run(2)
    assert node.server.alerts == []
    assert len(node.server.rotations) == 2
    assert _is_one_chain(node.server)


def test_a_server_that_forgot_the_change_is_told_again_and_gets_old_reports_under_the_old_key(
    node: Rotating,
) -> None:
    """A server restored from a backup of before the change; three reports are the old key's."""
    node.run(3)
    node.rotate()
    node.run(2)
    known = list(node.server.bodies)
    node.server.bodies, node.server.rotations = node.server.bodies[:1], []
    node.crash()
    node.run(2)
    assert node.server.bodies[: len(known)] == known
    assert node.server.alerts == []


def test_a_server_that_refuses_the_new_key_stops_the_node(node: Rotating) -> None:
    node.run(2)
    node.reporter.stop()
    node.reporter.close()
    _cut_off(node, keeps_next_file=False)
    node.server.rotations.append(
        {"public_key": "ab" * 32, "from_seq": node.server.seq + 1, "previous_key_id": "0" * 16}
    )
    node.start()
    with pytest.raises(Stopped, match="refuses this node's new key"):
        node.run(2)


def test_the_spool_of_another_key_is_not_taken_over(node: Rotating) -> None:
    node.run(1)
    node.reporter.close()
    make_key(node.state.next_key)
    settings = replace(node.settings(), signing_key=SigningKey.generate())
    with pytest.raises(Exception, match="this spool is of"):
        rotation.rotate(node.state, settings, node.wire, node.clock)


def _cut_off(node: Rotating, *, keeps_next_file: bool) -> None:
    """Change hands on the disk as `rotate` does, and die before the server hears of it."""
    new = make_key(node.state.next_key)
    spool = Spool(node.folder / "spool.db", NODE, node.key)
    spool.hand_on(new)
    spool.close()
    if not keeps_next_file:
        node.state.next_key.replace(node.state.signing_key)
        node.key = new


def _introduces(one: report.Report) -> bool:
    return any(event.type == "key.rotated" for event in one.events)


def _is_one_chain(server: ModelServer) -> bool:
    prev = report.genesis(NODE, server.public_key)
    for body in server.bodies:
        if report.parse(body).prev != prev.hex():
            return False
        prev = report.report_hash(body)
    return True
