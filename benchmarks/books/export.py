"""How fast the books leave as an hledger journal and a beancount ledger, and what the tools say.

    python -m benchmarks.books.export            1,000,000 postings, some minutes: the tools are
    slower
    python -m benchmarks.books.export --short    20,000
    python -m benchmarks.books.export --tiny     400: whether it runs at all

One embedded server, one database of postings as a market makes them: escrows are filled (two
lines), hours are accrued (four lines) and capacity is booked (two lines).

- ours: `ledger.bundle.journal.export` into a file, both forms
- peer: the same postings as beancount's own directives through beancount's own printer
- limit: the same rows read from PostgreSQL, and nothing written
- the tools: `hledger check --strict` and `bean-check` on what was written. Their time is theirs.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
from beancount.core import amount, data
from beancount.parser import printer

from benchmarks import cpu
from benchmarks.size import Size, size_asked
from benchmarks.workplace import Server, workplace
from ledger import migrate
from ledger.bundle import journal
from ledger.bundle.journal import COMMODITY, Form

Connection = psycopg.Connection[Any]

POSTINGS = {Size.FULL: 1_000_000, Size.SHORT: 20_000, Size.TINY: 400}
PEER_ROWS = 2_000
SECONDS_MAX = 60
TOOL_SECONDS_MAX = 1_800

# Positions 1 .. k fill k escrows; after that an accrued hour and booked capacity take turns, so
# that every balance is told beforehand by the position alone.
_FILL = (
    """INSERT INTO account (name, asset, side) SELECT
    'escrow:lease_' || lpad(i::text, 32, '0') || ':1:cash', 'CREDIT', -1
    FROM generate_series(1, %(k)s) i""",
    """INSERT INTO account (name, asset, side) SELECT name, asset, side FROM (VALUES
    ('world:bank', 'CREDIT', 1), ('network:revenue:usage', 'CREDIT', -1),
    ('network:revenue:take', 'CREDIT', -1), ('party:acct_p:holdback', 'CREDIT', -1),
    ('device:GPU-a:physical', 'GPU_MS', -1), ('device:GPU-a:idle', 'GPU_MS', 1)
    ) v(name, asset, side)""",
    r"""INSERT INTO market_events SELECT gen_random_uuid(), 1,
        CASE WHEN i <= %(k)s THEN 'lease.reserved.v1' WHEN (i - %(k)s) %% 2 = 1
            THEN 'lease.usage_accrued.v1' ELSE 'device.capacity_accrued.v1' END,
        '\x', i, '\x', '\x', 1763000000000000 + i * 5000000
    FROM generate_series(1::bigint, %(n)s) i""",
    "UPDATE market_events_head SET pos = %(n)s",
    """INSERT INTO posting SELECT i, 'CREDIT',
        ARRAY[(SELECT id FROM account WHERE name = 'world:bank'), a.id],
        ARRAY[1000000000, -1000000000::bigint], ARRAY[i * 1000000000, 1000000000]
    FROM generate_series(1::bigint, %(k)s) i JOIN account a
        ON a.name = 'escrow:lease_' || lpad(i::text, 32, '0') || ':1:cash'""",
    """INSERT INTO posting SELECT %(k)s + j, 'CREDIT',
        ARRAY[a.id, f.usage, f.provider, f.take],
        ARRAY[2780000, -250000, -1265000, -1265000::bigint],
        ARRAY[1000000000 - ((j / 2) / %(k)s + 1) * 2780000, (j / 2 + 1) * 250000,
            (j / 2 + 1) * 1265000, (j / 2 + 1) * 1265000]
    FROM generate_series(1::bigint, %(n)s - %(k)s, 2) j JOIN account a
        ON a.name = 'escrow:lease_' || lpad((j / 2 %% %(k)s + 1)::text, 32, '0') || ':1:cash',
        (SELECT max(id) FILTER (WHERE name = 'network:revenue:usage') AS usage,
            max(id) FILTER (WHERE name = 'party:acct_p:holdback') AS provider,
            max(id) FILTER (WHERE name = 'network:revenue:take') AS take FROM account) f""",
    """INSERT INTO posting SELECT %(k)s + j, 'GPU_MS', ARRAY[f.physical, f.idle],
        ARRAY[-3600000, 3600000::bigint], ARRAY[j / 2 * 3600000, j / 2 * 3600000]
    FROM generate_series(2::bigint, %(n)s - %(k)s, 2) j,
        (SELECT max(id) FILTER (WHERE name = 'device:GPU-a:physical') AS physical,
            max(id) FILTER (WHERE name = 'device:GPU-a:idle') AS idle FROM account) f""",
    "VACUUM ANALYZE",
)


def run(size: Size, server: Server | None = None) -> dict[str, Any]:
    """Measure and return rates (postings/s), and whether the tools accept what was written."""
    postings = POSTINGS[size]
    with workplace(server) as (folder, made):
        uri = made.create_database("export")
        migrate.migrate(uri)
        with psycopg.connect(uri, autocommit=True) as connection:
            fill(connection, postings)
            lines = _lines(connection)
            limit = _limit(connection)
            peer = _peer(connection)
            forms = {form: _export(connection, form, folder, made.pid) for form in Form}
        accepted = {form: _checked(form, folder) for form in Form}
    for form, found in accepted.items():
        forms[form] |= found
    return {
        "figure": f"export of 1,000,000 postings in < {SECONDS_MAX} s, both tools accept it",
        "postings": postings,
        "lines": lines,
        "limit_per_second": limit,
        "peer_per_second": peer,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024,
        "forms": forms,
    }


def fill(connection: Connection, postings: int) -> None:
    """Postings as a market makes them, written past the door: the export only reads."""
    for sql in _FILL:
        # Every escrow pays fifty hours.
        parameters = {"n": postings, "k": postings // 100} if "%(" in sql else None
        connection.execute(sql.encode(), parameters)


def _lines(connection: Connection) -> int:
    row = connection.execute("SELECT sum(cardinality(accounts)) FROM posting").fetchone()
    assert row is not None
    return int(row[0])


def _limit(connection: Connection) -> int:
    began, count = time.perf_counter(), 0
    with connection.transaction(), connection.cursor("limit", binary=True) as cursor:
        cursor.execute(
            "SELECT position, asset, accounts, units FROM posting ORDER BY position, asset"
        )
        while rows := cursor.fetchmany(journal.BATCH_ROWS):
            count += len(rows)
    return round(count / (time.perf_counter() - began))


def _peer(connection: Connection) -> int:
    """beancount's directives and printer, on postings that were read and named before."""
    with connection.transaction():
        batch = next(journal._transactions(connection, POSTINGS[Size.FULL]))[:PEER_ROWS]
    began = time.perf_counter()
    for one in batch:
        lines = [
            data.Posting(
                account, amount.Amount(Decimal(units), COMMODITY[one.asset]), None, None, None, None
            )
            for account, units in one.lines
        ]
        meta = data.new_metadata("<books>", 0, {"position": Decimal(one.position)})
        day = date.fromisoformat(one.day)
        no: frozenset[str] = frozenset()
        printer.format_entry(data.Transaction(meta, day, "*", None, one.topic, no, no, lines))
    return round(len(batch) / (time.perf_counter() - began))


