"""What a lease costs: pricing modules, each a rule from what is asked and offered to one price.

    ask <= price <= cap                             for every trade: nobody is made worse off
    quote(request, offers, policy) -> quotes        which offers could serve it, and at which price
    choose(quotes, policy)         -> trades        which of them do, and what each is paid

A module is pure, has a name and a version, and both are in the facts it leads to (`LeaseQuoted`,
`MatchDecided`), so that anyone can compute the price again. Which one prices a request is the
pool's policy; without a pool it is `posted`, unless the renter asks for another of the market's.
A plug-in registers its module with `register` (`api/process/pricing_plugins.py` does so for the
entry points of the group `tallystick.pricing`). Prices are micro-credits per GPU-hour. Nothing is
decided here about who may bid (`domain/market/auction.py`). Source: design marketplace 4; rows
J-7, V-9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.frozen import replace
from domain.prices.reasons import PricesReason
from domain.refusal import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRequest:
    """What the buyer wants: `cap` is the most it pays, for an interruptible lease its bid."""

    request_id: str
    cap: int
    at_us: int
    months: int | None = None  # of a reserved term
    on_demand: bool = True  # False: may be paused


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOffer:
    """What a seller offers: `ask` is the least it takes.

    `held_at`: an interruptible lease holds it at this bid. `is_held`: some other lease holds it.
    """

    offer_id: str  # of the offer, or of the bid
    ask: int
    arrived: int = 0  # order of arrival: ties go to the earlier
    expires_at_us: int | None = None
    months: int | None = None  # a price for a reserved term of so many months
    held_at: int | None = None
    is_held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PricingPolicy:
    """How a pool prices: `pick` names the quote the buyer chose; `slots` how many are wanted."""

    pick: str | None = None
    slots: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """An offer that could serve the request, between the seller's `ask` and the buyer's `cap`."""

    offer_id: str
    price: int
    ask: int
    cap: int
    arrived: int
    displaces: int | None = None  # the bid of the lease that would have to make room


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """A quote that was chosen, and the price that is paid."""

    offer_id: str
    price: int
    ask: int
    cap: int


class Pricing(Protocol):
    """A pricing module. `kind` says how a request reaches it: KINDS."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def kind(self) -> str: ...

    def quote(
        self, request: PriceRequest, offers: Sequence[PriceOffer], policy: PricingPolicy
    ) -> tuple[Quote, ...]:
        """Which offers could serve the request."""
        ...

    def choose(self, quotes: Sequence[Quote], policy: PricingPolicy) -> tuple[Trade, ...]:
        """Which of them do; none when nothing fits."""
        ...


POSTED, AUCTION, STANDING, TERM = "posted", "auction", "standing", "term"
KINDS = (POSTED, AUCTION, STANDING, TERM)
"""At once at the offer's price; after bids of providers; by standing bids of renters; by a price
list for whole months."""


def label(module: Pricing) -> str:
    """How a module stands in facts: "posted/1"."""
    return f"{module.name}/{module.version}"


# The modules.


@dataclass(frozen=True, slots=True)
class Posted:
    """The offer's price, the cheapest first; ties are the matcher's."""

    name: str = "posted"
    version: int = 1
    kind: str = POSTED

    def quote(
        self, request: PriceRequest, offers: Sequence[PriceOffer], policy: PricingPolicy
    ) -> tuple[Quote, ...]:
        """Every free offer within the cap, at its own price."""
        del policy
        return _free(request, offers, months=None)

    def choose(self, quotes: Sequence[Quote], policy: PricingPolicy) -> tuple[Trade, ...]:
        return _cheapest(quotes, policy)


