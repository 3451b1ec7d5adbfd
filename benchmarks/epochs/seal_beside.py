"""What everybody else waits while an epoch of a million nodes is sealed and credited.

    python -m benchmarks.epochs.seal_beside            full: 1,000,000 nodes, some minutes
    python -m benchmarks.epochs.seal_beside --short    20,000
    python -m benchmarks.epochs.seal_beside --tiny     640: whether it runs at all

One embedded server, durable. Conditions:

- two processes that each confirm 25 deposits a second through the door of the market log, with
  books; a wait is from the call to its durable answer
- a third process seals the epoch as the job does (`api/epochs/closing.py`): it reads the nodes from
  the views (`live_views.py` fills them), settles them, writes the files, appends the seal, and
  credits every account in chunks of 500, as fast as the log takes them; every node has an account
  of its own that was never paid before: the worst case
- beside it the same two writers alone, with nothing else going on

There is no peer: nobody else seals. The limit is the writers alone.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from multiprocessing.connection import Connection as Pipe
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from api.epochs.closing import seal_epoch
from benchmarks.epochs.live_views import fill
from benchmarks.epochs.settle import policy
from benchmarks.processes import context
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from domain.epochs import epoch as epochs
from domain.epochs.epoch import CloseEpoch, CreditRewards, Epoch, OpenEpoch, SealEpoch
from domain.epochs.policy import PublishPolicy
from domain.funds.deposit import ConfirmDeposit
from domain.money import credit
from domain.parties.account import OpenAccount
from ledger import migrate
from ledger.log.handle import Ledger, LogBusy, Outcome
from ledger.tree import cut

SECONDS_MAX, MIB_MAX, WAIT_MAX_MS = 90, 1_536, 50
"""From the views to the recorded seal; of the process that seals and both workers; of others."""
WRITERS, EVERY_SECONDS = 2, 0.04
BLINDING_KEY = b"benchmark blinding key"
START_US = 1_795_161_600_000_000
END_US = START_US + 604_800_000_000


class Numbers(NamedTuple):
    nodes: int
    alone_seconds: float


SIZES = {
    Size.FULL: Numbers(nodes=1_000_000, alone_seconds=20.0),
    Size.SHORT: Numbers(nodes=20_000, alone_seconds=4.0),
    Size.TINY: Numbers(nodes=640, alone_seconds=0.2),
}
NODES = SIZES[Size.FULL].nodes


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Milliseconds that writers wait, with a seal beside them and without."""
    nodes, alone_seconds = SIZES[size]
    with workplace(server) as (folder, made):
        uri = made.create_database("seal_beside")
        migrate.migrate(uri)
        _found(uri)
        with psycopg.connect(uri, autocommit=True) as connection:
            fill(connection, nodes, START_US)
        alone = _measured(uri, None, alone_seconds)
        beside = _measured(uri, folder / "sealed", 0)
    told = beside.pop("told")
    return {
        "figure": f"{NODES:,} nodes sealed in < {SECONDS_MAX} s and {MIB_MAX:,} MiB; while they are"
        f" sealed and credited no other writer waits {WAIT_MAX_MS} ms",
        "nodes": nodes,
        "chunks": told["chunks"],
        "seal_seconds": told["seal_seconds"],
        "credit_seconds": told["credit_seconds"],
        "cpu_seconds": told["cpu_seconds"],
        "peak_mb": told["peak_mb"],
        "peak_mb_of_a_worker": told["peak_mb_of_a_worker"],
        "file_sha256": told["file_sha256"],
        "first_chunks_ms": told["first_chunks_ms"],
        "last_chunks_ms": told["last_chunks_ms"],
        "alone": alone,
        "beside": beside,
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def _found(uri: str) -> None:
    """A policy, an account for every writer, a first epoch that is closed."""
    first = policy()
    assert first.rewards is not None
    # The books know nothing of the burns that are made up in the views, so none comes back.
    first = replace(first, rewards=replace(first.rewards, release_tau=None))
    told = {name: getattr(first, name) for name in PublishPolicy.__slots__}
    with Ledger(uri, blinding_key=BLINDING_KEY) as ledger, psycopg.connect(uri) as connection:
        for writer in range(WRITERS):
            opening = OpenAccount(
                account_id=_account(writer),
                kind="party",
                opened_by="operator",
                owner_member_id="member",
                at_us=START_US,
            )
            ledger.handle(opening, key=None, now_us=START_US)
        ledger.handle(PublishPolicy(**told), key=None, now_us=START_US)
        ledger.handle(
            OpenEpoch(epoch=1, start_us=START_US, at_us=START_US), key=None, now_us=START_US
        )
        pin = cut.pin(connection).fact(END_US)
        closing = CloseEpoch(epoch=1, pin=pin, by="job", at_us=END_US)
        ledger.handle(closing, key=None, now_us=END_US)


def _account(writer: int) -> str:
    return f"acct_{sha256(str(writer).encode()).hexdigest()[:32]}"


# --- three processes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Child:
    process: Any
    pipe: Pipe

    def answer(self) -> Any:
        found = self.pipe.recv()
        self.process.join()
        return found


def _measured(uri: str, folder: Path | None, seconds: float) -> dict[str, Any]:
    """The writers, for so long or for as long as the seal takes."""
    making = context()
    stop = making.Event()

    def start(work: Any, *arguments: Any) -> _Child:
        ours, theirs = making.Pipe()
        process = making.Process(target=work, args=(theirs, uri, *arguments))
        process.start()
        return _Child(process, ours)

    sealing = None if folder is None else start(_seal, str(folder))
    name = "alone" if folder is None else "beside"
    writers = [start(_write, stop, number, name) for number in range(WRITERS)]
    for child in (*writers, *((sealing,) if sealing else ())):
        child.pipe.recv()  # it is ready
    for child in (*writers, *((sealing,) if sealing else ())):
        child.pipe.send("go")
    time.sleep(seconds)
    told = None if sealing is None else sealing.answer()
    stop.set()
    at_and_waits = [one for writer in writers for one in writer.answer()]
    waits = sorted(wait for _, wait in at_and_waits)
    found: dict[str, Any] = {
        "appends": len(waits),
        "p50_ms": _at(waits, 0.5),
        "p99_ms": _at(waits, 0.99),
        "max_ms": _at(waits, 1),
        "above_most": sum(wait > WAIT_MAX_MS / 1_000 for wait in waits),
    }
    if told is None:
        return found
    before = sorted(wait for at, wait in at_and_waits if at < told["sealed_at"])
    after = sorted(wait for at, wait in at_and_waits if at >= told["sealed_at"])
    phases = {
        f"max_ms_while_{phase}": _at(some, 1) if some else None  # None: nobody asked meanwhile
        for phase, some in (("sealed", before), ("credited", after))
    }
    return {**found, **phases, "told": told}


def _write(pipe: Pipe, uri: str, stop: Event, writer: int, name: str) -> None:
    """Deposits at a steady rate: when each was asked for, and the seconds it waited."""
    waits = []
    with Ledger(uri, blinding_key=BLINDING_KEY, connections_max=1) as ledger:
        ledger.market.head()  # connected
        pipe.send("ready")
        pipe.recv()
        number = 0
        while number == 0 or not stop.is_set():
            number += 1
            command = ConfirmDeposit(
                deposit_id=f"dep_{name}_{writer}_{number}",
                account_id=_account(writer),
                source="cash",
                amount=credit(1_000_000),
                reference="benchmark",
                confirmed_by="operator",
                at_us=END_US + number,
            )
            began = time.perf_counter()
            _recorded(ledger, command, END_US + number)
            wait = time.perf_counter() - began
            waits.append((began, wait))
            time.sleep(max(0.0, EVERY_SECONDS - wait))
    pipe.send(waits)


def _recorded(ledger: Ledger, command: ConfirmDeposit, now_us: int) -> None:
    """Asked again while the log is busy for longer than an append waits: all of it is its wait."""
    while True:
        with suppress(LogBusy):
            ledger.handle(command, key=None, now_us=now_us)
            return


class _Watched(Ledger):
    """A ledger that notes when each command was recorded."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri, blinding_key=BLINDING_KEY)
        self.ended: list[tuple[type, float]] = []

    def handle(self, commands: Any, *args: Any, **kwargs: Any) -> Outcome:
        found = super().handle(commands, *args, **kwargs)
        self.ended.append((type(commands), time.perf_counter()))
        return found

    def times(self, kind: type) -> list[float]:
        return [at for each, at in self.ended if each is kind]


def _seal(pipe: Pipe, uri: str, folder: str) -> None:
    """What the job does once an epoch is closed."""
    ledger = _Watched(uri)
    with ledger, psycopg.connect(uri, autocommit=True) as connection:
        ledger.market.head()
        pipe.send("ready")
        pipe.recv()
        began, used = time.perf_counter(), time.process_time()
        seal_epoch(ledger, connection, 1, END_US, data_dir=Path(folder))
        used = time.process_time() - used
        state = ledger.market.state_of(epochs.stream_of(1))
    assert isinstance(state, Epoch)
    assert state.status == "credited", state.status
    assert state.sealed is not None
    (sealed,), credited = ledger.times(SealEpoch), ledger.times(CreditRewards)
    times = [after - before for before, after in pairwise([sealed, *credited])]
    tenth = max(1, len(times) // 10)
    own, workers = (
        resource.getrusage(who).ru_maxrss // 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    pipe.send(
        {
            "chunks": len(times),
            "file_sha256": state.sealed.file_sha256,
            "sealed_at": sealed,
            "seal_seconds": round(sealed - began, 1),
            "credit_seconds": round(credited[-1] - sealed, 1),
            "cpu_seconds": round(used, 2),
            "first_chunks_ms": round(1_000 * sum(times[:tenth]) / tenth, 1),
            "last_chunks_ms": round(1_000 * sum(times[-tenth:]) / tenth, 1),
            "peak_mb": own,
            "peak_mb_of_a_worker": workers,
        }
    )


def _at(waits: list[float], part: float) -> float:
    return round(1_000 * waits[min(len(waits) - 1, int(part * len(waits)))], 1)


def main() -> None:
    json.dump(run(size_asked(__doc__)), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
