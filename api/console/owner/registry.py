"""Pages of owners of GPUs, and their lines of the menu."""

from __future__ import annotations

from api.console.owner import earnings, home, node_acts, node_offers, nodes
from api.console.visits.page import Link, Page

PAGES = (
    Page("/earn", home.show),
    Page("/earn/{month}", earnings.show),
    Page("/earn/{month}/lines/{position}", earnings.show_line),
    Page("/nodes", nodes.show_all),
    Page("/nodes/{node_id}", nodes.show),
    Page("/nodes/{node_id}/confirm", node_acts.show_confirm, node_acts.take_confirm),
    Page("/nodes/{node_id}/offer", node_offers.show, node_offers.take),
    Page(
        "/nodes/{node_id}/offers/{offer_id}/close", node_offers.show_close, node_offers.take_close
    ),
    Page("/nodes/{node_id}/{act}", node_acts.show, node_acts.take),
)
READERS = frozenset({"earnings:read"})
RUNNERS = frozenset({"provider"})
LINKS = (Link("Earn", "Earnings", "/earn", READERS), Link("Earn", "Machines", "/nodes", RUNNERS))
