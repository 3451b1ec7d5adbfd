"""Getting reports to the server exactly once, whatever is lost, repeated or refused on the way.

At least once on the wire, once in the log: the server knows (node, seq), so sending again is safe.
Nothing is sent before the first handshake after a start, because after a restored disk an honest
node would look like a forger. No waiting happens here: `due_us` says when to call again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from node_reporter.clock import Clock
from node_reporter.identity import Rotation
from node_reporter.reports.client import NODE_KEY, Answer, Unreachable, UsageClient
from node_reporter.reports.spool import HistoryDiffers, Spool, Verdict

REPORTS_MAX = 64
BATCH_BYTES_MAX = 700_000
"""Bodies per POST: as base64 in their envelopes they stay below the server's 1 MiB."""
BACKOFF_US_MIN = 1_000_000
BACKOFF_US_MAX = 300_000_000
BAD_SIGNATURES_MAX = 3
KEYS_LEARNED_S = 5
"""So long a process of the server may not know of a key that another process let in."""
FORKS_MAX = 3
PATIENT_FAILURES = 8
"""A node that is not confirmed yet, revoked or in quarantine asks again every few minutes."""
KEY_REFUSALS = ("node_key_mismatch", "node_key_used", "bad_signature")
EXIT_RESTART = 75
EXIT_STOPPED = 78


jitter: Callable[[int, int], int] = random.SystemRandom().randint
"""A whole number between both bounds, so that a fleet does not come back at one instant."""


class Stopped(Exception):
    """Only a person can go on from here: exit 78. The spool keeps everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waiting times with full jitter: a random part of 1 s doubled with each failure, <= 5 min."""

    draw: Callable[[int, int], int]

    def wait_us(self, failures: int, retry_after_s: int | None) -> int:
        """How long to wait after this many failures in a row, at least what the server asked."""
        ceiling_us = min(BACKOFF_US_MAX, BACKOFF_US_MIN << min(max(failures - 1, 0), 20))
        asked_us = (retry_after_s or 0) * 1_000_000
        return min(BACKOFF_US_MAX, asked_us + self.draw(BACKOFF_US_MIN, ceiling_us))


