"""`tallystick webhook`: endpoints that are told what is recorded. Thin clients of the API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Limit, Remote, Url
from api.cli_terminal import EXIT_NO, AsJson, columns, facts, group, tell

app = group("Webhooks: be told what is recorded about your account.", "tallystick webhook list")

EndpointId = Annotated[str, typer.Argument(metavar="ENDPOINT", help="hook_...")]
_NAMES = ("endpoint_id", "enabled", "disabled_reason", "url", "types")


@app.command("add", epilog="Example: tallystick webhook add https://a.example --type lease.")
def add(
    endpoint: Annotated[str, typer.Argument(metavar="URL", help="https, port 443 or 8443.")],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only facts whose names begin so; as often as you like."),
    ] = None,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Add an endpoint. The secret is in the answer, and shown this once."""
    remote = Remote(url, api_key, key=idempotency_key)
    body: Any = {"url": endpoint, "types": types or []}
    told = remote.ask(lambda c: c.add_webhook(body, idempotency_key=remote.key))
    tell(told, facts({**told, "types": ", ".join(told["types"]) or "all"}), as_json=as_json)


@app.command("list", epilog="Example: tallystick webhook list --json")
def list_endpoints(
    limit: Limit = 50, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Your endpoints."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_webhooks(limit=size, cursor=cursor), limit
    )
    rows = [{**row, "types": ", ".join(row["types"]) or "all"} for row in found["data"]]
    tell(found, columns(rows, _NAMES), as_json=as_json)


@app.command("stop", epilog="Example: tallystick webhook stop hook_1f0c...")
def stop(
    endpoint_id: EndpointId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Tell an endpoint nothing more."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.stop_webhook(endpoint_id, {}, idempotency_key=remote.key))
    tell(told, facts({name: told.get(name) for name in _NAMES[:3]}), as_json=as_json)


@app.command("start", epilog="Example: tallystick webhook start hook_1f0c...")
def start(
    endpoint_id: EndpointId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Go on telling an endpoint, from where it was stopped."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.start_webhook(endpoint_id, {}, idempotency_key=remote.key))
    tell(told, facts({name: told.get(name) for name in _NAMES[:3]}), as_json=as_json)


@app.command("rotate", epilog="Example: tallystick webhook rotate hook_1f0c...")
def rotate(
    endpoint_id: EndpointId,
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """A new secret, shown this once; the old one signs beside it for 24 hours."""
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.rotate_webhook(endpoint_id, {}, idempotency_key=remote.key))
    tell(told, facts({"endpoint_id": endpoint_id, "secret": told.get("secret")}), as_json=as_json)


@app.command("test", epilog="Example: tallystick webhook test hook_1f0c...")
def send_test(
    endpoint_id: EndpointId, url: Url = None, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """Send `webhook.test` now. Exit 1 when the endpoint did not take it."""
    told = Remote(url, api_key).ask(lambda c: c.test_webhook(endpoint_id, {}))
    tell(told, facts(dict(told)), as_json=as_json)
    if not told["delivered"]:
        raise typer.Exit(EXIT_NO)


@app.command("replay", epilog="Example: tallystick webhook replay hook_1f0c... 120 180")
def replay(
    endpoint_id: EndpointId,
    first: Annotated[int, typer.Argument(metavar="FROM", min=1, help="A position of the log.")],
    last: Annotated[int, typer.Argument(metavar="TO", min=1, help="The last one, included.")],
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Tell an endpoint again what it was told, or what was given up."""
    body: Any = {"from_position": first, "to_position": last}
    told = Remote(url, api_key).ask(lambda c: c.replay_webhook(endpoint_id, body))
    tell(told, facts(dict(told)), as_json=as_json)


@app.command("deliveries", epilog="Example: tallystick webhook deliveries hook_1f0c...")
def deliveries(
    endpoint_id: EndpointId,
    limit: Limit = 50,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """How the telling of each fact went."""
    found = Remote(url, api_key).list(
        lambda c, size, cursor: c.list_deliveries(endpoint_id, limit=size, cursor=cursor), limit
    )
    names = ("position", "outcome", "attempts", "answer", "error", "next_at")
    tell(found, columns(found["data"], names), as_json=as_json)
