"""Ends epochs: the gate, the cut, the seal, the rewards. Each step finds what was done before it.

    close:  gate -> trees -> pin -> EpochClosing + UsagePinned (the cut) + EpochOpened (the next)
    seal:   weights at the cut -> epochs/<n>.json, durable -> EpochSealed with its SHA-256
    credit: RewardsCredited in chunks, RewardsMatured with them or after the holdback

The file is written before the fact that names it, so a fact never refers to what does not exist.
What an epoch pays is decided in `domain/epochs/settlement.py`; this file fetches its inputs, all
of them as of the cut: they are the same however far the views have read since, so a seal can be
computed again. Only its maturing, epochs later, reads the file that was sealed: a tier or a score
may be judged by newer rules then. While an epoch is closed the accrual job is kept out, so that
its cut covers every report accrued before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import count, islice
from pathlib import Path
from typing import Any

import psycopg

from api.door.second_person import ActSignatures, act_request, header_fields
from api.epochs.files import clients_path, epoch_path, parts_path, rewards_in
from api.epochs.gate import missing_for
from api.epochs.settling import settled_by_lanes
from api.process.collecting import collecting_later
from api.process.founding import is_development
from api.process.leading import keeping_out
from contracts.durable_file import drafted, sha256_of
from domain.authority.register import register_of
from domain.checked_acts import CheckedAct
from domain.epochs import epoch as epochs
from domain.epochs.epoch import (
    CloseEpoch,
    CreditRewards,
    Epoch,
    EpochClosing,
    EpochSealed,
    MatureRewards,
    SealEpoch,
)
from domain.epochs.epoch_file import file_sha256, read_cut
from domain.epochs.forfeit import FORFEITS_MAX, ForfeitRewards, due_us
from domain.epochs.policy import NETWORK, PolicyPublished
from domain.epochs.reasons import EpochsReason
from domain.epochs.reward_changes import Reward
from domain.epochs.settlement import TREASURY, Cut, CutHead, Outcome, Settlement, settle
from domain.metering.reasons import MeteringReason
from domain.money import token
from domain.prices.oracle import HEALTHY
from domain.prices.price_feed import FEED, TakePriceSnapshot, reading_of
from domain.refusal import Refused
from ledger.log.handle import Ledger
from ledger.tree import cut, trees
from projections import tables
from projections.epochs.cut_nodes import read_nodes
from projections.epochs.epochs import read_recyclable
from projections.epochs.rewards import read_forfeitable

Connection = psycopg.Connection[Any]


class SealDiffers(Exception):
    """The same cut gives another result than when it was sealed: stop, let a person look."""


def known_epochs(ledger: Ledger, first: int = 1) -> Iterator[tuple[int, Epoch]]:
    """Every epoch that was opened, from `first` on, with its state."""
    for number in count(first):
        state = epoch_state(ledger, number)
        if state.opened is None:
            return
        yield number, state


def open_epoch(ledger: Ledger) -> int:
    """The number of the epoch that is open: the last one. 0 before the first."""
    return max((number for number, _ in known_epochs(ledger)), default=0)


def epoch_state(ledger: Ledger, epoch: int) -> Epoch:
    """What the log says of an epoch now; without `opened` when there is none."""
    return ledger.market.state_of(epochs.stream_of(epoch))


# --- closing ---------------------------------------------------------------------------------


def close_epoch(
    ledger: Ledger,
    connection: Connection,
    epoch: int,
    now_us: int,
    by: str,
    *,
    override: str | None = None,
    signed: Mapping[str, Any] | None = None,
) -> int:
    """End an epoch at a new pin and open the next one; the market position of the cut.

    An epoch that was closed before is left as it is. `override` is the reason to close although
    the gate still waits; who did so, why, and for what it waited is a fact (EpochGateOverridden).
    That takes two persons: `signed` is the file of `--to-sign` with their signatures. Raises
    Refused: EPOCH_UNKNOWN, EPOCH_NOT_OVER, CUT_INCOMPLETE naming what is missing, CHECKER_NEEDED,
    ACT_SIGNATURE_VOID; Problem: signature_invalid.
    """
    with keeping_out(connection, "accrual"):
        state = _known(ledger, epoch)
        if state.closing is None:
            missing = _gate(ledger, connection, state, now_us)
            trees.follow_all(connection)

            def command() -> CloseEpoch | CheckedAct:
                pin = cut.pin(connection).fact(now_us)
                close = CloseEpoch(
                    epoch=epoch, pin=pin, by=by, at_us=now_us, missing=missing, override=override
                )
                if override is None:
                    return close
                return _overriding(ledger, close, override, signed)

            # Another job may pin meanwhile, further than what was read here.
            again_on = frozenset({MeteringReason.USAGE_POSITION_FELL})
            ledger.handle(command, key=None, now_us=now_us, again_on=again_on)
    return cut_position(ledger, epoch)


def override_act(epoch: int, reason: str) -> tuple[str, str, dict[str, str]]:
    """What two persons sign to go round the gate of an epoch: it is asked for on the machine."""
    return "RUN", f"tallystick epoch close {epoch}", {"override": reason}


def _overriding(
    ledger: Ledger, close: CloseEpoch, reason: str, signed: Mapping[str, Any] | None
) -> CheckedAct:
    given = None if signed is None else ActSignatures.model_validate(header_fields(signed))
    asked = act_request(
        register_of(ledger.world()),
        override_act(close.epoch, reason),
        given,
        request=f"epoch {close.epoch}" if signed is None else signed["request"],
        by=close.by,
        key_id="",
        at_us=close.at_us,
    )
    return CheckedAct(command=close, asked=asked)


def _gate(ledger: Ledger, connection: Connection, state: Epoch, now_us: int) -> tuple[str, ...]:
    """What whoever closes would still have to wait for; nothing is asked before the end."""
    opened = state.opened
    assert opened is not None
    return missing_for(ledger, connection, opened, now_us) if now_us >= opened.end_us else ()


def cut_position(ledger: Ledger, epoch: int) -> int:
    """The position of the `UsagePinned` right after the epoch's `EpochClosing`.

    Raises Refused: EPOCH_STATE when it is not closed.
    """
    closing = ledger.market.one_of(epochs.stream_of(epoch), EpochClosing)
    if closing is None:
        raise Refused(EpochsReason.EPOCH_STATE, epoch=epoch, rule="not closed")
    return closing.position + 1


def _known(ledger: Ledger, epoch: int) -> Epoch:
    state = epoch_state(ledger, epoch)
    if state.opened is None:
        raise Refused(EpochsReason.EPOCH_UNKNOWN, epoch=epoch)
    return state


# --- sealing ---------------------------------------------------------------------------------


@collecting_later()
def seal_epoch(
    ledger: Ledger, connection: Connection, epoch: int, now_us: int, *, data_dir: Path
) -> EpochSealed:
    """Seal a closed epoch and credit all of its rewards; what was done before is not done again.

    Also writes the epoch file again when it is gone, and whose work its rewards pay for.
    Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, EPOCH_OUT_OF_ORDER; SealDiffers.
    """
    head, sealed = cut_head(ledger, connection, epoch), _known(ledger, epoch).sealed
    with settled_by_lanes(
        connection, head, development=is_development(ledger), folder=parts_path(data_dir, epoch)
    ) as found:
        told = None if sealed is None else sealed.file_sha256
        digest = _keep_file(epoch_path(data_dir, epoch), found.file(), told)
        clients = _keep_file(clients_path(data_dir, epoch), found.clients_file(digest))
        settled = found.outcome
    if sealed is None:
        _require_settled(epoch_path(data_dir, epoch), digest)
        command = SealEpoch(
            outcome=settled,
            file_sha256=digest,
            at_us=now_us,
            price_snapshot=_price_snapshot(ledger, now_us),
            clients_sha256=clients,
        )
        ledger.handle(command, key=None, now_us=now_us)
    _check_carry(ledger, epoch)
    _credit(ledger, settled, now_us)
    sealed = _known(ledger, epoch).sealed
    assert sealed is not None
    return sealed


CHECKED_BYTES_MAX = 2**22
"""An epoch file up to this size is settled again, as a whole, before its hash is sealed."""


def _require_settled(path: Path, digest: str) -> None:
    """The file on disk has this hash and, unless it is large, is what its own nodes come to by
    `settle`, which shares no lanes, rows or processes with what wrote it. Raises SealDiffers.
    """
    if path.stat().st_size > CHECKED_BYTES_MAX:
        found = sha256_of(path)
    else:
        found = file_sha256(settle(read_cut(path.read_bytes())))
    if found != digest:
        raise SealDiffers(f"{path.name}: written as {digest}, settled again {found}")


def _check_carry(ledger: Ledger, epoch: int) -> None:
    """carry in the books == what the last seal left + what was forfeited since"""
    carry = 0
    for _, state in known_epochs(ledger, epoch):
        if state.sealed is not None:
            carry = state.sealed.compute_carry.units
        else:
            carry += state.changes.forfeited
    held = ledger.books.balance("pool:compute:carry")
    assert held == carry, (epoch, held, carry)


def _price_snapshot(ledger: Ledger, now_us: int) -> int | None:
    """The number of a healthy snapshot taken now, to be told with the seal; None without one."""
    feed = ledger.market.state_of(FEED)
    if reading_of(feed, now_us).price is None:
        return None
    ledger.handle(TakePriceSnapshot(by="job", at_us=now_us), key=None, now_us=now_us)
    taken = ledger.market.state_of(FEED).last
    return taken.number if taken is not None and taken.health == HEALTHY else None


INPUTS = ("epochs", "availability", "reputation")
"""The views that a settlement reads."""


def settlement_at(ledger: Ledger, connection: Connection, epoch: int) -> Settlement:
    """What the cut of an epoch gives, computed now, whether it is sealed already or not; with its
    nodes, all of them in memory.

    Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, EPOCH_OUT_OF_ORDER; SealDiffers when it is sealed
    with another result.
    """
    head, sealed = cut_head(ledger, connection, epoch), _known(ledger, epoch).sealed
    development = is_development(ledger)
    nodes = read_nodes(connection, epoch, head.cut_position, development=development)
    told = {one.name: getattr(head, one.name) for one in fields(CutHead)}
    settlement = settle(Cut(**told, nodes=nodes))
    if sealed is not None and file_sha256(settlement) != sealed.file_sha256:
        raise SealDiffers(f"epoch {epoch}: sealed {sealed.file_sha256}")
    return settlement


def cut_head(ledger: Ledger, connection: Connection, epoch: int) -> CutHead:
    """What the cut of an epoch says beside its nodes; the views have read what they say of them.

    Raises Refused: EPOCH_UNKNOWN, EPOCH_STATE, EPOCH_OUT_OF_ORDER.
    """
    state = _known(ledger, epoch)
    assert state.opened is not None
    position = cut_position(ledger, epoch)
    tables.step_all(connection, only=INPUTS)
    policy = _policy(ledger, state.opened.policy_version)
    sealed = state.sealed
    unissued = ledger.books.balance("emission:unissued")
    if sealed is not None and sealed.unissued is not None:  # the cap has less left now
        unissued = sealed.unissued.units
    recyclable = read_recyclable(connection, epoch, position)
    before = _sealed_before(ledger, epoch)
    openings = epochs.openings(before, unissued, recyclable, state.changes)
    return CutHead(epoch=epoch, cut_position=position, policy=policy, openings=openings)


def _policy(ledger: Ledger, version: int) -> PolicyPublished:
    published = ledger.market.state_of(NETWORK).published
    policy = published[version - 1]
    assert isinstance(policy, PolicyPublished)
    return policy


def _sealed_before(ledger: Ledger, epoch: int) -> EpochSealed | None:
    if epoch == 1:
        return None
    sealed = epoch_state(ledger, epoch - 1).sealed
    if sealed is None:
        raise Refused(
            EpochsReason.EPOCH_OUT_OF_ORDER, epoch=epoch, rule="the one before is not sealed"
        )
    return sealed


def sealed_rewards(
    ledger: Ledger, connection: Connection, epoch: int, *, data_dir: Path
) -> Iterator[tuple[str, int]]:
    """What was sealed for each account, in order: from the epoch file when it has the sealed hash,
    else computed again.

    Raises like `settlement_at`.
    """
    sealed, path = _known(ledger, epoch).sealed, epoch_path(data_dir, epoch)
    if sealed is not None and path.exists() and sha256_of(path) == sealed.file_sha256:
        return rewards_in(path)
    return iter(settlement_at(ledger, connection, epoch).rewards)


def _keep_file(path: Path, pieces: Iterable[bytes], sealed: str | None = None) -> str:
    """Durable before the fact that names its hash, which is returned; never another content under
    one name than was sealed. Raises SealDiffers: nothing is written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafted(path) as draft:
        digest = draft.take(pieces)
        if sealed is not None and digest != sealed:
            raise SealDiffers(f"{path.name}: sealed {sealed}")
        if not (path.exists() and sha256_of(path) == digest):
            draft.keep()
    return digest


