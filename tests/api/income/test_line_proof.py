"""From a line of a bill to one file with its reports and proofs, checked without a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.scenes.server import Scene
from tests.scenes.shell import Ran, tallystick, tallystick_at
from tests.scenes.work import hours_of_work, pin_and_sign


@pytest.fixture(scope="module")
def line(shared: Scene, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    """The file of a line, the log's key, and the line's position."""
    scene = shared
    hours_of_work(scene)
    pin_and_sign(scene)
    base = f"/v1/accounts/{scene.renter.account_id}/statements"
    position = scene.renter.read(base, kind="usage")["lines"][0]["position"]
    file = tmp_path_factory.mktemp("line") / "line.json"
    words = ("statement", "line", position, "--proof", file)
    made = tallystick_at(scene.http, scene.renter.key, *words)
    assert (made.code, f"tallystick audit verify {file}" in made.err) == (0, True)
    assert tallystick_at(scene.http, scene.renter.key, *words).code == 2, "no file is overwritten"
    shown = tallystick_at(scene.http, scene.renter.key, "statement", "line", position)
    assert "floor(" in shown.out
    assert scene.provider.node_id in shown.out
    return file, scene.anybody.read("/v1/audit/log/key")["verifier_key"], position


def _verify(file: Path, key: object) -> Ran:
    return tallystick("audit", "verify", file, "--key", key, "--json")


def test_a_line_is_verified_offline_and_the_key_is_taken_in_each_form(
    line: tuple[Path, str, int], tmp_path: Path
) -> None:
    file, key, position = line
    note, answer = tmp_path / "key.txt", tmp_path / "key.json"
    note.write_text(key + "\n")
    answer.write_text(json.dumps({"verifier_key": key, "rotations": [], "position": 9}))
    for given in (key, note, answer, answer.read_text()):
        told = _verify(file, given)
        assert told.code == 0, told
        assert (told.document["verified"], told.document["position"]) == (True, position)
        assert told.document["reports"] > 0
        billed, signed = (int(told.document[f"{name}_gpu_us"]) for name in ("billed", "signed"))
        assert 0 < billed <= signed + 1
    without = tallystick("audit", "verify", file)
    assert (without.code, "--key https://the.server" in without.err) == (2, True)
    assert _verify(file, '{"no": "key"}').code == 2


def _other_position(told: dict[str, Any]) -> None:
    told["line"]["position"] += 1


def _other_amount(told: dict[str, Any]) -> None:
    told["line"]["body"]["charge_new"]["units"] = "1"


def _other_type(told: dict[str, Any]) -> None:
    told["line"]["type"] = "deposit.confirmed.v1"


def _more_said(told: dict[str, Any]) -> None:
    told["line"]["recorded_at"] = "2026-01-01T00:00:00Z"


def _less_said(told: dict[str, Any]) -> None:
    del told["line"]["leaf"]


def _other_node(told: dict[str, Any]) -> None:
    told["reports"][0]["node_id"] = "node_" + "1" * 32


def _other_key_of_node(told: dict[str, Any]) -> None:
    told["reports"][0]["public_key"] = "3b" * 32


def _other_key_id(told: dict[str, Any]) -> None:
    told["reports"][0]["key_id"] = "0" * 16


def _without_reports(told: dict[str, Any]) -> None:
    told["reports"].clear()


def _report_twice(told: dict[str, Any]) -> None:
    told["reports"].append(told["reports"][0])


def _fact_for_report(told: dict[str, Any]) -> None:
    told["reports"][0]["proof"] = told["proof"]


def _report_for_fact(told: dict[str, Any]) -> None:
    told["proof"] = told["reports"][0]["proof"]


def _one_letter(told: dict[str, Any]) -> None:
    text = told["reports"][0]["proof"]
    at = text.index("extra ") + 40
    told["reports"][0]["proof"] = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]


def _no_form(told: dict[str, Any]) -> None:
    told["reports"] = [{"lane": "x"}]


@pytest.mark.parametrize(
    "change",
    [
        _other_position,
        _other_amount,
        _other_type,
        _more_said,
        _less_said,
        _other_node,
        _other_key_of_node,
        _other_key_id,
        _without_reports,
        _report_twice,
        _fact_for_report,
        _report_for_fact,
        _one_letter,
        _no_form,
    ],
)
def test_a_file_that_was_changed_is_not_verified(
    line: tuple[Path, str, int], tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    file, key, _ = line
    told = json.loads(file.read_text())
    change(told)
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(told))
    ran = _verify(changed, key)
    assert (ran.code, ran.document["verified"]) == (1, False)


def test_a_file_signed_by_another_log_is_not_verified(line: tuple[Path, str, int]) -> None:
    file, key, _ = line
    name, number, rest = key.split("+", 2)
    swapped = rest[:-6] + ("AAAAA=" if rest[-6:] != "AAAAA=" else "BBBBB=")
    assert _verify(file, f"{name}+{number}+{swapped}").code in (1, 2)
