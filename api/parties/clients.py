"""Compute clients: parties of their own, whose instances bring jobs with keys of their own.

The operator registers and suspends a client; the client binds keys to its instances and takes them
back. A key of a client's account that is bound to no instance submits nothing: 403, and no fact.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AccountId,
    AccountInPath,
    AnswerModel,
    Count,
    EmptyRequest,
    KeyId,
    KeyInPath,
    Moment,
    Position,
    RequestModel,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit
from api.parties.accounts import own
from api.parties.api_keys import issuing
from api.parties.new_keys import id_of_key, new_key
from domain.parties.api_key import RevokeApiKey
from domain.parties.client import (
    AddClientKey,
    RegisterComputeClient,
    ResumeClient,
    RevokeClientKey,
    SetClientFloor,
    SuspendClient,
    client_stream,
)
from domain.parties.reasons import PartiesReason
from domain.pools.quota import GPU_PPM_MAX, SetQuota, client_quota
from domain.pools.quota import stream_of as quota_stream
from domain.refusal import Refused
from projections.parties import demand
from projections.parties.demand import DEMAND

resource = Resource("clients")

OPERATOR = with_scope("operator")
ADMIN = with_scope("account:admin", "operator")
READ = with_scope("account", "client", "operator", "audit:read")
InstanceInPath = Annotated[str, Path(pattern=r"^[0-9A-Za-z_.-]{1,64}$")]
Floor = Annotated[int, Field(ge=0, le=1_000_000)]
GpuPpm = Annotated[
    int, Field(ge=0, le=GPU_PPM_MAX, description="GPUs held at once; a whole one is 1,000,000")
]
PoolId = Annotated[str, Field(pattern=r"^[0-9A-Za-z_.-]{1,100}$")]


class ComputeClientRequest(RequestModel):
    """An account of the kind `client`. `min_reputation_ppm`: no node below it runs its jobs."""

    client_id: AccountId
    min_reputation_ppm: Floor | None = None

    model_config = with_examples({"client_id": "acct_" + "3" * 32, "min_reputation_ppm": 700_000})


class ClientKeyAnswer(AnswerModel):
    """A key of an instance; the key itself is there only in the answer that makes it."""

    key_id: KeyId
    instance_id: str
    bound_at: Told_at
    revoked_at: Told_at | None = None
    key: str | None = None
    position: Position | None = None


class ClientQuotaAnswer(AnswerModel):
    """`pool_id` absent: everywhere. `gpu_ppm_max` absent: counted, and not limited."""

    pool_id: PoolId | None = None
    gpu_ppm_max: Count | None = None
    used_ppm: Count | None = None
    position: Position | None = None


class ComputeClientAnswer(AnswerModel):
    client_id: AccountId
    min_reputation_ppm: Floor | None = None
    suspended: bool
    registered_at: Told_at | None = None
    keys: list[ClientKeyAnswer] | None = None
    quotas: list[ClientQuotaAnswer] | None = None
    position: Position | None = None


class ClientKeyRequest(RequestModel):
    """A key with the scope `client`, for one instance."""

    expires_at: Moment | None = None

    model_config = with_examples({}, {"expires_at": "2030-01-01T00:00:00Z"})


class ClientPolicyRequest(RequestModel):
    """`min_reputation_ppm` absent: no floor."""

    min_reputation_ppm: Floor | None = None

    model_config = with_examples({"min_reputation_ppm": 800_000})


class ClientQuotaRequest(RequestModel):
    """`pool_id` absent: of everything it leases. `gpu_ppm_max` absent: no limit any more."""

    pool_id: PoolId | None = None
    gpu_ppm_max: GpuPpm | None = None

    model_config = with_examples({"gpu_ppm_max": 64_000_000})


@resource.post(
    "/v1/clients",
    OPERATOR,
    ComputeClientAnswer,
    status=201,
    problems=[
        PartiesReason.NOT_PERMITTED,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
    ],
)
def register_client(body: ComputeClientRequest, call: Caller) -> Response:
    """Registers an account that may bring jobs as a compute client. A second call changes
    nothing.
    """

    def command() -> RegisterComputeClient:
        _operator(call)
        return RegisterComputeClient(
            client_id=body.client_id,
            min_reputation_ppm=body.min_reputation_ppm,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(command, lambda after: _told(after, body.client_id))


@resource.get("/v1/clients", READ, page_of(ComputeClientAnswer), problems=["cursor_invalid"])
def list_clients(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists compute clients in order of registration: yourself, or all for operators and
    auditors.
    """
    place = call.place(cursor, [0], order)
    with call.read(DEMAND) as view:
        rows = demand.read_clients(
            view.connection,
            client_id=call.principal.only,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _row)


