"""What the rooms of the console add, merged: every page, and the lines of the menu in order."""

from __future__ import annotations

from api.console.everybody import registry as everybody
from api.console.operator import registry as operator
from api.console.owner import registry as owner
from api.console.public import registry as public
from api.console.renter import registry as renter
from api.console.visits.page import Link, Page

PAGES: tuple[Page, ...] = (
    *everybody.PAGES,
    *renter.PAGES,
    *owner.PAGES,
    *operator.PAGES,
    *public.PAGES,
)
LINKS: tuple[Link, ...] = (
    *renter.LINKS,
    *owner.LINKS,
    *operator.LINKS,
    *public.LINKS,
    *everybody.LINKS,
)
