"""The closing gate: who is waited for, for how long, and who never."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.epochs import closing
from api.epochs.closing import close_epoch, epoch_state
from api.epochs.gate import NODES_WAIT_US, SILENT_US, missing_for
from contracts.deployment import Deployment
from contracts.devnet import Devnet
from domain.duration import DAY_US, HOUR_US, SECOND_US
from domain.epochs.epoch import stream_of
from domain.epochs.reward_terms import NO_TERMS
from domain.fleet.maintenance import ScheduleMaintenance
from domain.metering.reasons import MeteringReason
from domain.metering.report import lane_of
from domain.prices.oracle import LIMITS
from domain.prices.price_feed import FEED, MOVED, SPACING_US, TakePriceSnapshot, reading_of
from domain.refusal import Refused
from ledger.log import lane_store
from ledger.log.handle import Ledger
from ledger.log.lane_map import HERE, MARKET
from ledger.tree import lane_move
from tests.conftest import Databases
from tests.projections.reports import append, make_report
from tests.scenes import chain as chain_scene
from tests.scenes.chain import NODE, START_US, Scene

END_US = START_US + DAY_US
NOWHERE = "postgresql://postgres@127.0.0.1:1/lanes"
"""No server answers there."""


@pytest.fixture(scope="module")
def chain() -> Generator[tuple[Devnet, Deployment], None, None]:
    with chain_scene.deployed() as made:
        yield made


@pytest.fixture
def scene(
    database: str, chain: tuple[Devnet, Deployment], tmp_path: Path
) -> Generator[Scene, None, None]:
    with chain_scene.scene(database, chain, tmp_path) as made:
        yield made


def missing(scene: Scene, at_us: int, epoch: int = 1) -> tuple[str, ...]:
    opened = epoch_state(scene.ledger, epoch).opened
    assert opened is not None
    return missing_for(scene.ledger, scene.connection, opened, at_us)


def reports(scene: Scene, seq: int, start_us: int, recorded_us: int, **more: Any) -> None:
    signed = make_report(NODE, seq, rows=2, start_us=start_us, lease=None)
    append(scene.connection, NODE, seq, signed, recorded_us=recorded_us, **more)


def test_lanes_whose_server_cannot_be_read_are_waited_for_however_late_it_is(
    scene: Scene, database: str, postgres: Databases
) -> None:
    scene.found()
    other = postgres.create_database("lanes_of_the_gate")
    lane = lane_of(NODE)
    lane_move.move(database, MARKET, other, [lane])
    late_us = END_US + 30 * DAY_US
    opened = epoch_state(scene.ledger, 1).opened
    assert opened is not None
    told = [f"usage lanes {lane}: their server cannot be read"]
    for where, found in ((NOWHERE, told), (None, told), (other, [])):
        lanes = HERE if where is None else HERE.moved([lane], where)
        address = lane_store.carried(lanes, database)
        with psycopg.connect(address, autocommit=True) as connection:
            waits = missing_for(scene.ledger, connection, opened, late_us)
            assert [one for one in waits if one.startswith("usage")] == found
            if found:
                with pytest.raises(Refused) as refused:
                    close_epoch(scene.ledger, connection, 1, late_us, "job")
                assert refused.value.reason is MeteringReason.CUT_INCOMPLETE
    lane_store._IDLE.forget(other)
    postgres.drop_database("lanes_of_the_gate")


def test_a_node_that_still_reports_is_waited_for_until_its_reports_reach_the_end(
    scene: Scene,
) -> None:
    scene.found()
    now_us = END_US + HOUR_US // 2
    assert missing(scene, now_us) == (), "who never reported is not waited for"
    reports(scene, 1, END_US - HOUR_US, now_us - SECOND_US)
    (behind,) = missing(scene, now_us)
    assert behind.startswith(f"node {NODE}: reported up to {END_US - HOUR_US + 60 * SECOND_US}")
    assert missing(scene, now_us + SILENT_US) == (), "silent for an hour: offline"
    reports(scene, 2, END_US, now_us, flags=1)
    assert missing(scene, now_us), "a flagged report says nothing"
    reports(scene, 3, END_US - 60 * SECOND_US, now_us)
    assert missing(scene, now_us) == ()


def test_a_node_whose_clock_is_wrong_holds_up_an_epoch_for_a_day_at_most(scene: Scene) -> None:
    scene.found()
    late_us = END_US + NODES_WAIT_US
    reports(scene, 1, START_US, late_us - SECOND_US)
    assert len(missing(scene, late_us - 1)) == 1
    assert missing(scene, late_us) == ()


def test_a_node_in_an_announced_maintenance_is_not_waited_for(scene: Scene) -> None:
    scene.found()
    reports(scene, 1, END_US - 4 * HOUR_US, END_US)
    assert len(missing(scene, END_US)) == 1
    scene.handle(
        ScheduleMaintenance(
            maintenance_id="mnt_1",
            node_id=NODE,
            kind="planned",
            from_us=END_US - HOUR_US,
            until_us=END_US + HOUR_US,
            keep_leases=False,
            by="owner",
            at_us=START_US,
        )
    )
    assert missing(scene, END_US) == ()


def test_the_policy_says_how_long_late_reports_are_waited_for(scene: Scene) -> None:
    scene.found(rewards=replace(NO_TERMS, min_wait_us=6 * HOUR_US))
    scene.end_epoch(1)
    with pytest.raises(Refused) as caught:
        close_epoch(scene.ledger, scene.connection, 1, END_US + HOUR_US, "job")
    assert caught.value.reason is MeteringReason.CUT_INCOMPLETE
    assert scene.settle_epochs() == (f"wait: the policy's wait ends at {END_US + 6 * HOUR_US}",)
    scene.travel(6 * 3_600)
    assert scene.settle_epochs() == ()
    assert epoch_state(scene.ledger, 1).status == "settled"


def test_an_operator_goes_round_the_wait_with_a_reason(scene: Scene) -> None:
    scene.found(rewards=replace(NO_TERMS, min_wait_us=6 * HOUR_US))
    scene.end_epoch(1)
    close_epoch(scene.ledger, scene.connection, 1, END_US, "key_op", override="year's end")
    overridden = scene.ledger.market.read_stream(stream_of(1))[1].fact
    assert (overridden.reason, overridden.missing_count) == ("year's end", 1)


def test_an_epoch_waits_for_a_price_where_prices_are_fed_and_tells_its_snapshot(
    scene: Scene,
) -> None:
    scene.found()
    scene.name_sources("a", "b", "c")
    scene.end_epoch(1)
    assert scene.settle_epochs() == ("price: too_few_sources",)
    scene.say_prices(("a", 2_000_000), ("b", 2_000_100), ("c", 2_000_200))
    assert scene.settle_epochs() == ()
    sealed = epoch_state(scene.ledger, 1).sealed
    assert sealed is not None
    assert sealed.price_snapshot == 1
    assert scene.facts("oracle.snapshot") == ["oracle.snapshot_taken.v1"]


def test_snapshots_in_between_stop_no_seal(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Economics L1: two threads that took snapshots refused the seal of every round."""
    scene.found()
    scene.name_sources("a", "b", "c")
    scene.end_epoch(1)
    told = closing._price_snapshot

    def raced(ledger: Ledger, now_us: int) -> int | None:
        number = told(ledger, now_us)
        between = ledger.market.state_of(FEED)
        for _ in range(3):
            ledger.handle(
                TakePriceSnapshot(by="key_with_oracle_write", at_us=now_us), key=None, now_us=now_us
            )
        assert ledger.market.state_of(FEED) == between, "a healthy one is the answer for 10 s"
        later_us = now_us + SPACING_US
        ledger.handle(TakePriceSnapshot(by="key", at_us=later_us), key=None, now_us=later_us)
        return number

    monkeypatch.setattr(closing, "_price_snapshot", raced)
    scene.say_prices(("a", 2_000_000), ("b", 2_000_100), ("c", 2_000_200))
    assert scene.settle_epochs() == ()
    sealed = epoch_state(scene.ledger, 1).sealed
    assert sealed is not None
    assert sealed.price_snapshot == 1
    last = scene.ledger.market.state_of(FEED).last
    assert last is not None
    assert last.number == 2


def test_a_price_that_moved_too_far_holds_up_no_epoch(scene: Scene) -> None:
    """No reward depends on a price: whoever holds the feeders' keys stops burns, not epochs."""
    scene.found()
    scene.name_sources("a", "b", "c")
    scene.say_prices(("a", 2_000_000), ("b", 2_000_100), ("c", 2_000_200))
    now_us = scene.now_us
    scene.handle(TakePriceSnapshot(by="job", at_us=now_us))
    scene.end_epoch(1)
    for _ in range(2):
        scene.say_prices(("a", 5_000_000), ("b", 5_000_100), ("c", 5_000_200))
        scene.travel(LIMITS.window_us // SECOND_US)
    scene.say_prices(("a", 5_000_000), ("b", 5_000_100), ("c", 5_000_200))
    assert reading_of(scene.ledger.market.state_of(FEED), scene.now_us).health == MOVED
    assert scene.settle_epochs() == ()
    sealed = epoch_state(scene.ledger, 1).sealed
    assert sealed is not None
    assert sealed.price_snapshot is None
