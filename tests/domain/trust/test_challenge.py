"""Challenges: program and check agree, a wrong answer is found, turns follow reputation."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fleet.reasons import FleetReason
from domain.stream import Stream
from domain.trust.challenge import (
    ChallengeIssued,
    ChallengeJudged,
    IssueChallenge,
    JudgeChallenge,
    count_for,
    moment_of,
)
from domain.trust.challenge_check import P, broken_rule, command_of
from domain.trust.reasons import TrustReason
from tests.domain.scenes.supply import GPU_0, NODE, NOON_US, with_active_node

SEED, SIZE, ROUNDS, FILL = "5e" * 16, 6, 3, 64
STREAM = Stream("challenge", "chal_1")
issue = IssueChallenge(
    challenge_id="chal_1",
    node_id=NODE,
    device_id=GPU_0,
    job_id="job_1",
    lease_id="lease_1",
    program="reference",
    seed=SEED,
    size=SIZE,
    rounds=ROUNDS,
    fill_kib=FILL,
    limit_us=1_000,
    at_us=NOON_US,
)
issued = ChallengeIssued(
    challenge_id="chal_1",
    node_id=NODE,
    device_id=GPU_0,
    job_id="job_1",
    lease_id="lease_1",
    program="reference",
    seed=SEED,
    size=SIZE,
    rounds=ROUNDS,
    fill_kib=FILL,
    limit_us=1_000,
    at_us=NOON_US,
)


def judged(rule: str | None, took_us: int | None) -> ChallengeJudged:
    return ChallengeJudged(
        challenge_id="chal_1",
        node_id=NODE,
        device_id=GPU_0,
        program="reference",
        rule=rule,
        took_us=took_us,
        at_us=NOON_US,
    )


def draw() -> int:
    return random.randrange(P)


@pytest.fixture(scope="module")
def answer() -> bytes:
    """What the program prints, run as a node runs it."""
    _, *arguments = command_of(SEED, SIZE, ROUNDS, FILL)
    done = subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    return done.stdout


def check(text: bytes, seed: str = SEED) -> str | None:
    return broken_rule(text, seed, SIZE, ROUNDS, FILL, draw)


def test_the_programs_answer_is_right_for_its_seed_and_no_other(answer: bytes) -> None:
    assert check(answer) is None
    assert check(answer, "00" * 16) == "wrong_product"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_one_wrong_number_of_a_product_is_found(answer: bytes, number: int) -> None:
    lines = answer.splitlines()
    head, _, text = lines[number].rpartition(b" ")
    product = bytearray(bytes.fromhex(text.decode()))
    product[-1] ^= 1
    lines[number] = head + b" " + product.hex().encode()
    assert check(b"\n".join(lines)) == "wrong_product"


def test_other_answers_fail_by_name(answer: bytes) -> None:
    lines = answer.splitlines()
    assert check(b"") == "no_answer"
    assert check(b"\n".join(lines[:-1])) == "no_answer"
    assert check(b"\n".join(lines[1:])) == "malformed"
    assert check(b"\n".join([b"product 0 00ff", *lines[1:]])) == "malformed"
    assert check(b"\n".join([*lines[:-1], b"filled " + b"00" * 32])) == "wrong_fill"


def test_a_challenge_is_issued_and_judged_once() -> None:
    with_active_node.when(issue).then((STREAM, issued))
    asked = with_active_node.given((STREAM, issued))
    asked.when(issue).then_nothing()
    right = JudgeChallenge(challenge_id="chal_1", rule=None, took_us=1_000, at_us=NOON_US)
    asked.when(right).then((STREAM, judged(None, 1_000)))
    asked.given((STREAM, judged(None, 1_000))).when(right).then_nothing()


def test_a_right_answer_that_is_late_fails() -> None:
    asked = with_active_node.given((STREAM, issued))
    late = JudgeChallenge(challenge_id="chal_1", rule=None, took_us=1_001, at_us=NOON_US)
    asked.when(late).then((STREAM, judged("too_late", 1_001)))
    wrong = JudgeChallenge(challenge_id="chal_1", rule="wrong_fill", took_us=5, at_us=NOON_US)
    asked.when(wrong).then((STREAM, judged("wrong_fill", 5)))


def test_nobody_is_asked_for_a_device_that_is_not_there() -> None:
    elsewhere = IssueChallenge(
        **{name: getattr(issue, name) for name in issue.__slots__} | {"node_id": "node_9"}
    )
    with_active_node.when(elsewhere).then_refused(FleetReason.DEVICE_UNKNOWN)
    unknown = JudgeChallenge(challenge_id="chal_9", rule=None, took_us=1, at_us=NOON_US)
    with_active_node.when(unknown).then_refused(TrustReason.JOB_UNKNOWN)


def test_the_worse_the_reputation_the_more_often_a_device_is_asked() -> None:
    assert [count_for(score) for score in (1_000_000, 999_999, 500_000, None, 0)] == [1, 1, 2, 2, 4]


@given(st.binary(min_size=8, max_size=32), st.integers(0, 2**50), st.integers(1, 2**40))
def test_a_turn_falls_into_its_epoch(drawn: bytes, start_us: int, length_us: int) -> None:
    at_us = moment_of(drawn, start_us, start_us + length_us)
    assert start_us <= at_us < start_us + length_us
