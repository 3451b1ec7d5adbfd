"""How fast the usage log stores verified reports, beside raw binary COPY of the same bytes.

    python -m benchmarks.log.append            full
    python -m benchmarks.log.append --short    a few seconds
    python -m benchmarks.log.append --tiny     whether it runs at all

One connection, one process, reports of 100 rows from 200 nodes. All contenders write the same rows
into tables of the same definition (keys and storage included), in the same run, in turn:

- ours: `usage_append`: classify, chain, store, move the heads; arguments built inside the clock
- ours with checking: the same after verifying the signature and reading the report, in a thread, as
  the door does with long requests, while the batch before is stored
- peer: INSERT .. SELECT unnest .. ON CONFLICT DO NOTHING of ready rows: a dedupe and nothing else
- limit: COPY of buffers built beforehand into event and key table, one transaction a batch

The market log's half is `benchmarks/log/append_market.py`.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from struct import pack
from typing import Any, NamedTuple

import psycopg
from nacl.bindings import crypto_sign_open

from benchmarks import cpu
from benchmarks.log.reports import BenchNode, Signed, bench_node, reports
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from cli.serve import SWITCH_SECONDS
from domain.metering import report
from ledger import migrate
from ledger.log import pgbin, usage
from ledger.log import report_form as usage_form
from ledger.log.usage import Item

ROWS = 100
NAME = report.NAME.encode()
FIGURE, FIGURES_CHECKED = 0.6, {100: 0.4}
"""Parts of the limit; with checking, by the size of a batch."""


class Numbers(NamedTuple):
    nodes: int
    per_node: int  # reports
    rounds: int


SIZES = {
    Size.FULL: Numbers(nodes=200, per_node=20, rounds=5),
    Size.SHORT: Numbers(nodes=200, per_node=5, rounds=2),
    Size.TINY: Numbers(nodes=3, per_node=4, rounds=1),
}

Connection = psycopg.Connection[Any]


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Measure batches of 10 and 100 and return rates (reports/s) and ratios to the limit."""
    numbers = SIZES[size]
    raw = _raw(numbers)
    with workplace(server) as (_, database):
        batches = [_measure(database, raw, batch, numbers.rounds) for batch in (10, 100)]
        settings = _settings(database)
    return {
        "figure": "usage log append of verified reports of 100 samples:"
        f" >= {FIGURE:.0%} of binary COPY",
        "conditions": {
            "reports": len(raw),
            "nodes": numbers.nodes,
            "body_bytes": len(raw[0][1].body),
            "rounds": numbers.rounds,
            **settings,
        },
        "batches": batches,
    }


def _raw(numbers: Numbers) -> list[tuple[BenchNode, Signed]]:
    nodes = [bench_node(number) for number in range(numbers.nodes)]
    made = [list(islice(reports(node, ROWS), numbers.per_node)) for node in nodes]
    return [(nodes[n], made[n][k]) for k in range(numbers.per_node) for n in range(numbers.nodes)]


def _settings(server: Server) -> dict[str, str]:
    with psycopg.connect(server.uri) as connection:
        return {
            name: str(connection.execute(f"SHOW {name}".encode()).fetchone()[0])  # type: ignore[index]
            for name in ("server_version", "fsync", "synchronous_commit", "shared_buffers")
        }


def _item(node: BenchNode, one: Signed) -> Item:
    return usage.item(
        node.id, one.seq, one.prev, one.body, node.key_id, one.signature, node.genesis
    )


def _checked_item(node: BenchNode, one: Signed) -> Item:
    crypto_sign_open(one.signature + report.pae(one.body), node.public_key)
    usage_form.read(one.body)
    return _item(node, one)


Contender = Callable[[Connection, Sequence[tuple[BenchNode, Signed]], int], float]


def _ours(connection: Connection, raw: Sequence[tuple[BenchNode, Signed]], size: int) -> float:
    items = [_item(*one) for one in raw]
    return _append(connection, items, size)


def _append(connection: Connection, items: Sequence[Item], size: int) -> float:
    start = time.perf_counter()
    for at in range(0, len(items), size):
        receipts = usage.append(connection, items[at : at + size])
        assert all(receipt.status is usage.Status.STORED for receipt in receipts)
    return time.perf_counter() - start


