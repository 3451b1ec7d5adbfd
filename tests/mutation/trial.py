"""What the tests say of one mutant: in a forked child with other function bodies, or in a process
of its own that never saw the module as it was.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import select
import signal
import subprocess
import sys
import time
import types
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.operators import Mutant, mutated, path_of

MUTANT_S = 10.0
"""Of processor time: a mutant that no test has noticed by then survived, and how many is told."""
TEST_S, TIMES = 2.0, 12.0
"""A test may take so long, and so many times as long as it did: else it hangs, and has noticed."""
WAITING = 20
"""A second of processor time is so many at most: whoever waits for ever is stopped, too."""
FRESH_TESTS_MAX = 300
KILLED, SURVIVED, UNJUDGED = "killed", "survived", "not judged"
"""The last: what noticed it fails without the mutant, too, or could not be run at all."""
BROKEN = 70
"""The status of `tests.mutation.fresh` where it could not change the module."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why`: the test that noticed. `ran` of `reach` tests were run."""

    result: str
    why: str
    ran: int
    reach: int
    seconds: float


class Code:
    """The functions that live in this process, to be given other bodies in a child."""

    def __init__(self, root: Path, modules: Sequence[str]) -> None:
        self._root = root
        files = {str(path_of(root, one)) for one in modules}
        self._live: dict[str, dict[Any, list[types.FunctionType]]] = {file: {} for file in files}
        gc.unfreeze()  # what `tests.conftest` froze is not told otherwise
        for one in gc.get_objects():
            if isinstance(one, types.FunctionType) and one.__code__.co_filename in files:
                here = self._live[one.__code__.co_filename]
                here.setdefault(_place(one.__code__), []).append(one)
        forget()
        gc.freeze()

    def swaps(self, mutant: Mutant) -> list[tuple[types.FunctionType, types.CodeType]]:
        """Which functions get which bodies; none where that would not be the whole change."""
        path = path_of(self._root, mutant.module)
        before = _by_place(compile(path.read_text("utf-8"), str(path), "exec"))
        after = _by_place(compile(mutated(self._root, mutant), str(path), "exec"))
        found = []
        for place, codes in before.items():
            others = after.get(place, [])
            if codes == others or place[0] == "<module>":
                continue
            live = self._live[str(path)].get(place, [])
            if len(codes) != 1 or len(others) != 1:
                return []
            found += [(one, others[0]) for one in live]
        is_whole = all(len(one.__code__.co_freevars) == len(new.co_freevars) for one, new in found)
        return found if is_whole else []


