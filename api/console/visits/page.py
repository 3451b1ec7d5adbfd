"""What a page is, and what a link to it in the menu is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from api.console.visits.visit import Visit

Handler = Callable[["Visit"], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """An address and what is shown there. `take` gets the forms that are sent to it (POST).

    `path` is a template of Starlette, such as `/bills/{month}`; a parameter holds no slash.
    A page that is not public sends a visitor who is not signed in to the page for signing in. One
    with `scopes` is made for who has one of them: others are told so, even where the API would let
    them read what is theirs.
    """

    path: str
    show: Handler | None
    take: Handler | None = None
    is_public: bool = False
    scopes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        assert self.show is not None or self.take is not None, self.path


@dataclass(frozen=True, slots=True)
class Link:
    """A line of the menu. Visitors see it with any one of `scopes`, or without any if it is public.

    `operators` alone see it where it says so. Whether a page opens is decided by the API, not here.
    """

    heading: str
    label: str
    path: str
    scopes: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()

    def is_for(self, kind: str, scopes: frozenset[str]) -> bool:
        """Whether a visitor with an account of this kind and these scopes sees the line."""
        if self.kinds and kind not in self.kinds:
            return False
        return not self.scopes or not self.scopes.isdisjoint(scopes)
