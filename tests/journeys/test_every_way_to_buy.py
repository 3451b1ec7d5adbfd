"""Every demand of a lease holds in every way of buying one: a table of both, through the API.

One node is for rent. In the first table the demand is there when the lease is asked for, in the
second it arises between the asking and the taking. Each cell says whether the lease got the node.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from api.market.bid_timer import run_bids
from api.pools.scheduling import run_schedule
from domain.duration import HOUR_US
from domain.lease.close_codes import FUNDS_ENDED
from domain.lease.funds import total
from domain.lease.lease import CloseLease, lease_stream
from domain.leasing.other_resources import stream_of as resource_stream
from domain.money import credit
from domain.prices.modules import MODULES, Posted
from domain.prices.tariff import CLOUDBENDER, MeterRate, SlaClass, SlaTier, publish
from domain.storage.node_room import room_stream
from tests.scenes.server import Caller, Provider, Scene, opened
from tests.scenes.serving import Market

SECOND_US = 1_000_000
TTL_S = 300
MONTH_AND_MORE = 5_000_000_000
MODELS = {"alpha": "NVIDIA A100-PCIE-80GB", "beta": "NVIDIA H100 PCIe"}
AUCTION = {"module": "reverse_auction", "closes_in_seconds": 1}
TERMS = {"interruptible": True, "sla_class": "basic"}
BASIC = SlaClass("basic", (SlaTier(500_000, 100_000),))
STANDARD = SlaClass("standard", (SlaTier(990_000, 100_000),))


def credits_of(units: int) -> dict[str, str]:
    return {"asset": "CREDIT", "units": str(units)}


class Shop:
    """One node of two devices for rent, in every way; each renter has money for a month."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.node = scene.provider
        self.pool_id: str | None = None
        self.demands: dict[str, Any] = {}

    def open(self) -> None:
        """The node alone is on offer, under a tariff with two classes, and its owner has money."""
        scene, now_us = self.scene, self.scene.clock.now_us()
        tariff = publish(CLOUDBENDER, version=2, effective_from_us=now_us, by="op", at_us=now_us)
        tariff = replace(tariff, sla=(BASIC, STANDARD))
        scene.service.ledger.handle(tariff, key=None, now_us=now_us)
        scene.deposit(scene.owner, 100_000_000)
        scene.rival.made(f"/v1/offers/{scene.other.offer_id}/withdraw")
        self.offer()

    def offer(self, **terms: Any) -> None:
        """Offer the node anew, in all ways and on these terms."""
        self.offer_of(self.node, {**TERMS, **terms}, 2_000_000)

    def offer_of(self, provider: Provider, terms: dict[str, Any], price: int) -> None:
        if provider is self.node or provider.offer_id != self.scene.other.offer_id:
            provider.owner.made(f"/v1/offers/{provider.offer_id}/withdraw")
        told = provider.owner.made(
            "/v1/offers",
            {
                "provider_id": provider.provider_id,
                "node_id": provider.node_id,
                "price_per_gpu_hour": credits_of(price),
                "fractions": True,
                "terms": terms,
            },
        )
        provider.offer_id = told["offer_id"]
        month = {"months": 1, "price_per_gpu_hour": credits_of(1_500_000), "refund_ppm": 500_000}
        prices = {"reserved": [month], "interruptible_floor": credits_of(500_000)}
        provider.owner.made(f"/v1/offers/{provider.offer_id}/prices", prices)

    def renter(self, *, as_client: bool = False, **terms: Any) -> Caller:
        """Somebody new with money: an account, or a compute client."""
        who = self.scene.client(**terms) if as_client else self.scene.account()
        self.scene.deposit(who, MONTH_AND_MORE)
        return who

    def tick(self, us: int = 0) -> None:
        """Let time pass, then what the timers of bids and pools do."""
        clock: Any = self.scene.clock
        clock.advance(us)
        with self.scene.service.connect() as connection:
            run_bids(self.scene.service, connection, clock.now_us())
            run_schedule(self.scene.service, connection, clock.now_us())

    def ready(self, lease_id: str) -> None:
        path = f"/v1/nodes/{self.node.node_id}/assignments/{lease_id}/ready"
        self.node.node.made(path)

    def run_out_of_funds(self, lease_id: str) -> None:
        """The hour that is paid for is over, and the lease with it."""
        clock: Any = self.scene.clock
        clock.advance(HOUR_US)
        now_us = clock.now_us()
        close = CloseLease(
            lease_id=lease_id, closed_at_us=now_us, party="job", code=FUNDS_ENDED, at_us=now_us
        )
        self.scene.service.ledger.handle(close, key=None, now_us=now_us)
        self.tell_inventory(self.node)

    def tell_inventory(self, provider: Provider) -> None:
        """The node tells what it has, as its reporter does now and then."""
        sent = provider.joining("", MODELS[provider.name])
        body = {name: sent[name] for name in ("devices", "host", "hardware")}
        provider.node.made(f"/v1/nodes/{provider.node_id}/specs", body)

    def held_by_a_low_bid(self) -> str:
        """Both devices run for a standing bid of their owner, whom no demand of its own node stops:
        nothing but a displacement gets them.
        """
        pricing = {"module": "continuous_bid", "bid": credits_of(550_000)}
        lease_id = self.asked(self.scene.owner, self.scene.job(gpu_count=2), pricing=pricing)
        assert lease_id is not None
        self.tick()
        self.ready(lease_id)
        return lease_id

    def pool(self) -> str:
        """The pool that keeps a queue, with the node in it."""
        if self.pool_id is None:
            made = self.scene.operator.made("/v1/pools", {"name": "queue", "policy": {}})
            self.pool_id = str(made["pool_id"])
            node = {"node_id": self.node.node_id}
            self.scene.owner.made(f"/v1/pools/{self.pool_id}/nodes", node)
        return self.pool_id

    def hold_disk(self, **demands: int) -> tuple[Caller, str]:
        """A paused lease of another renter keeps its disk on the node, and no device of it."""
        renter = self.renter()
        pool = {} if self.pool_id is None else {"pool_id": self.pool_id}
        job = self.scene.job(constraints={"interruptible": True, **demands, **pool})
        lease_id = self.asked(renter, job)
        assert lease_id is not None
        self.ready(lease_id)
        renter.made(f"/v1/leases/{lease_id}/pause")
        return renter, lease_id

    def close(self, renter: Caller, lease_id: str) -> None:
        renter.post(f"/v1/leases/{lease_id}/close", {})

    def got_it(self, renter: Caller, lease_id: str) -> bool:
        """Whether the lease has the node; either way it is over then."""
        told = renter.read(f"/v1/leases/{lease_id}")
        has_node = told["state"] in ("reserved", "active", "gang_waiting")
        assert has_node == (told.get("node_id") == self.node.node_id), told
        self.close(renter, lease_id)
        return bool(has_node)

    def asked(self, renter: Caller, job: dict[str, Any], **how: Any) -> str | None:
        """The id of the lease, or None where it was refused."""
        answer = renter.post("/v1/leases", {"job": job, **how})
        assert answer.status_code in (201, 409), answer.text
        return str(answer.json()["lease_id"]) if answer.status_code == 201 else None

    def bid(self, lease_id: str) -> Any:
        body = {"offer_id": self.node.offer_id, "price_per_gpu_hour": credits_of(1_900_000)}
        return self.scene.owner.post(f"/v1/auctions/{lease_id}/bids", body)


