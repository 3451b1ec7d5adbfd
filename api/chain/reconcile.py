"""Chain against ledger: the ledger's own totals, and every way in which the two differ, by name.

    effects of the chain up to final block b == effects in the market log
    what the burns still have to cover == network:burn_due          at the position of the view

The ledger's side of what the chain tells comes from facts and books, never from a projection; the
view that says what is to be burned is itself held against the books. The leaves of the accepted
root are computed again from the facts. The comparison is `contracts/reconcile.py`. Nothing is
repaired here: any difference stops proposals until a person has looked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg

from api.chain.payout_leaves import Leaves, leaves_of, rows_of
from api.chain.stores import ScannerStore
from api.epochs import closing as settlement
from contracts.deployment import Difference
from contracts.payout_tree import StandardTree, payout_tree
from contracts.reconcile import LedgerTotals, SealedEpoch, read_chain
from contracts.reconcile import reconcile as compare
from contracts.tally import TOKEN_UNIT, Tally
from domain.chain import payout_root as payouts
from domain.duration import SECOND_US
from domain.epochs.policy import NETWORK
from ledger.log.handle import Ledger
from projections import tables
from projections.epochs.burning import read_burn_open

Connection = psycopg.Connection[Any]


def settled_block(tally: Tally, scanned: ScannerStore) -> int:
    """The last final block that was read; -1 before the first.

    When no effect waits up to it, the market log holds exactly the effects up to it.
    """
    cursor = scanned.cursor()
    return -1 if cursor is None else min(tally.chain.finalized(), cursor.number)


def reconcile(
    ledger: Ledger, connection: Connection, tally: Tally, *, treasury: str
) -> list[Difference]:
    """Every way in which chain and ledger differ at the last final block that was read.

    Empty when both tell the same story. Source: design chain 6.
    """
    scanned = ScannerStore(connection, tally.deployment)
    number = settled_block(tally, scanned)
    if number < tally.deployment.block:
        return [Difference("blocks read from", tally.deployment.block, number)]
    waiting = scanned.waiting(number)
    if waiting:
        return [Difference("effects that the ledger has not taken", 0, len(waiting))]
    totals, own = ledger_totals(ledger, connection, tally, treasury)
    return [*own, *compare(read_chain(tally, number=number), totals)]


def ledger_totals(
    ledger: Ledger, connection: Connection, tally: Tally, treasury: str
) -> tuple[LedgerTotals, list[Difference]]:
    """The ledger's word, from facts and books, and where the ledger contradicts itself."""
    sealed = {
        body["epoch"]: SealedEpoch(_minted(body), body["file_sha256"])
        for body in rows_of(connection, "epoch.sealed.v1")
    }
    purchases = rows_of(connection, "deposit.credits_purchased.v1")
    own_burns = list(_own_burns(connection))
    lifetime, differences = _lifetime(ledger, connection, tally, treasury)
    totals = LedgerTotals(
        sealed=sealed,
        mint_due=ledger.books.balance("chain:mint_due"),
        distributor=ledger.books.balance("chain:distributor"),
        lifetime=lifetime,
        payouts_confirmed=_units(rows_of(connection, "payout.confirmed.v1"), "amount"),
        purchases=len(purchases) + len(own_burns),
        credits_from_burns=_units(purchases, "credits") + sum(own[1] for own in own_burns),
        tokens_burned=_units(purchases, "tokens_burned") + sum(own[0] for own in own_burns),
    )
    return totals, [
        *_term_differences(ledger, tally),
        *burn_differences(ledger, connection),
        *differences,
    ]


def _minted(sealed: dict[str, Any]) -> int:
    """What a seal mints; one from before anything could be released or returned, its emission."""
    emission, release, returned = (
        int((sealed.get(name) or {"units": 0})["units"])
        for name in ("emission", "release", "returned")
    )
    return emission + release - returned


def _units(bodies: list[dict[str, Any]], name: str) -> int:
    return sum(int(body[name]["units"]) for body in bodies)


def _own_burns(connection: Connection) -> Iterator[tuple[int, int]]:
    """Tokens of each confirmed burn of the network, and the credits the contract gave for them."""
    prices = {
        body["burn_id"]: body["price_micro_usd"] for body in rows_of(connection, "burn.intended.v1")
    }
    for body in rows_of(connection, "burn.confirmed.v1"):
        tokens = int(body["tokens"]["units"])
        yield tokens, tokens * prices[body["burn_id"]] // TOKEN_UNIT


def _lifetime(
    ledger: Ledger, connection: Connection, tally: Tally, treasury: str
) -> tuple[dict[str, int], list[Difference]]:
    """Leaves of the last accepted root, computed again; and whether that root is theirs."""
    for built in reversed(rows_of(connection, "payout.root_built.v1")):
        epoch = built["epoch"]
        payout = ledger.market.state_of(payouts.stream_of(epoch))
        if payout.status == "accepted":
            leaves = leaves_of(ledger, connection, epoch, treasury)
            assert leaves is not None, epoch
            assert payout.root is not None, epoch
            root = "0x" + tree_of(tally, leaves).root.hex()
            told = [("root of the leaves", root, payout.root.root)]
            differing = [Difference(*one) for one in told if one[1] != one[2]]
            return dict(leaves.totals), differing
    return {}, []


def _term_differences(ledger: Ledger, tally: Tally) -> Iterator[Difference]:
    """The clock of the contracts is the ledger's."""
    terms = tally.deployment.terms
    policy = next(iter(ledger.market.state_of(NETWORK).published), None)
    if policy is not None and policy.epoch_length_us != terms.epoch_length_s * SECOND_US:
        yield Difference("epoch length", policy.epoch_length_us, terms.epoch_length_s * SECOND_US)
    first = settlement.epoch_state(ledger, 1).opened
    if first is not None and first.start_us != terms.genesis_s * SECOND_US:
        yield Difference("start of epoch 1", first.start_us, terms.genesis_s * SECOND_US)


def burn_differences(ledger: Ledger, connection: Connection) -> Iterator[Difference]:
    """What was charged to be burned is in some burn, or waits for one: nothing is forgotten."""
    tables.step_all(connection, only=("epochs",))
    position, is_open = read_burn_open(connection)
    booked = ledger.books.balance_at("network:burn_due", position)
    if is_open != booked:
        yield Difference("credits to be burned", booked, is_open)


def tree_of(tally: Tally, leaves: Leaves) -> StandardTree:
    """The payout tree of a root. Raises like `contracts.payout_tree.payout_tree`."""
    deployment = tally.deployment
    return payout_tree(
        deployment.chain_id,
        deployment.distributor,
        leaves.totals,
        previous=leaves.before,
        committed=leaves.committed,
    )
