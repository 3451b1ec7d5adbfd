"""Energy by the counter beside energy by power: equal for an honest GPU, however polls fall."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.trust.tiers import Evidence, Identity, standing
from node_reporter.gpus.power import START_US, TELL_EVERY_US, PowerCheck

STEP_US = 2_500_000
SECOND_US = 1_000_000


def of_an_hour(power_mw: int, rate_mw: int) -> dict[str, int]:
    """What is told after an hour at this gauge, with a counter that moves at this rate."""
    check = PowerCheck(STEP_US)
    for second in range(3_661):
        check.see(second * SECOND_US, 1, rate_mw * second // 1_000 * 1_000, power_mw)
        if second < 3_660:
            assert (check.told() is not None) == (second * SECOND_US == START_US)
    told = check.told()
    assert told is not None
    assert check.told() is None, "it begins anew"
    return told


def rules(told: dict[str, int]) -> set[str]:
    identity = Identity(counter_mj=told["counter_mj"], integrated_mj=told["integrated_mj"])
    evidence = Evidence(device_id="GPU-1", identity=identity)
    return {finding.rule for finding in standing(evidence, set()).findings}


def test_an_honest_counter_tells_what_its_power_did() -> None:
    told = of_an_hour(power_mw=500_000, rate_mw=500_000)
    assert told == {
        "counter_mj": 500_000 * 3_600,
        "integrated_mj": 500_000 * 3_600,
        "covered_us": TELL_EVERY_US,
    }
    assert "energy_is_not_power" not in rules(told)


def test_a_counter_that_never_writes_beside_a_power_gauge_is_found() -> None:
    assert "energy_is_not_power" in rules(of_an_hour(power_mw=230_000, rate_mw=0))
    assert "energy_is_not_power" in rules(of_an_hour(power_mw=230_000, rate_mw=1_000_000))


@pytest.mark.parametrize(
    ("rate_mw", "is_off"),
    [(0, True), (9_999_999, True), (10_000_000, False), (10**9, False), (10**9 + 1, True)],
)
def test_a_counter_off_by_more_than_ten_times_is_seen_in_the_first_minute(
    rate_mw: int, is_off: bool
) -> None:
    check = PowerCheck(STEP_US)
    for second in range(61):
        check.see(second * SECOND_US, 1, rate_mw * second, 100_000_000)
    told = check.told()
    assert told is not None
    assert (told["covered_us"], check.is_off) == (START_US, is_off)


polls = st.lists(
    st.tuples(
        st.integers(1, 5 * SECOND_US),
        st.integers(1, 2),
        st.none() | st.integers(0, 700),
        st.none() | st.integers(0, 700_000),
    ),
    max_size=60,
)


@given(polls)
def test_only_what_both_tell_over_a_short_step_of_one_driver_counts(
    told: list[tuple[int, int, int | None, int | None]],
) -> None:
    """Formula: covered == sum of the steps whose both ends tell both, in one epoch, not long."""
    check, at_us, covered_us, energy_mj = PowerCheck(STEP_US), 0, 0, 0
    before: tuple[int, int] | None = None
    for passed_us, epoch, moved_mj, power_mw in told:
        at_us += passed_us
        energy_mj += moved_mj or 0
        is_known = moved_mj is not None and power_mw is not None
        if before is not None and is_known and before == (epoch, at_us - passed_us):
            covered_us += passed_us if passed_us <= STEP_US else 0
        check.see(at_us, epoch, energy_mj if moved_mj is not None else None, power_mw)
        before = (epoch, at_us) if is_known else None
    assert check.covered_us == covered_us
