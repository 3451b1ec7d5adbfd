"""How tests run on a mutant: the same examples every time, and nothing is kept or made smaller.

A fifth of the examples of `ci`, as in `dev`: what these kill, more would kill too.
"""

from __future__ import annotations

import pytest

NAME = "mutants"
OPTIONS = ("--no-header", "--tb=line", "-pno:cacheprovider", f"--hypothesis-profile={NAME}")


class SameExamples:
    """A plugin that makes the profile known before Hypothesis takes it."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self) -> None:
        from hypothesis import HealthCheck, Phase, settings

        from tests.examples import PROFILES

        settings.register_profile(
            NAME,
            max_examples=PROFILES["dev"],
            deadline=None,
            database=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
