"""Is it alive, is it ready, how far behind is each follower; and the page behind each problem.

Probes for machines that run the service, outside /v1 and outside the door. They show numbers and
names of jobs, never data of a party.
"""

from __future__ import annotations

import asyncio
import html
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response

from api.door import errors
from api.door.limits import Buckets
from api.process import founding
from api.process.service import Service
from api.process.waiting import JobLag
from domain.reasons import REASONS
from ledger.beside import timer_runs as job_runs
from ledger.beside.timer_runs import JobRun
from ledger.log.full_disk import DISK
from ledger.log.lane_map import ranges
from ledger.log.usage_reads import STORED_COUNT
from ledger.tree import trees
from projections import tables
from projections.runner import Connection

PROBES_PER_SECOND = 10
PROBES_BURST = 50

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>body{{font:16px/1.5 system-ui;max-width:40rem;margin:3rem auto;padding:0 1rem}}
code{{background:#eee;padding:.1em .3em}}</style></head>
<body><h1>{title}</h1><p>{meaning}</p>
<dl><dt>Status</dt><dd>{status}</dd><dt>Code</dt><dd><code>{code}</code></dd>
<dt>Try again?</dt><dd>{retry}</dd></dl></body></html>
"""

_TREES = f"""
    SELECT 'tree', coalesce(sum(t.size), 0)::bigint,
        (SELECT pos FROM public.market_events_head)
            + {STORED_COUNT}
    FROM public.tree_head t
    UNION ALL
    SELECT 'checkpoint', coalesce((SELECT max(size) FROM public.checkpoint), 0),
        (SELECT pos FROM public.market_events_head)
    UNION ALL
    SELECT 'pin', coalesce((SELECT max(notification_id) FROM public.market_events
        WHERE topic = 'usage.pinned.v1'), 0), (SELECT pos FROM public.market_events_head)
"""  # noqa: S608


def lags(connection: Connection) -> list[JobLag]:
    """Every projection and audit follower, with position and head."""
    found = [
        JobLag(f"{lag.projection}/{lag.log}", lag.position, lag.head, lag.waiting_since_us)
        for lag in tables.lag(connection)
    ]
    rows = connection.execute(_TREES.encode()).fetchall()
    return found + [JobLag(str(name), int(at), int(head)) for name, at, head in rows]


def add(app: FastAPI) -> None:
    """The probes and pages; none of them is an operation of the API."""

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    probes, last = Buckets(PROBES_PER_SECOND, PROBES_BURST), dict[str, Response]()
    telling = asyncio.Lock()

    async def readyz(request: Request) -> Response:
        # Nobody is turned away here, so beyond what monitors ask the database is left alone.
        if "readyz" not in last or probes.spend("readyz").allowed:
            last["readyz"] = await run_in_threadpool(_ready, request.app.state.service)
        return _again(last["readyz"])

    async def openapi(request: Request) -> Response:
        async with telling:  # megabytes that take seconds to make, and are always the same
            if "openapi" not in last:
                last["openapi"] = await run_in_threadpool(_document, request.app)
        return _again(last["openapi"])

    app.add_route("/healthz", healthz, methods=["GET"])
    app.add_route("/readyz", readyz, methods=["GET"])
    app.add_route("/openapi.json", openapi, methods=["GET"])
    app.add_route("/problems", _problems, methods=["GET"])
    app.add_route("/problems/{code}", _problem, methods=["GET"])


def _document(app: FastAPI) -> Response:
    """The OpenAPI document of this server."""
    return JSONResponse(app.openapi())


def _again(answer: Response) -> Response:
    """The same answer, with headers of its own."""
    return Response(answer.body, answer.status_code, media_type=answer.media_type)


def _ready(service: Service) -> Response:
    """503 when the database cannot be asked, its disk is full, or every write waits for a standby
    that is away: then reading goes on, and nothing is taken. Lag is told, and which usage lanes are
    stopped; when to alarm is the reader's.
    """
    try:
        with service.connection() as connection:
            found, runs = lags(connection), job_runs.read(connection)
            position = service.head(connection)
            stopped = trees.stopped_lanes(connection)
            waits = service.standby.is_away(connection)
        environment = founding.environment_of(service.ledger, service.settings)
    except psycopg.OperationalError:
        return JSONResponse({"status": "unavailable", "database": "unreachable"}, 503)
    now_us = service.clock.now_us()
    jobs = [
        {
            "name": lag.name,
            "position": lag.position,
            "head": lag.head,
            "behind": lag.behind,
            "behind_seconds": 0
            if lag.waiting_since_us is None
            else max(0, now_us - lag.waiting_since_us) // 1_000_000,
        }
        for lag in found
    ]
    standing = {"read_only": True, "position": position} if service.settings.read_only else {}
    settings = service.settings
    is_full = DISK.is_full(None if settings.database_url else settings.data_dir)
    return JSONResponse(
        {
            "status": "unavailable" if is_full or waits else "ready",
            **standing,
            "environment": environment,
            "database": "disk full" if is_full else "ok",
            **({"standby": "away"} if waits else {}),
            **({"lanes_stopped": ranges(stopped)} if stopped else {}),
            "jobs": jobs + [_run_told(run, now_us) for run in runs],
        },
        503 if is_full or waits else 200,
    )


def _run_told(run: JobRun, now_us: int) -> dict[str, Any]:
    """A background job: when it last succeeded, whether that is too long ago, and its error."""
    told: dict[str, Any] = {"name": run.name, "late": run.is_late(now_us)}
    if run.succeeded_us is not None:
        told["succeeded_seconds_ago"] = max(0, now_us - run.succeeded_us) // 1_000_000
    if run.error is not None:
        told["error"] = run.error.split(":", 1)[0]  # the kind; the rest may name a party
    return told


def codes() -> list[str]:
    """Every code a problem can have."""
    return sorted({*errors.DOOR, *REASONS})


async def _problems(_request: Request) -> Response:
    items = "".join(
        f'<li><a href="/problems/{code}">{html.escape(errors.title_of(code))}</a></li>'
        for code in codes()
    )
    return HTMLResponse(f"<!doctype html><title>Problems</title><h1>Problems</h1><ul>{items}</ul>")


async def _problem(request: Request) -> Response:
    code: str = request.path_params["code"]
    if code not in codes():
        raise errors.problem("not_found", "there is no such problem")
    told: dict[str, Any] = {
        "title": html.escape(errors.title_of(code)),
        "meaning": html.escape(errors.meaning_of(code)),
        "status": errors.status_of(code),
        "code": code,
        "retry": "The same request may succeed later."
        if code in errors.RETRYABLE
        else "The same request will be answered the same way.",
    }
    return HTMLResponse(_PAGE.format(**told), headers={"Cache-Control": "public, max-age=3600"})
