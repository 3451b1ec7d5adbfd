"""One request, seen from outside the framework: its line in the log, its numbers, its span.

A request's line has its id, which the answer's `Request-Id` repeats, the account that asked, the
route and never the path's parameters or the query. Usage reports and probes are told at DEBUG: a
market of 1,000 nodes sends a million reports a day.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry.trace import Status, StatusCode

from api.telemetry import metrics
from api.telemetry.traces import Traces

logger = logging.getLogger(__name__)

Scope = dict[str, Any]
UNMATCHED = "unmatched"
QUIET = frozenset({"/healthz", "/readyz", "/metrics", "/v1/nodes/{node_id}/usage"})


async def observed(
    traces: Traces, scope: Any, route: str | None, work: Callable[[], Awaitable[None]]
) -> None:
    """Do the work of a request, then tell how it went.

    `scope["state"]["status"]` is the status that was sent. Where none was, it is 500 after an error
    and 499 when the caller left before its answer. `route` names what never reaches the framework,
    which leaves its own in the scope.
    """
    began = time.perf_counter()
    with traces.request(scope["method"]) as span:
        left = 499
        try:
            await work()
        except Exception:
            left = 500
            raise
        finally:
            seconds = time.perf_counter() - began
            found = route or _route_of(scope)
            status = scope["state"].get("status", left)
            # Of what is no operation the method is the caller's: there must not be many series.
            method = "other" if found == UNMATCHED or status == 405 else scope["method"]
            metrics.REQUESTS.labels(method, found, str(status)).observe(seconds)
            level = logging.DEBUG if found in QUIET else logging.INFO
            if status >= 500:
                level = logging.WARNING
            if logger.isEnabledFor(level):
                logger.log(level, "request", extra=_told(scope, found, status, seconds))
            if span.is_recording():
                span.update_name(f"{scope['method']} {found}")
                span.set_attribute("http.request.method", scope["method"])
                span.set_attribute("http.route", found)
                span.set_attribute("http.response.status_code", status)
                span.set_attribute("tallystick.request_id", scope["state"]["request_id"])
                if status >= 500:
                    span.set_status(Status(StatusCode.ERROR))


def _route_of(scope: Any) -> str:
    """The route as it is declared, so that there are as many as operations, not as callers."""
    path = getattr(scope.get("route"), "path", None)
    if path is not None:
        return str(path)
    return str(scope["path"]) if scope["path"] in QUIET else UNMATCHED


def _told(scope: Any, route: str, status: int, seconds: float) -> Scope:
    told = {
        "request_id": scope["state"]["request_id"],
        "method": scope["method"],
        "route": route,
        "status": status,
        "duration_ms": round(1_000 * seconds, 3),
    }
    call = scope["state"].get("call")
    if call is not None:
        told["account"] = call.account.partition(":")[0]  # after it the hash of somebody's code
    return told
