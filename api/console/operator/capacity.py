"""How full the market is, and how much of it cannot be sold: by day, region and model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from api.console.drawing.plots import Bar, Bars
from api.console.visits.reading import Told
from api.console.visits.visit import Visit

DAYS, ROWS_MAX = 30, 500
GPU_HOUR_MS = 3_600_000
USES = ("leased", "idle", "mined", "stranded", "unavailable")


async def show(visit: Visit) -> Response:
    """`/operate/capacity`: the last 30 days of UTC, today included."""
    today = datetime.fromtimestamp(visit.service.clock.now_us() // 1_000_000, UTC).date()
    days = [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]
    since = f"{days[0]}T00:00:00Z"
    by_day = await _gpu_time(visit, "day", since)
    found = {str(one["day"])[:10]: one for one in by_day}
    bars = [Bar(str(day.day), _hundredths(found.get(str(day)))) for day in days]
    title = f"Capacity by day, {days[0].day} {days[0]:%B} to {today.day} {today:%B}"
    plot = Bars(title, "GPU-hours", 2, bars, USES)
    free = await visit.read("/v1/fragmentation", by="model")
    return visit.show(
        "operator/capacity.html",
        plot=plot,
        uses=USES,
        regions=await _gpu_time(visit, "region", since),
        models=await _gpu_time(visit, "model", since),
        free=free["data"],
    )


async def _gpu_time(visit: Visit, by: str, since: str) -> list[Told]:
    found = await visit.read("/v1/utilisation", by=by, limit=ROWS_MAX, **{"from": since})
    return [one for one in found["data"] if one["asset"] == "GPU_MS"]


def _hundredths(one: Told | None) -> tuple[int, ...]:
    """GPU-milliseconds as hundredths of a GPU-hour, for the eye: rounded down."""
    return tuple(0 if one is None else int(one[use]) * 100 // GPU_HOUR_MS for use in USES)
