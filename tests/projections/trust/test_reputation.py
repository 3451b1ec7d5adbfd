"""Reputation in SQL says what the domain says, at any position, whatever a lease ended with."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from domain.corrections import dispute
from domain.duration import DAY_US, HOUR_US
from domain.fleet import device, maintenance, provider
from domain.fleet.node import NodeJoinRequested
from domain.funds import funding, payment
from domain.income import maturity
from domain.lease import lease
from domain.lease import turns as lease_turns
from domain.lease.close_codes import fault_of
from domain.money import PPM, Amount, Asset, credit
from domain.parties import account
from domain.prices.charge_split import Parts
from domain.stream import Stream
from domain.trust import attribute, challenge
from domain.trust.evidence import LEASES_MAX, MEASURED_MAX, completion, conduct, fold
from domain.trust.reputation_terms import (
    COMPLETION,
    CONDUCT,
    DISPUTES,
    PAYMENT,
    PERFORMANCE,
    REPUTATION_TERMS,
    RESPONSIVENESS,
    UPTIME,
)
from domain.trust.scores import Evidence, rate, rate_for_client
from projections import runner, tables
from projections.trust import scores
from projections.trust.reputation import REPUTATION, read_parties, read_settings
from tests.projections.story import Writer
from tests.scenes.samples import sample

CODES = (0, 1, 3, 5, 100, 101, 102, 103, 10_000, 10_003, 10_004, 20_001, 20_003, 30_000)
DAY = 20_000
NODES, RENTERS, CLIENTS = ("node_a", "node_b"), ("acct_r", "acct_s"), ("acct_io", "acct_beam")
GPU, OTHER = "GPU-1", "GPU-2"
WINDOW_DAYS = 3
"""Of a network that never set another window."""

Told = tuple[Stream[Any], Any]


def _fact(kind: Any, /, **named: Any) -> Any:
    """A fact with these fields; the rest as in the samples, what may be absent left out."""
    return replace(sample(kind, leave_out_optional=True), **named)


def _at(day: int, us: int = 0) -> int:
    return (DAY + day) * DAY_US + us


class Log:
    """A log that is written a little at a time, and the view that follows it."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.writer = connection, Writer(connection)

    def tell(self, *facts: Told) -> int:
        """Write and follow; the position of the last."""
        self.writer.write(iter(facts))
        tables.step_all(self.connection, [REPUTATION])
        return self.writer.position

    def seen(self, kind: str, who: str, day: int, as_of: int | None = None) -> dict[str, Evidence]:
        found = scores.read_evidence(self.connection, kind, [who], day=DAY + day, as_of=as_of)
        return dict(found.get(who, {}))

    def counted(self, kind: str, who: str, name: str, day: int) -> tuple[int, int]:
        """(good, total) as it was counted, undecayed."""
        found = self.seen(kind, who, day).get(name, Evidence())
        return found.good, found.total


@pytest.fixture
def log(connection: Any) -> Log:
    log = Log(connection)
    log.tell(*_supply())
    return log


def _supply() -> list[Told]:
    told: list[Told] = [
        (Stream("provider", "prov_1"), _fact(provider.ProviderRegistered, provider_id="prov_1"))
    ]
    for node, setting in zip(NODES, ("edge", "datacenter"), strict=True):
        opened = _fact(provider.RegionOpened, region_id=f"region_{setting}", setting=setting)
        joined = _fact(
            NodeJoinRequested, node_id=node, region_id=f"region_{setting}", provider_id="prov_1"
        )
        told += [(Stream("region", f"region_{setting}"), opened), (Stream("node", node), joined)]
    return told


def _placed(device_id: str, node_id: str, day: int = 0) -> Told:
    registered = _fact(
        device.DeviceRegistered,
        device_id=device_id,
        node_id=node_id,
        provider_id="prov_1",
        at_us=_at(day),
    )
    return Stream("device", device_id), registered