def _export(connection: Connection, form: Form, folder: Path, server: int) -> dict[str, Any]:
    began, spent = time.perf_counter(), cpu.Spent(server)
    with (folder / form.value).open("wb") as file, spent.counted() as operations:
        done = journal.export(connection, form, file.write)
        size, operations.done = file.tell(), done.postings
    seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 2),
        "processor_ns": spent.each(),
        "postings_per_second": round(done.postings / seconds),
        "bytes": size,
    }


def _checked(form: Form, folder: Path) -> dict[str, Any]:
    """What the tool says, in which time; `accepted` None where it is not installed."""
    path = folder / form.value
    bean_check = Path(sys.executable).with_name("bean-check")
    hledger = shutil.which("hledger")
    if form is Form.BEANCOUNT:
        command = [str(bean_check), "--no-cache", str(path)]
    elif hledger is None:
        return {"accepted": None, "tool_seconds": None}
    else:
        command = [hledger, "-f", str(path), "check", "--strict", "ordereddates"]
    began = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TOOL_SECONDS_MAX
    )
    said = (done.stdout + done.stderr).strip()
    return {
        "accepted": done.returncode == 0 and not said,
        "tool_seconds": round(time.perf_counter() - began, 1),
        "said": said[:300],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    print(json.dumps(run(size_asked(__doc__, arguments)), indent=2))


if __name__ == "__main__":
    main()