@dataclass(frozen=True, slots=True)
class ReverseAuction:
    """Providers bid at most the cap; the cheapest bid, or the one the renter picks, wins and is
    paid what it bid.
    """

    name: str = "reverse_auction"
    version: int = 1
    kind: str = AUCTION

    def quote(
        self, request: PriceRequest, offers: Sequence[PriceOffer], policy: PricingPolicy
    ) -> tuple[Quote, ...]:
        """Every bid within the cap that has not expired."""
        del policy
        return _at_their_asks(request, _standing(request, offers))

    def choose(self, quotes: Sequence[Quote], policy: PricingPolicy) -> tuple[Trade, ...]:
        if policy.pick is not None:
            quotes = [one for one in quotes if one.offer_id == policy.pick]
        return _cheapest(quotes, policy)


@dataclass(frozen=True, slots=True)
class SecondPrice:
    """Procurement VCG for one lease: the lowest ask wins and is paid the second-lowest.

    Without a second ask the renter's cap is the price to beat. What the winner is paid does not
    depend on its own ask, so asking for anything but one's cost never gains: the example of a
    plug-in (J-7). Sealed: a bidder sees no other bid before the auction is over.
    """

    name: str = "second_price"
    version: int = 1
    kind: str = AUCTION

    def quote(
        self, request: PriceRequest, offers: Sequence[PriceOffer], policy: PricingPolicy
    ) -> tuple[Quote, ...]:
        """Every ask within the cap that has not expired."""
        del policy
        return _at_their_asks(request, _standing(request, offers))

    def choose(self, quotes: Sequence[Quote], policy: PricingPolicy) -> tuple[Trade, ...]:
        """Who picks for another reason than the ask would break the incentive: a pick is none."""
        del policy
        ranked = sorted(quotes, key=_rank)
        if not ranked:
            return ()
        best = ranked[0]
        return (agreed(best, ranked[1].ask if len(ranked) > 1 else best.cap),)


@dataclass(frozen=True, slots=True)
class ContinuousBid:
    """Interruptible leases: the highest standing bids hold the devices, and each pays its bid.

    On-demand outranks every bid. A bid has to exceed the one it displaces: equal bids keep the
    holder. A free device goes to any bid that reaches the seller's floor.
    """

    name: str = "continuous_bid"
    version: int = 1
    kind: str = STANDING

    def quote(
        self, request: PriceRequest, offers: Sequence[PriceOffer], policy: PricingPolicy
    ) -> tuple[Quote, ...]:
        """Free offers, and those whose holder is outbid."""
        del policy
        return tuple(
            replace(
                _quote(request, offer, offer.ask if request.on_demand else request.cap),
                displaces=offer.held_at,
            )
            for offer in _standing(request, offers)
            if not offer.is_held
            and (offer.held_at is None or request.on_demand or request.cap > offer.held_at)
        )

    def choose(self, quotes: Sequence[Quote], policy: PricingPolicy) -> tuple[Trade, ...]:
        """Free devices first, then those held at the lowest bids; fewer than wanted is none."""
        ranked = sorted(
            quotes,
            key=lambda one: (
                one.displaces is not None,
                one.displaces or 0,
                -one.arrived,
                one.offer_id,
            ),
        )
        if len(ranked) < policy.slots:
            return ()
        return tuple(agreed(one, one.price) for one in ranked[: policy.slots])


@dataclass(frozen=True, slots=True)
class Reserved:
    """Whole months, prepaid at the price of the provider's list for so many; the cheapest wins."""

    name: str = "reserved"
    version: int = 1
    kind: str = TERM

    def quote(
        self, request: PriceRequest, offers: Sequence[PriceOffer], policy: PricingPolicy
    ) -> tuple[Quote, ...]:
        """Free offers with a price for exactly these months, within the cap."""
        del policy
        return () if request.months is None else _free(request, offers, months=request.months)

    def choose(self, quotes: Sequence[Quote], policy: PricingPolicy) -> tuple[Trade, ...]:
        return _cheapest(quotes, policy)


def _standing(request: PriceRequest, offers: Iterable[PriceOffer]) -> Iterable[PriceOffer]:
    """Offers with room for a trade: the ask is within the cap and has not expired."""
    for offer in offers:
        is_live = offer.expires_at_us is None or request.at_us < offer.expires_at_us
        if is_live and offer.ask <= request.cap:
            yield offer


