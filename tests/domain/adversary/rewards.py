"""What epochs count of the log, kept in memory: the rules of `projections/epochs/`, for a search
that cannot wait for a database. What a settlement pays is the domain's own `settle`.

It knows charges, adjustments and burns. Parties of the coalition hide that they are one, so an
account is related to itself alone (`domain/trust/related.py`), as a renter is that owns a part of
the node: that is the worst case. Contested weights (an open dispute) count here in full. Attested
time is what a run says: which reports prove it is `projections/epochs/availability.py`'s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from domain.chain.burn import BurnConfirmed, BurnIntended
from domain.duration import DAY_US
from domain.epochs.emission import scheduled
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import paid_tier
from domain.epochs.settlement import (
    Attested,
    Cut,
    NodeCut,
    Openings,
    Settlement,
    Use,
    availability_parts,
    pools_of,
    settle,
)
from domain.epochs.taken_back import owed_after, set_off
from domain.funds.card_money import CardMoneyMoved
from domain.funds.debt import DebtRepaid, DebtWrittenOff
from domain.funds.deposit import CreditsPurchaseConfirmed
from domain.income.adjustment import BURN_DUE, AdjustmentBooked, Unburned, UnburnedCharge
from domain.lease.lease import UsageAccrued
from domain.lease.reserved_term import TermEndedEarly
from domain.leasing.other_resources import ResourceAccrued
from domain.money import PPM
from domain.prices.token_burn import TOKEN_UNITS
from domain.storage.volume import VolumeCharged
from domain.trust.related import any_related
from projections.epochs.epochs import _at_average
from tests.domain.adversary.outsiders import require_fair

POOL = 10**17
"""TOKEN units of an epoch: more than any cap, so that only caps bind."""
EPOCH_US = 7 * DAY_US


@dataclass(slots=True)
class Lot:
    """Credits to be burned of a charge; `spent`: see `projections/epochs/burning.py`."""

    position: int
    payer: str  # empty: final money
    units: int
    spent: int = 0
    ripe: int | None = None
    burn_id: int | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """What one source paid of a charge, and what of it was to be burned. No node: no weight."""

    node: str
    source: str
    payer: str
    burned: int
    gpu_us: int
    charge: int

    def to(self, payers: Iterable[str], payees: Iterable[str]) -> Counted:
        """Without the node where one who pays is one who is paid."""
        is_own = any_related(payers, payees, {})
        return replace(self, node="", gpu_us=0) if is_own else self

    def lost(self, what: int, returned: int) -> int:
        return what * returned // self.charge


def _paid(fact: UsageAccrued | TermEndedEarly | ResourceAccrued) -> dict[tuple[str, str], int]:
    """(source, payer) -> units that were drawn for the charge itself."""
    paid: dict[tuple[str, str], int] = defaultdict(int)
    for part in fact.drawn:
        if part.purpose is None:
            paid[part.source, part.account_id or fact.account_id] += part.amount.units
    return paid


@dataclass(frozen=True, slots=True)
class Sealed:
    """What an epoch paid. `worth`: micro-credits by account, TOKEN at the prices at which the
    network burned for their node; those for attested time at the present price.
    """

    settlement: Settlement
    worth: dict[str, int]


@dataclass
class Rewards:
    """Fed fact by fact, in the order of the log. `outside`: of the weights, what accounts of
    `outsiders` paid for. `price`: the market's of a TOKEN now, in micro-credits.
    """

    owner_of: dict[str, str]
    outsiders: frozenset[str] = frozenset()
    price: int = 0
    epoch: int = 1
    carries: tuple[int, int] = (0, 0)  # of the compute and the availability pool
    attested: dict[str, Attested] = field(default_factory=dict)  # by device, in this epoch
    node_of: dict[str, str] = field(default_factory=dict)  # of an attested device
    outside: dict[tuple[int, str, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0])
    )
    burned_at: dict[tuple[int, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0])
    )  # (epoch, node) -> TOKEN that the network burned, what they cost
    counted: dict[int, list[Counted]] = field(default_factory=dict)
    lots: list[Lot] = field(default_factory=list)
    returned: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    backing: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    settled: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    spent: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    burns: list[BurnIntended] = field(default_factory=list)
    weights: dict[tuple[int, str, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0])
    )  # (epoch, node, source) -> burned, GPU time
    network: dict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))
    burnt: dict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))
    bought: dict[str, dict[int, tuple[int, int]]] = field(default_factory=lambda: defaultdict(dict))
    used: dict[str, dict[int, dict[str, int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    )

    # --- what the log tells ---------------------------------------------------------------------

    def tell(self, position: int, fact: Any) -> None:
        match fact:
            case UsageAccrued():
                self._charged(position, fact, fact.gpu_us_new)
            case ResourceAccrued():
                self._charged(position, fact, 0)
            case TermEndedEarly():
                self._weightless(position, fact)
            case VolumeCharged():
                self._stored(position, fact)
            case AdjustmentBooked() if fact.late is not None:
                self._late(position, fact)
            case AdjustmentBooked():
                self._corrected(position, fact)
            case BurnConfirmed():
                self._burned(fact)
            case CreditsPurchaseConfirmed():
                self._bought(fact)
            case CardMoneyMoved():
                new = fact.settled.units - self.settled[fact.account_id]
                self.settled[fact.account_id] = fact.settled.units
                self._backed(position, fact.account_id, new)
            case DebtRepaid():
                paid = sum(one.amount.units for one in fact.paid if one.source != "card")
                self._backed(position, fact.account_id, paid)
            case DebtWrittenOff():
                self._backed(position, fact.account_id, fact.amount.units)

    def _charged(self, position: int, fact: UsageAccrued | ResourceAccrued, time_us: int) -> None:
        paid = _paid(fact)
        charge, burn = fact.charge_new.units, fact.parts_new.burn
        if not charge:
            return
        is_burned = any(source == "burned" for source, _ in paid)
        payees = {fact.provider_account_id, fact.client_account_id or ""}
        payees |= {owner.account_id for owner in fact.owners}
        rows = []
        for (source, payer), units in paid.items():
            counts = not is_burned or source == "burned"
            burned = burn * units // charge if counts else 0
            gpu_us = time_us * units // charge
            row = Counted(fact.node_id, source, payer, burned, gpu_us, charge)
            rows.append(row.to((fact.account_id, payer), payees))
        self._count(position, rows)
        if not is_burned:
            if isinstance(fact, UsageAccrued) and fact.owed is not None:
                paid["owed", fact.owed.account_id] += fact.owed.amount.units
            self._due(position, burn, paid)

    def _weightless(self, position: int, fact: TermEndedEarly) -> None:
        """What is kept of a term that ends early: no node has weight of it."""
        paid, charge = _paid(fact), fact.kept.units
        rows = [
            Counted("", source, payer, units, 0, charge) for (source, payer), units in paid.items()
        ]
        self._count(position, rows)
        if not any(row.source == "burned" for row in rows):
            self._due(position, fact.parts.burn, paid)

    def _stored(self, position: int, fact: VolumeCharged) -> None:
        """What a volume costs weighs nothing; its part to be burned is due like that of others."""
        paid: dict[tuple[str, str], int] = defaultdict(int)
        for one in fact.drawn:
            paid[one.source, one.account_id] += one.amount.units
        for part in fact.reserve_drawn:
            paid[part.source, part.account_id or fact.account_id] += part.amount.units
        if paid:
            self._due(position, fact.parts_new.burn, paid)

    def _count(self, position: int, rows: list[Counted]) -> None:
        """Of what no node has weight of, burned credits alone count: as used."""
        self.counted[position] = [row for row in rows if row.node or row.source == "burned"]
        for row in self.counted[position]:
            self._move(row, row.burned if row.source == "burned" else 0, row.gpu_us)

    def _late(self, position: int, fact: AdjustmentBooked) -> None:
        """Usage that was charged late, by what paid it."""
        assert fact.late is not None
        charge, lines = fact.late.charge_new.units, fact.lines
        due = -sum(line.units for line in lines if line.account == BURN_DUE)
        retired = -sum(line.units for line in lines if line.account == "world:burned")
        paid: dict[tuple[str, str], int] = defaultdict(int)
        for line in lines:
            if line.units > 0:
                _, payer, source = line.account.split(":")
                paid[source, payer] += line.units
        node = next(one for one, who in self.owner_of.items() if who == fact.provider_account_id)
        payees = {fact.provider_account_id} | {
            line.account.split(":")[1]
            for line in lines
            if line.units < 0 and line.account.endswith(":holdback")
        }
        rows = []
        for (source, payer), units in paid.items():
            if source == "owed":
                continue
            burned = min(units, retired) if source == "burned" else due * units // charge
            gpu_us = fact.late.gpu_us_new * units // charge
            row = Counted(node, source, payer, burned, gpu_us, charge)
            rows.append(row.to((fact.account_id, payer), payees))
        self._count(position, rows)
        self._due(position, due, paid)

    def _due(self, position: int, due: int, paid: dict[tuple[str, str], int]) -> None:
        waiting: dict[str, int] = defaultdict(int)
        for (source, payer), units in paid.items():
            if source in ("card", "owed"):
                waiting[payer] += units
        whole = sum(paid.values())
        final = due
        for payer, units in sorted(waiting.items()):
            self.spent[payer] += units
            lot = Lot(position, payer, due * units // whole, self.spent[payer])
            final -= lot.units
            self.lots.append(lot)
            self._ripen(position, payer)
        if final:
            self.lots.append(Lot(position, "", final, ripe=position))

    def _backed(self, position: int, payer: str, units: int) -> None:
        self.backing[payer] += units
        self._ripen(position, payer)

    def _ripen(self, position: int, payer: str) -> None:
        for lot in self.lots:
            is_waiting = lot.payer == payer and lot.ripe is None
            if is_waiting and lot.spent <= self.backing[payer]:
                lot.ripe = position

    def _bought(self, fact: CreditsPurchaseConfirmed) -> None:
        assert fact.account_id is not None
        tokens, credits = self.bought[fact.account_id].get(self.epoch, (0, 0))
        self.bought[fact.account_id][self.epoch] = (
            tokens + fact.tokens_burned.units,
            credits + fact.credits.units,
        )

    def _corrected(self, position: int, fact: AdjustmentBooked) -> None:
        for line in fact.lines:
            if line.units < 0 and line.account.endswith((":card", ":owed")):
                self._backed(position, line.account.split(":")[1], -line.units)
        before = self.total_returned(fact.corrects_position)
        unburned = sum(line.units for line in fact.lines if line.account == BURN_DUE)
        self.returned[fact.corrects_position].append((fact.returned, unburned))
        after = before + fact.returned
        for row in self.counted.get(fact.corrects_position, ()):
            burn_id = self._burn_of(fact.corrects_position, row)
            is_out = row.source == "burned" or burn_id is not None
            burned = row.lost(row.burned, before) - row.lost(row.burned, after) if is_out else 0
            gpu_us = row.lost(row.gpu_us, before) - row.lost(row.gpu_us, after)
            self._move(row, burned, gpu_us, burn_id)

    def total_returned(self, charge: int) -> int:
        return sum(units for units, _ in self.returned[charge])

    def _lot(self, charge: int, row: Counted) -> Lot | None:
        payer = row.payer if row.source == "card" else ""
        found = [lot for lot in self.lots if lot.position == charge and lot.payer == payer]
        return found[0] if found else None

    def _burn_of(self, charge: int, row: Counted) -> int | None:
        lot = None if row.source == "burned" else self._lot(charge, row)
        return None if lot is None else lot.burn_id

    def _burned(self, fact: BurnConfirmed) -> None:
        intended = self.burns[fact.burn_id - 1]
        covered = [lot for lot in self.lots if lot.burn_id is None and self._covers(intended, lot)]
        for lot in covered:
            lot.burn_id = fact.burn_id
        for lot in covered:
            for row in self.counted.get(lot.position, ()):
                if row.source != "burned" and row.burned and self._lot(lot.position, row) is lot:
                    lost = row.lost(row.burned, self.total_returned(lot.position))
                    self._move(row, row.burned - lost, 0, fact.burn_id)

    def _covers(self, burn: BurnIntended, lot: Lot) -> bool:
        return lot.ripe is not None and burn.first_position <= lot.ripe <= burn.last_position

    def _move(self, row: Counted, burned: int, gpu_us: int, burn_id: int | None = None) -> None:
        counts = [self.weights]
        if row.payer in self.outsiders:
            counts.append(self.outside)
        for weights in counts:
            weight = weights[self.epoch, row.node, row.source]
            weight[0] += burned
            weight[1] += gpu_us
        if row.source == "burned":
            self.used[row.payer][self.epoch][row.node] += burned
        elif row.source == "cash" and burn_id is not None and burned:
            burn = self.burns[burn_id - 1]
            charged = sum(lot.units for lot in self.lots if lot.burn_id == burn_id)
            whole, before = max(burn.credits.units, charged), self.burnt[burn_id, row.node]
            tokens = burn.tokens.units
            now = before + burned
            new = tokens * now // whole - tokens * before // whole
            self.network[self.epoch, row.node] += new
            self.burnt[burn_id, row.node] = now
            if new > 0:
                cost = self.burned_at[self.epoch, row.node]
                cost[0] += new
                cost[1] += -(-new * self.price // TOKEN_UNITS)

    # --- what is asked of it ----------------------------------------------------------------------

    def unburned(self, charges: list[int]) -> Unburned:
        """As `read_unburned`: what no burn covers of these charges."""
        found = []
        for charge in charges:
            left = sum(unit.units for unit in self.lots if unit.position == charge)
            left -= sum(units for _, units in self.returned[charge])
            out = sum(
                lot.units for lot in self.lots if lot.position == charge and lot.burn_id is not None
            )
            here = max(0, left - out)
            found.append(UnburnedCharge(charge, here, len(self.returned[charge])))
        return Unburned(len(self.burns), tuple(found))

    def ripe(self, first: int) -> list[tuple[int, int]]:
        """(position, credits ripe from the first position up to there) of what no burn covers."""
        units: dict[int, int] = defaultdict(int)
        for charge in sorted({lot.position for lot in self.lots}):
            given = sum(back for _, back in self.returned[charge])
            lots = [lot for lot in self.lots if lot.position == charge]
            for lot in sorted(lots, key=lambda one: (one.ripe is None, one.ripe), reverse=True):
                off = min(lot.units, given)
                given -= off
                if lot.ripe is not None and lot.ripe >= first and lot.burn_id is None:
                    units[lot.ripe] += lot.units - off
        so_far, found = 0, []
        for position, one in sorted(units.items()):
            so_far += one
            found.append((position, so_far))
        return found

    def told(self) -> tuple[dict[tuple[str, str], tuple[int, int]], dict[str, tuple[int, int]]]:
        """What the epoch so far counts: burned and GPU time by node and source, TOKEN by node."""
        uses = {
            (node, use.source): (use.burned, use.gpu_us)
            for node in self.owner_of
            for use in self._uses(node, self.weights)
        }
        return uses, {node: units for node, units in self._tokens().items() if any(units)}

    def attest(self, node: str, device: str, tier: int, gpu_us: int) -> None:
        """A device was there for so long in this epoch; it can be on one node only."""
        if device not in self.attested:
            self.node_of[device] = node
            self.attested[device] = Attested("datacenter", tier, gpu_us, EPOCH_US)

    def allowed(self, policy: PolicyPublished, members: Collection[str]) -> int:
        """TOKEN units that the policy pays at most for the attested time of these accounts: their
        part of the time that counts of each pool, whichever nodes they show it by; rounded up.
        """
        terms = policy.rewards
        assert terms is not None
        units = min(scheduled(policy.segments, self.epoch), POOL * 1_000)
        low, high = availability_parts(pools_of(units, policy)[1], self.carries[1], terms)
        found = 0
        for pool, tier in ((low, paid_tier(terms)), (high, terms.availability_min_tier)):
            times = {
                device: one.gpu_us
                for device, one in self.attested.items()
                if one.tier >= tier
                and one.gpu_us * PPM >= terms.availability_min_uptime_ppm * one.promised_us
            }
            whole = sum(times.values())
            ours = sum(us for at, us in times.items() if self.owner_of[self.node_of[at]] in members)
            found += -(-pool * ours // whole) if whole else 0
        return found

    def seal(self, policy: PolicyPublished, members: Collection[str]) -> Sealed:
        """The end of the epoch: what it pays; the next one is open afterwards. Raises Fell."""
        tokens, spent = self._tokens(), self._bought_for()
        nodes = [
            NodeCut(
                node,
                owner,
                tuple(self._uses(node, self.weights)),
                sum(tokens.get(node, (0, 0))),
                None,
                tuple(one for at, one in self.attested.items() if self.node_of[at] == node),
                tokens.get(node, (0, 0))[1],
            )
            for node, owner in self.owner_of.items()
        ]
        compute, availability = self.carries
        opening = Openings(
            unissued=POOL * 1_000, compute_carry=compute, availability_carry=availability
        )
        cut = Cut(
            epoch=self.epoch, cut_position=0, policy=policy, openings=opening, nodes=tuple(nodes)
        )
        settled = settle(cut)
        paid = {node: tuple(self._uses(node, self.outside)) for node in self.owner_of}
        require_fair(settled, members, paid)
        worth: dict[str, int] = defaultdict(int)
        for one in settled.nodes:
            units, cost = self.burned_at[self.epoch, one.node_id]
            bought, paid_for = spent.get(one.node_id, (0, 0))
            assert units + bought or not one.compute, one
            if one.compute:
                worth[one.account_id] += one.compute * (cost + paid_for) // (units + bought)
            worth[one.account_id] += one.availability * self.price // TOKEN_UNITS
        self.carries = (settled.compute_carry, settled.availability_carry)
        self.attested, self.node_of = {}, {}
        self.epoch += 1
        return Sealed(settled, worth)

    def _bought_for(self) -> dict[str, tuple[int, int]]:
        """Of this epoch by node: TOKEN that renters burned for their use, and those credits."""
        found: dict[str, tuple[int, int]] = {}
        for payer, used in self.used.items():
            plain = {at: dict(nodes) for at, nodes in used.items()}
            for at, node, units in _at_average(self.bought[payer], plain):
                if at == self.epoch and units > 0:
                    before, cost = found.get(node, (0, 0))
                    found[node] = (before + units, cost + max(0, used[at][node]))
        return found

    def _uses(self, node: str, weights: dict[tuple[int, str, str], list[int]]) -> list[Use]:
        found = []
        for source in ("burned", "card", "cash", "earned", "grant"):
            burned = self._set_off(lambda at, one, kind=source: weights[at, one, kind][0], node)
            gpu_us = self._set_off(lambda at, one, kind=source: weights[at, one, kind][1], node)
            if burned or gpu_us:
                found.append(Use(source, burned, gpu_us))
        return found

    def _tokens(self) -> dict[str, tuple[int, int]]:
        bought: dict[tuple[int, str], int] = defaultdict(int)
        for payer, used in self.used.items():
            plain = {at: dict(nodes) for at, nodes in used.items()}
            for at, node, units in _at_average(self.bought[payer], plain):
                bought[at, node] += units
        return {
            node: (
                self._set_off(lambda at, one: self.network[at, one], node),
                self._set_off(lambda at, one: bought[at, one], node),
            )
            for node in self.owner_of
        }

    def _set_off(self, units_of: Any, node: str) -> int:
        """What a node counts with, once what its account owes of earlier epochs is set off."""
        ours = [one for one, who in self.owner_of.items() if who == self.owner_of[node]]
        earlier = (sum(units_of(at, one) for one in ours) for at in range(1, self.epoch))
        now = {one: units_of(self.epoch, one) for one in ours}
        return set_off(now, owed_after(earlier)).counted[node]
