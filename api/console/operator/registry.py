"""Pages of the operator, and their lines of the menu."""

from __future__ import annotations

from api.console.operator import accounts, admissions, capacity, operate, payouts
from api.console.visits.page import Link, Page

PAGES = (
    Page("/operate", operate.show),
    Page("/operate/differences/{difference_id}", None, operate.settle),
    Page("/operate/admissions", admissions.show_all),
    Page("/operate/admissions/{admission_id}", admissions.show, admissions.take),
    Page("/operate/nodes/{node_id}/admit", None, admissions.admit),
    Page("/operate/payouts", payouts.show),
    Page("/operate/payouts/{account_id}/{cash_out_id}", payouts.show_one, payouts.take),
    Page("/operate/capacity", capacity.show),
    Page("/operate/accounts", accounts.show_all, accounts.open_one),
    Page("/operate/accounts/{account_id}", accounts.show, accounts.take),
    Page("/operate/clients/{client_id}", None, accounts.suspend),
)
OPERATORS = frozenset({"operator"})
LINKS = (
    Link("Operate", "What waits", "/operate", OPERATORS, OPERATORS),
    Link("Operate", "Admissions", "/operate/admissions", OPERATORS, OPERATORS),
    Link("Operate", "Payouts", "/operate/payouts", OPERATORS, OPERATORS),
    Link("Operate", "Capacity", "/operate/capacity", OPERATORS, OPERATORS),
    Link("Operate", "Accounts", "/operate/accounts", OPERATORS, OPERATORS),
)
