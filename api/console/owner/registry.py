"""Pages of owners of GPUs, and their lines of the menu."""

from __future__ import annotations

from api.console.owner import earnings
from api.console.visits.page import Link, Page

PAGES = (
    Page("/earn", earnings.now),
    Page("/earn/{month}", earnings.show),
    Page("/earn/{month}/lines/{position}", earnings.show_line),
)
READERS = frozenset({"earnings:read"})
LINKS = (Link("Earn", "Earnings", "/earn", READERS),)
