"""Webhooks: where an account wants to be told of what is recorded about it.

    an endpoint is told of every fact that mentions its account and is of its types, in order of
    position, at least once, from the fact after the one that added it

Only the wish is a fact; what was sent and how it went is not. The secret that signs is nowhere in
the log: a fact names it, and it stands sealed beside the log (`ledger/beside/sealed_secrets.py`).
Scheme: Standard Webhooks (design api 11).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, assert_never

from domain.frozen import replace
from domain.parties.account import open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAdded:
    """Stream `webhook:{endpoint_id}`."""

    endpoint_id: str
    account_id: str
    url: str
    types: tuple[str, ...]  # prefixes of stored names, such as "lease." or "payment."; empty: all
    secret_id: str  # the name of the secret that signs, which says nothing of it
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSecretRotated:
    """Both secrets sign until `overlap_until_us`; then the previous one is erased."""

    endpoint_id: str
    secret_id: str
    previous_id: str
    overlap_until_us: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDisabled:
    endpoint_id: str
    reason: str  # "owner", "gone" (it answered 410) or "failed" (every retry did)
    position: int  # the last fact it was told of
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEnabled:
    endpoint_id: str
    by: str
    at_us: int


# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWebhook:
    endpoint_id: str
    account_id: str
    url: str
    types: tuple[str, ...]
    secret_id: str
    others: int  # endpoints of the account that are told, but for this one
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateWebhookSecret:
    endpoint_id: str
    account_id: str
    secret_id: str
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DisableWebhook:
    """`account_id` None: the job asks."""

    endpoint_id: str
    account_id: str | None
    reason: str
    position: int
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnableWebhook:
    """`others`: endpoints of the account that are told, but for this one."""

    endpoint_id: str
    account_id: str
    others: int
    by: str
    at_us: int


URL_MAX = 2_000
_URL = re.compile(
    r"https://[0-9A-Za-z]([0-9A-Za-z.-]{0,251}[0-9A-Za-z])?(:(443|8443))?([/?][!\"$-?A-~]*)?"
)
"""No `@`, so no credentials; no `#`, so no fragment; no `[`, so no address in place of a name."""
TYPES_MAX = 32
ENDPOINTS_MAX = 16
"""Endpoints of one account that are told. The count is of a view, so calls at the same moment may
pass it; what an account takes from others is bounded by who sends, and not by this.
"""
OVERLAP_US = 24 * 3_600_000_000
"""How long a rotated secret signs beside its successor."""

# What is remembered.


@dataclass(frozen=True, slots=True)
class WebhookState:
    added: WebhookAdded | None = None
    secret_id: str = ""
    previous_id: str = ""
    overlap_until_us: int = 0
    is_enabled: bool = False


def evolve(
    state: WebhookState,
    fact: WebhookAdded | WebhookSecretRotated | WebhookDisabled | WebhookEnabled,
) -> WebhookState:
    match fact:
        case WebhookAdded():
            return WebhookState(fact, secret_id=fact.secret_id, is_enabled=True)
        case WebhookSecretRotated():
            return replace(
                state,
                secret_id=fact.secret_id,
                previous_id=fact.previous_id,
                overlap_until_us=fact.overlap_until_us,
            )
        case WebhookDisabled():
            return replace(state, is_enabled=False)
        case WebhookEnabled():
            return replace(state, is_enabled=True)
        case _:
            assert_never(fact)


def webhook_stream(endpoint_id: str) -> Stream[WebhookState]:
    return Stream("webhook", endpoint_id)


def webhook_of(world: World, endpoint_id: str, account_id: str | None) -> WebhookState:
    """An endpoint, of this account unless None. Raises Refused: WEBHOOK_UNKNOWN."""
    state = world.state(webhook_stream(endpoint_id))
    if state.added is None or account_id not in (None, state.added.account_id):
        raise Refused(PartiesReason.WEBHOOK_UNKNOWN, endpoint_id=endpoint_id)
    return state


# How we decide.


def require_url(url: str) -> None:
    """HTTPS, the name of a host, no credentials, no fragment. Raises Refused: WEBHOOK_URL."""
    if len(url) > URL_MAX or _URL.fullmatch(url) is None:
        rule = "https://, a host name, port 443 or 8443, a path and a query in visible ASCII"
        raise Refused(PartiesReason.WEBHOOK_URL, rule=rule, at_most=URL_MAX)


def require_place(others: int) -> None:
    """Raises Refused: COUNT_OUT_OF_RANGE, where so many other endpoints of the account are told."""
    if others >= ENDPOINTS_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, webhooks=others, at_most=ENDPOINTS_MAX)


def decide_add(command: AddWebhook, world: World) -> list[Change]:
    """Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, WEBHOOK_URL, COUNT_OUT_OF_RANGE."""
    open_account(world, command.account_id)
    require_url(command.url)
    if len(command.types) > TYPES_MAX:
        raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, types=len(command.types), at_most=TYPES_MAX)
    stream = webhook_stream(command.endpoint_id)
    if world.state(stream).added is not None:
        return []
    require_place(command.others)
    added = WebhookAdded(
        endpoint_id=command.endpoint_id,
        account_id=command.account_id,
        url=command.url,
        types=command.types,
        secret_id=command.secret_id,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(stream, added)]


def decide_rotate(command: RotateWebhookSecret, world: World) -> list[Change]:
    """To the same secret twice is once. Raises Refused: WEBHOOK_UNKNOWN."""
    state = webhook_of(world, command.endpoint_id, command.account_id)
    if command.secret_id == state.secret_id:
        return []
    rotated = WebhookSecretRotated(
        endpoint_id=command.endpoint_id,
        secret_id=command.secret_id,
        previous_id=state.secret_id,
        overlap_until_us=command.at_us + OVERLAP_US,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(webhook_stream(command.endpoint_id), rotated)]


def decide_disable(command: DisableWebhook, world: World) -> list[Change]:
    """Twice is once. Raises Refused: WEBHOOK_UNKNOWN."""
    state = webhook_of(world, command.endpoint_id, command.account_id)
    if not state.is_enabled:
        return []
    disabled = WebhookDisabled(
        endpoint_id=command.endpoint_id,
        reason=command.reason,
        position=command.position,
        by=command.by,
        at_us=command.at_us,
    )
    return [Change(webhook_stream(command.endpoint_id), disabled)]


def decide_enable(command: EnableWebhook, world: World) -> list[Change]:
    """It goes on where it was. Twice is once.

    Raises Refused: WEBHOOK_UNKNOWN, COUNT_OUT_OF_RANGE.
    """
    state = webhook_of(world, command.endpoint_id, command.account_id)
    if state.is_enabled:
        return []
    require_place(command.others)
    enabled = WebhookEnabled(endpoint_id=command.endpoint_id, by=command.by, at_us=command.at_us)
    return [Change(webhook_stream(command.endpoint_id), enabled)]


STREAMS: dict[str, tuple[Any, Any]] = {"webhook": (WebhookState(), evolve)}
DECIDERS: dict[type[Any], Any] = {
    AddWebhook: decide_add,
    RotateWebhookSecret: decide_rotate,
    DisableWebhook: decide_disable,
    EnableWebhook: decide_enable,
}
