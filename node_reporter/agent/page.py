"""The node's own page, at http://127.0.0.1:PORT: has it joined, is it well, what did it earn today.

Not a remote control: one address, GET only, nothing on it changes anything and nothing on it is
secret. It listens on this machine alone, and answers only when it is called by this machine's own
name: a page elsewhere on the web that points a name of its own here (DNS rebinding) is refused.
What is shown is asked at most once a minute, whoever reloads.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from node_reporter.agent import doctor
from node_reporter.reports.server_view import Terms, Today

FRESH_S = 60
REQUEST_S_MAX = 5
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;
color:#1b1b1b;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .75rem .35rem 0;
border-bottom:1px solid #ddd}
th{font-weight:600}
.big{font-size:1.6rem;margin:.25rem 0}
.failed,.denied{color:#a00000;font-weight:600}.ok{color:#0b5d1e}
.absent,small{color:#555}code,th[scope=row],td:last-child{overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{background:#161616;color:#eee}th,td{border-color:#444}
.ok{color:#7ddc95}.failed,.denied{color:#ff9c9c}.absent,small{color:#bbb}}
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the page says. `checked` is what `doctor.examine` gave; `at` is this machine's time."""

    node_id: str
    server: str
    checked: dict[str, Any]
    today: Today | None
    at: str
    terms: Terms | None = None


class Page:
    """The page of one node, served by a thread of its own until it is closed."""

    def __init__(self, port: int, look: Callable[[], Shown]) -> None:
        """Raises OSError: the port is taken. Port 0 is any; `port` says which it became."""
        self._look = look
        self._kept: tuple[float, bytes] | None = None
        self._server = _LocalServer(("127.0.0.1", port), _handler(self.content))
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        """At once, unless a request is being answered: that is waited for."""
        self._closing.set()
        with suppress(OSError):  # it waits for a connection: this one says nothing
            socket.create_connection(("127.0.0.1", self.port), timeout=REQUEST_S_MAX).close()
        self._thread.join()
        self._server.server_close()

    def _serve(self) -> None:
        """Asleep between two requests: nothing is looked at now and then."""
        while not self._closing.is_set():
            self._server.handle_request()

    def content(self) -> bytes:
        """The page, made anew when it is a minute old. Only the page's own thread calls this."""
        now_s = time.monotonic()
        if self._kept is None or now_s - self._kept[0] >= FRESH_S:
            self._kept = (now_s, "".join(_html(self._look())).encode())
        return self._kept[1]


class _LocalServer(HTTPServer):
    """One request at a time, and no look-up of names."""

    request_queue_size = 8

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that goes away is no event of ours."""


def _handler(content: Callable[[], bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_S_MAX
        server_version, sys_version = "tallystick-node", ""

        def do_GET(self) -> None:
            port = self.connection.getsockname()[1]
            known = {f"127.0.0.1:{port}", f"localhost:{port}"}
            if self.headers.get_all("Host", []) not in ([name] for name in known):
                self._answer(421, b"this page is called by this machine's own name only\n")
            elif self.path != "/":
                self._answer(404, b"there is one page, at /\n")
            else:
                self._answer(200, content())

        def send_error(
            self, code: int, message: str | None = None, explain: str | None = None
        ) -> None:
            del message, explain
            self._answer(405 if code == 501 else code, b"only GET / is answered here\n")

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            for name, value in HEADERS.items():
                is_text = name == "Content-Type" and code != 200
                self.send_header(name, "text/plain; charset=utf-8" if is_text else value)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody wants a line for every look."""

    return Handler


# --- what it looks like -------------------------------------------------------------------------


def _html(shown: Shown) -> Iterator[str]:
    name = html.escape(shown.node_id)
    yield "<!doctype html><html lang=en><head><meta charset=utf-8>"
    yield "<meta name=viewport content='width=device-width,initial-scale=1'>"
    yield f"<meta http-equiv=refresh content={FRESH_S}><title>tallystick node</title>"
    yield f"<style>{_STYLE}</style></head><body><main><h1>tallystick node</h1>"
    yield f"<p><code>{name}</code><br>reports to <code>{html.escape(shown.server)}</code></p>"
    yield from _today(shown.today)
    yield from _terms(shown.terms)
    yield from _checks(shown.checked["checks"])
    yield from _devices(shown.checked["devices"])
    yield from _verdict(shown.checked["verdict"])
    yield from _lost(shown.checked)
    yield f"<p><small>Looked at {html.escape(shown.at)}; anew each minute. For more: "
    yield "<code>tallystick-node doctor</code></small></p></main></body></html>"


