"""Tells endpoints what was recorded: signed, in order, at least once, and never to our own network.

    webhook-id = hash of endpoint and position        so a repeated telling is recognisable
    signature  = v1,base64(HMAC-SHA-256(secret, id.timestamp.body))             Standard Webhooks

One fact at a time per endpoint: the next is told when this one was taken. A name is resolved once,
every address it has must be public, and the connection goes to the address that was checked, so an
endpoint cannot point into the network of the server. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import socket
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from api.door.moments import moment
from api.parties.public_addresses import is_public
from api.parties.webhook_senders import Senders
from api.process.service import Service
from api.process.timer import Timer
from domain.duration import SECOND_US
from domain.parties.webhook import DisableWebhook
from domain.record import dataclass
from ledger.beside import sealed_secrets, webhook_deliveries
from projections.audit import audit_index
from projections.audit.audit_index import AUDIT_INDEX
from projections.parties import webhooks
from projections.parties.webhooks import WEBHOOKS, Endpoint
from projections.runner import Connection

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

RETRIES_US = tuple(
    seconds * SECOND_US
    for seconds in (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
"""Waits before each attempt, after the one before; after the last the endpoint is disabled."""
TIMEOUT_SECONDS = 15.0
BODY_BYTES_MAX = 20_000
PER_ROUND_MAX = 50
"""Facts told to one endpoint in one turn."""
CLAIM_US = 120 * SECOND_US
"""When an attempt is made again whose process died; longer than any attempt takes."""
SLOW_DOWN = (429, 502, 504)
GONE = 410
SECRET_LOST = "secret_lost"  # noqa: S105 - the name of an error
"""An attempt that was not made: the sealing key is another than the one that sealed the secret."""

# What leaves the network unasked is less than what its reader may ask for.
WITHHELD = frozenset(
    {
        "blind",
        "key_sha256",
        "code_sha256",
        "token_sha256",
        "sealed_token",
        "message",
        "signature",
        "saved_method",
    }
)
"""Of every fact: what credentials, links of wallets and saved cards are made of."""
RENTERS_ALONE = frozenset(
    {"project_id", "end_user_ref", "escrow", "drawn", "counted", "by", "key_id"}
)
"""Not told to the provider: for whom a renter works, whose money pays, which budgets, and who of
the renter asked, with which key.
"""
PROVIDERS_ALONE = frozenset({"owners"})
"""Told to the provider alone: who shares what it earns, and how much of it."""
WITHHELD_OF = {"adjustment.booked.v1": frozenset({"lines"})}
"""By type: balances of others stand in these lines; each party reads its own."""


class AddressRefused(Exception):
    """The host of an endpoint has an address that is not public."""


Resolve = Callable[[str, int], Sequence[str]]


def addresses_of(host: str, port: int) -> list[str]:
    """Every address of a host, as text. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def public_address(host: str, port: int, resolve: Resolve = addresses_of) -> str:
    """The address to connect to. Raises AddressRefused when any of them is not public."""
    found = resolve(host, port)
    for address in found:
        if not is_public(address):
            raise AddressRefused(f"{host} has the address {address}")
    if not found:
        raise AddressRefused(f"{host} has no address")
    return found[0]


def sealed_name(secret_id: str) -> str:
    """Under which name a secret stands beside the log."""
    return f"webhook/{secret_id}"


def told_secret(secret: bytes) -> str:
    """How 32 bytes are told to the owner: `whsec_` and base64."""
    return "whsec_" + base64.b64encode(secret).decode()


def secrets_of(
    service: Service, connection: Connection, endpoint: Endpoint, now_us: int
) -> list[str]:
    """What signs for an endpoint: its secret, for a day also the one before. Empty: both lost."""
    names = [endpoint.secret_id]
    if now_us < endpoint.overlap_until_us:
        names.append(endpoint.previous_id)
    kept = [
        sealed_secrets.read(connection, service.sealing_key, sealed_name(name)) for name in names
    ]
    return [told_secret(one) for one in kept if one is not None]


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and base64 of the HMAC over `{id}.{timestamp}.{body}`."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    told = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, told, hashlib.sha256)).decode()


def message_id(endpoint_id: str, position: int) -> str:
    """The same for every attempt at telling one fact to one endpoint."""
    return "msg_" + hashlib.sha256(f"{endpoint_id}/{position}".encode()).hexdigest()[:32]


