"""`tallystick policy`: the lint without a server, and proposals with one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tallystick_client import Client
from tests.cli.test_remote import Server, server
from tests.scenes.shell import tallystick

__all__ = ["server"]

POLICIES = Path(__file__).parents[2] / "policies"


def test_a_proposal_is_linted_without_a_server_and_exit_1_says_that_it_fails(
    tmp_path: Path,
) -> None:
    good = tallystick("policy", "lint", POLICIES / "clean.toml", "--json")
    assert (good.code, good.document["passes"], good.document["findings"]) == (0, True, [])
    bad = tallystick("policy", "lint", POLICIES / "rnp_019.toml", "--json")
    assert (bad.code, bad.document["passes"], bad.document["errors"]) == (1, False, 2)
    shown = tallystick("policy", "lint", POLICIES / "rnp_019.toml")
    assert shown.code == 1
    assert "970000 ppm, not 1000000" in shown.out
    assert shown.out.endswith("fails: 2 errors, 0 warnings\n")
    as_json = tmp_path / "rnp_019.json"
    text = (POLICIES / "rnp_019.toml").read_text(encoding="utf-8")
    as_json.write_text(json.dumps(tomllib.loads(text)), encoding="utf-8")
    assert tallystick("policy", "lint", as_json, "--json").document == bad.document


@pytest.mark.parametrize("text", ["proposal = [", '{"format": ', "\xff"])
def test_a_file_that_cannot_be_read_is_wrong_usage(tmp_path: Path, text: str) -> None:
    file = tmp_path / "proposal.toml"
    file.write_bytes(text.encode("latin-1"))
    assert tallystick("policy", "lint", file).code == 2
    assert tallystick("policy", "lint", tmp_path / "missing.toml").code == 2


def member(server: Server) -> str:
    """The key of another member of the operator's account, who may govern."""
    with Client(server.url, server.operator_key) as client:
        listed = client.list_accounts()["data"]
        account = next(one["account_id"] for one in listed if one["kind"] == "operator")
        made = client.add_member(account, {"role": "member"})
        asked: Any = {"scopes": ["governance"], "member_id": made["member_id"]}
        return client.create_api_key(account, asked)["key"]


def test_a_file_becomes_the_next_policy_by_the_word_of_two_others(server: Server) -> None:
    proposed = server.run("policy", "propose", POLICIES / "clean.toml", "--json").document
    assert (proposed["number"], proposed["status"]) == (24, "linted")
    own = server.run("policy", "approve", 24, "--json")
    assert (own.code, own.document["code"]) == (1, "second_person_needed")
    boris, cleo = member(server), member(server)
    assert server.run("policy", "review", 24, "In review", key=boris).code == 0
    stale = server.run("policy", "approve", 24, "--seen", 2, "--json", key=boris)
    assert (stale.code, stale.document["code"]) == (1, "proposal_moved")
    for key in (boris, cleo):
        told = server.run("policy", "approve", 24, "--json", key=key).document
    assert told["status"] == "approved"
    scheduled = server.run("policy", "schedule", 24, "--json").document
    assert (scheduled["policy_version"], scheduled["effective_from_epoch"]) == (2, 9)
    rows = server.run("policy", "versions", "--json").document["data"]
    assert [(row["version"], row["in_force"]) for row in rows] == [(1, True), (2, False)]
    shown = server.run("policy", "show", 24)
    assert "approval 2 of 2" in shown.out
    assert "version 2 from epoch 9" in shown.out
    assert server.run("policy", "revise", POLICIES / "clean.toml").code == 1
    late = server.run("policy", "withdraw", 24, "--reason", "Too late", "--json")
    assert late.document["code"] == "proposal_state"
    other = server.run("policy", "propose", POLICIES / "rnp_005.toml", "--json").document
    assert (
        other["lint"]["findings_sha256"]
        == tallystick("policy", "lint", POLICIES / "rnp_005.toml", "--json").document[
            "findings_sha256"
        ]
    )
    no = server.run("policy", "reject", 5, "--reason", "It makes 90 %", "--json", key=boris)
    assert no.document["code"] == "proposal_state", "a draft is not voted on"
    assert "Beam Compute Client" in server.run("policy", "list").out
