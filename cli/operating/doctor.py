"""`tallystick doctor`: what stands between this server and its work, and what to do about it.

It changes nothing: no migration, no key, no fact. `failed` stops the server or breaks a promise;
`warn` should be looked at; `absent` is not set up here.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.settings import ConfigFile, DataDir, Port, in_force
from cli.terminal import EXIT_NO, AnswerIsNo, AsJson, columns, sentence, tell, top_level
from cli.this_machine import database

if TYPE_CHECKING:
    import psycopg

    from api.settings import Settings

commands = top_level()

URL = "TALLYSTICK_URL"
"""The server that this shell's commands ask. Where it is set, a server of this machine is optional,
unless the keys of one are here.
"""
OK, WARN, FAILED, ABSENT = "ok", "warn", "failed", "absent"
CLOCK_US_MAX = 1_000_000
"""The database and this machine may differ by so much."""
FREE_BYTES_MIN = 1 << 30
SERVER_SECONDS_MAX = 3
ELSEWHERE = "of one started with options, give doctor the same settings: `--port`, TALLYSTICK_HOST"
DURABLE = {"fsync": "on", "full_page_writes": "on"}
SYNCHRONOUS = ("on", "remote_apply", "remote_write", "local")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `todo` where something is to be done."""

    name: str
    state: str
    said: str
    todo: str | None = None


@commands.command(epilog="Example: tallystick doctor --json")
def doctor(
    wait: Annotated[
        int,
        typer.Option(min=0, help="Seconds to wait for the server, after a start; else it failed."),
    ] = 0,
    port: Port = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Look at database, keys, clock, disk, chain, processors, timers and server. Changes nothing.

    Exit 1 when a check failed. Run it as the user of the server, with the server's settings. Where
    TALLYSTICK_URL is set, the server that it names is looked at too.
    """
    checks = list(examine(in_force(config, port=port, data_dir=data_dir), wait))
    ok = all(check.state != FAILED for check in checks)
    rows = [{**asdict(check), "check": check.name} for check in checks]
    lines = columns(rows, ("check", "state", "said"))
    lines += [f"{each.name}: {each.todo}" for each in checks if each.todo]
    tell({"ok": ok, "checks": [asdict(check) for check in checks]}, lines, as_json=as_json)
    if not ok:
        raise typer.Exit(EXIT_NO)


def examine(settings: Settings, wait_s: int = 0) -> Iterator[Check]:
    """Every check of this installation; the server is waited for first."""
    import psycopg

    from api.process.embedded_postgres import EmbeddedPostgresFailed

    server = _server(settings, wait_s)
    yield _disk(settings.data_dir)
    try:
        with (
            database(settings) as conninfo,
            psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as connection,
        ):
            yield from _of_the_database(settings, conninfo, connection)
    except AnswerIsNo:
        yield _no_database(settings)
    except (psycopg.Error, EmbeddedPostgresFailed) as error:
        todo = "check that it runs, and TALLYSTICK_DATABASE_URL"
        yield Check("database", FAILED, sentence(error), todo)
    yield from _chain(settings)
    yield _processors(settings)
    yield server
    if url := os.environ.get(URL):
        yield _named(url)


def _no_database(settings: Settings) -> Check:
    """Where a server elsewhere is named, this machine need not have one; where the keys of a server
    are, its database is lost.
    """
    from api.process.embedded_postgres import BEGIN_AGAIN, UNFINISHED
    from api.process.secret_files import folder_of

    part = settings.data_dir / UNFINISHED
    if part.exists():
        return Check("database", FAILED, f"{part} is of a restore that was killed", BEGIN_AGAIN)
    said = f"there is none in {settings.data_dir}"
    folder = folder_of(settings.data_dir)
    if folder.exists():
        todo = "see docs/howto/restore.md; or set TALLYSTICK_DATABASE_URL"
        return Check("database", FAILED, f"{said}, and the keys of one are in {folder}", todo)
    if os.environ.get(URL):
        return Check("database", ABSENT, f"{said}: the server that {URL} names has its own")
    todo = "make it: `tallystick migrate`; or set TALLYSTICK_DATABASE_URL"
    return Check("database", FAILED, said, todo)


def _named(url: str) -> Check:
    """Whether the server answers that this shell's commands ask."""
    import httpx

    name, at = f"server of {URL}", f"{url.rstrip('/')}/readyz"
    todo = f"check that it runs, and {URL}"
    try:
        answer = httpx.get(at, timeout=SERVER_SECONDS_MAX)
        ready = answer.json().get("status")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError) as error:
        return Check(name, FAILED, f"none answers on {at}: {type(error).__name__}", todo)
    if answer.status_code != 200:
        return Check(name, FAILED, f"{at} answers {answer.status_code}", todo)
    return Check(name, OK, f"{ready} on {at}")


