"""`tallystick region quotas | report-quotas` against a server that really runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_remote import Server, server
from tests.scenes.server import CLOUD_ACCOUNT

__all__ = ["server"]

VECTORS = Path(__file__).parents[2] / "vectors" / "cloud_quota.json"
CASES = [
    case for case in json.loads(VECTORS.read_text())["cases"] if "refused" not in case["expect"]
]
SET_UP = (
    *("--project", CLOUD_ACCOUNT["project_id"], "--made-on", CLOUD_ACCOUNT["project_made_on"]),
    *(word for step in CLOUD_ACCOUNT["done"] for word in ("--done", step)),
)
NONE = ("--cpus", "0/0", "--local-ssd", "0/0")


def _region(server: Server, kind: str) -> tuple[str, str]:
    _, key = server.account()
    provider = server.run(
        "provider", "register", "--kind", kind, "--payment-mode", "credits", "--json", key=key
    ).document
    if kind == "gcp":
        server.run("cloud", "report", provider["provider_id"], *SET_UP, key=key)
    opened = server.run(
        *("region", "open", provider["provider_id"], "--name", "iowa", "--json"),
        *(("--storage", "central", "--cloud-region", "us-central1") if kind == "gcp" else ()),
        key=key,
    )
    return opened.document["region_id"], key


def _of(quota: dict[str, int]) -> str:
    return f"{quota['used']}/{quota['limit']}"


def test_quotas_are_shown_as_limit_and_used_with_the_jobs_that_can_start(server: Server) -> None:
    region, key = _region(server, "gcp")
    shown = server.run("region", "quotas", region, "--json", key=key).document
    assert (shown["gpus"], "cpus" in shown) == ([], False), "nothing was reported yet"
    for case in CASES:
        told = case["input"]
        quotas = ("--cpus", _of(told["cpus"]), "--local-ssd", _of(told["local_ssd_gb"]))
        gpu = f"{told['gpu']}={_of(told['gpus'])}"
        server.run("region", "report-quotas", region, "--gpu", gpu, *quotas, key=key)
        shown = server.run("region", "quotas", region, "--json", key=key).document
        (row,) = shown["gpus"]
        assert {name: row[name] for name in case["expect"]} == case["expect"], case["name"]
        assert (row["limit"], row["used"]) == (told["gpus"]["limit"], told["gpus"]["used"])
        assert shown["cpus"]["limit"] == told["cpus"]["limit"]
        assert shown["local_ssd_gb"]["used"] == told["local_ssd_gb"]["used"]
    table = server.run("region", "quotas", region, key=key).out
    assert "V100  0     2      2              gpus, cpus, local_ssd" in table
    assert "0 of 16" in table


def test_a_quota_without_its_limit_and_one_of_an_unknown_gpu_are_told(server: Server) -> None:
    region, key = _region(server, "gcp")
    for gpu, said in (("V100=8", "USED/LIMIT"), ("H100=0/8", "gpu")):
        refused = server.run("region", "report-quotas", region, "--gpu", gpu, *NONE, key=key)
        assert refused.code, refused.out
        assert said in refused.err
    twice = server.run(
        "region", "report-quotas", region, *("--gpu", "T4=0/1", "--gpu", "T4=0/1"), *NONE, key=key
    )
    assert twice.code
    assert not server.run("region", "quotas", region, "--json", key=key).document["gpus"]


def test_machines_of_ones_own_have_no_quotas_and_a_stranger_sees_none(server: Server) -> None:
    region, key = _region(server, "physical")
    refused = server.run("region", "report-quotas", region, *NONE, key=key)
    assert "no cloud limits it" in refused.err
    _, stranger = server.account()
    for name, more in (("quotas", ()), ("report-quotas", NONE)):
        hidden = server.run("region", name, region, *more, key=stranger)
        assert hidden.code, "the region of another account"


def test_the_checklist_of_a_cloud_provider_is_reported_and_shown(server: Server) -> None:
    """C-27 by the command: what is missing, the token creator of an old project, no key file."""
    _, key = server.account()
    register = ("provider", "register", "--kind", "gcp", "--payment-mode", "credits", "--json")
    provider = server.run(*register, key=key).document
    name = provider["provider_id"]
    shown = server.run("cloud", "checklist", name, key=key).out
    assert "ready  no" in shown
    assert "missing   paid_billing" in shown
    opening = (
        *("region", "open", name, "--name", "iowa"),
        *("--storage", "central", "--cloud-region", "us-central1"),
    )
    old = ("--project", "render-farm-7", "--made-on", "2021-04-07")
    done = [word for step in CLOUD_ACCOUNT["done"] for word in ("--done", step)]
    email = "market@render-farm-7.iam.gserviceaccount.com"
    report = ("cloud", "report", name, *old, "--json", "--service-account", email)
    told = server.run(*report, *done, key=key).document
    assert [one["step"] for one in told["steps"] if one["required"] and not one["done"]] == [
        "token_creator"
    ]
    refused = server.run(*opening, key=key)
    assert "token_creator is missing" in refused.err
    assert server.run(*report, *done, "--done", "token_creator", key=key).document["ready"]
    shown = server.run("cloud", "checklist", name, key=key).out
    assert email in shown
    assert "yes" in shown.splitlines()[0]
    assert server.run(*opening, "--json", key=key).document
    regions = server.run("cloud", "regions", "--json", key=key).document["data"]
    assert len(regions) == 10


pytestmark = pytest.mark.timeout(300)
