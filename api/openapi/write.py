"""The OpenAPI document as a file, the client made from it, and the index of all operations by room:
`python -m api.openapi.write` writes all.

    docs/reference/openapi.json == what the service answers at /openapi.json
    api/index.py                == name and path of each operation, as the resource files say

All are committed, and a test fails while they differ from the code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from api import index
from api.main import build
from api.openapi import client_generator
from api.rooms import RESOURCES

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "reference" / "openapi.json"
CLIENT = ROOT / "tallystick_client"
INDEX = Path(index.__file__)
INDEX_HEAD = '''\
"""Which operations there are, by room: name and path.

Written by `python -m api.openapi.write` from the resource files: do not edit. A server finds the
way to an operation without its file.
"""

from __future__ import annotations

WAYS = {
'''


def ways() -> dict[str, dict[str, str]]:
    """By room, name and path of each operation. Raises AssertionError when two have one name."""
    found = {
        room: [each for resource in listed() for each in resource.operations]
        for room, listed in RESOURCES.items()
    }
    names = [each.name for room in found.values() for each in room]
    assert all(name.count("_") for name in names), "a name is verb_noun"
    assert len(set(names)) == len(names), "two operations have one name"
    return {room: {each.name: each.path for each in told} for room, told in found.items()}


def index_text() -> str:
    """The index as it should be."""
    told = json.dumps(ways(), indent=4).split("{\n", 1)[1]
    return _formatted(INDEX, INDEX_HEAD + told + "\n")


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
    """Write all files anew, the index first: the document is made by it."""
    INDEX.write_text(index_text(), encoding="utf-8")
    index.WAYS.clear()
    index.WAYS.update(ways())
    DOCUMENT.parent.mkdir(parents=True, exist_ok=True)
    DOCUMENT.write_text(document_text(), encoding="utf-8")
    for path, text in client_texts().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
