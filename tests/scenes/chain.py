"""A small market with its own chain, for tests of epochs and payouts: all real, all in process.

One provider with a node of two GPUs, one renter; the contracts are deployed on an embedded chain
whose epoch 1 begins when the ledger's does. Time is the chain's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg

from api.chain.timer import ChainJobs, NetworkBurns, account_ref, payout_path
from api.epochs import closing as settlement
from contracts import manifest, payout_scripts
from contracts.abi import artifact
from contracts.chain import Call, Chain, Receipt
from contracts.deployment import Deployment, role_id
from contracts.devnet import Devnet
from contracts.outbox import FileStore, Intent, Outbox
from contracts.payout_tree import payout_tree
from contracts.signers import LocalKeySigner
from contracts.tally import TOKEN_UNIT, Tally
from domain.duration import HOUR_US
from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.epochs.reward_terms import RewardTerms
from domain.fleet.node import (
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    DeviceSpec,
    HostSpec,
    IssueJoinCode,
    JoinNode,
)
from domain.fleet.provider import OpenRegion, RegisterProvider
from domain.funds.deposit import ConfirmDeposit
from domain.jobs.job import SubmitJob
from domain.lease.lease import (
    AccrueUsage,
    CloseLease,
    ReadyLease,
    RequestLease,
    ReserveLease,
    SettleLease,
)
from domain.market.offer import PublishOffer
from domain.metering.counting import UsageRow
from domain.metering.report import lane_of
from domain.money import credit, token
from domain.parties.account import WALLET_DELAY_US, BootstrapOperator, LinkWallet, OpenAccount
from domain.prices.price_feed import ObservePrice, PriceSource, SetPriceSources
from domain.prices.tariff import CLOUDBENDER, PublishTariff
from ledger.log.handle import Ledger
from tests.contracts import stage
from tests.contracts.stage import CAP, DAY_S, GENESIS_S, TIMELOCK_S

SECOND_US = 1_000_000
START_US = GENESIS_S * SECOND_US
RENTER, OWNER, OPERATOR = "acct_renter", "acct_owner", "acct_operator"
PROVIDER, REGION, NODE = "prov_a", "region_a", "node_" + "a" * 32
DEVICES = ("GPU-0", "GPU-1")
OFFERS = {"cash": "offer_cash", "burn": "offer_burn"}
OWNER_WALLET, NEW_WALLET = stage.account(0xA11CE), stage.account(0xA11CF)
EMISSION = CAP // 100
PRICE = 3_600_000
BLINDING_KEY = b"tests/api/chain_scene"


@dataclass
class Scene:
    """One ledger and one chain, both from the start of epoch 1."""

    ledger: Ledger
    conninfo: str
    connection: psycopg.Connection[Any]
    devnet: Devnet
    stage: stage.Stage
    data_dir: Path
    with_burns: bool = False
    jobs_made: list[ChainJobs] = field(default_factory=list)

    @property
    def tally(self) -> Tally:
        return self.stage.tally

    @property
    def now_us(self) -> int:
        return self.stage.now_s * SECOND_US

    @property
    def treasury(self) -> LocalKeySigner:
        return LocalKeySigner(self.devnet.keys[9], self.devnet.chain_id)

    def handle(self, *commands: Any) -> None:
        self.ledger.handle(list(commands), key=None, now_us=self.now_us)

    def travel(self, seconds: int) -> None:
        self.stage.wait(seconds)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.conninfo, autocommit=True)

    # --- the market --------------------------------------------------------------------------

    def found(
        self, holdback_epochs: int = 0, rewards: RewardTerms | None = None, epochs: int = 10
    ) -> None:
        """Accounts, policy, tariff, a node with two offers, and epoch 1; so many pay something."""
        at: dict[str, Any] = {"at_us": START_US}
        by: dict[str, Any] = {"by": "operator", **at}
        self.handle(
            BootstrapOperator(
                account_id=OPERATOR,
                member_id="operator",
                key_id="k0000000",
                key_sha256="11" * 32,
                **at,
            ),
            *(
                OpenAccount(
                    account_id=account,
                    kind="party",
                    opened_by="operator",
                    owner_member_id="owner",
                    **at,
                )
                for account in (RENTER, OWNER)
            ),
            PublishTariff(
                version=1,
                usage_fees=CLOUDBENDER.usage_fees,
                provider_share_ppm=500_000,
                burn_share_ppm=500_000,
                effective_from_us=0,
                **by,
            ),
            PublishPolicy(
                version=1,
                epoch_length_us=DAY_S * SECOND_US,
                segments=(EmissionSegment(1, epochs, epochs * EMISSION),),
                hard_cap=token(100 * CAP),
                compute_ppm=700_000,
                availability_ppm=200_000,
                treasury_ppm=100_000,
                compute_base="burned_value",
                holdback_epochs=holdback_epochs,
                effective_from_epoch=1,
                rewards=rewards,
                **by,
            ),
            OpenEpoch(epoch=1, start_us=START_US, **at),
            RegisterProvider(
                provider_id=PROVIDER,
                account_id=OWNER,
                kind="physical",
                payment_mode="credits",
                **at,
            ),
            OpenRegion(
                region_id=REGION,
                provider_id=PROVIDER,
                name="home",
                storage_mode="local",
                setting="datacenter",
                admission="operator",
                allow_public_jobs=True,
                **at,
            ),
            IssueJoinCode(code_sha256="22" * 32, provider_id=PROVIDER, region_id=REGION, **by),
            JoinNode(
                code_sha256="22" * 32,
                node_id=NODE,
                key_id="nk_1",
                public_key="33" * 32,
                token_sha256="44" * 32,
                agent="test",
                client_id=None,
                devices=tuple(DeviceSpec(one, "nvidia", "A100", 81_920) for one in DEVICES),
                host=HostSpec("x86_64", "linux"),
                **at,
            ),
            ConfirmNodeKey(node_id=NODE, key_id="nk_1", **by),
            AdmitNode(node_id=NODE, **by),
            ActivateNode(node_id=NODE, **by),
            *(
                PublishOffer(
                    offer_id=offer,
                    provider_id=PROVIDER,
                    node_id=NODE,
                    price_per_gpu_hour=credit(PRICE),
                    pay_with=settles,
                    fractions=True,
                    available_until_us=None,
                    **at,
                )
                for settles, offer in OFFERS.items()
            ),
        )

    def link(
        self, address: str = OWNER_WALLET, account: str = OWNER, waited_us: int = WALLET_DELAY_US
    ) -> None:
        """A wallet that was linked `waited_us` ago: it is paid from now on, unless told else."""
        at_us = self.now_us - waited_us
        self.handle(
            LinkWallet(account_id=account, address=address, message="m", signature="s", at_us=at_us)
        )

    def deposit(self, credits: int, source: str = "cash") -> None:
        self.handle(
            ConfirmDeposit(
                deposit_id=f"deposit_{self.now_us}",
                account_id=RENTER,
                source=source,
                amount=credit(credits * 10**6),
                reference=str(self.now_us),
                confirmed_by="operator",
                at_us=self.now_us,
            )
        )

    def buy(self, tokens: int, ref: bytes | None = None) -> Receipt:
        """The renter's own wallet burns tokens for credits."""
        self.stage.give_tokens(tokens)
        call = self.tally.burn_for_credits(
            tokens * TOKEN_UNIT, self.stage.quote(), account_ref=ref or account_ref(RENTER)
        )
        return self.stage.do("user", call)

    def name_sources(self, *names: str) -> None:
        """The sources of the price that count, each with a feeder of its own."""
        sources = tuple(PriceSource(name, f"feeder_{name}") for name in names)
        self.handle(SetPriceSources(sources=sources, by="operator", at_us=self.now_us))

    def say_prices(self, *prices: tuple[str, int]) -> None:
        """What sources published just now."""
        for source, price in prices:
            self.handle(
                ObservePrice(
                    source=source,
                    price_micro_usd=price,
                    published_at_us=self.now_us,
                    observed_at_us=self.now_us,
                    by=f"feeder_{source}",
                    at_us=self.now_us,
                )
            )

    def lease(self, name: str, settles: str, seconds: int, *, settled: bool = True) -> str:
        """A lease of one GPU, from now on for so many seconds; settled when it is over."""
        lease_id, start_us = f"lease_{name}", self.now_us
        at: dict[str, Any] = {"at_us": start_us}
        self.handle(
            SubmitJob(
                job_id=f"job_{name}",
                account_id=RENTER,
                client_id="direct",
                project_id="p",
                end_user_ref="u",
                kind="batch",
                image=None,
                command=("true",),
                env_refs=(),
                gpu_count=1,
                share_ppm=1_000_000,
                mem_ppm=1_000_000,
                models=(),
                max_price_per_gpu_hour=credit(PRICE),
                **at,
            ),
            RequestLease(
                lease_id=lease_id,
                job_id=f"job_{name}",
                account_id=RENTER,
                term_us=seconds * SECOND_US,
                funds=None,
                at_us=start_us,
            ),
            ReserveLease(
                lease_id=lease_id,
                rule="lowest_cost/1",
                fleet_position=1,
                candidates=(),
                considered=1,
                node_id=NODE,
                offer_id=OFFERS[settles],
                device_ids=DEVICES[:1],
                **at,
            ),
            ReadyLease(lease_id=lease_id, node_id=NODE, endpoint=None, **at),
        )
        if settled:
            self.travel(seconds)
            self.settle_lease(lease_id, start_us, seconds * SECOND_US)
        return lease_id

    def settle_lease(self, lease_id: str, start_us: int, length_us: int) -> None:
        """Honest usage of its whole window, accrued hour by hour; then closed and settled."""
        end_us = start_us + length_us
        at: Any = {"at_us": self.now_us}
        read: dict[str, Any] = {"lease_id": lease_id, "lane": lane_of(NODE), **at}
        bounds = [*range(start_us, end_us, HOUR_US), end_us]
        hours = [_usage(*bound, self.now_us) for bound in pairwise(bounds)]
        for number, row in enumerate(hours[:-1], 1):
            self.handle(AccrueUsage(usage_position=number, rows=(row,), **read))
        self.handle(
            CloseLease(lease_id=lease_id, closed_at_us=end_us, party="renter", code=1, **at),
            SettleLease(usage_position=len(hours), rows=(hours[-1],), **read),
        )

    # --- epochs and jobs ---------------------------------------------------------------------

    def end_epoch(self, epoch: int) -> None:
        """Let its time pass, by the chain's clock."""
        self.stage.close_epoch(epoch)

    def settle_epochs(self) -> tuple[str, ...]:
        return settlement.settle_due(
            self.ledger, self.connection, self.now_us, "job", data_dir=self.data_dir
        )

    def jobs(self) -> ChainJobs:
        """A new job object, as after a restart."""
        made = ChainJobs(
            self.ledger,
            self.connect,
            self.tally,
            data_dir=self.data_dir,
            emitter=self.stage.people["emitter"],
            proposer=self.stage.people["proposer"],
            treasury=self.treasury.address,
            burns=self.network_burns() if self.with_burns else None,
        )
        self.jobs_made.append(made)
        return made

    def network_burns(self) -> NetworkBurns:
        oracle = self.stage.people["oracle"]
        return NetworkBurns(self.treasury, oracle, stage.PRICE)

    def payout(self, epoch: int) -> manifest.Payout:
        return manifest.read(payout_path(self.data_dir, epoch))

    def sender(self) -> payout_scripts.Sender:
        """Somebody who runs the scripts, with a folder and a key of their own."""
        store = FileStore(self.data_dir / "scripts")
        relay = self.stage.people["relay"]
        return payout_scripts.Sender(Outbox(store, self.tally.chain, [relay]), store, relay.address)

    def claim(self, epoch: int, address: str) -> Intent:
        return payout_scripts.claim(self.payout(epoch), self.tally, self.sender(), address)

    def facts(self, *prefixes: str) -> list[str]:
        """Names of the facts so far whose name begins so, in the order of the log."""
        return [
            recorded.name
            for recorded in self.ledger.market.read_facts(0, 10_000)
            if recorded.name.startswith(prefixes)
        ]

    def balance(self, name: str) -> int:
        return self.ledger.books.balance(name)


