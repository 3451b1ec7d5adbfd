"""What the ledger does on chain, and what the chain tells the ledger. Safe to kill at any point.

    scan:   final events -> commands of the market log, each once
    mint:   a sealed epoch's emission to the distributor, in order
    root:   leaves -> payout.json, durable -> PayoutRootBuilt -> proposeRoot, timelock, acceptRoot
    burn:   credits charged to be burned, once final -> BurnIntended -> burnForCredits -> confirmed

Every step looks first for what it did before: transactions by their purpose ("mint/7"), facts by
their stream. Nothing moves money here: money moves when a final event enters the log. Any
difference between chain and ledger stops proposals; a root that was vetoed is not proposed again
by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from api.chain.payout_leaves import Leaves, leaves_of, rows_of
from api.chain.reconcile import reconcile, settled_block, tree_of
from api.chain.stores import OutboxStore, ScannerStore
from api.epochs import closing as settlement
from api.epochs.payout_files import payout_path
from api.governance.passing import why_it_waits
from contracts import manifest
from contracts.abi import ContractRefused
from contracts.chain import Call
from contracts.deployment import Difference
from contracts.durable_file import write_durably
from contracts.outbox import FeeCapReached, Intent, Limits, Outbox, State
from contracts.scanner import Observation, Scanner
from contracts.signers import Signer
from contracts.tally import PriceQuote, Tally
from domain.chain import burn as burns
from domain.chain import payout_root as payouts
from domain.chain.burn import Burn, BurnIntended, ConfirmBurn, FailBurn, IntendBurn
from domain.chain.payout_root import (
    NO_ROOT,
    BuildPayoutRoot,
    ConfirmEpochMint,
    ConfirmPayout,
    Payout,
    PayoutRootBuilt,
    RecordRootAccepted,
    RecordRootProposed,
    RecordRootVetoed,
)
from domain.chain.reasons import ChainReason
from domain.duration import SECOND_US
from domain.epochs.epoch import Epoch, EpochSealed
from domain.epochs.settlement import TREASURY
from domain.frozen import replace
from domain.funds.deposit import ConfirmCreditsPurchase
from domain.governance.breakers import MINT, PAYOUT
from domain.money import credit, token
from domain.parties.account import wallet_stream
from domain.prices.price_feed import FEED, Feed, TakePriceSnapshot, reading_of
from domain.prices.token_burn import tokens_for
from domain.refusal import Refused
from ledger.log.handle import Ledger
from projections import tables
from projections.epochs.burning import read_ripe
from projections.epochs.epochs import EPOCHS

__all__ = [
    "ChainJobs",
    "NetworkBurns",
    "Report",
    "Stopped",
    "account_ref",
    "payout_path",
    "reconcile",
]

Connection = psycopg.Connection[Any]

ROUNDS_MAX = 16
"""Passes of one step: what one pass sends, the next one sees when the chain is fast."""
TRIES_MAX = 3
"""Transactions made for one purpose, each only after the final failure of the one before."""
QUOTE_LIFE_S = 300

ACCOUNT_REF = b"tallystick/account/v1"
NETWORK_BURN_REF = sha256(b"tallystick/network-burn/v1").digest()
"""The account reference of the network's own burns; the memo is the burn's number."""

_ACCOUNT_OF_REF = """
    SELECT account_id FROM proj_access.account
    WHERE sha256(convert_to('tallystick/account/v1' || account_id, 'UTF8')) = %s
