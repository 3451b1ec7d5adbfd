"""What must pass a breaker asks here: a timer of money, before it sends anything."""

from __future__ import annotations

from domain.governance.breakers import PassBreaker, stream_of
from domain.governance.reasons import GovernanceReason
from ledger.log.handle import Ledger


def why_it_waits(ledger: Ledger, breaker: str, ref: str, amount: int, now_us: int) -> str | None:
    """Ask a breaker to let an amount pass; None when it has, else why not, in words."""
    if not amount:
        return None
    command = PassBreaker(breaker=breaker, ref=ref, amount=amount, at_us=now_us)
    ledger.handle(command, key=None, now_us=now_us)
    state = ledger.market.state_of(stream_of(breaker))
    if state.has_passed(ref):
        return None
    held = state.held(now_us)
    code = GovernanceReason.BREAKER_LIMIT.value
    return f"{code}: {held} of {state.limit} have passed, needed {amount}"
