"""`tallystick meter | device | storage` against a server that really runs."""

from __future__ import annotations

import json
from pathlib import Path

from api.door.moments import moment
from api.metering.meter_events import TYPE
from tests.cli.test_remote import Server, server

__all__ = ["server"]


def test_what_is_metered_beside_gpus_is_sent_charged_and_shown(
    server: Server, tmp_path: Path
) -> None:
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

    now_us = server.service.clock.now_us()
    event = {
        "specversion": "1.0",
        "id": "one",
        "source": "/meter/1",
        "type": TYPE,
        "subject": "lease_nowhere",
        "time": moment(now_us),
        "data": {
            "meter": "cpu",
            "quantity": "4",
            "unit": "core-second",
            "from": moment(now_us - 1_000_000),
            "to": moment(now_us),
        },
    }
    file = tmp_path / "events.json"
    file.write_text(json.dumps(event))
    assert server.run("meter", "send", file, "--json", key=key).document["accepted"] == 1
    file.write_text(json.dumps([event, {**event, "id": "two"}]))
    again = server.run("meter", "send", file, "--json", key=key)
    assert (again.code, again.document["duplicate"]) == (1, 1)
    assert [one["code"] for one in again.document["rejected"]] == ["window_overlaps"]
    assert "1 of 2 events are refused" in again.err
    unmatched = server.run("meter", "unmatched", "--json", key=key).document["data"]
    assert [one["reason"] for one in unmatched] == ["lease_unknown"]
    assert "lease_unknown" in server.run("meter", "list", key=key).out
    assert server.run("meter", "show", "lease_nowhere", key=key).code == 1
    assert server.run("meter", "send", tmp_path / "no.json", key=key).code == 2
    file.write_text("[]")
    assert server.run("meter", "send", file, key=key).code == 2
