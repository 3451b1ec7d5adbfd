"""Requests that found no node: what is kept of them, and how much of it (row R-5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.lease.choice import Narrowed
from domain.lease.lease import LeaseRequested
from domain.market.explanation import Relaxation
from domain.market.unmatched import (
    NEEDS_MAX,
    WINDOW_US,
    RecordUnmatched,
    RequestUnmatched,
    stream_of,
)
from domain.money import credit
from tests.given import Scene

RENTER = "acct_renter"
ASKED: dict[str, Any] = dict.fromkeys(LeaseRequested.__dataclass_fields__)
ASKED |= {
    "account_id": RENTER,
    "client_id": "direct",
    "project_id": "",
    "gpu_count": 2,
    "share_ppm": 1_000_000,
    "mem_ppm": 1_000_000,
    "models": ("NVIDIA H100",),
    "max_price_per_gpu_hour": credit(3_000_000),
}


def refused(at_us: int = 0, **need: Any) -> RecordUnmatched:
    return RecordUnmatched(
        asked=LeaseRequested(**ASKED | need),
        members=1,
        code="no_match",
        fleet_position=7,
        nodes=3,
        narrowed=(Narrowed("models", "NVIDIA H100", "NVIDIA A100", 0, 3),),
        eased=Relaxation("models", "NVIDIA H100", "NVIDIA A100", 3, 1_000_000),
        times=4,
        at_us=at_us,
    )


def with_credits() -> Scene:
    return Scene().having({f"party:{RENTER}:cash": 1})


def test_what_was_asked_and_what_each_demand_left_is_kept() -> None:
    (change,) = with_credits().when(refused()).changes()
    fact = change.fact
    assert isinstance(fact, RequestUnmatched)
    assert (change.stream, fact.code, fact.fleet_position, fact.times) == (
        stream_of(RENTER),
        "no_match",
        7,
        4,
    )
    assert fact.narrowed == refused().narrowed
    assert fact.eased is not None
    assert (fact.eased.field, fact.eased.offered, fact.eased.nodes) == ("models", "NVIDIA A100", 3)


def test_the_same_need_is_kept_once_in_ten_minutes_whatever_the_job_is_called() -> None:
    known = with_credits().after(refused())
    known.when(refused(WINDOW_US - 1, job_id="job_2", end_user_ref="u")).then_nothing()
    assert len(known.when(refused(WINDOW_US)).changes()) == 1
    assert len(known.when(refused(1, gpu_count=3)).changes()) == 1
    assert len(known.when(replace(refused(1), members=2)).changes()) == 1


def test_one_account_fills_no_log_however_its_needs_differ() -> None:
    scene = with_credits()
    for number in range(NEEDS_MAX):
        scene = scene.after(refused(number, gpu_count=1 + number))
    scene.when(refused(NEEDS_MAX, gpu_count=99)).then_nothing()
    assert len(scene.when(refused(WINDOW_US, gpu_count=99)).changes()) == 1


def test_of_an_account_without_credits_nothing_is_kept() -> None:
    Scene().when(refused()).then_nothing()
