"""Why a node earned what it did in an epoch: the formula of the settlement with its numbers in it.

    share == floor(pool x weight / all weights);   fraction lost == pool x weight mod all weights
    paid  == min(share, caps)                                of each pool, before an owner's cap

Everything comes from the cut and the totals of the seal, so one node is explained without the
others. What is zero says why, in words an owner understands. Source: design economics 18.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import NO_TERMS, RewardTerms, bonus_ppm
from domain.epochs.settlement import (
    Attested,
    NodeCut,
    attested_us,
    availability_weight,
    compute_cap,
    compute_weight,
    counts,
    idle_cap,
)
from domain.gpu_time import GPU_HOUR_US
from domain.money import PPM


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What the seal says of a pool, in TOKEN units: this epoch's part, and what was carried."""

    pool: int
    carry_before: int
    weight: int

    @property
    def shared(self) -> int:
        return self.pool + self.carry_before


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedUse:
    """What one funding source paid for: `units` of the policy's base, and what each weighs."""

    source: str
    burned: int
    gpu_us: int
    weight_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedDevice:
    """`reason` says why its time does not count; None when it does."""

    hardware_class: str
    tier: int
    attested_us: int
    promised_us: int
    rating_ppm: int
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedShare:
    """One pool, from the weight to the reward. `lost` is the numerator of the fraction that the
    floor dropped, over `all_weight`; the pool carries it on.
    """

    pool: int  # with what was carried
    weight: int
    all_weight: int
    share: int
    lost: int
    cap: int | None
    paid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    node_id: str
    account_id: str
    policy_version: int
    compute_base: str
    uses: tuple[ExplainedUse, ...]
    score_ppm: int | None
    bonus_ppm: int
    burned_tokens: int
    compute: ExplainedShare
    devices: tuple[ExplainedDevice, ...]
    availability: ExplainedShare
    owner_cap: int | None
    reasons: tuple[str, ...]  # why a part is zero, or less than its share

    @property
    def paid(self) -> int:
        return self.compute.paid + self.availability.paid


def explain(
    node: NodeCut, policy: PolicyPublished, compute: Totals, availability: Totals
) -> Explanation:
    """The way from a node's use and time to its reward; units as in
    `domain/epochs/settlement.py`.
    """
    terms = policy.rewards or NO_TERMS
    worked = _share(compute, compute_weight(node, terms, policy.compute_base))
    idle = _share(availability, availability_weight(node, terms))
    worked, idle = _capped(worked, compute_cap(node, terms)), _capped(idle, idle_cap(node, terms))
    weights = {rated.name: rated.ppm for rated in terms.source_weights}
    devices = tuple(_device(device, terms) for device in node.attested)
    return Explanation(
        node_id=node.node_id,
        account_id=node.account_id,
        policy_version=policy.version,
        compute_base=policy.compute_base,
        uses=tuple(
            ExplainedUse(
                source=use.source,
                burned=use.burned,
                gpu_us=use.gpu_us,
                weight_ppm=weights.get(use.source, 0),
            )
            for use in node.uses
        ),
        score_ppm=node.score_ppm,
        bonus_ppm=bonus_ppm(terms, node.score_ppm),
        burned_tokens=node.burned_tokens,
        compute=worked,
        devices=devices,
        availability=idle,
        owner_cap=terms.owner_cap,
        reasons=(
            *_why_no_work(node, policy, weights, worked),
            *_why_not_there(node, terms, devices, idle),
        ),
    )


def _share(totals: Totals, weight: int) -> ExplainedShare:
    share, lost = divmod(totals.shared * weight, totals.weight) if totals.weight else (0, 0)
    return ExplainedShare(
        pool=totals.shared,
        weight=weight,
        all_weight=totals.weight,
        share=share,
        lost=lost,
        cap=None,
        paid=share,
    )


def _capped(share: ExplainedShare, cap: int | None) -> ExplainedShare:
    return ExplainedShare(
        pool=share.pool,
        weight=share.weight,
        all_weight=share.all_weight,
        share=share.share,
        lost=share.lost,
        cap=cap,
        paid=share.share if cap is None else min(share.share, cap),
    )


def _device(device: Attested, terms: RewardTerms) -> ExplainedDevice:
    ratings = {rated.name: rated.ppm for rated in terms.class_ratings}
    return ExplainedDevice(
        hardware_class=device.hardware_class,
        tier=device.tier,
        attested_us=device.gpu_us,
        promised_us=device.promised_us,
        rating_ppm=ratings.get(device.hardware_class, PPM),
        reason=_why_it_does_not_count(device, terms),
    )


def _why_it_does_not_count(device: Attested, terms: RewardTerms) -> str | None:
    if counts(device, terms):
        return None
    if device.tier < terms.availability_min_tier:
        return f"trust tier {device.tier}: the policy asks for {terms.availability_min_tier}"
    least = terms.availability_min_uptime_ppm * device.promised_us
    return f"it was there for less than {-(-least // PPM)} of {device.promised_us} microseconds"


def _why_no_work(
    node: NodeCut, policy: PolicyPublished, weights: dict[str, int], share: ExplainedShare
) -> list[str]:
    if not share.weight:
        if not node.uses:
            return ["compute: only its owner used it, as far as this epoch's cut tells"]
        idle = [use.source for use in node.uses if not weights.get(use.source, 0)]
        if len(idle) == len(node.uses):
            return [f"compute: what {', '.join(idle)} paid for has no weight"]
        return [f"compute: nothing of its use counts as {policy.compute_base} in this epoch yet"]
    if share.cap is not None and share.share > share.cap:
        return [
            f"compute: {share.share} was its share, and {node.burned_tokens} were burned for it:"
            f" it gets at most {share.cap}"
        ]
    return _no_pool("compute", share)


def _why_not_there(
    node: NodeCut, terms: RewardTerms, devices: tuple[ExplainedDevice, ...], share: ExplainedShare
) -> list[str]:
    if not share.weight:
        if not devices:
            return ["availability: no time of its devices was attested before this epoch's cut"]
        return [
            f"availability: {reason}" for reason in sorted({one.reason or "" for one in devices})
        ]
    if share.cap is not None and share.share > share.cap:
        hours = attested_us(node, terms) // GPU_HOUR_US
        return [
            f"availability: {share.share} was its share: for {hours} whole GPU-hours it gets at"
            f" most {share.cap}"
        ]
    return _no_pool("availability", share)


def _no_pool(kind: str, share: ExplainedShare) -> list[str]:
    if share.share:
        return []
    return [f"{kind}: its part of a pool of {share.pool} is less than one unit"]
