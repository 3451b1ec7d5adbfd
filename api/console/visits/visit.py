"""One visit of one page: who looks, what was asked, and the ways to answer."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from api.console.drawing import templates
from api.console.drawing.zones import Zone, zone_of
from api.console.front import Reference
from api.console.sessions.sessions import Session
from api.console.visits import headers
from api.console.visits.files import Passed
from api.console.visits.page import Link
from api.console.visits.reading import Reader, Told, Value, refused
from api.door.auth import Authenticator, Principal
from api.process import secret_files
from api.process.service import Service

THEMES = ("dark", "light")
FILE_HEADERS = ("content-type", "content-disposition", "etag", "tallystick-position")


class Pages(Protocol):
    """What a visit asks of the site that it is on."""

    reference: Reference
    authenticator: Authenticator

    def is_shown(self, address: str) -> bool:
        """Whether an address with its query leads to a page of ours."""


class Visit:
    """What a page gets. It reads with `read`, records with `record`, and answers with `show`, `to`
    or `file`; what it raises (`Refused`, `refused`) becomes a page that says it.
    """

    def __init__(
        self,
        service: Service,
        request: Request,
        reader: Reader,
        site: Pages,
        *,
        session: Session | None = None,
        params: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        links: tuple[Link, ...] = (),
    ) -> None:
        self.service, self.request, self.reader, self.site = service, request, reader, site
        self.session, self.links = session, links
        self.params, self.form = params or {}, form or {}
        self._new_form_cookie: str | None = None

    # --- who and when ------------------------------------------------------------------------

    @property
    def principal(self) -> Principal:
        return self.reader.principal

    @property
    def account_id(self) -> str:
        """Whose session it is. Raises Refused: nobody's."""
        if self.session is None:
            raise refused("unauthenticated")
        return self.session.row.account_id

    def may(self, *scopes: str) -> bool:
        """Whether the visitor has any one of these scopes: for what to offer, never to permit."""
        return not self.principal.scopes.isdisjoint(scopes)

    @cached_property
    def zone(self) -> Zone:
        """Where the reader's clock stands; UTC until the browser has said it."""
        return zone_of(self.request.cookies.get("zone", ""), self.service.clock.now_us())

    def asked(self, name: str, absent: str = "") -> str:
        """A parameter of the address, without spaces around it."""
        return self.request.query_params.get(name, absent).strip()

    # --- asking the API ----------------------------------------------------------------------

    async def read(self, path: str, **query: Value) -> Told:
        """The answer of a GET of the API. Raises Refused."""
        return await self.reader.read(path, **query)

    async def record(self, path: str, body: Told | None = None, **named: str) -> Told:
        """The answer of a POST of the API. The form's own number is its Idempotency-Key, so that a
        form that is sent twice acts once. Underscores in header names are hyphens. Raises Refused.
        """
        told = {"Idempotency-Key": self.form.get("once", "") or secrets.token_hex(16)}
        told |= {name.replace("_", "-"): value for name, value in named.items()}
        return await self.reader.record("POST", path, body or {}, told)

    async def delete(self, path: str) -> Told:
        """The answer of a DELETE of the API. Raises Refused."""
        return await self.reader.record("DELETE", path, {}, {})

    async def file(self, path: str) -> Response:
        """A file of the API, for the browser to keep. Raises Refused."""
        found = await self.reader.begin(path)
        kept = {name: found.headers[name] for name in FILE_HEADERS if name in found.headers}
        kept.setdefault("content-disposition", "attachment")
        return Passed(found, kept)

    # --- answering ---------------------------------------------------------------------------

    def show(self, template: str, status: int = 200, **told: Any) -> Response:
        """A page of `templates/`."""
        body = templates.render(template, {"visit": self, **told})
        response = HTMLResponse(body, status)
        if self._new_form_cookie is not None:
            headers.set_cookie(self.request, response, headers.FORM, self._new_form_cookie)
        return response

    def to(self, path: str) -> Response:
        """Go on at another page of ours; after a form this is the answer."""
        assert path.startswith("/"), path
        assert not path.startswith("//"), path
        return RedirectResponse(path, 303)

    # --- what templates ask ------------------------------------------------------------------

    @property
    def theme(self) -> str:
        """Which colours the reader chose; empty: the system's."""
        found = self.request.cookies.get("theme", "")
        return found if found in THEMES else ""

    @property
    def network(self) -> str:
        """The name of this market: where its log says it comes from."""
        return self.service.settings.log_origin.partition("/")[0]

    @property
    def menu(self) -> dict[str, list[Link]]:
        """What this visitor sees of the menu, by its headings."""
        found: dict[str, list[Link]] = {}
        for link in self.links:
            if link.is_for(self.principal.account_kind, self.principal.scopes):
                found.setdefault(link.heading, []).append(link)
        return found

    @property
    def current(self) -> str:
        """The line of the menu that this page lies under: the longest that begins its path."""
        under = [
            link.path
            for link in self.links
            if self.here == link.path or self.here.startswith(f"{link.path}/")
        ]
        return max(under, key=len, default="")

    @property
    def here(self) -> str:
        """The path of this page."""
        return str(self.request.scope["path"])

    @property
    def position(self) -> tuple[int, int] | None:
        """The first and the last position of the log that the numbers of this page reflect."""
        found = self.reader.positions
        return (min(found), max(found)) if found else None

    @property
    def request_id(self) -> str:
        return str(self.request.scope["state"]["request_id"])

    @property
    def once(self) -> str:
        """A number for one form."""
        return secrets.token_hex(16)

    @property
    def csrf(self) -> str:
        """What a form shows to prove that a page of ours sent it: of this browser's cookie."""
        return _csrf(self.service, self._form_cookie())

    def has_csrf(self, token: str) -> bool:
        """Whether the form that came was sent by a page of ours, in this browser."""
        cookie = self._cookie()
        return cookie is not None and hmac.compare_digest(
            _csrf(self.service, cookie).encode(), token.encode()
        )

    def _cookie(self) -> str | None:
        if self.session is not None:
            return self.session.token
        return headers.cookie_of(self.request, headers.FORM)

    def _form_cookie(self) -> str:
        found = self._cookie() or self._new_form_cookie
        if found is None:
            found = self._new_form_cookie = secrets.token_urlsafe(32)
        return found


def _csrf(service: Service, cookie: str) -> str:
    return secret_files.derive(service.server_key, "console-form/v1", cookie).hex()[:64]
