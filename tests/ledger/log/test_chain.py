"""Leaves and chains: lengths not separators, and the one way bytes become a leaf."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.metering.reasons import MeteringReason
from domain.metering.report import NAME, lane_of
from domain.refusal import Refused
from ledger.log.chain import (
    GENESIS_MARKET,
    chain,
    conform,
    genesis_usage,
    lp4,
    market_leaf,
    split_body,
    stored_body,
    usage_leaf,
)

SOMEBODY = UUID("018f4e6c-7a00-7000-8000-000000000001")


def test_an_empty_market_log_hashes_to_its_name() -> None:
    assert sha256(b"market").digest() == GENESIS_MARKET
    assert genesis_usage(7) == sha256(b"usage/7").digest()


def test_the_market_leaf_is_the_documented_one() -> None:
    leaf = market_leaf(SOMEBODY, 1, "lease.opened.v1", b'{"price":"2780000"}')
    assert leaf.hex() == "efc6136ea11e3099c6a45beb4992843435c0b21e91874b7f3906a91ca8afbf3d"


def test_the_same_bytes_split_differently_have_another_leaf() -> None:
    assert market_leaf(SOMEBODY, 1, "bc", b"d") != market_leaf(SOMEBODY, 1, "b", b"cd")


def test_a_usage_leaf_hashes_lane_node_and_number_in_front_of_the_body() -> None:
    entry = b"\x06" + lp4(b"node_x") + (9).to_bytes(8, "big") + lp4(NAME.encode()) + lp4(b"body")
    assert usage_leaf(6, "node_x", 9, b"body") == sha256(b"\0" + entry).digest()


def test_a_chain_depends_on_every_leaf_before_it() -> None:
    one, two = b"1" * 32, b"2" * 32
    assert chain(chain(GENESIS_MARKET, one), two) != chain(chain(GENESIS_MARKET, two), one)


@given(st.binary(max_size=200), st.text(max_size=20), st.binary(max_size=64))
def test_a_stored_body_comes_apart_into_what_it_was_made_of(
    signed: bytes, key_id: str, signature: bytes
) -> None:
    assert split_body(stored_body(signed, key_id, signature)) == (signed, key_id, signature)


@pytest.mark.parametrize("body", [b"", b"\0\0\0\1", b"\0\0\0\1a", b"\0\0", lp4(b"a") * 4])
def test_other_bytes_are_no_stored_body(body: bytes) -> None:
    with pytest.raises(ValueError, match="stored body"):
        split_body(body)


def parts_one_by_one(body: bytes) -> list[bytes] | None:
    parts, at = [], 0
    while at < len(body):
        end = at + 4 + int.from_bytes(body[at : at + 4], "big")
        if end > len(body) or at + 4 > len(body):
            return None
        parts.append(body[at + 4 : end])
        at = end
    return parts if len(parts) == 3 else None


def near_a_stored_body() -> st.SearchStrategy[bytes]:
    """Lengths and bytes as they may be when some were changed, cut off or added."""
    part = st.tuples(st.integers(0, 5), st.binary(max_size=5))
    return st.lists(part, max_size=4).map(
        lambda told: b"".join(length.to_bytes(4, "big") + content for length, content in told)
    )


@given(near_a_stored_body() | st.binary(max_size=20))
def test_a_body_comes_apart_at_once_where_it_does_part_by_part(body: bytes) -> None:
    wanted = parts_one_by_one(body)
    try:
        signed, key_id, signature = split_body(body)
    except UnicodeDecodeError:
        assert wanted is not None
    except ValueError:
        assert wanted is None
    else:
        assert [signed, key_id.encode(), signature] == wanted


def test_a_log_nobody_knows_is_refused_before_anything_else() -> None:
    for log in ("usage/64", "usage/01", "Market", "usage/-1"):
        with pytest.raises(Refused) as refused:
            conform({"op": "chain", "log": log, "entries": []})
        assert refused.value.reason is MeteringReason.UNKNOWN_LOG


def test_a_report_in_another_nodes_lane_is_refused() -> None:
    entry = {"node_id": "node-46", "node_seq": "1", "name": NAME, "body_hex": "01"}
    assert lane_of("node-46") == 17
    with pytest.raises(Refused) as refused:
        conform({"op": "leaf", "log": "usage/16", "entry": entry})
    assert refused.value.reason is MeteringReason.WRONG_LANE


def test_a_market_batch_with_one_version_twice_is_refused_as_a_whole() -> None:
    entry = {"originator_id": str(SOMEBODY), "version": "1", "name": "a.v1", "body_hex": ""}
    other = entry | {"originator_id": str(SOMEBODY).upper(), "body_hex": "00"}
    with pytest.raises(Refused) as refused:
        conform({"op": "chain", "log": "market", "entries": [entry, other]})
    assert refused.value.reason is MeteringReason.STREAM_MOVED


def test_a_number_below_the_last_that_was_never_stored_is_out_of_order() -> None:
    entries = [
        {"node_id": "node-46", "node_seq": seq, "name": NAME, "body_hex": "01"} for seq in "31"
    ]
    answer = conform({"op": "chain", "log": "usage/17", "entries": entries})
    assert answer["results"][1] == {"refused": "out_of_order"}
    assert answer["position"] == "1"
