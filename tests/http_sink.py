"""A local HTTP server that takes what is sent to it by POST, or refuses it."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer


@dataclass
class Sink:
    """Its address; the path and the body of each request that it took; with `status` it answers."""

    url: str
    taken: list[tuple[str, bytes]] = field(default_factory=list)
    status: int = 200


@contextmanager
def http_sink() -> Generator[Sink, None, None]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if sink.status == 200:
                sink.taken.append((self.path, body))
            self.send_response(sink.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    sink = Sink(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
