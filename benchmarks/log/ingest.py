"""Signed usage reports over HTTP, from request to receipt, load generator on the same cores.

    python -m benchmarks.log.ingest            full
    python -m benchmarks.log.ingest --short    a few seconds
    python -m benchmarks.log.ingest --tiny     whether it runs at all

One report of 100 samples a request, 200 nodes, 32 connections, one server process, durable
PostgreSQL. In one run, in turn, each on a database of its own:

- ours: signature, strict reading, group commit with lane chain, receipt after the commit
- peer: what a careful service is usually made of: FastAPI route, pydantic models, `cryptography`,
  a connection pool, one INSERT .. ON CONFLICT DO NOTHING a request; no chain, no order, no receipt
- limit: the same server and the same requests, answered without looking at them
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from benchmarks import cpu
from benchmarks.log.reports import bench_node, reports, request
from benchmarks.size import Size, size_options
from benchmarks.workplace import Server, workplace
from ledger import migrate
from ledger.log import usage

ROWS = 100
STARTS_WITHIN_SECONDS = 120
"""A server that starts beside other work has to read all of its modules first."""
FIGURE_RATE, FIGURE_PEER, FIGURE_MS = 6_000, 5.0, 20
SERVERS = ("ours", "peer", "limit")


class Numbers(NamedTuple):
    """`per_node`: ready requests, no fewer than are sent in that time."""

    nodes: int
    connections: int
    seconds: float
    rounds: int
    per_node: int


SIZES = {
    Size.FULL: Numbers(nodes=200, connections=32, seconds=6.0, rounds=3, per_node=200),
    Size.SHORT: Numbers(nodes=200, connections=32, seconds=3.0, rounds=1, per_node=120),
    Size.TINY: Numbers(nodes=2, connections=2, seconds=0.1, rounds=1, per_node=10),
}
NODES_MAX = max(numbers.nodes for numbers in SIZES.values())


# --- the figures -----------------------------------------------------------------------------


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Measure each server and return rates (reports/s), latencies (ms) and ratios."""
    numbers = SIZES[size]
    with workplace(server) as (folder, made):
        body_bytes = _make_requests(folder / "requests", numbers)
        measured: dict[str, list[dict[str, Any]]] = {kind: [] for kind in SERVERS}
        for turn in range(numbers.rounds):
            for kind in SERVERS:
                database = f"ingest_{kind}_{turn}"
                measured[kind].append(_measure(made, kind, database, folder, size))
        settings = _settings(made)
    best = {kind: _median(turns) for kind, turns in measured.items()}
    return {
        "figure": f"signed reports of 100 samples over HTTP: >= {FIGURE_RATE:,} reports/s,"
        f" {FIGURE_PEER} x the peer, p99 < {FIGURE_MS} ms",
        "conditions": {
            "nodes": numbers.nodes,
            "connections": numbers.connections,
            "samples_per_report": ROWS,
            "body_bytes": body_bytes,
            "seconds": numbers.seconds,
            "rounds": numbers.rounds,
            "cores": os.cpu_count(),
            **settings,
        },
        "servers": {
            kind: {
                "of_peer": _ratio(row, best["peer"]),
                "of_limit": _ratio(row, best["limit"]),
                **row,
                "rates": [turn["reports_per_second"] for turn in measured[kind]],
            }
            for kind, row in best.items()
        },
    }


def _ratio(row: dict[str, Any], other: dict[str, Any]) -> float:
    return float(round(row["reports_per_second"] / other["reports_per_second"], 3))