def ours_checked(
    connection: Connection, raw: Sequence[tuple[BenchNode, Signed]], size: int
) -> float:
    """Signatures checked, reports read and stored, `size` together; seconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(1) as beside:
            start = time.perf_counter()
            ahead = beside.submit(_checked_items, raw[:size])
            for at in range(size, len(raw) + size, size):
                items = ahead.result()
                ahead = beside.submit(_checked_items, raw[at : at + size])
                usage.append(connection, items)
            return time.perf_counter() - start
    finally:
        sys.setswitchinterval(before)


def _checked_items(raw: Sequence[tuple[BenchNode, Signed]]) -> list[Item]:
    return [_checked_item(*one) for one in raw]


_PEER_EVENT = b"""INSERT INTO copy_event SELECT u.*, 0, 1 FROM
    unnest(%s, %s, %s, %s, %s, %s, %s, %s) u ON CONFLICT DO NOTHING"""
_PEER_KEY = b"""INSERT INTO copy_key SELECT u.* FROM unnest(%s, %s, %s, %s, %s) u
    ON CONFLICT DO NOTHING"""


def _peer(connection: Connection, raw: Sequence[tuple[BenchNode, Signed]], size: int) -> float:
    items = [_item(*one) for one in raw]
    start = time.perf_counter()
    for at in range(0, len(items), size):
        batch = items[at : at + size]
        lanes = pgbin.int2s([x.lane for x in batch])
        nodes = pgbin.texts([x.node for x in batch])
        seqs = pgbin.int8s([x.seq for x in batch])
        places = pgbin.int8s(range(at + 1, at + 1 + len(batch)))
        leaves = pgbin.byteas([x.leaf for x in batch])
        names, bodies = pgbin.texts([NAME] * len(batch)), pgbin.byteas([x.body for x in batch])
        chains = pgbin.byteas([x.hash for x in batch])
        with connection.transaction():
            event = (lanes, places, nodes, seqs, names, bodies, leaves, chains)
            connection.execute(_PEER_EVENT, event, prepare=True)
            connection.execute(_PEER_KEY, (lanes, nodes, seqs, places, leaves), prepare=True)
    return time.perf_counter() - start


def _limit(connection: Connection, raw: Sequence[tuple[BenchNode, Signed]], size: int) -> float:
    items = [_item(*one) for one in raw]
    buffers = [_buffers(items[at : at + size], at) for at in range(0, len(items), size)]
    start = time.perf_counter()
    for event, key in buffers:
        with connection.transaction(), connection.cursor() as cursor:
            for table, data in ((b"copy_event", event), (b"copy_key", key)):
                with cursor.copy(b"COPY " + table + b" FROM STDIN (FORMAT binary)") as copy:
                    copy.write(data)
    return time.perf_counter() - start


def _buffers(items: Sequence[Item], before: int) -> tuple[bytes, bytes]:
    """Both tables' rows in COPY's binary form."""
    head = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    events, keys = [head], [head]
    for place, x in enumerate(items, before + 1):
        position, seq = pack("!iq", 8, place), pack("!iq", 8, x.seq)
        lane, node, leaf = pack("!ih", 2, x.lane), _sized(x.node), _sized(x.leaf)
        events += (b"\0\x0a", lane, position, node, seq, _sized(NAME), _sized(x.body), leaf)
        events += (_sized(x.hash), pack("!iiiq", 4, 0, 8, 1))
        keys += (b"\0\x05", lane, node, seq, position, leaf)
    return b"".join(events) + b"\xff\xff", b"".join(keys) + b"\xff\xff"


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


CONTENDERS: dict[str, Contender] = {
    "ours": _ours,
    "ours, with checking": ours_checked,
    "peer: INSERT unnest, dedupe only": _peer,
    "limit: COPY, prebuilt": _limit,
}


def _measure(
    server: Server, raw: Sequence[tuple[BenchNode, Signed]], size: int, rounds: int
) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    spent = {name: cpu.Spent(server.pid) for name in CONTENDERS}
    for turn in range(rounds):
        for name, contender in CONTENDERS.items():
            database = f"append_{size}_{turn}_{list(CONTENDERS).index(name)}"
            seconds[name].append(_once(server, database, (contender, spent[name]), raw, size))
    limit = statistics.median(seconds["limit: COPY, prebuilt"])
    return {
        "batch": size,
        "contenders": {
            name: {
                "reports_per_second": round(len(raw) / statistics.median(times)),
                "of_limit": round(limit / statistics.median(times), 3),
                "best": round(len(raw) / min(times)),
                "processor_ns": spent[name].each(),
            }
            for name, times in seconds.items()
        },
    }


def _once(
    server: Server,
    database: str,
    measured: tuple[Contender, cpu.Spent],
    raw: Sequence[tuple[BenchNode, Signed]],
    size: int,
) -> float:
    """One run on a database of its own, emptied of dirty pages before the clock starts."""
    uri, (contender, spent) = server.create_database(database), measured
    migrate.migrate(uri)
    with psycopg.connect(uri, autocommit=True) as connection:
        usage.prepare(connection)
        connection.execute("CREATE TABLE copy_event (LIKE usage_event INCLUDING ALL)")
        connection.execute("CREATE TABLE copy_key (LIKE usage_key INCLUDING ALL)")
        connection.execute("CHECKPOINT")
        with spent.counted(len(raw)):
            took = contender(connection, raw, size)
        if contender in (_ours, ours_checked):
            assert usage.verify(connection, range(64)) == len(raw)
    with psycopg.connect(server.uri, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())
    return took


def table(result: dict[str, Any]) -> str:
    """The result for people: ratios first."""
    lines = [result["figure"], json.dumps(result["conditions"])]
    for batch in result["batches"]:
        lines.append(f"batches of {batch['batch']}")
        lines += [
            f"  {row['of_limit']:7.1%} of COPY  {row['reports_per_second']:>8,}/s  {name}"
            for name, row in batch["contenders"].items()
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(run(size_asked(__doc__))))
