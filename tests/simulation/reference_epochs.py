"""What epochs owe, from the economics alone: no line of the product is used here.

emission(k) = floor(A (k + 1) / N) - floor(A k / N)                               economics 7
compute, availability = floor(emission x ppm / 10^6);  treasury = the rest        economics 8
share of a node = floor((pool + carry) x w / W);  floors and a pool that nobody has a weight in
are carried to the same pool of the next epoch                                    economics 8
w = GPU time that strangers paid in cash, up to the cut of the epoch              economics 8, 10
leaf = all that was ever credited and has matured (holdback 0: at once)           economics 10
"""

from __future__ import annotations

from dataclasses import dataclass, field

MILLION = 1_000_000
COMPUTE_PPM, AVAILABILITY_PPM = 700_000, 200_000
TREASURY = "treasury"


@dataclass
class Epoch:
    """What one epoch pays, in TOKEN units."""

    emission: int
    weight: int
    compute_carry: int
    availability_carry: int
    rewards: dict[str, int]


@dataclass
class Epochs:
    """All epochs of a run, in order. `a` units are emitted over `n` epochs."""

    a: int
    n: int
    used: list[tuple[int, str, int]] = field(default_factory=list)
    """Position, owner's account, new GPU time of each charge that cash paid."""
    cuts: list[int] = field(default_factory=list)
    """The last position of each closed epoch: what stands after it is of the next."""

    def emission(self, epoch: int) -> int:
        k = epoch - 1
        if k >= self.n:
            return 0
        return self.a * (k + 1) // self.n - self.a * k // self.n

    def weights(self, epoch: int) -> dict[str, int]:
        first = self.cuts[epoch - 2] if epoch > 1 else 0
        found: dict[str, int] = {}
        for position, owner, gpu_us in self.used:
            if first < position < self.cuts[epoch - 1]:
                found[owner] = found.get(owner, 0) + gpu_us
        return found

    def settled(self) -> list[Epoch]:
        """Each owner has one node."""
        found: list[Epoch] = []
        compute_carry = availability_carry = 0
        for epoch in range(1, len(self.cuts) + 1):
            emission = self.emission(epoch)
            compute = emission * COMPUTE_PPM // MILLION
            availability = emission * AVAILABILITY_PPM // MILLION
            weights = self.weights(epoch)
            whole, pool = sum(weights.values()), compute + compute_carry
            rewards = {one: pool * w // whole for one, w in weights.items()} if whole else {}
            rewards = {one: units for one, units in rewards.items() if units}
            compute_carry = pool - sum(rewards.values())
            availability_carry += availability
            treasury = emission - compute - availability
            if treasury:
                rewards[TREASURY] = treasury
            found.append(Epoch(emission, whole, compute_carry, availability_carry, rewards))
        return found

    def leaves(self, epochs: list[int]) -> dict[str, int]:
        """Lifetime totals of each account over these epochs."""
        owed, totals = self.settled(), dict[str, int]()
        for epoch in epochs:
            for account, units in owed[epoch - 1].rewards.items():
                totals[account] = totals.get(account, 0) + units
        return totals
