"""The registry of decisions: which state a stream folds to, and which function decides a command.

Each file of the domain names what it adds: STREAMS, kind -> (initial state, evolve), and
DECIDERS, command type -> decide(command, world). Each room names its files and its facts in its
`registry.py`. They are merged here; nothing is named and nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from domain import account_closing, checked_acts
from domain.authority import registry as authority
from domain.chain import registry as chain
from domain.corrections import registry as corrections
from domain.epochs import registry as epochs
from domain.fleet import registry as fleet
from domain.funds import registry as funds
from domain.governance import registry as governance
from domain.hardware import registry as hardware
from domain.income import registry as income
from domain.jobs import registry as jobs
from domain.lease import registry as lease
from domain.leasing import registry as leasing
from domain.machines import registry as machines
from domain.market import registry as market
from domain.metering import registry as metering
from domain.parties import registry as parties
from domain.pools import registry as pools
from domain.prices import registry as prices
from domain.refusal import Reason
from domain.stream import Change, World
from domain.trust import registry as trust

Evolve = Callable[[Any, Any], Any]
Decide = Callable[[Any, World], Sequence[Change]]

_ROOMS = (
    parties,
    authority,
    prices,
    funds,
    hardware,
    fleet,
    machines,
    metering,
    lease,
    trust,
    epochs,
    governance,
    chain,
    market,
    pools,
    jobs,
    leasing,
    income,
    corrections,
)
_FILES = (account_closing, checked_acts, *(file for room in _ROOMS for file in room.FILES))

STREAMS: dict[str, tuple[Any, Evolve]] = {}
DECIDERS: dict[type[Any], Decide] = {}
REFUSES: dict[type[Any], tuple[Reason, ...]] = {}
"""What the commands that declare it can be refused for."""
for _file in _FILES:
    assert not STREAMS.keys() & _file.STREAMS.keys(), _file
    assert not DECIDERS.keys() & _file.DECIDERS.keys(), _file
    STREAMS.update(_file.STREAMS)
    DECIDERS.update(_file.DECIDERS)
    REFUSES.update(getattr(_file, "REFUSES", {}))

FACTS: dict[str, type[Any]] = {}
"""Every fact of the log by its stored name."""
for _room in _ROOMS:
    assert not FACTS.keys() & _room.FACTS.keys(), _room
    FACTS.update(_room.FACTS)


def refused_by(*commands: type[Any], never: Iterable[Reason] = ()) -> tuple[Reason, ...]:
    """What any of these commands can be refused for, each reason once. `never`: what cannot
    happen, because an earlier command of the same append saw to it.
    """
    found = dict.fromkeys(reason for command in commands for reason in REFUSES[command])
    return tuple(reason for reason in found if reason not in set(never))


def initial(kind: str) -> Any:
    """The state of a stream of this kind before its first fact."""
    return STREAMS[kind][0]


def evolve(kind: str, state: Any, fact: Any) -> Any:
    """The state after one more fact. Never refuses: what was recorded, happened."""
    return STREAMS[kind][1](state, fact)


def decide(command: Any, world: World) -> list[Change]:
    """What the command leads to in this world. Raises Refused."""
    return list(DECIDERS[type(command)](command, world))
