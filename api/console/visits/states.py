"""Pages that say what is in the way, and which next step works: refused, lost, broken."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from api.console.visits.reading import Refused, refused
from api.console.visits.visit import Visit

RETRY_AFTER_SECONDS = "5"


@dataclass(frozen=True, slots=True)
class State:
    """A heading, what it means, and the step after it: an address with its name."""

    heading: str
    text: str
    next_path: str = "/"
    next_name: str = "Go to the home page"


NOT_FOUND = State(
    "This page does not exist",
    "The address is wrong, or it names an object that your account cannot see.",
)
SIGNED_OUT = State(
    "You are signed out",
    "Your session is over, or its key was revoked. Sign in again; nothing was changed.",
    "/sign-in",
    "Sign in",
)
FORBIDDEN = State(
    "Your key does not allow this",
    "Sign in with a key that has the scope, or ask an administrator of your account for one.",
    "/sign-in",
    "Sign in with another key",
)
BUSY = State("Too many requests", "Wait a few seconds and load this page again.")
BROKEN = State(
    "The server failed",
    "Nothing was promised. Load this page again. If it fails again, tell the operator the id.",
)
AWAY = State("The server cannot answer now", "Nothing was changed. Load this page again shortly.")
REFUSED = State("This was refused", "")
OLD_FORM = State(
    "This form is too old",
    "It was made for another session or browser. Nothing was changed. Load the page again, then"
    " send the form again.",
)
BY_STATUS = {401: SIGNED_OUT, 403: FORBIDDEN, 404: NOT_FOUND, 429: BUSY, 500: BROKEN, 503: AWAY}


def told(visit: Visit, found: Refused) -> Response:
    """The page that says a refusal of the API."""
    return _page(visit, BY_STATUS.get(found.status, REFUSED), found)


def stale_form(visit: Visit) -> Response:
    """The page for a form that no page of ours sent to this browser."""
    return _page(visit, OLD_FORM, refused("scope_missing", "the form's token does not match"))


def _page(visit: Visit, state: State, found: Refused) -> Response:
    visit.reader.positions.clear()
    response = visit.show("state.html", found.status, state=state, found=found)
    if found.status in (429, 503):
        response.headers["Retry-After"] = RETRY_AFTER_SECONDS
    return response
