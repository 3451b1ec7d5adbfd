"""How well the accelerators are used: where their time went, and how what is free is cut up.

Times by pool, region and model are everybody's to see; a single node's are its owner's.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from api.door.amounts import Units
from api.door.auth import with_scope
from api.door.call import Caller
from api.door.models import AnswerModel, Count, FromQuery, MomentQuery, Told_at, page_of
from api.door.moments import moment_or_none
from api.door.operation import Resource
from api.door.paging import LIST_LIMIT, Cursor, Limit
from api.door.timespans import bounded
from projections.fleet import utilisation
from projections.fleet.fleet import FLEET
from projections.fleet.utilisation import NAMES, START, UTILISATION, Fragmentation, Utilisation

resource = Resource("utilisation")

READ = with_scope("renter", "provider", "client", "operator", "audit:read")
_NAMES = "pool|region|model|node"
By = Annotated[
    str,
    Query(
        pattern=rf"^(hour|day|{_NAMES})(,({_NAMES})){{0,4}}$",
        description="What to sum by: hour or day first, then any of the rest, commas between",
    ),
]
CutBy = Annotated[
    str, Query(pattern=r"^(pool|region|model)(,(pool|region|model)){0,2}$", description="What by")
]
PoolQuery = Annotated[str | None, Query(pattern=r"^pool_[0-9a-zA-Z_]{1,80}$")]


class UtilisationAnswer(AnswerModel):
    """Milliseconds of one group: leased + idle + mined + stranded + unavailable = physical.
    `mined`: no lease held a part of the device, and its provider states that the node mines then.
    `asset` is GPU_MS, or SEAT_MS for software. `pool` is empty for nodes of no pool.
    """

    hour: Told_at | None = None
    day: Told_at | None = None
    pool: str | None = None
    region: str | None = None
    model: str | None = None
    node: str | None = None
    asset: str
    physical: Units
    leased: Units
    idle: Units
    mined: Units
    stranded: Units
    unavailable: Units
    leased_ppm: Count


class FragmentationAnswer(AnswerModel):
    """The free parts of devices now, in ppm of a device. `fragmented_ppm`: the free part on devices
    that have a holder, which cannot be sold whole. `room_N`: how many requests for N whole devices
    of one node fit side by side.
    """

    pool: str | None = None
    region: str | None = None
    model: str | None = None
    devices: Count
    whole_free: Count
    partly_free: Count
    free_ppm: Units
    free_on_parts_ppm: Units
    unsellable_ppm: Units
    fragmented_ppm: Count
    room_1: Count
    room_2: Count
    room_4: Count
    room_8: Count


class FragmentationsAnswer(AnswerModel):
    data: list[FragmentationAnswer]
    position: Count


@resource.get("/v1/utilisation", READ, page_of(UtilisationAnswer), problems=["cursor_invalid"])
def list_utilisation(
    call: Caller,
    by: By = "pool",
    pool_id: PoolQuery = None,
    from_: FromQuery = None,
    to: MomentQuery = None,
    limit: Limit = LIST_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Lists the accelerators' time by use: leased, idle, mined, stranded, unavailable."""
    groups = tuple(dict.fromkeys(by.split(",")))
    from_us, to_us = bounded(from_, to, call.now_us)
    place = call.place(cursor, list(START))
    only = call.principal.only if "node" in groups else None
    with call.read(FLEET, UTILISATION) as view:
        rows = utilisation.read_utilisation(
            view.connection,
            by=groups,
            from_us=from_us,
            to_us=to_us,
            account_id=only,
            pool_id=pool_id,
            after=tuple(place.after),
            limit=limit + 1,
        )
        return call.page(
            view, place, rows, limit, lambda row: list(row.key), lambda row: _told(row, groups)
        )


@resource.get("/v1/fragmentation", READ, FragmentationsAnswer)
def list_fragmentation(call: Caller, by: CutBy = "pool", pool_id: PoolQuery = None) -> Response:
    """Lists what is free now, and whether it can be sold as whole devices."""
    with call.read(FLEET, UTILISATION) as view:
        rows = utilisation.read_fragmentation(
            view.connection, by=tuple(by.split(",")), pool_id=pool_id
        )
        data = [_cut(row) for row in rows]
        return call.answer(view, FragmentationsAnswer(data=data, position=view.position))


def _told(row: Utilisation, groups: tuple[str, ...]) -> UtilisationAnswer:
    return UtilisationAnswer(
        hour=moment_or_none(row.bucket_us) if "hour" in groups else None,
        day=moment_or_none(row.bucket_us) if "day" in groups else None,
        **{name: (getattr(row, name) or "") if name in groups else None for name in NAMES},
        asset=row.asset,
        physical=str(row.physical),
        leased=str(row.leased),
        idle=str(row.idle),
        mined=str(row.mined),
        stranded=str(row.stranded),
        unavailable=str(row.unavailable),
        leased_ppm=0 if not row.physical else row.leased * 1_000_000 // row.physical,
    )


def _cut(row: Fragmentation) -> FragmentationAnswer:
    return FragmentationAnswer(
        pool=row.pool,
        region=row.region,
        model=row.model,
        devices=row.devices,
        whole_free=row.whole_free,
        partly_free=row.partly_free,
        free_ppm=str(row.free_ppm),
        free_on_parts_ppm=str(row.free_on_parts_ppm),
        unsellable_ppm=str(row.unsellable_ppm),
        fragmented_ppm=row.fragmented_ppm,
        room_1=row.room_1,
        room_2=row.room_2,
        room_4=row.room_4,
        room_8=row.room_8,
    )