"""


class Stopped(Exception):
    """Something happened on chain that the ledger cannot take: a person must look."""


@dataclass(frozen=True, slots=True)
class NetworkBurns:
    """How the network burns what it owes: its wallet, and the key that signs the price on chain.

    The price is the ledger's own: the median of a snapshot of its sources, whose number is the
    round on chain. A network that never named sources is told `fixed_price`, micro-USD per whole
    token, for one round.
    """

    wallet: Signer
    oracle: Signer
    fixed_price: int | None = None
    credits_min: int = 1


@dataclass(slots=True)
class Report:
    """What one step did. `waiting` says in words what cannot go on yet, and why."""

    effects: int = 0
    done: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)


def account_ref(account_id: str) -> bytes:
    """Whom a purchase on chain credits: SHA-256("tallystick/account/v1" + account id), 32 bytes."""
    return sha256(ACCOUNT_REF + account_id.encode()).digest()


class ChainJobs:
    """The chain's side of the service: one leader at a time. Make a new one after any exception."""

    def __init__(
        self,
        ledger: Ledger,
        connect: Callable[[], Connection],
        tally: Tally,
        *,
        data_dir: Path,
        emitter: Signer,
        proposer: Signer,
        treasury: str,
        burns: NetworkBurns | None = None,
        limits: Limits | None = None,
    ) -> None:
        """`connect` gives connections in autocommit mode; `treasury` is the address of its leaf.

        Without `burns` the network's own burns are taken from the chain, but none is sent.
        """
        assert burns is None or burns.wallet.address.lower() == treasury.lower(), treasury
        self._ledger = ledger
        self._tally = tally
        self._data_dir = data_dir
        self._emitter, self._proposer = emitter, proposer
        self._treasury = treasury.lower()
        self._burns = burns
        self._now_us = 0
        self._connection = connect()
        self._locks = connect()
        self._store = OutboxStore(ledger, self._locks, lambda: self._now_us)
        signers = [emitter, proposer, *([burns.wallet] if burns else [])]
        self._outbox = Outbox(self._store, tally.chain, signers, limits)
        self._scanned = ScannerStore(self._connection, tally.deployment)
        first = tally.deployment.block
        self._scanner = Scanner(self._scanned, tally.chain, tally, first=first)
        self._unpaid = 1  # epochs before this one need no mint and no root any more
        self._report = Report()

    def close(self) -> None:
        """Give the connections back."""
        self._connection.close()
        self._locks.close()

    def step(self, now_us: int) -> Report:
        """Do what can be done now, and what follows from it; call it again when time has passed.

        Raises Stopped, Refused (a final event contradicts the log: nothing after it is taken),
        scanner.FinalityBroken, chain.NodeFailed.
        """
        self._now_us = now_us
        total = Report()
        self._store.tell_all()
        for _ in range(ROUNDS_MAX):
            self._report = Report()
            self._advance()
            self._report.effects = self.scan()
            for job in (self._mint, self._roots, self._burn):
                job()
            total.effects += self._report.effects
            total.done += self._report.done
            total.waiting = self._report.waiting
            total.differences = self._report.differences
            if not self._report.effects and not self._report.done:
                break
        return total

    def propose_again(self, epoch: int, now_us: int) -> Report:
        """Propose a vetoed root once more, as it was: an operator's decision, never the job's.

        Raises Refused: PAYOUT_STATE when the last word on it was no veto.
        """
        self._now_us, self._report = now_us, Report()
        payout = self._payout(epoch)
        if payout.status != "vetoed":
            raise Refused(ChainReason.PAYOUT_STATE, epoch=epoch, status=payout.status)
        self._propose(epoch, payout)
        return self._report

    # --- what the chain tells --------------------------------------------------------------------

    def scan(self) -> int:
        """Read the chain and take every final event; how many were taken."""
        self._scanner.catch_up()
        number = settled_block(self._tally, self._scanned)
        effects = self._scanner.effects()  # all that wait up to that block, or a later one
        for effect in effects:
            self._take(effect)
            self._scanner.done(effect)
        if number >= 0:
            block = self._tally.chain.block(number)
            assert block is not None, number
            self._scanned.settle(number, block.time_s * SECOND_US)
        return len(effects)

    def _take(self, effect: Observation) -> None:
        takers = {
            "CreditsPurchased": self._purchased,
            "EpochMinted": self._minted,
            "RootProposed": self._proposed,
            "RootVetoed": self._vetoed,
            "RootAccepted": self._accepted,
            "Claimed": self._claimed,
        }
        self._handle(takers[effect.event](effect, effect.arguments))

    def _handle(self, command: Any) -> None:
        self._ledger.handle(command, key=None, now_us=self._now_us)

    def _purchased(self, effect: Observation, told: Mapping[str, str]) -> Any:
        own = self._own_burn(effect, told)
        if own is not None:
            return own
        tables.step_all(self._connection, only=("access",))
        row = self._connection.execute(_ACCOUNT_OF_REF, (_bytes(told["accountRef"]),)).fetchone()
        return ConfirmCreditsPurchase(
            burner=self._tally.deployment.burner.lower(),
            purchase_id=int(told["purchaseId"]),
            account_id=None if row is None else row[0],
            payer=told["payer"].lower(),
            tokens_burned=token(int(told["tokensBurned"])),
            credits=credit(int(told["credits"])),
            price_round=int(told["round"]),
            tx_hash=effect.transaction,
            log_index=effect.log_index,
            block_number=effect.block_number,
            at_us=self._now_us,
        )

    def _own_burn(self, effect: Observation, told: Mapping[str, str]) -> ConfirmBurn | None:
        """A burn of the network's own, if it is that: ours by wallet, reference and amount."""
        is_ours = (
            _bytes(told["accountRef"]) == NETWORK_BURN_REF
            and told["payer"].lower() == self._treasury
        )
        burn_id = int.from_bytes(_bytes(told["memo"]), "big")
        if not is_ours or not 0 < burn_id < 1 << 62:
            return None
        burn = self._burn_state(burn_id)
        tokens = token(int(told["tokensBurned"]))
        known = burn.confirmed.tx_hash if burn.confirmed else None
        is_due = burn.is_open or known == effect.transaction
        if burn.intended is None or burn.intended.tokens != tokens or not is_due:
            return None
        return ConfirmBurn(
            burn_id=burn_id,
            tokens=tokens,
            tx_hash=effect.transaction,
            block_number=effect.block_number,
            at_us=self._now_us,
        )

    def _minted(self, effect: Observation, told: Mapping[str, str]) -> ConfirmEpochMint:
        return ConfirmEpochMint(
            epoch=int(told["epoch"]),
            amount=token(int(told["amount"])),
            settlement_id=told["settlementId"].removeprefix("0x"),
            tx_hash=effect.transaction,
            block_number=effect.block_number,
            at_us=self._now_us,
        )

    def _proposed(self, effect: Observation, told: Mapping[str, str]) -> RecordRootProposed:
        return RecordRootProposed(
            valid_at_us=int(told["validAt"]) * SECOND_US, **self._root_of(effect, told)
        )

    def _vetoed(self, effect: Observation, told: Mapping[str, str]) -> RecordRootVetoed:
        return RecordRootVetoed(reason=told["reason"], **self._root_of(effect, told))

    def _accepted(self, effect: Observation, told: Mapping[str, str]) -> RecordRootAccepted:
        return RecordRootAccepted(**self._root_of(effect, told))

    def _root_of(self, effect: Observation, told: Mapping[str, str]) -> dict[str, Any]:
        """Which of our roots an event is about. Raises Stopped when it is none of ours."""
        for built in reversed(rows_of(self._connection, "payout.root_built.v1")):
            if (built["seq"], built["root"]) == (int(told["seq"]), told["root"]):
                return {
                    "epoch": built["epoch"],
                    "seq": built["seq"],
                    "root": built["root"],
                    "tx_hash": effect.transaction,
                    "at_us": self._now_us,
                }
        raise Stopped(f"{effect.event} of a root that is not ours: {dict(told)}")

    def _claimed(self, effect: Observation, told: Mapping[str, str]) -> ConfirmPayout:
        address = told["account"].lower()
        account_id = self._account_at(address)
        return ConfirmPayout(
            distributor=self._tally.deployment.distributor.lower(),
            account_id=account_id,
            address=address,
            seq=int(told["seq"]),
            amount=token(int(told["amount"])),
            cumulative=token(int(told["cumulative"])),
            tx_hash=effect.transaction,
            log_index=effect.log_index,
            block_number=effect.block_number,
            at_us=self._now_us,
            granted=self._granted() if account_id == TREASURY else 0,
        )

    def _granted(self) -> int:
        """What grants hold of the treasury's tokens, less what its claims took of that."""
        held = (
            units
            for name, units in self._ledger.books.balances("grant:").items()
            if not name.endswith(":fund")  # credits
        )
        return sum(held) - self._ledger.books.balance("chain:treasury")

    def _account_at(self, address: str) -> str:
        """The account that an address belongs to for ever; the treasury's is configured."""
        wallet = self._ledger.market.state_of(wallet_stream(address))
        if wallet.account_id is not None:
            return wallet.account_id
        if address == self._treasury:
            return TREASURY
        raise Stopped(f"a claim for {address}, which belongs to no known account")

    # --- what we send ----------------------------------------------------------------------------

    def _advance(self) -> None:
        """Carry on what was signed. What was only intended is taken up by the job it is for."""
        for intent_id in self._store.unfinished():
            before = self._store.load(intent_id)
            if before is not None and before.state is not State.INTENDED:
                self._noted(before, self._outbox.advance(intent_id))

    def _send(self, purpose: str, sender: Signer, call: Call) -> None:
        """Submit, or carry on. What has failed for good is tried again as "mint/7/2".

        Raises Stopped after the last try.
        """
        for attempt in range(1, TRIES_MAX + 1):
            intent_id = purpose if attempt == 1 else f"{purpose}/{attempt}"
            before = self._store.load(intent_id)
            if before is None or before.state not in {State.FAILED, State.CANCELLED}:
                self._submit(intent_id, before, sender, call)
                return
        raise Stopped(f"{purpose} failed {TRIES_MAX} times: {before.note if before else ''}")

    def _submit(self, intent_id: str, before: Intent | None, sender: Signer, call: Call) -> None:
        try:
            intent = self._outbox.submit(intent_id, sender.address, call)
        except (ContractRefused, FeeCapReached) as refused:
            self._report.waiting.append(f"{intent_id}: {refused}")
            return
        self._noted(before, intent)
        if intent.state is not State.FINAL:
            self._report.waiting.append(f"{intent_id}: {intent.state.value} {intent.note}".strip())

    def _noted(self, before: Intent | None, after: Intent) -> None:
        if before is None or before.state is not after.state:
            self._report.done.append(f"{after.id}: {after.state.value}")

    def _payout(self, epoch: int) -> Payout:
        return self._ledger.market.state_of(payouts.stream_of(epoch))

    # --- minting ---------------------------------------------------------------------------------

    def _mint(self) -> None:
        """Mint the first sealed epoch that is not minted; the next one waits for it."""
        for epoch, state in settlement.known_epochs(self._ledger, self._unpaid):
            if state.sealed is None:
                return
            if self._payout(epoch).mint is None:
                sealed = state.sealed
                if self._is_held_up(MINT, f"mint/{epoch}", sealed.minted):
                    return
                file_hash = bytes.fromhex(sealed.file_sha256)
                call = self._tally.mint_epoch(epoch, sealed.minted, file_hash)
                self._send(f"mint/{epoch}", self._emitter, call)
                return

    # --- roots -----------------------------------------------------------------------------------

    def _roots(self) -> None:
        """Bring the roots on their way, one after the other, as far as they go now."""
        for epoch, state in settlement.known_epochs(self._ledger, self._unpaid):
            payout = self._payout(epoch)
            if payout.status == "minted" and state.status in ("credited", "settled"):
                if self._build(epoch, state):
                    payout = self._payout(epoch)
                    self._report.done.append(f"root/{epoch}: built")
                else:  # nobody would be paid anew: this epoch has no root
                    self._unpaid = epoch + 1
                    continue
            match payout.status:
                case "accepted":
                    self._unpaid = epoch + 1
                    continue
                case "built":
                    self._propose(epoch, payout)
                case "proposed":
                    self._accept(epoch, payout)
                case "vetoed":
                    self._report.waiting.append(f"root/{epoch}: vetoed, an operator decides")
                case _:
                    pass
            return

    def _build(self, epoch: int, state: Epoch) -> bool:
        """Write payout.json, then record its root. False when the root would pay nobody anew."""
        leaves = leaves_of(self._ledger, self._connection, epoch, self._treasury)
        assert leaves is not None, epoch
        if not leaves.pays_anew:
            return False
        assert state.sealed is not None, epoch
        before = self._root_before(epoch)
        found = self._payout_file(epoch, state.sealed, leaves, before)
        path = payout_path(self._data_dir, epoch)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, manifest.encode(found))
        self._handle(
            BuildPayoutRoot(
                epoch=epoch,
                seq=found.seq,
                root=found.root,
                manifest_sha256=found.manifest,
                previous_root=found.previous_root,
                committed=token(found.committed),
                leaves=len(found.tree.rows),
                at_us=self._now_us,
            )
        )
        return True

    def _root_before(self, epoch: int) -> tuple[int, str]:
        """Number and root of the last root before this epoch's; (0, NO_ROOT) before the first."""
        for earlier in range(epoch - 1, 0, -1):
            root = self._payout(earlier).root
            if root is not None:
                return root.seq, root.root
        return 0, NO_ROOT

    def _payout_file(
        self, epoch: int, sealed: EpochSealed, leaves: Leaves, before: tuple[int, str]
    ) -> manifest.Payout:
        deployment = self._tally.deployment
        return manifest.Payout(
            epoch=epoch,
            cut=str(sealed.cut_position),
            policy_version=sealed.policy_version,
            log_head=_head_at(self._connection, leaves.cut.position),
            chain_id=deployment.chain_id,
            distributor=deployment.distributor,
            asset=deployment.token,
            seq=before[0] + 1,
            committed=leaves.committed,
            minted=sealed.minted,
            previous_root=before[1],
            manifest=sealed.file_sha256,
            tree=tree_of(self._tally, leaves),
        )

    def _propose(self, epoch: int, payout: Payout) -> None:
        """Propose a built root, unless chain and ledger differ in anything."""
        root = payout.root
        assert root is not None, epoch
        purpose = f"propose/{epoch}"
        if payout.vetoed is not None:  # each veto makes place for one more proposal
            purpose += f"/after-{payout.vetoed.tx_hash[2:18]}"
        intent = self._store.load(purpose)
        if intent is None or intent.state in {State.INTENDED, State.FAILED, State.CANCELLED}:
            found = reconcile(self._ledger, self._connection, self._tally, treasury=self._treasury)
            if found:
                self._report.differences = found
                self._report.waiting.append(f"{purpose}: chain and ledger differ")
                return
            if self._is_held_up(PAYOUT, f"payout/{epoch}", self._promised_anew(epoch, root)):
                return
        manifest_hash = bytes.fromhex(root.manifest_sha256)
        call = self._tally.propose_root(
            root.seq, _bytes(root.root), manifest_hash, root.committed.units
        )
        self._send(purpose, self._proposer, call)

    def _promised_anew(self, epoch: int, root: PayoutRootBuilt) -> int:
        """What a root commits to beyond the one before it, in TOKEN units."""
        return root.committed.units - self._committed_before(epoch)

    def _committed_before(self, epoch: int) -> int:
        for earlier in range(epoch - 1, 0, -1):
            root = self._payout(earlier).root
            if root is not None:
                return root.committed.units
        return 0

    def _is_held_up(self, breaker: str, ref: str, units: int) -> bool:
        """Whether a breaker does not let an amount pass now; why is told, and in the log."""
        waits = why_it_waits(self._ledger, breaker, ref, units, self._now_us)
        if waits is not None:
            self._report.waiting.append(f"{ref}: {waits}")
        return waits is not None

    def _accept(self, epoch: int, payout: Payout) -> None:
        proposed = payout.proposed
        assert proposed is not None, epoch
        left_s = proposed.valid_at_us // SECOND_US - self._tally.chain.head().time_s
        if left_s > 0:
            self._report.waiting.append(f"accept/{epoch}: {left_s} s of the timelock are left")
            return
        pending = self._tally.pending()
        if pending is None or pending.root != proposed.root:
            self._report.waiting.append(f"accept/{epoch}: done by another process, not final yet")
            return
        purpose = f"accept/{epoch}/of-{proposed.tx_hash[2:18]}"
        self._send(purpose, self._proposer, self._tally.accept_root())

    # --- the network's own burns -----------------------------------------------------------------

    def _burn(self) -> None:
        """One burn at a time: finish the open one, or intend the next when there is something."""
        if self._burns is None:
            return
        last_id, last = self._last_burn()
        if last.is_open:
            assert last.intended is not None
            self._burn_tokens(self._burns, last.intended)
            return
        feed = self._feed()
        reading = reading_of(feed, self._now_us)
        price = reading.price if feed.is_set else self._burns.fixed_price
        if price is None:
            self._report.waiting.append(f"burn: no price, {reading.health}")
            return
        command = self._next_burn(self._burns, last_id, last, price)
        if command is not None:
            self._handle(self._at_a_snapshot(command) if feed.is_set else command)
            self._report.done.append(f"burn/{command.burn_id}: intended")

    def _feed(self) -> Feed:
        return self._ledger.market.state_of(FEED)

    def _at_a_snapshot(self, command: IntendBurn) -> IntendBurn:
        """The burn at the price of a snapshot taken for it. Raises Refused, from the burn's own
        decision, when a price that came in between made the snapshot a dormant one.
        """
        self._handle(TakePriceSnapshot(by="job", at_us=self._now_us))
        taken = self._feed().last
        assert taken is not None
        return replace(
            command,
            price_micro_usd=taken.median_micro_usd or command.price_micro_usd,
            price_round=taken.number,
            price_snapshot=taken.number,
        )

    def _burn_state(self, burn_id: int) -> Burn:
        return self._ledger.market.state_of(burns.stream_of(burn_id))

    def _last_burn(self) -> tuple[int, Burn]:
        last = (0, Burn())
        for burn_id in count(1):
            burn = self._burn_state(burn_id)
            if burn.intended is None:
                return last
            last = (burn_id, burn)
        raise AssertionError("count does not end")

    def _next_burn(
        self, how: NetworkBurns, last_id: int, last: Burn, price: int
    ) -> IntendBurn | None:
        tables.step_all(self._connection, only=("epochs",))
        position = tables.position_of(self._connection, EPOCHS)
        first = 1
        if last.intended is not None:
            repeats = last.failed is not None
            first = last.intended.first_position if repeats else last.intended.last_position + 1
        ripe = read_ripe(self._connection, first, position)
        if not ripe or ripe[-1][1] < how.credits_min:
            return None
        through, credits = self._affordable(how, ripe, price)
        if credits < how.credits_min:
            return None
        return IntendBurn(
            burn_id=last_id + 1,
            first_position=first,
            last_position=position if (through, credits) == ripe[-1] else through,
            credits=credit(credits),
            price_micro_usd=price,
            price_round=1,
            at_us=self._now_us,
        )

    def _affordable(
        self, how: NetworkBurns, ripe: list[tuple[int, int]], price: int
    ) -> tuple[int, int]:
        """The last position up to which bank and wallet pay for all that became ripe, and how much
        that is: what they do not pay for yet delays nothing before it. What is on its way out of
        the bank is not there any more.
        """
        balances = self._ledger.books.balances_of(["world:bank", "payout:in_flight"])
        bank = balances["world:bank"] - balances["payout:in_flight"]
        held = self._tally.balance(how.wallet.address)
        paid = (0, 0)
        for through, credits in ripe:
            if credits > bank:
                self._report.waiting.append(f"burn: the bank holds {bank}, needed {ripe[-1][1]}")
                break
            if tokens_for(credits, price) > held:
                needed = tokens_for(ripe[-1][1], price)
                self._report.waiting.append(f"burn: the wallet holds {held}, needed {needed}")
                break
            paid = (through, credits)
        return paid

    def _burn_tokens(self, how: NetworkBurns, intended: BurnIntended) -> None:
        """Send the burn once. One that can never happen any more frees its range for the next."""
        intent_id = f"burn/{intended.burn_id}"
        intent = before = self._store.load(intent_id)
        try:
            if intent is None:
                call = self._burn_call(how, intended)
                intent = self._outbox.submit(intent_id, how.wallet.address, call)
            elif intent.state is State.INTENDED:
                intent = self._outbox.advance(intent_id)
        except FeeCapReached as refused:
            self._report.waiting.append(f"{intent_id}: {refused}")
            return
        except ContractRefused as refused:  # its quote is over, or the price moved on
            intent = self._outbox.cancel(intent_id)
            self._fail_burn(intended, str(refused))
            return
        self._noted(before, intent)
        if intent.state in {State.FAILED, State.CANCELLED}:
            self._fail_burn(intended, intent.note or intent.state.value)

    def _fail_burn(self, intended: BurnIntended, reason: str) -> None:
        burn_id = intended.burn_id
        self._handle(FailBurn(burn_id=burn_id, reason=reason, at_us=self._now_us))
        self._report.waiting.append(f"burn/{burn_id}: {reason}")

    def _burn_call(self, how: NetworkBurns, intended: BurnIntended) -> Call:
        start_s = self._tally.chain.head().time_s
        quote = PriceQuote(
            intended.price_round, start_s, start_s + QUOTE_LIFE_S, intended.price_micro_usd
        )
        return self._tally.burn_with_permit(
            how.wallet,
            intended.tokens.units,
            self._tally.sign_quote(how.oracle, quote),
            deadline_s=start_s + QUOTE_LIFE_S,
            account_ref=NETWORK_BURN_REF,
            memo=intended.burn_id.to_bytes(32, "big"),
        )


def _head_at(connection: Connection, position: int) -> str:
    """The chain value of the market log at a position, hex."""
    row = connection.execute(
        "SELECT chain FROM market_events WHERE notification_id = %s", (position,)
    ).fetchone()
    assert row is not None, position
    return bytes(row[0]).hex()


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))
