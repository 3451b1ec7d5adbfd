"""What the fleet tells of bids: devices that a node could offer, and what stands behind those that
were offered.
"""

from __future__ import annotations

from collections.abc import Sequence

from api.market.matching import looked_again, offered
from api.process.service import Service
from domain.lease.lease import lease_stream
from domain.lease.looked import NOT_LOOKED, Looked
from domain.leasing.bidding import Offered
from domain.market.auction import stream_of
from domain.market.matching import FreeDevice
from projections.fleet import fleet
from projections.fleet.fleet import FLEET


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


def bids_offered(service: Service, lease_id: str, now_us: int) -> dict[str, Offered]:
    """The nodes of the bids that stand for a lease, by bid, as the views tell of them now."""
    auction = service.ledger.market.state_of(stream_of(lease_id))
    places = {
        bid.bid_id: (bid.node_id, bid.offer_id, bid.device_ids[0]) for bid in auction.bids.values()
    }
    lease = service.ledger.market.state_of(lease_stream(lease_id))
    if lease.requested is None or not places:
        return {}
    with service.connection() as connection:
        return offered(service, connection, lease.requested, places, now_us)


def looked_for_bid(
    service: Service,
    lease_id: str,
    offer_id: str,
    node_id: str,
    devices: Sequence[str],
    now_us: int,
) -> Looked:
    """What the views tell of the devices of a bid that is about to be placed."""
    lease = service.ledger.market.state_of(lease_stream(lease_id))
    if lease.requested is None:
        return NOT_LOOKED  # the decision says that nothing is asked for
    return looked_again(service, lease.requested, (node_id, offer_id, tuple(devices)), now_us)
