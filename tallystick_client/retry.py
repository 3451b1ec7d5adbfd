"""When a call is made again: only one that may be, a few times, after a wait that grows.

    a GET, or a request with an Idempotency-Key      made again
    anything else                                    never

Made again after a lost connection, and after an answer that says it is `retryable`. The wait before
try n + 1 is drawn from the upper half of `first_seconds` x 2^(n-1), so that clients which failed
together do not come back together; `Retry-After` is waited for in full, with a little more. An
answer that asks for a longer wait than `longest_seconds` is raised at once, never asked too early.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import httpx

from tallystick_client.problems import ApiProblem


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and how long between: at most `tries` calls, `longest_seconds` for one wait."""

    tries: int = 4
    first_seconds: float = 0.5
    longest_seconds: float = 30.0

    def wait_seconds(self, tried: int, failure: Exception) -> float | None:
        """Before the next try, after `tried` tries; None: raise the failure."""
        if tried >= self.tries:
            return None
        asked: float | None = None
        if isinstance(failure, ApiProblem):
            if not failure.is_retryable or failure.status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
                return None
            asked = failure.retry_after_seconds
        elif not isinstance(failure, httpx.TransportError):
            return None
        if asked is not None and asked > self.longest_seconds:
            return None
        grown = min(self.first_seconds * 2 ** (tried - 1), self.longest_seconds)
        drawn = random.uniform(grown / 2, grown)  # noqa: S311 - no secret: it spreads load
        return drawn if asked is None else asked + min(drawn, self.first_seconds)


NEVER = Retry(tries=1)
