"""Tasks in processes: the results of one after the other, whatever is killed meanwhile."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from domain.money import MoneyReason
from domain.refusal import Refused
from ledger.fan_out.choice import ChoiceInvalid, opened
from ledger.fan_out.executor import Serial, WorkLost
from ledger.fan_out.processes import DEATHS_MAX, OBJECTS_MAX, Processes


def square(number: int) -> int:
    return number * number


def killed_once(task: tuple[str, int]) -> int:
    """The first process that does this task is killed under it."""
    marks, number = task
    if number == 3:
        try:
            (Path(marks) / str(number)).touch(exist_ok=False)
        except FileExistsError:
            return number
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def killed_always(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refusing(number: int) -> int:
    if number == 1:
        raise ValueError("this one is wrong")
    return number


def refused(number: int) -> int:
    raise Refused(MoneyReason.DUPLICATE_ID, node_id=f"node_{number}")


@pytest.fixture(scope="module")
def two() -> Iterator[Processes]:
    with Processes(2) as processes:
        yield processes


def test_results_come_in_the_order_of_the_tasks_however_many_there_are(two: Processes) -> None:
    numbers = range(50)
    assert list(two.map(square, iter(numbers))) == list(Serial().map(square, numbers))
    assert list(two.map(square, [])) == []


def as_it_runs(_task: int) -> tuple[int, int]:
    return os.getpriority(os.PRIO_PROCESS, 0), gc.get_threshold()[0]


def test_processes_stand_back_and_rarely_look_for_cycles(two: Processes) -> None:
    """Others waited for a processor that a seal had, and a third of its time went into looking."""
    niceness, objects = next(iter(two.map(as_it_runs, [0])))
    assert niceness > os.getpriority(os.PRIO_PROCESS, 0)
    assert objects == OBJECTS_MAX


def test_a_refusal_comes_back_whole(two: Processes) -> None:
    with pytest.raises(Refused) as told:
        list(two.map(refused, range(2)))
    assert (told.value.reason, told.value.facts) == (
        MoneyReason.DUPLICATE_ID,
        {"node_id": "node_0"},
    )


def test_an_interrupt_does_not_wait_for_what_is_at_work() -> None:
    began = time.monotonic()
    with suppress(KeyboardInterrupt), Processes(2) as processes:
        found = processes.map(time.sleep, [0, 600, 600, 600])
        next(found)
        raise KeyboardInterrupt
    assert time.monotonic() - began < 60


@pytest.mark.timeout(60)
def test_an_interrupt_ends_what_another_thread_waits_for() -> None:
    with ThreadPoolExecutor(1) as beside:
        with suppress(KeyboardInterrupt), Processes(2) as processes:
            found = beside.submit(list[None], processes.map(time.sleep, [0.1, 600, 600]))
            while not processes._pool._processes:
                time.sleep(0.01)
            raise KeyboardInterrupt
        with pytest.raises(BrokenProcessPool):
            found.result()


def test_what_a_task_raises_is_raised_here_and_the_next_tasks_are_done(two: Processes) -> None:
    found = two.map(refusing, range(3))
    assert next(found) == 0
    with pytest.raises(ValueError, match="this one is wrong"):
        next(found)
    assert list(two.map(square, [7])) == [49]


def test_a_killed_process_costs_no_result(tmp_path: Path) -> None:
    with Processes(2) as processes:
        tasks = [(str(tmp_path), number) for number in range(12)]
        assert list(processes.map(killed_once, tasks)) == list(range(12))
    assert [mark.name for mark in tmp_path.iterdir()] == ["3"]


@pytest.mark.timeout(120)
def test_a_task_that_kills_its_process_each_time_is_an_error_and_no_endless_wait() -> None:
    with Processes(2) as processes:
        found = processes.map(killed_always, range(4))
        assert [next(found), next(found)] == [0, 1]
        with pytest.raises(WorkLost, match=rf"ended {DEATHS_MAX} times .* this task .*: 2;"):
            next(found)
        assert list(processes.map(square, [3])) == [9]


def broken(pool: ProcessPoolExecutor) -> None:
    """Returns when the pool has ended what it knew to be its processes."""
    while not pool._broken:
        time.sleep(0.01)
    time.sleep(0.5)


@pytest.mark.timeout(60)
def test_a_process_that_starts_while_its_pool_breaks_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broken pool of Python ends the processes that it has and waits for one that comes then."""
    spawn = ProcessPoolExecutor._spawn_process  # type: ignore[attr-defined]

    def late(pool: ProcessPoolExecutor) -> None:
        if pool._executor_manager_thread:  # tells a break, and ends the other processes
            broken(pool)
        spawn(pool)

    monkeypatch.setattr(ProcessPoolExecutor, "_spawn_process", late)
    with Processes(2) as processes, pytest.raises(WorkLost):
        list(processes.map(killed_always, [2, 2]))


class Late(dict[int, Any]):
    """The work of a pool. Its second task comes when the pool has told all tasks that it broke."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        super().__init__()
        self._pool = pool

    def __setitem__(self, number: int, work: Any) -> None:
        if number == 1:
            broken(self._pool)
        super().__setitem__(number, work)


@pytest.mark.timeout(60)
def test_a_task_that_came_as_the_pool_broke_is_done_by_the_next_one(tmp_path: Path) -> None:
    with Processes(2) as processes:
        processes._pool._pending_work_items = Late(processes._pool)
        assert list(processes.map(killed_once, [(str(tmp_path), 3), (str(tmp_path), 4)])) == [3, 4]


def test_the_choice_of_a_command_is_one_of_three() -> None:
    for choice in ("serial", "processes:1"):
        with opened(choice) as executor:
            assert isinstance(executor, Serial)
    with opened("processes:3") as executor:
        assert isinstance(executor, Processes)
    for wrong in ("", "dask", "serial:2", "processes:", "processes:0", "processes:x", "ray:"):
        with pytest.raises(ChoiceInvalid, match="processes"), opened(wrong):
            pass


def test_a_cluster_that_cannot_be_reached_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def init(**_: Any) -> None:
        raise ConnectionError("no node at gpu-7:6379\nand a page of reasons")

    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    with pytest.raises(ChoiceInvalid) as told, opened("ray:gpu-7:6379"):
        pass
    assert str(told.value) == (
        "the Ray cluster at gpu-7:6379 cannot be reached: no node at gpu-7:6379;"
        " see that it runs and that RAY_AUTH_TOKEN_PATH names its token"
    )
