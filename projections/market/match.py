"""A match against the whole fleet at once, with its explanation: vectors over `fleet_columns`.

    answer(columns, need) == what `domain.market.matching` and `domain.market.explanation` say of
    the same nodes

Each dimension is one mask over all rows. ANDs from the front give how many nodes each leaves over;
leaving one mask out gives the nodes that only this demand refuses. The best 20 rows are found by
partitions, key by key, and handed to the reference, which ranks them and picks the devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.duration import SECOND_US
from domain.frozen import replace
from domain.hardware.constraints import weights_of
from domain.hardware.sharing import MPS_STEP_PPM
from domain.lease.choice import Narrowed
from domain.market.dimensions import (
    BY_NAME,
    DIMENSIONS,
    LASTING,
    MIG_MODE,
    MORE,
    NEVER_US,
    ONE,
    PROVISIONAL_PPM,
    SLICE_MODE,
    Dimension,
    Need,
    OfferedNode,
    admits,
)
from domain.market.explanation import (
    ANYTHING,
    PLAIN,
    TOGETHER,
    Explanation,
    Relaxation,
    capacity_classes_if_not_paused,
    distance,
    in_order,
    other_modes,
    required_told,
    shared_mode,
    value_told,
    with_mode,
)
from domain.market.matching import CANDIDATES_MAX, NO_WEIGHTS, RULES, rule_of
from domain.money import PPM
from projections.market.columns import MODE_CODES, Bools, Columns, Ints

Values = NDArray[Any]

_NUMBER_OF = {
    "cpu": "cpu_cores",
    "ram": "ram_mib",
    "isolation": "isolation",
    "security_tier": "security_tier",
    "reclaim": "reclaim_us",
    "gpus": "device_count",
    "renter": "min_renter",
    "kernel": "kernel",
    "network_class": "network_class",
}
_WORD_OF = {
    "place": "region",
    "pin": "region",
    "pool": "pool",
    "node": "phase",
    "kind": "kind",
    "vendor": "vendor",
    "model": "model",
    "arch": "arch",
    "os": "os",
    "setting": "setting",
    "sla": "sla",
    "settlement": "settlement",
    "capacity": "capacity",
}
FEW_WORDS = 4
"""Up to so many words are compared one by one; more are looked up."""
FEW_ROWS = 8
"""With fewer than one row in so many left, they are gathered first."""
_MAY_BE_UNKNOWN = frozenset({"cpu", "ram", "storage", "network", "kernel"})


@dataclass(frozen=True, slots=True)
class Answer:
    """`nodes`: the best of the `considered` rows, for `domain.market.matching.choose` to rank;
    each has the price that this renter would pay.
    """

    nodes: tuple[OfferedNode, ...]
    considered: int
    explanation: Explanation


def answer(
    columns: Columns, need: Need, fees: Mapping[str, int], *, limit: int = CANDIDATES_MAX
) -> Answer:
    """`fees`: the usage fee of each class in the tariff in force, micro-credits per GPU-hour."""
    return _Question(columns, need, fees).answer(limit)


def alike(columns: Columns, need: Need, dearest: int) -> Need:
    """The need of everybody whom no row tells apart from this renter: it has the same answer.

    `dearest`: no row costs more, so that who can pay as much can pay whatever there is.
    """
    lists = (one for both in columns.lists.values() for one in both)
    account_id = need.account_id
    if not columns.has_account(account_id) and not any(account_id in one for one in lists):
        account_id = ""
    funds = need.price_max_funds
    if funds is not None:
        funds = tuple((way, min(units, dearest)) for way, units in funds)
    return replace(need, account_id=account_id, price_max_funds=funds)


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why so many leases of one need have no place: the first demand that leaves room for too few
    of them even if nobody held anything, and for how many. `ROOM`: only what others hold is
    missing. `is_lasting`: only another inventory of a node changes it.
    """

    dimension: str
    required: str
    at_most: int
    is_lasting: bool

    @property
    def is_room(self) -> bool:
        return self.dimension == ROOM


