"""A market of any size as facts, and a writer that puts them into a log without deciding anything.

The story is made, not decided: its amounts balance and its order is possible, no more. It serves
tests and benchmarks of what follows the log; what may happen at all is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

import psycopg

from domain import brought
from domain.chain import burn
from domain.chain import payout_root as payout
from domain.corrections import dispute, sla
from domain.duration import DAY_US
from domain.epochs import epoch, reward_changes, reward_correction
from domain.epochs.reward_changes import Reward
from domain.fleet import device, executor_key, node, provider, storage_node
from domain.fleet import keys as node_key
from domain.fleet import verdicts as node_hardware
from domain.fleet.pooling import PoolNodeAdded, PoolNodeRemoved
from domain.funds import card_money, deposit, draw, payment, top_up
from domain.gpu_time import GPU_HOUR_US, charge_for
from domain.hardware.constraints import Constraints
from domain.hardware.facts import HardwareFacts
from domain.income import adjustment, cash_out, invoice, maturity, region_pool, region_terms
from domain.income import cash_out_matching as payout_matching
from domain.income.tax import TaxLine
from domain.jobs import job
from domain.lease import countersign, lease, shared_escrow
from domain.lease import turns as lease_turns
from domain.lease import work_commands as lease_command
from domain.lease.choice import Candidate
from domain.lease.funds import EscrowPart
from domain.leasing import other_resources as resource_usage
from domain.market import offer
from domain.metering import counting as accrual
from domain.metering import pin
from domain.metering.report import lane_of
from domain.metering.resources import SCALE_OF
from domain.money import PPM, Amount, Asset, credit, token
from domain.parties import account as acct
from domain.parties import counterparty, webhook
from domain.prices import price_feed
from domain.prices.charge_split import NOTHING, Parts, peel
from domain.prices.tariff import METERS, MeterRate, TariffPublished, UsageFee
from domain.sites import edge_device
from domain.stream import Stream
from domain.trust import challenge
from domain.trust import record as trust_record
from ledger.books.chart import kind_of
from ledger.books.postings import entries_for
from ledger.log import codec
from ledger.log.chain import GENESIS_MARKET, chain, market_leaf
from tests.projections.fleet.story import supplied
from tests.projections.funds.story import funding
from tests.projections.governance.story import policies
from tests.projections.market.story import bidding
from tests.projections.parties.story import GROUP, INNER, demanding
from tests.projections.pools.story import POOLS, pools
from tests.projections.sites.story import deployed, placed
from tests.projections.storage.story import stored

Told = tuple[Stream[Any], Any]

START_US = 1_795_161_600_000_000
PRICE = 2_780_000
FEE = 250_000
RENTERS = ("acct_cash", "acct_burn")
WALLETLESS = "acct_walletless"
LEASES_MIN = 4
"""Two leases before the first dispute, which names a charge of each, and two after it."""


@dataclass(frozen=True, slots=True)
class Size:
    nodes: int = 3
    devices: int = 2
    leases: int = 6
    hours: int = 3

    def __post_init__(self) -> None:
        if self.leases < LEASES_MIN:
            raise ValueError(f"a story has at least {LEASES_MIN} leases, not {self.leases}")

    def node(self, index: int) -> str:
        return f"node_{index % self.nodes:032x}"

    def device(self, node_index: int, slot: int) -> str:
        return f"GPU-{node_index % self.nodes:08x}-{slot:04x}"


def story(size: Size) -> Iterator[Told]:
    """Everything that can happen, as one log. Disputes name the charges that were told before."""
    charges: list[int] = []
    for position, told in enumerate(_story(size, charges), 1):
        if isinstance(told[1], lease.UsageAccrued) and len(charges) < 2 * size.hours:
            charges.append(position)
        yield told


def _story(size: Size, charges: list[int]) -> Iterator[Told]:
    """Founding, supply, money in, leases one after the other, two epochs, a burn, a payout."""
    yield from _founding()
    yield from _supply(size)
    yield _region_terms()
    yield from pools([size.node(index) for index in range(size.nodes)], _at(1))
    yield from _money_in(size)
    yield from _payments()
    yield _epoch_opened(1)
    first_half = size.leases // 2
    for index in range(first_half):
        yield from _lease(size, index)
    yield from _dispute("dispute_1", charges[0], upheld=600)
    yield from _dispute("dispute_2", charges[size.hours], upheld=250)
    yield from _epoch_end()
    yield from _money_out()
    yield from _region_day(size)
    for index in range(first_half, size.leases):
        yield from _lease(size, index)
    yield from _dispute("dispute_3", charges[1], upheld=0)
    yield from _dispute("dispute_4", charges[size.hours + 1], upheld=0, volume_id="volume_1")
    yield from _sla(f"lease_{0:032x}", 100)
    yield from _sla(f"lease_{2:032x}", 0)
    yield from _metered(size)
    yield from _leaving(size)
    yield from _invoices()
    yield from funding(_at(0))
    yield from bidding(_at)
    yield from supplied(tuple(map(size.node, range(size.nodes))), _at(0))
    yield from placed(_at(0))
    yield from demanding(_at(0))
    yield from policies(_at(0))
    yield from _shared_escrow()
    yield from _dealings(size)
    yield from _trust(size)


def _shared_escrow() -> Iterator[Told]:
    """Credits in the escrow of a job, of two depositors; all of them go back."""
    at, job_id, who = _at(0), f"job_{0:032x}", "acct_cash"
    parts = (EscrowPart("cash", credit(5)), EscrowPart("cash", credit(3), 2, "acct_cash"))
    stream = Stream("escrow", job_id)
    yield Stream("job", job_id), job.JobEscrowOpened(job_id=job_id, at_us=at)
    yield (
        stream,
        shared_escrow.EscrowFunded(
            escrow_id=job_id,
            account_id=who,
            depositor_account_id=who,
            parts=parts,
            put_in=credit(8),
            ends_us=None,
            at_us=at,
            counted=(),
        ),
    )
    yield (
        stream,
        shared_escrow.EscrowReturned(escrow_id=job_id, account_id=who, parts=parts, at_us=at),
    )


def _at(minutes: int) -> int:
    return START_US + minutes * 60_000_000


def _founding() -> Iterator[Told]:
    at = _at(0)
    for account_id in ("acct_operator", "acct_provider", *RENTERS):
        stream = Stream("account", account_id)
        kind = "operator" if account_id == "acct_operator" else "party"
        yield (
            stream,
            acct.AccountOpened(account_id=account_id, kind=kind, opened_by="bootstrap", at_us=at),
        )
        for who, role in (("mem_a", "owner"), ("mem_b", "viewer")):
            yield (
                stream,
                acct.MemberAdded(
                    account_id=account_id, member_id=who, role=role, by="mem_a", at_us=at
                ),
            )
        yield (
            stream,
            acct.MemberRemoved(account_id=account_id, member_id="mem_b", by="mem_a", at_us=at + 1),
        )
        for number in (1, 2):
            key = f"{account_id}/{number}"
            yield (
                stream,
                acct.ApiKeyIssued(
                    account_id=account_id,
                    key_id=f"key{number}",
                    key_sha256=sha256(key.encode()).hexdigest(),
                    member_id="mem_a",
                    scopes=("account", "renter"),
                    expires_at_us=None,
                    by_key_id=None,
                    succeeds=None,
                    at_us=at,
                ),
            )
        yield (
            stream,
            acct.ApiKeyRevoked(
                account_id=account_id,
                key_id="key1",
                effective_at_us=at + 5,
                by="mem_a",
                at_us=at + 2,
            ),
        )
    stream = Stream("account", RENTERS[0])
    yield (
        stream,
        acct.MemberAdded(
            account_id=RENTERS[0], member_id="mem_b", role="admin", by="mem_a", at_us=at + 3
        ),
    )
    yield (
        stream,
        acct.MemberRoleChanged(
            account_id=RENTERS[0], member_id="mem_b", role="viewer", by="mem_a", at_us=at + 4
        ),
    )
    yield from ((stream, fact) for fact in _invitations(RENTERS[0], at + 5))
    yield (
        Stream("account", "acct_provider"),
        acct.WalletLinked(
            account_id="acct_provider",
            address="0x" + "ab" * 20,
            message="link",
            signature="0x00",
            effective_at_us=at,
            at_us=at,
        ),
    )
    yield from _closed_account()
    fees = (UsageFee("datacenter", credit(FEE)),)
    yield (
        Stream("tariff", "network"),
        TariffPublished(
            version=1,
            usage_fees=fees,
            provider_share_ppm=500_000,
            burn_share_ppm=200_000,
            effective_from_us=0,
            by="acct_operator",
            at_us=at,
            split=None,
            federated=None,
            device_fee_per_month=None,
            storage_node_per_hour=None,
            meters=(),
            sla=(),
            notice_us=0,
            free_start=None,
        ),
    )


def _invitations(account_id: str, at: int) -> Iterator[object]:
    """One waits, one was withdrawn, one was redeemed."""
    for number, member_id in enumerate(("mem_c", "mem_d", "mem_e")):
        yield acct.MemberInvited(
            account_id=account_id,
            invitation_id=f"invitation_{number}",
            code_sha256=f"{number:064x}",
            member_id=member_id,
            role="viewer",
            scopes=("account",),
            key_expires_at_us=None,
            expires_at_us=at + DAY_US,
            by_key_id="key_a",
            by="mem_a",
            at_us=at,
        )
    yield acct.InvitationWithdrawn(
        account_id=account_id, invitation_id="invitation_1", by="mem_a", at_us=at + 1
    )
    yield acct.InvitationRedeemed(
        account_id=account_id, invitation_id="invitation_2", key_id="key_e", at_us=at + 1
    )


def _closed_account() -> Iterator[Told]:
    """One key was ended before, one would have ended later, one never."""
    at, who = _at(0), "acct_gone"
    stream = Stream("account", who)
    yield stream, acct.AccountOpened(account_id=who, kind="party", opened_by="sign-up", at_us=at)
    yield (
        stream,
        acct.MemberAdded(account_id=who, member_id="mem_a", role="owner", by="b", at_us=at),
    )
    for number in (1, 2, 3):
        yield (
            stream,
            acct.ApiKeyIssued(
                account_id=who,
                key_id=f"key{number}",
                key_sha256=sha256(f"{who}/{number}".encode()).hexdigest(),
                member_id="mem_a",
                scopes=("account",),
                expires_at_us=None,
                by_key_id=None,
                succeeds=None,
                at_us=at,
            ),
        )
    for key_id, ends_us in (("key1", at + 1), ("key2", at + 9)):
        yield (
            stream,
            acct.ApiKeyRevoked(
                account_id=who, key_id=key_id, effective_at_us=ends_us, by="mem_a", at_us=at + 1
            ),
        )
    yield stream, acct.AccountVerified(account_id=who, by="op", at_us=at + 3)
    yield stream, acct.AccountClosed(account_id=who, by="mem_a", at_us=at + 4)


def _supply(size: Size) -> Iterator[Told]:
    at = _at(1)
    yield (
        Stream("provider", "prov_1"),
        provider.ProviderRegistered(
            provider_id="prov_1",
            account_id="acct_provider",
            kind="physical",
            payment_mode="credits",
            at_us=at,
        ),
    )
    region = Stream("region", "region_1")
    yield (
        region,
        provider.RegionOpened(
            region_id="region_1",
            provider_id="prov_1",
            name="north",
            storage_mode="local",
            setting="datacenter",
            admission="operator",
            allow_public_jobs=False,
            at_us=at,
            hardware_rules=(),
            cloud_region=None,
            site=None,
        ),
    )
    yield (
        region,
        provider.RegionPolicySet(
            region_id="region_1",
            allow_public_jobs=True,
            by="acct_provider",
            at_us=at,
            refused_workloads=(),
            down_ranked_workloads=(),
            security_tier=0,
        ),
    )
    for index in range(size.nodes):
        yield from _node(size, index, at)


def _node(size: Size, index: int, at: int) -> Iterator[Told]:
    node_id = size.node(index)
    stream = Stream("node", node_id)
    specs = tuple(
        node.DeviceSpec(
            device_id=size.device(index, slot), vendor="nvidia", model="A100", memory_mib=40_960
        )
        for slot in range(size.devices)
    )
    yield (
        stream,
        node.NodeJoinRequested(
            node_id=node_id,
            provider_id="prov_1",
            region_id="region_1",
            client_id=None,
            owner_account_id=None,
            key_id=f"key_{index}",
            public_key=f"{index:064x}",
            token_sha256=sha256(node_id.encode()).hexdigest(),
            agent="0.1.0",
            at_us=at,
        ),
    )
    yield (
        stream,
        node.NodeSpecReported(
            node_id=node_id,
            devices=specs,
            host=node.HostSpec(arch="x86_64", os="linux"),
            at_us=at,
            hardware=HardwareFacts(nvme_drives_gb=(1_000,), tpm_2_0=True) if index % 2 else None,
            agent="0.2.0" if index % 2 else "0.1.0",
        ),
    )
    yield (
        stream,
        node.NodeKeyConfirmed(
            node_id=node_id, key_id=f"key_{index}", public_key=f"{index:064x}", by="mem_a", at_us=at
        ),
    )
    yield stream, node.NodeAdmitted(node_id=node_id, by="acct_operator", at_us=at, waived=())
    for spec in specs:
        yield (
            Stream("device", spec.device_id),
            device.DeviceRegistered(
                device_id=spec.device_id,
                node_id=node_id,
                provider_id="prov_1",
                vendor="nvidia",
                model=f"M{index % 7}",
                gpu_class="datacenter",
                memory_mib=40_960,
                at_us=at,
                kind="gpu",
                memory="dedicated",
                is_divisible=True,
                capacity_asset=Asset.GPU_MS,
            ),
        )
    yield stream, node.NodeActivated(node_id=node_id, by="acct_operator", at_us=at)
    yield (
        Stream("executor", node_id),
        executor_key.ExecutorKeyIssued(
            node_id=node_id,
            key_sha256=sha256(b"executor" + node_id.encode()).hexdigest(),
            by=node_id,
            at_us=at,
            sealing_key=None,
            sealing_signature=None,
            sealing_signed_by=None,
        ),
    )
    yield stream, node.NodeAdmitted(node_id=node_id, by="acct_operator", at_us=at, waived=())
    yield (
        Stream("offer", f"offer_{index}"),
        offer.OfferPublished(
            offer_id=f"offer_{index}",
            provider_id="prov_1",
            node_id=node_id,
            price_per_gpu_hour=credit(PRICE + index % 3),
            pay_with="burn" if index % 2 else "cash",
            fractions=True,
            available_until_us=None,
            at_us=at,
            terms=offer.OfferTerms(isolation="vm", capabilities=("cuda",))
            if index % 2
            else offer.OfferTerms(),
        ),
    )


def _dealings(size: Size) -> Iterator[Told]:
    """A node in a pool, another that came and went, and whom an account deals with."""
    by: dict[str, Any] = {"by": "mem_a", "at_us": _at(1)}
    for index in range(min(2, size.nodes)):
        told: dict[str, Any] = {"pool_id": "pool_1", "node_id": size.node(index), **by}
        yield Stream("node", size.node(index)), PoolNodeAdded(**told)
        if index:
            yield Stream("node", size.node(index)), PoolNodeRemoved(**told)
    lists = Stream("counterparty", "acct_provider")
    for other, verdict in (
        ("acct_burn", counterparty.CounterpartyDenied),
        ("acct_nobody", counterparty.CounterpartyAllowed),
        ("acct_nobody", counterparty.CounterpartyRemoved),
    ):
        yield lists, verdict(account_id="acct_provider", counterparty_id=other, **by)


def _money_in(size: Size) -> Iterator[Told]:
    at, units = _at(2), PRICE * size.leases * (size.hours + 2) * 2
    yield (
        Stream("deposit", "dep_1"),
        deposit.DepositConfirmed(
            deposit_id="dep_1",
            account_id="acct_cash",
            source="cash",
            amount=credit(units),
            reference="wire 1",
            confirmed_by="acct_operator",
            at_us=at,
        ),
    )
    yield (
        Stream("purchase", "0xb/1"),
        deposit.CreditsPurchaseConfirmed(
            burner="0xb",
            purchase_id=1,
            account_id="acct_burn",
            payer="0x1",
            tokens_burned=token(7),
            credits=credit(units),
            price_round=1,
            tx_hash="0x2",
            log_index=0,
            block_number=9,
            at_us=at,
        ),
    )


def _payments() -> Iterator[Told]:
    """One payment by card that is partly reversed, won back, confirmed and refunded; one that
    fails; warnings and a top-up.
    """
    at, who = _at(3), "acct_card"
    for number, cause in ((1, "order"), (2, "top_up")):
        yield (
            Stream("payment", f"pay_{number}"),
            payment.PaymentStarted(
                payment_id=f"pay_{number}",
                account_id=who,
                method="card",
                processor="stripe",
                amount=credit(30_000_000),
                cause=cause,
                saved_method="cus/pm" if number == 2 else None,
                chargeback_window_us=5,
                expires_at_us=at + 9,
                by="mem_a",
                at_us=at,
            ),
        )
    one = Stream("payment", "pay_1")
    told: dict[str, Any] = {"payment_id": "pay_1", "at_us": at + 1}
    card = Stream("card", who)
    yield one, payment.PaymentOffered(reference="cs_1", **told)
    yield (
        one,
        payment.PaymentReceived(
            account_id=who,
            method="card",
            amount=credit(30_000_000),
            reference="pi_1",
            saved_method="cus/pm",
            confirm_at_us=at + 6,
            by="stripe",
            **told,
        ),
    )
    yield card, _card_money(30_000_000, 0, 0, at)
    taken: dict[str, Any] = {"account_id": who, "amount": credit(10_000_000), "is_final": False}
    yield (
        one,
        payment.PaymentReversed(
            reference="dp_1",
            unspent=credit(10_000_000),
            spent=credit(0),
            reason="fraudulent",
            **taken,
            **told,
        ),
    )
    yield (
        one,
        payment.PaymentFundsTaken(
            account_id=who, lease_id=f"lease_{4:032x}", amount=credit(1), **told
        ),
    )
    yield one, payment.PaymentReinstated(reference="dp_1", **taken, **told)
    yield one, payment.PaymentConfirmed(account_id=who, amount=credit(30_000_000), **told)
    yield card, _card_money(0, 0, 30_000_000, at)
    taken["is_final"] = True
    for refund_id in ("ref_1", "ref_2"):
        yield one, payment.PaymentRefundAsked(refund_id=refund_id, by="mem_a", **taken, **told)
    yield one, payment.PaymentRefunded(refund_id="ref_1", reference="re_1", **taken, **told)
    yield one, payment.PaymentRefundFailed(refund_id="ref_2", reason="closed", **taken, **told)
    failed = payment.PaymentFailed(payment_id="pay_2", reason="declined", at_us=at)
    yield Stream("payment", "pay_2"), failed
    funds = Stream("top_up", who)
    levels = (credit(25_000_000),)
    yield (
        funds,
        top_up.BalanceWarningsSet(account_id=who, thresholds=levels, by="mem_a", at_us=at),
    )
    yield (
        funds,
        top_up.BalanceWarned(
            account_id=who, threshold=levels[0], balance=credit(20_000_000), below=levels, at_us=at
        ),
    )


def _card_money(exposed: int, settled: int, to_cash: int, at: int) -> card_money.CardMoneyMoved:
    return card_money.CardMoneyMoved(
        account_id="acct_card",
        cause="pay_1",
        exposed=credit(exposed),
        settled=credit(settled),
        to_cash=credit(to_cash),
        at_us=at,
    )


def _lease(size: Size, index: int) -> Iterator[Told]:
    """A job, its lease of one device from request to settlement, and the device's capacity."""
    who = RENTERS[index % 2]
    source, settlement = ("burned", "burn") if who == "acct_burn" else ("cash", "cash")
    lease_id, job_id = f"lease_{index:032x}", f"job_{index:032x}"
    node_id, device_id = size.node(index), size.device(index, index % size.devices)
    share = PPM if index % 3 else PPM // 4
    at = _at(10 + index)
    stream = Stream("lease", lease_id)
    common: dict[str, Any] = {
        "account_id": who,
        "client_id": "client_1",
        "project_id": "prj",
        "end_user_ref": "u1",
    }
    demands = Constraints(arch="x86_64", capabilities=("cuda",)) if index % 2 else None
    mode = "whole" if share == PPM else "memory"
    demands = None
    if index % 2:
        demands = Constraints(arch="x86_64", capabilities=("cuda",), cpu_cores=8, pool_id=POOLS[0])
    yield (
        Stream("job", job_id),
        job.JobSubmitted(
            attached=None,
            meter_maxima=(),
            volumes=(),
            job_id=job_id,
            kind="batch",
            image="img",
            command=("run", "it"),
            env_refs=(),
            workload_sha256="00" * 32,
            gpu_count=1,
            share_ppm=share,
            mem_ppm=share,
            models=(),
            max_price_per_gpu_hour=credit(2 * PRICE),
            at_us=at,
            constraints=demands,
            **common,
            federated=None,
            participants=(),
            sla_class=None,
            auto_restart=False,
            work=None,
            references=(),
            plan=None,
            parent_job_id=None,
            instance_id=None,
            key_id=None,
        ),
    )
    yield (
        stream,
        lease.LeaseRequested(
            meter_maxima=(),
            volumes=(),
            datasets=(),
            lease_id=lease_id,
            job_id=job_id,
            gpu_count=1,
            share_ppm=share,
            mem_ppm=share,
            models=(),
            max_price_per_gpu_hour=credit(2 * PRICE),
            pay_with=None,
            term_us=None,
            funds=None,
            at_us=at,
            constraints=demands,
            **common,
            refill=False,
            sla_class=None,
            key_id=None,
            restart_of=None,
            encryption_key=None,
            remoting_session_id=None,
            split_label=None,
            route_id=None,
            pricing=None,
            months=None,
            part=None,
            attempt=None,
            run_due_us=None,
            overflow=False,
            gang_id=None,
            start_timeout_us=None,
            escrow_id=None,
        ),
    )
    if index == 4:
        yield stream, _quoted(lease_id, node_id, device_id, at)
    candidate = Candidate(node_id, f"offer_{index % size.nodes}", PRICE, 0, 0)
    yield (
        stream,
        lease.MatchDecided(
            lease_id=lease_id,
            rule="lowest_cost/1",
            fleet_position=index,
            candidates=(candidate,),
            considered=1,
            node_id=node_id,
            offer_id=candidate.offer_id,
            device_ids=(device_id,),
            at_us=at,
            pricing=None,
            weights=None,
            narrowed=(),
        ),
    )
    escrow = charge_for(GPU_HOUR_US * share // PPM * (size.hours + 1), PRICE)
    yield (
        stream,
        lease.LeaseReserved(
            meter_maxima=(),
            lease_id=lease_id,
            job_id=job_id,
            node_id=node_id,
            provider_id="prov_1",
            provider_account_id="acct_provider",
            offer_id=candidate.offer_id,
            device_ids=(device_id,),
            share_ppm=share,
            mem_ppm=share,
            gpu_class="datacenter",
            price_per_gpu_hour=credit(PRICE),
            pay_with=settlement,
            own=False,
            tariff_version=1,
            fee_per_gpu_hour=credit(FEE),
            provider_share_ppm=500_000,
            burn_share_ppm=200_000,
            escrow=(EscrowPart(source, credit(escrow)),),
            at_us=at,
            sla_class=None if index % 2 else "standard",
            client_account_id="client_story" if index == 5 else None,
            mode=mode,
            quotas=(INNER, GROUP, "acct_client|") if index % 2 else (),
            pool_id=POOLS[0] if index % 2 else None,
            **common,
            split=None,
            owners=(),
            federated=None,
            counted=(),
            prepaid=None,
            gang_id=None,
            mig=None,
            reclaim_window_us=None,
            interruptible=False,
            quote_id=None,
            by=None,
        ),
    )
    here = Stream("device", device_id)
    yield (
        here,
        device.DeviceReserved(
            device_id=device_id,
            lease_id=lease_id,
            share_ppm=share,
            mem_ppm=share,
            at_us=at,
            mode=mode,
            mig=None,
        ),
    )
    yield stream, _acknowledged(lease_id, node_id, at)
    yield (
        stream,
        lease.LeaseReady(
            lease_id=lease_id, node_id=node_id, endpoint=None, at_us=at, credentials=None
        ),
    )
    yield (
        stream,
        lease.LeaseOpened(
            lease_id=lease_id,
            price_per_gpu_hour=credit(PRICE),
            opened_at_us=at,
            funds_end_us=at + GPU_HOUR_US * (size.hours + 1),
            term_end_us=None,
            at_us=at,
        ),
    )
    more: tuple[EscrowPart, ...] = ()
    if index == 5:
        more = (EscrowPart("burned", credit(5), 2),)
        yield (
            stream,
            lease.LeaseToppedUp(
                lease_id=lease_id,
                account_id=who,
                depositor_account_id=who,
                parts=more,
                put_in=credit(escrow + 5),
                funds_end_us=at + GPU_HOUR_US * (size.hours + 2),
                at_us=at,
                counted=(),
            ),
        )
    if index == 4:
        more = (EscrowPart(source, credit(7), 2),)
        yield from _turns(stream, who, more, escrow + 7, at)
    if index == 0:
        yield from _stick(lease_id, who, at)
        yield from _hooks(who, at)
    charged, closing = 0, size.hours - 1
    for hour in range(size.hours):
        if hour == closing:
            yield (
                stream,
                lease.LeaseClosed(
                    lease_id=lease_id,
                    account_id=who,
                    closed_at_us=at + size.hours * GPU_HOUR_US,
                    party="renter",
                    code=1,
                    refund=(),
                    at_us=at + size.hours * GPU_HOUR_US,
                    by=None,
                    evidence=None,
                ),
            )
            yield from _work_ended(stream, lease_id, node_id, at + size.hours * GPU_HOUR_US)
            yield (
                here,
                device.DeviceReleased(
                    device_id=device_id,
                    lease_id=lease_id,
                    share_ppm=share,
                    mem_ppm=share,
                    at_us=at + size.hours * GPU_HOUR_US,
                ),
            )
        accrued = _accrual(index, hour, size, who, source, share, at)
        charged = accrued.charge.units
        yield stream, accrued
        yield here, _capacity(node_id, device_id, index, hour, size.hours, share)
    yield (
        stream,
        lease.LeaseSettled(
            lease_id=lease_id,
            account_id=who,
            charge=credit(charged),
            gpu_us=accrued.gpu_us,
            refund=(EscrowPart(source, credit(escrow - charged)), *more),
            at_us=at + size.hours * GPU_HOUR_US,
            disputed=False,
        ),
    )
    if index == 4:
        yield from _afterwards(stream, who, at)
    ended = job.JobCompleted if index % 4 else job.JobCancelled
    yield (
        Stream("job", job_id),
        (
            job.JobCompleted(job_id=job_id, at_us=at)
            if ended is job.JobCompleted
            else job.JobCancelled(job_id=job_id, by=who, at_us=at)
        ),
    )


def _quoted(lease_id: str, node_id: str, device_id: str, at: int) -> lease_turns.LeaseQuoted:
    return lease_turns.LeaseQuoted(
        lease_id=lease_id,
        quote_id="quote_4",
        rule="posted/1",
        provider_id="prov_1",
        node_id=node_id,
        offer_id="offer_1",
        device_ids=(device_id,),
        price_per_gpu_hour=credit(PRICE),
        reclaim_window_us=GPU_HOUR_US,
        expires_at_us=at + 60,
        open_until_us=at + 60,
        at_us=at,
        bid_id=None,
        choice=None,
    )


def _turns(
    stream: Stream[Any], who: str, more: tuple[EscrowPart, ...], put_in: int, at: int
) -> Iterator[Told]:
    """What may happen to a lease that runs: every turn once."""
    lease_id = stream.id
    told: tuple[Any, ...] = (
        lease_turns.LeasePaused(
            lease_id=lease_id, reason="outbid", by="job", paused_at_us=at + 1, at_us=at + 1
        ),
        lease_turns.LeaseResumed(
            lease_id=lease_id,
            by="job",
            resumed_at_us=at + 2,
            funds_end_us=at + 6 * GPU_HOUR_US,
            at_us=at + 2,
            mig_starts=(),
        ),
        lease_turns.LeaseDegraded(
            lease_id=lease_id,
            since_us=at + 3,
            lane=0,
            usage_position=0,
            at_us=at + 4,
            kept_until_us=None,
        ),
        lease_turns.LeaseRecovered(lease_id=lease_id, healthy_us=at + 4, gap_us=1, at_us=at + 4),
        lease_turns.ReclaimStarted(
            lease_id=lease_id, code=10_001, deadline_us=at + 9, by="prov_1", at_us=at + 5
        ),
        lease_turns.ReclaimCancelled(lease_id=lease_id, by="prov_1", at_us=at + 6),
        lease_turns.LeaseExtended(
            lease_id=lease_id,
            account_id=who,
            term_us=2 * GPU_HOUR_US,
            parts=more,
            put_in=credit(put_in),
            term_end_us=at + 2 * GPU_HOUR_US,
            funds_end_us=at + 7 * GPU_HOUR_US,
            at_us=at + 7,
            counted=(),
        ),
        lease_turns.LeaseFundsMoved(
            lease_id=lease_id, escrow_id="job_none", funds_end_us=at + 5 * GPU_HOUR_US, at_us=at + 7
        ),
        lease_turns.LeaseFundsTaken(
            lease_id=lease_id,
            account_id=who,
            payment_id="pay_1",
            parts=(),
            funds_end_us=at + 6 * GPU_HOUR_US,
            at_us=at + 7,
        ),
        lease_turns.FundsEndWarned(
            lease_id=lease_id,
            account_id=who,
            funds_end_us=at + 2 * GPU_HOUR_US,
            ahead_us=GPU_HOUR_US,
            at_us=at + 8,
        ),
    )
    yield from ((stream, fact) for fact in told)


def _afterwards(stream: Stream[Any], who: str, at: int) -> Iterator[Told]:
    """What may be said of a lease that is settled."""
    lease_id = stream.id
    told: tuple[Any, ...] = (
        lease_turns.FaultRevised(
            lease_id=lease_id,
            provider_account_id="acct_provider",
            from_code=10_004,
            code=20_004,
            since_us=at,
            closed_at_us=at + 1,
            lane=0,
            usage_position=1,
            at_us=at + 2,
        ),
        lease_turns.LeaseDisputed(
            lease_id=lease_id, dispute_id="disp_4", status="disputed", at_us=at + 3
        ),
        lease_turns.LeaseResolved(
            lease_id=lease_id,
            dispute_id="disp_4",
            outcome="rejected",
            status="resolved",
            at_us=at + 4,
        ),
        lease_turns.LeaseArchived(lease_id=lease_id, account_id=who, epoch=1, at_us=at + 5),
    )
    yield from ((stream, fact) for fact in told)


def _sla(lease_id: str, credit_units: int) -> Iterator[Told]:
    """A lease's promise, judged after its settlement; the credit is paid in two parts."""
    stream, at = Stream("sla", lease_id), _at(9)
    yield (
        stream,
        sla.SlaAssessed(
            lease_id=lease_id,
            account_id=RENTERS[0],
            provider_account_id="acct_provider",
            sla_class="standard",
            tariff_version=1,
            metered_gpu_us=9,
            promised_gpu_us=10,
            availability_ppm=900_000,
            below_ppm=990_000,
            credit_ppm=100_000,
            charge=credit(1_000),
            credit=credit(credit_units),
            at_us=at,
            excused_gpu_us=0,
        ),
    )
    for paid in range(0, credit_units, 50):
        yield (
            stream,
            sla.SlaCredited(
                lease_id=lease_id,
                credited_new=credit(50),
                credited=credit(paid + 50),
                is_last=paid + 50 == credit_units,
                at_us=at,
            ),
        )


def _dispute(name: str, line: int, upheld: int, volume_id: str | None = None) -> Iterator[Told]:
    """A thousand of a cash lease's charge, or of a volume's, contested and ruled on."""
    at, stream = _at(0), Stream("dispute", name)
    lease_id = f"lease_{0:032x}" if volume_id is None else None
    about: Any = {"lease_id": lease_id, "volume_id": volume_id}
    parties = {"account_id": RENTERS[0], "provider_account_id": "acct_provider", **about}
    words = dispute.Evidence(
        kind="statement", lane=None, position=None, sha256="cc" * 32, signed=False
    )
    disputed = dispute.DisputedLine(
        position=line,
        charge=credit(2_000),
        claimed=credit(1_000),
        gpu_us=500,
        held=(dispute.Held("acct_provider", 1_000),),
        proven=True,
    )
    yield (
        stream,
        dispute.DisputeOpened(
            dispute_id=name,
            side="renter",
            lines=(disputed,),
            claimed=credit(1_000),
            reserved=credit(1_000),
            claim_code="other",
            claim_sha256="cc" * 32,
            evidence=(words,),
            expires_at_us=at + 10**12,
            by="mem_a",
            at_us=at,
            **parties,
        ),
    )
    corrected = Stream("adjustment", str(line))
    yield (
        corrected,
        adjustment.LineDisputed(position=line, dispute_id=name, claimed=1_000, at_us=at),
    )
    for side in ("provider", "renter"):
        yield (
            stream,
            dispute.DisputeAnswered(
                dispute_id=name,
                side=side,
                statement_sha256=None,
                evidence=(words,),
                by="mem_a",
                at_us=at,
            ),
        )
    yield (
        corrected,
        adjustment.AdjustmentBooked(
            adjustment_id=f"adj_{line}",
            corrects_position=line,
            reason="dispute",
            cause=f"dispute:{name}",
            returned=upheld,
            recovered=upheld,
            owed=0,
            late=None,
            lines=(
                adjustment.BookLine(f"dispute:{name}", 1_000),
                adjustment.BookLine("party:acct_provider:payable", upheld - 1_000),
                adjustment.BookLine(f"party:{RENTERS[0]}:cash", -upheld),
            ),
            by="mem_a",
            at_us=at,
            **parties,
        ),
    )
    yield (
        stream,
        dispute.DisputeResolved(
            dispute_id=name,
            outcome="split",
            upheld_ppm=upheld * 1_000,
            lines=(
                dispute.ResolvedLine(
                    position=line,
                    claimed=credit(1_000),
                    upheld=credit(upheld),
                    adjustment_id=f"adj_{line}",
                ),
            ),
            claimed=credit(1_000),
            upheld=credit(upheld),
            opened_by="renter",
            unfounded=not upheld,
            arbiter_account_id="acct_operator",
            reason_sha256=None,
            by="mem_a",
            at_us=at,
            **about,
        ),
    )


def _stick(lease_id: str, who: str, at: int) -> Iterator[Told]:
    """The renter's half: keys that come and go, and a signature."""
    signer = Stream("signer", who)
    for key_id in ("aa", "bb"):
        yield (
            signer,
            countersign.SigningKeyAdded(
                account_id=who, key_id=key_id, public_key="00" * 32, by="m", at_us=at
            ),
        )
    yield signer, countersign.SigningKeyRevoked(account_id=who, key_id="bb", by="m", at_us=at)
    yield (
        Stream("countersign", lease_id),
        countersign.UsageCountersigned(
            lease_id=lease_id,
            account_id=who,
            key_id="aa",
            gpu_us=7,
            until_us=at + 1,
            signature="00",
            at_us=at,
        ),
    )


def _acknowledged(
    lease_id: str, node_id: str, at: int, command: str = "start"
) -> lease_command.LeaseCommandAcknowledged:
    return lease_command.LeaseCommandAcknowledged(
        lease_id=lease_id,
        node_id=node_id,
        command=command,
        workload_sha256="5a" * 32,
        executor="e0" * 8,
        runner="process",
        at_us=at,
        free_us=60_000_000 if command == "start" else None,
    )


def _work_ended(stream: Stream[Any], lease_id: str, node_id: str, at: int) -> Iterator[Told]:
    yield (
        stream,
        lease_command.LeaseWorkEnded(
            lease_id=lease_id,
            node_id=node_id,
            executor="e0" * 8,
            outcome="exited",
            exit_code=3,
            at_us=at,
        ),
    )
    yield stream, _acknowledged(lease_id, node_id, at, "stop")


def _hooks(who: str, at: int) -> Iterator[Told]:
    for name in ("hook_a", "hook_b"):
        stream = Stream("webhook", name)
        yield (
            stream,
            webhook.WebhookAdded(
                endpoint_id=name,
                account_id=who,
                url="https://x.example",
                types=("lease.",),
                secret_id="secret_a",
                by="m",
                at_us=at,
            ),
        )
        yield (
            stream,
            webhook.WebhookSecretRotated(
                endpoint_id=name,
                secret_id="secret_b",
                previous_id="secret_a",
                overlap_until_us=at,
                by="m",
                at_us=at,
            ),
        )
        yield (
            stream,
            webhook.WebhookDisabled(
                endpoint_id=name, reason="gone", position=1, by="job", at_us=at
            ),
        )
    yield (
        Stream("webhook", "hook_b"),
        webhook.WebhookEnabled(endpoint_id="hook_b", by="m", at_us=at),
    )


def _parts(charge: int, source: str) -> Parts:
    if source == "burned":
        return Parts(fee=0, provider=0, platform=0, burn=charge)
    return peel(charge, PRICE, FEE, 500_000, 200_000) if charge else NOTHING


def _accrual(
    index: int, hour: int, size: Size, who: str, source: str, share: int, opened_us: int
) -> lease.UsageAccrued:
    before_us, now_us = (GPU_HOUR_US * share // PPM * hours for hours in (hour, hour + 1))
    before, now = charge_for(before_us, PRICE), charge_for(now_us, PRICE)
    parts, new = _parts(now, source), _parts(now, source) - _parts(before, source)
    device_id = size.device(index, index % size.devices)
    until_us = opened_us + (hour + 1) * GPU_HOUR_US
    return lease.UsageAccrued(
        lease_id=f"lease_{index:032x}",
        hour_index=hour,
        until_us=until_us,
        node_id=size.node(index),
        account_id=who,
        provider_account_id="acct_provider",
        client_id="client_1",
        project_id="prj",
        end_user_ref="u1",
        lane=index % 64,
        usage_position=100 * index + hour + 1,
        resume_position=100 * index + hour + 1,
        ppm_us=now_us * PPM,
        gpu_us=now_us,
        gpu_us_new=now_us - before_us,
        charge=credit(now),
        charge_new=credit(now - before),
        parts=parts,
        parts_new=new,
        drawn=(EscrowPart(source, credit(now - before)),),
        watermarks=(
            accrual.Watermark(device_id, "boot", hour * GPU_HOUR_US, until_us, now_us * PPM),
        ),
        refused=_REFUSED if hour == 1 else (),
        at_us=until_us,
        owed=lease.Unfunded(who, credit(0)) if index == 1 else None,
        client_account_id=None,
        owners=(),
        federated=None,
        escrow_id=None,
    )


def _capacity(node_id: str, device_id: str, index: int, hour: int, hours: int, share: int) -> Any:
    whole = GPU_HOUR_US // 1_000
    from_us = START_US + (index * hours + hour) * GPU_HOUR_US
    count = index * hours + hour + 1
    leased = whole * share // PPM
    return device.CapacityAccrued(
        device_id=device_id,
        from_us=from_us,
        to_us=from_us + GPU_HOUR_US,
        physical=Amount(Asset.GPU_MS, whole),
        leased=Amount(Asset.GPU_MS, leased),
        stranded=Amount(Asset.GPU_MS, 0),
        unavailable=Amount(Asset.GPU_MS, 0),
        mined=Amount(Asset.GPU_MS, (whole - leased) // 3),
        physical_us=count * GPU_HOUR_US,
        leased_ppm_us=count * GPU_HOUR_US * share,
        stranded_ppm_us=0,
        unavailable_ppm_us=0,
        mined_ppm_us=count * GPU_HOUR_US * (PPM - share) // 3,
        at_us=from_us + GPU_HOUR_US,
        node_id=node_id,
        lane=None,
        usage_position=None,
    )


def _epoch_opened(number: int) -> Told:
    start = START_US + (number - 1) * 604_800_000_000
    return Stream("epoch", str(number)), epoch.EpochOpened(
        epoch=number, start_us=start, end_us=start + 604_800_000_000, policy_version=1, at_us=start
    )


def _epoch_end() -> Iterator[Told]:
    """A burn confirmed inside the cut, the cut, and the way to a paid claim."""
    at = START_US + 604_800_000_000
    yield (
        price_feed.FEED,
        price_feed.PriceSnapshotTaken(
            number=1,
            sources=(),
            window_us=1,
            max_age_us=1,
            max_deviation_bps=1,
            min_sources=1,
            health="too_few_sources",
            by="job",
            at_us=at,
            median_micro_usd=None,
            deviation_bps=None,
            held_to=None,
            max_move_bps=None,
        ),
    )
    burned = Stream("burn", "1")
    amounts: dict[str, Any] = {"credits": credit(1_000), "tokens": token(55)}
    yield (
        burned,
        burn.BurnIntended(
            burn_id=1,
            first_position=1,
            last_position=10**6,
            price_micro_usd=1_870_000,
            price_round=1,
            at_us=at,
            **amounts,
            price_snapshot=None,
        ),
    )
    yield burned, burn.BurnConfirmed(burn_id=1, tx_hash="0xbb", block_number=5, at_us=at, **amounts)
    one = Stream("epoch", "1")
    yield one, epoch.EpochClosing(epoch=1, by="acct_operator", at_us=at)
    lanes = tuple(pin.LanePin(lane, 2, "00" * 32, "00" * 32) for lane in range(64))
    yield Stream("pins", "usage"), pin.UsagePinned(lanes=lanes, lanes_root="11" * 32, at_us=at)
    yield _epoch_opened(2)
    yield (
        one,
        epoch.EpochSealed(
            epoch=1,
            cut_position=1,
            policy_version=1,
            emission=token(109),
            compute_pool=token(79),
            availability_pool=token(20),
            treasury_pool=token(10),
            compute_carry_before=token(0),
            rewards=token(86),
            compute_carry=token(3),
            recipients=3,
            chunks=1,
            file_sha256="22" * 32,
            at_us=at,
            unissued=token(0),
            recyclable=token(0),
            release=token(0),
            returned=token(0),
            returned_release=token(0),
            availability_carry_before=token(0),
            availability_carry=token(20),
            compute_weight=0,
            availability_weight=0,
            availability_tier_2_weight=0,
            adjustments_open=(),
            price_snapshot=None,
            clients_sha256="33" * 32,
        ),
    )
    worker, treasury = Reward("acct_provider", token(67)), Reward("treasury", token(10))
    rewards = (worker, Reward(WALLETLESS, token(9)), treasury)
    yield one, epoch.RewardsCredited(epoch=1, chunk=1, rewards=rewards, at_us=at)
    yield from _corrections(at)
    left = Reward(WALLETLESS, token(5))
    matured = (worker, left, treasury)
    yield one, epoch.RewardsMatured(epoch=1, chunk=1, rewards=matured, at_us=at)
    yield (
        Stream("epoch", "2"),
        reward_changes.RewardsForfeited(epoch=2, through_epoch=1, rewards=(left,), at_us=at),
    )
    out = Stream("payout", "1")
    yield (
        out,
        payout.EpochMintConfirmed(
            epoch=1,
            amount=token(109),
            settlement_id="22" * 32,
            tx_hash="0x3",
            block_number=6,
            at_us=at,
        ),
    )
    root: dict[str, Any] = {"epoch": 1, "seq": 1, "root": "0x" + "44" * 32}
    for built in (1, 2):
        yield (
            out,
            payout.PayoutRootBuilt(
                manifest_sha256="22" * 32,
                previous_root=payout.NO_ROOT,
                committed=token(81),
                leaves=2,
                at_us=at + built,
                **root,
            ),
        )
        yield (
            out,
            payout.RootProposed(
                valid_at_us=at + 100, tx_hash=f"0x5{built}", at_us=at + built, **root
            ),
        )
        if built == 1:
            yield out, payout.RootVetoed(reason="typo", tx_hash="0x6", at_us=at + 1, **root)
    yield out, payout.RootAccepted(tx_hash="0x7", at_us=at + 3, **root)
    yield (
        Stream("claim", "0xd/0xab/67"),
        payout.PayoutConfirmed(
            distributor="0xd",
            account_id="acct_provider",
            address="0xab",
            seq=1,
            amount=token(67),
            cumulative=token(67),
            tx_hash="0x8",
            log_index=0,
            block_number=7,
            at_us=at + 4,
            set_aside=0,
        ),
    )


def _corrections(at: int) -> Iterator[Told]:
    """A slash that took what it asked for, an adjustment, and one that nobody has accepted."""
    common: dict[str, Any] = {"epoch": 1, "reason": "odd", "by": "mem_a", "at_us": at}
    yes: dict[str, Any] = {"proposed_by": "mem_a", "by": "mem_b", "at_us": at}
    slash, late, waits = (Stream("reward_correction", f"correction_{n}") for n in (1, 2, 3))
    for stream, kind, who, delta in (
        (slash, "slash", WALLETLESS, -4),
        (late, "adjustment", "acct_provider", 3),
        (waits, "adjustment", "acct_provider", -(2**62)),
    ):
        yield (
            stream,
            reward_correction.RewardCorrectionProposed(
                correction_id=stream.id,
                kind=kind,
                account_id=who,
                delta=delta,
                evidence_position=1 if kind == "slash" else None,
                governors=1,
                **common,
            ),
        )
    yield (
        slash,
        reward_correction.RewardCorrectionAccepted(
            correction_id=slash.id, slashed=4, adjusted=0, adjusted_epoch=None, **yes
        ),
    )
    yield (
        Stream("epoch", "1"),
        reward_changes.RewardSlashed(
            epoch=1,
            correction_id=slash.id,
            account_id=WALLETLESS,
            amount=token(4),
            reason="odd",
            evidence_position=1,
            **yes,
        ),
    )
    yield (
        late,
        reward_correction.RewardCorrectionAccepted(
            correction_id=late.id, slashed=0, adjusted=3, adjusted_epoch=2, **yes
        ),
    )
    yield (
        Stream("epoch", "2"),
        reward_changes.RewardAdjusted(
            epoch=2,
            original_epoch=1,
            correction_id=late.id,
            account_id="acct_provider",
            delta=3,
            reason="odd",
            **yes,
        ),
    )


def _money_out() -> Iterator[Told]:
    """The provider's first earnings mature and are swept; the next ones wait."""
    at = START_US + 604_800_000_000
    stream = Stream("earnings", "acct_provider")
    common: dict[str, Any] = {"account_id": "acct_provider"}
    yield (
        Stream("maturity", "network"),
        maturity.MaturityWindowSet(
            version=1, window_us=0, effective_from_us=at, by="mem_a", at_us=at
        ),
    )
    yield (
        stream,
        maturity.PaymentModeSet(
            mode="credits",
            billing_account_id="acct_cash",
            destination=None,
            by="mem_a",
            at_us=at,
            **common,
            destination_from_us=None,
        ),
    )
    yield (
        stream,
        maturity.EarningsReduced(position=80, units=5, cause="dispute:one", at_us=at, **common),
    )
    for after, through in ((0, 80), (80, 90)):
        yield (
            stream,
            maturity.EarningsMatured(
                after_position=after,
                through_position=through,
                gross=credit(105),
                reduced=credit(5),
                amount=credit(100),
                at_us=at,
                **common,
                clients=(brought.ClientPart("acct_client", 60), brought.ClientPart("", 40)),
                before=after and 100,
            ),
        )
    yield (
        stream,
        maturity.EarningsBrought(
            source="region-day:region_1/1",
            book="payable",
            amount=credit(5),
            clients=(brought.ClientPart("direct", 5),),
            before=200,
            at_us=at,
            **common,
        ),
    )
    yield (
        stream,
        maturity.EarningsSwept(
            day=at // DAY_US,
            amount=credit(150),
            to_account_id="acct_cash",
            at_us=at,
            clients=(brought.ClientPart("acct_client", 90), brought.ClientPart("", 60)),
            before=0,
            **common,
        ),
    )
    yield from _cash_outs(at)


def _cash_outs(at: int) -> Iterator[Told]:
    """One paid and returned, one failed, one cancelled, one on its way; holds and differences."""
    holds = Stream("cash_out_holds", "acct_cash")
    for hold_id in ("operator", "audit"):
        yield (
            holds,
            cash_out.CashOutsHeld(
                account_id="acct_cash", hold_id=hold_id, reason="a look", by="mem_a", at_us=at
            ),
        )
    yield (
        holds,
        cash_out.CashOutsReleased(account_id="acct_cash", hold_id="operator", by="m", at_us=at),
    )
    for number, ends in enumerate(("paid", "failed", "cancelled", "sent"), start=1):
        cash_out_id = f"cashout_{number}"
        stream = cash_out.stream_of(cash_out_id)
        common: dict[str, Any] = {"cash_out_id": cash_out_id}
        amount = credit(10)
        clients = (brought.ClientPart("acct_client", 6), brought.ClientPart("", 4))
        yield (
            stream,
            cash_out.CashOutRequested(
                account_id="acct_cash",
                amount=amount,
                destination="acct_x",
                by="mem_a",
                at_us=at,
                clients=clients,
                **common,
            ),
        )
        if ends == "cancelled":
            yield (
                stream,
                cash_out.CashOutCancelled(
                    account_id="acct_cash", amount=amount, by="mem_a", at_us=at, **common
                ),
            )
            continue
        yield stream, cash_out.CashOutStarted(processor="bank", at_us=at, **common)
        yield (
            stream,
            cash_out.CashOutSent(
                reference=f"po_{number}", instructions=None, at_us=at, clients=clients, **common
            ),
        )
        if ends == "paid":
            yield (
                stream,
                cash_out.CashOutPaid(amount=amount, by="job", at_us=at, clients=clients, **common),
            )
            for so_far in (3, 4):
                yield (
                    stream,
                    cash_out.CashOutReturned(
                        account_id="acct_cash",
                        amount=credit(3 if so_far == 3 else 1),
                        returned=credit(so_far),
                        reason="back",
                        at_us=at,
                        **common,
                    ),
                )
        if ends == "failed":
            yield (
                stream,
                cash_out.CashOutFailed(
                    account_id=None, amount=amount, reason="closed", by="job", at_us=at, **common
                ),
            )
    for number in (1, 2):
        found = payout_matching.stream_of(f"difference_{number}")
        yield (
            found,
            payout_matching.PayoutDifferenceFound(
                difference_id=f"difference_{number}",
                kind="unknown",
                reference="po_9",
                cash_out_id=None,
                expected=None,
                found=credit(3),
                at_us=at,
            ),
        )
        if number == 1:
            yield (
                found,
                payout_matching.PayoutDifferenceSettled(
                    difference_id="difference_1", note="by hand", by="mem_a", at_us=at
                ),
            )


def _metered(size: Size) -> Iterator[Told]:
    """An edge device and its fee, a storage node, and storage of a lease that goes on after it."""
    who, at = RENTERS[0], _at(10**5 - 60)
    stream = edge_device.stream_of(who)
    for name in ("edge_1", "edge_2"):
        yield (
            stream,
            edge_device.EdgeDeviceAdded(
                device_id=name,
                account_id=who,
                region_id="region_1",
                name=name.replace("_", "-"),
                minion_id=f"minion-{name}",
                model="jetson-orin-nano",
                first_day="2027-01-01",
                by="mem_a",
                at_us=at,
            ),
        )
    yield (
        stream,
        edge_device.EdgeDeviceActivated(device_id="edge_1", account_id=who, by="mem_a", at_us=at),
    )
    yield from deployed(who, at)
    yield (
        stream,
        edge_device.EdgeDeviceRemoved(
            device_id="edge_2", account_id=who, last_day="2027-01-01", by="mem_a", at_us=at
        ),
    )
    for day, devices, due in (("2027-01-01", 2, 967_741), ("2027-01-02", 1, 1_451_612)):
        charge = due if devices == 2 else due - 967_741
        yield (
            stream,
            edge_device.DeviceFeeCharged(
                account_id=who,
                day=day,
                unique=devices,
                fee_per_month=credit(15_000_000),
                tariff_version=1,
                days_in_month=31,
                fee_days=due * 31,
                due=credit(due),
                charge=credit(charge),
                drawn=(draw.Drawn(who, "cash", credit(charge - 10)),),
                owed=credit(10),
                at_us=at,
            ),
        )
    yield from _storage_node(at)
    yield from stored(at)
    for meter in ("network", "storage"):
        yield from _resources(size, size.leases - 2, meter, at)


def _region_terms() -> Told:
    """Region 1 shares what its nodes earn, from before anything was earned."""
    infra = region_terms.InfraCost(
        base=credit(1),
        control=credit(1),
        ingress=credit(1),
        most=credit(5),
        arrears_max=credit(3),
        per_gib=credit(1),
    )
    return region_terms.stream_of("region_1"), region_terms.RegionTermsSet(
        region_id="region_1",
        version=1,
        effective_from_day=START_US // DAY_US,
        is_shared=True,
        participation_ppm=200_000,
        availability_min_tier=1,
        infra=infra,
        by="mem_a",
        at_us=START_US,
    )


def _region_day(size: Size) -> Iterator[Told]:
    """Ten micro-credits of two nodes: two for control, three for being there, four for work."""
    at = START_US + 604_800_000_000
    here: dict[str, Any] = {"region_id": "region_1", "day": START_US // DAY_US, "at_us": at}
    stream = region_pool.stream_of("region_1", here["day"])
    first, second = size.node(0), size.node(1)
    yield (
        stream,
        region_pool.RegionEarningsGathered(
            account_id="acct_provider",
            through_position=90,
            amount=credit(10),
            nodes=(region_pool.NodeEarned(first, 7), region_pool.NodeEarned(second, 3)),
            clients=(brought.ClientPart("direct", 10),),
            **here,
        ),
    )
    yield (
        stream,
        region_pool.RegionDayShared(
            terms_version=1,
            gathered=credit(10),
            carry_before=credit(0),
            infra_due=credit(4),
            arrears_before=credit(0),
            infra=credit(2),
            infra_account_id="acct_provider",
            arrears=credit(1),
            forgone=credit(1),
            participation=credit(3),
            usage=credit(4),
            carry=credit(1),
            control_nodes=1,
            ingress_nodes=0,
            ingress_bytes=0,
            nodes=2,
            chunks=2,
            **here,
            infra_book=None,
        ),
    )
    for chunk, (node_id, got) in enumerate(((first, (2, 3)), (second, (1, 1)))):
        share = region_pool.NodeShare(
            node_id,
            DAY_US,
            5,
            sum(got),
            got[0],
            got[1],
            (region_pool.SharePart("acct_provider", sum(got)),),
        )
        yield (
            stream,
            region_pool.RegionSharesPaid(
                chunk=chunk, shares=(share,), amount=credit(sum(got)), **here
            ),
        )


def _storage_node(at: int) -> Iterator[Told]:
    here, stream = {"region_id": "region_1"}, storage_node.stream_of("region_1")
    for number in (1, 2):
        told: dict[str, Any] = {**here, "number": number, "at_us": at + number}
        yield (
            stream,
            storage_node.StorageNodeProvisioned(
                provider_id="prov_1",
                account_id="acct_provider",
                storage_class="ssd",
                per_hour=credit(100),
                tariff_version=1,
                by="mem_a",
                **told,
            ),
        )
        yield stream, storage_node.StorageNodeReady(by="mem_a", **told)
        for hour in (1, 2):
            yield (
                stream,
                storage_node.StorageNodeCharged(
                    account_id="acct_provider",
                    until_us=at + hour * GPU_HOUR_US,
                    elapsed_us=hour * GPU_HOUR_US,
                    charge=credit(100 * hour),
                    charge_new=credit(100),
                    drawn=(),
                    owed=credit(100),
                    **told,
                ),
            )
        if number == 1:
            yield (
                stream,
                storage_node.StorageNodeRemoved(account_id="acct_provider", by="mem_a", **told),
            )


def _resources(size: Size, index: int, meter: str, at: int) -> Iterator[Told]:
    """A renter in cash; three facts, of which the first counts nothing."""
    who, lease_id, before = RENTERS[0], f"lease_{index:032x}", NOTHING
    first = 1 if meter == "network" else 101
    stream = resource_usage.stream_of(lease_id, meter)
    told: dict[str, Any] = {"lease_id": lease_id, "meter": meter, "account_id": who, "at_us": at}
    held = (EscrowPart("cash", credit(2_000)),)
    yield stream, resource_usage.ResourceHeld(parts=held, **told)
    for turn, quantity in enumerate((0, 700, 1_900)):
        parts = peel(quantity, 1, 0, 500_000, 200_000)
        new = parts - before
        yield (
            stream,
            resource_usage.ResourceAccrued(
                lease_id=lease_id,
                meter=meter,
                unit=METERS[meter],
                node_id=size.node(index),
                account_id=who,
                provider_account_id="acct_provider",
                client_id="client_1",
                project_id="prj",
                end_user_ref="u1",
                after_position=first + turn - 1,
                through_position=first + turn,
                client_account_id=None,
                owners=(),
                lane=lane_of(size.node(index)),
                rows=1,
                mark=resource_usage.Mark("boot", turn, at),
                time_us=turn,
                told_us=turn,
                measured=quantity * SCALE_OF[meter],
                quantity=quantity,
                quantity_new=new.total,
                rate=MeterRate(meter, credit(1), 1),
                tariff_version=1,
                charge=credit(parts.total),
                charge_new=credit(new.total),
                parts=parts,
                parts_new=new,
                drawn=(EscrowPart("cash", credit(new.total)),) if turn else (),
                refused=() if turn else (resource_usage.RefusedRow(first, "overlap", 5),),
                at_us=at,
            ),
        )
        before = parts
    if meter == "network":
        rest = (EscrowPart("cash", credit(100)),)
        yield (
            stream,
            resource_usage.ResourceReturned(
                parts=rest, from_us=at - 90, until_us=at, ran_us=80, told_us=30, **told
            ),
        )


def _leaving(size: Size) -> Iterator[Told]:
    at, last = _at(10**5), size.nodes - 1
    stream = Stream("node", size.node(last))
    yield (
        Stream("offer", f"offer_{last}"),
        offer.OfferWithdrawn(offer_id=f"offer_{last}", by="mem_a", at_us=at),
    )
    yield stream, node.NodeMaintenanceStarted(node_id=size.node(last), by="mem_a", at_us=at)
    for failing in (("tpm_2_0", "ram"), ("tpm_2_0",)):
        yield (
            stream,
            node_hardware.NodeHardwareJudged(
                node_id=size.node(last),
                joinable=True,
                sellable="ram" not in failing,
                failing=failing,
                waived=("tpm_2_0",),
                at_us=at,
            ),
        )
    yield (
        stream,
        node.NodeAdmitted(node_id=size.node(last), by="mem_a", at_us=at, waived=("tpm_2_0",)),
    )
    yield (
        stream,
        node.NodeEquivocated(
            node_id=size.node(last), lane=1, node_seq=2, first_leaf="aa", second_leaf="bb", at_us=at
        ),
    )
    rotated = {"key_id": "key_next", "public_key": "cd" * 32, "previous_key_id": f"key_{last}"}
    signed = {"previous_signature": "ee" * 64, "signature": "ff" * 64}
    token = {"token_sha256": "ab" * 32, "sealed_token": "aa" * 48}
    yield (
        stream,
        node_key.NodeKeyRotated(
            node_id=size.node(last), from_seq=3, at_us=at, **rotated, **signed, **token
        ),
    )
    yield (
        stream,
        node_key.NodeOldKeyRevoked(
            node_id=size.node(last), key_id=f"key_{last}", by="mem_a", at_us=at
        ),
    )
    yield (
        stream,
        node_key.NodeBootsAlternated(
            node_id=size.node(last),
            lane=1,
            first_boot="boot-a",
            second_boot="boot-b",
            first_seq=3,
            second_seq=4,
            at_us=at,
        ),
    )
    yield (
        stream,
        node_key.NodeKeyRevoked(node_id=size.node(last), key_id="key_next", by="mem_a", at_us=at),
    )
    yield stream, node.NodeRetired(node_id=size.node(last), by="mem_a", at_us=at)
    gone = size.device(last, 0)
    yield (
        Stream("device", gone),
        device.DeviceRetired(device_id=gone, node_id=size.node(last), at_us=at),
    )
    if last:
        # It comes back in another machine.
        yield (
            Stream("device", gone),
            device.DeviceRegistered(
                device_id=gone,
                node_id=size.node(0),
                provider_id="prov_1",
                vendor="nvidia",
                model="M0",
                gpu_class="datacenter",
                memory_mib=40_960,
                at_us=at,
                kind="gpu",
                memory="dedicated",
                is_divisible=True,
                capacity_asset=Asset.GPU_MS,
            ),
        )


def _invoices() -> Iterator[Told]:
    at = _at(2 * 10**5)
    tax = TaxLine("VAT DE", 190_000, credit(10), credit(1), 0)
    line = invoice.InvoiceLine("usage", "datacenter", 3_600_000_000, "GPU-microsecond", credit(11))
    series = Stream("invoice-series", "INV")
    invoice_id = invoice.invoice_id_of("charges", "acct_cash", "2026-11")
    yield series, invoice.DocumentNumbered(series="INV", number=1, invoice_id=invoice_id, at_us=at)
    common: dict[str, Any] = {
        "invoice_id": invoice_id,
        "account_id": "acct_cash",
        "kind": "charges",
        "taxes": (tax,),
        "net": credit(10),
        "total": credit(11),
        "document_sha256": "0a" * 32,
        "by": "job",
    }
    yield (
        Stream("invoice", invoice_id),
        invoice.InvoiceIssued(
            period="2026-11",
            series="INV",
            number=1,
            first_position=0,
            last_position=9,
            lines=(line,),
            at_us=at,
            **common,
        ),
    )
    yield (
        Stream("invoice", invoice_id),
        invoice.CreditNoteIssued(
            series="CN",
            number=1,
            corrects="INV-000001",
            lines=(invoice.CreditLine(1, credit(11)),),
            cause="adjustment:9",
            reason="dispute",
            at_us=at + 1,
            **common,
        ),
    )


_REFUSED = (accrual.RefusedTime("overlap", 16), accrual.RefusedTime("faster_than_time", 1))


def _trust(size: Size) -> Iterator[Told]:
    at = _at(10**5)
    for known in (trust_record.DriverLibraryKnown, trust_record.DriverLibraryForgotten):
        for number in (1, 2) if known is trust_record.DriverLibraryKnown else (2,):
            yield (
                trust_record.LIBRARIES,
                known(driver=f"580.{number}", sha256="0b" * 32, by="mem_a", at_us=at),
            )
    one, other, device_id = size.node(0), size.node(1), size.device(0, 0)
    stream = Stream("device-trust", device_id)
    yield (
        stream,
        trust_record.DeviceTwice(
            device_id=device_id,
            first_node_id=one,
            first_lane=1,
            first_position=1,
            second_node_id=other,
            second_lane=2,
            second_position=1,
            seen_us=at,
            at_us=at,
        ),
    )
    yield (
        stream,
        trust_record.NonceIssued(
            device_id=device_id,
            node_id=one,
            server_nonce="0c" * 32,
            acked_seq=1,
            head="0d" * 32,
            at_us=at,
        ),
    )
    yield (
        stream,
        trust_record.DeviceAttested(
            device_id=device_id,
            node_id=one,
            plugin="test",
            nonce="0e" * 32,
            evidence_sha256="0f" * 32,
            passed=True,
            detail="",
            at_us=at,
        ),
    )
    for number, rule in enumerate((None, "too_late", "open")):
        name = f"chal_{number:032x}"
        named: dict[str, Any] = {
            "challenge_id": name,
            "node_id": one,
            "device_id": device_id,
            "program": "reference",
        }
        yield (
            Stream("challenge", name),
            challenge.ChallengeIssued(
                job_id=f"job_{number:032x}",
                lease_id=f"lease_{number:032x}",
                seed="aa",
                size=2,
                rounds=1,
                fill_kib=1,
                limit_us=1,
                at_us=at,
                **named,
            ),
        )
        if rule != "open":
            yield (
                Stream("challenge", name),
                challenge.ChallengeJudged(rule=rule, took_us=1, at_us=at, **named),
            )


# --- writing ---------------------------------------------------------------------------------


class Writer:
    """Puts facts straight into the tables of the market log and the books, as the superuser.

    The stored bytes, leaves, chain, positions and balances are those of a real append; blinded,
    too, where it is given the log's key. Where the story draws on nothing, an account is turned
    round, unless the database `may_owe`: has no limits.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        blinding_key: bytes | None = None,
        *,
        may_owe: bool = False,
    ) -> None:
        self.connection = connection
        self.blinding_key = blinding_key
        self.may_owe = may_owe
        self.position = 0
        self.hash = GENESIS_MARKET
        self.recorded_us = 0
        self._versions: dict[UUID, int] = {}
        self._accounts: dict[str, int] = {}
        self._balances: dict[int, tuple[str, str, int]] = {}  # name, asset, debits minus credits

    def go_on(self) -> None:
        """Take up a log that was written through its door; nothing else writes to it meanwhile."""
        head = self.connection.execute("SELECT pos, hash, recorded_us FROM market_events_head")
        self.position, self.hash, self.recorded_us = head.fetchone() or (0, GENESIS_MARKET, 0)
        self._versions = dict(
            self.connection.execute(
                "SELECT originator_id, max(originator_version) FROM market_events GROUP BY 1"
            ).fetchall()
        )
        rows = self.connection.execute(
            "SELECT id, name, asset, side * units FROM account ORDER BY id"
        )
        for number, name, asset, net in rows.fetchall():
            self._accounts[name], self._balances[number] = number, (name, asset, net)

    def write(self, told: Iterable[Told]) -> int:
        """Append these facts in one transaction; returns the position of the last."""
        events: list[tuple[Any, ...]] = []
        postings: list[tuple[Any, ...]] = []
        for stream, fact in told:
            events.append(self._event(stream, fact))
            postings += [self._posting(entry) for entry in entries_for(fact)]
        with self.connection.transaction():
            self._copy("market_events", events)
            self._copy("posting", postings)
            self.connection.execute("DELETE FROM account")
            with self.connection.cursor().copy(
                "COPY account (id, name, asset, side, units) FROM STDIN"
            ) as copy:
                for number, (name, asset, net) in self._balances.items():
                    side = kind_of(name).side
                    side = side if side * net >= 0 or self.may_owe else -side
                    copy.write_row((number, name, asset, side, side * net))
            self.connection.execute(
                "UPDATE market_events_head SET pos = %s, hash = %s, recorded_us = %s",
                (self.position, self.hash, self.recorded_us),
            )
            self.connection.execute("SELECT pg_notify('market_events', %s)", (str(self.position),))
        return self.position

    def _event(self, stream: Stream[Any], fact: Any) -> tuple[Any, ...]:
        uuid, key = stream.uuid, self.blinding_key
        version = self._versions[uuid] = self._versions.get(uuid, 0) + 1
        blind = "00" * 16 if key is None else codec.blind(key, uuid, version)
        name, body = codec.encode(fact, f"told/{self.position + 1}", blind)
        leaf = market_leaf(uuid, version, name, body)
        self.position += 1
        self.hash = chain(self.hash, leaf)
        self.recorded_us = max(self.recorded_us, fact.at_us)
        return uuid, version, name, body, self.position, leaf, self.hash, self.recorded_us

    def _posting(self, entry: Any) -> tuple[Any, ...]:
        numbers, units, after = [], [], []
        for name, moved in entry.lines:
            number = self._accounts.get(name) or next(reversed(self._balances), 0) + 1
            self._accounts[name] = number
            net = self._balances.get(number, ("", "", 0))[2] + moved
            self._balances[number] = (name, entry.asset.value, net)
            numbers.append(number)
            units.append(moved)
            after.append(kind_of(name).side * net if self.may_owe else abs(net))
        return self.position, entry.asset.value, numbers, units, after

    def _copy(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        with self.connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)
