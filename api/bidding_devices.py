"""Devices of a node that a bid could offer: free now, of a model that the request allows."""

from __future__ import annotations

from api.service import Service
from domain.lease import lease_stream
from domain.matching import FreeDevice
from projections import fleet
from projections.fleet import FLEET


def free_devices(service: Service, lease_id: str, node_id: str) -> list[str]:
    """As many as are asked for, the fullest that have room first; fewer when there are fewer."""
    lease = service.ledger.market.state_of(lease_stream(lease_id))
    asked = lease.requested
    if asked is None:
        return []
    with service.connection() as connection:
        service.follow(connection, [FLEET])
        found = [
            FreeDevice(one.device_id, one.model, one.share_free, one.mem_free)
            for one in fleet.read_devices(connection, node_id=node_id, limit=64)
            if not one.retired
        ]
    fitting = sorted(
        (one.free_share_ppm, one.device_id)
        for one in found
        if one.free_share_ppm >= asked.share_ppm
        and one.free_mem_ppm >= asked.mem_ppm
        and (not asked.models or one.model in asked.models)
    )
    return sorted(device for _, device in fitting[: asked.gpu_count])
