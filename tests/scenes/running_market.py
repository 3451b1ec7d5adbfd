"""A small market in a real database, run through the door: nodes that sign, leases that run.

One provider with a public region and any number of nodes of A100s, one renter with cash. Time is
given to every call; nothing here asks a clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import psycopg

from domain.duration import HOUR_US
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
from domain.lease.lease import CloseLease, Lease, ReadyLease, RequestLease, ReserveLease
from domain.market.offer import PublishOffer
from domain.metering import report
from domain.money import PPM, credit
from domain.parties.account import BootstrapOperator, FirstKey, OpenAccount
from domain.prices.tariff import CLOUDBENDER, publish
from domain.stream import Stream
from ledger.log import usage
from ledger.log.handle import Ledger
from tests.scenes.usage_reports import Node

START_US = 1_795_161_600_000_000
"""A full hour: the market is founded then, and every node's monotonic clock starts there."""
MINUTE_US = 60_000_000
OPERATOR, RENTER, OWNER = "acct_operator", "acct_renter", "acct_owner"
OPERATOR_KEY = "k0000000"
PROVIDER, REGION = "prov_one", "region_one"
PRICE = 2_780_000
CASH_UNITS = 10**12
NO_KEYS: Mapping[str, FirstKey] = {}


@dataclass
class SignedNode:
    """A node with a key, the devices it has, and one offer for them."""

    name: str
    gpus: int
    origin_us: int = START_US  # where its monotonic clock begins
    node: Node = field(init=False)

    def __post_init__(self) -> None:
        self.node = Node(self.name)

    @property
    def id(self) -> str:
        return self.node.id

    @property
    def offer_id(self) -> str:
        return f"offer_{self.name}"

    @property
    def device_ids(self) -> tuple[str, ...]:
        return tuple(f"GPU-{self.name}-{slot}" for slot in range(self.gpus))

    def report(
        self,
        lease_id: str | None,
        from_us: int,
        to_us: int,
        *,
        devices: Sequence[str] = (),
        share_ppm: int = PPM,
        offset_us: int = 0,
        row_us: int = HOUR_US,
    ) -> tuple[bytes, bytes]:
        """Sign that these devices (default: all) were available from one moment to another.

        The node's own clock is `offset_us` behind the server's, and it says so.
        """
        ids = tuple(devices or self.device_ids)
        rows = tuple(
            report.Row(
                device=index,
                lease=None if lease_id is None else 0,
                driver_epoch=1,
                mono_start_us=start - self.origin_us,
                len_us=min(row_us, to_us - start),
                wall_minus_mono_us=self.origin_us - offset_us,
                available_us=min(row_us, to_us - start),
                unavailable_us=0,
                unknown_us=0,
                samples=60,
            )
            for start in range(from_us, to_us, row_us)
            for index in range(len(ids))
        )
        return self.node.next(
            rows=rows,
            devices=tuple(report.Device(id=one, share_ppm=share_ppm) for one in ids),
            leases=() if lease_id is None else (lease_id,),
            mono_us=to_us - self.origin_us,
            wall_us=to_us - offset_us,
            clock_offset_us=offset_us,
        )