ROOM = "free"
HELD = (ROOM, "storage", "network")
"""Demands that others who hold some of a node can leave unmet."""


def shortage(columns: Columns, need: Need, fees: Mapping[str, int], leases: int) -> Shortage:
    """What keeps `leases` of this need from a place, or would if nobody held anything."""
    return _Question(columns, need, fees).shortage(leases)


def lacking_room(
    columns: Columns, need: Need, fees: Mapping[str, int], limit: int
) -> tuple[OfferedNode, ...]:
    """Nodes that meet every demand of a need but room, or room too, as they are held now."""
    question = _Question(columns, need, fees)
    rows = question.refused_only_by((ROOM,))[:limit]
    return question.nodes(rows.tolist())


def best_lacking_room(columns: Columns, need: Need, fees: Mapping[str, int]) -> OfferedNode | None:
    """Of those that lack room the one that costs this renter least; None: there is none."""
    question = _Question(columns, need, fees)
    rows = question.refused_only_by((ROOM,))
    rows = rows[~question.mask(BY_NAME[ROOM])[rows]]
    if not len(rows):
        return None
    return question.nodes([int(rows[np.argmin(question.price[rows])])])[0]


def offers_meeting(columns: Columns, need: Need, names: Iterable[str]) -> list[str]:
    """Ids of open offers that meet these demands of a need, whatever is free of them now."""
    question = _Question(columns, need, {})
    met = question.there & question.flag("is_offered")
    for name in names:
        if BY_NAME[name].required(need) is not None:
            met = met & question.mask(BY_NAME[name])
    return [columns.offer_ids[row] for row in np.flatnonzero(met).tolist()]


def devices_meeting(columns: Columns, need: Need, names: Iterable[str]) -> frozenset[str]:
    """Devices under open offers that meet these demands of a need, whoever holds them now."""
    question = _Question(columns, need, {})
    met = question.there & question.flag("is_offered")
    for name in names:
        if BY_NAME[name].required(need) is not None:
            met = met & question.mask(BY_NAME[name])
    rows = np.flatnonzero(met).tolist()
    return frozenset(one for row in rows for one in columns.device_ids[row])


def node_with(columns: Columns, node_id: str, offer_id: str, device_id: str) -> OfferedNode | None:
    """The equal devices of a node, under one of its offers, that this device is one of."""
    for row in columns.rows_of.get(node_id, {}).values():
        if columns.offer_ids[row] == offer_id and device_id in columns.device_ids[row]:
            return columns.nodes([row])[0]
    return None


