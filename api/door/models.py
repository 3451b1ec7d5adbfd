"""The forms every resource shares: what is read strictly, what is told, ids and times.

What comes in is checked to the letter: unknown fields refused, no coercion, no number beyond
2^53 - 1. What goes out leaves absent things absent. Each resource keeps its own forms beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
)

from api.door.amounts import INTEGER_MAX
from api.door.moments import parse_moment
from domain.lease.mounts import VolumeMount
from domain.paths import PATH_BYTES_MAX
from domain.references import REFERENCE_MAX

LeaseState = Literal[
    "requested",
    "quoted",
    "reserved",
    "gang_waiting",
    "active",
    "paused",
    "degraded",
    "reclaiming",
    "closing",
    "settled",
    "disputed",
    "resolved",
    "archived",
]
"""Every word of `domain/lease/states.py`."""

LIST_MAX = 1_000
TEXT_MAX = 256


class RequestModel(BaseModel):
    """The base of everything a client sends."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def with_examples(*examples: Mapping[str, Any]) -> ConfigDict:
    """The configuration of `Asked`, with examples for the OpenAPI document and for its tests."""
    told: list[Any] = [dict(example) for example in examples]
    return ConfigDict(
        extra="forbid", strict=True, frozen=True, json_schema_extra={"examples": told}
    )


class AnswerModel(BaseModel):
    """The base of everything the server answers, under the document's names; None is left out."""

    # Put together with the first answer: a start does not wait for hundreds.
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, serialize_by_alias=True, defer_build=True
    )


class FactAnswer(AnswerModel):
    """The base of an answer that is one fact of the market log: `position` is the fact's own.

    The header `Tallystick-Position` says which position the answer reflects; elsewhere `position`
    says it, too.
    """


class EmptyRequest(RequestModel):
    """No fields: `{}`."""

    model_config = with_examples({})


# --- times -----------------------------------------------------------------------------------

_MOMENT_SCHEMA = {
    "type": "string",
    "format": "date-time",
    "description": "RFC 3339 with an offset, up to microseconds",
    "examples": ["2026-11-20T08:00:00Z"],
}


def _recordable(at_us: int) -> int:
    if at_us > INTEGER_MAX:
        raise ValueError("a time that is recorded lies before 2255-06-05T23:47:34.740992Z")
    return at_us


_AnyMoment = Annotated[int, BeforeValidator(parse_moment), WithJsonSchema(_MOMENT_SCHEMA)]
Moment = Annotated[_AnyMoment, AfterValidator(_recordable)]
"""A time to be recorded: text on the wire, microseconds here, at most 2^53 - 1 of them."""

Told_at = Annotated[str, WithJsonSchema(_MOMENT_SCHEMA)]
"""A time that is told."""


# --- ids and other small things --------------------------------------------------------------


IDS_MAX = 200
"""Ids that one list is asked for."""


def _several(prefix: str) -> Any:
    """A query parameter with ids of one kind."""
    one = rf"{prefix}_[0-9A-Za-z]{{1,64}}"
    return Query(
        pattern=rf"^{one}(,{one}){{0,{IDS_MAX - 1}}}$",
        description=f"Ids, {prefix}_..., at most {IDS_MAX}, with commas between them",
    )


def _id_pattern(prefix: str) -> str:
    return rf"^{prefix}_[0-9A-Za-z]{{1,64}}$"


AccountId = Annotated[str, Field(pattern=r"^[0-9A-Za-z_.-]{1,100}$", examples=["acct_" + "1" * 32])]


def no_address(value: object) -> object:
    """No e-mail address enters the log, where nothing can be erased. Raises ValueError."""
    if isinstance(value, str) and "@" in value:
        raise ValueError(
            "no e-mail address enters the log: send a name of your own without the sign '@'"
        )
    return value


MemberId = Annotated[str, BeforeValidator(no_address), Field(pattern=r"^[0-9A-Za-z_.-]{1,100}$")]
KeyId = Annotated[str, Field(pattern=r"^[0-9A-Za-z]{8,16}$")]
ProviderId = Annotated[str, Field(pattern=_id_pattern("prov"))]
RegionId = Annotated[str, Field(pattern=_id_pattern("region"))]
NodeId = Annotated[str, Field(pattern=_id_pattern("node"))]
OfferId = Annotated[str, Field(pattern=_id_pattern("offer"))]
JobId = Annotated[str, Field(pattern=_id_pattern("job"))]
VolumeId = Annotated[str, Field(pattern=_id_pattern("volume"))]
LeaseId = Annotated[str, Field(pattern=_id_pattern("lease"))]
DeviceId = Annotated[str, Field(pattern=r"^[!-.0-~]{1,96}$", description="The hardware's own UUID")]
Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]
Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Short = Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
Count = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
SignedCount = Annotated[int, Field(ge=-INTEGER_MAX, le=INTEGER_MAX)]
Position = Annotated[
    int, Field(ge=0, le=INTEGER_MAX, description="A position of the market log", examples=[42])
]
Ppm = Annotated[int, Field(ge=1, le=1_000_000, description="Parts per million of one device")]

