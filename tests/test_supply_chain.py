"""S-L21: which licences what we install has, and the bill of materials of a server."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALLOWED = re.compile(
    r"0BSD|Apache|BSD|CC0|CNRI-Python|ISC|LGPL-3\.0-only|MIT|MPL|Mozilla Public License|PSF|"
    r"Public Domain|Python Software Foundation|Zlib"
)
"""Permissive, or of the kind that asks for nothing but changes to its own files."""
TOOLS = {"amdsmi", "beancount", "pymerkle"}
"""Named one by one: beancount (GPL-2.0) and pymerkle (GPL-3.0) check books and trees in tests;
amdsmi states its licence, which is MIT, as a text. None of them is installed with a server.
"""
REFUSED = re.compile(
    r"AGPL|Affero|SSPL|Server Side Public|BUSL|Business Source|Elastic|Commons Clause"
)


def _licence_of(found: importlib.metadata.Distribution) -> str:
    told = found.metadata
    if "License-Expression" in told:
        return str(told["License-Expression"])
    named = [
        line.rpartition(" :: ")[2]
        for line in told.get_all("Classifier") or []
        if line.startswith("License")
    ]
    stated = (told.get_all("License") or [""])[0]
    return "; ".join(named) or stated.partition("\n")[0]


def _name(found: importlib.metadata.Distribution) -> str:
    return re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()


def _pinned(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([A-Za-z0-9][\w.-]*)==(\S+)", text, re.MULTILINE))


def _is_allowed(licence: str) -> bool:
    """Every licence that is joined by "and" is on the list, of those joined by "or" one."""
    parts = re.split(r"\s+AND\s+|;\s*", licence.replace("(", " ").replace(")", " "))
    return bool(licence) and all(
        any(ALLOWED.search(one) for one in re.split(r"\s+OR\s+", part))
        and "GNU General Public License" not in part
        for part in parts
        if part.strip() not in ("", "OSI Approved", "DFSG approved")
    )


def test_s_l21_every_licence_is_on_the_list_and_none_is_refused() -> None:
    shipped, odd = set(_pinned("server.txt")) | set(_pinned("node.txt")), []
    installed = {_name(one): _licence_of(one) for one in importlib.metadata.distributions()}
    assert {"fastapi", "psycopg", "pynacl"} <= installed.keys()
    for name, licence in sorted(installed.items()):
        assert not REFUSED.search(licence), (name, licence)
        if not _is_allowed(licence) and name not in TOOLS:
            odd.append((name, licence))
    assert odd == []
    assert not {one.lower() for one in shipped} & TOOLS


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("AGPL-3.0-only", False),
        ("GPL-3.0-or-later", False),
        ("MIT AND GPL-2.0-only", False),
        ("GPL-2.0-only OR MIT", True),
        ("", False),
    ],
)
def test_what_is_on_the_list(licence: str, allowed: bool) -> None:
    assert _is_allowed(licence) == allowed


def test_s_l21_the_bill_of_materials_names_what_the_lock_pins_with_its_hashes() -> None:
    made = subprocess.run(
        [sys.executable, ".ci/sbom.py", "requirements/server.txt"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(made.stdout)
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    found = {one["name"]: one["version"] for one in told["components"]}
    assert found == _pinned("server.txt")
    assert all(one["hashes"] for one in told["components"])
