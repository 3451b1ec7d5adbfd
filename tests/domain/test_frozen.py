"""Frozen things are made and changed as the library does it, whatever their kind."""

from __future__ import annotations

import ast
import dataclasses
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

import api
import domain
import ledger
import projections
from domain import frozen
from domain.rules import DECIDERS, FACTS, STREAMS

KINDS = sorted(
    {*FACTS.values(), *DECIDERS, *(type(state) for state, _ in STREAMS.values())},
    key=lambda kind: (kind.__module__, kind.__name__),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    low: int
    high: int = 9

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


@dataclass(frozen=True)
class _NoSlots:
    one: int
    two: int = 2


@dataclass(frozen=True, slots=True)
class _Inherits(_Checked):
    more: int = 3


@dataclass(frozen=True, slots=True)
class _NotGiven:
    one: int
    made: int = field(init=False, default=7)


def test_every_state_fact_and_command_has_a_twin() -> None:
    assert [kind.__name__ for kind in KINDS if frozen.twin_of(kind) is None] == []


def test_each_is_made_and_changed_as_the_library_does_it() -> None:
    for kind in KINDS:
        names = [each.name for each in dataclasses.fields(kind)]
        values = tuple(f"value of {name}" for name in names)
        wanted = kind(**dict(zip(names, values, strict=True)))
        make: Any = frozen.maker(cast(Any, kind))
        made = make(*values)
        assert (made, type(made), repr(made)) == (wanted, kind, repr(wanted))
        for name in names:
            changed = frozen.replace(wanted, **{name: 1})
            assert changed == dataclasses.replace(wanted, **{name: 1})
            assert getattr(wanted, name) == f"value of {name}"
        with pytest.raises(FrozenInstanceError):
            setattr(made, names[0], 1)
        with pytest.raises(TypeError):
            frozen.replace(wanted, no_such_field=1)


@pytest.mark.parametrize("one", [_Checked(low=1), _NoSlots(1), _Inherits(low=1), _NotGiven(1)])
def test_other_kinds_too(one: Any) -> None:
    given = [each.name for each in dataclasses.fields(one) if each.init]
    assert frozen.maker(cast(Any, type(one)))(*(getattr(one, name) for name in given)) == one
    name = given[0]
    assert frozen.replace(one, **{name: 5}) == dataclasses.replace(one, **{name: 5})
    assert type(frozen.replace(one, **{name: 5})) is type(one)
    with pytest.raises(TypeError):
        frozen.replace(one, no_such_field=1)


def test_what_a_kind_checks_is_checked() -> None:
    with pytest.raises(ValueError, match="low is above high"):
        frozen.replace(_Checked(low=1), low=10)
    with pytest.raises(ValueError, match="low is above high"):
        frozen.maker(_Checked)(10, 9)


@pytest.mark.parametrize("package", [api, domain, ledger, projections])
def test_no_code_changes_frozen_things_in_the_slower_way(package: Any) -> None:
    slower = [
        file.name
        for file in Path(package.__path__[0]).rglob("*.py")
        if file.name != "frozen.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module == "dataclasses"
        and any(alias.name == "replace" for alias in node.names)
    ]
    assert slower == []
