"""The shape of the code, checked like any other promise."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from cli.index import COMMANDS
from tests import surface

ROOT = Path(__file__).parent.parent
CLIENT = "tallystick_client"
ROOMS = tuple(layer for layer in surface.IMPORTERS if layer != CLIENT)
NAMES_THAT_SAY_NOTHING = {"base", "common", "manager", "misc", "utils", "helpers"}
DOMAIN_MAY_IMPORT = {
    "__future__",
    "bisect",
    "collections",
    "dataclasses",
    "domain",
    "enum",
    "functools",
    "hashlib",
    "ipaddress",
    "itertools",
    "json",
    "operator",
    "re",
    "typing",
    "uuid",
}
FUNCTION_LINES_MAX = 61
"""A screen. In what was longer there were always parts with names of their own; in the two that
have 61 there are none.
"""
ONE_DOOR = "ledger/log/handle.py"


@cache
def modules() -> tuple[tuple[Path, ast.Module], ...]:
    """Every module of the rooms."""
    return tuple((path.relative_to(ROOT), tree) for path, tree in surface.trees().items())


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


def imports(tree: ast.Module) -> Iterator[str]:
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "imports here name what they import"
            yield node.module.split(".")[0]


def typed_streams(tree: ast.Module) -> list[ast.expr | None]:
    """`def f(...) -> Stream[T]: return Stream(...)` and `NAME: Stream[T] = Stream(...)`."""
    named = [one.value for one in nodes(tree) if isinstance(one, ast.AnnAssign)]
    made = [
        one.value
        for function in nodes(tree)
        if isinstance(function, ast.FunctionDef) and function.returns is not None
        if ast.unparse(function.returns).startswith("Stream[")
        for one in function.body
        if isinstance(one, ast.Return)
    ]
    return [*named, *made]


def puts(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls of `events.put`, by which facts enter the market log."""
    for node in nodes(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "put"
            and isinstance(node.func.value, ast.Attribute)
            and node.func.value.attr == "events"
        ):
            yield node


def test_the_domain_needs_nothing_outside() -> None:
    """A list of what is allowed, so that the next new way to do I/O is not forgotten."""
    for path, tree in modules():
        if path.parts[0] == "domain":
            assert set(imports(tree)) <= DOMAIN_MAY_IMPORT, path


