"""Pages of everybody, and their lines of the menu."""

from __future__ import annotations

from api.console.everybody import home, reference, search, sign_in, sign_up, signed_in
from api.console.visits.page import Link, Page

PAGES = (
    Page("/", home.show, is_public=True),
    Page("/sign-in", sign_in.show, sign_in.take, is_public=True),
    Page("/sign-in/wallet", sign_in.show, sign_in.take_wallet, is_public=True),
    Page("/sign-up", sign_up.show, sign_up.take, is_public=True),
    Page("/sign-out", None, signed_in.sign_out),
    Page("/sessions", signed_in.show),
    Page("/sessions/{session_id}/end", None, signed_in.end),
    Page("/sessions/end-others", None, signed_in.end_others),
    Page("/search", search.show),
    Page("/docs", reference.show, is_public=True),
    Page("/docs/{tag}", reference.show_tag, is_public=True),
    Page("/problems", reference.show_problems, is_public=True),
    Page("/problems/{code}", reference.show_problem, is_public=True),
)
READERS = frozenset({"account"})
LINKS = (Link("Help", "Search", "/search", READERS), Link("Help", "REST reference", "/docs"))
