"""State machines and properties of Hypothesis under one seed, which decides all that is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def run_machine(
    machine: type[RuleBasedStateMachine], seed: int, *, runs: int, steps: int, shrinks: bool = True
) -> None:
    """So many runs of at most so many steps; where a run is dear, a failure is not made smaller."""
    seeded = type(machine.__name__, (machine,), {})
    hypothesis.seed(seed)(seeded)
    phases = [Phase.explicit, Phase.generate, *([Phase.shrink] if shrinks else [])]
    run_state_machine_as_test(
        seeded,
        settings=settings(
            max_examples=runs,
            stateful_step_count=steps,
            suppress_health_check=QUIET,
            phases=phases,
            database=None,
            deadline=None,
            print_blob=True,
        ),
    )


def run_properties(seed: int, *properties: Callable[[], Any]) -> None:
    """Each property with as many examples as in `make test-properties`."""
    for one in properties:
        hypothesis.seed(seed)(one)()
