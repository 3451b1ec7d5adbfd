"""Clients that never give up: each sends one request until it is acknowledged, then the next.

A request is repeated byte for byte, whatever became of it: refused connections, broken answers and
5xx are all the same to a client. What was acknowledged goes into a journal, and is asked for again
later now and then: the answer must not change.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import httpx

from domain.metering import report
from domain.money import PPM
from tallystick_client.calls import authorities
from tests.scenes.running_market import OPERATOR, OWNER, RENTER

if TYPE_CHECKING:
    from tests.e2e.stand import Metered, Stand

PAUSE_SECONDS = 0.02
PACE_SECONDS = 0.05
"""Between an acknowledgement and the next request. Seven clients without it keep two cores busy
while what was killed starts; with it, a kill still finds requests on their way.
"""
GIVE_UP_SECONDS = 150.0
AGAIN_ONE_IN = 8
"""How often a client asks again for something that was acknowledged long ago."""
TRY_AGAIN = frozenset({"idempotency_in_progress", "stream_moved"})
"""Conflicts that pass: the same request may succeed a moment later."""


class Journal:
    """What was acknowledged, by name, and a way to wait for more of it."""

    def __init__(self) -> None:
        self._told: dict[str, Any] = {}
        self._changed = threading.Condition()

    @property
    def count(self) -> int:
        return len(self._told)

    def add(self, name: str, told: Any) -> None:
        """Raises AssertionError when the same thing was answered otherwise before."""
        with self._changed:
            before = self._told.setdefault(name, told)
            self._changed.notify_all()
        assert before == told, f"{name} was answered {before}, and now {told}"

    def items(self) -> dict[str, Any]:
        with self._changed:
            return dict(self._told)

    def wait_for_more(self, more: int, seconds: float = GIVE_UP_SECONDS) -> bool:
        """Wait until so many more are acknowledged; whether they were."""
        wanted = self.count + more
        with self._changed:
            return self._changed.wait_for(lambda: len(self._told) >= wanted, seconds)


@dataclass(frozen=True, slots=True)
class Request:
    """One POST, the same bytes every time. `kept` picks what may never change of the answer."""

    name: str
    path: str
    body: bytes
    headers: dict[str, str]
    kept: Callable[[dict[str, Any]], Any]


class GaveUp(AssertionError):
    """A request was refused, or never acknowledged at all."""


class Client(threading.Thread):
    """One connection, one request at a time; `error` is what stopped it."""

    def __init__(
        self,
        name: str,
        url: str,
        requests: Iterator[Request],
        journal: Journal,
        random: Random,
        stopping: threading.Event,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.url, self.requests, self.journal = url, requests, journal
        self.random, self.stopping = random, stopping
        self.error: BaseException | None = None
        self.sent: list[Request] = []

    def run(self) -> None:
        try:
            with httpx.Client(base_url=self.url, timeout=20, verify=authorities()) as http:
                while not self.stopping.is_set():
                    self.send(http, next(self.requests))
                    if self.random.randrange(AGAIN_ONE_IN) == 0:
                        self.send(http, self.random.choice(self.sent))
                    self.stopping.wait(PACE_SECONDS)
        except BaseException as error:
            self.error = error

    def send(self, http: httpx.Client, request: Request) -> None:
        """Raises GaveUp."""
        ends = time.monotonic() + GIVE_UP_SECONDS
        told: Any = None
        while time.monotonic() < ends:
            try:
                answer = http.post(request.path, content=request.body, headers=request.headers)
            except httpx.TransportError as error:
                told = error
            else:
                if answer.is_success:
                    self.journal.add(request.name, request.kept(answer.json()))
                    self.sent.append(request)
                    return
                told = answer.text
                if answer.status_code < 500 and answer.json()["code"] not in TRY_AGAIN:
                    break
            time.sleep(PAUSE_SECONDS)
        raise GaveUp(f"{request.path} {request.name}: {told}")


# --- what they ask for ------------------------------------------------------------------------


class NodeLoad:
    """A node's signed reports, each `step_us` further through the leases of its group."""

    def __init__(self, stand: Stand, name: str, leases: list[Metered], step_us: int) -> None:
        self._node = stand.nodes[name]
        self._leases = leases
        self._step_us = step_us
        self._at_us = min(lease.from_us for lease in leases)
        self._devices = tuple(lease.device for lease in leases)
        self._last: Request | None = None

    @property
    def is_done(self) -> bool:
        return self._at_us >= max(lease.from_us + lease.term_us for lease in self._leases)

    def __iter__(self) -> Iterator[Request]:
        return self

    def __next__(self) -> Request:
        """The next report; once the leases are over, the node is idle."""
        to_us = self._at_us + self._step_us
        node, rows = self._node.node, tuple(self._rows(to_us))
        body, signature = node.next(
            rows=rows,
            devices=tuple(report.Device(id=one) for one in self._devices),
            leases=tuple(lease.lease_id for lease in self._leases),
            mono_us=to_us - self._node.origin_us,
            wall_us=to_us,
            clock_offset_us=0,
        )
        self._at_us = to_us
        return Request(
            name=f"{node.id}/{node.seq}",
            path=f"/v1/nodes/{node.id}/usage",
            body=json.dumps([node.envelope(body, signature)]).encode(),
            headers={"Content-Type": "application/cloudevents-batch+json"},
            kept=lambda told: told["results"][0]["receipt"],
        )

    def _rows(self, to_us: int) -> Iterator[report.Row]:
        for index, lease in enumerate(self._leases):
            length = min(to_us, lease.from_us + lease.term_us) - self._at_us
            if length > 0:
                yield report.Row(
                    device=index,
                    lease=index,
                    driver_epoch=1,
                    mono_start_us=self._at_us - self._node.origin_us,
                    len_us=length,
                    wall_minus_mono_us=self._node.origin_us,
                    available_us=length,
                    unavailable_us=0,
                    unknown_us=0,
                    samples=1,
                )