def _of_the_database(
    settings: Settings, conninfo: str, connection: psycopg.Connection[Any]
) -> Iterator[Check]:
    from ledger import migrate

    number = connection.info.server_version
    version = f"PostgreSQL {number // 10_000}.{number % 10_000}"
    if number // 10_000 < migrate.POSTGRES_MIN:
        yield Check("database", FAILED, version, f"use {migrate.POSTGRES_MIN} or newer")
        return
    yield Check("database", OK, version)
    wrong = migrate.text_unusable(connection)
    if wrong is not None:
        yield Check("text", FAILED, wrong, "make another database: docs/howto/install.md")
        return
    yield _durability(connection)
    yield from _stream(connection)
    try:
        missing = migrate.plan(conninfo)
    except migrate.HistoryChanged as error:
        todo = "run the version of tallystick that this database belongs to"
        yield Check("schema", FAILED, str(error), todo)
        return
    if missing:
        names = ", ".join(each.name for each in missing)
        yield Check("schema", FAILED, f"not applied: {names}", "stop servers; `tallystick migrate`")
    if any(each.number <= migrate.LOGS for each in missing):
        return
    if not missing:
        yield Check("schema", OK, f"{len(migrate.shipped())} migrations, none is missing")
    yield _roles(connection)
    yield _keys(settings, connection)
    yield _clock(connection)
    yield from _timers(connection, read_only=settings.read_only)
    if not missing:
        yield from _lanes(connection)
    yield _views(connection)


def _lanes(connection: psycopg.Connection[Any]) -> Iterator[Check]:
    """Whether lanes on other servers lie where the setting says, and answer."""
    from ledger.log import lane_store
    from ledger.log.lane_map import ranges

    try:
        lane_store.require_placed(connection)
    except lane_store.LanesMisplaced as error:
        yield Check("lanes", FAILED, str(error), "see docs/howto/lanes.md")
        return
    for address, lanes in lane_store.of(connection).elsewhere().items():
        name = f"lanes {ranges(lanes)}"
        try:
            with lane_store.on(connection, address, lanes) as there:
                yield Check(name, OK, "their server answers and holds all that was seen of them")
                yield replace(_durability(there), name=f"durability of {name}")
        except lane_store.LanesStopped as stopped:
            todo = "see docs/howto/lanes.md: other lanes go on without it"
            yield Check(name, FAILED, str(stopped), todo)
    if leaving := lane_store.leaving(connection):
        said = f"lanes {ranges(leaving)} were taken out for another server and did not arrive"
        yield Check("lanes on their way", FAILED, said, "run `tallystick move-lanes` again")


def _views(connection: psycopg.Connection[Any]) -> Check:
    """Whether anything lies beside the views that no process builds any more."""
    from projections import tables

    left = tables.left_behind(connection)
    if left:
        said = f"left of a proof or rebuild that was killed: {', '.join(left)}"
        said += f", {sum(left.values()) >> 20} MiB"
        return Check("views", WARN, said, "the next start of a server, or `migrate`, removes it")
    return Check("views", OK, "nothing is left of a proof or rebuild that was killed")


def _durability(connection: psycopg.Connection[Any]) -> Check:
    from ledger.log.durable import AWAY_ADVICE, AWAY_TOLD, setting, standby_is_away

    told = {name: setting(connection, name) for name in (*DURABLE, "synchronous_commit")}
    wrong = [name for name, value in DURABLE.items() if told[name] != value]
    if told["synchronous_commit"] not in SYNCHRONOUS:
        wrong.append("synchronous_commit")
    if wrong:
        todo = f"set {', '.join(f'{name} = on' for name in wrong)}: an answer promises durability"
        return Check("durability", FAILED, _pairs(told), todo)
    if standby_is_away(connection):
        names = setting(connection, "synchronous_standby_names")
        said = f"synchronous_standby_names is {names}: {AWAY_TOLD}"
        return Check("durability", FAILED, said, AWAY_ADVICE)
    if told["synchronous_commit"] == "local" and setting(connection, "synchronous_standby_names"):
        said = "synchronous_commit local: an answer waits for no standby"
        return Check("durability", WARN, said, "set synchronous_commit = on")
    if setting(connection, "data_checksums") != "on":
        said = "data checksums are off: a broken disk block is found late"
        return Check("durability", WARN, said, "stop PostgreSQL; `pg_checksums --enable`")
    return Check("durability", OK, f"{_pairs(told)}, data checksums on")


