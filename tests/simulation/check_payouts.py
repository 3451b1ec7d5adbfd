"""What must hold of epochs and payouts, after each step and at the end.

sealed(e) == reference(e), once;   minted(e) == emission(e), once;   root(e) == sum of leaves
claimed on the chain == what the wallet got == what the ledger confirmed <= leaf
supply == what there was + minted - burned;   a vetoed root waits for its operator
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.simulation.chain import Network, paid_out
from tests.simulation.reference_epochs import TREASURY, Epochs

if TYPE_CHECKING:
    from tests.simulation.run import Run

TAKEN_WHEN_FINAL = ("epoch.mint_confirmed", "payout.confirmed", "deposit.credits_purchased")


class PayoutChecks:
    """Told of each fact in its order."""

    def __init__(self, reference: Epochs, network: Network) -> None:
        self.reference = reference
        self.network = network
        self.closed: list[int] = []
        self.sealed: dict[int, dict[str, Any]] = {}
        self.minted: dict[int, int] = {}
        self.minted_at: dict[int, int] = {}
        self.paid_at: dict[int, int] = {}
        self.roots: dict[int, dict[str, Any]] = {}
        self.accepted: list[int] = []
        self.vetoed: list[int] = []
        self.taken_back: list[int] = []
        self.state = ""
        self.credited: dict[int, dict[str, int]] = defaultdict(dict)
        self.matured: dict[int, dict[str, int]] = defaultdict(dict)
        self.confirmed: dict[str, int] = defaultdict(int)
        self.purchases: list[int] = []
        self.unpaid_us = 0

    def promised(self) -> dict[int, int]:
        """What the root of each epoch promises in all. Its cut is the later of its last reward and
        its confirmed mint, so what other epochs credited before is in it; an epoch whose cut holds
        nothing new has no root. Source: design chain, epochs that are sealed behind their time.
        """
        owed, before, found = self.reference.settled(), 0, {}
        for epoch in sorted(self.minted):
            if epoch in self.paid_at:
                cut = max(self.paid_at[epoch], self.minted_at[epoch])
                inside = [one for one, at in self.paid_at.items() if at <= cut]
                total = sum(sum(owed[one - 1].rewards.values()) for one in inside)
                if total > before:
                    found[epoch] = before = total
        return found

    def is_through(self, epochs: int) -> bool:
        """Whether so many epochs are sealed and minted, and all that they promise is accepted."""
        is_minted = len(self.sealed) == len(self.minted) == epochs
        return is_minted and self.accepted == list(self.promised())

    def take(self, name: str, position: int, fact: dict[str, Any]) -> None:
        if name in TAKEN_WHEN_FINAL:
            assert fact["block_number"] <= self.network.final(), f"{name} is not final: {fact}"
        taker = getattr(self, "_" + name.replace(".", "_"), None)
        if taker is not None:
            taker(position, fact)

    def _lease_usage_accrued(self, position: int, fact: dict[str, Any]) -> None:
        paid = sum(int(one["amount"]["units"]) for one in fact["drawn"] if one["source"] == "cash")
        gpu_us = int(fact["gpu_us_new"])
        if not paid:  # less than a millionth of a credit: nobody paid it, so it has no weight
            self.unpaid_us += gpu_us
        else:
            self.reference.used.append((position, fact["provider_account_id"], gpu_us))

    def _epoch_closing(self, position: int, fact: dict[str, Any]) -> None:
        assert fact["epoch"] == len(self.closed) + 1, fact
        self.closed.append(position)
        self.reference.cuts.append(position)

    def _epoch_sealed(self, _position: int, fact: dict[str, Any]) -> None:
        assert fact["epoch"] == len(self.sealed) + 1, "an epoch is sealed once, in its turn"
        self.sealed[fact["epoch"]] = fact

    def _epoch_rewards_credited(self, _position: int, fact: dict[str, Any]) -> None:
        _add(self.credited[fact["epoch"]], fact)

    def _epoch_rewards_matured(self, position: int, fact: dict[str, Any]) -> None:
        self.paid_at[fact["epoch"]] = position
        _add(self.matured[fact["epoch"]], fact)

    def _epoch_mint_confirmed(self, position: int, fact: dict[str, Any]) -> None:
        assert fact["epoch"] == len(self.minted) + 1, "an epoch is minted once, in its turn"
        self.minted_at[fact["epoch"]] = position
        self.minted[fact["epoch"]] = int(fact["amount"]["units"])

    def _payout_root_built(self, _position: int, fact: dict[str, Any]) -> None:
        assert fact["epoch"] not in self.roots, "an epoch has one root"
        assert fact["seq"] == len(self.roots) + 1, fact
        self.roots[fact["epoch"]], self.state = fact, "built"

    def _payout_root_proposed(self, _position: int, fact: dict[str, Any]) -> None:
        held = self.vetoed.count(fact["epoch"]) - self.taken_back.count(fact["epoch"])
        assert held == 0, f"the root of epoch {fact['epoch']} was held and is proposed again"
        self.state = "proposed"

    def _payout_root_vetoed(self, _position: int, fact: dict[str, Any]) -> None:
        self.vetoed.append(fact["epoch"])
        self.state = "vetoed"

    def _payout_root_accepted(self, _position: int, fact: dict[str, Any]) -> None:
        assert fact["epoch"] not in self.accepted, "a root is accepted once"
        self.accepted.append(fact["epoch"])
        self.state = "accepted"

    def _payout_confirmed(self, _position: int, fact: dict[str, Any]) -> None:
        self.confirmed[fact["address"]] += int(fact["amount"]["units"])

    def _deposit_credits_purchased(self, _position: int, fact: dict[str, Any]) -> None:
        assert fact["purchase_id"] == len(self.purchases) + 1, "purchases come once and in order"
        self.purchases.append(int(fact["tokens_burned"]["units"]))

    # --- at the end --------------------------------------------------------------------------

    def at_the_end(self, run: Run) -> None:
        """Of a run that went on to its payouts."""
        self._epochs(run)
        self._chain(run)

    def _epochs(self, run: Run) -> None:
        """Roots and totals are the reference's, to the unit."""
        owed = self.reference.settled()
        assert len(self.sealed) == len(owed) >= 2, (len(self.sealed), len(owed))
        for epoch, one in enumerate(owed, 1):
            told = self.sealed[epoch]
            found = (
                told["emission"]["units"],
                told["compute_carry"]["units"],
                told["availability_carry"]["units"],
                told["rewards"]["units"],
            )
            wanted = (one.emission, one.compute_carry, one.availability_carry)
            assert tuple(map(int, found)) == (*wanted, sum(one.rewards.values())), (epoch, told)
            assert self.credited[epoch] == self.matured[epoch] == one.rewards, epoch
            assert self.minted.get(epoch) == one.emission, (epoch, self.minted)
            file = run.server.settings.data_dir / "epochs" / f"{epoch}.json"
            data = file.read_bytes()
            assert hashlib.sha256(data).hexdigest() == told["file_sha256"], epoch
            assert int(json.loads(data)["weights"]["compute"]) == one.weight, (epoch, one)
        used = sum(gpu_us for _, _, gpu_us in self.reference.used)
        billed = sum(one.gpu_us for one in run.reference.leases.values())
        assert used + self.unpaid_us == billed, (used, self.unpaid_us, billed)
        promised, roots = self.promised(), self.roots
        committed = {epoch: int(one["committed"]["units"]) for epoch, one in roots.items()}
        assert committed == {one: promised.get(one) for one in committed}, (committed, promised)
        if run.payouts.is_held:
            held = self.vetoed[-1]
            before = [epoch for epoch in promised if epoch < held]
            assert self.accepted == before, (self.accepted, held, promised)
        else:
            assert self.accepted == list(promised), (self.accepted, promised)

    def _leaves(self) -> dict[str, int]:
        """What the accepted root promises to each account."""
        if not self.accepted:
            return {}
        cut = max(self.paid_at[self.accepted[-1]], self.minted_at[self.accepted[-1]])
        return self.reference.leaves([one for one, at in self.paid_at.items() if at <= cut])

    def _chain(self, run: Run) -> None:
        tally, payouts = run.network.tally, run.payouts
        events = tally.events(tally.deployment.block, tally.chain.head().number)
        paid = paid_out(events)
        assert dict(self.confirmed) == paid, (dict(self.confirmed), paid)
        accounts = {"owner": run.scene.owner.account_id, "treasury": TREASURY}
        promised = self._leaves()
        for who, address in payouts.wallets.items():
            got = tally.balance(address) - payouts.tokens_before[address]
            assert got == paid.get(address, 0) == tally.claimed(address), (who, got, paid)
            assert got == promised.get(accounts[who], 0), (who, got, promised)
        minted = [one for one in events if one.name == "EpochMinted"]
        told = {one.arguments["epoch"]: one.arguments["amount"] for one in minted}
        assert len(minted) == len(told), "an epoch is minted once"
        assert told == self.minted, (told, self.minted)
        bought = [one for one in events if one.name == "CreditsPurchased"]
        burned = [one.arguments["tokensBurned"] for one in bought]
        assert self.purchases == burned, (self.purchases, burned)
        supply = payouts.supply_before + sum(told.values()) - sum(burned)
        assert tally.total_supply() == supply, (tally.total_supply(), supply)
        assert tally.seq() == len(self.accepted), (tally.seq(), self.accepted)


def _add(totals: dict[str, int], fact: dict[str, Any]) -> None:
    for one in fact["rewards"]:
        account = one["account_id"]
        assert account not in totals, f"{account} is rewarded once an epoch"
        totals[account] = int(one["amount"]["units"])
