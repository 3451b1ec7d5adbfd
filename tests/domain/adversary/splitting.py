"""More accounts and nodes of the coalition, made during a run by the commands that make any."""

from __future__ import annotations

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
from domain.market.offer import OfferTerms, PublishOffer
from domain.money import credit
from domain.parties.account import OpenAccount
from tests.domain.adversary.network import PRICE, Network

NEW_ACCOUNTS = ("acct_n1", "acct_n2")
NEW_NODES = ("node_new1", "node_new2")


def open_account(network: Network, account: str) -> None:
    opened = network.try_(
        OpenAccount(
            account_id=account,
            kind="party",
            opened_by="op",
            owner_member_id=f"mem_{account}",
            at_us=network.now_us,
        )
    )
    if opened:
        network.members.add(account)


def join_node(network: Network, node: str, owner: str) -> None:
    """A node of a provider of its own, in a region of its own, with two offers."""
    if node in network.owner_of:
        return
    provider, region, code = f"prov_{node}", f"region_{node}", f"{len(network.log):064x}"
    at_us = network.now_us
    devices = tuple(DeviceSpec(f"GPU-{node}-{n}", "nvidia", "A100", 81_920) for n in range(6))
    joined = network.try_(
        RegisterProvider(provider_id=provider, account_id=owner, kind="physical", at_us=at_us),
        OpenRegion(
            region_id=region,
            provider_id=provider,
            name="new",
            storage_mode="local",
            setting="edge",
            admission="permissionless",
            allow_public_jobs=True,
            at_us=at_us,
            hardware_rules=(),
        ),
        IssueJoinCode(
            code_sha256=code, provider_id=provider, region_id=region, by="m", at_us=at_us
        ),
        JoinNode(
            code_sha256=code,
            node_id=node,
            key_id=f"key_{node}",
            public_key="00",
            token_sha256="00",
            agent="0.1.0",
            client_id=None,
            devices=devices,
            host=HostSpec("x86_64", "linux"),
            at_us=at_us,
        ),
        ConfirmNodeKey(node_id=node, key_id=f"key_{node}", by="m", at_us=at_us),
        AdmitNode(node_id=node, by="op", at_us=at_us, waived=()),
        ActivateNode(node_id=node, by="op", at_us=at_us),
        *(
            PublishOffer(
                offer_id=f"{node}_{pay_with}",
                provider_id=provider,
                node_id=node,
                price_per_gpu_hour=credit(PRICE),
                pay_with=pay_with,
                fractions=True,
                available_until_us=None,
                at_us=at_us,
                terms=OfferTerms(interruptible=True),
            )
            for pay_with in ("cash", "burn")
        ),
    )
    if joined:
        network.owner_of[node] = owner
