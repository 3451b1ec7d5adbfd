"""The guides again, each part with only the extra that its reader installed: the operator has
everything, the desk `tallystick[cli]`, the machine with the GPU `tallystick-node`, the auditor
`tallystick[audit]`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.test_tutorial import PORT, SECONDS_MAX, blocks, empty_folder, run
from tests.node_reporter.confined import needs_walls
from tests.processes import free_port
from tests.scenes.installed import FOLDERS, build, linked, needed, needed_by, program, unpacked

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = ("tutorial.md", "howto/join-a-node.md", "howto/run-work.md")
__all__ = ["empty_folder"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH with `tallystick` and `tallystick-node`."""
    folder = tmp_path_factory.mktemp("apart")
    wheels = {name: build(name, "wheel", folder / name) for name in FOLDERS}
    every = unpacked(folder / "every", wheels.values())
    alone = unpacked(folder / "alone", [wheels["tallystick-node"]])
    found = folder / "bin"
    found.mkdir()
    cli = [every, linked(folder / "cli", needed("cli"))]
    node = [alone, linked(folder / "node", needed_by("tallystick-node"))]
    program(found / "desk", cli, "from cli.__main__ import main")
    audit = [every, linked(folder / "audit", needed("audit"))]
    program(found / "auditor", audit, "from cli.__main__ import main")
    program(found / "tallystick-node", node, "from node_reporter.__main__ import main")
    whole = Path(sys.executable).parent / "tallystick"
    (found / "tallystick").write_text(
        "#!/bin/sh\n"
        f'case "$1" in admin|serve|jobs|migrate|demo) exec "{whole}" "$@";; esac\n'
        f'case "$1 $2" in "audit export") exec "{whole}" "$@";; esac\n'
        f'case "$1" in audit) exec "{found / "auditor"}" "$@";; esac\n'
        f'exec "{found / "desk"}" "$@"\n'
    )
    (found / "tallystick").chmod(0o755)
    folder.chmod(0o755)
    return found


@pytest.mark.long
@needs_walls
@pytest.mark.timeout(SECONDS_MAX + 60)
@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_is_followed_with_the_extra_of_each_part(
    guide: str, programs: Path, empty_folder: Path
) -> None:
    """Each command of the guide ends well; what it must show, the tests of the guides say."""
    script = "\n".join(blocks(DOCS / guide)).replace(PORT, str(free_port()))
    found = f'command -v tallystick | grep -qx "{programs}/tallystick"\n'
    run(f'export PATH="{programs}:$PATH"\n{found}{script}', empty_folder)
