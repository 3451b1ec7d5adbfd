"""Loading an export: what is there afterwards, what goes on, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from nacl.signing import SigningKey

from domain.metering.report import lane_of
from ledger.beside import loaded_log
from ledger.bundle import load, parquet
from ledger.bundle.export import export_bundle
from ledger.bundle.load import LoadDiffers, Loaded, load_logs, opened
from ledger.bundle.shape import LoadRefused
from ledger.bundle.verify import verify_bundle
from ledger.log import market, usage
from ledger.tree import cut, trees
from ledger.tree.checkpoint import VerifierKey, parse_checkpoint, split_note
from tests.conftest import Databases, fresh
from tests.ledger.bundle.test_verify import Rows, adjust_manifest, market_file, rewrite
from tests.scenes.audit import LOG_SEED, ORIGIN, Scene, open_scene

KEY = VerifierKey(ORIGIN, bytes(SigningKey(LOG_SEED).verify_key))


def _written(scene: Scene, conninfo: str, folder: Path, name: str) -> Path:
    scene.pin()
    scene.sign(folder)
    export_bundle(conninfo, folder / name, KEY, "0.1.0")
    assert verify_bundle(folder / name).ok
    return folder / name


@pytest.fixture(scope="module")
def exports(
    postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[Path, Path, Path], None, None]:
    """An export, a later one of the same log, and one of another log with the same name."""
    folder = tmp_path_factory.mktemp("load")
    with fresh(postgres, template) as conninfo, closing(open_scene(conninfo).conn) as conn:
        scene = Scene(conn)
        first, second = scene.join(1), scene.join(2)
        scene.send(first.report(), second.report(), first.report())
        scene.now_us += 1_000
        scene.anything(7)
        scene.send(first.broken(), second.report())
        early = _written(scene, conninfo, folder, "early")
        scene.now_us += 1_000
        scene.send(first.report(), second.report())
        scene.anything(3)
        later = _written(scene, conninfo, folder, "later")
    other = folder / "other"
    other.mkdir()
    with fresh(postgres, template) as conninfo, closing(open_scene(conninfo).conn) as conn:
        scene = Scene(conn)
        scene.join(3)
        scene.anything(30)
        yield early, later, _written(scene, conninfo, other, "bundle")


def _loaded(conninfo: str, bundle: Path) -> Loaded:
    """Whatever was done to the bundle: by the head that lies there."""
    head = parse_checkpoint(split_note((bundle / "checkpoint").read_text())[0])
    with opened(conninfo) as keeper:
        loaded_log.require_room(keeper, head.origin)
        return load_logs(keeper, conninfo, bundle, head, loaded_log.begin)


def _end(conninfo: str, loaded: Loaded) -> None:
    """As if the views were there."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        loaded_log.end(conn, loaded.log_key, loaded.facts, key_given=True, root_given=True)


def _told(conninfo: str) -> loaded_log.LoadedLog:
    with psycopg.connect(conninfo, autocommit=True) as conn:
        told = loaded_log.read(conn)
    assert told is not None
    return told


