"""Who acts in a run: renters, the owner of a node, the operator, the node itself, and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.scenes.server import Caller
from tests.simulation.node import FAULTS
from tests.simulation.reference import Lease

if TYPE_CHECKING:
    from tests.simulation.run import Asked, Run

SECOND_US = 1_000_000
MINUTE_US = 60_000_000
DAY_US = 86_400_000_000
MONEY = ("maturity", "sweep", "cash_out")
ROUNDS = (("accrual",), ("lease_watch",), ("pin", "tree"), MONEY, ("epochs",))


def credit(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


class People:
    """Each step is drawn among what can be done now."""

    def __init__(self, run: Run) -> None:
        self.run, self.rng, self.scene = run, run.rng, run.scene
        self.renters = (self.scene.renter, self.scene.stranger)
        self.payers: dict[str, Caller] = {}
        node = self.scene.provider.node
        node.account_id = self.scene.provider.node_id
        self.moments: dict[str, dict[str, list[int]]] = {}
        """Of each lease: when somebody tried to begin it, and to end it."""
        self.reserved: list[str] = []
        self.running: list[str] = []

    # --- a step ------------------------------------------------------------------------------

    def step(self) -> None:
        can = [self.open, self.pass_time, self.pass_time, self.work, self.trouble]
        can += [self.ready] * 3 if self.reserved else []
        can += [self.close, self.top_up, self.report] if self.running else []
        can += [self.extend] * 3 if self._with_term() else []
        can += [self.come_back] * 2 if self.run.later else []
        self.rng.choice(can)()

    def aside(self) -> None:
        """What somebody else does between two statements of a step."""
        can = [self.work, self.open]
        can += [self.close, self.top_up] if self.running else []
        can += [self.extend] if self._with_term() else []
        can += [self.ready] if self.reserved else []
        self.rng.choice(can)()

    def open(self) -> None:
        who = self.rng.choice(self.renters)
        body: dict[str, Any] = {"job": self.scene.job()}
        term_us: int | None = None
        match self.rng.randrange(3):
            case 0:
                body["term_seconds"] = self.rng.randint(60, 3_600)
                term_us = body["term_seconds"] * SECOND_US
            case 1:
                body["funds"] = credit(self.rng.randint(2_000_000, 4_000_000))
            case _:
                pass

        def opened(told: dict[str, Any], _asked: Asked) -> None:
            lease_id = told["lease_id"]
            assert lease_id not in self.payers, "one lease for two requests"
            self.payers[lease_id] = who
            provider = self.scene.provider
            is_alpha = told["node_id"] == provider.node_id
            earner = self.scene.owner if is_alpha else self.scene.rival
            price = 2_000_000 if is_alpha else 3_000_000
            devices = tuple(told["device_ids"])
            self.run.reference.leases[lease_id] = Lease(
                who.account_id, earner.account_id, devices, price, term_us=term_us
            )
            if is_alpha:
                self.reserved.append(lease_id)

        self.run.ask(who, "/v1/leases", body, opened)

    def ready(self) -> None:
        lease_id = self.rng.choice(self.reserved)
        self.reserved.remove(lease_id)
        node_id = self.scene.provider.node_id
        path = f"/v1/nodes/{node_id}/assignments/{lease_id}/ready"

        def is_ready(_told: dict[str, Any], asked: Asked) -> None:
            self.running.append(lease_id)
            self.moments.setdefault(lease_id, {})["opened"] = asked.tried_us

        self.run.ask(self.scene.provider.node, path, None, is_ready)

    def close(self) -> None:
        lease_id = self.rng.choice(self.running)
        self.running.remove(lease_id)

        def is_closed(_told: dict[str, Any], asked: Asked) -> None:
            self.moments.setdefault(lease_id, {})["closed"] = asked.tried_us

        self.run.ask(self.payers[lease_id], f"/v1/leases/{lease_id}/close", None, is_closed)

    def require_moments(self, lease_id: str, lease: Lease) -> None:
        """A lease begins at a moment at which its node said so, and ends when its renter did, or a
        timer before: the end of its funds or its term, or of the patience with a silent node.
        """
        tried = self.moments.get(lease_id, {})
        if lease.opened_us is not None:
            assert lease.opened_us in tried["opened"], (lease, tried)
        if lease.closed_us is not None and "closed" in tried:
            assert lease.closed_us <= max(tried["closed"]), (lease, tried)

    def top_up(self) -> None:
        lease_id = self.rng.choice(self.running)
        amount = {"amount": credit(self.rng.randint(1, 500_000))}
        self.run.ask(self.payers[lease_id], f"/v1/leases/{lease_id}/top-up", amount)

    def _with_term(self) -> list[str]:
        return [one for one in self.running if self.run.reference.leases[one].term_us is not None]

    def extend(self) -> None:
        """Longer than it is, once for each time that it was asked and not refused."""
        lease_id = self.rng.choice(self._with_term())
        seconds = self.rng.randint(1, 1_800)

        def extended(_told: dict[str, Any], _asked: Asked) -> None:
            lease = self.run.reference.leases[lease_id]
            assert lease.term_us is not None
            lease.term_us += seconds * SECOND_US

        path = f"/v1/leases/{lease_id}/extend"
        self.run.ask(self.payers[lease_id], path, {"seconds": seconds}, extended)

    def come_back(self) -> None:
        self.run.press(self.run.later.pop(self.rng.randrange(len(self.run.later))))

    # --- the node and time -------------------------------------------------------------------

    def pass_time(self) -> None:
        is_set = self.rng.random() < 0.1
        step_us = self.rng.randint(-(10**7), 10**7) if is_set else 0
        self.run.node.pass_time(self.rng.randint(10**6, 8 * MINUTE_US), wall_step_us=step_us)

    def report(self) -> None:
        self.run.node.reporter.flush()

    def trouble(self) -> None:
        node = self.run.node
        match self.rng.randrange(6):
            case 0:
                node.crash()
                self.note("node crash")
            case 1:
                is_full = self.rng.random() < 0.7
                node.fill_disk(is_full=is_full)
                node.has_lost_time = True  # beyond ten minutes the steps in memory are given up
                self.note("disk full" if is_full else "disk has room")
            case 2:
                node.wire.down = not node.wire.down
                node.has_lost_time = True  # rows wait three minutes for the leases to be told
                self.note("wire down" if node.wire.down else "wire up")
            case 3:
                if not self.run.is_aside:
                    self.run.server.restart()
                    self.note("server killed while idle")
            case _:
                node.wire.faults = [self.rng.choice(FAULTS) for _ in range(self.rng.randint(1, 3))]
                self.note("wire " + " ".join(node.wire.faults))

    def note(self, what: str) -> None:
        self.run._note(what, "")
        self.run.told.faults[what] += 1

    def work(self) -> None:
        self.run.timers(*self.rng.choice(ROUNDS))

    # --- the end -----------------------------------------------------------------------------

    def leave(self) -> None:
        """Everybody comes back for answers, leases end, reports arrive."""
        run = self.run
        while run.later:
            self.come_back()
        while self.running:
            self.close()
        run.node.finish()

    def finish(self) -> None:
        """What could still be proven is too late, and money goes its way."""
        run = self.run
        while run.later:
            self.come_back()
        run.clock.advance(DAY_US + MINUTE_US)
        run.timers("lease_watch", "accrual")
        run.clock.advance(3 * DAY_US)
        run.timers(*MONEY)
