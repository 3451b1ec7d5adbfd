"""`tallystick policy dry-run`: past epochs from their files, under a proposal, to the unit."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from domain.epochs.epoch_file import epoch_file, policy_document
from domain.epochs.policy import PolicyPublished
from domain.epochs.settlement import NodeCut, Use, settle
from tests.domain.epochs.test_settlement import RULED
from tests.domain.governance.test_rehearsal import history
from tests.scenes.shell import Ran, tallystick

CLEAN = Path(__file__).parents[2] / "policies" / "clean.toml"


def node(name: str, burned: int, gpu_us: int) -> NodeCut:
    return NodeCut(f"node_{name}", f"acct_{name}", (Use("cash", burned, gpu_us),), 10**13)


FLEET = (node("a", 300, 1), node("b", 100, 3), node("c", 100, 0))


@pytest.fixture
def epochs(tmp_path: Path) -> Path:
    """The epoch files of three epochs, as sealing leaves them."""
    folder = tmp_path / "epochs"
    folder.mkdir()
    for cut in history(RULED, [(FLEET, 50, {}), (FLEET[:2], 10**12, {}), (FLEET, 0, {})]):
        (folder / f"{cut.epoch}.json").write_bytes(epoch_file(settle(cut)))
    return folder


def rehearsed(epochs: Path, policy: PolicyPublished | Path, *more: object) -> Ran:
    if isinstance(policy, PolicyPublished):
        file = epochs.parent / "proposed.json"
        file.write_text(json.dumps(policy_document(policy)), encoding="utf-8")
        policy = file
    return tallystick("policy", "dry-run", policy, "--epochs", epochs, *more)


def test_the_policy_in_force_would_have_changed_nothing(epochs: Path) -> None:
    ran = rehearsed(epochs, RULED, "--json")
    told = ran.document
    assert (ran.code, told["epochs"], told["holds"], told["is_same"]) == (0, 3, True, True)
    assert told["was"] == told["would_be"]
    assert told["winners"] == told["losers"] == []
    assert [one["accounts_changed"] for one in told["by_epoch"]] == [0, 0, 0]
    assert rehearsed(epochs, RULED).out.endswith("nothing would have changed\n")
    apart = rehearsed(epochs, RULED, "--executor", "processes:2", "--json")
    assert apart.document == told


def test_another_policy_names_who_gains_and_who_loses_and_keeps_the_sums(epochs: Path) -> None:
    by_time = replace(RULED, compute_base="gpu_time")
    ran = rehearsed(epochs, by_time, "--json", "--limit", 1)
    told = ran.document
    assert (ran.code, told["holds"], told["is_same"]) == (0, True, False)
    assert [one["account_id"] for one in told["winners"]] == ["acct_b"]
    assert [one["account_id"] for one in told["losers"]] == ["acct_a"]
    assert (told["accounts_gaining"], told["accounts_losing"]) == (1, 2)
    assert told["by_epoch"][0]["largest_difference"]["account_id"] == "acct_b"
    shown = rehearsed(epochs, by_time).out
    assert "biggest winners" in shown
    assert shown.endswith("rewards would have changed\n")
    later = rehearsed(epochs, by_time, "--from-epoch", 3, "--json").document
    assert [one["accounts_changed"] for one in later["by_epoch"]] == [0, 0, 3]


def test_a_proposal_is_rehearsed_as_the_document_it_is(epochs: Path) -> None:
    told = rehearsed(epochs, CLEAN, "--json").document
    assert told["holds"]
    assert told["kept_emission_plan"] in ([], [1, 2, 3])


def test_a_file_that_is_not_what_its_cut_gives_is_exit_1(epochs: Path) -> None:
    file = epochs / "2.json"
    file.write_bytes(
        file.read_bytes().replace(b'"rewards":[["acct_a","', b'"rewards":[["acct_a","1')
    )
    ran = rehearsed(epochs, RULED, "--json")
    assert (ran.code, ran.document["not_reproduced"]) == (1, [2])
    shown = rehearsed(epochs, RULED)
    assert shown.code == 1
    assert "epoch 2: its file is not what its cut gives" in shown.out


def test_what_cannot_be_read_is_wrong_usage(epochs: Path) -> None:
    assert rehearsed(epochs, replace(RULED, compute_ppm=1)).code == 2
    assert rehearsed(epochs, epochs / "1.json").code == 2
    (epochs / "4.json").write_bytes(b'{"format":"tallystick-epoch-v1"}')
    assert "tallystick-epoch-v1" in rehearsed(epochs, RULED).err
    (epochs / "2.json").unlink()
    assert "epoch 2 is missing" in rehearsed(epochs, RULED).err
    shutil.rmtree(epochs)
    assert rehearsed(epochs, RULED).code == 2
