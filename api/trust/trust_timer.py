"""The timer of trust: keys and devices that are on two machines, challenges asked and judged.

Harmless to repeat: a pair of nodes is recorded once, a challenge has an id that follows from its
device, epoch and turn, and is judged once.
"""

from __future__ import annotations

import logging
import secrets
from typing import Any

from api.process import secret_files
from api.process.service import Service
from domain.duration import DAY_US
from domain.fleet.key_rotation import RecordAlternatingBoots
from domain.hardware.known_gpus import board_of
from domain.jobs.job import SubmitJob
from domain.lease.choice import Candidate
from domain.lease.lease import Lease, RequestLease, lease_stream
from domain.lease.looked import Looked
from domain.leasing.taking import Place, reserving
from domain.market.matching import Match
from domain.money import PPM, credit
from domain.record import dataclass
from domain.refusal import Refused
from domain.trust import challenge, challenge_check, challenge_cuda
from domain.trust.challenge import (
    REFERENCE,
    ChallengeIssued,
    IssueChallenge,
    JudgeChallenge,
    challenge_stream,
)
from domain.trust.challenge_cuda import CUDA
from domain.trust.record import RecordDeviceTwice
from domain.trust.tiers import is_fake_driver
from ledger.beside import lease_logs
from ledger.log.handle import LOG_AWAY
from projections import tables
from projections.runner import Connection
from projections.trust import evidence as trust
from projections.trust import scores

logger = logging.getLogger(__name__)

PAIRS_MAX = 100
SEEN_US = 2 * 86_400_000_000
"""Reports recorded within this are looked at again: a run that was away for longer misses none of
what the view tells, only the fact."""
DEVICES_MAX = 50
"""Challenges issued in one run."""
OPEN_MAX = 200
SIZE, ROUNDS, FILL_KIB = 24, 4, 4_096
LIMIT_US = 120_000_000
"""To hear of the challenge, and to answer it. A node could read it before it opens the lease."""
TERM_US = LIMIT_US
"""An answer after it is worth nothing, so nobody is paid for longer."""
RULE = "challenge/1"

_FREE = """
    SELECT d.device_id, d.node_id, o.offer_id, o.price_units,
        (SELECT count(*) FROM proj_trust.challenge c WHERE c.device_id = d.device_id
            AND c.at_us >= %(from)s AND c.at_us < %(to)s)::int AS asked,
        i.told->>'pci_id' AS pci_id, i.told->>'driver' AS driver
    FROM proj_fleet.device d JOIN proj_fleet.node n USING (node_id)
    LEFT JOIN proj_trust.identity i USING (node_id, device_id)
    JOIN LATERAL (
        SELECT offer_id, price_units FROM proj_fleet.offer o
        WHERE o.node_id = n.node_id AND o.withdrawn_at_us IS NULL AND price_units <= %(most)s
        ORDER BY price_units, offer_id LIMIT 1) o ON true
    WHERE NOT d.retired AND d.share_free = 1000000 AND d.mem_free = 1000000
        AND n.phase = 'active' AND NOT n.quarantined AND n.sellable AND d.kind = 'gpu'
    ORDER BY d.device_id
"""
_OPEN = """
    SELECT challenge_id, lease_id FROM proj_trust.challenge WHERE judged_at_us IS NULL
    ORDER BY position LIMIT %s
"""


class ChallengesStopped(Exception):
    """Some challenges could not be judged or asked; the others were."""


def run_trust(service: Service, connection: Connection, now_us: int) -> int:
    """Pairs, answers, then new challenges where an account pays for them."""
    tables.step_all(connection, only=("fleet", "trust", "reputation"))
    done = record_alternations(service, connection, now_us)
    done += record_pairs(service, connection, now_us)
    done += judge_answers(service, connection, now_us)
    if service.settings.challenge_account is not None:
        done += issue_due(service, connection, now_us)
    return done


def record_alternations(service: Service, connection: Connection, now_us: int) -> int:
    """Quarantine for each key that two machines use by turns, as after a disk was cloned."""
    done = 0
    for found in trust.read_alternations(connection, now_us - SEEN_US, PAIRS_MAX):
        command = RecordAlternatingBoots(
            node_id=found.node_id,
            lane=found.lane,
            first_boot=found.first_boot,
            second_boot=found.second_boot,
            first_seq=found.first_seq,
            second_seq=found.second_seq,
            at_us=now_us,
        )
        done += len(service.ledger.handle(command, key=None, now_us=now_us).changes)
    if done:
        service.keys_changed()
    return done