@resource.get(
    "/v1/clients/{client_id}", READ, ComputeClientAnswer, problems=[PartiesReason.CLIENT_UNKNOWN]
)
def read_client(client_id: AccountInPath, call: Caller) -> Response:
    """Returns a client with the keys of its instances and its quotas."""
    _visible(call, client_id)
    with call.read(DEMAND) as view:
        rows = demand.read_clients(view.connection, client_id=client_id, limit=1)
        if not rows:
            raise Refused(PartiesReason.CLIENT_UNKNOWN, client_id=client_id)
        told = _row(rows[0]).model_copy(
            update={
                "keys": [
                    ClientKeyAnswer(
                        key_id=one.key_id,
                        instance_id=one.instance_id,
                        bound_at=moment(one.at_us),
                        revoked_at=moment_or_none(one.revoked_at_us),
                    )
                    for one in demand.read_client_keys(view.connection, client_id)
                ],
                "quotas": [
                    ClientQuotaAnswer(
                        pool_id=one.pool_id or None,
                        gpu_ppm_max=one.gpu_ppm_max,
                        used_ppm=one.used_ppm,
                    )
                    for one in demand.read_client_quotas(view.connection, client_id)
                ],
            }
        )
        return call.answer(view, told)


@resource.post(
    "/v1/clients/{client_id}/instances/{instance_id}/keys",
    with_scope("account:admin"),
    ClientKeyAnswer,
    status=201,
    problems=[
        PartiesReason.CLIENT_UNKNOWN,
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def add_client_key(
    client_id: AccountInPath, instance_id: InstanceInPath, body: ClientKeyRequest, call: Caller
) -> Response:
    """Issues a key for an instance of your client, shown once."""
    key = new_key(call)

    def commands() -> list[Any]:
        own(call.principal, client_id)
        issue = issuing(call, client_id, key, ("client",), body.expires_at)
        bind = AddClientKey(
            client_id=client_id,
            instance_id=instance_id,
            key_id=id_of_key(key),
            by=call.principal.member_id,
            at_us=call.now_us,
        )
        return [issue, bind]

    told = ClientKeyAnswer(
        key_id=id_of_key(key), instance_id=instance_id, bound_at=moment(call.now_us)
    )
    return call.record(commands, lambda _after: told, reveal=lambda: {"key": key})


@resource.delete(
    "/v1/clients/{client_id}/keys/{key_id}",
    ADMIN,
    ComputeClientAnswer,
    problems=[PartiesReason.CLIENT_UNKNOWN, PartiesReason.API_KEY_UNKNOWN],
)
def revoke_client_key(client_id: AccountInPath, key_id: KeyInPath, call: Caller) -> Response:
    """Revokes an instance's key at once. A second call changes nothing."""

    def commands() -> list[Any]:
        _own(call, client_id)
        by, at_us = call.principal, call.now_us
        return [
            RevokeClientKey(client_id=client_id, key_id=key_id, by=by.member_id, at_us=at_us),
            RevokeApiKey(
                account_id=client_id,
                key_id=key_id,
                by_key_id=by.key_id,
                by_account_id=by.account_id,
                at_us=at_us,
            ),
        ]

    return call.record(commands, lambda after: _told(after, client_id))


@resource.post(
    "/v1/clients/{client_id}/policy",
    ADMIN,
    ComputeClientAnswer,
    problems=[PartiesReason.CLIENT_UNKNOWN],
)
def set_client_policy(
    client_id: AccountInPath, body: ClientPolicyRequest, call: Caller
) -> Response:
    """Sets the least reputation of the nodes that run the client's jobs."""

    def command() -> SetClientFloor:
        _own(call, client_id)
        return SetClientFloor(
            client_id=client_id,
            min_reputation_ppm=body.min_reputation_ppm,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(command, lambda after: _told(after, client_id))


@resource.post(
    "/v1/clients/{client_id}/suspend",
    OPERATOR,
    ComputeClientAnswer,
    problems=[PartiesReason.CLIENT_UNKNOWN],
)
def suspend_client(client_id: AccountInPath, body: EmptyRequest, call: Caller) -> Response:
    """Suspends a client. Nothing is submitted for it until it is resumed; its leases go on."""
    del body

    def command() -> SuspendClient:
        _operator(call)
        return SuspendClient(client_id=client_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(command, lambda after: _told(after, client_id))


@resource.post(
    "/v1/clients/{client_id}/resume",
    OPERATOR,
    ComputeClientAnswer,
    problems=[PartiesReason.CLIENT_UNKNOWN],
)
def resume_client(client_id: AccountInPath, body: EmptyRequest, call: Caller) -> Response:
    """Resumes a client, which may submit again."""
    del body

    def command() -> ResumeClient:
        _operator(call)
        return ResumeClient(client_id=client_id, by=call.principal.member_id, at_us=call.now_us)

    return call.record(command, lambda after: _told(after, client_id))


@resource.post(
    "/v1/clients/{client_id}/quotas",
    OPERATOR,
    ClientQuotaAnswer,
    problems=[PartiesReason.CLIENT_UNKNOWN],
)
def set_client_quota(client_id: AccountInPath, body: ClientQuotaRequest, call: Caller) -> Response:
    """Sets how many GPUs a client holds at once, in one pool or in all; counted from now on."""
    quota_id = client_quota(client_id, body.pool_id or "")

    def command() -> SetQuota:
        _operator(call)
        client = call.service.ledger.market.state_of(client_stream(client_id))
        if not client.registered:
            raise Refused(PartiesReason.CLIENT_UNKNOWN, client_id=client_id)
        return SetQuota(
            quota_id=quota_id,
            gpu_ppm_max=body.gpu_ppm_max,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    def told(after: After) -> AnswerModel:
        used_ppm = after.state(quota_stream(quota_id)).used_ppm
        return ClientQuotaAnswer(
            pool_id=body.pool_id, gpu_ppm_max=body.gpu_ppm_max, used_ppm=used_ppm
        )

    return call.record(command, told)


def _operator(call: Call) -> None:
    """Raises Refused: CLIENT_UNKNOWN, as for one that does not exist."""
    if not call.principal.is_operator:
        raise Refused(PartiesReason.CLIENT_UNKNOWN)


def _own(call: Call, client_id: str) -> None:
    """Raises Refused: CLIENT_UNKNOWN, for another party's client as for none at all."""
    if not (call.principal.owns(client_id) or call.principal.is_operator):
        raise Refused(PartiesReason.CLIENT_UNKNOWN, client_id=client_id)


def _visible(call: Call, client_id: str) -> None:
    """Raises Refused: CLIENT_UNKNOWN."""
    if not call.principal.may_see(client_id):
        raise Refused(PartiesReason.CLIENT_UNKNOWN, client_id=client_id)


def _told(after: After, client_id: str) -> ComputeClientAnswer:
    state = after.state(client_stream(client_id))
    return ComputeClientAnswer(
        client_id=client_id, min_reputation_ppm=state.min_reputation_ppm, suspended=state.suspended
    )


def _row(row: demand.Client) -> ComputeClientAnswer:
    return ComputeClientAnswer(
        client_id=row.client_id,
        min_reputation_ppm=row.min_reputation_ppm,
        suspended=row.suspended,
        registered_at=moment(row.at_us),
    )
