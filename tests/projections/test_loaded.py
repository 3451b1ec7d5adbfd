"""Views that are computed from an export alone are the operator's, row for row."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from nacl.signing import SigningKey

from api.audit.loading import load_bundle
from domain.metering import report
from domain.stream import Stream
from ledger.bundle.export import export_bundle
from ledger.bundle.verify import VerifyReport, verify_bundle
from ledger.log import usage
from ledger.tree import cut, trees
from ledger.tree.checkpoint import Signer, VerifierKey
from projections import tables
from projections.tables import PROJECTIONS
from tests.conftest import Databases, fresh
from tests.projections.reports import HOUR_US, START_US, make_report
from tests.projections.story import Size, Writer, story
from tests.scenes.audit import LOG_SEED, ORIGIN

KEY = VerifierKey(ORIGIN, bytes(SigningKey(LOG_SEED).verify_key))
NODES, REPORTS = 3, 5
NO_LIMITS = """
    ALTER TABLE account DROP CONSTRAINT account_limit;
    ALTER TABLE posting DROP CONSTRAINT posting_limit
"""
"""The story is told and not decided: some of its accounts draw on nothing."""


def _reports(number: int) -> list[tuple[int, usage.Item]]:
    """Of one node of the story, one after the other, with the time of their receipt."""
    node, public = f"node_{number:032x}", bytes.fromhex(f"{number:064x}")
    start = prev = report.genesis(node, public)
    found = []
    for seq in range(1, REPORTS + 1):
        at_us = START_US + seq * (HOUR_US // 4)
        signed = make_report(node, seq, start_us=at_us, length_us=HOUR_US // 6)
        signed = signed.replace(b"00" * 32, prev.hex().encode(), 1)
        item = usage.item(
            node, seq, prev, signed, f"key_{number}", bytes(64), start, int(seq == REPORTS)
        )
        found.append((START_US + 24 * HOUR_US + seq, item))
        prev = report.report_hash(signed)
    return found


@pytest.fixture(scope="module")
def operator(postgres: Databases, template: str) -> Generator[str, None, None]:
    """The address of a database with the story, and reports that follow one another."""
    address = postgres.create_database("operator_of_the_story", template=template)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(NO_LIMITS)
        writer = Writer(connection, may_owe=True)
        writer.write(story(Size()))
        usage.prepare(connection)
        sent = [each for number in range(NODES) for each in _reports(number)]
        for at_us in sorted({at_us for at_us, _ in sent}):
            usage.append(connection, [item for at, item in sent if at == at_us], at_us)
        trees.follow_all(connection)
        writer.write([(Stream("pins", "usage"), cut.pin(connection).fact(writer.recorded_us))])
        tables.step_all(connection)
    yield address
    postgres.drop_database("operator_of_the_story")


@pytest.fixture(scope="module")
def bundle(operator: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("story")
    (folder / "signed").touch()
    with (
        psycopg.connect(operator, autocommit=True) as connection,
        Signer(folder / "signed", ORIGIN, LOG_SEED) as signer,
    ):
        trees.follow_all(connection)
        trees.publish_checkpoint(connection, signer, START_US)
    export_bundle(operator, folder / "bundle", KEY, "0.1.0")
    return folder / "bundle"


def verified(bundle: Path) -> VerifyReport:
    """With problems: the story is told, and its governors sign nothing."""
    return verify_bundle(bundle, key=str(KEY))


def _digests(address: str) -> dict[str, Any]:
    with psycopg.connect(address, autocommit=True) as connection:
        return {each.name: tables.digest(connection, each.schema, seed=7) for each in PROJECTIONS}


def test_every_view_of_a_loaded_export_has_the_operators_rows(
    postgres: Databases, template_without_views: str, operator: str, bundle: Path, tmp_path: Path
) -> None:
    with fresh(postgres, template_without_views) as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(NO_LIMITS)
        loaded, _ = load_bundle(address, tmp_path, bundle, verified(bundle))
        wanted, found = _digests(operator), _digests(address)
        assert (loaded.facts_before, loaded.reports_before) == (0, 0)
        assert loaded.reports == NODES * REPORTS
        empty = {
            f"{name}.{table}"
            for name, digest in found.items()
            for table, (rows, _) in digest.items()
            if not rows
        }
        assert empty == {"fleet.holding"}, "everything was released at the end of the story"
        assert found == wanted
        # A copy exports what it was loaded from, byte for byte; loaded again, it stays as it is.
        export_bundle(address, tmp_path / "again", KEY, "0.1.0")
        for path in (path for path in bundle.rglob("*") if path.is_file()):
            assert (tmp_path / "again" / path.relative_to(bundle)).read_bytes() == path.read_bytes()
        loaded, _ = load_bundle(address, tmp_path, bundle, verified(bundle))
        assert (loaded.facts_before, loaded.reports_before) == (loaded.facts, loaded.reports)
        assert _digests(address) == wanted
