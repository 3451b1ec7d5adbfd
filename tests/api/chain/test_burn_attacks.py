"""Attacks on burns and on the rewards that follow them, on a real database and a real chain. Each
test says what an attacker did, and that it brings nothing any more.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from api.chain.reconcile import burn_differences
from api.corrections.corrections_timer import correct_due
from contracts.deployment import Deployment
from contracts.devnet import Devnet
from domain.duration import HOUR_US
from domain.fleet.revenue_share import OwnerShare, SetRevenueShares
from domain.income.maturity import SetPaymentMode
from domain.jobs.job import SubmitJob
from domain.lease.lease import ReadyLease, RequestLease, ReserveLease
from domain.lease.reserved_term import ReservedPrice, TermEndedEarly, term_us
from domain.lease.turns import QuoteLease
from domain.market.offer_prices import SetOfferPrices
from domain.money import credit
from domain.prices.tariff import SlaClass, SlaTier
from projections import tables
from projections.epochs import counted, epochs, wash_uses
from tests.api.chain import attacks
from tests.contracts import stage
from tests.scenes import chain as chain_scene
from tests.scenes.chain import DEVICES, NODE, OFFERS, OWNER, PRICE, PROVIDER, RENTER, Scene


@pytest.fixture(scope="module")
def chain() -> Generator[tuple[Devnet, Deployment], None, None]:
    with chain_scene.deployed() as made:
        yield made


@pytest.fixture
def scene(
    database: str, chain: tuple[Devnet, Deployment], tmp_path: Path
) -> Generator[Scene, None, None]:
    with chain_scene.scene(database, chain, tmp_path) as made:
        attacks.founded(made)
        yield made


def ended_early(scene: Scene) -> TermEndedEarly:
    """A month is paid in advance and given up after an hour, with nothing refunded."""
    start_us = scene.now_us
    at: dict[str, Any] = {"at_us": start_us}
    scene.handle(
        SetOfferPrices(
            offer_id=OFFERS["cash"],
            provider_id=PROVIDER,
            interruptible_floor=None,
            reserved=(ReservedPrice(1, credit(PRICE), 0),),
            by="m",
            at_us=start_us,
        ),
        SubmitJob(
            job_id="job_t",
            account_id=RENTER,
            client_id="direct",
            project_id="p",
            end_user_ref="u",
            kind="batch",
            image=None,
            command=("true",),
            env_refs=(),
            gpu_count=1,
            share_ppm=1_000_000,
            mem_ppm=1_000_000,
            models=(),
            max_price_per_gpu_hour=credit(PRICE),
            **at,
        ),
        RequestLease(
            lease_id="lease_t",
            job_id="job_t",
            account_id=RENTER,
            term_us=term_us(1),
            funds=None,
            pricing="reserved",
            months=1,
            **at,
        ),
        QuoteLease(
            lease_id="lease_t",
            quote_id="q",
            rule="reserved/1",
            node_id=NODE,
            offer_id=OFFERS["cash"],
            device_ids=DEVICES[:1],
            price_per_gpu_hour=credit(PRICE),
            expires_at_us=start_us + 60_000_000,
            **at,
        ),
        ReserveLease(
            lease_id="lease_t",
            rule="reserved/1",
            fleet_position=1,
            candidates=(),
            considered=1,
            node_id=NODE,
            offer_id=OFFERS["cash"],
            device_ids=DEVICES[:1],
            quote_id="q",
            **at,
        ),
        ReadyLease(lease_id="lease_t", node_id=NODE, endpoint=None, **at),
    )
    scene.travel(3_600)
    scene.settle_lease("lease_t", start_us, HOUR_US)
    facts = scene.ledger.market.read_facts(0, 10_000)
    return next(one.fact for one in facts if isinstance(one.fact, TermEndedEarly))


def test_the_burn_part_of_a_term_that_ended_early_is_burned(scene: Scene) -> None:
    """E-H6: it was booked to be burned and never was; nothing compared the two."""
    scene.deposit(10_000)
    early = ended_early(scene)
    assert early.parts.burn > 0
    assert not list(burn_differences(scene.ledger, scene.connection))
    attacks.burn_all(scene)
    assert scene.balance("network:burn_due") == 0
    assert not list(burn_differences(scene.ledger, scene.connection))


def test_the_reconciler_alarms_when_a_burn_forgets_a_charge(scene: Scene) -> None:
    """E-H6: a view that loses a line would leave it due for ever, unseen."""
    scene.deposit(100)
    scene.lease("cash", "cash", 3_600)
    due = scene.balance("network:burn_due")
    assert not list(burn_differences(scene.ledger, scene.connection))
    scene.connection.execute("DELETE FROM proj_epochs.due")
    told = [str(one) for one in burn_differences(scene.ledger, scene.connection)]
    assert told == [f"credits to be burned: expected {due}, got 0"]


def weights(scene: Scene, epoch: int) -> dict[tuple[str, str], int]:
    """What the burned value of each node counts with, by source."""
    tables.step_all(scene.connection, only=("epochs",))
    found = epochs.read_preview(scene.connection, epoch)
    kept = counted.read_weights(scene.connection, found).weights
    return {(one.node_id, one.source): one.burned for one in kept if one.burned}


def tokens(scene: Scene, epoch: int) -> dict[str, int]:
    found = counted.read_tokens(scene.connection, epoch)
    return {node_id: sum(one) for node_id, one in found.items()}


def value(units: int) -> int:
    """TOKEN units in micro-credits, at the price of the burns."""
    return units * stage.PRICE // 10**8


ALL_BACK = SlaClass("assured", (SlaTier(999_000, 1_000_000),))
GOLD = SlaClass("gold", (SlaTier(990_000, 100_000),))


def test_a_washer_who_gets_all_back_by_sla_takes_no_token_from_an_honest_owner(
    scene: Scene,
) -> None:
    """E-C2: renter and owner are one, the node fails its promise, all the money comes back. It was
    taken out of what honest charges were to burn, and the reward stayed.
    """
    attacks.publish_tariff(scene, sla=(ALL_BACK,))
    scene.link()
    attacks.honest_owner(scene)
    scene.deposit(100)
    before = scene.balance(f"party:{RENTER}:cash")
    attacks.lease(scene, "wash", 3_600, served=3_590, sla="assured")
    charged = before - scene.balance(f"party:{RENTER}:cash")
    attacks.burn_all(scene)
    account = attacks.HONEST_RENTER
    attacks.lease(scene, "honest", 72_000, account=account, honest=True)
    due = scene.balance("network:burn_due")
    correct_due(scene.ledger, scene.connection, scene.now_us)
    assert scene.balance(f"party:{RENTER}:cash") == before
    assert scene.balance("network:burn_due") == due, "nobody else's burn pays for it"
    attacks.settled(scene, 1)
    assert weights(scene, 1) == {(attacks.HONEST_NODE, "cash"): due}
    assert scene.balance(f"party:{OWNER}:matured") == 0
    honest = scene.balance(f"party:{attacks.HONEST_OWNER}:matured")
    assert value(honest) == due, "all that its work burned comes back to the honest owner"
    assert charged > 0
    assert not list(burn_differences(scene.ledger, scene.connection))


def test_the_gold_class_of_the_documentation_brings_a_washer_less_than_it_spent(
    scene: Scene,
) -> None:
    """E-C2: 10 % back below 99 %: 101.5 % came back. Now 5 % of what stayed are lost."""
    attacks.publish_tariff(scene, sla=(GOLD,))
    scene.link()
    attacks.honest_owner(scene)
    scene.deposit(100)
    before = scene.balance(f"party:{RENTER}:cash")
    attacks.lease(scene, "wash", 3_600, served=3_560, sla="gold")
    charged = before - scene.balance(f"party:{RENTER}:cash")
    attacks.burn_all(scene)
    account = attacks.HONEST_RENTER
    attacks.lease(scene, "honest", 36_000, account=account, honest=True)
    correct_due(scene.ledger, scene.connection, scene.now_us)
    attacks.settled(scene, 1)
    back = scene.balance(f"party:{RENTER}:cash") - before + charged
    provider = scene.balance(f"party:{OWNER}:holdback")
    token_value = value(scene.balance(f"party:{OWNER}:matured"))
    assert back == charged // 10
    assert back + provider + token_value <= back + (charged - back) * 950_000 // 1_000_000


def test_card_money_of_one_account_delays_no_burn_of_another(scene: Scene) -> None:
    """E-H2: the whole burn waited for cash that card money does not bring before its confirmation,
    and the honest owner's epoch had no weight.
    """
    attacks.publish_tariff(scene)
    attacks.honest_owner(scene, credits=40)
    scene.deposit(400, source="card")
    account = attacks.HONEST_RENTER
    attacks.lease(scene, "honest", 36_000, account=account, honest=True)
    due = scene.balance("network:burn_due")
    attacks.lease(scene, "card", 3_600 * 11)
    by_card = scene.balance("network:burn_due") - due
    assert by_card > 0
    assert attacks.burn_all(scene) == []
    attacks.settled(scene, 1)
    assert scene.balance("network:burn_due") == by_card, "it waits for its confirmation"
    assert weights(scene, 1) == {(attacks.HONEST_NODE, "cash"): due}
    assert value(scene.balance(f"party:{attacks.HONEST_OWNER}:matured")) == due
    assert not list(burn_differences(scene.ledger, scene.connection))


def test_related_parties_have_no_weight_and_are_shown_as_related(scene: Scene) -> None:
    """E-H4: the owner is paid through the renter's account, and the renter owns all its revenue:
    full weight, and no sign of it.
    """
    attacks.publish_tariff(scene)
    scene.link()
    scene.deposit(100)
    scene.handle(
        SetPaymentMode(
            account_id=OWNER,
            mode="credits",
            billing_account_id=RENTER,
            destination=None,
            by="m",
            at_us=scene.now_us,
        )
    )
    attacks.lease(scene, "billed", 3_600)
    scene.handle(
        SetRevenueShares(
            node_id=NODE,
            account_id=OWNER,
            shares=(OwnerShare(RENTER, 1_000_000),),
            by="m",
            at_us=scene.now_us,
        )
    )
    attacks.lease(scene, "owned", 3_600)
    attacks.burn_all(scene)
    attacks.settled(scene, 1)
    assert weights(scene, 1) == {}
    assert scene.balance(f"party:{OWNER}:matured") == 0
    tables.step_all(scene.connection, only=("counterparties", "reputation"))
    used = wash_uses.read_used(scene.connection, 1, NODE)
    assert used.others == ()
    assert used.related > 0
    rows = scene.connection.execute("SELECT bool_and(related) FROM proj_reputation.lease")
    assert rows.fetchone() == (True,)


def test_washing_with_bought_credits_loses_five_percent(scene: Scene) -> None:
    """E-H5: leases in burned credits have no fee, so all TOKEN that were burned came back."""
    scene.link()
    scene.buy(1)
    scene.jobs().step(scene.now_us)
    attacks.lease(scene, "wash", 2_000, pay_with="burn")
    assert scene.balance(f"party:{RENTER}:burned") == 0
    attacks.settled(scene, 1)
    assert scene.balance(f"party:{OWNER}:matured") == 95 * 10**6


def test_burned_credits_that_come_back_buy_the_next_node_its_reward(scene: Scene) -> None:
    """E-H5: an SLA credit gave burned credits back without their TOKEN, and the honest node that
    was paid with them next got nearly nothing.
    """
    attacks.publish_tariff(scene, sla=(ALL_BACK,))
    scene.link()
    attacks.honest_owner(scene)
    scene.buy(1)
    scene.jobs().step(scene.now_us)
    bought = scene.balance(f"party:{RENTER}:burned")
    with attacks.before_the_bound():
        attacks.lease(scene, "wash", 2_000, served=1_990, pay_with="burn", sla="assured")
    attacks.settled(scene, 1)
    assert scene.balance(f"party:{OWNER}:matured") > 0
    correct_due(scene.ledger, scene.connection, scene.now_us)
    assert scene.balance(f"party:{RENTER}:burned") == bought
    attacks.lease(scene, "honest", 1_900, pay_with="burn", honest=True)
    spent = bought - scene.balance(f"party:{RENTER}:burned")
    attacks.settled(scene, 2)
    assert weights(scene, 2) == {(attacks.HONEST_NODE, "burned"): spent}
    assert tokens(scene, 2)[attacks.HONEST_NODE] == spent * 10**8 // bought
    assert tokens(scene, 2).get(NODE, 0) == 0
    honest = scene.balance(f"party:{attacks.HONEST_OWNER}:matured")
    assert honest == tokens(scene, 2)[attacks.HONEST_NODE] * 950_000 // 1_000_000
