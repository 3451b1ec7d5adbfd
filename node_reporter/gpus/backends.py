"""Which backend a command works with: by name, or for `doctor` the first that finds a device.

Packages of vendors are imported here and only for the backend that was asked for. `run` and `join`
never look around: a node whose driver does not answer today must not become another node.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from node_reporter.clock import Clock
from node_reporter.gpus.seam import Backend, MonitorBlind
from node_reporter.gpus.simulated import SimulatedGpus
from node_reporter.terminal import ConfigUnreadable, between

AUTO = "auto"
BACKENDS = ("nvml", "amd", "intel", "apple", "seats", "sim")
HARDWARE = ("nvml", "amd", "intel", "apple")
"""What a machine is searched for, in this order."""


def add_options(command: Any, *, may_search: bool = False) -> None:
    """The options that `build` reads."""
    if may_search:
        command.add_argument(
            "--backend",
            choices=(AUTO, *BACKENDS),
            default=AUTO,
            help="auto: the first that is here of nvml, amd, intel, apple",
        )
    else:
        command.add_argument(
            "--backend",
            choices=BACKENDS,
            default="nvml",
            help="maker of the devices, default nvml (NVIDIA)",
        )
    command.add_argument(
        "--seats",
        type=between(1, 256),
        default=1,
        metavar="N",
        help="seats of the backend seats, default 1",
    )
    command.add_argument("--seats-licence", metavar="LICENCE", help="the licence they are of")
    command.add_argument("--seats-model", metavar="NAME", help="the product, as licensed")
    command.add_argument("--seats-vendor", metavar="NAME", help="maker of the product")
    command.add_argument(
        "--seats-check", metavar="COMMAND", help="ends with 0 while the product answers; no shell"
    )
    command.add_argument(
        "--sim-gpus",
        type=between(1, 64),
        default=1,
        metavar="N",
        help="devices of the backend sim, default 1",
    )
    command.add_argument("--sim-seed", default="0", help="makes the UUIDs of the backend sim")
    command.add_argument("--sim-model", default="NVIDIA H200", help="model of the backend sim")
    command.add_argument("--sim-vendor", metavar="NAME", help="maker of the simulated devices")
    command.add_argument("--sim-kind", metavar="KIND", help="gpu, ipu or any other kind")
    command.add_argument(
        "--sim-licence", metavar="LICENCE", help="the devices of sim are seats of this licence"
    )


def build(options: argparse.Namespace, clock: Clock) -> Backend:
    """The backend that was asked for. Raises ConfigUnreadable."""
    if options.backend == AUTO:
        return found()
    if options.backend == "sim":
        return SimulatedGpus(
            clock,
            count=options.sim_gpus,
            seed=options.sim_seed,
            model=options.sim_model,
            maker=options.sim_vendor,
            kind=options.sim_kind,
            licence=options.sim_licence,
        )
    if options.backend == "seats":
        return _seats(options)
    return of_hardware(options.backend)


def found() -> Backend:
    """The first backend that finds a device here; NVIDIA's where none does, for what it says."""
    for name in HARDWARE:
        try:
            backend = of_hardware(name)
            backend.open()
        except (ConfigUnreadable, MonitorBlind):
            continue
        devices = backend.inventory()
        backend.close()
        if devices:
            return backend
    return of_hardware(HARDWARE[0])


def of_hardware(name: str) -> Backend:
    """The backend of one maker. Raises ConfigUnreadable where NVIDIA's package is missing."""
    if name == "amd":
        from node_reporter.gpus.amd import AmdGpus

        return AmdGpus()
    if name == "intel":
        from node_reporter.gpus.intel import IntelGpus

        return IntelGpus()
    if name == "apple":
        from node_reporter.gpus.apple import AppleGpus

        return AppleGpus()
    try:
        from node_reporter.gpus.nvml.backend import NvmlGpus
    except ImportError as error:
        raise ConfigUnreadable("nvidia-ml-py is missing: install tallystick-node") from error
    return NvmlGpus()


def _seats(options: argparse.Namespace) -> Backend:
    from domain.fleet.licence import seat_id, seat_of
    from node_reporter.gpus.seats import LicenceSeats

    told = {
        "--seats-licence": options.seats_licence,
        "--seats-model": options.seats_model,
        "--seats-vendor": options.seats_vendor,
        "--seats-check": options.seats_check,
    }
    missing = [name for name, value in told.items() if not value]
    if missing:
        raise ConfigUnreadable(f"the backend seats needs {', '.join(missing)}")
    try:
        check = shlex.split(options.seats_check)
    except ValueError as error:
        raise ConfigUnreadable(f"--seats-check: {error}") from error
    if seat_of(seat_id(options.seats_licence, 1)) is None:
        raise ConfigUnreadable(f"--seats-licence: {options.seats_licence!r} is no licence's id")
    return LicenceSeats(
        options.seats_licence,
        options.seats,
        model=options.seats_model,
        maker=options.seats_vendor,
        check=check,
    )
