"""Pages of renters, and their lines of the menu."""

from __future__ import annotations

from api.console.renter import (
    bill,
    disputes,
    home,
    keys,
    lease,
    leases,
    live,
    money,
    offers,
    opening,
    output,
    webhooks,
)
from api.console.visits.page import Link, Page

PAGES = (
    Page("/rent", home.show),
    Page("/leases", leases.show),
    Page("/leases/{lease_id}", lease.show, lease.take),
    Page("/leases/{lease_id}/live", live.show),
    Page("/leases/{lease_id}/log.txt", output.download),
    Page("/leases/{lease_id}/events.json", lease.events_file),
    Page("/bills", bill.now),
    *(Page(f"/bills/{{month}}{end}", bill.export) for end, _ in bill.EXPORTS),
    Page("/bills/{month}", bill.show),
    Page("/bills/{month}/lines/{position}", bill.show_line),
    Page("/bills/{month}/lines/{position}/proof", bill.show_proof),
    Page("/money", money.show, money.take),
    Page("/payments/{payment_id}", money.show_payment),
    Page("/invoices", money.show_invoices),
    Page("/invoices/{number}.pdf", money.invoice),
    Page("/invoices/{number}.html", money.invoice),
    Page("/keys", keys.show, keys.take),
    Page("/webhooks", webhooks.show, webhooks.take),
    Page("/webhooks/{endpoint_id}", webhooks.show_one, webhooks.take_one),
    Page("/disputes", disputes.show),
    Page("/disputes/new", disputes.show_new, disputes.take_new),
    Page("/disputes/{dispute_id}", disputes.show_one, disputes.take_one),
    Page("/offers", offers.show, is_public=True),
    Page("/offers/{offer_id}", offers.show_one, opening.take, is_public=True),
)
RENTERS = frozenset({"renter", "client"})
PARTIES = frozenset({"party", "client"})
ACCOUNT = frozenset({"account"})
READERS = frozenset({"billing:read"})
LINKS = (
    Link("Rent", "Home", "/rent", RENTERS | READERS, PARTIES),
    Link("Rent", "Offers", "/offers"),
    Link("Rent", "Leases", "/leases", RENTERS),
    Link("Rent", "Bills", "/bills", READERS),
    Link("Rent", "Money", "/money", READERS, PARTIES),
    Link("Account", "Keys", "/keys", ACCOUNT, PARTIES),
    Link("Account", "Webhooks", "/webhooks", ACCOUNT, PARTIES),
    Link("Account", "Disputes", "/disputes", frozenset({"renter", "provider", "operator"})),
)
