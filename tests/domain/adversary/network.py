"""A network in memory that runs the real decisions and books, and what a coalition in it owns.

Two renters, two owners with a node each and a client are one person; a stranger rents and another
owns a node. More accounts and nodes of that person can come (`splitting.py`). Each method does what
a command lets a party do, and says nothing when it is refused.

TOKEN count with the price at which the network burned for them: a later move of the price is a risk
of whoever holds TOKEN, and what an honest holder gains by it is no profit of cheating.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from domain import rules
from domain.calendar import day_of
from domain.chain.burn import ConfirmBurn, IntendBurn
from domain.corrections.dispute import Claim, OpenDispute, RuleDispute, TimeOutDispute, dispute_of
from domain.corrections.late_usage import BillLateUsage
from domain.corrections.reversal import TakeFundsBack, TakeIdleEscrow
from domain.corrections.sla import CreditSla
from domain.duration import DAY_US, HOUR_US
from domain.epochs.policy import PolicyPublished
from domain.fleet.device import DeviceRegistered
from domain.fleet.growth import RegionMemberSet, growth_stream
from domain.fleet.node import (
    DeviceSpec,
    HostSpec,
    NodeActivated,
    NodeAdmitted,
    NodeJoinRequested,
    NodeKeyConfirmed,
    NodeSpecReported,
)
from domain.fleet.provider import ProviderRegistered, RegionOpened
from domain.fleet.revenue_share import OwnerShare, SetRevenueShares
from domain.funds.deposit import ConfirmCreditsPurchase, ConfirmDeposit
from domain.funds.payment import (
    ConfirmPayment,
    ReceivePayment,
    ReversePayment,
    StartPayment,
    payment_of,
)
from domain.funds.promotion import GrantPromotion, OpenPromotion, promotion_of
from domain.income.adjustment import REVENUES, AdjustmentBooked, ChargedLine, GrantGoodwill
from domain.income.maturity import DEFAULT_WINDOW_US, MatureEarnings, SweepEarnings, earnings_of
from domain.income.region_pool import RegionalEarning
from domain.jobs.job import SubmitJob
from domain.lease.close_codes import RENTER_CLOSED, UNSPECIFIED
from domain.lease.lease import (
    LATE_WINDOW_US,
    AccrueUsage,
    CloseLease,
    LeaseSettled,
    ReadyLease,
    RequestLease,
    ReserveLease,
    SettleLease,
    UsageAccrued,
    lease_of,
)
from domain.lease.reserved_term import ReservedPrice, TermEndedEarly, term_us
from domain.lease.shared_escrow import escrow_of
from domain.lease.turns import QuoteLease
from domain.leasing.due import hour_end_us
from domain.leasing.other_resources import ResourceAccrued
from domain.market.offer import OfferPublished, OfferTerms
from domain.market.offer_prices import SetOfferPrices
from domain.metering.counting import UsageRow
from domain.money import PPM, Asset, credit, token
from domain.parties.account import AccountOpened
from domain.prices.profit_bound import BACK_MAX_PPM
from domain.prices.tariff import TariffPublished
from domain.prices.token_burn import TOKEN_UNITS
from domain.refusal import Refused
from domain.storage.volume import VolumeCharged, volume_of
from domain.stream import Change, Stream
from ledger.beside.charged import Charge, charge_of, line_of
from ledger.books.chart import guards_for, kind_of, refusal_of_guards
from tests.domain.adversary.rewards import Rewards
from tests.domain.scenes.booked import Booked
from tests.domain.scenes.market import NOON_US, job
from tests.given import Scene

RENTERS, OWNERS, CLIENT = ("acct_r1", "acct_r2"), ("acct_o1", "acct_o2"), "client_c"
COALITION = (*RENTERS, *OWNERS, CLIENT)
STRANGER, HONEST = "acct_stranger", "acct_honest"
NODES = {"node_evil1": OWNERS[0], "node_evil2": OWNERS[1], "node_honest": HONEST}
PRICE = 10_000_000
"""Micro-credits per GPU-hour: far above the usage fee, which is none."""
TERM_PRICE = 200_000
"""Micro-credits per GPU-hour of a reserved month, which a balance of a run can pay for."""
TOKEN_PRICE = 2_000_000
"""Micro-credits for a TOKEN, until it moves."""
REGION = "region_a"
"""Administered by the first owner."""
OTHERS = 10**9
"""Micro-credits that others have paid before."""
OPERATOR = "acct_operator"
CARD_DAYS = 120


def value_of(tokens: int, price: int = TOKEN_PRICE) -> int:
    """Micro-credits at a price."""
    return tokens * price // TOKEN_UNITS


def deposit_of(account: str, units: int, deposit_id: str, at_us: int) -> ConfirmDeposit:
    return ConfirmDeposit(
        deposit_id=deposit_id,
        account_id=account,
        source="cash",
        amount=credit(units),
        reference="r",
        confirmed_by="op",
        at_us=at_us,
    )


def found(tariff: TariffPublished) -> Scene:
    at: dict[str, Any] = {"at_us": NOON_US - HOUR_US}
    kinds = {CLIENT: "client", OPERATOR: "operator"}
    made = Scene().given(
        (Stream("tariff", "network"), tariff),
        *(
            (
                Stream("account", one),
                AccountOpened(account_id=one, kind=kinds.get(one, "party"), opened_by="op", **at),
            )
            for one in (*COALITION, STRANGER, HONEST, OPERATOR)
        ),
    )
    for node, owner in NODES.items():
        made = made.given(*_node(node, owner, at))
    region = RegionOpened(
        region_id=REGION,
        provider_id="prov_node_evil1",
        name="a",
        storage_mode="local",
        setting="edge",
        admission="permissionless",
        allow_public_jobs=True,
        hardware_rules=(),
        cloud_region=None,
        site=None,
        **at,
    )
    return made.given((Stream("region", REGION), region))


def _node(node: str, owner: str, at: dict[str, Any]) -> Iterable[tuple[Stream[Any], Any]]:
    stream, provider = Stream[Any]("node", node), f"prov_{node}"
    region_id = REGION if owner == OWNERS[0] else f"region_{node}"
    registered = ProviderRegistered(
        provider_id=provider, account_id=owner, kind="physical", payment_mode="credits", **at
    )
    yield Stream("provider", provider), registered
    yield (
        stream,
        NodeJoinRequested(
            node_id=node,
            provider_id=provider,
            region_id=region_id,
            client_id=None,
            owner_account_id=None,
            key_id="k",
            public_key="00",
            token_sha256="00",
            agent="0.1.0",
            **at,
        ),
    )
    devices = tuple(DeviceSpec(f"GPU-{node}-{n}", "nvidia", "A100", 81_920) for n in range(6))
    yield (
        stream,
        NodeSpecReported(
            node_id=node,
            devices=devices,
            host=HostSpec("x86_64", "linux"),
            hardware=None,
            agent="0.1.0",
            **at,
        ),
    )
    yield stream, NodeKeyConfirmed(node_id=node, key_id="k", public_key="00", by="o", **at)
    yield stream, NodeAdmitted(node_id=node, by="op", **at, waived=())
    worker = RegionMemberSet(
        region_id=region_id,
        node_id=node,
        role="worker",
        ingress_node_id=None,
        models=("A100",),
        has_seats=False,
        **at,
    )
    yield growth_stream(region_id), worker
    yield stream, NodeActivated(node_id=node, by="op", **at)
    for device in devices:
        yield (
            Stream("device", device.device_id),
            DeviceRegistered(
                device_id=device.device_id,
                node_id=node,
                provider_id=provider,
                vendor="nvidia",
                model="A100",
                gpu_class="datacenter",
                memory_mib=81_920,
                **at,
                kind="gpu",
                memory="dedicated",
                is_divisible=True,
                capacity_asset=Asset.GPU_MS,
            ),
        )
    for pay_with in ("cash", "burn"):
        offer = OfferPublished(
            offer_id=f"{node}_{pay_with}",
            provider_id=provider,
            node_id=node,
            price_per_gpu_hour=credit(PRICE),
            pay_with=pay_with,
            fractions=True,
            available_until_us=None,
            **at,
            terms=OfferTerms(interruptible=True),
        )
        yield Stream("offer", offer.offer_id), offer


@dataclass
class Network(Booked):
    """`paid_in`: what the coalition brought from outside, at the oracle's price. `given`: what
    strangers, the network and the operator gave to it, and what attested time may bring. `spent`:
    what it paid to itself, less what it got back of that. `worth`: of the TOKEN of an account, at
    the prices at which the network burned for them.
    """

    policy: Any = None
    now_us: int = NOON_US
    rewards: Rewards = field(
        default_factory=lambda: Rewards(dict(NODES), frozenset({STRANGER}), TOKEN_PRICE)
    )
    tokens: dict[str, int] = field(default_factory=dict)
    worth: dict[str, int] = field(default_factory=dict)
    members: set[str] = field(default_factory=lambda: set(COALITION))
    paid_in: int = 0
    given: int = 0
    spent: int = 0
    leases: list[str] = field(default_factory=list)
    payments: list[str] = field(default_factory=list)
    disputes: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)  # jobs whose leases share an escrow
    made: int = 0
    next_day: int = 0  # of the region, to be shared out; 0: none was

    @classmethod
    def under(cls, tariff: TariffPublished, policy: PolicyPublished) -> Network:
        """Others have paid the network before, so that it can pay what it owes."""
        made = cls.of(found(tariff))
        made.policy = policy
        made.balances |= {"world:bank": OTHERS, "network:revenue:usage": OTHERS}
        made.do(deposit_of(STRANGER, OTHERS, "deposit_stranger", NOON_US))
        return made

    @property
    def oracle_price(self) -> int:
        """What the network burns at, and sells credits for: the market's."""
        return self.rewards.price

    @property
    def owner_of(self) -> dict[str, str]:
        """Whose each node is."""
        return self.rewards.owner_of

    def known_account(self, account: str) -> str:
        """The account, or the first renter where it has not been opened."""
        return account if account in self.members or account == STRANGER else RENTERS[0]

    def known_node(self, node: str) -> str:
        """The node, or the first one where it has not joined."""
        return node if node in self.owner_of else next(iter(NODES))

    # --- the door ---------------------------------------------------------------------------------

    def try_(self, *commands: Any) -> bool:
        """Whether all of these were done; the first that is refused ends it."""
        try:
            for command in commands:
                self.do(command)
        except Refused:
            return False
        return True

    def do(self, command: Any) -> list[Change]:
        changes = rules.decide(command, self)
        facts = [change.fact for change in changes]
        for fact in facts:
            if any(self.balance(account) for account in guards_for(fact)):
                raise Refused(refusal_of_guards(facts))
        for change in changes:
            self._record(change)
            self._book(change.fact)
            self.rewards.tell(len(self.log), change.fact)
            self._count(change.fact)
        return changes

    def _count(self, fact: Any) -> None:
        """What strangers and the coalition paid to it, less what they got back of that."""
        match fact:
            case UsageAccrued() | ResourceAccrued() | VolumeCharged():
                self._paid(fact, fact.charge_new.units)
            case TermEndedEarly():
                self._paid(fact, fact.kept.units)
            case AdjustmentBooked() if fact.late is not None:
                self._paid(fact, fact.late.charge_new.units)
            case AdjustmentBooked() if fact.reason != "goodwill":
                self._paid(fact, fact.owed - fact.returned)

    def _paid(self, fact: Charge, units: int) -> None:
        if fact.provider_account_id == HONEST:
            # A stranger's node: what the coalition's client earns there is outside money.
            if fact.account_id != STRANGER:
                return
            if isinstance(fact, UsageAccrued):
                self.given += fact.parts_new.client or 0
            elif isinstance(fact, TermEndedEarly):
                self.given += fact.parts.client or 0
            return
        if fact.account_id in self.members:
            self.spent += units
        else:
            self.given += units

    def name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}_{self.made:08d}"

    # --- money ------------------------------------------------------------------------------------

    def deposit(self, account: str, units: int) -> None:
        self.do(deposit_of(account, units, self.name("deposit"), self.now_us))
        self.paid_in += units if account in self.members else 0

    def buy(self, account: str, units: int) -> None:
        """Credits for TOKEN that the buyer burns."""
        number, tokens = self.made + 1, units * TOKEN_UNITS // self.oracle_price
        self.do(
            ConfirmCreditsPurchase(
                burner="0x" + "11" * 20,
                purchase_id=number,
                account_id=account,
                payer="0x" + "22" * 20,
                tokens_burned=token(tokens),
                credits=credit(units),
                price_round=1,
                tx_hash=self.name("0x"),
                log_index=0,
                block_number=1,
                at_us=self.now_us,
            )
        )
        self.paid_in += value_of(tokens, self.rewards.price) if account in self.members else 0

    def card(self, account: str, units: int, *, saves: bool = False) -> str:
        """A card payment that has been received; `saves` its method for later ones."""
        payment = self.name("pay")
        self.do(
            StartPayment(
                payment_id=payment,
                account_id=account,
                method="card",
                processor="stripe",
                amount=credit(units),
                by="m",
                at_us=self.now_us,
            )
        )
        self.receive(payment, units, "pm_1" if saves else None)
        return payment

    def receive(self, payment: str, units: int, saved_method: str | None = None) -> None:
        """The processor says that a payment has come."""
        self.do(
            ReceivePayment(
                payment_id=payment,
                amount=credit(units),
                reference=payment,
                by="stripe",
                at_us=self.now_us,
                saved_method=saved_method,
            )
        )
        self.payments.append(payment)
        self.paid_in += units

    def reverse(self, payment: str) -> None:
        """The card's bank takes the money back; what leases hold of it is taken from them."""
        known = payment_of(self, payment)
        if known.status not in ("pending", "confirmed") or known.received is None:
            return
        units = known.received.amount.units
        done = self.try_(
            ReversePayment(
                payment_id=payment,
                reference=self.name("dp"),
                amount=credit(units),
                reason="fraudulent",
                at_us=self.now_us,
            )
        )
        self.paid_in -= units if done else 0
        for lease in self.leases:
            self.try_(TakeFundsBack(payment_id=payment, lease_id=lease, at_us=self.now_us))
        for job_id in self.shared:
            self.try_(TakeIdleEscrow(payment_id=payment, job_id=job_id, at_us=self.now_us))

    def confirm(self, payment: str) -> None:
        self.now_us += CARD_DAYS * DAY_US
        self.try_(ConfirmPayment(payment_id=payment, at_us=self.now_us))

    def promote(self, sponsor: str, account: str, units: int) -> None:
        """A sponsor gives credits; what an outsider gives is its own loss."""
        program = self.name("p").replace("_", "-")
        done = self.try_(
            OpenPromotion(
                program=program,
                sponsor_account_id=sponsor,
                amount=credit(units),
                by="m",
                at_us=self.now_us,
            ),
            GrantPromotion(
                program=program,
                account_id=account,
                amount=credit(units),
                priority=0,
                expires_at_us=None,
                by="m",
                at_us=self.now_us,
            ),
        )
        self.given += units if done and sponsor == STRANGER else 0

    # --- leases -----------------------------------------------------------------------------------

    def lease(
        self, renter: str, node: str, pay_with: str, hours: int, *, sla: bool, client: bool
    ) -> str | None:
        """Asks for one free device of a node; the name of the lease that runs then."""
        tariff = self.state(Stream("tariff", "network")).published[-1]
        promise = tariff.sla[-1].name if sla and tariff.sla else None
        asked = self.job_of(renter, client=client, sla_class=promise)
        return self.run(asked, node, pay_with, PRICE * hours)

    def run(
        self, asked: SubmitJob, node: str, pay_with: str, funds: int, **request: Any
    ) -> str | None:
        """A lease of this job that runs on one free device; its name."""
        lease_id, free = self.name("lease"), self.free(node)
        request = {"account_id": asked.account_id, **request}
        if free is None or not self.try_(
            asked,
            RequestLease(
                lease_id=lease_id,
                job_id=asked.job_id,
                term_us=None,
                funds=credit(funds),
                at_us=self.now_us,
                **request,
            ),
            self.reservation(lease_id, node, pay_with, free, "lowest_cost/1"),
            ReadyLease(lease_id=lease_id, node_id=node, endpoint=None, at_us=self.now_us),
        ):
            return None
        self.leases.append(lease_id)
        return lease_id

    def reserve_term(
        self, renter: str, node: str, pay_with: str, refund_ppm: int, *, client: bool
    ) -> str | None:
        """A month that is paid beforehand; its owner says what an early end gives back."""
        lease_id, free, offer_id = self.name("lease"), self.free(node), f"{node}_{pay_with}"
        asked, quote_id = self.job_of(renter, client=client), self.name("quote")
        price = credit(TERM_PRICE)
        if free is None or not self.try_(
            SetOfferPrices(
                offer_id=offer_id,
                provider_id=f"prov_{node}",
                interruptible_floor=None,
                reserved=(ReservedPrice(1, price, refund_ppm),),
                by="m",
                at_us=self.now_us,
            ),
            asked,
            RequestLease(
                lease_id=lease_id,
                job_id=asked.job_id,
                account_id=renter,
                term_us=term_us(1),
                funds=None,
                pricing="reserved",
                months=1,
                at_us=self.now_us,
            ),
            QuoteLease(
                lease_id=lease_id,
                quote_id=quote_id,
                rule="reserved/1",
                node_id=node,
                offer_id=offer_id,
                device_ids=(free,),
                price_per_gpu_hour=price,
                expires_at_us=self.now_us + HOUR_US // 60,
                at_us=self.now_us,
            ),
            self.reservation(lease_id, node, pay_with, free, "reserved/1", quote_id),
            ReadyLease(lease_id=lease_id, node_id=node, endpoint=None, at_us=self.now_us),
        ):
            return None
        self.leases.append(lease_id)
        return lease_id

    def free(self, node: str) -> str | None:
        """A device of the node that no lease holds."""
        devices = (f"GPU-{node}-{n}" for n in range(6))
        free = (one for one in devices if not self.state(Stream("device", one)).holders)
        return next(free, None)

    def job_of(self, renter: str, *, client: bool, sla_class: str | None = None) -> SubmitJob:
        return job(
            job_id=self.name("job"),
            account_id=renter,
            client_id=CLIENT if client else "direct",
            max_price_per_gpu_hour=credit(PRICE),
            sla_class=sla_class,
            at_us=self.now_us,
        )

    def reservation(
        self,
        lease_id: str,
        node: str,
        pay_with: str,
        device: str,
        rule: str,
        quote_id: str | None = None,
    ) -> ReserveLease:
        return ReserveLease(
            lease_id=lease_id,
            rule=rule,
            fleet_position=1,
            candidates=(),
            considered=1,
            node_id=node,
            offer_id=f"{node}_{pay_with}",
            device_ids=(device,),
            quote_id=quote_id,
            at_us=self.now_us,
        )

    def renter_of(self, lease_id: str) -> str | None:
        asked = lease_of(self, lease_id).requested
        return None if asked is None else asked.account_id

    def share(self, node: str, account: str, share_ppm: int) -> None:
        """Another of the coalition owns a part of what leases of the node earn from now on."""
        shares = (OwnerShare(account, share_ppm),) if share_ppm else ()
        self.try_(
            SetRevenueShares(
                node_id=node,
                account_id=self.owner_of[node],
                shares=shares,
                by="m",
                at_us=self.now_us,
            )
        )

    def row(self, lease_id: str, from_us: int, to_us: int, served_ppm: int, number: int) -> Any:
        reserved = lease_of(self, lease_id).reserved
        assert reserved is not None
        return UsageRow(
            position=number,
            device_id=reserved.device_ids[0],
            boot="b",
            mono_start_us=10**9 + from_us,
            mono_end_us=10**9 + to_us,
            wall_start_us=from_us,
            wall_end_us=to_us,
            available_us=(to_us - from_us) * served_ppm // PPM,
            share_ppm=PPM,
            received_us=to_us,
        )

    def meter(self, lease_id: str, served_ppm: int) -> None:
        """The next hour is billed; with nothing served no report of it is sent."""
        lease = lease_of(self, lease_id)
        if not lease.is_running:
            return
        until_us = hour_end_us(lease)
        if until_us >= lease.window_end_us:
            return
        self.now_us = max(self.now_us, until_us)
        number = lease.hours_accrued + 1
        row = self.row(lease_id, until_us - HOUR_US, until_us, served_ppm, number)
        self.try_(
            AccrueUsage(
                lease_id=lease_id,
                lane=1,
                usage_position=number,
                rows=(row,) if served_ppm else (),
                at_us=self.now_us,
            )
        )

    def close(self, lease_id: str, party: str, served_ppm: int) -> None:
        """Ends a lease within the present hour and settles it once no report can come."""
        lease = lease_of(self, lease_id)
        if not lease.is_running or lease.opened is None:
            return
        begun_us = hour_end_us(lease) - HOUR_US
        end_us = min(hour_end_us(lease), lease.window_end_us)
        self.now_us = max(self.now_us, end_us)
        code = {"renter": RENTER_CLOSED, "provider": UNSPECIFIED}[party]
        self.try_(
            CloseLease(
                lease_id=lease_id, closed_at_us=end_us, party=party, code=code, at_us=self.now_us
            )
        )
        number = lease.hours_accrued + 1
        row = self.row(lease_id, begun_us, end_us, served_ppm, number)
        self.now_us = max(self.now_us, end_us + LATE_WINDOW_US)
        self.try_(
            SettleLease(
                lease_id=lease_id,
                lane=1,
                usage_position=number,
                rows=(row,) if served_ppm else (),
                at_us=self.now_us,
            )
        )

    def report_late(self, lease_id: str) -> None:
        """Reports of the last hour that were held back until the lease was settled."""
        lease = lease_of(self, lease_id)
        settled = [
            at
            for at, change in enumerate(self.log, 1)
            if isinstance(change.fact, LeaseSettled) and change.fact.lease_id == lease_id
        ]
        if not settled or lease.opened is None or lease.closed is None:
            return
        end_us = lease.closed.closed_at_us
        number = lease.usage_position + 1
        start_us = max(lease.opened.opened_at_us, end_us - HOUR_US)
        if start_us >= end_us:
            return
        self.try_(
            BillLateUsage(
                adjustment_id=self.name("adj"),
                lease_id=lease_id,
                settled_position=settled[0],
                lane=1,
                usage_position=number,
                rows=(self.row(lease_id, start_us, end_us, PPM, number),),
                by="job",
                at_us=self.now_us,
            )
        )

    # --- corrections ------------------------------------------------------------------------------

    def charges(self, of: str) -> list[ChargedLine]:
        """Every charge of a lease or a volume so far, newest first."""
        return [
            line_of(at, change.fact, self.booked(change.fact))
            for at, change in reversed(list(enumerate(self.log, 1)))
            if charge_of(change.fact)
            and of
            in (getattr(change.fact, "lease_id", None), getattr(change.fact, "volume_id", None))
        ]

    def sla(self, lease_id: str) -> None:
        lines = tuple(self.charges(lease_id))
        read = self.rewards.unburned([line.position for line in lines])
        self.try_(
            CreditSla(
                lease_id=lease_id, lines=lines, is_last=True, unburned=read, at_us=self.now_us
            )
        )

    def goodwill(self, lease_id: str, part_ppm: int) -> None:
        """The operator's present: its members are no part of the coalition."""
        for line in self.charges(lease_id)[:1]:
            units = line.charge * part_ppm // PPM
            if units and units <= sum(self.balance(one) for one in REVENUES):
                done = self.try_(
                    GrantGoodwill(
                        adjustment_id=self.name("adj"),
                        line=line,
                        units=units,
                        by="op",
                        at_us=self.now_us,
                    )
                )
                self.given += units if done and line.account_id in self.members else 0

    def dispute(self, of: str) -> None:
        """The last charge of a lease, or of a volume."""
        for line in self.charges(of)[:1]:
            dispute_id = self.name("dispute")
            done = self.try_(
                OpenDispute(
                    dispute_id=dispute_id,
                    claims=(Claim(line=line, claimed=line.charge),),
                    party_account_id=line.account_id,
                    claim_code="not_running",
                    claim_sha256="ab" * 32,
                    evidence=(),
                    by="m",
                    at_us=self.now_us,
                )
            )
            if done:
                self.disputes.append(dispute_id)

    def end_dispute(self, dispute_id: str, *, is_ruled: bool) -> None:
        """An arbiter finds that reports prove what was charged, or nobody rules in time."""
        opened = dispute_of(self, dispute_id).opened
        assert opened is not None
        lines = tuple(self.charges(opened.lease_id or opened.volume_id or ""))
        read = self.rewards.unburned([line.position for line in lines])
        if is_ruled:
            self.try_(
                RuleDispute(
                    dispute_id=dispute_id,
                    outcome="rejected",
                    upheld_ppm=0,
                    lines=lines,
                    unburned=read,
                    arbiter_account_id=OPERATOR,
                    reason_sha256=None,
                    by="op",
                    at_us=self.now_us,
                )
            )
            return
        self.now_us = max(self.now_us, opened.expires_at_us)
        self.try_(
            TimeOutDispute(dispute_id=dispute_id, lines=lines, unburned=read, at_us=self.now_us)
        )

    # --- time -------------------------------------------------------------------------------------

    def mature(self) -> None:
        """Three days pass: what was earned is payable, and swept."""
        self.now_us += DEFAULT_WINDOW_US
        for owner in (*sorted(self.members), HONEST):
            self.mature_one(owner)
            self.try_(SweepEarnings(account_id=owner, at_us=self.now_us))

    def mature_one(self, owner: str) -> None:
        """All that an account earned; its regions gather what is theirs."""
        state = earnings_of(self, owner)
        earned = list(self._earned(owner, state.matured_through))
        regional: dict[tuple[str, int], int] = defaultdict(int)
        for position, units, node, day in earned:
            if owner != CLIENT and node is not None and self.owner_of[node] == OWNERS[0]:
                regional[node, day] += max(0, units - state.reductions.get(position, 0))
        self.try_(
            MatureEarnings(
                account_id=owner,
                after_position=state.matured_through,
                through_position=len(self.log),
                through_us=0,
                gross=sum(units for _, units, _, _ in earned),
                at_us=self.now_us,
                regional=tuple(
                    RegionalEarning(REGION, node, day, units)
                    for (node, day), units in sorted(regional.items())
                ),
                reduced=sum(state.reductions.values()),
            )
        )

    def _earned(self, owner: str, after: int) -> Iterable[tuple[int, int, str | None, int]]:
        """(position, units, node, day) of what was credited to the holdback of an account."""
        holdback = f"party:{owner}:holdback"
        for position, change in enumerate(self.log[after:], after + 1):
            if not charge_of(change.fact):
                continue
            units = -self.booked(change.fact).get(holdback, 0)
            if units > 0:
                yield position, units, self._node_of(change.fact), day_of(change.fact.at_us)

    def _node_of(self, fact: Charge) -> str | None:
        """Which node earned it; what a volume brings, none did."""
        if isinstance(fact, VolumeCharged):
            return None
        assert fact.lease_id is not None, fact  # what is charged late is of a lease
        reserved = lease_of(self, fact.lease_id).reserved
        return None if reserved is None else reserved.node_id

    def burn(self) -> None:
        """The network burns what is ripe, as far as the bank pays for it."""
        burns = self.rewards.burns
        first = burns[-1].last_position + 1 if burns else 1
        most = min(self.balance("world:bank"), self.balance("network:burn_due"))
        ripe = self.rewards.ripe(first)
        covered = [one for one in ripe if one[1] <= most]
        if not covered or not covered[-1][1]:
            return
        last, units = covered[-1]
        changes = self.do(
            IntendBurn(
                burn_id=len(burns) + 1,
                first_position=first,
                last_position=last,
                credits=credit(units),
                price_micro_usd=self.oracle_price,
                price_round=1,
                at_us=self.now_us,
            )
        )
        intended = changes[0].fact
        burns.append(intended)
        self.do(
            ConfirmBurn(
                burn_id=intended.burn_id,
                tokens=intended.tokens,
                tx_hash=self.name("0x"),
                block_number=1,
                at_us=self.now_us,
            )
        )

    def end_epoch(self) -> None:
        """The epoch pays; what attested time may bring of it is allowed."""
        self.now_us += 7 * DAY_US
        allowed = self.rewards.allowed(self.policy, self.members)
        self.given += value_of(allowed, self.rewards.price)
        sealed = self.rewards.seal(self.policy, self.members)
        for account, units in sealed.settlement.rewards:
            self.tokens[account] = self.tokens.get(account, 0) + units
        for account, units in sealed.worth.items():
            self.worth[account] = self.worth.get(account, 0) + units

    # --- what the coalition has -------------------------------------------------------------------

    def wealth(self) -> int:
        """Credits and TOKEN of the coalition, less its debts and what it brought from outside."""
        credits = 0
        for name, units in self.balances.items():
            if units and self._owner(name) in self.members:
                credits -= kind_of(name).side * units
        tokens = sum(self.worth.get(one, 0) for one in self.members)
        return credits + tokens - self.paid_in

    def _owner(self, name: str) -> str | None:
        """Whose an account of the books is; of an escrow the renter's, of a dispute the owner's.

        Only accounts of the coalition share an escrow. What a region has not shared out yet counts
        as its administrator's.
        """
        kind, which, *_ = name.split(":")
        match kind:
            case "party":
                return which
            case "escrow":
                if which in self.shared:
                    return escrow_of(self, which).account_id
                kept = volume_of(self, which).provisioned
                if kept is not None:
                    return kept.account_id
                return self.renter_of(which.split("/")[0])
            case "dispute":
                opened = dispute_of(self, which).opened
                return None if opened is None else opened.provider_account_id
            case "grant":
                fund = promotion_of(self, which).opened
                return None if fund is None else fund.sponsor_account_id
            case "region":
                return OWNERS[0]
            case _:
                return None

    def gain(self) -> int:
        """What it has more than it was given and may keep of what it spent: above zero is too much.

        gain == wealth - given + 5 % of what it paid to itself
        """
        return self.wealth() - self.given + self.spent * (PPM - BACK_MAX_PPM) // PPM
