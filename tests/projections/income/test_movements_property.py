"""A bill closes with what the books say on any log: any sources, depositors, and cuts of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from domain.funds.deposit import DepositConfirmed
from domain.lease.funds import EscrowPart
from domain.lease.lease import LeaseReserved, LeaseSettled, LeaseToppedUp, UsageAccrued
from domain.money import PPM, credit
from domain.prices.charge_split import peel
from domain.stream import Stream
from ledger.books.chart import kind_of
from ledger.books.postings import entries_for
from projections import runner, tables
from projections.income import movements
from projections.income.movements import MOVEMENTS
from tests.examples import examples
from tests.projections.story import FEE, PRICE, START_US, Told, Writer

Owners = dict[tuple[str, str], str]
"""Who put a deposit of a lease into its escrow: (lease id, number of the deposit) -> account."""

_numbers = itertools.count(1)
PROVIDER = "acct_owner"

sources = st.sampled_from(("cash", "card", "earned", "grant.spring"))
parts = st.lists(st.tuples(sources, st.integers(1, 10**7)), min_size=1, max_size=3)


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    """One lease: what is put in by whom, and how the whole of it is drawn and given back."""
    deposits = draw(st.lists(st.tuples(st.booleans(), parts), min_size=1, max_size=3))
    whole = sum(units for _, held in deposits for _, units in held)
    cuts = draw(st.lists(st.integers(0, whole), max_size=4))
    return {"deposits": deposits, "charges": sorted(cuts)}


def _told(number: int, run: dict[str, Any], owners: Owners) -> Iterator[Told]:
    """The facts of one run: money in, the reservation, top-ups, accruals, the rest back."""
    mine, friend = f"acct_renter{number}", f"acct_friend{number}"
    lease_id, stream = f"lease_{number:032x}", Stream("lease", f"lease_{number:032x}")
    held: list[EscrowPart] = []
    for index, (is_mine, units_by_source) in enumerate(run["deposits"], start=1):
        sums: dict[str, int] = {}
        for source, units in units_by_source:
            sums[source] = sums.get(source, 0) + units
        who = owners[lease_id, str(index)] = mine if is_mine or index == 1 else friend
        added = tuple(
            EscrowPart(
                source,
                credit(units),
                deposit=None if index == 1 else index,
                account_id=None if who == mine else who,
            )
            for source, units in sums.items()
        )
        for source, units in sums.items():
            deposit_id = f"dep_{number}_{index}_{source}"
            yield (
                Stream("deposit", deposit_id),
                DepositConfirmed(
                    deposit_id=deposit_id,
                    account_id=who,
                    source=source,
                    amount=credit(units),
                    reference=deposit_id,
                    confirmed_by="op",
                    at_us=START_US,
                ),
            )
        held += added
        if index == 1:
            yield stream, _reserved(lease_id, mine, added)
        else:
            yield (
                stream,
                LeaseToppedUp(
                    lease_id=lease_id,
                    account_id=mine,
                    depositor_account_id=who,
                    parts=added,
                    put_in=credit(sum(part.amount.units for part in held)),
                    funds_end_us=None,
                    at_us=START_US,
                    counted=(),
                ),
            )
    before = 0
    for hour, charge in enumerate(run["charges"]):
        drawn, held = _take(held, charge - before)
        yield stream, _accrued(lease_id, mine, hour, before, charge, drawn)
        before = charge
    yield (
        stream,
        LeaseSettled(
            lease_id=lease_id,
            account_id=mine,
            charge=credit(before),
            gpu_us=0,
            refund=tuple(held),
            at_us=START_US,
            disputed=False,
        ),
    )


def _take(held: list[EscrowPart], units: int) -> tuple[tuple[EscrowPart, ...], list[EscrowPart]]:
    drawn, rest = [], []
    for part in held:
        here = min(units, part.amount.units)
        units -= here
        if here:
            drawn.append(replace(part, amount=credit(here)))
        if part.amount.units - here:
            rest.append(replace(part, amount=credit(part.amount.units - here)))
    return tuple(drawn), rest


def _reserved(lease_id: str, mine: str, escrow: tuple[EscrowPart, ...]) -> LeaseReserved:
    return LeaseReserved(
        meter_maxima=(),
        lease_id=lease_id,
        job_id="job_1",
        account_id=mine,
        client_id="direct",
        project_id="p",
        end_user_ref="u",
        node_id="node_1",
        provider_id="prov_1",
        provider_account_id=PROVIDER,
        offer_id="offer_1",
        device_ids=("GPU-1",),
        share_ppm=PPM,
        mem_ppm=PPM,
        gpu_class="datacenter",
        price_per_gpu_hour=credit(PRICE),
        pay_with="cash",
        own=False,
        tariff_version=1,
        fee_per_gpu_hour=credit(FEE),
        provider_share_ppm=500_000,
        burn_share_ppm=0,
        escrow=escrow,
        at_us=START_US,
        split=None,
        client_account_id=None,
        owners=(),
        federated=None,
        sla_class=None,
        counted=(),
        prepaid=None,
        quotas=(),
        gang_id=None,
        pool_id=None,
        mode="whole",
        mig=None,
        reclaim_window_us=None,
        interruptible=False,
        quote_id=None,
        by=None,
    )


def _accrued(
    lease_id: str, mine: str, hour: int, before: int, charge: int, drawn: tuple[EscrowPart, ...]
) -> UsageAccrued:
    after = peel(charge, PRICE, FEE, 500_000, 0)
    return UsageAccrued(
        lease_id=lease_id,
        hour_index=hour,
        until_us=START_US,
        node_id="node_1",
        account_id=mine,
        provider_account_id=PROVIDER,
        client_id="direct",
        project_id="p",
        end_user_ref="u",
        lane=1,
        usage_position=1,
        resume_position=1,
        ppm_us=0,
        gpu_us=0,
        gpu_us_new=0,
        charge=credit(charge),
        charge_new=credit(charge - before),
        parts=after,
        parts_new=after - peel(before, PRICE, FEE, 500_000, 0),
        drawn=drawn,
        watermarks=(),
        refused=(),
        at_us=START_US,
        client_account_id=None,
        owners=(),
        federated=None,
        owed=None,
        escrow_id=None,
    )


def _booked(told: Told, owners: Owners, balances: dict[tuple[str, str], int]) -> None:
    """What the postings of a fact do to the parts of the parties, by the chart's sides."""
    for entry in entries_for(told[1]):
        for name, units in entry.lines:
            kind, first, *rest = name.split(":")
            if kind == "party":
                key = (first, rest[0])
            elif kind == "escrow":
                key = (owners[first, rest[0]], f"escrow.{rest[1]}")
            else:
                continue
            balances[key] = balances.get(key, 0) + kind_of(name).side * units


