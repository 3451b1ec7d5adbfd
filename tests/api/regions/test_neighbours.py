"""Whether the nodes of a region reach each other on private addresses, over HTTP (C-3).

Real reporters answer and try over TCP; loopback stands for the private network of a site. The
market is a production one.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Generator
from ipaddress import IPv4Network
from typing import Any

import pytest

from domain.duration import DAY_US, HOUR_US
from domain.regions import neighbour_proofs as rule
from domain.regions.neighbours import CHANGED_EVERY_US
from node_reporter.reports.neighbours import Answers
from node_reporter.reports.reach import Reach
from tests.journeys.test_reporter_wire import Door
from tests.scenes.server import Provider, Scene


class Machine:
    """A node of the first provider's region, with the reporter that answers and tries."""

    def __init__(self, scene: Scene, provider: Provider) -> None:
        self.scene, self.provider = scene, provider
        self.node_id = provider.node_id
        self.answers = Answers(self.node_id, provider.signing.key, scene.clock.now_us)
        self.answers.open(["127.0.0.1"], 0)
        self.reach = Reach(
            self.node_id,
            provider.signing.key,
            provider.node.key or "",
            "https://tally.example",
            Door(scene.http),
            dial=lambda _host, _port: 500,
            answers=self.answers,
        )

    def tells(self) -> None:
        """A round of its reporter, later than the last one."""
        clock: Any = self.scene.clock
        clock.advance(CHANGED_EVERY_US)
        self.reach.round(clock.now_us())

    def told(self) -> dict[str, Any]:
        return self.scene.owner.read(f"/v1/nodes/{self.node_id}/neighbours")


def waiting(scene: Scene) -> Provider:
    """Another machine of the same region whose key is confirmed: it waits for its admission."""
    found = copy.copy(scene.provider)
    found.ask(scene, "second", "NVIDIA A100-SXM4-80GB")
    found.owner.made(f"/v1/nodes/{found.node_id}/confirm", {"key_id": found.signing.key_id})
    return found


def admitted(scene: Scene, provider: Provider) -> None:
    scene.operator.made(f"/v1/nodes/{provider.node_id}/admit")
    provider.owner.made(f"/v1/nodes/{provider.node_id}/activate")
    provider.offer(2_000_000)