def _ended(
    number: int | str,
    code: int,
    day: int = 0,
    *,
    node: str = NODES[0],
    renter: str = RENTERS[0],
    client: str = CLIENTS[0],
    own: bool = False,
    devices: tuple[str, ...] = (GPU, OTHER),
) -> list[Told]:
    """One lease from its reservation to its settlement, all on one day."""
    stream, at = Stream("lease", f"lease_{number}"), _at(day)
    named: dict[str, Any] = {"lease_id": stream.id, "account_id": renter, "at_us": at}
    facts = [
        _fact(
            lease.LeaseReserved,
            **named,
            node_id=node,
            provider_id="prov_1",
            client_id=client,
            provider_account_id="acct_owner",
            device_ids=devices,
            share_ppm=500_000,
            own=own,
            escrow=(),
        ),
        _fact(lease.LeaseOpened, lease_id=stream.id, opened_at_us=at, at_us=at),
        _fact(lease.LeaseClosed, **named, closed_at_us=at + HOUR_US, code=code, refund=()),
        _fact(
            lease.LeaseSettled,
            **named,
            gpu_us=HOUR_US // 2,
            charge=credit(0),
            refund=(),
            disputed=False,
        ),
    ]
    return [(stream, fact) for fact in facts]


# --- how leases ended ------------------------------------------------------------------------


def _many(log: Log, count: int = 150) -> list[tuple[lease.LeaseReserved, int, int, int]]:
    """Leases that ended in every way over 40 days: (reserved, code, day, position of the close)."""
    draw, told, facts = random.Random(4), [], []
    for number in range(count):
        own, code, day = number % 7 == 0, draw.choice(CODES), number * 40 // count
        ended = _ended(
            number,
            code,
            day,
            node=draw.choice(NODES),
            renter=draw.choice(RENTERS),
            client=draw.choice(CLIENTS),
            own=own,
        )
        facts += ended
        if not own:
            told.append((ended[0][1], code, day, log.writer.position + len(facts) - 1))
    log.tell(*facts)
    return told


def _reference(
    told: Iterable[tuple[lease.LeaseReserved, int, int, int]],
    subject: str,
    value: str,
    day: int,
    as_of: int = 2**40,
) -> dict[str, dict[str, Evidence]]:
    """What counts of leases, in Python: by client, "" for all, and the others of one by "-one"."""
    is_renter = subject == "account_id"
    rule, other = (conduct, "provider_id") if is_renter else (completion, "account_id")
    counted: dict[tuple[str, int], int] = defaultdict(int)
    rows: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    slow: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for reserved, code, on, position in told:
        if getattr(reserved, subject) != value:
            continue
        good, total = rule(code)
        pending = position > as_of or (not good and on + WINDOW_DAYS > day)
        names = ["", reserved.client_id] + [f"-{c}" for c in CLIENTS if c != reserved.client_id]
        if code == 10_003 and not pending and not is_renter:
            for name in names:
                slow[name].append((on, 0, PPM))
        if total:
            counted[getattr(reserved, other), on] += 1
            if counted[getattr(reserved, other), on] <= LEASES_MAX and not pending:
                for name in names:
                    rows[name].append((on, good * PPM, PPM))
    name = CONDUCT if is_renter else COMPLETION
    found = {
        key: {name: fold(rows[key], day), RESPONSIVENESS: fold(slow[key], day)}
        for key in ("", *CLIENTS, *(f"-{c}" for c in CLIENTS))
    }
    return {key: {n: e for n, e in one.items() if e.total} for key, one in found.items()}


SUBJECTS = (
    ("node", "node_id", NODES[0]),
    ("node", "node_id", NODES[1]),
    ("provider", "provider_id", "prov_1"),
    ("renter", "account_id", RENTERS[0]),
)


def test_sql_and_the_domain_give_the_same_scores_on_any_day(log: Log) -> None:
    told = _many(log)
    for day in (20, 41, 44, 399):
        for kind, subject, value in SUBJECTS:
            seen = _reference(told, subject, value, day)
            read = scores.read_rating(log.connection, kind, value, day=DAY + day)
            assert read == rate(kind, seen[""]), (kind, day)
            for client_id in CLIENTS:
                mine = scores.read_rating(
                    log.connection, kind, value, day=DAY + day, client_id=client_id
                )
                expected = rate_for_client(kind, seen[client_id], seen[f"-{client_id}"])
                assert mine == expected, (kind, client_id, day)


