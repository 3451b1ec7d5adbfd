"""Webhooks: the scheme, the order, the retries, and that no endpoint leads into our own network."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import standardwebhooks.webhooks
from standardwebhooks import Webhook, WebhookVerificationError

from api.parties import webhook_sender
from api.parties.webhook_sender import (
    RETRIES_US,
    AddressRefused,
    Post,
    Sent,
    fields_for,
    post,
    public_address,
    signature,
)
from api.parties.webhook_senders import Senders, WebhooksStopped
from domain.parties.webhook import webhook_stream
from projections.audit.audit_index import Event
from tests.scenes.server import Scene
from tests.scenes.work import hours_of_work

URL = "https://hooks.example.com/tally"


@dataclass
class Endpoint:
    """Takes what it is told and answers as it is asked to."""

    secret: str
    answers: list[Sent] = field(default_factory=list)
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, url: str, body: bytes, headers: dict[str, str]) -> Sent:
        assert url == URL
        self.told.append((headers["webhook-id"], json.loads(body)))
        return self.answers.pop(0) if self.answers else Sent(200, None)

    @property
    def positions(self) -> list[int]:
        return [body["position"] for _, body in self.told]


def run(scene: Scene, send: Post) -> int:
    with scene.service.connect() as connection, closing(Senders()) as senders:
        return webhook_sender.tell_all(
            scene.service, connection, scene.clock.now_us(), senders, send
        )


def added(scene: Scene, types: list[str] | None = None) -> tuple[str, Endpoint]:
    told = scene.renter.made("/v1/webhooks", {"url": URL, "types": types or []})
    return told["endpoint_id"], Endpoint(told["secret"])


# --- the scheme ------------------------------------------------------------------------------


def test_the_signature_is_that_of_the_published_example() -> None:
    """The vector of the Standard Webhooks specification."""
    found = signature(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_official_library_verifies_a_real_delivery_also_with_a_rotated_secret(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes and headers as they came, handed to `standardwebhooks` whole: signature, id and time.
    The scene's clock is the library's; nothing else of it is ours.
    """
    seen: list[tuple[bytes, dict[str, str]]] = []

    def send(_url: str, body: bytes, headers: dict[str, str]) -> Sent:
        seen.append((body, headers))
        return Sent(204, None)

    endpoint_id, endpoint = added(scene, ["deposit."])
    second = scene.renter.made(f"/v1/webhooks/{endpoint_id}/rotate")["secret"]
    scene.deposit(scene.renter, 5)
    run(scene, send)
    ((body, headers),) = seen
    now = [scene.clock.now_us() / 1_000_000]

    class Now(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Now:
            return cls.fromtimestamp(now[0], tz)

    monkeypatch.setattr(standardwebhooks.webhooks, "datetime", Now)
    for secret in (endpoint.secret, second):
        told = Webhook(secret).verify(body, headers)
        assert told["type"].startswith("deposit.")
        for changed, sent in (
            (body.replace(b"deposit", b"payment"), headers),
            (body, headers | {"webhook-id": "msg_another"}),
            (body, headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}),
        ):
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(changed, sent)
    another = "whsec_" + base64.b64encode(bytes(32)).decode()
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(another).verify(body, headers)
    now[0] += 6 * 60
    with pytest.raises(WebhookVerificationError, match="too old"):
        Webhook(second).verify(body, headers)
    assert len(base64.b64decode(second.removeprefix("whsec_"))) == 32


