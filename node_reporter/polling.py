"""One poll of one device: ask, stamp, classify. The only place where driver errors become health.

A poll is stamped when its answer was there. A call that took longer than 2.5 ticks saw nothing that
can be dated, so it is blind whatever it answered.
"""

from __future__ import annotations

from dataclasses import dataclass

from node_reporter.clock import Clock, Moment
from node_reporter.gpus import Backend, DeviceLost, MonitorBlind
from node_reporter.meter import Health, Poll


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A poll with what the error said, for events and for the decision to restart."""

    device_id: str
    poll: Poll
    code: int | None = None
    why: str = ""
    restart: bool = False


def poll(
    backend: Backend, device_id: str, clock: Clock, *, driver_epoch: int, tick_us: int
) -> Outcome:
    """Read one device. Never raises for what a device or its driver does."""
    asked = clock.now()
    try:
        reading = backend.read(device_id)
    except DeviceLost as lost:
        at = Poll(at=clock.now(), health=Health.GONE, driver_epoch=driver_epoch)
        return Outcome(device_id=device_id, poll=at, code=lost.code, why=str(lost))
    except MonitorBlind as blind:
        at = blind_poll(clock.now(), driver_epoch)
        return Outcome(
            device_id=device_id, poll=at, code=blind.code, why=str(blind), restart=blind.restart
        )
    answered = clock.now()
    if answered.mono_us - asked.mono_us > tick_us * 5 // 2:
        return Outcome(
            device_id=device_id, poll=blind_poll(answered, driver_epoch), why="the call hung"
        )
    healthy = Poll(at=answered, health=Health.HEALTHY, driver_epoch=driver_epoch, reading=reading)
    return Outcome(device_id=device_id, poll=healthy)


def blind_poll(at: Moment, driver_epoch: int) -> Poll:
    """What the reporter books while a device's thread does not come back."""
    return Poll(at=at, health=Health.BLIND, driver_epoch=driver_epoch)
