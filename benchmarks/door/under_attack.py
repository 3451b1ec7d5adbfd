"""How long others wait while one renter, or a stranger, does its worst.

    python -m benchmarks.door.under_attack            full: a minute an attack
    python -m benchmarks.door.under_attack --short    seconds an attack
    python -m benchmarks.door.under_attack --tiny     whether it runs at all
    python -m benchmarks.door.under_attack --attacks reads,closes --seconds 20      these, so long

One server as `tallystick serve` starts it, with the limits that it has when no setting is given; a
fleet of 200 nodes. A renter who does no harm asks at a steady rate, whether or not the last answer
came (so a server that stands still is not asked less): the offers, its leases, and every fifth
time it opens a lease and closes it. In one run: nothing beside it, each attack, nothing again. The
figure is the 99th percentile of what the renter waits, as a multiple of the quiet one (the greater
of both). The attackers call from another address than the renter, as they would, and run on the
same cores; what their own work takes of them is told by `empty`, in which they send as much to a
port where nothing but an accept loop answers. Renter, attacker and server are three processes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from api.process.service import Service
from api.settings import Settings
from benchmarks import cpu
from benchmarks.fleet.lease_open import PRICE, found
from benchmarks.log.ingest import free_port, wait_for
from benchmarks.size import Size, size_options
from benchmarks.workplace import Server, workplace
from ledger import migrate

FIGURE: Final = 2.0
CONNECTIONS: Final = 64
IDLE: Final = 1_000
TIMEOUT_S: Final = 30.0
OTHERS, ATTACKERS = "127.0.0.1", "127.0.0.2"


class Numbers(NamedTuple):
    """`rate`: requests a second of the renter who does no harm."""

    nodes: int
    seconds: float
    rate: int


SIZES = {
    Size.FULL: Numbers(200, 60.0, 20),
    Size.SHORT: Numbers(200, 8.0, 20),
    Size.TINY: Numbers(10, 0.5, 20),
}


# --- the figures -----------------------------------------------------------------------------


def run(
    size: Size,
    server: Server | None = None,
    *,
    attacks: Sequence[str] | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Latencies (ms) of the harmless renter, quiet and under each attack, by default under all and
    `empty`; and how many cores the server had meanwhile. `seconds`: of each instead of the size's.
    """
    numbers = SIZES[size]
    if seconds is not None:
        numbers = numbers._replace(seconds=seconds)
    with workplace(server) as (folder, made):
        uri = made.create_database("under_attack")
        migrate.migrate(uri)
        with Service.open(Settings(data_dir=folder / "data", database_url=uri)) as service:
            secrets = found(service.ledger, numbers.nodes, 2)
        port = free_port()
        process = _serve(folder, uri, port)
        try:
            wait_for(port)
            _measure(port, secrets, min(2.0, numbers.seconds), numbers.rate, None)  # views are made
            rows = [
                _row(process.pid, port, secrets, numbers, name)
                for name in (None, *(attacks or ("empty", *ATTACKS)), None)
            ]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    quiet = max(row["p99_ms"] for row in rows if row["attack"] is None)
    for row in rows:
        row["of_quiet"] = round(row["p99_ms"] / quiet, 2)
    return {
        "figure": f"others' p99 under one renter's worst behaviour: at most {FIGURE:.0f} x quiet",
        "conditions": {
            **numbers._asdict(),
            "connections": CONNECTIONS,
            "cores": os.cpu_count(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
        },
        "quiet_p99_ms": quiet,
        "rows": rows,
    }


def _serve(folder: Path, uri: str, port: int) -> subprocess.Popen[bytes]:
    settings = {"DATABASE_URL": uri, "DATA_DIR": str(folder / "data"), "PORT": str(port)}
    environment = {**os.environ, **{f"TALLYSTICK_{name}": text for name, text in settings.items()}}
    tallystick = Path(sys.executable).with_name("tallystick")
    with (folder / "server.log").open("ab") as log:
        return subprocess.Popen([tallystick, "serve"], env=environment, stdout=log, stderr=log)


def _row(
    pid: int, port: int, secrets: list[str], numbers: Numbers, attack: str | None
) -> dict[str, Any]:
    before, began = cpu.of_process(pid), time.perf_counter()
    told = _measure(port, secrets, numbers.seconds, numbers.rate, attack)
    cores = (cpu.of_process(pid) - before) / (time.perf_counter() - began)
    return {"attack": attack, **told, "server_cores": round(cores, 2)}


def _measure(
    port: int, secrets: list[str], seconds: float, rate: int, attack: str | None
) -> dict[str, Any]:
    """The harmless renter's waits, with the attacker as a process of its own beside it."""
    if attack is None:
        return asyncio.run(_ask(port, secrets[0], seconds, rate))
    told = json.dumps({"port": port, "secrets": secrets, "seconds": seconds + 0.5})
    command = [sys.executable, "-m", "benchmarks.door.under_attack", "--attack", attack]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as beside:
        assert beside.stdin is not None
        assert beside.stdout is not None
        beside.stdin.write(told.encode())
        beside.stdin.close()
        beside.stdout.readline()  # it has begun
        row = asyncio.run(_ask(port, secrets[0], seconds, rate))
        row["attacker"] = json.loads(beside.stdout.readline() or "{}")
    return row


# --- the renter who does no harm ---------------------------------------------------------------

_JOB = {"command": ["true"], "max_price_per_gpu_hour": {"asset": "CREDIT", "units": str(2 * PRICE)}}
OPENS = 4  # of five kinds of requests, the one that opens a lease
_numbers = count()


async def _ask(port: int, secret: str, seconds: float, rate: int) -> dict[str, Any]:
    took: list[float] = []
    opened: list[float] = []
    failed: list[str] = []

    async def one(kind: int) -> None:
        began = time.perf_counter()
        status, body = await _answer(port, _asked(kind, secret))
        if status >= 300:
            failed.append(f"{status} {body[:300]!r}")
            return
        took.append(time.perf_counter() - began)
        if kind == OPENS:
            opened.append(took[-1])
            await _answer(port, _closing(body, secret))

    began, waiting = time.perf_counter(), []
    for number in range(max(1, int(seconds * rate))):
        await asyncio.sleep(began + number / rate - time.perf_counter())
        waiting.append(asyncio.create_task(one(number % 5)))
    await asyncio.gather(*waiting)
    took = sorted(took + [TIMEOUT_S] * len(failed))  # a refusal counts as the worst
    openings = sorted(opened) or [0.0]
    return {
        "asked": len(took),
        "failed": len(failed),
        "first_failure": failed[0] if failed else "",
        "p50_ms": round(took[len(took) // 2] * 1e3, 1),
        "p99_ms": round(took[int(len(took) * 0.99)] * 1e3, 1),
        "max_ms": round(took[-1] * 1e3, 1),
        "openings_p50_ms": round(openings[len(openings) // 2] * 1e3, 1),
    }


def _asked(kind: int, secret: str) -> bytes:
    if kind == OPENS:
        return _request("POST", "/v1/leases", secret, {"job": _JOB})
    return _request("GET", ("/v1/offers", "/v1/leases")[kind % 2], secret)


def _closing(opened: bytes, secret: str) -> bytes:
    lease_id = json.loads(opened).get("lease_id", "none")
    return _request("POST", f"/v1/leases/{lease_id}/close", secret, {})


def _request(method: str, path: str, secret: str, body: Any = None, more: str = "") -> bytes:
    told = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {secret}\r\n{more}"
    if body is not None:
        key = f"attack-{os.getpid()}-{time.time_ns()}-{next(_numbers)}"
        head += f"idempotency-key: {key}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(told)}\r\nconnection: close\r\n\r\n".encode() + told


async def _answer(port: int, request: bytes, address: str = OTHERS) -> tuple[int, bytes]:
    """Status and body; 599 where none came in time, or the connection was closed."""
    try:
        async with asyncio.timeout(TIMEOUT_S), _connected(port, address) as (reader, writer):
            writer.write(request)
            told = await reader.read()
        return int(told[9:12]), told.partition(b"\r\n\r\n")[2]
    except (OSError, TimeoutError, ValueError) as error:
        return 599, repr(error).encode()


@contextlib.asynccontextmanager
async def _connected(
    port: int, address: str
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter], None]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        yield reader, writer
    finally:
        writer.close()


# --- the attacks -------------------------------------------------------------------------------


class Attacker:
    """One key of a renter, many connections; counts what it was answered."""

    def __init__(self, port: int, secret: str, seconds: float) -> None:
        self.port, self.secret = port, secret
        self.until = time.perf_counter() + seconds
        self.answers: dict[str, int] = {}

    async def send(self, request: bytes) -> bytes:
        status, body = await _answer(self.port, request, ATTACKERS)
        self.answers[str(status)] = self.answers.get(str(status), 0) + 1
        return body

    async def over_and_over(self, requests: Callable[[], bytes]) -> None:
        """Each connection asks again as soon as it is answered."""

        async def one() -> None:
            while time.perf_counter() < self.until:
                await self.send(requests())

        await asyncio.gather(*(one() for _ in range(CONNECTIONS)))


async def reads(who: Attacker) -> None:
    """The longest lists there are."""
    paths = ("/v1/offers?limit=200", "/v1/leases?limit=200", "/v1/utilisation")
    turn = count()
    await who.over_and_over(lambda: _request("GET", paths[next(turn) % 3], who.secret))


async def leases(who: Attacker) -> None:
    """Leases that are opened and closed as fast as they can be: each is recorded, and paid."""

    async def one() -> None:
        while time.perf_counter() < who.until:
            opened = await who.send(_request("POST", "/v1/leases", who.secret, {"job": _JOB}))
            if b'"lease_id"' in opened:
                await who.send(_closing(opened, who.secret))

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))


async def unmatched(who: Attacker) -> None:
    """Requests that no node can meet: the whole fleet is looked through for each (R-5)."""
    dear = {**_JOB, "max_price_per_gpu_hour": {"asset": "CREDIT", "units": "1"}}
    await who.over_and_over(lambda: _request("POST", "/v1/leases", who.secret, {"job": dear}))


async def closes(who: Attacker) -> None:
    """One lease, closed by all at once (S-L13)."""
    made = await who.send(_request("POST", "/v1/leases", who.secret, {"job": _JOB}))
    await who.over_and_over(lambda: _closing(made, who.secret))


async def bodies(who: Attacker) -> None:
    """Bodies as large as are taken, which then are found to be wrong."""
    large = {"job": {**_JOB, "command": ["x" * 60_000] * 16}}
    await who.over_and_over(lambda: _request("POST", "/v1/leases", who.secret, large))


async def strangers(who: Attacker) -> None:
    """Keys that do not exist (S-M6)."""
    await who.over_and_over(lambda: _request("GET", "/v1/leases", "ts_test_" + "0" * 40))


async def idle(who: Attacker) -> None:
    """Connections that begin a request and never end it (S-L22)."""
    writers = []
    for _ in range(IDLE):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(
                "127.0.0.1", who.port, local_addr=(ATTACKERS, 0)
            )
            writer.write(b"POST /v1/leases HTTP/1.1\r\nhost: bench\r\ncontent-length: 9\r\n\r\n{")
            writers.append(writer)
    who.answers["open"] = len(writers)
    await asyncio.sleep(who.until - time.perf_counter())
    for writer in writers:
        writer.close()


async def empty(who: Attacker) -> None:
    """No attack: the same work of a sender, on a server that does nothing."""

    async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 429 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(nothing, "127.0.0.1", 0) as listening:
        who.port = listening.sockets[0].getsockname()[1]
        await who.over_and_over(lambda: _request("GET", "/v1/leases", who.secret))


ATTACKS: Final[dict[str, Callable[[Attacker], Awaitable[None]]]] = {
    one.__name__: one for one in (reads, leases, unmatched, closes, bodies, strangers, idle)
}


async def _attack(name: str) -> None:
    told = json.load(sys.stdin)
    who = Attacker(told["port"], told["secrets"][1], told["seconds"])
    print("begun", flush=True)
    await {**ATTACKS, "empty": empty}[name](who)
    print(json.dumps(who.answers), flush=True)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    size_options(parser)
    known = ", ".join(("empty", *ATTACKS))
    parser.add_argument("--attacks", type=_named, help=f"some of {known}; default: all")
    parser.add_argument("--seconds", type=float, help="an attack; default: as the size says")
    return parser


def _named(text: str) -> list[str]:
    names = text.split(",")
    if unknown := {*names} - {"empty", *ATTACKS}:
        raise argparse.ArgumentTypeError(f"no such attack: {min(unknown)}")
    return names


# --- telling -----------------------------------------------------------------------------------


def table(result: dict[str, Any]) -> str:
    """The result for people: a line an attack."""
    lines = [result["figure"], json.dumps(result["conditions"])]
    lines += [f"  {line}" for line in _rows(result)]
    return "\n".join(lines)


def _rows(result: dict[str, Any]) -> Iterator[str]:
    for row in result["rows"]:
        yield (
            f"{row['attack'] or 'quiet':<10} p99 {row['p99_ms']:>8} ms, {row['of_quiet']:>5} x;"
            f" p50 {row['p50_ms']} ms, of openings {row['openings_p50_ms']} ms,"
            f" max {row['max_ms']} ms; {row['failed']} of {row['asked']} not answered"
            f" {row['first_failure']}; attacker {row.get('attacker', {})};"
            f" server {row['server_cores']} cores"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--attack"]:
        asyncio.run(_attack(sys.argv[2]))
    else:
        asked = _options().parse_args()
        print(table(run(asked.size, attacks=asked.attacks, seconds=asked.seconds)))
