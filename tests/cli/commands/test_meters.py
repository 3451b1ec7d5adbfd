"""`tallystick meter | device | storage` against a server that really runs."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_remote import Server, server

__all__ = ["server"]


def _runs_one_model(server: Server, key: str, region: str, device: str, folder: Path) -> None:
    """C-34, C-35 by the command line: configured, deployed, run, exited, rebooted."""
    secrets = folder / "env"
    secrets.write_text("# of the camera\nPIN=4711=x\n")
    work = ["device", "configure", region, "counter", "--image", "counter:1"]
    work += ["--model", "models/counter", "--command", "python 'run it.py'"]
    work += ["--env-file", str(secrets), "--secret", "camera"]
    made = server.run(*work, "--json", key=key).document
    assert made["work"]["command"] == ["python", "run it.py"]
    assert (made["work"]["environment"], made["work"]["keys"]) == (["PIN"], ["camera"])
    again = server.run(*work, "--revision", "3", key=key)
    assert (again.code, "`tallystick device revisions`" in again.err) == (1, True)
    assert "counter" in server.run("device", "configs", "--region", region, key=key).out
    assert "models/counter" in server.run("device", "revisions", region, "counter", key=key).out
    deployed = server.run("device", "deploy", device, "counter", "--json", key=key).document
    assert (deployed["revision"], deployed["deployment"]) == (1, 1)
    boot = ("--boot", "3f0c9a52", "--json")
    run = server.run("device", "work", device, *boot, key=key).document["run"]
    assert run["environment"] == [{"name": "PIN", "value": "4711=x"}]
    told = ("device", "inference", device, "1")
    running = server.run(*told, "running", *boot, key=key).document
    exited = server.run(*told, "exited", "--exit-code", "3", *boot, key=key).document
    assert (running["inference"], exited["inference"]) == ("running", "exited")
    over = server.run("device", "work", device, "--boot", "3f0c9a52", key=key)
    assert "nothing to run in this boot" in over.out
    assert "run" in server.run("device", "work", device, "--json", key=key).document, "another boot"
    (listed,) = server.run("device", "list", "--json", key=key).document["data"]
    assert (listed["name"], listed["config"], listed["inference"]) == (
        "gate-1",
        "counter",
        "exited",
    )
    secrets.write_text("PIN\n")
    wrong = server.run(*work, "--revision", "2", key=key)
    assert (wrong.code, "line 1: write NAME=VALUE" in wrong.err, "PIN" in wrong.err) == (
        2,
        True,
        False,
    )


def test_what_is_metered_beside_gpus_is_charged_and_shown(server: Server, tmp_path: Path) -> None:
    """R-7, C-22, C-30 by the command line."""
    account, key = server.account()
    provider = server.run(
        "provider", "register", "--payment-mode", "credits", "--json", key=key
    ).document["provider_id"]
    opening = ("region", "open", provider, "--name", "lab", "--storage", "central", "--json")
    region = server.run(*opening, "--site", "Hall 2", key=key).document["region_id"]
    assert server.run("region", "show", region, "--json", key=key).document["site"] == "Hall 2"
    nano = ("device", "add", region, "jetson-orin-nano", "--name", "gate-1", "--minion", "m-1")
    poor = server.run(*nano, key=key)
    assert (poor.code, "positive balance" in poor.err) == (1, True)
    server.run("account", "deposit", account, "25", "--reference", "wire")
    added = server.run(*nano, "--json", key=key).document
    active = server.run("device", "report", added["device_id"], "--json", key=key).document
    assert active["state"] == "active"
    _runs_one_model(server, key, region, added["device_id"], tmp_path)
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
