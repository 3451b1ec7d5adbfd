"""`tallystick-node edge`: this machine is an edge device, and runs what its owner deploys to it.

A program for the device's init system. Its key, of the owner's account, is in a file that only the
owner of the file can read; what runs, and in which boot it began, stands in Docker.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from node_reporter.executor import state as executor_state
from node_reporter.executor.runner import RunnerUnusable
from node_reporter.machine import config
from node_reporter.programs.signals import on_end
from node_reporter.reports.client import HttpTransport
from node_reporter.terminal import ConfigUnreadable, tell

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
DEVICE = re.compile(r"edge_[0-9A-Za-z]{1,64}")


def run(options: argparse.Namespace) -> int:
    """Run what is deployed until told to stop; it goes on without us. Raises RunnerUnusable,
    ConfigUnreadable, KeyUnreadable, AlreadyRuns.
    """
    if sys.platform != "linux":
        raise RunnerUnusable("an edge device runs Linux")
    from node_reporter.executor.datastores import Datastores, StoreSettings
    from node_reporter.executor.edge_device import Containers, EdgeClient, EdgeDevice
    from node_reporter.executor.volume_store import StoreUnusable

    if DEVICE.fullmatch(options.device) is None:
        raise ConfigUnreadable(f"{options.device} is not the id of an edge device")
    folder = executor_state.executor_folder(options.executor_state, config.process_environment())
    folder.path.mkdir(mode=0o711, parents=True, exist_ok=True)
    key = executor_state.read_secret(Path(options.key_file)).strip()
    allowed = executor_state.store_settings(folder)
    stores = None if allowed is None else Datastores(allowed, folder.mounts)
    transport = HttpTransport(options.url, allow_http=options.allow_http)
    device = EdgeDevice(
        device_id=options.device,
        boot_id=BOOT_ID.read_text().strip(),
        client=EdgeClient(options.device, key, transport),
        containers=Containers(options.device, os.environ),
        models=Path(options.models or folder.path / "models").absolute(),
        stores=stores,
        tell=tell,
    )
    stop = _asked_to_stop(options.seconds)
    with closing(transport), executor_state.only_one(folder):
        try:
            if stores is None:
                Datastores(StoreSettings(), folder.mounts).sweep()
            else:
                stores.check()
        except StoreUnusable as error:
            raise RunnerUnusable(str(error)) from error
        while not stop.is_set():
            device.step()
            stop.wait(options.every / 1_000)
    return 0


def _asked_to_stop(seconds: int | None) -> threading.Event:
    """SIGTERM, SIGINT, or so many seconds."""
    stop = threading.Event()
    on_end(stop.set)
    if seconds is not None:
        late = threading.Timer(seconds, stop.set)
        late.daemon = True
        late.start()
    return stop


def add_parser(commands: Any, between: Callable[[int, int], Callable[[str], int]]) -> None:
    """The command, as `tallystick-node` lists it."""
    command = commands.add_parser(
        "edge",
        help="run what is deployed to this edge device",
        epilog="example: tallystick-node edge edge_1f0c... --url https://tallystick.example"
        " --key-file /etc/tallystick/edge.key",
    )
    command.add_argument("device", metavar="DEVICE", help="edge_..., of this machine")
    command.add_argument("--url", required=True, help="the server")
    command.add_argument(
        "--key-file",
        required=True,
        metavar="FILE",
        help="key of the owner's account with the scope provider, mode 0600",
    )
    command.add_argument("--executor-state", metavar="DIR", help="folder of this program")
    command.add_argument(
        "--models", metavar="DIR", help="where the code of models is kept, default models in it"
    )
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument(
        "--every",
        type=between(50, 600_000),
        default=10_000,
        metavar="MS",
        help="milliseconds between looks, default 10000",
    )
    command.add_argument("--seconds", type=between(1, 10**9), help="stop after this long")
    command.set_defaults(command=run)
