"""Epochs end once, at one cut, with one result, whatever is repeated and whenever it is killed."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from api.door.errors import Problem
from api.epochs import closing as settlement
from api.epochs import gate, settling
from api.epochs.closing import SealDiffers, close_epoch, override_act, seal_epoch, settle_due
from api.epochs.files import clients_path, epoch_path, parts_path
from api.process.leading import leading
from contracts.deployment import Deployment
from contracts.devnet import Devnet
from contracts.tally import TOKEN_UNIT
from domain.authority.acts import acts_stream
from domain.authority.reasons import AuthorityReason
from domain.epochs import lanes
from domain.epochs.clients import ClientUse, clients_file
from domain.epochs.epoch import stream_of
from domain.epochs.epoch_file import epoch_file, file_sha256
from domain.epochs.lanes import SettledLanes
from domain.epochs.reasons import EpochsReason
from domain.metering.reasons import MeteringReason
from domain.refusal import Refused
from ledger.log.handle import Ledger
from projections import tables
from projections.epochs import streams
from projections.epochs.epochs import EPOCHS
from tests.scenes import chain as chain_scene
from tests.scenes.chain import DAY_S, EMISSION, OWNER, Scene, repeat
from tests.scenes.governors import ANNA, BORIS, Governor, enrol_in, signatures

BROUGHT = "SELECT node_id, client_id, source, burned, gpu_us FROM proj_epochs.brought"


@pytest.fixture(scope="module")
def chain() -> Generator[tuple[Devnet, Deployment], None, None]:
    with chain_scene.deployed() as made:
        yield made


@pytest.fixture
def scene(
    database: str, chain: tuple[Devnet, Deployment], tmp_path: Path
) -> Generator[Scene, None, None]:
    with chain_scene.scene(database, chain, tmp_path) as made:
        made.found()
        yield made


def test_an_epoch_is_not_closed_before_its_end(scene: Scene) -> None:
    with pytest.raises(Refused) as caught:
        close_epoch(scene.ledger, scene.connection, 1, scene.now_us, "job")
    assert caught.value.reason is EpochsReason.EPOCH_NOT_OVER


def test_an_epoch_that_was_never_opened_is_unknown(scene: Scene) -> None:
    with pytest.raises(Refused) as caught:
        close_epoch(scene.ledger, scene.connection, 7, scene.now_us, "job")
    assert caught.value.reason is EpochsReason.EPOCH_UNKNOWN


def test_a_lease_that_is_not_accrued_past_the_end_keeps_the_epoch_open(scene: Scene) -> None:
    scene.deposit(1_000)
    lease_id = scene.lease("a", "cash", 2 * DAY_S, settled=False)
    start_us = scene.now_us
    scene.end_epoch(1)
    with pytest.raises(Refused) as caught:
        close_epoch(scene.ledger, scene.connection, 1, scene.now_us, "job")
    assert caught.value.reason is MeteringReason.CUT_INCOMPLETE
    (missing,) = scene.settle_epochs()
    assert lease_id in missing
    scene.travel(DAY_S)
    scene.settle_lease(lease_id, start_us, scene.now_us - start_us)
    assert scene.settle_epochs() == ()
    assert settlement.epoch_state(scene.ledger, 1).status == "settled"


def test_a_chain_that_is_not_read_past_the_end_keeps_the_epoch_open(scene: Scene) -> None:
    jobs = scene.jobs()
    jobs.step(scene.now_us)
    end_us = scene.now_us + DAY_S * 10**6
    (missing,) = settle_due(scene.ledger, scene.connection, end_us, "job", data_dir=scene.data_dir)
    assert missing.startswith("chain: ")
    scene.end_epoch(1)
    jobs.step(scene.now_us)
    assert scene.settle_epochs() == ()


def test_what_is_missing_only_while_the_epoch_closes_is_told_and_no_error(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the job's look and the closing another process reads the chain for the first time."""
    looked: list[tuple[str, ...]] = []

    def missing_for(*given: Any) -> tuple[str, ...]:
        looked.append(gate.missing_for(*given))
        if len(looked) == 1:
            scene.jobs().step(scene.now_us)
        return looked[-1]

    monkeypatch.setattr("api.epochs.closing.missing_for", missing_for)
    end_us = scene.now_us + DAY_S * 10**6
    (missing,) = settle_due(scene.ledger, scene.connection, end_us, "job", data_dir=scene.data_dir)
    assert looked == [(), (missing,)]
    assert missing.startswith("chain: ")
    assert settlement.epoch_state(scene.ledger, 1).status == "open"