def _free(
    request: PriceRequest, offers: Iterable[PriceOffer], months: int | None
) -> tuple[Quote, ...]:
    """Offers that nobody holds, each at its own price for so many months; None: for any time."""
    free = (
        offer
        for offer in _standing(request, offers)
        if offer.months == months and not offer.is_held and offer.held_at is None
    )
    return _at_their_asks(request, free)


def _at_their_asks(request: PriceRequest, offers: Iterable[PriceOffer]) -> tuple[Quote, ...]:
    return tuple(_quote(request, offer, offer.ask) for offer in offers)


def _quote(request: PriceRequest, offer: PriceOffer, price: int) -> Quote:
    return Quote(
        offer_id=offer.offer_id, price=price, ask=offer.ask, cap=request.cap, arrived=offer.arrived
    )


def _rank(quote: Quote) -> tuple[int, int, str]:
    return quote.ask, quote.arrived, quote.offer_id


def _cheapest(quotes: Sequence[Quote], policy: PricingPolicy) -> tuple[Trade, ...]:
    ranked = sorted(quotes, key=_rank)
    if len(ranked) < policy.slots:
        return ()
    return tuple(agreed(one, one.price) for one in ranked[: policy.slots])


def agreed(quote: Quote, price: int) -> Trade:
    """A trade at this price, which leaves neither side worse off than without it (V-9)."""
    assert is_trade(quote.ask, price, quote.cap), (quote, price)
    return Trade(offer_id=quote.offer_id, price=price, ask=quote.ask, cap=quote.cap)


def is_trade(ask: int, price: int, cap: int) -> bool:
    """Whether both sides gain, or lose nothing: the price is between their own prices."""
    return ask <= price <= cap


# Which modules there are.

DEFAULT = "posted"
MODULES: dict[str, Pricing] = {
    module.name: module
    for module in (Posted(), ReverseAuction(), ContinuousBid(), Reserved(), SecondPrice())
}
NAME_LENGTH_MAX = 64


def register(module: Pricing) -> None:
    """Make a plug-in's module known under its name. The same again is no change.

    Raises ValueError for a name that is taken by another version or another module, a kind that
    does not exist, or a name that no policy could hold. A log with facts priced by a plug-in needs
    that plug-in to be decided on again, never to be read.
    """
    if not module.name.isidentifier() or len(module.name) > NAME_LENGTH_MAX:
        raise ValueError(f"{module.name!r} is no name of a pricing module")
    if module.kind not in KINDS or module.version < 1:
        raise ValueError(f"{module.name}: kind {module.kind!r}, version {module.version}")
    present = MODULES.get(module.name)
    if present is not None and (type(present), present.version) != (type(module), module.version):
        raise ValueError(f"the name {module.name!r} is taken by {label(present)}")
    MODULES[module.name] = module


def module_of(name: str | None) -> Pricing:
    """The module of a name, or of a label; None: the default. Raises Refused: PRICING_UNKNOWN."""
    wanted, _, version = (name or DEFAULT).partition("/")
    module = MODULES.get(wanted)
    if module is None or version not in ("", str(module.version)):
        raise Refused(PricesReason.PRICING_UNKNOWN, pricing=name, known=", ".join(sorted(MODULES)))
    return module


def module_for(asked: str | None, of_pool: str | None) -> Pricing:
    """Which module prices a request: the pool's, and where no pool has a say the one asked for.

    Raises Refused: PRICING_UNKNOWN; PRICING_NOT_OFFERED where the pool prices otherwise.
    """
    if of_pool is None:
        return module_of(asked)
    module = module_of(of_pool)
    if asked is not None and module_of(asked).name != module.name:
        raise Refused(
            PricesReason.PRICING_NOT_OFFERED, pricing=asked, rule=f"the pool's is {of_pool}"
        )
    return module
