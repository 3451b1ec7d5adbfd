"""kill -9 of the server, of the jobs and of PostgreSQL, at random points under load.

    acknowledged  =>  there, exactly once          reports, leases, deposits, payouts
    sent and not acknowledged  =>  sent again, and there exactly once in the end
    the chains verify, the books balance, views equal a rebuild, every lease comes to its time

Nothing is mocked: real processes, real signals, a durable PostgreSQL, HTTP between them. A failure
names the seed; `TALLYSTICK_TEST_SEED=<seed>` plays the same choices again.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from api.process.embedded_postgres import EmbeddedPostgres
from domain.gpu_time import charge_for
from domain.lease.lease import Lease
from domain.stream import Stream
from ledger.log import usage
from ledger.log.chain import GENESIS_MARKET, chain, market_leaf
from ledger.log.handle import CommandKey, Ledger
from projections import tables
from tests.e2e import stand as stands
from tests.e2e.load import Load
from tests.e2e.payer import ACCOUNT
from tests.e2e.stand import LEASE_SHARE_PPM, TERMS_US, Stand
from tests.scenes.running_market import CASH_UNITS, OPERATOR, PRICE, RENTER

SEED = "TALLYSTICK_TEST_SEED"
TARGETS = ("server", "jobs", "postgres")
GROUPS = ("each", *TARGETS)
ACKNOWLEDGED_MAX = 40
"""At most so many answers between a start and the next kill."""

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def stand() -> Generator[Stand, None, None]:
    """One installation for all tests here: what the first left must survive the others too."""
    with tempfile.TemporaryDirectory(prefix="tally") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL does not run as root
        with EmbeddedPostgres(folder) as postgres:
            made = stands.build(folder, postgres, GROUPS)
            try:
                for process in ("server", "jobs", "payer"):
                    made.start(process)
                for process in ("server", "jobs", "payer"):
                    made.await_up(process)
                yield made
            finally:
                made.stop()


def test_a_kill_of_each_loses_nothing_that_was_acknowledged(stand: Stand) -> None:
    _kill_and_check(stand, "each", TARGETS)


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("target", TARGETS)
def test_twenty_kills_lose_nothing_that_was_acknowledged(stand: Stand, target: str) -> None:
    _kill_and_check(stand, target, (target,) * 20)


def _kill_and_check(stand: Stand, group: str, killed: Sequence[str]) -> None:
    seed = int(os.environ.get(SEED) or secrets.randbits(32))
    try:
        random = Random(seed)
        step_us = sum(TERMS_US) // (4 * 20 * len(killed))  # leases end while the killing goes on
        with Load(stand, group, step_us, random) as load:
            for target in killed:
                _kill_once(stand, load, target, random)
            assert load.journal.wait_for_more(20), "nothing more was acknowledged"
            assert stand.payouts.wait_for_more(3), "no more payouts"
        load.check()
        load.finish_reports()
        load.ask_again()
        _check(stand, load)
    except BaseException as error:
        error.add_note(f"{SEED}={seed}, killed: {', '.join(killed)}")
        raise


def _kill_once(stand: Stand, load: Load, target: str, random: Random) -> None:
    """Kill after a random number of answers, at a random moment of the next one."""
    assert load.journal.wait_for_more(random.randrange(1, ACKNOWLEDGED_MAX)), "nothing happens"
    load.check()
    load.stopping.wait(random.random() * (1.0 if target == "jobs" else 0.05))
    killed = ("jobs", "payer") if target == "jobs" else (target,)
    for name in killed:
        stand.kill(name)
    for name in killed:
        stand.restart(name)
    if target != "postgres":
        for name in killed:
            stand.await_up(name)


# --- what must hold ---------------------------------------------------------------------------


def _check(stand: Stand, load: Load) -> None:
    key = b"only reads in this test"
    with (
        Ledger(stand.uri, blinding_key=key, connections_max=2) as ledger,
        psycopg.connect(stand.uri, autocommit=True) as connection,
    ):
        _check_reports(stand, load, connection)
        _check_leases_of_the_group(stand, load, ledger)
        _check_commands(load, ledger, connection)
        _check_payouts(stand, ledger, connection)
        _check_chains(connection)
        assert ledger.books.faults() == []
        _check_views(connection)


def _check_reports(stand: Stand, load: Load, connection: Connection) -> None:
    """Every report sent is there once, byte for byte, where its receipt says."""
    receipts = load.journal.items()
    for name in load.nodes:
        node = stand.nodes[name].node
        rows = connection.execute(
            "SELECT node_seq, lane, position, encode(chain, 'hex'), flags FROM usage_event"
            " WHERE node_id = %s ORDER BY position",
            (node.id,),
        ).fetchall()
        assert [row[0] for row in rows] == list(range(1, node.seq + 1))
        for seq, lane, position, link, flags in rows:
            receipt = receipts.get(f"{node.id}/{seq}")
            if receipt is not None:  # else it was sent by an earlier test, and checked there
                told = (receipt["seq"], receipt["lane"], receipt["position"], receipt["lane_hash"])
                assert told == (seq, lane, position, link)
                assert receipt["flags"] == flags == 0
        (last,) = usage.reports_of_node(connection, node.id, node.seq - 1)
        assert last.node_seq == node.seq


def _check_leases_of_the_group(stand: Stand, load: Load, ledger: Ledger) -> None:
    """Metered time is the term, to the microsecond, and is charged once."""
    leases = stand.groups[load.group]

    def state(lease_id: str) -> Lease:
        found = ledger.market.load(Stream("lease", lease_id)).state
        assert isinstance(found, Lease)
        return found

    def all_settled() -> bool:
        return all(state(lease.lease_id).status == "settled" for lease in leases)

    stand.wait(all_settled, "leases do not settle")
    for lease in leases:
        gpu_us = lease.term_us * LEASE_SHARE_PPM // 10**6
        found = state(lease.lease_id)
        assert (found.gpu_us, found.charge_units) == (gpu_us, charge_for(gpu_us, PRICE))
        assert ledger.books.balances(f"escrow:{lease.lease_id}:") == {
            f"escrow:{lease.lease_id}:1:cash": 0
        }


_FACTS_OF_COMMANDS = """
    SELECT topic, convert_from(state, 'UTF8')::jsonb ->> 'command_id', count(*)
    FROM market_events WHERE topic = ANY(%s) GROUP BY 1, 2