def test_no_secret_that_signs_nothing_is_kept_for_ever_after_two_rotations_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one is recorded after the first, and before the first has ended what it replaced:
    of the three secrets the last alone has no end.
    """
    endpoint_id, _ = added(scene)
    path, real, asked = f"/v1/webhooks/{endpoint_id}/rotate", webhook_sender.told_secret, [1]

    def between(secret: bytes) -> str:
        if asked:
            asked.pop()
            scene.renter.made(path)
        return real(secret)

    monkeypatch.setattr(webhook_sender, "told_secret", between)
    scene.renter.made(path)
    assert not asked
    with scene.service.connect() as connection:
        kept = connection.execute(
            "SELECT name, until_us FROM sealed_secret WHERE name LIKE 'webhook/%'"
        ).fetchall()
    assert len(kept) == 3
    lasting = [name for name, until_us in kept if until_us is None]
    state = scene.service.ledger.market.state_of(webhook_stream(endpoint_id))
    assert lasting == [webhook_sender.sealed_name(state.secret_id)]


def test_without_the_sealing_key_nothing_leaves_unsigned_and_a_rotation_mends_it(
    scene: Scene,
) -> None:
    """A server that is restored without `sealing.key` makes a new one."""
    clock: Any = scene.clock
    endpoint_id, endpoint = added(scene, ["deposit."])
    scene.deposit(scene.renter, 5)
    scene.service.sealing_key = bytes(32)
    assert run(scene, endpoint) == 0
    assert endpoint.told == []
    (waiting,) = scene.renter.read(f"/v1/webhooks/{endpoint_id}/deliveries")["data"]
    assert (waiting["outcome"], waiting["error"]) == ("waiting", "secret_lost")
    tried = scene.renter.made(f"/v1/webhooks/{endpoint_id}/test")
    assert (tried["delivered"], tried["error"]) == (False, "secret_lost")
    second = scene.renter.made(f"/v1/webhooks/{endpoint_id}/rotate")["secret"]
    assert second != endpoint.secret
    clock.advance(RETRIES_US[1])
    assert run(scene, endpoint) == 1


# --- what is told, and in which order ----------------------------------------------------------


def test_an_endpoint_is_told_of_its_account_and_types_alone_in_order_and_once(scene: Scene) -> None:
    scene.deposit(scene.renter, 1)
    endpoint_id, endpoint = added(scene, ["deposit.", "lease."])
    scene.deposit(scene.stranger, 2)
    scene.deposit(scene.renter, 3)
    lease = scene.lease()
    assert run(scene, endpoint) == len(endpoint.told)
    assert endpoint.positions == sorted(endpoint.positions)
    bodies = [body for _, body in endpoint.told]
    assert [body["type"] for body in bodies] == [
        "deposit.confirmed.v1",
        "lease.requested.v1",
        "lease.reserved.v1",
    ]
    assert bodies[0]["data"]["amount"] == {"asset": "CREDIT", "units": "3"}
    assert bodies[1]["data"]["lease_id"] == lease["lease_id"]
    assert "blind" not in bodies[0]["data"]
    assert run(scene, endpoint) == 0
    deliveries = scene.renter.read(f"/v1/webhooks/{endpoint_id}/deliveries")["data"]
    assert [(one["outcome"], one["attempts"]) for one in deliveries] == [("delivered", 1)] * 3
    assert [one["webhook_id"] for one in deliveries] == [name for name, _ in endpoint.told]


def test_a_fact_that_is_not_taken_is_told_again_before_the_next_one(scene: Scene) -> None:
    clock: Any = scene.clock
    endpoint_id, endpoint = added(scene, ["deposit."])
    scene.deposit(scene.renter, 1)
    scene.deposit(scene.renter, 2)
    endpoint.answers = [Sent(500, None), Sent(None, "timed_out")]
    assert run(scene, endpoint) == 0
    assert run(scene, endpoint) == 0, "not before its time"
    clock.advance(RETRIES_US[1])
    assert run(scene, endpoint) == 0
    waiting = scene.renter.read(f"/v1/webhooks/{endpoint_id}/deliveries")["data"]
    assert [(one["outcome"], one["error"]) for one in waiting] == [("waiting", "timed_out")]
    clock.advance(RETRIES_US[2])
    assert run(scene, endpoint) + run(scene, endpoint) == 2
    first, second = endpoint.positions[0], endpoint.positions[-1]
    assert endpoint.positions == [first, first, first, second]
    assert len({name for name, _ in endpoint.told}) == 2, "an id is of a fact, not of an attempt"


def test_after_the_last_retry_the_endpoint_is_stopped_and_can_go_on_later(scene: Scene) -> None:
    clock: Any = scene.clock
    endpoint_id, endpoint = added(scene, ["deposit."])
    scene.deposit(scene.renter, 1)
    endpoint.answers = [Sent(503, None)] * len(RETRIES_US)
    for wait_us in RETRIES_US:
        clock.advance(wait_us)
        run(scene, endpoint)
    (told,) = scene.renter.read("/v1/webhooks")["data"]
    assert (told["enabled"], told["disabled_reason"]) == (False, "failed")
    scene.deposit(scene.renter, 2)
    assert run(scene, endpoint) == 0
    scene.renter.made(f"/v1/webhooks/{endpoint_id}/start")
    assert run(scene, endpoint) == 1
    given_up = endpoint.positions[0]
    span = {"from_position": given_up, "to_position": given_up}
    assert scene.renter.made(f"/v1/webhooks/{endpoint_id}/replay", span)["count"] == 1
    assert run(scene, endpoint) == 1
    assert endpoint.positions[-1] == given_up


def test_an_endpoint_that_is_gone_is_stopped_at_once(scene: Scene) -> None:
    _, endpoint = added(scene, ["deposit."])
    scene.deposit(scene.renter, 1)
    endpoint.answers = [Sent(410, None)]
    run(scene, endpoint)
    assert scene.renter.read("/v1/webhooks")["data"][0]["disabled_reason"] == "gone"


def test_another_accounts_endpoint_is_not_there(scene: Scene) -> None:
    endpoint_id, _ = added(scene)
    path = f"/v1/webhooks/{endpoint_id}"
    for action in ("rotate", "stop", "start", "test"):
        assert scene.stranger.post(f"{path}/{action}").status_code == 404
    assert scene.stranger.get(f"{path}/deliveries").status_code == 404
    assert scene.stranger.read("/v1/webhooks")["data"] == []


# --- never into our own network ----------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.0.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fc00::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",  # IPv4-compatible
        "64:ff9b::7f00:1",  # NAT64
        "64:ff9b:1::7f00:1",
        "2002:7f00:1::1",  # 6to4
        "2001:0:7f00:1::1",  # Teredo
        "fec0::1",  # site-local
        "2001:db8::1",
        "ff0e::1",
        "192.88.99.1",
        "198.18.0.1",
        "255.255.255.255",
    ],
)
def test_an_address_that_is_not_public_is_never_connected_to(address: str) -> None:
    """S-L16: nor one that holds such an address, which a gateway would unpack."""
    with pytest.raises(AddressRefused):
        public_address("rebind.example", 443, lambda _host, _port: ["93.184.216.34", address])
    sent = post("https://rebind.example/", b"{}", {}, lambda _host, _port: [address])
    assert sent == Sent(None, "address_not_public")


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:4700::6810:84e5", "2a00:1450::1"])
def test_an_address_of_the_public_internet_is_connected_to(address: str) -> None:
    assert public_address("hooks.example", 443, lambda _host, _port: [address]) == address


def test_a_name_that_does_not_resolve_is_told_so() -> None:
    def lost(_host: str, _port: int) -> list[str]:
        raise OSError("no such name")

    assert post("https://nowhere.example/", b"{}", {}, lost) == Sent(None, "name_not_resolved")


class _Handler(http.server.BaseHTTPRequestHandler):
    seen: list[tuple[str | None, bytes]] = []  # noqa: RUF012 - one server at a time

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.headers["Host"], body))
        drip = b"HTTP/1.1 200 OK"
        if self.path == "/drip":
            with suppress(OSError):
                for _ in range(12):
                    self.wfile.write(drip[:1])
                    drip = drip[1:]
                    self.wfile.flush()
                    time.sleep(0.1)
            return
        self.send_response(302 if self.path == "/away" else 200)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def listening(folder: Path) -> Generator[int, None, None]:
    """An HTTPS server on loopback with a certificate of its own for `hooks.test`."""
    key, certificate = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            key,
            "-out",
            certificate,
            "-days",
            "2",
            "-subj",
            "/CN=hooks.test",
            "-addext",
            "subjectAltName=DNS:hooks.test",
        ],
        check=True,
        capture_output=True,
    )
    server = http.server.HTTPServer(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_over_real_tls_the_checked_address_is_used_and_the_name_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loopback stands for a public address here: the check of addresses has tests of its own."""
    _Handler.seen.clear()
    monkeypatch.setattr(webhook_sender, "public_address", lambda *_: "127.0.0.1")
    with listening(tmp_path) as port:
        url = f"https://hooks.test:{port}/x"
        assert post(url, b"{}", {}).error == "ConnectError", "its certificate is nobody's we know"
        trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        real = httpx.AsyncClient
        monkeypatch.setattr(httpx, "AsyncClient", lambda **how: real(**{**how, "verify": trusted}))
        assert post(url, b'{"a":1}', {}) == Sent(200, None)
        assert _Handler.seen == [(f"hooks.test:{port}", b'{"a":1}')]
        assert post(f"https://hooks.test:{port}/away", b"{}", {}) == Sent(302, None)
        other = post(f"https://other.test:{port}/x", b"{}", {})
        assert other.error == "ConnectError", "a certificate of another name"
        assert len(_Handler.seen) == 2