def test_an_operator_may_close_anyway_and_the_log_says_so(scene: Scene) -> None:
    scene.deposit(1_000)
    lease_id = scene.lease("a", "cash", 2 * DAY_S, settled=False)
    scene.end_epoch(1)
    close_epoch(
        scene.ledger, scene.connection, 1, scene.now_us, "key_op", override="the node burned down"
    )
    assert scene.facts("epoch.", "usage.")[-4:] == [
        "epoch.gate_overridden.v1",
        "epoch.closing.v1",
        "usage.pinned.v1",
        "epoch.opened.v1",
    ]
    overridden = scene.ledger.market.read_stream(stream_of(1))[1].fact
    assert (overridden.by, overridden.reason) == ("key_op", "the node burned down")
    assert overridden.missing_count == 1
    assert lease_id in overridden.missing[0]


def test_going_round_the_gate_takes_two_persons(scene: Scene) -> None:
    """Attack H7: one person alone closes an epoch over what is missing."""
    scene.deposit(1_000)
    scene.lease("a", "cash", 2 * DAY_S, settled=False)
    scene.end_epoch(1)
    told = enrol_in(scene.ledger, scene.now_us)

    def closed(*who: Governor, said: str = "it burned down") -> None:
        until_us = scene.now_us + DAY_S * 1_000_000
        method, path, body = override_act(1, "it burned down")
        key = f"close {len(who)} {said}"
        header = signatures(who, told, path, body, key=key, not_after_us=until_us, method=method)
        signed = {**json.loads(header["Governor-Signatures"]), "request": key}
        close_epoch(
            scene.ledger, scene.connection, 1, scene.now_us, "op", override=said, signed=signed
        )

    for who in ((), (ANNA,)):
        with pytest.raises(Refused) as refused:
            closed(*who)
        assert refused.value.reason is AuthorityReason.CHECKER_NEEDED
    with pytest.raises(Problem):
        closed(ANNA, BORIS, said="another reason")
    closed(ANNA, BORIS)
    (fact,) = [one.fact for one in scene.ledger.market.read_stream(acts_stream("epoch_gate"))]
    assert (fact.mode, len(fact.signed)) == ("shared", 2)


def test_closing_pins_the_cut_and_opens_the_next_epoch_in_one_append(scene: Scene) -> None:
    scene.end_epoch(1)
    cut = close_epoch(scene.ledger, scene.connection, 1, scene.now_us, "job")
    assert scene.facts("epoch.", "usage.") == [
        "epoch.opened.v1",
        "epoch.closing.v1",
        "usage.pinned.v1",
        "epoch.opened.v1",
    ]
    assert scene.ledger.market.read_facts(cut - 1, 1)[0].name == "usage.pinned.v1"
    again = close_epoch(scene.ledger, scene.connection, 1, scene.now_us + 5, "somebody else")
    assert again == cut


def test_the_cut_waits_for_an_accrual_that_runs(scene: Scene) -> None:
    scene.end_epoch(1)
    closed = threading.Event()

    def close() -> None:
        with scene.connect() as connection:
            close_epoch(scene.ledger, connection, 1, scene.now_us, "job")
        closed.set()

    thread = threading.Thread(target=close)
    with leading(scene.connection, "accrual") as leads:
        assert leads
        thread.start()
        assert not closed.wait(0.3)
    thread.join()
    assert closed.is_set()


def test_what_a_renter_burned_decides_what_the_provider_gets(scene: Scene) -> None:
    scene.buy(100)
    scene.jobs().step(scene.now_us)
    scene.lease("a", "burn", 3_600)
    scene.end_epoch(1)
    scene.jobs().step(scene.now_us)
    assert scene.settle_epochs() == ()
    compute, treasury = EMISSION * 7 // 10, EMISSION // 10
    assert scene.balance(f"party:{OWNER}:matured") == compute
    assert scene.balance("party:treasury:matured") == treasury
    assert scene.balance("pool:availability:carry") == EMISSION * 2 // 10
    assert scene.balance("chain:mint_due") == EMISSION
    assert scene.ledger.books.books_balanced()


