"""The reporter: polls in, signed reports out. One object, driven by a clock it does not own.

    time on disk + time still open == elapsed time since the first poll      for every device

`Reporter` does not sleep, start threads or read a clock of its own: `observe` takes a poll,
`turn` does whatever is due. A simulation steps its clock and calls `poll` and `turn`; `loop.py`
drives the same object in real time with a thread per device.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from nacl.signing import SigningKey

from domain import report
from node_reporter import inventory, leases, polling, rows
from node_reporter.client import Transport, Unreachable, UsageClient
from node_reporter.clock import Clock, Moment
from node_reporter.delivery import Delivery, jitter
from node_reporter.gpus import Backend, Device, Fault, counted
from node_reporter.leases import Window
from node_reporter.meter import Bucket, Health, Meter, Step
from node_reporter.polling import Outcome, Sight
from node_reporter.reports import AGENT, SignedReport, key_id_of
from node_reporter.rows import Stretch
from node_reporter.spool import DeviceEnd, PendingEvent, Spool, Verdict

TICK_US = 1_000_000
INTERVAL_US = 60_000_000
CHECKPOINT_US = 10_000_000
SPECS_US = 300_000_000
"""The inventory is told again after this, well within the time it counts for (15 minutes)."""
BLIND_US_MAX = 60_000_000
PRESSURE = ((900_000, 900_000_000), (800_000, 300_000_000))
"""Above this part of the spool's cap (ppm) reports are this far apart (us)."""
MERGE_AT_PPM = 1_000_000
SENDS_MAX = 10_000

Data = dict[str, int | str | bool | None]


def say_nothing(line: str) -> None:
    """For callers that show nobody what happens."""
    del line


@dataclass(slots=True)
class _Metered:
    """One device: its meter, and the steps that are in no closed row yet."""

    device: Device
    meter: Meter
    steps: list[Step]
    health: Health = Health.HEALTHY
    blind_since_us: int | None = None


