"""Each named place is reached, the fault happens there, and what was acknowledged is there once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Databases
from tests.failpoints.places import After, Before, Fault, Target
from tests.failpoints.scene import Ground, Scene, play_all
from tests.failpoints.suite import FAILPOINTS, SCENES

ROOT = Path(__file__).parents[2]
LAYERS = (
    *("domain", "ledger", "projections", "api", "cli", "contracts", "node_reporter"),
    "tallystick_client",
)


@pytest.fixture(scope="module")
def ground(postgres: Databases, template_with_views: str) -> Ground:
    return Ground(postgres, template_with_views)


def marked(scene: type[Scene]) -> Any:
    marks = [pytest.mark.long, pytest.mark.timeout(300)] if scene.is_long else []
    return pytest.param(scene, marks=marks, id=scene.__name__)


@pytest.mark.parametrize("scene", [marked(scene) for scene in SCENES])
def test_a_death_at_the_first_place_of_each_scene_loses_nothing_that_was_acknowledged(
    scene: type[Scene], ground: Ground
) -> None:
    assert play_all(scene, ground, 0, first=1) == {scene.failpoints[0].name}


@pytest.mark.slow(
    "::test_a_death_at_the_first_place_of_each_scene_loses_nothing_that_was_acknowledged"
)
@pytest.mark.parametrize("scene", [marked(scene) for scene in SCENES])
def test_a_death_at_each_place_loses_nothing_that_was_acknowledged(
    scene: type[Scene], ground: Ground
) -> None:
    reached = play_all(scene, ground, 0)
    assert reached == {failpoint.name for failpoint in scene.failpoints}


def test_production_has_no_failpoint() -> None:
    """Nothing that is installed names one, imports a test, or could be armed."""
    for layer in LAYERS:
        for file in (ROOT / layer).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            assert "failpoint" not in text.lower(), file
            assert not re.search(r"^\s*(from|import) tests\b", text, re.MULTILINE), file
        for file in (ROOT / layer).rglob("*.sql"):
            assert "failpoint" not in file.read_text(encoding="utf-8"), file


def test_every_failpoint_has_a_name_of_its_own_and_a_place_that_is_there() -> None:
    assert len(FAILPOINTS) == sum(len(scene.failpoints) for scene in SCENES)
    for failpoint in FAILPOINTS.values():
        assert failpoint.faults[0] is Fault.DEATH
        if isinstance(failpoint.place, Before | After):
            Target.of(failpoint.place)
