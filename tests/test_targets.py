"""What `make test` leaves out has a target of its own, and a short form in `make test`.

    run by .ci/run  =  make test  +  every target of a slow suite  =  all that is not `long`

A test of a slow suite is marked `pages`, `guides` or `slow` and names its short form: tests that
`make test` runs. A property is short in `make test` by a fifth of its examples, and whole in
`make test-properties`; Hypothesis marks what it runs.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
SLOW = ("pages", "guides", "slow")
LEFT_OUT = {*SLOW, "long", "skip", "skipif", "xfail"}


WORTH_READING = re.compile(r"mark\.(pages|guides|slow)|^ +@given|[^@]\bexamples\(", re.MULTILINE)


@cache
def _trees() -> dict[str, ast.Module]:
    """The files in which something is marked or counted, and those that such marks name."""
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(TESTS.rglob("*.py"))
    }
    chosen = {file for file, text in texts.items() if WORTH_READING.search(text)}
    chosen |= {name for file in chosen for name in re.findall(r"[\w/]+\.py", texts[file])}
    return {file: ast.parse(texts[file]) for file in sorted(chosen & texts.keys())}


def _marks(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[str, ast.expr]]:
    """`pytest.mark.NAME`, wherever it stands, called or not."""
    called = {id(each.func): each for each in ast.walk(node) if isinstance(each, ast.Call)}
    for each in ast.walk(node):
        if not isinstance(each, ast.Attribute) or each.attr not in names:
            continue
        if ast.unparse(each.value) == "pytest.mark":
            yield each.attr, called.get(id(each), each)


def _marked() -> list[tuple[str, int, ast.expr]]:
    return [
        (file, mark.lineno, mark)
        for file, tree in _trees().items()
        for _, mark in _marks(tree, SLOW)
    ]


def _is_in_make_test(function: ast.FunctionDef) -> bool:
    """No mark of the function itself leaves it out; one of its parameters may."""
    own = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
    names = {each.attr for each in own if isinstance(each, ast.Attribute)}
    return not names & LEFT_OUT


def _is_told(mark: ast.expr, file: str) -> bool:
    """Whether a mark names its short forms, and `make test` runs each of them."""
    names = mark.args if isinstance(mark, ast.Call) and not mark.keywords else []
    return bool(names) and all(_is_short_form(name, file) for name in names)


def _is_short_form(argument: ast.expr, file: str) -> bool:
    there, _, name = str(ast.literal_eval(argument)).partition("::")
    body = _trees()[there or file].body
    found = [one for one in body if isinstance(one, ast.FunctionDef) and one.name == name]
    return name.startswith("test_") and len(found) == 1 and _is_in_make_test(found[0])


def test_a_slow_test_names_its_short_form_which_make_test_runs() -> None:
    """Read in one test: each worker would read all files to collect one for each mark."""
    marked = _marked()
    assert len(marked) > 20
    assert [f"{file}:{at}" for file, at, mark in marked if not _is_told(mark, file)] == []


def test_no_file_is_a_slow_suite_as_a_whole_and_each_suite_has_tests() -> None:
    """`pytestmark = pytest.mark.slow(..)` would take new tests along that have no short form."""
    assert {mark for tree in _trees().values() for mark, _ in _marks(tree, SLOW)} == set(SLOW)
    for file, tree in _trees().items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
                assert not list(_marks(node, SLOW)), file


def _recipes() -> dict[str, str]:
    """What each target of the Makefile runs, with its variables put in."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    values = dict(re.findall(r"^([A-Z_]+) :?= (.*)$", text, re.MULTILINE))
    for _ in range(3):
        for name, value in values.items():
            text = text.replace(f"$({name})", value)
    return dict(re.findall(r"^([a-z-]+):[^\n=]*\n((?:\t.*\n)+)", text, re.MULTILINE))


def _expression(recipe: str) -> str:
    (found,) = re.findall(r'-m "(.*?)"', recipe)
    return str(found)


def test_ci_runs_make_test_and_all_that_it_leaves_out_but_the_long_tests() -> None:
    recipes = _recipes()
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    targets = re.findall(r"^make (.+)$", run, re.MULTILINE)
    assert targets == ["test", "types", "test-properties", *(f"test-{name}" for name in SLOW)]
    quick = _expression(recipes["test"])
    assert quick == " and ".join(f"not {name}" for name in ("long", *SLOW))
    for name in SLOW:
        assert _expression(recipes[f"test-{name}"]) == f"{name} and not long"
    assert _expression(recipes["test-properties"]) == f"hypothesis and {quick}"
    assert "--hypothesis-profile dev" in recipes["test"]
    for name in targets:
        if name == "types":
            continue
        is_whole = name != "test"
        assert ("profile" not in recipes[name]) == is_whole, (
            "all examples: `ci` where none is named"
        )
        assert not {"--ignore", "--deselect"} & set(re.split(r"[ =]", recipes[name]))
        assert "-k" not in recipes[name].split()


def test_the_markers_are_those_of_the_targets() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    markers = project["tool"]["pytest"]["ini_options"]["markers"]
    assert [re.match(r"\w+", marker)[0] for marker in markers] == ["long", *SLOW]  # type: ignore[index]


def _takes_the_profile(node: ast.AST) -> bool:
    """Whether it is `examples(..)`, or a function that Hypothesis runs and that says no count."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) == "examples"
    if not isinstance(node, ast.FunctionDef):
        return False
    words = [ast.unparse(one) for one in node.decorator_list]
    counted = any(word.startswith("settings(max_examples=") for word in words)
    return any(word.startswith("given(") for word in words) and not counted


def test_only_a_property_takes_its_count_from_the_profile() -> None:
    """What runs Hypothesis inside of a test is not marked by it, and `make test-properties` would
    miss it: such a test says its count, or has the mark.
    """
    wrong = [
        f"{file}:{one.lineno}"
        for file, tree in _trees().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        if "pytest.mark.hypothesis" not in map(ast.unparse, function.decorator_list)
        for part in function.body
        for one in ast.walk(part)
        if isinstance(one, ast.Call | ast.FunctionDef) and _takes_the_profile(one)
    ]
    assert wrong == []
