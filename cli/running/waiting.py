"""Why a leased program has not begun: told when the wait is long, and again when it changes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cli.remote import Remote
from cli.terminal import AnswerIsNo, local_time, note

LOOK_SECONDS = 10.0
"""So long nothing is said, and so often it is asked what is waited for."""


@dataclass
class Waits:
    """Looks at a lease that is not billed yet."""

    remote: Remote
    lease_id: str
    _look_at: float = field(default_factory=lambda: time.monotonic() + LOOK_SECONDS)
    _said: str = ""

    def look(self, lease: Mapping[str, Any]) -> None:
        if lease["state"] != "reserved" or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        with suppress(AnswerIsNo):
            work: Any = self.remote.ask(lambda c: c.read_lease_work(self.lease_id))
            health: Any = self.remote.ask(lambda c: c.read_lease_health(self.lease_id))
            why = waits_for(work, health["acceptor"])
            if why != self._said:
                note(f"waiting: {why}")
            self._said = why


def waits_for(work: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """What a lease waits for, in words: its work as far as the node has told, and the node."""
    name = node.get("node_id", "the node")
    is_taken_up = work.get("acknowledged_at") is not None
    reasons = []
    if node.get("node_state") not in (None, "active"):
        heard = local_time(str(node.get("heard_at")))
        reasons.append(f"{name} is {node['node_state']}, last heard at {heard}")
    if is_taken_up and not reasons:
        return f"{name} has taken up the work, and brings what it needs: files, an image"
    if is_taken_up:
        return f"{reasons[0]}: it had taken up the work. Ctrl-C releases the lease"
    if node.get("has_executor") is False:
        it = "it" if reasons else name
        reasons.append(f"{it} has no executor, the program that starts the work of leases")
    if not reasons:
        reasons.append(f"the executor of {name} has not taken up the work")
    return (
        f"{' and '.join(reasons)}. Ctrl-C releases the lease; if the node does not start it within"
        " ten minutes it ends. Neither costs anything"
    )
