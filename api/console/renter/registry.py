"""Pages of renters, and their lines of the menu."""

from __future__ import annotations

from api.console.renter import bill
from api.console.visits.page import Link, Page

PAGES = (
    Page("/bills", bill.now),
    Page("/bills/{month}", bill.show),
    Page("/bills/{month}/lines/{position}", bill.show_line),
)
READERS = frozenset({"billing:read"})
LINKS = (Link("Rent", "Bills", "/bills", READERS),)
