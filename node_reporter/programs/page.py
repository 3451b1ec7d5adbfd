"""`tallystick-node run --page`: the page of the agent that runs, and what it is told."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from node_reporter.agent import doctor
from node_reporter.agent.agent import Reporter
from node_reporter.agent.checks import OK, Check
from node_reporter.agent.page import Page, Shown
from node_reporter.clock import Clock
from node_reporter.machine.config import Settings, StateFolder
from node_reporter.reports import server_view
from node_reporter.reports.client import HttpTransport


@contextmanager
def shown(
    port: int,
    reporter: Reporter,
    vendor: str,
    clock: Clock,
    folder: StateFolder,
    settings: Settings,
    *,
    allow_http: bool,
    tell: Callable[[str], None],
) -> Generator[None, None, None]:
    """Serve the page while the agent runs; a port that is taken costs the page, not the metering.

    The driver is not opened a second time: the devices are as the agent sees them.
    """

    def look() -> Shown:
        bearer = folder.node_key.read_text(encoding="ascii").strip()  # it may be another by now
        with closing(HttpTransport(settings.url, allow_http=allow_http)) as transport:
            view = server_view.look(replace(settings, node_key=bearer), transport, clock)
        devices = [_device(reporter, device_id) for device_id in _ids(reporter)]
        driver = Check(name="driver", state=OK, said=f"{len(devices)} device(s)")
        return Shown(
            node_id=settings.node_id,
            server=settings.url,
            checked=doctor.examine(vendor, (driver, devices), folder, view),
            today=view.today,
            at=_written(clock.now().wall_us),
            terms=view.terms,
        )

    try:
        page = Page(port, look)
    except OSError as error:
        tell(f"no page: port {port}: {error.strerror}")
        yield
        return
    tell(f"this node's page: http://127.0.0.1:{page.port}")
    with closing(page):
        yield


def _ids(reporter: Reporter) -> list[str]:
    return [device.id for device in reporter.devices]


def _device(reporter: Reporter, device_id: str) -> dict[str, Any]:
    device = next(one for one in reporter.devices if one.id == device_id)
    health = reporter.health_of(device_id)
    values = {
        "energy": "absent" if device.energy_scope == "none" else "ok",
        "busy": "absent" if device.busy_source == "none" else "ok",
    }
    return {
        "id": device.id,
        "name": device.name,
        "ok": health == "healthy",
        "health": health,
        "values": values,
        "mig_enabled": device.mig_enabled,
    }


def _written(wall_us: int) -> str:
    moment = datetime.fromtimestamp(wall_us // 1_000_000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
