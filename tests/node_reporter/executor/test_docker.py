"""A job that names an image: the arguments say exactly what it may do. No container is started
here: there is no docker server on a test machine, and what is tested is what is asked of one.
"""

from __future__ import annotations

import os
from argparse import Namespace
from itertools import pairwise
from pathlib import Path

import pytest

from node_reporter.clock import SystemClock
from node_reporter.executor import docker as docker_module
from node_reporter.executor.client import ExecutorClient
from node_reporter.executor.docker import DockerRunner, arguments
from node_reporter.executor.executor import Executor
from node_reporter.executor.runner import Grant, Limits, RunnerUnusable
from node_reporter.executor.state import ExecutorFolder, ExecutorSettings
from node_reporter.programs.execute import usable
from node_reporter.reports.client import Response, Unreachable

LEASE = "lease_" + "1" * 32


class Nobody:
    """A server that nobody reaches."""

    def request(self, *_words: object) -> Response:
        raise Unreachable("nobody there")


def grant(**changes: object) -> Grant:
    told: dict[str, object] = {
        "lease_id": LEASE,
        "command": ("python", "train.py"),
        "image": "a@sha256:0",
        "environment": {"HF_TOKEN": "s3cret", "PATH": "/bin"},
        "folder": Path("/jobs/a"),
        "device_ids": ("GPU-1", "GPU-2"),
        "limits": Limits(memory_bytes=1_000, processes=7),
        **changes,
    }
    return Grant(**told)  # type: ignore[arg-type]


def following(argv: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(argv) if name == option]


@pytest.mark.parametrize(
    ("answer", "is_left"),
    [
        ("exit 0", False),
        ("echo 'Error: No such container: x' >&2; exit 1", False),
        ("echo 'Cannot connect to the Docker daemon' >&2; exit 1", True),
        ("exec sleep 60", True),
    ],
)
def test_what_tells_of_a_container_is_kept_until_the_container_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, is_left: bool
) -> None:
    """It ran on for ever, its lease told as lost; or the executor did not start at all."""
    (tmp_path / "docker").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(docker_module, "END_SECONDS_MAX", 0.3)
    jobs = tmp_path / "jobs"
    said: list[str] = []
    (jobs / LEASE / "work").mkdir(parents=True)
    executor = Executor(
        ExecutorSettings(url="", node_id="n", executor="e", executor_key="k", variables={}),
        ExecutorClient("n", "k", Nobody()),
        [DockerRunner(os.environ)],
        jobs,
        SystemClock(),
        tell=said.append,
    )
    executor.take_over()
    assert (jobs / LEASE).exists() is is_left
    (line,) = said
    assert ("stays: docker" in line) is is_left


def test_a_container_has_no_network_no_capability_and_its_limits() -> None:
    argv = arguments("docker", grant())
    assert following(argv, "--network") == ["none"]
    assert following(argv, "--cap-drop") == ["ALL"]
    assert following(argv, "--security-opt") == ["no-new-privileges"]
    assert "--read-only" in argv
    assert following(argv, "--memory") == following(argv, "--memory-swap") == ["1000"]
    assert following(argv, "--pids-limit") == ["7"]
    assert following(argv, "--volume") == ["/jobs/a/work:/work"]
    assert following(argv, "--user")[0].split(":")[0] != "0"
    assert "--privileged" not in argv
    assert argv[-4:] == ["--", "a@sha256:0", "python", "train.py"]
    assert following(arguments("docker", grant(network=True)), "--network") == ["bridge"]


def test_an_endpoint_in_a_container_is_reached_by_its_port_alone() -> None:
    argv = arguments("docker", grant(network=True, port=9_001))
    assert following(argv, "--publish") == ["9001:9001"]
    assert "--publish" not in arguments("docker", grant(port=9_001)), "nothing is reached"
    assert "--publish-all" not in argv


