"""`python -m tests.mutation.fresh ROOT`: a mutant in a process that never saw it as it is.

Which, and its tests, are told on standard input as JSON; no mutant: the modules as they are. The
status is that of pytest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from tests.mutation.operators import Mutant, mutants_of, mutated, path_of
from tests.mutation.running import OPTIONS, SameExamples
from tests.mutation.trial import BROKEN


class _Loader(SourceFileLoader):
    def __init__(self, root: Path, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(path_of(root, mutant.module)))
        self._root, self._mutant = root, mutant

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        return compile(mutated(self._root, self._mutant), self.path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, root: Path, mutant: Mutant) -> None:
        self._root, self._mutant = root, mutant

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name != self._mutant.module:
            return None
        loader = _Loader(self._root, self._mutant)
        return spec_from_file_location(name, loader.path, loader=loader)


def main(root: Path) -> int:
    asked = json.load(sys.stdin)
    sys.path.insert(0, str(root))
    if (which := asked["mutant"]) is not None:
        if which["module"] in sys.modules:
            sys.stderr.write(f"{which['module']} is known already, and would run unchanged")
            return BROKEN
        mutant = mutants_of(root, which["module"])[which["number"]]
        sys.meta_path.insert(0, _Finder(root, mutant))
    how = [*OPTIONS, f"--rootdir={root}", "-x", "-rfE"]
    return int(pytest.main([*how, *asked["tests"]], plugins=[SameExamples()]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
