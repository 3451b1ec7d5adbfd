"""`/metrics`: what every process counted, and what the database says, as Prometheus text.

Any worker answers for all of them. Outside /v1 and outside the door, as the other probes: it shows
numbers and names of timers, never data of a party. Keep it from strangers by the proxy.
"""

from __future__ import annotations

from fastapi import FastAPI, Request
from prometheus_client import generate_latest
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from api.door.health import PROBES_BURST, PROBES_PER_SECOND
from api.door.limits import Buckets
from api.monitoring import figures
from api.process.service import Service
from api.telemetry import metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def add(app: FastAPI) -> None:
    """The route; it is no operation of the API."""
    probes, last = Buckets(PROBES_PER_SECOND, PROBES_BURST), dict[str, bytes]()

    async def answer(request: Request) -> Response:
        # Beyond what monitors ask the database is left alone, as for /readyz.
        if "metrics" not in last or probes.spend("metrics").allowed:
            last["metrics"] = await run_in_threadpool(_text, request.app.state.service)
        return Response(last["metrics"], media_type=CONTENT_TYPE)

    app.add_route("/metrics", answer, methods=["GET"])


def _text(service: Service) -> bytes:
    metrics.copy(service.usage_log, service.readers)
    registry = metrics.registry()
    registry.register(figures.read(service))
    return generate_latest(registry)