@pytest.fixture(scope="session")
def founded_shop(founded_market: Market, tmp_path_factory: pytest.TempPathFactory) -> Market:
    """The market once the shop is open: every test begins there, on a copy of it."""
    postgres, folder = founded_market.postgres, tmp_path_factory.mktemp("shop")
    name = "template_shop"
    address = postgres.create_database(name, template=founded_market.database)
    shutil.copytree(founded_market.folder, folder, dirs_exist_ok=True)
    with opened(address, folder, founded_market.scene, spec_ttl_s=TTL_S) as scene:
        Shop(scene).open()
    return Market(postgres, name, folder, scene)


@pytest.fixture
def shop(founded_shop: Market, tmp_path: Path) -> Generator[Shop, None, None]:
    with founded_shop.copied(tmp_path, spec_ttl_s=TTL_S) as scene:
        yield Shop(scene)


@pytest.fixture(scope="module")
def metered_shop(
    founded_shop: Market, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Shop, None, None]:
    """The shop of tests that close what they leased; its tariff prices network and storage."""
    with founded_shop.copied(tmp_path_factory.mktemp("metered"), spec_ttl_s=TTL_S) as scene:
        shop = Shop(scene)
        metered(shop)
        yield shop


@pytest.fixture(scope="module")
def disk_shop(
    founded_shop: Market, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Shop, None, None]:
    """The shop of tests that give back the disk they took; its node has 100 GiB of it."""
    with founded_shop.copied(tmp_path_factory.mktemp("disk"), spec_ttl_s=TTL_S) as scene:
        shop = Shop(scene)
        shop.offer(**DISK)
        yield shop


Asked = tuple[Caller, dict[str, Any]]


@dataclass(frozen=True)
class Demand:
    """Who asks for what, once the node is offered on these terms."""

    ask: Callable[[Shop], Asked]
    terms: dict[str, Any] = field(default_factory=dict)
    holds: dict[str, int] = field(default_factory=dict)  # by a lease of another, paused or not