class Reporter:
    """One node: meters, spool, delivery."""

    def __init__(
        self,
        node_id: str,
        key: SigningKey,
        backend: Backend,
        clock: Clock,
        spool_path: Path | str,
        transport: Transport,
        *,
        node_key: str = "",
        tick_us: int = TICK_US,
        interval_us: int = INTERVAL_US,
        tell: Callable[[str], None] = say_nothing,
        draw: Callable[[int, int], int] = jitter,
        agent: str = AGENT,
    ) -> None:
        """`tell` gets lines for the owner; `draw(low, high)` is the source of jitter.

        Raises SpoolUnreadable; MonitorBlind where the driver cannot be opened.
        """
        self.node_id, self.tick_us, self.interval_us = node_id, tick_us, interval_us
        self._backend, self._clock, self._tell, self._agent = backend, clock, tell, agent
        self.spool = Spool(spool_path, node_id, key)
        self._client = UsageClient(node_id, key_id_of(key), transport, clock, node_key)
        self.delivery = Delivery(self.spool, self._client, clock, tell, draw)
        backend.open()
        self._driver_epoch = self.spool.next_driver_epoch()
        self._windows: tuple[Window, ...] = self.spool.windows()
        self._events: list[PendingEvent] = []
        self._cut_at = self._checkpoint_at = clock.now()
        self._interval_now_us = interval_us
        self._restart = False
        self._metered = {device.id: self._meter(device) for device in counted(backend.inventory())}
        self._announced = False
        self._specs_told_us = clock.now().mono_us

    # --- what a caller drives ----------------------------------------------------------------

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(metered.device for metered in self._metered.values())

    @property
    def boards(self) -> tuple[str, ...]:
        """What is polled by one thread each."""
        return tuple(dict.fromkeys(device.board for device in self.devices))

    @property
    def driver_epoch(self) -> int:
        return self._driver_epoch

    @property
    def must_restart(self) -> bool:
        """Whether only a new process can see the devices again: the caller exits with 75.

        At once when the driver says so; else when every device has been blind for a minute. One
        hung device of several is no reason: a restart would blind its neighbours too.
        """
        now_us = self._clock.now().mono_us
        since = [metered.blind_since_us for metered in self._metered.values()]
        blind = [at_us is not None and now_us - at_us >= BLIND_US_MAX for at_us in since]
        return self._restart or (bool(blind) and all(blind))

    def poll(self) -> None:
        """Read every board once, here and now. For simulations; `loop.py` uses threads."""
        for board_id in self.boards:
            self.see(
                polling.see(
                    self._backend,
                    board_id,
                    self._clock,
                    driver_epoch=self._driver_epoch,
                    tick_us=self.tick_us,
                )
            )

    def see(self, sight: Sight) -> None:
        """Take one poll of one board, which may be cut otherwise than at the last one."""
        known = {one.device.id: one for one in self._of_board(sight.board_id)}
        if sight.devices is not None:
            present = {device.id: device for device in sight.devices}
            for device_id, one in known.items():
                if device_id not in present:
                    self._vanish(one, sight.at)
            for device_id, device in present.items():
                if device_id not in known:
                    self._appear(device, sight.at)
                self._metered[device_id].device = device
        for outcome in sight.of(tuple(known)):
            self.observe(outcome)

    def observe(self, outcome: Outcome) -> None:
        """Take one poll of one device."""
        metered = self._metered[outcome.device_id]
        step = metered.meter.feed(outcome.poll)
        if step is not None:
            metered.steps.append(step)
        self._restart = self._restart or outcome.restart
        self._note_health(metered, outcome)

    def notice(self, fault: Fault) -> None:
        """Take a fault the driver reported by itself."""
        found = self._metered.get(fault.device_id or "")
        data: Data = {"xid": fault.code, "fatal": fault.fatal, "gi": fault.gi, "ci": fault.ci}
        if found is None:
            data["board"] = fault.device_id
        device = None if found is None else found.device
        self._event("device.xid", self._clock.now(), device, data)

    def lose_sight(self) -> None:
        """The driver library can no longer be trusted: only a new process can go on."""
        self._restart = True

    def mark_silent(self) -> None:
        """Book devices whose thread has not come back for 2.5 ticks as blind up to now."""
        now = self._clock.now()
        for device_id, metered in self._metered.items():
            last = metered.meter.last
            if last is None or now.mono_us - last.at.mono_us <= metered.meter.step_us_max:
                continue
            silent = polling.blind_poll(now, self._driver_epoch)
            self.observe(Outcome(device_id=device_id, poll=silent, why="no answer"))

    def turn(self) -> None:
        """Do what is due: checkpoint, cut, sign, deliver. Raises Stopped (exit 78)."""
        now = self._clock.now()
        if self._cut_is_due(now):
            self.flush("tick")
        elif now.mono_us - self._checkpoint_at.mono_us >= CHECKPOINT_US:
            self._record([], now)
        elif not self.delivery.shaken and self.delivery.is_due():
            self._deliver()

    def flush(self, reason: str = "tick") -> None:
        """Close every row up to now, then sign and deliver as far as the server answers.

        Assignments are fetched first and rows end before that moment, so a lease that opens later
        still finds its time in an open row.
        """
        before = self._clock.now()
        if self.delivery.is_due():
            self._fetch_windows()
        self._cut(before, reason)
        self._deliver()

    def stop(self) -> None:
        """Close the books of this process; what cannot be delivered waits on disk."""
        self._event("agent.stopping", self._clock.now(), None, {})
        self.flush("shutdown")

    def close(self, *, driver: bool = True) -> None:
        """Let go of files and, unless a thread hangs in it, of the driver."""
        self.spool.close()
        if driver:
            self._backend.close()

    # --- inside ------------------------------------------------------------------------------

    def _meter(self, device: Device) -> _Metered:
        meter = Meter(self.tick_us)
        end = self.spool.ends(self._clock.boot_id).get(device.id)
        if end is not None:
            meter.resume(end.mono_end_us, end.wall_minus_mono_us, end.driver_epoch)
        return _Metered(device=device, meter=meter, steps=[])

    def _of_board(self, board_id: str) -> list[_Metered]:
        return [one for one in self._metered.values() if one.device.board == board_id]

    def _appear(self, device: Device, at: Moment) -> None:
        """An instance that was not there before: nothing that was is told of it."""
        self._metered[device.id] = _Metered(device=device, meter=Meter(self.tick_us), steps=[])
        data: Data = {"shape": device.shape, "gi": device.gi, "ci": device.ci}
        self._event("device.reshaped", at, device, data)

    def _vanish(self, one: _Metered, at: Moment) -> None:
        """The device is not there any more: its last step is unknown, and its rows end here."""
        step = one.meter.feed(polling.blind_poll(at, self._driver_epoch))
        if step is not None:
            one.steps.append(replace(step, bucket=Bucket.UNKNOWN, closes="reshape"))
        del self._metered[one.device.id]
        self._event("device.fault", at, one.device, {"class": "reshaped", "code": None, "why": ""})
        self._record(self._rows(one.device, one.steps, "reshape"), at)

    def _cut_is_due(self, now: Moment) -> bool:
        since_us = now.mono_us - self._cut_at.mono_us
        if since_us >= self._interval_now_us:
            return True
        edge_us = leases.next_edge(self._windows, self._cut_at.wall_us + self._offset_us())
        return edge_us is not None and edge_us <= now.wall_us + self._offset_us()

    def _relieve(self) -> int:
        """The interval to the next cut: longer when the spool fills, for nothing is dropped."""
        fullness = self.spool.fullness_ppm()
        if fullness >= MERGE_AT_PPM:
            self.spool.merge()
        longer = next((us for above, us in PRESSURE if fullness >= above), 0)
        return max(self.interval_us, longer)

    def _cut(self, now: Moment, reason: str) -> None:
        closed: list[Stretch] = []
        for metered in self._metered.values():
            done = [step for step in metered.steps if step.end_us <= now.mono_us]
            metered.steps = metered.steps[len(done) :]
            closed += self._rows(metered.device, done, reason)
        self._cut_at = now
        self._record(closed, now)
        self._interval_now_us = self._relieve()

    def _record(self, closed: Sequence[Stretch], now: Moment) -> None:
        still_open: list[Stretch] = []
        for metered in self._metered.values():
            still_open += self._rows(metered.device, metered.steps, "tick")
        ends = [end for end in map(self._end, self._metered.values()) if end is not None]
        events, self._events = self._events, []
        self.spool.record(self._clock.boot_id, closed, still_open, ends, events)
        self._checkpoint_at = now

    def _rows(self, device: Device, steps: Sequence[Step], reason: str) -> list[Stretch]:
        return rows.rows_of(device, steps, self._windows, self._offset_us(), reason)

    def _end(self, metered: _Metered) -> DeviceEnd | None:
        last = metered.meter.last
        if last is None:
            return None
        return DeviceEnd(
            device_id=metered.device.id,
            boot=self._clock.boot_id,
            mono_end_us=last.at.mono_us,
            wall_minus_mono_us=last.at.wall_us - last.at.mono_us,
            driver_epoch=last.driver_epoch,
        )

    def _fetch_windows(self) -> None:
        try:
            windows = self._client.assignments()
        except Unreachable:
            return
        if windows is not None and windows != self._windows:
            self._windows = windows
            self.spool.remember_windows(windows)

    def _deliver(self) -> None:
        """Handshake if needed, then sign and send until nothing waits or the server fails.

        Nothing is signed while the server does not answer: unsigned rows can still be merged.
        """
        if not self.delivery.is_due():
            return
        if not (self.delivery.shaken and self.delivery.answering) and not self._shake():
            return
        if self._announced and self._clock.now().mono_us - self._specs_told_us >= SPECS_US:
            self._tell_specs()
        for _ in range(SENDS_MAX):
            self._sign_all()
            if not self.delivery.send():
                return
            if not self.delivery.shaken:
                return

    def _shake(self) -> bool:
        verdict = self.delivery.handshake()
        if verdict is None:
            return False
        if verdict is Verdict.ADOPTED:
            self._tell("the server holds later reports of this node than this disk: going on there")
        if not self._announced:
            self._announce()
        return True

    def _announce(self) -> None:
        """Say once per process where this chain goes on, and what an older disk cost."""
        data: Data = {
            "adopted_seq": self.spool.seq,
            "adopted_head": self.spool.head.hex(),
            "lost_reports": self.spool.lost_reports,
            "backend": self._backend.vendor,
            "driver": next((device.driver for device in self.devices), None),
        }
        self._event("agent.started", self._clock.now(), None, data)
        self._announced = True
        self._record([], self._clock.now())
        self._tell_specs()

    def _tell_specs(self) -> None:
        """The inventory, when it is not the one the server took last, or took it long ago."""
        now = self._clock.now()
        specs = inventory.specs(self._backend.inventory(), self._backend.vendor)
        digest = sha256(json.dumps(specs, sort_keys=True).encode()).hexdigest()
        is_old = now.mono_us - self._specs_told_us >= SPECS_US
        if digest == self.spool.specs_told() and not is_old:
            return
        try:
            taken = self._client.send_specs(specs, now.wall_us)
        except Unreachable:
            taken = False
        if taken:
            self._specs_told_us = now.mono_us
            self.spool.remember_specs(digest)

    def _sign_all(self) -> None:
        while self._sign() is not None:
            pass

    def _sign(self) -> SignedReport | None:
        return self.spool.sign(
            self._clock.now(), self._clock.boot_id, clock=self._client.offset, agent=self._agent
        )

    def _note_health(self, metered: _Metered, outcome: Outcome) -> None:
        before, metered.health = metered.health, outcome.poll.health
        if metered.health is not Health.BLIND:
            metered.blind_since_us = None
        elif metered.blind_since_us is None:
            metered.blind_since_us = outcome.poll.at.mono_us
        if before is metered.health:
            return
        if metered.health is Health.HEALTHY:
            self._event("device.recovered", outcome.poll.at, metered.device, {})
            return
        data: Data = {"class": str(metered.health), "code": outcome.code, "why": outcome.why[:100]}
        self._event("device.fault", outcome.poll.at, metered.device, data)

    def _event(
        self,
        name: str,
        at: Moment,
        device: Device | None,
        data: Data,
    ) -> None:
        assert name in report.EVENT_TYPES, name
        described = None if device is None else device.reported()
        self._events.append(PendingEvent(type=name, at=at, device=described, data=data))

    def _offset_us(self) -> int:
        offset = self._client.offset
        return 0 if offset is None else offset.offset_us
