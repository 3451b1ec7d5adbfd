"""Every charge of a resource in an export, decided again from the reports that its node signed.

    ResourceAccrued == what `domain/leasing/other_resources.py` decides of the rows of its node's
                       reports, over (after_position, through_position] of its lane

to every field: amounts, refusals, charge, parts, what paid. First the facts: of each charge what
its decision looked at is kept, states as they were before it. Then the lanes: a charge is decided
when its last report has passed. Reports are read by the reference parser, not by the reader that
the server uses; one that breaks a rule of the form tells nothing.

Not seen: rows that no charge reads, and the time at which a report was received. The server tells
that time beside the report and not under its chain; it only ever takes away from a row. What a
charge read behind the last pin is not in the export: `unread` counts these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, fields
from typing import Any
from uuid import UUID

from domain import rules
from domain.lease.lease import LeaseRequested, lease_stream
from domain.leasing.accrual import reports_from_us
from domain.leasing.other_resources import ROWS_MAX, AccrueResource, ResourceAccrued, stream_of
from domain.metering.report import ReportInvalid, lane_of, parse
from domain.metering.resources import AMOUNTS, MeteredRow, amount_of
from domain.parties.account import AccountClosed, account_stream
from domain.prices.tariff import METERS, NETWORK, TariffPublished
from domain.refusal import Refused
from domain.stream import S, Stream
from ledger.log.codec import NAME_OF, NotStorable, decode

REQUESTED, ACCRUED = NAME_OF[LeaseRequested], NAME_OF[ResourceAccrued]
_BY_NAME = {NAME_OF[AccountClosed], NAME_OF[TariffPublished]}
_HAS_MAXIMA = b'"meter_maxima":[{'
_TELLS_RESOURCES = b'"resources"'
_WRONG = (Refused, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What deciding or folding facts that never were decided may raise: the log is not trusted."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The states that a decision looks at, as they were before it."""

    states: dict[UUID, Any]

    def state(self, stream: Stream[S]) -> S:
        found: S = self.states.get(stream.uuid, rules.initial(stream.kind))
        return found

    def balance(self, account: str) -> int:
        raise AssertionError(f"a charge is drawn from what is held, not from {account}")


@dataclass(slots=True)
class Charge:
    """A charge that waits for its reports, and the rows that they told of it so far."""

    position: int
    fact: ResourceAccrued
    seen: Seen
    rows: list[MeteredRow] = field(default_factory=list)

    def wrong(self) -> Iterator[str]:
        """What the rows do not give, field by field."""
        fact = self.fact
        where = f"{fact.meter} of {fact.lease_id}"
        command = AccrueResource(
            lease_id=fact.lease_id,
            meter=fact.meter,
            rows=tuple(self.rows[:ROWS_MAX]),
            at_us=fact.at_us,
        )
        try:
            changes = rules.decide(command, self.seen)
        except _WRONG as error:
            yield f"{where}: the reports give no charge: {error}"
            return
        due = [one.fact for one in changes if isinstance(one.fact, ResourceAccrued)]
        if not due:
            yield f"{where}: the reports give no charge"
            return
        for name in (one.name for one in fields(fact)):
            said, counted = getattr(fact, name), getattr(due[0], name)
            if said != counted:
                yield f"{where}: {name} is {said}, the reports give {counted}"


