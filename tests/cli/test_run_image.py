"""`tallystick run --image` and `--volume` through the command, to the node's executor and back.

The docker client is a simulator (`tests/node_reporter/walled_docker.py`): its containers are real
processes behind bubblewrap. No docker server is on a test machine.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tallystick_client import Client
from tests.cli.test_run import TOKEN, Pool, pool, server
from tests.node_reporter import walled_docker
from tests.node_reporter.confined import needs_walls

__all__ = ["pool", "server"]
pytestmark = needs_walls
BILL = re.compile(r"about (\d+\.\d+) CREDIT for .* GPU-hours, (\d+)\.(\d) s of start, free")


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The simulator's folder; it knows no image here, and one in its registry."""
    folder = tmp_path / "docker"
    folder.mkdir()
    (folder / "registry").write_text("trainer:1\n")
    (folder / "pull_seconds").write_text("0")
    client = folder / "docker"
    client.write_text(
        f'#!/bin/sh\nexec {sys.executable} -I -S {walled_docker.__file__} {folder} "$@"\n'
    )
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_an_image_gets_the_folder_variables_and_secrets_and_its_results_come_back(
    pool: Pool, docker: Path, tmp_path: Path
) -> None:
    """The time in which the image is pulled is free: the program does not run yet."""
    (docker / "pull_seconds").write_text("1.2")
    program = tmp_path / "program"
    (program / "in.txt").write_text("from the renter")
    pool.start()
    script = "echo $EPOCHS $(cat in.txt) $(pwd) $(id -u); mkdir out; echo $TOKEN | rev > out/model"
    given = ("--image", "trainer:1", "--env", "EPOCHS=3", "--secret", f"TOKEN={TOKEN}")
    ran = pool.run(*given, "--get", "out", "--", "sh", "-c", script)
    assert ran.code == 0, ran.err
    words = ran.out.split()
    assert words[:-1] == ["3", "from", "the", "renter", "/work"]
    assert words[-1] != "0"
    assert (program / "out" / "model").read_text() == f"{TOKEN[::-1]}\n"
    bill = BILL.search(ran.err.splitlines()[-1])
    assert bill is not None, ran.err
    assert int(bill[2]) >= 1, "the second of the pull stands in the bill, and costs nothing"
    assert TOKEN not in (docker / "asked").read_text(), "no list of processes shows it"
    (lease,) = pool.leases()
    with Client(pool.server.url, pool.renter_key) as renter:
        work: Any = renter.read_lease_work(lease["lease_id"])
    assert (work["runner"], work["free_start_us"]) == ("docker", 60_000_000)
    assert work["start_us"] >= 1_200_000
    pool.stop()
    assert list(pool.jobs.glob("lease_*")) == []


def test_an_image_that_cannot_be_had_costs_a_moment_and_the_renter_reads_why(
    pool: Pool, docker: Path
) -> None:
    assert not (docker / "here").exists()
    pool.start()
    ran = pool.run("--no-files", "--image", "nothing:1", "--", "true")
    assert ran.code == 125
    assert "pull access denied" in ran.err
    bill = BILL.search(ran.err.splitlines()[-1])
    assert bill is not None, ran.err
    assert bill[1] < "0.001", "an hour costs 2: at most two seconds until the end was told"


def test_a_volume_is_mounted_in_a_container_and_in_the_sandbox_and_keeps_what_was_written(
    pool: Pool, docker: Path
) -> None:
    (docker / "here").write_text("trainer:1\n")
    pool.start()
    with Client(pool.server.url, pool.owner_key) as owner:
        region = owner.read_node(pool.node_id)["region_id"]
    creating = ("volume", "create", region, "1", "data", "--json")
    name = pool.server.run(*creating, key=pool.renter_key).document["volume_id"]
    write = "echo kept > /vol/data/model; ls -d /vol/data"
    ran = pool.run(
        "--no-files",
        "--image",
        "trainer:1",
        "--volume",
        f"{name}:/vol/data",
        "--",
        "sh",
        "-c",
        write,
    )
    assert (ran.code, ran.out) == (0, "/vol/data\n"), ran.err
    read = "cat /vol/data/model; echo more > /vol/data/model"
    for image in ((), ("--image", "trainer:1")):
        ran = pool.run(
            "--no-files", *image, "--volume", f"{name}:/vol/data:ro", "--", "sh", "-c", read
        )
        assert ran.out == "kept\n", ran.err
        assert ran.code != 0
        assert "Read-only file system" in ran.err
    wrong = pool.run("--no-files", "--volume", f"{name}:data", "--", "true")
    assert wrong.code == 2
    assert "/vol/data:ro" in wrong.err
