"""Which modules of a room do other rooms import? `python -m tests.surface` writes `__all__`.

    __all__ of a room == its modules that the code of another room imports

Tests and benchmarks do not count, and neither does a module named by a string only.
"""

from __future__ import annotations

import ast
import gc
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = ("domain", "ledger", "projections", "api", "cli", "node_reporter")
IMPORTERS = (*LAYERS, "contracts", "tallystick_client")
_ALL = re.compile(r"^__all__ = \(.*?\)\n", re.MULTILINE | re.DOTALL)


def rooms() -> list[Path]:
    """The folder of every room, and of every layer."""
    return sorted(path.parent for layer in LAYERS for path in (ROOT / layer).rglob("__init__.py"))


@cache
def trees() -> Mapping[Path, ast.Module]:
    """Every module of ours, read once for all tests; the collector never looks at them."""
    gc.disable()
    found = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for layer in IMPORTERS
        for path in sorted((ROOT / layer).rglob("*.py"))
        if "node_modules" not in path.parts
    }
    gc.freeze()
    gc.enable()
    return found


def name_of(path: Path) -> str:
    """`domain.money` for `domain/money.py`, `domain` for its folder."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def surfaces() -> Mapping[str, Set[str]]:
    """The modules of each room that code outside it imports."""
    modules = {name_of(path) for path in trees() if path.name != "__init__.py"}
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees().items():
        for imported in _imported(tree, modules):
            room, _, module = imported.rpartition(".")
            if room != name_of(path.parent):
                found[room].add(module)
    return found


def _imported(tree: ast.Module, modules: Set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.module in modules:
                yield node.module
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in names if name in modules)


def declared(names: Set[str]) -> str:
    """The statement as it should be."""
    told = ", ".join(f'"{name}"' for name in sorted(names))
    line = f"__all__ = ({told}{',' * (len(names) == 1)})\n"
    if len(line) <= 101:
        return line
    return "__all__ = (\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + ")\n"


def write() -> None:
    """Bring every room's `__all__` up to date."""
    found = surfaces()
    for room in rooms():
        path = room / "__init__.py"
        text = path.read_text(encoding="utf-8")
        path.write_text(
            _ALL.sub("", text).rstrip() + "\n\n" + declared(found.get(name_of(room), frozenset())),
            encoding="utf-8",
        )


if __name__ == "__main__":
    write()
