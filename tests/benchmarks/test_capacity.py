"""The page of capacities says what the results say; what it is made of still runs."""

from __future__ import annotations

import pytest

from benchmarks.capacity import costs, page
from benchmarks.size import Size
from tests.benchmarks.test_tiny import Shared
from tests.benchmarks.test_tiny import shared as shared


def test_the_page_is_that_of_the_results() -> None:
    found = page.results()
    assert [told["size"] for told in found] == [Size.FULL.value, Size.FULL.value]
    assert page.PAGE.read_text(encoding="utf-8") == page.page(*found), "the page's own module"


@pytest.mark.slow("::test_the_page_is_that_of_the_results")
@pytest.mark.timeout(120)
def test_costs_are_measured(shared: Shared) -> None:
    told = costs.run(Size.TINY, shared)
    for one in told["reports"].values():
        assert one["bytes"].keys() >= {"reports", "trees", "views"}
        assert one["exported_bytes"] > one["signed_bytes"] // 4
        assert sum(one["stored_ns"].values()) > 0
    assert told["facts"]["bytes"]["facts"] > 0
    assert min(told["gas"].values()) > 21_000, "no transaction costs less"
    assert told["gas"]["claim_among_100"] < told["gas"]["first_claim"]