def _stream(connection: psycopg.Connection[Any]) -> Iterator[Check]:
    """Whether the stream of backups runs, once it was begun: the disk keeps all for it."""
    from api.backup.following import NAME
    from ledger.log.durable import kept_for

    kept = kept_for(connection, NAME)
    if kept is not None:
        said = f"none runs, and PostgreSQL keeps {kept >> 20} MiB of what was written for it"
        todo = (
            "start `tallystick backup FOLDER --follow`; or, where it ended for good:"
            f" SELECT pg_drop_replication_slot('{NAME}')"
        )
        yield Check("stream of backups", WARN, said, todo)


def _pairs(told: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in told.items())


def _roles(connection: psycopg.Connection[Any]) -> Check:
    from ledger import migrate

    missing = migrate.roles_not_held(connection)
    if missing:
        todo = f"as a superuser: GRANT {', '.join(missing)} TO {connection.info.user}"
        return Check("roles", FAILED, f"the login is no member of {', '.join(missing)}", todo)
    found = migrate.writes_past_the_append(connection)
    if found is not None:
        role, table = found
        todo = f"REVOKE ALL ON {table} FROM {role}; GRANT SELECT again"
        return Check("roles", FAILED, f"{role} may write into the log directly: {table}", todo)
    return Check("roles", OK, "all four are there, and none writes past the append functions")


def _keys(settings: Settings, connection: psycopg.Connection[Any]) -> Check:
    from api.process import key_files
    from api.process.secret_files import SecretUnreadable, folder_of
    from ledger.beside import loaded_log

    copy = loaded_log.read(connection)
    if copy is not None:
        said = f"a copy of the log {copy.origin} has none, and is only read"
        if copy.unproven is None:
            return Check("keys", OK, said)
        return Check("keys", WARN, f"{said}; {copy.unproven}", "`audit load` with --key and --root")
    if loaded_log.is_both(connection):
        said = "a log with keys of its own says that it is a copy: a superuser wrote that"
        return Check("keys", FAILED, said, "DELETE FROM loaded_log, and ask who wrote it")
    folder = folder_of(settings.data_dir)
    try:
        found = key_files.examine(connection, folder, settings.log_origin)
    except SecretUnreadable as error:
        return Check("keys", FAILED, str(error), "see `tallystick keys check`")
    wrong = [each for each in found if each.is_wrong]
    if wrong:
        said = "; ".join(f"{each.file} {each.state}" for each in wrong)
        return Check("keys", FAILED, said, "see `tallystick keys check`, then `keys import`")
    if folder.exists() and stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return Check("keys", WARN, f"{folder} is open to others", f"chmod 700 {folder}")
    return Check("keys", OK, "they are those of the log")


def _clock(connection: psycopg.Connection[Any]) -> Check:
    from ledger.log import durable, market

    last_us, before = market.last_recorded_us(connection), time.time_ns() // 1_000
    now_us = durable.clock_us(connection)
    after = time.time_ns() // 1_000
    off_us = max(before - now_us, now_us - after, 0)
    if last_us is not None and last_us > after + CLOCK_US_MAX:
        said = f"the last fact lies {(last_us - after) // 1_000_000} s in the future"
        return Check("clock", FAILED, said, "set the clock by NTP before the server starts")
    if off_us > CLOCK_US_MAX:
        said = f"this machine and the database differ by {off_us // 1_000} ms"
        return Check("clock", FAILED, said, "let NTP set both clocks")
    return Check("clock", OK, f"it differs from the database's by {off_us // 1_000} ms at most")


