"""Each address of a page leads to that page: none of another room takes it first."""

from __future__ import annotations

import re

from starlette.routing import compile_path

from api.console.every_page import PAGES


def test_no_page_hides_another() -> None:
    patterns = [(page.path, compile_path(page.path)[0]) for page in PAGES]
    for path, _ in patterns:
        address = re.sub(r"{[^}]*}", "0a", path)
        first = next(found for found, pattern in patterns if pattern.fullmatch(address))
        assert first == path, f"{path} is never reached: {first} takes it"


def test_no_address_is_there_twice() -> None:
    paths = [page.path for page in PAGES]
    assert len(paths) == len(set(paths))
