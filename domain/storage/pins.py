"""In which regions a lease may run, by what it mounts and by the data that it may not leave.

pinned to  ==  the regions common to all its volumes and all its pinned datasets
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.lease.mounts import VolumeMount
from domain.storage.dataset import placed_of
from domain.storage.volume import regions_of
from domain.stream import World


def pinned_to(
    world: World, account_id: str, mounts: tuple[VolumeMount, ...], datasets: Iterable[str]
) -> frozenset[str] | None:
    """None: anywhere. Empty: nowhere, because no region has everything."""
    places = [frozenset({region}) for region in regions_of(world, mounts)]
    places += [
        frozenset(one.region_ids) for one in placed_of(world, account_id, datasets) if one.pinned
    ]
    if not places:
        return None
    return frozenset.intersection(*places)
