"""A gang of 512 GPUs over 64 nodes: placed, paid for and reserved in one append, or not at all.

    python -m benchmarks.fleet.gang            full
    python -m benchmarks.fleet.gang --short    fewer rounds
    python -m benchmarks.fleet.gang --tiny     whether it runs at all

A fleet of 128 nodes with 8 devices each, durable PostgreSQL, one gang at a time; between two rounds
it is cancelled and the views catch up, off the clock. In one run, in turn:

- ours: read the fleet, place 64 members of 8 GPUs, decide every rule and escrow, append the job,
  the gang, 64 requests, matches and reservations and 512 devices, with books and answer, in one
  commit; checked afterwards: every member has its 8 devices, and none of them twice
- peer: what is usually built: one transaction that locks 512 free rows (`FOR UPDATE SKIP LOCKED`),
  updates them and inserts 64 leases; no money, no choice, no history
- limit: binary COPY of as many ready facts of the same size into a plain table, one commit
"""

from __future__ import annotations

import json
import os
import statistics
import time
from typing import Any, NamedTuple

import psycopg

from api.pools.gang_orders import reservation
from api.process.lease_desk import streams_read
from api.process.service import Service
from api.settings import Settings
from benchmarks import cpu
from benchmarks.fleet.lease_open import PRICE, found
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from domain.jobs.gang import CloseGang, RequestGang, gang_stream
from domain.jobs.job import SubmitJob
from domain.lease.close_codes import CANCELLED_BEFORE_START
from domain.lease.lease import lease_stream
from domain.money import PPM, credit
from ledger import migrate
from ledger.log.handle import Answer, CommandKey
from projections.fleet.fleet import FLEET
from projections.pools.pools import POOLS

DEVICES = 8
FIGURE_MS = 500
RENTER = f"acct_{0:032x}"


class Numbers(NamedTuple):
    nodes: int
    members: int
    rounds: int


