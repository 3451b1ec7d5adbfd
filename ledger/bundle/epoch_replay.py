"""Every sealed epoch of an export executed again: the seal, the chain of epochs, the chunks, books.

    settle(what the epoch file says went in) == the epoch file, to the byte
    what went in: policy and version of EpochOpened, the pin after EpochClosing as cut, the carries
                  of the seal before, what the books had unissued at the seal and recyclable at the
                  cut
    EpochSealed, RewardsCredited, RewardsMatured, EpochMintConfirmed  == what that settlement gives
        (and matures less what was slashed of it)
    no account of the books is ever below zero

Facts come in order of their positions; nothing else is read but the epoch files. Whether the nodes
of a file follow from reports and burns is not seen here: that takes the views of `projections/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any

from domain.chain.payout_root import EpochMintConfirmed
from domain.epochs.epoch import (
    CHUNK_MAX,
    EpochClosing,
    EpochOpened,
    EpochSealed,
    RewardsCredited,
    RewardsMatured,
    chunks_of,
    less_slashed,
    openings,
    rewards_of,
    sealed_fact,
)
from domain.epochs.epoch_file import epoch_file, policy_document, read_cut
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_changes import (
    UNCHANGED,
    RewardAdjusted,
    RewardChanges,
    RewardsForfeited,
    RewardSlashed,
    evolve_changes,
)
from domain.epochs.settlement import Settlement, settle
from domain.metering.pin import UsagePinned
from domain.nesting import read_json
from domain.refusal import Refused
from ledger.books.chart import kind_of
from ledger.books.postings import entries_for

TOLD_MAX = 200
"""Characters of a value in a problem: what differs is named, not printed whole."""


@dataclass(slots=True)
class Books:
    """Balances as the facts so far give them, on the normal side of each account."""

    units: dict[str, int] = field(default_factory=dict)
    recycled: list[tuple[int, int]] = field(default_factory=list)  # position, what came in by then
    fed: int = 0  # TOKEN units that ever came into recycle:pool

    def book(self, position: int, fact: Any) -> Iterator[str]:
        """Post one fact. Yields why it cannot be posted, and each account left below zero."""
        try:
            entries = tuple(entries_for(fact))
        except AssertionError as error:
            yield f"{type(fact).__name__} at {position} adds up to something else: {_short(error)}"
            return
        for entry in entries:
            for account, units in entry.lines:
                self.units[account] = self.units.get(account, 0) + units
                if self.units[account] * kind_of(account).side < 0:
                    yield f"{type(fact).__name__} leaves {account} below zero"
                if account == "recycle:pool" and units < 0:
                    self.fed -= units
                    self.recycled.append((position, self.fed))

    def unissued(self) -> int:
        return -self.units.get("emission:unissued", 0)

    def fed_until(self, position: int) -> int:
        """TOKEN units burned for good up to this position."""
        return max((fed for at, fed in self.recycled if at <= position), default=0)


@dataclass(slots=True)
class _Epoch:
    """What the log said of one epoch so far. The settlement stays until its last chunk matured."""

    opened: EpochOpened | None = None
    closing: int = 0  # position
    sealed: EpochSealed | None = None
    settlement: Settlement | None = None
    credited: int = 0
    matured: int = 0
    changes: RewardChanges = UNCHANGED


@dataclass(frozen=True, slots=True)
class Executed:
    """An epoch file executed again; no settlement where it cannot be. `sha256`: of what came out.

    It travels to whoever replays the facts (`ledger/fan_out/executor.py`).
    """

    settlement: Settlement | None
    sha256: str
    faults: tuple[str, ...]


@dataclass(slots=True)
class EpochReplay:
    """Give it the facts in order: each answer is what is wrong with one of them.

    `executed_of`: the file of an epoch, `executed`; None where there is none.
    """

    executed_of: Callable[[int], Executed | None]
    books: Books = field(default_factory=Books)
    policies: dict[int, PolicyPublished] = field(default_factory=dict)
    epochs: dict[int, _Epoch] = field(default_factory=dict)
    pins: set[int] = field(default_factory=set)
    released: int = 0  # TOKEN units that left recycle:pool again, over all seals
    hashes: dict[int, str] = field(default_factory=dict)  # of the files, as executed again

    def take(self, position: int, fact: Any) -> Iterator[str]:
        """One fact, before and after it is booked."""
        match fact:
            case PolicyPublished():
                self.policies[fact.version] = fact
            case UsagePinned():
                self.pins.add(position)
            case EpochOpened():
                self._epoch(fact.epoch).opened = fact
            case EpochClosing():
                self._epoch(fact.epoch).closing = position
            case EpochSealed():
                yield from self._seal(fact)
            case RewardsCredited() | RewardsMatured():
                yield from self._chunk(fact)
            case RewardSlashed():
                yield from self._slash(fact)
            case RewardAdjusted() | RewardsForfeited():
                yield from self._change(fact)
            case EpochMintConfirmed():
                yield from self._mint(fact)
        yield from self.books.book(position, fact)

    def settlement(self, epoch: int) -> Settlement | None:
        """What an epoch paid, executed again."""
        return self._epoch(epoch).settlement

    def holdback(self, epoch: int) -> int:
        """Epochs for which the rewards of this one are held back."""
        opened = self._epoch(epoch).opened
        policy = None if opened is None else self.policies.get(opened.policy_version)
        return 0 if policy is None else policy.holdback_epochs

    def _epoch(self, number: int) -> _Epoch:
        return self.epochs.setdefault(number, _Epoch())

    # --- the seal ---------------------------------------------------------------------------

    def _seal(self, fact: EpochSealed) -> Iterator[str]:
        epoch = self._epoch(fact.epoch)
        epoch.sealed = fact
        before = self.released
        self.released += fact.release.units - fact.returned_release.units
        found = self.executed_of(fact.epoch)
        if found is None:
            yield f"epoch {fact.epoch}: its file is not in the bundle"
            return
        yield from found.faults
        settlement = found.settlement
        if settlement is None:
            return
        epoch.settlement = settlement
        self.hashes[fact.epoch] = found.sha256
        yield from self._went_in(epoch, settlement, before)
        due = sealed_fact(settlement, fact.at_us, found.sha256)
        yield from _differing_fields(f"epoch {fact.epoch}: EpochSealed", fact, due)

    def _went_in(self, epoch: _Epoch, settlement: Settlement, released: int) -> Iterator[str]:
        """The inputs that facts before the seal decide."""
        cut, number = settlement.cut, settlement.epoch
        opened = epoch.opened
        policy = self.policies.get(opened.policy_version) if opened is not None else None
        if policy is None or policy_document(cut.policy) != policy_document(policy):
            yield f"epoch {number}: its policy is not the one it was opened under"
        if cut.cut_position not in self.pins or cut.cut_position != epoch.closing + 1:
            yield f"epoch {number}: its cut {cut.cut_position} is not the pin that closed it"
        sealed_before = self._epoch(number - 1).sealed
        if number > 1 and sealed_before is None:
            yield f"epoch {number}: sealed before the one before it"
        recyclable = self.books.fed_until(cut.cut_position) - released
        if cut.terms.release_tau is None:  # nothing is released, whatever there is
            recyclable = cut.openings.recyclable
        due = openings(sealed_before, self.books.unissued(), recyclable, epoch.changes)
        for name in ("unissued", "recyclable", "compute_carry", "availability_carry"):
            said, known = getattr(cut.openings, name), getattr(due, name)
            if said != known:
                yield f"epoch {number}: opens with {name} {said}, the log gives {known}"
        if sorted(cut.openings.adjustments) != sorted(due.adjustments):
            yield f"epoch {number}: opens with other adjustments than the log gives"

    # --- what followed ----------------------------------------------------------------------

    def _chunk(self, fact: RewardsCredited | RewardsMatured) -> Iterator[str]:
        epoch, name = self._epoch(fact.epoch), type(fact).__name__
        if isinstance(fact, RewardsCredited):
            epoch.credited += 1
            number = epoch.credited
        else:
            epoch.matured += 1
            number = epoch.matured
        where = f"epoch {fact.epoch}: {name} {fact.chunk}"
        if fact.chunk != number or epoch.matured > epoch.credited:
            yield f"{where} is out of order"
        if epoch.settlement is not None:
            chunks = chunks_of(rewards_of(epoch.settlement))
            due = chunks[fact.chunk - 1] if 1 <= fact.chunk <= len(chunks) else None
            if due is not None and isinstance(fact, RewardsMatured):
                due = less_slashed(epoch.changes, due)
            if fact.rewards != due:
                yield f"{where} is not what the epoch pays"

    def _slash(self, fact: RewardSlashed) -> Iterator[str]:
        """At most what was credited, and before it matured."""
        epoch = self._epoch(fact.epoch)
        if epoch.settlement is None:  # its file is told to be missing
            return
        who = fact.account_id
        ids = [one for one, _ in epoch.settlement.rewards]
        credited = dict(epoch.settlement.rewards).get(who, 0)
        taken = epoch.changes.slashed.get(who, 0) + fact.amount.units
        if not 0 < fact.amount.units <= taken <= credited:
            yield f"epoch {fact.epoch}: slashed {taken} of {who}, credited {credited}"
        elif not epoch.matured <= ids.index(who) // CHUNK_MAX < epoch.credited:
            yield f"epoch {fact.epoch}: slashed {who} outside of its holdback"
        else:
            epoch.changes = evolve_changes(epoch.changes, fact)

    def _change(self, fact: RewardAdjusted | RewardsForfeited) -> Iterator[str]:
        """Of the open epoch alone: its settlement starts from it."""
        epoch = self._epoch(fact.epoch)
        if epoch.opened is None or epoch.closing:
            yield f"epoch {fact.epoch}: {type(fact).__name__} while it is not open"
        epoch.changes = evolve_changes(epoch.changes, fact)

    def _mint(self, fact: EpochMintConfirmed) -> Iterator[str]:
        sealed = self._epoch(fact.epoch).sealed
        if sealed is None:
            yield f"epoch {fact.epoch}: minted before it is sealed"
        elif (fact.amount.units, fact.settlement_id) != (sealed.minted, sealed.file_sha256):
            yield f"epoch {fact.epoch}: minted {fact.amount.units}, sealed {sealed.minted}"


def executed(epoch: int, data: bytes | None) -> Executed | None:
    """The settlement of an epoch file, and what is wrong with the file; None without one."""
    if data is None:
        return None
    try:
        settlement = settle(read_cut(data))
    except (ValueError, Refused, AssertionError, RecursionError) as error:
        return Executed(None, "", (f"epochs/{epoch}.json: cannot be executed: {_short(error)}",))
    faults = []
    if settlement.epoch != epoch:
        faults.append(f"epochs/{epoch}.json: of epoch {settlement.epoch}")
    computed = epoch_file(settlement)
    if computed != data:
        faults.append(f"epochs/{epoch}.json: {_first_difference(data, computed)}")
    return Executed(settlement, sha256(computed).hexdigest(), tuple(faults))


def _first_difference(data: bytes, computed: bytes) -> str:
    """The first field in which a file is not what executing it gives."""
    said, due = read_json(data), read_json(computed)
    for name in sorted(said.keys() | due.keys()):
        if said.get(name) != due.get(name):
            return f"{name} is {_short(due.get(name))}, it says {_short(said.get(name))}"
    return "not in the canonical form"


def _differing_fields(where: str, fact: EpochSealed, due: EpochSealed) -> Iterator[str]:
    """Seals from before a field was stored have None there: nothing is compared with it."""
    for name in (one.name for one in fields(fact) if one.name not in NOT_COMPUTED):
        value, computed = getattr(fact, name), getattr(due, name)
        if value is not None and value != computed:
            yield f"{where} {name} is {_short(value)}, executed again {_short(computed)}"


NOT_COMPUTED = frozenset({"price_snapshot", "clients_sha256"})
"""Fields of the seal that no file gives: told for information, and no reward depends on them."""


def _units(amount: Any) -> int:
    return 0 if amount is None else int(amount.units)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= TOLD_MAX else f"{text[:TOLD_MAX]}…"
