"""`@dataclass(frozen=True, ...)` as in the standard library, made in less time and memory.

    made here  ==  made by `dataclasses.dataclass`: fields, parameters, equality, hash, text,
                   immutability, pickling

The standard library writes six functions for a frozen class as text and compiles each by itself. A
server has more than a thousand such classes, and that was a third of the processor time of its
start. Here the three that run often are written and compiled together, and all classes share the
others. What asks for more than `frozen`, `slots` and `kw_only`, inherits fields, or brings one of
these functions is left to the standard library.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field, FrozenInstanceError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, slots: bool = False, kw_only: bool = False, **others: bool
    ) -> Any:
        """As `dataclasses.dataclass`, with brackets and without."""

        def made(found: type) -> type:
            if others == {"frozen": True} and _is_plain(found):
                return _frozen(found, slots=slots, kw_only=kw_only)
            return dataclasses.dataclass(found, slots=slots, kw_only=kw_only, **others)

        return made if cls is None else made(cls)


_MADE = frozenset(
    f"__{name}__"
    for name in ("init", "repr", "eq", "hash", "setattr", "delattr", "getstate", "setstate")
)
_KNOWN: dict[str, Any] = {"_record_set": object.__setattr__, "_record_missing": MISSING}
_TEXT = """
def __init__({parameters}):
{lines}
def __eq__(self, other):
  if other.__class__ is self.__class__:
    return ({ours}) == ({others})
  return NotImplemented
def __hash__(self):
  return hash(({ours}))
"""


def _is_plain(cls: type) -> bool:
    """Whether nothing of what is made here is there already."""
    inherits = any(dataclasses.is_dataclass(each) for each in cls.__mro__[1:])
    return not inherits and not _MADE & vars(cls).keys()


def _frozen(cls: type, *, slots: bool, kw_only: bool) -> type:
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else the standard library takes time for a signature
    made: Any = dataclasses.dataclass(
        cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
    )
    told = made.__dataclass_params__
    told.init = told.repr = told.eq = told.frozen = True
    for name, function in _written(made).items():
        function.__qualname__, function.__module__ = f"{made.__qualname__}.{name}", made.__module__
        setattr(made, name, function)
    made.__repr__, made.__setattr__, made.__delattr__ = _repr, _setattr, _delattr
    if slots:
        made.__getstate__, made.__setstate__ = _getstate, _setstate
    found: type = made
    return found


def _written(cls: Any) -> dict[str, Any]:
    """`__init__`, whose parameters are the fields, `__eq__` and `__hash__`."""
    fields = dataclasses.fields(cls)
    assert all(each.init and each.hash is None for each in fields), cls
    first = [each for each in fields if not each.kw_only]
    later = [each for each in fields if each.kw_only]
    lines, known = [], _KNOWN
    for each in fields:
        value = each.name
        if each.default_factory is not MISSING:
            known = {**known, f"_record_new_{value}": each.default_factory}
            value = f"_record_new_{value}() if {value} is _record_missing else {value}"
        lines.append(f"  _record_set(_record_self, {each.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("  _record_self.__post_init__()")
    parameters = ["_record_self", *map(_parameter, first)]
    parameters += ["*", *map(_parameter, later)] if later else []
    compared = [each.name for each in fields if each.compare]
    text = _TEXT.format(
        parameters=", ".join(parameters),
        lines="\n".join(lines or ["  pass"]),
        ours="".join(f"self.{name}," for name in compared),
        others="".join(f"other.{name}," for name in compared),
    )
    written: dict[str, Any] = {}
    exec(text, known, written)  # noqa: S102 - names of fields and nothing else
    init = written["__init__"]
    init.__defaults__ = tuple(each.default for each in first if _has_default(each)) or None
    init.__kwdefaults__ = {each.name: each.default for each in later if _has_default(each)} or None
    return written


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _parameter(field: Field[Any]) -> str:
    return f"{field.name}=0" if _has_default(field) else field.name


def _repr(self: Any) -> str:
    fields = [each for each in dataclasses.fields(self) if each.repr]
    told = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields)
    return f"{type(self).__qualname__}({told})"


def _setattr(_self: Any, name: str, _value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(_self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
