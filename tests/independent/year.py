"""A synthetic year: weekly epochs of a network in which everything goes wrong that may go wrong.

    same seed -> same facts, same epoch files, same payout files, whatever the order of the nodes

Facts are decided by the domain and booked as the ledger books them; only the usage behind the nodes
is drawn, from a seed. Each fault has its epochs (`FAULTS`): work told too late, no price and so no
burn, a gate overridden, a dispute, a wallet changed, nodes split and merged, a reward slashed or
adjusted. A policy is changed with notice, and who has no wallet forfeits. Without PostgreSQL:
`tests/independent/test_replay.py` puts the same facts into a real log.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from time import perf_counter
from typing import Any

from contracts import manifest
from contracts.payout_tree import payout_tree
from domain import rules
from domain.authority import ballot
from domain.authority.register import register_of
from domain.chain.leaves import LeafBook
from domain.chain.payout_root import (
    NO_ROOT,
    BuildPayoutRoot,
    ConfirmEpochMint,
    RecordRootAccepted,
    RecordRootProposed,
)
from domain.duration import SECOND_US
from domain.epochs.emission import EmissionSegment
from domain.epochs.epoch import (
    CloseEpoch,
    CreditRewards,
    MatureRewards,
    OpenEpoch,
    RewardsMatured,
    SealEpoch,
    chunks_of,
    rewards_of,
)
from domain.epochs.epoch_file import epoch_file, file_sha256
from domain.epochs.forfeit import ForfeitRewards
from domain.epochs.policy import EPOCH_LENGTH_US, PublishPolicy, next_version
from domain.epochs.reward_changes import Reward, RewardAdjusted, RewardsForfeited, RewardSlashed
from domain.epochs.reward_correction import (
    ADJUSTMENT,
    SLASH,
    AcceptRewardCorrection,
    ProposeRewardCorrection,
    correction_stream,
)
from domain.epochs.reward_terms import REWARD_TERMS, UNISSUED, Rated
from domain.epochs.settlement import TREASURY, Attested, NodeCut, Settlement, Use
from domain.funds.deposit import ConfirmCreditsPurchase
from domain.governance.document import FORMAT, Heading, Terms
from domain.governance.proposal import stream_of
from domain.governance.vote import ProposePolicy
from domain.metering.pin import UsagePinned
from domain.money import credit, token
from domain.parties.account import AccountOpened, WalletLinked
from domain.stream import Stream
from ledger.books.chart import kind_of
from ledger.books.postings import entries_for
from ledger.log import codec
from ledger.log.chain import GENESIS_MARKET, chain, genesis_usage, market_leaf
from ledger.tree.cut import LaneRecord, Pin
from ledger.tree.merkle import EMPTY_ROOT
from tests.domain.scenes.epochs import settlement_of
from tests.independent import grown
from tests.scenes.governors import ANNA, enrolling

START_US = 1_800_000_000_000_000
PROPOSAL = 24
HOUR_US = 3_600_000_000
CHAIN_ID, DISTRIBUTOR, ASSET = 31_337, "0x" + "d1" * 20, "0x" + "70" * 20
TREASURY_ADDRESS = "0x" + "7e" * 20
BURNER, PAYER = "0x" + "b0" * 20, "0x" + "aa" * 20
PRICE = 1_870_000
"""Micro-USD per whole TOKEN: what a burn of one credit takes."""
CLASSES = ("datacenter", "professional", "development")
FAULTS = {
    "late data": 5,
    "no price": 7,
    "gate overridden": 6,
    "dispute": 4,
    "split": 8,
    "merged": 9,
    "wallet changed": 3,
    "slashed": 4,
    "adjusted": 2,
}
"""A fault happens in every so-manieth epoch, from the second on."""


@dataclass
class World:
    """The facts so far, folded, booked and chained: what `domain.stream.World` asks for."""

    facts: list[tuple[Stream[Any], Any]] = field(default_factory=list)
    states: dict[Stream[Any], Any] = field(default_factory=dict)
    versions: dict[Stream[Any], int] = field(default_factory=dict)
    head: bytes = GENESIS_MARKET
    units: dict[str, int] = field(default_factory=dict)
    book: LeafBook = field(
        default_factory=lambda: LeafBook(wallets={TREASURY: [(TREASURY_ADDRESS, 0)]})
    )

    def state(self, stream: Stream[Any]) -> Any:
        return self.states.get(stream, rules.initial(stream.kind))

    def balance(self, account: str) -> int:
        return self.units.get(account, 0) * kind_of(account).side

    def record(self, stream: Stream[Any], fact: Any) -> None:
        """Append, fold and book one fact; no account falls below zero."""
        self.facts.append((stream, fact))
        version = self.versions[stream] = self.versions.get(stream, 0) + 1
        blind = codec.blind(bytes(32), stream.uuid, version)
        name, body = codec.encode(fact, "test", blind)
        self.head = chain(self.head, market_leaf(stream.uuid, version, name, body))
        self.states[stream] = rules.evolve(stream.kind, self.state(stream), fact)
        self._tell(fact)
        for entry in entries_for(fact):
            for account, units in entry.lines:
                self.units[account] = self.units.get(account, 0) + units
                assert self.balance(account) >= 0, (fact, account)

    def _tell(self, fact: Any) -> None:
        """What the fact is to the lifetime totals."""
        match fact:
            case WalletLinked():
                self.book.link(fact.account_id, fact.address, fact.effective_at_us)
            case RewardsMatured():
                for reward in fact.rewards:
                    self.book.mature(reward.account_id, reward.amount.units)
            case RewardSlashed():
                self.book.mature(TREASURY, fact.amount.units)
            case RewardsForfeited():
                for reward in fact.rewards:
                    self.book.forfeit(reward.account_id, reward.amount.units)

    def handle(self, command: Any) -> None:
        for change in rules.decide(command, self):
            self.record(change.stream, change.fact)

    @property
    def position(self) -> int:
        return len(self.facts)


@dataclass
class Machine:
    """A node over the year, and what of its work waits to count."""

    node_id: str
    account_id: str
    hardware_class: str
    tier: int
    score_ppm: int | None
    unburned: int = 0  # micro-credits charged and not burned yet
    late: list[Use] = field(default_factory=list)
    disputed: list[Use] = field(default_factory=list)


@dataclass
class Year:
    """What a year left behind. `seconds` is the time that the settlements alone took."""

    world: World
    settlements: dict[int, Settlement] = field(default_factory=dict)
    epoch_files: dict[int, bytes] = field(default_factory=dict)
    payouts: dict[int, bytes] = field(default_factory=dict)
    burned: dict[int, int] = field(default_factory=dict)
    adjusted: dict[int, dict[str, int]] = field(default_factory=dict)
    forfeited: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def roots(self) -> dict[int, str]:
        return {epoch: manifest.decode(data).root for epoch, data in self.payouts.items()}


def policies(epochs: int) -> tuple[PublishPolicy, PublishPolicy]:
    """The first policy, and the one from mid-year on."""
    terms = replace(
        REWARD_TERMS,
        class_ratings=(Rated("professional", 700_000), Rated("development", 400_000)),
        release_tau=7,
        release_cap=164_400_000_000,
        cap_multiple_ppm=20_000_000,
        forfeit_epochs=2,
    )
    first = PublishPolicy(
        version=1,
        epoch_length_us=EPOCH_LENGTH_US,
        segments=(EmissionSegment(1, 52, 590_558_000_000_000),),
        hard_cap=token(590_558_000_000_000),
        compute_ppm=700_000,
        availability_ppm=200_000,
        treasury_ppm=100_000,
        compute_base="burned_value",
        holdback_epochs=2,
        effective_from_epoch=1,
        by="key_op",
        at_us=START_US - 1,
        rewards=terms,
    )
    tighter = replace(
        terms,
        cap_goes_to="next_epoch",
        zero_weight_goes_to=UNISSUED,
        availability_cap_per_gpu_hour=30_000_000,
        owner_cap=600_000_000_000,
        burned_per_gpu_hour=10_000,
        source_weights=(Rated("burned", 1_000_000), Rated("cash", 900_000)),
    )
    second = replace(
        first,
        version=2,
        effective_from_epoch=max(epochs // 2 + 1, 5),
        compute_base="gpu_time",
        compute_ppm=650_000,
        availability_ppm=250_000,
        rewards=tighter,
    )
    return first, second


def document_of(policy: PublishPolicy) -> dict[str, Any]:
    """The proposal of a policy: a heading, and each of its terms that is told."""
    terms = Terms(
        epoch_length_seconds=policy.epoch_length_us // SECOND_US,
        segments=policy.segments,
        hard_cap=policy.hard_cap.units,
        compute_ppm=policy.compute_ppm,
        availability_ppm=policy.availability_ppm,
        treasury_ppm=policy.treasury_ppm,
        compute_base=policy.compute_base,
        holdback_epochs=policy.holdback_epochs,
        effective_from_epoch=policy.effective_from_epoch,
        governance=policy.governance,
        rewards=policy.rewards,
    )
    heading = Heading(PROPOSAL, "A tighter second half", "Core", ("Anna",), "2027-01-04")
    plain = {"format": FORMAT, "proposal": asdict(heading), "terms": asdict(terms)}
    return _told(plain)  # type: ignore[no-any-return]


def _told(value: Any) -> Any:
    """Without what is None: a document leaves out what it does not say."""
    if isinstance(value, dict):
        return {name: _told(one) for name, one in value.items() if one is not None}
    return [_told(one) for one in value] if isinstance(value, list | tuple) else value


def _vote_on_policy(world: World, policy: PublishPolicy, at_us: int) -> None:
    """The proposal of a policy and the one governor's vote for it. How it comes to one:
    `tests/domain/governance/test_proposal.py`.
    """
    if not register_of(world).now.version:
        world.handle(enrolling(ANNA, at_us))
    document = json.dumps(document_of(policy))
    world.handle(ProposePolicy(document=document, by="key_two", at_us=at_us))
    subject = world.state(stream_of(PROPOSAL)).subject
    vote = ballot.cast(
        world, subject, (), ANNA.vote(subject), key_id="key_two", by="key_two", at_us=at_us
    )
    world.record(stream_of(PROPOSAL), vote)


def live(epochs: int, nodes: int, seed: int = 1, *, order: int = 0) -> Year:
    """Run so many epochs of a network of so many nodes. `order` shuffles the nodes of each cut."""
    drawn, shuffled = random.Random(seed), random.Random(order)
    year = Year(World())
    world = year.world
    first, second = policies(epochs)
    world.handle(first)
    world.handle(OpenEpoch(epoch=1, start_us=START_US, at_us=START_US))
    machines = [_machine(drawn, index) for index in range(nodes)]
    for index in range(0, nodes, 3):
        _open(world, index // 3)
    grown.begin(world, START_US)
    for epoch in range(1, epochs + 1):
        end_us = START_US + epoch * EPOCH_LENGTH_US
        grown.week(world, epoch, end_us - EPOCH_LENGTH_US + HOUR_US)
        faults = {name for name, every in FAULTS.items() if epoch > 1 and epoch % every == 0}
        if epoch == second.effective_from_epoch - 4:  # so many epochs of notice
            _vote_on_policy(world, second, end_us - 6)
            change = next_version(replace(second, proposal=PROPOSAL, at_us=end_us - 5), world)
            world.record(change.stream, change.fact)
        if "wallet changed" in faults:
            _link(world, "acct_00000", end_us - HOUR_US, f"again in {epoch}")
        _correct(year, epoch, end_us - HOUR_US, faults)
        _forfeit(year, epoch, end_us - HOUR_US)
        machines = _reshaped(machines, faults)
        cut = [_work(drawn, machine, faults) for machine in machines]
        before = world.balance("recycle:pool")
        _purchase(world, epoch, sum(node.burned_tokens for node in cut), end_us)
        recyclable = world.balance("recycle:pool")
        year.burned[epoch] = recyclable - before
        _close(world, epoch, end_us, faults)
        position = _cut_position(world)
        shuffled.shuffle(cut)
        _seal(year, epoch, position, cut, recyclable, end_us + HOUR_US)
        _credit_and_mature(year, epoch, end_us + 2 * HOUR_US)
        _pay_out(year, epoch, end_us + 3 * HOUR_US)
    return year


# --- machines and their work -----------------------------------------------------------------


def _machine(drawn: random.Random, index: int) -> Machine:
    score = None if drawn.random() < 0.2 else drawn.randrange(600_000, 1_000_001)
    account = f"acct_{index // 3:05d}"
    return Machine(
        f"node_{index:05d}", account, drawn.choice(CLASSES), drawn.randrange(2, 5), score
    )


def _work(drawn: random.Random, machine: Machine, faults: set[str]) -> NodeCut:
    """What the cut says of a machine: what was late is in the cut of the epoch after."""
    hours = drawn.randrange(169)
    gpu_us, burned = hours * HOUR_US, hours * drawn.randrange(500_000, 3_000_000)
    machine.unburned += burned
    counted = 0 if "no price" in faults else machine.unburned
    machine.unburned -= counted
    new = [Use("cash", counted, gpu_us), Use("grant.science", burned // 3, gpu_us // 4)]
    uses, machine.late = machine.late, []
    if "late data" in faults and drawn.random() < 0.3:
        machine.late = new
    else:
        uses = [*uses, *new]
    if machine.disputed:  # resolved: the renter gets half of it back
        uses = [*uses, *(Use(s, b // 2, g // 2) for s, b, g in machine.disputed)]
        machine.disputed = []
    if "dispute" in faults and drawn.random() < 0.1:
        machine.disputed, uses = uses, []
    counted = sum(use.burned for use in uses if use.source == "cash")
    attested = Attested(
        machine.hardware_class, machine.tier, gpu_us + drawn.randrange(HOUR_US), 168 * HOUR_US
    )
    tokens = -(-counted * 10**8 // PRICE)
    return NodeCut(
        machine.node_id, machine.account_id, tuple(uses), tokens, machine.score_ppm, (attested,)
    )


def _reshaped(machines: Sequence[Machine], faults: set[str]) -> list[Machine]:
    """The first nodes become two of one owner, or one again."""
    if "split" in faults:
        twins = [
            replace(m, node_id=f"{m.node_id}x", unburned=0, late=[], disputed=[])
            for m in machines[:5]
        ]
        return [*machines, *twins]
    if "merged" in faults:
        return [m for m in machines if not m.node_id.endswith("x")]
    return list(machines)


# --- the steps of an epoch -------------------------------------------------------------------


def _open(world: World, number: int) -> None:
    """An account; every fifth never has a wallet."""
    account_id = f"acct_{number:05d}"
    fact = AccountOpened(account_id=account_id, kind="party", opened_by="key_op", at_us=START_US)
    world.record(Stream("account", account_id), fact)
    if number % 5 != 4:
        _link(world, account_id, START_US, "")


def _link(world: World, account_id: str, at_us: int, salt: str) -> None:
    address = "0x" + sha256(f"{account_id}{salt}".encode()).hexdigest()[:40]
    fact = WalletLinked(
        account_id=account_id,
        address=address,
        message="",
        signature="",
        effective_at_us=at_us,
        at_us=at_us,
    )
    world.record(Stream("account", account_id), fact)


def _correct(year: Year, epoch: int, at_us: int, faults: set[str]) -> None:
    """Two people put right what the epoch before paid: a part is taken while it is held back, more
    than is left of it is claimed back, somebody is given something.
    """
    before = year.settlements.get(epoch - 1)
    paid = [one for one in before.rewards if one[0] != TREASURY] if before else []
    year.adjusted[epoch] = {}
    if "slashed" in faults:
        account_id, units = paid[0]
        _put_right(year, epoch, SLASH, account_id, -units // 2, at_us)
    if "adjusted" in faults:
        account_id, units = paid[1]
        _put_right(year, epoch, ADJUSTMENT, account_id, -3 * units, at_us)
        _put_right(year, epoch, ADJUSTMENT, paid[2][0], 12_345_678, at_us)


def _put_right(year: Year, epoch: int, kind: str, account_id: str, delta: int, at_us: int) -> None:
    name = f"fix_{epoch}_{kind}_{account_id}"
    proposed = ProposeRewardCorrection(
        correction_id=name,
        kind=kind,
        epoch=epoch - 1,
        account_id=account_id,
        delta=delta,
        reason="measured again",
        evidence_position=1,
        by="key_one",
        at_us=at_us,
    )
    if not register_of(year.world).now.version:
        year.world.handle(enrolling(ANNA, at_us))
    year.world.handle(proposed)
    chunks = chunks_of(rewards_of(year.settlements[epoch - 1]))
    number, chunk = next(
        (n, chunk)
        for n, chunk in enumerate(chunks, 1)
        if account_id in {reward.account_id for reward in chunk}
    )
    subject = year.world.state(correction_stream(name)).ballot()[0]
    accept = AcceptRewardCorrection(
        correction_id=name,
        open_epoch=epoch,
        chunk=number,
        rewards=chunk,
        vote=ANNA.vote(subject),
        key_id="key_two",
        by="key_two",
        at_us=at_us,
    )
    year.world.handle(accept)
    for _, fact in year.world.facts[-2:]:
        if isinstance(fact, RewardAdjusted) and fact.correction_id == name:
            due = year.adjusted[epoch]
            due[fact.account_id] = due.get(fact.account_id, 0) + fact.delta


def _forfeit(year: Year, epoch: int, at_us: int) -> None:
    """What matured three epochs ago for accounts without a wallet."""
    year.forfeited[epoch] = 0
    through = epoch - 5  # two held back, two to find a wallet, and the open one
    if through < 1:
        return
    poor = {f"acct_{number:05d}" for number in range(4, len(year.settlements[1].nodes), 5)}
    lost = [
        reward
        for chunk in _matured(year.world, through)
        for reward in chunk
        if reward.account_id in poor
    ]
    if lost:
        command = ForfeitRewards(
            epoch=epoch, through_epoch=through, after=0, rewards=tuple(lost[:100]), at_us=at_us
        )
        year.world.handle(command)
        year.forfeited[epoch] = sum(reward.amount.units for reward in lost[:100])


def _matured(world: World, epoch: int) -> Iterator[tuple[Reward, ...]]:
    for _, fact in world.facts:
        if isinstance(fact, RewardsMatured) and fact.epoch == epoch:
            yield fact.rewards


def _purchase(world: World, epoch: int, tokens: int, end_us: int) -> None:
    if tokens:
        command = ConfirmCreditsPurchase(
            burner=BURNER,
            purchase_id=epoch,
            account_id=None,
            payer=PAYER,
            tokens_burned=token(tokens),
            credits=credit(tokens * PRICE // 10**8),
            price_round=epoch,
            tx_hash=f"0x{epoch:064x}",
            log_index=0,
            block_number=epoch,
            at_us=end_us - 3,
        )
        world.handle(command)


def _pin(at_us: int) -> UsagePinned:
    """The reports behind the nodes are drawn, so the lanes are empty."""
    lanes = tuple(LaneRecord(lane, 0, genesis_usage(lane), EMPTY_ROOT) for lane in range(64))
    return Pin(lanes).fact(at_us)


def _close(world: World, epoch: int, end_us: int, faults: set[str]) -> None:
    overridden = "gate overridden" in faults
    command = CloseEpoch(
        epoch=epoch,
        pin=_pin(end_us),
        by="key_op",
        at_us=end_us,
        missing=("node node_00001: last report before the end",) if overridden else (),
        override="it burned down" if overridden else None,
    )
    world.handle(command)


def _cut_position(world: World) -> int:
    found = [n for n, (_, fact) in enumerate(world.facts, 1) if isinstance(fact, UsagePinned)]
    return found[-1]


def _seal(
    year: Year, epoch: int, position: int, cut: list[NodeCut], recyclable: int, at_us: int
) -> None:
    began = perf_counter()
    settlement = settlement_of(year.world, epoch, position, tuple(cut), recyclable)
    year.seconds += perf_counter() - began
    year.settlements[epoch] = settlement
    year.epoch_files[epoch] = epoch_file(settlement)
    command = SealEpoch(outcome=settlement, file_sha256=file_sha256(settlement), at_us=at_us)
    year.world.handle(command)


def _credit_and_mature(year: Year, epoch: int, at_us: int) -> None:
    for chunk, rewards in enumerate(chunks_of(rewards_of(year.settlements[epoch])), 1):
        year.world.handle(CreditRewards(epoch=epoch, chunk=chunk, rewards=rewards, at_us=at_us))
    due = epoch - year.settlements[epoch].cut.policy.holdback_epochs
    if due >= 1:
        for chunk, rewards in enumerate(chunks_of(rewards_of(year.settlements[due])), 1):
            year.world.handle(MatureRewards(epoch=due, chunk=chunk, rewards=rewards, at_us=at_us))


def _pay_out(year: Year, epoch: int, at_us: int) -> None:
    world, settlement, book = year.world, year.settlements[epoch], year.world.book
    mint = ConfirmEpochMint(
        epoch=epoch,
        amount=token(settlement.minted),
        settlement_id=file_sha256(settlement),
        tx_hash=f"0x{epoch:064x}",
        block_number=epoch,
        at_us=at_us,
    )
    world.handle(mint)
    before = dict(book.totals)
    book.take(at_us)
    if sum(book.totals.values()) == sum(before.values()):
        return
    payout = _payout(year, epoch, book.totals, before)
    year.payouts[epoch] = manifest.encode(payout)
    told: dict[str, Any] = {"epoch": epoch, "seq": payout.seq, "root": payout.root}
    build = BuildPayoutRoot(
        **told,
        manifest_sha256=payout.manifest,
        previous_root=payout.previous_root,
        committed=token(payout.committed),
        leaves=len(payout.tree.rows),
        at_us=at_us,
    )
    world.handle(build)
    tx = f"0x{epoch:064x}"
    world.handle(RecordRootProposed(**told, valid_at_us=at_us + 1, tx_hash=tx, at_us=at_us))
    world.handle(RecordRootAccepted(**told, tx_hash=tx, at_us=at_us + 2))


def _payout(
    year: Year, epoch: int, totals: Mapping[str, int], before: Mapping[str, int]
) -> manifest.Payout:
    last = max(year.payouts, default=None)
    earlier = None if last is None else manifest.decode(year.payouts[last])
    settlement = year.settlements[epoch]
    committed = sum(totals.values())
    leaves = sorted(totals.items())
    return manifest.Payout(
        epoch=epoch,
        cut=str(settlement.cut.cut_position),
        policy_version=settlement.cut.policy.version,
        log_head=year.world.head.hex(),
        chain_id=CHAIN_ID,
        distributor=DISTRIBUTOR,
        asset=ASSET,
        seq=1 if earlier is None else earlier.seq + 1,
        committed=committed,
        minted=settlement.minted,
        previous_root=NO_ROOT if earlier is None else earlier.root,
        manifest=file_sha256(settlement),
        tree=payout_tree(CHAIN_ID, DISTRIBUTOR, leaves, previous=before, committed=committed),
    )


def leaves_of(year: Year) -> Iterator[Mapping[str, int]]:
    """The lifetime totals of every root, in order."""
    for _, data in sorted(year.payouts.items()):
        rows = manifest.decode(data).tree.rows
        yield {str(row[2]): int(row[3]) for row in rows}
