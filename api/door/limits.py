"""Token buckets: how often one key and one address may call, in this process.

    allowed in any stretch of t seconds <= burst + rate x t

Usage ingest of nodes has its own bound, per node: many nodes share one address.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass

BUCKETS_MAX = 20_000
SPEND = "spend"
"""Where the state of a call holds how to take one more token of its address: for a page that asks
several questions for a visitor who is not signed in.
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call found: whether it may go on, and what the headers say."""

    allowed: bool
    limit: int
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        told = {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset_seconds),
        }
        return told if self.allowed else {**told, "Retry-After": str(max(1, self.reset_seconds))}


def bucket_of(address: str) -> str:
    """Whose bucket an address uses. One customer of a provider has 2^64 addresses of IPv6 or more,
    so all of a /64 share one, and an address of IPv4 is the same one however it is written.
    """
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))


class Buckets:
    """One bucket per name; integer nanoseconds, no drift."""

    def __init__(
        self, per_second: int, burst: int, now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._cost_ns = max(1, 1_000_000_000 // per_second)
        self._burst = burst
        self._now_ns = now_ns
        self._full_at_ns: dict[str, int] = {}

    @classmethod
    def every(cls, seconds: int, burst: int) -> Buckets:
        """A token comes back after so many seconds."""
        found = cls(1, burst)
        found._cost_ns = seconds * 1_000_000_000
        return found

    def is_empty(self, name: str) -> bool:
        """Whether `spend` would refuse now."""
        ahead_ns = self._full_at_ns.get(name, 0) - self._now_ns()
        return ahead_ns > (self._burst - 1) * self._cost_ns

    def spend(self, name: str) -> Spent:
        """Take one token of this name's bucket, if there is one."""
        now_ns = self._now_ns()
        full_at_ns = max(self._full_at_ns.get(name, 0), now_ns)
        left = self._burst - -(-(full_at_ns - now_ns) // self._cost_ns)
        if left < 1:
            wait_ns = full_at_ns - now_ns - (self._burst - 1) * self._cost_ns
            return Spent(False, self._burst, 0, -(-wait_ns // 1_000_000_000))
        full_at_ns += self._cost_ns
        if len(self._full_at_ns) >= BUCKETS_MAX:
            self._forget_full(now_ns)
        self._full_at_ns[name] = full_at_ns
        return Spent(True, self._burst, left - 1, -(-(full_at_ns - now_ns) // 1_000_000_000))

    def _forget_full(self, now_ns: int) -> None:
        """A full bucket is like none. Where too many are not full, all are forgiven: bounded."""
        kept = {name: at for name, at in self._full_at_ns.items() if at > now_ns}
        self._full_at_ns = kept if len(kept) < BUCKETS_MAX // 2 else {}
