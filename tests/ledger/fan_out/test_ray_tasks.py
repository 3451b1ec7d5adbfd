"""Ray: the digest and the root of serial work, on one node and on two, whatever is killed."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchmarks.epochs.settle import GOLDEN
from benchmarks.size import Size
from ledger.fan_out.choice import ChoiceInvalid, opened
from ledger.fan_out.executor import Serial
from tests.ledger.fan_out import ray_work

TWO_NODES_S = 500


def missing() -> str | None:
    """Why there is no Ray here, if so. Ray reads its settings when it is imported: not yet here."""
    if importlib.util.find_spec("ray") is None:
        return "ray is not installed"
    tried = [sys.executable, "-c", "import ray"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.splitlines()[-1]


WITHOUT = missing()
needs_ray = pytest.mark.skipif(WITHOUT is not None, reason=f"tallystick[ray]: {WITHOUT}")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ray")
    ray_work.make(folder)
    return folder


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What every process of a cluster needs: its token, and our modules."""
    path = tmp_path / "token"
    path.write_text(secrets.token_hex(32))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(path))
    monkeypatch.setenv("PYTHONPATH", str(ray_work.ROOT))


def test_without_ray_the_choice_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ChoiceInvalid, match=r"tallystick\[ray\]"), opened("ray"):
        pass


@needs_ray
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("token")
def test_a_cluster_of_this_machine_comes_to_the_same_and_a_killed_worker_costs_nothing(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = secrets.token_hex(8)
    monkeypatch.setenv("RAY_WORK", name)
    with opened("ray") as tasks:
        assert ray_work.digest(work, tasks) == ray_work.digest(work, Serial())
        assert ray_work.root(work, tasks, "local") == GOLDEN[Size.TINY]
        for number in range(2):
            killing = ray_work.Killing(tasks, lambda: ray_work.kill_worker(name), after=4)
            if number:
                assert ray_work.root(work, killing, "killed") == GOLDEN[Size.TINY]
            else:
                assert ray_work.digest(work, killing) == ray_work.digest(work, Serial())
            assert killing.has_killed


@needs_ray
@pytest.mark.long
@pytest.mark.timeout(TWO_NODES_S + 60)
@pytest.mark.usefixtures("token")
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None,
    reason="a network namespace takes root, unshare and ip",
)
def test_two_nodes_come_to_the_same_and_so_does_one_when_the_other_is_killed(work: Path) -> None:
    command = ["unshare", "--net", "--pid", "--fork", "--mount-proc", sys.executable]
    with TemporaryDirectory(prefix="tally", dir="/tmp", ignore_cleanup_errors=True) as sockets:
        done = subprocess.run(
            [*command, "-m", "tests.ledger.fan_out.ray_work", str(work), sockets],
            cwd=ray_work.ROOT,
            capture_output=True,
            text=True,
            timeout=TWO_NODES_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3_000:] + (work / "ray.log").read_text()[-3_000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["digest_processors"] == found["root_processors"] == 2
    assert found["digest_has_killed"]
    assert found["root_has_killed"]
    assert found["digest"] == found["digest_node_killed"] == ray_work.digest(work, Serial())
    assert found["root"] == found["root_node_killed"] == GOLDEN[Size.TINY]
