"""The chain of a run: the published contracts on the embedded EVM, and a bad way to it.

The contracts are the real ones and so is what they refuse. A simulator is the network around them:
a transaction is lost, waits, is mined although its sender was told nothing, or is in a block that
never happened. `CONFIRMATIONS` blocks behind the head are final and stay. Persons on the chain have
a good node of their own; only the service's way is bad.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eth.exceptions import HeaderNotFound

from api.chain.side import Keys
from contracts.chain import Block, BlockTag, Call, Chain, NodeFailed, Receipt, Sent
from contracts.deployment import Deployment, deploy_all
from contracts.devnet import Devnet
from contracts.signers import LocalKeySigner, check_signed
from contracts.tally import TOKEN_UNIT, Tally
from tests.contracts import stage
from tests.simulation.lines import Died

if TYPE_CHECKING:
    from tests.simulation.run import Run

CONFIRMATIONS = 3
TIMELOCK_S = 3_600
LOST, LATE, UNANSWERED, AWAY = "lost", "late", "mined and not told", "node away"
DIES_BEFORE, DIES_AFTER = "dies before it is sent", "dies after it was sent"
FAULTS = (LOST, LATE, UNANSWERED, AWAY, DIES_BEFORE, DIES_AFTER)
TREASURY = 9
"""Which public key is the treasury's."""


@dataclass
class Time:
    """What the chain takes for the time: the clock of the run that is played."""

    now_s: int


@dataclass(frozen=True)
class Deployed:
    """One chain for all runs: each begins at `mark`, and goes back there."""

    devnet: Devnet
    deployment: Deployment
    people: stage.Wallets
    time: Time
    mark: bytes
    head: int


@contextmanager
def deployed(
    genesis_s: int, now_s: int, epoch_s: int, caps: tuple[int, ...]
) -> Generator[Deployed, None, None]:
    """A chain whose first epoch begins at `genesis_s`."""
    time = Time(genesis_s)
    with Devnet(clock=lambda: time.now_s) as devnet:
        devnet.w3.middleware_onion.remove("validation")  # it asks for the chain's id each time
        chain, people = Quick(devnet), stage.wallets(devnet)
        terms = replace(
            stage.terms(genesis_s),
            timelock_s=TIMELOCK_S,
            epoch_length_s=epoch_s,
            epochs_per_period=1,
            period_caps=caps,
        )
        roles = stage.roles_of(people)
        made = deploy_all(chain, people["admin"], roles, terms, wait_until=devnet.travel_to)
        devnet.travel_to(now_s)
        yield Deployed(devnet, made, people, time, devnet.snapshot(), chain.head().number)


class Quick(Chain):
    """The node, but for headers: they are read where it keeps them, not through JSON. They are
    half of what is asked.
    """

    def __init__(self, devnet: Devnet) -> None:
        super().__init__(devnet.w3, confirmations=CONFIRMATIONS)
        self.devnet = devnet

    def block(self, number: BlockTag = "latest") -> Block | None:
        chain = self.devnet._backend.chain
        try:
            found: Any = self.devnet._run(
                chain.get_canonical_head
                if number == "latest"
                else lambda: chain.get_canonical_block_header_by_number(number)
            )
        except HeaderNotFound:
            return None
        return Block(
            number=found.block_number,
            hash="0x" + found.hash.hex(),
            parent_hash="0x" + found.parent_hash.hex(),
            time_s=found.timestamp,
            base_fee=found.base_fee_per_gas or 0,
        )


