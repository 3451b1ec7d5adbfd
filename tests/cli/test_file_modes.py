"""S-L18: what a command writes is read by nobody but its owner."""

from __future__ import annotations

import os
from pathlib import Path

from tests.scenes.server import Scene
from tests.scenes.shell import tallystick
from tests.scenes.work import pin_and_sign


def test_s_l18_an_export_of_all_facts_is_read_by_its_owner_alone(
    scene: Scene, tmp_path: Path
) -> None:
    pin_and_sign(scene)
    settings, bundle = scene.service.settings, tmp_path / "bundle"
    here = {"DATA_DIR": settings.data_dir, "DATABASE_URL": settings.database_url}
    before = os.umask(0o022)
    try:
        made = tallystick("audit", "export", bundle, "--json", **here)
        assert os.umask(0o022) == 0o022, "the command gives the mask back"
    finally:
        os.umask(before)
    assert made.code == 0, made.err
    found = [bundle, *bundle.rglob("*")]
    assert len(found) > 3
    assert not [path.name for path in found if path.stat().st_mode & 0o077]
