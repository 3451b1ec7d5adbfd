"""What the timers do by the clock, one day a life: usage is charged, earnings mature, are swept and
leave as cash, and an endpoint is told of it.

Whoever pays out and whoever is told outlives our process, and keeps what was asked in a file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from api.income.cash_out_timer import run_cash_outs, run_payout_match
from api.income.maturing_timer import run_maturity, run_sweep
from api.metering.accrual import run_accrual
from api.parties.webhook_sender import Sent, sealed_name, tell_all
from api.parties.webhook_senders import Senders
from api.process.clock import SimulatedClock
from api.process.service import Service
from api.process.timer import Timer
from api.processors.seam import NewPayout, PayoutMade, PayoutSeen
from api.settings import Settings
from api.timers import Timers
from domain.duration import DAY_US, HOUR_US
from domain.income.maturity import DESTINATION_DELAY_US, SetPaymentMode
from domain.money import credit
from domain.parties.webhook import AddWebhook
from ledger.beside import sealed_secrets, timer_runs
from projections.parties import webhooks
from tests.api.income.test_cash_out_timer import EARNED, Till
from tests.failpoints.lives import Tell
from tests.failpoints.places import After, Before, Failpoint, Fault, Inside
from tests.failpoints.scene import IN_DATABASE, Scene
from tests.scenes.paying import MIDNIGHT_US, Paying
from tests.scenes.running_market import CASH_UNITS, OWNER, START_US, Market

DEATH, LOST = Fault.DEATH, Fault.LOST
CASH_OUT, HOOK = "api.income.cash_out_timer:", "api.parties.webhook_sender:"
TIMERS = ("accrual", "maturity", "sweep", "cash_out", "payout_match", "webhooks")


class Jobs(Scene):
    views = ("leases", "money_out", "webhooks")
    failpoints: ClassVar = (
        Failpoint("accrual.prepared", After("api.metering.accrual:_Run.prepare"), (DEATH, LOST)),
        Failpoint("accrual.recorded", After("ledger.log.handle:Ledger.handle_all"), (DEATH, LOST)),
        Failpoint("maturity.recorded", After("api.income.maturing_timer:mature"), (DEATH, LOST)),
        Failpoint("cash_out.asked_for", After(CASH_OUT + "request_automatic"), (DEATH, LOST)),
        Failpoint("cash_out.started", Before(CASH_OUT + "NewPayout"), (DEATH, LOST)),
        Failpoint("cash_out.paid", Before(CASH_OUT + "ConfirmCashOutSent"), (DEATH, LOST)),
        Failpoint("cash_out.listed", After(CASH_OUT + "_compare"), (DEATH, LOST)),
        Failpoint("hook.claimed", After(HOOK + "_claimed"), (DEATH, LOST), 2),
        Failpoint("hook.sent", After(HOOK + "_send"), (DEATH, LOST), 2),
        Failpoint("hook.noted", Inside("webhook_delivery", "INSERT"), IN_DATABASE, 4),
        Failpoint("timer.done", Before("api.timers:_record"), (DEATH, LOST), len(TIMERS)),
        Failpoint("timer.noted", Inside("job_run", "INSERT"), IN_DATABASE, len(TIMERS)),
    )

    def found(self) -> None:
        connection = self.observer
        with self._service(START_US) as service:
            self.market = Market(service.ledger, connection)
            self.market.found("one", gpus=1)
            paying = self._paying(service)
            paying.set_window(0)
            self.market.do(
                START_US,
                SetPaymentMode(
                    account_id=OWNER,
                    mode="cash",
                    billing_account_id=OWNER,
                    destination="acct_x",
                    by="mem",
                    at_us=START_US - DESTINATION_DELAY_US,
                ),
                AddWebhook(
                    endpoint_id="hook_one",
                    account_id=OWNER,
                    url="https://ours.example/told",
                    types=("cash_out.", "earnings."),
                    secret_id="secret_one",
                    others=0,
                    by="mem",
                    at_us=START_US,
                ),
            )
            sealed_secrets.keep(
                connection, service.sealing_key, sealed_name("secret_one"), b"s" * 32, START_US
            )
            paying.open(60)
            self.lease = paying.lease

    def prepare(self) -> None:
        """The node reports its day."""
        start_us = MIDNIGHT_US + (self.round - 1) * DAY_US
        market = Market(self.ledger, self.observer, self.market.nodes)
        device = market.nodes["one"].device_ids[:1]
        market.report("one", self.lease, start_us, start_us + DAY_US, devices=device)

    def act(self, tell: Tell) -> None:
        late_us = HOUR_US if self.is_again else 0  # what was claimed by the dead waits a while
        now_us = MIDNIGHT_US + self.round * DAY_US + late_us
        with self._service(now_us) as service, closing(Senders()) as senders:
            service.payout_processor = KeptTill(self.folder / "paid", now_us)

            def tell_endpoints(service: Service, connection: Any, now_us: int) -> int:
                return tell_all(service, connection, now_us, senders, self._post)

            first = (run_accrual, run_maturity, run_sweep, run_cash_outs, run_payout_match)
            run = (*first, tell_endpoints)
            timers = [Timer(name, 60, 60, do) for name, do in zip(TIMERS, run, strict=True)]
            tell(Timers(service, timers).run_once())

    def check(self, told: list[Any], again: list[Any]) -> None:
        del told, again
        books, connection = self.ledger.books, self.observer
        paid = KeptTill(self.folder / "paid", 0).moved
        assert [each.amount for each in paid.values()] == [credit(EARNED)] * self.round
        assert books.balance("world:bank") == CASH_UNITS - self.round * EARNED
        assert books.balance("payout:in_flight") == 0
        assert books.balance(f"party:{OWNER}:earned") == 0
        assert books.faults() == []
        runs = timer_runs.read(connection)
        assert [(run.name, run.error) for run in runs] == [(name, None) for name in sorted(TIMERS)]
        (endpoint,) = webhooks.read_endpoints(connection)
        wanted = webhooks.read_due(connection, endpoint, endpoint.position, 10_000)
        told_of = Counter(json.loads(line)[1] for line in self._posts())
        assert len(wanted) >= 3 * self.round
        assert sorted(told_of) == wanted, (told_of, wanted)
        assert len({tuple(json.loads(line)) for line in self._posts()}) == len(wanted)
        assert max(told_of.values()) <= 2, "once more than once, for a death"

    def _post(self, _url: str, body: bytes, headers: dict[str, str]) -> Sent:
        with (self.folder / "told").open("a") as file:
            file.write(json.dumps([headers["webhook-id"], json.loads(body)["position"]]) + "\n")
        return Sent(200, None)

    def _posts(self) -> list[str]:
        return (self.folder / "told").read_text().splitlines()

    def _paying(self, service: Service) -> Paying:
        clock = service.clock
        assert isinstance(clock, SimulatedClock)
        return Paying(service, clock, self.market)

    def _service(self, now_us: int) -> Service:
        settings = Settings(data_dir=self.folder / "data", database_url=self.conninfo)
        return Service.open(settings, clock=SimulatedClock(now_us))


class KeptTill(Till):
    """A processor that remembers what it paid when we do not."""

    def __init__(self, file: Path, now_us: int) -> None:
        super().__init__(now_us=now_us)
        self._file = file
        for line in file.read_text().splitlines() if file.exists() else ():
            told = json.loads(line)
            self.moved[told["payout_id"]] = PayoutSeen(
                **told | {name: credit(told[name]) for name in ("amount", "taken_back")}
            )

    def pay_out(self, payout: NewPayout) -> PayoutMade:
        is_new = payout.payout_id not in self.moved
        made = super().pay_out(payout)
        if is_new:
            seen = self.moved[payout.payout_id]
            told = {
                "payout_id": seen.payout_id,
                "reference": seen.reference,
                "destination": seen.destination,
                "amount": seen.amount.units,
                "taken_back": seen.taken_back.units,
                "at_us": seen.at_us,
            }
            with self._file.open("a") as file:
                file.write(json.dumps(told) + "\n")
        return made

    def payouts_since(self, since_us: int) -> Sequence[PayoutSeen]:
        return super().payouts_since(since_us)
