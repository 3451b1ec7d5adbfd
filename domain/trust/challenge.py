"""Challenges (tier 3): a device that nobody rents is asked to compute something, and is paid.

    issued --judged--> passed | failed       each is judged once, by its answer and its time

A challenge is an ordinary lease of the network's own account: the node takes it, runs its command
and earns by it like by any other. The answer is what the work printed. The command carries the
whole program, so its hash says what ran. When a device is challenged follows from a secret of the
server and its reputation: a good one is asked less. Checking is
`domain/trust/challenge_check.py` (reference) and `challenge_cuda.py` (GPUs of NVIDIA).
Source: design metering 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, assert_never

from domain.fleet.device import device_of
from domain.fleet.reasons import FleetReason
from domain.frozen import replace
from domain.money import PPM
from domain.refusal import Refused
from domain.stream import Change, Stream, World
from domain.trust.reasons import TrustReason

REFERENCE = "reference"
"""Runs on the processor: it shows that a simulated device takes and does work, and of a real GPU
it proves nothing."""
PER_EPOCH_MIN, PER_EPOCH_MAX = 1, 4
PROVISIONAL_PPM = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeIssued:
    """Stream `challenge:{challenge_id}`. The answer is due `limit_us` after `at_us`."""

    challenge_id: str
    node_id: str
    device_id: str
    job_id: str
    lease_id: str
    program: str
    seed: str
    size: int  # of the square matrices; of the program `cuda` its lanes
    rounds: int
    fill_kib: int
    limit_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeJudged:
    """`rule`: what the answer breaks; None: it passed."""

    challenge_id: str
    node_id: str
    device_id: str
    program: str
    rule: str | None
    took_us: int | None
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueChallenge:
    challenge_id: str
    node_id: str
    device_id: str
    job_id: str
    lease_id: str
    program: str
    seed: str
    size: int
    rounds: int
    fill_kib: int
    limit_us: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeChallenge:
    """`rule` is what `domain/trust/challenge_check.py` found; `took_us`: from when it was
    asked, for a node reads the work of a lease before it says that it is ready.
    """

    challenge_id: str
    rule: str | None
    took_us: int | None
    at_us: int


@dataclass(frozen=True, slots=True)
class Challenge:
    issued: ChallengeIssued | None = None
    judged: ChallengeJudged | None = None


ChallengeFact: TypeAlias = ChallengeIssued | ChallengeJudged


def evolve(state: Challenge, fact: ChallengeFact) -> Challenge:
    match fact:
        case ChallengeIssued():
            return Challenge(fact)
        case ChallengeJudged():
            return replace(state, judged=fact)
        case _:
            assert_never(fact)


def count_for(score_ppm: int | None) -> int:
    """How often a device is asked in an epoch: 1 with a perfect reputation, 4 with none left."""
    score = PROVISIONAL_PPM if score_ppm is None else score_ppm
    return PER_EPOCH_MIN + (PER_EPOCH_MAX - PER_EPOCH_MIN) * (PPM - score) // PPM


def moment_of(draw: bytes, start_us: int, end_us: int) -> int:
    """Where in [start, end) a challenge falls; `draw` are 8 bytes that only the server can make."""
    return start_us + (end_us - start_us) * int.from_bytes(draw[:8], "big") // 2**64


def challenge_stream(challenge_id: str) -> Stream[Challenge]:
    return Stream("challenge", challenge_id)


def challenge_of(world: World, challenge_id: str) -> Challenge:
    return world.state(challenge_stream(challenge_id))


def decide_issue(command: IssueChallenge, world: World) -> list[Change]:
    """Raises Refused: DEVICE_UNKNOWN."""
    device = device_of(world, command.device_id)
    if not device.is_live or device.node_id != command.node_id:
        raise Refused(FleetReason.DEVICE_UNKNOWN, device_id=command.device_id)
    if challenge_of(world, command.challenge_id).issued is not None:
        return []
    told = {field.name: getattr(command, field.name) for field in fields(command)}
    return [Change(challenge_stream(command.challenge_id), ChallengeIssued(**told))]


def decide_judge(command: JudgeChallenge, world: World) -> list[Change]:
    """An answer that came too late fails, however right it is. Raises Refused: JOB_UNKNOWN."""
    state = challenge_of(world, command.challenge_id)
    issued = state.issued
    if issued is None:
        raise Refused(TrustReason.JOB_UNKNOWN, challenge_id=command.challenge_id)
    if state.judged is not None:
        return []
    rule = command.rule
    if rule is None and (command.took_us is None or command.took_us > issued.limit_us):
        rule = "too_late"
    judged = ChallengeJudged(
        challenge_id=command.challenge_id,
        node_id=issued.node_id,
        device_id=issued.device_id,
        program=issued.program,
        rule=rule,
        took_us=command.took_us,
        at_us=command.at_us,
    )
    return [Change(challenge_stream(command.challenge_id), judged)]


STREAMS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {"challenge": (Challenge(), evolve)}

DECIDERS: dict[type[Any], Callable[[Any, World], list[Change]]] = {
    IssueChallenge: decide_issue,
    JudgeChallenge: decide_judge,
}
