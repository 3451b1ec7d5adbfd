"""What the views answer: keys, leases and balances as of any position, earnings, epochs, facts."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from typing import Any

import psycopg
import pytest

from domain.fleet import revenue_share
from domain.lease import lease
from domain.money import PPM
from ledger.log import codec
from projections import tables
from projections.audit import audit_index
from projections.epochs import burning, epochs, rewards
from projections.income import earnings, movements, statements
from projections.lease import leases
from projections.parties import access
from tests.conftest import Databases
from tests.projections.story import PRICE, START_US, Size, story
from tests.projections.views import views

SIZE = Size(nodes=3, devices=2, leases=6, hours=3)
LEASE = f"lease_{1:032x}"


@pytest.fixture(scope="module")
def connection(postgres: Databases, template: str) -> Any:
    with views(postgres, template, story(SIZE)) as connection:
        yield connection


def _position(connection: psycopg.Connection[Any], topic: str, lease_id: str = LEASE) -> int:
    events = audit_index.read_events(connection, party=lease_id, topic=topic)
    return events[-1].position


# --- access ----------------------------------------------------------------------------------


def test_a_key_is_found_by_its_hash_with_the_role_of_its_member(
    connection: psycopg.Connection[Any],
) -> None:
    key = access.read_api_key(connection, sha256(b"acct_cash/2").hexdigest())
    assert key is not None
    assert (key.account_id, key.account_kind, key.role) == ("acct_cash", "party", "owner")
    assert (key.scopes, key.revoked_at_us) == (["account", "renter"], None)
    revoked = access.read_api_key(connection, sha256(b"acct_cash/1").hexdigest())
    assert revoked is not None
    assert revoked.revoked_at_us == START_US + 5
    assert access.read_api_key(connection, "00" * 32) is None
    assert [each.key_id for each in access.read_api_keys(connection, "acct_cash")] == [
        "key1",
        "key2",
    ]


def test_a_closed_account_says_so_and_its_keys_ended_then_at_the_latest(
    connection: psycopg.Connection[Any],
) -> None:
    account = access.read_account(connection, "acct_gone")
    assert account is not None
    assert account.closed_at_us == START_US + 4
    ends = [each.revoked_at_us for each in access.read_api_keys(connection, "acct_gone")]
    assert ends == [START_US + 1, START_US + 4, START_US + 4]


def test_a_member_who_left_and_came_back_is_a_member(connection: psycopg.Connection[Any]) -> None:
    members = {each.member_id: each for each in access.read_members(connection, "acct_cash")}
    assert (members["mem_b"].role, members["mem_b"].removed_at_us) == ("viewer", None)
    gone = {each.member_id: each for each in access.read_members(connection, "acct_burn")}
    assert gone["mem_b"].removed_at_us == START_US + 1


def test_a_node_is_found_by_its_token_and_its_keys_by_its_id(
    connection: psycopg.Connection[Any],
) -> None:
    token = sha256(SIZE.node(1).encode()).hexdigest()
    node = access.read_node_by_token(connection, token)
    assert node is not None
    assert (node.node_id, node.key_id, node.confirmed_at_us is not None) == (
        SIZE.node(1),
        "key_1",
        True,
    )
    assert access.read_node_keys(connection, SIZE.node(1)) == [node]
    before, last = access.read_node_keys(connection)[-2:]
    assert (before.node_id, before.from_seq, last.from_seq) == (last.node_id, 1, 3)
    assert last.retired_at_us is not None
    assert last.revoked_at_us is not None
    assert last.equivocated_at_us is not None
    assert len(access.read_wallets(connection, "acct_provider")) == 1
    account = access.read_account(connection, "acct_operator")
    assert account is not None
    assert access.read_accounts(connection, kind="operator") == [account]


# --- leases ----------------------------------------------------------------------------------


def test_a_lease_as_of_a_position_knows_nothing_that_came_later(
    connection: psycopg.Connection[Any],
) -> None:
    history = leases.read_lease_history(connection, LEASE)
    assert [fact.state for fact in history] == [
        "requested",
        "requested",
        "reserved",
        "reserved",
        "reserved",
        "active",
        "active",
        "active",
        "closing",
        "closing",
        "closing",
        "closing",
        "settled",
    ]
    assert [fact.version for fact in history] == list(range(1, 14))
    before = leases.read_lease(connection, LEASE, as_of_position=history[0].position - 1)
    assert before is None
    charged = 0
    for fact in history:
        lease = leases.read_lease(connection, LEASE, as_of_position=fact.position)
        assert lease is not None
        charged = max(charged, fact.charge_units or 0)
        assert (lease.state, lease.charge_units, lease.version) == (
            fact.state,
            charged,
            fact.version,
        )
        assert (lease.node_id is None) == (fact.state == "requested")
        assert (lease.opened_at_us is None) == (fact.state in ("requested", "reserved"))
        assert (lease.closed_at_us is None) == (fact.state not in ("closing", "settled"))
    now = leases.read_lease(connection, LEASE)
    assert now == leases.read_lease(connection, LEASE, as_of_position=history[-1].position)
    assert now is not None
    assert (now.charge_units, now.gpu_us, now.hours) == (3 * PRICE, 3 * 3_600_000_000, 3)
    assert (now.close_party, now.close_code, now.escrow_units) == ("renter", 1, 4 * PRICE)


def test_only_the_parties_of_a_lease_see_it(connection: psycopg.Connection[Any]) -> None:
    assert leases.read_lease(connection, LEASE, account_id="acct_cash") is None
    assert leases.read_lease(connection, LEASE, account_id="acct_burn") is not None
    assert leases.read_lease(connection, LEASE, account_id="acct_provider") is not None
    assert leases.read_job(connection, f"job_{1:032x}", account_id="acct_cash") is None


def test_leases_and_jobs_come_in_pages(connection: psycopg.Connection[Any]) -> None:
    found, after = [], 0
    while page := leases.read_leases(connection, account_id="acct_cash", after=after, limit=2):
        found += page
        after = page[-1].position
    assert [lease.lease_id for lease in found] == [f"lease_{n:032x}" for n in (0, 2, 4)]
    at = _position(connection, "lease.opened.v1")
    active = leases.read_leases(connection, state="active", as_of_position=at)
    assert [lease.lease_id for lease in active] == [LEASE]
    jobs = leases.read_jobs(connection, state="cancelled")
    assert [job.job_id for job in jobs] == [f"job_{n:032x}" for n in (0, 4)]
    assert (jobs[0].share_ppm, jobs[0].command) == (PPM // 4, ["run", "it"])
    mine = leases.read_leases(connection, job_id=f"job_{1:032x}", node_id=SIZE.node(1))
    assert [lease.lease_id for lease in mine] == [LEASE]


# --- statements ------------------------------------------------------------------------------


def test_balances_as_of_the_head_are_those_of_the_books(
    connection: psycopg.Connection[Any],
) -> None:
    head = tables.position_of(connection, statements.STATEMENTS)
    present = statements.read_balances(connection, prefixes=[""])
    then = statements.read_balances(connection, prefixes=[""], as_of_position=head)
    assert {b.account_name: b.units for b in present} == {b.account_name: b.units for b in then}
    assert len(present) > 20


def test_a_balance_as_of_a_position_is_the_sum_of_its_lines_up_to_it(
    connection: psycopg.Connection[Any],
) -> None:
    names = ["party:acct_burn:burned", "party:acct_provider:holdback"]
    for at in range(1, tables.position_of(connection, statements.STATEMENTS), 9):
        balances = {
            b.account_name: b.units
            for b in statements.read_balances(connection, names=names, as_of_position=at)
        }
        lines = statements.read_lines(connection, names=names, as_of_position=at, limit=500)
        for name in names:
            moved = -sum(line.units for line in lines if line.account_name == name)
            assert balances.get(name, 0) == moved


def test_a_statement_names_fact_time_and_lease_and_comes_in_pages(
    connection: psycopg.Connection[Any],
) -> None:
    prefixes = statements.accounts_of("acct_burn")
    whole = statements.read_lines(connection, prefixes=prefixes, limit=500)
    assert whole[0].topic == "deposit.credits_purchased.v1"
    assert {line.lease_id for line in whole} - {None} == {f"lease_{n:032x}" for n in (1, 3, 5)}
    paged, key = [], (0, "")
    while page := statements.read_lines(connection, prefixes=prefixes, after=key, limit=2):
        paged += page
        key = (page[-1].position, page[-1].account_name)
    assert paged == whole
    cut = whole[len(whole) // 2].recorded_us
    early = statements.read_lines(connection, prefixes=prefixes, to_us=cut, limit=500)
    late = statements.read_lines(connection, prefixes=prefixes, from_us=cut, limit=500)
    assert early + late == whole
    assert early
    assert all(line.recorded_us < cut for line in early)
    deposits = statements.read_deposits(connection)
    assert [(d.source, d.account_id) for d in deposits[:2]] == [
        ("cash", "acct_cash"),
        ("burned", "acct_burn"),
    ]
    assert statements.read_deposits(connection, account_id="acct_burn") == deposits[1:2]
    at = statements.read_position_at(connection, cut)
    assert at >= whole[len(whole) // 2].position


# --- earnings and epochs ---------------------------------------------------------------------


def test_earnings_sum_to_what_the_books_hold_back(connection: psycopg.Connection[Any]) -> None:
    rows = earnings.read_earnings(connection, by=("node_id", "lease_id", "epoch"), limit=500)
    assert len(rows) == 8, "of seven leases, and of volumes"
    head = tables.position_of(connection, movements.MOVEMENTS)
    for who in {row.account_id for row in rows}:
        bill = movements.read_kind_sums(connection, who, 0, head)
        billed = sum(one.change for one in bill if one.kind == "earning")
        assert sum(row.earned for row in rows if row.account_id == who) == billed, who
    shared = sum(row.provider + row.client for row in rows)
    assert sum(row.earned for row in rows) == shared
    for row in rows:
        assert row.fee + row.provider + row.client + row.platform + row.burn == row.charge
    by_epoch = earnings.read_earnings(connection, by=("epoch",))
    assert [(row.account_id, row.epoch, row.node_id, row.accruals) for row in by_epoch] == [
        ("acct_disk", 2, None, 5),
        ("acct_provider", 1, None, 9),
        ("acct_provider", 2, None, 16),
    ]
    paged: list[earnings.Earned] = []
    key = earnings.START
    while page := earnings.read_earnings(connection, by=("node_id", "epoch"), after=key, limit=2):
        paged += page
        key = tuple(page[-1].key)
    assert paged == earnings.read_earnings(connection)
    one = earnings.read_earnings(connection, lease_id=LEASE, by=())
    assert [row.charge for row in one] == [3 * PRICE]
    hours = earnings.read_earnings(connection, lease_id=LEASE, by=("hour_us",))
    assert [(row.hour_us, row.charge) for row in hours] == [
        (START_US + n * 3_600_000_000, PRICE) for n in range(3)
    ]


def test_owners_and_clients_find_what_they_got_and_all_of_it_is_found(
    postgres: Databases, template: str
) -> None:
    """K-1, R-17: the provider's row says where the charge went, theirs what they earned."""

    def shared(fact: Any) -> Any:
        if not isinstance(fact, lease.UsageAccrued) or not fact.parts_new.provider:
            return fact
        new = fact.parts_new
        third = new.provider // 3
        owners = (
            revenue_share.OwnerPart("acct_owner", third, third),
            revenue_share.OwnerPart("acct_provider", 0, new.provider - third),
        )
        parts = replace(new, platform=new.platform - 7, client=7)
        return replace(fact, owners=owners, client_account_id="acct_client", parts_new=parts)

    told = ((stream, shared(fact)) for stream, fact in story(SIZE))
    with views(postgres, template, told) as connection:
        rows = {row.account_id: row for row in earnings.read_earnings(connection, by=())}
        assert rows["acct_owner"].charge == rows["acct_client"].charge == 0
        assert rows["acct_client"].earned == rows["acct_provider"].client == 9 * 7
        provider = rows["acct_provider"]
        assert provider.earned + rows["acct_owner"].earned == provider.provider
        assert rows["acct_owner"].earned > 0
        head = tables.position_of(connection, movements.MOVEMENTS)
        for who, row in rows.items():
            bill = movements.read_kind_sums(connection, who, 0, head)
            assert row.earned == sum(one.change for one in bill if one.kind == "earning"), who
        hourly = earnings.read_earnings(connection, by=("hour_us",), limit=500)
        assert sum(row.earned for row in hourly) == sum(row.earned for row in rows.values())