@pytest.fixture
def site(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Generator[list[Machine]]:
    """Two machines of one region: one at work, one that waits for its admission."""
    monkeypatch.setattr(rule, "PRIVATE", (*rule.PRIVATE, IPv4Network("127.0.0.0/8")))
    found = [Machine(scene, scene.provider), Machine(scene, waiting(scene))]
    yield found
    for one in found:
        one.answers.close()


def verdict(scene: Scene) -> dict[str, Any]:
    return scene.owner.read(f"/v1/regions/{scene.provider.region_id}/neighbours")


def assert_alike(scene: Scene, site: list[Machine]) -> None:
    """What the condition of a node asks of its own pairs alone is what all pairs say."""
    for one in site:
        condition = scene.operator.read(f"/v1/nodes/{one.node_id}/condition")
        assert condition["private_network"] == one.told()["verdict"]


def test_c_3_the_verdict_of_a_node_is_known_at_its_admission_and_that_of_its_region_after(
    scene: Scene, site: list[Machine]
) -> None:
    first, second = site
    assert verdict(scene)["verdict"] == "single", "one node is admitted"
    condition = f"/v1/nodes/{second.node_id}/condition"
    assert scene.operator.read(condition)["private_network"] == "unknown"
    for one in (first, second, first, second):
        one.tells()
    assert_alike(scene, site)
    assert scene.operator.read(condition)["private_network"] == "connected"
    told = second.told()
    assert (told["verdict"], told["reached"]) == ("connected", [first.node_id])
    assert told["addresses"] == second.answers.addresses
    admitted(scene, second.provider)
    found = verdict(scene)
    assert found["verdict"] == "connected"
    assert [(one["verdict"], one["reached"]) for one in found["data"]] == [("connected", 1)] * 2
    assert_alike(scene, site)
    for who in (scene.operator, scene.auditor):
        assert who.read(f"/v1/regions/{scene.provider.region_id}/neighbours") == found
    rival = f"/v1/regions/{scene.other.region_id}/neighbours"
    assert scene.owner.get(rival).status_code == 404
    clock: Any = scene.clock
    clock.advance(DAY_US)
    assert verdict(scene)["verdict"] == "unknown", "what was tried a day ago is not known now"


def test_a_gang_has_no_two_members_on_nodes_that_do_not_reach_each_other(
    scene: Scene, site: list[Machine]
) -> None:
    """C-3: the verdict is minded. Two nodes with two GPUs each: a gang of four needs both."""
    first, second = site
    for one in (first, second, first):
        one.tells()
    admitted(scene, second.provider)
    job = scene.job(constraints={"regions": [scene.provider.region_id]})
    asked = {"job": job, "members": 4}
    second.answers.key = scene.other.signing.key  # another machine answers in its place
    first.tells()
    assert first.told()["missed"] == [second.node_id]
    assert second.told()["missed"] == [first.node_id]
    assert_alike(scene, site)
    assert verdict(scene)["verdict"] == "disconnected"
    refused = scene.renter.post("/v1/gangs", asked)
    assert (refused.status_code, refused.json()["code"]) == (409, "no_match"), refused.text
    gang = scene.renter.made("/v1/gangs", {**asked, "members": 2})
    leases = scene.renter.read("/v1/leases", job_id=gang["job_id"])["data"]
    assert len({one["node_id"] for one in leases}) == 1
    scene.renter.made(f"/v1/gangs/{gang['gang_id']}/cancel")
    second.answers.key = second.provider.signing.key
    for one in (first, second):
        one.tells()
    assert verdict(scene)["verdict"] == "connected"
    gang = scene.renter.made("/v1/gangs", asked)
    leases = scene.renter.read("/v1/leases", job_id=gang["job_id"])["data"]
    assert {one["node_id"] for one in leases} == {first.node_id, second.node_id}


def test_nobody_claims_a_neighbour_that_did_not_sign_nor_tells_for_another_node(
    scene: Scene, site: list[Machine]
) -> None:
    first, second = site
    admitted(scene, second.provider)
    second.tells()
    now_us = scene.clock.now_us()
    path = f"/v1/nodes/{first.node_id}/neighbours"
    peer = second.node_id

    def post(proof: str, *, key: Any = first.provider.signing.key, caller: Any = None) -> Any:
        tried = [rule.Tried(peer, proof)]
        text = rule.statement(first.node_id, now_us, [], tried)
        told = {"node_id": peer, **({"proof": proof} if proof else {})}
        body = {"challenge": str(now_us), "addresses": [], "tried": [told]}
        return (caller or first.provider.node).post(
            path, body, **{"Node-Signature": base64.b64encode(key.sign(text).signature).decode()}
        )

    theirs = second.provider.signing.key
    good = theirs.sign(rule.answer_text(now_us, first.node_id, peer)).signature.hex()
    mine = first.provider.signing.key
    forged = mine.sign(rule.answer_text(now_us, first.node_id, peer)).signature.hex()
    of_another = theirs.sign(rule.answer_text(now_us, peer, peer)).signature.hex()
    stale = theirs.sign(rule.answer_text(now_us - HOUR_US, first.node_id, peer)).signature.hex()
    for proof in (forged, of_another, stale, "00" * 64):
        assert post(proof).json()["code"] == "bad_signature"
    assert post(good, key=theirs).json()["code"] == "bad_signature"
    assert post(good, caller=second.provider.node).status_code == 404
    before = scene.head()
    assert post(good).status_code == 200
    assert scene.head() == before + 1
    assert first.told()["verdict"] == "unknown", "the other has not reached it yet"


def test_a_region_of_a_cloud_is_not_asked(scene: Scene, site: list[Machine]) -> None:
    """C-3: the private addresses are between physical machines of one region."""
    del site
    model = "NVIDIA A100-SXM4-80GB"
    scene.deposit(scene.owner, 50_000_000)
    cloud = Provider(scene, scene.owner, "clouds", model, 9_000_000, kind="gcp")
    node = f"/v1/nodes/{cloud.node_id}"
    assert "neighbours" not in cloud.node.read(f"{node}/targets")
    machine = Machine(scene, cloud)
    machine.tells()
    machine.answers.close()
    assert "verdict" not in cloud.owner.read(f"{node}/neighbours")
    told = cloud.owner.read(f"/v1/regions/{cloud.region_id}/neighbours")
    assert "verdict" not in told
    assert told["data"] == []
    now_us = scene.clock.now_us()
    text = rule.statement(cloud.node_id, now_us, [], [])
    signature = base64.b64encode(cloud.signing.key.sign(text).signature).decode()
    body = {"challenge": str(now_us), "addresses": [], "tried": []}
    refused = cloud.node.post(f"{node}/neighbours", body, **{"Node-Signature": signature})
    assert (refused.status_code, refused.json()["code"]) == (409, "region_not_suited")
