"""What an epoch pays: a pure function of its cut, to the unit.

    emission + release == compute + availability + treasury           (the treasury takes the rest)
    pool + carry before == shares of nodes + carry after + returned            for both pools
    minted == emission + release - returned == rewards + carries after - carries before
    rewards == shares of nodes + treasury                  adjustments only move between accounts

    share of a node == min(floor(pool x w / W), its caps);   equal weights earn equally
    availability == a part of the epoch for all time at tier 2 and above, the rest by min tier

A node is paid for what it served (compute) and for having been there (availability). Weights are
of nodes, rewards of accounts. A cap is linear in what the node burned or attested, so that one node
split into several never earns more; what is above a cap, and a pool that nobody has a weight in, go
where the policy says. Tier 2 shares its part with the tiers above it: a higher tier never earns
less, and however much is claimed at tier 2 takes no more than that part. No price enters a
weight. Not here: which reports and burns the cut holds
(`projections/`), what an epoch is (`domain/epochs/epoch.py`). Source: design economics 7, 8, 10,
13; rows R-8, R-10.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from domain.epochs.emission import scheduled
from domain.epochs.net_emission import release
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import NO_TERMS, UNISSUED, Rated, RewardTerms, bonus_ppm, paid_tier
from domain.frozen import replace
from domain.gpu_time import GPU_HOUR_US
from domain.money import PPM, MoneyReason
from domain.refusal import Refused

TREASURY = "treasury"
"""Account id of the treasury: a party like any other, with a payout leaf of its own."""
COMPUTE, AVAILABILITY = "compute", "availability"
ROUNDING, ZERO_WEIGHT, CAP = "rounding", "zero_weight", "cap"
"""Why a part of a pool is nobody's."""

# What goes in. Tuples and not dataclasses, because there may be a million of them.


class Use(NamedTuple):
    """What strangers used of a node, by the funding source that paid."""

    source: str
    burned: int  # micro-credits whose burn counts in this epoch
    gpu_us: int


class Attested(NamedTuple):
    """Available time of one device at its trust tier, leased or idle. `promised_us`: from its
    joining (or the epoch's start) to the epoch's end; of time that came late, in its own epoch. A
    device, and not its node, has to have been there: else moving it to a node of its own would pay.
    """

    hardware_class: str
    tier: int
    gpu_us: int
    promised_us: int


class NodeCut(NamedTuple):
    """All that the cut says of one node. `score_ppm`: the lower of its and its owner's reputation,
    None while provisional. `burned_tokens`: TOKEN units burned for its use, of which
    `bought_tokens` by renters, for the credits that they used. What corrections took back is set
    off already (`domain/epochs/taken_back.py`).
    """

    node_id: str
    account_id: str
    uses: tuple[Use, ...] = ()
    burned_tokens: int = 0
    score_ppm: int | None = None
    attested: tuple[Attested, ...] = ()
    bought_tokens: int = 0


BOUGHT_MULTIPLE_MAX_PPM = 950_000
"""Of the TOKEN that a renter burned for credits at most this part comes back to whoever earned
them: leases in burned credits have no other cost, so else washing with them would be free.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Openings:
    """What earlier epochs and the books leave for this one, in TOKEN units.

    `adjustments`: what accounts are still to be given (> 0) or to give back (< 0), by account.
    """

    unissued: int
    recyclable: int = 0
    compute_carry: int = 0
    availability_carry: int = 0
    adjustments: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CutHead:
    """What a cut says beside its nodes."""

    epoch: int
    cut_position: int
    policy: PolicyPublished
    openings: Openings

    @property
    def terms(self) -> RewardTerms:
        return self.policy.rewards or NO_TERMS

    def head(self) -> CutHead:
        """The same without nodes."""
        return CutHead(**{one.name: getattr(self, one.name) for one in fields(CutHead)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(CutHead):
    """The whole input of a settlement; `nodes` in any order."""

    nodes: Sequence[NodeCut]


# What comes out.


class NodeReward(NamedTuple):
    """What a node's shares come to, after its own caps and its owner's."""

    node_id: str
    account_id: str
    compute_weight: int
    compute: int
    availability_weight: int
    availability: int


class Unallocated(NamedTuple):
    """A part of a pool that is nobody's: why, and how much of it goes on, or back."""

    pool: str
    reason: str
    units: int
    returned: int  # never minted; the rest is carried to the same pool of the next epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one epoch pays, in TOKEN units, but for what each node gets."""

    cut: CutHead
    emission: int
    release: int
    compute_pool: int  # the pools are this epoch's part, without the carry
    availability_pool: int
    treasury_pool: int
    compute_weight: int  # of all nodes together
    availability_weight: int
    availability_tier_2_weight: int
    unallocated: tuple[Unallocated, ...]  # none of zero units
    compute_carry: int
    availability_carry: int
    returned_emission: int
    returned_release: int
    rewards: tuple[tuple[str, int], ...]  # by account id, none zero, the treasury among them
    adjustments: tuple[tuple[str, int], ...]  # what is still open afterwards

    @property
    def epoch(self) -> int:
        return self.cut.epoch

    @property
    def total(self) -> int:
        return sum(units for _, units in self.rewards)

    @property
    def minted(self) -> int:
        return self.emission + self.release - self.returned_emission - self.returned_release


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement(Outcome):
    """What one epoch pays, node by node; the epoch file is its image."""

    cut: Cut
    nodes: tuple[NodeReward, ...]  # by id; all of the cut


