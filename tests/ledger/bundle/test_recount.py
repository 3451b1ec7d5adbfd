"""`audit verify` decides every charge of a resource again, and finds what an operator forged (R-7).

One lease, three reports, two charges; each forgery is signed by the operator's own key, so that
leaves, chains, roots and signatures all agree.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from domain.fleet.node import NodeKeyConfirmed
from domain.lease.funds import EscrowPart
from domain.lease.lease import LeaseOpened
from domain.leasing.other_resources import AccrueResource, RefusedRow, ResourceAccrued, stream_of
from domain.metering import report
from domain.metering.report import lane_of
from domain.metering.resources import MeteredRow, ResourceRow
from domain.money import credit
from domain.prices.tariff import MeterRate
from domain.stream import Stream
from ledger.bundle import parquet
from ledger.bundle.export import export_bundle
from ledger.bundle.recount import LaneRecount, Recount
from ledger.bundle.verify import VerifyReport, verify_bundle
from ledger.log import codec
from ledger.log.chain import stored_body
from ledger.log.report_rows import used_by
from ledger.log.usage import StoredReport
from ledger.tree.checkpoint import VerifierKey
from tests.conftest import Databases
from tests.domain.scenes.market import HOUR_US, LEASE, NODE, NOON_US, OWNER
from tests.domain.scenes.metered import agreed
from tests.given import Scene
from tests.independent import resources_sql
from tests.scenes.audit import LOG_SEED, ORIGIN, Node, open_scene

KEY = VerifierKey(ORIGIN, bytes(SigningKey(LOG_SEED).verify_key))
MINUTE_US = 60_000_000
LANE = lane_of(NODE)
Facts = list[tuple[Stream[Any], Any]]


def signed(seq: int, first: int, minutes: int, **changes: Any) -> report.Report:
    """A report of so many minutes of the lease, a core of it busy."""
    rows = tuple(
        ResourceRow(
            lease=0,
            mono_start_us=minute * MINUTE_US,
            len_us=MINUTE_US,
            wall_minus_mono_us=NOON_US,
            cpu_us=MINUTE_US + minute,
            memory_byte_s=None,
            received_bytes=5,
            sent_bytes=None,
        )
        for minute in range(first, first + minutes)
    )
    told = report.Report(
        node=NODE,
        seq=seq,
        prev="0" * 64,
        boot="00000000-0000-4000-8000-000000000000",
        agent="test",
        mono_us=(first + minutes) * MINUTE_US,
        wall_us=NOON_US + (first + minutes) * MINUTE_US,
        clock_offset_us=0,
        leases=(LEASE,),
        resources=rows,
    )
    return replace(told, **changes)


REPORTS = (signed(1, 0, 60), signed(2, 60, 30), signed(3, 90, 30))
RECEIVED_US = tuple(NOON_US + one.mono_us for one in REPORTS)


def stored(position: int, told: report.Report, flags: int = 0) -> StoredReport:
    body = stored_body(report.encode(told), "k", bytes(64))
    return StoredReport(LANE, position, NODE, told.seq, body, flags, RECEIVED_US[position - 1])


def rows_of(position: int, told: report.Report) -> list[MeteredRow]:
    """As the server reads them."""
    found = (one.metered("cpu") for one in used_by(stored(position, told)))
    return [one for one in found if one is not None]


def honest() -> Scene:
    """Two charges: of the first report, and of the two after it."""
    scene = agreed()
    for hours, read in ((1, (1,)), (2, (2, 3))):
        rows = tuple(row for one in read for row in rows_of(one, REPORTS[one - 1]))
        at_us = NOON_US + hours * HOUR_US + MINUTE_US
        scene = scene.after(AccrueResource(lease_id=LEASE, meter="cpu", rows=rows, at_us=at_us))
    return scene


FACTS: Facts = list(honest().past)


def recounted(facts: Facts, reports: tuple[report.Report, ...] = REPORTS) -> list[str]:
    """What is wrong with a log of these facts and reports."""
    work = Recount()
    found = []
    for position, (stream, fact) in enumerate(facts, start=1):
        name, body = codec.encode(fact, "test", "00")
        found += list(work.fact(position, stream.uuid, name, body))
    lane = work.lane(LANE)
    for position, told in enumerate(reports, start=1):
        one = stored(position, told)
        answer = lane.report(position, NODE, one.signed, one.flags, one.recorded_us)
        found += [what for _, what in answer]
    return found + [what for _, what in lane.end(len(reports))]


def changed(change: Callable[[ResourceAccrued], Any], which: int = -1) -> Facts:
    """One of the charges changed; 0 is the first."""
    at = [n for n, (_, fact) in enumerate(FACTS) if isinstance(fact, ResourceAccrued)][which]
    stream, fact = FACTS[at]
    return [*FACTS[:at], (stream, change(fact)), *FACTS[at + 1 :]]


def one_more(fact: ResourceAccrued) -> ResourceAccrued:
    """A core-second more, and its price, shared and drawn as it must be."""
    units = fact.charge.units + 10
    parts = replace(fact.parts, provider=fact.parts.provider + 10)
    (drawn,) = fact.drawn
    return replace(
        fact,
        measured=fact.measured + 1_000_000,
        quantity=fact.quantity + 1,
        quantity_new=fact.quantity_new + 1,
        charge=credit(units),
        charge_new=credit(fact.charge_new.units + 10),
        parts=parts,
        parts_new=replace(fact.parts_new, provider=fact.parts_new.provider + 10),
        drawn=(replace(drawn, amount=credit(drawn.amount.units + 10)),),
    )


FORGERIES: dict[str, Callable[[ResourceAccrued], Any]] = {
    "measured is": one_more,
    "time_us is": lambda fact: replace(fact, time_us=fact.time_us + 1),
    "parts is": lambda fact: replace(
        fact,
        parts=replace(
            fact.parts, provider=fact.parts.provider + 1, platform=fact.parts.platform - 1
        ),
    ),
    "rate is": lambda fact: replace(fact, rate=MeterRate("cpu", credit(1), 3_600)),
    "refused is": lambda fact: replace(fact, refused=(RefusedRow(2, "overlap", 7),)),
    "rows is": lambda fact: replace(fact, rows=fact.rows + 1),
    "mark is": lambda fact: replace(fact, mark=None),
    "through_position is": lambda fact: replace(fact, at_us=NOON_US + HOUR_US + 31 * MINUTE_US),
    "after_position is": lambda fact: replace(fact, after_position=2),
    "node_id is": lambda fact: replace(fact, node_id="node_bbbbbbbb"),
    "account_id is": lambda fact: replace(fact, account_id=OWNER),
    "drawn is": lambda fact: replace(fact, drawn=(EscrowPart("card", fact.charge_new),)),
    "a charge in the stream of another": lambda fact: replace(fact, meter="network"),
}


def test_what_nobody_forged_is_counted_again_and_nothing_is_wrong() -> None:
    assert recounted(FACTS) == []
    charges = [fact for _, fact in FACTS if isinstance(fact, ResourceAccrued)]
    assert [(one.rows, one.through_position, one.refused) for one in charges] == [
        (60, 1, ()),
        (60, 3, ()),
    ]
    assert charges[1].measured == sum(MINUTE_US + minute for minute in range(120))


@pytest.mark.parametrize("what", FORGERIES)
def test_what_an_operator_forged_of_a_charge_is_named(what: str) -> None:
    found = recounted(changed(FORGERIES[what]))
    assert any(what in one for one in found), found


def test_a_charge_that_nothing_was_signed_for_is_named() -> None:
    silent = tuple(replace(one, resources=()) for one in REPORTS)
    assert [one for one in recounted(FACTS, silent) if "give no charge" in one]
    other = tuple(replace(one, leases=("lease_22222222",)) for one in REPORTS)
    assert len(recounted(FACTS, other)) == 2


def test_a_row_that_was_left_out_or_told_less_is_named() -> None:
    less = replace(REPORTS[1], resources=REPORTS[1].resources[1:])
    assert any("rows is 60" in one for one in recounted(FACTS, (REPORTS[0], less, REPORTS[2])))


def test_a_report_that_breaks_a_rule_of_the_form_tells_nothing_whatever_its_flag_says() -> None:
    rows = REPORTS[0].resources
    twice = replace(REPORTS[0], resources=(rows[0], *rows))
    found = recounted(FACTS, (twice, *REPORTS[1:]))
    assert any("give no charge" in one for one in found)


def test_facts_that_follow_from_nothing_are_named_and_stop_no_count() -> None:
    """A log whose lease was never asked for, one without a tariff, a body of another form."""
    for name in ("LeaseRequested", "LeaseReserved", "TariffPublished"):
        without = [(stream, fact) for stream, fact in FACTS if type(fact).__name__ != name]
        assert recounted(without), name
    nobody_asked = [(one, fact) for one, fact in FACTS if type(fact).__name__ != "LeaseRequested"]
    assert "cpu of lease_11111111: a charge of a lease that agreed to none" in recounted(
        nobody_asked
    )
    work = Recount()
    (found,) = work.fact(1, stream_of(LEASE, "cpu").uuid, "resource.accrued.v1", b'{"lease_id":7}')
    assert "not a fact of this version" in found


def test_reports_behind_the_last_pin_are_said_to_be_missing_and_not_taken_for_forged() -> None:
    work = Recount()
    for position, (stream, fact) in enumerate(FACTS, start=1):
        assert list(work.fact(position, stream.uuid, *codec.encode(fact, "test", "00"))) == []
    one = stored(1, REPORTS[0])
    lane = work.lane(LANE)
    assert list(lane.report(1, NODE, one.signed, 0, one.recorded_us)) == []
    assert list(lane.end(1)) == []
    assert (lane.counted, lane.unread) == (1, 1)


@pytest.mark.parametrize("facts", [FACTS, changed(one_more)], ids=["honest", "forged"])
def test_a_count_that_goes_on_after_any_report_comes_to_the_same(facts: Facts) -> None:
    work = Recount()
    for position, (stream, fact) in enumerate(facts, start=1):
        list(work.fact(position, stream.uuid, *codec.encode(fact, "test", "00")))
    told = [stored(at, one) for at, one in enumerate(REPORTS, start=1)]

    def counted(lane: LaneRecount, first: int, last: int) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for at, one in enumerate(told[first:last], start=first + 1):
            found += lane.report(at, NODE, one.signed, 0, one.recorded_us)
        return found

    whole = work.lane(LANE).anew()
    wrong = counted(whole, 0, len(told)) + list(whole.end(len(told)))
    assert bool(wrong) == (facts != FACTS)
    for stop in range(len(told) + 1):
        before, after = work.lane(LANE).anew(), work.lane(LANE).anew()
        found = counted(before, 0, stop)
        after.go_on(json.loads(json.dumps(before.told())))
        found += counted(after, stop, len(told)) + list(after.end(len(told)))
        assert (found, after.counted, after.unread) == (wrong, whole.counted, whole.unread)


# --- a whole export ---------------------------------------------------------------------------


def exported(postgres: Databases, template: str, folder: Path, facts: Facts) -> Path:
    """A bundle with these facts and the three reports, signed as an operator signs one."""
    name = f"recount_{folder.name}"[:40].lower()
    conninfo = postgres.create_database(name, template=template)
    scene = open_scene(conninfo)
    node = Node(NODE, SigningKey(bytes(32)), "k2")
    with closing(scene.conn):
        scene.facts(facts)
        public = {"key_id": node.key_id, "public_key": node.public.hex()}
        scene.fact(
            Stream("node", NODE), NodeKeyConfirmed(node_id=NODE, by="test", at_us=NOON_US, **public)
        )
        for told, received_us in zip(REPORTS, RECEIVED_US, strict=True):
            node.seq += 1
            scene.now_us = received_us
            scene.send(node.signed(report.encode(replace(told, prev=node.head.hex()))))
        scene.pin()
        scene.sign(folder)
        export_bundle(conninfo, folder / "bundle", KEY, "0.1.0")
    postgres.drop_database(name)
    return folder / "bundle"


@pytest.fixture(scope="module")
def original(postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(postgres, template, tmp_path_factory.mktemp("honest"), FACTS)


def test_an_export_is_counted_again_by_the_verifier_and_by_sql(original: Path) -> None:
    found = verify_bundle(original)
    assert found.ok, found
    assert (found.charges, found.charges_unread) == (2, 0)
    assert "2 charges of resources counted again" in str(found)
    assert resources_sql.differences(original) == []


def test_a_forged_charge_in_an_export_that_its_operator_signed_is_found_twice(
    postgres: Databases, template: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    facts = changed(one_more)
    bundle = exported(postgres, template, tmp_path_factory.mktemp("forged"), facts)
    found: VerifyReport = verify_bundle(bundle, key=str(KEY))
    position = 1 + next(n for n, (_, fact) in enumerate(facts) if fact != FACTS[n][1])
    assert found.first_bad is not None
    assert (found.first_bad.where, found.first_bad.position) == ("market", position)
    assert "measured is" in str(found)
    assert (position, "counted and refused are not the sum of the rows") in (
        resources_sql.differences(bundle)
    )


def unsigned(folder: Path, facts: Facts) -> Path:
    """The files of a bundle that the second implementation reads, of these facts."""
    (folder / "log").mkdir()
    none = bytes(32)
    market = [
        (position, stream.uuid.bytes, position, *codec.encode(fact, "test", "00"), none, none, 0)
        for position, (stream, fact) in enumerate(facts, start=1)
    ]
    parquet.write_log(folder, "log/market", parquet.MARKET, market)
    usage = [
        (LANE, one.position, NODE, one.node_seq, "n", one.body, none, none, 0, one.recorded_us)
        for one in (stored(at, told) for at, told in enumerate(REPORTS, start=1))
    ]
    parquet.write_log(folder, f"log/usage-{LANE}", parquet.USAGE, usage)
    return folder


def opened_later(facts: Facts) -> Facts:
    return [
        (stream, replace(fact, opened_at_us=NOON_US + MINUTE_US))
        if isinstance(fact, LeaseOpened)
        else (stream, fact)
        for stream, fact in facts
    ]


SQL_FINDS: dict[str, Facts] = {
    "read after another place": changed(lambda fact: replace(fact, after_position=2)),
    "other rows than the reports": changed(lambda fact: replace(fact, rows=fact.rows + 1)),
    "counted and refused are not": changed(
        lambda fact: replace(fact, refused=(RefusedRow(2, "overlap", 7),))
    ),
    "more is counted than ran inside": opened_later(FACTS),
    "other units than were measured": changed(
        lambda fact: replace(fact, quantity=fact.quantity + 1)
    ),
    "another price than its rate": changed(
        lambda fact: replace(fact, charge=credit(fact.charge.units + 1))
    ),
}


@pytest.mark.parametrize("what", SQL_FINDS)
def test_each_equation_of_the_second_implementation_can_break(what: str, tmp_path: Path) -> None:
    found = resources_sql.differences(unsigned(tmp_path, SQL_FINDS[what]))
    assert any(one.startswith(what) for _, one in found), found


def test_sql_finds_nothing_in_what_nobody_forged(tmp_path: Path) -> None:
    assert resources_sql.differences(unsigned(tmp_path, FACTS)) == []
