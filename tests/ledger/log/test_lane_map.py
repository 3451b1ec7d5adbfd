"""Which server holds which lanes: how the setting is read, and how connections learn it."""

from __future__ import annotations

import psycopg
import pytest

from api.settings import Settings, SettingsInvalid, load
from ledger.log import lane_store
from ledger.log.lane_map import HERE, MARKET, LaneMap

OTHER = "postgresql://user:a%20secret@other:5433,standby/lanes?sslmode=disable"


def test_a_map_names_every_lane_and_is_written_as_it_was_read() -> None:
    text = f"0-31={MARKET},32-62={OTHER},63={MARKET}"
    lanes = LaneMap.parse(text)
    assert (lanes.addresses[31], lanes.addresses[32], lanes.addresses[63]) == (
        MARKET,
        OTHER,
        MARKET,
    )
    assert str(lanes) == text
    assert lanes.elsewhere() == {OTHER: tuple(range(32, 63))}
    assert str(lanes.moved([63], OTHER)) == f"0-31={MARKET},32-63={OTHER}"
    assert LaneMap.parse(str(HERE)) == HERE


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (OTHER, "postgresql://user:********@other:5433,standby/lanes?sslmode=disable"),
        ("postgresql://user@other:5433/lanes", "postgresql://user@other:5433/lanes"),
        ("postgresql://one:5432,two:5433/lanes", "postgresql://one:5432,two:5433/lanes"),
        ("postgresql:///lanes?password=a,b&user=u", "postgresql:///lanes?password=********&user=u"),
        ("postgresql:///lanes?sslpassword=x", "postgresql:///lanes?sslpassword=********"),
        ("postgresql:///lanes?%70assword=secret", "********"),
        ("postgresql://u:a:b@other/lanes", "postgresql://u:********@other/lanes"),
    ],
)
def test_a_map_is_shown_without_passwords(address: str, shown: str) -> None:
    assert HERE.moved(range(63), address).shown() == f"0-62={shown},63={MARKET}"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0-31=market", "every lane exactly once, and lane 32-63 has no address"),
        ("0-63=market,5=market", "every lane exactly once, and lane 5 has two addresses"),
        ("0-64=market", "lanes go from 0 to 63"),
        ("31-0=market", "lanes go from 0 to 63, the lower one first"),
        ("0-63", "each part is FIRST-LAST=ADDRESS"),
        ("0-63=mysql://other", "an address is postgresql://... or market"),
        ("0-63=postgresql://tally:a%zz-secret@other/lanes", "PostgreSQL cannot read an address"),
        (f"0-63=postgresql://{'x' * 6_000}", "at most 6000 characters"),
    ],
)
def test_a_setting_that_leaves_a_lane_in_doubt_is_refused_with_the_rule(
    text: str, rule: str
) -> None:
    with pytest.raises(SettingsInvalid, match="usage_lanes: ") as refused:
        Settings(usage_lanes=text)
    assert rule in str(refused.value)
    assert "secret" not in str(refused.value)


def test_the_setting_is_secret_as_it_may_hold_a_password() -> None:
    shown = load(environ={"TALLYSTICK_USAGE_LANES": f"0-63={OTHER}"}).shown()
    assert shown["usage_lanes"]["value"] == "********"


def test_a_connection_knows_where_the_lanes_lie_by_its_address(database: str) -> None:
    lanes = LaneMap.parse(f"0-9={OTHER},10-63={MARKET}")
    address = lane_store.carried(lanes, database)
    assert lane_store.of_address(address) == lanes
    with psycopg.connect(address) as told, psycopg.connect(database) as untold:
        assert lane_store.of(told) == lanes
        assert lane_store.of(untold) is HERE
    assert lane_store.carried(HERE, database) == database


def test_what_the_address_told_the_session_before_stays(database: str) -> None:
    lanes = LaneMap.parse(f"0-9={OTHER},10-63={MARKET}")
    address = psycopg.conninfo.make_conninfo(database, options="-c statement_timeout=5s")
    with psycopg.connect(lane_store.carried(lanes, address)) as told:
        assert told.execute("SHOW statement_timeout").fetchone() == ("5s",)
        assert lane_store.of(told) == lanes
