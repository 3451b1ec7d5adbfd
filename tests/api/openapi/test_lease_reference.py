"""The page of states and close codes is what the domain says."""

from __future__ import annotations

from api.openapi.lease_reference import PAGE, page


def test_the_committed_page_of_lease_states_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