def test_a_settlement_is_the_same_however_far_the_views_have_read_past_its_cut(
    scene: Scene,
) -> None:
    """More use, a burn confirmed of charges from before the cut, the next cut: all come later."""
    scene.with_burns = True
    scene.deposit(1_000)
    scene.buy(100)
    scene.jobs().step(scene.now_us)
    scene.lease("a", "burn", 3_600)
    scene.lease("b", "cash", 3_600)
    scene.end_epoch(1)
    scene.jobs().step(scene.now_us)
    close_epoch(scene.ledger, scene.connection, 1, scene.now_us, "job")
    at_once = settlement.settlement_at(scene.ledger, scene.connection, 1)
    scene.stage.do("admin", scene.tally.transfer(scene.treasury.address, 1_000 * TOKEN_UNIT))
    for _ in range(2):
        scene.jobs().step(scene.now_us)
    assert scene.facts("burn.") == ["burn.intended.v1", "burn.confirmed.v1"]
    scene.lease("c", "burn", 3_600)
    scene.end_epoch(2)
    scene.jobs().step(scene.now_us)
    close_epoch(scene.ledger, scene.connection, 2, scene.now_us, "job")
    for _ in range(2):
        assert settlement.settlement_at(scene.ledger, scene.connection, 1) == at_once
        tables.rebuild(scene.connection, EPOCHS)
    assert scene.settle_epochs() == ()
    sealed = [settlement.epoch_state(scene.ledger, epoch).sealed for epoch in (1, 2)]
    assert sealed[0] is not None
    assert sealed[0].file_sha256 == file_sha256(at_once)
    assert sealed[1] is not None
    assert sealed[1].recipients == 2, "the burn of cash charges and the later use"