Way = Callable[[Shop, Demand], bool]

# --- the ways to buy -------------------------------------------------------------------------


def outright(shop: Shop, demand: Demand, **how: Any) -> bool:
    renter, job = demand.ask(shop)
    lease_id = shop.asked(renter, job, **how)
    return lease_id is not None and shop.got_it(renter, lease_id)


def by_the_month(shop: Shop, demand: Demand) -> bool:
    return outright(shop, demand, pricing={"module": "reserved", "months": 1})


def at_a_plug_ins_price(shop: Shop, demand: Demand) -> bool:
    MODULES["tenth"] = Posted(name="tenth", version=3)
    try:
        return outright(shop, demand, pricing={"module": "tenth"})
    finally:
        del MODULES["tenth"]


def as_a_gang(shop: Shop, demand: Demand) -> bool:
    renter, job = demand.ask(shop)
    answer = renter.post("/v1/gangs", {"job": job, "members": 1})
    assert answer.status_code in (201, 409), answer.text
    if answer.status_code == 409:
        return False
    (lease_id,) = answer.json()["lease_ids"]
    found = renter.read(f"/v1/leases/{lease_id}")["node_id"] == shop.node.node_id
    renter.made(f"/v1/gangs/{answer.json()['gang_id']}/cancel")
    return bool(found)


def by_a_standing_bid(shop: Shop, demand: Demand, **job_changes: Any) -> bool:
    renter, job = demand.ask(shop)
    pricing = {"module": "continuous_bid", "bid": credits_of(600_000)}
    lease_id = shop.asked(renter, {**job, **job_changes}, pricing=pricing)
    shop.tick()
    return lease_id is not None and shop.got_it(renter, lease_id)


def by_outbidding(shop: Shop, demand: Demand) -> bool:
    """A higher standing bid pauses the one that holds the devices."""
    held = shop.held_by_a_low_bid()
    found = by_a_standing_bid(shop, demand, gpu_count=2)
    shop.close(shop.scene.owner, held)
    return found


def by_displacing(shop: Shop, demand: Demand) -> bool:
    """A lease on demand pauses the standing bid that holds the devices."""
    held = shop.held_by_a_low_bid()
    found = outright(shop, demand)
    expected = "paused" if found else "active"
    assert shop.scene.owner.read(f"/v1/leases/{held}")["state"] == expected
    shop.close(shop.scene.owner, held)
    return found


def by_auction(shop: Shop, demand: Demand) -> bool:
    """The provider may bid only if its node meets the demand."""
    renter, job = demand.ask(shop)
    lease_id = shop.asked(renter, job, pricing=AUCTION)
    if lease_id is None:
        return False
    placed = shop.bid(lease_id).status_code == 201
    shop.tick(SECOND_US)
    found = shop.got_it(renter, lease_id)
    assert found == placed, "a bid that may be placed is awarded"
    return found


def from_a_queue(shop: Shop, demand: Demand) -> bool:
    """The node is in a pool that keeps a queue, and its devices are let when the lease is asked."""
    pool = {"pool_id": shop.pool()}
    owner = shop.scene.owner
    held = shop.asked(owner, shop.scene.job(gpu_count=2, constraints=pool))
    assert held is not None
    renter, job = demand.ask(shop)
    constraints = {**job.get("constraints", {}), **pool}
    lease_id = shop.asked(renter, {**job, "constraints": constraints})
    shop.close(owner, held)
    shop.tick()
    return lease_id is not None and shop.got_it(renter, lease_id)


WAYS: dict[str, Way] = {
    "outright": outright,
    "from a queue": from_a_queue,
    "as a gang": as_a_gang,
    "by the month": by_the_month,
    "by a standing bid": by_a_standing_bid,
    "by outbidding": by_outbidding,
    "by displacing": by_displacing,
    "by auction": by_auction,
    "at a plug-in's price": at_a_plug_ins_price,
}

# --- demands that are there from the start ---------------------------------------------------


def unasked(shop: Shop) -> Asked:
    return shop.renter(), shop.scene.job()


def constrained(**constraints: Any) -> Callable[[Shop], Asked]:
    return lambda shop: (shop.renter(), shop.scene.job(constraints=constraints))


def with_a_class(shop: Shop) -> Asked:
    return shop.renter(), shop.scene.job(sla_class="standard")


def through_a_client(shop: Shop) -> Asked:
    return shop.renter(as_client=True, min_reputation_ppm=900_000), shop.scene.job()


def list_of(who: Caller, whom: Caller) -> None:
    body = {"counterparty_id": whom.account_id, "verdict": "deny"}
    who.made(f"/v1/accounts/{who.account_id}/counterparties", body)


