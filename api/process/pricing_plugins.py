"""Pricing modules of other packages: found by their entry points, registered at the start.

A package names its modules in the group `tallystick.pricing`:

    [project.entry-points."tallystick.pricing"]
    dutch = "acme_pricing:Dutch"

Each is a class, called without arguments, that has the shape of `domain.prices.modules.Pricing`.
It has to be pure: its facts are decided on again whenever a race is lost. One that cannot be
loaded, or whose name is taken, stops the start: half of a market's prices would be worse than none.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import metadata
from threading import Lock

from domain.prices.modules import Pricing, label, register

GROUP = "tallystick.pricing"
_once = Lock()


class PluginUnusable(Exception):
    """A pricing plug-in cannot be used. Its package says why; remove it, or mend it."""


def load() -> tuple[str, ...]:
    """Register every installed module; the labels of those there are. Twice is once.

    Raises PluginUnusable.
    """
    with _once:
        return tuple(_registered(one) for one in installed(tuple(sys.path)))


@cache
def installed(path: tuple[str, ...]) -> tuple[metadata.EntryPoint, ...]:
    """The entry points of the packages on this path. To look for them reads a file of each package
    there is: a tenth of what it takes to open a server, so a process looks once.
    """
    del path
    found = metadata.entry_points(group=GROUP)
    return tuple(sorted(found, key=lambda one: one.name))


def _registered(point: metadata.EntryPoint) -> str:
    try:
        module: Pricing = point.load()()
        if module.name != point.name:
            raise ValueError(f"the module calls itself {module.name!r}")
        register(module)
    except Exception as error:
        raise PluginUnusable(f"pricing module {point.name!r} ({point.value}): {error}") from error
    return label(module)