def test_an_epoch_without_work_leaves_the_compute_pool_to_the_next(scene: Scene) -> None:
    scene.end_epoch(1)
    scene.settle_epochs()
    assert scene.balance("pool:compute:carry") == EMISSION * 7 // 10
    scene.deposit(100)
    scene.end_epoch(2)
    scene.settle_epochs()
    assert scene.balance("pool:compute:carry") == 2 * (EMISSION * 7 // 10)


def test_the_epoch_file_is_there_before_the_seal_and_is_what_was_sealed(scene: Scene) -> None:
    scene.end_epoch(1)
    close_epoch(scene.ledger, scene.connection, 1, scene.now_us, "job")

    def power_cut(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    path = epoch_path(scene.data_dir, 1)
    handle, Ledger.handle = Ledger.handle, power_cut  # type: ignore[method-assign,assignment]
    try:
        with pytest.raises(KeyboardInterrupt):
            seal_epoch(scene.ledger, scene.connection, 1, scene.now_us, data_dir=scene.data_dir)
    finally:
        Ledger.handle = handle  # type: ignore[method-assign]
    written = path.read_bytes()
    assert settlement.epoch_state(scene.ledger, 1).sealed is None
    sealed = seal_epoch(scene.ledger, scene.connection, 1, scene.now_us, data_dir=scene.data_dir)
    assert path.read_bytes() == written
    assert sealed.file_sha256 == sha256(written).hexdigest()
    assert json.loads(written)["emission"] == str(EMISSION)


def test_settling_again_changes_nothing_and_restores_a_lost_file(scene: Scene) -> None:
    scene.end_epoch(1)
    scene.settle_epochs()
    head = scene.ledger.market.head()
    path = epoch_path(scene.data_dir, 1)
    written = path.read_bytes()
    path.unlink()
    repeat(scene.settle_epochs)
    seal_epoch(scene.ledger, scene.connection, 1, scene.now_us, data_dir=scene.data_dir)
    assert path.read_bytes() == written
    assert scene.ledger.market.head() == head


def test_a_result_that_is_not_the_sealed_one_stops_everything(scene: Scene) -> None:
    scene.buy(100)
    scene.jobs().step(scene.now_us)
    scene.lease("a", "burn", 3_600)
    scene.end_epoch(1)
    scene.jobs().step(scene.now_us)
    scene.settle_epochs()
    scene.connection.execute("UPDATE proj_epochs.weight SET burned = burned + 1")
    scene.connection.execute(
        "INSERT INTO proj_epochs.weight VALUES (1, 'n', 'acct_liar', 'cash', 1, 1)"
    )
    with pytest.raises(SealDiffers):
        seal_epoch(scene.ledger, scene.connection, 1, scene.now_us, data_dir=scene.data_dir)


def test_many_recipients_are_credited_in_chunks_and_a_killed_job_goes_on(scene: Scene) -> None:
    scene.end_epoch(1)
    close_epoch(scene.ledger, scene.connection, 1, scene.now_us, "job")
    tables.step_all(scene.connection, only=("epochs",))
    scene.connection.execute(
        "INSERT INTO proj_epochs.weight"
        " SELECT 1, 'node_' || n, 'acct_' || n, 'cash', n, n FROM generate_series(1, 1200) n"
    )
    calls: list[int] = []
    handle = Ledger.handle

    def dies_after_two(self: Ledger, *args: object, **named: object) -> object:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(1)
        return handle(self, *args, **named)  # type: ignore[arg-type]

    Ledger.handle = dies_after_two  # type: ignore[method-assign,assignment]
    try:
        with pytest.raises(KeyboardInterrupt):
            seal_epoch(scene.ledger, scene.connection, 1, scene.now_us, data_dir=scene.data_dir)
    finally:
        Ledger.handle = handle  # type: ignore[method-assign]
    assert settlement.epoch_state(scene.ledger, 1).status == "sealed"
    assert scene.facts("epoch.rewards_credited") == ["epoch.rewards_credited.v1"]
    seal_epoch(scene.ledger, scene.connection, 1, scene.now_us, data_dir=scene.data_dir)
    state = settlement.epoch_state(scene.ledger, 1)
    assert (state.status, len(state.chunk_hashes)) == ("settled", 3)
    assert scene.balance("epoch:1:unmatured") == 0


def test_processes_seal_a_large_epoch_to_the_same_files_and_leave_nothing_behind(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a process that died in the middle of it has left."""
    scene.end_epoch(1)
    close_epoch(scene.ledger, scene.connection, 1, scene.now_us, "job")
    tables.step_all(scene.connection, only=("epochs",))
    scene.connection.execute(
        "INSERT INTO proj_epochs.weight"
        " SELECT 1, 'node_' || n, 'acct_' || n % 700, 'cash', n, n FROM generate_series(1, 1200) n"
    )
    scene.connection.execute(
        "INSERT INTO proj_epochs.brought"
        " SELECT 1, 'node_' || n, 'client_' || n % 3, 'cash', n, n FROM generate_series(1, 900) n"
    )
    whole = settlement.settlement_at(scene.ledger, scene.connection, 1)
    uses = [ClientUse(*row) for row in scene.connection.execute(BROUGHT)]
    left = parts_path(scene.data_dir, 1)
    left.mkdir(parents=True)
    (left / "weighed-0.json").write_text("{")
    monkeypatch.setattr(streams, "ROWS_MAX", 100)
    monkeypatch.setattr(lanes, "ACCOUNTS_MAX", 50)
    monkeypatch.setattr(settling, "usable", lambda: 2)
    sealed = seal_epoch(scene.ledger, scene.connection, 1, scene.now_us, data_dir=scene.data_dir)
    data = epoch_path(scene.data_dir, 1).read_bytes()
    assert data == epoch_file(whole)
    assert sealed.file_sha256 == sha256(data).hexdigest()
    clients = clients_path(scene.data_dir, 1).read_bytes()
    assert clients == clients_file(whole, sealed.file_sha256, uses)
    assert sealed.clients_sha256 == sha256(clients).hexdigest()
    names = sorted(path.name for path in left.parent.iterdir())
    assert names == ["1.clients.json", "1.json"]


def test_what_the_nodes_of_a_small_epoch_do_not_come_to_is_not_sealed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One unit of another account's: pools, carries and sums are as they should be."""
    scene.end_epoch(1)
    close_epoch(scene.ledger, scene.connection, 1, scene.now_us, "job")
    tables.step_all(scene.connection, only=("epochs",))
    scene.connection.execute(
        "INSERT INTO proj_epochs.weight"
        " SELECT 1, 'node_' || n, 'acct_' || n, 'cash', n, n FROM generate_series(1, 3) n"
    )
    real = lanes.settle_lanes

    def wrong(*told: Any, **named: Any) -> SettledLanes:
        found = real(*told, **named)
        (one, more), (other, less), *others = found.outcome.rewards
        rewards = ((one, more + 1), (other, less - 1), *others)
        return replace(found, outcome=replace(found.outcome, rewards=rewards))

    with monkeypatch.context() as patch:
        patch.setattr(settling, "settle_lanes", wrong)
        with pytest.raises(SealDiffers):
            seal_epoch(scene.ledger, scene.connection, 1, scene.now_us, data_dir=scene.data_dir)
    assert scene.ledger.market.state_of(stream_of(1)).sealed is None
    sealed = seal_epoch(scene.ledger, scene.connection, 1, scene.now_us, data_dir=scene.data_dir)
    assert sha256(epoch_path(scene.data_dir, 1).read_bytes()).hexdigest() == sealed.file_sha256


def test_rewards_mature_after_the_holdback(
    database: str, chain: tuple[Devnet, Deployment], tmp_path: Path
) -> None:
    with chain_scene.scene(database, chain, tmp_path) as held:
        held.found(holdback_epochs=2)
        held.end_epoch(1)
        held.settle_epochs()
        assert settlement.epoch_state(held.ledger, 1).status == "credited"
        assert held.balance("party:treasury:unmatured") == EMISSION // 10
        held.end_epoch(3)
        held.settle_epochs()
        assert settlement.epoch_state(held.ledger, 1).status == "settled"
        assert held.balance("party:treasury:matured") == EMISSION // 10