def fields_for(account_id: str, event: audit_index.Event) -> dict[str, Any]:
    """The fields of a fact that are told to an account's endpoint: all but those withheld."""
    facts = event.body
    withheld = WITHHELD | of_the_renter(account_id, facts)
    if facts.get("provider_account_id") != account_id:
        withheld |= PROVIDERS_ALONE
    withheld |= WITHHELD_OF.get(event.topic, frozenset())
    fields = {name: value for name, value in facts.items() if name not in withheld}
    if event.topic in audit_index.LISTED:
        rewards = fields["rewards"]
        fields["rewards"] = [one for one in rewards if one["account_id"] == account_id]
    return fields


def of_the_renter(account_id: str, facts: Mapping[str, Any]) -> frozenset[str]:
    """The fields of a fact that are not told to this account, because it is the provider in it."""
    is_provider = facts.get("provider_account_id") == account_id != facts.get("account_id")
    return RENTERS_ALONE if is_provider else frozenset()


def body_of(event: audit_index.Event, moment: str, account_id: str) -> bytes:
    """What is told of a fact: `fields_for`, or only where it stands when that is too long."""
    told: dict[str, Any] = {
        "type": event.topic,
        "timestamp": moment,
        "position": event.position,
        "data": fields_for(account_id, event),
    }
    body = json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()
    if len(body) <= BODY_BYTES_MAX:
        return body
    told["data"] = {"too_long": True}
    return json.dumps(told, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Sent:
    """How one attempt went: the HTTP status, or what kept it from being answered."""

    status: int | None
    error: str | None

    @property
    def is_taken(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def post(url: str, body: bytes, headers: dict[str, str], resolve: Resolve = addresses_of) -> Sent:
    """One attempt, to the address that was checked."""
    import httpx  # it takes a tenth of a second, and most starts tell nobody

    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    try:
        address = public_address(host, port, resolve)
        target = httpx.URL(url).copy_with(host=address)
        named = host if port == 443 else f"{host}:{port}"
        told = {**headers, "Host": named}
        return Sent(asyncio.run(_status(target, body, told, host)), None)
    except AddressRefused:
        return Sent(None, "address_not_public")
    except (TimeoutError, httpx.TimeoutException):
        return Sent(None, "timed_out")
    except (OSError, UnicodeError):  # a label too long, or none between two dots
        return Sent(None, "name_not_resolved")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Sent(None, type(error).__name__)


async def _status(target: httpx.URL, body: bytes, headers: dict[str, str], host: str) -> int:
    """The status of the answer. Raises TimeoutError: the whole of it has `TIMEOUT_SECONDS`, however
    slowly it comes in; a timeout of the client counts from the last byte.
    """
    import httpx

    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as http,
    ):
        request = http.build_request(
            "POST", target, content=body, headers=headers, extensions={"sni_hostname": host}
        )
        answer = await http.send(request, stream=True, follow_redirects=False)
        await answer.aclose()  # whatever it says beside its status is nobody's business here
        return answer.status_code


# --- the job -----------------------------------------------------------------------------------

Post = Callable[[str, bytes, dict[str, str]], Sent]


def webhook_timer(_service: Service) -> Timer:
    """The timer that tells endpoints; its senders go on between its rounds."""
    senders = Senders()

    def run_webhooks(service: Service, connection: Connection, now_us: int) -> int:
        return tell_all(service, connection, now_us, senders)

    return Timer("webhooks", 5, 86_400, run_webhooks, turn=250, close=senders.close)


def tell_all(
    service: Service, connection: Connection, _now_us: int, senders: Senders, send: Post = post
) -> int:
    """Tell every enabled endpoint what is due; how many facts were taken since the last round.

    Raises WebhooksStopped naming the first endpoint that failed, after all others.
    """
    service.follow(connection, [AUDIT_INDEX, WEBHOOKS], service.head(connection))
    return senders.round(_turns(service, connection, send))


def _turns(
    service: Service, connection: Connection, send: Post
) -> Generator[tuple[str, str, Callable[[], int]], None, None]:
    after = 0
    while rows := webhooks.read_endpoints(connection, enabled=True, after=after, limit=200):
        after = rows[-1].position
        for one in rows:
            yield one.account_id, one.endpoint_id, partial(_tell, service, one.endpoint_id, send)


def _tell(service: Service, endpoint_id: str, send: Post) -> int:
    """One turn of an endpoint: what is due now, in order; how many facts it took."""
    taken, ends_s = 0, time.monotonic() + TIMEOUT_SECONDS
    while taken < PER_ROUND_MAX and time.monotonic() < ends_s:  # a slow one goes on in a later turn
        now_us = service.clock.now_us()
        with service.connection() as connection:
            attempt = _claimed(service, connection, endpoint_id, now_us)
        if attempt is None or not _attempt(service, attempt, now_us, send):
            return taken
        taken += 1
    return taken


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What is sent to an endpoint: one fact, with the secrets that sign it."""

    endpoint: Endpoint
    position: int
    attempts: int  # with this one
    body: bytes
    secrets: Sequence[str]


def _claimed(
    service: Service, connection: Connection, endpoint_id: str, now_us: int
) -> _Attempt | None:
    """The next attempt, noted before it is made: no other process makes it, and if this one dies
    it counts. None: nothing is due, or the endpoint was stopped.
    """
    found = webhooks.read_endpoints(connection, endpoint_id=endpoint_id, enabled=True, limit=1)
    due = _due(connection, found[0], now_us) if found else None
    if due is None:
        return None
    position, attempts = due
    ends_us = now_us + CLAIM_US
    if not webhook_deliveries.claim(
        connection, endpoint_id, position, attempts, now_us, next_at_us=ends_us
    ):
        return None
    event = audit_index.read_event(connection, position)
    assert event is not None, position
    body = body_of(event, moment(event.recorded_us), found[0].account_id)
    secrets = secrets_of(service, connection, found[0], now_us)
    return _Attempt(found[0], position, attempts + 1, body, secrets)


def _attempt(service: Service, one: _Attempt, now_us: int, send: Post) -> bool:
    """Send it, and note how it went; whether it was taken."""
    endpoint_id = one.endpoint.endpoint_id
    sent = _send(one.secrets, one.endpoint, one.position, now_us, one.body, send)
    ended = sent.is_taken or sent.status == GONE or one.attempts >= len(RETRIES_US)
    wait_us = 0 if ended else RETRIES_US[one.attempts]
    if sent.status in SLOW_DOWN:
        wait_us = max(wait_us, RETRIES_US[2])
    with service.connection() as connection:
        webhook_deliveries.record(
            connection,
            endpoint_id,
            one.position,
            attempts=one.attempts,
            outcome="delivered" if sent.is_taken else "failed" if ended else "waiting",
            answer=sent.status,
            error=sent.error,
            now_us=now_us,
            next_at_us=None if ended else now_us + wait_us,
        )
    if ended and not sent.is_taken:
        _disable(service, one.endpoint, one.position, now_us, gone=sent.status == GONE)
    return sent.is_taken


def _due(connection: Connection, endpoint: Endpoint, now_us: int) -> tuple[int, int] | None:
    """(position, attempts so far) of what is to be told next; None: nothing now."""
    endpoint_id = endpoint.endpoint_id
    again = webhook_deliveries.read_due(connection, endpoint_id, now_us, 1)
    if again:
        return again[0].position, again[0].attempts
    last = webhook_deliveries.read_last(connection, endpoint_id)
    if last is not None and last.outcome == "waiting":
        return None
    after = endpoint.position if last is None else last.position
    found = webhooks.read_due(connection, endpoint, after, 1)
    return (found[0], 0) if found else None


def _send(
    secrets: Sequence[str], endpoint: Endpoint, position: int, now_us: int, body: bytes, send: Post
) -> Sent:
    """Nothing leaves unsigned: without its secrets the owner is told to rotate."""
    if not secrets:
        return Sent(None, SECRET_LOST)
    named = message_id(endpoint.endpoint_id, position)
    return send(endpoint.url, body, _headers(secrets, named, now_us, body))


def _headers(secrets: Sequence[str], named: str, now_us: int, body: bytes) -> dict[str, str]:
    """The headers of the scheme; while a rotated secret still counts, both sign."""
    timestamp = now_us // SECOND_US
    return {
        "Content-Type": "application/json",
        "User-Agent": "tallystick",
        "webhook-id": named,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(one, named, timestamp, body) for one in secrets),
    }


def send_test(secrets: Sequence[str], endpoint: Endpoint, now_us: int, send: Post = post) -> Sent:
    """Tell an endpoint that it is one, now. It is nothing that was recorded."""
    told = {"type": "webhook.test", "timestamp": moment(now_us), "data": {}}
    body = json.dumps(told, separators=(",", ":")).encode()
    return _send(secrets, endpoint, 0, now_us, body, send)


def _disable(service: Any, endpoint: Endpoint, position: int, now_us: int, *, gone: bool) -> None:
    command = DisableWebhook(
        endpoint_id=endpoint.endpoint_id,
        account_id=None,
        reason="gone" if gone else "failed",
        position=position,
        by="job",
        at_us=now_us,
    )
    service.ledger.handle(command, key=None, now_us=now_us)
    logger.warning("webhook %s is disabled at position %d", endpoint.endpoint_id, position)
