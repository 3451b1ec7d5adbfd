"""`tallystick webhook`: endpoints that are told what is recorded. Thin clients of the API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from api.cli_remote import Limit, Remote, reads, records
from api.cli_terminal import EXIT_NO, columns, facts, group

app = group("Webhooks: be told what is recorded about your account.", "tallystick webhook list")

EndpointId = Annotated[str, typer.Argument(metavar="ENDPOINT", help="hook_...")]
_NAMES = ("endpoint_id", "enabled", "disabled_reason", "url", "types")


@app.command("add", epilog="Example: tallystick webhook add https://a.example --type lease.")
@records
def add(
    remote: Remote,
    endpoint: Annotated[str, typer.Argument(metavar="URL", help="https, port 443 or 8443.")],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only facts whose names begin so; as often as you like."),
    ] = None,
) -> None:
    """Add an endpoint. The secret is in the answer, and shown this once."""
    body: Any = {"url": endpoint, "types": types or []}
    told = remote.ask(lambda c: c.add_webhook(body, idempotency_key=remote.key))
    remote.tell(told, facts({**told, "types": ", ".join(told["types"]) or "all"}))


@app.command("list", epilog="Example: tallystick webhook list --json")
@reads
def list_endpoints(remote: Remote, limit: Limit = 50) -> None:
    """Your endpoints."""
    found = remote.list(lambda c, size, cursor: c.list_webhooks(limit=size, cursor=cursor), limit)
    rows = [{**row, "types": ", ".join(row["types"]) or "all"} for row in found["data"]]
    remote.tell(found, columns(rows, _NAMES))


@app.command("stop", epilog="Example: tallystick webhook stop hook_1f0c...")
@records
def stop(remote: Remote, endpoint_id: EndpointId) -> None:
    """Tell an endpoint nothing more."""
    told = remote.ask(lambda c: c.stop_webhook(endpoint_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts({name: told.get(name) for name in _NAMES[:3]}))


@app.command("start", epilog="Example: tallystick webhook start hook_1f0c...")
@records
def start(remote: Remote, endpoint_id: EndpointId) -> None:
    """Go on telling an endpoint, from where it was stopped."""
    told = remote.ask(lambda c: c.start_webhook(endpoint_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts({name: told.get(name) for name in _NAMES[:3]}))


@app.command("rotate", epilog="Example: tallystick webhook rotate hook_1f0c...")
@records
def rotate(remote: Remote, endpoint_id: EndpointId) -> None:
    """A new secret, shown this once; the old one signs beside it for 24 hours."""
    told = remote.ask(lambda c: c.rotate_webhook(endpoint_id, {}, idempotency_key=remote.key))
    remote.tell(told, facts({"endpoint_id": endpoint_id, "secret": told.get("secret")}))


@app.command("test", epilog="Example: tallystick webhook test hook_1f0c...")
@reads
def send_test(remote: Remote, endpoint_id: EndpointId) -> None:
    """Send `webhook.test` now. Exit 1 when the endpoint did not take it."""
    told = remote.ask(lambda c: c.test_webhook(endpoint_id, {}))
    remote.tell(told, facts(dict(told)))
    if not told["delivered"]:
        raise typer.Exit(EXIT_NO)


@app.command("replay", epilog="Example: tallystick webhook replay hook_1f0c... 120 180")
@reads
def replay(
    remote: Remote,
    endpoint_id: EndpointId,
    first: Annotated[int, typer.Argument(metavar="FROM", min=1, help="A position of the log.")],
    last: Annotated[int, typer.Argument(metavar="TO", min=1, help="The last one, included.")],
) -> None:
    """Tell an endpoint again what it was told, or what was given up."""
    body: Any = {"from_position": first, "to_position": last}
    told = remote.ask(lambda c: c.replay_webhook(endpoint_id, body))
    remote.tell(told, facts(dict(told)))


@app.command("deliveries", epilog="Example: tallystick webhook deliveries hook_1f0c...")
@reads
def deliveries(remote: Remote, endpoint_id: EndpointId, limit: Limit = 50) -> None:
    """How the telling of each fact went."""
    found = remote.list(
        lambda c, size, cursor: c.list_deliveries(endpoint_id, limit=size, cursor=cursor), limit
    )
    names = ("position", "outcome", "attempts", "answer", "error", "next_at")
    remote.tell(found, columns(found["data"], names))
