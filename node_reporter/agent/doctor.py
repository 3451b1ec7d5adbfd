"""What this machine can and cannot tell, what stands between it and its earnings, and what to do.

It changes nothing. Four parts: the accelerators and what each of them tells, the node's own files,
the spool with every report that earned nothing, and what the server says. `ok` means that nothing
has failed; a value that a device does not have costs evidence, not money.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from node_reporter.agent import checks
from node_reporter.agent.checks import ABSENT, DENIED, FAILED, JOIN_COMMAND, OK, Check
from node_reporter.gpus.seam import Backend, Device, DeviceLost, MonitorBlind, Reading, counted
from node_reporter.machine.config import StateFolder
from node_reporter.reports import spool_view
from node_reporter.reports.server_view import ServerView

CLOCK_US_MAX = 2_000_000
"""A row that ends this much after its receipt earns nothing."""
DRIVER_REMEDIES = {
    9: "load the driver: `sudo modprobe nvidia`, and see `sudo dmesg`",
    12: "install the NVIDIA driver: its library libnvidia-ml.so.1 is not on this machine",
    18: "the driver was replaced while it ran: restart the machine",
    999: checks.CONTAINER_NOTE,
}
ASKED_UNDER = {
    "energy_mj": ("energy",),
    "busy_ppm": ("gpm", "gpm metrics", "gpm buffers", "utilisation"),
    "mem_used_bytes": ("memory",),
    "throttle_power_ns": ("fields",),
    "throttle_thermal_ns": ("fields",),
}
"""Under which names a driver is asked for a value, where it says that we may not see it."""
PHASE_REMEDIES = {
    "joining": "compare the fingerprint and confirm it:"
    ' `tallystick node confirm NODE --fingerprint "..."`',
    "confirmed": "wait for the operator to admit this node, or admit it where admission is open",
    "maintenance": "let it take leases: `tallystick node activate NODE`",
    "draining": "it takes no new leases: `tallystick node activate NODE` ends that",
    "retired": "this node has left for good: join anew with an empty state folder",
}
QUARANTINE_REMEDY = (
    "this key signed two histories, as two machines with one disk do: stop all but one, `tallystick"
    " node retire NODE`, then join each machine anew with an empty state folder"
)
CODE_REMEDIES = {
    "revoked": "the owner took this key back: `tallystick node retire NODE`, then join anew with an"
    " empty state folder",
    "credential_invalid": "the server does not know this node: was its state folder copied?",
    "node_unknown": "the server does not know this node: is --url the one it joined?",
    "unreachable": "check the network, the address and the date of this machine",
}


def probe(backend: Backend) -> tuple[Check, list[dict[str, Any]]]:
    """Open the driver, ask every device once, close it."""
    try:
        backend.open()
    except MonitorBlind as blind:
        todos = DRIVER_REMEDIES if backend.vendor == "nvml" else {}
        todo = todos.get(blind.code or 0, "see the guide, or use --backend sim to try")
        return Check(name="driver", state=FAILED, said=str(blind), todo=todo), []
    try:
        devices = [_device(backend, device) for device in counted(backend.inventory())]
    finally:
        backend.close()
    if not devices:
        todo = "is it bound to a virtual machine, or to another driver? see `nvidia-smi -L`"
        return Check(name="driver", state=FAILED, said="no accelerator found", todo=todo), []
    return Check(name="driver", state=OK, said=f"{len(devices)} device(s)"), devices


def examine(
    vendor: str,
    probed: tuple[Check, list[dict[str, Any]]],
    folder: StateFolder,
    view: ServerView | None,
) -> dict[str, Any]:
    """Everything `doctor` prints. `view` None: this machine has not joined yet."""
    driver, devices = probed
    spool = spool_view.look(folder.spool)
    found = [driver, *checks.local(folder), *_spool(spool), *_server(view)]
    healthy = all(device["ok"] for device in devices)
    flagged = [
        {**asdict(one), "rule": (view.flagged.get(one.seq) if view else "") or one.rule}
        for one in spool.flagged
    ]
    return {
        "ok": healthy and all(check.state not in (FAILED, DENIED) for check in found),
        "backend": vendor,
        "checks": [asdict(check) for check in found],
        "devices": devices,
        "verdict": None
        if view is None or view.joinable is None
        else {
            "joinable": view.joinable,
            "sellable": view.sellable,
            "failing": list(view.failing),
            "waived": list(view.waived),
        },
        "flagged": flagged,
        "refused": [asdict(one) for one in (() if view is None else view.refused)],
    }


def lines(result: dict[str, Any]) -> Iterator[str]:
    """The result for people."""
    for check in result["checks"]:
        yield f"{check['state']:7} {check['name']}: {check['said']}"
        if check["todo"]:
            yield f"        -> {check['todo']}"
    for device in result["devices"]:
        state = OK if device["ok"] else FAILED
        yield f"{state:7} {device['id']} {device['name']}: {device['health']}"
        yield from (f"        {state:7} {name}" for name, state in device["values"].items())
    if result["verdict"] is not None:
        yield from _verdict_lines(result["verdict"])
    for one in result["flagged"]:
        yield f"report {one['seq']} earned nothing: {one['rule']}; it held {seconds(one['us'])}"
    for one in result["refused"]:
        yield f"lease {one['lease_id']}: {seconds(one['us'])} earned nothing: {one['rule']}"


def seconds(us: int | None) -> str:
    """A length of metered time, for people."""
    if us is None:
        return "an unknown time"
    if us < 1_000:
        return f"{us} GPU-microseconds"
    return f"{us // 1_000_000}.{us // 1_000 % 1_000:03d} GPU-seconds"


def _verdict_lines(verdict: dict[str, Any]) -> Iterator[str]:
    yes = {True: "yes", False: "no"}
    yield f"        joinable: {yes[verdict['joinable']]}, sellable: {yes[verdict['sellable']]}"
    for name in verdict["failing"]:
        waived = " (waived)" if name in verdict["waived"] else ""
        yield f"        rule not met: {name}{waived}"


def _device(backend: Backend, device: Device) -> dict[str, Any]:
    values: dict[str, str] = {}
    try:
        reading = backend.read(device.id)
        denied = _denied(backend, device.id)
        values = {
            field.name: _state(field.name, getattr(reading, field.name), denied)
            for field in fields(Reading)
            if field.name != "shape"
        }
        health = "ok"
    except (DeviceLost, MonitorBlind) as error:
        health = str(error)
    return {
        "id": device.id,
        "name": device.name,
        "ok": health == "ok",
        "health": health,
        "values": values,
        "mig_enabled": device.mig_enabled,
    }


def _state(name: str, value: Any, denied: frozenset[str]) -> str:
    if value is not None:
        return OK
    return DENIED if denied.intersection(ASKED_UNDER.get(name, ())) else ABSENT


def _denied(backend: Backend, device_id: str) -> frozenset[str]:
    ask = getattr(backend, "denied", None)
    return frozenset() if ask is None else ask(device_id)


def _spool(spool: spool_view.SpoolView) -> Sequence[Check]:
    if spool.why:
        return [
            Check(
                name="spool",
                state=FAILED,
                said=spool.why,
                todo="do not delete it, reports may wait in it: ask the operator",
            )
        ]
    if spool.fill_ppm is None:
        return [Check(name="spool", state=ABSENT, said="none yet")]
    said = (
        f"{spool.fill_ppm // 10_000} % full, {spool.waiting} reports wait for the server,"
        f" {spool.unsigned} rows for a signature"
    )
    if spool.lost_rows or spool.lost_reports:
        said += f"; set aside: {spool.lost_reports} reports, {spool.lost_rows} rows"
    if spool.fill_ppm >= 800_000:
        todo = "reach the server soon: reports are longer from now on, none is dropped"
        return [Check(name="spool", state=FAILED, said=said, todo=todo)]
    return [Check(name="spool", state=OK, said=said)]


def _server(view: ServerView | None) -> Iterator[Check]:
    if view is None:
        yield Check(name="joined", state=ABSENT, said="no", todo=JOIN_COMMAND)
        return
    if view.why:
        yield Check(
            name="server",
            state=FAILED,
            said=view.why,
            todo=_of(view, CODE_REMEDIES.get(view.code, "")),
        )
    else:
        took = "" if view.rtt_us is None else f", {view.rtt_us // 1_000} ms"
        yield Check(name="server", state=OK, said=f"answers{took}")
        yield _phase(view)
    if view.offset_us is not None:
        yield _clock(view.offset_us)


def _phase(view: ServerView) -> Check:
    phase = view.phase or "unknown"
    if view.quarantined:
        return Check(
            name="joined",
            state=FAILED,
            said=f"{phase}, in quarantine",
            todo=_of(view, QUARANTINE_REMEDY),
        )
    return Check(
        name="joined",
        state=OK if phase == "active" else ABSENT,
        said=phase,
        todo=_of(view, PHASE_REMEDIES.get(phase, "")),
    )


def _of(view: ServerView, remedy: str) -> str:
    """A remedy whose commands can be copied as they stand."""
    return remedy.replace("NODE", view.node_id)


def _clock(offset_us: int) -> Check:
    said = f"the server's is {abs(offset_us) // 1_000} ms {'ahead' if offset_us > 0 else 'behind'}"
    if abs(offset_us) > CLOCK_US_MAX:
        todo = "reports are corrected for it, but let NTP set it: `timedatectl set-ntp true`"
        return Check(name="clock", state=ABSENT, said=said, todo=todo)
    return Check(name="clock", state=OK, said=said)