def _credit(ledger: Ledger, settled: Outcome, now_us: int) -> None:
    epoch = settled.epoch
    state = epoch_state(ledger, epoch)
    assert state.sealed is not None
    for number in range(len(state.chunk_hashes) + 1, state.sealed.chunks + 1):
        rewards = epochs.chunk_of(settled, number)
        command = CreditRewards(epoch=epoch, chunk=number, rewards=rewards, at_us=now_us)
        ledger.handle(command, key=None, now_us=now_us)


# --- maturing, and all of it -----------------------------------------------------------------


@collecting_later()
def mature_rewards(
    ledger: Ledger, connection: Connection, epoch: int, now_us: int, *, data_dir: Path
) -> int:
    """Mature the credited chunks of an epoch whose holdback has passed; how many it were."""
    state = _known(ledger, epoch)
    if state.status != "credited" or not _is_mature(ledger, state, now_us):
        return 0
    assert state.sealed is not None
    rewards = sealed_rewards(ledger, connection, epoch, data_dir=data_dir)
    for number in range(1, state.sealed.chunks + 1):
        chunk = epochs.as_rewards(islice(rewards, epochs.CHUNK_MAX))
        if number > state.matured_count:
            command = MatureRewards(epoch=epoch, chunk=number, rewards=chunk, at_us=now_us)
            ledger.handle(command, key=None, now_us=now_us)
    return state.sealed.chunks - state.matured_count


