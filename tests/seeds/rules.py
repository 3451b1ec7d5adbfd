"""The properties of the rules, as `make test-fast` runs them, drawn by one seed but for the few
that must reach a state and say `derandomize`: they draw the same each time.

Ten seeds look at ten times as many examples as `make test-properties`.
"""

from __future__ import annotations

import subprocess
import sys

from tests.seeds.record import ROOT

FAST = (
    "tests/domain",
    "tests/golden",
    "tests/ledger/log/test_codec.py",
    "tests/ledger/books/test_postings.py",
)
OPTIONS = ("-m", "not long", "-p", "no:cacheprovider", "--hypothesis-profile", "seeds")


def run(seed: int) -> None:
    command = [sys.executable, "-m", "pytest", *OPTIONS, f"--hypothesis-seed={seed}", *FAST]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-20_000:]}"
