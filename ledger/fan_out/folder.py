"""Results between two steps, in a folder that every process or machine of an executor sees.

A task may be done twice, by two machines at once: what it puts appears by rename, whole or not at
all, and the second time it is the same. What lies there is not durable: after a crash of this
machine the work begins anew.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Folder:
    """JSON values by name; a `Store` of `domain/epochs/lanes.py`."""

    path: Path

    def put(self, name: str, found: Any) -> None:
        part = self.path / f"{name}.{socket.gethostname()}.{os.getpid()}.part"
        with part.open("w", encoding="utf-8") as file:
            file.write(json.dumps(found, separators=(",", ":")))
        part.rename(self.path / f"{name}.json")

    def get(self, name: str) -> Any:
        """Raises FileNotFoundError: nothing was put, or this machine does not see the folder."""
        return json.loads((self.path / f"{name}.json").read_bytes())