def _is_mature(ledger: Ledger, state: Epoch, now_us: int) -> bool:
    assert state.opened is not None
    policy = _policy(ledger, state.opened.policy_version)
    return now_us >= state.opened.end_us + policy.holdback_epochs * policy.epoch_length_us


def forfeit_rewards(ledger: Ledger, connection: Connection, now_us: int) -> int:
    """What matured long ago for accounts without a wallet goes back to the pool; how many.

    Raises Refused when somebody else did so, or a wallet was linked, meanwhile: call it again.
    """
    epoch = open_epoch(ledger)
    through = _forfeited_through(ledger, epoch, now_us)
    if not through:
        return 0
    done = 0
    while True:
        after = epoch_state(ledger, epoch).changes.forfeits
        tables.step_all(connection, only=("epochs", "access", "rewards"))
        due = read_forfeitable(connection, through, treasury=TREASURY, limit=FORFEITS_MAX)
        if not due:
            return done
        command = ForfeitRewards(
            epoch=epoch,
            through_epoch=through,
            after=after,
            rewards=tuple(Reward(one.account_id, token(one.units)) for one in due),
            at_us=now_us,
        )
        ledger.handle(command, key=None, now_us=now_us)
        done += len(due)


def _forfeited_through(ledger: Ledger, epoch: int, now_us: int) -> int:
    """The last epoch up to which everything has been mature for the policy's time; 0 for none."""
    world, through = ledger.world(), 0
    for number in range(1, epoch):
        at_us = due_us(world, epoch, number)
        if at_us is None or now_us < at_us:
            break
        through = number
    return through


def settle_due(
    ledger: Ledger, connection: Connection, now_us: int, by: str, *, data_dir: Path
) -> tuple[str, ...]:
    """The job: close what is over, seal, credit and mature what is due, in order of epochs.

    Answers what an epoch that is over still waits for. Raises like the steps, but never
    CUT_INCOMPLETE.
    """
    for epoch, state in known_epochs(ledger):
        assert state.opened is not None
        if state.status == "settled":
            continue
        if state.status == "open":
            missing = _gate(ledger, connection, state, now_us)
            if missing or now_us < state.opened.end_us:
                return missing
            try:
                close_epoch(ledger, connection, epoch, now_us, by)
            except Refused as refused:
                if refused.reason is not MeteringReason.CUT_INCOMPLETE:
                    raise
                later: Any = refused.facts["missing"]  # such as a chain that is read since
                return tuple(later)
        if state.status != "credited":
            seal_epoch(ledger, connection, epoch, now_us, data_dir=data_dir)
        mature_rewards(ledger, connection, epoch, now_us, data_dir=data_dir)
    return ()
