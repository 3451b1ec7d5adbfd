"""`tallystick volume | dataset` against a server that really runs, under production's settings."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tests.cli.test_remote import Server, answering, server
from tests.scenes.server import Scene

__all__ = ["server"]


@pytest.fixture
def market(scene: Scene) -> Generator[tuple[Scene, Server]]:
    """One in which machines have joined, under production's settings."""
    assert scene.service.settings.environment == "production"
    with answering(scene.service, scene.operator.key or "", is_started=True) as found:
        yield scene, found


def region_of(server: Server, key: str) -> str:
    """A region of the key's account that others may use."""
    provider = server.run("provider", "register", "--payment-mode", "credits", "--json", key=key)
    opening = ("region", "open", provider.document["provider_id"], "--name", "lab", "--json")
    told = server.run(*opening, key=key).document
    region_id: str = told["region_id"]
    return region_id


def test_r_20_a_volume_is_created_attached_listed_shown_and_deleted(
    market: tuple[Scene, Server],
) -> None:
    scene, server = market
    owner, region = scene.owner.key, scene.provider.region_id
    account, key = server.account()
    empty = server.run("volume", "create", scene.region("empty"), "1", "x", key=key)
    assert (empty.code, "No machine that runs jobs has joined" in empty.err) == (1, True), empty.err
    creating = ("volume", "create", region, "100", "checkpoints")
    poor = server.run(*creating, key=key)
    assert (poor.code, "credit" in poor.err) == (1, True), poor.err
    server.run("account", "deposit", account, "25", "--reference", "wire")

    made = server.run(*creating, "--json", key=key).document
    volume = made["volume_id"]
    assert (made["state"], made["size_gib"], made["region_id"]) == ("detached", 100, region)
    own = server.run("volume", "create", region, "1", "p", "--project", "p", "--json", key=key)
    assert own.document["project_id"] == "p"
    listed = server.run("volume", "list", "--json", key=key).document["data"]
    assert [one["volume_id"] for one in listed] == [own.document["volume_id"], volume]
    assert volume in server.run("volume", "list", key=key).out

    submit = ("job", "submit", "--command", "true", "--max-price", "3", "--json")
    job_id = server.run(*submit, key=key).document["job_id"]
    attach = ("volume", "attach", volume, job_id, "--path", "/vol/in", "--read-only", "--json")
    mounted = server.run(*attach, key=key).document["volumes"]
    assert mounted == [{"volume_id": volume, "path": "/vol/in", "read_only": True}]
    wrong = server.run("volume", "attach", volume, job_id, "--path", "/etc", key=key)
    assert (wrong.code, "/vol/" in wrong.err) == (1, True), wrong.err
    other = server.run("volume", "attach", own.document["volume_id"], job_id, key=key)
    assert (other.code, "project" in other.err) == (1, True), other.err
    gone = server.run("volume", "detach", volume, job_id, "--json", key=key).document
    assert gone["volumes"] == []

    shown = server.run("volume", "show", volume, "--json", key=key).document
    assert (shown["state"], shown["attachments"]) == ("detached", [])
    assert volume in server.run("volume", "show", volume, key=key).out
    foreign = server.run("volume", "show", volume, key=owner)
    assert foreign.code == 1, "another account's volume is not there"
    deleted = server.run("volume", "delete", volume, "--json", key=key).document
    assert (deleted["deleted_because"], deleted["reserve"]["units"]) == ("owner", "0")
    again = server.run("volume", "delete", volume, "--json", key=key).document
    assert again["charge"] == deleted["charge"], "twice is once"
    nowhere = server.run("volume", "erased", "node_" + "0" * 32, volume, key=owner)
    assert (nowhere.code, "node" in nowhere.err) == (1, True), nowhere.err


def test_r_24_a_dataset_is_placed_moved_listed_and_removed(server: Server) -> None:
    _, owner = server.account()
    region = region_of(server, owner)
    _, key = server.account()
    name = "s3://corpus/v3"
    placed = server.run("dataset", "place", name, region, "--json", key=key).document
    assert (placed["region_ids"], placed["pinned"]) == ([region], False)
    moved = server.run("dataset", "place", name, region, "--pinned", "--json", key=key).document
    assert (moved["dataset_id"], moved["pinned"]) == (placed["dataset_id"], True)

    def listed() -> list[dict[str, Any]]:
        told = server.run("dataset", "list", "--json", key=key).document["data"]
        assert isinstance(told, list)
        return told

    assert [one["name"] for one in listed()] == [name]
    nowhere = server.run("dataset", "place", name, "region_" + "0" * 32, key=key)
    assert (nowhere.code, "region" in nowhere.err) == (1, True)
    assert server.run("dataset", "remove", placed["dataset_id"], key=key).code == 0
    assert listed() == []
