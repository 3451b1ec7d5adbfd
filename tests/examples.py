"""How many examples a property gets: its own count in `ci`, a share or a multiple elsewhere.

`make test` and `make test-fast` take dev, `make test-properties` ci. dev is a fifth of ci, long is
ten times ci; seeds is ci where the seed alone decides what is drawn: nothing is kept from one run
to the next
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings

PROFILES = {"dev": 20, "ci": 100, "long": 1_000}


def register() -> None:
    """Make the profiles known and take `ci`; `pytest --hypothesis-profile=dev` takes another."""
    for name, count in PROFILES.items():
        settings.register_profile(name, max_examples=count, deadline=None, print_blob=True)
    # Under CI=1 Hypothesis draws the same at each run, whatever the seed, unless told otherwise.
    settings.register_profile("seeds", settings.get_profile("ci"), database=None, derandomize=False)
    settings.load_profile("ci")


def examples(count: int, **others: Any) -> settings:
    """Settings of a property that looks at `count` examples in `ci`.

    >>> with the profile `dev`, `examples(60)` looks at 12
    """
    profile = settings.default
    assert profile is not None, "hypothesis has a profile in force"
    share = profile.max_examples * count // PROFILES["ci"]
    return settings(max_examples=max(1, share), **others)
