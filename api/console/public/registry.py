"""Pages that anybody may read, and their lines of the menu."""

from __future__ import annotations

from api.console.public import epochs, log, proposals, reputation, room, solvency
from api.console.visits.page import Link, Page

PAGES = (
    Page("/epochs", epochs.show_all, is_public=True),
    Page("/epochs/{epoch}", epochs.show, is_public=True),
    Page("/epochs/{epoch}/epoch.json", epochs.file, is_public=True),
    Page("/epochs/{epoch}/nodes/{node_id}", epochs.explain, is_public=True),
    Page("/proposals", proposals.show_all, is_public=True),
    Page("/proposals/{number}", proposals.show, proposals.take, is_public=True),
    Page("/solvency", solvency.show, is_public=True),
    Page("/nodes/{node_id}/reputation", reputation.show, is_public=True),
    Page("/log", log.show, is_public=True),
    Page("/log/{position}", log.show_fact),
    Page("/log/{position}/fact.tlog-proof", log.save_proof),
    Page("/room", room.show, is_public=True),
)
LINKS = (
    Link("Network", "Epochs", "/epochs"),
    Link("Network", "Solvency", "/solvency"),
    Link("Network", "Proposals", "/proposals"),
    Link("Network", "Where there is room", "/room"),
    Link("Network", "The log", "/log"),
)
