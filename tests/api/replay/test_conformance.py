"""The conformance command: what it runs, what it says, and with which code it ends."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from api.replay.conformance import (
    SUITES,
    Unusable,
    difference,
    main,
    read_file,
    run_files,
    suite_of,
)

OURS = Path(__file__).parents[2] / "vectors"
PUBLISHED = Path(__file__).parents[4] / "shared" / "vectors"

BURN = {"usd_micro": "5", "price_micro_usd_per_token": "1000", "fee_bps": 0}
BURNED = {"fee_micro_usd": "0", "burn_micro_usd": "5", "tokens_burned": "500000"}


def case(name: str = "five", **changed: Any) -> dict[str, Any]:
    return {"name": name, "source": "by hand", "input": BURN, "expect": BURNED, **changed}


def document(*cases: Any, **changed: Any) -> dict[str, Any]:
    return {"suite": "burn", "version": 1, "about": "burns", "cases": list(cases), **changed}


def written(folder: Path, content: Any, name: str = "file.json") -> str:
    path = folder / name
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(data)
    return str(path)


def run(*paths: str, as_json: bool = False) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(paths, as_json=as_json, out=out, err=err)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_our_own_vectors_pass(suite: str) -> None:
    result = run_files([OURS / f"{suite}.json"])
    assert result.failures == ()
    assert result.passed > 0


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_the_published_vectors_pass(suite: str) -> None:
    if not PUBLISHED.is_dir():
        pytest.skip(
            "the vectors published with the specification are not part of this repository;"
            f" with them at {PUBLISHED} they run too, and tests/vectors has cases of every suite"
        )
    result = run_files([PUBLISHED / f"{suite}.json"])
    assert result.failures == ()
    assert result.passed > 0


def test_every_suite_is_answered_by_a_function_of_the_product() -> None:
    assert all(callable(suite_of(name)) for name in SUITES)


def test_all_passed_is_said_last_and_ends_with_zero(tmp_path: Path) -> None:
    path = written(tmp_path, document(case()))
    assert run(path, path) == (0, "2 passed, 0 failed\n", "")


def test_a_file_without_cases_passes(tmp_path: Path) -> None:
    assert run(written(tmp_path, document())) == (0, "0 passed, 0 failed\n", "")


def test_failing_cases_are_told_in_file_and_case_order(tmp_path: Path) -> None:
    wrong = {**BURNED, "tokens_burned": "500001"}
    first = document(case("a", expect=wrong), case("b"), case("c", expect={"refused": "x"}))
    second = document(case("a", expect={**BURNED, "fee_micro_usd": 0}))
    code, out, err = run(written(tmp_path, first, "z.json"), written(tmp_path, second, "a.json"))
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == [
        "FAIL burn/a",
        "FAIL burn/c",
        "FAIL burn/a",
    ]
    assert lines[0] == 'FAIL burn/a: tokens_burned: expected "500001", got "500000"'
    assert lines[3] == "1 passed, 3 failed"
    assert len(lines) == 4


def test_json_is_one_document_with_the_same_code(tmp_path: Path) -> None:
    path = written(tmp_path, document(case("a", expect={"refused": "zero_amount"}), case("b")))
    code, out, _ = run(path, as_json=True)
    told = json.loads(out)
    assert code == 1
    assert (told["passed"], told["failed"]) == (1, 1)
    assert [set(failure) for failure in told["failures"]] == [{"suite", "name", "detail"}]
    assert (told["failures"][0]["suite"], told["failures"][0]["name"]) == ("burn", "a")


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {**BURN, "usd_micro": 5},
        {**BURN, "usd_micro": "05"},
        {**BURN, "usd_micro": "5.0"},
        {**BURN, "usd_micro": "-0"},
        {**BURN, "usd_micro": " 5"},
        {**BURN, "usd_micro": "\u0665"},
        {**BURN, "fee_bps": True},
        {**BURN, "fee_bps": "0"},
        {**BURN, "fee_bps": 0.0},
    ],
)
def test_a_case_that_raises_fails_and_the_others_go_on(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    path = written(tmp_path, document(case("a", input=broken), case("b")))
    code, out, _ = run(path)
    assert code == 1
    assert out.startswith("FAIL burn/a: raised ")
    assert out.endswith("1 passed, 1 failed\n")


def test_refusing_what_should_pass_fails_and_so_does_another_reason(tmp_path: Path) -> None:
    cheap = {**BURN, "price_micro_usd_per_token": "1"}
    cases = [
        case("refused", input=cheap),
        case("other-reason", input=cheap, expect={"refused": "zero_amount"}),
        case("more-than-a-reason", input=cheap, expect={"refused": "price_too_low", "x": 1}),
        case("right", input=cheap, expect={"refused": "price_too_low"}),
    ]
    code, out, _ = run(written(tmp_path, document(*cases)))
    assert (code, out.splitlines()[-1]) == (1, "1 passed, 3 failed")


def test_integers_may_have_any_size(tmp_path: Path) -> None:
    digits = "1" + "0" * 6_000
    expect = {"fee_micro_usd": "0", "burn_micro_usd": digits, "tokens_burned": digits + "00000"}
    huge = case("huge", input={**BURN, "usd_micro": digits}, expect=expect)
    assert run(written(tmp_path, document(huge)))[0] == 0


def test_a_name_never_breaks_the_line_or_the_stream(tmp_path: Path) -> None:
    odd = case("a\nb \u00e9 \ud800", expect={})
    code, out, _ = run(written(tmp_path, document(odd)))
    assert (code, len(out.splitlines())) == (1, 2)
    assert out.isascii()


UNUSABLE: list[Any] = [
    b"",
    b"{",
    b"\xff\xfe",
    b'\xef\xbb\xbf{"suite": "burn", "version": 1, "about": "", "cases": []}',
    b'{"suite": "burn", "version": 1, "about": NaN, "cases": []}',
    b"[" * 100_000,
    [],
    "burn",
    document(version=2),
    document(version=True),
    document(version="1"),
    document(version=1.0),
    document(suite="tarot"),
    document(suite=None),
    document(cases={}),
    document("case"),
    document({key: value for key, value in case().items() if key != "expect"}),
    document(case(input=[])),
    document({**case(), "name": 7}),
    document(case("same"), case("same")),
    {key: value for key, value in document().items() if key != "cases"},
]


@pytest.mark.parametrize("content", UNUSABLE, ids=range(len(UNUSABLE)))
def test_one_unusable_file_and_nothing_is_run(tmp_path: Path, content: Any) -> None:
    failing = written(tmp_path, document(case(expect={})), "failing.json")
    for as_json in (False, True):
        code, out, err = run(failing, written(tmp_path, content), as_json=as_json)
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1


def test_no_file_and_a_missing_file_are_unusable(tmp_path: Path) -> None:
    for paths in ((), (str(tmp_path / "nowhere.json"),), (str(tmp_path),)):
        code, out, err = run(*paths)
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
    with pytest.raises(Unusable):
        read_file(tmp_path / "nul\0")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        ("5", 5),
        (None, False),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ({"a": 1}, {}),
        ({"a": 1}, {"a": 1, "b": 1}),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}),
        ({}, []),
    ],
)
def test_values_are_equal_only_as_json(one: Any, other: Any) -> None:
    assert difference(one, other) is not None
    assert difference(other, one) is not None
    assert difference(one, one) is None


def test_the_order_of_keys_does_not_matter() -> None:
    assert difference({"a": 1, "b": 2}, {"b": 2, "a": 1}) is None
