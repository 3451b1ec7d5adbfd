"""States at hand are the log's, whoever else appends meanwhile."""

from __future__ import annotations

from collections.abc import Generator

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from domain.parties.account import OpenAccount
from domain.stream import Stream
from ledger.log import fresh
from ledger.log.fresh import FreshStates
from ledger.log.handle import Ledger
from tests.examples import examples
from tests.scenes.running_market import OPERATOR, OWNER, RENTER, START_US, Market

KEY = b"tests/ledger/test_fresh"
STREAMS = [
    Stream("account", RENTER),
    Stream("account", OWNER),
    Stream("account", OPERATOR),
    Stream("account", "acct_nobody"),
    Stream("tariff", "network"),
    Stream("lease", "lease_none"),
]


@pytest.fixture
def market(database: str) -> Generator[Market, None, None]:
    with (
        Ledger(database, blinding_key=KEY, connections_max=3) as ledger,
        psycopg.connect(database, autocommit=True) as connection,
    ):
        found = Market(ledger, connection)
        found.found("one")
        yield found


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.sampled_from(["append", "look", "prepare", "open"]), max_size=12),
    most=st.sampled_from([2, fresh.GROWN_MAX]),
)
def test_a_state_is_the_logs_after_every_refresh(
    market: Market, steps: list[str], most: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fresh, "GROWN_MAX", most)
        states = FreshStates(market.ledger.market)
        for number, step in enumerate(steps):
            match step:
                case "append":
                    market.join(f"n{market.head}x{number}", gpus=1)
                case "open":
                    name = f"acct_{market.head}x{number}"
                    market.do(
                        START_US,
                        OpenAccount(
                            account_id=name,
                            kind="party",
                            opened_by="operator",
                            owner_member_id=f"{name}_member",
                            at_us=START_US,
                        ),
                    )
                case "prepare":
                    states.prepare(STREAMS)
                case _:
                    states.refresh()
                    for stream in STREAMS:
                        assert states.get(stream) == market.ledger.market.load(stream)


def test_what_others_append_is_seen_after_a_refresh(market: Market) -> None:
    states = FreshStates(market.ledger.market)
    states.refresh()
    device = Stream("device", market.nodes["one"].device_ids[0])
    assert not states.get(device).state.holders
    market.lease("a", "one")
    states.refresh()
    assert list(states.get(device).state.holders) == ["lease_" + "a".rjust(32, "0")]


def test_no_more_is_kept_than_there_is_room_for(
    market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh, "STREAMS_MAX", 2)
    states = FreshStates(market.ledger.market)
    states.refresh()
    states.prepare(STREAMS)
    assert len(states._held) == 2
    for stream in STREAMS:
        assert states.get(stream) == market.ledger.market.load(stream)
