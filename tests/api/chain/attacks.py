"""What the attacks on burns and rewards share: a market with burns, a second, honest owner, and
leases that are served in part.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest.mock import patch

from contracts.tally import TOKEN_UNIT
from domain.duration import HOUR_US, SECOND_US
from domain.epochs.reward_terms import REWARD_TERMS
from domain.fleet.node import (
    ActivateNode,
    AdmitNode,
    ConfirmNodeKey,
    DeviceSpec,
    HostSpec,
    IssueJoinCode,
    JoinNode,
)
from domain.fleet.provider import OpenRegion, RegisterProvider
from domain.funds.deposit import ConfirmDeposit
from domain.jobs.job import SubmitJob
from domain.lease.lease import (
    AccrueUsage,
    CloseLease,
    ReadyLease,
    RequestLease,
    ReserveLease,
    SettleLease,
)
from domain.market.offer import PublishOffer
from domain.metering.report import lane_of
from domain.money import credit
from domain.parties.account import OpenAccount
from domain.prices.tariff import CLOUDBENDER, PublishTariff, SlaClass, Split, SplitShare
from tests.scenes.chain import (
    DEVICES,
    NEW_WALLET,
    NODE,
    OFFERS,
    OPERATOR,
    OWNER,
    PRICE,
    RENTER,
    Scene,
    _usage,
)

HONEST_NODE, HONEST_DEVICE = "node_" + "b" * 32, "GPU-h"
HONEST_OWNER, HONEST_RENTER = "acct_honest_owner", "acct_honest"
HONEST_OFFERS = {"cash": "offer_honest", "burn": "offer_honest_burn"}
CREDIT = 10**6


def founded(scene: Scene) -> None:
    """The market of `tests/scenes/chain.py` with a new network's reward terms, and its burns."""
    scene.found(rewards=replace(REWARD_TERMS, min_wait_us=0))
    scene.with_burns = True
    tokens = 100_000 * TOKEN_UNIT
    scene.stage.do("admin", scene.tally.transfer(scene.treasury.address, tokens))


@contextmanager
def before_the_bound() -> Generator[None, None, None]:
    """As a log was written before the profit bound (`domain/prices/profit_bound.py`): tariffs that
    return too much, and promises to leases in burned credits.
    """
    with (
        patch("domain.prices.profit_bound.require_tariff"),
        patch("domain.leasing.request.is_cash_only", return_value=False),
    ):
        yield


def publish_tariff(scene: Scene, *, sla: tuple[SlaClass, ...] = ()) -> None:
    """5 % take, 35 % for the provider, 60 % burned: the split of the preset rnp_023_sce."""
    with before_the_bound():
        _publish(scene, sla)


def _publish(scene: Scene, sla: tuple[SlaClass, ...]) -> None:
    scene.handle(
        PublishTariff(
            version=2,
            usage_fees=tuple(
                replace(rate, per_gpu_hour=credit(0)) for rate in CLOUDBENDER.usage_fees
            ),
            provider_share_ppm=350_000,
            burn_share_ppm=0,
            effective_from_us=scene.now_us,
            by="operator",
            at_us=scene.now_us,
            split=Split((SplitShare("platform", 50_000), SplitShare("provider", 350_000)), "burn"),
            sla=sla,
        )
    )


def pay_in(scene: Scene, account_id: str, credits: int, source: str = "cash") -> None:
    """Credits for an account."""
    scene.handle(
        ConfirmDeposit(
            deposit_id=f"deposit_{account_id}_{scene.now_us}",
            account_id=account_id,
            source=source,
            amount=credit(credits * CREDIT),
            reference=f"{account_id}/{scene.now_us}",
            confirmed_by="operator",
            at_us=scene.now_us,
        )
    )


