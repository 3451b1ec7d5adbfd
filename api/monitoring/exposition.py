"""`/metrics`: what every process counted, and what the database says, as Prometheus text.

Any worker answers for all of them. Outside /v1 and outside the door, as the other probes: it shows
numbers and names of timers, never data of a party. Keep it from strangers by the proxy.
"""

from __future__ import annotations

import asyncio

from fastapi import FastAPI, Request
from prometheus_client import generate_latest
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.door.limits import Buckets
from api.monitoring import figures
from api.process.service import Service
from api.telemetry import metrics

SCRAPES_PER_SECOND, SCRAPES_BURST = 1, 10
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def add(app: FastAPI) -> None:
    """The route; it is no operation of the API."""
    scrapes, last = Buckets(SCRAPES_PER_SECOND, SCRAPES_BURST), dict[str, bytes]()
    one = asyncio.Lock()

    async def answer(request: Request) -> Response:
        # It looks at every account: beyond what monitors ask, the last answer has to do.
        async with one:
            if "metrics" not in last or scrapes.spend("metrics").allowed:
                last["metrics"] = await run_in_threadpool(_text, request.app.state.service)
        return Response(last["metrics"], media_type=CONTENT_TYPE)

    app.add_route("/metrics", answer, methods=["GET"])


def _text(service: Service) -> bytes:
    metrics.copy(service.usage_log, service.readers)
    registry = metrics.registry()
    registry.register(figures.read(service))
    return generate_latest(registry)
