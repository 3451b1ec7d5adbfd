"""Check-ins: a machine that wants to join is sent to its region, or to a wait list."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import Field

from api.door.auth import with_scope
from api.door.call import After, Call, Caller
from api.door.models import (
    AnswerModel,
    Count,
    Position,
    RegionId,
    RegionInPath,
    RequestModel,
    Short,
    Told_at,
    with_examples,
)
from api.door.moments import moment
from api.door.operation import Resource
from api.fleet.growth import Phase
from api.fleet.joining import code_digest, new_code
from api.fleet.providers import managed_region, visible_region
from domain.fleet.growth import WAITLISTED
from domain.fleet.node import JOIN_CODE_LIFE_US, IssueJoinCode
from domain.fleet.reasons import FleetReason
from domain.parties.reasons import PartiesReason
from domain.record import dataclass
from domain.refusal import Refused
from domain.regions.boundaries import (
    BOUNDARIES_MAX,
    LATITUDE_E6,
    LONGITUDE_E6,
    Boundary,
    Candidate,
    Place,
    SetRegionPlace,
    choose,
    place_stream,
)
from domain.regions.wait_list import JoinWaitList, WaitList, list_of_place, wait_list_stream
from projections.fleet import regions
from projections.fleet.fleet import FLEET

resource = Resource("regions")

WRITE = with_scope("provider")
READ = with_scope("provider", "operator", "audit:read")
PlaceBy = Literal["address", "stated", "nothing"]
Country = Annotated[str, Field(pattern=r"^[A-Z]{2}$", examples=["DE"])]
State = Annotated[str, Field(pattern=r"^[A-Z]{2}-[A-Z0-9]{1,3}$", examples=["DE-BE"])]
City = Annotated[str, Field(pattern=r"^[^/\x00-\x1f]{1,80}$", examples=["Berlin"])]
Latitude = Annotated[int, Field(ge=-LATITUDE_E6, le=LATITUDE_E6)]
Longitude = Annotated[int, Field(ge=-LONGITUDE_E6, le=LONGITUDE_E6)]


class RegionBoundaryForm(RequestModel):
    """`value`: an IP network, a city as `DE-BE/Berlin`, a state of ISO 3166-2, or a country."""

    kind: Literal["network", "city", "state", "country"]
    value: Annotated[str, Field(min_length=2, max_length=100)]


class RegionPlaceRequest(RequestModel):
    """Where a region is. `address`: host and port of its control, if that is not this server.
    Millionths of a degree: its dot on the map.
    """

    boundaries: Annotated[list[RegionBoundaryForm], Field(max_length=BOUNDARIES_MAX)]
    address: Annotated[str, Field(max_length=255)] | None = None
    latitude_e6: Latitude | None = None
    longitude_e6: Longitude | None = None

    model_config = with_examples(
        {
            "boundaries": [{"kind": "state", "value": "DE-BE"}],
            "latitude_e6": 52_520_000,
            "longitude_e6": 13_405_000,
        }
    )


class RegionPlaceAnswer(AnswerModel):
    region_id: RegionId
    boundaries: list[RegionBoundaryForm]
    address: str | None = None
    latitude_e6: int | None = None
    longitude_e6: int | None = None
    position: Position | None = None


class CheckInRequest(RequestModel):
    """Where the machine says it is; what the server knows of its address outweighs it."""

    country: Country | None = None
    state: State | None = None
    city: City | None = None

    model_config = with_examples({}, {"country": "DE", "state": "DE-BE", "city": "Berlin"})


class CheckInRegionAnswer(AnswerModel):
    """`address`: where the region's control is; absent: it is this server."""

    region_id: RegionId
    name: Short
    setting: Literal["edge", "datacenter"]
    admission: Literal["operator", "permissionless"]
    address: str | None = None