def _standing(conninfo: str) -> Any:
    """All that the log's own tables hold, but for what each database numbers for itself."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        tables = ("market_events", "usage_event", "usage_key", "usage_node", "posting")
        return [
            *(
                conn.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3".encode()).fetchall()
                for name in tables
            ),
            market.head(conn),
            usage.lane_heads(conn),
            [trees.head(conn, log) for log in range(65)],
            cut.pin(conn),
        ]


def test_what_is_loaded_is_what_was_exported_and_a_later_export_adds_to_it(
    postgres: Databases, template: str, database: str, exports: tuple[Path, Path, Path]
) -> None:
    early, later, _ = exports
    first = _loaded(database, early)
    assert (first.facts, first.facts_before, first.reports, first.reports_before) == (10, 0, 5, 0)
    _end(database, first)
    second = _loaded(database, later)
    assert (second.facts_before, second.reports_before, second.reports) == (10, 5, 7)
    with psycopg.connect(database, autocommit=True) as conn:
        told = loaded_log.read(conn)
        assert told is not None
        assert (told.origin, told.log_key, told.facts) == (ORIGIN, str(KEY), None), "not whole yet"
        signed = trees.latest_checkpoint(conn)
    assert signed == (second.facts, (later / "checkpoint").read_text())
    with fresh(postgres, template) as at_once:
        _loaded(at_once, later)
        assert _standing(at_once) == _standing(database)


@pytest.mark.parametrize("after", range(1, 8))
def test_a_load_that_is_killed_goes_on_and_loses_and_doubles_nothing(
    postgres: Databases,
    template: str,
    exports: tuple[Path, Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    """Ended within a transaction, before its rows are compared: what it wrote is not there."""
    monkeypatch.setattr(load, "TOGETHER", 3)
    compare, left = load._require_same, [after]
    sizes: list[int] = []

    class Killed(BaseException):
        pass

    def dying(*told: Any) -> None:
        sizes.append(len(told[2]))
        left[0] -= 1
        if not left[0]:
            raise Killed
        compare(*told)

    with fresh(postgres, template) as conninfo, fresh(postgres, template) as at_once:
        monkeypatch.setattr(load, "_require_same", dying)
        with pytest.raises(Killed):
            _loaded(conninfo, exports[1])
        monkeypatch.setattr(load, "_require_same", compare)
        found = _loaded(conninfo, exports[1])
        assert found.facts_before + found.reports_before == sum(sizes[: after - 1])
        _loaded(at_once, exports[1])
        assert _standing(conninfo) == _standing(at_once)


def test_another_log_and_an_earlier_export_are_refused_and_nothing_changes(
    database: str, exports: tuple[Path, Path, Path]
) -> None:
    early, later, other = exports
    _end(database, _loaded(database, later))
    before = _standing(database)
    with pytest.raises(LoadRefused, match=r"has \d+ facts already, and the export 10"):
        _loaded(database, early)
    with pytest.raises(LoadRefused, match=r"another market position \d+ than the export"):
        _loaded(database, other)
    head = verify_bundle(early).checkpoint
    with opened(database) as keeper, pytest.raises(LoadRefused, match="another head than the one"):
        load_logs(keeper, database, later, head, loaded_log.begin)
    assert _standing(database) == before
    with psycopg.connect(database, autocommit=True) as conn:
        told = loaded_log.read(conn)
    assert told is not None
    assert told.facts == before[5], "it is as whole as it was"


def test_a_database_with_a_log_of_its_own_takes_no_export(
    database: str, exports: tuple[Path, Path, Path]
) -> None:
    with closing(open_scene(database).conn) as conn:
        Scene(conn).join(1)
        with pytest.raises(LoadRefused, match="has a log of its own"):
            _loaded(database, exports[0])
        assert loaded_log.read(conn) is None


# --- what a carrier or an operator may do to it -----------------------------------------------


def _without(rows: Rows) -> None:
    del rows[4]


def _later(rows: Rows) -> None:
    rows[2][7] += 10**9


def _unknown(rows: Rows) -> None:
    rows[3][3] = "lease.ready'; DROP TABLE market_events; --"


def _no_text(rows: Rows) -> None:
    rows[3][3] = "lease.ready.v1\0"


CHANGED: list[tuple[Callable[[Rows], None], str]] = [
    (_without, "market position 6"),
    (_later, "market position 4: the database has another fact or another time"),
    (_unknown, "market position 4: this version knows no fact"),
    (_no_text, "market position 4: this version knows no fact"),
]


@pytest.mark.parametrize(("change", "what"), CHANGED)
def test_facts_that_are_not_what_they_say_end_the_load_at_their_position(
    database: str,
    exports: tuple[Path, Path, Path],
    tmp_path: Path,
    change: Callable[[Rows], None],
    what: str,
) -> None:
    """As if it had been verified: the load believes no row that its append does not bear out."""
    bundle = tmp_path / "bundle"
    shutil.copytree(exports[0], bundle)
    rewrite(bundle, market_file(bundle), parquet.MARKET, change)
    with pytest.raises(LoadDiffers, match=what):
        _loaded(database, bundle)
    with psycopg.connect(database, autocommit=True) as conn:
        told = loaded_log.read(conn)
    assert told is not None
    assert told.facts is None, "no server answers from it"


def test_reports_that_do_not_follow_end_the_load_at_their_position(
    database: str, exports: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    bundle, node = tmp_path / "bundle", f"node_{1:032x}"
    shutil.copytree(exports[0], bundle)
    (file,) = (bundle / "log").glob(f"usage-{lane_of(node)}-*")
    rewrite(bundle, file, parquet.USAGE, lambda rows: rows.__delitem__(1))
    with pytest.raises(LoadDiffers, match=f"usage/{lane_of(node)} position 3: .*: gap"):
        _loaded(database, bundle)


def test_an_export_of_the_format_before_is_verified_and_not_loaded(
    database: str, exports: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(exports[0], bundle)
    file = market_file(bundle)
    rows = [row[:7] for row in parquet.read_log(file, parquet.MARKET)]
    parquet.write_log(bundle, "log/market", parquet.MARKET_1, rows)
    adjust_manifest(bundle, file, format=1)
    assert verify_bundle(bundle, key=str(KEY)).ok
    with pytest.raises(LoadRefused, match="format 1 does not say when its facts were recorded"):
        _loaded(database, bundle)
    with psycopg.connect(database, autocommit=True) as conn:
        assert loaded_log.read(conn) is None


# --- times, which no signature covers ---------------------------------------------------------


def _shifted(bundle: Path, to: Path) -> Path:
    """By a carrier: still in order, and the manifest agrees."""
    shutil.copytree(bundle, to)

    def shift(rows: Rows) -> None:
        for row in rows:
            row[7] += 3_600_000_000

    rewrite(to, market_file(to), parquet.MARKET, shift)
    assert verify_bundle(to, key=str(KEY)).ok
    return to


def test_other_times_load_and_are_told_by_a_hash_that_two_parties_compare(
    postgres: Databases,
    template: str,
    database: str,
    exports: tuple[Path, Path, Path],
    tmp_path: Path,
) -> None:
    honest = _loaded(database, exports[0])
    with fresh(postgres, template) as conninfo:
        other = _loaded(conninfo, _shifted(exports[0], tmp_path / "shifted"))
    assert other.checkpoint == honest.checkpoint
    assert other.times_sha256 != honest.times_sha256
    with psycopg.connect(database) as conn:
        found = conn.execute(
            "SELECT encode(sha256(string_agg(int8send(recorded_us), '' ORDER BY lane, position)),"
            " 'hex') FROM (SELECT -1 AS lane, notification_id AS position, recorded_us FROM"
            " market_events UNION ALL SELECT lane, position, recorded_us FROM usage_event) AS each"
        ).fetchone()
    assert found == (honest.times_sha256,)


def test_a_later_export_with_other_times_of_old_facts_is_refused_and_nothing_changes(
    database: str, exports: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    _end(database, _loaded(database, exports[0]))
    before = _told(database)
    assert before.facts == 10
    with pytest.raises(LoadRefused, match="another market position 1 than the export, or another"):
        _loaded(database, _shifted(exports[1], tmp_path / "shifted"))
    assert _told(database) == before


# --- a copy is no log of its own --------------------------------------------------------------

_KEYS = b"INSERT INTO key_set VALUES (true, 'm', 'f', sha256(''), sha256(''))"
_COPY = b"INSERT INTO loaded_log VALUES (true, 'o', 'k', true, true, 0)"


@pytest.mark.parametrize(("first", "second"), [(_KEYS, _COPY), (_COPY, _KEYS)])
def test_a_database_has_keys_of_a_log_or_is_a_copy_and_never_both(
    database: str, first: bytes, second: bytes
) -> None:
    """Also of two that do not see one another yet: the second one waits."""
    with psycopg.connect(database) as conn, psycopg.connect(database, autocommit=True) as other:
        conn.execute(first)
        other.execute("SET lock_timeout = '200ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute(second)
        conn.commit()
        with pytest.raises(psycopg.errors.ExclusionViolation):
            other.execute(second)


@pytest.mark.parametrize("role", ["tallystick_app", "tallystick_projections", "tallystick_audit"])
def test_no_role_of_a_server_makes_a_copy_of_a_log(database: str, role: str) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(f"SET ROLE {role}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(_COPY)


def test_names_that_are_too_long_are_refused_by_name(database: str) -> None:
    with (
        psycopg.connect(database, autocommit=True) as conn,
        pytest.raises(LoadRefused, match="more than 1000 characters"),
    ):
        loaded_log.begin(conn, "o" * 1001, "key")


def test_a_head_under_another_signature_takes_the_place_of_the_one_before(
    database: str, exports: tuple[Path, Path, Path]
) -> None:
    """What was loaded without a key may be signed by another one: the next load has the note."""
    _loaded(database, exports[0])
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("UPDATE checkpoint SET note = 'signed by another'")
        _loaded(database, exports[0])
        assert trees.latest_checkpoint(conn) == (10, (exports[0] / "checkpoint").read_text())


def test_columns_are_those_of_the_format_that_the_manifest_says(
    database: str, exports: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(exports[0], bundle)
    file = market_file(bundle)
    adjust_manifest(bundle, file, format=1)
    assert "other columns" in str(verify_bundle(bundle).first_bad)
    rows = [row[:7] for row in parquet.read_log(file, parquet.MARKET)]
    parquet.write_log(bundle, "log/market", parquet.MARKET_1, rows)
    adjust_manifest(bundle, file, format=2)
    assert "other columns" in str(verify_bundle(bundle).first_bad)
    with pytest.raises(LoadDiffers, match=r"market position 1: .*other columns"):
        _loaded(database, bundle)
