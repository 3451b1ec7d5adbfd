"""The challenge for NVIDIA's GPUs on a real one: is the answer right, and how long does it take?

    make test-gpu                                    after the reporter's run
    python -m benchmarks.node.gpu_challenge          prints one JSON document

The command is the one that a node is asked, with the work of the GPU's own board, and the answer is
checked as the server does. The time stands beside the limit, which also covers hearing of the
challenge. Status 0: right and within half of the limit; 1: not; 2: no GPU here, or a board that is
not in the table. What it found belongs into docs/gpu-runs.md.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.trust.trust_timer import LIMIT_US
from benchmarks.node.gpu_node import NEEDS, missing
from domain.hardware.known_gpus import Board, board_of
from domain.trust import challenge_cuda
from domain.trust.challenge_check import P

LISTED = ("nvidia-smi", "--query-gpu=uuid,pci.device_id", "--format=csv,noheader")
US = 1_000_000


@dataclass(frozen=True, slots=True)
class Gpu:
    uuid: str
    pci_id: str


def first_of(listed: str) -> Gpu | None:
    """The first GPU that `nvidia-smi` lists."""
    for line in listed.splitlines():
        uuid, comma, pci_id = (part.strip() for part in line.partition(","))
        if comma and uuid.startswith("GPU-"):
            return Gpu(uuid, pci_id)
    return None


def run(gpu: Gpu, board: Board, lanes: int, environment: Mapping[str, str]) -> dict[str, Any]:
    """Ask and judge. `rule` is None for a right answer; `said`: what the program complained of."""
    seed = secrets.token_hex(16)
    primes = challenge_cuda.primes_of(secrets.token_bytes(64))
    rounds = challenge_cuda.rounds_for(board)
    command = challenge_cuda.command_of(gpu.uuid, seed, primes[0] * primes[1], lanes, rounds)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, *command[1:]], env=dict(environment), capture_output=True, check=False
    )
    took_us = round((time.monotonic() - began) * US)
    began = time.monotonic()
    rule = challenge_cuda.broken_rule(
        done.stdout, gpu.uuid, seed, primes, lanes, rounds, lambda: secrets.randbelow(P)
    )
    return {
        "gpu": gpu.uuid,
        "board": board.name,
        "lanes": lanes,
        "rounds": rounds,
        "rule": rule,
        "said": done.stderr.decode(errors="replace").strip(),
        "took_us": took_us,
        "limit_us": LIMIT_US,
        "checked_in_us": round((time.monotonic() - began) * US),
        "ok": rule is None and took_us * 2 <= LIMIT_US,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    del arguments
    lacks = missing()
    if lacks is not None:
        sys.stderr.write(f"not run: {NEEDS}{lacks}\n")
        return 2
    gpu = first_of(subprocess.run(LISTED, capture_output=True, text=True, check=True).stdout)
    board = None if gpu is None else board_of(gpu.pci_id)
    if gpu is None or board is None:
        sys.stderr.write(f"not run: {gpu} is no board of domain/hardware/known_gpus.py\n")
        return 2
    result = run(gpu, board, challenge_cuda.LANES, os.environ)
    print(json.dumps(result, indent=2))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
