"""Stored names and bytes: complete, exact in both directions, and strict."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import domain
from domain import rules
from domain.authority.acts import ActRequest
from domain.funds.deposit import DepositConfirmed
from domain.market.dimensions import Need
from domain.market.offer import OfferWithdrawn
from domain.metering.counting import Passed
from domain.money import Amount, Asset, credit
from domain.pools.scheduling import Inputs
from domain.prices.modules import PriceRequest
from domain.prices.price_feed import Usable
from domain.stream import Stream
from domain.trust.evidence import Fact
from ledger.log import codec
from tests.projections.story import Size, story
from tests.scenes.samples import every_fact

STREAM = UUID("6f9a1d5e-0c44-5b6e-9d0a-7a11757c0001")


def _encode(fact: object) -> tuple[str, bytes]:
    return codec.encode(fact, "cmd_1", "00" * 16)


def _body(**changes: object) -> bytes:
    values = {
        "account_id": "acct_1",
        "amount": {"asset": "CREDIT", "units": "5"},
        "at_us": 1,
        "blind": "00",
        "command_id": "cmd_1",
        "confirmed_by": "op",
        "deposit_id": "dep_1",
        "reference": "r",
        "source": "cash",
        **changes,
    }
    return json.dumps({name: value for name, value in values.items() if value is not None}).encode()


ASKED = {Need, PriceRequest, Inputs, Passed, Fact, Usable, ActRequest}
"""Questions of a moment, what a report shows of one and where a fact stands: never stored."""


def test_every_fact_of_the_domain_has_a_stored_name() -> None:
    facts = set()
    for module in pkgutil.walk_packages(domain.__path__, "domain."):
        for kind in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(kind, type)
                and dataclasses.is_dataclass(kind)
                and "at_us" in {field.name for field in dataclasses.fields(kind)}
                and kind not in rules.DECIDERS
            ):
                facts.add(kind)
    assert facts - ASKED == set(codec.NAMES.values())


def test_names_are_spelled_out_and_versioned() -> None:
    for name in codec.NAMES:
        kind, verb, version = name.split(".")
        assert (kind + verb).replace("_", "").isalpha()
        assert version == "v1"


@pytest.mark.parametrize(("name", "fact"), list(every_fact()))
def test_what_is_stored_comes_back_and_is_stored_alike(name: str, fact: object) -> None:
    stored_name, body = _encode(fact)
    assert stored_name == name
    assert codec.decode(name, body) == fact
    assert _encode(codec.decode(name, body)) == (name, body)
    assert b"null" not in body


@given(st.text(), st.integers(-(10**38), 10**38))
def test_any_text_and_any_amount_survives(text: str, units: int) -> None:
    fact = DepositConfirmed(
        deposit_id=text,
        account_id="a",
        source="cash",
        amount=Amount(Asset.TOKEN, units),
        reference="",
        confirmed_by="",
        at_us=0,
    )
    try:
        name, body = _encode(fact)
    except (AssertionError, UnicodeEncodeError):
        assert "\0" in text or any("\ud800" <= c <= "\udfff" for c in text)
    else:
        assert codec.decode(name, body) == fact


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.booleans())))
def test_bytes_are_those_of_pythons_own_json_whatever_makes_them(values: codec.Values) -> None:
    """Leaves hash them: a faster encoder may not differ in one byte."""
    wanted = json.dumps(
        values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    try:
        stored = wanted.encode()
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            codec._dumps(values)
    else:
        assert codec._dumps(values) == stored
        assert codec._loads(stored) == values


def test_a_body_has_sorted_keys_and_no_spaces() -> None:
    name, body = _encode(OfferWithdrawn(offer_id="offer_1", by="acct_1", at_us=7))
    assert name == "offer.withdrawn.v1"
    assert body == (
        b'{"at_us":7,"blind":"00000000000000000000000000000000","by":"acct_1",'
        b'"command_id":"cmd_1","offer_id":"offer_1"}'
    )


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"{", "truncated"),
        (_body(source="x").replace(b'"x"', b'"\xff"'), "malformed|UTF-8|utf-8"),
        (_body(at_us=float("nan")), "malformed"),
        (b"[]", "not an object"),
        (_body(blind=None), "blind is missing"),
        (_body(command_id=None), "command_id is missing"),
        (_body(source=None), "source is missing"),
        (_body(colour="red"), "colour"),
        (_body(at_us="1"), "not a stored int"),
        (_body(at_us=True), "not a stored int"),
        (_body(at_us=1.0), "not a stored int"),
        (_body(source=1), "not a stored str"),
        (_body(amount={"asset": "CREDIT", "units": 5}), "decimal string"),
        (_body(amount={"asset": "CREDIT", "units": "05"}), "decimal string"),
        (_body(amount={"asset": "CREDIT", "units": "five"}), "decimal string"),
        (_body(amount={"asset": "GOLD", "units": "5"}), "Asset"),
        (_body(amount={"asset": "CREDIT"}), "Amount"),
    ],
)
def test_bytes_of_another_shape_are_not_taken_for_a_fact(body: bytes, complaint: str) -> None:
    with pytest.raises(codec.NotStorable, match=complaint):
        codec.decode("deposit.confirmed.v1", body)


def test_an_unknown_name_is_not_taken_for_a_fact() -> None:
    with pytest.raises(codec.NotStorable, match="no such fact"):
        codec.decode("deposit.imagined.v1", _body())


def test_old_names_are_read_as_what_they_mean_today(monkeypatch: pytest.MonkeyPatch) -> None:
    def upcast(values: codec.Values) -> tuple[str, codec.Values]:
        amount = {"asset": "CREDIT", "units": str(values.pop("units"))}
        return "deposit.confirmed.v1", {**values, "amount": amount}

    monkeypatch.setitem(codec.UPCASTERS, "deposit.confirmed.v0", upcast)
    fact = codec.decode("deposit.confirmed.v0", _body(amount=None, units=5))
    assert fact.amount == credit(5)


def test_a_body_above_the_bound_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="bytes"):
        _encode(OfferWithdrawn(offer_id="x" * 60_000, by="", at_us=0))


def test_an_integer_that_others_would_round_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="mark it Big"):
        _encode(OfferWithdrawn(offer_id="", by="", at_us=2**53))


def test_a_nul_is_a_bug_and_the_text_that_looks_like_one_is_not() -> None:
    with pytest.raises(AssertionError, match="NUL"):
        _encode(OfferWithdrawn(offer_id="a\0b", by="", at_us=0))
    _encode(OfferWithdrawn(offer_id=r"a\u0000b", by="", at_us=0))


def test_the_blind_depends_on_key_stream_and_version() -> None:
    blinds = {
        codec.blind(b"k" * 16, STREAM, 1),
        codec.blind(b"k" * 16, STREAM, 2),
        codec.blind(b"l" * 16, STREAM, 1),
        codec.blind(b"k" * 16, UUID(int=1), 1),
    }
    assert len(blinds) == 4
    assert {len(bytes.fromhex(blind)) for blind in blinds} == {16}


def test_the_state_of_every_stream_can_be_kept_as_a_snapshot() -> None:
    for kind in rules.STREAMS:
        state = rules.initial(kind)
        assert codec.decode_state(type(state), codec.encode_state(state)) == state


def test_the_state_of_every_stream_is_kept_after_each_fact_of_a_whole_story() -> None:
    states: dict[Stream[Any], Any] = {}
    for stream, fact in story(Size()):
        before = states.get(stream, rules.initial(stream.kind))
        state = states[stream] = rules.evolve(stream.kind, before, fact)
        assert codec.decode_state(type(state), codec.encode_state(state)) == state, (stream, fact)
    assert len({stream.kind for stream in states}) > 80
