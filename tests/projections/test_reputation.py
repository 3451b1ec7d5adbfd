"""Reputation in SQL says what the domain says, at any position, whatever a lease ended with."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from domain import lease, provider
from domain.close_reason import fault_of
from domain.node import NodeJoinRequested
from domain.reputation import Tally, completion, conduct, score
from domain.stream import Stream
from projections import tables
from projections.reputation import REPUTATION, SCORE_SQL, read_reputation, read_settings
from tests.ledger.samples import sample
from tests.projections.story import Writer

CODES = (0, 1, 3, 5, 100, 101, 102, 103, 10_000, 10_003, 10_004, 20_001, 20_003, 30_000)
HOUR_US = 3_600_000_000
NODES, RENTERS, CLIENTS = ("node_a", "node_b"), ("acct_r", "acct_s"), ("acct_io", "acct_beam")


@pytest.fixture
def connection(database: str) -> Any:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def _fact(kind: Any, **named: Any) -> Any:
    """A fact with these fields; the rest as in the samples, what may be absent left out."""
    from dataclasses import replace

    return replace(sample(kind, leave_out_optional=True), **named)


def _supply() -> Iterator[tuple[Stream, Any]]:
    for node, setting in zip(NODES, ("edge", "datacenter"), strict=True):
        yield (
            Stream("region", f"region_{setting}"),
            _fact(provider.RegionOpened, region_id=f"region_{setting}", setting=setting),
        )
        joined = _fact(NodeJoinRequested, node_id=node, region_id=f"region_{setting}")
        yield Stream("node", node), joined


def _ended(number: int, code: int, draw: random.Random, own: bool) -> list[tuple[Stream, Any]]:
    """One lease from its reservation to its settlement."""
    stream = Stream("lease", f"lease_{number}")
    named: dict[str, Any] = {"lease_id": stream.id, "account_id": draw.choice(RENTERS)}
    facts = [
        _fact(
            lease.LeaseReserved, **named, node_id=draw.choice(NODES), provider_id="prov_1",
            client_id=draw.choice(CLIENTS), device_ids=("GPU-1", "GPU-2"), share_ppm=500_000,
            own=own, escrow=(),
        ),
        _fact(lease.LeaseOpened, lease_id=stream.id, opened_at_us=0),
        _fact(lease.LeaseClosed, **named, closed_at_us=HOUR_US, code=code, refund=()),
        _fact(lease.LeaseSettled, **named, gpu_us=HOUR_US // 2, refund=()),
    ]  # fmt: skip
    return [(stream, fact) for fact in facts]


def _told(connection: Any, count: int = 120) -> list[tuple[lease.LeaseReserved, int, int]]:
    """Write a log of leases that ended in every way; (reserved, code, position of the close)."""
    draw, writer = random.Random(4), Writer(connection)
    facts = [*_supply()]
    told = []
    for number in range(count):
        own = number % 7 == 0
        ended = _ended(number, draw.choice(CODES), draw, own)
        reserved, closed = ended[0][1], ended[2][1]
        facts += ended
        if not own:
            told.append((reserved, closed.code, len(facts) - 1))
    writer.write(iter(facts))
    tables.step_all(connection, [REPUTATION])
    return told


def _expected(told: Any, subject: str, value: str, counts: Any, as_of: int = 2**40) -> Any:
    mine = [
        (reserved.client_id, counts(code))
        for reserved, code, position in told
        if getattr(reserved, subject) == value and position <= as_of
    ]

    def tally(client_id: str | None) -> Tally:
        pairs = [pair for client, pair in mine if client_id in (None, client)]
        return Tally(sum(good for good, _ in pairs), sum(total for _, total in pairs))

    return tally


def test_sql_and_the_domain_give_the_same_scores(connection: Any) -> None:
    told = _told(connection)
    subjects = (("node", "node_id", NODES, completion), ("renter", "account_id", RENTERS, conduct),
                ("provider", "provider_id", ("prov_1",), completion))  # fmt: skip
    for kind, subject, values, counts in subjects:
        for value in values:
            tally = _expected(told, subject, value, counts)
            network = read_reputation(connection, kind, value)
            assert network.score == score(tally(None))
            for client_id in CLIENTS:
                seen = read_reputation(connection, kind, value, client_id=client_id)
                assert seen.score == score(tally(None), tally(client_id))
            kept = connection.execute(
                "SELECT good, total, score_ppm, provisional FROM proj_reputation.tally"
                " WHERE (kind, subject_id, client_id) = (%s, %s, '')", (kind, value),
            ).fetchone()  # fmt: skip
            asked = network.score
            assert kept == (asked.good, asked.total, asked.score_ppm, asked.is_provisional)


def test_a_score_can_be_computed_again_as_it_was_at_any_position(connection: Any) -> None:
    told = _told(connection)
    for as_of in (0, 60, 200, told[-1][2]):
        tally = _expected(told, "node_id", NODES[0], completion, as_of)
        found = read_reputation(connection, "node", NODES[0], as_of=as_of)
        assert found.score == score(tally(None)), as_of
    before = _expected(told, "node_id", NODES[0], completion, 200)(None)
    assert before != _expected(told, "node_id", NODES[0], completion)(None)


def test_each_party_is_named_as_often_as_leases_ended_through_it(connection: Any) -> None:
    told = _told(connection)
    found = read_reputation(connection, "provider", "prov_1").by_party
    for party, count in found.items():
        assert count == sum(fault_of(code) == party for _, code, _ in told), party


def test_edge_and_datacenter_are_told_in_numbers(connection: Any) -> None:
    told = _told(connection)
    for row, node in zip(read_settings(connection), ("node_b", "node_a"), strict=True):
        mine = [code for reserved, code, _ in told if reserved.node_id == node]
        assert (row.leases, row.unreachable) == (len(mine), mine.count(10_004))
        assert row.promised_gpu_us == len(mine) * HOUR_US
        assert row.served_gpu_us == len(mine) * HOUR_US // 2


def test_the_bound_in_sql_is_the_domains_for_small_and_for_huge_evidence(connection: Any) -> None:
    draw = random.Random(7)
    for size in (0, 1, 9, 1_000, 10**6, 10**9):
        for _ in range(20):
            total = draw.randint(0, size)
            good = draw.randint(0, total)
            found = connection.execute(
                f"SELECT {SCORE_SQL} FROM (VALUES (%s::bigint, %s::bigint)) t (good, total)"
                .encode(), (good, total),
            ).fetchone()  # fmt: skip
            assert found == (score(Tally(good, total)).score_ppm,), (good, total)