class _Question:
    """One request against all rows; every array has one entry per row."""

    def __init__(self, columns: Columns, need: Need, fees: Mapping[str, int]) -> None:
        self.columns = columns
        self.need = need
        self.fees = fees
        self.rows = columns.size
        self.there = columns.flags["is_there"][: self.rows]
        self.known: dict[str, Values] = {}

    # --- columns -----------------------------------------------------------------------------

    def number(self, name: str) -> Ints:
        return self.columns.numbers[name][: self.rows]

    def codes(self, name: str) -> NDArray[np.int32]:
        return self.columns.words[name][: self.rows]

    def flag(self, name: str) -> Bools:
        return self.columns.flags[name][: self.rows]

    def among(self, name: str, words: Iterable[str | None]) -> Bools:
        codes = self.columns.dictionaries[name].known(words)
        column = self.codes(name)
        if len(codes) > FEW_WORDS:
            is_known = np.zeros(len(self.columns.dictionaries[name].words), np.bool_)
            is_known[codes] = True
            return is_known.take(column)
        met = np.zeros(self.rows, np.bool_)
        for code in codes:
            met |= column == code
        return met

    def having(self, name: str, word: str | None) -> Bools:
        found = self.columns.sets.get((name, word or ""))
        return self.none if found is None else found[: self.rows]

    @cached_property
    def none(self) -> Bools:
        return np.zeros(self.rows, np.bool_)

    @cached_property
    def own(self) -> Bools:
        return self.among("account", (self.need.account_id,))

    @cached_property
    def fee(self) -> Ints:
        """The usage fee by row; -1 where its class has none."""
        words = self.columns.dictionaries["gpu_class"].words
        by_code = np.array([-1 if w is None else self.fees.get(w, -1) for w in words], np.int64)
        return by_code.take(self.codes("gpu_class"))

    @cached_property
    def price(self) -> Ints:
        """What this renter would pay: for own nodes the usage fee."""
        return np.where(self.own, self.fee, self.number("price"))

    @cached_property
    def fitting(self) -> Ints:
        return self.counted(self.device_fits(self.need))

    def device_fits(self, need: Need, rows: slice | NDArray[np.int64] | None = None) -> Bools:
        """As `domain.market.dimensions.device_fits`, for every device."""
        columns, chosen = self.columns, slice(0, self.rows) if rows is None else rows
        if need.share_ppm == need.mem_ppm:
            fits: Bools = columns.least[chosen] >= need.share_ppm
        else:
            fits = columns.share[chosen] >= need.share_ppm
            fits &= columns.mem[chosen] >= need.mem_ppm
        if need.share_ppm == PPM:
            return fits  # nobody holds any of it, so every mode is still open
        mode = columns.mode[chosen]
        beside: Bools = (mode == 0) | (mode == MODE_CODES[need.mode])
        beside &= columns.divisible[chosen]
        if need.mode == MIG_MODE:
            bit = columns.profile_bits.codes.get(need.constraints.mig_profile or "", 0)
            beside &= (columns.profiles[chosen] & np.uint64(1 << bit if bit else 0)) != 0
            return beside
        if need.mode == SLICE_MODE:
            beside &= (columns.slice[chosen] == 0) | (columns.slice[chosen] == need.share_ppm)
        fits &= beside
        return fits

    @staticmethod
    def counted(fits: Bools) -> Ints:
        """How many flags of each row are set: eight of them are one word."""
        if not len(fits):
            return np.zeros(0, np.int64)
        words = np.ascontiguousarray(fits).view(np.uint64)
        counts: Ints = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        return counts

    # --- dimensions --------------------------------------------------------------------------

    def offered(self, name: str) -> Values:
        """What each row offers: numbers, codes of words, or flags. Unknown numbers are -1."""
        if name in _NUMBER_OF:
            return self.number(_NUMBER_OF[name])
        if name in _WORD_OF:
            return self.codes(_WORD_OF[name])
        if name not in self.known:
            found: Callable[[], Values] = getattr(self, f"_{name}")
            self.known[name] = found()
        return self.known[name]

    def mask(self, dimension: Dimension) -> Bools:
        wanted, name = dimension.required(self.need), dimension.name
        if name in _WORD_OF:
            met = self.among(_WORD_OF[name], wanted)
        elif dimension.order == ONE:
            met = self.offered(name)
        else:
            values = self.offered(name)
            met = values >= wanted if dimension.order == MORE else values <= wanted
        return met | self.own if dimension.own_exempt else met

    def _offer(self) -> Bools:
        met = self.flag("is_offered")
        if self.need.own_only:
            met = met & self.own
        if self.need.rents_only:
            met = met & ~self.own
            if self.need.base_pool_id is not None:
                met &= ~self.among("pool", (self.need.base_pool_id,))
        return met

    def _region(self) -> Bools:
        return self.flag("is_public")

    def _sellable(self) -> Bools:
        return self.flag("is_sellable")

    def _queue(self) -> Bools:
        asked = self.need.constraints.pool_id
        return ~self.flag("keeps_queue") | self.among("pool", () if asked is None else (asked,))

    def _spec_age(self) -> Ints:
        at_us = self.number("specs_at")
        return np.where(at_us < 0, NEVER_US, self.need.at_us - at_us)

    def _memory(self) -> Ints:
        memory = self.number("memory_mib")
        return memory if self.need.mem_ppm == PPM else memory * self.need.mem_ppm // PPM

    def _mode(self) -> Bools:
        return self.takes_mode(self.need.mode)

    def takes_mode(self, mode: str) -> Bools:
        takes: Bools = (self.number("modes") & (1 << MODE_CODES[mode])) != 0
        return takes

    def _free(self) -> Ints:
        return self.fitting

    def _storage(self) -> Ints:
        return self.left_of("storage_gib", "held_storage")

    def _network(self) -> Ints:
        return self.left_of("network_mbps", "held_network")

    def left_of(self, promised: str, held: str) -> Ints:
        """As `domain.market.dimensions.left_of`; -1 where nothing is promised."""
        of = self.number(promised)
        return np.where(of < 0, -1, np.maximum(0, of - self.number(held)))

    def _cloud_quota(self) -> Bools:
        jobs = self.number("cloud_jobs")
        met: Bools = (jobs < 0) | (jobs >= self.need.gpu_count)
        return met

    def _capabilities(self) -> Bools:
        words = self.need.constraints.capabilities or ()
        met = ~self.none
        for word in words:
            met &= self.having("capability", word)
        return met

    def _substrate(self) -> Bools:
        return self.having("substrate", self.need.constraints.substrate)

    def _workload(self) -> Bools:
        return ~self.having("refused", self.need.constraints.workload_class)

    def _provisional(self) -> Bools:
        return self.number("reputation") >= 0

    def _reputation(self) -> Ints:
        known = self.number("reputation")
        return np.where(known < 0, PPM, known)

    def _lists(self) -> Bools:
        """Few accounts have lists: each is asked once, not each row."""
        dictionary, need = self.columns.dictionaries["account"], self.need
        out = [w for w in need.denied if w is not None]
        parties = [one for one in (need.account_id, need.client_id) if one is not None]
        for account_id, (allowed, denied) in self.columns.lists.items():
            if not all(admits(allowed, denied, one) for one in parties):
                out.append(account_id)
        met = ~np.isin(self.codes("account"), dictionary.known(out)) if out else ~self.none
        if need.allowed:
            met &= np.isin(self.codes("account"), dictionary.known(need.allowed))
        return met

    def _attributes(self) -> Bools:
        met = ~self.none
        for wanted in self.need.constraints.attributes or ():
            rows = [
                row
                for (value, signer), holders in self.columns.stated.get(wanted.name, {}).items()
                if wanted.value in (None, value)
                and (wanted.signers is None or signer in wanted.signers)
                for row, expires_us in holders.items()
                if expires_us > self.need.at_us
            ]
            stated = np.zeros(self.rows, np.bool_)
            stated[rows] = True
            met &= stated
        return met

    def _interruptible(self) -> Bools:
        return self.flag("interruptible")

    def _maintenance(self) -> Bools:
        met, need = ~self.none, self.need
        ends_us = max(need.until_us, need.at_us + 1)
        for row, windows in self.columns.windows.items():
            met[row] = not any(f < ends_us and u > need.at_us for f, u in windows)
        return met

    def _available(self) -> Ints:
        return self.number("available_until")

    def _usage_fee(self) -> Bools:
        return (self.fee >= 0) & (self.price >= self.fee)

    def _price(self) -> Ints:
        return self.price

    _budget = _price

    def _funds(self) -> Bools:
        met = ~self.none
        bounds = dict(self.need.price_max_funds or ())
        words = self.columns.dictionaries["settlement"].words
        by_code = np.array([bounds.get(word or "", -1) for word in words], np.int64)
        foreign = by_code.take(self.codes("settlement"))
        met &= self.price <= np.where(self.own, bounds.get("cash", -1), foreign)
        return met

    # --- counting ----------------------------------------------------------------------------

    def count(self, mask: Bools) -> int:
        """Different nodes: a node with several rows counts once."""
        if self._all_alone:
            return int(np.count_nonzero(mask))
        alone = self.flag("stands_alone")
        shared = self.codes("node")[mask & ~alone]
        return int(np.count_nonzero(mask & alone)) + len(np.unique(shared))

    @cached_property
    def _all_alone(self) -> bool:
        return bool((self.flag("stands_alone") | ~self.there).all())

    # --- the answer --------------------------------------------------------------------------

    @cached_property
    def asked(self) -> list[tuple[Dimension, Bools]]:
        need = self.need
        return [(d, self.mask(d)) for d in DIMENSIONS if d.required(need) is not None]

    def answer(self, limit: int) -> Answer:
        left = self.there.copy()
        nodes = before = self.count(left)
        told = []
        for dimension, mask in self.asked:
            offered = self.best_told(dimension, left, before)
            left &= mask
            now = self.count(left)
            wanted = required_told(dimension, self.need)
            told.append(Narrowed(dimension.name, wanted, offered, now, before - now))
            before = now
        found = np.flatnonzero(left)
        if len(found):
            best_rows = self.best(found, limit)
            return Answer(
                self.nodes(best_rows.tolist()), len(found), Explanation(nodes, tuple(told))
            )
        eased = in_order(self.relaxations())
        explained = Explanation(nodes, tuple(told), eased, self.impossible())
        return Answer((), 0, explained)

    def nodes(self, rows: list[int]) -> tuple[OfferedNode, ...]:
        """The rows with what they cost this renter."""
        found = []
        for row, node in zip(rows, self.columns.nodes(rows), strict=True):
            price, fee = int(self.price[row]), int(self.fee[row])
            is_priced = fee >= 0 and price >= fee
            if (node.price, node.is_priced) != (price, is_priced):
                node = replace(node, price=price, is_priced=is_priced)
            found.append(node)
        return tuple(found)

    def best_told(self, dimension: Dimension, left: Bools, nodes: int) -> str | None:
        name = dimension.name
        if name == "available" or not nodes:
            return None
        values = self.offered(name)
        if FEW_ROWS * nodes < self.rows:
            rows = np.flatnonzero(left)
            values, left = values[rows], np.ones(len(rows), np.bool_)
        if name in _WORD_OF:
            return self.commonest(name, np.where(left, values, 0))[0]
        if dimension.order == ONE:
            return value_told(dimension, bool((values & left).any()))
        # An unknown age is no age: it is larger than any that is told.
        inside = left & (values < NEVER_US) if name == "spec_age" else left
        if dimension.order == MORE:
            best = int(np.where(inside, values, -1).max())
            return None if best < 0 else value_told(dimension, best)
        least = int(np.where(inside, values, NEVER_US).min())
        return None if least == NEVER_US else value_told(dimension, least)

    def commonest(self, name: str, codes: NDArray[np.int32]) -> tuple[str | None, int]:
        """The word that most rows have, and its code; None where no row has one."""
        counts = np.bincount(codes)
        if len(counts):
            counts[0] = 0
        if not counts.any():
            return None, 0
        words = self.columns.dictionaries[_WORD_OF[name]].words
        most = np.flatnonzero(counts == counts.max()).tolist()
        code = min(most, key=lambda one: words[one] or "")
        return words[code], code

    def impossible(self) -> str | None:
        left = self.there & ~self.retired
        if not left.any():
            return None  # nobody is here yet
        for name, mask in self.masks_of_lasting():
            left = left & mask
            if not left.any():
                return name
        return None

    @cached_property
    def retired(self) -> Bools:
        return self.among("phase", ("retired",))

    def masks_of_lasting(self) -> Iterable[tuple[str, Bools]]:
        for name in LASTING:
            if BY_NAME[name].required(self.need) is not None:
                yield name, self.mask(BY_NAME[name])

    # --- room for several --------------------------------------------------------------------

    def shortage(self, leases: int) -> Shortage:
        parts = PPM // max(self.need.share_ppm, self.need.mem_ppm)
        each = self.number("device_count") * parts // self.need.gpu_count
        each = self._as_promised(each)
        masks = dict(self.masks_of_lasting())
        lasting = self._first_short(masks, self.there & ~self.retired, each, leases)
        if lasting is not None and self.there.any():
            return Shortage(lasting[0], self.told(lasting[0]), lasting[1], True)
        asked = {one.name: mask for one, mask in self.asked if one.name not in HELD}
        short = self._first_short(asked, self.there, each, leases)
        name, at_most = short or (ROOM, int(each[self._met(asked)].sum()))
        return Shortage(name, self.told(name), at_most, False)

    def _as_promised(self, each: Ints) -> Ints:
        """How many leases the disk and the network of each row are promised for, at most."""
        asked = self.need.constraints
        for wanted, name in (
            (asked.storage_gib, "storage_gib"),
            (asked.network_mbps, "network_mbps"),
        ):
            if wanted:
                each = np.minimum(each, np.maximum(0, self.number(name)) // wanted)
        return each

    @staticmethod
    def _first_short(
        masks: Mapping[str, Bools], left: Bools, each: Ints, leases: int
    ) -> tuple[str, int] | None:
        for name, mask in masks.items():
            left = left & mask
            room = int(each[left].sum())
            if room < leases:
                return name, room
        return None

    def _met(self, masks: Mapping[str, Bools]) -> Bools:
        left = self.there.copy()
        for mask in masks.values():
            left &= mask
        return left

    def told(self, name: str) -> str:
        return required_told(BY_NAME[name], self.need)

    # --- ranking -----------------------------------------------------------------------------

    def best(self, rows: Ints, limit: int) -> Ints:
        """The `limit` best rows, in no order: key by key, only ties look at the next key."""
        sure: list[Ints] = []
        ranked = self.having("ranked", self.need.constraints.workload_class)
        money: list[Callable[[Ints], Values]] = [lambda r: self.price[r], self.minus_score]
        if rule_of(self.need) == RULES["best_score"]:
            money.reverse()
        keys: tuple[Callable[[Ints], Values], ...] = (
            lambda r: (~self.own[r]).astype(np.int64) * 2 + ranked[r],
            *money,
            self.stranded,
            lambda r: self.number("served")[r],
            lambda r: self.number("place")[r],
        )
        for key in keys:
            if len(rows) <= limit:
                break
            values = key(rows)
            bound = np.partition(values, limit - 1)[limit - 1]
            below = rows[values < bound]
            sure.append(below)
            limit -= len(below)
            rows = rows[values == bound]
        return np.concatenate([*sure, rows[:limit]])

    def minus_score(self, rows: Ints) -> Ints:
        """As `domain.market.matching.score_of`, negative: more is better. 64 bits hold every
        product.
        """
        score = np.zeros(len(rows), np.int64)
        for name, weight in weights_of(self.need.constraints.weights or NO_WEIGHTS).items():
            if weight:
                score += weight * self.factor(name, rows)
        return -(score // PPM)

    def factor(self, name: str, rows: Ints) -> Ints:
        """As `domain.market.matching.factors_of`."""
        need, asked = self.need, self.need.constraints
        count = self.number("device_count")[rows]
        if name == "spec_fit":
            offered = np.maximum(1, self.number("memory_mib")[rows] * need.mem_ppm // PPM)
            memory = asked.memory_mib * PPM // offered if asked.memory_mib else PPM
            fit: Ints = (memory + need.gpu_count * PPM // count) // 2
            return fit
        if name == "reputation":
            known = self.number("reputation")[rows]
            return np.where(known < 0, PROVISIONAL_PPM, known)
        if name == "locality":
            return self.locality(rows)
        if name == "free_peers":
            free, devices = self.columns.peers(rows)
            return (self.fitting[rows] - need.gpu_count + free) * PPM // (count + devices)
        if name == "storage":
            storage = self.number("storage_gib")[rows]
            taken = self.number("held_storage")[rows] + (asked.storage_gib or 0)
            head = np.maximum(0, storage - taken) * PPM // np.maximum(1, storage)
            return np.where(storage > 0, head, 0)
        cap = need.price_max
        left: Ints = (cap - self.price[rows]) * PPM // max(1, cap)
        return left if cap else np.zeros(len(rows), np.int64)

    def locality(self, rows: Ints) -> Ints:
        found = np.zeros(len(rows), np.int64)
        for one in self.need.near:
            there = self.among("region", one.regions)[rows]
            same = self.among("provider", one.providers)[rows]
            found += np.where(there, PPM, np.where(same, PPM // 2, 0))
        return found // max(1, len(self.need.near))

    def stranded(self, rows: Ints) -> Ints:
        """What is left over on the fullest devices that fit: 0 where whole ones are asked for."""
        need = self.need
        if need.share_ppm == PPM:
            return np.zeros(len(rows), np.int64)
        fits = self.device_fits(need, rows)
        free = np.where(fits, self.columns.share[rows], np.int32(2 * PPM))
        if need.gpu_count == 1:
            least: Ints = free.min(axis=1).astype(np.int64)
            return least - need.share_ppm
        free.sort(axis=1)
        kept: Ints = free[:, : need.gpu_count].sum(axis=1, dtype=np.int64)
        kept -= need.gpu_count * need.share_ppm
        return kept

    # --- which demand to ease ----------------------------------------------------------------

    @cached_property
    def refusals(self) -> NDArray[np.uint8]:
        """How many demands each row fails; rows that are gone fail one more than there are."""
        failed = np.where(self.there, np.uint8(0), np.uint8(len(DIMENSIONS) + 1))
        for _, mask in self.asked:
            failed += ~mask
        return failed

    def refused_only_by(self, names: Iterable[str]) -> Ints:
        """The rows that meet every demand but these."""
        by_name = {dimension.name: mask for dimension, mask in self.asked}
        others = self.refusals.copy()
        for name in names:
            if name in by_name:
                others -= ~by_name[name]
        return np.flatnonzero(others == 0)

    def relaxations(self) -> Iterable[Relaxation]:
        one_off = np.flatnonzero(self.refusals == 1)
        masks = {dimension.name: mask for dimension, mask in self.asked}
        for dimension in PLAIN:
            if dimension.name in masks:
                rest = one_off[~masks[dimension.name][one_off]]
                if dimension.name == "interruptible":
                    classes = capacity_classes_if_not_paused(self.need)
                    rest = rest[self.among(_WORD_OF["capacity"], classes)[rest]]
                if len(rest):
                    yield from self._eased(dimension, rest)
        eases: dict[str, Callable[[Ints], Iterable[Relaxation]]] = {
            "gpu_count": self._fewer,
            "share_ppm": self._smaller,
            "mode": self._otherwise,
            "mig_profile": self._profile,
            "term_seconds": self._shorter,
        }
        for field, ease in eases.items():
            rest = self.refused_only_by(TOGETHER[field])
            if len(rest):
                yield from ease(rest)

    def count_rows(self, rows: Ints) -> int:
        return len(rows) if self._all_alone else len(np.unique(self.codes("node")[rows]))

    def _eased(self, dimension: Dimension, rest: Ints) -> Iterable[Relaxation]:
        need, name, field = self.need, dimension.name, dimension.field
        assert field is not None
        wanted, asked = dimension.required(need), required_told(dimension, need)
        values = self.offered(name)[rest]
        if name in _WORD_OF:
            word, code = self.commonest_node(name, rest)
            if word is not None:
                nodes = self.count_rows(rest[values == code])
                yield Relaxation(field, asked, word, nodes, PPM)
        elif dimension.order == ONE:
            yield Relaxation(field, asked, ANYTHING, self.count_rows(rest), PPM)
        else:
            if name in _MAY_BE_UNKNOWN:
                rest, values = rest[values >= 0], values[values >= 0]
            if not len(rest):
                return
            best = int(values.max() if dimension.order == MORE else values.min())
            if name != "memory" or best > 0:
                nodes = self.count_rows(rest[values == best])
                offered = value_told(dimension, best)
                yield Relaxation(field, asked, offered, nodes, distance(wanted, best))

    def commonest_node(self, name: str, rest: Ints) -> tuple[str | None, int]:
        """The word that most nodes have: a node with several rows counts once for each word."""
        codes = self.codes(_WORD_OF[name])[rest]
        if not self._all_alone:
            pairs = np.unique(np.stack([codes, self.codes("node")[rest]]), axis=1)
            codes = pairs[0]
        return self.commonest(name, codes)

    def _number(self, field: str, asked: int, values: Ints, rest: Ints) -> Iterable[Relaxation]:
        """`values` are those of the rows `rest`; more is better, and 0 is none."""
        best = int(values.max())
        if best > 0:
            nodes = self.count_rows(rest[values == best])
            yield Relaxation(field, str(asked), str(best), nodes, distance(asked, best))

    def _fewer(self, rest: Ints) -> Iterable[Relaxation]:
        yield from self._number("gpu_count", self.need.gpu_count, self.fitting[rest], rest)

    def _smaller(self, rest: Ints) -> Iterable[Relaxation]:
        mode = shared_mode(self.need)
        if mode is None:
            return
        rest = rest[self.takes_mode(mode)[rest]]
        if len(rest):
            room = self._room(rest, mode)
            yield from self._number("share_ppm", self.need.share_ppm, room, rest)

    def _room(self, rows: Ints, mode: str) -> Ints:
        """As `domain.market.explanation.room_of`."""
        columns, need = self.columns, self.need
        together = need.share_ppm == need.mem_ppm
        held = columns.mode[rows]
        room = columns.least[rows] if together else columns.share[rows]
        able = columns.divisible[rows] & ((held == 0) | (held == MODE_CODES[mode]))
        if not together:
            able &= columns.mem[rows] >= need.mem_ppm
        room[~able] = 0
        width = room.shape[1]
        if need.gpu_count > width:
            return np.zeros(len(rows), np.int64)
        if need.gpu_count == 1:
            kth = room.max(axis=1)
        else:
            kth = np.partition(room, width - need.gpu_count, axis=1)[:, width - need.gpu_count]
        best: Ints = np.minimum(kth.astype(np.int64), need.share_ppm - 1)
        if mode == "mps":
            best -= best % MPS_STEP_PPM
        asked = need.constraints.memory_mib
        if together and asked:
            best[self.number("memory_mib")[rows] * best // PPM < asked] = 0
        return best

    def _otherwise(self, rest: Ints) -> Iterable[Relaxation]:
        for mode in other_modes(self.need):
            fits = self.device_fits(with_mode(self.need, mode), rest)
            able = rest[(self.counted(fits) >= self.need.gpu_count) & self.takes_mode(mode)[rest]]
            if len(able):
                yield Relaxation("mode", self.need.mode, mode, self.count_rows(able), PPM)

    def _profile(self, rest: Ints) -> Iterable[Relaxation]:
        if self.need.mode != MIG_MODE:
            return
        held = self.columns.mode[rest]
        able_devices = (held == 0) | (held == MODE_CODES[MIG_MODE])
        if self.need.share_ppm < PPM:
            able_devices &= self.columns.divisible[rest]
        bits = np.where(able_devices, self.columns.profiles[rest], np.uint64(0))
        asked = self.need.constraints.mig_profile or ""
        for profile, code in sorted(
            (word, code) for word, code in self.columns.profile_bits.codes.items() if word
        ):
            fits = (bits & np.uint64(1 << code)) != 0
            able = rest[self.counted(fits) >= self.need.gpu_count]
            if len(able) and profile != asked:
                yield Relaxation("mig_profile", asked, profile, self.count_rows(able), PPM)

    def _shorter(self, rest: Ints) -> Iterable[Relaxation]:
        need = self.need
        if not need.is_fixed_term:
            return
        ends = self.number("available_until").copy()
        for row, windows in self.columns.windows.items():
            starts = [from_us for from_us, until_us in windows if until_us > need.at_us]
            ends[row] = min([int(ends[row]), *starts])
        seconds = (int(ends[rest].max()) - need.at_us) // SECOND_US
        asked = (need.until_us - need.at_us) // SECOND_US
        if seconds > 0:
            able = rest[ends[rest] == ends[rest].max()]
            yield Relaxation(
                "term_seconds",
                str(asked),
                str(seconds),
                self.count_rows(able),
                distance(asked, seconds),
            )


assert len(DIMENSIONS) < 255, "refusals of a row are counted in one byte"
