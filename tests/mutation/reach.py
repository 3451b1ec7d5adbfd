"""Which tests come by which lines: all tests run once, with `coverage` telling them apart.

Kept, so that a run that was ended goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from coverage import Coverage, CoverageData

from tests.mutation.operators import Mutant, path_of

DATABASE = {"postgres", "chain"}
"""A test with one of these fixtures starts a server: it is left to `--fresh`."""


class Reach:
    """`seconds`: of each test that passed. A test that failed or was skipped tells nothing.

    Kept as long as the modules are the same; a test runs anew when its file has changed.
    """

    def __init__(self, root: Path, modules: Collection[str]) -> None:
        self.root = root
        self.files = {one: str(path_of(root, one)) for one in modules}
        together = hashlib.sha256()
        for file in sorted(self.files.values()):
            together.update(Path(file).read_bytes())
        self._kept = root / ".mutants" / f"reach-{together.hexdigest()[:16]}"
        self._kept.mkdir(parents=True, exist_ok=True)
        self._known = self._kept / "tests.json"
        told = json.loads(self._known.read_text("utf-8")) if self._known.exists() else {}
        self.seconds: dict[str, float] = told.get("seconds", {})
        self.failed: list[str] = told.get("failed", [])
        self._texts: dict[str, str] = told.get("texts", {})
        self._lines: dict[str, dict[int, list[str]]] = {}

    def _text_of(self, item: pytest.Item) -> str:
        return hashlib.sha256(item.path.read_bytes()).hexdigest()[:16]

    def record(self, items: Sequence[pytest.Item], until: float) -> bool:
        """Run what is not known yet; False where time was up first."""
        texts = {one.nodeid: self._text_of(one) for one in items}
        fresh = [one for one in items if self._texts.get(one.nodeid) != texts[one.nodeid]]
        if not fresh:
            return True
        coverage = Coverage(
            data_file=str(self._kept / "reach.sqlite"),
            include=list(self.files.values()),
            config_file=False,
        )
        coverage.load()
        coverage.start()
        is_whole = True
        for at, item in enumerate(fresh):
            if time.monotonic() > until:
                is_whole = False
                break
            coverage.switch_context(item.nodeid)
            began = time.process_time()
            following = fresh[at + 1] if at + 1 < len(fresh) else None
            reports = runtestprotocol(item, log=False, nextitem=following)
            self._texts[item.nodeid] = texts[item.nodeid]
            if all(one.passed for one in reports):
                self.seconds[item.nodeid] = round(time.process_time() - began, 4)
            else:
                self.failed.append(item.nodeid)
        coverage.stop()
        coverage.save()
        told = {"seconds": self.seconds, "failed": self.failed, "texts": self._texts}
        self._known.write_text(json.dumps(told), "utf-8")
        return is_whole

    def _of(self, module: str) -> dict[int, list[str]]:
        if module not in self._lines:
            data = CoverageData(str(self._kept / "reach.sqlite"))
            data.read()
            found = data.contexts_by_lineno(self.files[module])
            self._lines[module] = {
                line: [one for one in tests if one in self.seconds] for line, tests in found.items()
            }
        return self._lines[module]

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that come by its statement or its line, quickest first."""
        lines = self._of(mutant.module)
        first, last = mutant.lines
        near = {
            one for line in (*range(first, last + 1), mutant.line) for one in lines.get(line, ())
        }
        return sorted(near, key=lambda one: (self.seconds[one], one))

    def is_used(self, mutant: Mutant) -> bool:
        """Whether any test comes by its function: else it ran when its module was imported."""
        first, last = mutant.around
        lines = self._of(mutant.module)
        return any(lines.get(line) for line in range(first, last + 1))

    def of_module(self, module: str) -> list[str]:
        """The tests of the file that is named like it, also those that only read its constants, and
        then the tests that come by any line of it, quickest first.
        """
        name = f"/test_{module.rpartition('.')[2]}.py"
        found = {one for tests in self._of(module).values() for one in tests}
        found.update(one for one in self.seconds if name in one)
        return sorted(found, key=lambda one: (name not in one, self.seconds[one], one))
