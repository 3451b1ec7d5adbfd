"""`docs/howto/join-a-node.md` does what it says, from the code to the key that is taken back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.test_tutorial import PORT, SECONDS_MAX, blocks, empty_folder, run
from tests.processes import free_port

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "join-a-node.md"
__all__ = ["empty_folder"]


@pytest.mark.guides(
    "tests/cli/test_guides.py::test_every_command_of_a_guide_is_there_with_all_that_it_is_given",
    "tests/cli/test_install_pages.py::test_renter_owner_auditor_and_operator_follow_their_pages_word_for_word",
)
@pytest.mark.timeout(SECONDS_MAX + 30)
def test_a_machine_joins_runs_is_looked_at_and_leaves_by_the_commands_of_the_guide(
    empty_folder: Path,
) -> None:
    (script,) = blocks(PAGE)
    assert script.count(PORT) == 1, "the port is named once"
    out = run(script.replace(PORT, str(free_port())), empty_folder)
    assert re.search(r"^ok +joined: active$", out, re.MULTILINE)
    assert re.search(r"^ok +server: answers", out, re.MULTILINE)
    assert "signs with a new key" in out
    assert re.search(r"would write .*tallystick-node\.service$", out, re.MULTILINE)
    assert re.search(r"^failed +server: revoked", out, re.MULTILINE)
    assert out.rstrip().endswith("the key was taken back")
    keys = {path.name for path in (empty_folder / "tallystick-join" / "node").iterdir()}
    assert keys >= {"signing.key", "node.key", "node.toml", "spool.db"}
