"""Where the packages of `tallystick-node` lie: beside this folder, and in it in the sdist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("domain", "node_reporter")


class Packages(BuildHookInterface[Any]):
    """Puts them into the wheel and the sdist; an editable installation has a path to them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the folders to the builder."""
        if version == "editable":
            return
        here = Path(self.root)
        for name in PACKAGES:
            inside, beside = here / name, here.parent / name
            found = inside if inside.is_dir() else beside
            for file in found.rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    kept = file.relative_to(found.parent).as_posix()
                    build_data["force_include"][str(file)] = kept
