"""Pages of the operator, and their lines of the menu."""

from __future__ import annotations

from api.console.operator import accounts, admissions, capacity, live, operate, payouts
from api.console.visits.page import Link, Page

OPERATORS = frozenset({"operator"})
PAGES = (
    Page("/operate", operate.show, scopes=OPERATORS),
    Page("/operate/live", live.show, scopes=OPERATORS),
    Page("/operate/differences/{difference_id}", None, operate.settle, scopes=OPERATORS),
    Page("/operate/admissions", admissions.show_all, scopes=OPERATORS),
    Page("/operate/admissions/{admission_id}", admissions.show, admissions.take, scopes=OPERATORS),
    Page("/operate/nodes/{node_id}/admit", None, admissions.admit, scopes=OPERATORS),
    Page("/operate/payouts", payouts.show, scopes=OPERATORS),
    Page(
        "/operate/payouts/{account_id}/{cash_out_id}",
        payouts.show_one,
        payouts.take,
        scopes=OPERATORS,
    ),
    Page("/operate/capacity", capacity.show, scopes=OPERATORS),
    Page("/operate/accounts", accounts.show_all, accounts.open_one, scopes=OPERATORS),
    Page("/operate/accounts/{account_id}", accounts.show, accounts.take, scopes=OPERATORS),
    Page("/operate/clients/{client_id}", None, accounts.suspend, scopes=OPERATORS),
)
LINKS = (
    Link("Operate", "What waits", "/operate", OPERATORS, OPERATORS),
    Link("Operate", "Admissions", "/operate/admissions", OPERATORS, OPERATORS),
    Link("Operate", "Payouts", "/operate/payouts", OPERATORS, OPERATORS),
    Link("Operate", "Capacity", "/operate/capacity", OPERATORS, OPERATORS),
    Link("Operate", "Accounts", "/operate/accounts", OPERATORS, OPERATORS),
)
