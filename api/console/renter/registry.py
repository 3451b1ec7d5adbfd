"""Pages of renters, and their lines of the menu."""

from __future__ import annotations

from api.console.renter import bill, home, lease, leases, live, output
from api.console.visits.page import Link, Page

PAGES = (
    Page("/rent", home.show),
    Page("/leases", leases.show),
    Page("/leases/{lease_id}", lease.show, lease.take),
    Page("/leases/{lease_id}/live", live.show),
    Page("/leases/{lease_id}/log.txt", output.download),
    Page("/leases/{lease_id}/events.json", lease.events_file),
    Page("/bills", bill.now),
    Page("/bills/{month}", bill.show),
    Page("/bills/{month}/lines/{position}", bill.show_line),
)
RENTERS = frozenset({"renter", "client"})
PARTIES = frozenset({"party", "client"})
READERS = frozenset({"billing:read"})
LINKS = (
    Link("Rent", "Home", "/rent", RENTERS | READERS, PARTIES),
    Link("Rent", "Leases", "/leases", RENTERS),
    Link("Rent", "Bills", "/bills", READERS),
)
