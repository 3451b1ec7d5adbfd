"""Quotas: how much of the GPUs a group or a compute client may hold at the same time.

    used(quota) == sum of gpu_ppm of the leases counted there that have not ended     always
    used(quota) <= gpu_ppm_max              after every hold, whatever runs at the same time

One whole device is 1,000,000 ppm. A hold is a fact of the quota's own stream, in the append of the
reservation: two leases that would pass it together meet there. It ends in the append that closes
the lease; a paused one counts on. A quota that is lowered closes no lease, it refuses the next one.
Not money: that is `domain/funds/budget.py`.

Read top to bottom: what can happen, what can be asked, what we remember, how we decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from domain.frozen import replace
from domain.parties.reasons import PartiesReason
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Change, Stream, World

# Facts. Stream `quota:{quota_id}`.


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaSet:
    """From the first one on everything of its group or client is counted."""

    quota_id: str  # of a group: its id; of a client: `client_quota(...)`
    gpu_ppm_max: int | None  # None: counted, and not limited
    by: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaHeld:
    quota_id: str
    lease_id: str
    gpu_ppm: int
    used_ppm: int  # this hold included
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReleased:
    quota_id: str
    lease_id: str
    gpu_ppm: int
    used_ppm: int  # what is left of all holds
    at_us: int


Fact: TypeAlias = QuotaSet | QuotaHeld | QuotaReleased

# Commands.


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQuota:
    quota_id: str
    gpu_ppm_max: int | None
    by: str
    at_us: int


GPU_PPM_MAX = 10**15
"""A billion devices: more than there are, and far below what a JSON number holds."""

# State.


@dataclass(frozen=True, slots=True)
class Quota:
    is_set: bool = False
    gpu_ppm_max: int | None = None
    used_ppm: int = 0
    holds: dict[str, int] = field(default_factory=dict)  # lease id -> gpu_ppm

    @property
    def left_ppm(self) -> int | None:
        """What may still be held; None without a limit."""
        return None if self.gpu_ppm_max is None else max(0, self.gpu_ppm_max - self.used_ppm)


def evolve(quota: Quota, fact: Fact) -> Quota:
    match fact:
        case QuotaSet():
            return replace(quota, is_set=True, gpu_ppm_max=fact.gpu_ppm_max)
        case QuotaHeld():
            holds = {**quota.holds, fact.lease_id: fact.gpu_ppm}
            return replace(quota, used_ppm=fact.used_ppm, holds=holds)
        case QuotaReleased():
            holds = {who: ppm for who, ppm in quota.holds.items() if who != fact.lease_id}
            return replace(quota, used_ppm=fact.used_ppm, holds=holds)
        case _:
            assert_never(fact)


def stream_of(quota_id: str) -> Stream[Quota]:
    return Stream("quota", quota_id)


def client_quota(client_id: str, pool_id: str = "") -> str:
    """The quota of a compute client in one pool, or with no pool named everywhere."""
    return f"{client_id}|{pool_id}"


def quota_of(world: World, quota_id: str) -> Quota:
    return world.state(stream_of(quota_id))


# Decisions.


def decide_set(command: SetQuota, world: World) -> list[Change]:
    """Setting what is set already gives no fact. Who may set it is asked before.

    Raises Refused: AMOUNT_OUT_OF_RANGE.
    """
    most = command.gpu_ppm_max
    if most is not None and not 0 <= most <= GPU_PPM_MAX:
        raise Refused(PricesReason.AMOUNT_OUT_OF_RANGE, field="gpu_ppm_max", gpu_ppm_max=most)
    present = quota_of(world, command.quota_id)
    if present.is_set and present.gpu_ppm_max == most:
        return []
    fact = QuotaSet(quota_id=command.quota_id, gpu_ppm_max=most, by=command.by, at_us=command.at_us)
    return [Change(stream_of(command.quota_id), fact)]


def exceeded(world: World, quota_ids: Sequence[str], gpu_ppm: int) -> Refused | None:
    """The refusal of the first quota that so much more would pass; None when all of it fits."""
    for quota_id in quota_ids:
        quota = quota_of(world, quota_id)
        if quota.left_ppm is not None and gpu_ppm > quota.left_ppm:
            return Refused(
                PartiesReason.QUOTA_EXHAUSTED,
                quota_id=quota_id,
                gpu_ppm_max=quota.gpu_ppm_max,
                used_ppm=quota.used_ppm,
                asked_ppm=gpu_ppm,
            )
    return None


def hold(
    world: World, quota_ids: Sequence[str], lease_id: str, gpu_ppm: int, at_us: int
) -> list[Change]:
    """Count a lease against every one of these quotas that was ever set.

    Raises Refused: QUOTA_EXHAUSTED, with the first one that would be passed.
    """
    refused = exceeded(world, quota_ids, gpu_ppm)
    if refused is not None:
        raise refused
    changes = []
    for quota_id in dict.fromkeys(quota_ids):
        quota = quota_of(world, quota_id)
        if not quota.is_set or lease_id in quota.holds:
            continue
        used = quota.used_ppm + gpu_ppm
        assert quota.gpu_ppm_max is None or used <= quota.gpu_ppm_max, (quota_id, used)
        held = QuotaHeld(
            quota_id=quota_id, lease_id=lease_id, gpu_ppm=gpu_ppm, used_ppm=used, at_us=at_us
        )
        changes.append(Change(stream_of(quota_id), held))
    return changes


def release(world: World, quota_ids: Sequence[str], lease_id: str, at_us: int) -> list[Change]:
    """End what a lease holds of these quotas; one that holds nothing there gives no fact."""
    changes = []
    for quota_id in quota_ids:
        quota = quota_of(world, quota_id)
        held = quota.holds.get(lease_id)
        if held is None:
            continue
        left = quota.used_ppm - held
        assert left >= 0, (quota_id, left)
        fact = QuotaReleased(
            quota_id=quota_id, lease_id=lease_id, gpu_ppm=held, used_ppm=left, at_us=at_us
        )
        changes.append(Change(stream_of(quota_id), fact))
    return changes


STREAMS: dict[str, tuple[Any, Any]] = {"quota": (Quota(), evolve)}
DECIDERS: dict[type[Any], Any] = {SetQuota: decide_set}
