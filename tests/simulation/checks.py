"""What must hold after each step and at the end of a run: P1 to P5 and P9 of the programme."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg

from ledger.log import usage
from projections import tables
from tests.simulation.check_payouts import PayoutChecks
from tests.simulation.lines import OBSERVER
from tests.simulation.node import TICK_US
from tests.simulation.reference import Reference

if TYPE_CHECKING:
    from tests.simulation.run import Run

_NEW = """
    SELECT notification_id, topic, convert_from(state, 'UTF8')::jsonb FROM market_events
    WHERE notification_id > %s ORDER BY notification_id
"""
_UNBALANCED = (
    "SELECT asset, sum(side * units) FROM account GROUP BY asset HAVING sum(side * units) <> 0"
)
_OVERDRAWN = (
    "SELECT name, units FROM account WHERE units < 0 AND name ~ '^(party|escrow|grant|pool):'"
)
VIEWS_DRAWN = 1


class Checks:
    """Asks the database on a connection of its own, which nothing cuts."""

    def __init__(self, address: str, reference: Reference, payouts: PayoutChecks) -> None:
        self.reference, self.payouts = reference, payouts
        self.connection = psycopg.connect(address, autocommit=True, application_name=OBSERVER)
        self.told: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        self.position = 0
        self.held: dict[str, str] = {}
        self.devices: dict[str, tuple[str, ...]] = {}
        self.commands: dict[str, list[int]] = {}

    def close(self) -> None:
        self.connection.close()

    def acknowledged(self, account: str, key: str, status: int, told: dict[str, Any]) -> None:
        """An answer that somebody got; the same one each time."""
        known = self.told.setdefault((account, key), (status, told))
        assert known == (status, told), (key, known, told)

    def after_a_step(self) -> None:
        """P3 and P4, and of P2 that the facts of a command are one append."""
        assert self.connection.execute(_UNBALANCED).fetchall() == []
        assert self.connection.execute(_OVERDRAWN).fetchall() == []
        for position, topic, fact in self.connection.execute(_NEW, (self.position,)).fetchall():
            assert position == self.position + 1, "positions have no gap"
            self.position = position
            self.commands.setdefault(fact["command_id"], []).append(position)
            name = topic.rpartition(".v")[0]
            self._hold(name, fact)
            self.payouts.take(name, position, fact)

    def _hold(self, name: str, fact: dict[str, Any]) -> None:
        """P4: no device is given to a lease while another has it. They are of whole devices."""
        if name == "lease.reserved":
            self.devices[fact["lease_id"]] = tuple(fact["device_ids"])
            for device in fact["device_ids"]:
                assert device not in self.held, f"{device} is leased twice"
                self.held[device] = fact["lease_id"]
        elif name in ("lease.closed", "lease.expired"):
            for device in self.devices.pop(fact["lease_id"], ()):
                del self.held[device]

    # --- at the end --------------------------------------------------------------------------

    def at_the_end(self, run: Run) -> None:
        self.after_a_step()
        self._commands()
        self._reports(run)
        self._leases(run)
        self._balances(run)
        if run.is_paying:
            self.payouts.at_the_end(run)
        self._views(run)

    def _commands(self) -> None:
        """P1 and P2: each answer stands in its row, and the facts of a command are side by side."""
        rows = self.connection.execute("SELECT account, key, status, body, position FROM command")
        stored = {(row[0], row[1]): row[2:] for row in rows}
        for name, (status, told) in self.told.items():
            assert name in stored, f"{name} was answered and is not there"
            found, body, position = stored[name]
            told = {one: value for one, value in told.items() if one in json.loads(body)}
            assert (found, json.loads(body)) == (status, told), name
            assert position <= self.position
        for command, positions in self.commands.items():
            if command.startswith("cmd_"):
                whole = list(range(positions[0], positions[-1] + 1))
                assert positions == whole, f"{command} was recorded twice: {positions}"

    def _reports(self, run: Run) -> None:
        """P2 and P9: what was signed is stored once, byte for byte, and nothing else."""
        node_id = run.node.provider.node_id
        stored = usage.reports_of_node(self.connection, node_id, 0)
        assert [(node_id, one.node_seq) for one in stored] == sorted(self.reference.reports)
        for one in stored:
            assert json.loads(one.signed) == self.reference.reports[node_id, one.node_seq]
            assert one.flags == 0
        assert len(stored) == run.node.reporter.spool.seq
        count = self.connection.execute("SELECT count(*) FROM usage_event").fetchone()
        assert count == (len(stored),)

    def _leases(self, run: Run) -> None:
        """P9 and the bill: what was reported is charged, to the microsecond. Where the node's wall
        clock was set, at most a step of its meter each time is filed where nobody pays for it.
        """
        for lease_id, lease in self.reference.leases.items():
            told = run.read(run.people.payers[lease_id], f"/v1/leases/{lease_id}")
            assert told["state"] == "settled", told
            lease.opened_us, lease.closed_us = (
                _us(told.get("opened_at")),
                _us(told.get("closed_at")),
            )
            run.people.require_moments(lease_id, lease)
            if lease.term_us is not None and lease.opened_us is not None:
                ends_us = lease.opened_us + lease.term_us
                assert _us(told["term_end_at"]) == ends_us, (lease, told)
                assert lease.closed_us is not None
                assert lease.closed_us <= ends_us, (lease, told)
            lease.gpu_us = int(told["gpu_us"])
            reported_us = self.reference.reported_us(lease_id)
            lost_us = run.node.clock_was_set * TICK_US
            assert reported_us - lost_us <= lease.gpu_us <= reported_us, (lease, reported_us)
            assert int(told["charge"]["units"]) == self.reference.charge(lease_id), told
            if lease.opened_us is not None and not run.node.has_lost_time:
                assert lease.closed_us is not None
                whole_us = lease.closed_us - lease.opened_us
                assert whole_us - lost_us <= lease.gpu_us <= whole_us, (lease, whole_us)

    def _balances(self, run: Run) -> None:
        for who in run.people.renters:
            told = run.read(who, f"/v1/accounts/{who.account_id}/balances")
            cash = sum(
                int(one["balance"]["units"]) for one in told["data"] if one["part"] == "cash"
            )
            assert cash == self.reference.cash(who.account_id), told
        owner = run.scene.owner
        told = run.read(owner, f"/v1/accounts/{owner.account_id}/maturity")
        assert int(told["matured"]["units"]) == self.reference.income(owner.account_id), told
        assert told["held_back"]["units"] == told["payable"]["units"] == "0", told

    def _views(self, run: Run) -> None:
        """P5: of some views, other ones in each run."""
        names = [one.name for one in tables.PROJECTIONS]
        drawn = run.rng.sample(names, VIEWS_DRAWN)
        tables.step_all(self.connection, only=drawn)
        for name in drawn:
            assert tables.rebuild(self.connection, tables.BY_NAME[name]).differing == (), name

    def heads(self) -> str:
        """Where both logs end."""
        market = self.connection.execute("SELECT pos, hash FROM market_events_head").fetchall()
        usage = self.connection.execute("SELECT lane, pos, hash FROM usage_head ORDER BY lane")
        return f"{market} {usage.fetchall()}"


def _us(moment: str | None) -> int | None:
    if moment is None:
        return None
    at = datetime.fromisoformat(moment)
    return int(at.timestamp()) * 1_000_000 + at.microsecond
