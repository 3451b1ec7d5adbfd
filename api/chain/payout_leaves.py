"""The leaves of every payout root, from the market log alone.

The cut of a root is the later of two facts: the epoch's last credited chunk and its confirmed
mint; who is promised what there is decided in `domain/chain/leaves.py`. Trees, proofs and files are
not made here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

import psycopg

from api.epochs.closing import known_epochs
from domain.chain.leaves import LeafBook
from domain.chain.payout_root import EpochMintConfirmed
from domain.chain.payout_root import stream_of as payout_stream
from domain.epochs import epoch as epochs
from domain.epochs.epoch import RewardsCredited, RewardsMatured
from domain.epochs.policy import NETWORK
from domain.epochs.settlement import TREASURY
from domain.record import dataclass
from ledger.log.handle import Ledger

Connection = psycopg.Connection[Any]

# The topics are spelled out, so that the index over just these facts is used.
_BUILT = """
    SELECT DISTINCT b.epoch FROM market_events
    CROSS JOIN LATERAL json_to_record(convert_from(state, 'UTF8')::json) AS b(epoch int)
    WHERE topic = 'payout.root_built.v1' AND b.epoch < %s ORDER BY 1
"""
_MATURED = """
    SELECT r->>'account_id', sum((r->'amount'->>'units')::bigint)::bigint FROM market_events
    CROSS JOIN LATERAL json_array_elements(convert_from(state, 'UTF8')::json->'rewards') r
    WHERE topic = 'epoch.rewards_matured.v1' AND notification_id > %s AND notification_id <= %s
    GROUP BY 1
"""
_FORFEITED = """
    SELECT r->>'account_id', sum((r->'amount'->>'units')::bigint)::bigint FROM market_events
    CROSS JOIN LATERAL json_array_elements(convert_from(state, 'UTF8')::json->'rewards') r
    WHERE originator_id = ANY(%s) AND topic = 'epoch.rewards_forfeited.v1'
        AND notification_id > %s AND notification_id <= %s
    GROUP BY 1
"""
_SLASHED = """
    SELECT coalesce(sum((convert_from(state, 'UTF8')::json->'amount'->>'units')::bigint), 0)::bigint
    FROM market_events
    WHERE originator_id = ANY(%s) AND topic = 'epoch.reward_slashed.v1'
        AND notification_id > %s AND notification_id <= %s
"""
_WALLETS = """
    SELECT b.account_id, b.address, b.effective_at_us FROM market_events
    CROSS JOIN LATERAL json_to_record(convert_from(state, 'UTF8')::json)
        AS b(account_id text, address text, effective_at_us bigint)
    WHERE topic = 'account.wallet_linked.v1' AND notification_id > %s AND notification_id <= %s
    ORDER BY notification_id
"""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a root was taken: a position of the market log, and that fact's time."""

    position: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One address of one account: token units it may ever have claimed."""

    account_id: str
    address: str
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """All leaves of one root, by address, and the totals of the root before."""

    epoch: int
    cut: Cut
    leaves: tuple[Leaf, ...]
    before: Mapping[str, int]

    @property
    def totals(self) -> list[tuple[str, int]]:
        """(address, total), as `contracts.payout_tree` takes them."""
        return [(leaf.address, leaf.total) for leaf in self.leaves]

    @property
    def committed(self) -> int:
        return sum(leaf.total for leaf in self.leaves)

    @property
    def pays_anew(self) -> bool:
        """Whether anybody gets more than the root before promised."""
        return self.committed > sum(self.before.values())


@dataclass(slots=True)
class _Fold:
    """What is known at a position of the log, moved on from root to root."""

    book: LeafBook
    epochs: list[UUID]  # the streams of all epochs: where forfeits and slashes are
    position: int = 0

    def read_to(self, connection: Connection, position: int) -> None:
        assert position >= self.position, (self.position, position)
        span = (self.position, position)
        for account, units in connection.execute(_MATURED, span):
            self.book.mature(account, units)
        for (units,) in connection.execute(_SLASHED, (self.epochs, *span)):
            self.book.mature(TREASURY, units)
        for account, units in connection.execute(_FORFEITED, (self.epochs, *span)):
            self.book.forfeit(account, units)
        for account, address, effective_us in connection.execute(_WALLETS, span):
            self.book.link(account, address, effective_us)
        self.position = position


def leaves_of(ledger: Ledger, connection: Connection, epoch: int, treasury: str) -> Leaves | None:
    """The leaves of an epoch's root; None while it is not minted and credited.

    `treasury` is the address of the treasury's leaf, unless it has linked a wallet of its own.
    """
    cut = cut_of(ledger, epoch)
    if cut is None:
        return None
    streams = [epochs.stream_of(number).uuid for number, _ in known_epochs(ledger)]
    fold = _Fold(LeafBook(wallets={TREASURY: [(treasury.lower(), 0)]}), streams)
    for earlier in (row[0] for row in connection.execute(_BUILT, (epoch,)).fetchall()):
        taken = cut_of(ledger, earlier)
        assert taken is not None, earlier
        fold.read_to(connection, taken.position)
        fold.book.take(taken.at_us)
    before = dict(fold.book.totals)
    fold.read_to(connection, cut.position)
    fold.book.take(cut.at_us)
    return Leaves(epoch=epoch, cut=cut, leaves=tuple(_by_address(fold.book)), before=before)


def _by_address(book: LeafBook) -> Iterator[Leaf]:
    for address, total in sorted(book.totals.items()):
        yield Leaf(account_id=book.owners[address], address=address, total=total)


def cut_of(ledger: Ledger, epoch: int) -> Cut | None:
    """The later of the last credited chunk and the confirmed mint; None while either is missing.

    What matures with its chunk is of the cut; what matures after a holdback is of a later one.
    """
    minted: Cut | None = None
    for recorded in ledger.market.read_stream(payout_stream(epoch)):
        if isinstance(recorded.fact, EpochMintConfirmed):
            minted = Cut(recorded.position, recorded.fact.at_us)
    state = ledger.market.state_of(epochs.stream_of(epoch))
    if minted is None or state.sealed is None or len(state.chunk_hashes) < state.sealed.chunks:
        return None
    policy = ledger.market.state_of(NETWORK).published[state.sealed.policy_version - 1]
    kinds = (RewardsCredited,) if policy.holdback_epochs else (RewardsCredited, RewardsMatured)
    stream = epochs.stream_of(epoch)
    last = [ledger.market.one_of(stream, kind, last=True) for kind in kinds]
    chunks = [Cut(found.position, found.fact.at_us) for found in last if found is not None]
    return max([minted, *chunks], key=lambda cut: cut.position)


def rows_of(connection: Connection, topic: str) -> list[dict[str, Any]]:
    """The bodies of all facts of one name, oldest first."""
    # Never prepared: a plan for any name cannot use the index over just these facts.
    rows = connection.execute(
        "SELECT state FROM market_events WHERE topic = %s ORDER BY notification_id",
        (topic,),
        prepare=False,
    )
    return [json.loads(bytes(row[0])) for row in rows]
