"""Every tampering that is drawn is found by the command that an auditor or an operator would run.

    logs, usage, books    one row or more of their tables, by a superuser without any constraint:
                          what `tallystick drill` proves of a restored database
    views                 the same of their rows: the drill builds them anew and compares
    exports               bytes of its files, or rows with a manifest that agrees: `audit verify`
    backups               bytes of its files: `backup --check`, `drill` and `restore`

A tail that is cut off with all that tells of it (heads, trees, tiles, signed heads) is found by the
head that was published before, or by the last pin; what nobody has published or pinned yet can be
cut off unseen, for two minutes at most (promise P7).

Not drawn is what means nothing or is under no hash: folded states and answers (`market_snapshots`,
`command`: any row may be deleted at any time), where a view has read to and what it was made by
(`position`, `definition`: a step or a rebuild puts them right), when a row arrived (`recorded_us`),
the second body of an equivocation (`usage_evidence`), a signed head that is gone from the list of
those handed out (`checkpoint`: whoever got it has it, and no proof reads it), files that a bundle
does not name, and the WAL behind a backup, whose records PostgreSQL sums itself
(`tests/api/backup/test_backup.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from api.backup.archive import Archive, BackupUnusable
from api.backup.programs import Programs
from ledger.bundle import parquet
from ledger.bundle.verify import verify_bundle
from ledger.log import rebooked
from ledger.tree import kept, merkle, recompute, trees
from projections import tables
from tests.conftest import Databases
from tests.ledger.bundle.test_verify import (
    market_file,
    rechain_lane,
    rechain_market,
    resign,
    rewrite,
)
from tests.passes import SUITES
from tests.seeds.scenes import postgres_with_views
from tests.tampering.drawn import (
    ATTEMPTS,
    KINDS,
    NothingToChange,
    Table,
    change_files,
    changed,
    copied,
    defenceless,
)
from tests.tampering.scene import BOOKS, KEY, LABEL, LOGS, USAGE, Scene, built

Draw = Random
Found = tuple[str, str]
"""What was done, and what the command said; empty if it found nothing."""


# --- what the commands say --------------------------------------------------------------------


def _logs_say(scene: Scene) -> str:
    found = recompute.recompute(scene.market, [scene.head])
    notes = kept.note_faults(scene.market, KEY, trees.rotations(scene.market))
    return "; ".join([*found.problems, *notes])


def _books_say(scene: Scene) -> str:
    return "; ".join(rebooked.faults(scene.market))


def _export_says(folder: Path, root: Path) -> str:
    found = verify_bundle(folder, root=root, key=str(KEY))
    return "" if found.ok else str(found.first_bad)


def _backup_says(folder: Path) -> str:
    archive = Archive(folder)
    try:
        chain = archive.chain(LABEL)
        return "; ".join(archive.faults(chain, Programs(durable=False), lambda *_: None))
    except BackupUnusable as unusable:
        return str(unusable)


# --- the tamperings ---------------------------------------------------------------------------


def _logs(scene: Scene, kind: str, draw: Draw) -> Found:
    try:
        if kind == "truncate":
            done = _cut_market(scene, draw)
        else:
            table = draw.choice(list(LOGS))
            if (table, kind) == ("checkpoint", "delete"):
                raise NothingToChange
            done = scene.drawn[table].change(kind, draw)
        return done, _logs_say(scene)
    finally:
        scene.restore(LOGS)


def _cut_market(scene: Scene, draw: Draw) -> str:
    """The last facts, and all that the database tells of them."""
    last = draw.randrange(1, scene.head.size)
    run = scene.market.execute
    run("DELETE FROM market_events WHERE notification_id > %s", (last,))
    run(
        "UPDATE market_events_head SET pos = notification_id, hash = chain FROM market_events"
        " WHERE notification_id = %s",
        (last,),
    )
    run("DELETE FROM checkpoint WHERE size > %s", (last,))
    _uproot(scene, trees.MARKET)
    return f"cut the market log to {last} of {scene.head.size} facts"


def _uproot(scene: Scene, log: int) -> None:
    scene.market.execute("DELETE FROM tree_tile WHERE log = %s", (log,))
    scene.market.execute(
        "UPDATE tree_head SET size = 0, root = %s WHERE log = %s", (merkle.EMPTY_ROOT, log)
    )


def _usage(scene: Scene, kind: str, draw: Draw) -> Found:
    try:
        if kind == "truncate":
            done = _cut_lane(scene, draw)
        else:
            done = scene.drawn[draw.choice(list(USAGE))].change(kind, draw)
        return done, _logs_say(scene)
    finally:
        scene.restore(LOGS | USAGE)


def _cut_lane(scene: Scene, draw: Draw) -> str:
    """The last reports of a lane, and all that the database tells of them."""
    lanes = scene.market.execute("SELECT lane, pos FROM usage_head WHERE pos > 1").fetchall()
    lane, size = draw.choice(lanes)
    last = draw.randrange(1, size)
    run = scene.market.execute
    for table in ("usage_event", "usage_key"):
        query = f"DELETE FROM {table} WHERE lane = %s AND position > %s"
        run(query.encode(), (lane, last))
    run(
        "UPDATE usage_head h SET pos = e.position, hash = e.chain FROM usage_event e"
        " WHERE e.lane = h.lane AND e.lane = %s AND e.position = %s",
        (lane, last),
    )
    body = kept.Lane(lane)
    for at, node, number, stored, flags in run(
        "SELECT position, node_id, node_seq, body, flags FROM usage_event WHERE lane = %s"
        " ORDER BY position",
        (lane,),
    ):
        body.take(at, node, number, bytes(stored), flags)
    for node, (number, told) in body.nodes().items():
        run(
            "UPDATE usage_node SET last_node_seq = %s, last_hash = %s WHERE node_id = %s",
            (number, told, node),
        )
    _uproot(scene, lane)
    return f"cut lane {lane} to {last} of {size} reports"


def _books(scene: Scene, kind: str, draw: Draw) -> Found:
    try:
        done = scene.drawn[draw.choice(list(BOOKS))].change(kind, draw)
        return done, _books_say(scene)
    finally:
        scene.restore(BOOKS)


def _views(scene: Scene, kind: str, draw: Draw) -> Found:
    """Building it anew puts back what was changed."""
    projection, table = draw.choice(scene.view_tables)
    name = f"{projection.schema}.{table}"
    defenceless(scene.views, name)
    done = Table(scene.views, name).change(kind, draw)
    differing = tables.rebuild(scene.views, projection).differing
    return done, "; ".join(one for one in differing or () if one == table)


def _exports(scene: Scene, kind: str, draw: Draw) -> Found:
    folder = copied(scene.bundle, scene.folder / "bundle-changed")
    if draw.random() < 0.5:
        done = change_files(kind, draw, folder)
    else:
        done = _rewritten(folder, kind, draw)
    return done, _export_says(folder, scene.folder / "head")


def _rewritten(folder: Path, kind: str, draw: Draw) -> str:
    """Rows of a log in the export, whose manifest agrees; now and then its hashes, too, and the
    signature of a thief of the log's key.
    """
    path = draw.choice(sorted((folder / "log").iterdir()))
    is_market = path == market_file(folder)
    with_chain, with_key = draw.random() < 0.5, draw.random() < 0.5

    def change(rows: list[list[Any]]) -> None:
        before = [list(row) for row in rows]
        at = draw.randrange(len(rows))
        if kind == "flip":
            column = draw.randrange(7 if is_market else 9)  # the tenth says when a report arrived
            rows[at][column] = changed(
                draw, rows[at][column], "text" if isinstance(rows[at][column], str) else "byte"
            )
        elif kind == "delete":
            del rows[at]
        elif kind == "swap":
            other = draw.randrange(len(rows))
            rows[at], rows[other] = rows[other], rows[at]
        elif kind == "insert":
            rows.insert(at, list(draw.choice(rows)))
        else:
            del rows[at:]
        if with_chain and rows:
            (rechain_market if is_market else rechain_lane)(rows)
        if rows == before or not rows:
            raise NothingToChange

    rewrite(folder, path, parquet.MARKET if is_market else parquet.USAGE, change)
    if is_market and with_chain and with_key:
        resign(folder)
    return f"{kind} rows of {path.name}, chain {with_chain}, signed {with_key}"


def _backups(scene: Scene, kind: str, draw: Draw) -> Found:
    folder = copied(scene.backup, scene.folder / "backup-changed")
    done = change_files(kind, draw, folder)
    return done, _backup_says(folder)


AREAS: dict[str, Callable[[Scene, str, Draw], Found]] = {
    "logs": _logs,
    "usage": _usage,
    "books": _books,
    "views": _views,
    "exports": _exports,
    "backups": _backups,
}


# --- the drill --------------------------------------------------------------------------------


@contextmanager
def seeded_scene() -> Generator[Scene, None, None]:
    with postgres_with_views() as (postgres, template), built(postgres, template) as scene:
        yield scene


def run(seed: int, scene: Scene) -> None:
    """One tampering, which is found."""
    draw = Random(seed)
    area = list(AREAS)[seed % len(AREAS)]
    for _ in range(ATTEMPTS):
        try:
            done, said = AREAS[area](scene, draw.choice(KINDS), draw)
        except NothingToChange:
            continue
        assert said, f"{area}: not found: {done}"
        return
    raise AssertionError(f"{area}: nothing to change was drawn")


@pytest.fixture(scope="module")
def scene(postgres: Databases, template_with_views: str) -> Generator[Scene, None, None]:
    with built(postgres, template_with_views) as scene:
        yield scene


def test_what_nobody_changed_is_whole(scene: Scene) -> None:
    assert _logs_say(scene) == _books_say(scene) == ""
    assert _export_says(scene.bundle, scene.folder / "head") == ""
    assert _backup_says(scene.backup) == ""
    for projection, _ in scene.view_tables[:1]:
        assert tables.rebuild(scene.views, projection).differing == ()


def test_a_head_that_was_signed_of_facts_that_are_gone_is_told(scene: Scene) -> None:
    """By the database alone, where nobody gives a head from outside."""
    try:
        _cut_market(scene, Random(1))
        assert recompute.recompute(scene.market, []).problems == ()
        scene.market.execute("INSERT INTO checkpoint SELECT * FROM spare.checkpoint")
        problem, *_ = recompute.recompute(scene.market, []).problems
        assert "was signed, and they are not here" in problem
    finally:
        scene.restore(LOGS)


def test_two_heads_of_one_size_are_a_fork_whichever_of_them_is_here(scene: Scene) -> None:
    forked = replace(scene.head, root=bytes(32))
    later = [replace(one, size=scene.head.size + 1) for one in (scene.head, forked)]
    for signed, known in (([scene.head], [forked]), ([forked], [scene.head]), ([], later)):
        problems = recompute.recompute(scene.market, signed, known).problems
        assert any("two heads of" in one for one in problems), (signed, known)


def test_a_line_of_the_books_beside_those_of_the_fact_is_told(scene: Scene) -> None:
    """Of one list of a posting alone, which no constraint holds any more."""
    try:
        scene.market.execute(
            "UPDATE posting SET accounts = accounts || accounts[1]"
            " WHERE position = (SELECT min(position) FROM posting)"
        )
        assert "otherwise than its fact" in _books_say(scene)
    finally:
        scene.restore(BOOKS)


def test_a_flag_that_is_taken_from_a_report_or_put_on_one_is_told(scene: Scene) -> None:
    """Without its flag a report that breaks a rule would be paid for; no hash covers the flag."""
    swapped = scene.market.execute(
        "UPDATE usage_event SET flags = 1 - flags RETURNING lane, position, flags"
    ).fetchall()
    try:
        said = _logs_say(scene)
        assert {flags for *_, flags in swapped} == {0, 1}
        for lane, position, flags in swapped:
            why = "breaks no rule" if flags else "breaks a rule of its form and earns nothing"
            assert f"usage/{lane}: position {position} is flagged {flags}, though the" in said
            assert why in said
    finally:
        scene.restore(LOGS | USAGE)


def test_thirty_tamperings_of_thirty_are_found(scene: Scene) -> None:
    must_be_found(SUITES["tamper"].short_seeds[:30], scene)


@pytest.mark.slow("::test_thirty_tamperings_of_thirty_are_found")
def test_a_hundred_tamperings_of_a_hundred_are_found(scene: Scene) -> None:
    must_be_found(SUITES["tamper"].short_seeds, scene)


def must_be_found(seeds: range, scene: Scene) -> None:
    unseen = []
    for seed in seeds:
        try:
            run(seed, scene)
        except AssertionError as error:
            unseen.append(f"seed {seed}: {error}")
    assert unseen == []
    assert _logs_say(scene) == _books_say(scene) == "", "all was put back"