@dataclass
class Market:
    """The market of one ledger; `connection` writes reports and reads whatever it likes."""

    ledger: Ledger
    connection: psycopg.Connection[Any]
    nodes: dict[str, SignedNode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        usage.prepare(self.connection)

    @property
    def head(self) -> int:
        return self.ledger.market.head()[0]

    def do(self, at_us: int, *commands: Any) -> None:
        self.ledger.handle(list(commands), key=None, now_us=at_us)

    # --- founding --------------------------------------------------------------------------

    def found(
        self,
        *nodes: str,
        gpus: int = 4,
        at_us: int = START_US,
        first_keys: Mapping[str, FirstKey] = NO_KEYS,
    ) -> None:
        """Accounts, tariff, money, provider, region, and nodes with these names on offer."""
        at: dict[str, Any] = {"at_us": at_us}
        self.do(
            at_us,
            BootstrapOperator(
                account_id=OPERATOR,
                member_id="operator",
                key_id=OPERATOR_KEY,
                key_sha256="11" * 32,
                **at,
            ),
            *(
                OpenAccount(
                    account_id=account,
                    kind="party",
                    opened_by="operator",
                    owner_member_id=f"{account}_member",
                    first_key=first_keys.get(account),
                    **at,
                )
                for account in (RENTER, OWNER)
            ),
            publish(CLOUDBENDER, version=1, effective_from_us=0, by="operator", at_us=at_us),
            ConfirmDeposit(
                deposit_id="deposit_one",
                account_id=RENTER,
                source="cash",
                amount=credit(CASH_UNITS),
                reference="one",
                confirmed_by="operator",
                **at,
            ),
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
        )
        for name in nodes:
            self.join(name, gpus=gpus, at_us=at_us)

    def join(self, name: str, *, gpus: int = 4, at_us: int = START_US) -> SignedNode:
        """A node from its join code to its offer."""
        made = self.nodes[name] = SignedNode(name, gpus, at_us)
        key, code = made.node, sha256(b"code of " + name.encode()).hexdigest()
        by: dict[str, Any] = {"by": "operator", "at_us": at_us}
        self.do(
            at_us,
            IssueJoinCode(code_sha256=code, provider_id=PROVIDER, region_id=REGION, **by),
            JoinNode(
                code_sha256=code,
                node_id=made.id,
                key_id=key.key_id,
                public_key=key.public_key.hex(),
                token_sha256=code,
                agent="test",
                client_id=None,
                devices=tuple(DeviceSpec(one, "nvidia", "A100", 40_960) for one in made.device_ids),
                host=HostSpec("x86_64", "linux"),
                at_us=at_us,
            ),
            ConfirmNodeKey(node_id=made.id, key_id=key.key_id, **by),
            AdmitNode(node_id=made.id, **by),
            ActivateNode(node_id=made.id, **by),
            PublishOffer(
                offer_id=made.offer_id,
                provider_id=PROVIDER,
                node_id=made.id,
                price_per_gpu_hour=credit(PRICE),
                pay_with="cash",
                fractions=True,
                available_until_us=None,
                at_us=at_us,
            ),
        )
        return made

    # --- leases and usage ------------------------------------------------------------------

    def lease(
        self,
        name: str,
        node: str,
        *,
        gpus: int = 1,
        first: int = 0,
        share_ppm: int = PPM,
        term_us: int | None = None,
        funds: int | None = None,
        at_us: int = START_US,
        is_ready: bool = True,
    ) -> str:
        """From a job to a running lease of `gpus` devices of a node; returns the lease's id.

        Without a term it lasts as long as its funds, which are enough for a day.
        """
        if term_us is None and funds is None:
            funds = 24 * PRICE * gpus
        on = self.nodes[node]
        lease_id, job_id = f"lease_{name:0>32}", f"job_{name}"
        at: dict[str, Any] = {"at_us": at_us}
        self.do(
            at_us,
            SubmitJob(
                job_id=job_id,
                account_id=RENTER,
                client_id="direct",
                project_id="p",
                end_user_ref="u",
                kind="batch",
                image=None,
                command=("true",),
                env_refs=(),
                gpu_count=gpus,
                share_ppm=share_ppm,
                mem_ppm=share_ppm,
                models=(),
                max_price_per_gpu_hour=credit(PRICE),
                **at,
            ),
            RequestLease(
                lease_id=lease_id,
                job_id=job_id,
                account_id=RENTER,
                term_us=term_us,
                funds=None if funds is None else credit(funds),
                at_us=at_us,
            ),
            ReserveLease(
                lease_id=lease_id,
                rule="lowest_cost/1",
                fleet_position=1,
                candidates=(),
                considered=1,
                node_id=on.id,
                offer_id=on.offer_id,
                device_ids=on.device_ids[first : first + gpus],
                **at,
            ),
        )
        if is_ready:
            self.do(at_us, ReadyLease(lease_id=lease_id, node_id=on.id, endpoint=None, **at))
        return lease_id

    def close(self, lease_id: str, at_us: int) -> None:
        self.do(
            at_us,
            CloseLease(lease_id=lease_id, closed_at_us=at_us, party="renter", code=1, at_us=at_us),
        )

    def report(
        self, node: str, lease_id: str | None, from_us: int, to_us: int, **how: Any
    ) -> usage.Receipt:
        """The node's next report, stored when it ends unless `received_us` says otherwise."""
        received_us = how.pop("received_us", to_us)
        body, _ = self.nodes[node].report(lease_id, from_us, to_us, **how)
        return self.store(node, body, received_us)

    def store(self, node: str, body: bytes, received_us: int, flags: int = 0) -> usage.Receipt:
        """Any signed bytes of a node, as the log takes them."""
        (receipt,) = usage.append(
            self.connection, [self.nodes[node].node.item(body, flags)], received_us
        )
        assert receipt.status is usage.Status.STORED, receipt
        return receipt

    def store_unreadable(self, node: str, received_us: int, flags: int = 0) -> None:
        """A report that no door would let through unflagged: as if its bytes had rotted. With the
        flag it is as the door stores it.
        """
        known = json.loads(self.nodes[node].node.body())
        del known["devices"]
        self.store(node, json.dumps(known).encode(), received_us, flags)

    def state(self, lease_id: str) -> Lease:
        state = self.ledger.market.load(Stream("lease", lease_id)).state
        assert isinstance(state, Lease)
        return state

    def facts(self, kind: type[Any], after: int = 0) -> list[Any]:
        """Every recorded fact of one type, in the order of the log."""
        found = self.ledger.market.read_facts(after, 100_000)
        return [each.fact for each in found if type(each.fact) is kind]

    def balance(self, name: str) -> int:
        return self.ledger.books.balance(name)
