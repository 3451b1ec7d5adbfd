"""`tallystick tariff`: what things cost, and the next version. Thin clients of the API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli_remote import ApiKey, IdempotencyKey, Remote, Url
from api.cli_terminal import AsJson, InputUnusable, amount, columns, facts, group, tell

app = group("Tariffs: dated versions of what things cost.", "tallystick tariff list --json")

FILE_BYTES_MAX = 1_000_000


@app.command("list", epilog="Example: tallystick tariff list")
def list_tariffs(url: Url = None, api_key: ApiKey = None, as_json: AsJson = False) -> None:
    """Every version ever published, oldest first."""
    told = Remote(url, api_key).ask(lambda c: c.list_tariffs())
    rows = [
        {
            **row,
            "fees": ", ".join(
                f"{fee['gpu_class']} {amount(fee['per_gpu_hour'])}" for fee in row["usage_fees"]
            ),
        }
        for row in told["data"]
    ]
    names = ("version", "in_force", "effective_from", "provider_share_ppm", "fees")
    tell(told, columns(rows, names), as_json=as_json)


@app.command("publish", epilog="Example: tallystick tariff publish tariff-2.json")
def publish(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The body of POST /v1/tariffs.")],
    url: Url = None,
    api_key: ApiKey = None,
    idempotency_key: IdempotencyKey = None,
    as_json: AsJson = False,
) -> None:
    """Publish the next version; leases that are reserved already keep theirs."""
    try:
        with file.open("rb") as opened:
            body: Any = json.loads(opened.read(FILE_BYTES_MAX))
    except (OSError, ValueError) as error:
        raise InputUnusable(f"{file}: {error}") from None
    remote = Remote(url, api_key, key=idempotency_key)
    told = remote.ask(lambda c: c.publish_tariff(body, idempotency_key=remote.key))
    shown = {name: told.get(name) for name in ("version", "effective_from", "in_force")}
    tell(told, facts(shown), as_json=as_json)
