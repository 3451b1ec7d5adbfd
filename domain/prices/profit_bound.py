"""The profit bound: what a coalition of renter, owner and client gets back of what it spends.

    E     = provider + client              W = burn x m              parts of a charge of 1
    back  = (1 - r) x E + W                of (1 - r), which a refund of r leaves to be spent
    sound <=> W <= (1 - r) x (0.95 - E)    for no refund (r = 0) and for the worst one

So at least 5 % of what it spends is lost, to the platform and to what is burned without a return.
Nothing is rounded: with parts in 10^-12 of the charge, `m` and `r` in ppm,

    burn x m <= (10^6 - r) x (950,000 x 10^6 - E)

- `E`, `burn`: of a charge without a usage fee, because the owner sets the price, and a high price
  makes any fee small. With the coalition's own client and without one, whichever returns more.
- `m`: the policy's cap multiple. A node's compute reward is at most that part of the TOKEN burned
  for it (`domain/epochs/settlement.py`), whatever the weights, the bonus and the pool.
- Bought credits: E = 0, burn = 1, and at most 0.95 of them come back whatever `m` is. Their leases
  have no SLA class, so for them r = 0.
- `r`: the highest credit of an SLA class. What it gives back of a charge is taken from those whom
  the charge paid, or owed by them, and a debt counts: hence (1 - r) x E. The reward of an epoch
  that is sealed stays, and an account that earns no more never makes up for it: hence all of W.
- A policy without a cap has no bound. Without a policy no epoch pays; a multiple of 1 is assumed.

Assumed: TOKEN are sold at the price at which they were burned; rulings and goodwill are given by
the operator, who is no member of the coalition; units lost by rounding are left out. Source: design
economics 13; `docs/explanation/why-cheating-does-not-pay.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from domain.money import PPM
from domain.prices.reasons import PricesReason
from domain.refusal import Refused
from domain.stream import Stream, World

if TYPE_CHECKING:
    from domain.prices.tariff import PublishTariff, Split, TariffPublished

BACK_MAX_PPM = 950_000
"""What comes back at most, of what is spent."""
MULTIPLE_MAX_PPM = PPM
"""No policy pays more TOKEN for a node than were burned for it."""
WEIGHED = frozenset({"burned", "cash"})
"""Sources whose use may weigh: what they paid is final, and what is burned of it bounds rewards."""

_POLICY: Stream[Any] = Stream("policy", "network")  # its file imports this room


class Parts(NamedTuple):
    """Of a charge of 10^12: what goes to the provider and the client, and what is burned."""

    paid: int
    burned: int


class Breach(NamedTuple):
    """Where a tariff and a multiple return too much. `back_ppm`: of what is spent, rounded up;
    None where it has no bound.
    """

    field: str
    rule: str
    back_ppm: int | None


def parts_of(tariff: PublishTariff | TariffPublished, *, has_client: bool) -> Parts:
    """The parts of a charge without a usage fee, as `charge_split.peel` makes them, exact."""
    if tariff.split is None:
        rest_ppm = PPM - tariff.provider_share_ppm
        return Parts(tariff.provider_share_ppm * PPM, rest_ppm * tariff.burn_share_ppm)
    shares = _shares(tariff.split, has_client=has_client)
    paid = shares.get("provider", 0) + shares.get("client", 0)
    return Parts(paid * PPM, shares.get("burn", 0) * PPM)


def _shares(split: Split, *, has_client: bool) -> dict[str, int]:
    """The share of every bucket; the residual has what the others leave, an absent client's too."""
    shares = {one.bucket: one.share_ppm for one in split.shares}
    residual = split.residual
    if not has_client:
        shares.pop("client", None)
        residual = "platform" if residual == "client" else residual
    rest_ppm = PPM - sum(shares.values())
    return {**shares, residual: shares.get(residual, 0) + rest_ppm}


def is_sound(parts: Parts, multiple_ppm: int, refund_ppm: int = 0) -> bool:
    """Whether at least 5 % of what is spent is lost."""
    kept = PPM - refund_ppm
    return parts.burned * multiple_ppm <= kept * (BACK_MAX_PPM * PPM - parts.paid)


def back_ppm(parts: Parts, multiple_ppm: int, refund_ppm: int = 0) -> int | None:
    """What comes back of what is spent, in ppm and rounded up; None: all is refunded."""
    kept = PPM - refund_ppm
    if not kept:
        return None
    return -(-(parts.paid * kept + parts.burned * multiple_ppm) // (kept * PPM))


def breach_of(tariff: PublishTariff | TariffPublished, multiple_ppm: int | None) -> Breach | None:
    """The first way in which a tariff returns too much; `multiple_ppm` None: there is no cap."""
    if multiple_ppm is None:
        return Breach("cap_multiple_ppm", "rewards have no cap", None)
    if multiple_ppm > MULTIPLE_MAX_PPM:
        return Breach("cap_multiple_ppm", "more TOKEN than were burned", None)
    field = "provider_share_ppm" if tariff.split is None else "split"
    for has_client in (False, True):
        parts = parts_of(tariff, has_client=has_client)
        if not is_sound(parts, multiple_ppm):
            return Breach(field, "parts and reward", back_ppm(parts, multiple_ppm))
        for index, one in enumerate(tariff.sla):
            refund_ppm = one.tiers[-1].credit_ppm
            if not is_sound(parts, multiple_ppm, refund_ppm):
                told = back_ppm(parts, multiple_ppm, refund_ppm)
                return Breach(f"sla.{index}", "refund and reward", told)
    return None


def multiple_of(rewards: Any) -> int | None:
    """The cap multiple of a policy's reward terms, None when there is no cap: also of a policy
    without terms. Zero where no source has a weight.
    """
    if rewards is None:
        return None
    if not any(one.ppm for one in rewards.source_weights):
        return 0
    multiple: int | None = rewards.cap_multiple_ppm
    return multiple


def multiples(world: World) -> tuple[int | None, ...]:
    """Of the policy in force and of those that wait for their epoch; without any, 1."""
    found: list[int | None] = []
    for policy in reversed(world.state(_POLICY).standing):
        found.append(multiple_of(policy.rewards))
        epoch: Stream[Any] = Stream("epoch", str(policy.effective_from_epoch))
        if world.state(epoch).opened is not None:
            break
    return tuple(found) or (PPM,)


def require_tariff(tariff: PublishTariff | TariffPublished, world: World) -> None:
    """Raises Refused: PROFIT_BOUND where it returns too much under a policy that may pay for it."""
    for multiple_ppm in multiples(world):
        _require(tariff, multiple_ppm)


def require_rewards(rewards: Any, tariffs: Sequence[TariffPublished]) -> None:
    """Raises Refused: PROFIT_BOUND where a tariff returns too much under these reward terms."""
    for tariff in tariffs:
        _require(tariff, multiple_of(rewards), tariff.version)


def _require(
    tariff: PublishTariff | TariffPublished, multiple_ppm: int | None, version: int | None = None
) -> None:
    found = breach_of(tariff, multiple_ppm)
    if found is None:
        return
    raise Refused(
        PricesReason.PROFIT_BOUND,
        field=found.field,
        rule=found.rule,
        back_ppm=found.back_ppm,
        at_most_ppm=BACK_MAX_PPM,
        multiple_ppm=multiple_ppm,
        tariff_version=version,
    )
