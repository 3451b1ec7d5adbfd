"""`tallystick meter | device | storage` against a server that really runs."""

from __future__ import annotations

from tests.cli.test_remote import Server, server

__all__ = ["server"]


def test_what_is_metered_beside_gpus_is_charged_and_shown(server: Server) -> None:
    """R-7, C-22, C-30 by the command line."""
    account, key = server.account()
    provider = server.run(
        "provider", "register", "--payment-mode", "credits", "--json", key=key
    ).document["provider_id"]
    opening = ("region", "open", provider, "--name", "lab", "--storage", "central", "--json")
    region = server.run(*opening, "--site", "Hall 2", key=key).document["region_id"]
    assert server.run("region", "show", region, "--json", key=key).document["site"] == "Hall 2"
    poor = server.run("device", "add", region, "jetson-orin-nano", key=key)
    assert (poor.code, "positive balance" in poor.err) == (1, True)
    server.run("account", "deposit", account, "25", "--reference", "wire")
    added = server.run("device", "add", region, "jetson-orin-nano", "--json", key=key).document
    active = server.run("device", "report", added["device_id"], "--json", key=key).document
    assert active["state"] == "active"
    gone = server.run("device", "remove", added["device_id"], "--json", key=key).document
    assert gone["last_day"] >= added["first_day"]
    listed = server.run("device", "list", "--json", key=key).document["data"]
    assert [one["device_id"] for one in listed] == [added["device_id"]]

    made = server.run("storage", "provision", region, "pd-ssd", "--json", key=key).document
    assert made["state"] == "provisioned"
    active = server.run("storage", "ready", region, "--json", key=key).document
    assert active["state"] == "active"
    replaced = server.run("storage", "replace", region, "pd-hdd", "--json", key=key).document
    assert (replaced["sequence"], replaced["state"]) == (2, "provisioned")
    assert server.run("storage", "remove", region, "--json", key=key).document["state"] == "none"
    shown = server.run("storage", "show", region, "--json", key=key).document
    assert [one["storage_class"] for one in shown["storage_nodes"]] == ["pd-hdd", "pd-ssd"]

    used = server.run("meter", "used", "--by", "node_id", "--as-provider", "--json", key=key)
    assert used.document["data"] == []
    for command in ("show", "list", "transfers"):
        refused = server.run("meter", command, "lease_nowhere", key=key)
        assert refused.code == 1, refused.err
    assert server.run("meter", "charges", "lease_nowhere", "network", key=key).code == 1
    assert server.run("meter", "charges", "lease_nowhere", "power", key=key).code == 2
