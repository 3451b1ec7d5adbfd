"""`tallystick policy`: the lint without a server, and proposals with one."""

from __future__ import annotations

import json
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest
from eth_account import Account

from cli.commands.governance.policy import document_of
from domain.governance.proposal import stream_of
from domain.governance.told_terms import changes, terms_of
from tests.cli.test_remote import Server, server
from tests.scenes.shell import Ran, tallystick

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


def test_e_h8_a_multiple_of_100_without_splits_fails(tmp_path: Path) -> None:
    """E-H8: `hundred.toml` passed with a warning, and the command exited with 0."""
    terms = (POLICIES / "clean.toml").read_text(encoding="utf-8").split("[[splits]]")[0]
    file = tmp_path / "hundred.toml"
    was, now = "cap_multiple_ppm = 1000000", "cap_multiple_ppm = 100000000"
    file.write_text(terms.replace(was, now), encoding="utf-8")
    told = tallystick("policy", "lint", file, "--json")
    assert (told.code, told.document["errors"], told.document["warnings"]) == (1, 2, 0)
    assert {one["rule"] for one in told.document["findings"]} == {"cap_multiple"}


@pytest.mark.parametrize("text", ["proposal = [", '{"format": ', "\xff"])
def test_a_file_that_cannot_be_read_is_wrong_usage(tmp_path: Path, text: str) -> None:
    file = tmp_path / "proposal.toml"
    file.write_bytes(text.encode("latin-1"))
    assert tallystick("policy", "lint", file).code == 2
    assert tallystick("policy", "lint", tmp_path / "missing.toml").code == 2


def governors(server: Server, folder: Path) -> list[Path]:
    """Three personal keys that are enrolled."""
    files = [folder / f"{name}.key" for name in ("anna", "boris", "cleo")]
    for number, file in enumerate(files):
        assert server.run("governor", "make-key", file).code == 0
        assert file.stat().st_mode & 0o777 == 0o600
        assert server.run("governor", "enrol", "--key", file).code == 0
        if number:
            yes = server.run("governor", "approve", number, "--key", files[0])
            assert yes.code == 0, yes
    told = server.run("governor", "list", "--json").document
    assert (told["mode"], told["threshold"], len(told["governors"])) == ("shared", 2, 3)
    return files


@pytest.mark.parametrize("name", ["next.toml", "next.json"])
def test_a_proposal_begins_with_the_policy_in_force(
    server: Server, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    made = server.run("policy", "start", file, "--title", 'Longer "epochs"', "--json").document
    assert (made["number"], made["from_version"]) == (1, 1)
    judged = server.run("policy", "lint", file)
    assert (judged.code, judged.out) == (0, "passes: 0 errors, 0 warnings\n")
    proposed = document_of(file)
    assert proposed["proposal"]["title"] == 'Longer "epochs"'
    in_force = server.run("policy", "versions", "--json").document["data"][0]
    changed = changes(terms_of(in_force), proposed["terms"])
    assert [one["term"] for one in changed] == ["effective_from_epoch"]
    again = server.run("policy", "start", file)
    assert (again.code, "is there already" in again.err) == (2, True)


def test_a_file_becomes_the_next_policy_by_the_word_of_two_governors(
    server: Server, tmp_path: Path
) -> None:
    anna, boris, cleo = governors(server, tmp_path)
    proposed = server.run("policy", "propose", POLICIES / "clean.toml", "--json").document
    assert (proposed["number"], proposed["status"]) == (24, "linted")
    changed = server.run("policy", "show", 24)
    assert "what it changes of version 1:" in changed.out
    rows = [line.split() for line in changed.out.splitlines()]
    assert ["compute", "70", "%", "65", "%"] in rows, "in people's units, beside what is in force"
    assert ["governance.notice_epochs", "4", "4"] not in rows, "what stays is not told"
    told = server.run("policy", "show", 24, "--json").document
    assert {"term": "compute_ppm", "in_force": "700000", "proposed": "650000"} in told[
        "differences"
    ]
    assert server.run("policy", "approve", 24).code == 2, "no personal key"
    assert server.run("policy", "review", 24, "In review").code == 0
    stale = server.run("policy", "approve", 24, "--key", boris, "--seen", 2, "--json")
    assert (stale.code, stale.document["code"]) == (1, "proposal_moved")
    first = server.run("policy", "approve", 24, "--key", boris)
    assert "content: " in first.err, "what is signed is shown"
    assert "terms.compute_ppm: 650000 (in force: 700000)" in first.err
    result = tmp_path / "result.json"
    result.write_text("{")
    approving = ("policy", "approve", 24, "--key", cleo, "--rehearsal", result, "--json")
    unread = server.run(*approving)
    assert (unread.code, "is no rehearsal's result" in unread.err) == (2, True)
    result.write_text(json.dumps({"epochs": 3, "would_be": {"rewards": "12"}}, indent=2))
    told = server.run(*approving).document
    assert told["status"] == "approved"
    votes = server.service.ledger.market.state_of(stream_of(24)).votes
    seen = sha256(b'{"epochs":3,"would_be":{"rewards":"12"}}').hexdigest()
    assert [vote.rehearsal_sha256 for vote in votes] == [None, seen]
    scheduled = server.run("policy", "schedule", 24, "--json").document
    assert (scheduled["policy_version"], scheduled["effective_from_epoch"]) == (2, 9)
    rows = server.run("policy", "versions", "--json").document["data"]
    assert [(row["version"], row["in_force"]) for row in rows] == [(2, False), (1, True)]
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
    no = server.run("policy", "reject", 5, "--reason", "It makes 90 %", "--key", anna, "--json")
    assert no.document["code"] == "proposal_state", "a draft is not voted on"
    assert "Beam Compute Client" in server.run("policy", "list").out


def test_a_governor_votes_with_the_keystore_of_a_wallet(server: Server, tmp_path: Path) -> None:
    wallet = Account.create()
    keystore, anna = tmp_path / "wallet.json", tmp_path / "anna.key"
    keystore.write_text(json.dumps(Account.encrypt(wallet.key, "right", iterations=2)))

    def run(*arguments: object, password: str = "right") -> Ran:
        of = {"URL": server.url, "API_KEY": server.operator_key, "KEYSTORE_PASSWORD": password}
        return tallystick(*arguments, "--key", keystore, **of)

    shut = run("governor", "enrol")
    assert (shut.code, "chmod 600" in shut.err) == (2, True)
    keystore.chmod(0o600)
    wrong = run("governor", "enrol", password="other")
    assert (wrong.code, "cannot be unlocked" in wrong.err) == (2, True), wrong
    enrolled = run("governor", "enrol", "--json").document["governors"]
    assert [one["key"] for one in enrolled] == [f"wallet:{wallet.address.lower()}"]
    server.run("governor", "make-key", anna)
    server.run("governor", "enrol", "--key", anna)
    voted = run("governor", "approve", 1, "--json")
    assert (voted.code, voted.document["version"]) == (0, 2), voted
    shown = server.run("governor", "list").out
    assert enrolled[0]["governor_id"] in shown.split("threshold")[-1], "who voted yes"
    server.run("policy", "propose", POLICIES / "clean.toml")
    server.run("policy", "review", 24, "In review")
    assert run("policy", "approve", 24).code == 0
