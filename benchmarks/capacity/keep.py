"""Figures of the page of capacities: measured, printed and, in full size, kept for the page."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.capacity import page
from benchmarks.machine import machine
from benchmarks.size import Size


def measured(run: Callable[[Size], dict[str, Any]], size: Size, results: Path) -> None:
    """Run once; what it tells goes to standard output with the code and the machine it is of. In
    full size also to `results`, and the page is written anew.
    """
    told = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip(),
        "size": size.value,
        "machine": machine(),
        **run(size),
    }
    text = json.dumps(told, indent=1, sort_keys=True) + "\n"
    sys.stdout.write(text)
    if size is Size.FULL:
        results.write_text(text, encoding="utf-8")
        page.write()
