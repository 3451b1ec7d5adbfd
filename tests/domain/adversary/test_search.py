"""No coalition gains under terms that the bound lets pass; under others the search finds a profit.

The long form are seeds of 100 runs each: `python -m tests.passes cheats 0 200`.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis.stateful import run_state_machine_as_test

from domain.money import PPM
from tests.domain.adversary.search import STEPS, Gained, Search, Terms, any_terms, terms_of
from tests.examples import examples
from tests.seeds.machines import QUIET, run_machine

WITHOUT_THE_BOUND = {
    "the client is not counted (E-H8)": terms_of(
        {"client": 50_000, "provider": 350_000}, "burn", PPM
    ),
    "provider and burn are all (E-H8)": terms_of({"provider": 500_000}, "burn", PPM),
    "more TOKEN than were burned (E-H8)": terms_of(
        {"platform": 50_000, "provider": 350_000}, "burn", 20 * PPM
    ),
    "no cap (E-H8)": terms_of({"platform": 50_000, "provider": 350_000}, "burn", None),
    "a refund on top of the reward (E-C2)": terms_of(
        {"platform": 50_000, "provider": 350_000}, "burn", PPM, 500_000
    ),
}


@pytest.mark.hypothesis
def test_no_coalition_gains_under_sound_terms() -> None:
    run_state_machine_as_test(
        Search, settings=examples(100, stateful_step_count=STEPS, suppress_health_check=QUIET)
    )


def run(seed: int) -> None:
    """100 runs under this seed."""
    run_machine(Search, seed, runs=100, steps=STEPS)


@pytest.mark.parametrize("name", WITHOUT_THE_BOUND)
def test_the_search_finds_the_profit_under_terms_that_are_refused(name: str) -> None:
    terms = WITHOUT_THE_BOUND[name]
    assert not terms.is_sound

    class Unbounded(Search):
        bound = terms

    with pytest.raises(Gained):
        run_state_machine_as_test(
            Unbounded,
            settings=settings(
                max_examples=2_000,
                stateful_step_count=STEPS,
                phases=[Phase.generate],
                derandomize=True,
                database=None,
                deadline=None,
                report_multiple_bugs=False,
                suppress_health_check=QUIET,
            ),
        )


def test_enough_of_what_is_drawn_passes_and_enough_is_refused() -> None:
    drawn: list[Terms] = []

    @settings(max_examples=300, derandomize=True, database=None, phases=[Phase.generate])
    @given(any_terms())
    def draw(terms: Terms) -> None:
        drawn.append(terms)

    draw()
    sound = sum(one.is_sound for one in drawn)
    assert len(drawn) // 4 < sound < len(drawn) * 3 // 4, (sound, len(drawn))
