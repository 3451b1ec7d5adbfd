"""Leases opened over HTTP, from request to durable receipt, load generator on the same cores.

    python -m benchmarks.fleet.lease_open            full
    python -m benchmarks.fleet.lease_open --short    a few seconds
    python -m benchmarks.fleet.lease_open --tiny     whether it runs at all

A fleet of 1,000 nodes with 8 devices each, 32 renters with a connection and an account each, one
server process as `tallystick serve` starts it, durable PostgreSQL. A request names a new job and
asks for one device; the answer comes when job, request, match, reservation and escrow are
recorded. In one run, in turn:

- ours: the whole way, checked afterwards: no device is held twice, every receipt is in the log
- peer: what is usually built: FastAPI, pydantic, a pool, `SELECT .. FOR UPDATE SKIP LOCKED` of one
  free device and an INSERT in one transaction; no money, no choice of node, no history
- limit: one call that reads nothing, `GET /healthz`, on the same server
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import psycopg
from fastapi import FastAPI, Header
from pydantic import BaseModel

from api.door import keys
from api.process.service import Service
from api.settings import Settings
from benchmarks import cpu
from benchmarks.log.ingest import free_port, wait_for
from benchmarks.size import Size, size_options
from benchmarks.workplace import Server, workplace
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
from domain.market.offer import PublishOffer
from domain.money import credit
from domain.parties.account import BootstrapOperator, FirstKey, OpenAccount
from domain.prices.tariff import CLOUDBENDER, publish
from ledger import migrate
from ledger.log.handle import Ledger

DEVICES = 8
PRICE = 2_780_000
FIGURE_RATE, FIGURE_MS = 1_500, 80
NODES_TOGETHER = 10
OPERATOR, OWNER = "acct_operator", "acct_owner"


class Numbers(NamedTuple):
    """`first_seconds`: a round before the others, in which the views are made from the whole log.
    `warm_seconds`: of every round, not counted, for with its first request a server that has just
    started reads the whole fleet. `seconds`: no more than the fleet has room for.
    `peer_devices`: the peer is faster, so it needs more of them.
    """

    nodes: int
    renters: int
    first_seconds: float
    warm_seconds: float
    seconds: float
    peer_devices: int


SIZES = {
    Size.FULL: Numbers(1_000, 32, 2.0, 1.0, 8.0, 200_000),
    Size.SHORT: Numbers(1_000, 32, 2.0, 1.0, 4.0, 200_000),
    Size.TINY: Numbers(40, 2, 0.1, 0.0, 0.2, 8_000),
}


# --- the figures -----------------------------------------------------------------------------


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Rates (leases/s), latencies (ms) and ratios."""
    numbers = SIZES[size]
    with workplace(server) as (folder, made):
        uri = made.create_database("lease_open")
        migrate.migrate(uri)
        # The keys of the log lie where the servers look for them.
        with Service.open(Settings(data_dir=folder / "data", database_url=uri)) as service:
            secrets = found(service.ledger, numbers.nodes, numbers.renters)
        turn = _Turn(made, uri, folder, secrets, size)
        _measure(turn, "ours", numbers.first_seconds)
        ours = _measure(turn, "ours", numbers.seconds)
        ours["leases"] = _check(uri)
        limit = _measure(turn, "limit", numbers.seconds / 2)
        peer = _measure(turn, "peer", numbers.seconds / 2)
    return {
        "figure": f"lease open to durable receipt, {numbers.renters} clients,"
        f" {numbers.nodes:,} nodes: >= {FIGURE_RATE}/s, p99 < {FIGURE_MS} ms, no device held twice",
        "conditions": {
            "nodes": numbers.nodes,
            "devices": numbers.nodes * DEVICES,
            "clients": numbers.renters,
            "seconds": numbers.seconds,
            "cores": os.cpu_count(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
        },
        "ours": ours,
        "peer": peer,
        "limit": limit,
        "of_peer": round(ours["per_second"] / peer["per_second"], 3),
        "of_limit": round(ours["per_second"] / limit["per_second"], 3),
    }


class _Turn(NamedTuple):
    """What all measurements of a run have in common."""

    server: Server
    uri: str
    folder: Path
    secrets: list[str]
    size: Size


def _measure(turn: _Turn, kind: str, seconds: float) -> dict[str, Any]:
    port = free_port()
    process = _start(turn, kind, port)
    try:
        wait_for(port)
        before = cpu.of_process(process.pid), cpu.of_server(turn.server.pid)
        load = subprocess.run(
            [
                sys.executable,
                "-m",
                "benchmarks.fleet.lease_open",
                f"--{turn.size.value}",
                "--load",
                kind,
                str(port),
                str(seconds),
            ],
            input=json.dumps(turn.secrets),
            check=True,
            capture_output=True,
            text=True,
        )
        after = cpu.of_process(process.pid), cpu.of_server(turn.server.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    result: dict[str, Any] = json.loads(load.stdout)
    assert result["refused"] == 0, result
    names = ("server_cpu_us", "database_cpu_us")
    for name, one, other in zip(names, before, after, strict=True):
        result[name] = round((other - one) * 1e6 / result["answers"])
    return result


def _start(turn: _Turn, kind: str, port: int) -> subprocess.Popen[bytes]:
    if kind == "peer":
        command = [sys.executable, "-m", "benchmarks.fleet.lease_open", f"--{turn.size.value}"]
        return subprocess.Popen([*command, "--peer", str(port), turn.uri])
    settings = {
        "DATABASE_URL": turn.uri,
        "DATA_DIR": str(turn.folder / "data"),
        "PORT": str(port),
        "REQUESTS_PER_SECOND": "1000000",
        "REQUESTS_BURST": "1000000",
        "CONSOLE": "false",
        "JOBS": "false",
    }
    environment = {**os.environ, **{f"TALLYSTICK_{name}": text for name, text in settings.items()}}
    tallystick = Path(sys.executable).with_name("tallystick")
    with (turn.folder / "server.log").open("ab") as log:
        return subprocess.Popen([tallystick, "serve"], env=environment, stdout=log, stderr=log)


def _check(uri: str) -> int:
    """Every device's holders from the log itself: never more than one. How many leases there are.

    Raises AssertionError.
    """
    held: dict[str, str] = {}
    with psycopg.connect(uri) as connection:
        rows = connection.execute(
            "SELECT convert_from(state, 'utf8')::json->>'device_id',"
            " convert_from(state, 'utf8')::json->>'lease_id'"
            " FROM market_events WHERE topic = 'device.reserved.v1' ORDER BY notification_id"
        ).fetchall()
    for device_id, lease_id in rows:
        assert device_id not in held, (device_id, held[device_id], lease_id)
        held[device_id] = lease_id
    return len(set(held.values()))


# --- the market ------------------------------------------------------------------------------


def found(ledger: Ledger, nodes: int, renters: int) -> list[str]:
    """Accounts, money, fleet in an empty log; the API keys of the renters."""
    now_us = time.time_ns() // 1_000
    secrets = _accounts(ledger, now_us, renters)
    for first in range(0, nodes, NODES_TOGETHER):
        some = range(first, min(nodes, first + NODES_TOGETHER))
        commands = [one for number in some for one in node_commands(number, now_us)]
        ledger.handle(commands, key=None, now_us=now_us)
    return secrets


def supply_commands(now_us: int) -> list[Any]:
    """A tariff, and the provider and the region of OWNER that every node stands in."""
    at: dict[str, Any] = {"at_us": now_us}
    return [
        publish(CLOUDBENDER, version=1, effective_from_us=0, by="operator", at_us=now_us),
        RegisterProvider(
            provider_id="prov_one", account_id=OWNER, kind="physical", payment_mode="credits", **at
        ),
        OpenRegion(
            region_id="region_one",
            provider_id="prov_one",
            name="home",
            storage_mode="local",
            setting="datacenter",
            admission="operator",
            allow_public_jobs=True,
            **at,
        ),
    ]


def _accounts(ledger: Ledger, now_us: int, renters: int) -> list[str]:
    at: dict[str, Any] = {"at_us": now_us}
    secrets = [keys.make(bytes([number]) * 38) for number in range(renters)]
    commands: list[Any] = [
        BootstrapOperator(
            account_id=OPERATOR, member_id="operator", key_id="k0000000", key_sha256="11" * 32, **at
        ),
        OpenAccount(
            account_id=OWNER, kind="party", opened_by="operator", owner_member_id="owner", **at
        ),
        *supply_commands(now_us),
    ]
    for number, secret in enumerate(secrets):
        account_id = f"acct_{number:032x}"
        key_id = keys.key_id(secret)
        assert key_id is not None
        commands += [
            OpenAccount(
                account_id=account_id,
                kind="party",
                opened_by="operator",
                owner_member_id=f"renter{number}",
                first_key=FirstKey(
                    key_id=key_id, key_sha256=keys.digest(secret), scopes=("renter",)
                ),
                **at,
            ),
            ConfirmDeposit(
                deposit_id=f"deposit_{number}",
                account_id=account_id,
                source="cash",
                amount=credit(10**12),
                reference=f"{number}",
                confirmed_by="operator",
                **at,
            ),
        ]
    ledger.handle(commands, key=None, now_us=now_us)
    return secrets


def node_commands(number: int, now_us: int) -> list[Any]:
    """From its join code to its offer. Prices differ, so the cheapest are what all want first."""
    node_id, public_key = f"node_{number:032x}", sha256(b"key %d" % number).digest()
    code, key_id = sha256(b"code %d" % number).hexdigest(), sha256(public_key).hexdigest()[:16]
    by: dict[str, Any] = {"by": "operator", "at_us": now_us}
    devices = tuple(
        DeviceSpec(f"GPU-{number:04d}-{slot}", "nvidia", "NVIDIA A100-PCIE-80GB", 81_559)
        for slot in range(DEVICES)
    )
    return [
        IssueJoinCode(code_sha256=code, provider_id="prov_one", region_id="region_one", **by),
        JoinNode(
            code_sha256=code,
            node_id=node_id,
            key_id=key_id,
            public_key=public_key.hex(),
            token_sha256=code,
            agent="bench",
            client_id=None,
            devices=devices,
            host=HostSpec("x86_64", "linux"),
            at_us=now_us,
        ),
        ConfirmNodeKey(node_id=node_id, key_id=key_id, **by),
        AdmitNode(node_id=node_id, **by),
        ActivateNode(node_id=node_id, **by),
        PublishOffer(
            offer_id=f"offer_{number:032x}",
            provider_id="prov_one",
            node_id=node_id,
            price_per_gpu_hour=credit(PRICE + number % 100),
            pay_with="cash",
            fractions=True,
            available_until_us=None,
            at_us=now_us,
        ),
    ]


# --- the load generator ----------------------------------------------------------------------


class _Client(asyncio.Protocol):
    """One keep-alive connection of one renter; the next request follows the last answer."""

    def __init__(self, requests: Iterator[bytes], until: float, closed: asyncio.Event) -> None:
        self.requests, self.until, self.closed = requests, until, closed
        self.took: list[tuple[float, float]] = []  # when it was sent, seconds to its answer
        self.refused: list[str] = []
        self._buffer = b""
        self._sent_at = 0.0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        if self.took and time.perf_counter() > self.until:
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(next(self.requests))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self._buffer.lower().find(b"content-length: ") + 16
        length = int(self._buffer[at : self._buffer.find(b"\r", at)])
        if len(self._buffer) < head + 4 + length:
            return
        self.took.append((self._sent_at, time.perf_counter() - self._sent_at))
        if self._buffer[9:12] not in (b"200", b"201"):
            self.refused.append(self._buffer.decode()[:600])
        self._buffer = b""
        self._send()

    def connection_lost(self, _: Exception | None) -> None:
        self.closed.set()


def _requests(kind: str, number: int, secret: str) -> Iterator[bytes]:
    job = {
        "command": ["true"],
        "max_price_per_gpu_hour": {"asset": "CREDIT", "units": str(2 * PRICE)},
    }
    body = b"" if kind == "limit" else json.dumps({"job": job}).encode()
    line = b"GET /healthz" if kind == "limit" else b"POST /v1/leases"
    head = (
        b"%s HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer %s\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n"
    ) % (line, secret.encode(), len(body))
    started = time.time_ns()
    turn = 0
    while True:
        turn += 1
        key = b"idempotency-key: bench-%d-%d-%d\r\n\r\n" % (started, number, turn)
        yield head + key + body


async def _load(
    kind: str, port: int, seconds: float, secrets: list[str], warm_seconds: float
) -> dict[str, Any]:
    start, loop = time.perf_counter(), asyncio.get_running_loop()
    clients = [
        _Client(_requests(kind, number, secret), start + warm_seconds + seconds, asyncio.Event())
        for number, secret in enumerate(secrets)
    ]
    for client in clients:
        await loop.create_connection(partial(_itself, client), "127.0.0.1", port)
    for client in clients:
        await client.closed.wait()
    start += warm_seconds
    elapsed = time.perf_counter() - start
    took = sorted(one for client in clients for sent, one in client.took if sent >= start)
    refused = [text for client in clients for text in client.refused]
    answers = sum(len(client.took) for client in clients)
    return {
        "per_second": round(len(took) / elapsed),
        "answers": answers,
        "p50_ms": round(took[len(took) // 2] * 1e3, 1),
        "p99_ms": round(took[int(len(took) * 0.99)] * 1e3, 1),
        "max_ms": round(took[-1] * 1e3, 1),
        "refused": len(refused),
        "first_refusal": refused[0] if refused else "",
        "load_cpu_us": round(time.process_time() * 1e6 / answers),
    }


def _itself(client: _Client) -> _Client:
    return client


# --- the peer --------------------------------------------------------------------------------


class _Job(BaseModel):
    command: list[str]
    max_price_per_gpu_hour: dict[str, str]


class _Asked(BaseModel):
    job: _Job


def _peer(port: int, uri: str, devices: int) -> None:
    import uvicorn
    from psycopg_pool import AsyncConnectionPool

    pool = AsyncConnectionPool(uri, min_size=8, max_size=8, open=False)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncGenerator[None, None]:
        async with pool:
            async with pool.connection() as connection:
                await connection.execute("DROP TABLE IF EXISTS peer_lease, peer_device")
                await connection.execute(
                    "CREATE TABLE peer_device (id text PRIMARY KEY, price bigint, free boolean)"
                )
                await connection.execute(
                    "CREATE TABLE peer_lease (id text PRIMARY KEY, device text, who text, job json)"
                )
                await connection.execute(
                    "INSERT INTO peer_device SELECT 'GPU-' || n, n / 8 %% 100, true"
                    " FROM generate_series(1, %s) n",
                    (devices,),
                )
                await connection.execute("CREATE INDEX ON peer_device (price, id) WHERE free")
            yield

    app = FastAPI(lifespan=life)

    @app.post("/v1/leases")
    async def open_lease(
        body: _Asked,
        idempotency_key: Annotated[str, Header()],
        authorization: Annotated[str, Header()],
    ) -> dict[str, str]:
        async with pool.connection() as connection:
            row = await (
                await connection.execute(
                    "UPDATE peer_device SET free = false WHERE id = (SELECT id FROM peer_device"
                    " WHERE free ORDER BY price, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
                )
            ).fetchone()
            assert row is not None
            await connection.execute(
                "INSERT INTO peer_lease VALUES (%s, %s, %s, %s)",
                (idempotency_key, row[0], authorization, body.job.model_dump_json()),
            )
        return {"lease_id": idempotency_key, "device_id": row[0]}

    uvicorn.run(
        app, port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning"
    )


def table(result: dict[str, Any]) -> str:
    """The result for people: ratios first."""
    lines = [result["figure"], json.dumps(result["conditions"])]
    lines.append(f"  {result['of_peer']:.2f} x peer, {result['of_limit']:.1%} of limit")
    lines += [f"  {name}: {json.dumps(result[name])}" for name in ("ours", "peer", "limit")]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    size_options(parser)
    parser.add_argument("--peer", nargs=2, metavar=("PORT", "URI"))
    parser.add_argument("--load", nargs=3, metavar=("KIND", "PORT", "SECONDS"))
    options = parser.parse_args()
    if options.peer:
        port, uri = options.peer
        _peer(int(port), uri, SIZES[options.size].peer_devices)
    elif options.load:
        kind, port, seconds = options.load
        secrets, warm_seconds = json.load(sys.stdin), SIZES[options.size].warm_seconds
        told = asyncio.run(_load(kind, int(port), float(seconds), secrets, warm_seconds))
        print(json.dumps(told))
    else:
        print(table(run(options.size)))


if __name__ == "__main__":
    main()
