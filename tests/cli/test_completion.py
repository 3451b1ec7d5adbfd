"""What a shell completes: every command and option, from the commands themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.main import app
from cli.terminal import COMPLETE
from tests.cli.test_help import NAMES
from tests.scenes.shell import tallystick


def completed(*words: str) -> list[str]:
    """What may stand in the place of the last word."""
    from typer._completion_classes import BashComplete

    command: Any = typer.main.get_command(app)
    found = BashComplete(command, {}, "tallystick", COMPLETE)
    return [one.value for one in found.get_completions(list(words[:-1]), words[-1])]


def test_a_command_of_every_group_completes_its_options() -> None:
    groups = {name.rpartition(" ")[0] for name in NAMES}
    last = {name.rpartition(" ")[0]: name for name in NAMES if name not in groups}
    assert len(last) > 50
    for name in last.values():
        assert "--json" in completed(*name.split()[1:], "--js"), name


def test_groups_complete_their_commands_and_options_their_values() -> None:
    assert completed("le") == ["lease"]
    assert {"show", "sign", "stick"} <= set(completed("lease", "s"))
    assert completed("lease", "list", "--state", "act") == ["active"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_and_what_it_asks_is_answered(shell: str) -> None:
    script = tallystick("completion", shell).out
    assert COMPLETE in script
    assert "complete_" + shell in script
    asked = {"bash": {"COMP_WORDS": "tallystick lease li", "COMP_CWORD": "2"}}
    other = {
        "_TYPER_COMPLETE_ARGS": "tallystick lease li",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [Path(sys.executable).with_name("tallystick")],
        env={**os.environ, COMPLETE: f"complete_{shell}", **asked.get(shell, other)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "list" in done.stdout, done
