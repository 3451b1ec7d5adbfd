"""A pricing module of another package is found, registered and prices a lease."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from api.process import pricing_plugins
from api.process.pricing_plugins import PluginUnusable, load
from domain.prices.modules import MODULES
from tests.scenes.server import Scene

SOURCE = '''
"""A plug-in: the posted price and a tenth of what the renter would pay above it."""

from domain.prices.modules import Posted, agreed


class Tenth(Posted):
    """A tenth of the way from the offer's price to the cap."""

    def __init__(self) -> None:
        super().__init__(name="tenth", version=3)

    def choose(self, quotes, policy):
        ranked = sorted(quotes, key=lambda one: (one.ask, one.arrived))
        return tuple(agreed(one, one.ask + (one.cap - one.ask) // 10) for one in ranked[:1])
'''


def installed(folder: Path, points: str) -> None:
    """A package in `folder` as an installer leaves it: a module, and its entry points."""
    (folder / "tenth_pricing.py").write_text(SOURCE, encoding="utf-8")
    info = folder / "tenth_pricing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tenth-pricing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{pricing_plugins.GROUP}]\n{points}\n")
    pricing_plugins.installed.cache_clear()  # a process looks once


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path, None, None]:
    before = dict(MODULES)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    MODULES.clear()
    MODULES.update(before)
    sys.modules.pop("tenth_pricing", None)


def test_a_module_of_another_package_prices_a_lease_and_stands_in_its_facts(
    folder: Path, scene: Scene
) -> None:
    """J-7: pricing is a plug-in."""
    installed(folder, "tenth = tenth_pricing:Tenth")
    assert load() == ("tenth/3",)
    assert load() == ("tenth/3",), "twice is once"
    lease = scene.lease(pricing={"module": "tenth"})
    # The cheapest offer asks 2 credits, and the renter pays at most 5.
    assert lease["price_per_gpu_hour"]["units"] == "2300000"
    assert lease["pricing"] == "tenth/3"
    assert {one["pricing"] for one in scene.anybody.read("/v1/pricing-modules")["data"]} >= {
        "tenth/3",
        "second_price/1",
    }


@pytest.mark.parametrize(
    "points",
    ["posted = tenth_pricing:Tenth", "tenth = tenth_pricing:Missing", "tenth = nowhere:Tenth"],
)
def test_a_plug_in_that_cannot_be_used_stops_the_start(folder: Path, points: str) -> None:
    installed(folder, points)
    with pytest.raises(PluginUnusable, match="pricing module"):
        load()