def test_earnings_add_up_to_the_same_by_every_grouping(connection: psycopg.Connection[Any]) -> None:
    names = ("node_id", "lease_id", "hour_us", "epoch")
    groupings = [by for n in range(5) for by in combinations(names, n)]
    sums = set()
    for by in groupings:
        rows = earnings.read_earnings(connection, by=by, limit=500)
        assert all(
            row.fee + row.provider + row.client + row.platform + row.burn == row.charge
            for row in rows
        )
        sums.add(
            (
                sum(row.accruals for row in rows),
                sum(row.gpu_us for row in rows),
                sum(row.charge for row in rows),
                sum(row.provider for row in rows),
            )
        )
        keys = [row.key for row in rows]
        assert keys == sorted(keys), by
    assert len(sums) == 1, sums
    early = earnings.read_earnings(
        connection, by=(), from_us=START_US, to_us=START_US + 3_600_000_000
    )
    assert [row.accruals for row in early] == [6], "all six leases began in the first hour"


def test_weights_of_an_epoch_are_burned_credits_and_confirmed_burns_of_cash(
    connection: psycopg.Connection[Any],
) -> None:
    final, open_now = epochs.read_preview(connection, 1), epochs.read_preview(connection)
    assert (final.epoch, final.is_final, open_now.epoch, open_now.is_final) == (1, True, 2, False)
    rows = earnings.read_earnings(connection, epoch=1, by=("lease_id",))
    burned = sum(row.burn for row in rows)  # cash leases too: their burn was confirmed in time
    gpu_us = sum(row.gpu_us for row in rows)
    # Of a charge each of two leases, 600 and 250 micro-credits were given back in this epoch. The
    # third dispute is of a charge of this epoch, but was opened in the next: it changes nothing.
    first = [fact for _, fact in story(Size()) if isinstance(fact, lease.UsageAccrued)][:4:3]
    for fact, upheld in zip(first, (600, 250), strict=True):
        burned -= fact.parts_new.burn * upheld // fact.charge_new.units
        gpu_us -= fact.gpu_us_new * upheld // fact.charge_new.units
    assert final.by_account() == (("acct_provider", burned, gpu_us),)
    later = earnings.read_earnings(connection, epoch=2, by=("lease_id",))
    retired = sum(row.burn for row in later if row.provider == 0)
    ((who, so_far, _),) = open_now.by_account()
    assert (who, so_far) == ("acct_provider", retired)
    waiting = sum(row.burn for row in later if row.provider)
    cut = epochs.read_epoch(connection, 1)
    assert cut is not None
    assert cut.sealed_position is not None
    assert burning.read_ripe(connection, cut.sealed_position, 10**9)[-1][1] == waiting > 0


