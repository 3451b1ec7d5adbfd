"""What is charged for a volume is disputed like any charge; nothing measures the disk (0062)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.corrections.dispute import (
    AnswerDispute,
    DisputeOpened,
    DisputeResolved,
    Evidence,
    TimeOutDispute,
)
from domain.corrections.reasons import CorrectionsReason
from domain.duration import HOUR_US
from domain.fleet.growth import growth_stream
from domain.income.adjustment import AdjustmentBooked, BookLine, ChargedLine, Unburned
from domain.income.maturity import DEFAULT_WINDOW_US
from domain.lease.turns import LeaseDisputed
from domain.money import PPM, credit
from domain.prices.tariff import NETWORK, VOLUME, MeterRate
from domain.refusal import Refused
from domain.storage.volume import VolumeCharged
from domain.stream import Stream
from tests.domain.scenes import market
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.corrections import (
    HOLDBACK,
    PAYABLE,
    RESERVE,
    mature,
    open_dispute,
    rule,
    unburned,
)
from tests.domain.scenes.market import NOON_US, OWNER, RENTER
from tests.domain.storage.test_volume import REGION, VOLUME_ID, WORKER, charge, opened, provision
from tests.examples import examples

CASH = f"party:{RENTER}:cash"
RATE = MeterRate(VOLUME, credit(1_000_000), 36_000)


def stored(hours: int = 2, *, burn_ppm: int = 0, cash: int = 10**9, grant: int = 0) -> Booked:
    """A volume that stood for so many hours, each of them charged; the grant pays first."""
    scene = market.scene({CASH: cash, f"party:{RENTER}:grant": grant, "world:bank": cash + grant})
    tariff = scene.state(NETWORK).published[-1]
    priced = replace(
        tariff,
        version=2,
        meters=(RATE,),
        effective_from_us=NOON_US,
        burn_share_ppm=burn_ppm,
        provider_share_ppm=500_000,
    )
    machine = growth_stream(REGION), WORKER
    world = Booked.of(scene.given((Stream("region", REGION), opened), machine, (NETWORK, priced)))
    world.do(provision)
    for hour in range(1, hours + 1):
        world.do(charge(hour * HOUR_US))
    return world


def parts_of(line: ChargedLine) -> dict[str, int]:
    return {part.account: part.units for part in line.payees}


def timed_out(world: Booked) -> list[BookLine]:
    """What nobody ruled on in time moves."""
    (dispute,) = world.facts(DisputeOpened)
    world.do(
        TimeOutDispute(
            dispute_id="dispute_1",
            lines=tuple(world.lines()),
            unburned=unburned(world),
            at_us=dispute.expires_at_us,
        )
    )
    return [one for fact in world.facts(AdjustmentBooked) for one in fact.lines]


def test_the_charge_of_a_volume_is_disputed_and_given_back_by_those_that_it_paid() -> None:
    world = stored()
    line, balance = world.lines()[-1], world.balance(CASH)
    assert (line.lease_id, line.volume_id, line.gpu_us) == (None, VOLUME_ID, 0)
    world.do(open_dispute([line]))
    (dispute,) = world.facts(DisputeOpened)
    assert (dispute.lease_id, dispute.volume_id, dispute.side) == (None, VOLUME_ID, "renter")
    assert world.balance(RESERVE) == dispute.reserved.units == parts_of(line)[HOLDBACK]
    assert not world.facts(LeaseDisputed), "no lease is told"
    world.do(rule(world, PPM))
    (booked,) = world.facts(AdjustmentBooked)
    assert (booked.volume_id, booked.corrects_position) == (VOLUME_ID, line.position)
    assert world.balance(CASH) == balance + line.charge
    assert {one.account: one.units for one in booked.lines if one.units > 0} == {
        RESERVE: parts_of(line)[HOLDBACK],
        "network:revenue:take": parts_of(line)["network:revenue:take"],
    }
    assert (world.balance(RESERVE), world.total()) == (0, 0)


def test_what_is_to_be_burned_of_it_comes_from_the_charge_and_what_was_burned_is_owed() -> None:
    for covered in (False, True):
        world = stored(burn_ppm=PPM)
        line, balance = world.lines()[-1], world.balance(CASH)
        due = parts_of(line)["network:burn_due"]
        world.do(open_dispute([line]))
        world.do(rule(world, PPM, read=Unburned(0, ()) if covered else None))
        (booked,) = world.facts(AdjustmentBooked)
        from_burn = sum(one.units for one in booked.lines if one.account == "network:burn_due")
        assert (from_burn, booked.owed) == ((0, due) if covered else (due, 0))
        assert world.balance(CASH) == balance + line.charge - booked.owed
        assert world.total() == 0


def test_what_the_reserve_paid_in_the_grace_goes_back_to_its_account() -> None:
    world = stored(1)
    world.balances |= {CASH: 0}
    world.do(charge(3 * HOUR_US))  # the grace starts
    world.do(charge(3 * HOUR_US))
    line = world.lines()[-1]
    fact = world.log[line.position - 1].fact
    assert isinstance(fact, VolumeCharged)
    assert fact.reserve_drawn
    world.do(open_dispute([line]))
    world.do(rule(world, PPM))
    assert world.balance(CASH) == line.charge


def test_silence_gives_back_what_is_held_unless_the_provider_alone_shows_the_disk() -> None:
    """Nothing measures it, so the log proves no such charge: whoever charges has to show it."""
    report = Evidence(kind="usage_report", lane=1, position=7, sha256=None, signed=True)
    for is_shown in (False, True):
        world = stored(burn_ppm=PPM)
        line, balance = world.lines()[-1], world.balance(CASH)
        assert not line.proven
        world.do(open_dispute([line]))
        if is_shown:
            world.do(
                AnswerDispute(
                    dispute_id="dispute_1",
                    party_account_id=OWNER,
                    statement_sha256=None,
                    evidence=(report,),
                    by="m",
                    at_us=NOON_US + 9 * HOUR_US,
                )
            )
        moved = timed_out(world)
        held = parts_of(line)[HOLDBACK]
        assert world.balance(CASH) == balance + (0 if is_shown else held)
        assert world.balance(PAYABLE) == (held if is_shown else 0)
        assert {one.account for one in moved} == {RESERVE, PAYABLE if is_shown else CASH}
        (resolved,) = world.facts(DisputeResolved)
        assert (resolved.volume_id, resolved.unfounded) == (VOLUME_ID, is_shown)


def test_its_window_is_that_of_other_charges_and_it_is_contested_once() -> None:
    world = stored(1)
    (line,) = world.lines()
    late = open_dispute([line], at_us=line.posted_at_us + DEFAULT_WINDOW_US)
    with pytest.raises(Refused) as refused:
        world.do(late)
    assert refused.value.reason is CorrectionsReason.DISPUTE_TOO_LATE
    world.do(replace(late, at_us=late.at_us - 1))
    mature(world, line.posted_at_us + DEFAULT_WINDOW_US)
    assert world.balance(PAYABLE) == 0, "what is contested does not mature"
    with pytest.raises(Refused):
        world.do(replace(late, dispute_id="dispute_2", at_us=late.at_us - 1))


def test_a_dispute_is_about_one_volume_or_one_lease() -> None:
    world = stored()
    first, second = world.lines()
    other = replace(second, lease_id="lease_1", volume_id=None)
    with pytest.raises(Refused) as refused:
        world.do(open_dispute([first, other]))
    assert refused.value.reason is CorrectionsReason.LINE_UNKNOWN
    with pytest.raises(AssertionError):
        replace(second, lease_id="lease_1")


@examples(60)
@given(
    hours=st.integers(1, 3),
    burn_ppm=st.sampled_from((0, 333_333, PPM)),
    grant=st.integers(0, 10**8),
    claimed_ppm=st.integers(1, PPM),
    upheld_ppm=st.integers(0, PPM) | st.none(),
)
def test_every_unit_of_a_disputed_volume_is_the_renters_the_providers_or_the_networks(
    hours: int, burn_ppm: int, grant: int, claimed_ppm: int, upheld_ppm: int | None
) -> None:
    """returned == floor(claimed x upheld_ppm / 10^6); without a ruling at most what was held."""
    world = stored(hours, burn_ppm=burn_ppm, grant=grant)
    line = world.lines()[-1]
    own = [CASH, f"party:{RENTER}:grant"]
    before = sum(world.balance(one) for one in own)
    claimed = max(1, line.charge * claimed_ppm // PPM)
    world.do(open_dispute([line], claimed))
    (dispute,) = world.facts(DisputeOpened)
    if upheld_ppm is None:
        timed_out(world)
        returned = dispute.reserved.units
    else:
        world.do(rule(world, upheld_ppm))
        returned = claimed * upheld_ppm // PPM
    booked = world.facts(AdjustmentBooked)
    assert sum(fact.returned for fact in booked) == returned <= line.charge
    assert sum(fact.owed for fact in booked) == 0
    assert sum(world.balance(one) for one in own) == before + returned
    assert (world.balance(RESERVE), world.total()) == (0, 0)
