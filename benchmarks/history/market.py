"""A market that did the same every day: its days as facts, and reports beside them.

Founded by commands through the door, so that leases can be opened in it. Its days are written past
the door with COPY, in the bytes, leaves, chain, postings and balances of the append function. Every
store ends yesterday with the same day: a month of history more makes it older and nothing else.

A day: leases of one device that run some hours, are charged every hour, end and are settled; what
the owner earned is matured and swept; nodes report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import psycopg

from api.door import keys
from benchmarks.books.leases import accrued, parts_of, requested, reserved
from benchmarks.fleet.lease_open import DEVICES, OPERATOR, OWNER, node_commands, supply_commands
from benchmarks.log.reports import bench_node, reports
from domain.brought import ClientPart
from domain.duration import DAY_US
from domain.fleet import device
from domain.funds.deposit import ConfirmDeposit
from domain.gpu_time import GPU_HOUR_US
from domain.income import maturity
from domain.income.cash_out import SetCashOutMinimum
from domain.jobs import job
from domain.lease import lease
from domain.lease.funds import EscrowPart
from domain.lease.lease import lease_stream
from domain.money import PPM, credit
from domain.parties.account import BootstrapOperator, FirstKey, OpenAccount
from domain.stream import Stream
from ledger.log import usage
from ledger.log.handle import Ledger
from tests.projections.story import Told

PRICE, FEE = 2_780_000, 250_000
CASH_OUT_MIN = 1_000_000
NODES_TOGETHER = 10
REPORTING, ROWS, REPORTS_TOGETHER = 10, 20, 100


class Daily(NamedTuple):
    """What happens in a market of so many nodes every day. `reports`: of each that reports."""

    nodes: int
    renters: int
    leases: int
    hours: int
    reports: int


def secret_of(account_id: str) -> str:
    """The API key of an account of this market."""
    return keys.make((account_id.encode() * 38)[:38])


def renter(number: int) -> str:
    return f"acct_{number:032x}"


# --- the founding -----------------------------------------------------------------------------


def found(ledger: Ledger, daily: Daily, at_us: int) -> None:
    """Accounts, keys, money and fleet in an empty log."""
    key_id, digest = _key(OPERATOR)
    commands: list[Any] = [
        BootstrapOperator(
            account_id=OPERATOR, member_id="operator", key_id=key_id, key_sha256=digest, at_us=at_us
        ),
        _opened(OWNER, ("provider", "earnings:read", "account", "account:admin"), at_us),
        *supply_commands(at_us),
        maturity.SetPaymentMode(
            account_id=OWNER,
            mode="cash",
            billing_account_id=OWNER,
            destination="bank_of_the_owner",
            by="operator",
            at_us=at_us,
        ),
    ]
    minimum = credit(CASH_OUT_MIN)
    commands.append(SetCashOutMinimum(minimum=minimum, by="operator", at_us=at_us))
    for number in range(daily.renters):
        commands += [
            _opened(renter(number), ("renter", "account", "billing:read"), at_us),
            ConfirmDeposit(
                deposit_id=f"deposit_{number}",
                account_id=renter(number),
                source="cash",
                amount=credit(10**12),
                reference=f"{number}",
                confirmed_by="operator",
                at_us=at_us,
            ),
        ]
    ledger.handle(commands, key=None, now_us=at_us)
    for first in range(0, daily.nodes, NODES_TOGETHER):
        some = range(first, min(daily.nodes, first + NODES_TOGETHER))
        nodes = [one for number in some for one in node_commands(number, at_us)]
        ledger.handle(nodes, key=None, now_us=at_us)


def _key(account_id: str) -> tuple[str, str]:
    secret = secret_of(account_id)
    key_id = keys.key_id(secret)
    assert key_id is not None
    return key_id, keys.digest(secret)


def _opened(account_id: str, scopes: tuple[str, ...], at_us: int) -> OpenAccount:
    key_id, digest = _key(account_id)
    return OpenAccount(
        account_id=account_id,
        kind="party",
        opened_by="operator",
        owner_member_id=f"member_of_{account_id}",
        first_key=FirstKey(key_id=key_id, key_sha256=digest, scopes=scopes),
        at_us=at_us,
    )


# --- the days ---------------------------------------------------------------------------------


def day(daily: Daily, number: int, at_us: int) -> Iterator[Told]:
    """The facts of one day that begins at `at_us`; `number`: which of them."""
    earned = 0
    for index in range(daily.leases):
        one = _Lease(daily, number * daily.leases + index, at_us + index)
        yield from one.facts()
        earned += parts_of((PRICE, FEE), one.hours).provider
    stream = maturity.stream_of(OWNER)
    told: dict[str, Any] = {
        "account_id": OWNER,
        "amount": credit(earned),
        "clients": (ClientPart("direct", earned),),
        "at_us": at_us + DAY_US - 1,
    }
    yield (
        stream,
        maturity.EarningsMatured(
            after_position=number,
            through_position=number + 1,
            gross=credit(earned),
            reduced=credit(0),
            before=0,
            **told,
        ),
    )
    yield (
        stream,
        maturity.EarningsSwept(
            day=at_us // DAY_US, to_account_id=OWNER, before=number * earned, **told
        ),
    )


class _Lease:
    """A job, and its lease of one whole device from request to settlement."""

    def __init__(self, daily: Daily, number: int, at_us: int) -> None:
        node = number % daily.nodes
        self.id, self.job_id = f"lease_{number:032x}", f"job_{number:032x}"
        self.stream = lease_stream(self.id)
        self.at_us, self.hours, self.number = at_us, daily.hours, number
        self.node_id, self.offer_id = f"node_{node:032x}", f"offer_{node:032x}"
        self.device_id = f"GPU-{node:04d}-{number // daily.nodes % DEVICES}"
        self.names: dict[str, Any] = {
            "account_id": renter(number % daily.renters),
            "client_id": "direct",
            "project_id": "project",
            "end_user_ref": f"user{number % 5}",
        }

    def facts(self) -> Iterator[Told]:
        ended: dict[str, Any] = {"at_us": self.at_us + self.hours * GPU_HOUR_US}
        yield self._job(), self._submitted()
        yield from self._opened()
        for hour in range(self.hours):
            yield self.stream, self._accrued(hour)
        yield from self._over(ended)

    def _job(self) -> Stream[Any]:
        return Stream("job", self.job_id)

    def _submitted(self) -> job.JobSubmitted:
        return job.JobSubmitted(
            job_id=self.job_id,
            kind="batch",
            image=None,
            command=("true",),
            env_refs=(),
            workload_sha256="00" * 32,
            gpu_count=1,
            share_ppm=PPM,
            mem_ppm=PPM,
            models=(),
            max_price_per_gpu_hour=credit(2 * PRICE),
            at_us=self.at_us,
            **self.names,
            attached=None,
            meter_maxima=(),
            volumes=(),
            constraints=None,
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
        )

    def _opened(self) -> Iterator[Told]:
        at: dict[str, Any] = {"at_us": self.at_us}
        names = {**self.names, **at, "lease_id": self.id, "job_id": self.job_id}
        offer = {
            "node_id": self.node_id,
            "provider_id": "prov_one",
            "provider_account_id": OWNER,
            "offer_id": self.offer_id,
        }
        yield self.stream, requested(names, credit(2 * PRICE), None)
        yield self.stream, reserved(names, offer, self.device_id, (PRICE, FEE), self.hours + 1)
        yield (
            Stream("device", self.device_id),
            device.DeviceReserved(
                device_id=self.device_id,
                lease_id=self.id,
                share_ppm=PPM,
                mem_ppm=PPM,
                mode="whole",
                mig=None,
                **at,
            ),
        )
        yield (
            self.stream,
            lease.LeaseOpened(
                lease_id=self.id,
                price_per_gpu_hour=credit(PRICE),
                opened_at_us=self.at_us,
                funds_end_us=self.at_us + (self.hours + 1) * GPU_HOUR_US,
                term_end_us=None,
                **at,
            ),
        )

    def _accrued(self, hour: int) -> lease.UsageAccrued:
        """One hour at the full price."""
        placed = {"node_id": self.node_id, "provider_account_id": OWNER}
        names, lane = {**self.names, "lease_id": self.id}, self.number % 64
        return accrued(names, placed, self.device_id, (PRICE, FEE), lane, self.at_us, hour)

    def _over(self, at: dict[str, Any]) -> Iterator[Told]:
        told: dict[str, Any] = {"lease_id": self.id, "account_id": self.names["account_id"], **at}
        yield (
            self.stream,
            lease.LeaseClosed(
                closed_at_us=at["at_us"],
                party="renter",
                code=1,
                refund=(),
                by=None,
                evidence=None,
                **told,
            ),
        )
        yield (
            Stream("device", self.device_id),
            device.DeviceReleased(
                device_id=self.device_id, lease_id=self.id, share_ppm=PPM, mem_ppm=PPM, **at
            ),
        )
        yield (
            self.stream,
            lease.LeaseSettled(
                charge=credit(self.hours * PRICE),
                gpu_us=self.hours * GPU_HOUR_US,
                refund=(EscrowPart("cash", credit(PRICE)),),
                disputed=False,
                **told,
            ),
        )
        yield self._job(), job.JobCompleted(job_id=self.job_id, **at)


# --- the reports ------------------------------------------------------------------------------


class Reporting:
    """Nodes that report to one usage log."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        nodes = [bench_node(number) for number in range(REPORTING)]
        self._nodes = [(node, reports(node, ROWS)) for node in nodes]
        usage.prepare(connection)

    def made(self, each: int) -> list[usage.Item]:
        """The next so many reports of each node, signed."""
        return [
            usage.item(
                node.id, one.seq, one.prev, one.body, node.key_id, one.signature, node.genesis
            )
            for node, told in self._nodes
            for one in islice(told, each)
        ]

    def stored(self, items: Sequence[usage.Item]) -> None:
        for at in range(0, len(items), REPORTS_TOGETHER):
            receipts = usage.append(self._connection, items[at : at + REPORTS_TOGETHER])
            assert all(receipt.status is usage.Status.STORED for receipt in receipts)