SIZES = {
    Size.FULL: Numbers(nodes=128, members=64, rounds=20),
    Size.SHORT: Numbers(nodes=128, members=64, rounds=5),
    Size.TINY: Numbers(nodes=3, members=2, rounds=2),
}


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Milliseconds of each round, and the ratios of their medians."""
    numbers = SIZES[size]
    with workplace(server) as (folder, made):
        uri = made.create_database("gang")
        migrate.migrate(uri)
        settings = Settings(data_dir=folder / "data", database_url=uri)
        with Service.open(settings) as service:
            found(service.ledger, numbers.nodes, renters=1)
            spent = cpu.Spent(made.pid)
            ours, facts, mean_bytes = _ours(service, uri, numbers, spent)
        peer, limit = _peer(uri, numbers), _limit(uri, numbers.rounds, facts, mean_bytes)
    return {
        "figure": f"gang of {numbers.members * DEVICES} GPUs over {numbers.members} nodes, placed"
        f" and reserved atomically: < {FIGURE_MS} ms",
        "gpus": numbers.members * DEVICES,
        "members": numbers.members,
        "conditions": {
            "nodes": numbers.nodes,
            "devices": numbers.nodes * DEVICES,
            "rounds": numbers.rounds,
            "facts": facts,
            "bytes_of_a_fact": mean_bytes,
            "cores": os.cpu_count(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
        },
        "ours": _told(ours),
        "processor_ns": spent.each(),
        "peer": _told(peer),
        "limit": _told(limit),
        "of_peer": round(statistics.median(ours) / statistics.median(peer), 2),
        "of_limit": round(statistics.median(ours) / statistics.median(limit), 2),
    }


def _told(took: list[float]) -> dict[str, float]:
    ordered = sorted(took)
    return {
        "p50_ms": round(statistics.median(ordered), 2),
        "max_ms": round(ordered[-1], 1),
        "first_ms": round(took[0], 1),
    }


def _ours(
    service: Service, uri: str, numbers: Numbers, spent: cpu.Spent
) -> tuple[list[float], int, int]:
    took, facts = [], 0
    for number in range(numbers.rounds):
        with service.connection() as connection:
            service.follow(connection, [FLEET, POOLS], seconds=60)
        now_us = time.time_ns() // 1_000
        gang_id = f"gang_{number:032x}"
        with spent.counted(numbers.members * DEVICES):
            start = time.perf_counter()
            outcome = service.ledger.handle(
                lambda gang_id=gang_id, now_us=now_us: _commands(
                    service, gang_id, now_us, numbers.members
                ),
                key=CommandKey(RENTER, gang_id, b"f" * 32),
                now_us=now_us,
                reads=streams_read,
                answer=lambda _changes, _state_of: Answer(201, b"{}"),
            )
            took.append((time.perf_counter() - start) * 1e3)
        facts = len(outcome.changes)
        _check(service, gang_id, numbers.members)
        cancel = CloseGang(
            gang_id=gang_id, party="renter", code=CANCELLED_BEFORE_START, at_us=now_us
        )
        service.ledger.handle(cancel, key=None, now_us=now_us)
    with psycopg.connect(uri) as connection:
        row = connection.execute(
            "SELECT avg(length(state))::int FROM (SELECT state FROM market_events"
            " ORDER BY notification_id DESC LIMIT 2000) x"
        ).fetchone()
    assert row is not None
    return took, facts, int(row[0])


def _commands(service: Service, gang_id: str, now_us: int, members: int) -> list[Any]:
    spec = SubmitJob(
        job_id=f"job_{gang_id}",
        account_id=RENTER,
        client_id="direct",
        project_id="p",
        end_user_ref="",
        kind="batch",
        image=None,
        command=("train",),
        env_refs=(),
        gpu_count=DEVICES,
        share_ppm=PPM,
        mem_ppm=PPM,
        models=(),
        max_price_per_gpu_hour=credit(2 * PRICE),
        at_us=now_us,
    )
    asked = RequestGang(
        gang_id=gang_id,
        job_id=spec.job_id,
        account_id=RENTER,
        pool_id=None,
        members=members,
        min_members=members,
        term_us=None,
        funds=None,
        at_us=now_us,
    )
    return [spec, asked, *reservation(service, asked, now_us, spec)]


def _check(service: Service, gang_id: str, members: int) -> None:
    """Every member is reserved with its devices, and no device is held twice."""
    gang = service.ledger.market.state_of(gang_stream(gang_id))
    assert gang.status == "reserved"
    leases = [service.ledger.market.state_of(lease_stream(one)) for one in gang.lease_ids]
    reserved = [lease.reserved for lease in leases if lease.reserved is not None]
    held = [device for one in reserved for device in one.device_ids]
    assert len(set(held)) == len(held) == members * DEVICES
    assert len({one.node_id for one in reserved}) == members


def _peer(uri: str, numbers: Numbers) -> list[float]:
    took = []
    with psycopg.connect(uri) as connection:
        connection.execute("CREATE TABLE peer_lease (id text PRIMARY KEY, node int, who text)")
        connection.execute("CREATE TABLE peer_device (id text PRIMARY KEY, node int, lease text)")
        connection.execute(
            "INSERT INTO peer_device SELECT 'GPU-' || n, n / %s, NULL"
            " FROM generate_series(0, %s) n",
            (DEVICES, numbers.nodes * DEVICES - 1),
        )
        connection.commit()
        for number in range(numbers.rounds):
            start = time.perf_counter()
            connection.execute(
                "WITH free AS (SELECT id, node FROM peer_device WHERE lease IS NULL"
                " ORDER BY node, id LIMIT %s FOR UPDATE SKIP LOCKED), held AS ("
                " UPDATE peer_device d SET lease = 'lease-' || %s || '-' || f.node FROM free f"
                " WHERE d.id = f.id RETURNING d.node)"
                " INSERT INTO peer_lease SELECT DISTINCT 'lease-' || %s || '-' || node, node, 'r'"
                " FROM held",
                (numbers.members * DEVICES, number, number),
            )
            connection.commit()
            took.append((time.perf_counter() - start) * 1e3)
            connection.execute("UPDATE peer_device SET lease = NULL")
            connection.commit()
    return took


def _limit(uri: str, rounds: int, facts: int, mean_bytes: int) -> list[float]:
    took = []
    body = b"x" * mean_bytes
    with psycopg.connect(uri) as connection:
        connection.execute("CREATE TABLE limit_fact (id bigint, body bytea)")
        connection.commit()
        for _ in range(rounds):
            start = time.perf_counter()
            with connection.cursor().copy("COPY limit_fact FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int8", "bytea"])
                for number in range(facts):
                    copy.write_row((number, body))
            connection.commit()
            took.append((time.perf_counter() - start) * 1e3)
    return took


def table(result: dict[str, Any]) -> str:
    """The result for people: ratios first."""
    lines = [result["figure"], json.dumps(result["conditions"])]
    lines.append(f"  {result['of_peer']:.2f} x the peer's time, {result['of_limit']:.2f} x limit's")
    lines += [f"  {name}: {json.dumps(result[name])}" for name in ("ours", "peer", "limit")]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(run(size_asked(__doc__))))
