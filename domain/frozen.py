"""Frozen things, made and changed as dataclasses do it, but quickly: a decision makes hundreds.

    replace(one, **changes) == dataclasses.replace(one, **changes)
    maker(kind)(*values) == kind(...)             with the values of all fields, in their order

The library fills a frozen object through `object.__setattr__`, field by field: 15 us where there
are 77. Here a twin with the same slots, which is not frozen, is filled and becomes one of the kind
before anything else sees it: 2 us. A kind that has no such twin (no slots, a base with fields of
its own, fields that nobody gives) is made by the library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

Check = Callable[[Any], None]


@cache
def maker(kind: Any) -> Callable[..., Any]:
    """What makes one of a kind from the values of all fields that are given, in their order."""
    twin, check = twin_of(kind), _check_of(kind)
    if twin is None:
        names = [field.name for field in dataclasses.fields(kind) if field.init]
        return lambda *values: kind(**dict(zip(names, values, strict=True)))

    def make(*values: Any) -> Any:
        made = twin(*values)
        made.__class__ = kind
        if check is not None:
            check(made)
        return made

    return make


def twin_of(kind: Any) -> type[Any] | None:
    """A class whose objects can become objects of the kind; None: there is none."""
    fields = dataclasses.fields(kind)
    if not fields or not all(field.init for field in fields):
        return None
    names = [(field.name, object) for field in fields]
    twin = dataclasses.make_dataclass(kind.__name__, names, slots=True, eq=False, repr=False)
    try:
        twin(*names).__class__ = kind
    except TypeError:  # theirs are laid out otherwise
        return None
    return twin


def _check_of(kind: Any) -> Check | None:
    """What a kind looks at once its fields are filled."""
    found: Check | None = getattr(kind, "__post_init__", None)
    return found


@cache
def _replacer(kind: Any) -> Callable[[Any, dict[str, Any]], Any]:
    """What makes another one of a kind with some of its fields changed."""
    twin, check = twin_of(kind), _check_of(kind)
    if twin is None:
        return lambda one, changes: dataclasses.replace(one, **changes)
    names = [field.name for field in dataclasses.fields(kind)]
    known, values_of = frozenset(names), attrgetter(*names)
    is_one = len(names) == 1  # then the library's getter gives no tuple

    def replaced(one: Any, changes: dict[str, Any]) -> Any:
        made = twin(values_of(one)) if is_one else twin(*values_of(one))
        for name, value in changes.items():
            if name not in known:
                raise TypeError(f"{kind.__name__} has no field {name!r}")
            setattr(made, name, value)
        made.__class__ = kind
        if check is not None:
            check(made)
        return made

    return replaced


if TYPE_CHECKING:
    from dataclasses import replace as replace  # its checker knows the fields of each kind
else:

    def replace(one: Any, /, **changes: Any) -> Any:
        """The same with these fields changed. Raises TypeError for a field that it has not."""
        return _replacer(type(one))(one, changes)