"""
_DEPOSIT = "deposit.confirmed.v1"
_FACT_OF = {"open": "lease.reserved.v1", "ready": "lease.opened.v1", "close": "lease.closed.v1"}


def _check_commands(load: Load, ledger: Ledger, connection: Connection) -> None:
    """Every command has its one row and its one fact; money that came in is there once."""
    acknowledged = {
        name: told for name, told in load.journal.items().items() if name.startswith("acct_")
    }
    assert acknowledged
    leases, deposited = set(), 0
    found = connection.execute(_FACTS_OF_COMMANDS, ([*_FACT_OF.values(), _DEPOSIT],))
    counted = {(topic, command): count for topic, command, count in found}
    for name, told in acknowledged.items():
        account, _, key = name.partition("/")
        command = CommandKey(account, key)
        stored = ledger.stored(command)
        assert stored is not None, name
        assert stored.position == told["position"], name
        verb = key.rpartition("-")[2]
        topic = _FACT_OF.get(verb, _DEPOSIT)
        assert counted.get((topic, command.command_id)) == 1, f"{name}: {topic}"
        if verb == "open":
            assert told["lease_id"] not in leases, "one lease for two requests"
            leases.add(told["lease_id"])
        if account == OPERATOR:
            deposited += int(told["amount"]["units"])
    _check_money_in(connection, ledger)
    assert deposited > 0


def _check_money_in(connection: Connection, ledger: Ledger) -> None:
    """What the bank gave is what the facts say, and what the renter has or spent."""
    (confirmed,) = connection.execute(
        "SELECT sum((convert_from(state, 'UTF8')::jsonb #>> '{amount,units}')::numeric)"
        " FROM market_events WHERE topic = 'deposit.confirmed.v1'"
    ).fetchone() or (0,)
    assert ledger.books.balance("world:bank") == confirmed >= CASH_UNITS
    held = sum(ledger.books.balances("escrow:").values())
    earned = sum(ledger.books.balances("network:revenue:").values())
    earned += sum(ledger.books.balances("party:acct_owner:").values())
    assert ledger.books.balance(f"party:{RENTER}:cash") + held + earned == confirmed


def _check_payouts(stand: Stand, ledger: Ledger, connection: Connection) -> None:
    """Claims are dense from 1, each once, and the books paid out exactly that."""
    acknowledged = [int(number) for number in stand.payouts.items().values()]
    rows = connection.execute(
        "SELECT (convert_from(state, 'UTF8')::jsonb #>> '{cumulative,units}')::bigint,"
        " notification_id FROM market_events WHERE topic = 'payout.confirmed.v1' ORDER BY 2"
    ).fetchall()
    claims = [row[0] for row in rows]
    assert claims == list(range(1, len(claims) + 1))
    assert set(acknowledged) <= set(claims)
    last = rows[-1][1]
    treasury = stands.EMISSION // 10
    assert ledger.books.balance_at(f"party:{ACCOUNT}:matured", last) == treasury - len(claims)
    assert ledger.books.balance_at("chain:distributor", last) == stands.EMISSION - len(claims)


def _check_chains(connection: Connection) -> None:
    """Positions without gaps, every leaf and link computed again from the stored bytes."""
    before = GENESIS_MARKET
    rows = connection.cursor(binary=True).execute(
        "SELECT notification_id, originator_id, originator_version, topic, state, leaf, chain"
        " FROM market_events ORDER BY notification_id"
    )
    for due, (position, stream, version, name, body, stored_leaf, link) in enumerate(rows, 1):
        leaf = market_leaf(stream, version, name, body)
        before = chain(before, leaf)
        assert (position, stored_leaf, link) == (due, leaf, before)
    stored = connection.execute("SELECT count(*) FROM usage_event").fetchone()
    assert stored == (usage.verify(connection, range(64)),)


def _check_views(connection: Connection) -> None:
    """What the followers kept up under fire is what a rebuild gives."""
    tables.step_all(connection)
    for projection in tables.PROJECTIONS:
        assert tables.rebuild(connection, projection).differing == (), projection.name
