"""What counts for and against whom: the rule that decides a score, and so a node's bonus.

    row          = (subject, input, good, total): 0 <= good <= total <= 10^6 micro-observations;
                   of uptime, microseconds: 0 <= good <= total, and time that was missed is
                   good = -missed, total = 0
    taken back   = the same row with the opposite sign: row + taken_back(row) == 0
    counts on d <=> from_day <= d;  from_day == day, but of a fault the day its window is over
    carried row  = its row, on the node where a device of it went later
    of one counterparty, subject, input and day at most LEASES_MAX rows count

A function takes one fact and what was known before it, and tells its rows; nothing is looked up and
nothing is kept. The view `projections/trust/reputation_evidence.py` takes its codes, caps and words
from here and is checked row by row against these functions: decision 0042.

    completion      leases by how they ended
    uptime          microseconds: promised, and not unavailable; as much per device as the node has
                    devices, for outages of one machine are one outage. Announced maintenance is
                    neither. A silence that degraded a lease or ended it is not good time, and time
                of a lease that its node did not meter is silence: only ever taken away.
    performance     `benchmark.*` statements "delivered/expected" of renters of the node
    responsiveness  a lease made ready, a challenge, a dispute: answered or not
    payment         settled leases by the part that was funded, and reversed payments
    conduct         leases of a renter by how they ended
    disputes        those a renter opened, unfounded or not

Leases between related parties count for nobody; only the time that a node was silent is a fact of
the node, whoever rented it. Source: design economics 16; decision 0037.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from domain.decay import WEIGHT_BITS, weights
from domain.duration import DAY_US
from domain.frozen import replace
from domain.lease.close_codes import CLOSE_REASONS, START_TIMEOUT, UNREACHABLE, fault_of
from domain.money import PPM
from domain.trust.reputation_terms import (
    COMPLETION,
    CONDUCT,
    DISPUTES,
    NODE,
    PAYMENT,
    PERFORMANCE,
    PROVIDER,
    RENTER,
    REPUTATION_TERMS,
    RESPONSIVENESS,
    UPTIME,
    ReputationTerms,
)
from domain.trust.scores import NETWORK, OBSERVATION, RENTER_FAILED, SERVED, Evidence

LEASES_MAX = 5
"""Leases of one counterparty and day that count for a subject."""
MEASURED_MAX = 24
"""Measurements of one node and day that count."""
UPTIME_OBSERVATION_US = 21_600_000_000
"""Six hours of promised time are one observation: outages are correlated."""
US_PER_MICRO = UPTIME_OBSERVATION_US // OBSERVATION
assert UPTIME_OBSERVATION_US % OBSERVATION == 0
SLACK_US = 60_000_000
"""So much of each lease may stay unmetered: work takes a moment to start, and what it used after
the last look before its end is not seen.
"""
MEASURED_PREFIX = "benchmark."
MEASURED_FORM = "[0-9]{1,12}/[1-9][0-9]{0,11}"
"""Delivered and expected, as one expression that Python and PostgreSQL read alike."""
REVISED = (COMPLETION, CONDUCT, UPTIME)
"""What a close no longer tells once the path was at fault."""
EXCUSES_NOTHING = "emergency"
"""The kind of maintenance that was not announced, whatever its hour says."""


def completion(code: int) -> tuple[int, int]:
    """(good, total) that a close adds to its node and its provider, in leases."""
    if code in SERVED:
        return 1, 1
    return (0, 1) if fault_of(code) == PROVIDER else (0, 0)


def conduct(code: int) -> tuple[int, int]:
    """(good, total) that a close adds to its renter, in leases."""
    if code in RENTER_FAILED:
        return 0, 1
    is_served = code in SERVED or fault_of(code) == PROVIDER
    return (1, 1) if is_served else (0, 0)


def _codes(codes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(codes))


NODE_GOOD = _codes(code for code in CLOSE_REASONS if completion(code)[0])
NODE_TOTAL = _codes(code for code in CLOSE_REASONS if completion(code)[1])
RENTER_GOOD = _codes(code for code in CLOSE_REASONS if conduct(code)[0])
RENTER_TOTAL = _codes(code for code in CLOSE_REASONS if conduct(code)[1])
REVISING = _codes(code for code in CLOSE_REASONS if fault_of(code) == NETWORK)
"""Codes by what they count for, from `completion`, `conduct` and `fault_of`: SQL lists them."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Where and when a fact stands. `window_us`: the dispute window in force for it."""

    position: int
    at_us: int
    window_us: int

    @property
    def day(self) -> int:
        return self.at_us // DAY_US

    @property
    def ripe_day(self) -> int:
        """From when a fault counts."""
        return (self.at_us + self.window_us) // DAY_US


