"""What the console costs: how soon a page is seen, what visitors and live pages leave in memory.

    python -m benchmarks.door.console            full: 10,000 nodes, 1,000,000 facts
    python -m benchmarks.door.console --short    1,000 nodes, 30,000 facts; minutes
    python -m benchmarks.door.console --tiny     whether it runs at all
    python -m benchmarks.door.console --kept FOLDER   make the market there, or use it again

One server as `tallystick serve` starts it, without its timers, on a durable PostgreSQL of its own.
In one run:

*Pages*: every page of the menus of a stranger, a renter, an owner and the operator, and one of each
row's page, in a headless Chromium on the same machine; the browser's own "first contentful paint",
of some loads with nothing kept from the load before but style and script; and the processor time of
the server and of PostgreSQL for a load, which tells more than the paint where others use the cores.

*Visitors*: each is a session that looks at the home of a renter and at the leases. Half as many go
before and warm the server; the growth of its resident memory over the others is told.

*Live pages*: each watches a lease of its own, with four pages a session. Each lease prints a line
every few seconds, and its node reports once a minute. Told: how late a page says a line, processor
time of the server and of PostgreSQL beyond what they took just before, and resident memory for each
stream.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import psycopg

from api.console.sessions import sessions
from api.door.auth import KEY, Authenticator, Principal
from api.process.service import Service
from api.settings import Settings
from benchmarks import cpu
from benchmarks.door import console_market
from benchmarks.door.console_market import Market, Reporter, Running
from benchmarks.log.ingest import free_port, wait_for
from benchmarks.size import Size, size_options
from benchmarks.workplace import Server, workplace
from ledger.beside import lease_logs
from ledger.log import usage

PAINT_S, STREAM_KIB, LIVE_CORES, LATE_S, SCRIPT_KIB = 0.5, 64, 0.5, 2.0, 30
PAGES_OF_SESSION, SESSIONS_OF_MEMBER = 4, 20
LINE_EVERY_S: Final = 4.0
PAGES: Final = {
    "": (
        "/",
        "/offers",
        "/epochs",
        "/solvency",
        "/proposals",
        "/room",
        "/log",
        "/sign-up",
        "/docs",
    ),
    "renter": ("/rent", "/leases", "/leases/{lease}", "/bills", "/money", "/keys", "/disputes"),
    "owner": (
        "/earn",
        "/nodes",
        "/nodes/{node}",
        "/nodes/new",
        "/regions",
        "/map",
        "/search?q=A100",
    ),
    "operator": (
        "/operate",
        "/operate/admissions",
        "/operate/payouts",
        "/operate/capacity",
        "/operate/accounts",
    ),
}


class Numbers(NamedTuple):
    """`warm`: reports of each node that are not billed yet when the live pages open."""

    nodes: int
    facts: int
    hours: int
    loads: int
    visitors: int
    live: int
    seconds: float
    warm: int


SIZES = {
    Size.FULL: Numbers(10_000, 1_000_000, 720, 5, 1_000, 100, 60.0, 30),
    Size.SHORT: Numbers(1_000, 30_000, 720, 3, 1_000, 100, 30.0, 30),
    Size.TINY: Numbers(20, 300, 26, 1, 20, 2, 2.0, 2),
}


class Bench:
    """The server that is measured, and the market behind it."""

    def __init__(
        self, folder: Path, server: Server, service: Service, numbers: Numbers, market: Market
    ) -> None:
        self.numbers, self.service, self.server = numbers, service, server
        self.market = market
        self.port = free_port()
        self.process = _serve(folder, service.conninfo, self.port)
        self.address = f"http://127.0.0.1:{self.port}"

    @property
    def memory_kib(self) -> int:
        """Resident."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.findall(r"VmRSS:\s+(\d+)", text)[0])

    def processor(self) -> tuple[float, float]:
        """Seconds of the server and of PostgreSQL so far."""
        return cpu.of_process(self.process.pid), cpu.of_server(self.server.pid)

    def session(self, number: int) -> str:
        """The cookie of a new session of a renter."""
        key = self.market.renters[number % len(self.market.renters)]
        principal: Principal = Authenticator(self.service).authenticate(f"Bearer {key}")
        assert principal.kind == KEY
        return sessions.begin(self.service, principal, None, "bench")