def denying(shop: Shop) -> Asked:
    renter = shop.renter()
    list_of(renter, shop.scene.owner)
    return renter, shop.scene.job()


def denied(shop: Shop) -> Asked:
    renter = shop.renter()
    list_of(shop.scene.owner, renter)
    return renter, shop.scene.job()


def above_a_quota(shop: Shop) -> Asked:
    renter = shop.renter()
    fill_quota(renter)
    return renter, shop.scene.job(project_id="small")


def fill_quota(renter: Caller) -> None:
    group_id = renter.made("/v1/groups", {"gpu_ppm_max": 1})["group_id"]
    member = {"kind": "project", "target": "small"}
    renter.made(f"/v1/groups/{group_id}/members", member)


def with_an_old_inventory(shop: Shop) -> Asked:
    clock: Any = shop.scene.clock
    clock.advance((TTL_S + 1) * SECOND_US)
    return shop.renter(), shop.scene.job()


DISK = {"storage_gib": 100}
DEMANDS: dict[str, Demand] = {
    "none": Demand(unasked),
    "a minimum reputation": Demand(constrained(min_reputation_ppm=900_000)),
    "no provisional node": Demand(constrained(accept_provisional=False)),
    "a security tier": Demand(constrained(security_tier=9)),
    "a signed attribute": Demand(constrained(attributes=[{"name": "iso27001"}])),
    "an SLA class": Demand(with_a_class),
    "the floor of its client": Demand(through_a_client),
    "the renter's deny list": Demand(denying),
    "the provider's deny list": Demand(denied),
    "a quota": Demand(above_a_quota),
    "the renter's own reputation": Demand(unasked, {"min_renter_ppm": 600_000}),
    "disk that is left": Demand(constrained(storage_gib=40), DISK, {"storage_gib": 60}),
    "disk that is taken": Demand(constrained(storage_gib=41), DISK, {"storage_gib": 60}),
    "an inventory of late": Demand(with_an_old_inventory),
}
MET = ("none", "disk that is left")


@pytest.mark.parametrize("way", WAYS)
def test_some_of_the_demands_hold_in_each_way_to_buy(shop: Shop, way: str) -> None:
    """Others in the next way, so that all demands are asked for; what asks for nothing is bought
    in each.
    """
    at, every = list(WAYS).index(way), len(WAYS)
    buy_with_each(shop, way, {"none": DEMANDS["none"], **dict(list(DEMANDS.items())[at::every])})


@pytest.mark.slow("::test_some_of_the_demands_hold_in_each_way_to_buy")
@pytest.mark.parametrize("way", WAYS)
def test_every_demand_holds_in_every_way_to_buy(shop: Shop, way: str) -> None:
    """R-3, R-9, R-19, V-6, J-6, C-39, edge 4: only a lease whose demands are met gets the node."""
    buy_with_each(shop, way, DEMANDS)


def buy_with_each(shop: Shop, way: str, demands: dict[str, Demand]) -> None:
    row = {}
    for name, demand in demands.items():
        shop.offer(**demand.terms)
        held = shop.hold_disk(**demand.holds) if demand.holds else None
        row[name] = WAYS[way](shop, demand)
        if held is not None:
            shop.close(*held)
    assert row == {name: name in MET for name in demands}
    node = room_stream(shop.node.node_id)
    assert not shop.scene.service.ledger.market.state_of(node).holders, "given back, all of it"


# --- demands that arise between the asking and the taking -------------------------------------

Taking = Callable[[Shop, Caller, Callable[[], None]], bool]


def the_job(shop: Shop) -> dict[str, Any]:
    return shop.scene.job(project_id="small", constraints=shop.demands)


def at_the_award(shop: Shop, renter: Caller, meanwhile: Callable[[], None]) -> bool:
    lease_id = shop.asked(renter, the_job(shop), pricing=AUCTION)
    assert lease_id is not None
    assert shop.bid(lease_id).status_code == 201
    meanwhile()
    shop.tick(SECOND_US)
    return shop.got_it(renter, lease_id)


def at_the_acceptance_of_a_bid(shop: Shop, renter: Caller, meanwhile: Callable[[], None]) -> bool:
    pricing = {"module": "reverse_auction", "pick": "renter"}
    lease_id = shop.asked(renter, the_job(shop), pricing=pricing)
    assert lease_id is not None
    placed = shop.bid(lease_id)
    assert placed.status_code == 201
    meanwhile()
    path = f"/v1/auctions/{lease_id}/bids/{placed.json()['bid_id']}/accept"
    assert renter.post(path, {}).status_code in (200, 409)
    return shop.got_it(renter, lease_id)


