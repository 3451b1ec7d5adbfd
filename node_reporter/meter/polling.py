"""One poll of one board: ask, stamp, classify. The only place where driver errors become health.

A board is looked at first: it may be cut into other instances than at the last poll, and then each
device that it is now is read. A poll is stamped when its answer was there. A call that took longer
than 2.5 ticks saw nothing that can be dated, so it is blind whatever it answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from node_reporter.clock import Clock, Moment
from node_reporter.gpus.seam import Backend, Device, DeviceLost, Health, MonitorBlind
from node_reporter.meter.meter import Poll


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A poll with what the error said, for events and for the decision to restart."""

    device_id: str
    poll: Poll
    code: int | None = None
    why: str = ""
    restart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one board was found to be. Where it could not be looked at, `devices` is None and the
    one outcome is that of all its devices, under the board's id.
    """

    board_id: str
    at: Moment
    devices: tuple[Device, ...] | None
    outcomes: tuple[Outcome, ...]

    def of(self, device_ids: tuple[str, ...]) -> Iterator[Outcome]:
        """The outcomes, with a board that could not be looked at spread over these devices."""
        if self.devices is not None:
            yield from self.outcomes
            return
        for device_id in device_ids:
            yield replace(self.outcomes[0], device_id=device_id)


def see(backend: Backend, board_id: str, clock: Clock, *, driver_epoch: int, tick_us: int) -> Sight:
    """Look at one board and read what it is. Never raises for what a board or its driver does."""
    try:
        devices = tuple(backend.look(board_id))
    except (DeviceLost, MonitorBlind) as error:
        at = clock.now()
        outcome = _failed(board_id, at, driver_epoch, error)
        return Sight(board_id=board_id, at=at, devices=None, outcomes=(outcome,))
    looked = clock.now()
    outcomes = tuple(
        poll(backend, device.id, clock, driver_epoch=driver_epoch, tick_us=tick_us)
        for device in devices
    )
    return Sight(board_id=board_id, at=looked, devices=devices, outcomes=outcomes)


def poll(
    backend: Backend, device_id: str, clock: Clock, *, driver_epoch: int, tick_us: int
) -> Outcome:
    """Read one device. Never raises for what a device or its driver does."""
    asked = clock.now()
    try:
        reading = backend.read(device_id)
    except (DeviceLost, MonitorBlind) as error:
        return _failed(device_id, clock.now(), driver_epoch, error)
    answered = clock.now()
    if answered.mono_us - asked.mono_us > tick_us * 5 // 2:
        return Outcome(
            device_id=device_id, poll=blind_poll(answered, driver_epoch), why="the call hung"
        )
    healthy = Poll(at=answered, health=Health.HEALTHY, driver_epoch=driver_epoch, reading=reading)
    return Outcome(device_id=device_id, poll=healthy)


def _failed(
    device_id: str, at: Moment, driver_epoch: int, error: DeviceLost | MonitorBlind
) -> Outcome:
    health = Health.GONE if isinstance(error, DeviceLost) else Health.BLIND
    return Outcome(
        device_id=device_id,
        poll=Poll(at=at, health=health, driver_epoch=driver_epoch),
        code=error.code,
        why=str(error),
        restart=isinstance(error, MonitorBlind) and error.restart,
    )


def blind_poll(at: Moment, driver_epoch: int) -> Poll:
    """What the reporter books while a device's thread does not come back."""
    return Poll(at=at, health=Health.BLIND, driver_epoch=driver_epoch)