def test_a_container_gets_variables_by_name_so_no_value_is_in_the_command_line() -> None:
    argv = arguments("docker", grant())
    assert "s3cret" not in " ".join(argv)
    assert following(argv, "--env") == ["HOME=/work", "HF_TOKEN"]


def test_a_container_gets_its_own_gpus_and_none_without_device_files() -> None:
    assert following(arguments("docker", grant()), "--gpus") == []
    argv = arguments("docker", grant(device_files=("/dev/nvidia0",)))
    assert following(argv, "--gpus") == ['"device=GPU-1,GPU-2"']


def test_an_image_cannot_pass_for_an_option() -> None:
    argv = arguments("docker", grant(image="--privileged"))
    assert argv.index("--") < argv.index("--privileged")


def test_docker_is_for_images_and_says_why_it_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = DockerRunner({"PATH": str(tmp_path), "SECRET": "x"})
    assert runner.takes("image")
    assert not runner.takes(None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunnerUnusable, match="not installed"):
        runner.check()
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
    client.chmod(0o755)
    with pytest.raises(RunnerUnusable, match="Cannot connect"):
        runner.check()


def test_the_server_is_asked_until_it_says_which_processes_a_container_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the client: `run` waits, `inspect` answers what a file says."""
    told = tmp_path / "told"
    client = tmp_path / "docker"
    client.write_text(f'#!/bin/sh\n[ "$1" = run ] && exec sleep 60\ncat {told}\n')
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    run = DockerRunner({}).start(grant(folder=tmp_path))
    try:
        assert (run.pid, run.container) == (None, None), "it does not run yet"
        for not_yet in ("0 " + "a" * 64, "nothing", "7 short"):
            told.write_text(not_yet)
            assert run.pid is None
        told.write_text("4242 " + "a" * 64 + "\n")
        assert (run.pid, run.container) == (4242, "a" * 64)
        told.unlink()
        assert run.pid == 4242, "once known, it is not asked again"
    finally:
        run.process.kill()
        run.process.wait()
        run.close()


@pytest.mark.parametrize("is_here", [True, False])
def test_s_m5_an_image_that_was_pulled_for_a_job_is_measured_and_goes_with_it(
    is_here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the client, which notes what it was asked."""
    asked, image = tmp_path / "asked", tmp_path / "image"
    if is_here:
        image.touch()
    client = tmp_path / "docker"
    client.write_text(
        f'#!/bin/sh\necho "$@" >> {asked}\n'
        f'case "$1 $4" in "run "*) touch {image}; exec sleep 60;;\n'
        f'"image {{{{.Id}}}}") [ -e {image} ] && echo sha256:0; exit $?;;\n'
        '"image {{.Size}}") echo 7000;;\n'
        f'"inspect "*) echo "4242 {"a" * 64}";; esac\n'
    )
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    run = DockerRunner({"PATH": "/usr/bin:/bin"}).start(grant(folder=tmp_path))
    try:
        assert run.using().image_bytes == (0 if is_here else 7_000)
    finally:
        run.process.kill()
        run.process.wait()
        run.close()
    removed = "image rm -- a@sha256:0" in asked.read_text()
    assert removed != is_here


@pytest.mark.parametrize(("trusted", "said"), [(True, "only jobs that name an image"), (False, "")])
def test_without_docker_an_owner_is_told_what_it_is_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trusted: bool,
    said: str,
) -> None:
    """B11 of the findings: every owner without docker read the error of its client."""
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = ExecutorFolder(tmp_path / "state")
    folder.path.mkdir()
    options = Namespace(trusted=trusted)
    if trusted:
        assert [runner.name for runner in usable(options, folder, None)] == ["trusted"]
        told = capsys.readouterr().err
        assert said in told
        assert "not used" not in told
        return
    with pytest.raises(RunnerUnusable):
        usable(options, folder, None)
    assert "not used: docker: " in capsys.readouterr().err, "where nothing runs, all is told"