class Delivery:
    """Moves the spool's reports to the server. One POST in flight, in order."""

    def __init__(
        self,
        spool: Spool,
        client: UsageClient,
        clock: Clock,
        tell: Callable[[str], None],
        draw: Callable[[int, int], int] = jitter,
        keep_key: Callable[[str], None] = lambda _key: None,
    ) -> None:
        """`tell` gets one line for the owner; `draw(low, high)` is the source of jitter; `keep_key`
        puts a new bearer key where the next start finds it.
        """
        self._keep_key = keep_key
        self._spool, self._client, self._clock, self._tell = spool, client, clock, tell
        self._backoff = Backoff(draw=draw)
        self._failures = self._bad_signatures = self._forks = 0
        self._batch_max = REPORTS_MAX
        self.shaken = False
        self.answering = False
        self.due_us = 0

    def is_due(self) -> bool:
        """Whether the waiting time after the last failure is over."""
        return self._clock.now().mono_us >= self.due_us

    def handshake(self) -> Verdict | None:
        """Compare heads; None where the server did not answer. Raises Stopped."""
        try:
            untold = self._spool.untold()
            if untold is not None and not self._tell_key(untold):
                return None
            answer = self._client.head()
            if answer.status == 401 and self._spool.rotations():
                # A server that went back knows an earlier key, and the bearer key of then.
                for rotation in self._spool.rotations():
                    self._take_key(rotation, self._client.tell_rotation(rotation))
                answer = self._client.head()
        except Unreachable as error:
            self._failed(None, str(error))
            return None
        if answer.status != 200 or answer.acked_seq is None:
            self._refused(answer)
            return None
        try:
            verdict = self._spool.reconcile(answer.acked_seq, answer.head, self._client.server_us)
        except HistoryDiffers as error:
            raise Stopped(str(error)) from error
        if not self._told_keys(answer.acked_seq):
            return None
        # A head can be read by a node whose reports are refused: failures are forgotten by `send`.
        self.shaken = self.answering = True
        self.due_us = 0
        return verdict

    def _told_keys(self, acked_seq: int) -> bool:
        """Tell of every key that signs reports the server lacks, before it gets them. Who knows the
        newest was told of all, and refuses an earlier one.
        """
        rotations = self._spool.rotations(after_seq=acked_seq)
        try:
            if len(rotations) > 1 and self._knows(rotations[-1]):
                return True
            return all(self._tell_key(rotation) for rotation in rotations)
        except Unreachable as error:
            self._failed(None, str(error))
            return False

    def _knows(self, rotation: Rotation) -> bool:
        """Whether the server has this key now; a refusal means that it lacks the one before."""
        answer = self._client.tell_rotation(rotation)
        if answer.status in (200, 201):
            self._take_key(rotation, answer)
        return answer.status in (200, 201)

    def _tell_key(self, rotation: Rotation) -> bool:
        """Whether the server took it. Raises Stopped, Unreachable."""
        answer = self._client.tell_rotation(rotation)
        if answer.code in KEY_REFUSALS:
            raise Stopped(f"the server refuses this node's new key: {answer.detail}")
        if answer.status not in (200, 201):
            self._refused(answer)
            return False
        self._take_key(rotation, answer)
        return True

    def _take_key(self, rotation: Rotation, answer: Answer) -> None:
        """The bearer key that goes with the new key is on disk before the change counts as told."""
        key = self._spool.unsealed(answer.sealed_key)
        if NODE_KEY.fullmatch(key):
            self._keep_key(key)
            self._client.use(key)
            self._spool.remember_told(rotation)

    def send(self) -> bool:
        """One POST of what waits. True where it was taken and more may wait. Raises Stopped."""
        assert self.shaken, "the handshake comes before the first report"
        waiting = self._spool.unacked(self._batch_max, BATCH_BYTES_MAX)
        if not waiting:
            return False
        try:
            answer = self._client.post(waiting)
        except Unreachable as error:
            self._failed(None, str(error))
            return False
        before = self._spool.acked_seq
        self._take(answer)
        if answer.status == 200:
            self._succeeded()
            self._batch_max = min(REPORTS_MAX, self._batch_max * 2)
            if self._spool.acked_seq > before:
                self._forks = 0
                return True
            self._failed(None, "the server took nothing")
            return False
        return self._refused(answer, len(waiting))

    def _take(self, answer: Answer) -> None:
        """Believe an acknowledgement only where it names our own hash."""
        try:
            if answer.acked_seq is not None and answer.acked_seq >= self._spool.acked_seq:
                self._spool.ack(answer.acked_seq, answer.head, self._client.server_us)
        except HistoryDiffers as error:
            raise Stopped(str(error)) from error
        for receipt in answer.receipts:
            flags, seq = receipt["flags"], receipt["seq"]
            if flags:
                self._spool.flag(seq, str(flags))
                self._tell(f"report {seq} is stored but earns nothing, flags {flags}")

    def _refused(self, answer: Answer, sent: int = 0) -> bool:
        """What each refusal asks for; True where sending again at once makes sense."""
        match answer.status, answer.code:
            case 409, "fork":
                self._forks += 1
                self.shaken = False
                if self._forks >= FORKS_MAX:
                    raise Stopped("the server calls our chain a fork of what it holds")
                self._failed(answer.retry_after_s, "fork")
            case 409, _:
                self.shaken = False
                self._failed(answer.retry_after_s, answer.code or "gap")
            case 413, _ if sent > 1:
                self._batch_max = max(1, sent // 2)
                return True
            case 401, _:
                self._bad_signatures += 1
                if self._bad_signatures >= BAD_SIGNATURES_MAX:
                    raise Stopped(f"the server does not know this key: {answer.detail}")
                wait_s = max(answer.retry_after_s or 0, KEYS_LEARNED_S)
                self._failed(wait_s, f"401 {answer.detail}")
            case ((403 | 404), _):
                self._failures = max(self._failures, PATIENT_FAILURES)
                self._failed(answer.retry_after_s, self._patiently(answer))
            case 422, _:
                raise Stopped(f"two reports under one number were signed: {answer.detail}")
            case ((400 | 413 | 415), _):
                raise Stopped(f"{answer.status} {answer.code}: {answer.detail}")
            case _:
                self._failed(answer.retry_after_s, f"{answer.status} {answer.code}")
        return False

    def _patiently(self, answer: Answer) -> str:
        """Why a person has to do something first. Our bearer key was believed, so a node that is
        unknown to the usage log is one whose key nobody confirmed.
        """
        if answer.code == "node_unknown":
            return (
                "not confirmed yet: compare the fingerprint, then"
                f' `tallystick node confirm {self._spool.node_id} --fingerprint "..."`'
            )
        return f"{answer.code}: {answer.detail}"

    def _failed(self, retry_after_s: int | None, why: str) -> None:
        self._failures += 1
        self.answering = False
        wait_us = self._backoff.wait_us(self._failures, retry_after_s)
        self.due_us = self._clock.now().mono_us + wait_us
        self._tell(f"no delivery ({why}), next try in {wait_us // 1_000_000} s")

    def _succeeded(self) -> None:
        self._failures = self._bad_signatures = 0
        self.answering = True
        self.due_us = 0
