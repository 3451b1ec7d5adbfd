"""One run: a market is copied, a history is drawn from a seed, and what must hold is looked at.

same seed, same code  =>  same history, byte for byte: `Told.head`
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from api.chain import side
from api.process.clock import SimulatedClock
from contracts import reconcile
from contracts.chain import NodeFailed
from contracts.tally import Tally
from ledger import advisory
from ledger.log import recorder
from ledger.log.handle import LogBusy, OutcomeUnknown
from tests.scenes.server import NOW_US, Caller
from tests.simulation.chain import Network, Way, keys_of
from tests.simulation.check_payouts import PayoutChecks
from tests.simulation.checks import Checks
from tests.simulation.founding import CASH, EMISSION, EPOCHS, Founded
from tests.simulation.lines import ASIDE, DIED, LOCKED_MS, LOST, Cut, Lines, watched
from tests.simulation.node import Node
from tests.simulation.process import Server, address_of
from tests.simulation.reference import Reference
from tests.simulation.reference_epochs import Epochs

ATTEMPTS_MAX = 8
AGAIN = (409, 429, 503)
"""Statuses after which a client asks again, if the problem says that it may."""
FAILS_BY_A_FAULT = (LogBusy, OutcomeUnknown, psycopg.OperationalError, NodeFailed)
"""What a timer may fail by in a round in which a fault struck. Anything else is a finding."""
PROCESS_FAULTS_PPM = 300_000
PAYING_EVERY, PAYING_STEPS = 3, 10
CUT_STATEMENTS = 16
"""Of these first ones of a step, one may be cut."""
ANSWERS_LOST_PPM = 60_000


@dataclass
class Told:
    """How a run went. `head` is the hash of both logs and of all that was answered."""

    seed: int
    head: str = ""
    steps: int = 0
    statements: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)


@dataclass
class Asked:
    """A call that records something, and the moments at which it was tried."""

    who: Caller
    path: str
    body: bytes
    key: str
    then: Callable[[dict[str, Any], Asked], None]
    tried_us: list[int] = field(default_factory=list)


class Run:
    """The people act through `ask`, the node and the timers through `call` and `timers`."""

    def __init__(self, seed: int, founded: Founded, lines: Lines, folder: Path) -> None:
        self.rng = Random(f"tallystick simulation {seed}")
        self.told = Told(seed)
        self.founded, self.scene = founded, founded.scene
        self.clock = SimulatedClock(NOW_US)
        address = address_of(founded.postgres.uri, lines.database)
        self.lines = lines
        self.reference = Reference()
        self.network = Network(founded.chain, self.clock.now_us() // 10**6)
        self.way = Way(self, self.network)
        for account in (self.scene.renter, self.scene.stranger):
            self.reference.deposited[account.account_id] = CASH
        checks = PayoutChecks(Epochs(EMISSION, EPOCHS), self.network)
        self.checks = Checks(address, self.reference, checks)
        self.server = Server(address, folder, self.clock, self.lines)
        self.later: list[Asked] = []
        self.numbers = 0
        self.is_calm = False
        self.is_aside = self.is_paying = False
        self.node = Node(self, self.scene.provider, folder, self.rng.randint(-(10**9), 10**9))

    # --- calls -------------------------------------------------------------------------------

    def ask(
        self,
        who: Caller,
        path: str,
        body: Any,
        then: Callable[[dict[str, Any], Asked], None] = lambda _told, _asked: None,
    ) -> None:
        """Ask for something to be recorded, and again under the same key until there is an answer;
        sometimes a client comes back for it much later.
        """
        self.numbers += 1
        raw = json.dumps({} if body is None else body).encode()
        self.press(Asked(who, path, raw, f"c{self.numbers}", then))

    def press(self, asked: Asked) -> None:
        for _ in range(ATTEMPTS_MAX):
            answer = self._try(asked)
            if answer is not None:
                self._take(asked, answer)
                return
            if self.lines.dead or (not self.is_calm and self.rng.random() < 0.2):
                self.later.append(asked)
                return
        raise AssertionError(f"{asked.path} has no answer after {ATTEMPTS_MAX} attempts")

    def _try(self, asked: Asked) -> Any:
        asked.tried_us.append(self.clock.now_us())
        headers = {**asked.who.headers, "Idempotency-Key": asked.key}
        headers["Content-Type"] = "application/json"
        answer = self.call(asked.path, "POST", asked.path, headers, asked.body)
        if answer is None or answer.status_code < 400:
            return answer
        problem = answer.json()
        return None if answer.status_code in AGAIN and problem["retryable"] else answer

    def _take(self, asked: Asked, answer: Any) -> None:
        told = answer.json()
        if answer.status_code < 400:
            self.checks.acknowledged(asked.who.account_id, asked.key, answer.status_code, told)
            asked.then(told, asked)

    def call(
        self, name: str, method: str, path: str, headers: dict[str, str], body: bytes | None = None
    ) -> Any:
        """One call, with what befalls it; None where no answer came."""
        with self.lines.cutting(self._cut(), self._aside):
            answer = self.server.call(method, path, headers, body)
            struck = self.lines.struck
        status = "-" if answer is None else str(answer.status_code)
        self._note(f"{name} {status} {'' if answer is None else answer.text}", struck)
        self._start_again()
        assert answer is None or answer.status_code != 500, (name, answer.text, struck)
        if not self.is_calm and self.rng.randrange(10**6) < ANSWERS_LOST_PPM:
            self._note(f"{name}: the answer is lost on the way", "answer lost")
            return None
        return answer

    def timers(self, *names: str, statements: int = CUT_STATEMENTS) -> None:
        """A round of timers. One that fails by a fault is run again by whoever comes next. It has
        about so many statements, of which one may be cut.
        """
        with self.lines.cutting(self._cut(statements), self._aside):
            try:
                done = str(self.server.run_timers(*names))
            except FAILS_BY_A_FAULT as error:
                if not self.lines.struck:
                    raise
                done = type(error).__name__
            except advisory.LockHeld as held:
                if not self.is_aside:
                    raise
                done = type(held).__name__
            struck = self.lines.struck
        self._note(f"timers {' '.join(names)}: {done}", struck)
        self._start_again()

    def _start_again(self) -> None:
        """What died stays dead until the step that it was in the middle of has ended, too."""
        if self.lines.dead and not self.is_aside:
            self.server.restart(is_thorough=self.rng.random() < 0.1)

    def read(self, who: Caller, path: str) -> dict[str, Any]:
        """What the API tells, undisturbed."""
        answer = self.server.call("GET", path, who.headers)
        assert answer.status_code == 200, (path, answer.text)
        told: dict[str, Any] = answer.json()
        return told

    # --- what befalls them -------------------------------------------------------------------

    def _cut(self, statements: int = CUT_STATEMENTS) -> Cut | None:
        if self.is_calm or self.rng.randrange(10**6) >= PROCESS_FAULTS_PPM:
            return None
        kind = self.rng.choice((LOST, DIED, ASIDE))
        is_after, of_appends = self.rng.random() < 0.5, self.rng.random() < 0.4
        if kind == ASIDE:
            is_after = False
        at = 1 if of_appends else self.rng.randint(1, statements)
        return Cut(kind, at, is_after, of_appends)

    def _aside(self) -> None:
        """Another step, which another one may interrupt in turn: nothing starts again until the
        first of them has ended.
        """
        before, self.is_aside = self.is_aside, True
        try:
            (self.payouts if self.is_paying else self.people).aside()
        finally:
            self.is_aside = before

    def _note(self, line: str, struck: str) -> None:
        """What happened, without the drawn number by which a refused request is found in a log."""
        line = re.sub(r'"request_id":"[0-9a-f]+",?', "", line)
        self.told.lines.append(f"{self.clock.now_us()} {line}" + (f" [{struck}]" if struck else ""))
        if struck:
            self.told.faults[struck.rstrip("0123456789 ")] += 1

    # --- the run -----------------------------------------------------------------------------

    def play(self, steps: int, paying: int) -> None:
        from tests.simulation.payouts import Payouts
        from tests.simulation.people import People

        self.people, self.payouts = People(self), Payouts(self)
        self._steps(self.people.step, steps)
        self.people.leave()
        if paying:
            self.is_calm, self.is_paying = False, True
            self._steps(self.payouts.step, paying)
        self.people.finish()
        if paying:
            self.payouts.finish()
        self.checks.at_the_end(self)
        lines = "\n".join(self.told.lines)
        self.told.statements = self.lines.statements
        self.told.head = sha256(f"{self.checks.heads()}\n{lines}".encode()).hexdigest()

    def _steps(self, act: Callable[[], None], times: int) -> None:
        for _ in range(times):
            act()
            self.told.steps += 1
            self.checks.after_a_step()
        self.is_calm = True

    def close(self) -> None:
        self.node.reporter.close()
        self.server.stop()
        self.checks.close()
        self.network.close()


def play(seed: int, founded: Founded, *, steps: int = 12, paying: int | None = None) -> Told:
    """One run from its founding to its end. Raises what it finds. Every third seed goes on to
    epochs and payouts, which take about as long as four without: `paying` so many steps.
    """
    if paying is None:
        paying = 0 if seed % PAYING_EVERY else PAYING_STEPS
    with ExitStack() as stack:
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        patched.setattr(recorder, "RECONNECT_SECONDS", 0.0)  # it waits by another clock
        patched.setattr(advisory, "SECONDS_MAX", LOCKED_MS / 1_000)
        # The code of the contracts is the same in all runs; looking takes longer than paying.
        patched.setattr(reconcile, "check_deployment", lambda *_args, **_named: ())
        database, folder = stack.enter_context(founded.copied())
        run = Run(seed, founded, Lines(database, founded.admin), folder)
        stack.callback(run.close)
        tally = Tally(run.way, founded.chain.deployment)
        patched.setattr(side, "_remote", lambda _settings: (tally, keys_of(run.network)))
        stack.enter_context(watched(run.lines))
        try:
            run.play(steps, paying)
        except BaseException as error:
            error.add_note(f"seed {seed}; the last steps:\n" + "\n".join(run.told.lines[-12:]))
            raise
        return run.told