@pytest.fixture
def writer(database: str) -> Any:
    with psycopg.connect(database, autocommit=True) as connection:
        tables.ensure(connection, [MOVEMENTS])
        yield Writer(connection)


@pytest.fixture
def known() -> tuple[Owners, dict[tuple[str, str], int]]:
    """What the facts so far come to, kept here alone."""
    return {}, {}


@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(runs(), min_size=1, max_size=3), st.integers(1, 9))
def test_closing_balances_are_the_books_at_every_position_of_any_log(
    writer: Writer,
    known: tuple[Owners, dict[tuple[str, str], int]],
    drawn: list[dict[str, Any]],
    facts_max: int,
) -> None:
    """Closing = opening + sum of the lines = the postings, at any position, however it is cut."""
    owners, balances = known
    connection, first = writer.connection, writer.position
    turns = [_told(next(_numbers), run, owners) for run in drawn]
    # The runs of several renters interleave, fact by fact.
    mixed = [told for group in itertools.zip_longest(*turns) for told in group if told is not None]
    head = writer.write(mixed)
    while runner.step(connection, MOVEMENTS, facts_max=facts_max):
        pass
    opening = dict(balances)
    for at, told in enumerate(mixed, start=first + 1):
        _booked(told, owners, balances)
        if at % 3 == 0 or at == head:
            assert _closing(connection, at) == balances, at
            moved = dict(opening)
            for party in {party for party, _ in balances}:
                for one in movements.read_kind_sums(connection, party, first, at):
                    key = (party, one.part)
                    moved[key] = moved.get(key, 0) + one.change
            assert moved == balances, at


def _closing(connection: psycopg.Connection[Any], at: int) -> dict[tuple[str, str], int]:
    parties = connection.execute("SELECT DISTINCT party FROM proj_movements.book").fetchall()
    return {
        (party, one.part): one.units
        for (party,) in parties
        for one in movements.read_part_balances(connection, party, at)
    }
