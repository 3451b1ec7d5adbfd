"""Pools: nodes of many providers under one policy, who waits for them, and why who is next."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.amounts import Units
from api.door.auth import everybody, with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AccountQuery,
    Address,
    AnswerModel,
    Count,
    EmptyRequest,
    FactAnswer,
    NodeId,
    Position,
    PositionInPath,
    ProviderId,
    RegionId,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from domain.corrections.reasons import CorrectionsReason
from domain.duration import SECOND_US
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.pools.pool import (
    DEFAULT_POLICY,
    GPUS_PPM_MAX,
    NAME_MAX,
    QUEUES_MAX,
    WEIGHT_MAX,
    AddPoolNode,
    CreatePool,
    PoolPolicy,
    PoolQueue,
    PoolState,
    RemovePoolNode,
    SetPoolPolicy,
    pool_stream,
)
from domain.pools.queue import ScheduleDecided, inputs_of
from domain.pools.reasons import PoolsReason
from domain.pools.scheduling import next_request
from domain.refusal import Refused
from ledger.log import codec
from projections.fleet.fleet import FLEET
from projections.pools import pools
from projections.pools.pools import POOLS
from projections.runner import Connection

resource = Resource("pools")

OWNER = with_scope("provider", "operator")
PARTIES = with_scope("provider", "operator", "renter", "client", "audit:read")

PoolId = Annotated[str, Field(pattern=r"^pool_[0-9A-Za-z]{1,64}$")]
PoolInPath = Annotated[str, Path(pattern=r"^pool_[0-9A-Za-z]{1,64}$")]
NodeOfPool = Annotated[str, Path(pattern=r"^node_[0-9A-Za-z]{1,64}$")]
Name = Annotated[str, Field(min_length=1, max_length=NAME_MAX)]
Pricing = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
"""A pricing module of the installation, one of a plug-in too."""
Scheduler = Literal["immediate", "first_come", "fair_share", "drf"]
Rank = Literal["lowest_cost", "best_score"]
Precedence = Literal["priority", "share", "arrival"]
DEFAULT = DEFAULT_POLICY
PRECEDENCE: tuple[Precedence, ...] = ("priority", "share", "arrival")


class PoolQueueForm(RequestModel):
    """A queue of the fair-share tree. `deserved_ppm`: GPUs it is owed before any queue is over
    quota, a whole one being 1,000,000. `weight`: of what is left, and of a dominant share. With an
    `account_id`, and a `project_id` of it, the queue of those requests. A parent comes first.
    """

    name: Name
    parent: Name | None = None
    deserved_ppm: Annotated[int, Field(ge=0, le=GPUS_PPM_MAX)] = 0
    weight: Annotated[int, Field(ge=1, le=WEIGHT_MAX)] = 1
    priority: Annotated[int, Field(ge=0, le=WEIGHT_MAX)] = 0
    account_id: AccountId | None = None
    project_id: Annotated[str, Field(max_length=100)] | None = None


class PoolPolicyForm(RequestModel):
    """`scheduler`: `immediate` refuses what cannot be placed now; with the others it waits.
    `precedence`: what decides first between waiting requests. `history_ppm`: how much what was used
    in `window_seconds`, halved each `half_life_seconds`, counts against a queue's weight.
    `gang_timeout_seconds`: until the last member has to be ready. `gang_patience_seconds`: how long
    others may be placed before the earliest request that they delay.
    """

    pricing: Pricing = "posted"
    scheduler: Scheduler = "first_come"
    rank: Rank = "lowest_cost"
    precedence: Annotated[list[Precedence], Field(min_length=1, max_length=3)] = Field(
        default_factory=lambda: list(PRECEDENCE)
    )
    queues: Annotated[list[PoolQueueForm], Field(max_length=QUEUES_MAX)] = Field(
        default_factory=list
    )
    half_life_seconds: Annotated[int, Field(ge=60, le=31_622_400)] = (
        DEFAULT.half_life_us // SECOND_US
    )
    window_seconds: Annotated[int, Field(ge=60, le=31_622_400)] = DEFAULT.window_us // SECOND_US
    history_ppm: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    gang_timeout_seconds: Annotated[int, Field(ge=60, le=86_400)] = (
        DEFAULT.gang_timeout_us // SECOND_US
    )
    gang_patience_seconds: Annotated[int, Field(ge=0, le=31_622_400)] = (
        DEFAULT.gang_patience_us // SECOND_US
    )
    open_to_providers: bool = True

    model_config = with_examples(
        {"scheduler": "drf"},
        {
            "scheduler": "fair_share",
            "history_ppm": 1_000_000,
            "queues": [
                {"name": "research", "deserved_ppm": 150_000_000},
                {
                    "name": "vision",
                    "parent": "research",
                    "weight": 3,
                    "account_id": "acct_" + "1" * 32,
                },
            ],
        },
    )

    def policy(self) -> PoolPolicy:
        return PoolPolicy(
            pricing=self.pricing,
            scheduler=self.scheduler,
            rank=self.rank,
            precedence=tuple(self.precedence),
            queues=tuple(PoolQueue(**one.model_dump()) for one in self.queues),
            half_life_us=self.half_life_seconds * SECOND_US,
            window_us=self.window_seconds * SECOND_US,
            history_ppm=self.history_ppm,
            gang_timeout_us=self.gang_timeout_seconds * SECOND_US,
            gang_patience_us=self.gang_patience_seconds * SECOND_US,
            open_to_providers=self.open_to_providers,
        )


class PoolRequest(RequestModel):
    """`controller_address`: of a contract that answers for the pool, if there is one."""

    name: Name
    policy: PoolPolicyForm = Field(default_factory=PoolPolicyForm)
    controller_address: Address | None = None

    model_config = with_examples({"name": "research", "policy": {"scheduler": "drf"}})


class AcceleratorModelAnswer(AnswerModel):
    """Devices of one model on nodes that may be leased. `share_free_ppm`: of all of them."""

    vendor: str
    model: str
    gpu_class: str | None = None
    devices: Count
    whole_free: Count
    share_free_ppm: Units
    memory_mib: Count


class PoolAnswer(AnswerModel):
    """`accelerators`: absent in lists."""

    pool_id: PoolId
    account_id: AccountId
    name: str
    version: Count
    policy: PoolPolicyForm
    controller_address: Address | None = None
    nodes: Count
    waiting: Count
    accelerators: list[AcceleratorModelAnswer] | None = None
    created_at: Told_at
    position: Position | None = None


class PoolCreatedAnswer(AnswerModel):
    pool_id: PoolId
    account_id: AccountId
    name: str
    version: Count
    policy: PoolPolicyForm
    controller_address: Address | None = None
    created_at: Told_at
    position: Position | None = None


class PoolPolicyAnswer(AnswerModel):
    pool_id: PoolId
    version: Count
    policy: PoolPolicyForm
    position: Position | None = None


class PoolNodeRequest(RequestModel):
    """A node of yours."""

    node_id: NodeId

    model_config = with_examples({"node_id": "node_" + "1" * 32})


class PoolNodeAddedAnswer(AnswerModel):
    pool_id: PoolId
    node_id: NodeId
    is_in: bool
    position: Position | None = None


class PoolNodeAnswer(AnswerModel):
    """`free`: devices without a holder."""

    node_id: NodeId
    provider_id: ProviderId
    region_id: RegionId
    phase: str
    vendors: list[str]
    models: list[str]
    devices: Count
    free: Count
    added_at: Told_at


class ResourceQuantityAnswer(AnswerModel):
    """`gpu` and `gpu_memory` in parts per million of one device."""

    resource: str
    units: Units


class WaitingRequestAnswer(AnswerModel):
    """`request_id`: of a lease or a gang. Its account is shown to that account and to operators
    only.
    """

    request_id: str
    place: Count
    is_gang: bool
    demand: list[ResourceQuantityAnswer]
    account_id: AccountId | None = None
    project_id: str | None = None
    waits_since: Told_at


class PoolDecisionAnswer(AnswerModel):
    """The request that was chosen, and the rule that chose it."""

    pool_id: PoolId
    chosen: str
    rule: str
    policy_version: Count
    fleet_position: Position
    waiting: Count
    decided_at: Told_at
    position: Position


class PoolQueueHoldingAnswer(AnswerModel):
    queue: str
    held: list[ResourceQuantityAnswer]
    used_gpu_us: Units


class QueueCandidateAnswer(AnswerModel):
    """`fits`: there was room for it. `delays_first`: it would have taken what the earliest request,
    which had waited for the pool's patience, could use.
    """

    request_id: str
    queue: str
    place: Count
    is_gang: bool
    demand: list[ResourceQuantityAnswer]
    fits: bool
    delays_first: bool
    waits_since: Told_at


class PoolDecisionDetailAnswer(FactAnswer):
    """All that a decision looked at, and whether its rule gives the same answer now."""

    pool_id: PoolId
    chosen: str
    rule: str
    policy_version: Count
    policy: PoolPolicyForm
    fleet_position: Position
    capacity: list[ResourceQuantityAnswer]
    held: list[PoolQueueHoldingAnswer]
    waiting: list[QueueCandidateAnswer]
    window_gpu_us: Units
    decided_at: Told_at
    recomputed: str | None = None
    holds: bool
    position: Position


# --- making and changing -----------------------------------------------------------------------


@resource.post(
    "/v1/pools",
    OWNER,
    PoolCreatedAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PoolsReason.POOL_EXISTS,
        PoolsReason.POOL_POLICY_INVALID,
        PartiesReason.BAD_ADDRESS,
    ],
)
def create_pool(body: PoolRequest, call: Caller) -> Response:
    """Creates a pool of your own. Providers add their nodes one by one."""
    pool_id = call.id("pool")

    def commands() -> CreatePool:
        return CreatePool(
            pool_id=pool_id,
            account_id=call.principal.account_id,
            name=body.name,
            policy=body.policy.policy(),
            controller_address=body.controller_address,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = PoolCreatedAnswer(
        pool_id=pool_id,
        account_id=call.principal.account_id,
        name=body.name,
        version=1,
        policy=body.policy,
        controller_address=body.controller_address,
        created_at=moment(call.now_us),
    )
    return call.record(commands, lambda _after: told)


@resource.post(
    "/v1/pools/{pool_id}/policy",
    OWNER,
    PoolPolicyAnswer,
    problems=[PoolsReason.POOL_UNKNOWN, PoolsReason.POOL_POLICY_INVALID],
)
def set_pool_policy(pool_id: PoolInPath, body: PoolPolicyForm, call: Caller) -> Response:
    """Sets the whole policy of a pool. Settings that are left out get their default."""

    def commands() -> SetPoolPolicy:
        own_pool(call, pool_id)
        return SetPoolPolicy(
            pool_id=pool_id, policy=body.policy(), by=call.principal.member_id, at_us=call.now_us
        )

    def told(after: After) -> AnswerModel:
        version = after.state(pool_stream(pool_id)).version
        return PoolPolicyAnswer(pool_id=pool_id, version=version, policy=body)

    return call.record(commands, told)


@resource.post(
    "/v1/pools/{pool_id}/nodes",
    with_scope("provider"),
    PoolNodeAddedAnswer,
    status=201,
    problems=[
        PoolsReason.POOL_UNKNOWN,
        FleetReason.NODE_UNKNOWN,
        FleetReason.NODE_STATE,
        FleetReason.NODE_POOLED,
        PartiesReason.NOT_PERMITTED,
    ],
)
def add_pool_node(pool_id: PoolInPath, body: PoolNodeRequest, call: Caller) -> Response:
    """Puts a node of yours into a pool. A node is in one pool at most."""

    def commands() -> AddPoolNode:
        return AddPoolNode(
            pool_id=pool_id,
            node_id=body.node_id,
            account_id=call.principal.account_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = PoolNodeAddedAnswer(pool_id=pool_id, node_id=body.node_id, is_in=True)
    return call.record(commands, lambda _after: told)


@resource.post(
    "/v1/pools/{pool_id}/nodes/{node_id}/remove",
    OWNER,
    PoolNodeAddedAnswer,
    problems=[PoolsReason.POOL_UNKNOWN, FleetReason.NODE_UNKNOWN],
)
def remove_pool_node(
    pool_id: PoolInPath, node_id: NodeOfPool, body: EmptyRequest, call: Caller
) -> Response:
    """Removes a node from a pool, by its provider or the pool's owner. Running leases go on."""
    del body

    def commands() -> RemovePoolNode:
        return RemovePoolNode(
            pool_id=pool_id,
            node_id=node_id,
            account_id=call.principal.account_id,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = PoolNodeAddedAnswer(pool_id=pool_id, node_id=node_id, is_in=False)
    return call.record(commands, lambda _after: told)


def own_pool(call: Call, pool_id: str) -> PoolState:
    """The caller's pool; an operator's is any. Raises Refused: POOL_UNKNOWN."""
    state = call.service.ledger.market.state_of(pool_stream(pool_id))
    principal = call.principal
    if state.created is None or not (
        principal.owns(state.created.account_id) or principal.is_operator
    ):
        raise Refused(PoolsReason.POOL_UNKNOWN, pool_id=pool_id)
    return state


# --- reading -----------------------------------------------------------------------------------


@resource.get("/v1/pools", everybody(), page_of(PoolAnswer), problems=["cursor_invalid"])
def list_pools(
    call: Caller,
    order: InOrder,
    account_id: AccountQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists pools in order of creation."""
    place = call.place(cursor, [0], order)
    with call.read(POOLS) as view:
        rows = pools.read_pools(
            view.connection,
            account_id=account_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _pool)


@resource.get("/v1/pools/{pool_id}", everybody(), PoolAnswer, problems=[PoolsReason.POOL_UNKNOWN])
def read_pool(pool_id: PoolInPath, call: Caller) -> Response:
    """Returns a pool: its policy, and how many accelerators of each kind it has."""
    with call.read(POOLS, FLEET) as view:
        found = existing_pool(view.connection, pool_id)
        kinds = pools.read_accelerators(view.connection, pool_id)
        told = _pool(found).model_copy(update={"accelerators": [_kind(one) for one in kinds]})
        return call.answer(view, told)


@resource.get(
    "/v1/pools/{pool_id}/nodes",
    everybody(),
    page_of(PoolNodeAnswer),
    problems=[PoolsReason.POOL_UNKNOWN, "cursor_invalid"],
)
def list_pool_nodes(
    pool_id: PoolInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the nodes of a pool in the order in which they were added."""
    place = call.place(cursor, [0], order)
    with call.read(POOLS, FLEET) as view:
        existing_pool(view.connection, pool_id)
        rows = pools.read_pool_nodes(
            view.connection, pool_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _node)


@resource.get(
    "/v1/pools/{pool_id}/queue",
    PARTIES,
    page_of(WaitingRequestAnswer),
    problems=[PoolsReason.POOL_UNKNOWN, "cursor_invalid"],
)
def list_pool_queue(
    pool_id: PoolInPath, call: Caller, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists the requests that wait for a pool, in order. Names of other accounts are left out."""
    place = call.place(cursor, [0])
    with call.read(POOLS) as view:
        existing_pool(view.connection, pool_id)
        rows = pools.read_waiting(view.connection, pool_id, after=place.after[0], limit=limit + 1)
        return call.page(
            view, place, rows, limit, lambda row: [row.place], lambda row: _waiting(call, row)
        )


@resource.get(
    "/v1/pools/{pool_id}/decisions",
    PARTIES,
    page_of(PoolDecisionAnswer),
    problems=[PoolsReason.POOL_UNKNOWN, "cursor_invalid"],
)
def list_pool_decisions(
    pool_id: PoolInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists decisions of a pool's scheduler, in order."""
    place = call.place(cursor, [0], order)
    with call.read(POOLS) as view:
        existing_pool(view.connection, pool_id)
        rows = pools.read_decisions(
            view.connection, pool_id, after=place.after[0], way=place.way, limit=limit + 1
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _decision)


@resource.get(
    "/v1/pools/{pool_id}/decisions/{at_position}",
    OWNER,
    PoolDecisionDetailAnswer,
    problems=[PoolsReason.POOL_UNKNOWN, CorrectionsReason.LINE_UNKNOWN],
)
def read_pool_decision(pool_id: PoolInPath, at_position: PositionInPath, call: Caller) -> Response:
    """Returns all inputs of one decision, and repeats it. For the pool's owner and operators."""
    own_pool(call, pool_id)
    with call.read(POOLS) as view:
        row = view.connection.execute(_DECIDED, (at_position,)).fetchone()
    fact = None if row is None else codec.decode(row[0], bytes(row[1]))
    if not isinstance(fact, ScheduleDecided) or fact.pool_id != pool_id:
        raise Refused(CorrectionsReason.LINE_UNKNOWN, position=at_position)
    policy = _policy_then(call, fact)
    again = next_request(policy, inputs_of(fact))
    return call.answer(view, _whole(fact, policy, again, at_position))


_DECIDED = """
    SELECT topic, state FROM public.market_events
    WHERE notification_id = %s AND topic = 'pool.schedule_decided.v1'
"""


def _policy_then(call: Call, fact: ScheduleDecided) -> PoolPolicy:
    """The policy a decision was made by."""
    for recorded in call.service.ledger.market.read_stream(pool_stream(fact.pool_id)):
        version = getattr(recorded.fact, "version", 1)
        if version == fact.policy_version:
            policy: PoolPolicy = recorded.fact.policy
            return policy
    raise AssertionError(fact)


def existing_pool(connection: Connection, pool_id: str) -> pools.Pool:
    """The row of a pool. Raises Refused: POOL_UNKNOWN."""
    found = pools.read_pool(connection, pool_id)
    if found is None:
        raise Refused(PoolsReason.POOL_UNKNOWN, pool_id=pool_id)
    return found


def _pool(row: pools.Pool) -> PoolAnswer:
    return PoolAnswer(
        pool_id=row.pool_id,
        account_id=row.account_id,
        name=row.name,
        version=row.version,
        policy=policy_told(row.policy),
        controller_address=row.controller_address,
        nodes=row.nodes,
        waiting=row.waiting,
        created_at=moment(row.at_us),
    )


def policy_told(stored: dict[str, Any]) -> PoolPolicyForm:
    """A policy as it is stored, in seconds."""
    plain = {name: value for name, value in stored.items() if not name.endswith("_us")}
    seconds = {
        f"{name.removesuffix('_us')}_seconds": value // SECOND_US
        for name, value in stored.items()
        if name.endswith("_us")
    }
    return PoolPolicyForm.model_validate({**plain, **seconds})


def _kind(row: pools.Accelerators) -> AcceleratorModelAnswer:
    return AcceleratorModelAnswer(
        vendor=row.vendor,
        model=row.model,
        gpu_class=row.gpu_class,
        devices=row.devices,
        whole_free=row.whole_free,
        share_free_ppm=str(row.share_free_ppm),
        memory_mib=row.memory_mib,
    )


def _node(row: pools.PoolNode) -> PoolNodeAnswer:
    return PoolNodeAnswer(
        node_id=row.node_id,
        provider_id=row.provider_id,
        region_id=row.region_id,
        phase=row.phase,
        vendors=row.vendors,
        models=row.models,
        devices=row.devices,
        free=row.free,
        added_at=moment(row.at_us),
    )


def _waiting(call: Call, row: pools.WaitingRequest) -> WaitingRequestAnswer:
    is_mine = call.principal.may_see(row.account_id)
    return WaitingRequestAnswer(
        request_id=row.request_id,
        place=row.place,
        is_gang=row.is_gang,
        demand=[
            ResourceQuantityAnswer(resource=one["resource"], units=one["units"])
            for one in row.demand
        ],
        account_id=row.account_id if is_mine else None,
        project_id=row.project_id if is_mine else None,
        waits_since=moment(row.at_us),
    )


def _decision(row: pools.Decision) -> PoolDecisionAnswer:
    return PoolDecisionAnswer(
        pool_id=row.pool_id,
        chosen=row.chosen,
        rule=row.rule,
        policy_version=row.policy_version,
        fleet_position=row.fleet_position,
        waiting=row.waiting_count,
        decided_at=moment(row.at_us),
        position=row.position,
    )


def _whole(
    fact: ScheduleDecided, policy: PoolPolicy, again: str | None, position: int
) -> PoolDecisionDetailAnswer:
    return PoolDecisionDetailAnswer(
        pool_id=fact.pool_id,
        chosen=fact.chosen,
        rule=fact.rule,
        policy_version=fact.policy_version,
        policy=policy_told(_plain(policy)),
        fleet_position=fact.fleet_position,
        capacity=_quantities(fact.capacity),
        held=[
            PoolQueueHoldingAnswer(
                queue=one.queue, held=_quantities(one.held), used_gpu_us=str(one.used_gpu_us)
            )
            for one in fact.held
        ],
        waiting=[
            QueueCandidateAnswer(
                request_id=one.request_id,
                queue=one.queue,
                place=one.place,
                is_gang=one.is_gang,
                demand=_quantities(one.demand),
                fits=one.fits,
                delays_first=one.delays_first,
                waits_since=moment(one.since_us),
            )
            for one in fact.waiting
        ],
        window_gpu_us=str(fact.window_gpu_us),
        decided_at=moment(fact.at_us),
        recomputed=again,
        holds=again == fact.chosen,
        position=position,
    )


def _quantities(some: Any) -> list[ResourceQuantityAnswer]:
    return [ResourceQuantityAnswer(resource=one.resource, units=str(one.units)) for one in some]


def _plain(policy: PoolPolicy) -> dict[str, Any]:
    plain = asdict(policy)
    return {**plain, "precedence": list(policy.precedence), "queues": list(plain["queues"])}