@dataclass(frozen=True, slots=True)
class Lent:
    """A lease as its reservation told it. `ppm`: of one device, summed over its devices."""

    lease_id: str
    node_id: str
    provider_id: str
    account_id: str
    client_id: str
    ppm: int
    is_related: bool
    position: int


@dataclass(frozen=True, slots=True)
class Row:
    """One count for one subject.

    `origin`: the fact it was counted for. `position`: where it became known of this subject.
    `since`: devices that moved after it take it with them. `ref`: the lease, device or payment.
    """

    kind: str
    subject_id: str
    input: str
    origin: int
    position: int
    since: int
    ref: str
    client_id: str
    counterparty: str | None
    day: int
    from_day: int
    good: int
    total: int
    carried: bool = False


# What was known: the window, and time that nobody promised.


def window_in_force(set_before: Iterable[tuple[int, int]], at_us: int, default_us: int) -> int:
    """The window of what is told at `at_us`: the last one set that was effective by then.

    `set_before`: (effective_from_us, window_us), in order of their positions.
    """
    lengths = [window for effective, window in set_before if effective <= at_us]
    return lengths[-1] if lengths else default_us


def is_announced(kind: str, at_us: int, from_us: int) -> bool:
    """Whether maintenance was told before it began, and was no emergency."""
    return kind != EXCUSES_NOTHING and at_us <= from_us


def excused_us(announced: Iterable[tuple[int, int]], from_us: int, to_us: int) -> int:
    """Microseconds of [from_us, to_us) in announced maintenance, each counted once.

    A maintenance that was called off ends then: (from_us, min(until_us, called_off_us)).
    """
    found, reached = 0, from_us
    for begins, ends in sorted(announced):
        begins, ends = max(begins, reached), min(ends, to_us)
        if begins < ends:
            found, reached = found + ends - begins, ends
    return found


# One fact, and the rows it gives.


def closed(
    fact: Fact, lent: Lent, code: int, counted: Mapping[tuple[str, str], int]
) -> tuple[Row, ...]:
    """How a lease ended, for its node, its owner and its renter, and whether it was made ready.

    `counted`: rows of (kind, subject) that this day and this counterparty have given it so far.
    """
    if lent.is_related:
        return ()
    rows = []
    for kind, subject, name, counterparty, (good, total) in (
        (NODE, lent.node_id, COMPLETION, lent.account_id, completion(code)),
        (PROVIDER, lent.provider_id, COMPLETION, lent.account_id, completion(code)),
        (RENTER, lent.account_id, CONDUCT, lent.provider_id, conduct(code)),
    ):
        if total and counted.get((kind, subject), 0) < LEASES_MAX:
            row = _of_lease(fact, lent, kind, subject, name, good * OBSERVATION)
            from_day = fact.day if good else fact.ripe_day
            rows.append(replace(row, counterparty=counterparty, from_day=from_day))
    if code == START_TIMEOUT:
        unready = _of_supply(fact, lent, RESPONSIVENESS, 0)
        rows += [replace(row, from_day=fact.ripe_day) for row in unready]
    return tuple(rows)


def made_ready(fact: Fact, lent: Lent) -> tuple[Row, ...]:
    """The node answered: the lease can be used."""
    return () if lent.is_related else _of_supply(fact, lent, RESPONSIVENESS, OBSERVATION)


def missed(
    fact: Fact, lent: Lent, missed_us: int, devices: int, *, was_announced: bool
) -> tuple[Row, ...]:
    """Time of a lease in which its node was silent, as a part of all devices of the node.

    good == -(ppm x missed // (10^6 x devices)): the remainder is the node's.
    """
    if missed_us <= 0 or was_announced:
        return ()
    lost = lent.ppm * missed_us // (PPM * max(1, devices))
    rows = _of_supply(fact, lent, UPTIME, -lost)
    return tuple(replace(row, client_id="", total=0) for row in rows)


