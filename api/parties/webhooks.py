"""Webhooks: endpoints that are told what is recorded about an account, and how the telling went."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Path, Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Call, Caller, View
from api.door.models import (
    AccountId,
    AnswerModel,
    Count,
    EmptyRequest,
    Position,
    RequestModel,
    Short,
    Told_at,
    page_of,
    with_examples,
)
from api.door.moments import moment, moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, InOrder, Limit, Place
from api.parties import webhook_sender, webhook_senders
from domain.parties.reasons import PartiesReason
from domain.parties.webhook import (
    TYPES_MAX,
    URL_MAX,
    AddWebhook,
    DisableWebhook,
    EnableWebhook,
    RotateWebhookSecret,
    WebhookState,
    webhook_stream,
)
from domain.refusal import Refused
from ledger.beside import sealed_secrets, webhook_deliveries
from projections.parties import webhooks
from projections.parties.webhooks import WEBHOOKS, Endpoint
from projections.runner import Connection

resource = Resource("webhooks")

WRITE = with_scope("account:admin")
READ = with_scope("account", "account:admin")
EndpointId = Annotated[str, Field(pattern=r"^hook_[0-9a-f]{32}$")]
EndpointInPath = Annotated[str, Path(pattern=r"^hook_[0-9a-f]{32}$")]
TypePrefix = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]{0,63}$", examples=["lease."])]
REPLAY_MAX = 1_000
_ONE = {"from_position": 1, "to_position": 2}


class WebhookRequest(RequestModel):
    """`types`: prefixes of fact types, such as `lease.` or `payment.`; none: all of them."""

    url: Annotated[str, Field(min_length=9, max_length=URL_MAX)]
    types: Annotated[list[TypePrefix], Field(max_length=TYPES_MAX)] = Field(default_factory=list)

    model_config = with_examples({"url": "https://hooks.example.com/tally", "types": ["lease."]})


class WebhookAnswer(AnswerModel):
    """`secret` is there only in the answer that makes it; sent again, for 24 hours."""

    endpoint_id: EndpointId
    account_id: AccountId
    url: str
    types: list[str]
    enabled: bool
    disabled_reason: Literal["owner", "gone", "failed"] | None = None
    added_at: Told_at
    secret: str | None = None
    position: Position | None = None


class WebhookDeliveryAnswer(AnswerModel):
    """The delivery of one fact; `answer`: the last HTTP status of the endpoint."""

    webhook_id: str
    outcome: Literal["waiting", "delivered", "failed"]
    attempts: Count
    answer: Count | None = None
    error: Short | None = None
    first_at: Told_at
    last_at: Told_at
    next_at: Told_at | None = None
    position: Position


class WebhookReplayRequest(RequestModel):
    """Facts whose deliveries are repeated, delivered or given up: [from_position, to_position]."""

    from_position: Annotated[int, Field(ge=1, le=9_007_199_254_740_991)]
    to_position: Annotated[int, Field(ge=1, le=9_007_199_254_740_991)]

    model_config = with_examples(_ONE)


class WebhookReplayAnswer(AnswerModel):
    """`count`: the number of facts that are delivered again, in order, before anything new."""

    endpoint_id: EndpointId
    count: Count


class WebhookTestAnswer(AnswerModel):
    """The endpoint's answer to an event of type `webhook.test`."""

    endpoint_id: EndpointId
    delivered: bool
    answer: Count | None = None
    error: Short | None = None


