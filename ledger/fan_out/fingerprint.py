"""Which code is this? What other code came to is not believed: neither a folded state in a database
nor how far an audit came.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

AUDITING = ("domain", "ledger")
MADE_WITH = ("msgspec", "pyarrow", "PyNaCl")
"""Packages of others that read rows and check signatures."""


def fingerprint_of(folder: Path) -> str:
    """The first 16 hex digits of SHA-256 over the path and the bytes of every `.py` file below."""
    digest = hashlib.sha256()
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*.py")}
    for path in sorted(files):
        digest.update(path.encode() + b"\0" + files[path].read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def auditing_code() -> str:
    """Changes with every byte of the domain and the ledger, with Python and with `MADE_WITH`. Read
    once: a process runs the code that it started with.
    """
    told = [f"python {sys.version}", *(f"{name} {_version(name)}" for name in MADE_WITH)]
    for package in AUDITING:
        with resources.as_file(resources.files(package)) as folder:
            told.append(f"{package} {fingerprint_of(folder)}")
    return " / ".join(told)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
