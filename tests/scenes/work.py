"""Work that was done: leases that ran, signed reports of them over HTTP, accrual, signed heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from api.epochs import closing as settlement
from api.income.cash_out_timer import run_cash_outs, run_payout_match
from api.income.maturing_timer import run_maturity, run_sweep
from api.ingest.door import MEDIA_TYPE
from api.metering.accrual import accrue
from api.process.timer import Timer
from api.timers import Timers
from domain.duration import DAY_US, HOUR_US
from domain.epochs.epoch import OpenEpoch
from domain.epochs.policy import PublishPolicy
from domain.epochs.reward_terms import REWARD_TERMS
from domain.metering import report
from domain.metering.pin import PinUsage
from domain.metering.resources import ResourceRow
from ledger.tree import cut, trees
from tests.domain.scenes.epochs import POLICY
from tests.scenes.server import NOW_US, Caller, Provider, Scene

MINUTE_US = 60_000_000


def reported(
    provider: Provider, *leases: dict[str, Any], first: int = 0, minutes: int = 60, **changes: Any
) -> bytes:
    """The node's next report: these minutes of leases on their first devices."""
    rows = tuple(
        report.Row(
            device=provider.device_ids.index(lease["device_ids"][0]),
            lease=index,
            driver_epoch=1,
            mono_start_us=minute * MINUTE_US,
            len_us=MINUTE_US,
            wall_minus_mono_us=NOW_US,
            available_us=MINUTE_US,
            unavailable_us=0,
            unknown_us=0,
            samples=60,
        )
        for minute in range(first, first + minutes)
        for index, lease in enumerate(leases)
    )
    ends_us = (first + minutes) * MINUTE_US
    told = report.Report(
        node=provider.node_id,
        seq=provider.signing.seq + 1,
        prev=provider.signing.head.hex(),
        boot="5b1c9a7e-6f0d-4f0b-9c3f-2f1d0c9e8a71",
        agent="0.1.0",
        mono_us=ends_us,
        wall_us=NOW_US + ends_us,
        clock_offset_us=0,
        clock_rtt_us=0,
        devices=tuple(report.Device(id=each) for each in provider.device_ids),
        leases=tuple(lease["lease_id"] for lease in leases),
        rows=rows,
    )
    return report.encode(replace(told, **changes))


def used(
    provider: Provider, *leases: dict[str, Any], first: int = 0, minutes: int = 1, **amounts: Any
) -> bytes:
    """The node's next report: what leases used beside their GPU, each so much in each minute."""
    rows = tuple(
        ResourceRow(
            lease=index,
            mono_start_us=minute * MINUTE_US,
            len_us=MINUTE_US,
            wall_minus_mono_us=NOW_US,
            source="cgroup2",
            **amounts,
        )
        for minute in range(first, first + minutes)
        for index in range(len(leases))
    )
    return reported(provider, *leases, first=first, minutes=minutes, resources=rows)


def present(scene: Scene, provider: Provider, until_us: int, first_us: int = NOW_US) -> None:
    """The provider's node signs that all its devices were there, minute by minute."""
    rows = tuple(
        report.Row(
            device=device,
            lease=None,
            driver_epoch=1,
            mono_start_us=start_us - NOW_US,
            len_us=min(MINUTE_US, until_us - start_us),
            wall_minus_mono_us=NOW_US,
            available_us=min(MINUTE_US, until_us - start_us),
            unavailable_us=0,
            unknown_us=0,
            samples=60,
        )
        for start_us in range(first_us, until_us, MINUTE_US)
        for device in range(len(provider.device_ids))
    )
    body = reported(
        provider,
        devices=tuple(report.Device(id=each) for each in provider.device_ids),
        rows=rows,
        mono_us=until_us - NOW_US,
        wall_us=until_us,
    )
    sent = send(scene, provider, body)
    assert sent.status_code == 200, sent.text


def send(scene: Scene, provider: Provider, body: bytes) -> Any:
    """Post a report; the node's chain moves on when it was stored."""
    envelope = provider.signing.envelope(body)
    response = scene.http.post(
        f"/v1/nodes/{provider.node_id}/usage", json=[envelope], headers={"Content-Type": MEDIA_TYPE}
    )
    if response.status_code == 200:
        provider.signing.seq += 1
        provider.signing.head = report.report_hash(body)
    return response


def run(scene: Scene, *leases: dict[str, Any], minutes: int, first: int = 0) -> None:
    """Let the clock run and the first provider's node report these minutes."""
    clock: Any = scene.clock
    clock.advance(minutes * MINUTE_US)
    body = reported(scene.provider, *leases, first=first, minutes=minutes)
    sent = send(scene, scene.provider, body)
    assert sent.status_code == 200, sent.text


def accrue_now(scene: Scene, lease_id: str) -> None:
    """What the accrual job does for one lease."""
    with scene.service.connect() as connection:
        accrue(scene.service.ledger, connection, [lease_id], scene.clock.now_us())


def hours_of_work(
    scene: Scene, count: int = 1, renter: Caller | None = None, **lease: Any
) -> list[dict[str, Any]]:
    """So many leases that ran for exactly an hour, were reported, closed and settled."""
    renter = renter or scene.renter
    clock: Any = scene.clock
    leases = [scene.running(renter=renter, **lease) for _ in range(count)]
    clock.advance(HOUR_US)
    sent = send(scene, scene.provider, reported(scene.provider, *leases))
    assert sent.status_code == 200, sent.text
    for each in leases:
        renter.made(f"/v1/leases/{each['lease_id']}/close")
        accrue_now(scene, each["lease_id"])
    return leases


def credits_(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


def run_income(scene: Scene, *jobs: str) -> None:
    """One turn of these timers, of what is earned and how it leaves."""
    every = {
        "maturity": run_maturity,
        "sweep": run_sweep,
        "cash_out": run_cash_outs,
        "payout_match": run_payout_match,
    }
    Timers(scene.service, [Timer(name, 60, 60, every[name]) for name in jobs]).run_once()


def pin_and_sign(scene: Scene) -> None:
    """Pin the usage log and sign the market log's head, as the jobs do."""
    with scene.service.connect() as connection:
        trees.follow_all(connection)
        pin = cut.pin(connection).fact(scene.clock.now_us())
        scene.service.ledger.handle(PinUsage(pin=pin), key=None, now_us=scene.clock.now_us())
    scene.sign_head()


def seal_an_epoch_of_work(
    scene: Scene, renter: Caller | None = None, more: Callable[[], object] = lambda: None
) -> None:
    """A day's epoch with one lease hour and `more`, paid by GPU time and without a cap; then the
    next one.
    """
    terms = replace(REWARD_TERMS, cap_multiple_ppm=None, min_wait_us=0)
    policy = replace(
        POLICY, epoch_length_us=DAY_US, compute_base="gpu_time", rewards=terms, at_us=NOW_US
    )
    told: dict[str, Any] = {each.name: getattr(policy, each.name) for each in fields(policy)}
    ledger = scene.service.ledger
    clock: Any = scene.clock
    commands = [PublishPolicy(**told), OpenEpoch(epoch=1, start_us=NOW_US, at_us=NOW_US)]
    ledger.handle(commands, key=None, now_us=NOW_US)
    hours_of_work(scene, renter=renter)
    more()
    now_us = clock.move_to(NOW_US + DAY_US + HOUR_US)
    folder = scene.service.settings.data_dir
    with scene.service.connect() as connection:
        settlement.close_epoch(ledger, connection, 1, now_us, "op", override="nobody reports here")
        settlement.seal_epoch(ledger, connection, 1, now_us, data_dir=folder)