def _command(stand: Stand, account: str, key: str, path: str, body: dict[str, Any]) -> Request:
    return Request(
        name=f"{account}/{key}",
        path=path,
        body=json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {stand.api_keys[account]}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        },
        kept=lambda told: told,
    )


JOB = {
    "command": ["true"],
    "share_ppm": PPM // 100,
    "max_price_per_gpu_hour": {"asset": "CREDIT", "units": "3000000"},
}


def renter(stand: Stand, name: str, journal: Journal) -> Iterator[Request]:
    """Open a lease, start every fourth, close it; the next one."""
    number = 0
    while True:
        number += 1
        key = f"{name}-{number}"
        opening = {"job": JOB, "term_seconds": 600}
        yield _command(stand, RENTER, f"{key}-open", "/v1/leases", opening)
        lease = journal.items()[f"{RENTER}/{key}-open"]
        lease_id = lease["lease_id"]
        if number % 4 == 0:
            path = f"/v1/nodes/{lease['node_id']}/assignments/{lease_id}/ready"
            yield _command(stand, OWNER, f"{key}-ready", path, {})
        yield _command(stand, RENTER, f"{key}-close", f"/v1/leases/{lease_id}/close", {})


def payer_in(stand: Stand, name: str, random: Random) -> Iterator[Request]:
    """Deposits of any size."""
    number = 0
    while True:
        number += 1
        amount = {"asset": "CREDIT", "units": str(random.randrange(1, 10**9))}
        body = {"source": "cash", "amount": amount, "reference": f"{name}-{number}"}
        path = f"/v1/accounts/{RENTER}/deposits"
        yield _command(stand, OPERATOR, f"{name}-{number}", path, body)


@dataclass
class Load:
    """All clients of one test, at work while the block runs; then every request is finished."""

    stand: Stand
    group: str
    step_us: int
    random: Random
    journal: Journal = field(default_factory=Journal)
    clients: list[Client] = field(default_factory=list)
    nodes: dict[str, NodeLoad] = field(default_factory=dict)
    stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        leases = self.stand.groups[self.group]
        for name in self.stand.nodes:
            own = [lease for lease in leases if lease.node == name]
            self.nodes[name] = NodeLoad(self.stand, name, own, self.step_us)
            self._add(name, self.nodes[name])
        for number in (1, 2):
            name = f"{self.group}-renter{number}"
            self._add(name, renter(self.stand, name, self.journal))
        name = f"{self.group}-deposit"
        self._add(name, payer_in(self.stand, name, Random(self.random.random())))

    def _add(self, name: str, requests: Iterator[Request]) -> None:
        chance = Random(self.random.random())
        self.clients.append(
            Client(name, self.stand.url, requests, self.journal, chance, self.stopping)
        )

    def __enter__(self) -> Load:
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for client in self.clients:
            client.join(2 * GIVE_UP_SECONDS)

    def check(self) -> None:
        """Raises what stopped a client."""
        for client in self.clients:
            if client.error is not None:
                raise client.error

    def finish_reports(self) -> None:
        """Send what is left of the leases' time, so that they can settle."""
        clients = {client.name: client for client in self.clients}
        with httpx.Client(base_url=self.stand.url, timeout=20) as http:
            for name, node in self.nodes.items():
                while not node.is_done:
                    clients[name].send(http, next(node))

    def ask_again(self, most: int = 200) -> None:
        """Requests acknowledged long ago, once more: the journal compares the answers."""
        with httpx.Client(base_url=self.stand.url, timeout=20) as http:
            for client in self.clients:
                for request in client.sent[:: max(1, len(client.sent) * len(self.clients) // most)]:
                    client.send(http, request)
