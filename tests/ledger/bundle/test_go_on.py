"""A verification that was killed goes on where it ended, and a mark is believed for what it may be.

The made-up export has a file for every two reports, so that a lane of five has three marks in turn.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from benchmarks.log.verify import write_bundle
from ledger.bundle import lane_walk, parquet
from ledger.bundle.lane_walk import LaneTask, walk_lane
from ledger.bundle.verify import VerifyReport, verify_bundle
from ledger.fan_out import marks
from ledger.fan_out.choice import opened
from ledger.fan_out.executor import Serial
from ledger.fan_out.marks import Marks
from tests.ledger.bundle.test_verify import adjust_manifest, rewrite
from tests.scenes.shell import tallystick

NODES, EACH, FILE_ROWS = 16, 5, 2
REPORTS = NODES * EACH
KILLED = """
import os, signal, sys
from pathlib import Path
from ledger.bundle.verify import verify_bundle
from ledger.fan_out import marks
from ledger.fan_out.choice import opened

def end_here():
    os.kill(os.getpid(), signal.SIGKILL)

put, done = marks.Marks.put, []

def ending(self, name, told):
    put(self, name, told)
    done.append(name)
    if len(done) == 15:
        end_here()

def step(_what, done, _of):
    if done == 20:
        end_here()

if __name__ == "__main__":
    bundle, folder, choice = sys.argv[1:]
    if choice == "serial":
        marks.Marks.put = ending
    with opened(choice) as executor:
        verify_bundle(Path(bundle), executor=executor, step=step, marks=marks.opened(Path(folder)))
"""


@dataclass(frozen=True, slots=True)
class Counting(Marks):
    """Marks that say how many were put."""

    put_names: list[str]

    def put(self, name: str, told: Any) -> None:
        Marks.put(self, name, told)
        self.put_names.append(name)


def made(folder: Path, nodes: int = NODES) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "FILE_ROWS", FILE_ROWS)
        write_bundle(folder / "bundle", nodes=nodes, reports_each=EACH)
    return folder / "bundle"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("export"))


@pytest.fixture(scope="module")
def plain(original: Path) -> VerifyReport:
    """What a run without marks finds."""
    found = verify_bundle(original)
    assert found.ok, found
    assert (found.reports, found.walked_before) == (REPORTS, 0)
    return found


@pytest.fixture(scope="module")
def finished(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The marks of a run that came to its end."""
    folder = marks.opened(tmp_path_factory.mktemp("marks") / "kept")
    assert verify_bundle(original, marks=folder).ok
    return folder.path


@pytest.fixture
def kept(finished: Path, tmp_path: Path) -> Marks:
    return marks.opened(Path(shutil.copytree(finished, tmp_path / "kept")))


def files_of(bundle: Path) -> int:
    return len(list(bundle.glob("log/usage-*.parquet")))


def rows_by_lane(bundle: Path) -> dict[int, int]:
    found: dict[int, int] = {}
    for file in bundle.glob("log/usage-*.parquet"):
        lane = int(file.name.split("-")[1])
        found[lane] = found.get(lane, 0) + parquet.count_rows(file, parquet.USAGE)
    return found


@pytest.mark.parametrize("choice", ["serial", "processes:2"])
def test_a_killed_run_goes_on_and_comes_to_the_same(
    original: Path, plain: VerifyReport, tmp_path: Path, choice: str
) -> None:
    command = [sys.executable, "-c", KILLED, str(original), str(tmp_path / "kept"), choice]
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    again = Counting(tmp_path / "kept", [])
    with opened("serial") as executor:
        found = verify_bundle(original, executor=executor, marks=again)
    assert 0 < found.walked_before < REPORTS
    assert replace(found, walked_before=0) == plain
    assert f"{found.walked_before} reports were walked by an earlier run" in str(found)
    assert 0 < len(again.put_names) < files_of(original), "less is done the second time"
    if choice == "serial":
        assert len(again.put_names) == files_of(original) - 15


def test_an_interrupted_run_goes_on_and_a_finished_one_walks_nothing(
    original: Path, plain: VerifyReport, tmp_path: Path
) -> None:
    folder = marks.opened(tmp_path / "kept")

    def interrupt(_what: str, done: int, _of: int) -> None:
        if done == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), opened("processes:2") as executor:
        verify_bundle(original, executor=executor, step=interrupt, marks=folder)
    found = verify_bundle(original, marks=folder)
    assert found.walked_before > 0
    assert replace(found, walked_before=0) == plain
    whole = verify_bundle(original, marks=Counting(folder.path, []))
    assert replace(whole, walked_before=0) == plain
    assert whole.walked_before == REPORTS


# --- marks that are not what was put ----------------------------------------------------------


