"""Histories drawn from seeds hold what is promised; the same seed is the same history; and faults
that are planted in the server are found.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from api.chain.stores import OutboxStore, ScannerStore
from api.chain.timer import ChainJobs
from domain.epochs import settlement
from domain.metering import counting
from domain.metering.counting import Counted
from domain.money import PPM
from ledger.log import recorder
from ledger.log.append import Appended
from ledger.log.handle import Ledger
from tests.conftest import Databases
from tests.passes import SUITES
from tests.simulation.chain import Way
from tests.simulation.founding import Founded, founded
from tests.simulation.reference import Lease, Reference
from tests.simulation.run import Run, Told, play
from tests.simulation.suite import run

# A process that dies closes nothing.
pytestmark = pytest.mark.filterwarnings("ignore:.*was deleted while still open:ResourceWarning")
MARKETS = range(5, 9)
"""Faults in the market are found by one of these; the other faults by the seed beside them."""


@pytest.fixture(scope="module")
def made(postgres: Databases, template_with_views: str) -> Generator[Founded, None, None]:
    with founded(postgres, template_with_views) as founding:
        yield founding


WHOLE = pytest.mark.slow("::test_a_history_holds_what_is_promised")


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=WHOLE if seed >= 2 else ())
        for seed in SUITES["simulation"].short_seeds
    ],
)
def test_a_history_holds_what_is_promised(seed: int, made: Founded) -> None:
    run(seed, made)


def test_an_executor_that_meets_another_one_at_work_gives_up(made: Founded) -> None:
    """In this history the second one waited 900 s for the first, which waits for the second."""
    assert play(222, made).faults["two executors"]


def test_the_same_seed_is_the_same_history_and_another_is_another(made: Founded) -> None:
    told, again = play(4, made), play(4, made)
    assert _history(told) == _history(again)
    assert told.head != play(5, made).head


@pytest.mark.slow("::test_the_same_seed_is_the_same_history_and_another_is_another")
def test_the_same_seed_is_the_same_history_of_payouts(made: Founded) -> None:
    assert _history(play(3, made)) == _history(play(3, made))


def test_the_reference_pays_a_row_over_which_the_wall_clock_was_set_by_its_length() -> None:
    """Seed 1407: 302.9 s by the clock that is paid for, 302.3 s by the other."""
    reference, opened_us, len_us, slew_us = Reference(), 10**15, 302_928_203, -610_299
    reference.leases["l"] = Lease("renter", "owner", ("g",), 1, opened_us, opened_us + len_us)
    columns = {"device": 0, "lease": 0, "step_us": 0, "len_us": len_us, "available_us": len_us}
    columns |= {"wall_minus_mono_us": opened_us, "wall_slew_us": slew_us}
    told = {"node": "n", "seq": 1, "n": 1, "devices": [{"id": "g"}], "leases": ["l"]}
    told |= {"cols": columns, "clock_offset_us": -slew_us}
    reference.report(json.dumps(told).encode())
    assert reference.reported_us("l") == len_us


def test_a_step_within_a_step_aside_leaves_the_outer_one_aside() -> None:
    """Else the server is started again by the very thread whose call it is about to end."""
    run, told = object.__new__(Run), list[bool]()
    run.is_aside = run.is_paying = False

    class People:
        def aside(self) -> None:
            if not told:
                told.append(run.is_aside)
                run._aside()
            told.append(run.is_aside)

    run.people = People()  # type: ignore[assignment]
    run._aside()
    assert told == [True, True, True]
    assert not run.is_aside


def _history(played: Told) -> tuple[Any, ...]:
    return played.head, played.lines, played.faults


def _no_command_row(patched: pytest.MonkeyPatch) -> None:
    """The row that makes a retry harmless is not written."""
    plain = recorder.ChainRecorder.insert_events

    def insert(self: Any, events: Any, **kwargs: Any) -> Any:
        append = kwargs["append"]
        append.command, append.answered = None, ()
        return plain(self, events, **kwargs)

    patched.setattr(recorder.ChainRecorder, "insert_events", insert)


def _priced(patched: pytest.MonkeyPatch, times: int, over: int) -> None:
    plain = counting.count

    def count(*args: Any) -> Counted:
        found = plain(*args)
        return replace(found, ppm_us=found.ppm_us * times // over)

    patched.setattr("domain.leasing.accrual.count", count)


def _priced_twice(patched: pytest.MonkeyPatch) -> None:
    """What a report says is priced twice."""
    _priced(patched, 2, 1)


def _priced_in_part(patched: pytest.MonkeyPatch) -> None:
    """A millionth of what a report says is not priced."""
    _priced(patched, PPM - 1, PPM)


def _answered_before(patched: pytest.MonkeyPatch) -> None:
    """The commit is acknowledged, and every tenth is not made."""
    plain, count = Ledger._append, iter(range(10**9))

    def append(self: Any, world: Any, *args: Any, **kwargs: Any) -> Any:
        if world.changes and next(count) % 10 == 9:
            return Appended(True, self.market.head()[0] + len(world.changes))
        return plain(self, world, *args, **kwargs)

    patched.setattr(Ledger, "_append", append)


def _taken_before_it_is_final(patched: pytest.MonkeyPatch) -> None:
    """What the chain says is believed at its head."""
    plain = ScannerStore.waiting
    patched.setattr(ScannerStore, "waiting", lambda self, _final: plain(self, 2**40))


def _a_nonce_again(patched: pytest.MonkeyPatch) -> None:
    """The nonce of the last transaction is taken once more."""
    plain = Way.transaction_count

    def count(self: Any, address: str, number: Any = "latest") -> int:
        return max(0, plain(self, address, number) - 1)

    patched.setattr(Way, "transaction_count", count)
    patched.setattr(OutboxStore, "nonce_max", lambda *_args: None)


def _a_unit_too_much(patched: pytest.MonkeyPatch) -> None:
    """A unit of the treasury goes to the nodes."""
    plain = settlement.pools_of

    def pools(units: int, policy: Any) -> tuple[int, int, int]:
        compute, availability, treasury = plain(units, policy)
        return compute + 1, availability, treasury - 1

    patched.setattr(settlement, "pools_of", pools)


def _a_veto_forgotten(patched: pytest.MonkeyPatch) -> None:
    """What was vetoed is proposed again by itself."""
    plain = ChainJobs._roots

    def roots(self: Any) -> None:
        known = self._payout

        def forgetful(epoch: int) -> Any:
            found = known(epoch)
            return replace(found, status="built") if found.status == "vetoed" else found

        self._payout = forgetful
        try:
            plain(self)
        finally:
            del self._payout

    patched.setattr(ChainJobs, "_roots", roots)


def _marked_before_it_is_taken(patched: pytest.MonkeyPatch) -> None:
    """An effect of the chain counts as taken before the ledger has it."""
    plain = ChainJobs._take

    def take(self: Any, effect: Any) -> None:
        self._scanner.done(effect)
        plain(self, effect)

    patched.setattr(ChainJobs, "_take", take)


PLANTED = {
    _no_command_row: ("was answered and is not there", MARKETS),
    _priced_twice: ("leases stop", MARKETS),
    _priced_in_part: ("gpu_us=", MARKETS),
    _answered_before: ("held_back", MARKETS),
    _a_unit_too_much: ("compute_carry", (0,)),
    _a_nonce_again: ("chain_intent_nonce", (0,)),
    _taken_before_it_is_final: ("mint due", (0,)),
    _a_veto_forgotten: ("was held and is proposed again", (6,)),
    _marked_before_it_is_taken: ("purchases: expected 1, got 0", (15,)),
}
"""What is said by what finds it, and by which of the seeds: an answer without its row, a lease that
holds less than it would cost, a bill, what an owner has; then what an epoch pays, the database, the
chain beside the ledger, a held root, a purchase.
"""


SHORT = (_priced_in_part, _a_unit_too_much, _marked_before_it_is_taken)
"""One of market and two of payouts are enough for `make test`."""
OTHERS = pytest.mark.slow("::test_a_fault_that_is_planted_is_found")


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(plant, marks=() if plant in SHORT else OTHERS, id=plant.__name__.strip("_"))
        for plant in PLANTED
    ],
)
def test_a_fault_that_is_planted_is_found(plant: Any, made: Founded) -> None:
    said = []
    told, seeds = PLANTED[plant]
    with pytest.MonkeyPatch.context() as patched:
        plant(patched)
        for seed in seeds:
            try:
                play(seed, made)
            except Exception as found:
                said.append(str(found))
                if told in said[-1]:
                    return
    raise AssertionError(f"no seed found it: {said}")
