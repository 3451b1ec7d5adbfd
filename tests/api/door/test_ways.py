"""A request finds the way that looking at every one of them would find."""

from __future__ import annotations

import re

import pytest
from starlette.routing import Match

from api.door.door import Way, Ways
from api.main import _ways

METHODS = ("GET", "POST", "DELETE", "HEAD")
LOOKED_AT_MAX = 60


def one_after_the_other(
    ways: tuple[Way, ...], scope: dict[str, object]
) -> tuple[Match, Way | None]:
    """The first full match, else the first partial one: what the framework does with a list."""
    partly: tuple[Match, Way | None] = Match.NONE, None
    for way in ways:
        match, _ = way.matches(scope)
        if match == Match.FULL:
            return match, way
        if match == Match.PARTIAL and partly[1] is None:
            partly = match, way
    return partly


def paths() -> list[str]:
    """Every path there is with something for its parameters, and some that are none."""
    of_ways = {re.sub(r"\{[^}]+\}", "x1", "/".join(way.words)) for way in _ways()}
    nearly = {f"{path}/more" for path in of_ways} | {f"{path}/" for path in of_ways}
    return [
        *sorted(of_ways | nearly),
        "",
        "/",
        "/v1",
        "/v1/",
        "//",
        "/v2/leases",
        "/v1/Leases",
        "v1/leases",
        "/v1/leases/a%2Fb",
    ]


@pytest.mark.parametrize("root", ["", "/under"])
def test_a_request_finds_the_way_that_looking_at_all_of_them_would_find(root: str) -> None:
    ways = _ways()
    all_of_them, found_by = Ways(ways), set[object]()
    asked = paths() if not root else [f"{root}{path}" for path in ("/v1/leases", "/v1/nodes/x1")]
    for path in asked:
        for method in METHODS:
            scope: dict[str, object] = {
                "type": "http",
                "path": path,
                "method": method,
                "root_path": root,
            }
            wanted = one_after_the_other(ways, scope)
            match, child = all_of_them.matches(scope)
            assert (match, child.get(Ways._FOUND)) == wanted, (method, path)
            found_by.add(wanted[1])
    assert root or found_by >= set(ways), "every way is found by its path"


def test_a_request_looks_at_a_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Way] = []
    matches = Way.matches

    def counted(way: Way, scope: dict[str, object]) -> object:
        looked_at.append(way)
        return matches(way, scope)

    all_of_them = Ways(_ways())
    monkeypatch.setattr(Way, "matches", counted)
    for path in paths():
        looked_at.clear()
        all_of_them.matches({"type": "http", "path": path, "method": "GET", "root_path": ""})
        assert len(looked_at) <= LOOKED_AT_MAX, path