def test_an_answer_that_drips_is_given_up_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time counts from the beginning, not from the last byte: no endpoint keeps the job."""
    monkeypatch.setattr(webhook_sender, "public_address", lambda *_: "127.0.0.1")
    monkeypatch.setattr(webhook_sender, "TIMEOUT_SECONDS", 0.5)
    with listening(tmp_path) as port:
        trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        real = httpx.AsyncClient
        monkeypatch.setattr(httpx, "AsyncClient", lambda **how: real(**{**how, "verify": trusted}))
        assert post(f"https://hooks.test:{port}/drip", b"{}", {}) == Sent(None, "timed_out")


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".com", "xn--a.invalid"])
def test_a_host_that_can_be_no_name_is_told_so_and_stops_nobody(host: str) -> None:
    assert post(f"https://{host}/x", b"{}", {}) == Sent(None, "name_not_resolved")


def test_an_endpoint_that_fails_in_a_way_nobody_thought_of_stops_by_itself(scene: Scene) -> None:
    first = scene.renter.made("/v1/webhooks", {"url": URL + "/bad"})["endpoint_id"]
    _, good = added(scene)
    scene.deposit(scene.renter, 1_000_000)

    def send(url: str, body: bytes, headers: dict[str, str]) -> Sent:
        if url.endswith("/bad"):
            raise RuntimeError("unthought of")
        return good(url, body, headers)

    with pytest.raises(WebhooksStopped, match=first):
        run(scene, send)
    assert good.told


def _event(topic: str, **body: Any) -> Event:
    return Event(position=1, topic=topic, recorded_us=0, version=1, leaf=b"", body=body)


def test_a_provider_is_not_told_whose_money_pays_and_a_renter_not_who_shares_it() -> None:
    parties = {"account_id": "acct_r", "provider_account_id": "acct_p", "lease_id": "lease_1"}
    fact = _event(
        "lease.reserved.v1",
        **parties,
        blind="00",
        project_id="p",
        end_user_ref="u",
        escrow=[{"account_id": "acct_payer"}],
        owners=[{"account_id": "acct_o"}],
    )
    provider, renter = fields_for("acct_p", fact), fields_for("acct_r", fact)
    assert provider == {**parties, "owners": [{"account_id": "acct_o"}]}
    assert renter.keys() == {*parties, "project_id", "end_user_ref", "escrow"}
    own = _event("lease.reserved.v1", account_id="a", provider_account_id="a", drawn=[], owners=[])
    assert fields_for("a", own).keys() == own.body.keys()


def test_credentials_others_rewards_and_others_balances_are_withheld() -> None:
    issued = _event("account.api_key_issued.v1", account_id="a", key_id="k", key_sha256="00")
    assert fields_for("a", issued) == {"account_id": "a", "key_id": "k"}
    linked = _event("account.wallet_linked.v1", account_id="a", message="m", signature="s")
    assert fields_for("a", linked) == {"account_id": "a"}
    rewards = [{"account_id": "a", "amount": 1}, {"account_id": "b", "amount": 2}]
    credited = _event("epoch.rewards_credited.v1", rewards=rewards)
    assert fields_for("a", credited) == {"rewards": rewards[:1]}
    booked = _event("adjustment.booked.v1", account_id="a", lines=[{"account": "party:b:cash"}])
    assert fields_for("a", booked) == {"account_id": "a"}


def test_an_endpoint_is_told_what_a_real_lease_made_and_nothing_withheld(scene: Scene) -> None:
    hook = scene.owner.made("/v1/webhooks", {"url": URL, "types": ["lease."]})
    endpoint = Endpoint(hook["secret"])
    hours_of_work(scene)
    assert run(scene, endpoint)
    told = {body["type"]: body["data"] for _, body in endpoint.told}
    for topic in ("lease.reserved.v1", "lease.usage_accrued.v1"):
        assert told[topic]["provider_account_id"] == scene.owner.account_id
        assert not told[topic].keys() & {*webhook_sender.RENTERS_ALONE, *webhook_sender.WITHHELD}