def _today(today: Today | None) -> Iterator[str]:
    yield "<section aria-labelledby=today><h2 id=today>Earned today</h2>"
    if today is None:
        yield "<p class=absent>The server has not told yet.</p></section>"
        return
    yield f"<p class=big>{_decimal(today.earned_units)} CREDIT</p>"
    hours = today.gpu_us // 3_600_000
    yield f"<p>{hours // 1_000}.{hours % 1_000:03d} GPU-hours accrued on {html.escape(today.day)}"
    if today.burn_units:
        yield f"; {_decimal(today.burn_units)} CREDIT more are paid in TOKEN with the epoch"
    yield " (UTC). The running hour is added when it is accrued.</p></section>"


def _terms(terms: Terms | None) -> Iterator[str]:
    """What part of the price is the owner's, and when it is paid."""
    if terms is None:
        return
    yield "<section aria-labelledby=terms><h2 id=terms>Your part of a GPU-hour</h2>"
    if not terms.parts:
        yield "<p>No offer is open. <code>tallystick offer create --dry-run</code> tells your part"
        yield " of a price before you offer.</p>"
    else:
        yield "<table><thead><tr><th scope=col>GPUs<th scope=col>Renters pay, CREDIT"
        yield "<th scope=col>Usage fee<th scope=col>Yours</thead><tbody>"
        for one in terms.parts:
            paid = " (in TOKEN)" if one.is_burned else ""
            yield f"<tr><th scope=row>{html.escape(one.gpu_class)}<td>{_decimal(one.price_units)}"
            yield f"<td>{_decimal(one.fee_units)}<td>{_decimal(one.owner_units)}{paid}"
        yield "</tbody></table>"
    yield f"<p>It matures {terms.held_back_s // 3_600} hours after it was earned. The smallest"
    yield f" cash-out is {_decimal(terms.minimum_units)} CREDIT.</p></section>"


def _checks(found: list[dict[str, str]]) -> Iterator[str]:
    yield "<section aria-labelledby=state><h2 id=state>State</h2><table><thead><tr>"
    yield "<th scope=col>What<th scope=col>State<th scope=col>Said</thead><tbody>"
    for check in found:
        state = html.escape(check["state"])
        yield f"<tr><th scope=row>{html.escape(check['name'])}<td class={state}>{state}<td>"
        yield html.escape(check["said"])
        if check["todo"]:
            yield f"<br><small>&rarr; {_with_code(check['todo'])}</small>"
    yield "</tbody></table></section>"


def _devices(found: list[dict[str, Any]]) -> Iterator[str]:
    yield "<section aria-labelledby=devices><h2 id=devices>Accelerators</h2><table><thead><tr>"
    yield "<th scope=col>Device<th scope=col>Health<th scope=col>Tells</thead><tbody>"
    for device in found:
        state = "ok" if device["ok"] else "failed"
        told = ", ".join(name for name, value in device["values"].items() if value == "ok")
        yield f"<tr><th scope=row>{html.escape(device['name'] or '')}<br>"
        yield f"<small><code>{html.escape(device['id'])}</code></small>"
        yield f"<td class={state}>{html.escape(device['health'])}<td>{html.escape(told)}"
    yield "</tbody></table></section>"


def _verdict(verdict: dict[str, Any] | None) -> Iterator[str]:
    if verdict is None:
        return
    yield "<section aria-labelledby=rules><h2 id=rules>Rules of the marketplace</h2><p>This machine"
    yield f" may {'' if verdict['joinable'] else 'not '}join, and may"
    yield f" {'' if verdict['sellable'] else 'not '}sell to others.</p>"
    if verdict["failing"]:
        yield "<ul>"
        for name in verdict["failing"]:
            waived = " (waived)" if name in verdict["waived"] else ""
            yield f"<li>not met: <code>{html.escape(name)}</code>{waived}"
        yield "</ul>"
    yield "</section>"


def _lost(checked: dict[str, Any]) -> Iterator[str]:
    rows = [(f"report {one['seq']}", one["rule"], one["us"]) for one in checked["flagged"]] + [
        (one["lease_id"], one["rule"], one["us"]) for one in checked["refused"]
    ]
    if not rows:
        return
    yield "<section aria-labelledby=lost><h2 id=lost>What earned nothing</h2><table><thead><tr>"
    yield "<th scope=col>Where<th scope=col>Rule<th scope=col>Time</thead><tbody>"
    for where, rule, us in rows:
        yield f"<tr><th scope=row>{html.escape(where)}<td>{html.escape(rule)}"
        yield f"<td>{html.escape(doctor.seconds(us))}"
    yield "</tbody></table></section>"


def _with_code(text: str) -> str:
    """Text with commands between backticks."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def _decimal(units: int) -> str:
    """Micro-credits as credits."""
    return f"{units // 1_000_000}.{units % 1_000_000:06d}"
