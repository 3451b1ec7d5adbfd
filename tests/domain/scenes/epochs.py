"""What the tests of epochs, policy and payouts start from: a policy, a first epoch, a pin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import EpochClosing, EpochOpened, head_of, stream_of
from domain.epochs.policy import NETWORK, PolicyPublished
from domain.epochs.settlement import Cut, CutHead, NodeCut, Openings, Settlement, Use, settle
from domain.metering.pin import PINS, LanePin, UsagePinned
from domain.money import token
from domain.stream import World
from tests.given import Scene

WEEK_US = 604_800_000_000
START_US = 1_800_000_000_000_000
END_US = START_US + WEEK_US
CAP = 644_245_094_000_000_000
CUT = 4_711
WEIGHTS = (("acct_c", 1_000_000), ("acct_a", 2_280_000_000), ("acct_b", 19_000_000))

POLICY = PolicyPublished(
    version=1,
    epoch_length_us=WEEK_US,
    segments=(EmissionSegment(1, 52, 590_558_000_000_000),),
    hard_cap=token(CAP),
    compute_ppm=700_000,
    availability_ppm=200_000,
    treasury_ppm=100_000,
    compute_base="burned_value",
    holdback_epochs=0,
    effective_from_epoch=1,
    by="key_op",
    at_us=START_US - 5,
    rewards=None,
    governance=None,
    proposal=None,
)


def pin(size: int, at_us: int = END_US) -> UsagePinned:
    lanes = tuple(LanePin(lane, size, f"head{size}", f"root{size}") for lane in range(64))
    return UsagePinned(lanes=lanes, lanes_root=f"lanes{size}", at_us=at_us)


def opened(epoch: int, at_us: int | None = None) -> EpochOpened:
    start_us = START_US + (epoch - 1) * WEEK_US
    return EpochOpened(
        epoch=epoch,
        start_us=start_us,
        end_us=start_us + WEEK_US,
        policy_version=1,
        at_us=start_us if at_us is None else at_us,
    )


def closing(epoch: int) -> EpochClosing:
    return EpochClosing(epoch=epoch, by="job", at_us=opened(epoch).end_us)


READY = Scene().given((NETWORK, POLICY)).having({"emission:unissued": CAP})
OPEN = READY.given((stream_of(1), opened(1)))
CLOSING = OPEN.given(
    (stream_of(1), closing(1)), (PINS, pin(7)), (stream_of(2), opened(2, at_us=END_US))
)


def nodes_of(weights: Iterable[tuple[str, int]]) -> tuple[NodeCut, ...]:
    """A node for each account, with so much burned for it."""
    return tuple(
        NodeCut(f"node_{account_id}", account_id, (Use("cash", burned, 0),))
        for account_id, burned in weights
    )


def settled(
    epoch: int = 1,
    weights: Iterable[tuple[str, int]] = WEIGHTS,
    *,
    carry: int = 0,
    idle_carry: int = 0,
    unissued: int = CAP,
    policy: PolicyPublished = POLICY,
) -> Settlement:
    """What these accounts' nodes are paid."""
    openings = Openings(unissued=unissued, compute_carry=carry, availability_carry=idle_carry)
    nodes = nodes_of(weights)
    return settle(Cut(epoch=epoch, cut_position=CUT, policy=policy, openings=openings, nodes=nodes))


def settlement_of(
    world: World, epoch: int, cut_position: int, nodes: Sequence[NodeCut], recyclable: int = 0
) -> Settlement:
    """What sealing this epoch now would pay. Raises Refused like `head_of` and `settle`."""
    head = head_of(world, epoch, cut_position, recyclable)
    told = {one.name: getattr(head, one.name) for one in fields(CutHead)}
    return settle(Cut(**told, nodes=nodes))
