"""Payouts: a Merkle root of lifetime totals, proposed, accepted after a timelock, and claimed.

    minted --PayoutRootBuilt--> built --RootProposed--> proposed --RootAccepted--> accepted
    proposed --RootVetoed--> vetoed --PayoutRootBuilt--> built, or proposed again as it was

    claimed(account) <= leaf(account) == lifetime total ever matured;   sum(leaves) == committed
    leaf - claimed == matured, of the treasury: matured + held by grants - chain:treasury

A leaf never falls, so a claim is idempotent and order does not matter. What the chain did is
recorded once it is final; a repeated observation changes nothing. Not the tree: that is
`contracts/payout_tree.py`. An epoch whose root would pay nobody anew has no root.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, assert_never

from domain.chain.reasons import ChainReason
from domain.epochs.epoch import epoch_of
from domain.epochs.reasons import EpochsReason
from domain.epochs.settlement import TREASURY
from domain.frozen import replace
from domain.funds.reasons import FundsReason
from domain.money import Amount, Asset, Big, token
from domain.refusal import Refused
from domain.stream import Change, Stream, World

NO_ROOT = "0x" + "00" * 32
"""`previous_root` of the first root ever."""

# Facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochMintConfirmed:
    """A final `EpochMinted`. Stream `payout:{epoch}`."""

    epoch: int
    amount: Amount
    settlement_id: str  # SHA-256 of the epoch file, hex
    tx_hash: str
    block_number: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutRootBuilt:
    epoch: int
    seq: int  # accepted roots of the distributor, from 1; not the epoch number
    root: str  # hex, keccak
    manifest_sha256: str  # SHA-256 of the epoch file
    previous_root: str
    committed: Amount
    leaves: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RootProposed:
    epoch: int
    seq: int
    root: str
    valid_at_us: int
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RootVetoed:
    epoch: int
    seq: int
    root: str
    reason: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RootAccepted:
    epoch: int
    seq: int
    root: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutConfirmed:
    """A final `Claimed`. Stream `claim:{distributor}/{address}/{cumulative}`."""

    distributor: str
    account_id: str
    address: str
    seq: int
    amount: Amount
    cumulative: Amount
    tx_hash: str
    log_index: int
    block_number: int
    at_us: int
    set_aside: Big  # of it: waits for grants, in the wallet of the treasury


PayoutFact = EpochMintConfirmed | PayoutRootBuilt | RootProposed | RootVetoed | RootAccepted

# Commands: one per fact, with the fact's own content.


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmEpochMint:
    epoch: int
    amount: Amount
    settlement_id: str
    tx_hash: str
    block_number: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPayoutRoot:
    epoch: int
    seq: int
    root: str
    manifest_sha256: str
    previous_root: str
    committed: Amount
    leaves: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRootProposed:
    epoch: int
    seq: int
    root: str
    valid_at_us: int
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRootVetoed:
    epoch: int
    seq: int
    root: str
    reason: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRootAccepted:
    epoch: int
    seq: int
    root: str
    tx_hash: str
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmPayout:
    """`granted`: TOKEN units that grants hold of the treasury's leaf and no claim has taken yet;
    negative where grants gave back what had been claimed. 0 for anybody else.
    """

    distributor: str
    account_id: str
    address: str
    seq: int
    amount: Amount
    cumulative: Amount
    tx_hash: str
    log_index: int
    block_number: int
    at_us: int
    granted: int = 0


# What we remember.


@dataclass(frozen=True, slots=True)
class Payout:
    """The payout of one epoch. `proposed` and `vetoed` are the latest of their kind."""

    status: str = "none"
    mint: EpochMintConfirmed | None = None
    root: PayoutRootBuilt | None = None
    proposed: RootProposed | None = None
    vetoed: RootVetoed | None = None
    accepted: RootAccepted | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    confirmed: PayoutConfirmed | None = None


def stream_of(epoch: int) -> Stream[Payout]:
    return Stream("payout", str(epoch))


def claim_stream(distributor: str, address: str, cumulative: int) -> Stream[Claim]:
    return Stream("claim", f"{distributor}/{address}/{cumulative}")


def evolve_payout(payout: Payout, fact: PayoutFact) -> Payout:
    match fact:
        case EpochMintConfirmed():
            return replace(payout, status="minted", mint=fact)
        case PayoutRootBuilt():
            return replace(payout, status="built", root=fact)
        case RootProposed():
            return replace(payout, status="proposed", proposed=fact)
        case RootVetoed():
            return replace(payout, status="vetoed", vetoed=fact)
        case RootAccepted():
            return replace(payout, status="accepted", accepted=fact)
        case _:
            assert_never(fact)


def evolve_claim(_claim: Claim, fact: PayoutConfirmed) -> Claim:
    return Claim(fact)


def payout_of(world: World, epoch: int) -> Payout:
    return world.state(stream_of(epoch))


def last_root(world: World, before_epoch: int) -> Payout | None:
    """The payout of the newest earlier epoch that has a root; epochs that pay nobody have none."""
    for epoch in range(before_epoch - 1, 0, -1):
        payout = payout_of(world, epoch)
        if payout.root is not None:
            return payout
    return None


# How we decide.


def decide_mint(command: ConfirmEpochMint, world: World) -> list[Change]:
    """Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, REWARDS_MISMATCH, PAYOUT_EXISTS."""
    sealed = epoch_of(world, command.epoch).sealed
    if sealed is None:
        raise Refused(EpochsReason.EPOCH_STATE, epoch=command.epoch)
    if (command.amount, command.settlement_id) != (token(sealed.minted), sealed.file_sha256):
        raise Refused(
            EpochsReason.REWARDS_MISMATCH, epoch=command.epoch, amount=command.amount.units
        )
    fact = EpochMintConfirmed(**_content(command))
    known = payout_of(world, command.epoch).mint
    if known is not None:
        if _same(known, fact):
            return []
        raise Refused(ChainReason.PAYOUT_EXISTS, epoch=command.epoch, tx_hash=known.tx_hash)
    return [Change(stream_of(command.epoch), fact)]


def decide_build(command: BuildPayoutRoot, world: World) -> list[Change]:
    """After the last chunk and the mint; once per epoch, and again after a veto.

    Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, REWARDS_MISMATCH, PAYOUT_STATE.
    """
    epoch = epoch_of(world, command.epoch)
    if epoch.sealed is None or epoch.status not in ("credited", "settled"):
        raise Refused(EpochsReason.EPOCH_STATE, epoch=command.epoch, status=epoch.status)
    payout = payout_of(world, command.epoch)
    fact = PayoutRootBuilt(**_content(command))
    if payout.root is not None and _same(payout.root, fact):
        return []
    if command.manifest_sha256 != epoch.sealed.file_sha256:
        raise Refused(EpochsReason.REWARDS_MISMATCH, epoch=command.epoch, rule="other epoch file")
    if payout.status not in ("minted", "vetoed"):
        raise Refused(ChainReason.PAYOUT_STATE, epoch=command.epoch, status=payout.status)
    _check_succession(command, last_root(world, command.epoch))
    return [Change(stream_of(command.epoch), fact)]


def _check_succession(command: BuildPayoutRoot, before: Payout | None) -> None:
    """Numbers count accepted roots; neither the commitment nor the number of leaves falls."""
    if before is None:
        seq, root, committed, leaves = 1, NO_ROOT, 0, 1
    elif before.status != "accepted" or before.root is None:
        raise Refused(
            ChainReason.PAYOUT_STATE, epoch=command.epoch, rule="the root before is pending"
        )
    else:
        seq, root = before.root.seq + 1, before.root.root
        committed, leaves = before.root.committed.units, before.root.leaves
    if (command.seq, command.previous_root) != (seq, root):
        raise Refused(ChainReason.PAYOUT_STATE, epoch=command.epoch, seq=command.seq, expected=seq)
    fell = command.committed.units < committed or command.leaves < leaves
    if command.committed.asset is not Asset.TOKEN or fell:
        raise Refused(
            EpochsReason.REWARDS_MISMATCH, epoch=command.epoch, rule="a root never shrinks"
        )


def decide_proposed(command: RecordRootProposed, world: World) -> list[Change]:
    """Raises Refused: PAYOUT_STATE."""
    fact = RootProposed(**_content(command))
    payout = _payout_with_root(command, world)
    return _record(command, payout, payout.proposed, fact, ("built", "vetoed"))


def decide_vetoed(command: RecordRootVetoed, world: World) -> list[Change]:
    """Raises Refused: PAYOUT_STATE."""
    fact = RootVetoed(**_content(command))
    payout = _payout_with_root(command, world)
    return _record(command, payout, payout.vetoed, fact, ("proposed",))


def decide_accepted(command: RecordRootAccepted, world: World) -> list[Change]:
    """Raises Refused: PAYOUT_STATE."""
    fact = RootAccepted(**_content(command))
    payout = _payout_with_root(command, world)
    return _record(command, payout, payout.accepted, fact, ("proposed",))


RootCommand = RecordRootProposed | RecordRootVetoed | RecordRootAccepted
RootFact = RootProposed | RootVetoed | RootAccepted


def _payout_with_root(command: RootCommand, world: World) -> Payout:
    payout = payout_of(world, command.epoch)
    if payout.root is None:
        raise Refused(ChainReason.PAYOUT_STATE, epoch=command.epoch, status=payout.status)
    return payout


def _record(
    command: RootCommand,
    payout: Payout,
    known: RootFact | None,
    fact: RootFact,
    possible_in: tuple[str, ...],
) -> list[Change]:
    if known is not None and _same(known, fact):
        return []
    assert payout.root is not None
    ours = (payout.root.seq, payout.root.root) == (command.seq, command.root)
    if payout.status not in possible_in or not ours:
        raise Refused(ChainReason.PAYOUT_STATE, epoch=command.epoch, status=payout.status)
    return [Change(stream_of(command.epoch), fact)]


def decide_payout(command: ConfirmPayout, world: World) -> list[Change]:
    """A final claim. What was never matured cannot have been claimed: a mismatch stops here.

    A grant sets aside what the treasury's leaf has promised already, so the treasury may claim it:
    its wallet then holds what the grants wait for.

    Raises Refused: REWARDS_MISMATCH, PAYOUT_EXISTS, AMOUNT_NOT_POSITIVE.
    """
    matured = world.balance(f"party:{command.account_id}:matured")
    fact = _confirmed(command, matured)
    stream = claim_stream(command.distributor, command.address, command.cumulative.units)
    state = world.state(stream)
    if state.confirmed is not None:
        if _same(replace(state.confirmed, set_aside=fact.set_aside), fact):
            return []
        raise Refused(ChainReason.PAYOUT_EXISTS, address=command.address, seq=command.seq)
    amounts = (command.amount, command.cumulative)
    if any(a.asset is not Asset.TOKEN or a.units <= 0 for a in amounts):
        raise Refused(FundsReason.AMOUNT_NOT_POSITIVE, amount=command.amount.units)
    granted = command.granted if command.account_id == TREASURY else 0
    if command.amount.units > min(matured + granted, command.cumulative.units):
        raise Refused(EpochsReason.REWARDS_MISMATCH, amount=command.amount.units, matured=matured)
    return [Change(stream, fact)]


def _confirmed(command: ConfirmPayout, matured: int) -> PayoutConfirmed:
    told = {name: value for name, value in _content(command).items() if name != "granted"}
    return PayoutConfirmed(**told, set_aside=max(0, command.amount.units - matured))


def _content(command: Any) -> dict[str, Any]:
    return {field.name: getattr(command, field.name) for field in fields(command)}


def _same(known: Any, fact: Any) -> bool:
    """Equal but for the moment it was recorded."""
    return bool(replace(known, at_us=fact.at_us) == fact)


STREAMS: dict[str, tuple[Any, Any]] = {
    "payout": (Payout(), evolve_payout),
    "claim": (Claim(), evolve_claim),
}
DECIDERS: dict[type[Any], Any] = {
    ConfirmEpochMint: decide_mint,
    BuildPayoutRoot: decide_build,
    RecordRootProposed: decide_proposed,
    RecordRootVetoed: decide_vetoed,
    RecordRootAccepted: decide_accepted,
    ConfirmPayout: decide_payout,
}
