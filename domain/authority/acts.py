"""Maker and checker: above a limit, an act of an operator carries the signatures of two governors.

    what one person moved in a day + units <= limit     one person is enough
    else, in mode `shared`                               two governors signed this very request
    in mode `single`                                     one person is enough, and the fact says so

An API key is nobody's person: whoever administers an account gives out keys. So the maker signs
like the checker, and two signatures are two personal keys. What is signed is one request: its
Idempotency-Key, its address, its body, and until when it is good. It serves once.

The limit is of a network and a day, not of a request or a person: many small acts, and acts by
many members, count together. Which acts there are says `domain/checked_acts.py`.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

from domain.authority.reasons import AuthorityReason
from domain.authority.register import register_of
from domain.authority.vote import SINGLE, YES, Subject, content_text, digest, vote_text
from domain.duration import DAY_US
from domain.money import Big
from domain.record import dataclass
from domain.refusal import Refused
from domain.stream import Change, Stream, World

KIND = "act"
PERSONS = 2
SIGNATURES_MAX = 8
SIGNED_FOR_US_MAX = 7 * DAY_US
"""A signature that lies about for longer says nothing of what is right today."""
LIMIT_MAX = 2**53 - 1
_CREDIT = 1_000_000


@dataclass(frozen=True, slots=True)
class ActLimits:
    """What one person may move in 24 hours, all members together; units of CREDIT, above zero."""

    deposit: int = 10_000 * _CREDIT
    goodwill: int = 500 * _CREDIT
    ruling: int = 500 * _CREDIT
    write_off: int = 500 * _CREDIT
    cash_out: int = 5_000 * _CREDIT

    @property
    def is_valid(self) -> bool:
        return all(0 < getattr(self, one.name) <= LIMIT_MAX for one in fields(self))


LIMITS = ActLimits()
"""Where a policy says nothing."""


@dataclass(frozen=True, slots=True)
class ActSignature:
    governor_id: str
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActTaken:
    """Stream `acts:{act}`, in one append with what it let pass. `alone`: moved by one person in the
    24 hours before. `content`: the text whose hash was signed, where it was.
    """

    act: str
    request: str  # its Idempotency-Key
    content: str | None
    content_sha256: str | None
    units: Big | None  # None: no amount, so it always takes two
    alone: Big
    limit: Big | None
    mode: str  # SINGLE, SHARED
    governors: int  # the set in force
    signed: tuple[ActSignature, ...]
    by: str
    key_id: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRequest:
    """One request and who signed it; each signature was checked over `signed_text`."""

    request: str
    content: str
    not_after_us: int
    governors: int
    signed: tuple[ActSignature, ...]
    by: str
    key_id: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Acts:
    """What one person moved of late, and the signed requests that were used and are still good."""

    alone: tuple[tuple[int, int], ...] = ()  # when, units
    used: dict[str, int] = field(default_factory=dict)  # request -> when it was used

    def moved_alone(self, at_us: int) -> int:
        """Units of the 24 hours before."""
        return sum(units for then_us, units in self.alone if then_us > at_us - DAY_US)


def evolve(state: Acts, fact: ActTaken) -> Acts:
    alone = tuple(one for one in state.alone if one[0] > fact.at_us - DAY_US)
    used = {key: then for key, then in state.used.items() if then > fact.at_us - SIGNED_FOR_US_MAX}
    if fact.signed:
        return Acts(alone, {**used, fact.request: fact.at_us})
    return Acts((*alone, (fact.at_us, fact.units or 0)), used)


def acts_stream(act: str) -> Stream[Acts]:
    return Stream("acts", act)


def content_of(method: str, path: str, body: Any, not_after_us: int) -> str:
    """The text of what is signed of a request."""
    named = {"method": method, "path": path, "body": body, "not_after_us": not_after_us}
    return content_text(named)


def signed_text(network: str, request: str, content_sha256: str, governors: int) -> str:
    """What a governor signs. Its kind is no kind of a vote, so it serves as none."""
    return vote_text(network, Subject(KIND, request, 1, content_sha256, governors), YES, None)


def needs_two(mode: str, units: int | None, alone: int, limit: int | None) -> bool:
    """Whether one person is not enough."""
    if mode == SINGLE:
        return False
    return units is None or limit is None or alone + units > limit


def taken(
    world: World, act: str, units: int | None, limit: int | None, asked: ActRequest
) -> Change:
    """The act, with who signed it. Raises Refused: ACT_SIGNATURE_VOID, CHECKER_NEEDED."""
    now, state = register_of(world).now, world.state(acts_stream(act))
    alone = state.moved_alone(asked.at_us)
    persons = {one.governor_id for one in asked.signed}
    if asked.signed:
        _check_good(world, state, asked)
    if needs_two(now.mode, units, alone, limit) and len(persons) < PERSONS:
        raise Refused(
            AuthorityReason.CHECKER_NEEDED,
            act=act,
            limit=limit,
            units=units,
            alone=alone,
            count=len(persons),
            needed=PERSONS,
        )
    content = asked.content if asked.signed else None
    fact = ActTaken(
        act=act,
        request=asked.request,
        content=content,
        content_sha256=None if content is None else digest(content),
        units=units,
        alone=alone,
        limit=limit,
        mode=now.mode,
        governors=now.version,
        signed=asked.signed,
        by=asked.by,
        key_id=asked.key_id,
        at_us=asked.at_us,
    )
    return Change(acts_stream(act), fact)


def _check_good(world: World, state: Acts, asked: ActRequest) -> None:
    """Raises Refused: ACT_SIGNATURE_VOID, with the rule that is broken."""
    now, used_us = register_of(world).now, state.used.get(asked.request)
    left_us = asked.not_after_us - asked.at_us
    if asked.governors != now.version:
        raise _void("the governors have changed since", expected=now.version)
    for one in asked.signed:
        if one.governor_id not in now.members:
            raise _void("not a governor", governor_id=one.governor_id)
    if not 0 <= left_us <= SIGNED_FOR_US_MAX:
        raise _void("signed for a time that is over, or for more than 7 days")
    if used_us is not None:
        raise _void("this request was made already")


def _void(rule: str, **facts: object) -> Refused:
    return Refused(AuthorityReason.ACT_SIGNATURE_VOID, rule=rule, **facts)


STREAMS: dict[str, tuple[Any, Any]] = {"acts": (Acts(), evolve)}
DECIDERS: dict[type[Any], Any] = {}