def _timers(connection: psycopg.Connection[Any], *, read_only: bool) -> Iterator[Check]:
    from ledger.beside import timer_runs

    runs, now_us = timer_runs.read(connection), time.time_ns() // 1_000
    if read_only:
        yield Check("timers", ABSENT, "a server that only reads runs none")
        return
    if not runs:
        yield Check("timers", WARN, "none has run here yet", "run `serve`, or `tallystick jobs`")
        return
    bad = [run for run in runs if run.error is not None or run.is_late(now_us)]
    if bad:
        said = "; ".join(f"{run.name}: {run.error or 'late'}" for run in bad)
        todo = "does `serve` or `jobs` run? see `tallystick timer list` and its log"
        yield Check("timers", WARN, said, todo)
        return
    yield Check("timers", OK, f"{len(runs)}, each within its time and without an error")


def _disk(folder: Path) -> Check:
    from api.monitoring.alerts import DISK_FREE_MIN

    there = next(each for each in (folder, *folder.resolve().parents) if each.exists())
    usage = shutil.disk_usage(there)
    percent = usage.free * 100 // usage.total
    said = f"{usage.free >> 20} MiB free of {there}, {percent} %"
    if not os.access(there, os.W_OK):
        return Check("disk", FAILED, f"{there} cannot be written", "chown it to the server's user")
    if usage.free < FREE_BYTES_MIN:
        return Check("disk", FAILED, said, "make room: without it nothing is recorded")
    if usage.free < DISK_FREE_MIN * usage.total:
        return Check("disk", WARN, said, "make room")
    return Check("disk", OK, said)


def _chain(settings: Settings) -> Iterator[Check]:
    if settings.embedded_chain:
        yield Check("chain", OK, "the embedded one, for development: nothing on it is worth money")
        return
    if settings.chain_url is None:
        yield Check("chain", ABSENT, "no Ethereum node is set: nothing is paid out on a chain")
        return
    if settings.chain_deployment is None:
        todo = "`tallystick chain deploy` makes the file; set TALLYSTICK_CHAIN_DEPLOYMENT"
        yield Check("chain", FAILED, "a node is set, and no deployment", todo)
        return
    from contracts import deployment as deployments
    from contracts.chain import Chain

    try:
        found = deployments.check_deployment(
            Chain.http(settings.chain_url), deployments.read(settings.chain_deployment)
        )
    except Exception as error:
        todo = "check TALLYSTICK_CHAIN_URL and TALLYSTICK_CHAIN_DEPLOYMENT"
        yield Check("chain", FAILED, str(error).strip().split("\n", 1)[0], todo)
        return
    if found:
        said = "; ".join(map(str, found))
        yield Check("chain", FAILED, said, "see `tallystick chain doctor`")
        return
    yield Check("chain", OK, "the contracts are those of the deployment file")


def _processors(settings: Settings) -> Check:
    from api.processors.configured import processors_of

    names = sorted(processors_of(settings))
    if settings.stripe_secret_key is None:
        return Check("processors", OK, f"{', '.join(names)}; no payment by card")
    return Check("processors", OK, ", ".join(names))


def _server(settings: Settings, wait_s: int) -> Check:
    """Whether a server answers at the address of the settings, and in how many processes."""
    import httpx

    scheme = "http" if settings.ssl_certfile is None else "https"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}/readyz"
    ends, answer = time.monotonic() + wait_s, None
    while answer is None or (answer.status_code != 200 and time.monotonic() < ends):
        try:
            answer = httpx.get(url, timeout=SERVER_SECONDS_MAX, verify=False)  # noqa: S501 - itself
        except httpx.HTTPError:
            answer = None
            if time.monotonic() >= ends:
                break
        if wait_s:
            time.sleep(0.2)
    if answer is None and wait_s:
        said = f"none answered on {url} in {wait_s} s"
        return Check("server", FAILED, said, f"look at its log; {ELSEWHERE}")
    if answer is None:
        todo = None if os.environ.get(URL) else f"start `tallystick serve`; {ELSEWHERE}"
        return Check("server", ABSENT, f"none answers on {url}", todo)
    if answer.status_code != 200:
        return Check("server", FAILED, f"{url} answers {answer.status_code}", "look at its log")
    cores = os.cpu_count() or 1
    said = f"{answer.json().get('status')} on {url}, {settings.workers} worker(s)"
    if settings.workers > cores:
        return Check("server", WARN, f"{said} on {cores} cores", f"set workers to {cores} at most")
    return Check("server", OK, said)
