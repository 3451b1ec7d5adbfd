"""The stateful search: a coalition does anything, and never has more than it may keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from domain.duration import DAY_US
from domain.epochs.emission import EmissionSegment
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import NEXT_EPOCH, REWARD_TERMS, TIER_2_MAX_PPM, UNISSUED, Rated
from domain.governance.lint import WEIGHT_LEAST
from domain.money import PPM, credit
from domain.prices.profit_bound import breach_of, multiple_of
from domain.prices.tariff import (
    BUCKETS,
    VOLUME,
    FederatedFees,
    MeterRate,
    SlaClass,
    SlaTier,
    Split,
    SplitShare,
    TariffPublished,
    UsageFee,
)
from domain.prices.token_burn import TOKEN_UNITS
from tests.domain.adversary import by_itself, regions, splitting, standing, together, ways
from tests.domain.adversary.network import HONEST, NODES, OWNERS, PRICE, RENTERS, STRANGER, Network
from tests.domain.adversary.rewards import EPOCH_US, POOL
from tests.domain.adversary.splitting import NEW_ACCOUNTS, NEW_NODES
from tests.domain.adversary.ways import METER
from tests.domain.scenes.epochs import POLICY

CREDIT = 10**6
TOKEN = TOKEN_UNITS
FEDERATED = FederatedFees(credit(1_850_000), credit(2_650_000), "worker")
ROUNDING = 1_000
"""Micro-credits: a thousandth of a credit, for the units that are rounded in a run."""
STEPS = 24


class Gained(AssertionError):
    """The coalition has more than it may keep; by so many micro-credits, under these terms."""


@dataclass(frozen=True)
class Terms:
    """A tariff and a policy that are in force together."""

    tariff: TariffPublished
    policy: PolicyPublished

    @property
    def is_sound(self) -> bool:
        """Whether the bound lets them pass."""
        return breach_of(self.tariff, multiple_of(self.policy.rewards)) is None


@dataclass(frozen=True)
class Pools:
    """What an epoch has to pay, and whom it pays for attested time."""

    units: int = POOL
    availability_ppm: int = 0
    tier_2_ppm: int = 200_000
    cap_per_gpu_hour: int | None = None
    owner_cap: int | None = None
    left_goes_to: str = NEXT_EPOCH


def terms_of(
    shares: dict[str, int],
    residual: str,
    multiple: int | None,
    refund: int = 0,
    base: int = 0,
    pools: Pools = Pools(),
) -> Terms:
    """Shares in ppm in their order, a cap multiple, and what an SLA class refunds of a breach."""
    sla = (SlaClass("sla", (SlaTier(990_000, refund),)),) if refund else ()
    tariff = TariffPublished(
        version=1,
        usage_fees=(UsageFee("datacenter", credit(0)),),
        provider_share_ppm=shares.get("provider", 0),
        burn_share_ppm=0,
        effective_from_us=0,
        by="op",
        at_us=0,
        split=Split(tuple(SplitShare(*one) for one in shares.items()), residual),
        federated=FEDERATED,
        device_fee_per_month=None,
        storage_node_per_hour=None,
        meters=(MeterRate(METER, credit(1), 1), MeterRate(VOLUME, credit(1_000_000), 3_600)),
        sla=sla,
        notice_us=0,
        free_start=None,
    )
    weights = (Rated("burned", PPM), Rated("cash", PPM))
    policy = replace(
        POLICY,
        segments=(EmissionSegment(1, 1_000, 1_000 * pools.units),),
        compute_ppm=PPM - pools.availability_ppm,
        availability_ppm=pools.availability_ppm,
        treasury_ppm=0,
        compute_base=("burned_value", "gpu_time")[base],
        rewards=replace(
            REWARD_TERMS,
            cap_multiple_ppm=multiple,
            source_weights=weights,
            burned_per_gpu_hour=WEIGHT_LEAST if base else None,
            availability_tier_2_ppm=pools.tier_2_ppm,
            availability_cap_per_gpu_hour=pools.cap_per_gpu_hour,
            owner_cap=pools.owner_cap,
            cap_goes_to=pools.left_goes_to,
            zero_weight_goes_to=pools.left_goes_to,
        ),
    )
    return Terms(tariff, policy)


any_pools = st.just(Pools()) | st.builds(
    Pools,
    units=st.sampled_from((2 * TOKEN, 20 * TOKEN)) | st.integers(1, 100 * TOKEN),
    availability_ppm=st.sampled_from((0, 200_000)) | st.integers(0, PPM),
    tier_2_ppm=st.sampled_from((0, 200_000, TIER_2_MAX_PPM)),
    cap_per_gpu_hour=st.none() | st.integers(0, TOKEN),
    owner_cap=st.none() | st.integers(0, 20 * TOKEN),
    left_goes_to=st.sampled_from((NEXT_EPOCH, UNISSUED)),
)
"""More than anybody may have, or so little that whoever burns more takes from others."""


@st.composite
def any_terms(draw: st.DrawFn) -> Terms:
    """Any split, multiple and refund; many of them return too much."""
    order = draw(st.permutations(BUCKETS))
    shares, left = {}, PPM
    for bucket in order[: draw(st.integers(1, 3))]:
        share = draw(st.sampled_from((0, 50_000, 100_000, 350_000, 600_000)) | st.integers(0, left))
        shares[bucket] = min(share, left)
        left -= shares[bucket]
    multiple = draw(st.sampled_from((PPM, 950_000, 500_000)) | st.integers(0, PPM))
    refund = draw(st.sampled_from((0, 0, 100_000, 500_000, PPM)) | st.integers(0, PPM))
    pools = draw(any_pools)
    return terms_of(shares, order[3], multiple, refund, draw(st.integers(0, 1)), pools)


sound_terms = any_terms().filter(lambda terms: terms.is_sound)
accounts = st.sampled_from((*RENTERS, *OWNERS, *NEW_ACCOUNTS))
nodes = st.sampled_from((*NODES, *NEW_NODES))
own_nodes = st.sampled_from((*list(NODES)[:2], *NEW_NODES))
settlements = st.sampled_from(("cash", "cash", "burn"))
money = st.integers(25, 60).map(lambda credits: credits * CREDIT)
index = st.integers(0, 3)
served = st.sampled_from((PPM, PPM, 900_000, 300_000, 0)) | st.integers(1, PPM)


def at(names: Sequence[str], place: int) -> str | None:
    """One of the newest, if there is any."""
    return names[-1 - place % len(names)] if names else None


class Search(RuleBasedStateMachine):
    """Runs of what the coalition does. `bound`: the terms of a subclass, instead of sound ones;
    `under`: its network.
    """

    bound: Terms | None = None
    under: type[Network] = Network

    @initialize(terms=sound_terms, has_cash=st.lists(st.booleans(), min_size=4, max_size=4))
    def begin(self, terms: Terms, has_cash: list[bool]) -> None:
        terms = self.bound or terms
        self.found(terms, self.under.under(terms.tariff, terms.policy), has_cash)

    def found(self, terms: Terms, network: Network, has_cash: list[bool]) -> None:
        """Some have cash, all have bought credits; who has no cash spends what else it gets."""
        self.terms, self.network = terms, network
        for account, has in zip((*RENTERS, *OWNERS), has_cash, strict=True):
            self.network.buy(account, 200 * CREDIT)
            (self.network.deposit if has else self.network.card)(account, 200 * CREDIT)

    @rule(account=accounts, units=money, kind=st.sampled_from(("cash", "burned", "card")))
    def pay_in(self, account: str, units: int, kind: str) -> None:
        account = self.network.known_account(account)
        do: dict[str, Any] = {"cash": self.network.deposit, "burned": self.network.buy}
        do.get(kind, self.network.card)(account, units)

    @rule(place=index, comes_back=st.booleans())
    def end_card(self, place: int, comes_back: bool) -> None:
        payment = at(self.network.payments, place)
        if payment is not None:
            (self.network.reverse if comes_back else self.network.confirm)(payment)

    @rule(sponsor=accounts | st.just(STRANGER), account=accounts, units=money)
    def promote(self, sponsor: str, account: str, units: int) -> None:
        known = self.network.known_account
        self.network.promote(known(sponsor), known(account), units)

    @rule(
        renter=accounts | st.just(STRANGER),
        node=nodes,
        pay_with=settlements,
        hours=st.lists(served, min_size=1, max_size=4),
        sla=st.booleans(),
        client=st.booleans(),
    )
    def rent(
        self, renter: str, node: str, pay_with: str, hours: list[int], sla: bool, client: bool
    ) -> None:
        network = self.network
        renter, node = network.known_account(renter), network.known_node(node)
        lease = network.lease(renter, node, pay_with, 5, sla=sla, client=client)
        for part in hours if lease is not None else ():
            assert lease is not None
            self.network.meter(lease, part)

    @rule(
        renter=accounts,
        node=own_nodes,
        pay_with=settlements,
        hours=st.lists(served, min_size=1, max_size=4),
        client=st.booleans(),
        last=st.none() | served,
    )
    def wash(
        self,
        renter: str,
        node: str,
        pay_with: str,
        hours: list[int],
        client: bool,
        last: int | None,
    ) -> None:
        """Rents from itself with a promise, and may end it at once."""
        sla, before = pay_with == "cash", len(self.network.leases)
        self.rent(renter, node, pay_with, hours, sla, client)
        if last is not None and len(self.network.leases) > before:
            self.network.close(self.network.leases[-1], "provider", last)

    @rule(
        renter=accounts | st.just(STRANGER),
        node=nodes,
        pay_with=settlements,
        refund_ppm=st.sampled_from((0, 500_000, PPM)) | st.integers(0, PPM),
        hours=st.lists(served, max_size=2),
        client=st.booleans(),
        ends=st.none() | st.sampled_from(("renter", "provider")),
    )
    def reserve_term(
        self,
        renter: str,
        node: str,
        pay_with: str,
        refund_ppm: int,
        hours: list[int],
        client: bool,
        ends: str | None,
    ) -> None:
        """A month, paid beforehand, that one side may give up after some hours."""
        network = self.network
        renter, node = network.known_account(renter), network.known_node(node)
        lease = network.reserve_term(renter, node, pay_with, refund_ppm, client=client)
        if lease is None:
            return
        for part in hours:
            self.network.meter(lease, part)
        if ends is not None:
            self.network.close(lease, ends, PPM)

    @rule(
        node=own_nodes,
        account=accounts | st.just(HONEST),
        share_ppm=st.sampled_from((0, 500_000, PPM)) | st.integers(0, PPM),
    )
    def share(self, node: str, account: str, share_ppm: int) -> None:
        network = self.network
        known = account if account == HONEST else network.known_account(account)
        network.share(network.known_node(node), known, share_ppm)

    @rule(
        renter=accounts,
        depositor=accounts,
        node=nodes,
        credits=st.tuples(money, money),
        leases=st.integers(1, 2),
        hours=st.lists(served, max_size=4),
    )
    def share_escrow(
        self,
        renter: str,
        depositor: str,
        node: str,
        credits: tuple[int, int],
        leases: int,
        hours: list[int],
    ) -> None:
        """Leases that draw on what two accounts put in."""
        known, node = self.network.known_account, self.network.known_node(node)
        renter, depositor = known(renter), known(depositor)
        running = ways.share_escrow(self.network, renter, depositor, node, credits, leases)
        for part in hours:
            for lease in running:
                self.network.meter(lease, part)

    @rule(place=index, account=accounts, units=st.integers(1, 10 * CREDIT))
    def top_up(self, place: int, account: str, units: int) -> None:
        lease = at(self.network.leases, place)
        if lease is not None and self.network.renter_of(lease) in self.network.members:
            ways.top_up(self.network, lease, self.network.known_account(account), units)

    @rule(
        renter=accounts,
        pricing=st.sampled_from(("reverse_auction", "second_price")),
        bids=st.lists(st.tuples(nodes, st.integers(1, PRICE)), min_size=1, max_size=3),
        hours=st.lists(served, max_size=3),
        leaves=st.booleans(),
    )
    def auction(
        self, renter: str, pricing: str, bids: list[tuple[str, int]], hours: list[int], leaves: bool
    ) -> None:
        network = self.network
        renter = network.known_account(renter)
        bids = [(network.known_node(node), price) for node, price in bids]
        lease = ways.auction(network, renter, pricing, bids, leaves=leaves)
        for part in hours if lease is not None else ():
            assert lease is not None
            self.network.meter(lease, part)

    @rule(place=index)
    def return_escrow(self, place: int) -> None:
        job_id = at(self.network.shared, place)
        if job_id is not None:
            ways.return_escrow(self.network, job_id)

    @rule(
        renter=accounts,
        node=nodes,
        pay_with=settlements,
        most=money,
        units=money,
        ends=st.booleans(),
    )
    def rent_metered(
        self, renter: str, node: str, pay_with: str, most: int, units: int, ends: bool
    ) -> None:
        """The renter agreed to pay for its network; the node's owner meters it."""
        renter, node = self.network.known_account(renter), self.network.known_node(node)
        lease = ways.rent_metered(self.network, renter, node, pay_with, most)
        if lease is None:
            return
        ways.meter_bytes(self.network, lease, units)
        if ends:
            self.network.close(lease, "renter", PPM)
            ways.end_meters(self.network, lease)

    @rule(
        renter=accounts | st.just(STRANGER),
        hours=st.integers(1, 4),
        dispute=st.sampled_from((None, "open", "ruled", "timed_out")),
        ends=st.booleans(),
    )
    def rent_disk(self, renter: str, hours: int, dispute: str | None, ends: bool) -> None:
        """Disk of the coalition's region; its last charge is contested, and it is given up."""
        volume = ways.keep_volume(self.network, self.network.known_account(renter), hours)
        if volume is not None and ends:
            ways.delete_volume(self.network, volume)
        before = len(self.network.disputes)
        if volume is not None and dispute is not None:
            self.network.dispute(volume)
        if dispute in ("ruled", "timed_out") and len(self.network.disputes) > before:
            self.network.end_dispute(self.network.disputes[-1], is_ruled=dispute == "ruled")

    @rule(account=st.sampled_from((*OWNERS, *NEW_ACCOUNTS)), comes_back=st.booleans())
    def cash_out(self, account: str, comes_back: bool) -> None:
        self.network.mature()
        paid = ways.cash_out(self.network, self.network.known_account(account))
        if paid is not None and comes_back:
            ways.return_cash_out(self.network, paid)

    @rule(account=st.sampled_from(NEW_ACCOUNTS), units=money)
    def split_account(self, account: str, units: int) -> None:
        """Another account of the same person, with money of its own."""
        if account not in self.network.members:
            splitting.open_account(self.network, account)
            self.network.buy(account, units)
            self.network.deposit(account, units)

    @rule(node=st.sampled_from(NEW_NODES), owner=accounts)
    def split_node(self, node: str, owner: str) -> None:
        splitting.join_node(self.network, node, self.network.known_account(owner))

    @rule(
        renter=accounts | st.just(STRANGER),
        members=st.lists(nodes, min_size=1, max_size=3),
        pay_with=settlements,
        ready=st.integers(0, 3),
        hours=st.lists(served, max_size=3),
    )
    def gang(
        self, renter: str, members: list[str], pay_with: str, ready: int, hours: list[int]
    ) -> None:
        network = self.network
        known = [network.known_node(node) for node in members]
        running = together.gang(network, network.known_account(renter), known, pay_with, ready)
        for part in hours:
            for lease in running:
                network.meter(lease, part)

    @rule(
        owner=accounts,
        renter=accounts | st.just(STRANGER),
        node=own_nodes,
        pay_with=settlements,
        waits=st.integers(1, 2),
        hours=st.lists(served, max_size=3),
    )
    def pool(
        self, owner: str, renter: str, node: str, pay_with: str, waits: int, hours: list[int]
    ) -> None:
        network = self.network
        owner, renter = network.known_account(owner), network.known_account(renter)
        node = network.known_node(node)
        lease = together.pooled(network, owner, renter, node, pay_with, waits)
        for part in hours if lease is not None else ():
            assert lease is not None
            network.meter(lease, part)

    @rule(
        creator=accounts,
        renter=accounts,
        node=nodes,
        kind=st.sampled_from(("inference", "training")),
        pay_with=settlements,
        hours=st.lists(served, max_size=3),
    )
    def federate(
        self, creator: str, renter: str, node: str, kind: str, pay_with: str, hours: list[int]
    ) -> None:
        network = self.network
        creator, renter = network.known_account(creator), network.known_account(renter)
        node = network.known_node(node)
        lease = together.federated(network, creator, renter, node, kind, pay_with)
        for part in hours if lease is not None else ():
            assert lease is not None
            network.meter(lease, part)

    @rule(
        renter=accounts | st.just(STRANGER),
        node=nodes,
        pay_with=settlements,
        bid=st.integers(1, PRICE),
        hours=st.lists(served, max_size=3),
        paused=st.integers(0, 200),
    )
    def rent_interruptible(
        self, renter: str, node: str, pay_with: str, bid: int, hours: list[int], paused: int
    ) -> None:
        network = self.network
        renter, node = network.known_account(renter), network.known_node(node)
        lease = standing.rent_interruptible(network, renter, node, pay_with, bid)
        if lease is None:
            return
        if paused:
            standing.pause(network, lease, paused)
        for part in hours:
            network.meter(lease, part)

    @rule(
        account=accounts,
        credits=st.integers(25, 60),
        threshold=st.sampled_from((30 * CREDIT, 1_000 * CREDIT)),
        comes=st.booleans(),
    )
    def top_up_by_itself(self, account: str, credits: int, threshold: int, comes: bool) -> None:
        known = self.network.known_account(account)
        by_itself.top_up_by_itself(self.network, known, credits * CREDIT, threshold, comes=comes)

    @rule(renter=accounts, node=nodes, pay_with=settlements, hours=st.lists(served, max_size=4))
    def rent_and_refill(self, renter: str, node: str, pay_with: str, hours: list[int]) -> None:
        """A lease of one hour that is kept going by its timer."""
        network = self.network
        renter, node = network.known_account(renter), network.known_node(node)
        asked = network.job_of(renter, client=True)
        lease = network.run(asked, node, pay_with, PRICE, refill=True)
        for part in hours if lease is not None else ():
            assert lease is not None
            by_itself.keep_going(network, lease)
            network.meter(lease, part)

    @rule(
        base=st.sampled_from((0, 10 * CREDIT)) | st.integers(0, 1_000 * CREDIT),
        participation_ppm=st.sampled_from((0, 200_000, PPM)),
        is_shared=st.sampled_from((True, True, False)),
    )
    def set_region_terms(self, base: int, participation_ppm: int, is_shared: bool) -> None:
        regions.set_terms(self.network, base, participation_ppm, is_shared=is_shared)

    @rule(
        renter=accounts | st.just(STRANGER),
        hours=st.lists(served, max_size=2),
        times=st.dictionaries(nodes, st.integers(1, DAY_US), max_size=3),
    )
    def share_region(self, renter: str, hours: list[int], times: dict[str, int]) -> None:
        """A node of the region is leased; what it earned is gathered as it matures; the days that
        are over are shared out.
        """
        if hours:
            self.rent(renter, next(iter(NODES)), "cash", hours, sla=False, client=False)
        self.network.mature()
        self.network.now_us += DAY_US
        known = self.network.known_node
        regions.share_days(self.network, {known(node): us for node, us in times.items()})

    @rule(
        node=nodes,
        devices=st.integers(1, 6),
        tier=st.integers(1, 4),
        part_ppm=st.sampled_from((PPM, 500_000)) | st.integers(0, PPM),
    )
    def attest(self, node: str, devices: int, tier: int, part_ppm: int) -> None:
        """Devices of a node were there for a part of this epoch."""
        known = self.network.known_node(node)
        for number in range(devices):
            device = f"GPU-{known}-{number}"
            self.network.rewards.attest(known, device, tier, EPOCH_US * part_ppm // PPM)

    @rule(price=st.sampled_from((1_000_000, 4_000_000)) | st.integers(500_000, 8_000_000))
    def move_price(self, price: int) -> None:
        """The market's price of a TOKEN: of what is burned from now on."""
        self.network.rewards.price = price

    @rule(place=index, part=served)
    def meter(self, place: int, part: int) -> None:
        lease = at(self.network.leases, place)
        if lease is not None:
            self.network.meter(lease, part)

    @rule(place=index, party=st.sampled_from(("renter", "provider")), part=served)
    def close(self, place: int, party: str, part: int) -> None:
        lease = at(self.network.leases, place)
        if lease is not None:
            self.network.close(lease, party, part)

    @rule(place=index)
    def claim_sla(self, place: int) -> None:
        lease = at(self.network.leases, place)
        if lease is not None:
            self.network.sla(lease)

    @rule(place=index, part=st.integers(0, PPM), kind=st.sampled_from(("late", "goodwill")))
    def correct(self, place: int, part: int, kind: str) -> None:
        lease = at(self.network.leases, place)
        if lease is not None and kind == "late":
            self.network.report_late(lease)
        elif lease is not None:
            self.network.goodwill(lease, part)

    @rule(place=index)
    def dispute(self, place: int) -> None:
        lease = at(self.network.leases, place)
        if lease is not None:
            self.network.dispute(lease)

    @rule(place=index, is_ruled=st.booleans())
    def end_dispute(self, place: int, is_ruled: bool) -> None:
        dispute = at(self.network.disputes, place)
        if dispute is not None:
            self.network.end_dispute(dispute, is_ruled=is_ruled)

    @rule()
    def mature(self) -> None:
        self.network.mature()

    @rule(burns=st.sampled_from((True, True, False)))
    def end_epoch(self, burns: bool) -> None:
        if burns:
            self.network.burn()
        self.network.end_epoch()

    @invariant()
    def has_no_more_than_it_may_keep(self) -> None:
        if hasattr(self, "network"):
            gain = self.network.gain()
            if gain > ROUNDING:
                raise Gained(gain, self.terms)

    def teardown(self) -> None:
        """What is open ends, what can be claimed is claimed, and what is due is rewarded."""
        if not hasattr(self, "network"):
            return
        network = self.network
        for lease in network.leases:
            network.close(lease, "renter", PPM)
            ways.end_meters(network, lease)
        for job_id in network.shared:
            ways.return_escrow(network, job_id)
        network.burn()
        network.end_epoch()
        self.has_no_more_than_it_may_keep()
        for lease in network.leases:
            network.sla(lease)
        network.mature()
        network.burn()
        network.end_epoch()
        self.has_no_more_than_it_may_keep()
