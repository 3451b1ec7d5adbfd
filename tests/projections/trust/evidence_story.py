"""A story of everything that is evidence, in random order, and the rows the domain's rule gives.

    rows == sum over facts of what `domain/trust/evidence.py` says of the fact and what was known

`Book` only remembers and looks up; what a fact counts for is asked of the domain.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from domain.corrections import dispute
from domain.duration import DAY_US, HOUR_US, MINUTE_US
from domain.fleet import device, maintenance, provider
from domain.fleet.node import NodeJoinRequested
from domain.funds import funding, payment
from domain.income import maturity
from domain.lease import lease
from domain.lease import turns as lease_turns
from domain.lease.close_codes import CLOSE_REASONS, INGRESS_FAILURE, UNREACHABLE
from domain.leasing import other_resources
from domain.money import Amount, Asset, credit
from domain.parties import account
from domain.prices.charge_split import NOTHING, Parts
from domain.stream import Stream
from domain.trust import attribute, challenge, evidence
from domain.trust.evidence import Fact, Lent, Row
from domain.trust.related import account_key, any_related, wallet_key
from domain.trust.reputation_terms import NODE, PAYMENT, PERFORMANCE, UPTIME
from tests.scenes.samples import sample

Told = tuple[Stream[Any], Any]
Thread = Iterator[Callable[[int], Told]]
"""What happens to one thing, in order: each fact by the moment at which it is told."""

FIRST_DAY, CLIENTS = 20_000, ("acct_io", "acct_beam")
NODES = {"node_a": "prov_1", "node_b": "prov_1", "node_c": "prov_2"}
OWNERS = {"prov_1": "acct_owner", "prov_2": "acct_other"}
RENTERS = ("acct_r", "acct_s", "acct_t", "acct_tied")
DEVICES = tuple(f"GPU-{number}" for number in range(5))


TOLD_NOTHING = ("provider_registered", "region_opened", "node_join_requested")
"""What the view reads and this story never changes."""


def story(seed: int, leases: int = 90) -> list[Told]:
    """Threads of supply, ties, leases, disputes, measurements and payments, told by turns."""
    draw = random.Random(seed)
    threads = [
        *(_device(draw, one) for one in DEVICES),
        *(_lease(draw, number) for number in range(leases)),
        *(_maintenance(draw, number) for number in range(12)),
        *(_payment(draw, number) for number in range(8)),
        _network(),
    ]
    at_us = FIRST_DAY * DAY_US
    told = [make(at_us) for make in _supply()]
    while threads:
        thread = draw.choice(threads[:30])
        at_us += draw.randrange(10 * MINUTE_US)
        if (make := next(thread, None)) is None:
            threads.remove(thread)
        else:
            told.append(make(at_us))
    return told


def _telling(log: str, who: str, kind: Any, /, **named: Any) -> Callable[[int], Told]:
    fact = replace(sample(kind, leave_out_optional=True), **named)
    return lambda at_us: (Stream(log, who), replace(fact, at_us=at_us))


def _supply() -> Iterator[Callable[[int], Told]]:
    for owner in OWNERS:
        yield _telling("provider", owner, provider.ProviderRegistered, provider_id=owner)
    region = "region_1"
    yield _telling("region", region, provider.RegionOpened, region_id=region, setting="edge")
    for node, owner in NODES.items():
        named = {"node_id": node, "provider_id": owner, "region_id": region}
        yield _telling("node", node, NodeJoinRequested, **named)


def _network() -> Thread:
    """Two dispute windows, of which one begins later, and what ties a renter to an owner."""
    tied, owner = "acct_tied", "acct_owner"
    address = "0x" + "aB" * 20
    for version, hours in enumerate((24, 96), start=1):
        effective = (FIRST_DAY + version) * DAY_US
        yield _telling(
            "maturity",
            "network",
            maturity.MaturityWindowSet,
            version=version,
            window_us=hours * HOUR_US,
            effective_from_us=effective,
        )
    for who, written in ((owner, address.upper()), (tied, address)):
        yield _telling("account", who, account.WalletLinked, account_id=who, address=written)
    other = "acct_other"
    yield _telling(
        "account", other, maturity.PaymentModeSet, account_id=other, billing_account_id="acct_t"
    )
    yield _telling(
        "account", "acct_s", funding.PayerSet, account_id="acct_s", payer_account_id=other
    )


def _device(draw: random.Random, name: str) -> Thread:
    """It is on a node, in the books and challenged, moves, retires and comes back."""
    for step in range(24):
        node = draw.choice(list(NODES))
        if step % 6 == 0:
            owner = NODES[node]
            placed = {"device_id": name, "node_id": node, "provider_id": owner}
            yield _telling("device", name, device.DeviceRegistered, **placed)
        elif step == 17:
            yield _telling("device", name, device.DeviceRetired, device_id=name, node_id=node)
        elif step % 3:
            yield _books(draw, name, node)
        else:
            named = {"challenge_id": f"chal_{name}_{step}", "node_id": node, "device_id": name}
            rule = draw.choice((None, None, "too_late"))
            yield _telling(
                "challenge", f"chal_{name}_{step}", challenge.ChallengeJudged, **named, rule=rule
            )


def _books(draw: random.Random, name: str, node: str) -> Callable[[int], Told]:
    span_us = draw.randrange(1, 12 * HOUR_US)
    lost_ms = draw.choice((0, span_us // 2_000, span_us // 1_000))
    amounts = {"physical": span_us // 1_000, "unavailable": lost_ms}
    amounts |= {"leased": 0, "stranded": 0, "mined": 0}
    booked = {what: Amount(Asset.GPU_MS, units) for what, units in amounts.items()}
    fact = replace(
        sample(device.CapacityAccrued, leave_out_optional=True),
        device_id=name,
        node_id=node,
        **booked,
    )
    return lambda at_us: (
        Stream("device", name),
        replace(fact, from_us=at_us - span_us, to_us=at_us, at_us=at_us),
    )


def _maintenance(draw: random.Random, number: int) -> Thread:
    name, node = f"maintenance_{number}", draw.choice(list(NODES))
    named = {"maintenance_id": name, "node_id": node}
    kind = draw.choice(("planned", "network", "emergency"))
    fact = replace(
        sample(maintenance.MaintenanceScheduled, leave_out_optional=True), **named, kind=kind
    )
    begins, lasts = draw.randrange(-HOUR_US, 6 * HOUR_US), draw.randrange(1, 9 * HOUR_US)
    stream: Stream[Any] = Stream("maintenance", node)
    yield lambda at_us: (
        stream,
        replace(fact, from_us=at_us + begins, until_us=at_us + begins + lasts, at_us=at_us),
    )
    if number % 3 == 0:
        yield _telling("maintenance", node, maintenance.MaintenanceCancelled, **named)


def _lease(draw: random.Random, number: int) -> Thread:
    """A lease from its reservation to its settlement, measured, in silence, in dispute."""
    name, node = f"lease_{number}", draw.choice(("node_a", *NODES))
    renter, code = (
        draw.choice(("acct_r",) * 5 + RENTERS),
        list(CLOSE_REASONS)[number % len(CLOSE_REASONS)],
    )
    mine = {"lease_id": name, "account_id": renter}

    def told(kind: Any, /, **named: Any) -> Callable[[int], Told]:
        return _telling("lease", name, kind, **named)

    yield told(
        lease.LeaseReserved,
        **mine,
        node_id=node,
        provider_id=NODES[node],
        client_id=draw.choice(CLIENTS),
        provider_account_id=OWNERS[NODES[node]],
        device_ids=tuple(draw.sample(DEVICES, draw.randrange(1, 3))),
        share_ppm=draw.randrange(1, 1_000_001),
        own=number % 11 == 0,
        escrow=(),
    )
    if draw.random() < 0.7:
        yield told(lease.LeaseReady, lease_id=name, node_id=node)
    yield lambda at_us: told(lease.LeaseOpened, lease_id=name, opened_at_us=at_us)(at_us)
    yield from _measured(draw, name, node, renter)
    if code == UNREACHABLE or draw.random() < 0.3:
        yield from _silent(draw, name)
    if draw.random() < 0.3:
        owed = lease.Unfunded(renter, credit(draw.randrange(1, 200)))
        none = Parts(fee=owed.amount.units, provider=0, platform=0, burn=0)
        yield told(
            lease.UsageAccrued, lease_id=name, drawn=(), owners=(), parts_new=none, owed=owed
        )
    yield lambda at_us: told(
        lease.LeaseClosed, **mine, closed_at_us=at_us - MINUTE_US, code=code, refund=()
    )(at_us)
    charge = credit(draw.choice((0, 7, 100, 1_000)))
    yield told(lease.LeaseSettled, **mine, gpu_us=1, charge=charge, refund=(), disputed=False)
    if number % 11:
        yield from _metered(draw, name, node)
    if draw.random() < 0.4:
        yield from _disputed(draw, number, name)
    if code == UNREACHABLE or draw.random() < 0.1:
        to = draw.choice((INGRESS_FAILURE, UNREACHABLE))
        yield told(lease_turns.FaultRevised, lease_id=name, from_code=code, code=to)


def _metered(draw: random.Random, name: str, node: str) -> Thread:
    """Of some resources the node told all, a part or nothing, before the hold was let go."""
    for meter in draw.sample(("cpu", "network"), draw.randrange(3)):
        ran_us = draw.randrange(9 * HOUR_US)
        told_us = draw.choice((0, ran_us // 3, ran_us))
        stream: Stream[Any] = Stream("resource", f"{name}/{meter}")
        mine = {"lease_id": name, "meter": meter}
        accrued = replace(
            sample(other_resources.ResourceAccrued, leave_out_optional=True),
            **mine,
            node_id=node,
            told_us=told_us,
            parts_new=NOTHING,
            drawn=(),
        )
        returned = replace(
            sample(other_resources.ResourceReturned, leave_out_optional=True),
            **mine,
            parts=(),
            ran_us=ran_us,
            told_us=told_us,
        )
        if draw.random() < 0.8:
            yield lambda at_us, stream=stream, one=accrued: (  # type: ignore[misc]
                stream,
                replace(one, at_us=at_us),
            )
        yield lambda at_us, stream=stream, one=returned: (  # type: ignore[misc]
            stream,
            replace(one, from_us=at_us - one.ran_us, until_us=at_us, at_us=at_us),
        )


def _silent(draw: random.Random, name: str) -> Thread:
    stream: Stream[Any] = Stream("lease", name)
    degraded = replace(sample(lease_turns.LeaseDegraded, leave_out_optional=True), lease_id=name)
    back = replace(sample(lease_turns.LeaseRecovered, leave_out_optional=True), lease_id=name)
    for _ in range(draw.randrange(1, 3)):
        kept, gap_us = draw.choice((None, None, 1)), draw.randrange(HOUR_US)
        yield lambda at_us, kept=kept: (  # type: ignore[misc]
            stream,
            replace(degraded, since_us=at_us - HOUR_US, kept_until_us=kept, at_us=at_us),
        )
        if draw.random() < 0.6:
            yield lambda at_us, gap_us=gap_us: (  # type: ignore[misc]
                stream,
                replace(back, gap_us=gap_us, at_us=at_us),
            )


def _measured(draw: random.Random, name: str, node: str, renter: str) -> Thread:
    for number in range(draw.choice((0, 0, 1, 9))):
        statement = f"st_{name}_{number}"
        named = {"statement_id": statement}
        yield _telling(
            "attribute",
            statement,
            attribute.AttributeStated,
            **named,
            subject_id=node,
            name=draw.choice(("benchmark.resnet50", "benchmark.resnet50", "location")),
            value=draw.choice(("970/1000", "1/3", "3/2", "fast", "1/0", "0/1")),
            signer_account_id=draw.choice((renter, renter, *RENTERS)),
        )
        if draw.random() < 0.2:
            yield _telling("attribute", statement, attribute.AttributeRevoked, **named)


def _disputed(draw: random.Random, number: int, lease_id: str) -> Thread:
    name, by = f"dispute_{number}", draw.choice(("renter", "renter", "provider"))
    yield _telling(
        "dispute",
        name,
        dispute.DisputeOpened,
        dispute_id=name,
        lease_id=lease_id,
        side=by,
        lines=(),
    )
    for side in draw.sample(("renter", "provider"), draw.randrange(3)):
        yield _telling("dispute", name, dispute.DisputeAnswered, dispute_id=name, side=side)
    yield _telling(
        "dispute",
        name,
        dispute.DisputeResolved,
        dispute_id=name,
        lease_id=lease_id,
        opened_by=by,
        unfounded=draw.random() < 0.5,
    )


def _payment(draw: random.Random, number: int) -> Thread:
    """Taken back, won, and taken back again."""
    name = f"pay_{number}"
    mine = {"payment_id": name, "account_id": draw.choice((None, *RENTERS)), "amount": credit(5)}
    for _ in range(2):
        spent = draw.choice((0, 5, 5))
        yield _telling(
            "payment",
            name,
            payment.PaymentReversed,
            **mine,
            spent=credit(spent),
            unspent=credit(5 - spent),
        )
        if spent and mine["account_id"] and draw.random() < 0.5:
            yield _telling("payment", name, payment.PaymentReinstated, **mine)


class Book:
    """What was known before each fact, and the rows that the domain gave so far."""

    def __init__(self) -> None:
        self.counted: list[Row] = []
        self._windows: list[tuple[int, int]] = []
        self._keys: dict[str, set[str]] = defaultdict(set)
        self._moves: dict[str, list[tuple[int, str | None]]] = defaultdict(list)
        self._leases: dict[str, Lent] = {}
        self._devices_of: dict[str, tuple[str, ...]] = {}
        self._opened: set[str] = set()
        self._closed_at: dict[str, int] = {}
        self._silences: dict[str, tuple[int, bool]] = {}
        self._owed: Counter[str] = Counter()
        self._told: set[tuple[str, str]] = set()
        self.unmetered = 0
        self._contests: dict[str, tuple[str, set[str]]] = {}
        self._maintenance: dict[str, list[Any]] = {}
        self._measurements: dict[str, int] = {}
        self.leases_capped = self.measurements_capped = 0

    def rows(self) -> list[Row]:
        """All rows, also those that devices took to other nodes."""
        moved = [
            one
            for row in self.counted
            if row.kind == "node"
            for one in evidence.carried(row, self._moves_of(row.ref))
        ]
        return self.counted + moved

    def read(self, position: int, fact: Any) -> None:
        """One fact: its rows, by what was known before it, or what it makes known."""
        window = evidence.window_in_force(self._windows, fact.at_us, maturity.DEFAULT_WINDOW_US)
        self._at = Fact(position, fact.at_us, window)
        name = re.sub("(?<!^)(?=[A-Z])", "_", type(fact).__name__).lower()
        if name not in TOLD_NOTHING:
            self.counted += getattr(self, f"_on_{name}")(fact) or ()

    def _moves_of(self, ref: str) -> list[tuple[int, str | None]]:
        return [move for one in self._devices_of.get(ref, (ref,)) for move in self._moves[one]]

    def _devices(self, node_id: str) -> int:
        return sum(moves[-1][1] == node_id for moves in self._moves.values() if moves)

    def _known(self, **named: Any) -> list[Row]:
        return [
            row
            for row in self.counted
            if all(getattr(row, name) == value for name, value in named.items())
        ]

    def _on_maturity_window_set(self, fact: Any) -> None:
        self._windows.append((fact.effective_from_us, fact.window_us))

    def _on_wallet_linked(self, fact: Any) -> None:
        self._keys[fact.account_id].add(wallet_key(fact.address))

    def _on_payment_mode_set(self, fact: Any) -> None:
        self._keys[fact.account_id].add(account_key(fact.billing_account_id))

    def _on_payer_set(self, fact: Any) -> None:
        self._keys[fact.account_id].add(account_key(fact.payer_account_id))

    def _on_device_registered(self, fact: Any) -> None:
        self._moves[fact.device_id].append((self._at.position, fact.node_id))

    def _on_device_retired(self, fact: Any) -> None:
        self._moves[fact.device_id].append((self._at.position, None))

    def _on_maintenance_scheduled(self, fact: Any) -> None:
        if evidence.is_announced(fact.kind, fact.at_us, fact.from_us):
            told = [fact.node_id, fact.from_us, fact.until_us]
            self._maintenance[fact.maintenance_id] = told

    def _on_maintenance_cancelled(self, fact: Any) -> None:
        if told := self._maintenance.get(fact.maintenance_id):
            told[2] = min(told[2], fact.at_us)

    def _on_lease_reserved(self, fact: Any) -> None:
        renter, owner = fact.account_id, fact.provider_account_id
        paid = [owner, fact.client_account_id, *(share.account_id for share in fact.owners)]
        payees = [account_id for account_id in paid if account_id is not None]
        is_related = fact.own or any_related([renter], payees, self._keys)
        self._devices_of[fact.lease_id] = fact.device_ids
        self._leases[fact.lease_id] = Lent(
            fact.lease_id,
            fact.node_id,
            fact.provider_id,
            renter,
            fact.client_id,
            len(fact.device_ids) * fact.share_ppm,
            is_related,
            self._at.position,
        )

    def _on_lease_ready(self, fact: Any) -> tuple[Row, ...]:
        return evidence.made_ready(self._at, self._leases[fact.lease_id])

    def _on_lease_opened(self, fact: Any) -> None:
        self._opened.add(fact.lease_id)

    def _on_lease_degraded(self, fact: Any) -> None:
        self._silences[fact.lease_id] = (fact.since_us, fact.kept_until_us is not None)

    def _on_lease_recovered(self, fact: Any) -> tuple[Row, ...]:
        return self._missed(fact.lease_id, fact.gap_us)

    def _missed(self, lease_id: str, missed_us: int) -> tuple[Row, ...]:
        lent, announced = self._leases[lease_id], self._silences[lease_id][1]
        devices = self._devices(lent.node_id)
        return evidence.missed(self._at, lent, missed_us, devices, was_announced=announced)

    def _on_usage_accrued(self, fact: Any) -> None:
        self._owed[fact.lease_id] += fact.owed.amount.units

    def _on_resource_accrued(self, fact: Any) -> None:
        if fact.told_us:
            self._told.add((fact.node_id, fact.meter))

    def _on_resource_returned(self, fact: Any) -> tuple[Row, ...]:
        lent = self._leases[fact.lease_id]
        taken = self._known(ref=fact.lease_id, kind=NODE, input=UPTIME)
        rows = evidence.unmetered(
            self._at,
            lent,
            fact.ran_us,
            fact.told_us,
            self._excused_us(lent.node_id, fact.from_us, fact.until_us),
            self._devices(lent.node_id),
            sum(max(0, -row.good) for row in taken),
            has_told=(lent.node_id, fact.meter) in self._told,
        )
        self.unmetered += len(rows)
        return rows

    def _excused_us(self, node: str, from_us: int, to_us: int) -> int:
        spans = [(a, b) for which, a, b in self._maintenance.values() if which == node]
        return evidence.excused_us(spans, from_us, to_us)

    def _on_lease_closed(self, fact: Any) -> tuple[Row, ...]:
        lent = self._leases[fact.lease_id]
        self._closed_at[fact.lease_id] = self._at.position
        counted = {
            (kind, who): len(
                self._known(kind=kind, subject_id=who, input=name, day=self._at.day, **by)
            )
            for kind, who, name, by in (
                ("node", lent.node_id, "completion", {"counterparty": lent.account_id}),
                ("provider", lent.provider_id, "completion", {"counterparty": lent.account_id}),
                ("renter", lent.account_id, "conduct", {"counterparty": lent.provider_id}),
            )
        }
        rows = evidence.closed(self._at, lent, fact.code, counted)
        self.leases_capped += len(evidence.closed(self._at, lent, fact.code, {})) - len(rows)
        if evidence.ends_in_silence(fact.code) and fact.lease_id in self._silences:
            since_us = self._silences[fact.lease_id][0]
            rows += self._missed(fact.lease_id, fact.closed_at_us - since_us)
        return rows

    def _on_lease_settled(self, fact: Any) -> tuple[Row, ...]:
        owed = self._owed[fact.lease_id]
        return evidence.settled(self._at, self._leases[fact.lease_id], fact.charge.units, owed)

    def _on_fault_revised(self, fact: Any) -> tuple[Row, ...]:
        told = self._known(ref=fact.lease_id, origin=self._closed_at[fact.lease_id])
        return evidence.taken_back(
            self._at, [row for row in told if evidence.clears(fact.code, row.input)]
        )

    def _on_capacity_accrued(self, fact: Any) -> tuple[Row, ...]:
        node = fact.node_id
        return evidence.attested(
            self._at,
            (node, NODES[node]),
            fact.device_id,
            fact.physical.units,
            fact.unavailable.units,
            self._excused_us(node, fact.from_us, fact.to_us),
            self._devices(node),
        )

    def _on_challenge_judged(self, fact: Any) -> tuple[Row, ...]:
        node = (fact.node_id, NODES[fact.node_id])
        return evidence.challenged(self._at, node, fact.device_id, fact.rule)

    def _on_dispute_opened(self, fact: Any) -> None:
        self._contests[fact.dispute_id] = (fact.lease_id, set())

    def _on_dispute_answered(self, fact: Any) -> None:
        self._contests[fact.dispute_id][1].add(fact.side)

    def _on_dispute_resolved(self, fact: Any) -> tuple[Row, ...]:
        lease_id, sides = self._contests[fact.dispute_id]
        lent = self._leases[lease_id]
        return evidence.resolved(self._at, lent, fact.opened_by, sides, is_unfounded=fact.unfounded)

    def _on_payment_reversed(self, fact: Any) -> tuple[Row, ...]:
        return evidence.reversed_payment(
            self._at, fact.payment_id, fact.account_id, fact.spent.units
        )

    def _on_payment_reinstated(self, fact: Any) -> tuple[Row, ...]:
        told = [row for row in self._known(ref=fact.payment_id, input=PAYMENT) if row.total > 0]
        return evidence.taken_back(self._at, told[-1:])

    def _on_attribute_stated(self, fact: Any) -> tuple[Row, ...]:
        rented = [
            one
            for one in self._leases.values()
            if one.node_id == fact.subject_id
            and one.account_id == fact.signer_account_id
            and one.lease_id in self._opened
            and not one.is_related
        ]
        if not rented:
            return ()
        told = [
            row
            for row in self._known(
                kind="node", subject_id=fact.subject_id, input=PERFORMANCE, day=self._at.day
            )
            if row.counterparty is not None
        ]
        by_signer = sum(row.counterparty == fact.signer_account_id for row in told)
        rows = evidence.measured(self._at, rented[-1], fact.name, fact.value, len(told), by_signer)
        if rows:
            self._measurements[fact.statement_id] = self._at.position
        self.measurements_capped += by_signer >= evidence.LEASES_MAX
        return rows

    def _on_attribute_revoked(self, fact: Any) -> tuple[Row, ...]:
        origin = self._measurements.get(fact.statement_id)
        return evidence.taken_back(self._at, self._known(origin=origin, input=PERFORMANCE))
