"""The OpenAPI document as a file, and the client made from it: `python -m api.openapi` writes both.

    docs/reference/openapi.json == what the service answers at /openapi.json

Both are committed, and a test fails while they differ from the code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from api import client_generator
from api.main import build

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "reference" / "openapi.json"
CLIENT = ROOT / "api" / "client.py"


def document_text() -> str:
    """The document, operations in the order they are declared in."""
    return json.dumps(build(None).openapi(), indent=1, ensure_ascii=False) + "\n"


def client_text() -> str:
    """The client made from the document, formatted like the rest of the code."""
    source = client_generator.generate(json.loads(document_text()))
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(CLIENT), "-"]
    done = subprocess.run(command, input=source, text=True, capture_output=True, check=True)  # noqa: S603
    return done.stdout


def write() -> None:
    """Write both files anew."""
    DOCUMENT.parent.mkdir(parents=True, exist_ok=True)
    DOCUMENT.write_text(document_text(), encoding="utf-8")
    CLIENT.write_text(client_text(), encoding="utf-8")


if __name__ == "__main__":
    write()
