"""Who tells the endpoints, and whose turn it is: a bounded number of threads, fair per account.

    turns of one account at the same time <= ACCOUNT_TURNS_MAX
    turns of all accounts at the same time <= SENDERS_MAX

An endpoint that never answers takes a turn of its own account and of no other. A turn has a
connection to the database only while it reads and writes, never while it waits for an endpoint.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from api.door import errors
from ledger.log.handle import LOG_AWAY

logger = logging.getLogger(__name__)

SENDERS_MAX = 16
ACCOUNT_TURNS_MAX = 2
TESTS_MAX = 4
"""Tests of endpoints that one process sends at the same time; of one account it is one."""
ROUND_SECONDS_MAX = 5.0
"""How long a round waits for its turns; slower ones go on and are counted in a later round."""


class WebhooksStopped(Exception):
    """Some endpoints could not be told; the others were."""


class Senders:
    """The turns of one process. `close` waits for those that have begun, and begins no more."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(SENDERS_MAX, thread_name_prefix="webhook")
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[tuple[str, Callable[[], int]]]] = {}
        self._lanes: Counter[str] = Counter()
        self._known: set[str] = set()
        self._done = 0
        self._failed: list[tuple[str, Exception]] = []
        self._is_closed = False

    def round(self, turns: Iterable[tuple[str, str, Callable[[], int]]]) -> int:
        """Give a turn to each (account, endpoint, work) that has none; how much was done since the
        last round. Raises WebhooksStopped, or what says that the log is away.
        """
        for account, endpoint, work in turns:
            self._add(account, endpoint, work)
        with self._changed:
            self._changed.wait_for(lambda: not self._known, ROUND_SECONDS_MAX)
            done, failed, self._done, self._failed = self._done, self._failed, 0, []
        for _, error in failed:
            if isinstance(error, LOG_AWAY):
                raise error  # it is no endpoint's fault
        if failed:
            raise WebhooksStopped(f"{len(failed)} endpoints stop, the first is {failed[0][0]}")
        return done

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
        self._pool.shutdown()

    def _add(self, account: str, endpoint: str, work: Callable[[], int]) -> None:
        with self._changed:
            if endpoint in self._known or self._is_closed:
                return
            self._known.add(endpoint)
            self._waiting.setdefault(account, deque()).append((endpoint, work))
            if self._lanes[account] < ACCOUNT_TURNS_MAX:
                self._lanes[account] += 1
                self._pool.submit(self._turn, account)

    def _turn(self, account: str) -> None:
        """One endpoint of an account; its next one queues behind those of all other accounts."""
        with self._changed:
            assert 0 < self._lanes[account] <= ACCOUNT_TURNS_MAX
            if not self._waiting[account]:  # the account's other turn took the last one
                self._lanes[account] -= 1
                self._forget_idle(account)
                return
            endpoint, work = self._waiting[account].popleft()
        done, failed = 0, None
        try:
            done = work()
        except LOG_AWAY as error:
            failed = error
        except Exception as error:
            logger.exception("telling webhook %s stops", endpoint)
            failed = error
        with self._changed:
            self._done += done
            if failed is not None:
                self._failed.append((endpoint, failed))
            self._known.discard(endpoint)
            if self._waiting[account] and not self._is_closed:
                self._pool.submit(self._turn, account)
            else:
                self._lanes[account] -= 1
                self._forget_idle(account)
            self._changed.notify_all()

    def _forget_idle(self, account: str) -> None:
        if not self._lanes[account] and not self._waiting[account]:
            del self._lanes[account], self._waiting[account]


_tests = threading.Lock()
_testing: set[str] = set()


@contextmanager
def one_test(account: str) -> Generator[None, None, None]:
    """The one test of an account that is being sent. Raises Problem: 429 one_request_at_a_time."""
    with _tests:
        if account in _testing or len(_testing) >= TESTS_MAX:
            detail = "wait for the answer to the other test"
            raise errors.problem("one_request_at_a_time", detail, Retry_After="1")
        _testing.add(account)
    try:
        yield
    finally:
        with _tests:
            _testing.discard(account)
