"""What a stranger can make one connection cost: against a real socket, with an application of
nothing, for the bounds come before it.
"""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn

from api.door import http_bounds
from api.door.http_bounds import BODY_HELD_BYTES, HEADERS_MAX, MESSAGE_BYTES_MAX, BoundedProtocol
from api.ingest.door import Asgi, Receive, Scope, Send
from tests.processes import until

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
CLOSE = b"Connection: close\r\n"
"""Of the last request of a connection: else the silence after its answer is waited for."""
LAST = b"GET / HTTP/1.1\r\n" + CLOSE + b"\r\n"


class Application:
    """Answers with the number of headers and of body bytes; remembers who has gone."""

    def __init__(self) -> None:
        self.begun = self.disconnected = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected += 1
                return
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        body = f"{len(scope['headers'])} {size}".encode()
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def port(application: Application, monkeypatch: pytest.MonkeyPatch) -> Generator[int, None, None]:
    """A server that gives a request a second and 100 kB to each further one."""
    monkeypatch.setattr(http_bounds, "REQUEST_SECONDS_MAX", 1.0)
    monkeypatch.setattr(http_bounds, "BYTES_PER_SECOND_MIN", 100_000)
    with listening(application) as number:
        yield number


@contextmanager
def listening(application: Asgi, *, proxy_headers: bool = False) -> Generator[int, None, None]:
    config = uvicorn.Config(
        application,
        port=0,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=proxy_headers,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def said(port: int, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """What the server answers until it ends the connection or says nothing for 3 seconds."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=3) as sock:
        try:
            for part in parts:
                sock.sendall(part)
                time.sleep(pause_s)
            while more := sock.recv(65_536):
                answer += more
        except TimeoutError:
            return answer + b"<open>"
        except ConnectionError:
            return answer
    return answer


def test_requests_with_and_without_a_body_are_answered_on_one_connection(port: int) -> None:
    body = b"x" * 500_000
    whole = HEAD + b"Content-Length: 500000\r\n\r\n" + body
    answer = said(port, NEXT, whole, CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", NEXT, pause_s=0.1)
    assert [line for line in answer.split(b"\r\n") if b" " in line and b":" not in line] == [
        b"HTTP/1.1 200 OK",
        b"1 0HTTP/1.1 200 OK",
        b"2 500000HTTP/1.1 200 OK",
        b"2 5HTTP/1.1 200 OK",
        b"1 0<open>",
    ]


@pytest.mark.parametrize(
    "endless",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 1_000_000,
        b"GET /" + b"a" * 1_000_000,
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200_000,
    ],
    ids=["value", "address", "many"],
)
def test_a_head_that_does_not_end_ends_the_connection(endless: bytes, port: int) -> None:
    answer = said(port, *[endless[start : start + 8_000] for start in range(0, 1_000_000, 8_000)])
    assert not answer.endswith(b"<open>")
    assert b"200 OK" not in answer


def test_a_hundred_headers_pass_and_one_more_is_refused(port: int) -> None:
    for count, status in ((HEADERS_MAX, b" 200 "), (HEADERS_MAX + 1, b" 400 ")):
        head = b"GET / HTTP/1.1\r\n" + CLOSE + b"X: y\r\n" * (count - 1)
        assert status in said(port, head + b"\r\n")


def test_trailers_add_nothing_and_cannot_go_on_for_ever(port: int) -> None:
    head = HEAD + CLOSE + b"Transfer-Encoding: chunked\r\n\r\n"
    once = head + b"2\r\nhi\r\n0\r\nAuthorization: Bearer x\r\n\r\n"
    assert b"\r\n3 2" in said(port, once)
    with socket.create_connection(("127.0.0.1", port), timeout=3) as sock:
        sock.sendall(CHUNKED + b"2\r\nhi\r\n0\r\n")
        with pytest.raises((ConnectionError, TimeoutError)):
            _send(sock, b"X: y\r\n" * 10_000, times=2 * MESSAGE_BYTES_MAX // 60_000)


def _send(sock: socket.socket, part: bytes, *, times: int) -> None:
    for _ in range(times):
        sock.sendall(part)


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"\r\n" * 10]
)
def test_a_connection_on_which_nothing_more_comes_is_ended(begun: bytes, port: int) -> None:
    began = time.monotonic()
    assert not said(port, begun).endswith(b"<open>")
    assert 0.9 <= time.monotonic() - began < 2.9


def test_blank_lines_after_an_answer_hold_no_connection(port: int) -> None:
    began = time.monotonic()
    answer = said(port, NEXT, *[b"\r\n"] * 5, pause_s=0.1)
    assert b"200 OK" in answer
    assert not answer.endswith(b"<open>")
    assert time.monotonic() - began < 2.9


@pytest.mark.parametrize("framing", [b"Content-Length: 300000", b"Transfer-Encoding: chunked"])
def test_a_request_whose_body_does_not_come_is_not_begun(
    framing: bytes, port: int, application: Application
) -> None:
    """A thousand of them cost the others of a renter four times their wait (S-L22)."""
    head = HEAD + framing + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=3) as sock:
        sock.sendall(head + (b"5\r\nhe" if b"chunked" in framing else b"x" * BODY_HELD_BYTES))
        assert b"1 0" in said(port, LAST), "others are served meanwhile"
        assert application.begun == 1
        assert sock.recv(1) == b"", "and it is given up in time"
    assert application.begun == 1


def test_who_asks_whether_to_send_the_body_is_told(port: int) -> None:
    head = HEAD + CLOSE + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    answer = said(port, head, b"hello", pause_s=0.1)
    assert answer.startswith(b"HTTP/1.1 100 Continue")
    assert b"4 5" in answer


def test_a_body_that_stops_is_given_up_and_a_slow_one_is_not(
    port: int, application: Application
) -> None:
    head = HEAD + b"Content-Length: 300000\r\n\r\n"
    assert said(port, head + b"x" * (BODY_HELD_BYTES + 1)) == b""
    ends = time.monotonic() + 3
    while not application.disconnected:
        assert time.monotonic() < ends, "the application was not told"
        time.sleep(0.01)
    slow, last = [b"x" * 50_000] * 6, HEAD + CLOSE + b"Content-Length: 300000\r\n\r\n"
    assert b"3 300000" in said(port, last, *slow, pause_s=0.25)


def test_a_trickle_does_not_hold_a_connection(port: int) -> None:
    began = time.monotonic()
    answer = said(port, HEAD, *[b"X: y\r\n"] * 30, pause_s=0.1)
    assert answer == b""
    assert time.monotonic() - began < 4


def _opened(port: int, count: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port), timeout=3) for _ in range(count)]


def _is_answered(sock: socket.socket) -> bool:
    try:
        sock.sendall(NEXT)
        return sock.recv(65_536).startswith(b"HTTP/1.1 200")
    except ConnectionError:
        return False


def test_s_l23_connections_are_bounded_by_address_and_in_all_and_come_free_again(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_bounds, "REQUEST_SECONDS_MAX", 30.0)
    monkeypatch.setattr(http_bounds, "CONNECTIONS_MAX", 6)
    for name, most in (("ADDRESS_CONNECTIONS_MAX", 4), ("CONNECTIONS_MAX", 3)):
        monkeypatch.setattr(http_bounds, name, most)
        _assert_bounded(port, most)


def _assert_bounded(port: int, most: int) -> None:
    with ExitStack() as open_ones:
        socks = [open_ones.enter_context(one) for one in _opened(port, most + 1)]
        assert [_is_answered(one) for one in socks] == [True] * most + [False]
    ends = time.monotonic() + 10
    while http_bounds._open and time.monotonic() < ends:
        time.sleep(0.01)
    assert not http_bounds._open, "every connection that ends is counted off"


def test_connections_leave_half_of_the_files_to_the_process(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_bounds, "REQUEST_SECONDS_MAX", 30.0)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (9, 9))
    _assert_bounded(port, 4)


def test_a_proxy_that_is_trusted_brings_all_connections_from_one_address(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_bounds, "CONNECTIONS_MAX", 5)
    monkeypatch.setattr(http_bounds, "ADDRESS_CONNECTIONS_MAX", 2)
    for is_proxy, most in ((False, 2), (True, 5)):
        with listening(application, proxy_headers=is_proxy) as port:
            _assert_bounded(port, most)


def test_a_connection_that_asks_for_a_web_socket_gets_none_and_is_counted_off(port: int) -> None:
    upgrade = (
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    )
    assert b"101" not in said(port, upgrade).partition(b"\r\n")[0]
    until(lambda: not http_bounds._open)
