"""What a job is attached to in a region: stores that it mounts, and the port that it keeps.

    attached  =>  everything is of one region and of the job's own account, and its demands are
                  pinned to that region

Row C-9: such a job runs there and nowhere else, and is refused at once where no machine of the
region could ever run it.
"""

from __future__ import annotations

from domain.hardware.constraints import Constraints
from domain.record import dataclass
from domain.refusal import Refused
from domain.sites.datastore import existing_datastore, require_plan
from domain.sites.paths import require_path
from domain.sites.reasons import SitesReason
from domain.sites.reservation import existing_reservation
from domain.stream import World

USES = ("input", "output", "scratch")
STORES_MAX = 8


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of a store: what lies below its root (`domain/sites/paths.py`)."""

    datastore_id: str
    path: str
    use: str  # USES


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    mounts: tuple[Mount, ...] = ()
    reservation_id: str | None = None


NOTHING_ATTACHED = Attached()


def require_attached(
    world: World, account_id: str, attached: Attached | None, asked: Constraints
) -> None:
    """Raises Refused: PLAN_NEEDED, DATASTORE_UNKNOWN, RESERVATION_UNKNOWN, PATH_REFUSED,
    DATASTORE_INVALID, ATTACHED_ELSEWHERE.
    """
    found = attached or NOTHING_ATTACHED
    regions = {_region_of_mount(world, account_id, mount) for mount in found.mounts}
    if found.reservation_id is not None:
        reserved = existing_reservation(world, found.reservation_id)
        if reserved.account_id != account_id:
            raise Refused(SitesReason.RESERVATION_UNKNOWN, reservation_id=found.reservation_id)
        regions.add(reserved.region_id)
    if regions:
        require_plan(world, account_id)
    if len(found.mounts) > STORES_MAX or len(set(found.mounts)) != len(found.mounts):
        rule = f"at most {STORES_MAX} mounts, each once"
        raise Refused(SitesReason.DATASTORE_INVALID, field="mounts", rule=rule)
    pinned = set() if asked.pinned_region is None else {asked.pinned_region}
    allowed = regions <= set(asked.regions) if asked.regions is not None else True
    if len(regions) > 1 or regions != pinned or not allowed:
        raise Refused(
            SitesReason.ATTACHED_ELSEWHERE,
            regions=", ".join(sorted(regions)) or None,
            allowed=", ".join(asked.regions or ()) or None,
        )


def _region_of_mount(world: World, account_id: str, mount: Mount) -> str:
    store = existing_datastore(world, mount.datastore_id)
    if store.account_id != account_id:
        raise Refused(SitesReason.DATASTORE_UNKNOWN, datastore_id=mount.datastore_id)
    if mount.use not in USES:
        raise Refused(SitesReason.DATASTORE_INVALID, field="use", rule=", ".join(USES))
    require_path("path", mount.path)
    return store.region_id
