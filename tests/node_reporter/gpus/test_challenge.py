"""The program of the challenge for NVIDIA's GPUs, run on a driver library made for the tests.

The library computes on the processor what it is told by the arguments, so what is tried here is all
but the kernel: which GPU is taken, what is passed, copied and printed, and what a driver refuses.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.node import gpu_challenge, gpu_node
from domain.hardware.known_gpus import board_of
from domain.trust import challenge_cuda
from domain.trust.challenge_cuda import broken_rule, command_of, primes_of
from tests.node_reporter.scripted_machines import HERE, compiled

OTHER, OWN = "00" * 16, "5c1d8f3e0f6b4c6e9a3b2f1d0c9e8a71"
UUID = "GPU-5c1d8f3e-0f6b-4c6e-9a3b-2f1d0c9e8a71"
SEED = "a7" * 16
BLOCK = 128
"""Threads that are started together: the program takes a multiple of them."""
PRIMES = primes_of(b"\x31" * 32 + b"\x32" * 32)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("cuda"), "libcuda.so.1", HERE / "fake_cuda.c")


def ran(
    library: Path, lanes: int = 2 * BLOCK, rounds: int = 3, **more: str
) -> subprocess.CompletedProcess[bytes]:
    """The command as a node runs it, on a machine with two GPUs."""
    _, *told = command_of(UUID, SEED, PRIMES[0] * PRIMES[1], lanes, rounds)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library.parent),
        "FAKE_CUDA_UUIDS": f"{OTHER} {OWN}",
        **more,
    }
    return subprocess.run(
        [sys.executable, *told], env=environment, capture_output=True, check=False
    )


def check(answer: bytes, lanes: int = 2 * BLOCK, rounds: int = 3) -> str | None:
    return broken_rule(answer, UUID, SEED, PRIMES, lanes, rounds, lambda: random.randrange(2**31))


def test_what_the_program_prints_passes_the_servers_check(library: Path) -> None:
    done = ran(library)
    assert (done.returncode, done.stderr) == (0, b"")
    assert check(done.stdout) is None
    assert check(done.stdout, rounds=2) == "wrong_lanes"


def test_work_of_several_launches_is_the_work_of_one(library: Path) -> None:
    done = ran(library, BLOCK, 16_384 + 3)
    assert check(done.stdout, BLOCK, 16_384 + 3) is None


def test_another_gpu_is_not_taken_for_the_one_that_is_asked(library: Path) -> None:
    done = ran(library, FAKE_CUDA_UUIDS=OTHER)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().strip() == f"no GPU is {UUID}"


@pytest.mark.parametrize(
    "name",
    [
        "cuInit",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDeviceGetUuid",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuModuleLoadData",
        "cuModuleGetFunction",
        "cuMemAlloc_v2",
        "cuMemcpyHtoD_v2",
        "cuLaunchKernel",
        "cuCtxSynchronize",
        "cuMemcpyDtoH_v2",
    ],
)
def test_what_the_driver_refuses_is_said_and_no_answer_is_printed(library: Path, name: str) -> None:
    done = ran(library, FAKE_CUDA_FAIL=name)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().strip() == f"{name} answered 999"


def test_a_machine_without_cuda_says_so(tmp_path: Path) -> None:
    if any(Path(one).exists() for one in ("/usr/lib/x86_64-linux-gnu/libcuda.so.1",)):
        pytest.skip("this machine has CUDA")
    done = ran(tmp_path / "libcuda.so.1")
    assert done.stdout == b""
    assert done.stderr.startswith(b"no CUDA: libcuda.so.1")


def test_the_run_on_a_real_gpu_judges_as_the_server_does(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(challenge_cuda, "rounds_for", lambda _board: 2)
    gpu = gpu_challenge.first_of(f"{UUID}, 0x1EB810DE\n")
    assert gpu is not None
    board = board_of(gpu.pci_id)
    assert board is not None
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "FAKE_CUDA_UUIDS": OWN}
    right = gpu_challenge.run(gpu, board, BLOCK, environment)
    assert (right["rule"], right["ok"], right["board"]) == (None, True, "T4")
    refused = gpu_challenge.run(gpu, board, BLOCK, {**environment, "FAKE_CUDA_FAIL": "cuInit"})
    assert (refused["rule"], refused["ok"]) == ("no_answer", False)
    assert refused["said"] == "cuInit answered 999"


def test_the_run_without_a_gpu_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    if gpu_node.missing() is None:
        pytest.skip("this machine has a GPU")
    assert gpu_challenge.main() == 2
    assert "this needs a machine with an NVIDIA GPU" in capsys.readouterr().err
    assert gpu_challenge.first_of("No devices were found\n") is None