def settle(cut: Cut) -> Settlement:
    """Split an epoch's emission and release among the nodes of its cut.

    The same bytes whatever the order of the nodes; the steps are those of a settlement by lanes
    (`domain/epochs/lanes.py`), with one lane. Raises Refused: DUPLICATE_ID, NEGATIVE_WEIGHT.
    """
    nodes = ordered(cut.nodes)
    weighed = weigh(nodes, cut.policy)
    pools, whole = pools_at(cut), weighed.sums()
    paid = share(weighed, pools, whole)
    if cut.terms.owner_cap is not None:
        over = owners_over(paid.earned, cut.terms.owner_cap)
        paid.cut_down(owner_cuts(owned_nodes(0, weighed, paid, over), over))
    settled = outcome(cut, pools, whole, paid.sums())
    told = {one.name: getattr(settled, one.name) for one in fields(Outcome)}
    columns = (weighed.compute, paid.compute, weighed.availability, paid.availability)
    return Settlement(
        **{**told, "cut": replace(cut, nodes=nodes)},
        nodes=_rewards(weighed.node_ids, weighed.account_ids, *columns),
    )


# --- weights and caps ------------------------------------------------------------------------


def released_of(terms: RewardTerms, recyclable: int) -> int:
    """What the burned TOKEN give back in one epoch."""
    if terms.release_tau is None:
        return 0
    return release(recyclable, terms.release_tau, terms.release_cap)


def pools_of(units: int, policy: PolicyPublished) -> tuple[int, int, int]:
    """Compute, availability and treasury: floors by ppm, the treasury takes the remainder."""
    compute = units * policy.compute_ppm // PPM
    availability = units * policy.availability_ppm // PPM
    return compute, availability, units - compute - availability


def availability_parts(fresh: int, carry: int, terms: RewardTerms) -> tuple[int, int]:
    """What tier 2 and above share, and what the tier of the terms shares: the carry is the
    latter's, or what nobody proved would come to tier 2 an epoch later.
    """
    low = fresh * terms.availability_tier_2_ppm // PPM
    return low, fresh + carry - low


def compute_weight(node: NodeCut, terms: RewardTerms, base: str) -> int:
    """floor(sum(used x weight of its source) x bonus / 10^12): monotone in use.

    used == burned, by value; by time, where a GPU-hour weighs whole for `least` burned
    used == min(time, floor(burned x hour / least)),    so  used x least <= burned x hour
    """
    return _compute_weights((node,), terms, base)[0]