def _usage(from_us: int, to_us: int, received_us: int) -> UsageRow:
    return UsageRow(
        position=1,
        device_id=DEVICES[0],
        boot="b",
        mono_start_us=from_us,
        mono_end_us=to_us,
        wall_start_us=from_us,
        wall_end_us=to_us,
        available_us=to_us - from_us,
        share_ppm=1_000_000,
        received_us=received_us,
    )


@contextmanager
def deployed() -> Generator[tuple[Devnet, Deployment], None, None]:
    """The contracts on a chain of their own; `scene` returns it to this moment after each test."""
    with Devnet(clock=lambda: GENESIS_S) as devnet:
        yield devnet, stage.deploy(devnet, Chain(devnet.w3), stage.wallets(devnet))


@contextmanager
def scene(
    conninfo: str, chain: tuple[Devnet, Deployment], data_dir: Path, *, stays: bool = False
) -> Generator[Scene, None, None]:
    """The chain goes back to where it was at the end, unless what was done on it `stays`."""
    devnet, deployment = chain
    node = Chain(devnet.w3)
    mark = devnet.snapshot()
    played = stage.Stage(devnet, node, Tally(node, deployment), stage.wallets(devnet))
    with (
        Ledger(conninfo, blinding_key=BLINDING_KEY, connections_max=4) as ledger,
        psycopg.connect(conninfo, autocommit=True) as connection,
    ):
        made = Scene(ledger, conninfo, connection, devnet, played, data_dir)
        yield made
        for jobs in made.jobs_made:
            jobs.close()
    if not stays:
        devnet.revert(mark)


def moved(payout: manifest.Payout, distributor: str) -> manifest.Payout:
    """The same payout on another contract."""
    totals = [(leaf.account, leaf.total) for leaf in payout.leaves()]
    tree = payout_tree(
        payout.chain_id, distributor, totals, previous={}, committed=payout.committed
    )
    return replace(payout, distributor=distributor, tree=tree)


def grant(tally: Tally, contract: str, role: str, holder: str) -> Call:
    """The admin gives somebody a role that the deployment file does not know."""
    data = artifact(contract).call_data("grantRole", role_id(role), holder)
    return Call(tally.deployment.address(contract), data)


def repeat(step: Callable[[], Any], times: int = 2) -> None:
    """The same thing again: it must change nothing."""
    for _ in range(times):
        step()


__all__ = [
    "CAP",
    "DAY_S",
    "EMISSION",
    "NEW_WALLET",
    "OWNER",
    "OWNER_WALLET",
    "RENTER",
    "TIMELOCK_S",
    "Scene",
    "deployed",
    "repeat",
    "scene",
]
