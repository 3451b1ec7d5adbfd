"""Usage of other resources than GPUs, as CloudEvents 1.0: what may be sent, and what it means.

    one event in -> stored once (accepted), known already (duplicate), or refused by name (rejected)

An event is judged by itself, so one bad event costs no other. The stored form is the event's JSON
with its keys sorted and no spaces: the same event is the same bytes, however it was written. GPU
time is refused here: nodes sign that (`domain/metering/report.py`). Source: design api 10.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from api.door.models import LeaseId
from api.door.moments import parse_moment
from domain.prices.tariff import METERS
from ledger.log.meter_log import Item, Status

BATCH = "application/cloudevents-batch+json"
ONE = "application/cloudevents+json"
TYPE = "tallystick.usage.metered.v1"
AHEAD_US = 300_000_000
"""How far an event's time, or the end of its window, may lie ahead of the server's."""
OLD_US = 35 * 86_400_000_000
"""How old an event, or the beginning of its window, may be."""
RATES_MAX = {"cpu": 4_096, "memory": 65_536, "storage": 10**7, "network": 10**12}
"""Units per second that one source of one lease can use: more is a mistake of the meter."""
DETAIL_MAX = 300

Ascii = r"^[!-~]{1,%d}$"
Moment = Annotated[str, Field(max_length=40, examples=["2026-11-20T08:00:00Z"])]


class ResourceEventDataRequest(BaseModel):
    """`quantity` used in [from, to), in the meter's unit. `route` and `dataset` say over which
    network route bytes went and of which dataset they were.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    meter: Annotated[str, Field(pattern=Ascii % 32, examples=sorted(METERS))]
    quantity: Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,17})$", examples=["14400"])]
    unit: Annotated[str, Field(pattern=Ascii % 32, examples=sorted(set(METERS.values())))]
    from_: Annotated[Moment, Field(alias="from")]
    to: Moment
    route: Annotated[str | None, Field(pattern=Ascii % 128)] = None
    dataset: Annotated[str | None, Field(pattern=Ascii % 256)] = None


class ResourceEventRequest(BaseModel):
    """CloudEvents 1.0; `subject` is the lease. Ids derive from what was measured, never at random:
    an event that is sent again must carry its id again.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "specversion": "1.0",
                    "id": "boot1/cpu/lease1/2026-11-20T08",
                    "source": "/nodes/1/meter",
                    "type": TYPE,
                    "subject": "lease_" + "1" * 32,
                    "time": "2026-11-20T09:00:00Z",
                    "datacontenttype": "application/json",
                    "data": {
                        "meter": "cpu",
                        "quantity": "14400",
                        "unit": "core-second",
                        "from": "2026-11-20T08:00:00Z",
                        "to": "2026-11-20T09:00:00Z",
                    },
                }
            ]
        },
    )

    specversion: Literal["1.0"]
    id: Annotated[str, Field(pattern=Ascii % 128)]
    source: Annotated[str, Field(pattern=Ascii % 128, description="A URI reference")]
    type: Literal["tallystick.usage.metered.v1"]
    subject: LeaseId
    time: Moment
    datacontenttype: Literal["application/json"] | None = None
    data: ResourceEventDataRequest


@dataclass(frozen=True, slots=True)
class Rejected:
    """An event that is not stored: which one of the request, the rule, and what broke it."""

    index: int
    code: str
    detail: str


def read_event(index: int, value: Any, now_us: int) -> Item | Rejected:
    """One event as the log takes it, or why it is not taken."""
    try:
        event = ResourceEventRequest.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(str(part) for part in first["loc"])
        return _rejected(index, "invalid", f"#/{where}: {first['msg']}")
    data = event.data
    if "gpu" in data.meter.lower() or "gpu" in data.unit.lower():
        return _rejected(index, "gpu_time_refused", "nodes sign the time of GPUs in usage reports")
    if data.meter not in METERS:
        told = ", ".join(sorted(METERS))
        return _rejected(index, "meter_unknown", f"#/data/meter: one of {told}")
    if data.unit != METERS[data.meter]:
        return _rejected(index, "unit_wrong", f"#/data/unit: {data.meter} is {METERS[data.meter]}")
    try:
        time_us, from_us, to_us = map(parse_moment, (event.time, data.from_, data.to))
    except ValueError as error:
        return _rejected(index, "invalid", f"#/time, #/data/from, #/data/to: {error}")
    if from_us >= to_us:
        return _rejected(index, "window_empty", "#/data/to: later than #/data/from")
    quantity = int(data.quantity)
    if quantity * 1_000_000 > RATES_MAX[data.meter] * (to_us - from_us):
        most = f"{RATES_MAX[data.meter]} {data.unit}s a second"
        return _rejected(index, "quantity_out_of_range", f"#/data/quantity: at most {most}")
    body = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return Item(
        source=event.source,
        event_id=event.id,
        lease_id=event.subject,
        meter=data.meter,
        quantity=quantity,
        from_us=from_us,
        to_us=to_us,
        route=data.route,
        dataset=data.dataset,
        body=body,
        is_timely=max(time_us, to_us) <= now_us + AHEAD_US
        and min(time_us, from_us) >= now_us - OLD_US,
    )


def refusal_of(index: int, status: Status, position: int | None) -> Rejected:
    """What the log's refusal means to who sent the event."""
    match status:
        case Status.ID_REUSED:
            told = f"another payload is stored under this source and id, position {position}"
            return _rejected(index, "id_reused", told)
        case Status.OVERLAP:
            told = f"the time is metered already by the event at position {position}"
            return _rejected(index, "window_overlaps", told)
        case _:
            assert status is Status.UNTIMELY, status
            told = "times lie at most 5 minutes ahead and 35 days back"
            return _rejected(index, "time_out_of_range", told)


def _rejected(index: int, code: str, detail: str) -> Rejected:
    return Rejected(index, code, detail[:DETAIL_MAX])


def split(values: Sequence[Any], now_us: int) -> tuple[list[tuple[int, Item]], list[Rejected]]:
    """The events that may be stored, with their place in the request, and the others."""
    good: list[tuple[int, Item]] = []
    bad: list[Rejected] = []
    for index, value in enumerate(values):
        read = read_event(index, value, now_us)
        if isinstance(read, Rejected):
            bad.append(read)
        else:
            good.append((index, read))
    return good, bad
