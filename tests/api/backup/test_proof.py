"""What a proof of a restored database says, also where no view is to be built."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable

import psycopg
import pytest

from api.backup import proof
from api.backup.archive import Backup
from domain.funds.deposit import ConfirmDeposit
from domain.money import credit
from ledger.books.books import Books
from ledger.log import rebooked, recorder
from ledger.log.handle import Ledger
from ledger.tree import trees
from tests.scenes.running_market import RENTER, START_US, Market

BACKUP = Backup("b", None, 0, 0, 0, "", "", 0, 0, "", "", "tallystick")
SWAP = """
    ALTER TABLE posting DISABLE TRIGGER ALL;
    ALTER TABLE posting DROP CONSTRAINT posting_pkey;
    UPDATE posting SET position = CASE position WHEN {0} THEN {1} ELSE {0} END
    WHERE position IN ({0}, {1})
"""

BEFORE_ALL = b"""
    INSERT INTO posting (position, asset, accounts, units, balances_after)
    SELECT 0, asset, accounts, units, balances_after FROM posting
    WHERE position = (SELECT min(position) FROM posting) AND asset = 'CREDIT'
"""
GONE_AGAIN = b"""
    ALTER TABLE posting DISABLE TRIGGER ALL;
    DELETE FROM posting WHERE position = 0;
    ALTER TABLE posting ENABLE TRIGGER ALL
"""


@pytest.mark.parametrize(
    "apart",
    [
        False,
        pytest.param(
            True,
            marks=pytest.mark.slow(
                "::test_books_that_are_not_those_of_the_facts_are_told_without_views"
            ),
        ),
    ],
)
def test_books_that_are_not_those_of_the_facts_are_told_without_views(
    database: str, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two deposits change places in the books, which balance as before. Of a large log a process of
    its own finds it.
    """
    monkeypatch.setattr(proof, "FACTS_APART", 0 if apart else 10**9)
    with (
        Ledger(database, blinding_key=b"tests/api/backup/test_proof") as ledger,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        market = Market(ledger, connection)
        market.found()
        positions = []
        for number in range(3):
            market.do(
                START_US,
                ConfirmDeposit(
                    deposit_id=f"deposit_{number}",
                    account_id=RENTER,
                    source="cash",
                    amount=credit(7),
                    reference=str(number),
                    confirmed_by="operator",
                    at_us=START_US,
                ),
            )
            positions.append(market.head)
        trees.follow_all(connection)
        assert proof.prove(database, BACKUP, [], with_views=False, workers=2).problems == ()
        connection.execute(BEFORE_ALL)
        planted = proof.prove(database, BACKUP, [], with_views=False, workers=2)
        assert "books: position 0 books CREDIT, its fact does not" in planted.problems
        connection.execute(GONE_AGAIN)
        connection.execute(SWAP.format(*positions[:2]).encode())
        assert ledger.books.faults() == []
        before = proof.booked_between(database, (0, positions[0]))
        after = proof.booked_between(database, (positions[0], market.head))
        told = " ".join(rebooked.joined(connection, [before, after]))
        assert " and then begins with " in told, "at the seam of two ranges"
    # Of a large log the sums of the books take longer than a request may wait.
    monkeypatch.setattr(recorder, "STATEMENT_MS_MAX", 1)
    monkeypatch.setattr(Books, "faults", _slow(Books.faults))
    found = proof.prove(database, BACKUP, [], with_views=False, workers=2)
    assert "otherwise than its fact" in found.problems[0]


@pytest.mark.timeout(120)
def test_a_killed_process_of_a_proof_costs_no_range(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed while it starts, which is before its first range, so none can be booked yet."""
    monkeypatch.setattr(proof, "FACTS_APART", 0)
    with (
        Ledger(database, blinding_key=b"tests/api/backup/test_proof") as ledger,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        market = Market(ledger, connection)
        market.found()
        connection.execute(BEFORE_ALL)
        head = market.head
    with proof._booked(database, head, workers=2) as books:
        while not (children := multiprocessing.active_children()):
            time.sleep(0.01)
        killed = children[0]
        killed.kill()
        assert books() == ["books: position 0 books CREDIT, its fact does not"]
    assert killed.exitcode == -signal.SIGKILL


def _slow(faults: Callable[[Books], list[str]]) -> Callable[[Books], list[str]]:
    def told(books: Books) -> list[str]:
        books._datastore.rows("SELECT pg_sleep(0.1)")
        return faults(books)

    return told
