"""Reward weight of contested usage (economics 17): none at the cut, back in the ruling's epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from domain.chain import burn
from domain.corrections import dispute
from domain.epochs import epoch
from domain.income.adjustment import AdjustmentBooked, BookLine
from domain.lease import lease
from domain.money import credit, token
from domain.stream import Stream
from projections import tables
from projections.epochs import burning, epochs
from projections.epochs.epochs import EPOCHS
from projections.runner import step
from tests.examples import examples
from tests.projections import story
from tests.projections.story import Size, Told, Writer

AT_US = story.START_US
SIZE = Size(hours=1)


def accrual(source: str) -> Told:
    fact = story._accrual(0, 0, SIZE, "acct_cash", source, 1_000_000, AT_US)
    return Stream("lease", fact.lease_id), fact


def opened(line: int, claimed: int, charge: int, gpu_us: int) -> Told:
    fact = dispute.DisputeOpened(
        dispute_id="dispute_1",
        lease_id=f"lease_{0:032x}",
        volume_id=None,
        account_id="acct_cash",
        provider_account_id="acct_provider",
        side="renter",
        lines=(
            dispute.DisputedLine(
                position=line,
                charge=credit(charge),
                claimed=credit(claimed),
                gpu_us=gpu_us,
                held=(),
                proven=True,
            ),
        ),
        claimed=credit(claimed),
        reserved=credit(0),
        claim_code="other",
        claim_sha256=None,
        evidence=(),
        expires_at_us=AT_US,
        by="m",
        at_us=AT_US,
    )
    return Stream("dispute", "dispute_1"), fact


def resolved(line: int, claimed: int, upheld: int) -> Told:
    fact = dispute.DisputeResolved(
        dispute_id="dispute_1",
        lease_id=f"lease_{0:032x}",
        volume_id=None,
        outcome="split",
        upheld_ppm=1,
        lines=(
            dispute.ResolvedLine(
                position=line, claimed=credit(claimed), upheld=credit(upheld), adjustment_id=None
            ),
        ),
        claimed=credit(claimed),
        upheld=credit(upheld),
        opened_by="renter",
        unfounded=not upheld,
        arbiter_account_id=None,
        reason_sha256=None,
        by="m",
        at_us=AT_US,
    )
    return Stream("dispute", "dispute_1"), fact


def booked(line: int, returned: int, at: int = 1) -> Told:
    """What of a charge a ruling, or anything else, gives back."""
    fact = AdjustmentBooked(
        adjustment_id=f"adj_{at}",
        corrects_position=line,
        lease_id=f"lease_{0:032x}",
        volume_id=None,
        account_id="acct_cash",
        provider_account_id="acct_provider",
        reason="dispute",
        cause="x",
        returned=returned,
        recovered=returned,
        owed=0,
        lines=(),
        late=None,
        by="m",
        at_us=AT_US,
    )
    return Stream("adjustment", str(line)), fact


def cut(number: int) -> Told:
    return Stream("epoch", str(number)), epoch.EpochClosing(epoch=number, by="op", at_us=AT_US)


def burns() -> Iterator[Told]:
    at: dict[str, Any] = {"credits": credit(1_000), "tokens": token(1), "at_us": AT_US}
    yield (
        Stream("burn", "1"),
        burn.BurnIntended(
            burn_id=1,
            first_position=1,
            last_position=10**6,
            price_micro_usd=1,
            price_round=1,
            **at,
            price_snapshot=None,
        ),
    )
    yield Stream("burn", "1"), burn.BurnConfirmed(burn_id=1, tx_hash="0", block_number=1, **at)


def weights(connection: psycopg.Connection[Any], epochs_count: int) -> list[tuple[int, int]]:
    """(burned, gpu_us) of the provider, epoch by epoch."""
    found = []
    for number in range(1, epochs_count + 1):
        preview = epochs.read_preview(connection, number)
        sums = {who: (burned, gpu_us) for who, burned, gpu_us in preview.by_account()}
        found.append(sums.get("acct_provider", (0, 0)))
    return found


def told(connection: psycopg.Connection[Any], facts: list[Told], facts_max: int) -> None:
    """A log of these facts, followed in steps of so many."""
    Writer(connection).write(iter(facts))
    while step(connection, EPOCHS, facts_max=facts_max):
        pass


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    source=st.sampled_from(["cash", "burned"]),
    order=st.permutations(["burn", "cut", "open", "rule", "cut"]),
    upheld=st.integers(0, 1_000),
    facts_max=st.integers(1, 9),
)
def test_what_is_contested_has_no_weight_at_the_cut_and_what_is_left_in_the_rulings_epoch(
    connection: psycopg.Connection[Any], source: str, order: list[str], upheld: int, facts_max: int
) -> None:
    """Whatever the order of burn, cuts, dispute and ruling, and however the log is cut into
    ranges: what a plain reading of the rule gives, epoch by epoch. What is upheld is taken back in
    the ruling's epoch, also of a charge that an earlier epoch has counted (E-C2).
    """
    first_of, last_of = sorted((order.index("open"), order.index("rule")))
    order[first_of], order[last_of] = "open", "rule"
    first: lease.UsageAccrued = accrual(source)[1]
    charge, gpu_us, burnt = first.charge_new.units, first.gpu_us_new, first.parts_new.burn
    claimed = charge // 3
    back = claimed * upheld // 1_000
    part, time = burnt * claimed // charge, gpu_us * claimed // charge
    lost, lost_time = burnt * back // charge, gpu_us * back // charge
    facts, numbers, at, burn_at = [accrual(source)], {"L": 1}, 1, 0
    for word in order:
        if word == "cut":
            facts.append(cut(at))
            at += 1
        elif word == "burn":
            facts += burns()
            burn_at = len(facts)
        elif word == "open":
            facts.append(opened(1, claimed, charge, time))
        else:
            facts += [booked(1, back), resolved(1, claimed, back)]
        numbers.setdefault({"open": "D", "rule": "R", "burn": "B"}.get(word, "-"), at)
    expected_time, expected = dict.fromkeys(range(1, 4), 0), dict.fromkeys(range(1, 4), 0)
    where = {word: order.index(word) for word in ("burn", "open", "rule")}
    expected_time[1] += gpu_us
    expected_time[numbers["R"]] -= lost_time
    if numbers["D"] == 1:
        expected_time[1] -= time
        expected_time[numbers["R"]] += time
    counted = 1 if source == "burned" else numbers["B"]
    is_before = source == "burned" or where["burn"] < where["open"]
    is_after = source == "cash" and where["rule"] < where["burn"]
    expected[counted] += burnt
    expected[counted if is_after else numbers["R"]] -= lost
    if not is_after and (not is_before or counted == numbers["D"]):
        expected[counted] -= part
        expected[numbers["R"]] += part
    assert burn_at
    tables.ensure(connection, [EPOCHS])
    connection.execute("BEGIN")
    try:
        told(connection, facts, facts_max)
        assert weights(connection, 3) == [(expected[n], expected_time[n]) for n in (1, 2, 3)]
    finally:
        connection.execute("ROLLBACK")


def test_what_is_given_back_of_a_burn_makes_the_next_one_smaller(
    connection: psycopg.Connection[Any],
) -> None:
    fact = AdjustmentBooked(
        adjustment_id="adj_1",
        corrects_position=1,
        lease_id="lease_1",
        volume_id=None,
        account_id="acct_cash",
        provider_account_id="acct_provider",
        reason="dispute",
        cause="x",
        returned=7,
        recovered=7,
        owed=0,
        lines=(BookLine("network:burn_due", 7), BookLine("party:acct_cash:cash", -7)),
        late=None,
        by="m",
        at_us=AT_US,
    )
    tables.ensure(connection, [EPOCHS])
    told(connection, [accrual("cash"), (Stream("adjustment", "1"), fact)], 100)
    due: lease.UsageAccrued = accrual("cash")[1]
    assert burning.read_ripe(connection, 1, 10) == [(1, due.parts_new.burn - 7)]
