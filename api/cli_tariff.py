"""`tallystick tariff`: what things cost, and the next version. Thin clients of the API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli_remote import Remote, reads, records
from api.cli_terminal import InputUnusable, amount, columns, facts, group

app = group("Tariffs: dated versions of what things cost.", "tallystick tariff list --json")

FILE_BYTES_MAX = 1_000_000


@app.command("list", epilog="Example: tallystick tariff list")
@reads
def list_tariffs(remote: Remote) -> None:
    """Every version ever published, oldest first."""
    told = remote.ask(lambda c: c.list_tariffs())
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
    remote.tell(told, columns(rows, names))


@app.command("publish", epilog="Example: tallystick tariff publish tariff-2.json")
@records
def publish(
    remote: Remote,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The body of POST /v1/tariffs.")],
) -> None:
    """Publish the next version; leases that are reserved already keep theirs."""
    try:
        with file.open("rb") as opened:
            body: Any = json.loads(opened.read(FILE_BYTES_MAX))
    except (OSError, ValueError) as error:
        raise InputUnusable(f"{file}: {error}") from None
    told = remote.ask(lambda c: c.publish_tariff(body, idempotency_key=remote.key))
    shown = {name: told.get(name) for name in ("version", "effective_from", "in_force")}
    remote.tell(told, facts(shown))