class CheckInAnswer(AnswerModel):
    """`send_to`: a `region` that the machine can join, with a code where everybody may join; a
    `wait_list` that the account is on now; or `nowhere`, because its place is not known.
    `place_by`: the `address` of the call, what was `stated`, or `nothing`. `phase`: of the region.
    """

    send_to: Literal["region", "wait_list", "nowhere"]
    place_by: PlaceBy
    country: str | None = None
    state: str | None = None
    city: str | None = None
    region: CheckInRegionAnswer | None = None
    phase: Phase | None = None
    list_id: str | None = None
    number: Count | None = None
    waiting: Count | None = None
    threshold: Count | None = None
    code_expires_at: Told_at | None = None
    code: Annotated[str, Field(pattern=r"^[0-9A-Z]{8}$")] | None = None
    position: Position | None = None


@resource.post(
    "/v1/regions/{region_id}/place",
    WRITE,
    RegionPlaceAnswer,
    problems=[
        FleetReason.REGION_UNKNOWN,
        PartiesReason.UNKNOWN_MODE,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def set_region_place(region_id: RegionInPath, body: RegionPlaceRequest, call: Caller) -> Response:
    """Sets where a region is: which machines are sent to it, and its dot on the map."""

    def commands() -> SetRegionPlace:
        managed_region(call, region_id)
        return SetRegionPlace(
            region_id=region_id,
            boundaries=tuple(Boundary(one.kind, one.value) for one in body.boundaries),
            address=body.address,
            latitude_e6=body.latitude_e6,
            longitude_e6=body.longitude_e6,
            by=call.principal.member_id,
            at_us=call.now_us,
        )

    told = RegionPlaceAnswer(region_id=region_id, **body.model_dump())
    return call.record(commands, lambda _after: told)


@resource.get(
    "/v1/regions/{region_id}/place", READ, RegionPlaceAnswer, problems=[FleetReason.REGION_UNKNOWN]
)
def read_region_place(region_id: RegionInPath, call: Caller) -> Response:
    """Returns where a region is."""
    with call.read(FLEET) as view:
        visible_region(call, view.connection, region_id)
        told = call.service.ledger.market.state_of(place_stream(region_id)).told
        boundaries: list[Any] = [] if told is None else list(told.boundaries)
        answer = RegionPlaceAnswer(
            region_id=region_id,
            boundaries=[RegionBoundaryForm(kind=one.kind, value=one.value) for one in boundaries],
            address=None if told is None else told.address,
            latitude_e6=None if told is None else told.latitude_e6,
            longitude_e6=None if told is None else told.longitude_e6,
            position=view.position,
        )
        return call.answer(view, answer)


@resource.post(
    "/v1/check-ins",
    WRITE,
    CheckInAnswer,
    status=201,
    problems=[
        FleetReason.REGION_PHASE,
        FleetReason.REGION_FULL,
        FleetReason.STORAGE_NODE_STATE,
        PartiesReason.ACCOUNT_CLOSED,
        PartiesReason.COUNT_OUT_OF_RANGE,
    ],
)
def create_check_in(body: CheckInRequest, call: Caller) -> Response:
    """Sends a new machine to the region of its place, or puts the account on a wait list. Call it
    from the machine: the place is that of the address the call comes from.
    """
    place, place_by = _place(call, body)
    with call.read(FLEET) as view:
        placed = {one.region_id: one for one in regions.read_placed(view.connection)}
    chosen = choose([_candidate(one) for one in placed.values()], place)
    sent = _Sent(None if chosen is None else placed[chosen.region_id], place, place_by)
    code = new_code(call.secret("check-in/v1"))

    def commands() -> list[Any]:
        if sent.with_code:
            return [_join_code(sent, call, code)]
        return [_join_wait_list(sent, call)] if sent.waits_on is not None else []

    def told(after: After) -> AnswerModel:
        if sent.is_open:
            return _to_region(sent, call.now_us)
        if sent.waits_on is None:
            return CheckInAnswer(send_to="nowhere", **sent.known)
        return _to_wait_list(sent, after.state(wait_list_stream(sent.waits_on)), call)

    reveal = (lambda: {"code": code}) if sent.with_code else None
    return call.record(commands, told, reveal=reveal)


@dataclass(frozen=True, slots=True)
class _Sent:
    """Where a machine goes from here: to a region, to a wait list, or nowhere."""

    region: regions.Placed | None
    place: Place
    place_by: PlaceBy

    @property
    def is_open(self) -> bool:
        """Whether the region takes machines now."""
        return self.region is not None and self.region.phase != WAITLISTED

    @property
    def with_code(self) -> bool:
        """Whether everybody may join there, so that the answer holds a code."""
        return (
            self.is_open and self.region is not None and self.region.admission == "permissionless"
        )

    @property
    def waits_on(self) -> str | None:
        """The wait list: of the region that does not take machines yet, or of the place."""
        if self.is_open:
            return None
        if self.region is not None:
            return self.region.region_id
        return None if self.place.code is None else list_of_place(self.place.code)

    @property
    def known(self) -> dict[str, Any]:
        """What the answer says of the place."""
        place = self.place
        return {
            "place_by": self.place_by,
            "country": place.country,
            "state": place.state,
            "city": place.city,
        }


def _join_code(sent: _Sent, call: Call, code: str) -> IssueJoinCode:
    assert sent.region is not None
    is_own = call.principal.owns(sent.region.account_id)
    return IssueJoinCode(
        code_sha256=code_digest(code),
        provider_id=sent.region.provider_id,
        region_id=sent.region.region_id,
        owner_account_id=None if is_own else call.principal.account_id,
        by=call.principal.member_id,
        at_us=call.now_us,
    )


def _join_wait_list(sent: _Sent, call: Call) -> JoinWaitList:
    assert sent.waits_on is not None
    return JoinWaitList(
        list_id=sent.waits_on,
        account_id=call.principal.account_id,
        latitude_e6=sent.place.latitude_e6,
        longitude_e6=sent.place.longitude_e6,
        by=call.principal.member_id,
        at_us=call.now_us,
    )


def _place(call: Call, body: CheckInRequest) -> tuple[Place, PlaceBy]:
    """Where the machine is. What it states counts only where nobody knows its address."""
    peer = call.request.client
    known = call.service.geography.place("" if peer is None else peer.host)
    if known.country is not None:
        return known, "address"
    if body.state is not None and body.country not in (None, body.state[:2]):
        raise Refused(PartiesReason.UNKNOWN_MODE, state=body.state, country=body.country)
    country = body.country or (None if body.state is None else body.state[:2])
    if country is None:
        return known, "nothing"
    return Place(country, body.state, body.city, known.address), "stated"


def _candidate(row: regions.Placed) -> Candidate:
    return Candidate(
        row.region_id,
        row.phase,
        row.workers,
        row.workers_max,
        tuple(Boundary(one["kind"], one["value"]) for one in row.boundaries),
    )


def _region(row: regions.Placed) -> CheckInRegionAnswer:
    told: Any = row
    return CheckInRegionAnswer(
        region_id=told.region_id,
        name=told.name,
        setting=told.setting,
        admission=told.admission,
        address=told.address,
    )


def _to_region(sent: _Sent, now_us: int) -> CheckInAnswer:
    row = sent.region
    assert row is not None
    phase: Any = row.phase
    return CheckInAnswer(
        send_to="region",
        **sent.known,
        region=_region(row),
        phase=phase,
        code_expires_at=moment(now_us + JOIN_CODE_LIFE_US) if sent.with_code else None,
    )


def _to_wait_list(sent: _Sent, waiting: WaitList, call: Call) -> CheckInAnswer:
    phase: Any = None if sent.region is None else sent.region.phase
    return CheckInAnswer(
        send_to="wait_list",
        **sent.known,
        region=None if sent.region is None else _region(sent.region),
        phase=phase,
        list_id=sent.waits_on,
        number=waiting.account_ids.index(call.principal.account_id) + 1,
        waiting=len(waiting.account_ids),
        threshold=waiting.threshold,
    )
