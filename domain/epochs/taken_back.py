"""What corrections take back of weights and burned TOKEN when their epochs are past.

    counted(e) == max(0, moved(e) + owed(e - 1));   owed(e) == min(0, moved(e) + owed(e - 1))
    sum of counted(1 .. e) + owed(e) == sum of moved(1 .. e)            of every account and source
    counted <= what its nodes moved above zero;   owed < 0  =>  nothing is counted

A sealed epoch never changes. What is given back of a charge moves the weight of its node below zero
in the epoch in which the correction is booked, and what that epoch does not cover is owed and
carried into later ones. It is set off within an account: what one node owes is taken from what the
account's other nodes have, the last of them first, so that nobody keeps a reward by moving on to
another node. Sources are apart, for a policy may weigh them differently. What is owed by an account
that earns no more stays owed, and pays nobody. Source: design economics 17; decision 0045.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


def owed_after(moved: Iterable[int], owed: int = 0) -> int:
    """What is owed after epochs in their order, as a number that is never above zero."""
    for units in moved:
        owed = min(0, owed + units)
    return owed


class SetOff(NamedTuple):
    """What each node counts with, and what its account still owes."""

    counted: dict[str, int]
    owed: int


def set_off(moved: Mapping[str, int], owed: int = 0) -> SetOff:
    """Set off what nodes of one account owe, and what it owed before, against its other nodes."""
    assert owed <= 0, owed
    counted = {node: max(0, units) for node, units in moved.items()}
    due = -owed - sum(min(0, units) for units in moved.values())
    for node in sorted(counted, reverse=True):
        taken = min(due, counted[node])
        counted[node] -= taken
        due -= taken
    after = SetOff(counted, -due)
    assert sum(counted.values()) + after.owed == sum(moved.values()) + owed, (moved, owed)
    assert not (after.owed and any(counted.values())), after
    return after
