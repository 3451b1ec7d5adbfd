"""Pages of owners of GPUs, and their lines of the menu."""

from __future__ import annotations

from api.console.owner import (
    cash_out,
    earnings,
    home,
    join,
    maintenance,
    node_acts,
    node_offers,
    nodes,
    papers,
    places,
    providers,
    region_terms,
    splits,
    transfers,
)
from api.console.visits.page import Link, Page

PAGES = (
    Page("/earn", home.show),
    Page("/earn/cash-out", cash_out.show),
    Page("/earn/cash-out/send", cash_out.show_ask, cash_out.take),
    Page("/earn/cash-out/{cash_out_id}", cash_out.show_one, cash_out.take_one),
    Page("/earn/payment", cash_out.show_mode, cash_out.take_mode),
    Page("/earn/{month}", earnings.show),
    Page("/earn/{month}/files", papers.show_files),
    Page("/earn/{month}/files/{name}", papers.send_file),
    Page("/earn/{month}/lines/{position}/line.tlog-proof", papers.send_proof),
    Page("/earn/{month}/lines/{position}", earnings.show_line),
    Page("/nodes", nodes.show_all),
    Page("/nodes/new", join.show, join.take),
    Page("/nodes/new/{admission_id}", join.show_admission, join.take_admission),
    Page("/nodes/{node_id}", nodes.show),
    Page("/nodes/{node_id}/confirm", node_acts.show_confirm, node_acts.take_confirm),
    Page("/nodes/{node_id}/offer", node_offers.show, node_offers.take),
    Page(
        "/nodes/{node_id}/offers/{offer_id}/close", node_offers.show_close, node_offers.take_close
    ),
    Page("/nodes/{node_id}/split", splits.show, splits.take),
    Page("/nodes/{node_id}/windows", maintenance.show, maintenance.take),
    Page("/nodes/{node_id}/transfer", transfers.show, transfers.take),
    Page("/nodes/{node_id}/accept", transfers.show_accept, transfers.take_accept),
    *(Page(f"/nodes/{{node_id}}/{act}", node_acts.show, node_acts.take) for act in node_acts.ACTS),
    Page("/providers", providers.show, providers.take),
    Page("/regions", providers.show_regions, providers.take_region),
    Page("/regions/{region_id}", providers.show_region),
    Page("/regions/{region_id}/terms", region_terms.show, region_terms.take),
    Page("/regions/{region_id}/days/{date}", providers.show_day),
    Page("/map", places.show),
)
READERS = frozenset({"earnings:read"})
RUNNERS = frozenset({"provider"})
LINKS = (Link("Earn", "Earnings", "/earn", READERS), Link("Earn", "Machines", "/nodes", RUNNERS))