AccountInPath = Annotated[str, Path(pattern=r"^[0-9A-Za-z_.-]{1,100}$")]
KeyInPath = Annotated[str, Path(pattern=r"^[0-9A-Za-z]{8,16}$")]
MemberInPath = Annotated[str, Path(pattern=r"^[0-9A-Za-z_.-]{1,100}$")]
ProviderInPath = Annotated[str, Path(pattern=_id_pattern("prov"))]
RegionInPath = Annotated[str, Path(pattern=_id_pattern("region"))]
NodeInPath = Annotated[str, Path(pattern=_id_pattern("node"))]
DeviceInPath = Annotated[str, Path(pattern=r"^[!-.0-~]{1,96}$")]
OfferInPath = Annotated[str, Path(pattern=_id_pattern("offer"))]
JobInPath = Annotated[str, Path(pattern=_id_pattern("job"))]
LeaseInPath = Annotated[str, Path(pattern=_id_pattern("lease"))]


def _digits(value: Any) -> Any:
    """Parameters are text: only plain digits are a number, not `1.0`, ` 1` or `1_0`."""
    if isinstance(value, str):
        if re.fullmatch(r"0|[1-9][0-9]{0,15}", value) is None:
            raise ValueError("a whole number in plain digits")
        return int(value)
    return value


def _truth(value: Any) -> Any:
    if isinstance(value, str):
        if value not in ("true", "false"):
            raise ValueError("true or false")
        return value == "true"
    return value


Digits = BeforeValidator(_digits)
EpochInPath = Annotated[int, Path(ge=1, le=2_147_483_647), Digits]
PositionInPath = Annotated[int, Path(ge=1, le=INTEGER_MAX), Digits]
AccountQuery = Annotated[str | None, Query(pattern=r"^[0-9A-Za-z_.-]{1,100}$")]
NodeQuery = Annotated[str | None, Query(pattern=_id_pattern("node"))]
LeaseQuery = Annotated[str | None, Query(pattern=_id_pattern("lease"))]
VolumeQuery = Annotated[str | None, Query(pattern=_id_pattern("volume"))]
OffersQuery = Annotated[str | None, _several("offer")]
NodesQuery = Annotated[str | None, _several("node")]
JobQuery = Annotated[str | None, Query(pattern=_id_pattern("job"))]
ProviderQuery = Annotated[str | None, Query(pattern=_id_pattern("prov"))]
RegionQuery = Annotated[str | None, Query(pattern=_id_pattern("region"))]
EpochQuery = Annotated[Annotated[int, Field(ge=1, le=2_147_483_647), Digits] | None, Query()]
PositionQuery = Annotated[
    Annotated[int, Field(ge=1, le=INTEGER_MAX), Digits] | None,
    Query(description="A position of the market log; from is in, to is out"),
]
MomentQuery = Annotated[_AnyMoment | None, Query()]
FromQuery = Annotated[_AnyMoment | None, Query(alias="from")]
PlainQuery = Annotated[int, Query(ge=0, le=INTEGER_MAX), Digits]
TruthQuery = Annotated[bool, BeforeValidator(_truth), Query()]
OpenQuery = Annotated[TruthQuery | None, Query(alias="open")]
TextQuery = Annotated[str | None, Query(min_length=1, max_length=TEXT_MAX)]


class Page(AnswerModel):
    """One page of a list; `next_cursor` is there when `has_more` is true."""

    has_more: bool
    next_cursor: str | None = None
    position: Position


@lru_cache
def page_of(item: type[AnswerModel]) -> type[Page]:
    """The page of a list of these."""
    name = f"{item.__name__.removesuffix('Answer')}Page"
    return create_model(name, __base__=Page, __doc__=Page.__doc__, data=(list[item], ...))  # type: ignore[valid-type]


ReferenceKind = Literal["third_party_key", "checkpoint", "dataset", "workspace"]
Ref = Annotated[
    str, BeforeValidator(no_address), Field(max_length=100, pattern=r"^[0-9A-Za-z_.:/-]*$")
]
Reference = Annotated[
    str, BeforeValidator(no_address), Field(min_length=1, max_length=TEXT_MAX, pattern=r"^[^@]*$")
]
TERM_SECONDS_MAX = 10 * 366 * 86_400


MountPath = Annotated[str, Field(min_length=1, max_length=PATH_BYTES_MAX, examples=["/vol/data"])]


class VolumeMountForm(RequestModel):
    """A volume of yours, and the path below /vol/ at which every lease of the job finds it."""

    volume_id: VolumeId
    path: MountPath
    read_only: bool = False

    @classmethod
    def of(cls, mount: VolumeMount) -> VolumeMountForm:
        return cls(volume_id=mount.volume_id, path=mount.path, read_only=mount.read_only)

    def mount(self) -> VolumeMount:
        return VolumeMount(self.volume_id, self.path, self.read_only)


class JobReferenceForm(RequestModel):
    """Something the job uses that is kept elsewhere: the name of a key in a secret store, or the
    address of a checkpoint or a data set, without user, password and query; of a `workspace`, which
    was kept here, its digest. Never a secret.
    """

    kind: ReferenceKind
    name: Annotated[str, Field(min_length=1, max_length=REFERENCE_MAX)]
