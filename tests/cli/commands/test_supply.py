"""`tallystick kind | licence | maintenance | attribute | reputation`, `node drain | role` and
`region policy | settings | ingress` against a server that really runs.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from api.door.moments import moment
from domain.fleet.node import (
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    DeviceSpec,
    HostSpec,
    IssueJoinCode,
    JoinNode,
)
from tests.cli.test_remote import Server
from tests.cli.test_remote import development_server as server

__all__ = ["server"]

NODE = "node_" + "7" * 32
HOUR_US = 3_600_000_000


def _node(server: Server, provider_id: str, region_id: str) -> None:
    """A machine with one accelerator, from its join code to its first day of work."""
    now_us = server.service.clock.now_us()
    said: dict[str, Any] = {"by": "mem_owner", "at_us": now_us}
    device = DeviceSpec(device_id="AMD-1", vendor="amd", model="MI300X", memory_mib=196_608)
    commands = [
        IssueJoinCode(code_sha256="a" * 64, provider_id=provider_id, region_id=region_id, **said),
        JoinNode(
            code_sha256="a" * 64,
            node_id=NODE,
            key_id="0" * 16,
            public_key="ab" * 32,
            token_sha256="cd" * 32,
            agent="0.1.0",
            client_id=None,
            devices=(device,),
            host=HostSpec(arch="x86_64", os="linux"),
            at_us=now_us,
        ),
        ConfirmNodeKey(node_id=NODE, key_id="0" * 16, **said),
        AdmitNode(node_id=NODE, **said),
        ActivateNode(node_id=NODE, **said),
    ]
    server.service.ledger.handle(commands, key=None, now_us=now_us)


def _region(server: Server, key: str) -> tuple[str, str]:
    provider = server.run(
        "provider", "register", "--payment-mode", "credits", "--json", key=key
    ).document["provider_id"]
    opened = server.run(
        "region", "open", provider, "--name", "homes", "--setting", "edge", "--json", key=key
    )
    return provider, opened.document["region_id"]


def test_a_node_is_announced_drained_and_given_a_role_from_the_shell(server: Server) -> None:
    _, key = server.account()
    provider, region = _region(server, key)
    _node(server, provider, region)
    now_us = server.service.clock.now_us()
    from_, until = moment(now_us + HOUR_US), moment(now_us + 2 * HOUR_US)
    planned = server.run(
        "maintenance",
        "schedule",
        NODE,
        "--from",
        from_,
        "--until",
        until,
        "--keep-leases",
        "--json",
        key=key,
    ).document
    assert (planned["status"], planned["keep_leases"]) == ("scheduled", True)
    assert (planned["from"], planned["until"]) == (from_, until)
    listed = server.run("maintenance", "list", NODE, key=key).out
    assert planned["maintenance_id"] in listed
    assert from_ in listed
    cancelled = server.run(
        "maintenance", "cancel", NODE, planned["maintenance_id"], "--json", key=key
    )
    assert cancelled.document["status"] == "cancelled"
    far = moment(now_us + 40 * 24 * HOUR_US)
    long = server.run("maintenance", "schedule", NODE, "--from", from_, "--until", far, key=key)
    assert long.code == 1
    assert server.run("node", "role", NODE, "ingress", "--json", key=key).document["role"] == (
        "ingress"
    )
    (load,) = server.run("region", "ingress", region, "--json", key=key).document["data"]
    assert (load["node_id"], load["workers"]) == (NODE, 0)
    assert server.run("node", "drain", NODE, "--json", key=key).document["phase"] == "draining"


def test_owners_share_a_node_and_one_leaves_without_the_provider(server: Server) -> None:
    """E-M8 at the command line."""
    _, key = server.account()
    (boris, of_boris), (cleo, _) = server.account(), server.account()
    provider, region = _region(server, key)
    _node(server, provider, region)
    shares = (f"{boris}=0.25", f"{cleo}=0.05")
    assert server.run("node", "set-owners", NODE, *shares, key=key).code == 0
    shown = server.run("node", "owners", NODE, "--json", key=key).document
    assert [one["share_ppm"] for one in shown["shares"]] == [250_000, 50_000]
    assert shown["provider_ppm"] == 700_000
    assert server.run("node", "leave-owners", NODE, key=of_boris).code == 0
    assert server.run("node", "leave-owners", NODE, key=of_boris).code == 1, "once"
    left = server.run("node", "owners", NODE, key=key).out
    assert (boris in left, cleo in left, "0.95" in left) == (False, True, True)
    assert server.run("node", "set-owners", NODE, f"{cleo}=2", key=key).code == 2
    assert server.run("node", "set-owners", NODE, "--json", key=key).document["shares"] == []


def test_a_node_says_its_verdict_its_tiers_and_what_earned_nothing(server: Server) -> None:
    _, key = server.account()
    provider, region = _region(server, key)
    _node(server, provider, region)
    shown = server.run("node", "show", NODE, key=key).out
    assert "failing_rules" in shown
    waived = next(line for line in shown.splitlines() if line.startswith("rules_waived_here"))
    assert ", ram," in waived, "the region was opened in development"
    assert waived.endswith("(nothing to do)")
    told = server.run("node", "trust", NODE, "--json", key=key).document
    assert (told["node_id"], told["devices"]) == (NODE, [])
    assert server.run("node", "trust", NODE, key=key).out == "epoch: 1\n"
    missing = server.run("node", "trust", NODE, "--epoch", "9", key=key)
    assert missing.code == 1
    usage = server.run("node", "usage", NODE, key=key).out
    assert usage.startswith("0 reports, 0 of them earn nothing")


def test_a_region_says_what_it_refuses_and_what_its_setting_is_worth(server: Server) -> None:
    _, key = server.account()
    _, region = _region(server, key)
    told = server.run(
        "region",
        "policy",
        region,
        "--refuse",
        "ip_lease",
        "--refuse",
        "large_storage",
        "--security-tier",
        "2",
        "--json",
        key=key,
    ).document
    assert (told["refused_workloads"], told["security_tier"]) == (["ip_lease", "large_storage"], 2)
    shown = server.run("region", "show", region, "--json", key=key).document
    assert (shown["setting"], shown["down_ranked_workloads"]) == ("edge", ["large_storage"])
    set_ = server.run(
        "region",
        "set-terms",
        region,
        "--version",
        "1",
        "--from",
        "2030-01-01",
        "--participation",
        "0.2",
        "--control",
        "3",
        "--most",
        "20",
        "--json",
        key=key,
    ).document
    terms = server.run("region", "terms", region, "--json", key=key).document
    assert terms["versions"] == set_["versions"]
    assert terms["versions"][0]["infra"]["control"]["units"] == "3000000"
    assert "2030-01-01" in server.run("region", "terms", region, key=key).out
    assert server.run("region", "shares", region, "--json", key=key).document["data"] == []
    days = server.run("region", "shares", region, "--day", "2030-01-01", "--json", key=key)
    assert days.document["data"] == []
    rows = server.run("region", "settings", "--json", key=key).document["data"]
    assert [row["setting"] for row in rows] == ["edge", "datacenter"]


def test_kinds_licences_statements_and_reputation_from_the_shell(
    server: Server, tmp_path: Path
) -> None:
    _, key = server.account()
    lab, lab_key = server.account()
    provider, region = _region(server, key)
    _node(server, provider, region)
    kinds = server.run("kind", "list", "--json", key=key).document["data"]
    assert {"nvidia", "amd", "apple", "thirdai"} <= {row["vendor"] for row in kinds}
    later = moment(server.service.clock.now_us() + HOUR_US)
    file = tmp_path / "npu.json"
    file.write_text(
        '{"kind": "npu", "vendor": "acme", "dimensions": ["compute", "memory"], "memory":'
        f' "dedicated", "divisible": false, "capacity_asset": "GPU_MS", "effective_from": "{later}"'
        "}"
    )
    assert server.run("kind", "register", file, "--json").document["vendor"] == "acme"
    classed = server.run(
        "kind", "class", "acme", "Acme One", "accelerator", "--from", later, "--json"
    )
    assert classed.document["gpu_class"] == "accelerator"

    paper = tmp_path / "licence.txt"
    paper.write_text("three seats")
    granted = server.run(
        "licence",
        "grant",
        provider,
        "thirdai",
        "ThirdAI Bolt",
        "--seats",
        "3",
        "--terms",
        paper,
        "--from",
        moment(server.service.clock.now_us()),
        "--json",
        key=key,
    ).document
    assert granted["terms_sha256"] == hashlib.sha256(b"three seats").hexdigest()
    assert granted["licence_id"] in server.run("licence", "list", key=key).out
    revoked = server.run("licence", "revoke", granted["licence_id"], "--json", key=key)
    assert revoked.document["revoked"]

    secret = tmp_path / "lab.key"
    server.run("account", "signing-key", lab, "--key-file", secret, key=lab_key)
    since = moment(server.service.clock.now_us() - HOUR_US)
    stated = server.run(
        "attribute",
        "sign",
        NODE,
        "location",
        "DE-BE",
        "--account",
        lab,
        "--key-file",
        secret,
        "--stated-at",
        since,
        "--json",
        key=lab_key,
    ).document
    assert (stated["valid"], stated["value"]) == (True, "DE-BE")
    assert "DE-BE" in server.run("attribute", "list", "--subject", NODE, key=key).out
    taken = server.run("attribute", "revoke", stated["statement_id"], "--json", key=lab_key)
    assert taken.document["revoked"]

    told = server.run("reputation", "show", "node", NODE, "--json", key=key).document
    assert (told["score_ppm"], told["provisional"]) == (540_768, True)