def test_an_epoch_is_read_from_opening_to_claim(connection: psycopg.Connection[Any]) -> None:
    first, second = epochs.read_epochs(connection)
    assert (first.state, second.state) == ("settled", "open")
    assert (first.emission, first.compute_pool, first.rewards, first.minted) == (109, 79, 86, 109)
    assert epochs.read_epochs(connection, after=1) == [second]
    paid = epochs.read_rewards(connection, epoch=1)
    assert [(r.account_id, r.credited, r.matured, r.slashed) for r in paid] == [
        ("acct_provider", 67, 67, 0),
        ("acct_walletless", 9, 5, 4),
        ("treasury", 10, 10, 0),
    ]
    lifetimes = epochs.read_lifetimes(connection)
    assert [(t.account_id, t.credited, t.matured) for t in lifetimes] == [
        ("acct_provider", 67, 67),
        ("acct_walletless", 9, 0),
        ("treasury", 10, 14),
    ], "what was forfeited has no leaf, what was slashed is in the treasury's"
    lifetime = epochs.read_lifetimes(connection, account_id="acct_provider")[0]
    assert (lifetime.credited, lifetime.matured, lifetime.claimed) == (67, 67, 67)
    assert [root.state for root in epochs.read_roots(connection)] == ["vetoed", "accepted"]
    root = epochs.read_root(connection, 1)
    assert root is not None
    assert (root.state, root.tx_hash, root.reason) == ("accepted", "0x7", None)
    claim = epochs.read_claims(connection, account_id="acct_provider")[0]
    assert (claim.amount, claim.cumulative) == (67, 67)
    burn = epochs.read_burns(connection)[0]
    assert (burn.state, burn.tx_hash, burn.credits) == ("confirmed", "0xbb", 1_000)