def at_the_acceptance_of_a_quote(shop: Shop, renter: Caller, meanwhile: Callable[[], None]) -> bool:
    told = renter.made("/v1/lease-quotes", {"job": the_job(shop), "valid_seconds": 3_600})
    meanwhile()
    path = f"/v1/leases/{told['lease_id']}/accept"
    assert renter.post(path, {"quote_id": told["quote_id"]}).status_code in (200, 409)
    return shop.got_it(renter, told["lease_id"])


def at_a_restart(shop: Shop, renter: Caller, meanwhile: Callable[[], None]) -> bool:
    lease_id = shop.asked(renter, the_job(shop))
    assert lease_id is not None
    shop.ready(lease_id)
    shop.run_out_of_funds(lease_id)
    job_id = renter.read(f"/v1/leases/{lease_id}")["job_id"]
    meanwhile()
    answer = renter.post(f"/v1/jobs/{job_id}/restart", {})
    assert answer.status_code in (201, 409), answer.text
    return answer.status_code == 201 and shop.got_it(renter, answer.json()["lease_id"])


def at_a_higher_bid(shop: Shop, renter: Caller, meanwhile: Callable[[], None]) -> bool:
    """The lease that holds the devices would go on there at its new bid."""
    pricing = {"module": "continuous_bid", "bid": credits_of(600_000)}
    lease_id = shop.asked(renter, the_job(shop), pricing=pricing)
    assert lease_id is not None
    shop.tick()
    shop.ready(lease_id)
    meanwhile()
    answer = renter.post(f"/v1/leases/{lease_id}/bid", {"bid": credits_of(700_000)})
    assert answer.status_code in (200, 409), answer.text
    found = answer.status_code == 200 and shop.got_it(renter, answer.json()["lease_id"])
    shop.close(renter, lease_id)
    return found


TAKINGS: dict[str, Taking] = {
    "at the award": at_the_award,
    "at the acceptance of a bid": at_the_acceptance_of_a_bid,
    "at the acceptance of a quote": at_the_acceptance_of_a_quote,
    "at a restart": at_a_restart,
    "at a higher bid": at_a_higher_bid,
}


def its_client_wants_more(shop: Shop, renter: Caller) -> None:
    policy = {"min_reputation_ppm": 900_000}
    shop.scene.operator.made(f"/v1/clients/{renter.account_id}/policy", policy)


def time_passes(shop: Shop, renter: Caller) -> None:
    del renter
    clock: Any = shop.scene.clock
    clock.advance((TTL_S + 1) * SECOND_US)


def nothing(shop: Shop, renter: Caller) -> None:
    del shop, renter


def quota_is_set(shop: Shop, renter: Caller) -> None:
    del shop
    fill_quota(renter)


CHANGES: dict[str, Callable[[Shop, Caller], None]] = {
    "nothing": nothing,
    "the floor of its client": its_client_wants_more,
    "the renter's deny list": lambda shop, renter: list_of(renter, shop.scene.owner),
    "the provider's deny list": lambda shop, renter: list_of(shop.scene.owner, renter),
    "a quota": quota_is_set,
    "an inventory of late": time_passes,
}


@pytest.mark.parametrize("taking", TAKINGS)
def test_a_demand_that_arises_later_holds_when_the_lease_is_taken(shop: Shop, taking: str) -> None:
    row = {}
    for name, change in CHANGES.items():
        renter = shop.renter(as_client=change is its_client_wants_more)
        row[name] = TAKINGS[taking](shop, renter, lambda: change(shop, renter))  # noqa: B023
    assert row == {name: name == "nothing" for name in CHANGES}


