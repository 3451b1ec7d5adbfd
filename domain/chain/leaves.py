"""Whose is what of a payout root: the leaves, from what matured and where accounts want it.

    leaves(a) over all addresses of account a == matured - forfeited of a when a root was taken
    leaf(address) never falls from one root to the next

An account is paid at the last wallet in effect. What an earlier wallet was promised stays promised
to it, and the new one gets the rest. An account without a wallet has no leaf yet: only such a one
forfeits. What is slashed is mature at once, and the treasury's.
Not the tree (`contracts/payout_tree.py`), and not when a root is taken
(`domain/chain/payout_root.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class LeafBook:
    """What the roots so far promised; told of facts in their order, and of each root taken."""

    wallets: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    matured: dict[str, int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)  # address -> account
    totals: dict[str, int] = field(default_factory=dict)  # address -> leaf, token units

    def link(self, account_id: str, address: str, effective_us: int) -> None:
        """The account wants to be paid there from that moment on."""
        self.wallets.setdefault(account_id, []).append((address, effective_us))

    def mature(self, account_id: str, units: int) -> None:
        """So many token units more are the account's for good."""
        self.matured[account_id] = self.matured.get(account_id, 0) + units

    def forfeit(self, account_id: str, units: int) -> None:
        """So many units are not the account's any more: none of them was promised."""
        self.matured[account_id] = self.matured.get(account_id, 0) - units
        assert self.matured[account_id] >= 0, account_id

    def take(self, at_us: int) -> None:
        """Take a root now: every account with a wallet in effect gets what is not promised yet."""
        promised: dict[str, dict[str, int]] = {}
        for address, total in self.totals.items():
            promised.setdefault(self.owners[address], {})[address] = total
        for account_id, matured in self.matured.items():
            wallet = self._paid_at(account_id, at_us)
            earlier = promised.get(account_id, {})
            elsewhere = sum(units for other, units in earlier.items() if other != wallet)
            if wallet is not None and matured > elsewhere:
                assert self.owners.get(wallet, account_id) == account_id, (wallet, account_id)
                assert matured - elsewhere >= earlier.get(wallet, 0), (wallet, account_id)
                self.owners[wallet] = account_id
                self.totals[wallet] = matured - elsewhere

    def _paid_at(self, account_id: str, at_us: int) -> str | None:
        effective = [a for a, since_us in self.wallets.get(account_id, ()) if since_us <= at_us]
        return effective[-1] if effective else None