class Network:
    """The chain as everybody sees it in the end: what waits to be mined, and what is final."""

    def __init__(self, at: Deployed, now_s: int) -> None:
        self.at, self.devnet, self.people = at, at.devnet, at.people
        at.time.now_s = now_s
        self.chain = Quick(at.devnet)
        self.tally = Tally(self.chain, at.deployment)
        self.waiting: list[bytes] = []
        self.mined: list[tuple[int, bytes]] = []
        self._final = at.head

    def final(self) -> int:
        """It never falls: a reorganisation is above it."""
        self._final = max(self._final, self.chain.head().number - CONFIRMATIONS)
        return self._final

    def pass_time(self, now_s: int, blocks: int) -> None:
        """What waits is mined in its order, and so many empty blocks more."""
        self.at.time.now_s = max(self.at.time.now_s, now_s)
        self.devnet.travel_to(now_s)
        waiting, self.waiting = self.waiting, []
        for raw in waiting:
            self.take(raw)
        if blocks:
            self.devnet.mine(blocks)

    def take(self, raw: bytes) -> Sent:
        """Into a block of its own at once."""
        answer = self.chain.send(raw)
        if answer is Sent.ACCEPTED:
            self.mined.append((self.chain.head().number, raw))
        return answer

    def reorganise(self, depth: int, *, forgets: bool) -> int:
        """The last blocks never happened; how many. What was in them waits again or is lost."""
        final, head = self.final(), self.chain.head().number
        depth = min(depth, head - final)
        if depth <= 0:
            return 0
        block = self.chain.block(head - depth)
        assert block is not None
        self.devnet.revert(bytes.fromhex(block.hash.removeprefix("0x")))
        gone = [raw for number, raw in self.mined if number > block.number]
        self.mined = [one for one in self.mined if one[0] <= block.number]
        self.waiting = [*([] if forgets else gone), *self.waiting]
        self.at.time.now_s += 1  # the blocks that take their place are others
        self.devnet.mine(depth + 1)
        return depth

    def do(self, who: str | LocalKeySigner, call: Call) -> Receipt | None:
        """Somebody's own transaction on a good node; None where the contract refuses it."""
        signer = self.people[who] if isinstance(who, str) else who
        chain = self.chain
        wanted = chain.transaction(
            call, nonce=chain.transaction_count(signer.address), gas=1_000_000, fees=chain.fees()
        )
        signed = check_signed(signer.sign_transaction(wanted), wanted, signer.address)
        self.take(signed.raw)
        receipt = chain.receipt(signed.hash)
        return receipt if receipt is not None and receipt.ok else None

    def treasury(self) -> LocalKeySigner:
        return LocalKeySigner(self.devnet.keys[TREASURY], self.devnet.chain_id)

    def burn(self, account_ref: bytes, tokens: int) -> bool:
        """Somebody burns TOKEN of their own for credits of an account; whether they could."""
        played = stage.Stage(self.devnet, self.chain, self.tally, self.people)
        user = self.people["user"].address
        units = tokens * TOKEN_UNIT
        self.do("admin", self.tally.transfer(user, units))
        self.do("user", self.tally.approve(2**256 - 1))
        call = self.tally.burn_for_credits(units, played.quote(), account_ref=account_ref)
        return self.do("user", call) is not None

    def close(self) -> None:
        self.devnet.revert(self.at.mark)


class Way(Quick):
    """The service's node. What befalls a sending is drawn; what is read is true."""

    def __init__(self, run: Run, network: Network) -> None:
        super().__init__(network.devnet)
        self.run, self.network = run, network
        self.next: str | None = None

    def finalized(self) -> int:
        return self.network.final()

    def block(self, number: BlockTag = "latest") -> Block | None:
        return super().block(self.network.final() if number == "finalized" else number)

    def send(self, raw: bytes) -> Sent:
        fault, self.next = self.next, None
        if raw in self.network.waiting:
            return Sent.KNOWN
        match fault:
            case "lost":
                self._strike(LOST)
                return Sent.ACCEPTED
            case "late":
                self._strike(LATE)
                self.network.waiting.append(raw)
                return Sent.ACCEPTED
            case "node away":
                self._strike(AWAY)
                raise NodeFailed("the node is away")
            case "dies before it is sent":
                self._die(DIES_BEFORE)
            case "mined and not told":
                self.network.take(raw)
                self._strike(UNANSWERED)
                raise NodeFailed("the answer was lost")
            case "dies after it was sent":
                self.network.take(raw)
                self._die(DIES_AFTER)
            case _:
                pass
        return self.network.take(raw)

    def _strike(self, what: str) -> None:
        self.run.lines.struck = f"chain: {what}"

    def _die(self, what: str) -> None:
        self._strike(what)
        self.run.lines.dead = True
        raise Died("the process died")


def keys_of(network: Network) -> Keys:
    people = network.people
    return Keys(people["emitter"], people["proposer"], network.treasury().address)


def paid_out(events: Iterable[Any]) -> dict[str, int]:
    """TOKEN units that the distributor paid to each address, by its own events."""
    paid: dict[str, int] = {}
    for event in events:
        if event.name == "Claimed":
            told = event.arguments
            address = told["account"].lower()
            paid[address] = paid.get(address, 0) + told["amount"]
    return paid
