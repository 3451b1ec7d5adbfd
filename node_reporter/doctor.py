"""What this GPU can and cannot tell, and whether this node could work: each line ok or a reason.

First cut: the devices, one reading of each, the node's own files, the reports the server flagged.
It changes nothing and speaks to no server.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from typing import Any

from node_reporter.config import StateFolder
from node_reporter.gpus import Backend, Device, DeviceLost, MonitorBlind, Reading, counted
from node_reporter.identity import KeyUnreadable, fingerprint, load_key, public_key

FLAGGED_MAX = 100


def examine(backend: Backend, folder: StateFolder) -> dict[str, Any]:
    """Everything `doctor` prints; `ok` is whether every check passed."""
    devices, driver = _driver(backend)
    identity, spool = _identity(folder), _spool(folder)
    healthy = bool(devices) and all(device["ok"] for device in devices)
    return {
        "ok": healthy and driver == "ok",
        "backend": backend.vendor,
        "driver": driver,
        "devices": devices,
        "identity": identity,
        "spool": spool,
    }


def lines(result: dict[str, Any]) -> Iterator[str]:
    """The result for people."""
    yield f"driver ({result['backend']}): {result['driver']}"
    for device in result["devices"]:
        yield f"{device['id']} {device['name']}: {device['health']}"
        yield from (f"  {name}: {state}" for name, state in device["values"].items())
    yield f"identity: {result['identity']}"
    spool = result["spool"]
    yield f"spool: {spool['state']}"
    yield from (f"  report {seq} earned nothing, flags {flags}" for seq, flags in spool["flagged"])


def _driver(backend: Backend) -> tuple[list[dict[str, Any]], str]:
    try:
        backend.open()
    except MonitorBlind as blind:
        return [], str(blind)
    try:
        return [_device(backend, device) for device in counted(backend.inventory())], "ok"
    finally:
        backend.close()


def _device(backend: Backend, device: Device) -> dict[str, Any]:
    values: dict[str, str] = {}
    try:
        reading = backend.read(device.id)
        values = {
            field.name: "absent" if getattr(reading, field.name) is None else "ok"
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


def _identity(folder: StateFolder) -> str:
    try:
        key = load_key(folder.signing_key)
    except KeyUnreadable as error:
        return f"none ({error})"
    return f"key {fingerprint(public_key(key))}"


def _spool(folder: StateFolder) -> dict[str, Any]:
    if not folder.spool.exists():
        return {"state": "none yet", "flagged": []}
    try:
        with closing(sqlite3.connect(f"file:{folder.spool}?mode=ro", uri=True)) as db:
            waiting = db.execute("SELECT count(*) FROM report WHERE state = 0").fetchone()[0]
            unsigned = db.execute("SELECT count(*) FROM row").fetchone()[0]
            query = (
                "SELECT seq, flags FROM report WHERE flags IS NOT NULL ORDER BY seq DESC LIMIT ?"
            )
            flagged = [list(row) for row in db.execute(query, (FLAGGED_MAX,))]
    except sqlite3.Error as error:
        return {"state": f"unreadable: {error}", "flagged": []}
    state = f"{waiting} reports wait for the server, {unsigned} rows for a signature"
    return {"state": state, "flagged": flagged}
