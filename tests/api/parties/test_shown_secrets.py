"""S-M9: a secret is shown for 24 hours, and nothing that is kept for longer gives it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from api.parties.new_keys import run_secrets
from api.process import secret_files
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


SECRETS: dict[str, tuple[Callable[[Scene], Asked], str]] = {
    "account": (account, "key"),
    "API key": (api_key, "key"),
    "invitation": (invitation, "code"),
    "join code": (join_code, "code"),
    "executor key": (executor_key, "executor_key"),
    "webhook": (webhook, "secret"),
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


def test_no_physical_backup_holds_a_salt(scene: Scene) -> None:
    with scene.service.connect() as connection:
        (kind,) = connection.execute(
            "SELECT relpersistence FROM pg_class WHERE relname = 'secret_salt'"
        ).fetchone() or ("",)
    assert kind in ("u", b"u"), "unlogged: in no write-ahead log and no base backup"


def test_a_request_that_was_refused_shows_nothing_and_can_be_sent_again(scene: Scene) -> None:
    path = f"/v1/accounts/{scene.renter.account_id}/api-keys"
    refused = scene.renter.post(path, {"scopes": ["operator"]}, key="once")
    assert refused.status_code in (403, 409, 422)
    assert "key" not in refused.json()