@pytest.mark.parametrize("taking", TAKINGS)
def test_disk_that_another_lease_takes_meanwhile_is_not_given_twice(
    disk_shop: Shop, taking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J-6: two leases of 60 GiB do not fit 100; what holds its disk already keeps it."""
    shop = disk_shop
    shop.tell_inventory(shop.node)
    monkeypatch.setattr(shop, "demands", {"storage_gib": 60})
    others: list[tuple[Caller, str]] = []

    def meanwhile() -> None:
        renter = shop.renter()
        job = shop.scene.job(constraints={"storage_gib": 60})
        lease_id = shop.asked(renter, job)
        assert (lease_id is None) == (taking == "at a higher bid")
        if lease_id is not None:
            others.append((renter, lease_id))

    assert TAKINGS[taking](shop, shop.renter(), meanwhile) == (taking == "at a higher bid")
    for other in others:
        shop.close(*other)
    node = room_stream(shop.node.node_id)
    assert not shop.scene.service.ledger.market.state_of(node).holders, "given back, all of it"


def test_network_comes_back_with_a_pause_and_is_taken_again(shop: Shop) -> None:
    """J-6: a paused lease keeps its disk and not its network; it goes on when both are there."""
    shop.offer(storage_gib=100, network_mbps=1_000)
    renter = shop.renter()
    demands = {"interruptible": True, "storage_gib": 60, "network_mbps": 700}
    part = {"share_ppm": 400_000, "mem_ppm": 400_000}
    first = shop.asked(renter, shop.scene.job(constraints=demands, **part))
    assert first is not None
    shop.ready(first)
    second = shop.scene.job(constraints={"network_mbps": 700}, **part)
    refused = renter.post("/v1/leases", {"job": second}).json()["facts"]
    assert (refused["dimension"], refused["best_offered"]) == ("network", "300"), refused
    renter.made(f"/v1/leases/{first}/pause")
    taken = shop.asked(renter, second)
    assert taken is not None
    answer = renter.post(f"/v1/leases/{first}/resume", {})
    assert (answer.status_code, answer.json()["facts"]["dimension"]) == (409, "network")
    shop.close(renter, taken)
    assert renter.made(f"/v1/leases/{first}/resume")["state"] == "active"
    held = shop.scene.service.ledger.market.state_of(room_stream(shop.node.node_id)).held
    assert (held.storage_gib, held.network_mbps) == (60, 700)
    shop.close(renter, first)


# --- own the base, rent the burst ------------------------------------------------------------


def burst(shop: Shop) -> tuple[Caller, dict[str, Any]]:
    """The owner of the node, whose project is above its quota and rents then."""
    owner = shop.scene.owner
    shop.scene.deposit(owner, MONTH_AND_MORE)
    fill_quota(owner)
    path = f"/v1/accounts/{owner.account_id}/projects"
    owner.made(path, {"project_id": "small", "overflow": "rent"})
    return owner, the_job(shop)


@pytest.mark.parametrize("how", ["outright", "month", "standing bid", "plug-in", "gang", "restart"])
def test_what_is_above_the_quota_is_rented_elsewhere_however_it_is_bought(
    shop: Shop, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-39: the node at home has room, and the lease goes to the rival's, uncounted."""
    monkeypatch.setitem(MODULES, "tenth", Posted(name="tenth", version=3))
    shop.offer_of(shop.scene.other, TERMS, 3_000_000)
    if how == "restart":
        lease_id = restarted_above_a_quota(shop)
    else:
        owner, job = burst(shop)
        if how == "gang":
            (lease_id,) = owner.made("/v1/gangs", {"job": job, "members": 1})["lease_ids"]
        else:
            lease_id = owner.made("/v1/leases", {"job": job, **PRICINGS[how]})["lease_id"]
    shop.tick()
    told = shop.scene.owner.read(f"/v1/leases/{lease_id}")
    assert (told["node_id"], told["overflow"]) == (shop.scene.other.node_id, True)


PRICINGS: dict[str, dict[str, Any]] = {
    "outright": {},
    "month": {"pricing": {"module": "reserved", "months": 1}},
    "standing bid": {"pricing": {"module": "continuous_bid", "bid": credits_of(600_000)}},
    "plug-in": {"pricing": {"module": "tenth"}},
}


def restarted_above_a_quota(shop: Shop) -> str:
    """A lease at home ended with its funds; when its job goes on the quota is full."""
    owner = shop.scene.owner
    lease_id = shop.asked(owner, the_job(shop))
    assert lease_id is not None
    shop.ready(lease_id)
    shop.run_out_of_funds(lease_id)
    shop.tell_inventory(shop.scene.other)
    burst(shop)
    job_id = owner.read(f"/v1/leases/{lease_id}")["job_id"]
    return str(owner.made(f"/v1/jobs/{job_id}/restart")["lease_id"])


def full_at_home(shop: Shop, overflow: str) -> tuple[Caller, dict[str, Any]]:
    """The owner of the node, whose devices are all let, and what its project says then."""
    owner = shop.scene.owner
    shop.scene.deposit(owner, MONTH_AND_MORE)
    assert shop.asked(owner, shop.scene.job(gpu_count=2, project_id="base")) is not None
    path = f"/v1/accounts/{owner.account_id}/projects"
    owner.made(path, {"project_id": "small", "overflow": overflow})
    return owner, the_job(shop)


@pytest.mark.parametrize("overflow", ["refuse", "rent"])
@pytest.mark.parametrize(
    "how", ["outright", "month", "standing bid", "plug-in", "auction", "gang", "restart"]
)
def test_where_ones_own_nodes_are_full_the_project_says_whether_it_rents_however_it_is_bought(
    shop: Shop, how: str, overflow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-39: own the base, rent the burst, or do not."""
    monkeypatch.setitem(MODULES, "tenth", Posted(name="tenth", version=3))
    shop.offer_of(shop.scene.other, TERMS, 3_000_000)
    owner, rival = shop.scene.owner, shop.scene.rival
    if how == "restart":
        ended = shop.asked(owner, the_job(shop))
        assert ended is not None
        shop.ready(ended)
        shop.run_out_of_funds(ended)
        shop.tell_inventory(shop.scene.other)
        full_at_home(shop, overflow)
        job_id = owner.read(f"/v1/leases/{ended}")["job_id"]
        answer = owner.post(f"/v1/jobs/{job_id}/restart")
    else:
        _, job = full_at_home(shop, overflow)
        if how == "gang":
            answer = owner.post("/v1/gangs", {"job": job, "members": 1})
        else:
            pricing = {"pricing": AUCTION} if how == "auction" else PRICINGS[how]
            answer = owner.post("/v1/leases", {"job": job, **pricing})
    told = answer.json()
    if how == "auction":
        shop.scene.deposit(rival, 1_000_000)
        bid = {"offer_id": shop.scene.other.offer_id, "price_per_gpu_hour": credits_of(2_600_000)}
        rival.post(f"/v1/auctions/{told['lease_id']}/bids", bid)
    shop.tick(SECOND_US)
    if answer.status_code == 409:
        assert overflow == "refuse", answer.text
        assert told["code"] in ("base_full", "no_match")
        return
    lease_id = told["lease_ids"][0] if how == "gang" else told["lease_id"]
    node_id = owner.read(f"/v1/leases/{lease_id}").get("node_id")
    assert node_id == (shop.scene.other.node_id if overflow == "rent" else None)


# --- what an auction tells, and what is recorded of a choice ----------------------------------


def test_an_auction_tells_its_bidders_which_class_is_asked_for(shop: Shop) -> None:
    """V-6. An offer that promises as much may bid, and is bound to the class."""
    shop.offer(sla_class="standard")
    renter = shop.renter()
    lease_id = shop.asked(renter, shop.scene.job(sla_class="standard"), pricing=AUCTION)
    assert lease_id is not None
    assert shop.scene.owner.read(f"/v1/auctions/{lease_id}")["sla_class"] == "standard"
    assert shop.bid(lease_id).status_code == 201
    shop.tick(SECOND_US)
    told = renter.read(f"/v1/leases/{lease_id}")
    assert (told["state"], told["sla_class"]) == ("reserved", "standard")


def match_of(renter: Caller, lease_id: str) -> dict[str, Any]:
    job_id = renter.read(f"/v1/leases/{lease_id}")["job_id"]
    (match,) = renter.read(f"/v1/jobs/{job_id}/explain")["matches"]
    return dict(match)


def test_the_choice_of_a_renter_among_bids_can_be_recomputed(shop: Shop) -> None:
    """R-5: the record names every bid with its score, and that the renter picked."""
    scene, renter = shop.scene, shop.renter()
    shop.offer_of(scene.other, TERMS, 3_000_000)
    scene.deposit(scene.rival, 1_000_000)
    asked = renter.made(
        "/v1/leases",
        {"job": scene.job(), "pricing": {"module": "reverse_auction", "pick": "renter"}},
    )
    path = f"/v1/auctions/{asked['lease_id']}/bids"
    bid = {"offer_id": scene.other.offer_id, "price_per_gpu_hour": credits_of(2_600_000)}
    dear = scene.rival.made(path, bid)
    assert shop.bid(asked["lease_id"]).status_code == 201
    renter.made(f"{path}/{dear['bid_id']}/accept")
    match = match_of(renter, asked["lease_id"])
    assert (match["recomputed"], match["differences"]) == (True, [])
    assert (match["rule"], match["deciding"], match["rank"]) == ("renter_pick/1", "renter", 2)
    told = [
        (one["node_id"], "score_ppm" in one, "factors_ppm" in one) for one in match["candidates"]
    ]
    assert told == [(shop.node.node_id, True, True), (scene.other.node_id, True, True)]


def test_bids_at_one_price_are_recorded_in_the_order_in_which_they_came(shop: Shop) -> None:
    scene, renter = shop.scene, shop.renter()
    shop.offer_of(scene.other, TERMS, 3_000_000)
    scene.deposit(scene.rival, 1_000_000)
    lease_id = shop.asked(renter, scene.job(), pricing=AUCTION)
    assert lease_id is not None
    bid = {"offer_id": scene.other.offer_id, "price_per_gpu_hour": credits_of(1_900_000)}
    scene.rival.made(f"/v1/auctions/{lease_id}/bids", bid)
    assert shop.bid(lease_id).status_code == 201
    shop.tick(SECOND_US)
    match = match_of(renter, lease_id)
    assert match["node_id"] == scene.other.node_id
    assert (match["recomputed"], match["deciding"], match["rank"]) == (True, "arrival", 1)


def test_a_lease_that_displaces_a_standing_bid_records_what_it_was_chosen_from(shop: Shop) -> None:
    """R-5: the node as it is once the paused lease is gone, with its score."""
    renter = shop.renter()
    shop.held_by_a_low_bid()
    lease_id = shop.asked(renter, shop.scene.job())
    assert lease_id is not None
    match = match_of(renter, lease_id)
    (candidate,) = match["candidates"]
    assert (candidate["node_id"], candidate["stranded_ppm"]) == (shop.node.node_id, 0)
    assert candidate["factors_ppm"]["free_peers"] == 500_000, "one of two devices is left"
    assert (match["recomputed"], match["differences"]) == (True, [])


# --- what a renter agreed to beside GPU time ---------------------------------------------------

MAXIMA = [
    {"meter": "network", "amount": credits_of(300)},
    {"meter": "storage", "amount": credits_of(50)},
]


def metered(shop: Shop) -> None:
    """From now on the tariff prices network and storage."""
    now_us = shop.scene.clock.now_us()
    tariff = publish(CLOUDBENDER, version=3, effective_from_us=now_us, by="op", at_us=now_us)
    rates = (MeterRate("network", credit(1), 1), MeterRate("storage", credit(1), 1))
    tariff = replace(tariff, sla=(BASIC, STANDARD), meters=rates)
    shop.scene.service.ledger.handle(tariff, key=None, now_us=now_us)


def held_beside(shop: Shop, lease_id: str) -> list[int]:
    """What the lease holds for network and storage, and that no other resource is agreed to."""
    ledger = shop.scene.service.ledger
    reserved = ledger.market.state_of(lease_stream(lease_id)).reserved
    assert reserved is not None
    assert [one.meter for one in reserved.meter_maxima] == ["network", "storage"]
    streams = [resource_stream(lease_id, meter) for meter in ("network", "storage")]
    return [total(ledger.market.state_of(stream).held) for stream in streams]


def leases_of(shop: Shop, renter: Caller) -> list[str]:
    return [
        one["lease_id"]
        for one in renter.read("/v1/leases")["data"]
        if one.get("node_id") == shop.node.node_id
    ]


def metered_for(way: str, request: pytest.FixtureRequest) -> Shop:
    """The metered shop of all; one of its own for the way whose node stays in a pool."""
    own = way == "from a queue"
    shop: Shop = request.getfixturevalue("shop" if own else "metered_shop")
    if own:
        metered(shop)
    shop.tell_inventory(shop.node)
    return shop


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_buy_holds_the_maxima_that_the_renter_agreed_to(
    way: str, request: pytest.FixtureRequest
) -> None:
    """The attack: a provider metered a renter dry. Whatever way a lease is bought, it holds exactly
    what was agreed to, and nothing else can be charged beside GPU time.
    """
    shop = metered_for(way, request)
    renter = shop.renter()
    demand = Demand(lambda made: (renter, made.scene.job(meter_maxima=MAXIMA)))
    assert WAYS[way](shop, demand)
    (lease_id,) = leases_of(shop, renter)
    assert held_beside(shop, lease_id) == [300, 50]


@pytest.mark.parametrize("taking", TAKINGS)
def test_every_way_to_take_a_lease_holds_the_maxima_too(
    metered_shop: Shop, taking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = metered_shop
    shop.tell_inventory(shop.node)
    renter = shop.renter()

    def job(made: Shop) -> dict[str, Any]:
        return made.scene.job(project_id="small", meter_maxima=MAXIMA)

    monkeypatch.setitem(globals(), "the_job", job)
    assert TAKINGS[taking](shop, renter, lambda: None)
    for lease_id in leases_of(shop, renter):
        assert held_beside(shop, lease_id) == [300, 50]


def test_a_longer_term_and_a_shared_escrow_keep_the_maxima_apart(shop: Shop) -> None:
    metered(shop)
    renter = shop.renter()
    job = shop.scene.job(meter_maxima=MAXIMA)
    told = renter.made("/v1/leases", {"job": job, "term_seconds": 3_600})
    shop.ready(told["lease_id"])
    renter.made(f"/v1/leases/{told['lease_id']}/extend", {"seconds": 3_600})
    assert held_beside(shop, told["lease_id"]) == [300, 50]
    shop.close(renter, told["lease_id"])
    job_id = renter.made("/v1/jobs", job)["job_id"]
    renter.made(f"/v1/jobs/{job_id}/escrow", {"amount": credits_of(10_000_000)})
    shared = renter.made("/v1/leases", {"job_id": job_id})["lease_id"]
    assert held_beside(shop, shared) == [300, 50]
    escrow = renter.read(f"/v1/jobs/{job_id}/escrow")
    assert escrow["held"] == credits_of(10_000_000), "GPU time alone is paid from it"
