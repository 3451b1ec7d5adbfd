"""The reporter: polls in, signed reports out. One object, driven by a clock it does not own.

    time on disk + time still open == elapsed time since the first poll      for every device

`Reporter` does not sleep, start threads or read a clock of its own: `observe` takes a poll,
`turn` does whatever is due. A simulation steps its clock and calls `poll` and `turn`; `loop.py`
drives the same object in real time with a thread per device.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from nacl.signing import SigningKey

from domain.metering import report
from domain.metering.resources import ResourceRow
from node_reporter.clock import Clock, Moment
from node_reporter.gpus import evidence
from node_reporter.gpus.power import PowerCheck
from node_reporter.gpus.seam import Backend, Device, Fault, Health, counted
from node_reporter.machine import inventory
from node_reporter.meter import leases, polling, rows
from node_reporter.meter.lease_files import read_lease_files
from node_reporter.meter.meter import Bucket, Meter, Step
from node_reporter.meter.polling import Outcome, Sight
from node_reporter.meter.rows import Stretch
from node_reporter.meter.tenants import Tenants
from node_reporter.meter.used import Counted, read_used, rows_between
from node_reporter.reports.client import Transport, Unreachable, UsageClient
from node_reporter.reports.delivery import BATCH_BYTES_MAX, REPORTS_MAX, Delivery, jitter
from node_reporter.reports.reports import AGENT, SignedReport, key_id_of
from node_reporter.reports.spool import DeviceEnd, PendingEvent, Spool, SpoolBlocked, Verdict

TICK_US = 1_000_000
INTERVAL_US = 60_000_000
CHECKPOINT_US = 10_000_000
UNKNOWN_US_MAX = 180_000_000
"""So long rows stay open while the server does not tell its leases: the time of one that has begun
meanwhile is told under its name. As long as a lease may be silent; an outage may be longer."""
SPECS_US = 300_000_000
"""The inventory is told again after this, well within the time it counts for (15 minutes)."""
BLIND_US_MAX = 60_000_000
PRESSURE = ((900_000, 900_000_000), (800_000, 300_000_000))
"""Above this part of the spool's cap (ppm) reports are this far apart (us)."""
MERGE_AT_PPM = 1_000_000
SENDS_MAX = 10_000
SENDS_PER_TURN = 4
"""Catching up goes on from turn to turn, so that it delays no checkpoint for long."""
BLOCKED_US_MAX = 600_000_000
"""How long steps wait in memory for a disk that takes nothing; after that their time is unknown."""
SAME_EVENT_US = 60_000_000
"""The same event of one device within this is counted and not told again."""

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
    power: PowerCheck
    health: Health = Health.HEALTHY
    blind_since_us: int | None = None
    energy_mj: int | None = None  # as last read
    told: bool = False  # that metering began


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
        lease_files: Path | None = None,
        used_folder: Path | None = None,
        keep_key: Callable[[str], None] = say_nothing,
    ) -> None:
        """`tell` gets lines for the owner; `draw(low, high)` is the source of jitter;
        `lease_files` is the folder `leases.d`, if there may be one; `used_folder` is where an
        executor tells what leases use beside their GPUs; `keep_key` keeps a new bearer
        key for the next start.

        Raises SpoolUnreadable; MonitorBlind where the driver cannot be opened.
        """
        self.node_id, self.tick_us, self.interval_us = node_id, tick_us, interval_us
        self._backend, self._clock, self._tell, self._agent = backend, clock, tell, agent
        self.spool = Spool(spool_path, node_id, key)
        self._client = UsageClient(node_id, key_id_of(key), transport, clock, node_key)
        self.delivery = Delivery(self.spool, self._client, clock, tell, draw, keep_key)
        backend.open()
        self._driver_epoch = self.spool.next_driver_epoch()
        self._tenants, self._lease_files = Tenants(self.spool.windows()), lease_files
        self._used_folder = used_folder
        self._events: list[PendingEvent] = []
        self._cut_at = self._checkpoint_at = clock.now()
        self._interval_now_us = interval_us
        self._restart = False
        self._metered = {device.id: self._meter(device) for device in counted(backend.inventory())}
        self._closed: list[Stretch] = []
        self._gone: list[str] = []
        self._library: str | None = None  # its digest, read when the node announces itself
        self._announced = self._behind = False
        self._blocked: Moment | None = None
        self._unknown_since: Moment | None = None  # the server does not tell its leases
        self._told_at: dict[tuple[str, str, str], int] = {}
        self._checked: dict[str, dict[str, int]] = {}
        self._untold: dict[tuple[str, str, str], int] = {}
        self._lost_rows = self.spool.lost_rows
        self._specs_told_us = clock.now().mono_us

    # --- what a caller drives ----------------------------------------------------------------

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(metered.device for metered in self._metered.values())

    def health_of(self, device_id: str) -> str:
        """What the last poll found: "healthy", or what else. Safe to ask from another thread."""
        metered = self._metered.get(device_id)
        return "gone" if metered is None else str(metered.health)

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
        self._note_power(metered, outcome)
        if metered.power.is_off:
            reading = replace(outcome.poll.reading, energy_mj=None)
            outcome = replace(outcome, poll=replace(outcome.poll, reading=reading))
        step = metered.meter.feed(outcome.poll)
        if step is not None:
            metered.steps.append(step)
            if step.closes == "reshape":
                shape: Data = {"shape": outcome.poll.reading.shape}
                self._event("device.reshaped", outcome.poll.at, metered.device, shape)
        self._restart = self._restart or outcome.restart
        self._note_health(metered, outcome)

    def notice(self, fault: Fault) -> None:
        """Take a fault the driver reported by itself."""
        found = self._metered.get(fault.device_id or "")
        data: Data = {"xid": fault.code, "fatal": fault.fatal, "gi": fault.gi, "ci": fault.ci}
        if found is None:
            data["board"] = fault.device_id
        device = None if found is None else found.device
        which = f"{fault.device_id}/{fault.gi}/{fault.ci}/{fault.code}"
        self._event("device.xid", self._clock.now(), device, data, of=which)

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
        """Do what is due: checkpoint, cut, sign, deliver.

        Raises Stopped (exit 78), and SpoolBlocked when the disk has taken nothing for ten minutes.
        """
        now = self._clock.now()
        since_us = now.mono_us - self._checkpoint_at.mono_us
        if self._blocked is not None and since_us < CHECKPOINT_US:
            return
        is_unknown = self._unknown_since is not None
        waits = is_unknown and since_us < CHECKPOINT_US
        if not waits and (self._cut_is_due(now) or (is_unknown and self._may_wait(now))):
            self._flush("tick", SENDS_PER_TURN)
        elif since_us >= CHECKPOINT_US:
            self._checkpoint(now)
        elif self._behind or not (self.delivery.shaken and self.delivery.answering):
            self._deliver(SENDS_PER_TURN)

    def flush(self, reason: str = "tick") -> None:
        """Close every row up to now, then sign and deliver as far as the server answers.

        Assignments are fetched first and rows end before that moment, so a lease that opens later
        still finds its time in an open row.
        """
        self._flush(reason, SENDS_MAX)

    def stop(self) -> None:
        """Close the books of this process; what cannot be delivered waits on disk."""
        now = self._clock.now()
        for metered in self._metered.values():
            self._tell_baseline("metering.stopped", metered, now)
        self._event("agent.stopping", now, None, {})
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
            meter.resume(
                end.mono_end_us,
                end.wall_minus_mono_us,
                end.driver_epoch,
                end.boot_minus_mono_us or 0,
            )
        return self._metering(device, meter)

    def _metering(self, device: Device, meter: Meter) -> _Metered:
        check = PowerCheck(meter.step_us_max)
        return _Metered(device=device, meter=meter, steps=[], power=check)

    def _of_board(self, board_id: str) -> list[_Metered]:
        return [one for one in self._metered.values() if one.device.board == board_id]

    def _appear(self, device: Device, at: Moment) -> None:
        """An instance that was not there before: nothing that was is told of it."""
        self._metered[device.id] = self._metering(device, Meter(self.tick_us))
        data: Data = {"shape": device.shape, "gi": device.gi, "ci": device.ci}
        self._event("device.reshaped", at, device, data)
        if self._announced:
            self._tell_identity(device, at)

    def _vanish(self, one: _Metered, at: Moment) -> None:
        """The device is not there any more: its last step is unknown, and its rows end here."""
        step = one.meter.feed(polling.blind_poll(at, self._driver_epoch))
        if step is not None:
            one.steps.append(replace(step, bucket=Bucket.UNKNOWN, closes="reshape"))
        del self._metered[one.device.id]
        gone: Data = {"class": "reshaped", "code": None, "why": ""}
        self._event("device.fault", at, one.device, gone, of="reshaped")
        self._tell_baseline("metering.stopped", one, at)
        self._closed += self._rows(one.device, one.steps, "reshape")
        self._gone.append(one.device.id)
        self._checkpoint(at)

    def _cut_is_due(self, now: Moment) -> bool:
        since_us = now.mono_us - self._cut_at.mono_us
        if since_us >= self._interval_now_us:
            return True
        server_us = now.wall_us + self._offset_us()
        # By the clock that nobody sets: the wall clock may be another one since.
        cut_us = server_us - (now.boot_us - self._cut_at.boot_us)
        edge_us = leases.next_edge(self._tenants.windows(), cut_us)
        return edge_us is not None and edge_us <= server_us

    def _relieve(self) -> int:
        """The interval to the next cut: longer when the spool fills, for nothing is dropped."""
        fullness = self.spool.fullness_ppm()
        if fullness >= MERGE_AT_PPM:
            self.spool.merge()
        longer = next((us for above, us in PRESSURE if fullness >= above), 0)
        return max(self.interval_us, longer)

    def _flush(self, reason: str, sends_max: int) -> None:
        before = self._clock.now()
        waits = reason == "tick" and self._may_wait(before)
        try:
            at_once = not waits
            if self._fetch_windows(at_once=at_once) and self._knows_the_time(at_once=at_once):
                self._unknown_since, waits = None, False
            if waits:
                self._checkpoint(before)
            else:
                self._cut(before, reason)
        except SpoolBlocked as blocked:
            self._hold(before, blocked)
        else:
            self._deliver(sends_max)

    def _may_wait(self, now: Moment) -> bool:
        """Whether rows stay open because the server did not say whose time it is, or what the time
        is. A row that is closed as idle is nobody's for good, whatever lease had begun in it.
        """
        if self._unknown_since is None:
            self._unknown_since = now
        return now.mono_us - self._unknown_since.mono_us < UNKNOWN_US_MAX

    def _checkpoint(self, now: Moment) -> None:
        self._read_lease_files(now)
        try:
            self._record([], now)
        except SpoolBlocked as blocked:
            self._hold(now, blocked)

    def _hold(self, now: Moment, blocked: SpoolBlocked) -> None:
        """What could not be written stays in memory and is tried again. Raises SpoolBlocked."""
        self._checkpoint_at = now
        if self._blocked is None:
            self._blocked = now
            self._tell(f"{blocked}: metering goes on in memory")
        if now.mono_us - self._blocked.mono_us > BLOCKED_US_MAX:
            raise blocked

    def _cut(self, now: Moment, reason: str) -> None:
        """Close the rows up to now. What is cut leaves memory only once it is on disk."""
        self._read_lease_files(now)
        closed: list[Stretch] = []
        rest: dict[str, list[Step]] = {}
        for device_id, metered in self._metered.items():
            done = [step for step in metered.steps if step.end_us <= now.mono_us]
            rest[device_id] = metered.steps[len(done) :]
            closed += self._rows(metered.device, done, reason)
        self._record(closed, now, rest)
        self._cut_at = now
        self._interval_now_us = self._relieve()

    def _record(
        self, closed: Sequence[Stretch], now: Moment, rest: dict[str, list[Step]] | None = None
    ) -> None:
        """Write closed rows and those still open, of the steps that `rest` leaves of each device.

        Raises SpoolBlocked, and then everything is as it was.
        """
        still_open: list[Stretch] = []
        for device_id, metered in self._metered.items():
            steps = metered.steps if rest is None else rest[device_id]
            still_open += self._rows(metered.device, steps, "tick")
        ends = [end for end in map(self._end, self._metered.values()) if end is not None]
        closed = [*self._closed, *closed]
        gone = [device_id for device_id in self._gone if device_id not in self._metered]
        used = [] if rest is None else self._used(now)
        boot, clock = self._clock.boot_id, self._client.offset
        self.spool.record(boot, closed, still_open, ends, self._events, gone, used, clock)
        self._closed, self._events, self._gone = [], [], []
        for device_id, steps in (rest or {}).items():
            self._metered[device_id].steps = steps
        self._checkpoint_at = now
        if self._blocked is not None:
            self._blocked = None
            self._tell("the disk takes the spool again")

    def _used(self, now: Moment) -> list[tuple[Counted, list[ResourceRow]]]:
        """What leases used since it was last told, by the counters of an executor of this boot."""
        if self._used_folder is None:
            return []
        wall_minus_mono_us, found = now.wall_us - now.mono_us, []
        for one in read_used(self._used_folder):
            if one.boot == self._clock.boot_id and one.mono_us <= now.mono_us:
                last = self.spool.used_last(one.lease_id)
                told = rows_between(last, one, wall_minus_mono_us)
                found += [(one, told)] if told else []
        return found

    def _rows(self, device: Device, steps: Sequence[Step], reason: str) -> list[Stretch]:
        windows = self._tenants.of(device, self.devices)
        now = self._clock.now()
        wall_minus_boot_us = now.wall_us - now.boot_us
        clock = self._client.offset
        return rows.rows_of(device, steps, windows, clock, reason, wall_minus_boot_us)

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
            boot_minus_mono_us=last.at.boot_us - last.at.mono_us,
        )

    def _fetch_windows(self, *, at_once: bool) -> bool:
        """Whether the server told which leases there are. `at_once`: asked before the waiting time
        after the last failure is over, which may be longer than rows stay open.
        """
        if not (at_once or self.delivery.is_due()):
            return False
        try:
            windows = self._client.assignments()
        except Unreachable:
            return False
        if windows is not None and windows != self._tenants.assigned:
            self._tenants.assigned = windows
            self.spool.remember_windows(windows)
        return windows is not None

    def _knows_the_time(self, *, at_once: bool) -> bool:
        """Whether an answer told the server's clock, in which leases are told; asked for here if
        none did: by its own, a node whose clock is behind places time before the lease it is of.
        No handshake: one that stops the reporter comes when its rows are on disk.
        """
        if self._client.offset is None and (at_once or self.delivery.is_due()):
            with suppress(Unreachable):
                self._client.head()
        return self._client.offset is not None

    def _read_lease_files(self, now: Moment) -> None:
        if self._lease_files is not None:
            found = read_lease_files(self._lease_files)
            self._tenants.learn(found, self._offset_us(), now.wall_us + self._offset_us())

    def _deliver(self, sends_max: int) -> None:
        """Handshake if needed, then sign and send until nothing waits or the server fails."""
        if not self.delivery.is_due():
            return
        try:
            if not (self.delivery.shaken and self.delivery.answering) and not self._shake():
                return
            if self._announced and self._clock.now().mono_us - self._specs_told_us >= SPECS_US:
                self._tell_specs()
            self._behind = self._send_some(sends_max)
        except SpoolBlocked as blocked:
            self._hold(self._clock.now(), blocked)

    def _send_some(self, sends_max: int) -> bool:
        """Whether more waits that could be sent at once."""
        for _ in range(sends_max):
            self._sign_some()
            if not self.delivery.send() or not self.delivery.shaken:
                return False
        return True

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
        data["library_sha256"] = self._library = evidence.library_digest(self._backend.vendor)
        self._event("agent.started", self._clock.now(), None, data)
        for device in self.devices:
            self._tell_identity(device, self._clock.now())
        self._announced = True
        self._record([], self._clock.now())
        self._tell_specs()

    def _note_power(self, metered: _Metered, outcome: Outcome) -> None:
        """Hold the counter of energy against the power that was read, soon and then hourly."""
        poll = outcome.poll
        energy_mj, power_mw = poll.reading.energy_mj, poll.reading.power_mw
        metered.power.see(poll.at.mono_us, poll.driver_epoch, energy_mj, power_mw)
        was_off, told = metered.power.is_off, metered.power.told()
        if told is None:
            return
        self._tell_identity(metered.device, poll.at, told)
        if metered.power.is_off and not was_off:
            self._tell(
                f"{metered.device.id}: its counter of energy moved by {told['counter_mj']} mJ where"
                f" power x time is {told['integrated_mj']}: it is not told any more"
            )

    def _tell_identity(
        self, device: Device, at: Moment, checked: dict[str, int] | None = None
    ) -> None:
        """What a server can check a device by; `checked` is what its energy came to. The server
        keeps the newest, so each tells the last comparison, and a new comparison is told also when
        the inventory was told a moment ago: the next is an hour away.
        """
        if checked is not None:
            self._checked[device.id] = checked
        driver = evidence.kernel_driver(self._backend.vendor)
        described = evidence.inventory(device, self._library, driver)
        data = {**described, **self._checked.get(device.id, {})}
        self._event("device.inventory", at, device, data, of="compared" if checked else "")

    def _tell_specs(self) -> None:
        """The inventory, when it is not the one the server took last, or took it long ago."""
        now = self._clock.now()
        specs = inventory.specs(self._backend.inventory(), self._backend.vendor)
        specs["agent"] = self._agent
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

    def _sign_some(self) -> None:
        """Sign what goes into the next request and no more: unsigned rows can still be merged."""
        while not self._is_enough(*self.spool.waiting()) and self._sign() is not None:
            pass
        lost = self.spool.lost_rows
        if lost > self._lost_rows:
            self._tell(f"{lost - self._lost_rows} row(s) on disk make no sense and were set aside")
            self._lost_rows = lost

    def _is_enough(self, reports: int, size: int) -> bool:
        return reports >= REPORTS_MAX or size >= BATCH_BYTES_MAX

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
        if metered.health is Health.HEALTHY:
            metered.energy_mj = outcome.poll.reading.energy_mj
            if not metered.told:
                metered.told = True
                self._tell_baseline("metering.started", metered, outcome.poll.at)
        if before is metered.health:
            return
        if metered.health is Health.HEALTHY:
            self._event("device.recovered", outcome.poll.at, metered.device, {})
            return
        data: Data = {"class": str(metered.health), "code": outcome.code, "why": outcome.why[:100]}
        self._event("device.fault", outcome.poll.at, metered.device, data)

    def _event(
        self, name: str, at: Moment, device: Device | None, data: Data, *, of: str = ""
    ) -> None:
        """Tell it with the next report; a device that flickers is told once a minute with a count.

        `of` tells apart events of one type that are not the same.
        """
        assert name in report.EVENT_TYPES, name
        same = (name, "" if device is None else device.id, of)
        if at.mono_us - self._told_at.get(same, at.mono_us - SAME_EVENT_US) < SAME_EVENT_US:
            self._untold[same] = self._untold.get(same, 0) + 1
            return
        self._told_at[same] = at.mono_us
        untold = self._untold.pop(same, 0)
        data = {**data, "untold": untold} if untold else data
        described = None if device is None else device.reported()
        self._events.append(PendingEvent(type=name, at=at, device=described, data=data))

    def _tell_baseline(self, name: str, metered: _Metered, at: Moment) -> None:
        """The counter as this process found or left it: what lies between is in its rows."""
        data: Data = {"energy_mj": metered.energy_mj, "driver_epoch": self._driver_epoch}
        self._event(name, at, metered.device, data)

    def _offset_us(self) -> int:
        offset = self._client.offset
        return 0 if offset is None else offset.offset_us