def unmetered(
    fact: Fact,
    lent: Lent,
    ran_us: int,
    told_us: int,
    excused: int,
    devices: int,
    already: int,
    *,
    has_told: bool,
) -> tuple[Row, ...]:
    """Time in which a node had work of a lease and its signed rows tell nothing of a resource that
    the renter agreed to pay. As `missed`, and never twice: of silence and of all resources of the
    lease the longest counts.

    lost == ppm x max(0, ran - told - excused - SLACK) // (10^6 x devices)
    good == -max(0, lost - already);   total == 0: no row is good, whatever it claims

    `already`: microseconds that rows of this lease have taken from the node. `has_told`: whether
    the node has ever told of this resource: what it never could measure, it never sold.
    """
    lost = lent.ppm * max(0, ran_us - told_us - excused - SLACK_US) // (PPM * max(1, devices))
    if not has_told or lost <= already:
        return ()
    rows = _of_supply(fact, lent, UPTIME, already - lost)
    return tuple(replace(row, client_id="", total=0) for row in rows)


def ends_in_silence(code: int) -> bool:
    """Whether a lease that ended so was silent until its end."""
    return code == UNREACHABLE


def clears(code: int, name: str) -> bool:
    """Whether a fault that is moved to this code takes back what the close told of this input."""
    return fault_of(code) == NETWORK and name in REVISED


