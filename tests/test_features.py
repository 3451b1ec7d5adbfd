"""The claim list: which rows of the feature table are done here, and which test shows each.

`features.json` maps a row's id to tests, `file::name`. A row is claimed when all of it is shown,
not a part; a row that is not in the list is not claimed. What the tests do is theirs to say: here
it is checked that they exist, run before a change lands (in `make test`, or in a slow suite that
`.ci/run` runs after it: `test_targets.py`), and name rows of `docs/reference/features.md`, which
says of each row whether it is claimed.
"""

from __future__ import annotations

import ast
import json
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CLAIMS: dict[str, list[str]] = json.loads((ROOT / "tests" / "features.json").read_bytes())
TABLE = ROOT / "docs" / "reference" / "features.md"
STANDS = dict(
    re.findall(
        r"^\| ([RCKJV]-[0-9]+) \|[^|]+\| (claimed|open) \|",
        TABLE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
"""Of each row of the table: claimed or open."""
LEFT_OUT = {"long", "skip", "skipif", "xfail"}


@lru_cache
def _tests_of(file: str) -> dict[str, set[str]]:
    """The test functions of a file, each with the names of its pytest marks."""
    tree = ast.parse((ROOT / file).read_bytes())
    return {
        node.name: {
            part.attr
            for decorator in node.decorator_list
            for part in ast.walk(decorator)
            if isinstance(part, ast.Attribute)
        }
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claimed_row_names_tests_that_exist_and_run(claim: str) -> None:
    assert CLAIMS[claim], f"{claim} is claimed without a test"
    assert len(set(CLAIMS[claim])) == len(CLAIMS[claim])
    for test in CLAIMS[claim]:
        file, _, name = test.partition("::")
        assert (ROOT / file).is_file(), test
        tests = _tests_of(file)
        assert name in tests, f"{claim}: there is no {test}"
        assert not tests[name] & LEFT_OUT, f"{claim}: {test} is not run by .ci/run"


def test_claims_are_ids_in_the_order_of_the_table() -> None:
    def place(claim: str) -> tuple[str, int]:
        letter, number = claim.split("-")
        return letter, int(number)

    assert list(CLAIMS) == sorted(CLAIMS, key=place)


def test_every_claimed_id_is_a_row_of_the_feature_table() -> None:
    assert len(STANDS) == 109
    assert CLAIMS.keys() <= STANDS.keys()


def test_the_feature_table_says_of_each_row_whether_it_is_claimed() -> None:
    claimed = {row for row, stands in STANDS.items() if stands == "claimed"}
    assert claimed == CLAIMS.keys(), "docs/reference/features.md and tests/features.json differ"
