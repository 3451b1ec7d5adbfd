"""Accounts that open themselves, where the operator lets anybody in, and how they are verified.

    unverified  =>  opened by sign-up, and the operator has not said who is behind it

What an unverified account may do is for the door to say (`api/door/unverified.py`); here it gets
nothing that others paid for. Verifying twice is once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from domain.parties.account import AccountState, AccountVerified, account_stream, open_account
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Change, World

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyAccount:
    account_id: str
    by: str
    at_us: int


# Decisions.


def verified_account(world: World, account_id: str) -> AccountState:
    """An open account of which the market knows who is behind it.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED, ACCOUNT_UNVERIFIED.
    """
    state = open_account(world, account_id)
    if state.is_unverified:
        raise Refused(PartiesReason.ACCOUNT_UNVERIFIED, account_id=account_id)
    return state


def decide_verify(command: VerifyAccount, world: World) -> list[Change]:
    """An account that the operator opened is verified already.

    Raises Refused: ACCOUNT_UNKNOWN, ACCOUNT_CLOSED.
    """
    if not open_account(world, command.account_id).is_unverified:
        return []
    verified = AccountVerified(account_id=command.account_id, by=command.by, at_us=command.at_us)
    return [Change(account_stream(command.account_id), verified)]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {}
DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {VerifyAccount: decide_verify}
