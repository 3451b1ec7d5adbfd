"""The typed client of tallystick's REST API: `Client`, and `AsyncClient` for asyncio, have one
method per operation, and an iterator `iter_...` for every list.

`ApiProblem` is raised when the server refuses; the classes below it follow the status. `Retry` says
how often a call that may be repeated is. The forms that are sent and answered are TypedDicts in
`tallystick_client.forms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallystick_client.client import Client
from tallystick_client.problems import (
    ApiProblem,
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    RateLimited,
    ServerFailed,
    Unauthenticated,
    Unprocessable,
)
from tallystick_client.retry import NEVER, Retry

if TYPE_CHECKING:
    from tallystick_client.async_client import AsyncClient

__all__ = [
    "NEVER",
    "ApiProblem",
    "AsyncClient",
    "BadRequest",
    "Client",
    "Conflict",
    "Forbidden",
    "NotFound",
    "RateLimited",
    "Retry",
    "ServerFailed",
    "Unauthenticated",
    "Unprocessable",
]


def __getattr__(name: str) -> Any:
    """`AsyncClient`, once a program asks for it: a program that never does need not load it."""
    if name != "AsyncClient":
        raise AttributeError(name)
    from tallystick_client.async_client import AsyncClient

    return AsyncClient
