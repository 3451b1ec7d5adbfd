"""Reward terms: the numbers of a policy that say who shares in an epoch, and up to what bound.

    bonus == 10^6 + max x clamp(score - from, 0, range) // range;   10^6 <= bonus <= 10^6 + max
    a funding source and a hardware class weigh at most 10^6 ppm

Not the formula: that is `domain/epochs/settlement.py`. A policy without terms (`NO_TERMS`) pays the
compute pool by use alone, and nobody for being available. Source: design economics 5, 7, 8, 10, 13
and 16, whose defaults are `REWARD_TERMS`.
"""

from __future__ import annotations

from domain.duration import HOUR_US
from domain.money import PPM, Big
from domain.record import dataclass
from domain.refusal import Refused
from domain.trust.reasons import TrustReason

NEXT_EPOCH, UNISSUED = "next_epoch", "unissued"
DESTINATIONS = (NEXT_EPOCH, UNISSUED)
"""Where a part that nobody gets may go: into the same pool later, or back to be never minted."""
TIER_2 = 2
TIER_2_MAX_PPM = 500_000
"""More than half of a pool never goes by what no challenge and no renter has shown."""
TIER_NOBODY = 5
"""Above the highest tier: no device's time counts."""
NAMED_MAX = 64
"""Sources, and classes, that one set of terms may name."""
BONUS_MAX_PPM = 1_000_000
MULTIPLE_MAX_PPM = 100 * PPM
UNITS_MAX = 2**63 - 1
EPOCHS_MAX = 1_000_000
WAIT_MAX_US = 30 * 24 * HOUR_US


@dataclass(frozen=True, slots=True)
class Rated:
    """A funding source, or a hardware class, and what one unit of it weighs."""

    name: str
    ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardTerms:
    """`None` of a cap is no cap. Amounts are TOKEN units, but for `burned_per_gpu_hour`."""

    source_weights: tuple[Rated, ...]  # of funding sources; one that is not named weighs nothing
    burned_per_gpu_hour: Big | None  # micro-credits burned, that one GPU-hour weighs whole by time
    class_ratings: tuple[Rated, ...]  # of hardware classes; one that is not named weighs 10^6
    cap_multiple_ppm: int | None  # compute reward <= this part of the TOKEN burned for the node
    cap_goes_to: str  # what is above a cap
    zero_weight_goes_to: str  # a pool that nobody has a weight in
    bonus_from_ppm: int
    bonus_range_ppm: int
    bonus_max_ppm: int
    availability_min_tier: int  # time of a device below this trust tier does not count
    availability_tier_2_ppm: int  # of each epoch's pool, shared by all time at tier 2 or above
    availability_min_uptime_ppm: int  # of the promised time, counted from joining
    availability_cap_per_gpu_hour: Big | None
    availability_cap_per_node: Big | None
    owner_cap: Big | None  # both kinds of reward of one account
    release_tau: int | None  # burned TOKEN come back as pool // tau an epoch; None: never
    release_cap: Big
    min_wait_us: int  # between the end of an epoch and its close
    forfeit_epochs: int | None  # matured and without a wallet for so long; None: never


REWARD_TERMS = RewardTerms(
    source_weights=(Rated("burned", PPM), Rated("cash", PPM)),
    burned_per_gpu_hour=None,
    class_ratings=(),
    cap_multiple_ppm=PPM,
    cap_goes_to=UNISSUED,
    zero_weight_goes_to=NEXT_EPOCH,
    bonus_from_ppm=800_000,
    bonus_range_ppm=150_000,
    bonus_max_ppm=200_000,
    availability_min_tier=3,
    availability_tier_2_ppm=200_000,
    availability_min_uptime_ppm=500_000,
    availability_cap_per_gpu_hour=None,
    availability_cap_per_node=None,
    owner_cap=None,
    release_tau=None,
    release_cap=0,
    min_wait_us=6 * HOUR_US,
    forfeit_epochs=4,
)
"""A new network's. Grants and swept earnings weigh nothing, nor does card money before it is
confirmed.
"""

NO_TERMS = RewardTerms(
    source_weights=(Rated("burned", PPM), Rated("cash", PPM)),
    burned_per_gpu_hour=None,
    class_ratings=(),
    cap_multiple_ppm=None,
    cap_goes_to=NEXT_EPOCH,
    zero_weight_goes_to=NEXT_EPOCH,
    bonus_from_ppm=0,
    bonus_range_ppm=1,
    bonus_max_ppm=0,
    availability_min_tier=TIER_NOBODY,
    availability_tier_2_ppm=0,
    availability_min_uptime_ppm=0,
    availability_cap_per_gpu_hour=None,
    availability_cap_per_node=None,
    owner_cap=None,
    release_tau=None,
    release_cap=0,
    min_wait_us=0,
    forfeit_epochs=None,
)
"""Of a policy that was published without terms."""


