"""The OpenAPI document as a file, and the client made from it: `python -m api.openapi.write`
writes all.

    docs/reference/openapi.json == what the service answers at /openapi.json

All are committed, and a test fails while they differ from the code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from api.main import build
from api.openapi import client_generator

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "reference" / "openapi.json"
CLIENT = ROOT / "tallystick_client"


@cache
def document_text() -> str:
    """The document, operations in the order they are declared in. Made once: it takes seconds."""
    return json.dumps(build(None).openapi(), indent=1, ensure_ascii=False) + "\n"


def client_texts() -> dict[Path, str]:
    """The written files of the client, formatted like the rest of the code."""
    document = json.loads(document_text())
    made = {
        "forms.py": client_generator.forms(document),
        "client.py": client_generator.client(document, client_generator.SYNC),
        "async_client.py": client_generator.client(document, client_generator.ASYNC),
    }
    return {CLIENT / name: _formatted(CLIENT / name, source) for name, source in made.items()}


def _formatted(path: Path, source: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"]
    done = subprocess.run(command, input=source, text=True, capture_output=True, check=True)  # noqa: S603
    return done.stdout


def write() -> None:
    """Write all files anew."""
    DOCUMENT.parent.mkdir(parents=True, exist_ok=True)
    DOCUMENT.write_text(document_text(), encoding="utf-8")
    for path, text in client_texts().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
