"""A node on a disk that is too small or read-only: run by a test inside a mount of its own.

    python -m tests.node_reporter.small_disk FOLDER full|long|readonly

The folder is a tmpfs of its own. Prints what became of the time as one JSON object.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from node_reporter.reports.spool import SpoolBlocked
from tests.node_reporter.reporter_scene import BEGIN_US, Scene


def fill(folder: Path) -> Path:
    """Take every byte that is left."""
    ballast = folder / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"\0" * 4_096):
            pass
    return ballast


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


def full(scene: Scene, folder: Path, minutes: int) -> str:
    ballast = fill(folder)
    raised = ""
    try:
        scene.run(minutes)
    except SpoolBlocked as blocked:
        raised = str(blocked)
    ballast.unlink()
    if raised:
        scene.crash()
    return raised


def readonly(scene: Scene, folder: Path) -> str:
    scene.reporter.spool.close()
    remount(folder, "ro")
    scene.clock.advance(60_000_000)
    raised = ""
    try:
        scene.start()
    except SpoolBlocked as blocked:
        raised = str(blocked)
    remount(folder, "rw")
    scene.start()
    return raised


def main(folder: Path, how: str) -> None:
    scene = Scene(folder)
    scene.run(5)
    raised = {
        "full": lambda: full(scene, folder, 8),
        "long": lambda: full(scene, folder, 15),
        "readonly": lambda: readonly(scene, folder),
    }[how]()
    scene.run(5)
    scene.finish()
    available, unavailable, unknown = scene.device_us()
    told = {
        "raised": raised,
        "said": scene.said,
        "available_us": available,
        "unavailable_us": unavailable,
        "unknown_us": unknown,
        "elapsed_us": scene.clock.now().mono_us - BEGIN_US,
        "alerts": scene.server.alerts,
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
