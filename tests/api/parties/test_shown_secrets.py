"""S-M9: a secret is shown for 24 hours, and nothing that is kept for longer gives it back."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from api.parties import webhook_sender
from api.parties.new_keys import run_secrets
from api.process import secret_files
from domain.parties.webhook import webhook_stream
from ledger.beside import sealed_secrets
from ledger.beside.secret_salts import SHOWN_US
from tests.scenes.server import Scene

Asked = tuple[Any, str, dict[str, Any]]


def account(scene: Scene) -> Asked:
    return scene.operator, "/v1/accounts", {"kind": "party"}


def api_key(scene: Scene) -> Asked:
    path = f"/v1/accounts/{scene.renter.account_id}/api-keys"
    return scene.renter, path, {"scopes": ["renter"]}


def invitation(scene: Scene) -> Asked:
    path = f"/v1/accounts/{scene.renter.account_id}/invitations"
    return scene.renter, path, {"role": "viewer", "scopes": ["account"]}


def join_code(scene: Scene) -> Asked:
    return scene.owner, "/v1/nodes/join-codes", {"region_id": scene.provider.region_id}


def executor_key(scene: Scene) -> Asked:
    return scene.owner, f"/v1/nodes/{scene.provider.node_id}/executor-key", {}


def webhook(scene: Scene) -> Asked:
    return scene.renter, "/v1/webhooks", {"url": "https://hooks.invalid/a"}


def rotated_webhook(scene: Scene) -> Asked:
    hook = scene.renter.made("/v1/webhooks", {"url": "https://hooks.invalid/b"})["endpoint_id"]
    return scene.renter, f"/v1/webhooks/{hook}/rotate", {}


SECRETS: dict[str, tuple[Callable[[Scene], Asked], str]] = {
    "account": (account, "key"),
    "API key": (api_key, "key"),
    "invitation": (invitation, "code"),
    "join code": (join_code, "code"),
    "executor key": (executor_key, "executor_key"),
    "webhook": (webhook, "secret"),
    "webhook, rotated": (rotated_webhook, "secret"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_shown_again_for_24_hours_and_never_after(scene: Scene, name: str) -> None:
    prepare, field = SECRETS[name]
    clock: Any = scene.clock
    who, path, body = prepare(scene)
    first = who.made(path, body, key="once")
    assert first[field]
    clock.advance(SHOWN_US - 1)
    again = who.post(path, body, key="once")
    assert (again.headers["Idempotent-Replayed"], again.json()) == ("true", first)
    clock.advance(1)
    for _ in range(2):
        late = who.post(path, body, key="once")
        assert late.headers["Idempotent-Replayed"] == "true"
        assert late.json() == {name: value for name, value in first.items() if name != field}
        with scene.service.connect() as connection:
            run_secrets(scene.service, connection, clock.now_us())


def test_the_job_erases_what_a_secret_is_made_from(scene: Scene) -> None:
    """Whoever has the server's key and every table made the old secrets; now one half is gone."""
    clock: Any = scene.clock
    who, path, body = api_key(scene)
    key = who.made(path, body, key="once")["key"]
    clock.advance(SHOWN_US)
    with scene.service.connect() as connection:
        (before,) = connection.execute("SELECT count(*) FROM secret_salt").fetchone() or (0,)
        assert run_secrets(scene.service, connection, clock.now_us()) == before > 0
        assert run_secrets(scene.service, connection, clock.now_us()) == 0
    told = ("api-key/v1", who.account_id, "once")
    old = secret_files.derive(scene.service.server_key, *told)
    from api.door import keys

    for live in (False, True):
        assert keys.make(old[:38], live=live) != key, "the request and the server's key were all"


def test_the_servers_key_the_log_and_every_table_do_not_give_what_signs_a_webhook(
    shared: Scene,
) -> None:
    """S-M9: it followed from `server.key`, the endpoint and a number, for ever."""
    who, path, body = webhook(shared)
    made = who.made(path, body)
    hook = made["endpoint_id"]
    secrets = [made["secret"], who.made(f"{path}/{hook}/rotate")["secret"]]
    facts = str(shared.service.ledger.market.read_facts(0, 100_000))
    state = shared.service.ledger.market.state_of(webhook_stream(hook))
    names = [webhook_sender.sealed_name(one) for one in (state.previous_id, state.secret_id)]
    key = shared.service.server_key
    for number, (secret, name) in enumerate(zip(secrets, names, strict=True), start=1):
        plain = base64.b64decode(secret.removeprefix("whsec_"))
        assert secret not in facts
        assert secret_files.derive(key, "webhook/v1", hook, str(number))[:32] != plain
        with shared.service.connect() as connection:
            for table in ("sealed_secret", "command"):
                rows = str(connection.execute(f"SELECT * FROM {table}").fetchall())
                assert secret not in rows
                assert repr(plain)[2:-1] not in rows
            assert sealed_secrets.read(connection, key, name) is None
            assert sealed_secrets.read(connection, shared.service.sealing_key, name) == plain


def test_a_sealed_secret_opens_under_its_own_name_alone(scene: Scene) -> None:
    """Whoever writes the table cannot have one account's secret sign for another."""
    key = scene.service.sealing_key
    with scene.service.connect() as connection:
        sealed_secrets.keep(connection, key, "webhook/a", b"secret", 1)
        assert sealed_secrets.read(connection, key, "webhook/a") == b"secret"
        connection.execute("UPDATE sealed_secret SET name = 'webhook/b'")
        assert sealed_secrets.read(connection, key, "webhook/b") is None


def test_a_webhooks_secret_that_was_rotated_is_erased_when_it_signs_no_more(scene: Scene) -> None:
    clock: Any = scene.clock
    who, path, _ = rotated_webhook(scene)
    who.made(path)
    with scene.service.connect() as connection:
        assert sealed(connection) == 2
        clock.advance(SHOWN_US - 1)
        run_secrets(scene.service, connection, clock.now_us())
        assert sealed(connection) == 2, "both sign for a day"
        clock.advance(1)
        run_secrets(scene.service, connection, clock.now_us())
        assert sealed(connection) == 1
        clock.advance(400 * SHOWN_US)
        run_secrets(scene.service, connection, clock.now_us())
        assert sealed(connection) == 1, "the one in use stays"


def test_a_request_that_is_refused_leaves_nothing_sealed(scene: Scene) -> None:
    assert scene.renter.post("/v1/webhooks", {"url": "http://hooks.invalid/"}).status_code == 422
    path = f"/v1/webhooks/hook_{'0' * 32}/rotate"
    assert scene.renter.post(path).status_code == 404
    with scene.service.connect() as connection:
        assert sealed(connection) == 0


def sealed(connection: Any) -> int:
    (found,) = connection.execute("SELECT count(*) FROM sealed_secret").fetchone()
    return int(found)


def test_no_physical_backup_holds_a_salt(shared: Scene) -> None:
    with shared.service.connect() as connection:
        (kind,) = connection.execute(
            "SELECT relpersistence FROM pg_class WHERE relname = 'secret_salt'"
        ).fetchone() or ("",)
    assert kind in ("u", b"u"), "unlogged: in no write-ahead log and no base backup"


def test_a_request_that_was_refused_shows_nothing_and_can_be_sent_again(shared: Scene) -> None:
    path = f"/v1/accounts/{shared.renter.account_id}/api-keys"
    refused = shared.renter.post(path, {"scopes": ["operator"]}, key="once")
    assert refused.status_code in (403, 409, 422)
    assert "key" not in refused.json()
