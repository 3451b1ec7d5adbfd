"""Reputation: how leases of nodes, providers and renters ended, and what a setting is worth."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query, Response

from api.accounts import visible
from api.auth import everybody, with_scope
from api.call import Call, Caller, View
from api.models import (
    AccountInPath,
    Count,
    NodeInPath,
    Position,
    ProviderInPath,
    Told,
)
from api.operation import Resource
from api.positions import ReadAsOf
from domain.money import PPM
from domain.refusal import Reason, Refused
from projections import fleet, reputation
from projections.fleet import FLEET
from projections.reputation import REPUTATION

resource = Resource("reputation")

READ = with_scope("renter", "client", "provider", "operator", "audit:read")
ClientQuery = Annotated[str | None, Query(pattern=r"^[0-9A-Za-z_.-]{1,100}$")]


class PartiesTold(Told):
    """How many closed leases ended through whose fault; the network's and a client's cost nobody
    else anything.
    """

    none: Count
    renter: Count
    provider: Count
    network: Count
    client: Count


class ReputationTold(Told):
    """`good` of `total` leases that count. `score_ppm` is the lower bound of their proportion with
    a start of 800,000 ppm that weighs ten leases; provisional below ten. `client_id`: what came
    through one client, which starts from everybody else's experience.
    """

    kind: Literal["node", "provider", "renter"]
    subject_id: str
    client_id: str | None = None
    good: Count
    total: Count
    completion_ppm: Count | None = None
    score_ppm: Count
    provisional: bool
    closed_by_fault: PartiesTold
    position: Position


class SettingTold(Told):
    """What strangers' leases got on nodes of this setting so far. `availability_ppm`: served of
    the time promised, over settled leases. `offline_ppm`: leases that ended because their node was
    silent for too long, of all that closed.
    """

    setting: Literal["edge", "datacenter"]
    leases: Count
    availability_ppm: Count | None = None
    offline_ppm: Count | None = None


class SettingsTold(Told):
    data: list[SettingTold]
    position: Position


@resource.get(
    "/v1/nodes/{node_id}/reputation", READ, ReputationTold, problems=[Reason.NODE_UNKNOWN]
)  # fmt: skip
def read_node_reputation(
    node_id: NodeInPath, call: Caller, as_of: ReadAsOf, client_id: ClientQuery = None
) -> Response:
    """How a node's leases ended; `as_of_position` gives what was known there."""
    with call.read(FLEET, REPUTATION, as_of=as_of) as view:
        if fleet.read_node(view.connection, node_id) is None:
            raise Refused(Reason.NODE_UNKNOWN, node_id=node_id)
        return _answer(call, view, "node", node_id, client_id)


@resource.get(
    "/v1/providers/{provider_id}/reputation", READ, ReputationTold,
    problems=[Reason.PROVIDER_UNKNOWN],
)  # fmt: skip
def read_provider_reputation(
    provider_id: ProviderInPath,
    call: Caller,
    as_of: ReadAsOf,
    client_id: ClientQuery = None,
) -> Response:
    """How the leases of all of a provider's nodes ended: a second node hides nothing."""
    with call.read(FLEET, REPUTATION, as_of=as_of) as view:
        if fleet.read_provider(view.connection, provider_id) is None:
            raise Refused(Reason.PROVIDER_UNKNOWN, provider_id=provider_id)
        return _answer(call, view, "provider", provider_id, client_id)


@resource.get(
    "/v1/accounts/{account_id}/renter-reputation",
    with_scope("account", "provider", "operator", "audit:read"), ReputationTold,
    problems=[Reason.ACCOUNT_UNKNOWN],
)  # fmt: skip
def read_renter_reputation(
    account_id: AccountInPath,
    call: Caller,
    as_of: ReadAsOf,
    client_id: ClientQuery = None,
) -> Response:
    """How a renter's leases ended: the renter sees it, and whoever has rented to it."""
    with call.read(FLEET, REPUTATION, as_of=as_of) as view:
        mine = call.principal.account_id
        if not reputation.has_rented_to(view.connection, mine, account_id):
            visible(call.principal, account_id)
        return _answer(call, view, "renter", account_id, client_id)


def _answer(call: Call, view: View, kind: Any, subject_id: str, client_id: str | None) -> Response:
    found = reputation.read_reputation(
        view.connection, kind, subject_id, client_id=client_id, as_of=view.as_of
    )
    scored = found.score
    told = ReputationTold(
        kind=kind, subject_id=subject_id, client_id=client_id, good=scored.good,
        total=scored.total, completion_ppm=scored.completion_ppm, score_ppm=scored.score_ppm,
        provisional=scored.is_provisional, closed_by_fault=PartiesTold(**found.by_party),
        position=view.position,
    )  # fmt: skip
    return call.answer(view, told)


@resource.get("/v1/settings", everybody(), SettingsTold)
def list_settings(call: Caller) -> Response:
    """What to expect of edge and of datacenter nodes, in numbers where there are any (K-4)."""
    with call.read(REPUTATION) as view:
        known = {row.setting: row for row in reputation.read_settings(view.connection)}
        data = [setting_told(name, known.get(name)) for name in ("edge", "datacenter")]
        return call.answer(view, SettingsTold(data=data, position=view.position))


def setting_told(name: Any, row: reputation.Setting | None) -> SettingTold:
    """A setting in numbers; absent: nothing has been measured."""
    if row is None:
        return SettingTold(setting=name, leases=0)
    promised = row.promised_gpu_us
    return SettingTold(
        setting=name, leases=row.leases,
        availability_ppm=row.served_gpu_us * PPM // promised if promised else None,
        offline_ppm=row.unreachable * PPM // row.leases if row.leases else None,
    )  # fmt: skip