def test_a_score_can_be_computed_again_as_it_was_at_any_position(log: Log) -> None:
    """What is read at the time is what is computed later; nothing that comes afterwards counts."""
    told = _many(log, 70)
    then = log.writer.position
    before = {
        (kind, value): scores.read_rating(log.connection, kind, value, day=DAY + 50)
        for kind, _, value in SUBJECTS
    }
    lost = [reserved for reserved, code, _, _ in told if code == 10_004]
    log.tell(
        *[one for n in range(60) for one in _ended(f"x{n}", CODES[n % 14], 41 + n % 9)],
        *[_revised(str(reserved.lease_id)) for reserved in lost],
        _placed(GPU, NODES[1], 44),
        _placed(GPU, NODES[0], 45),
    )
    for (kind, value), rating in before.items():
        assert (
            scores.read_rating(log.connection, kind, value, day=DAY + 50, as_of=then) == rating
        ), kind
        assert scores.read_rating(log.connection, kind, value, day=DAY + 50) != rating
    for as_of in (10, 60, told[-1][3]):
        for kind, subject, value in SUBJECTS:
            found = scores.read_rating(log.connection, kind, value, day=DAY + 30, as_of=as_of)
            assert found == rate(kind, _reference(told, subject, value, 30, as_of)[""]), as_of


def test_of_one_counterparty_and_day_only_the_first_five_leases_count(log: Log) -> None:
    for number in range(2 * LEASES_MAX):
        log.tell(*_ended(number, 0))
    other = _ended("other", 0, renter=RENTERS[1])
    log.tell(*other, *_ended("later", 0, day=1))
    for kind, who in (("node", NODES[0]), ("provider", "prov_1")):
        assert log.counted(kind, who, COMPLETION, 9) == (7 * PPM, 7 * PPM)
    assert log.counted("renter", RENTERS[0], CONDUCT, 9) == (6 * PPM, 6 * PPM)


