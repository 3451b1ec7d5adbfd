"""S-M11: the console is framed by nobody, hears its own site alone, and holds few sockets."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from api.console import guard
from api.console.guard import ADDRESS_SOCKETS_MAX, HEADERS, REFUSED, TOO_MANY, guarded

EVIL = {"Origin": "http://evil.example"}


async def _page(_request: Any) -> PlainTextResponse:
    loose = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true"}
    return PlainTextResponse("page", headers=loose)


async def _socket(socket: WebSocket) -> None:
    await socket.accept()
    await socket.receive_text()


def _client(*, has_tls: bool = False) -> TestClient:
    routes = [
        Route("/console/bill", _page),
        Route("/v1/offers", _page),
        WebSocketRoute("/console/socket", _socket),
    ]
    return TestClient(guarded(Router(routes), has_tls=has_tls))


def test_s_m11_a_page_has_headers_that_forbid_frames_and_the_api_is_as_it_was() -> None:
    told = _client().get("/console/bill")
    assert {name: told.headers[name] for name in HEADERS} == HEADERS
    assert "frame-ancestors 'none'" in told.headers["Content-Security-Policy"]
    assert not [name for name in told.headers if name.startswith("access-control-")]
    assert "Strict-Transport-Security" not in told.headers
    assert "Strict-Transport-Security" in _client(has_tls=True).get("/console/bill").headers
    assert "X-Frame-Options" not in _client().get("/v1/offers", headers=EVIL).headers


def test_s_m11_a_script_of_another_site_reaches_neither_page_nor_socket() -> None:
    client = _client()
    assert client.get("/console/bill", headers=EVIL).status_code == 403
    ours = {"Origin": "http://testserver"}
    assert client.get("/console/bill", headers=ours).status_code == 200
    with (
        pytest.raises(WebSocketDisconnect) as closed,
        client.websocket_connect("/console/socket", headers=EVIL),
    ):
        raise AssertionError("unreachable")
    assert closed.value.code == REFUSED
    with client.websocket_connect("/console/socket", headers=ours) as socket:
        socket.send_text("")


def test_s_m11_sockets_of_one_address_are_bounded_and_come_free_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ADDRESS_SOCKETS_MAX < guard.SOCKETS_MAX
    monkeypatch.setattr(guard, "ADDRESS_SOCKETS_MAX", 1)
    client = _client()
    for _ in range(2):
        with client.websocket_connect("/console/socket") as held:
            with (
                pytest.raises(WebSocketDisconnect) as closed,
                client.websocket_connect("/console/socket"),
            ):
                raise AssertionError("unreachable")
            assert closed.value.code == TOO_MANY
            held.send_text("")