def record_pairs(service: Service, connection: Connection, now_us: int) -> int:
    """One fact for each pair of nodes that metered one device at once."""
    done = 0
    for pair in trust.read_pairs(connection, now_us - SEEN_US, PAIRS_MAX):
        command = RecordDeviceTwice(
            device_id=pair.device_id,
            first_node_id=pair.first_node_id,
            first_lane=pair.first_lane,
            first_position=pair.first_position,
            second_node_id=pair.second_node_id,
            second_lane=pair.second_lane,
            second_position=pair.second_position,
            seen_us=pair.seen_us,
            at_us=now_us,
        )
        done += len(service.ledger.handle(command, key=None, now_us=now_us).changes)
    return done


# --- challenges ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Free:
    """A whole device that nobody holds, with the cheapest offer of its node."""

    device_id: str
    node_id: str
    offer_id: str
    price: int
    asked: int
    pci_id: str | None
    driver: str | None


def issue_due(service: Service, connection: Connection, now_us: int) -> int:
    """Ask every free device whose turn in this epoch has come. Nobody but the server can tell when
    that is: its moments follow from the server's key.
    """
    span = trust.read_span(connection, None)
    if span is None or span.epoch is None or not span.from_us <= now_us < span.to_us:
        return 0
    done = 0
    most = service.settings.challenge_price_max
    found = connection.execute(_FREE, {"from": span.from_us, "to": span.to_us, "most": most})
    asked_most = challenge.PER_EPOCH_MAX
    likely = [
        free
        for free in (Free(*row) for row in found.fetchall())
        if _is_due(service, free, span, now_us, asked_most)
    ]
    nodes = sorted({free.node_id for free in likely})
    known = scores.read_known(connection, nodes, now_us // DAY_US)
    for free in likely:
        if done >= DEVICES_MAX:
            break
        turns = challenge.count_for(known.get(free.node_id))
        if not _is_due(service, free, span, now_us, turns):
            continue
        try:
            service.ledger.handle(
                _asking(service, free, span.epoch, now_us), key=None, now_us=now_us
            )
        except Refused as refused:
            # No money, or the device was just taken: its turn comes again.
            logger.info("no challenge for %s: %s", free.device_id, refused)
        else:
            done += 1
    return done


def _is_due(service: Service, free: Free, span: trust.Span, now_us: int, count: int) -> bool:
    """Whether its next of so many turns has come; more turns come no later."""
    moments = sorted(
        challenge.moment_of(
            _derived(service, "challenge-moment/v1", span.epoch, free.device_id, turn),
            span.from_us,
            span.to_us,
        )
        for turn in range(count)
    )
    return free.asked < len(moments) and moments[free.asked] <= now_us


def _derived(service: Service, purpose: str, *parts: object) -> bytes:
    return secret_files.derive(service.server_key, purpose, *map(str, parts))


def _asking(service: Service, free: Free, epoch: int, now_us: int) -> list[Any]:
    """The challenge, its job, and the lease that carries it, in one append."""
    account_id = service.settings.challenge_account
    assert account_id is not None
    name = _derived(service, "challenge/v1", epoch, free.device_id, free.asked).hex()
    challenge_id, job_id, lease_id = f"chal_{name[:32]}", f"job_{name[:32]}", f"lease_{name[:32]}"
    seed = name[32:64]
    price = credit(free.price)
    work = _work(service, free, challenge_id, seed)
    return [
        SubmitJob(
            job_id=job_id,
            account_id=account_id,
            client_id="direct",
            project_id="challenges",
            end_user_ref="",
            kind="batch",
            image=None,
            command=work.command,
            env_refs=(),
            gpu_count=1,
            share_ppm=PPM,
            mem_ppm=PPM,
            models=(),
            max_price_per_gpu_hour=price,
            at_us=now_us,
        ),
        RequestLease(
            lease_id=lease_id,
            job_id=job_id,
            account_id=account_id,
            term_us=TERM_US,
            funds=None,
            at_us=now_us,
        ),
        reserving(lease_id, _place(free, service.ledger.market.head()[0]), now_us),
        IssueChallenge(
            challenge_id=challenge_id,
            node_id=free.node_id,
            device_id=free.device_id,
            job_id=job_id,
            lease_id=lease_id,
            program=work.program,
            seed=seed,
            size=work.size,
            rounds=work.rounds,
            fill_kib=work.fill_kib,
            limit_us=LIMIT_US,
            at_us=now_us,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Work:
    """What a device is asked to compute."""

    program: str
    size: int
    rounds: int
    fill_kib: int
    command: tuple[str, ...]


def _work(service: Service, free: Free, challenge_id: str, seed: str) -> Work:
    """A board that a program is written for is asked that; every other device the reference."""
    board = None if is_fake_driver(free.driver) else board_of(free.pci_id)
    if board is None or not board.multiply_adds_per_s:
        command = challenge_check.command_of(seed, SIZE, ROUNDS, FILL_KIB)
        return Work(REFERENCE, SIZE, ROUNDS, FILL_KIB, command)
    lanes, rounds = challenge_cuda.LANES, challenge_cuda.rounds_for(board)
    p, q = _primes(service, challenge_id)
    command = challenge_cuda.command_of(free.device_id, seed, p * q, lanes, rounds)
    return Work(CUDA, lanes, rounds, 0, command)


def _primes(service: Service, challenge_id: str) -> tuple[int, int]:
    """They are kept nowhere: the server finds them again when it judges."""
    return challenge_cuda.primes_of(_derived(service, "challenge-primes/v1", challenge_id))


def _place(free: Free, position: int) -> Place:
    """The device that is asked. The network asks whatever renters a provider wants."""
    candidate = Candidate(free.node_id, free.offer_id, free.price, 0, 0)
    match = Match(free.node_id, free.offer_id, (free.device_id,), (candidate,), 1)
    return Place(match=match, rule=RULE, looked=Looked(renter_ppm=PPM), position=position)


def judge_answers(service: Service, connection: Connection, now_us: int) -> int:
    """Judge every challenge whose lease is over, by what its work printed."""
    done, stopped = 0, []
    for challenge_id, lease_id in connection.execute(_OPEN, (OPEN_MAX,)).fetchall():
        lease = service.ledger.market.state_of(lease_stream(lease_id))
        if lease.closed is None and not lease.is_over:
            continue
        try:
            command = _judgement(service, connection, challenge_id, lease, now_us)
            done += len(service.ledger.handle(command, key=None, now_us=now_us).changes)
        except LOG_AWAY:
            raise
        except Exception:
            logger.exception("challenge %s stops", challenge_id)
            stopped.append(challenge_id)
    if stopped:
        raise ChallengesStopped(f"{len(stopped)} challenges stop, the first is {stopped[0]}")
    return done


def _judgement(
    service: Service, connection: Connection, challenge_id: str, lease: Lease, now_us: int
) -> JudgeChallenge:
    issued = service.ledger.market.state_of(challenge_stream(challenge_id)).issued
    assert issued is not None, challenge_id
    rule: str | None = "not_started"
    took_us = None
    if lease.opened is not None:
        ended = lease.work.ended
        until_us = lease.closed.closed_at_us if lease.closed is not None else now_us
        took_us = (until_us if ended is None else ended.at_us) - issued.at_us
        rule = _broken_rule(service, issued, _printed(connection, issued.lease_id))
    return JudgeChallenge(challenge_id=challenge_id, rule=rule, took_us=took_us, at_us=now_us)


def _broken_rule(service: Service, issued: ChallengeIssued, answer: bytes) -> str | None:
    def draw() -> int:
        return secrets.randbelow(challenge_check.P)

    if issued.program == CUDA:
        return challenge_cuda.broken_rule(
            answer,
            issued.device_id,
            issued.seed,
            _primes(service, issued.challenge_id),
            issued.size,
            issued.rounds,
            draw,
        )
    return challenge_check.broken_rule(
        answer, issued.seed, issued.size, issued.rounds, issued.fill_kib, draw
    )


def _printed(connection: Connection, lease_id: str) -> bytes:
    limit = lease_logs.LEASE_CHUNKS_MAX
    return b"".join(
        chunk.body
        for chunk in lease_logs.read(connection, lease_id, 0, limit)
        if chunk.stream == "stdout"
    )
