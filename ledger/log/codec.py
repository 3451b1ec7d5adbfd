"""The names and bytes facts carry in the log, and nothing about where they are stored.

A name is a promise to every log ever written, so a room spells it out and never derives it from a
module path: code may move, stored names may not. A body is UTF-8 JSON, keys sorted, no spaces:

    decode(name, body) == fact   and   encode(fact, ...) == (name, body)     for every stored body

Money and everything marked `Big` is a decimal string, because other readers round JSON numbers;
what is None is left out. `command_id` and `blind` are in the body and not in the fact.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from domain.frozen import maker
from domain.money import Amount, Asset
from domain.rules import FACTS

BODY_BYTES_MAX = 60_000
JSON_INT_MAX = 2**53 - 1

NAMES: dict[str, type[Any]] = FACTS
"""Stored name -> fact; each room spells out its own (`domain/<room>/registry.py`)."""

Values = dict[str, Any]
Upcast = Callable[[Values], tuple[str, Values]]

UPCASTERS: dict[str, Upcast] = {}
"""Old name -> what its values are called and look like today. Bytes are never rewritten."""

NAME_OF: dict[type[Any], str] = {fact_type: name for name, fact_type in NAMES.items()}
assert len(NAME_OF) == len(NAMES), "a fact has two names"

_ASSETS = {asset.value: asset for asset in Asset}
_ENVELOPE = ("command_id", "blind")
_dumps = msgspec.json.Encoder(order="sorted").encode
_loads = msgspec.json.Decoder().decode


class NotStorable(ValueError):
    """These bytes are not what the log stores under this name."""


def blind(blinding_key: bytes, originator_id: UUID, version: int) -> str:
    """Keeps leaves unguessable: HMAC-SHA-256(blinding key, originator_id || version)[:16], hex."""
    message = originator_id.bytes + version.to_bytes(8, "big")
    return hmac.digest(blinding_key, message, hashlib.sha256)[:16].hex()


def encode(fact: Any, command_id: str, blind: str) -> tuple[str, bytes]:
    """The stored name and body of a fact.

    Asserts what the log relies on: at most 60,000 bytes, no NUL (PostgreSQL's JSON has none), and
    no JSON number above 2^53 - 1.
    """
    fact_type = type(fact)
    values = _encoder(fact_type, _json_int)(fact)
    assert command_id
    values["command_id"] = command_id
    values["blind"] = blind
    body = _dumps(values)
    assert len(body) <= BODY_BYTES_MAX, f"{NAME_OF[fact_type]}: {len(body)} bytes"
    assert b"\\u0000" not in body or not _has_nul(_loads(body)), "NUL in a fact"
    return NAME_OF[fact_type], body


def decode(name: str, body: bytes) -> Any:
    """The fact stored under this name, of today's shape.

    Raises NotStorable when the bytes do not have exactly that shape.
    """
    try:
        values = _loads(body)
    except ValueError as error:
        raise NotStorable(f"{name}: {error}") from error
    return decode_values(name, values)


def reading(name: str, body: bytes) -> tuple[type[Any], Any]:
    """Its type and the fact for a reader of few of its fields: each is decoded, and checked, when
    it is first asked for. Such a fact is equal to no decoded one. Raises NotStorable, then or here.
    """
    try:
        values = _loads(body)
    except ValueError as error:
        raise NotStorable(f"{name}: {error}") from error
    fact_type, values = _today(name, values)
    if fact_type not in _readings:
        _readings[fact_type] = _build_reading(fact_type)
    fact = object.__new__(_readings[fact_type])
    object.__setattr__(fact, _STORED, values)
    return fact_type, fact


def _today(name: str, values: Any) -> tuple[type[Any], Values]:
    """The type of a stored fact and its values as they look today."""
    while name in UPCASTERS:
        name, values = UPCASTERS[name](values)
    fact_type = NAMES.get(name)
    if fact_type is None:
        raise NotStorable(f"{name}: no such fact")
    if not isinstance(values, dict):
        raise NotStorable(f"{name}: not an object")
    return fact_type, values


def decode_values(name: str, values: Values) -> Any:
    """`decode` for a body that is parsed already. Raises NotStorable."""
    fact_type, values = _today(name, values)
    values = values.copy()
    for key in _ENVELOPE:
        if not isinstance(values.pop(key, None), str):
            raise NotStorable(f"{name}: {key} is missing")
    try:
        return _decoder(fact_type)(values)
    except NotStorable as error:
        raise NotStorable(f"{name}: {error}") from None


def encode_state(state: Any) -> bytes:
    """The bytes of a folded state: for snapshots only, in no hash, read by nobody else."""
    return _dumps(_encoder(type(state), _any_int)(state))


def decode_state(state_type: type[Any], body: bytes) -> Any:
    """The state that `encode_state` wrote. Raises NotStorable when it has another shape."""
    return _decoder(state_type)(_loads(body))


# From type hints to plain JSON values and back. One function per type, built once.

_Encode = Callable[[Any], Any]
_encoders: dict[tuple[Any, _Encode], _Encode] = {}
_decoders: dict[Any, Callable[[Any], Any]] = {}


def _encoder(kind: Any, plain_int: _Encode) -> _Encode:
    if (kind, plain_int) not in _encoders:
        _encoders[kind, plain_int] = _build_encoder(kind, plain_int)
    return _encoders[kind, plain_int]


def _decoder(kind: Any) -> Callable[[Any], Any]:
    if kind not in _decoders:
        _decoders[kind] = _build_decoder(kind)
    return _decoders[kind]


def _build_encoder(kind: Any, plain_int: _Encode) -> _Encode:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _big_to_text
    if kind is int:
        return plain_int
    if kind in (str, bool):
        return _as_it_is
    if kind is Amount:
        return lambda amount: {"asset": amount.asset, "units": str(amount.units)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda value: value.value
    if origin in (Union, UnionType):
        inner = _encoder(_without_none(arguments), plain_int)
        return lambda value: None if value is None else inner(value)
    if origin in (tuple, frozenset):
        return _sequence_encoder(origin, arguments, plain_int)
    if origin is dict:
        key, value = (_encoder(argument, plain_int) for argument in arguments)
        return lambda values: [[key(k), value(v)] for k, v in sorted(values.items())]
    assert is_dataclass(kind), f"{kind} has no stored form"
    return _object_encoder(kind, plain_int)


def _sequence_encoder(origin: Any, arguments: tuple[Any, ...], plain_int: _Encode) -> _Encode:
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = [_encoder(argument, plain_int) for argument in arguments]
        return lambda values: [part(v) for part, v in zip(parts, values, strict=True)]
    item = _encoder(arguments[0], plain_int)
    if item is _json_int and origin is tuple:
        return _json_ints
    if origin is frozenset:
        return lambda values: [item(value) for value in sorted(values)]
    return lambda values: [item(value) for value in values]


def _object_encoder(kind: Any, plain_int: _Encode) -> _Encode:
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]
    # What is absent is left out here, so nobody else has to look whether it is there.
    parts = [_encoder(_present(hints[name]), plain_int) for name in names]
    values_of = _values_of(names)

    def encode_object(value: Any) -> Values:
        assert type(value) is kind, f"{type(value).__name__} is not {kind.__name__}"
        found = {}
        for name, part, plain in zip(names, parts, values_of(value), strict=True):
            if plain is None:
                continue
            if part is _json_int:  # most are; looked at here, without a call for each
                assert type(plain) is int, plain
                assert -JSON_INT_MAX <= plain <= JSON_INT_MAX, _rounded(plain)
            elif part is not _as_it_is:
                plain = part(plain)
            found[name] = plain
        return found

    return encode_object


def _values_of(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Reads these attributes together; with one name the library's getter gives no tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


def _present(hint: Any) -> Any:
    """The type of a value that is there."""
    return _without_none(get_args(hint)) if _is_optional(hint) else hint


def _as_it_is(value: Any) -> Any:
    return value


def _big_to_text(value: int) -> str:
    assert type(value) is int, value
    return str(value)


def _any_int(value: int) -> int:
    assert type(value) is int, value
    return value


def _json_int(value: int) -> int:
    assert type(value) is int, value
    assert -JSON_INT_MAX <= value <= JSON_INT_MAX, _rounded(value)
    return value


def _json_ints(values: Sequence[int]) -> list[int]:
    for value in values:
        assert type(value) is int, value
        assert -JSON_INT_MAX <= value <= JSON_INT_MAX, _rounded(value)
    return list(values)


def _rounded(value: int) -> str:
    return f"{value} would be rounded: mark it Big"


def _build_decoder(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _big_from_text
    if kind in (int, str, bool):
        return _exactly(kind)
    if kind is Amount:
        return _amount
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = {member.value: member for member in kind}
        return lambda value: members[value] if value in members else _wrong(value, kind.__name__)
    if origin in (Union, UnionType):
        inner = _decoder(_without_none(arguments))
        return lambda value: None if value is None else inner(value)
    if origin in (tuple, frozenset):
        return _sequence_decoder(origin, arguments)
    if origin is dict:
        key, value = map(_decoder, arguments)
        return lambda pairs: {key(k): value(v) for k, v in _exactly(list)(pairs)}
    assert is_dataclass(kind), f"{kind} has no stored form"
    return _object_decoder(kind)


def _sequence_decoder(origin: Any, arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    a_list = _exactly(list)
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = [_decoder(argument) for argument in arguments]
        return lambda values: tuple(
            part(value) for part, value in zip(parts, a_list(values), strict=True)
        )
    item = _decoder(arguments[0])
    make = origin
    return lambda values: make([item(value) for value in a_list(values)])


def _object_decoder(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind, include_extras=True)
    parts = [
        (field.name, _decoder(hints[field.name]), _is_optional(hints[field.name]))
        for field in fields(kind)
        if field.init
    ]
    assert all(field.init or field.default is not MISSING for field in fields(kind))
    make = maker(kind)

    def decode_object(values: Any) -> Any:
        if type(values) is not dict:
            _wrong(values, kind.__name__)
        decoded: list[Any] = []
        absent = 0
        for name, part, is_optional in parts:
            if name in values:
                decoded.append(part(values[name]))
            elif is_optional:
                decoded.append(None)
                absent += 1
            else:
                raise NotStorable(f"{kind.__name__}.{name} is missing")
        if len(values) + absent != len(parts):
            known = {name for name, _, _ in parts}
            raise NotStorable(f"{kind.__name__} has no {sorted(values.keys() - known)}")
        return make(*decoded)

    return decode_object


_STORED = "stored_values"
_readings: dict[type[Any], type[Any]] = {}


def _build_reading(kind: type[Any]) -> type[Any]:
    """A kind of fact whose fields are empty slots until they are read."""
    assert "__slots__" in vars(kind), f"{kind.__name__}: what is read of it is not empty before"
    hints = get_type_hints(kind, include_extras=True)
    parts = {
        field.name: (_decoder(hints[field.name]), _is_optional(hints[field.name]))
        for field in fields(kind)
        if field.init
    }
    others = {field.name: field.default for field in fields(kind) if not field.init}

    def read(fact: Any, name: str) -> Any:
        if name not in parts:
            return others[name] if name in others else object.__getattribute__(fact, name)
        part, is_optional = parts[name]
        values = getattr(fact, _STORED)
        if name not in values and not is_optional:
            raise NotStorable(f"{kind.__name__}.{name} is missing")
        value = part(values[name]) if name in values else None
        object.__setattr__(fact, name, value)
        return value

    return type(kind.__name__, (kind,), {"__slots__": (_STORED,), "__getattr__": read})


def _exactly(kind: type[Any]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        return value if type(value) is kind else _wrong(value, kind.__name__)

    return check


def _big_from_text(value: Any) -> int:
    if type(value) is not str:
        _wrong(value, "decimal string")
    try:
        number = int(value)
    except ValueError:
        number = 0
    return number if str(number) == value else _wrong(value, "decimal string")


def _amount(value: Any) -> Amount:
    if type(value) is not dict or value.keys() != {"asset", "units"}:
        _wrong(value, "Amount")
    asset = _ASSETS.get(value["asset"]) or _wrong(value["asset"], "Asset")
    return Amount(asset, _big_from_text(value["units"]))


def _wrong(value: object, wanted: str) -> Any:
    raise NotStorable(f"{str(value)[:40]!r} is not a stored {wanted}")


def _without_none(arguments: tuple[Any, ...]) -> Any:
    kinds = [argument for argument in arguments if argument is not NoneType]
    assert len(kinds) == 1, f"{arguments}: a stored value has one type"
    return kinds[0]


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_nul(one) for one in [*value.keys(), *value.values()])
    if isinstance(value, list):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\0" in value