def damaged(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


def rewritten(name: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[bytes], bytes]:
    """By a hand that knows the form: the checksum is right."""

    def of(content: bytes) -> bytes:
        told = json.loads(content.partition(b"\n")[2])
        change(told)
        new = json.dumps(told, separators=(",", ":")).encode()
        return sha256(name.encode() + b"\n" + new).hexdigest().encode() + b"\n" + new

    return of


CHANGES: dict[str, Callable[[str], Callable[[bytes], bytes]]] = {
    "a flipped bit": lambda _: damaged,
    "a digit that nothing else would show": lambda _: (
        lambda content: content.replace(b'"counted":0', b'"counted":7')
    ),
    "half of it": lambda _: lambda content: content[: len(content) // 2],
    "nothing": lambda _: lambda _content: b"",
    "another chain": lambda name: rewritten(name, lambda told: told.update(head="00" * 32)),
    "another tree": lambda name: rewritten(
        name, lambda told: told.update(peaks=["00" * 32] * len(told["peaks"]))
    ),
    "another size": lambda name: rewritten(
        name, lambda told: told.update(position=told["position"] ^ 1)
    ),
    "fewer files": lambda name: rewritten(name, lambda told: told.update(files=0)),
    "another form": lambda name: rewritten(name, lambda told: told.pop("recount")),
    "no text": lambda name: rewritten(name, lambda told: told.update(head=7)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_mark_is_found_out_and_its_lane_walked_again(
    original: Path, plain: VerifyReport, kept: Marks, what: str
) -> None:
    file = min(kept.path.iterdir())
    name = file.name.removesuffix(".mark")
    before = json.loads(file.read_bytes().partition(b"\n")[2])["position"]
    file.write_bytes(CHANGES[what](name)(file.read_bytes()))
    found = verify_bundle(original, marks=kept)
    assert replace(found, walked_before=0) == plain
    assert found.walked_before == REPORTS - before


def test_a_mark_under_the_name_of_another_lane_is_not_believed(
    original: Path, plain: VerifyReport, kept: Marks
) -> None:
    one, other = sorted(kept.path.iterdir())[:2]
    lost = json.loads(other.read_bytes().partition(b"\n")[2])["position"]
    shutil.copy(one, other)
    assert kept.get(one.name.removesuffix(".mark")) is not None
    assert kept.get(other.name.removesuffix(".mark")) is None
    found = verify_bundle(original, marks=kept)
    assert replace(found, walked_before=0) == plain
    assert found.walked_before == REPORTS - lost


# --- other inputs, other code -----------------------------------------------------------------


def test_a_changed_file_has_no_mark_even_where_its_chain_agrees(
    original: Path, kept: Marks, tmp_path: Path
) -> None:
    bundle = Path(shutil.copytree(original, tmp_path / "bundle"))
    file = min((bundle / "log").glob("usage-*"))
    lane = int(file.name.split("-")[1])

    def received_later(rows: list[list[Any]]) -> None:  # under no chain
        for row in rows:
            row[9] += 1

    rewrite(bundle, file, parquet.USAGE, received_later)
    found = verify_bundle(bundle, marks=kept)
    assert found.ok, found
    assert found.walked_before == REPORTS - rows_by_lane(original)[lane]
    rows = parquet.count_rows(file, parquet.USAGE)
    adjust_manifest(bundle, file, rows + 1)  # the manifest alone lies of the count
    assert not verify_bundle(bundle, marks=kept).ok
    assert not verify_bundle(bundle, marks=kept).ok


def test_an_export_with_other_facts_has_no_mark(kept: Marks, tmp_path: Path) -> None:
    found = verify_bundle(made(tmp_path, NODES + 1), marks=kept)
    assert found.ok, found
    assert found.walked_before == 0


def test_other_code_has_no_mark(
    original: Path, kept: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_walk, "auditing_code", lambda: "of another day")
    assert verify_bundle(original, marks=kept).walked_before == 0


def test_a_file_that_is_another_than_was_hashed_leaves_no_mark(
    original: Path, tmp_path: Path
) -> None:
    tasks: list[LaneTask] = []

    class Noting(Serial):
        def map(self, function: Any, some: Any) -> Any:
            listed = list(some)
            tasks.extend(one for one in listed if isinstance(one, LaneTask) and one.files)
            return super().map(function, listed)

    verify_bundle(original, executor=Noting())
    folder = marks.opened(tmp_path / "kept")
    task = replace(tasks[0], marks=folder)
    assert not walk_lane(task).problems
    assert len(list(folder.path.iterdir())) == 1
    changed = replace(task, files=tuple(replace(one, sha256="0" * 64) for one in task.files))
    found = walk_lane(changed)
    assert (found.problems, found.walked_before) == ((), 0)
    assert len(list(folder.path.iterdir())) == 1


def test_a_lane_with_a_problem_is_walked_each_time(original: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(original, tmp_path / "bundle"))
    file = max((bundle / "log").glob("usage-*"), key=lambda one: int(one.name.split("-")[2]))

    def another_signature(rows: list[list[Any]]) -> None:
        rows[-1][5] = rows[-1][5][:-1] + bytes([rows[-1][5][-1] ^ 1])

    rewrite(bundle, file, parquet.USAGE, another_signature)
    alone, folder = verify_bundle(bundle), marks.opened(tmp_path / "kept")
    assert not alone.ok
    first = verify_bundle(bundle, marks=folder)
    second = verify_bundle(bundle, marks=folder)
    assert replace(first, walked_before=0) == replace(second, walked_before=0) == alone
    lane = int(file.name.split("-")[1])
    assert second.walked_before == REPORTS - rows_by_lane(original)[lane]


# --- the command ------------------------------------------------------------------------------


def test_the_command_goes_on_and_says_so(original: Path, tmp_path: Path) -> None:
    asked = ("audit", "verify", original, "--go-on", tmp_path / "kept", "--json")
    first, second = tallystick(*asked), tallystick(*asked)
    replayed = tallystick("audit", "replay", original, "--go-on", tmp_path / "kept", "--json")
    assert [one.document["reports_walked_before"] for one in (first, second, replayed)] == [
        0,
        REPORTS,
        REPORTS,
    ]
    assert first.document["digest"] == second.document["digest"]
    assert first.document["verified"]


def test_a_folder_that_cannot_be_believed_is_refused(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = marks.opened(tmp_path / "kept").path
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    refused = tallystick("audit", "verify", original, "--go-on", folder)
    assert refused.code == 2
    assert "others may write" in refused.err
    folder.chmod(0o700)
    (folder / "notes.txt").touch()
    assert "notes.txt" in tallystick("audit", "replay", original, "--go-on", folder).err
    (folder / "notes.txt").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(marks.FolderRefused, match="another user"):
        marks.opened(folder)
