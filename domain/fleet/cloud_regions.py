"""Which regions of a cloud can be opened here: dated data, one list for each kind of cloud.

    a region of a cloud that has a list is opened  =>  it is on the list of that day


The source of row C-28 says that ten regions of Google Cloud have most of the common GPU types, and
does not name them. This is our list, from Google's public tables of GPUs by zone; another list
is another row with a later date, and the rows before it stay.
"""

from __future__ import annotations

from domain.record import dataclass


@dataclass(frozen=True, slots=True)
class CloudRegion:
    """A region of a cloud, by the cloud's own name."""

    cloud: str  # the kind of provider
    name: str
    place: str


@dataclass(frozen=True, slots=True)
class CloudRegions:
    """The regions that can be opened from a UTC day on."""

    from_day: str  # YYYY-MM-DD
    regions: tuple[CloudRegion, ...]


LISTS = (
    CloudRegions(
        "2023-01-01",
        (
            CloudRegion("gcp", "us-central1", "Iowa"),
            CloudRegion("gcp", "us-east1", "South Carolina"),
            CloudRegion("gcp", "us-east4", "Northern Virginia"),
            CloudRegion("gcp", "us-west1", "Oregon"),
            CloudRegion("gcp", "us-west4", "Las Vegas"),
            CloudRegion("gcp", "europe-west1", "Belgium"),
            CloudRegion("gcp", "europe-west4", "Netherlands"),
            CloudRegion("gcp", "asia-east1", "Taiwan"),
            CloudRegion("gcp", "asia-northeast1", "Tokyo"),
            CloudRegion("gcp", "asia-southeast1", "Singapore"),
        ),
    ),
)


def regions_on(day: str) -> CloudRegions:
    """The list in force on a UTC day, YYYY-MM-DD; before the first it is the first."""
    return next((one for one in reversed(LISTS) if one.from_day <= day), LISTS[0])


def names_on(cloud: str, day: str) -> frozenset[str] | None:
    """The names that can be opened of a kind of cloud on a UTC day; None: it has no list, and any
    region of it can be.
    """
    names = frozenset(one.name for one in regions_on(day).regions if one.cloud == cloud)
    return names or None