def _place(code: types.CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _by_place(code: types.CodeType) -> Mapping[tuple[str, int], list[types.CodeType]]:
    found: dict[tuple[str, int], list[types.CodeType]] = defaultdict(list)
    for one in _all(code):
        found[_place(one)].append(one)
    return found


def _all(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _all(one)


def forget() -> None:
    """Nothing that was computed before is known any more."""
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):
            one.cache_clear()


def forked(
    swaps: Sequence[tuple[types.FunctionType, types.CodeType]],
    items: Sequence[pytest.Item],
    seconds: Mapping[str, float],
) -> Verdict:
    """One child, which runs these tests until one notices; then another without the mutant, where
    the same tests must pass.
    """
    verdict = _in_child(swaps, items, seconds)
    if verdict.result == KILLED and not _pass_unchanged(items[: verdict.ran], seconds):
        return replace(verdict, result=UNJUDGED, why=f"fails without the mutant: {verdict.why}")
    return verdict


_unchanged: dict[tuple[str, ...], bool] = {}


def _pass_unchanged(items: Sequence[pytest.Item], seconds: Mapping[str, float]) -> bool:
    """Also in a child, and in this order: one that passed among all others may fail there."""
    names = tuple(one.nodeid for one in items)
    if names not in _unchanged:
        _unchanged[names] = _in_child((), items, seconds).result == SURVIVED
    return _unchanged[names]


def _in_child(
    swaps: Sequence[tuple[types.FunctionType, types.CodeType]],
    items: Sequence[pytest.Item],
    seconds: Mapping[str, float],
) -> Verdict:
    began = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _as_child(swaps, items, seconds, writing)
    os.close(writing)
    try:
        result, why, ran = _watched(reading, items, began + MUTANT_S * WAITING)
    finally:
        os.close(reading)
        os.killpg(child, signal.SIGKILL) if _leads(child) else os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return Verdict(result, why, ran, len(items), round(time.monotonic() - began, 2))


def _leads(child: int) -> bool:
    try:
        return os.getpgid(child) == child
    except ProcessLookupError:
        return False


def _as_child(
    swaps: Sequence[tuple[types.FunctionType, types.CodeType]],
    items: Sequence[pytest.Item],
    seconds: Mapping[str, float],
    writing: int,
) -> None:
    """Says the number of each test that begins, and the end. A test that hangs is stopped by the
    kernel: dead without a word, as the suite would be.
    """
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        began = time.process_time()
        for function, code in swaps:
            function.__code__ = code
        for at, item in enumerate(items):
            if time.process_time() - began > MUTANT_S:
                os.write(writing, b"enough\n")
                break
            os.write(writing, b"%d\n" % at)
            signal.setitimer(signal.ITIMER_PROF, TEST_S + TIMES * seconds[item.nodeid])
            following = items[at + 1] if at + 1 < len(items) else None
            reports = runtestprotocol(item, log=False, nextitem=following)
            if any(one.failed for one in reports):
                os.write(writing, b"killed\n")
                break
        else:
            os.write(writing, b"survived\n")
    except BaseException as error:  # of ours: no test has noticed anything
        os.write(writing, f"broken {error!r}".replace("\n", " ").encode() + b"\n")
    finally:
        os._exit(0)


def _watched(reading: int, items: Sequence[pytest.Item], end: float) -> tuple[str, str, int]:
    at, said = 0, b""
    while True:
        if not select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            return KILLED, f"{items[at].nodeid} (waits)", at + 1
        more = os.read(reading, 4096)
        if not more:
            return KILLED, f"{items[at].nodeid} (hangs or died)", at + 1
        *lines, said = (said + more).split(b"\n")
        for line in lines:
            if line == b"killed":
                return KILLED, items[at].nodeid, at + 1
            if line in (b"survived", b"enough"):
                return SURVIVED, "" if line == b"survived" else "time was up", at + 1
            if line.startswith(b"broken "):
                return UNJUDGED, line.decode("utf-8", "replace"), at + 1
            at = int(line)


def fresh(root: Path, mutant: Mutant, tests: Sequence[str]) -> Verdict:
    """A process of its own, which imports the mutant and runs these tests until one notices; what
    noticed must pass in one without the mutant.
    """
    began, some = time.monotonic(), tests[:FRESH_TESTS_MAX]
    assert some, "without a name pytest would run everything"
    result, why, failed = _in_process(root, some, mutant)
    if result == KILLED and not _pass_unchanged_in_process(root, failed or tuple(some), not failed):
        result, why = UNJUDGED, f"fails without the mutant: {why}"
    return Verdict(result, why, len(some), len(tests), round(time.monotonic() - began, 2))


@functools.cache
def _pass_unchanged_in_process(root: Path, tests: tuple[str, ...], is_found: bool) -> bool:
    """Whether they pass, or only whether they are there and can be read, if `is_found`."""
    return _in_process(root, tests, None, is_found=is_found)[0] == SURVIVED


def _in_process(
    root: Path, tests: Sequence[str], mutant: Mutant | None, *, is_found: bool = False
) -> tuple[str, str, tuple[str, ...]]:
    """Result, why, and the test or the file that failed; none where pytest could not even begin, as
    when what all tests import is broken. None: with the modules as they are.
    """
    which = None if mutant is None else {"module": mutant.module, "number": mutant.number}
    options = ["--collect-only", "-q"] if is_found else []
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.mutation.fresh", str(root)],
            input=json.dumps({"mutant": which, "tests": [*options, *tests]}),
            text=True,
            capture_output=True,
            timeout=MUTANT_S * WAITING,
            cwd=root,
        )
    except subprocess.TimeoutExpired:
        return SURVIVED, "time was up", ()
    if done.returncode == pytest.ExitCode.OK:
        return SURVIVED, "", ()
    for line in done.stdout.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return KILLED, line, (line.split(" ", 1)[1].split(" - ", 1)[0],)
    said = (done.stderr or done.stdout).strip().splitlines()
    why = f"status {done.returncode}: {said[-1] if said else 'nothing was said'}"
    return UNJUDGED if done.returncode == BROKEN else KILLED, why, ()
