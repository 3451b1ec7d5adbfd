"""The spool as somebody beside its agent sees it: read only, and never in the agent's way."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.metering import report
from node_reporter.reports.spool import CAP_BYTES, ROW_BYTES
from node_reporter.reports.spool_file import unpacked

FLAGGED_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Flagged:
    """A report that the server stored and that earned nothing. `us`: the leased time in it, of
    whole GPUs; None where that cannot be read from it any more.
    """

    seq: int
    flags: str
    rule: str
    us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolView:
    """`fill_ppm` None: there is no spool yet. `why`: what keeps it from being read."""

    why: str = ""
    fill_ppm: int | None = None
    waiting: int = 0
    unsigned: int = 0
    lost_reports: int = 0
    lost_rows: int = 0
    flagged: tuple[Flagged, ...] = ()


def look(path: Path) -> SpoolView:
    """Raises nothing: what cannot be read is said."""
    if not path.exists():
        return SpoolView()
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            return _look(db)
    except sqlite3.Error as error:
        return SpoolView(why=f"{path}: {error}")


def _look(db: sqlite3.Connection) -> SpoolView:
    def one(query: str) -> int:
        return int(db.execute(query).fetchone()[0])

    used = one("SELECT coalesce(sum(length(body)), 0) FROM report WHERE state = 0")
    used += ROW_BYTES * one("SELECT count(*) FROM row")
    return SpoolView(
        fill_ppm=used * 1_000_000 // CAP_BYTES,
        waiting=one("SELECT count(*) FROM report WHERE state = 0"),
        unsigned=one("SELECT count(*) FROM row WHERE is_open < 2"),
        lost_reports=one("SELECT count(*) FROM report WHERE state = 2"),
        lost_rows=one("SELECT count(*) FROM row WHERE is_open = 2"),
        flagged=tuple(_flagged(db)),
    )


def _flagged(db: sqlite3.Connection) -> Iterator[Flagged]:
    query = "SELECT seq, flags, body FROM report WHERE flags IS NOT NULL ORDER BY seq DESC LIMIT ?"
    for seq, flags, stored in db.execute(query, (FLAGGED_MAX,)):
        try:
            body = unpacked(stored)
        except ValueError:
            yield Flagged(seq=seq, flags=str(flags), rule="damaged here", us=None)
            continue
        yield Flagged(seq=seq, flags=str(flags), rule=_rule(body), us=_leased_us(body))


def _rule(body: bytes) -> str:
    """The first rule of the format that it breaks, as the reference parser names it."""
    try:
        report.parse(body)
    except report.ReportInvalid as broken:
        return f"{broken.rule} at {broken.pointer}"
    return "content"


def _leased_us(body: bytes) -> int | None:
    """Time under leases in a report that may break any rule, as far as it can be made out."""
    try:
        known = json.loads(body)
        count, cols = known["n"], known.get("cols", {})
        columns = [_column(cols[name], count) for name in ("len_us", "lease", "device")]
        shares = [int(device["share_ppm"]) for device in known["devices"]]
        leased_us = sum(
            int(length) * shares[device] // report.PPM
            for length, lease, device in zip(*columns, strict=True)
            if lease is not None
        )
        return int(leased_us)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None


def _column(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, list) else [value] * min(count, report.ROWS_MAX)
