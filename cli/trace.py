"""`tallystick trace`: what a published cluster trace would have cost and earned here.

The replay is in `api/replay/openb.py`; this gives it a database nobody else uses and prints its
result.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.settings import ConfigFile, in_force
from cli.terminal import EXIT_NO, AnswerIsNo, AsJson, facts, group, progress, tell

app = group(
    "trace",
    "Replay cluster traces through the marketplace.",
    "tallystick trace replay --format openb --nodes nodes.csv --tasks tasks.csv",
)


class TraceFormat(StrEnum):
    """Formats this version reads."""

    OPENB = "openb"
    GENTD26 = "gentd26"


@app.command(
    epilog="Example: tallystick trace replay --format openb --nodes nodes.csv --tasks tasks.csv"
)
def replay(
    nodes: Annotated[
        Path | None, typer.Option(metavar="FILE", help="openb: CSV of GPU nodes.")
    ] = None,
    tasks: Annotated[Path | None, typer.Option(metavar="FILE", help="openb: CSV of tasks.")] = None,
    duty: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="gentd26: CSV of duty cycles, or its .tar.gz."),
    ] = None,
    trace_format: Annotated[
        TraceFormat, typer.Option("--format", help="Form of the files.")
    ] = TraceFormat.OPENB,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Play every task of a trace as a lease, on a simulated clock, and recount it from the log.

    `openb` is tasks on a fleet. `gentd26` is measured duty cycles: they go through node reporters
    and a served API, and are compared with what the file itself adds up to. Uses a temporary
    embedded database, or an empty one named by TALLYSTICK_DATABASE_URL. The same files of openb
    give the same log head. Exit 1 when the recount finds anything wrong.
    """
    if trace_format is TraceFormat.GENTD26:
        result = _measured(_needed(duty, "--duty"), config)
    else:
        result = _scheduled(_needed(nodes, "--nodes"), _needed(tasks, "--tasks"), config)
    tell(result, facts(result), as_json=as_json)
    if not _is_sound(result):
        raise typer.Exit(EXIT_NO)


def _needed(path: Path | None, option: str) -> Path:
    if path is None:
        raise typer.BadParameter("this format needs it", param_hint=option)
    return path


def _scheduled(nodes: Path, tasks: Path, config: Path | None) -> dict[str, Any]:
    from api.replay import trace_openb

    trace_nodes, trace_tasks = trace_openb.read_nodes(nodes), trace_openb.read_tasks(tasks)
    with _empty_database(in_force(config).database_url) as conninfo:
        return _replayed(conninfo, trace_nodes, trace_tasks)


def _measured(duty: Path, config: Path | None) -> dict[str, Any]:
    from api.replay import gentd26 as replay_measured
    from api.replay import trace_gentd26

    pods = trace_gentd26.read_pods(duty)
    with _empty_database(in_force(config).database_url) as conninfo, progress() as step:
        return replay_measured.replay_gentd26(conninfo, pods, step)


@contextmanager
def _empty_database(given: str | None) -> Generator[str, None, None]:
    """The address of a migrated database with an empty log. Raises AnswerIsNo for any other."""
    from ledger import migrate

    if given is not None:
        migrate.migrate(given)
        _refuse_if_used(given)
        yield given
        return
    from api.process.embedded_postgres import EmbeddedPostgres

    with tempfile.TemporaryDirectory(prefix="tallystick-") as folder:
        Path(folder).chmod(0o755)  # the server may run as another user
        with EmbeddedPostgres(Path(folder), durable=False) as server:
            conninfo = server.create_database("replay")
            migrate.migrate(conninfo)
            yield conninfo


def _refuse_if_used(conninfo: str) -> None:
    import psycopg

    from ledger.log import market

    with psycopg.connect(conninfo) as connection:
        has = market.head(connection)
    if has:
        raise AnswerIsNo(
            f"the log of this database holds {has} facts, and a replay begins with an empty one:"
            " name an empty database, or unset TALLYSTICK_DATABASE_URL"
        )


def _replayed(conninfo: str, nodes: list[Any], tasks: list[Any]) -> dict[str, Any]:
    import psycopg

    from api.replay import openb as replays
    from ledger.log.handle import Ledger
    from projections import tables

    with (
        progress() as step,
        Ledger(conninfo, blinding_key=replays.BLINDING_KEY) as ledger,
        psycopg.connect(conninfo, autocommit=True) as connection,
    ):
        tables.ensure(connection)
        return replays.replay_openb(ledger, connection, nodes, tasks, step)


def _is_sound(result: dict[str, Any]) -> bool:
    shared = int(result["providers_units"]) + int(result["platform_units"])
    return (
        result["books_balanced"]
        and not result["double_bookings"]
        and not result.get("wrong_model", 0)
        and result.get("equal", True)
        and int(result["charged_units"]) == shared
    )
