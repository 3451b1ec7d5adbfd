"""The payout scripts: propose, accept, claim, look. They need `payout.json`, the deployment file,
a key and a folder for their transactions; never the database.

    claimable(address) == its leaf in the accepted root - what it has claimed

The file is checked against itself when it is read, and here against the chain. Each transaction
has an id made of what it is for, so running a script twice, or after a crash, sends nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contracts.chain import Call
from contracts.manifest import Leaf, Payout
from contracts.outbox import ENDED, Intent, Outbox, Store
from contracts.tally import Tally


class PayoutMismatch(Exception):
    """The payout file is for another chain or contract, or not for the root that is on chain."""


class RootAccepted(Exception):
    """The contract pays from this root already: there is nothing to propose or accept."""


class NothingToClaim(Exception):
    """The root pays this address nothing, or nothing more than it has had."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose transactions these are: the outbox that holds the key, its store, and the address."""

    outbox: Outbox
    store: Store
    address: str

    def send(self, purpose: str, call: Call) -> Intent:
        return self.outbox.submit(purpose, self.address, call)

    def known(self, purpose: str) -> Intent | None:
        """What was begun before under this id, carried on as far as it goes now."""
        return None if self.store.load(purpose) is None else self.outbox.advance(purpose)


def propose(payout: Payout, tally: Tally, sender: Sender) -> Intent:
    """Propose the file's root; the sender must be the proposer.

    Raises RootAccepted, PayoutMismatch; ContractRefused when a root waits already or the number is
    not next.
    """
    _check_deployment(payout, tally)
    # Each veto makes place for one more proposal of the same root.
    purpose = f"propose/{_of(payout)}/{_vetoes(payout, tally)}"
    known = sender.known(purpose)
    if known is not None:
        return known
    _refuse_accepted(payout, tally)
    if payout.previous_root != tally.root():
        raise PayoutMismatch(f"it follows {payout.previous_root}, accepted is {tally.root()}")
    manifest = bytes.fromhex(payout.manifest)
    call = tally.propose_root(payout.seq, payout.tree.root, manifest, payout.committed)
    return sender.send(purpose, call)


def accept(payout: Payout, tally: Tally, sender: Sender) -> Intent:
    """Accept the file's root once its timelock has run; anybody may.

    Raises RootAccepted; PayoutMismatch when another root waits, or none; ContractRefused
    (TimelockRunning).
    """
    _check_deployment(payout, tally)
    purpose = f"accept/{_of(payout)}/{_vetoes(payout, tally)}"
    known = sender.known(purpose)
    if known is not None:
        return known
    _refuse_accepted(payout, tally)
    pending = tally.pending()
    if pending is None or pending.root != payout.root:
        waiting = None if pending is None else pending.root
        raise PayoutMismatch(f"the root that waits is {waiting}, the file's is {payout.root}")
    return sender.send(purpose, tally.accept_root())


def claim(payout: Payout, tally: Tally, sender: Sender, address: str) -> Intent:
    """Have the contract pay `address` what it has not had yet; anybody may send it.

    Raises PayoutMismatch when the file's root is not the accepted one, NothingToClaim.
    """
    _check_deployment(payout, tally)
    leaf = _leaf(payout, address)
    purpose = f"claim/{_of(payout)}/{address.lower()}"
    known = sender.known(purpose)
    if known is not None:
        return known
    if tally.root() != payout.root:
        raise PayoutMismatch(f"accepted is {tally.root()}, the file's root is {payout.root}")
    if tally.claimed(leaf.account) >= leaf.total:
        raise NothingToClaim(f"{address} has had all of it")
    return sender.send(purpose, tally.claim(leaf.account, leaf.total, leaf.proof))


def status(payout: Payout, tally: Tally, address: str | None = None) -> dict[str, Any]:
    """Where the file's root stands, JSON-ready; with an address, its leaf as well.

    `state` is unproposed, pending, accepted or replaced (a later root is accepted).
    Raises PayoutMismatch, NothingToClaim when the root does not name the address.
    """
    _check_deployment(payout, tally)
    pending = tally.pending()
    found: dict[str, Any] = {
        "epoch": payout.epoch,
        "seq": payout.seq,
        "root": payout.root,
        "state": _state(payout, tally),
        "valid_at": pending.valid_at_s if pending and pending.root == payout.root else None,
        "committed": str(payout.committed),
        "leaves": len(payout.tree.rows),
        "claimed_total": str(tally.claimed_total()),
        "distributor_balance": str(tally.balance(payout.distributor)),
    }
    if address is not None:
        leaf = _leaf(payout, address)
        claimed = tally.claimed(leaf.account)
        found["account"] = {
            "address": leaf.account,
            "total": str(leaf.total),
            "claimed": str(claimed),
            "claimable": str(max(0, leaf.total - claimed)),
        }
    return found


def finish(intent: Intent, sender: Sender, pause: Callable[[], None], *, tries: int) -> Intent:
    """Carry a transaction on until it has ended, or `tries` are used up; `pause` waits between."""
    for _ in range(tries):
        if intent.state in ENDED:
            break
        pause()
        intent = sender.outbox.advance(intent.id)
    return intent


def _of(payout: Payout) -> str:
    """Names a root on a contract on a chain, short."""
    return f"{payout.chain_id}/{payout.distributor.lower()}/{payout.seq}/{payout.root[2:18]}"


def _vetoes(payout: Payout, tally: Tally) -> int:
    head = tally.chain.head().number
    return sum(
        event.name == "RootVetoed" and event.arguments["seq"] == payout.seq
        for event in tally.events(tally.deployment.block, head)
    )


def _state(payout: Payout, tally: Tally) -> str:
    pending = tally.pending()
    if tally.root() == payout.root:
        return "accepted"
    if pending is not None and pending.root == payout.root:
        return "pending"
    return "replaced" if tally.seq() >= payout.seq else "unproposed"


def _refuse_accepted(payout: Payout, tally: Tally) -> None:
    """Raises RootAccepted."""
    if tally.root() == payout.root:
        raise RootAccepted(f"the root {payout.root} is accepted already")


def _leaf(payout: Payout, address: str) -> Leaf:
    leaf = payout.leaf(address)
    if leaf is None:
        raise NothingToClaim(f"the root does not name {address}")
    return leaf


def _check_deployment(payout: Payout, tally: Tally) -> None:
    deployment = tally.deployment
    told = (payout.chain_id, payout.distributor.lower(), payout.asset.lower())
    if told != (deployment.chain_id, deployment.distributor.lower(), deployment.token.lower()):
        raise PayoutMismatch("the payout file is of another deployment")