def run(size: Size, server: Server | None = None, kept: Path | None = None) -> dict[str, Any]:
    """Seconds of pages, KiB of visitors and streams, cores and seconds of live pages. `kept`: where
    the market is kept for the next run.
    """
    numbers = SIZES[size]
    renters = max(2, -(-numbers.visitors // SESSIONS_OF_MEMBER))
    asked = console_market.Asked(numbers.facts, numbers.nodes, renters, numbers.hours)
    with workplace(server, kept) as (folder, made):
        uri, market = console_market.prepared(folder, made, asked)
        settings = Settings(data_dir=folder / "data", database_url=uri)
        with Service.open(settings) as service:
            bench = Bench(folder, made, service, numbers, market)
            try:
                wait_for(bench.port)
                leases = _leases(bench)
                told = {
                    "script": _script(bench),
                    "visitors": _visitors(bench),
                    "live": asyncio.run(_live(bench, leases)),
                    "pages": list(_pages(folder, bench, leases[0])),
                }
            finally:
                bench.process.send_signal(signal.SIGINT)
                bench.process.wait(60)
    return {
        "figure": f"first paint {PAINT_S} s; visitors 0; a stream {STREAM_KIB} KiB;"
        f" {LIVE_CORES} core and {LATE_S} s for 100 live pages; script {SCRIPT_KIB} KiB",
        "conditions": {
            **numbers._asdict(),
            "nodes": bench.market.nodes,
            "facts": bench.market.facts,
            "seeded_in_seconds": round(bench.market.seconds),
            "cores": os.cpu_count(),
            "load_average": [round(load, 2) for load in os.getloadavg()],
        },
        **told,
    }


def _serve(folder: Path, uri: str, port: int) -> subprocess.Popen[bytes]:
    settings = {
        "DATABASE_URL": uri,
        "DATA_DIR": str(folder / "data"),
        "PORT": str(port),
        "REQUESTS_PER_SECOND": "1000000",
        "REQUESTS_BURST": "1000000",
        "JOBS": "false",
        "SPEC_TTL_S": "0",  # a market that was kept has told its hardware long ago
    }
    environment = {**os.environ, **{f"TALLYSTICK_{name}": text for name, text in settings.items()}}
    tallystick = Path(sys.executable).with_name("tallystick")
    with (folder / "server.log").open("ab") as log:
        return subprocess.Popen([tallystick, "serve"], env=environment, stdout=log, stderr=log)


def _leases(bench: Bench) -> list[Running]:
    """Leases that run, those of a renter beside each other."""
    made = []
    with httpx.Client(base_url=bench.address, timeout=60) as http:
        for number in range(bench.numbers.live):
            key = bench.market.renters[number % len(bench.market.renters)]
            headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"live-{number}"}
            body = {"job": console_market.job()}
            answer = http.post("/v1/leases", json=body, headers=headers)
            assert answer.status_code == 201, answer.text
            made.append(Running(bench.service, answer.json()["lease_id"]))
    return made


# --- pages -----------------------------------------------------------------------------------

_PAINT = "() => performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime)"


def _pages(folder: Path, bench: Bench, lease: Running) -> Iterator[dict[str, Any]]:
    from tests.e2e.pages.browser import CHROMIUM, browser_in, new_page

    if CHROMIUM is None:
        told = {"page": "none: there is no Chromium here", "ms": []}
        yield {**told, "worst_ms": 0, "processor_ms": 0}
        return
    market, named = bench.market, {"lease": lease.lease_id, "node": lease.node_id}
    keys = {"": "", "renter": market.renters[0], "owner": market.owner, "operator": market.operator}
    with browser_in(folder) as context:
        page = new_page(context)
        for role, paths in PAGES.items():
            context.clear_cookies()
            if role:
                page.goto(f"{bench.address}/sign-in")
                page.locator("#key").fill(keys[role])
                page.get_by_role("button", name="Sign in", exact=True).click()
                page.wait_for_url(f"{bench.address}/")
            for path in paths:
                address, took = bench.address + path.format(**named), []
                before = bench.processor()
                for _ in range(bench.numbers.loads):
                    answer = page.goto(address, wait_until="load")
                    assert answer is not None
                    assert answer.status == 200, (address, answer.status)
                    took.append(_painted(page))
                used = sum(bench.processor()) - sum(before)
                took = sorted(round(one) for one in took)
                yield {
                    "page": f"{role} {path}",
                    "ms": took,
                    "worst_ms": took[-1],
                    "processor_ms": round(used / bench.numbers.loads * 1e3),
                }


def _painted(page: Any) -> float:
    """Milliseconds; the policy of the pages lets no text be run, so it is asked again and again."""
    for _ in range(500):
        if found := page.evaluate(_PAINT):
            return float(found[0])
        page.wait_for_timeout(10)
    raise AssertionError(page.url)


def _script(bench: Bench) -> dict[str, Any]:
    """KiB of all scripts of a page, as they are sent; of the page with most of them."""
    with httpx.Client(base_url=bench.address, timeout=60) as http:
        text = http.get("/log").text
        found = re.findall(r'<script[^>]*src="([^"]+)"', text)
        sizes = {}
        for path in found:
            with http.stream("GET", path, headers={"accept-encoding": "gzip"}) as answer:
                body = b"".join(answer.iter_raw())
            assert gzip.decompress(body), path
            sizes[path.rpartition("/")[2]] = len(body)
    return {"files": sizes, "kib": round(sum(sizes.values()) / 1024, 1)}


# --- visitors --------------------------------------------------------------------------------


def _visitors(bench: Bench) -> dict[str, Any]:
    """Resident memory of the server before, between and after two halves of the visitors."""
    grown, at = [bench.memory_kib], 0
    with httpx.Client(base_url=bench.address, timeout=60) as http:
        for _ in range(3):
            for _ in range(bench.numbers.visitors // 2):
                cookies = {"Cookie": f"tallystick-session={bench.session(at)}"}
                at += 1
                for path in ("/rent", "/leases"):
                    answer = http.get(path, headers=cookies)
                    assert answer.status_code == 200, answer.text
            grown.append(bench.memory_kib)
    return {"visitors": at, "memory_kib": grown, "growth_kib": grown[-1] - grown[1]}


# --- live pages ------------------------------------------------------------------------------


async def _live(bench: Bench, leases: list[Running]) -> dict[str, Any]:
    nodes = console_market.reporters(leases)
    with psycopg.connect(bench.service.conninfo, autocommit=True) as connection:
        usage.prepare(connection)
        for minute in range(bench.numbers.warm):
            usage.append(connection, [one.next(minute) for one in nodes])
        cookies = _cookies(bench, leases)
        _loaded(bench, leases, cookies)
        await _open(bench, leases[:1], cookies[:1], 1.0)  # what is loaded with the first
        memory, quiet = bench.memory_kib, await _idle(bench)
        pages = [
            _Page(bench.port, one, cookie) for one, cookie in zip(leases, cookies, strict=True)
        ]
        for page in pages:  # one after the other: the memory of threads is no stream's
            await page.begin()
        await asyncio.sleep(1.5)  # all of them have been told the first time
        before, began = bench.processor(), time.perf_counter()
        await _work(bench, connection, nodes, pages)
        seconds = time.perf_counter() - began
        used = [
            (after - one) / seconds for after, one in zip(bench.processor(), before, strict=True)
        ]
        held = bench.memory_kib
        for page in pages:
            page.end()
    late = sorted(one for page in pages for one in page.late)
    lost = sum(len(page.printed) for page in pages)
    return {
        "pages": len(pages),
        "lines": len(late),
        "lines_never_told": lost,
        "late_p50_s": round(late[len(late) // 2], 2),
        "late_p99_s": round(late[int(len(late) * 0.99)], 2),
        "late_max_s": round(late[-1], 2),
        "cores_server": round(used[0] - quiet[0], 3),
        "cores_postgresql": round(used[1] - quiet[1], 3),
        "cores": round(sum(used) - sum(quiet), 3),
        "cores_before": round(sum(quiet), 3),
        "kib_of_a_stream": round((held - memory) / len(pages), 1),
    }


def _loaded(bench: Bench, leases: list[Running], cookies: list[str]) -> None:
    """The page of each lease, as a browser loads it before it follows its stream."""
    with httpx.Client(base_url=bench.address, timeout=60) as http:
        for one, cookie in zip(leases, cookies, strict=True):
            headers = {"Cookie": f"tallystick-session={cookie}"}
            assert http.get(f"/leases/{one.lease_id}", headers=headers).status_code == 200


def _cookies(bench: Bench, leases: list[Running]) -> list[str]:
    """A cookie for each lease, of its renter; four pages share a session."""
    by_renter: dict[int, list[str]] = {}
    found = []
    for number in range(len(leases)):
        renter = number % len(bench.market.renters)
        kept, place = by_renter.setdefault(renter, []), number // len(bench.market.renters)
        if place // PAGES_OF_SESSION >= len(kept):
            kept.append(bench.session(renter))
        found.append(kept[place // PAGES_OF_SESSION])
    return found


async def _idle(bench: Bench) -> tuple[float, float]:
    """Cores that server and PostgreSQL take while no page is watched."""
    seconds = min(5.0, bench.numbers.seconds)
    before = bench.processor()
    await asyncio.sleep(seconds)
    one, other = (
        (after - was) / seconds for after, was in zip(bench.processor(), before, strict=True)
    )
    return one, other


async def _open(bench: Bench, leases: list[Running], cookies: list[str], seconds: float) -> None:
    page = _Page(bench.port, leases[0], cookies[0])
    await page.begin()
    await asyncio.sleep(seconds)
    page.end()


async def _work(
    bench: Bench, connection: psycopg.Connection[Any], nodes: list[Reporter], pages: list[_Page]
) -> None:
    """Each lease prints a line every LINE_EVERY_S, and each node reports once a minute."""
    seconds, warm = bench.numbers.seconds, bench.numbers.warm
    coming = [
        (number / len(pages) * LINE_EVERY_S + turn * LINE_EVERY_S, page)
        for turn in range(max(1, int(seconds / LINE_EVERY_S)))
        for number, page in enumerate(pages)
    ]
    reports: list[tuple[float, Any]] = [
        (number / len(nodes) * 60.0, node)
        for number, node in enumerate(nodes)
        if number / len(nodes) * 60.0 < seconds
    ]
    began = time.perf_counter()
    for at, one in sorted([*coming, *reports], key=lambda each: each[0]):
        await asyncio.sleep(max(0.0, began + at - time.perf_counter()))
        if isinstance(one, Reporter):
            await asyncio.to_thread(usage.append, connection, [one.next(warm)])
        else:
            await asyncio.to_thread(one.print, connection)
    give_up = time.perf_counter() + 10
    while any(page.printed for page in pages) and time.perf_counter() < give_up:
        await asyncio.sleep(0.05)


class _Page:
    """An open live page; `late`: seconds from a line's commit to its event."""

    def __init__(self, port: int, lease: Running, cookie: str) -> None:
        self.port, self.lease_id, self.cookie = port, lease.lease_id, cookie
        self.printed: dict[str, float] = {}
        self.late: list[float] = []
        self._seq = 0
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Until the server answers."""
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self.port, limit=1 << 20
        )
        head = f"GET /leases/{self.lease_id}/live HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
        cookie = f"cookie: tallystick-session={self.cookie}\r\n\r\n"
        self._writer.write((head + cookie).encode())
        first = await self._reader.readline()
        assert b" 200 " in first, first
        while not (await self._reader.readline()).startswith(b"retry: "):
            pass
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while line := await self._reader.readline():
            if line.startswith(b"data: "):
                now = time.perf_counter()
                for name in [one for one in self.printed if one.encode() in line]:
                    self.late.append(now - self.printed.pop(name))

    def print(self, connection: psycopg.Connection[Any]) -> None:
        """The lease prints a line."""
        name = f"line {self._seq} of {self.lease_id}"
        piece = [("stdout", f"{name}: loss 0.25\n".encode())]
        lease_logs.append(connection, self.lease_id, self._seq, piece, 0, time.time_ns() // 1_000)
        self.printed[name] = time.perf_counter()
        self._seq += 1

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._writer.close()


# --- telling -----------------------------------------------------------------------------------


def table(result: dict[str, Any]) -> str:
    """The result for people: a line a measure, and the pages with the slowest first."""
    lines = [result["figure"], json.dumps(result["conditions"])]
    lines += [f"  {name}: {json.dumps(result[name])}" for name in ("script", "visitors", "live")]
    pages = sorted(result["pages"], key=lambda one: -one["worst_ms"])
    for one in pages:
        told = f"{one['ms']}, {one['processor_ms']} ms of processor"
        lines.append(f"  {one['worst_ms']:>6} ms  {one['page']:<36} {told}")
    return "\n".join(lines)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    size_options(options)
    options.add_argument("--kept", type=Path, metavar="FOLDER")
    given = options.parse_args()
    print(table(run(given.size, kept=given.kept)))
