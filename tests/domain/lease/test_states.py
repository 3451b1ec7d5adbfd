"""No command, in any state and in any order, leads a lease somewhere that is not written down.

debits == credits after every fact;   escrow in the books == what the lease says it holds
a device is held exactly by the leases whose state holds devices
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from domain import rules
from domain.duration import HOUR_US
from domain.epochs.epoch import EpochClosing, EpochOpened, EpochSealed
from domain.hardware.constraints import Constraints
from domain.jobs.gang import RequestGang, ReserveGang
from domain.lease.close_codes import CLOSE_REASONS, PARTIES, UNREACHABLE
from domain.lease.lease import (
    DEGRADED_AFTER_US,
    HOLDING,
    AccrueUsage,
    Fact,
    Lease,
    TopUpLease,
    evolve,
    lease_of,
)
from domain.lease.states import NEW, STATES, STAYING, TRANSITIONS
from domain.lease.turns import (
    ArchiveLease,
    CancelReclaim,
    ExtendLease,
    LeaseArchived,
    LeaseDisputed,
    LeaseResolved,
    RecoverLease,
    ReviseFault,
    WarnFundsEnd,
)
from domain.money import Asset, credit
from domain.refusal import Refused
from domain.stream import Stream
from tests.domain.leasing.test_life import (
    closed_as_unreachable,
    degrade,
    market,
    pause,
    quote,
    reclaim,
    resume,
    revise,
    running,
)
from tests.domain.scenes.market import (
    DEVICES,
    JOB,
    LEASE,
    NOON_US,
    RENTER,
    close,
    job,
    lease_stream,
    ready,
    request,
    reserve,
    settle,
    usage,
)
from tests.examples import examples
from tests.scenes.booked import Booked
from tests.scenes.samples import sample

MINUTE_US = 60_000_000


# --- the table -----------------------------------------------------------------------------------


def test_the_table_knows_every_state_and_reaches_each_of_them() -> None:
    reached, before = {NEW}, set[str]()
    while reached != before:
        before = set(reached)
        reached |= {one.target for one in TRANSITIONS if before & set(one.sources)}
    assert reached == {NEW, *STATES}
    assert {state for one in TRANSITIONS for state in one.sources} == {NEW, *STATES} - {"archived"}
    assert all(set(states) <= set(STATES) for states in STAYING.values())


def is_documented(before: str, fact: str, after: str) -> bool:
    """Whether the table knows that this fact leads from one state to the other."""
    if before == after and before in STAYING.get(fact, ()):
        return True
    return any(
        before in one.sources and (one.target, one.fact) == (after, fact) for one in TRANSITIONS
    )


def test_what_is_not_in_the_table_is_told_apart() -> None:
    assert is_documented("active", "LeasePaused", "paused")
    assert not is_documented("degraded", "LeasePaused", "paused")
    assert not is_documented("active", "LeasePaused", "active")
    assert not is_documented("archived", "LeaseDisputed", "disputed")


# --- every command in every state ----------------------------------------------------------------


def _sealed_epoch(made: Booked, until_us: int) -> None:
    """Epoch 1, over and sealed."""
    stream = Stream("epoch", "1")
    for kind in (EpochOpened, EpochClosing, EpochSealed):
        fact = sample(kind, leave_out_optional=True)
        changes = {"epoch": 1, "at_us": until_us}
        if kind is EpochOpened:
            changes |= {"start_us": 0, "end_us": until_us}
        state = rules.evolve("epoch", made.state(stream), replace(fact, **changes))
        made._states[stream] = state


def _settled() -> Booked:
    made = running()
    made.do(close(HOUR_US // 2), settle(HOUR_US // 2, (usage(0, HOUR_US // 2),)))
    return made


def _said(made: Booked, *facts: Any) -> Booked:
    for fact in facts:
        made.record(lease_stream, fact)
    return made


def _disputed() -> Booked:
    return _said(
        _settled(), LeaseDisputed(lease_id=LEASE, dispute_id="d", status="disputed", at_us=NOON_US)
    )


def _resolved() -> Booked:
    return _said(
        _disputed(),
        LeaseResolved(
            lease_id=LEASE, dispute_id="d", outcome="rejected", status="resolved", at_us=NOON_US
        ),
    )


def _archived() -> Booked:
    made = _settled()
    fact = LeaseArchived(lease_id=LEASE, account_id=RENTER, epoch=1, at_us=NOON_US)
    return _said(made, fact)


def _requested() -> Booked:
    made = market(HOUR_US)
    made.do(job(), request(funds=10_000_000))
    return made


def _after(made: Booked, *commands: Any) -> Booked:
    made.do(*commands)
    return made


def _gang_waiting() -> Booked:
    """A member of a gang of two, ready before the other."""
    made = market(HOUR_US)
    other = "lease_22222222"
    asked = replace(request(funds=10_000_000), gang_id="g", start_timeout_us=10 * MINUTE_US)
    taken = replace(reserve(), lease_id=other, device_ids=DEVICES[1:2])
    made.do(
        job(),
        RequestGang(
            gang_id="g",
            job_id=JOB,
            account_id=RENTER,
            pool_id=None,
            members=2,
            min_members=2,
            term_us=None,
            funds=None,
            at_us=NOON_US,
        ),
        asked,
        replace(asked, lease_id=other),
        reserve(),
        taken,
        ReserveGang(gang_id="g", lease_ids=(LEASE, other), at_us=NOON_US),
        ready,
    )
    return made


IN_STATE: dict[str, Callable[[], Booked]] = {
    "requested": _requested,
    "quoted": lambda: _after(_requested(), quote()),
    "reserved": lambda: _after(_requested(), reserve()),
    "gang_waiting": _gang_waiting,
    "active": lambda: running(HOUR_US),
    "paused": lambda: _after(running(HOUR_US), pause(MINUTE_US)),
    "degraded": lambda: _after(running(HOUR_US), degrade(DEGRADED_AFTER_US)),
    "reclaiming": lambda: _after(running(HOUR_US), reclaim(MINUTE_US)),
    "closing": closed_as_unreachable,
    "settled": _settled,
    "disputed": _disputed,
    "resolved": _resolved,
    "archived": _archived,
}

COMMANDS: dict[str, Callable[[int], Any]] = {
    "quote": lambda us: quote("q2", us + HOUR_US, at_us=NOON_US + us),
    "reserve": lambda us: replace(reserve(), at_us=NOON_US + us),
    "accept": lambda us: replace(reserve(), quote_id="quote_1", at_us=NOON_US + us),
    "ready": lambda us: replace(ready, at_us=NOON_US + us),
    "pause": pause,
    "resume": resume,
    "degrade": degrade,
    "recover": lambda us: RecoverLease(lease_id=LEASE, healthy_us=NOON_US + us, at_us=NOON_US + us),
    "reclaim": reclaim,
    "cancel_reclaim": lambda us: CancelReclaim(lease_id=LEASE, by="p", at_us=NOON_US + us),
    "extend": lambda us: ExtendLease(
        lease_id=LEASE, account_id=RENTER, more_us=HOUR_US, at_us=NOON_US + us
    ),
    "top_up": lambda us: TopUpLease(
        lease_id=LEASE, account_id=RENTER, amount=credit(1_000), at_us=NOON_US + us
    ),
    "accrue": lambda us: AccrueUsage(
        lease_id=LEASE, lane=1, usage_position=50, rows=(usage(0, HOUR_US),), at_us=NOON_US + us
    ),
    "warn": lambda us: WarnFundsEnd(lease_id=LEASE, at_us=NOON_US + us),
    "settle": lambda us: settle(us, (usage(0, min(us, HOUR_US)),), position=60),
    "revise": lambda us: replace(revise(us), at_us=NOON_US + us),
    "archive": lambda us: ArchiveLease(lease_id=LEASE, epoch=1, at_us=NOON_US + us),
    **{
        f"close_{party}_{code}": partial(close, party=party, code=code)
        for party in PARTIES
        for code in CLOSE_REASONS
    },
}


TURNS = [name for name in COMMANDS if not name.startswith("close_")]


def do_documented(made: Booked, command: Any) -> bool:
    """Decide, book and check a command; whether it led to facts. Raises on anything but a
    documented fact or a typed refusal.
    """
    before = lease_of(made, LEASE).status
    seen = len(made.facts)
    try:
        made.do(command)
    except Refused:
        assert len(made.facts) == seen
        return False
    state = before
    shown = _replayed(made, seen)
    for fact, after in shown:
        assert is_documented(state, type(fact).__name__, after), (state, fact, after)
        state = after
    assert state == lease_of(made, LEASE).status
    assert made.total(Asset.CREDIT) == 0
    return bool(shown)


def _replayed(made: Booked, seen: int) -> list[tuple[Any, str]]:
    """The new facts of the lease, each with the state after it."""
    kinds = Fact.__args__
    told: list[tuple[Any, str]] = []
    lease = Lease()
    for index, fact in enumerate(made.facts):
        if isinstance(fact, kinds) and getattr(fact, "lease_id", None) == LEASE:
            lease = evolve(lease, fact)
            if index >= seen:
                told.append((fact, lease.status))
    return told


@pytest.mark.parametrize("state", STATES)
def test_every_command_in_every_state_gives_facts_of_the_table_or_a_typed_refusal(
    state: str,
) -> None:
    begun = IN_STATE[state]()
    assert lease_of(begun, LEASE).status == state
    took = set()
    for name, command in COMMANDS.items():
        for us in (MINUTE_US, HOUR_US // 2, HOUR_US, 26 * HOUR_US, 91 * 24 * HOUR_US):
            made = begun.copied()
            if name == "archive":
                _sealed_epoch(made, NOON_US + 91 * 24 * HOUR_US)
            if do_documented(made, command(us)):
                took.add(name)
    assert vars(begun) == vars(IN_STATE[state]())
    if state == "archived":
        assert took == set()
    elif state != "disputed":
        assert took, state


# --- random lives --------------------------------------------------------------------------------


class Life(RuleBasedStateMachine):
    """One lease with a renter's money, a node that reports or not, and a clock that goes on."""

    seen: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        super().__init__()
        self.made = market(HOUR_US)
        self.us = 0
        self.reported_us = 0
        self.position = 1
        self.rows: list[Any] = []
        self.closes = 0

    @initialize(term=st.booleans(), steps=st.integers(0, 6))
    def begin(self, term: bool, steps: int) -> None:
        """As far as asked: most lives begin with a lease that runs."""
        self.made.do(job(constraints=Constraints(interruptible=True)))
        self.made.do(request(term_us=4 * HOUR_US) if term else request(funds=10_000_000))
        if steps:
            self.made.do(reserve())
        if steps > 1:
            self.made.do(ready)

    @property
    def lease(self) -> Lease:
        return lease_of(self.made, LEASE)

    def ask(self, command: Any) -> None:
        do_documented(self.made, command)

    @rule(seconds=st.sampled_from((1, 59, 180, 600, 1_799, 1_800, 3_600, 90_000)))
    def time_passes(self, seconds: int) -> None:
        self.us += seconds * 1_000_000

    @rule(whole=st.booleans())
    def node_reports(self, whole: bool) -> None:
        """Honest time up to now, of all or of half of it."""
        from_us = self.reported_us if whole else (self.reported_us + self.us) // 2
        if self.lease.opened is not None and from_us < self.us:
            self.position += 1
            self.rows.append(usage(from_us, self.us, position=self.position))
            self.reported_us = self.us

    @rule(minutes=st.sampled_from((2, 3, 29, 30)))
    def node_is_silent(self, minutes: int) -> None:
        """And nobody reports for so long; the timer says so, and then that it is enough."""
        self.us += minutes * MINUTE_US
        self.ask(degrade(self.us, self.reported_us))
        self.ask(close(self.us, "job", UNREACHABLE))

    @rule(name=st.sampled_from(TURNS))
    def turn(self, name: str) -> None:
        is_read = name in ("accrue", "settle", "revise")
        self.ask(self.timer(name) if is_read else COMMANDS[name](self.us))

    @rule(party=st.sampled_from(PARTIES), code=st.sampled_from(list(CLOSE_REASONS)))
    def end(self, party: str, code: int) -> None:
        """Not too soon, so that there is a life to be ended."""
        self.closes += 1
        if self.closes > 4:
            self.ask(close(self.us, party, code))

    def timer(self, name: str) -> Any:
        rows, at = tuple(self.rows), NOON_US + self.us
        read: dict[str, Any] = {"lease_id": LEASE, "lane": 1, "at_us": at}
        if name == "accrue":
            return AccrueUsage(usage_position=self.position, rows=rows, **read)
        if name == "settle":
            return replace(settle(self.us, rows, self.position))
        return ReviseFault(
            usage_position=self.position, covered_us=(NOON_US + self.reported_us,), **read
        )

    @rule()
    def timers(self) -> None:
        """All that is due, however late."""
        lease = self.lease
        if lease.opened is not None and lease.is_running:
            end_us = lease.window_end_us
            if end_us <= NOON_US + self.us:
                code = 3 if lease.term_end_us == end_us else 100
                self.ask(close(end_us - NOON_US, "job", code))
        for _ in range(30):
            seen = len(self.made.facts)
            self.ask(self.timer("accrue"))
            if len(self.made.facts) == seen:
                break
        self.ask(self.timer("settle"))

    @rule(seconds=st.integers(0, 4_000))
    def reclaim_and_close(self, seconds: int) -> None:
        self.ask(reclaim(self.us))
        closing = close(self.us + seconds * 1_000_000, "provider", 2)
        if self.lease.status == "reclaiming":
            assert self.lease.reclaim is not None
            due_us = self.lease.reclaim.deadline_us
            took = do_documented(self.made, closing)
            assert took == (closing.at_us >= due_us)
            if took:
                self.us += seconds * 1_000_000

    @invariant()
    def the_books_balance(self) -> None:
        Life.seen.add(self.lease.status)
        assert self.made.total(Asset.CREDIT) == 0

    @invariant()
    def the_escrow_in_the_books_is_what_the_lease_holds(self) -> None:
        held = sum(self.made.of(f"escrow:{LEASE}:").values())
        assert held == sum(part.amount.units for part in self.lease.held)

    @invariant()
    def nothing_is_charged_above_the_time_it_ran(self) -> None:
        lease = self.lease
        if lease.opened is None or lease.reserved is None:
            assert lease.charge_units == 0
            return
        end_us = NOON_US + self.us if lease.closed is None else lease.closed.closed_at_us
        most = lease.ran_us(end_us) * lease.opened.price_per_gpu_hour.units // HOUR_US
        assert lease.charge_units <= most
        served = sum(row.available_us for row in self.rows)
        assert lease.gpu_us <= served

    @invariant()
    def a_device_is_held_while_the_state_holds_one(self) -> None:
        held = [
            name for name in DEVICES if LEASE in self.made.state(Stream("device", name)).holders
        ]
        assert bool(held) == (self.lease.status in HOLDING)


@pytest.mark.hypothesis
def test_a_random_life_stays_in_the_table_and_its_books_balance() -> None:
    # The same lives every time: whether every state is reached must not be a matter of luck.
    lives = examples(150, stateful_step_count=40, derandomize=True)
    run_state_machine_as_test(Life, settings=lives)
    assert {"active", "paused", "degraded", "reclaiming", "closing", "settled"} <= Life.seen