def attested(
    fact: Fact,
    node: tuple[str, str],
    device_id: str,
    physical_ms: int,
    unavailable_ms: int,
    excused: int,
    devices: int,
) -> tuple[Row, ...]:
    """A device's time in the capacity books of (node, owner); `excused` in microseconds.

    promised == max(0, physical - excused);  lost == min(promised, max(0, unavailable - excused))
    total == promised // devices;  good == (promised - lost) // devices
    """
    promised = max(0, 1_000 * physical_ms - excused)
    lost = min(promised, max(0, 1_000 * unavailable_ms - excused))
    if not promised:
        return ()
    count = max(1, devices)
    row = _row(fact, NODE, node[0], UPTIME, fact.position, device_id, (promised - lost) // count)
    return _both(replace(row, total=promised // count), node[1])


def challenged(
    fact: Fact, node: tuple[str, str], device_id: str, rule: str | None
) -> tuple[Row, ...]:
    """A challenge of a device of (node, owner). `rule`: what the answer breaks; None: it passed."""
    good = OBSERVATION if rule is None else 0
    row = _row(fact, NODE, node[0], RESPONSIVENESS, fact.position, device_id, good)
    return _both(row, node[1])


def resolved(
    fact: Fact, lent: Lent, opened_by: str, answered: Collection[str], *, is_unfounded: bool
) -> tuple[Row, ...]:
    """A dispute: whether the other side answered, and whether the renter who opened it had cause.

    `answered`: the sides ("renter", "provider") that answered before.
    """
    if lent.is_related:
        return ()
    if opened_by != "renter":
        good = OBSERVATION if "renter" in answered else 0
        return (_of_lease(fact, lent, RENTER, lent.account_id, RESPONSIVENESS, good),)
    good = OBSERVATION if "provider" in answered else 0
    cause = 0 if is_unfounded else OBSERVATION
    return (
        *_of_supply(fact, lent, RESPONSIVENESS, good),
        _of_lease(fact, lent, RENTER, lent.account_id, DISPUTES, cause),
    )


def settled(fact: Fact, lent: Lent, charge: int, owed: int) -> tuple[Row, ...]:
    """A lease is paid for. `owed`: of the charge, what no escrow had; in units, as the charge.

    good == max(0, 10^6 - owed x 10^6 // charge): the remainder is the renter's.
    """
    if lent.is_related or charge <= 0:
        return ()
    good = max(0, OBSERVATION - owed * OBSERVATION // charge)
    return (_of_lease(fact, lent, RENTER, lent.account_id, PAYMENT, good),)


def reversed_payment(
    fact: Fact, payment_id: str, account_id: str | None, spent: int
) -> tuple[Row, ...]:
    """Money taken back that was spent already. What was not spent costs nobody anything."""
    if account_id is None or spent <= 0:
        return ()
    return (_row(fact, RENTER, account_id, PAYMENT, fact.position, payment_id, 0),)


def measured(
    fact: Fact, lent: Lent, name: str, value: str, of_node: int, of_signer: int
) -> tuple[Row, ...]:
    """What the renter of a lease says that the node delivered of what it promised.

    `of_node`, `of_signer`: measurements of the node on this day that count already.
    good == min(10^6, delivered x 10^6 // expected)
    """
    is_form = name.startswith(MEASURED_PREFIX) and re.fullmatch(MEASURED_FORM, value)
    if lent.is_related or not is_form or of_node >= MEASURED_MAX or of_signer >= LEASES_MAX:
        return ()
    delivered, expected = (int(part) for part in value.split("/"))
    good = min(OBSERVATION, delivered * OBSERVATION // expected)
    rows = _of_supply(fact, lent, PERFORMANCE, good)
    return tuple(replace(row, counterparty=lent.account_id) for row in rows)


def taken_back(fact: Fact, rows: Iterable[Row]) -> tuple[Row, ...]:
    """Rows that count no more: the same with the opposite sign, for good and for total."""
    return tuple(
        replace(
            row,
            origin=fact.position,
            position=fact.position,
            counterparty=None,
            good=-row.good,
            total=-row.total,
        )
        for row in rows
        if not row.carried
    )


def carried(row: Row, moves: Iterable[tuple[int, str | None]]) -> tuple[Row, ...]:
    """A node's row on other nodes, where devices of it are from later on; on each of them once.

    `moves`: (position, node, None where it retired) of the devices that the row is about.
    """
    first: dict[str, int] = {}
    for position, node_id in sorted(moves, key=lambda move: move[0]):
        if position > row.since and node_id is not None and node_id != row.subject_id:
            first.setdefault(node_id, position)
    return tuple(
        replace(
            row,
            subject_id=node_id,
            position=max(row.position, position),
            counterparty=None,
            carried=True,
        )
        for node_id, position in first.items()
    )


def _of_supply(fact: Fact, lent: Lent, name: str, good: int) -> tuple[Row, ...]:
    return _both(_of_lease(fact, lent, NODE, lent.node_id, name, good), lent.provider_id)


def _both(row: Row, owner_id: str) -> tuple[Row, ...]:
    """A node's row, and the same one of its owner."""
    return (row, replace(row, kind=PROVIDER, subject_id=owner_id))


def _of_lease(fact: Fact, lent: Lent, kind: str, subject: str, name: str, good: int) -> Row:
    row = _row(fact, kind, subject, name, lent.position, lent.lease_id, good)
    return replace(row, client_id=lent.client_id)


def _row(fact: Fact, kind: str, subject: str, name: str, since: int, ref: str, good: int) -> Row:
    """One whole observation that counts at once and was seen by no client."""
    at, day = fact.position, fact.day
    return Row(kind, subject, name, at, at, since, ref, "", None, day, day, good, OBSERVATION)


# What rows add up to.


def weighed(
    rows: Iterable[Row], on_day: int, terms: ReputationTerms = REPUTATION_TERMS
) -> dict[str, Evidence]:
    """The evidence of each input from the rows of one subject, as it weighs on a UTC day.

    One sum per day, client and first day that counts; 0 <= good <= total of each, one floor each
    from microseconds to micro-observations.
    """
    sums: dict[tuple[str, int, int, str], tuple[int, int]] = {}
    for row in rows:
        if row.from_day <= on_day:
            key = (row.input, row.day, row.from_day, row.client_id)
            good, total = sums.get(key, (0, 0))
            sums[key] = (good + row.good, total + row.total)
    days: dict[str, list[tuple[int, int, int]]] = {}
    for (name, day, _, _), (good, total) in sums.items():
        unit = US_PER_MICRO if name == UPTIME else 1
        within = min(max(0, good), total)
        days.setdefault(name, []).append((day, within // unit, total // unit))
    found = {name: fold(counted, on_day, terms) for name, counted in days.items()}
    return {name: evidence for name, evidence in found.items() if evidence.total}


def fold(
    days: Iterable[tuple[int, int, int]], on_day: int, terms: ReputationTerms = REPUTATION_TERMS
) -> Evidence:
    """Evidence of one input from (UTC day, good, total) of each day, as it weighs on `on_day`.

    What was recorded later than that day is not known on it.
    """
    table = weights(terms.half_life_days, terms.horizon_days)
    g = n = all_good = everything = 0
    for day, good, total in days:
        assert 0 <= good <= total, (day, good, total)
        age = on_day - day
        if age < 0:
            continue
        weight = table[age] if age < len(table) else 0
        g, n = g + good * weight, n + total * weight
        all_good, everything = all_good + good, everything + total
    return Evidence(g >> WEIGHT_BITS, n >> WEIGHT_BITS, all_good, everything)
