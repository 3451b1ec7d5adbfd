"""`tallystick policy dry-run`: what past epochs would have paid under a proposal, from their files
alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli_policy import File, document_of
from api.cli_settings import ConfigFile, DataDir, in_force
from api.cli_terminal import (
    EXIT_NO,
    AsJson,
    InputUnusable,
    amount,
    columns,
    facts,
    progress,
    tell,
)

LIMIT = 10


def register(policy: typer.Typer) -> None:
    """Add the command to the group."""
    policy.command("dry-run", epilog="Example: tallystick policy dry-run proposal.toml")(dry_run)


def dry_run(
    file: File,
    epochs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of epoch files, else of the data folder."),
    ] = None,
    from_epoch: Annotated[
        int, typer.Option(min=1, metavar="EPOCH", help="Epochs before it keep their policy.")
    ] = 1,
    limit: Annotated[
        int, typer.Option(min=0, max=100_000, help="Winners, and losers, to be named.")
    ] = LIMIT,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Settle all past epochs once more under a proposal, and compare to the unit. Changes nothing.

    FILE is a proposal, or JSON like the `policy` of an epoch file. Exit 1 when an invariant does
    not hold, or an epoch file is not what its own cut gives.
    """
    from api import rehearsal

    folder = epochs or in_force(config, data_dir=data_dir).data_dir / "epochs"
    try:
        policy = rehearsal.proposed_policy(document_of(file))
        files = rehearsal.past_files(folder)
        with progress() as step:
            found = rehearsal.run(
                policy, files, first=from_epoch, step=lambda done, of: step("epochs", done, of)
            )
    except rehearsal.NothingToRehearse as error:
        raise InputUnusable(str(error)) from None
    told = rehearsal.told_of(found, limit)
    tell(told, _lines(told), as_json=as_json)
    if not found.holds:
        raise typer.Exit(EXIT_NO)


def _lines(told: dict[str, Any]) -> list[str]:
    """Totals side by side, then who gains and who loses most, then what does not hold."""
    rows = [
        {"total": name, "was": amount(units), "would_be": amount(told["would_be"][name])}
        for name, units in told["was"].items()
    ]
    lines = columns(rows, ("total", "was", "would_be"))
    for name in ("winners", "losers"):
        if told[name]:
            shown = [{key: _shown(value) for key, value in row.items()} for row in told[name]]
            lines += ["", f"biggest {name}"]
            lines += columns(shown, ("account_id", "was", "would_be", "delta"))
    names = (
        "epochs",
        "first_epoch",
        "last_epoch",
        "accounts_gaining",
        "accounts_losing",
        "stopped",
    )
    lines += ["", *facts({name: told[name] for name in names})]
    if told["kept_emission_plan"]:
        count = len(told["kept_emission_plan"])
        lines.append(f"{count} epochs emit by the plan they had: the proposal plans none for them")
    lines += [f"epoch {one}: its file is not what its cut gives" for one in told["not_reproduced"]]
    lines += [f"epoch {one['epoch']}: {rule}" for one in told["by_epoch"] for rule in one["broken"]]
    end = "nothing would have changed" if told["is_same"] else "rewards would have changed"
    return [*lines, end if told["holds"] else f"{end}; NOT everything holds"]


def _shown(value: Any) -> Any:
    return amount(value) if isinstance(value, dict) else value