def test_a_fault_counts_when_the_window_that_was_in_force_at_its_close_is_over(log: Log) -> None:
    window = _fact(
        maturity.MaturityWindowSet,
        version=1,
        window_us=DAY_US,
        effective_from_us=_at(10),
        at_us=_at(5),
    )
    log.tell(*_ended(1, 10_000, day=8))
    log.tell((Stream("maturity", "network"), window))
    for number, code, day in ((2, 10_000, 9), (3, 10_000, 10), (4, 0, 10)):
        log.tell(*_ended(number, code, day))
    found = [log.counted("node", NODES[0], COMPLETION, day)[1] // PPM for day in range(8, 13)]
    assert found == [0, 0, 1, 3, 4], "what was good counts at once"


def _revised(lease_id: str) -> Told:
    revised = _fact(lease_turns.FaultRevised, lease_id=lease_id, from_code=10_004, code=20_004)
    return Stream("lease", lease_id), revised


def test_a_fault_of_the_network_costs_neither_completion_nor_uptime_once_it_is_known(
    log: Log,
) -> None:
    stream = Stream("lease", "lease_1")
    degraded = _fact(lease_turns.LeaseDegraded, lease_id=stream.id, since_us=_at(0, HOUR_US // 2))
    reserved, opened, closed, settled = _ended(1, 10_004)
    log.tell(
        _placed(GPU, NODES[0]),
        _accrued(GPU, NODES[0], day=0),
        _accrued(GPU, NODES[0], day=1),
        reserved,
        opened,
        (stream, degraded),
        closed,
        settled,
    )
    day_us = 4 * PPM
    half_hour = PPM // 12
    assert log.counted("node", NODES[0], COMPLETION, 9) == (0, PPM)
    assert log.counted("node", NODES[0], UPTIME, 9) == (2 * day_us - half_hour - 1, 2 * day_us)
    assert log.counted("renter", RENTERS[0], CONDUCT, 9) == (PPM, PPM)
    known = log.writer.position
    log.tell(_revised(stream.id))
    assert log.counted("node", NODES[0], COMPLETION, 9) == (0, 0)
    assert log.counted("node", NODES[0], UPTIME, 9) == (2 * day_us, 2 * day_us)
    assert log.counted("renter", RENTERS[0], CONDUCT, 9) == (0, 0)
    assert log.seen("node", NODES[0], 9, known)[COMPLETION].total == PPM, "as it was known then"


def test_leases_between_related_parties_count_for_nobody(log: Log) -> None:
    def tied(kind: Any, who: str, **named: Any) -> Told:
        return Stream("account", who), _fact(kind, account_id=who, at_us=_at(0), **named)

    log.tell(
        tied(account.WalletLinked, "acct_owner", address="0x" + "Ab" * 20),
        tied(account.WalletLinked, "acct_wallet", address="0x" + "aB" * 20),
        tied(maturity.PaymentModeSet, "acct_owner", billing_account_id="acct_billing"),
        tied(funding.PayerSet, "acct_paid", payer_account_id="acct_owner"),
        *_ended("own", 0, own=True),
    )
    for renter in ("acct_wallet", "acct_billing", "acct_paid"):
        log.tell(*_ended(renter, 0, renter=renter), *_ended(f"{renter}2", 10_000, renter=renter))
        assert log.seen("renter", renter, 9) == {}
    assert log.seen("node", NODES[0], 9) == log.seen("provider", "prov_1", 9) == {}
    log.tell(*_ended("stranger", 0))
    assert log.counted("node", NODES[0], COMPLETION, 9) == (PPM, PPM)


# --- uptime ----------------------------------------------------------------------------------


def _accrued(device_id: str, node_id: str, day: int, away_us: int = 0, us: int = DAY_US) -> Told:
    """A day of a device in the capacity books, of which so much was unavailable."""
    booked = {
        name: Amount(Asset.GPU_MS, value // 1_000)
        for name, value in (
            ("physical", us),
            ("leased", 0),
            ("stranded", 0),
            ("unavailable", away_us),
            ("mined", 0),
        )
    }
    fact = _fact(
        device.CapacityAccrued,
        device_id=device_id,
        from_us=_at(day),
        to_us=_at(day) + us,
        node_id=node_id,
        at_us=_at(day, 1),
        **booked,
    )
    return Stream("device", device_id), fact


def test_uptime_is_what_was_promised_and_attested_as_much_per_device_as_the_node_has(
    log: Log,
) -> None:
    log.tell(_placed(GPU, NODES[0]), _placed(OTHER, NODES[0]), _placed("GPU-3", NODES[1]))
    log.tell(
        _accrued(GPU, NODES[0], 1, 12 * HOUR_US),
        _accrued(OTHER, NODES[0], 1, 12 * HOUR_US),
        _accrued("GPU-3", NODES[1], 1),
    )
    day_us = 4 * PPM
    assert log.counted("node", NODES[0], UPTIME, 1) == (day_us // 2, day_us), "one machine"
    assert log.counted("provider", "prov_1", UPTIME, 1) == (day_us * 3 // 2, 2 * day_us)


def test_maintenance_that_was_announced_is_neither_good_nor_bad_and_an_emergency_is_bad(
    log: Log,
) -> None:
    def announced(name: str, kind: str, from_us: int, until_us: int, at_us: int) -> Told:
        return Stream("maintenance", NODES[0]), _fact(
            maintenance.MaintenanceScheduled,
            maintenance_id=name,
            node_id=NODES[0],
            kind=kind,
            from_us=from_us,
            until_us=until_us,
            at_us=at_us,
        )

    def cancelled(name: str, at_us: int) -> Told:
        return Stream("maintenance", NODES[0]), _fact(
            maintenance.MaintenanceCancelled, maintenance_id=name, node_id=NODES[0], at_us=at_us
        )

    hours = [_at(1) + hour * HOUR_US for hour in range(25)]
    log.tell(
        _placed(GPU, NODES[0]),
        announced("planned", "planned", hours[0], hours[6], _at(0)),
        announced("overlapping", "network", hours[3], hours[8], _at(0)),
        announced("emergency", "emergency", hours[9], hours[12], _at(0)),
        announced("afterwards", "planned", hours[13], hours[14], hours[14]),
        announced("called off", "planned", hours[15], hours[18], _at(0)),
        cancelled("called off", hours[15]),
        cancelled("overlapping", hours[7]),
        _accrued(GPU, NODES[0], 1, 13 * HOUR_US),
    )
    good, total = log.counted("node", NODES[0], UPTIME, 1)
    assert (good, total) == (11 * PPM // 6, 17 * PPM // 6), "seven hours out of 24 are excused"


def test_a_silence_that_degraded_a_lease_is_no_uptime_even_among_friends(log: Log) -> None:
    stream = Stream("lease", "lease_own")
    reserved, opened, closed, settled = _ended("own", 0, own=True, devices=(GPU,))
    silent = _fact(lease_turns.LeaseDegraded, lease_id=stream.id, since_us=_at(0))
    back = _fact(lease_turns.LeaseRecovered, lease_id=stream.id, gap_us=6 * HOUR_US, at_us=_at(0))
    kept = replace(silent, kept_until_us=_at(1))
    log.tell(
        _placed(GPU, NODES[0]),
        _accrued(GPU, NODES[0], 0),
        reserved,
        opened,
        (stream, silent),
        (stream, back),
        (stream, kept),
        (stream, back),
    )
    log.tell(closed, settled)
    assert log.counted("node", NODES[0], UPTIME, 9) == (4 * PPM - PPM // 2, 4 * PPM), "half a GPU"


# --- performance and responsiveness ----------------------------------------------------------


def _measured(number: int, value: str, *, signer: str = RENTERS[0], day: int = 1) -> Told:
    stated = _fact(
        attribute.AttributeStated,
        statement_id=f"st_{number}",
        subject_id=NODES[0],
        name="benchmark.resnet50",
        value=value,
        signer_account_id=signer,
        at_us=_at(day),
    )
    return Stream("attribute", f"st_{number}"), stated


def test_who_has_rented_a_node_may_say_what_it_delivered_a_few_times_a_day(log: Log) -> None:
    reserved, opened, *rest = _ended(1, 0)
    log.tell(
        _measured(0, "1/2"),
        reserved,
        _measured(1, "1/2"),
        opened,
        _measured(2, "970/1000"),
        _measured(3, "3/2"),
        _measured(4, "fast"),
        _measured(5, "1/0"),
        _measured(6, "0/1", signer="acct_rival"),
        *rest,
    )
    assert log.counted("node", NODES[0], PERFORMANCE, 1) == (1_970_000, 2 * PPM)
    log.tell(*[_measured(10 + n, "0/1") for n in range(9)])
    assert log.counted("node", NODES[0], PERFORMANCE, 1) == (1_970_000, LEASES_MAX * PPM)
    taken = _fact(attribute.AttributeRevoked, statement_id="st_2", at_us=_at(2))
    log.tell((Stream("attribute", "st_2"), taken))
    for kind, who in (("node", NODES[0]), ("provider", "prov_1")):
        assert log.counted(kind, who, PERFORMANCE, 1) == (PPM, (LEASES_MAX - 1) * PPM)
    for number in range(8):
        renter = f"acct_{number}"
        log.tell(
            *_ended(renter, 0, renter=renter),
            *[_measured(100 + 10 * number + n, "1/1", signer=renter) for n in range(5)],
        )
    assert log.counted("node", NODES[0], PERFORMANCE, 1)[1] == (MEASURED_MAX - 1) * PPM


def test_answers_are_leases_made_ready_challenges_and_disputes(log: Log) -> None:
    ready = _fact(lease.LeaseReady, lease_id="lease_1", node_id=NODES[0], at_us=_at(0))
    reserved, *ended = _ended(1, 0)

    def judged(number: int, rule: str | None) -> Told:
        return Stream("challenge", f"chal_{number}"), _fact(
            challenge.ChallengeJudged,
            challenge_id=f"chal_{number}",
            node_id=NODES[0],
            device_id=GPU,
            rule=rule,
            at_us=_at(0),
        )

    log.tell(
        reserved,
        (Stream("lease", "lease_1"), ready),
        *ended,
        *_ended(2, 10_003),
        judged(1, None),
        judged(2, "too_late"),
    )
    for kind, who in (("node", NODES[0]), ("provider", "prov_1")):
        assert log.counted(kind, who, RESPONSIVENESS, 9) == (2 * PPM, 4 * PPM)
    assert log.counted("node", NODES[0], RESPONSIVENESS, 1) == (2 * PPM, 3 * PPM), "a fault waits"

    def disputed(name: str, by: str, answered_by: str | None, unfounded: bool) -> list[Told]:
        told = [
            _fact(dispute.DisputeOpened, dispute_id=name, lease_id="lease_1", side=by, lines=()),
            _fact(dispute.DisputeAnswered, dispute_id=name, side=answered_by),
            _fact(
                dispute.DisputeResolved,
                dispute_id=name,
                lease_id="lease_1",
                opened_by=by,
                unfounded=unfounded,
                at_us=_at(0),
            ),
        ]
        return [
            (Stream("dispute", name), one)
            for one in told
            if one.__class__ is not dispute.DisputeAnswered or answered_by
        ]

    log.tell(*disputed("d1", "renter", "provider", False), *disputed("d2", "renter", None, True))
    log.tell(*disputed("d3", "provider", "renter", True))
    log.tell(*disputed("d4", "provider", None, False))
    assert log.counted("renter", RENTERS[0], DISPUTES, 9) == (PPM, 2 * PPM)
    assert log.counted("renter", RENTERS[0], RESPONSIVENESS, 9) == (PPM, 2 * PPM)
    assert log.counted("node", NODES[0], RESPONSIVENESS, 9) == (3 * PPM, 6 * PPM)


def test_a_renter_pays_with_what_was_funded_and_a_reversal_counts_until_it_is_won(log: Log) -> None:
    *running, settled = _ended(1, 0)
    owed = _fact(
        lease.UsageAccrued,
        lease_id="lease_1",
        drawn=(),
        owners=(),
        parts_new=Parts(fee=25, provider=0, platform=0, burn=0),
        owed=lease.Unfunded(RENTERS[0], credit(25)),
    )
    paid = replace(settled[1], charge=credit(100))
    log.tell(*running, (settled[0], owed), (settled[0], paid), *_ended(2, 0))
    assert log.counted("renter", RENTERS[0], PAYMENT, 9) == (750_000, PPM), "nothing was charged"
    stream = Stream("payment", "pay_1")
    back: dict[str, Any] = {"payment_id": "pay_1", "account_id": RENTERS[0], "at_us": _at(1)}
    five, none = credit(5), credit(0)
    unspent = _fact(payment.PaymentReversed, **back, amount=five, spent=none, unspent=five)
    spent = _fact(payment.PaymentReversed, **back, amount=five, spent=five, unspent=none)
    won = _fact(payment.PaymentReinstated, **back, amount=five)
    found = []
    for fact in (unspent, spent, won, spent):
        log.tell((stream, fact))
        found.append(log.counted("renter", RENTERS[0], PAYMENT, 9)[1])
    assert found == [PPM, 2 * PPM, PPM, 2 * PPM]


# --- devices that move -----------------------------------------------------------------------


def test_what_a_device_did_follows_it_to_another_node_however_late_it_is_known(log: Log) -> None:
    """And nothing else does: not what other devices of the old node did, nor what comes after."""
    reserved, opened, closed, settled = _ended("late", 10_004, devices=(GPU, OTHER))
    log.tell(
        _placed(GPU, NODES[0]),
        _placed(OTHER, NODES[0]),
        *_ended("both", 10_000, devices=(GPU, OTHER)),
        *_ended("stays", 0, devices=(OTHER,)),
        _accrued(GPU, NODES[0], 1, DAY_US),
        _accrued(OTHER, NODES[0], 1, 0),
        reserved,
        opened,
    )
    before = log.seen("node", NODES[0], 9)
    assert log.seen("node", NODES[1], 9) == {}
    moved = log.tell(_placed(GPU, NODES[1], 2))
    assert log.seen("node", NODES[0], 9) == before, "the node keeps what it did"
    assert log.counted("node", NODES[1], COMPLETION, 9) == (0, PPM)
    assert log.counted("node", NODES[1], UPTIME, 9) == (0, 2 * PPM)
    log.tell(closed, settled, *_ended("after", 0, devices=(OTHER,)))
    assert log.counted("node", NODES[1], COMPLETION, 9) == (0, 2 * PPM), "it was on that lease"
    log.tell(_revised("lease_late"))
    assert log.counted("node", NODES[1], COMPLETION, 9) == (0, PPM)
    assert log.seen("node", NODES[1], 9, moved)[COMPLETION].total == PPM
    log.tell(_placed(OTHER, NODES[1], 3))
    assert log.counted("node", NODES[1], COMPLETION, 9) == (2 * PPM, 3 * PPM), "each lease once"
    assert log.counted("provider", "prov_1", COMPLETION, 9) == (2 * PPM, 3 * PPM)


# --- reading many ----------------------------------------------------------------------------


def test_what_settlement_asks_is_told_for_many_nodes_as_of_a_cut(log: Log) -> None:
    for number in range(12):
        log.tell(*_ended(number, 0, number))
    cut = log.writer.position
    asked = ["node_a", "node_b", "node_unknown"]
    then = scores.read_standings(log.connection, asked, as_of=cut, day=DAY + 12)
    assert set(then) == set(NODES)
    one, other = then["node_a"], then["node_b"]
    owner = scores.read_rating(log.connection, "provider", "prov_1", day=DAY + 12)
    assert (one.owner_id, one.owner_score_ppm) == ("prov_1", owner.score_ppm)
    assert (one.is_provisional, other.score_ppm) == (False, None)
    assert one.score_ppm == min(one.node_score_ppm, one.owner_score_ppm)
    assert (other.is_provisional, other.node_score_ppm) == (True, 540_768)
    log.tell(*_ended("bad", 10_000, 1), _placed(GPU, NODES[1], 1))
    assert scores.read_standings(log.connection, asked, as_of=cut, day=DAY + 12) == then
    later = scores.read_standings(log.connection, asked, as_of=log.writer.position, day=DAY + 12)
    assert later["node_a"].node_score_ppm < one.node_score_ppm
    with pytest.raises(AssertionError, match="not yet"):
        scores.read_standings(log.connection, asked, as_of=cut + 10_000, day=DAY)
    fast = replace(REPUTATION_TERMS, half_life_days=1)
    quick = scores.read_scores(log.connection, "node", ["node_a"], day=DAY + 12, terms=fast)
    assert quick["node_a"].score_ppm < one.node_score_ppm


def test_of_a_large_fleet_only_those_are_read_who_are_asked_for(log: Log) -> None:
    """A seal asks for some thousand nodes at a time: it read the table of all anew each time."""
    connection = log.connection
    runner.step(connection, REPUTATION)
    connection.execute(
        """INSERT INTO proj_reputation.day
        SELECT 'node', 'node_' || n, 'uptime', %(day)s + d, %(day)s + d, '', 43200, 86400
        FROM generate_series(1, 2000) n CROSS JOIN generate_series(1, 10) d""",
        {"day": DAY},
    )
    connection.execute("ANALYZE proj_reputation.day")
    asked = [f"node_{number}" for number in range(1, 501)] * 2
    with connection.transaction():
        for as_of in (None, log.writer.position):
            seen = scores.read_evidence(connection, "node", asked, day=DAY + 12, as_of=as_of)
            assert len(seen) == 500
        read = connection.execute(
            "SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'day'"
            " AND schemaname = 'proj_reputation'"
        ).fetchone()
    assert read is not None
    assert read[0] == 0, "the whole table was read"
    assert read[1] == 2 * 500, "each of them once, whoever is named twice"


@pytest.mark.parametrize("facts_max", [1, 13])
def test_evidence_does_not_depend_on_how_the_log_is_cut(log: Log, facts_max: int) -> None:
    log.tell(_placed(GPU, NODES[0]), _placed(OTHER, NODES[1]))
    told = _many(log, 90)
    lost = next(reserved for reserved, code, _, _ in told if code == 10_004)
    log.tell(
        _placed(GPU, NODES[1]),
        _placed(OTHER, NODES[0]),
        _revised(str(lost.lease_id)),
        *_ended("n", 0),
        _placed(GPU, NODES[0]),
    )
    whole = tables.digest(log.connection, REPUTATION.schema, seed=7)
    tables.drop(log.connection, REPUTATION)
    tables.create(log.connection, REPUTATION)
    while runner.step(log.connection, REPUTATION, facts_max=facts_max):
        pass
    assert tables.digest(log.connection, REPUTATION.schema, seed=7) == whole


# --- parties and settings --------------------------------------------------------------------


def test_each_party_is_named_as_often_as_leases_ended_through_it(log: Log) -> None:
    told = _many(log)
    found = read_parties(log.connection, "provider", "prov_1")
    assert sum(found.values()) == len(told) > 0
    for party, count in found.items():
        assert count == sum(fault_of(code) == party for _, code, _, _ in told), party


def test_edge_and_datacenter_are_told_in_numbers(log: Log) -> None:
    told = _many(log)
    for row, node in zip(read_settings(log.connection), ("node_b", "node_a"), strict=True):
        mine = [code for reserved, code, _, _ in told if reserved.node_id == node]
        assert (row.leases, row.unreachable) == (len(mine), mine.count(10_004))
        assert row.promised_gpu_us == len(mine) * HOUR_US
        assert row.served_gpu_us == len(mine) * HOUR_US // 2
