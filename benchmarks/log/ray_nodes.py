"""A Ray cluster of two nodes with one processor each, and `audit verify` on it beside serial.

    .venv-ray/bin/python -m benchmarks.log.ray_nodes           full: 96,000 reports of 20 rows
    .venv-ray/bin/python -m benchmarks.log.ray_nodes --short   19,200
    .venv-ray/bin/python -m benchmarks.log.ray_nodes --tiny    64: whether it runs at all

`make test-ray` makes that environment.

Both nodes are on this machine, in a network and a process namespace of their own (as root, with
`unshare` and `ip`): `ray start` announces the first address that is not the loopback interface's,
and all that it starts ends with the namespace. Two nodes of one machine share its memory and its
caches, and no network lies between them. Serial and cluster take turns; one digest of both.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.log.verify import SIZES, write_bundle
from benchmarks.size import Size, size_asked
from ledger.bundle.verify import verify_bundle
from ledger.fan_out.executor import Executor, Serial
from ledger.fan_out.ray_tasks import RayTasks

ROOT = Path(__file__).parents[2]
FIGURE = 1.7
PORT = 6399
ADDRESS = f"127.0.0.1:{PORT}"
HEAD = ("--head", f"--port={PORT}", "--include-dashboard=false", "--disable-usage-stats")
SECOND = (f"--address={ADDRESS}", "--disable-usage-stats")
NODE = ("--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=100000000")
STARTED_S, STARTS_MAX, JOINED_S = 120, 3, 120
NAMESPACE = ("unshare", "--net", "--pid", "--fork", "--mount-proc")
INSIDE = "TALLYSTICK_RAY_NODES"
"""Names the export, in the process that runs in the namespace."""
TURNS = 3


# --- the cluster -----------------------------------------------------------------------------


def open_network() -> None:
    """The loopback interface of a new namespace is down."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def start(folder: Path, *more: str) -> None:
    """A node beside this process. Ray gives a node 30 s to start, which a busy machine may need
    twice.
    """
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *NODE, *more]
    with (folder / "ray.log").open("ab") as told:
        for _ in range(STARTS_MAX):
            done = subprocess.run(
                command, stdout=told, stderr=told, timeout=STARTED_S, cwd=ROOT, check=False
            )
            if done.returncode == 0:
                return
    raise AssertionError(f"a node did not start {STARTS_MAX} times")


def wait_for_both(tasks: RayTasks) -> int:
    """The processors of the cluster, once they are two: it notices late that a node was killed."""
    ends = time.monotonic() + JOINED_S
    while tasks.processors() != 2 and time.monotonic() < ends:
        time.sleep(0.2)
    return tasks.processors()


def processes() -> Iterator[tuple[int, str]]:
    """Each process that is seen here, and its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield int(path.parent.name), path.read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue


def raylets() -> set[int]:
    return {pid for pid, command in processes() if command.split(" ")[0].endswith("/raylet")}


# --- measuring -------------------------------------------------------------------------------


def run(size: Size) -> dict[str, Any]:
    """Seconds of serial and of two nodes, in a namespace of their own. Raises where one fails."""
    nodes, each = SIZES[size]
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        write_bundle(folder / "bundle", nodes, each)
        (folder / "token").write_text(secrets.token_hex(32))
        settings = {
            INSIDE: made,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(folder / "token"),
            "PYTHONPATH": str(ROOT),
        }
        command = [*NAMESPACE, sys.executable, "-m", "benchmarks.log.ray_nodes"]
        done = subprocess.run(
            command, env=os.environ | settings, cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        turns = json.loads(done.stdout.splitlines()[-1])
    middle = {name: sorted(seconds)[len(seconds) // 2] for name, seconds in turns.items()}
    return {
        "figure": f"audit verify on two Ray nodes of one core >= {FIGURE} x serial",
        "reports": nodes * each,
        "seconds": turns,
        "reports_per_second": {name: round(nodes * each / one) for name, one in middle.items()},
        "two_nodes_of_serial": round(middle["serial"] / middle["ray"], 2),
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def _turns(folder: Path) -> dict[str, list[float]]:
    open_network()
    start(folder, *HEAD, f"--temp-dir={folder / 's'}")
    start(folder, *SECOND)
    found: dict[str, list[float]] = {"serial": [], "ray": []}
    with RayTasks(ADDRESS) as tasks:
        assert wait_for_both(tasks) == 2
        list(tasks.map(len, ["start"] * 8))  # its workers are there
        for _ in range(TURNS):
            digests = set()
            executors: dict[str, Executor] = {"serial": Serial(), "ray": tasks}
            for name, executor in executors.items():
                began = time.perf_counter()
                verified = verify_bundle(folder / "bundle", executor=executor)
                found[name].append(round(time.perf_counter() - began, 3))
                assert verified.ok, verified
                digests.add(verified.digest)
            assert len(digests) == 1
    return found


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    inside = os.environ.get(INSIDE)
    if inside is None:
        json.dump(run(size_asked(__doc__)), sys.stdout, indent=1)
    else:
        sys.stdout.write(json.dumps(_turns(Path(inside))) + "\n")


if __name__ == "__main__":
    main()
