"""The challenge for NVIDIA's GPUs: its kernel, run word by word, and what the server checks.

No GPU ran it. The program around the kernel is run in tests/node_reporter/gpus/test_challenge.py.
"""

from __future__ import annotations

import random
import subprocess
import sys
from hashlib import sha256, sha512
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.hardware.known_gpus import BOARDS, NVIDIA_VENDOR
from domain.jobs.job import WORK_BYTES_MAX
from domain.trust import challenge_cuda
from domain.trust.challenge_cuda import GROUP, LANES, R, broken_rule, command_of, primes_of
from ledger.beside.lease_logs import LEASE_BYTES_MAX
from tests.domain.trust.ptx import Thread, parsed

UUID = "GPU-5c1d8f3e-0f6b-4c6e-9a3b-2f1d0c9e8a71"
SEED = "5e" * 16
PRIMES = primes_of(b"\x5e" * 31 + b"\x01" + b"\xa7" * 32)
N = PRIMES[0] * PRIMES[1]
VALUES, MODULUS = 0x10_0000, 0x20_0000


def answer(groups: int, rounds: int, device: str = UUID) -> bytes:
    """What the program prints, computed the long way."""
    unit, found = pow(R, -1, N), ""
    for number in range(groups):
        group = b""
        for lane in range(GROUP * number, GROUP * (number + 1)):
            value = int.from_bytes(sha512(f"{SEED}/{device}/{lane}".encode()).digest(), "big") % N
            for _ in range(rounds):
                value = value * value * unit % N
            group += value.to_bytes(64, "big")
        found += sha256(group).digest()[:8].hex()
    return f"groups {found}\n".encode()


def check(printed: bytes, groups: int = 2, rounds: int = 5, device: str = UUID) -> str | None:
    lanes = groups * GROUP
    return broken_rule(
        printed, device, SEED, PRIMES, lanes, rounds, lambda: random.randrange(2**31)
    )


@pytest.fixture(scope="module")
def ptx() -> str:
    _, *told = command_of("ptx", SEED, N, LANES, 1)
    done = subprocess.run([sys.executable, *told], capture_output=True, check=True, text=True)
    return done.stdout


def test_the_short_way_of_the_server_finds_what_the_long_way_finds() -> None:
    assert check(answer(2, 5)) is None


def test_other_answers_fail_by_name() -> None:
    right = answer(2, 5)
    assert check(b"") == "no_answer"
    assert check(b"no CUDA: libcuda.so.1") == "no_answer"
    assert check(right[:-3]) == "malformed"
    assert check(right + right) == "malformed"
    assert check(answer(2, 4)) == "wrong_lanes", "a round less"
    other = UUID.replace("5c", "6c")
    assert check(answer(2, 5, other)) == "wrong_lanes", "the answer of another device"


def test_who_computes_nine_groups_in_ten_is_mostly_found() -> None:
    groups = 40
    right = bytearray(answer(groups, 1))
    for number in range(0, groups, 10):
        right[len(b"groups ") + 16 * number : len(b"groups ") + 16 * number + 16] = b"0" * 16
    found = [check(bytes(right), groups, 1) for _ in range(40)]
    assert found.count("wrong_lanes") > 30


@settings(max_examples=20)
@given(st.binary(min_size=64, max_size=64))
def test_the_modulus_has_510_bits_and_two_primes(drawn: bytes) -> None:
    p, q = primes_of(drawn)
    assert {p.bit_length(), q.bit_length(), (p * q).bit_length()} <= {255, 510}
    assert p * q < R // 4, "so that no value needs a subtraction"
    for prime in (p, q):
        assert pow(3, prime - 1, prime) == 1
        assert gcd(prime, 2 * 3 * 5 * 7) == 1
    assert primes_of(drawn) == (p, q)


@settings(max_examples=15, deadline=None)
@given(
    value=st.integers(0, 2 * N - 1) | st.sampled_from([0, 1, N - 1, N, 2 * N - 1]),
    rounds=st.integers(1, 3),
    lane=st.integers(0, 300),
)
def test_the_kernel_squares_as_often_as_it_is_asked(
    ptx: str, value: int, rounds: int, lane: int
) -> None:
    """Formula: y = y^2 / R mod N, for every value that a round can leave behind."""
    own = VALUES + 64 * lane
    memory = {own + 4 * n: value >> 32 * n & 0xFFFFFFFF for n in range(16)}
    memory |= {MODULUS + 4 * n: N >> 32 * n & 0xFFFFFFFF for n in range(16)}
    told = {"values": VALUES, "modulus": MODULUS, "inverse": -pow(N, -1, 2**32) % 2**32}
    special = {"%ctaid.x": lane // 128, "%ntid.x": 128, "%tid.x": lane % 128}
    Thread(parsed(ptx), {**told, "rounds": rounds}, memory, special).run()
    expected = value
    for _ in range(rounds):
        expected = expected * expected * pow(R, -1, N) % N
    found = sum(memory[own + 4 * n] << 32 * n for n in range(16))
    assert found < 2 * N
    assert found % N == expected
    assert len(memory) == 32, "nothing else is written"


def test_what_the_kernel_takes_is_what_the_program_passes(ptx: str) -> None:
    kernel = parsed(ptx)
    assert kernel.params == {"values": "u64", "modulus": "u64", "inverse": "u32", "rounds": "u32"}
    assert ptx.isascii()
    assert "(values,modulus,inverse,turns)" in challenge_cuda.PROGRAM
    named = set(ptx.replace(",", " ").replace(";", " ").replace("[", " ").replace("+", " ").split())
    used = {one.rstrip("]") for one in named if one.startswith("%") and "<" not in one}
    known = {*kernel.registers, "%ctaid.x", "%ntid.x", "%tid.x"}
    assert used <= known


def test_the_work_fits_where_it_has_to() -> None:
    for number, board in BOARDS[NVIDIA_VENDOR].items():
        rounds = challenge_cuda.rounds_for(board)
        assert 500_000 < rounds < 2**31, hex(number)
        words = command_of(UUID, SEED, N, LANES, rounds)
        assert sum(len(word.encode()) for word in words) < WORK_BYTES_MAX // 2
        assert all(len(word) < 65_536 for word in words)
    assert LANES // GROUP * 16 < LEASE_BYTES_MAX // 4


def test_the_work_needs_half_a_minute_of_the_boards_own_rate() -> None:
    t4 = BOARDS[NVIDIA_VENDOR][0x1EB8]
    multiply_adds = challenge_cuda.rounds_for(t4) * LANES * 1_024
    assert multiply_adds == pytest.approx(30 * 40 * 1_590_000_000 * 64, rel=1e-3)
