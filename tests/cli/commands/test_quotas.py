"""`tallystick region quotas | report-quotas` against a server that really runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_remote import Server, server

__all__ = ["server"]

VECTORS = Path(__file__).parents[2] / "vectors" / "cloud_quota.json"
CASES = [
    case for case in json.loads(VECTORS.read_text())["cases"] if "refused" not in case["expect"]
]
NONE = ("--cpus", "0/0", "--local-ssd", "0/0")


def _region(server: Server, kind: str) -> tuple[str, str]:
    _, key = server.account()
    provider = server.run(
        "provider", "register", "--kind", kind, "--payment-mode", "credits", "--json", key=key
    ).document
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


pytestmark = pytest.mark.timeout(300)
