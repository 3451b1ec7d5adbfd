"""Pages that anybody may read, and their lines of the menu."""

from __future__ import annotations

from api.console.public import epochs
from api.console.visits.page import Link, Page

PAGES = (
    Page("/epochs", epochs.show_all, is_public=True),
    Page("/epochs/{epoch}", epochs.show, is_public=True),
    Page("/epochs/{epoch}/nodes/{node_id}", epochs.explain, is_public=True),
)
LINKS = (Link("Network", "Epochs", "/epochs"),)