def test_the_domain_opens_no_file_and_prints_nothing() -> None:
    for path, tree in modules():
        if path.parts[0] == "domain":
            called = {
                node.func.id
                for node in nodes(tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            assert not called & {"open", "print", "input", "exec", "eval", "float"}, path


def test_a_stream_says_what_it_folds_to() -> None:
    """One function or name for each kind; who reads the stream gets a state of that type."""
    untyped = [
        f"{path}:{call.lineno}"
        for path, tree in modules()
        for call in nodes(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "Stream"
        if call not in typed_streams(tree)
    ]
    assert not untyped, untyped


def test_there_is_one_door_into_the_market_log() -> None:
    doors = {path.as_posix() for path, tree in modules() for _ in puts(tree)}
    assert doors == {ONE_DOOR}


def test_the_append_functions_are_called_from_one_file_each() -> None:
    """The SQL that writes truth is named where it is used, and nowhere else."""
    callers: dict[str, set[str]] = {"market_events_append": set(), "usage_append": set()}
    for path, tree in modules():
        for node in nodes(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name, files in callers.items():
                    if f"{name}(" in node.value.replace(" ", ""):
                        files.add(path.as_posix())
    assert callers["market_events_append"] <= {"ledger/log/recorder.py"}
    assert callers["usage_append"] <= {"ledger/log/usage.py"}


def test_the_shell_writes_no_table_of_the_ledger() -> None:
    """It reads with SQL where that is simplest; recording goes through the append functions.

    What is no fact (texts that can be erased, how a job went) is written by a file of `ledger/`.
    """
    writes = re.compile(
        r"\b(?:INSERT INTO|UPDATE|DELETE FROM|TRUNCATE(?: TABLE)?|COPY|ALTER TABLE)\s+"
        r"(?:public\.)?(?:market_|usage_|posting\b|account\b|command\b|checkpoint\b|tree_)",
        re.IGNORECASE,
    )
    any_write = re.compile(
        r"\b(?:INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO|UPDATE\s+[\w.]+(?:\s+(?:AS\s+)?\w+)?\s+SET)\b"
    )
    for path, tree in modules():
        if path.parts[0] == "api":
            for node in nodes(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    assert not writes.search(node.value), path
                    assert not any_write.search(node.value), (path, node.lineno)


def test_every_module_says_what_it_is() -> None:
    assert [str(path) for path, tree in modules() if ast.get_docstring(tree) is None] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [str(path) for path, _ in modules() if path.stem in NAMES_THAT_SAY_NOTHING] == []


claims = cache(packages_distributions)


@pytest.mark.parametrize("room", [*ROOMS, CLIENT])
def test_no_dependency_claims_one_of_our_names(room: str) -> None:
    ours = "tallystick-client" if room == CLIENT else "tallystick"
    ours = "tallystick-node" if room in ("domain", "node_reporter") else ours
    assert set(claims().get(room, ())) <= {ours}


def test_every_test_file_has_a_test_in_it() -> None:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        has_test = re.search(r"^(async )?def test_", text, re.MULTILINE) is not None
        assert has_test or "TestCase" in text or re.search(r"^class ", text, re.MULTILINE), path


MODULES_MAX = 20


def test_no_folder_grows_beyond_twenty_modules() -> None:
    """Written by hand: `__init__` and what is generated do not count."""
    full = {}
    for package in (*ROOMS, CLIENT, "tests", "benchmarks"):
        for folder in {path.parent for path in (ROOT / package).rglob("*.py")}:
            names = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
            if len(names) > MODULES_MAX:
                full[str(folder.relative_to(ROOT))] = len(names)
    assert full == {}


def test_no_function_is_longer_than_sixty_one_lines() -> None:
    """With its signature and its docstring; the client's files that are generated do not count."""
    benchmarks = [
        (path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted((ROOT / "benchmarks").rglob("*.py"))
    ]
    found = [
        (str(path), node.name, length)
        for path, tree in (*modules(), *benchmarks)
        if path.parts[0] != CLIENT
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not found, found


def test_nothing_tracked_names_a_registry_or_a_path_of_a_machine() -> None:
    """The project speaks of itself alone: no package host, no folder of whoever wrote it."""
    hosts = [
        f"{name}.{end}"
        for name, end in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "com"),
            ("npmjs", "org"),
            ("yarnpkg", "com"),
            ("deb.debian", "org"),
        )
    ]
    places = re.compile(r"(?<![\w.~$}])/(?:home|root|work|Users|mnt|tmp/[a-z]+)/[\w.-]+/")
    suffixes = {".py", ".md", ".toml", ".txt", ".json", ".sql", ".sol", ".mjs", ".c", ""}
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(part.startswith(".") and part != ".ci" for part in parts)
        if hidden or "node_modules" in parts or path.suffix not in suffixes or path.is_dir():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for host in hosts:
            assert host not in text, (path, host)
        assert not places.findall(text), path


def test_assertions_are_on() -> None:
    """Money invariants are assertions, so nothing of ours may run with `python -O`."""
    assert sys.flags.optimize == 0


def test_only_the_rooms_of_the_log_name_the_tables_of_usage() -> None:
    """Everybody else asks `ledger/log/usage_reads.py`, so how reports are stored can change there.

    Views have tables of their own in schemas of their own: `own.` and `proj_` stand before those.
    """
    names = re.compile(r"(?<![\w.])(?:public\.)?usage_(?:event|key|head|node|evidence)\b(?!\()")
    spoken = re.compile(r"\b(?:SELECT|FROM|JOIN|INTO|UPDATE|TABLE)\b")
    for path, tree in modules():
        if path.parts[0] in ("api", "projections"):
            for node in nodes(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                    text = node.value if isinstance(node.value, str) else node.value.decode()
                    assert not (spoken.search(text) and names.search(text)), (path, node.lineno)
                    assert not text.startswith("public.usage_"), (path, node.lineno)


def docstring_of(room: Path) -> str:
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""


def test_a_room_opens_with_the_question_it_answers() -> None:
    """One paragraph: the question, what goes in, what comes out."""
    for room in surface.rooms():
        told = " ".join(docstring_of(room).split("\n"))
        question, _, rest = told.partition("?")
        assert 15 < len(question) < 100, told
        assert len(rest.split()) >= 10, told
        assert "\n\n" not in docstring_of(room), told


def test_a_room_exports_what_other_rooms_import_and_imports_nothing() -> None:
    """For all rooms in one test: each worker would read all modules for a few of them."""
    for room in surface.rooms():
        text = (room / "__init__.py").read_text(encoding="utf-8")
        names = surface.surfaces().get(surface.name_of(room), frozenset())
        assert text.endswith(surface.declared(names)), f"{room}: run python -m tests.surface"
        assert list(imports(ast.parse(text))) == [], room


CENTRAL = ("api/main.py", "api/timers.py", "api/rooms.py", "projections/tables.py", "cli/main.py")


@pytest.mark.parametrize("central", CENTRAL)
def test_what_a_room_adds_is_named_in_no_central_file(central: str) -> None:
    """A new resource, timer, view or command touches its room: these merge registries alone."""
    layer = central.split("/")[0]
    kept = {one.name for one in surface.rooms() if (one / "registry.py").is_file()}
    tree = dict(modules())[Path(central)]
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            package, _, room = node.module.partition(".")
            if package == layer and room.split(".")[0] in {*kept, "commands"}:
                assert [alias.name for alias in node.names] == ["registry"], ast.unparse(node)
        if isinstance(node, ast.Constant) and layer == "cli":
            assert node.value not in COMMANDS, node.lineno


def test_every_resource_timer_and_view_is_in_the_registry_of_its_room() -> None:
    lost = []
    for path, tree in modules():
        for one in tree.body:
            name = _listed(one)
            if name is not None and path.parts[0] in ("api", "projections"):
                listed = (ROOT / path.parent / "registry.py").read_text(encoding="utf-8")
                told = f"{path.stem}.resource" if name == "resource" else name
                if not re.search(rf"\b{re.escape(told)}\b", listed.split("\n\n", 2)[2]):
                    lost.append(f"{path}: {told}")
    assert lost == []


def _listed(node: ast.stmt) -> str | None:
    """The name of what a registry must list: a resource, a view, or what a timer runs."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        maker, name = ast.unparse(node.value.func), ast.unparse(node.targets[0])
        return (
            name if maker == "Projection" or (maker == "Resource" and name == "resource") else None
        )
    if isinstance(node, ast.FunctionDef) and re.match("run_|run$", node.name):
        given = [one.arg.strip("_") for one in node.args.args][:3]
        is_pin = node.name == "run_pin"  # its timer asks the settings how often
        return node.name if given == ["service", "connection", "now_us"] and not is_pin else None
    return None
