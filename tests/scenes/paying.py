"""A market with one lease and the jobs that pay its owner, on a clock that tests move."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from api.income.cash_out_timer import run_cash_outs, run_payout_match
from api.income.maturing_timer import run_maturity, run_sweep
from api.metering.accrual import run_accrual
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.process.timer import Timer
from api.settings import Settings
from api.timers import Timers
from domain.duration import DAY_US
from domain.income.maturity import WINDOW_US_MAX, SetMaturityWindow
from tests.scenes.running_market import OWNER, START_US, Market

EARNED_AN_HOUR = 1_265_000  # 2.78 credits, the fee of 0.25 taken off, the rest halved
MIDNIGHT_US = -(-START_US // DAY_US) * DAY_US
"""The first midnight after the market was founded; leases of these tests open there."""


@dataclass
class Paying:
    """A service whose one lease runs since midnight, and the jobs that pay its owner."""

    service: Service
    clock: SimulatedClock
    market: Market
    lease: str = ""

    def open(self, days: int) -> None:
        self.clock.move_to(MIDNIGHT_US)
        self.lease = self.market.lease("a", "one", term_us=days * DAY_US, at_us=MIDNIGHT_US)

    def run(self, *, jobs: str = "accrual maturity sweep") -> dict[str, int]:
        every = {
            "accrual": run_accrual,
            "maturity": run_maturity,
            "sweep": run_sweep,
            "cash_out": run_cash_outs,
            "payout_match": run_payout_match,
        }
        chosen = [Timer(name, 60, 60, every[name]) for name in jobs.split()]
        return Timers(self.service, chosen).run_once()

    def live(self, from_us: int, to_us: int) -> None:
        """The lease's device reports so far, and the clock reaches that moment."""
        device = self.market.nodes["one"].device_ids[:1]
        self.market.report("one", self.lease, from_us, to_us, devices=device)
        self.clock.move_to(to_us)

    def books(self, account: str = OWNER) -> tuple[int, int, int]:
        """Held back, payable, earned."""
        held, payable, earned = (
            self.market.balance(f"party:{account}:{part}")
            for part in ("holdback", "payable", "earned")
        )
        return held, payable, earned

    def set_window(self, window_us: int) -> None:
        """In force since long ago: a change counts for nothing that was posted before it."""
        then_us = START_US - WINDOW_US_MAX
        self.market.do(
            self.clock.now_us(),
            SetMaturityWindow(
                version=1, window_us=window_us, effective_from_us=then_us, by="op", at_us=then_us
            ),
        )


@pytest.fixture
def paying(database: str, tmp_path: Path) -> Generator[Paying, None, None]:
    clock = SimulatedClock(START_US)
    settings = Settings(data_dir=tmp_path, database_url=database)
    with (
        Service.open(settings, clock=clock) as service,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        market = Market(service.ledger, connection)
        market.found("one", gpus=1)
        yield Paying(service, clock, market)
