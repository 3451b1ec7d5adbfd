"""What must hold after a kill, whatever was killed: asked of the database, by the receipts that the
clients have.
"""

from __future__ import annotations

from typing import Any

import psycopg

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
from tests.e2e.stand import LEASE_SHARE_PPM, Stand
from tests.scenes.running_market import CASH_UNITS, OPERATOR, PRICE, RENTER

Connection = psycopg.Connection[Any]


def check(stand: Stand, load: Load, *, with_payouts: bool = True) -> None:
    """All of it; payouts where a payer was at work."""
    key = b"only reads in this test"
    with (
        Ledger(stand.uri, blinding_key=key, connections_max=2) as ledger,
        psycopg.connect(stand.uri, autocommit=True) as connection,
    ):
        check_reports(stand, load, connection)
        check_leases_of_the_group(stand, load, ledger)
        check_commands(load, ledger, connection)
        if with_payouts:
            check_payouts(stand, ledger, connection)
        check_chains(connection)
        assert ledger.books.faults() == []
        check_views(connection)


def check_reports(stand: Stand, load: Load, connection: Connection) -> None:
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


def check_leases_of_the_group(stand: Stand, load: Load, ledger: Ledger) -> None:
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


def check_commands(load: Load, ledger: Ledger, connection: Connection) -> None:
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
    check_money_in(connection, ledger)
    assert deposited > 0


def check_money_in(connection: Connection, ledger: Ledger) -> None:
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


def check_payouts(stand: Stand, ledger: Ledger, connection: Connection) -> None:
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


def check_chains(connection: Connection) -> None:
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


def check_views(connection: Connection) -> None:
    """What the followers kept up under fire is what a rebuild gives."""
    tables.step_all(connection)
    for projection in tables.PROJECTIONS:
        assert tables.rebuild(connection, projection).differing == (), projection.name