@resource.post(
    "/v1/webhooks",
    WRITE,
    WebhookAnswer,
    status=201,
    problems=[
        PartiesReason.ACCOUNT_UNKNOWN,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.WEBHOOK_URL,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def add_webhook(body: WebhookRequest, call: Caller) -> Response:
    """Adds an HTTPS endpoint that receives everything recorded about your account from now on."""
    endpoint_id = call.id("hook")
    secret_id = call.id("secret")

    def command() -> AddWebhook:
        return AddWebhook(
            endpoint_id=endpoint_id,
            account_id=call.principal.account_id,
            url=body.url,
            types=tuple(body.types),
            secret_id=secret_id,
            others=_enabled(call, endpoint_id),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return _record(call, endpoint_id, secret_id, command)


@resource.get("/v1/webhooks", READ, page_of(WebhookAnswer), problems=["cursor_invalid"])
def list_webhooks(
    call: Caller, order: InOrder, limit: Limit = LIST_LIMIT, cursor: Cursor = None
) -> Response:
    """Lists your endpoints, in the order in which they were added."""
    place = call.place(cursor, [0], order)
    with call.read(WEBHOOKS) as view:
        rows = webhooks.read_endpoints(
            view.connection,
            account_id=call.principal.account_id,
            after=place.after[0],
            way=place.way,
            limit=limit + 1,
        )
        return call.page(view, place, rows, limit, lambda row: [row.position], _endpoint)


@resource.post(
    "/v1/webhooks/{endpoint_id}/rotate",
    WRITE,
    WebhookAnswer,
    problems=[PartiesReason.WEBHOOK_UNKNOWN],
)
def rotate_webhook(endpoint_id: EndpointInPath, body: EmptyRequest, call: Caller) -> Response:
    """Creates a new secret. The old one signs beside it for 24 hours."""
    del body
    secret_id = call.id("secret")
    command = RotateWebhookSecret(
        endpoint_id=endpoint_id,
        account_id=call.principal.account_id,
        secret_id=secret_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return _record(call, endpoint_id, secret_id, lambda: command)


@resource.post(
    "/v1/webhooks/{endpoint_id}/stop",
    WRITE,
    WebhookAnswer,
    problems=[PartiesReason.WEBHOOK_UNKNOWN],
)
def stop_webhook(endpoint_id: EndpointInPath, body: EmptyRequest, call: Caller) -> Response:
    """Stops deliveries to an endpoint until it is started again."""
    del body
    with call.read(WEBHOOKS) as view:
        position = view.position
    command = DisableWebhook(
        endpoint_id=endpoint_id,
        account_id=call.principal.account_id,
        reason="owner",
        position=position,
        by=call.principal.member_id,
        at_us=call.now_us,
    )
    return call.record(lambda: command, _told(endpoint_id, reason="owner"))


@resource.post(
    "/v1/webhooks/{endpoint_id}/start",
    WRITE,
    WebhookAnswer,
    problems=[PartiesReason.WEBHOOK_UNKNOWN, PartiesReason.COUNT_OUT_OF_RANGE],
)
def start_webhook(endpoint_id: EndpointInPath, body: EmptyRequest, call: Caller) -> Response:
    """Starts deliveries to an endpoint again, from where they were stopped."""
    del body

    def command() -> EnableWebhook:
        return EnableWebhook(
            endpoint_id=endpoint_id,
            account_id=call.principal.account_id,
            others=_enabled(call, endpoint_id),
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    return call.record(command, _told(endpoint_id))


@resource.post(
    "/v1/webhooks/{endpoint_id}/test",
    WRITE,
    WebhookTestAnswer,
    records=False,
    problems=[PartiesReason.WEBHOOK_UNKNOWN, "one_request_at_a_time"],
)
def test_webhook(endpoint_id: EndpointInPath, body: EmptyRequest, call: Caller) -> Response:
    """Sends an event of type `webhook.test` now, and returns the result; one at a time."""
    del body
    with call.read(WEBHOOKS) as view:
        endpoint = _own(call, view, endpoint_id)
        secrets = webhook_sender.secrets_of(call.service, view.connection, endpoint, call.now_us)
    # A slow endpoint holds up its own caller, and no connection to the database.
    with webhook_senders.one_test(endpoint.account_id):
        sent = webhook_sender.send_test(secrets, endpoint, call.now_us)
    told = WebhookTestAnswer(
        endpoint_id=endpoint_id, delivered=sent.is_taken, answer=sent.status, error=sent.error
    )
    return call.answer(view, told)


@resource.post(
    "/v1/webhooks/{endpoint_id}/replay",
    WRITE,
    WebhookReplayAnswer,
    records=False,
    problems=[PartiesReason.WEBHOOK_UNKNOWN, PartiesReason.COUNT_OUT_OF_RANGE],
)
def replay_webhook(
    endpoint_id: EndpointInPath, body: WebhookReplayRequest, call: Caller
) -> Response:
    """Delivers events to an endpoint again, delivered ones and given-up ones."""
    with call.read(WEBHOOKS) as view:
        _own(call, view, endpoint_id)
        count = webhook_deliveries.tell_again(
            view.connection,
            endpoint_id,
            body.from_position,
            body.to_position,
            call.now_us,
            REPLAY_MAX,
        )
        if count > REPLAY_MAX:
            raise Refused(PartiesReason.COUNT_OUT_OF_RANGE, at_most=REPLAY_MAX)
        return call.answer(view, WebhookReplayAnswer(endpoint_id=endpoint_id, count=count))


@resource.get(
    "/v1/webhooks/{endpoint_id}/deliveries",
    READ,
    page_of(WebhookDeliveryAnswer),
    problems=[PartiesReason.WEBHOOK_UNKNOWN, "cursor_invalid"],
)
def list_deliveries(
    endpoint_id: EndpointInPath,
    call: Caller,
    order: InOrder,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the deliveries of each fact and their results, in order."""
    place = call.place(cursor, [0], order)
    with call.read(WEBHOOKS) as view:
        _own(call, view, endpoint_id)
        rows = _deliveries(view, endpoint_id, place, limit + 1)
        return call.page(view, place, rows, limit, lambda row: [row.position], _delivery)


def _deliveries(
    view: View, endpoint_id: str, place: Place, limit: int
) -> list[webhook_deliveries.Delivery]:
    after, since = place.after[0], place.way.since
    if place.way.newest:
        return webhook_deliveries.read_newest(view.connection, endpoint_id, after, since, limit)
    return webhook_deliveries.read(view.connection, endpoint_id, max(after, since), limit)


def _own(call: Call, view: View, endpoint_id: str) -> Endpoint:
    """Raises Refused: WEBHOOK_UNKNOWN, also for another account's."""
    found = webhooks.read_endpoints(
        view.connection, endpoint_id=endpoint_id, account_id=call.principal.account_id, limit=1
    )
    if not found:
        raise Refused(PartiesReason.WEBHOOK_UNKNOWN, endpoint_id=endpoint_id)
    return found[0]


def _enabled(call: Call, but: str) -> int:
    """The endpoints of the account that are told, but for one: of the log as it is now."""
    account_id = call.principal.account_id
    with call.read(WEBHOOKS) as view:
        return webhooks.count_enabled(view.connection, account_id, but=but)


def _record(
    call: Call,
    endpoint_id: str,
    secret_id: str,
    command: Callable[[], AddWebhook | RotateWebhookSecret],
) -> Response:
    """Record an endpoint's new secret, which stands sealed beside the log, and show it. It is the
    same for the same request, so that a lost answer can be asked for again in 24 hours.
    """
    secret = call.secret("webhook/v2")[:32]
    stream, key = webhook_stream(endpoint_id), call.service.sealing_key
    seen: list[WebhookState] = []  # of the last attempt, which is the one that was recorded

    def told(after: After) -> Any:
        seen[:] = [after.state(stream)]
        return _told(endpoint_id)(after)

    def keep(connection: Connection) -> None:
        name = webhook_sender.sealed_name(secret_id)
        sealed_secrets.keep(connection, key, name, secret, call.now_us)

    answer = call.record(
        command, told, reveal=lambda: {"secret": webhook_sender.told_secret(secret)}, beside=keep
    )
    # Not before the rotation is recorded: until then it is the only one. Another rotation may have
    # been recorded since; a request that is repeated, after a crash, has seen none of its own.
    for state in (*seen, call.service.ledger.market.state_of(stream)):
        if state.previous_id:
            previous = webhook_sender.sealed_name(state.previous_id)
            with call.service.connection() as connection:
                sealed_secrets.end(connection, previous, state.overlap_until_us)
    return answer


def _told(endpoint_id: str, reason: Any = None) -> Any:
    def told(after: After) -> AnswerModel:
        state = after.state(webhook_stream(endpoint_id))
        added = state.added
        assert added is not None
        return WebhookAnswer(
            endpoint_id=endpoint_id,
            account_id=added.account_id,
            url=added.url,
            types=list(added.types),
            enabled=state.is_enabled,
            disabled_reason=reason,
            added_at=moment(added.at_us),
        )

    return told


def _endpoint(row: Endpoint) -> WebhookAnswer:
    reason: Any = row.disabled_reason
    return WebhookAnswer(
        endpoint_id=row.endpoint_id,
        account_id=row.account_id,
        url=row.url,
        types=row.types,
        enabled=row.enabled,
        disabled_reason=reason,
        added_at=moment(row.at_us),
    )


def _delivery(row: webhook_deliveries.Delivery) -> WebhookDeliveryAnswer:
    return WebhookDeliveryAnswer(
        webhook_id=webhook_sender.message_id(row.endpoint_id, row.position),
        outcome=row.outcome,
        attempts=row.attempts,
        answer=row.answer,
        error=row.error,
        first_at=moment(row.first_at_us),
        last_at=moment(row.last_at_us),
        next_at=moment_or_none(row.next_at_us),
        position=row.position,
    )