@dataclass(slots=True)
class LaneRecount:
    """Give it the reports of its lane in order. It travels to whichever process walks the lane.

    `waiting`: charges by node, lease and meter, in order of their facts.
    """

    counted: int = 0
    unread: int = 0
    waiting: dict[tuple[str, str, str], deque[Charge]] = field(default_factory=dict)

    def report(
        self, position: int, node_id: str, signed: bytes, flags: int, received_us: int
    ) -> Iterator[tuple[int, str]]:
        """One report. Yields (market position, what) of each charge that it shows to be wrong."""
        waiting = self.waiting
        if not waiting or flags or _TELLS_RESOURCES not in signed:
            return
        try:
            told = parse(signed)
        except ReportInvalid:
            return
        for row in told.resources:
            amounts = {name: getattr(row, name) for name in AMOUNTS}
            for meter in METERS:
                charges = waiting.get((node_id, told.leases[row.lease], meter))
                quantity = amount_of(meter, amounts)
                if not charges or quantity is None:
                    continue
                while charges and charges[0].fact.through_position < position:
                    yield from self._decided(charges.popleft())
                if not charges or not _reads(charges[0], position, received_us):
                    continue
                offset_us = told.clock_offset_us or 0
                charges[0].rows.append(
                    MeteredRow(
                        position=position,
                        boot=told.boot,
                        mono_start_us=row.mono_start_us,
                        mono_end_us=row.mono_end_us,
                        from_us=row.wall_start_us + offset_us,
                        to_us=row.wall_end_us + offset_us,
                        received_us=received_us,
                        quantity=quantity,
                    )
                )

    def end(self, size: int) -> Iterator[tuple[int, str]]:
        """The lane is over after so many reports: what is left of it is decided, too."""
        for charges in self.waiting.values():
            for charge in charges:
                if charge.fact.through_position > size:
                    self.unread += 1
                else:
                    yield from self._decided(charge)

    def anew(self) -> LaneRecount:
        """As it was before its first report."""
        waiting = {
            key: deque(Charge(one.position, one.fact, one.seen) for one in charges)
            for key, charges in self.waiting.items()
        }
        return LaneRecount(waiting=waiting)

    def told(self) -> Any:
        """How far it is, in JSON; what waits is known from the facts, so only how much of it."""
        left = [
            [*key, len(charges), [astuple(row) for row in charges[0].rows] if charges else []]
            for key, charges in self.waiting.items()
        ]
        return {"counted": self.counted, "left": left}

    def go_on(self, told: Any) -> None:
        """From `anew` to where `told` says. Raises KeyError, TypeError, ValueError: not of this."""
        self.counted = int(told["counted"])
        for node_id, lease_id, meter, left, rows in told["left"]:
            charges = self.waiting[node_id, lease_id, meter]
            if not 0 <= left <= len(charges) or (rows and not left):
                raise ValueError(f"{left} charges left of {len(charges)}")
            while len(charges) > left:
                charges.popleft()
            if charges:
                charges[0].rows = [MeteredRow(*row) for row in rows]

    def _decided(self, charge: Charge) -> Iterator[tuple[int, str]]:
        self.counted += 1
        yield from ((charge.position, what) for what in charge.wrong())


@dataclass(slots=True)
class Recount:
    """Give it the facts in order; then it knows what waits for the reports of each lane."""

    _kinds: dict[UUID, str] = field(default_factory=dict)
    _states: dict[UUID, Any] = field(default_factory=dict)
    _lanes: dict[int, LaneRecount] = field(default_factory=dict)

    def lane(self, lane: int) -> LaneRecount:
        """The charges that wait for the reports of this lane."""
        return self._lanes.setdefault(lane, LaneRecount())

    def fact(self, position: int, stream: UUID, name: str, body: bytes) -> Iterator[str]:
        """One fact. Yields what is wrong with it where that is seen at once."""
        is_asked = name == REQUESTED and _HAS_MAXIMA in body
        if not (is_asked or name in _BY_NAME or name == ACCRUED or stream in self._kinds):
            return
        try:
            told = decode(name, body)
        except NotStorable as error:
            yield f"not a fact of this version: {error}"
            return
        match told:
            case LeaseRequested():
                self._watch(lease_stream(told.lease_id))
                for meter in METERS:
                    self._watch(stream_of(told.lease_id, meter))
            case AccountClosed():
                self._watch(account_stream(told.account_id))
            case TariffPublished():
                self._watch(NETWORK)
            case ResourceAccrued():
                yield from self._charge(position, stream, told)
        if stream in self._kinds:
            before = self._states.get(stream, rules.initial(self._kinds[stream]))
            try:
                self._states[stream] = rules.evolve(self._kinds[stream], before, told)
            except _WRONG as error:
                yield f"{name} does not follow from the facts before it: {error!r}"

    def _watch(self, stream: Stream[Any]) -> None:
        self._kinds.setdefault(stream.uuid, stream.kind)

    def _charge(self, position: int, stream: UUID, fact: ResourceAccrued) -> Iterator[str]:
        lease = self._states.get(lease_stream(fact.lease_id).uuid)
        where = f"{fact.meter} of {fact.lease_id}"
        if stream != stream_of(fact.lease_id, fact.meter).uuid:
            yield f"{where}: a charge in the stream of another"
        elif lease is None or lease.reserved is None:
            yield f"{where}: a charge of a lease that agreed to none"
        else:
            wanted = (
                lease_stream(fact.lease_id),
                stream_of(fact.lease_id, fact.meter),
                account_stream(lease.reserved.account_id),
                NETWORK,
            )
            found = {one.uuid: self._states[one.uuid] for one in wanted if one.uuid in self._states}
            node_id = lease.reserved.node_id
            waiting = self.lane(lane_of(node_id)).waiting
            key = (node_id, fact.lease_id, fact.meter)
            waiting.setdefault(key, deque()).append(Charge(position, fact, Seen(found)))


def _reads(charge: Charge, position: int, received_us: int) -> bool:
    """Whether a charge reads a report of its node at this place of the lane."""
    after = charge.fact.after_position
    if not after:
        reserved = charge.seen.state(lease_stream(charge.fact.lease_id)).reserved
        assert reserved is not None
        return received_us >= reports_from_us(reserved)
    return position > after
