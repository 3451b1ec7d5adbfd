"""How billing starts: the node says the workload runs, and the funded end is known.

    funds_end_us >= term_end_us          of a fixed term, which is funded in full

Until then nothing is billed, and too late is too late. A member of a gang waits for the others:
`domain/leasing/gangs.py` decides which of the two it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.fleet.reasons import FleetReason
from domain.lease.holding import funded_to_us
from domain.lease.lease import (
    Lease,
    LeaseOpened,
    LeaseReady,
    LeaseRequested,
    ReadyLease,
    lease_of,
    lease_stream,
)
from domain.lease.reasons import LeaseReason
from domain.leasing.escrow_sharing import opening
from domain.market.auction import deposits_at_opening
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, World

CREDENTIALS_CHARACTERS_MAX = 8_192
"""Of sealed credentials, in base64: a token, an address and a certificate."""


def decide_ready(command: ReadyLease, world: World, *, opens: bool = True) -> list[Change]:
    """Billing starts when the node says the workload runs, at the price locked here. `opens`: not
    where it waits for the other members of a gang.

    Too late is too late, whether or not the timer has closed the lease yet. Raises Refused:
    LEASE_UNKNOWN, LEASE_STATE, ENCRYPTION_KEY_UNKNOWN, AMOUNT_OUT_OF_RANGE.
    """
    lease = lease_of(world, command.lease_id)
    reserved = lease.reserved
    is_the_node = reserved is not None and reserved.node_id == command.node_id
    if is_the_node and (lease.is_running or lease.status == "gang_waiting"):
        return []
    if lease.status != "reserved" or reserved is None or reserved.node_id != command.node_id:
        raise Refused(FleetReason.LEASE_STATE, lease_id=command.lease_id, status=lease.status)
    if command.at_us >= lease.ready_until_us:
        raise Refused(FleetReason.LEASE_STATE, ready_until_us=lease.ready_until_us)
    asked = lease.requested
    assert asked is not None
    _require_sealed(command, asked)
    stream = lease_stream(command.lease_id)
    ready = LeaseReady(
        lease_id=command.lease_id,
        node_id=command.node_id,
        endpoint=command.endpoint,
        at_us=command.at_us,
        credentials=command.credentials,
    )
    deposits = deposits_at_opening(world, command.lease_id, command.at_us)
    billing = opened([lease], command.at_us, world) if opens else []
    return [Change(stream, ready), *billing, *deposits]


def opened(leases: Sequence[Lease], at_us: int, world: World) -> list[Change]:
    """What starts the billing of these leases at one moment.

    Raises Refused: LEASE_STATE where they share an escrow whose funds have just ended.
    """
    sharing = [one for one in leases if one.escrow_id is not None]
    ends_us, shared = opening(sharing, at_us, world)
    return [
        *(
            Change(lease_stream(one.requested.lease_id), _opened(one, at_us, ends_us))
            for one in leases
            if one.requested is not None
        ),
        *shared,
    ]


def _opened(lease: Lease, at_us: int, shared_end_us: int | None) -> LeaseOpened:
    """The price is locked and the funded end known. `shared_end_us`: of those that share one."""
    asked, reserved = lease.requested, lease.reserved
    assert asked is not None
    assert reserved is not None
    if lease.escrow_id is None:
        ends_us = funded_to_us(lease, lease.held, at_us)
    else:
        assert shared_end_us is not None
        ends_us = shared_end_us
    term_end_us = None if lease.term_us is None else at_us + lease.term_us
    if term_end_us is not None:
        # A fixed term is funded in full; its end need not be a whole second after the opening.
        ends_us = max(ends_us, term_end_us)
    return LeaseOpened(
        lease_id=asked.lease_id,
        price_per_gpu_hour=reserved.price_per_gpu_hour,
        opened_at_us=at_us,
        funds_end_us=ends_us,
        term_end_us=term_end_us,
        at_us=at_us,
    )


def _require_sealed(command: ReadyLease, asked: LeaseRequested) -> None:
    """Credentials are for the key the renter named; without one nobody could read them.

    Raises Refused: ENCRYPTION_KEY_UNKNOWN, AMOUNT_OUT_OF_RANGE.
    """
    if command.credentials is None:
        return
    if asked.encryption_key is None:
        raise Refused(LeaseReason.ENCRYPTION_KEY_UNKNOWN, lease_id=command.lease_id)
    if len(command.credentials) > CREDENTIALS_CHARACTERS_MAX:
        raise Refused(
            PricesReason.AMOUNT_OUT_OF_RANGE,
            field="credentials",
            at_most=CREDENTIALS_CHARACTERS_MAX,
        )