def _median(turns: list[dict[str, Any]]) -> dict[str, Any]:
    return sorted(turns, key=lambda turn: int(turn["reports_per_second"]))[len(turns) // 2]


def _settings(server: Server) -> dict[str, str]:
    with psycopg.connect(server.uri) as connection:
        return {
            name: str(connection.execute(f"SHOW {name}".encode()).fetchone()[0])  # type: ignore[index]
            for name in ("server_version", "fsync", "synchronous_commit")
        }


def _make_requests(folder: Path, numbers: Numbers) -> int:
    """Ready requests of every node in a file of its own; the size of one signed body."""
    folder.mkdir()
    with get_context("fork").Pool(os.cpu_count()) as pool:
        asked = [(folder, number, numbers.per_node) for number in range(numbers.nodes)]
        sizes = pool.starmap(_requests_of, asked)
    return sizes[0]


def _requests_of(folder: Path, number: int, per_node: int) -> int:
    node = bench_node(number)
    made = list(islice(reports(node, ROWS), per_node))
    (folder / str(number)).write_bytes(pickle.dumps([request(node, [one]) for one in made]))
    return len(made[0].body)


def _measure(server: Server, kind: str, database: str, folder: Path, size: Size) -> dict[str, Any]:
    uri = server.create_database(database)
    migrate.migrate(uri)
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE peer_report (node_id text, seq int8, signature bytea, body bytea,"
            " PRIMARY KEY (node_id, seq))"
        )
        connection.execute("CHECKPOINT")
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.log.ingest"]
    process = subprocess.Popen([*command, "--serve", kind, str(port), uri])
    try:
        wait_for(port)
        before = cpu.of_process(process.pid), cpu.of_server(server.pid)
        load = subprocess.run(
            [*command, f"--{size.value}", "--load", str(port), str(folder / "requests")],
            check=True,
            capture_output=True,
            text=True,
        )
        after = cpu.of_process(process.pid), cpu.of_server(server.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
    result: dict[str, Any] = json.loads(load.stdout)
    for who, one, other in zip(("server", "database"), before, after, strict=True):
        result[f"{who}_cpu_us_per_report"] = round((other - one) * 1e6 / result["answers"])
    assert result["refused"] == 0, result
    with psycopg.connect(uri) as connection:
        stored = usage.verify(connection, range(64))
        commits = connection.execute(
            "SELECT count(DISTINCT recorded_us) FROM usage_event"
        ).fetchone()
    if kind == "ours":
        assert stored == result["answers"], (stored, result)
        assert commits is not None
        result["reports_per_commit"] = round(stored / commits[0], 1)
    with psycopg.connect(server.uri, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())
    return result


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    give_up = time.monotonic() + STARTS_WITHIN_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)
        else:
            return


def table(result: dict[str, Any]) -> str:
    """The result for people: ratios first."""
    lines = [result["figure"], json.dumps(result["conditions"])]
    for name, row in result["servers"].items():
        lines.append(
            f"  {row['of_peer']:6.2f} x peer  {row['of_limit']:6.1%} of limit"
            f"  {row['reports_per_second']:>7,} reports/s  p50 {row['p50_ms']} p99 {row['p99_ms']}"
            f" max {row['max_ms']} ms  server {row['server_cpu_us_per_report']} us, load"
            f" {row['load_cpu_us_per_report']} us CPU a report  {name} {row['rates']}"
        )
    return "\n".join(lines)


# --- the load generator ----------------------------------------------------------------------


class _Client(asyncio.Protocol):
    """One keep-alive connection that sends the next request when the last is answered."""

    def __init__(self, requests: Iterator[bytes], until: float, closed: asyncio.Event) -> None:
        self.requests, self.until, self.closed = requests, until, closed
        self.took: list[float] = []
        self.refused = 0
        self.first_refusal = ""
        self._buffer = b""
        self._sent_at = 0.0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        message = next(self.requests, None)
        if message is None or (self.took and time.perf_counter() > self.until):
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(message)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self._buffer.lower().find(b"content-length: ") + 16
        length = int(self._buffer[at : self._buffer.find(b"\r", at)])
        if len(self._buffer) < head + 4 + length:
            return
        self.took.append(time.perf_counter() - self._sent_at)
        if self._buffer[9:12] != b"200":
            self.refused += 1
            self.first_refusal = self.first_refusal or self._buffer.decode()[:500]
        self._buffer = b""
        self._send()

    def connection_lost(self, _: Exception | None) -> None:
        self.closed.set()


def _rounds(lists: list[list[bytes]]) -> Iterator[bytes]:
    """A connection's nodes in turn, each node's reports in order."""
    for turn in range(max(map(len, lists))):
        for one in lists:
            if turn < len(one):
                yield one[turn]


def _itself(client: _Client) -> _Client:
    return client


async def _load(port: int, folder: Path, numbers: Numbers) -> dict[str, Any]:
    seconds, count = numbers.seconds, numbers.connections
    nodes = [pickle.loads((folder / str(number)).read_bytes()) for number in range(numbers.nodes)]
    start, used = time.perf_counter(), time.process_time()
    loop = asyncio.get_running_loop()
    clients = [
        _Client(_rounds(nodes[index::count]), start + seconds, asyncio.Event())
        for index in range(count)
    ]
    for client in clients:
        await loop.create_connection(partial(_itself, client), "127.0.0.1", port)
    for client in clients:
        await client.closed.wait()
    elapsed, used = time.perf_counter() - start, time.process_time() - used
    took = sorted(one for client in clients for one in client.took)
    return {
        "reports_per_second": round(len(took) / elapsed),
        "samples_per_second": round(len(took) * ROWS / elapsed),
        "p50_ms": round(took[len(took) // 2] * 1e3, 1),
        "p99_ms": round(took[int(len(took) * 0.99)] * 1e3, 1),
        "max_ms": round(took[-1] * 1e3, 1),
        "answers": len(took),
        "refused": sum(client.refused for client in clients),
        "first_refusal": next((c.first_refusal for c in clients if c.first_refusal), ""),
        "load_cpu_us_per_report": round(used * 1e6 / len(took)),
        "ran_out": elapsed < seconds * 0.95,
    }


# --- the servers -----------------------------------------------------------------------------


class _BenchKeys:
    def __init__(self) -> None:
        from api.ingest.door import NodeKey

        nodes = [bench_node(number) for number in range(NODES_MAX)]
        self._known = {node.id: NodeKey(node.key_id, node.public_key) for node in nodes}

    def lookup(self, node_id: str) -> Any:
        return self._known.get(node_id)


def _serve(kind: str, port: int, uri: str) -> None:
    import uvicorn

    app = {"ours": _ours, "peer": _peer, "limit": _limit}[kind](uri)
    uvicorn.run(
        app, port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning"
    )


def _ours(uri: str) -> Any:
    from fastapi import FastAPI

    from api.ingest.door import UsageIngest, fast, tune_collector
    from cli.serve import SWITCH_SECONDS

    sys.setswitchinterval(SWITCH_SECONDS)
    log = usage.UsageLog(uri)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncGenerator[None, None]:
        tune_collector()
        async with log:
            yield

    return fast(FastAPI(lifespan=life), UsageIngest(log, _BenchKeys()))


def _limit(_: str) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})

    return app


def _peer(uri: str) -> Any:
    from benchmarks.log.ingest_peer import peer

    return peer(uri, NODES_MAX)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    size_options(parser)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--load", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        _serve(asked.serve[0], int(asked.serve[1]), asked.serve[2])
    elif asked.load:
        import uvloop

        port, folder = asked.load
        found = uvloop.run(_load(int(port), Path(folder), SIZES[asked.size]))
        print(json.dumps(found))
    else:
        print(table(run(asked.size)))
