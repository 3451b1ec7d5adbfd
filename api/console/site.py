"""From a request to a page: who looks, whether the form is ours, and what is said when it fails.

    one page shows one position: it is read again until all its answers reflect the same one, at
    most `ATTEMPTS` times; then it says between which positions its numbers stand

No visitor leaves anything in memory: what is known of one is in the cookie and in its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import compile_path

from api.console import every_page
from api.console.drawing import static
from api.console.front import Asgi, Reference
from api.console.sessions import sessions
from api.console.sessions.sessions import Session
from api.console.visits import headers, states
from api.console.visits.page import Handler, Page
from api.console.visits.reading import Reader, Refused, refused
from api.console.visits.visit import Visit
from api.door import errors
from api.door.auth import ANYBODY, Authenticator
from api.process.service import Service

ATTEMPTS = 3
FORM_BYTES_MAX = 65_536
FIELDS_MAX = 200
FORM_TYPE = "application/x-www-form-urlencoded"
OLD_ADDRESSES = {
    "/console": "/",
    "/console/": "/",
    "/console/bill": "/bills",
    "/console/earnings": "/earn",
    "/console/epoch": "/epochs",
    "/redoc": "/docs",
}
Found = tuple[Page, Mapping[str, str]]


class Site:
    """All pages, before the API `app`; what is no page is the API's."""

    def __init__(self, app: Asgi, service: Service, reference: Reference) -> None:
        self.app, self.service, self.reference = app, service, reference
        self.authenticator = Authenticator(service)
        self._pages = [(compile_path(page.path)[0], page) for page in every_page.PAGES]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        response = await self._answer(request)
        if response is None:
            # What neither knows is told in the form that the caller reads.
            await self.app(scope, receive, send)
        else:
            await headers.seal(request, response)(scope, receive, send)

    def page_at(self, path: str) -> Found | None:
        """The page of an address, and the parameters in it: no NUL, which no database holds."""
        for pattern, page in self._pages:
            found = pattern.match(path)
            if found is not None and "\0" not in path:
                return page, found.groupdict()
        return None

    def is_shown(self, address: str) -> bool:
        """Whether an address with its query leads to a page of ours: nothing else is gone on to."""
        path, _, query = address.partition("?")
        is_plain = all(" " < each < "\x7f" and each not in '\\"<>' for each in address)
        is_ours = path.startswith("/") and not path.startswith("//") and is_plain
        found = self.page_at(path) if is_ours and len(address) <= 500 and "#" not in query else None
        return found is not None and found[0].show is not None

    async def _answer(self, request: Request) -> Response | None:
        path, is_read = request.url.path, request.method in ("GET", "HEAD")
        if path.startswith(static.PATH) and (kept := static.answer(request)) is not None:
            return kept
        if path in OLD_ADDRESSES and is_read:
            return RedirectResponse(OLD_ADDRESSES[path], 308)
        found = self.page_at(path)
        if found is None and not (is_read and _reads_pages(request)):
            return None
        if not headers.is_same_origin(request.headers):
            return Response("another site's script", 403)
        if found is None:
            visit = await self._visit(request, {}, {})
            return states.told(visit, refused("not_found"))
        request.scope["route"] = found[0]  # for the numbers of requests
        return await self._page(request, found)

    async def _page(self, request: Request, found: Found) -> Response:
        page, params = found
        try:
            form = await _form(request) if request.method == "POST" else {}
        except Refused as too_large:
            return states.told(await self._visit(request, params, {}), too_large)
        visit = await self._visit(request, params, form)
        shown = page.take if request.method == "POST" else page.show
        if shown is None or request.method not in ("GET", "HEAD", "POST"):
            return states.told(visit, refused("method_not_allowed"))
        if request.method == "POST" and not _is_ours(request, visit, form):
            return states.stale_form(visit)
        if visit.session is None and not page.is_public:
            return _signed_out(request)
        if page.scopes and not visit.may(*page.scopes):
            wanted = " or ".join(sorted(page.scopes))
            return states.told(visit, refused("scope_missing", f"needs the scope {wanted}"))
        return await self._shown(request, visit, shown)

    async def _shown(self, request: Request, visit: Visit, shown: Handler) -> Response:
        """The page at one position, if the market lets it; a refusal as a page that says so."""
        attempts = ATTEMPTS if request.method != "POST" else 1
        for attempt in range(attempts):
            try:
                response = await shown(visit)
            except Refused as problem:
                return states.told(visit, problem)
            except Exception as error:
                expected = errors.of_failure(error)
                if expected is None and not isinstance(error, errors.Problem):
                    raise
                return states.told(visit, _as_refused(expected or error, visit))
            if len(visit.reader.positions) < 2 or attempt == attempts - 1:
                break
            visit.reader.positions.clear()
        return response

    async def _visit(
        self, request: Request, params: Mapping[str, str], form: Mapping[str, str]
    ) -> Visit:
        session: Session | None = None
        token = headers.cookie_of(request, headers.SESSION)
        if token is not None and len(token) < 100:
            session = await run_in_threadpool(sessions.find, self.service, token)
        principal = ANYBODY if session is None else session.principal
        reader = Reader(self.app, request.scope, principal)
        return Visit(
            self.service,
            request,
            reader,
            self,
            session=session,
            params=params,
            form=form,
            links=every_page.LINKS,
        )


def _is_ours(request: Request, visit: Visit, form: Mapping[str, str]) -> bool:
    """Whether a page of this server sent the form, in this browser."""
    return headers.is_own_form(request.headers) and visit.has_csrf(form.get("csrf", ""))


def _as_refused(found: Exception, visit: Visit) -> Refused:
    assert isinstance(found, errors.Problem)
    return Refused(found.status, found.document(visit.here, visit.request_id))


def _reads_pages(request: Request) -> bool:
    """Whether a person's browser asks: a client of the API gets problem+json."""
    return "text/html" in request.headers.get("accept", "")


def _signed_out(request: Request) -> Response:
    """To the page for signing in, and from there back to where the visitor wanted to go."""
    wanted = request.url.path
    if request.method == "POST":
        return RedirectResponse("/sign-in", 303)
    if request.url.query:
        wanted = f"{wanted}?{request.url.query}"
    response = RedirectResponse(f"/sign-in?next={quote(wanted, safe='')}", 303)
    if headers.cookie_of(request, headers.SESSION) is not None:
        headers.drop_cookie(request, response, headers.SESSION)
    return response


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, each once. Raises Refused."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != FORM_TYPE:
        raise refused("unsupported_media_type", "a form of a page is expected")
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > FORM_BYTES_MAX:
            raise refused("too_large", f"at most {FORM_BYTES_MAX} bytes")
    try:
        pairs = parse_qsl(
            raw.decode("utf-8"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise refused("invalid", "the form cannot be read") from None
    if any("\0" in text for pair in pairs for text in pair):
        raise refused("invalid", "a field has a NUL character")
    return dict(pairs)
