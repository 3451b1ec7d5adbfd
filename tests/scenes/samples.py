"""One example of every stored fact, from its type hints: every field filled, nothing random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from domain.money import Amount, Asset
from ledger.log.codec import NAMES

BIG = 123_456_789_012_345_678_901_234_567_890


def sample(kind: Any, *, leave_out_optional: bool = False) -> Any:
    """An example of a type; with `leave_out_optional` what may be absent is None."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return BIG
    if origin in (Union, UnionType):
        if leave_out_optional:
            return None
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return sample(inner)
    if origin is tuple:
        items = [argument for argument in arguments if argument is not Ellipsis]
        return tuple(sample(item, leave_out_optional=leave_out_optional) for item in items)
    plain = {int: 1_763_000_000_000_000, str: 'Zürich "GPU" \\ 8', bool: True}
    if kind in plain:
        return plain[kind]
    if kind is Amount:
        return Amount(Asset.CREDIT, BIG)
    if issubclass(kind, Enum):
        return next(iter(kind))
    hints = get_type_hints(kind, include_extras=True)
    return kind(
        **{
            field.name: sample(hints[field.name], leave_out_optional=leave_out_optional)
            for field in fields(kind)
        }
    )


def every_fact() -> Iterator[tuple[str, Any]]:
    """(stored name, fact), twice each: full, and without what may be absent."""
    for name, kind in NAMES.items():
        yield name, sample(kind)
        yield name, sample(kind, leave_out_optional=True)