def honest_owner(scene: Scene, credits: int = 1_000) -> None:
    """An owner with a node and a wallet of its own, and a renter of its own with some cash."""
    at: dict[str, Any] = {"at_us": scene.now_us}
    by: dict[str, Any] = {"by": "operator", **at}
    scene.handle(
        *(
            OpenAccount(
                account_id=account,
                kind="party",
                opened_by="operator",
                owner_member_id=account,
                **at,
            )
            for account in (HONEST_OWNER, HONEST_RENTER)
        ),
        RegisterProvider(
            provider_id="prov_h",
            account_id=HONEST_OWNER,
            kind="physical",
            payment_mode="credits",
            **at,
        ),
        OpenRegion(
            region_id="region_h",
            provider_id="prov_h",
            name="honest",
            storage_mode="local",
            setting="datacenter",
            admission="operator",
            allow_public_jobs=True,
            **at,
        ),
        IssueJoinCode(code_sha256="55" * 32, provider_id="prov_h", region_id="region_h", **by),
        JoinNode(
            code_sha256="55" * 32,
            node_id=HONEST_NODE,
            key_id="nk_h",
            public_key="66" * 32,
            token_sha256="77" * 32,
            agent="test",
            client_id=None,
            devices=(DeviceSpec(HONEST_DEVICE, "nvidia", "A100", 81_920),),
            host=HostSpec("x86_64", "linux"),
            **at,
        ),
        ConfirmNodeKey(node_id=HONEST_NODE, key_id="nk_h", **by),
        AdmitNode(node_id=HONEST_NODE, **by),
        ActivateNode(node_id=HONEST_NODE, **by),
        *(
            PublishOffer(
                offer_id=offer,
                provider_id="prov_h",
                node_id=HONEST_NODE,
                price_per_gpu_hour=credit(PRICE),
                pay_with=settles,
                fractions=True,
                available_until_us=None,
                **at,
            )
            for settles, offer in HONEST_OFFERS.items()
        ),
    )
    scene.link(NEW_WALLET, HONEST_OWNER)
    pay_in(scene, HONEST_RENTER, credits)


def lease(
    scene: Scene,
    name: str,
    seconds: int,
    *,
    served: int | None = None,
    pay_with: str = "cash",
    sla: str | None = None,
    account: str = RENTER,
    honest: bool = False,
) -> str:
    """A lease from now on, of which so many seconds were served (of each hour, the whole)."""
    lease_id, start_us = f"lease_{name}", scene.now_us
    node, device = (HONEST_NODE, HONEST_DEVICE) if honest else (NODE, DEVICES[0])
    at: dict[str, Any] = {"at_us": start_us}
    scene.handle(
        SubmitJob(
            job_id=f"job_{name}",
            account_id=account,
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
            sla_class=sla,
            **at,
        ),
        RequestLease(
            lease_id=lease_id,
            job_id=f"job_{name}",
            account_id=account,
            term_us=seconds * SECOND_US,
            funds=None,
            **at,
        ),
        ReserveLease(
            lease_id=lease_id,
            rule="lowest_cost/1",
            fleet_position=1,
            candidates=(),
            considered=1,
            node_id=node,
            offer_id=(HONEST_OFFERS if honest else OFFERS)[pay_with],
            device_ids=(device,),
            **at,
        ),
        ReadyLease(lease_id=lease_id, node_id=node, endpoint=None, **at),
    )
    scene.travel(seconds)
    end_us = start_us + seconds * SECOND_US
    at = {"at_us": scene.now_us}
    hours = [*range(start_us, end_us, HOUR_US), end_us]
    rows = [replace(_usage(*hour, scene.now_us), device_id=device) for hour in pairwise(hours)]
    if served is not None:
        assert len(rows) == 1, "a lease that is served in part is one hour"
        rows = [replace(rows[0], available_us=served * SECOND_US)]
    read: dict[str, Any] = {"lease_id": lease_id, "lane": lane_of(node), **at}
    for number, row in enumerate(rows[:-1], 1):
        scene.handle(AccrueUsage(usage_position=number, rows=(row,), **read))
    scene.handle(
        CloseLease(lease_id=lease_id, closed_at_us=end_us, party="renter", code=1, **at),
        SettleLease(usage_position=len(rows), rows=(rows[-1],), **read),
    )
    return lease_id


def burn_all(scene: Scene, rounds: int = 2) -> list[str]:
    """Burns that are due, until their events are final; what the last round waits for."""
    waiting: list[str] = []
    for _ in range(rounds):
        waiting = scene.jobs().step(scene.now_us).waiting
        scene.travel(60)
    return waiting


def settled(scene: Scene, epoch: int) -> None:
    """An epoch ends and is settled, with the burns before it final."""
    scene.end_epoch(epoch)
    for _ in range(2):
        scene.jobs().step(scene.now_us)
    assert scene.settle_epochs() == ()


__all__ = [
    "CREDIT",
    "HONEST_NODE",
    "HONEST_OWNER",
    "HONEST_RENTER",
    "OPERATOR",
    "OWNER",
    "burn_all",
    "founded",
    "honest_owner",
    "lease",
    "pay_in",
    "publish_tariff",
    "settled",
]
