"""What a command can be refused for stands beside its decider, and routes read it there."""

from __future__ import annotations

import re

import pytest

from domain.lease.lease import RequestLease, ReserveLease
from domain.lease.reasons import LeaseReason
from domain.reasons import REASONS
from domain.rules import DECIDERS, REFUSES, refused_by


@pytest.mark.parametrize("command", REFUSES, ids=lambda command: command.__name__)
def test_a_decider_declares_every_reason_that_it_documents(command: type[object]) -> None:
    documented = re.findall(r"\b[A-Z][A-Z_]+\b", DECIDERS[command].__doc__ or "")
    reasons = {REASONS[name.lower()] for name in documented if name.lower() in REASONS}
    assert reasons
    assert reasons <= set(REFUSES[command])
    assert len(REFUSES[command]) == len(set(REFUSES[command]))


def test_a_route_lists_each_reason_of_its_commands_once_but_those_that_cannot_happen() -> None:
    both = refused_by(RequestLease, ReserveLease, never=(LeaseReason.LEASE_UNKNOWN,))
    assert len(both) == len(set(both))
    assert LeaseReason.LEASE_UNKNOWN not in both
    assert set(both) | {LeaseReason.LEASE_UNKNOWN} == {
        *REFUSES[RequestLease],
        *REFUSES[ReserveLease],
    }
