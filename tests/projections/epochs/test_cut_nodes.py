"""What a cut says of the nodes: as of the cut, whatever is read, repeated or rebuilt later."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from domain.epochs.emission import EmissionSegment
from domain.epochs.policy import PolicyPublished
from domain.epochs.reward_terms import REWARD_TERMS
from domain.epochs.settlement import Attested, Cut, NodeCut, Openings, settle
from domain.gpu_time import GPU_HOUR_US
from domain.metering.report import Device
from domain.money import token
from projections import tables
from projections.epochs import streams
from projections.epochs.availability import AVAILABILITY
from projections.epochs.cut_nodes import read_nodes
from tests.examples import examples
from tests.projections.network import EPOCH_HOURS, VIEWS, Network, gpu, node_id

A, B = node_id(1), node_id(2)
HALF = GPU_HOUR_US // 2
QUARTER = GPU_HOUR_US // 4
SPAN = EPOCH_HOURS * GPU_HOUR_US
INVENTORY = {"name": "Simulated H200", "driver": "simulated", "power_limit_mw": 700_000}


@pytest.fixture
def network(connection: psycopg.Connection[Any]) -> Network:
    return Network(connection)


def attested(network: Network, number: int) -> dict[str, list[Attested]]:
    found = {one.node_id: list(one.attested) for one in nodes(network, number)}
    return {node_id: devices for node_id, devices in found.items() if devices}


def hours(network: Network, number: int) -> dict[str, int]:
    """Attested time by node, of an epoch."""
    return {
        who: sum(one.gpu_us for one in parts) for who, parts in attested(network, number).items()
    }


def nodes(network: Network, number: int) -> list[NodeCut]:
    """The nodes of an epoch: the same, however few rows of a view are in one slice."""
    whole = _nodes(network, number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "ROWS_MAX", 1)
        assert _nodes(network, number) == whole
    return whole


def _nodes(network: Network, number: int) -> list[NodeCut]:
    return read_nodes(network.connection, number, network.cuts[number - 1], development=True)


def test_what_a_board_was_there_counts_from_its_joining(network: Network) -> None:
    network.join(A, gpu(1))
    network.join(B, gpu(2), hour=1)
    for name, number in ((A, 1), (B, 2)):
        network.report(
            name, (Device(id=gpu(number)), 0, HALF), (Device(id=gpu(number)), 1, QUARTER)
        )
    network.close()
    network.read()
    assert attested(network, 1) == {
        A: [Attested("datacenter", 1, HALF + QUARTER, SPAN)],
        B: [Attested("datacenter", 1, QUARTER, SPAN // 2)],
    }


def test_a_board_that_joins_again_has_promised_since_the_first_time(network: Network) -> None:
    network.join(A, gpu(1))
    network.join(B, hour=1)
    network.report(A, (Device(id=gpu(1)), 0, HALF))
    network.register(B, gpu(1), hour=1)
    network.report(B, (Device(id=gpu(1)), 1, HALF))
    network.close()
    network.read()
    found = attested(network, 1)
    assert {who: (one.gpu_us, one.promised_us) for who, (one,) in found.items()} == {
        A: (HALF, SPAN // 2),
        B: (HALF, SPAN // 2),
    }


def test_a_row_that_comes_after_the_cut_counts_in_the_next_epoch_and_only_there(
    network: Network,
) -> None:
    network.join(A, gpu(1))
    one = Device(id=gpu(1))
    network.report(A, (one, 0, HALF))
    network.close()
    network.report(A, (one, 1, QUARTER))  # of epoch 1, late
    network.report(A, (one, 0, GPU_HOUR_US))  # again what had counted, and half an hour more
    network.report(A, (one, 2, QUARTER))
    network.report(A, (one, 4, QUARTER))  # of epoch 3, early
    network.close()
    network.close()
    network.read()
    assert [hours(network, number) for number in (1, 2, 3)] == [
        {A: HALF},
        {A: QUARTER + HALF + QUARTER},
        {A: QUARTER},
    ]


def test_time_that_is_held_back_for_the_next_cut_keeps_no_promise_of_that_epoch(
    network: Network,
) -> None:
    """A quarter of each epoch is too little, also where two quarters are told together."""
    network.join(A, gpu(1))
    network.join(B, gpu(2))
    one, two = Device(id=gpu(1)), Device(id=gpu(2))
    network.report(A, (one, 0, QUARTER))
    network.close()
    network.report(A, (one, 1, QUARTER), (one, 2, HALF))
    network.report(B, (two, 0, HALF), (two, 2, HALF))
    network.close()
    network.read()
    found = attested(network, 2)
    assert found[B] == [Attested("datacenter", 1, HALF, SPAN)] * 2
    assert found[A] == [  # late, a half of the half hour that it was there in epoch 1
        Attested("datacenter", 1, QUARTER, SPAN // 2),
        Attested("datacenter", 1, HALF, SPAN),
    ]


def test_parts_of_a_board_count_once_and_a_board_that_is_not_the_nodes_does_not(
    network: Network,
) -> None:
    network.join(A, gpu(1))
    parts = [Device(id=f"MIG-{n}", parent=gpu(1), shape="mig:3g.71gb") for n in (1, 2)]
    network.report(A, *((part, 0, us) for part, us in zip(parts, (HALF, QUARTER), strict=True)))
    network.report(A, (Device(id=gpu(7)), 0, GPU_HOUR_US))
    network.close()
    network.read()
    assert hours(network, 1) == {A: HALF}


def test_rows_of_leases_that_share_a_device_and_rows_sent_twice_count_once(
    network: Network,
) -> None:
    network.join(A, gpu(1))
    one = Device(id=gpu(1))
    network.report(A, (one, 0, HALF), (one, 0, QUARTER))
    network.close()
    network.read()
    assert hours(network, 1) == {A: HALF}


@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    told=st.lists(
        st.one_of(
            st.just("close"),
            st.tuples(st.sampled_from([1, 2]), st.integers(0, 5), st.integers(1, 5)),
        ),
        min_size=3,
        max_size=14,
    ),
    facts_max=st.integers(1, 5),
)
def test_every_hour_counts_once_in_the_first_epoch_whose_cut_holds_it(
    connection: psycopg.Connection[Any], told: list[Any], facts_max: int
) -> None:
    """Whatever is late or sent again, and whether the views read at once or when all is told."""
    tables.ensure(connection, VIEWS)
    connection.execute("BEGIN")
    try:
        network = Network(connection)
        network.join(A, gpu(1))
        network.join(B, gpu(2))
        reported: dict[tuple[str, int], int] = {}
        counted: dict[tuple[str, int], int] = {}
        expected: list[dict[str, int]] = []
        at_once = []
        for one in [*told, "close", "close"]:
            if one != "close":
                number, hour, quarters = one
                name = node_id(number)
                network.report(name, (Device(id=gpu(number)), hour, quarters * QUARTER))
                reported[name, hour] = reported.get((name, hour), 0) + quarters * QUARTER
                continue
            fresh: dict[str, int] = {}
            for (name, hour), us in reported.items():
                if hour < network.epochs * EPOCH_HOURS:
                    now = min(us, GPU_HOUR_US)
                    fresh[name] = fresh.get(name, 0) + now - counted.get((name, hour), 0)
                    counted[name, hour] = now
            expected.append({name: us for name, us in fresh.items() if us})
            network.close()
            if len(expected) % 2:
                network.read(facts_max)
                at_once.append((len(expected), hours(network, len(expected))))
        network.read(facts_max)
        found = [hours(network, number + 1) for number in range(len(expected))]
        assert found == expected
        assert all(expected[number - 1] == then for number, then in at_once)
    finally:
        connection.execute("ROLLBACK")


def test_a_cut_says_the_same_after_more_was_told_and_after_a_rebuild(network: Network) -> None:
    network.join(A, gpu(1))
    one = Device(id=gpu(1))
    network.report(A, (one, 0, GPU_HOUR_US), **INVENTORY)
    network.passed(A, gpu(1), 1, "reference")
    network.close()
    network.read()
    before = nodes(network, 1)
    assert before[0].attested == (Attested("datacenter", 3, GPU_HOUR_US, SPAN),)
    network.report(A, (one, 0, QUARTER), **{**INVENTORY, "driver": "real"})
    network.join(B, gpu(2))
    network.register(B, gpu(1))
    network.report(B, (one, 0, GPU_HOUR_US))  # now it is on two nodes at once
    network.close()
    network.read(1)
    assert nodes(network, 1) == before
    assert tables.rebuild(network.connection, AVAILABILITY).differing == ()
    assert nodes(network, 1) == before


def test_the_evidence_is_read_once_however_many_slices_a_cut_has(network: Network) -> None:
    for number, name in enumerate((A, B), 1):
        network.join(name, gpu(number))
        network.report(name, (Device(id=gpu(number)), 0, GPU_HOUR_US))
    network.close()
    network.read()
    connection = network.connection
    connection.execute(
        """INSERT INTO proj_reputation.day
        SELECT kind, subject_id, 'uptime', day, day, '', 43200, 86400
        FROM proj_reputation.subject CROSS JOIN generate_series(1, 3) day"""
    )
    with connection.transaction(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "ROWS_MAX", 1)
        before = _scans(connection)
        assert len(_nodes(network, 1)) == 2
        scans = {name: count - before[name] for name, count in _scans(connection).items()}
    assert scans["day"] == 2, "of nodes, and of owners"
    assert max(scans.values()) == 2


def _scans(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """How often this transaction looked through a table, or for something in it."""
    sql = """SELECT relname, seq_scan + coalesce(idx_scan, 0) FROM pg_stat_xact_user_tables
        WHERE schemaname = 'proj_reputation' AND relname IN ('day', 'evidence', 'subject')"""
    return dict(connection.execute(sql).fetchall())


def test_leased_time_that_a_renter_signed_for_before_the_cut_lifts_a_device_of_tier_2(
    network: Network,
) -> None:
    """The regions' rule: no more than was signed, none that was rented by a related party, none
    that is signed after the cut, and nothing below tier 2.
    """
    network.join(A, gpu(1))
    network.join(B, gpu(2))
    one = Device(id=gpu(1))
    network.report(A, (one, 0, GPU_HOUR_US), (one, 1, HALF), **INVENTORY)
    network.report(B, (Device(id=gpu(2)), 0, GPU_HOUR_US))
    for name, renter in ((A, "acct_renter"), (A, "acct_a"), (B, "acct_renter")):
        network.signed(network.leased(name, 0, QUARTER, renter), 0, QUARTER)
    too_little = network.leased(A, 0, QUARTER)
    network.signed(too_little, 0, QUARTER - 1)
    later = network.leased(A, 1, QUARTER)
    network.close()
    network.signed(later, 1, QUARTER)
    network.read()
    whole = GPU_HOUR_US + HALF
    assert attested(network, 1) == {
        A: [
            Attested("datacenter", 2, whole - QUARTER, -(-SPAN * (whole - QUARTER) // whole)),
            Attested("datacenter", 3, QUARTER, -(-SPAN * QUARTER // whole)),
        ],
        B: [Attested("datacenter", 1, GPU_HOUR_US, SPAN)],
    }


def test_a_farm_of_spoofed_devices_earns_nothing_for_being_available(network: Network) -> None:
    """A hundred devices that answered no challenge, and one that did: that one gets it all."""
    farm = [gpu(100 + number) for number in range(100)]
    network.join(A, gpu(1), account_id="acct_honest")
    network.join(B, *farm, account_id="acct_farm")
    network.report(
        A, (Device(id=gpu(1)), 0, GPU_HOUR_US), (Device(id=gpu(1)), 1, HALF), **INVENTORY
    )
    for first in range(0, 100, 50):
        network.report(B, *((Device(id=one), 1, GPU_HOUR_US) for one in farm[first : first + 50]))
    network.passed(A, gpu(1), 1, "reference")
    network.close()
    network.read()
    policy = PolicyPublished(
        version=1,
        epoch_length_us=SPAN,
        segments=(EmissionSegment(1, 1, 1_000),),
        hard_cap=token(1_000),
        compute_ppm=700_000,
        availability_ppm=200_000,
        treasury_ppm=100_000,
        compute_base="burned_value",
        holdback_epochs=0,
        effective_from_epoch=1,
        by="op",
        at_us=1,
        rewards=REWARD_TERMS,
        governance=None,
        proposal=None,
    )
    cut = Cut(
        epoch=1,
        cut_position=1,
        policy=policy,
        openings=Openings(unissued=1_000),
        nodes=nodes(network, 1),
    )
    settlement = settle(cut)
    farmed = settlement.cut.nodes[1].attested
    assert (len(farmed), {one.tier for one in farmed}) == (100, {1})
    assert [node.availability for node in settlement.nodes] == [200, 0]
    assert settlement.rewards == (("acct_honest", 200), ("treasury", 100))
