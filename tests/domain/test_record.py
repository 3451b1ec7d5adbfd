"""Records are what the standard library's dataclasses are."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import record

Maker = Callable[..., Any]
FORMS: tuple[dict[str, bool], ...] = (
    {"slots": True},
    {"slots": True, "kw_only": True},
    {},
    {"kw_only": True},
)
VALUES = st.one_of(st.integers(-2, 2), st.booleans(), st.floats(), st.text(max_size=1), st.none())


def made(maker: Maker, **form: bool) -> Any:
    """One class in two makings."""

    @maker(frozen=True, **form)
    class Told:
        """A class with everything ours use."""

        first: int
        second: Any
        third: str = "3"
        fourth: dict[str, int] = field(default_factory=dict)
        aside: int = field(default=0, compare=False)
        secret: str = field(default="", repr=False)

        def __post_init__(self) -> None:
            assert self.first != 13, "thirteen"

        @property
        def twice(self) -> int:
            return 2 * self.first

    return Told


PAIRS = [(made(record.dataclass, **form), made(dataclasses.dataclass, **form)) for form in FORMS]
Ours, Kept = PAIRS[1]


@record.dataclass(frozen=True, slots=True)
class Pickled:
    """Found by its name."""

    name: str
    parts: tuple[int, ...] = ()


@record.dataclass(frozen=True, slots=True)
class Empty:
    """No field at all."""


def shapes(cls: Any) -> Iterator[Any]:
    for each in dataclasses.fields(cls):
        yield (
            each.name,
            each.default,
            each.default_factory,
            each.kw_only,
            each.compare,
            each.repr,
            each.type,
        )
    for one in inspect.signature(cls).parameters.values():
        yield one.name, one.kind, one.default is inspect.Parameter.empty
    yield getattr(cls, "__slots__", None), cls.__match_args__, cls.__doc__
    told = cls.__dataclass_params__
    yield told.init, told.repr, told.eq, told.frozen, told.order, told.unsafe_hash


@pytest.mark.parametrize(("ours", "kept"), PAIRS)
def test_a_record_has_the_fields_and_parameters_of_a_dataclass(ours: Any, kept: Any) -> None:
    assert list(shapes(ours)) == list(shapes(kept))


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=2, max_size=2))
def test_equality_hash_and_text_are_those_of_a_dataclass(given: list[Any]) -> None:
    (one, other), (first, second) = (
        [cls(first=a, second=b, third="t", aside=c) for a, b, c in given] for cls in PAIRS[1]
    )
    assert (one == other, one == one, one != other) == (
        first == second,
        first == first,
        first != second,
    )
    assert repr(one) == repr(first)
    assert one != first
    assert one.__eq__(first) is NotImplemented
    for cls in (Ours, Kept):
        with pytest.raises(TypeError, match="unhashable"):
            hash(cls(first=1, second=2))
    flat = [cls(first=a, second=b, fourth=None) for cls in (Ours, Kept) for a, b, _ in given[:1]]
    assert hash(flat[0]) == hash(flat[1])


@pytest.mark.parametrize("cls", [cls for pair in PAIRS for cls in pair])
def test_nothing_of_a_record_changes(cls: Any) -> None:
    told = cls(first=1, second=2)
    with pytest.raises(FrozenInstanceError):
        told.first = 2
    with pytest.raises(FrozenInstanceError):
        del told.first
    with pytest.raises((FrozenInstanceError, TypeError)):  # of a kept one with slots: TypeError
        told.other = 2
    assert dataclasses.replace(told, first=3) == cls(first=3, second=2)
    assert dataclasses.asdict(told)["third"] == "3"
    assert told.twice == 2
    assert copy.copy(told) == copy.deepcopy(told) == told
    assert told.fourth is not cls(first=1, second=2).fourth, "each has its own"
    for wrong in ({}, {"first": 1}, {"first": 1, "second": 2, "more": 3}):
        with pytest.raises(TypeError):
            cls(**wrong)
    with pytest.raises(AssertionError, match="thirteen"):
        cls(first=13, second=2)


def test_a_record_goes_to_another_process_and_back() -> None:
    told = Pickled("a", (1, 2))
    assert pickle.loads(pickle.dumps(told)) == told
    assert Empty() == Empty()
    assert hash(Empty()) == hash(())
    assert repr(Empty()) == "Empty()"


def test_what_asks_for_more_is_the_standard_librarys() -> None:
    @record.dataclass(frozen=True, order=True)
    class Ordered:
        at: int

    @record.dataclass(frozen=True)
    class Equal:
        at: int

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    @record.dataclass
    class Open:
        at: int

    @record.dataclass(frozen=True)
    class Below(Pickled):
        more: int = 0

    assert Ordered(1) < Ordered(2)
    assert Equal(1) == Equal(2)
    changed = Open(1)
    changed.at = 2
    assert changed == Open(2)
    assert Below("a", (1,), 2) == dataclasses.replace(Below("a", (1,)), more=2)
    with pytest.raises(FrozenInstanceError):
        Below("a").more = 1  # type: ignore[misc]
