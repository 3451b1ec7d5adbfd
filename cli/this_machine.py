"""`tallystick demo | serve | jobs | migrate | config | conformance`: what runs on this machine.

Each command imports what it needs when it runs, so that `--help` is quick and needs no server.
"""

from __future__ import annotations

import gc
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.settings import ConfigFile, DataDir, Port, in_force, loaded, opened
from cli.terminal import (
    EXIT_NO,
    AnswerIsNo,
    AsJson,
    InputUnusable,
    amount,
    columns,
    facts,
    note,
    stages,
    tell,
    top_level,
)

if TYPE_CHECKING:
    from api.settings import Settings

commands = top_level()


@commands.command(epilog="Example: tallystick demo --json")
def demo(
    serve_after: Annotated[
        bool, typer.Option("--serve", help="Leave API and console running on the result.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder; else a temporary one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the whole system on embedded parts, from signed usage reports to a claim on chain.

    Starts a PostgreSQL and an Ethereum of its own, simulates nodes that sign real reports, leases,
    meters, settles an epoch, pays it out, reconciles and verifies. Needs nothing installed.
    """
    from api.replay import demo as demos

    progress = ExitStack()

    def wait(url: str, keys: dict[str, str], result: dict[str, Any]) -> None:
        progress.close()  # while it draws, it takes standard output too
        tell(result, _statement(result), as_json=as_json)
        note(f"the console is on {url}: sign in with a key below (month 2026-11); for commands:")
        if shutil.which("tallystick") is None:
            note(f"  export PATH={Path(sys.executable).parent}:$PATH")
        note(f"  export TALLYSTICK_URL={url}")
        note(f"  tallystick epoch explain {result['epoch']} {result['rewarded_node_ids'][0]}")
        for name, key in keys.items():
            note(f"{name}:")
            note(f"  export TALLYSTICK_API_KEY={key}")
        note(f"its nodes were simulated and have stopped: {_RUN_WORK}")
        note("stop it with Ctrl-C")
        with stopping() as stop:
            stop.wait()

    with _new_folder(data_dir) as folder, progress:
        stage = progress.enter_context(stages())
        result = demos.run(folder, stage, wait=wait if serve_after else None)
    if not serve_after:
        tell(result, _statement(result), as_json=as_json)
        if shutil.which("tallystick") is None:
            note(f"next, for the commands: export PATH={Path(sys.executable).parent}:$PATH")
        note("next: `tallystick demo --serve` leaves such a market running, with a console")
        note(f"next: docs/tutorial.md makes one step by step; {_RUN_WORK}")
    if not (result["books_balanced"] and result["chain_reconciled"] and result["audit_verified"]):
        raise typer.Exit(EXIT_NO)


_RUN_WORK = "to run a program of yours on a node, follow docs/howto/run-work.md"


@contextmanager
def _new_folder(given: Path | None) -> Generator[Path, None, None]:
    """An empty folder: the one given, which stays, or a temporary one."""
    from api.process.embedded_postgres import make_data_dir

    if given is not None:
        if given.exists() and any(given.iterdir()):
            raise InputUnusable(f"{given} is not empty: the demo begins in a new folder")
        make_data_dir(given)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="tallystick-") as folder:
        Path(folder).chmod(0o755)  # the server may run as another user
        yield Path(folder)


@commands.command(epilog="Example: tallystick serve --port 8420")
def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (TALLYSTICK_HOST).")
    ] = None,
    port: Port = None,
    workers: Annotated[int | None, typer.Option(help="Processes (TALLYSTICK_WORKERS).")] = None,
    ssl_certfile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certificate chain, for TLS without a proxy."),
    ] = None,
    ssl_keyfile: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key.")] = None,
    jobs_too: Annotated[
        bool | None, typer.Option("--jobs/--no-jobs", help="Background jobs in this process.")
    ] = None,
    read_only: Annotated[
        bool | None,
        typer.Option("--read-only/--recording", help="Answer from a standby; record nothing."),
    ] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
) -> None:
    """Serve the API and run the background jobs, until stopped.

    With `--read-only` it answers reading calls from a standby or a restored database, and others
    503 `read_only`; `Tallystick-Position` and `/readyz` say how far the data go. Without
    TALLYSTICK_DATABASE_URL the embedded PostgreSQL of the data folder is used.
    """
    settings = in_force(
        config,
        host=host,
        port=port,
        workers=workers,
        ssl_certfile=ssl_certfile,
        ssl_keyfile=ssl_keyfile,
        jobs=jobs_too,
        read_only=read_only,
        data_dir=data_dir,
    )
    # Hundreds of modules come, and none goes: until `tune_collector` only what is new is looked at,
    # where classes with slots leave a copy of themselves.
    before = gc.get_threshold()
    gc.set_threshold(20_000, 1_000, 1_000)
    from cli.operating import early_database, kept_code

    try:
        with early_database.starting(settings) as database:
            with kept_code.kept():
                from cli import serve as cli_serve
            database.result()
            code = cli_serve.serve(settings)
    finally:
        gc.set_threshold(*before)
    raise typer.Exit(code)


@commands.command(epilog="Example: tallystick jobs --once --json")
def jobs(
    once: Annotated[bool, typer.Option("--once", help="Each job once, then stop.")] = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Run only the background jobs: accrual, pins, signed heads, epochs, views.

    May run beside any number of servers; each job has one leader at a time.
    """
    from api import timers as background
    from api.process import founding
    from api.process.database_watch import watching
    from api.telemetry import logs

    settings = in_force(config, data_dir=data_dir)
    if settings.read_only:
        raise InputUnusable(
            "TALLYSTICK_READ_ONLY is on, and every job records something: run `jobs` at the primary"
        )
    if not once:
        logs.configure(settings.log_form, settings.log_level)
    with (
        stopping() as stop,
        opened(config, data_dir=data_dir) as service,
        watching(service.embedded),
    ):
        founding.warn(service.ledger, service.settings)
        done = background.run(service, once=once, stop=stop)
    tell(done, facts(done), as_json=as_json)


@commands.command(epilog="Example: tallystick migrate --plan")
def migrate(
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what would be applied; write nothing.")
    ] = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create or upgrade the database. Safe to run twice and from two machines at once.

    Each file is applied in a transaction of its own and told before it begins. A database of a
    newer version is refused.
    """
    import psycopg

    from ledger import migrate as migrations
    from projections import tables

    with database(in_force(config, data_dir=data_dir), make=not plan) as conninfo:
        if plan:
            missing = migrations.plan(conninfo)
            told = [{"name": each.name, "about": each.about} for each in missing]
            shown = columns(told, ("name", "about")) if told else ["nothing to do"]
            tell({"missing": told}, shown, as_json=as_json)
            return
        applied = migrations.migrate(
            conninfo, begins=lambda each: note(f"applying {each.name}: {each.about}")
        )
        with psycopg.connect(conninfo, autocommit=True) as connection:
            tables.ensure(connection)
    lines = [f"applied {name}" for name in applied] or ["nothing to do"]
    tell({"applied": applied}, lines, as_json=as_json)


@commands.command(epilog="Example: TALLYSTICK_PORT=9000 tallystick config")
def config(config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show every setting in force and its source: flag, environment, file or default.

    Secrets are masked. Variables that are called like a setting and are none are named.
    """
    import os

    from api.settings import unknown

    shown = loaded(config, data_dir=data_dir).shown()
    if others := unknown(os.environ):
        note(f"no settings, and not used: {', '.join(others)}")
    rows = [{"setting": name, **told} for name, told in shown.items()]
    tell(shown, columns(rows, ("setting", "value", "source")), as_json=as_json)


@commands.command(epilog="Example: tallystick conformance vectors/*.json")
def conformance(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Conformance vectors.")],
    as_json: AsJson = False,
) -> None:
    """Run conformance vectors through the functions that the product uses.

    The last line is `N passed, M failed`; exit 1 when any case fails.
    """
    from api.replay import conformance as suites

    raise typer.Exit(suites.main(files, as_json=as_json, out=sys.stdout, err=sys.stderr))


@contextmanager
def stopping() -> Generator[threading.Event, None, None]:
    """An event that SIGINT and SIGTERM set."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda _number, _frame: stop.set()) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def database(settings: Settings, *, make: bool = False) -> Generator[str, None, None]:
    """The address of the database, the embedded one started or joined. Raises AnswerIsNo where
    there is none, unless it is to be made.
    """
    from ledger.log import lane_store

    if not make:
        require_database(settings)
    if settings.database_url is not None:
        yield lane_store.carried(settings.lanes, settings.database_url)
        return
    from api.process.embedded_postgres import EmbeddedPostgres

    with EmbeddedPostgres(settings.data_dir) as server:
        yield lane_store.carried(settings.lanes, server.uri)


def require_database(settings: Settings) -> None:
    """That there is a database, where a command makes none. Raises AnswerIsNo."""
    if settings.database_url is None and not (settings.data_dir / "pg" / "PG_VERSION").exists():
        raise AnswerIsNo(
            f"there is no database in {settings.data_dir}: set TALLYSTICK_DATABASE_URL, or give the"
            " server's --data-dir"
        )


def _statement(result: dict[str, Any]) -> list[str]:
    """The demo's result in sentences."""
    money = {name: amount(result[name]) for name in _MONEY}
    tokens = {name: amount({"asset": "TOKEN", "units": result[name]}) for name in _TOKENS}
    metered_s = int(result["gpu_microseconds_metered"]) // 1_000_000
    sound = {
        "books balanced": result["books_balanced"],
        "ledger and chain agree": result["chain_reconciled"],
        "audit log verified offline": result["audit_verified"],
    }
    return [
        f"{result['nodes']} nodes served {result['leases']} leases"
        f" and signed {result['usage_reports']} usage reports: {metered_s} GPU-seconds.",
        "",
        *columns([_line(lease) for lease in result["statement"]], _STATEMENT),
        "",
        f"Paid in cash: {money['charged']} = {money['providers_earned']} to providers"
        f" + {money['platform_earned']} to the platform.",
        f"Paid in credits bought by burning tokens: {money['burned_at_use']}, burned for good.",
        f"Renters burned {tokens['tokens_burned']}. Epoch {result['epoch']} minted"
        f" {tokens['tokens_minted']}; what is not paid below is carried to later epochs.",
        f"Payout root {result['payout_root']} was published, waited its timelock,"
        f" and {result['claims']} claims were paid {tokens['tokens_claimed']}.",
        "",
        *(f"{'yes' if holds else 'NO '}  {what}" for what, holds in sound.items()),
        f"Took {result['seconds']} s.",
    ]


_MONEY = ("charged", "providers_earned", "platform_earned", "burned_at_use")
_TOKENS = ("tokens_burned", "tokens_minted", "tokens_claimed")
_STATEMENT = ("lease", "gpus", "share", "gpu_seconds", "price_per_gpu_hour", "charge", "paid")


def _line(lease: dict[str, Any]) -> dict[str, Any]:
    """One line of the statement."""
    return {
        "lease": lease["lease_id"],
        "gpus": lease["gpus"],
        "share": f"{lease['share_ppm'] // 10_000} %",
        "gpu_seconds": lease["gpu_seconds"],
        "price_per_gpu_hour": amount(lease["price_per_gpu_hour"]),
        "charge": amount(lease["charge"]),
        "paid": lease["settlement"],
    }