def bonus_ppm(terms: RewardTerms, score_ppm: int | None) -> int:
    """What a reputation multiplies a compute weight by; 10^6 for a provisional one (None).

    Linear between two bounds: no cliff to work towards. Source: design economics 16.
    """
    if score_ppm is None:
        return PPM
    above = min(max(score_ppm - terms.bonus_from_ppm, 0), terms.bonus_range_ppm)
    return PPM + terms.bonus_max_ppm * above // terms.bonus_range_ppm


def paid_tier(terms: RewardTerms) -> int:
    """The lowest trust tier whose time is paid for at all."""
    return TIER_2 if terms.availability_tier_2_ppm else terms.availability_min_tier


def check_terms(terms: RewardTerms) -> None:
    """Raises Refused: POLICY_INVALID, naming the rule."""
    for field, rated in (("source", terms.source_weights), ("class", terms.class_ratings)):
        names = [one.name for one in rated]
        if len(set(names)) < len(names) or len(names) > NAMED_MAX:
            raise _invalid(f"each {field} is named once, at most {NAMED_MAX}")
        if any(not one.name or len(one.name) > 64 for one in rated):
            raise _invalid(f"a {field} has a name of at most 64 characters")
        if any(not 0 <= one.ppm <= PPM for one in rated):
            raise _invalid(f"a {field} weighs 0 % to 100 %")
    for name, least, value, most in _ranges(terms):
        if value is not None and not least <= value <= most:
            raise _invalid(f"{name} lies between {least} and {most}{_unit(name)}", **{name: value})
    if terms.bonus_from_ppm + terms.bonus_range_ppm > PPM:
        raise _invalid(
            "the whole bonus is within reach: its start and its range are at most 100 % together"
        )
    if terms.availability_tier_2_ppm and terms.availability_min_tier <= TIER_2:
        raise _invalid(
            "tier 2 has a share of its own only where the whole pool asks for more:"
            " raise availability_min_tier to 3, or set availability_tier_2_ppm to 0"
        )
    if {terms.cap_goes_to, terms.zero_weight_goes_to} - set(DESTINATIONS):
        raise _invalid(f"what is left over goes to one of {', '.join(DESTINATIONS)}")


def _ranges(terms: RewardTerms) -> tuple[tuple[str, int, int | None, int], ...]:
    return (
        ("burned_per_gpu_hour", 1, terms.burned_per_gpu_hour, UNITS_MAX),
        ("cap_multiple_ppm", 0, terms.cap_multiple_ppm, MULTIPLE_MAX_PPM),
        ("bonus_from_ppm", 0, terms.bonus_from_ppm, PPM),
        ("bonus_range_ppm", 1, terms.bonus_range_ppm, PPM),
        ("bonus_max_ppm", 0, terms.bonus_max_ppm, BONUS_MAX_PPM),
        ("availability_min_tier", 0, terms.availability_min_tier, TIER_NOBODY),
        ("availability_tier_2_ppm", 0, terms.availability_tier_2_ppm, TIER_2_MAX_PPM),
        ("availability_min_uptime_ppm", 0, terms.availability_min_uptime_ppm, PPM),
        ("availability_cap_per_gpu_hour", 0, terms.availability_cap_per_gpu_hour, UNITS_MAX),
        ("availability_cap_per_node", 0, terms.availability_cap_per_node, UNITS_MAX),
        ("owner_cap", 0, terms.owner_cap, UNITS_MAX),
        ("release_tau", 1, terms.release_tau, EPOCHS_MAX),
        ("release_cap", 0, terms.release_cap, UNITS_MAX),
        ("min_wait_us", 0, terms.min_wait_us, WAIT_MAX_US),
        ("forfeit_epochs", 1, terms.forfeit_epochs, EPOCHS_MAX),
    )


def _unit(name: str) -> str:
    """The unit of a field, where its name says it."""
    units = {"_ppm": " parts per million", "_us": " microseconds"}
    return next((unit for ending, unit in units.items() if name.endswith(ending)), "")


def _invalid(rule: str, **facts: object) -> Refused:
    return Refused(TrustReason.POLICY_INVALID, rule=rule, **facts)