def test_corrections_of_rewards_are_read_in_order_with_what_came_of_them(
    connection: psycopg.Connection[Any],
) -> None:
    told = rewards.read_corrections(connection)
    assert [
        (one.kind, one.delta, one.slashed, one.adjusted, one.adjusted_epoch) for one in told
    ] == [
        ("slash", -4, 4, 0, None),
        ("adjustment", 3, 0, 3, 2),
        ("adjustment", -(2**62), None, None, None),
    ]
    assert rewards.read_corrections(connection, after=told[1].position) == told[2:]
    assert rewards.read_correction(connection, told[0].correction_id) == told[0]
    left = rewards.read_forfeitable(connection, 1, treasury="treasury", limit=9)
    assert "acct_walletless" not in {one.account_id for one in left}, "all of it was forfeited"


# --- the index of facts ----------------------------------------------------------------------


def test_facts_are_found_by_party_type_time_and_position(
    connection: psycopg.Connection[Any],
) -> None:
    everything = audit_index.read_events(connection, limit=1_000)
    assert [event.position for event in everything] == list(range(1, len(everything) + 1))
    for event in everything:
        codec.decode_values(event.topic, event.body)
    mine = audit_index.read_events(connection, party=LEASE, limit=1_000)
    assert mine == [e for e in everything if LEASE in e.body.values()]
    assert {e.topic.split(".")[0] for e in mine} == {"lease", "device", "challenge"}
    paid = audit_index.read_events(connection, party="treasury")
    assert [e.topic for e in paid] == ["epoch.rewards_credited.v1", "epoch.rewards_matured.v1"]
    opened = audit_index.read_events(connection, topic="lease.opened.v1")
    assert [e.body["lease_id"] for e in opened] == [f"lease_{n:032x}" for n in range(6)]
    one = audit_index.read_events(connection, party=LEASE, topic="lease.opened.v1")
    assert one == [opened[1]]
    cut = opened[3].recorded_us
    late = audit_index.read_events(connection, topic="lease.opened.v1", from_us=cut)
    early = audit_index.read_events(connection, topic="lease.opened.v1", to_us=cut)
    assert early + late == opened
    assert late
    page = audit_index.read_events(connection, party=LEASE, after=mine[1].position, limit=2)
    assert page == mine[2:4]
    until = audit_index.read_events(connection, party=LEASE, until_position=mine[1].position)
    assert until == mine[:2]
    assert audit_index.read_event(connection, mine[0].position) == mine[0]
    assert audit_index.read_event(connection, 10**9) is None
