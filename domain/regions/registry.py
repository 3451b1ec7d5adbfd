"""What the room `regions` adds: its files with decisions, and its facts by stored name."""

from __future__ import annotations

from typing import Any

from domain.regions import administrators, boundaries, neighbours, reachability, wait_list

FILES = (administrators, boundaries, neighbours, reachability, wait_list)
FACTS: dict[str, type[Any]] = {
    "region.admin_granted.v1": administrators.RegionAdminGranted,
    "region.admin_revoked.v1": administrators.RegionAdminRevoked,
    "region.place_set.v1": boundaries.RegionPlaceSet,
    "region.wait_list_terms_set.v1": wait_list.WaitListTermsSet,
    "region.waitlist_joined.v1": wait_list.RegionWaitlistJoined,
    "region.waitlist_left.v1": wait_list.RegionWaitlistLeft,
    "region.threshold_reached.v1": wait_list.RegionThresholdReached,
    "node.latency_reported.v1": reachability.NodeLatencyReported,
    "node.neighbours_tried.v1": neighbours.NodeNeighboursTried,
    "node.ingress_bytes_reported.v1": reachability.IngressBytesReported,
}
