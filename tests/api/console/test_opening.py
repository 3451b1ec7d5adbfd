"""The console's library is loaded for whoever asks for a page, once, and ends with the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient

from api.console import opening, pages
from api.main import create_app
from tests.scenes.server import Scene


def _well(_request: Any) -> Response:
    return PlainTextResponse("well")


def test_a_server_with_a_console_starts_without_its_library(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def added(*_: Any) -> None:
        raise AssertionError("nobody asked for a page")

    monkeypatch.setattr(pages, "add", added)
    monkeypatch.setattr(shared.service, "forgetters", [])
    assert create_app(shared.service, with_console=True) is not None


def test_the_pages_come_with_the_first_call_of_one_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    @asynccontextmanager
    async def served(_app: FastAPI) -> AsyncGenerator[None, None]:
        yield
        told.append("server ended")

    @asynccontextmanager
    async def shown(_app: FastAPI) -> AsyncGenerator[None, None]:
        told.append("pages began")
        await asyncio.sleep(0.05)
        yield
        told.append("pages ended")

    def add(app: FastAPI, _asgi: Any) -> None:
        app.add_route("/console/bill", _well)
        app.router.lifespan_context = shown

    monkeypatch.setattr(pages, "add", add)
    app = FastAPI(lifespan=served)
    app.add_route("/readyz", _well)
    with TestClient(opening.opened_when_asked(app, app)) as http:
        assert http.get("/readyz").status_code == 200
        assert http.get("/consoles").status_code == 404
        assert told == []
        with ThreadPoolExecutor(8) as many:
            asked = list(many.map(http.get, ["/console/bill"] * 8))
        assert [each.status_code for each in asked] == [200] * 8
        assert told == ["pages began"]
    assert told == ["pages began", "pages ended", "server ended"]


def test_a_console_that_cannot_be_opened_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [ImportError("no library")]

    def add(app: FastAPI, _asgi: Any) -> None:
        if wrong:
            raise wrong.pop()
        app.add_route("/console/bill", _well)

    monkeypatch.setattr(pages, "add", add)
    app = FastAPI()
    app.add_route("/readyz", _well)
    with TestClient(opening.opened_when_asked(app, app), raise_server_exceptions=False) as http:
        assert http.get("/console/bill").status_code == 500
        assert http.get("/readyz").status_code == 200, "only the console is away"
        assert http.get("/console/bill").status_code == 200
