"""The watch on the embedded PostgreSQL: what died is started again; a failed start is retried."""

from __future__ import annotations

import threading

from api.process.database_watch import watching


class Fake:
    """A server that dies when told to; its first `failures` starts fail."""

    def __init__(self, failures: int = 0) -> None:
        self.is_alive = True
        self.failures = failures
        self.started = threading.Event()

    def ensure_running(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("no memory")
        self.is_alive = True
        self.started.set()


def test_a_server_that_died_is_started_again_and_one_that_lives_is_left_alone() -> None:
    server = Fake()
    with watching(server, every_s=0.01):
        assert not server.started.wait(0.1)
        server.is_alive = False
        assert server.started.wait(10)


def test_a_start_that_fails_is_tried_again() -> None:
    server = Fake(failures=1)
    with watching(server, every_s=0.01):
        server.is_alive = False
        assert server.started.wait(10)
    assert server.failures == 0


def test_a_database_of_somebody_else_is_not_watched() -> None:
    before = threading.active_count()
    with watching(None):
        assert threading.active_count() == before
