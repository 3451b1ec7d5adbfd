"""The files that one signed report passes, from the request of its node to a line of a bill.

    files that ran == files of the way + files that everything passes alike        leg by leg
    files of the way == those that `docs/design/metering.md` lists in section 16, at most 23

How it is counted: a lease runs for an hour, its node posts the signed report of that hour to a real
server, the accrual timer runs, and the renter reads the statement of its account. Each product file
of which a function ran meanwhile, in whichever thread, is on the way. Not counted is what every
request, fact or view passes alike, and what only says who may speak: `PASSED_ALIKE` names all of
it. SQL that runs inside PostgreSQL is seen by nobody here; its text lies in files of the way.

A file that joins the way is told by this test, and has to be written into the page.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import pytest

from api.door.moments import moment
from api.metering.accrual import run_accrual
from tests.scenes.server import NOW_US, Scene
from tests.scenes.work import MINUTE_US, reported, send

Got = TypeVar("Got")

FILES_MAX = 23
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/design/metering.md"
LAYERS = ("domain/", "ledger/", "projections/", "api/")
LEGS = ("In", "Charge", "Bill")
PASSED_ALIKE = {
    "every request": ("api/main.py", "api/door/", "api/process/", "api/telemetry/"),
    "every connection that writes: its commits are on the standbys": ("ledger/log/durable.py",),
    "every caller: who may speak, and what it may see": (
        "api/ingest/node_keys.py",
        "api/parties/accounts.py",
        "projections/parties/access.py",
    ),
    "every fact: loaded, decided by its rule, recorded, and its bookings checked": (
        "domain/rules.py",
        "domain/frozen.py",
        "ledger/log/handle.py",
        "ledger/log/market.py",
        "ledger/log/codec.py",
        "ledger/log/recorder.py",
        "ledger/log/sharing.py",
        "ledger/log/append.py",
        "ledger/log/pgbin.py",
        "ledger/books/chart.py",
        "ledger/books/entry.py",
        "ledger/books/postings.py",
    ),
    "every lane: the server that holds it, and how far it was seen": (
        "ledger/log/lane_map.py",
        "ledger/log/lane_store.py",
        "ledger/log/lane_logs.py",
        "ledger/tree/trees.py",
    ),
    "every view: followed and read": (
        "projections/runner.py",
        "projections/tables.py",
        "projections/read.py",
    ),
    "every rule: sums of money, names of streams, refusals": (
        "domain/money.py",
        "domain/stream.py",
        "domain/refusal.py",
    ),
}


class Trace:
    """The product files of which a function ran while something was done, in any thread."""

    def __init__(self) -> None:
        self._ran: set[str] | None = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if self._ran is not None and event == "call":
            self._ran.add(frame.f_code.co_filename)

    def during(self, act: Callable[[], Got]) -> tuple[Got, set[str]]:
        """What `act` returns, and the files that ran."""
        ran: set[str] = set()
        self._ran = ran
        try:
            return act(), {name for name in map(_in_repository, tuple(ran)) if name}
        finally:
            self._ran = None


def _in_repository(path: str) -> str:
    """Where a product file lies; empty for any other file."""
    name = path.removeprefix(f"{ROOT}/")
    return name if name.startswith(LAYERS) else ""


@pytest.fixture
def trace() -> Generator[Trace, None, None]:
    """Asked for before the server, so that the threads of the server are watched too."""
    made = Trace()
    threading.setprofile(made)
    sys.setprofile(made)
    try:
        yield made
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _way_of(ran: set[str]) -> set[str]:
    alike = tuple(name for names in PASSED_ALIKE.values() for name in names)
    return {name for name in ran if not name.startswith(alike)}


def _written(leg: str) -> list[str]:
    """The files that the page numbers under a leg."""
    text = PAGE.read_text().partition("## 16 ")[2].partition("\n## ")[0]
    part = text.partition(f"\n**{leg}**")[2].partition("\n**")[0]
    return re.findall(r"^\d+\. `([a-z_/]+\.py)`", part, re.MULTILINE)


def _usage_lines(scene: Scene, to_us: int) -> list[dict[str, Any]]:
    """Read up to a moment that is over: an estimate of what is not billed yet is no line."""
    path = f"/v1/accounts/{scene.renter.account_id}/statements"
    told = scene.renter.read(path, kind="usage", to=moment(to_us))
    lines: list[dict[str, Any]] = told["lines"]
    return lines


def test_a_report_passes_the_files_that_the_page_lists_and_no_other(
    trace: Trace, scene: Scene
) -> None:
    clock: Any = scene.clock
    lease = scene.running(funds={"asset": "CREDIT", "units": "6000000"})
    _usage_lines(scene, clock.now_us())  # the door of a route is made at its first request
    now_us = clock.move_to(NOW_US + 60 * MINUTE_US)
    body = reported(scene.provider, lease, minutes=60)
    with scene.service.connect() as connection:
        sent, ran_in = trace.during(lambda: send(scene, scene.provider, body))
        done, charged = trace.during(lambda: run_accrual(scene.service, connection, now_us))
    over_us = clock.move_to(now_us + MINUTE_US)
    lines, billed = trace.during(lambda: _usage_lines(scene, over_us))
    assert (sent.status_code, done) == (200, 1)
    assert [(line["lease_id"], line["movement"]["units"]) for line in lines] == [
        (lease["lease_id"], "-2000000")
    ]
    way: list[str] = []
    for leg, ran in zip(LEGS, (ran_in, charged, billed), strict=True):
        assert _way_of(ran) - set(way) == set(_written(leg)), leg
        way += _written(leg)
    assert len(way) == len(set(way)) <= FILES_MAX


def test_what_is_not_counted_is_there() -> None:
    for names in PASSED_ALIKE.values():
        assert [name for name in names if not (ROOT / name).exists()] == []