def used_by(terms: RewardTerms, base: str) -> Callable[[int, int], int]:
    """What of (burned, GPU time) counts as used: the formula of `compute_weight`."""
    least = terms.burned_per_gpu_hour
    if base == "burned_value":
        return lambda burned, _gpu_us: burned
    if least is None:
        return lambda _burned, gpu_us: gpu_us
    return lambda burned, gpu_us: min(gpu_us, burned * GPU_HOUR_US // least)


def _compute_weights(nodes: Iterable[NodeCut], terms: RewardTerms, base: str) -> list[int]:
    weight_of, used_of = _by_name(terms.source_weights), used_by(terms, base)
    found = []
    for node in nodes:
        used = 0
        for source, burned, gpu_us in node.uses:
            used += used_of(burned, gpu_us) * weight_of.get(source, 0)
        found.append(used * bonus_ppm(terms, node.score_ppm) // (PPM * PPM) if used else 0)
    return found


def counts(device: Attested, terms: RewardTerms, tier: int) -> bool:
    """Whether a device has this tier, and was there enough of the time that it promised."""
    minimum = terms.availability_min_uptime_ppm * device.promised_us
    return device.tier >= tier and device.gpu_us * PPM >= minimum


def attested_us(node: NodeCut, terms: RewardTerms) -> int:
    """Available GPU-microseconds of the devices that are paid for at all."""
    found, tier = 0, paid_tier(terms)
    for device in node.attested:
        if counts(device, terms, tier):
            found += device.gpu_us
    return found


def availability_weight(node: NodeCut, terms: RewardTerms, tier: int) -> int:
    """floor(sum(attested time x rating of its class) / 10^6), of the devices of this tier."""
    return _availability_weights((node,), terms, tier)[0]


def _availability_weights(nodes: Iterable[NodeCut], terms: RewardTerms, tier: int) -> list[int]:
    rating_of = _by_name(terms.class_ratings)
    found = []
    for node in nodes:
        rated = 0
        for device in node.attested:
            if counts(device, terms, tier):
                rated += device.gpu_us * rating_of.get(device.hardware_class, PPM)
        found.append(rated // PPM)
    return found


def compute_cap(node: NodeCut, terms: RewardTerms) -> int | None:
    """A washer who burns for himself gets at most that back, and of credits that he bought less
    than he paid. Source: design economics 13.
    """
    multiple = terms.cap_multiple_ppm
    if multiple is None:
        return None
    by_network = (node.burned_tokens - node.bought_tokens) * multiple
    return (by_network + node.bought_tokens * min(multiple, BOUGHT_MULTIPLE_MAX_PPM)) // PPM


def idle_cap(node: NodeCut, terms: RewardTerms) -> int | None:
    """The lower of the cap by attested GPU-hour and the flat one."""
    hourly, flat = terms.availability_cap_per_gpu_hour, terms.availability_cap_per_node
    if hourly is None:
        return flat
    earned = attested_us(node, terms) * hourly // GPU_HOUR_US
    return earned if flat is None else min(earned, flat)


def _by_name(rated: tuple[Rated, ...]) -> dict[str, int]:
    return {one.name: one.ppm for one in rated}


def ordered(nodes: Sequence[NodeCut]) -> tuple[NodeCut, ...]:
    """By id; code points sort as the bytes of UTF-8 do.

    Raises Refused: DUPLICATE_ID, NEGATIVE_WEIGHT naming the node.
    """
    by_id = tuple(sorted(nodes, key=_ID))
    for before, node in pairwise(by_id):
        if before.node_id == node.node_id:
            raise Refused(MoneyReason.DUPLICATE_ID, node_id=node.node_id)
    for node in by_id:
        if _has_negative(node):
            raise Refused(MoneyReason.NEGATIVE_WEIGHT, node_id=node.node_id)
    return by_id


_ID = itemgetter(NodeCut._fields.index("node_id"))


def _has_negative(node: NodeCut) -> bool:
    for _, burned, gpu_us in node.uses:
        if burned < 0 or gpu_us < 0:
            return True
    for _, _, gpu_us, promised_us in node.attested:
        if gpu_us < 0 or promised_us < 0:
            return True
    return not 0 <= node.bought_tokens <= node.burned_tokens


# --- sharing, lane by lane -------------------------------------------------------------------


class Weights(NamedTuple):
    """Sums of weights: of a lane, or of all."""

    compute: int
    tier_2: int  # in the part of the availability pool that tier 2 and above share
    availability: int


class Weighed(NamedTuple):
    """What decides the shares of the nodes of a lane, a column each, in order of their ids."""

    node_ids: Sequence[str]
    account_ids: Sequence[str]
    compute: Sequence[int]
    compute_caps: Sequence[int | None]
    tier_2: Sequence[int]
    availability: Sequence[int]
    idle_caps: Sequence[int | None]

    def sums(self) -> Weights:
        return Weights(sum(self.compute), sum(self.tier_2), sum(self.availability))


def weigh(nodes: Sequence[NodeCut], policy: PolicyPublished) -> Weighed:
    """The first step of a lane: its nodes are `ordered`."""
    terms = policy.rewards or NO_TERMS
    return Weighed(
        [node.node_id for node in nodes],
        [node.account_id for node in nodes],
        _compute_weights(nodes, terms, policy.compute_base),
        [compute_cap(node, terms) for node in nodes],
        _availability_weights(nodes, terms, paid_tier(terms)),
        _availability_weights(nodes, terms, terms.availability_min_tier),
        [idle_cap(node, terms) for node in nodes],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """What an epoch has to give: its emission and release, and where they and the carries go."""

    emission: int
    release: int
    compute: int  # fresh: of this epoch, without the carry
    availability: int
    treasury: int
    compute_carry: int
    tier_2: int  # of the availability pool, what tier 2 and above share
    min_tier: int  # and what the tier of the terms shares, the carry among it


def pools_at(cut: CutHead) -> Pools:
    """The pools of an epoch, before a weight is known."""
    opening, terms = cut.openings, cut.terms
    emission = min(scheduled(cut.policy.segments, cut.epoch), opening.unissued)
    released = released_of(terms, opening.recyclable)
    compute, availability, treasury = pools_of(emission + released, cut.policy)
    low, high = availability_parts(availability, opening.availability_carry, terms)
    return Pools(
        emission=emission,
        release=released,
        compute=compute,
        availability=availability,
        treasury=treasury,
        compute_carry=opening.compute_carry,
        tier_2=low,
        min_tier=high,
    )


@dataclass(slots=True)
class Paid:
    """What the nodes of a lane get, in their order, and their accounts together.

    `compute_shares`, `availability_shares`: sums before any cap.
    """

    compute_shares: int
    availability_shares: int
    compute: list[int]
    availability: list[int]
    earned: dict[str, int]

    def cut_down(self, cuts: Iterable[Owned]) -> None:
        """Take the cuts from what is paid."""
        for one in cuts:
            self.compute[one.place] -= one.compute
            self.availability[one.place] -= one.availability
            self.earned[one.account_id] -= one.compute + one.availability

    def sums(self) -> Sums:
        return Sums(
            self.compute_shares,
            self.availability_shares,
            sum(self.compute),
            sum(self.availability),
            self.earned,
        )


@dataclass(slots=True)
class Sums:
    """What the nodes of one lane, or of several, get together: as in `Paid`, without its nodes."""

    compute_shares: int = 0
    availability_shares: int = 0
    compute: int = 0
    availability: int = 0
    earned: dict[str, int] = field(default_factory=dict)

    def add(self, other: Sums) -> None:
        """Take another lane in."""
        self.compute_shares += other.compute_shares
        self.availability_shares += other.availability_shares
        self.compute += other.compute
        self.availability += other.availability
        earned = self.earned
        for account_id, units in other.earned.items():
            earned[account_id] = earned.get(account_id, 0) + units

    def cut_down(self, cuts: Iterable[Owned]) -> None:
        """Take the cuts from what is paid."""
        for one in cuts:
            self.compute -= one.compute
            self.availability -= one.availability
            self.earned[one.account_id] -= one.compute + one.availability


def share(weighed: Weighed, pools: Pools, whole: Weights) -> Paid:
    """The second step of a lane: its shares under the caps of its nodes, given all weights."""
    compute = _shares(pools.compute + pools.compute_carry, weighed.compute, whole.compute)
    low = _shares(pools.tier_2, weighed.tier_2, whole.tier_2)
    high = _shares(pools.min_tier, weighed.availability, whole.availability)
    idle = [one + other for one, other in zip(low, high, strict=True)]
    worked, was_there = _capped(compute, weighed.compute_caps), _capped(idle, weighed.idle_caps)
    earned = _by_account(weighed.account_ids, worked, was_there)
    return Paid(sum(compute), sum(idle), worked, was_there, earned)


def _shares(pool: int, weights: Sequence[int], whole: int) -> list[int]:
    if not whole:
        return [0] * len(weights)
    return [pool * weight // whole for weight in weights]


def _capped(shares: Sequence[int], caps: Sequence[int | None]) -> list[int]:
    return [
        share if cap is None else min(share, cap) for share, cap in zip(shares, caps, strict=True)
    ]


class Owned(NamedTuple):
    """A node of an account that is above its cap, and where it stands; or what is cut of it."""

    account_id: str
    node_id: str
    lane: int
    place: int
    compute: int
    availability: int


def owners_over(earned: Mapping[str, int], cap: int) -> dict[str, int]:
    """What each account gets above `cap`, in all lanes together; none that is not above it."""
    return {who: units - cap for who, units in earned.items() if units > cap}


def owned_nodes(lane: int, weighed: Weighed, paid: Paid, accounts: Container[str]) -> list[Owned]:
    """The nodes of a lane that are of these accounts."""
    rows = zip(
        weighed.account_ids,
        weighed.node_ids,
        range(len(weighed.node_ids)),
        paid.compute,
        paid.availability,
        strict=True,
    )
    return [
        Owned(who, node_id, lane, place, worked, idle)
        for who, node_id, place, worked, idle in rows
        if who in accounts
    ]


def owner_cuts(nodes: Iterable[Owned], over: Mapping[str, int]) -> list[Owned]:
    """What is cut of each node so that no account is above its cap: first what its later nodes got
    for being there, then what they served.
    """
    left, cuts = dict(over), []
    last_first = sorted(nodes, key=lambda one: one.node_id, reverse=True)
    idle = {}
    for node in last_first:
        idle[node.node_id] = min(left[node.account_id], node.availability)
        left[node.account_id] -= idle[node.node_id]
    for node in last_first:
        worked = min(left[node.account_id], node.compute)
        left[node.account_id] -= worked
        if worked or idle[node.node_id]:
            cuts.append(node._replace(compute=worked, availability=idle[node.node_id]))
    return cuts


def outcome(cut: CutHead, pools: Pools, whole: Weights, paid: Sums) -> Outcome:
    """The last step: what all lanes come to."""
    opening, terms = cut.openings, cut.terms
    of_compute = _Split(
        pool=COMPUTE,
        fresh=pools.compute,
        everything=pools.compute + opening.compute_carry,
        nobodys=0 if whole.compute else pools.compute + opening.compute_carry,
        shared=paid.compute_shares,
        paid=paid.compute,
    )
    of_availability = _Split(
        pool=AVAILABILITY,
        fresh=pools.availability,
        everything=pools.availability + opening.availability_carry,
        nobodys=(0 if whole.tier_2 else pools.tier_2)
        + (0 if whole.availability else pools.min_tier),
        shared=paid.availability_shares,
        paid=paid.availability,
    )
    left = (*_left(of_compute, terms), *_left(of_availability, terms))
    returned = sum(part.returned for part in left)
    returned_release = min(returned, pools.release)
    rewards, still_open = _adjusted(paid.earned, pools.treasury, opening.adjustments)
    found = Outcome(
        cut=cut,
        emission=pools.emission,
        release=pools.release,
        compute_pool=pools.compute,
        availability_pool=pools.availability,
        treasury_pool=pools.treasury,
        compute_weight=whole.compute,
        availability_weight=whole.availability,
        availability_tier_2_weight=whole.tier_2,
        unallocated=left,
        compute_carry=_carried(left, COMPUTE),
        availability_carry=_carried(left, AVAILABILITY),
        returned_emission=returned - returned_release,
        returned_release=returned_release,
        rewards=rewards,
        adjustments=still_open,
    )
    _check(found, paid.compute, paid.availability)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    """One pool among the nodes of a cut."""

    pool: str
    fresh: int  # of this epoch
    everything: int  # with what was carried into it
    nobodys: int  # of it, where nobody has a weight
    shared: int  # among nodes, before caps
    paid: int  # less what is above a cap


def _left(split: _Split, terms: RewardTerms) -> list[Unallocated]:
    """What nobody gets of a pool, by reason. Only this epoch's part can go back: the carry is
    minted already.
    """
    shared, nobodys, fresh = split.shared, split.nobodys, split.fresh
    above = shared - split.paid
    back = min(nobodys, fresh) if terms.zero_weight_goes_to == UNISSUED else 0
    back_above = min(above, fresh - back) if terms.cap_goes_to == UNISSUED else 0
    left = (
        Unallocated(split.pool, ROUNDING, split.everything - nobodys - shared, 0),
        Unallocated(split.pool, ZERO_WEIGHT, nobodys, back),
        Unallocated(split.pool, CAP, above, back_above),
    )
    return [part for part in left if part.units]


def _carried(left: Iterable[Unallocated], pool: str) -> int:
    return sum(part.units - part.returned for part in left if part.pool == pool)


def _rewards(*columns: Sequence[Any]) -> tuple[NodeReward, ...]:
    rows = zip(*columns, strict=True)
    return tuple(map(partial(tuple.__new__, NodeReward), rows))  # no call for each


def _by_account(
    account_ids: Sequence[str], compute: Sequence[int], availability: Sequence[int]
) -> dict[str, int]:
    earned: dict[str, int] = {}
    for account_id, worked, idle in zip(account_ids, compute, availability, strict=True):
        if worked or idle:
            earned[account_id] = earned.get(account_id, 0) + worked + idle
    return earned


def _adjusted(
    earned: dict[str, int], treasury: int, adjustments: Sequence[tuple[str, int]]
) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
    """Rewards after adjustments, and the adjustments that stay open.

    Who has to give back does so from what this epoch earns, to the treasury; the treasury pays who
    is to be given, while it lasts. In order of accounts.
    """
    paid = dict(earned)
    paid[TREASURY] = paid.get(TREASURY, 0) + treasury
    still_open: dict[str, int] = {}
    for account_id, delta in sorted(adjustments, key=lambda one: (one[1] > 0, one[0])):
        payer, payee = (account_id, TREASURY) if delta < 0 else (TREASURY, account_id)
        moved = min(abs(delta), paid.get(payer, 0))
        paid[payer] = paid.get(payer, 0) - moved
        paid[payee] = paid.get(payee, 0) + moved
        rest = abs(delta) - moved
        if rest:
            still_open[account_id] = -rest if delta < 0 else rest
    rewards = tuple((who, units) for who, units in sorted(paid.items()) if units)
    return rewards, tuple(sorted(still_open.items()))


def _check(s: Outcome, worked: int, idle: int) -> None:
    """The formulas of this module's docstring; all that nodes get of each pool."""
    opening = s.cut.openings
    for pool, given, fresh, before, after in (
        (COMPUTE, worked, s.compute_pool, opening.compute_carry, s.compute_carry),
        (AVAILABILITY, idle, s.availability_pool, opening.availability_carry, s.availability_carry),
    ):
        back = sum(part.returned for part in s.unallocated if part.pool == pool)
        assert 0 <= back <= fresh, (pool, back, fresh)
        assert given + after + back == fresh + before, (pool, given, after, back)
    assert s.total == worked + idle + s.treasury_pool, s.total
    assert is_sound(s), s


def is_sound(s: Outcome) -> bool:
    """Whether an outcome is one of its cut, as far as that is known without the nodes: its pools
    are those of the cut, and what it pays, keeps and returns is what it had.
    """
    opening, pools = s.cut.openings, pools_at(s.cut)
    told = (s.emission, s.release, s.compute_pool, s.availability_pool, s.treasury_pool)
    due = (pools.emission, pools.release, pools.compute, pools.availability, pools.treasury)
    before = opening.compute_carry + opening.availability_carry
    ids = [who for who, _ in s.rewards]
    return (
        told == due
        and _is_split(s, COMPUTE, s.compute_pool + opening.compute_carry, s.compute_carry)
        and _is_split(
            s, AVAILABILITY, s.availability_pool + opening.availability_carry, s.availability_carry
        )
        and sum(one.returned for one in s.unallocated) == s.returned_emission + s.returned_release
        and _are_adjusted(s)
        and s.compute_pool + s.availability_pool + s.treasury_pool == s.emission + s.release
        and s.minted == s.total + s.compute_carry + s.availability_carry - before
        and min(s.compute_carry, s.availability_carry) >= 0
        and 0 <= s.returned_emission <= s.emission
        and 0 <= s.returned_release <= s.release
        and all(units > 0 for _, units in s.rewards)
        and all(one < following for one, following in pairwise(ids))
    )


def _is_split(s: Outcome, pool: str, everything: int, carry: int) -> bool:
    """Whether nobody's part of a pool is not more than there is of it, and all where no node has a
    weight in it.
    """
    parts = [one for one in s.unallocated if one.pool == pool]
    of_availability = s.availability_weight + s.availability_tier_2_weight
    weight = s.compute_weight if pool == COMPUTE else of_availability
    left = sum(one.units for one in parts)
    return (
        all(0 <= one.returned <= one.units for one in parts)
        and carry == _carried(parts, pool)
        and (left <= everything if weight else left == everything)
    )


def _are_adjusted(s: Outcome) -> bool:
    """Whether what stays open of adjustments was open before, and the treasury took and gave the
    rest.
    """
    due, left, paid = dict(s.cut.openings.adjustments), dict(s.adjustments), dict(s.rewards)
    moved = {who: delta - left.get(who, 0) for who, delta in due.items()}
    given = sum(units for who, units in moved.items() if who != TREASURY)
    return (
        s.adjustments == tuple(sorted(left.items()))
        and left.keys() <= due.keys()
        and all(min(0, due[who]) <= delta <= max(0, due[who]) for who, delta in left.items())
        and all(left.values())
        and all(paid.get(who, 0) >= units for who, units in moved.items() if who != TREASURY)
        and paid.get(TREASURY, 0) >= s.treasury_pool - given
    )
