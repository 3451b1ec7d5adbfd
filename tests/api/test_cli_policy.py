"""`tallystick policy`: the lint without a server, and proposals with one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.api.cli_scene import tallystick

POLICIES = Path(__file__).parents[1] / "policies"


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
