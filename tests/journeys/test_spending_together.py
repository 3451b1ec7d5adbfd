"""Many threads open and close leases of many accounts from one payer's balances, on PostgreSQL.

Concurrent spending from many leases and keys never overdraws, never deadlocks, and never refuses
while another of the payer's sources could pay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from domain.funds.budget import ACCOUNT, PROJECT, SetBudget, budget_of
from domain.funds.deposit import ConfirmDeposit
from domain.funds.funding import SetPayer
from domain.funds.promotion import GrantPromotion, OpenPromotion
from domain.funds.reasons import FundsReason
from domain.jobs.job import SubmitJob
from domain.lease.lease import CloseLease, Lease, RequestLease, ReserveLease
from domain.money import PPM, credit
from domain.parties.account import OpenAccount
from domain.parties.reasons import PartiesReason
from domain.refusal import Refused
from domain.stream import Stream
from ledger.log.handle import CommandKey, Ledger
from tests.scenes.running_market import OPERATOR, PRICE, RENTER, START_US, Market

THREADS, LEASES = 8, 5
SIZE = PRICE
"""Credits of one lease: one hour."""
USERS = tuple(f"acct_user{number}" for number in range(4))


@pytest.fixture
def market(database: str) -> Generator[Market, None, None]:
    """A node of its own for every thread, and users that the renter pays for."""
    with (
        Ledger(database, blinding_key=b"tests/spending_together", connections_max=16) as ledger,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        made = Market(ledger, connection)
        made.found(*(f"node{number}" for number in range(THREADS)), gpus=LEASES)
        at: dict[str, Any] = {"at_us": START_US}
        spent = made.balance(f"party:{RENTER}:cash")
        for user in USERS:
            made.do(
                START_US,
                OpenAccount(
                    account_id=user, kind="party", opened_by="op", owner_member_id=user, **at
                ),
                SetPayer(account_id=user, payer_account_id=RENTER, by="m", **at),
            )
        assert spent
        yield made


def supply(market: Market, *parts: int) -> None:
    """Leave the renter with exactly these: of two programs, and as cash."""
    at: dict[str, Any] = {"at_us": START_US}
    *programs, cash = parts
    fund = ConfirmDeposit(
        deposit_id="fund",
        account_id=OPERATOR,
        source="cash",
        amount=credit(sum(programs)),
        reference="fund",
        confirmed_by="op",
        **at,
    )
    market.do(START_US, fund)
    for number, units in enumerate(programs):
        market.do(
            START_US,
            OpenPromotion(
                program=f"p{number}",
                sponsor_account_id=OPERATOR,
                amount=credit(units),
                by="op",
                **at,
            ),
            GrantPromotion(
                program=f"p{number}",
                account_id=RENTER,
                amount=credit(units),
                priority=number,
                expires_at_us=None,
                by="op",
                **at,
            ),
        )
    # What the market was founded with beyond that goes into a program of the renter's own.
    beyond = market.balance(f"party:{RENTER}:cash") - cash
    market.do(
        START_US,
        OpenPromotion(
            program="beyond", sponsor_account_id=RENTER, amount=credit(beyond), by="op", **at
        ),
    )


def opening(market: Market, thread: int, number: int) -> tuple[str, list[Any]]:
    """The commands of one lease: each thread has devices of its own, and takes turns as users."""
    name, at = f"{thread}-{number}", dict[str, Any](at_us=START_US)
    on, user = market.nodes[f"node{thread}"], USERS[(thread + number) % len(USERS)]
    commands = [
        SubmitJob(
            job_id=f"job_{name}",
            account_id=user,
            client_id="direct",
            project_id="p",
            end_user_ref="u",
            kind="batch",
            image=None,
            command=("true",),
            env_refs=(),
            gpu_count=1,
            share_ppm=PPM,
            mem_ppm=PPM,
            models=(),
            max_price_per_gpu_hour=credit(PRICE),
            **at,
        ),
        RequestLease(
            lease_id=f"lease_{name}",
            job_id=f"job_{name}",
            account_id=user,
            term_us=None,
            funds=credit(SIZE),
            at_us=START_US,
        ),
        ReserveLease(
            lease_id=f"lease_{name}",
            rule="lowest_cost/1",
            fleet_position=1,
            candidates=(),
            considered=1,
            node_id=on.id,
            offer_id=on.offer_id,
            device_ids=(on.device_ids[number],),
            **at,
        ),
    ]
    return f"lease_{name}", commands


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """The same work in every thread, begun together."""
    barrier = threading.Barrier(THREADS)

    def begun(thread: int) -> Any:
        barrier.wait(30)
        return work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begun, range(THREADS), timeout=120))


def open_all(market: Market, *, with_key: bool) -> Callable[[int], list[str | Refused]]:
    """Every thread opens its leases one after the other; a refusal is kept with the others."""

    def work(thread: int) -> list[str | Refused]:
        ended: list[str | Refused] = []
        for number in range(LEASES):
            lease_id, commands = opening(market, thread, number)
            key = CommandKey(RENTER, lease_id) if with_key else None
            try:
                market.ledger.handle(commands, key=key, now_us=START_US)
                ended.append(lease_id)
            except Refused as refused:
                ended.append(refused)
        return ended

    return work


def close(market: Market, lease_id: str) -> None:
    market.ledger.handle(
        CloseLease(
            lease_id=lease_id, closed_at_us=START_US, party="renter", code=101, at_us=START_US
        ),
        key=None,
        now_us=START_US,
    )


def held(market: Market) -> int:
    return sum(market.ledger.books.balances("escrow:").values())


def left(market: Market) -> int:
    books = market.ledger.books.balances(f"party:{RENTER}:")
    return sum(units for name, units in books.items() if not name.endswith(":owed"))


@pytest.mark.parametrize("with_key", [False, True])
def test_nobody_is_refused_while_any_source_of_the_payer_could_pay(
    market: Market, with_key: bool
) -> None:
    """There is exactly enough for every lease, in three sources that no lease fits evenly into."""
    total = THREADS * LEASES * SIZE
    supply(market, SIZE * 7 + 11, SIZE * 12 + 13, total - SIZE * 19 - 24)
    ended = [one for lease in at_once(open_all(market, with_key=with_key)) for one in lease]
    assert [one for one in ended if isinstance(one, Refused)] == []
    assert (held(market), left(market)) == (total, 0)
    assert market.ledger.books.books_balanced()


def test_what_is_short_is_refused_and_not_a_unit_is_overdrawn(market: Market) -> None:
    """One lease less than asked for fits, and a rest that pays for none stays where it is."""
    fits = THREADS * LEASES - 9
    supply(market, SIZE * 5 + 7, SIZE * 3 + 1, SIZE * (fits - 8) + 100)
    ended = [one for lease in at_once(open_all(market, with_key=True)) for one in lease]
    refused = [one for one in ended if isinstance(one, Refused)]
    assert {one.reason for one in refused} == {FundsReason.CREDIT_TOO_LOW}
    assert len(ended) - len(refused) == fits
    assert (held(market), left(market)) == (fits * SIZE, 108)
    assert market.ledger.books.books_balanced()


def test_opening_and_closing_together_ends_with_every_unit_where_it_was(market: Market) -> None:
    """Half of what all of them want is there; a refused lease is asked for until another closes."""
    parts = (SIZE * 5 + 7, SIZE * 3 + 1, SIZE * (THREADS // 2 - 8 + THREADS) + 100)
    supply(market, *parts)
    before = market.ledger.books.balances(f"party:{RENTER}:")

    def work(thread: int) -> int:
        opened = 0
        for number in range(LEASES):
            lease_id, commands = opening(market, thread, number)
            market.ledger.handle(commands, key=None, now_us=START_US)
            opened += 1
            close(market, lease_id)
        return opened

    assert sum(at_once(work)) == THREADS * LEASES, "there was always enough for one lease each"
    assert held(market) == 0
    assert market.ledger.books.balances(f"party:{RENTER}:") == before
    assert market.ledger.books.books_balanced()


def test_a_cap_holds_whoever_meets_at_it(market: Market) -> None:
    """Two threads in three are refused by a cap of the payer or of the project, none by chance."""
    supply(market, SIZE * 50, SIZE, SIZE * 100)
    by: dict[str, Any] = {"by": "m", "at_us": START_US}
    for user in USERS[:2]:
        market.do(
            START_US,
            SetBudget(
                account_id=RENTER, scope=ACCOUNT, target=user, monthly=credit(3 * SIZE + 5), **by
            ),
        )
    market.do(
        START_US,
        SetBudget(
            account_id=USERS[2], scope=PROJECT, target="p", monthly=credit(4 * SIZE + 5), **by
        ),
    )
    ended = [one for lease in at_once(open_all(market, with_key=True)) for one in lease]
    opened = [one for one in ended if isinstance(one, str)]
    states = [market.ledger.market.load(Stream("lease", one)).state for one in opened]
    accounts = [s.requested.account_id for s in states if isinstance(s, Lease) and s.requested]
    assert [accounts.count(user) for user in USERS] == [3, 3, 4, THREADS * LEASES // 4]
    world = market.ledger.world()
    assert budget_of(world, RENTER, ACCOUNT, USERS[0]).used == {"2026-11": 3 * SIZE}
    assert budget_of(world, USERS[2], PROJECT, "p").used == {"2026-11": 4 * SIZE}
    reasons = {one.reason for one in ended if isinstance(one, Refused)}
    assert reasons == {FundsReason.CREDIT_TOO_LOW, PartiesReason.BUDGET_EXHAUSTED}
