"""How far do the audit trees and the pin of usage reach? Both follow the logs."""

from __future__ import annotations

from api.process.service import Service
from api.process.timer import Timer
from domain.metering.pin import PinUsage
from ledger.tree import cut, trees
from projections.runner import Connection


def run_trees(service: Service, connection: Connection, now_us: int) -> int:
    """The audit trees follow both logs, and the head is signed again when it grew."""
    grown = trees.follow_all(connection)
    signed = trees.latest_checkpoint(connection)
    size = trees.head(connection).size
    if size and (signed is None or signed[0] < size):
        trees.publish_checkpoint(connection, service.signer, now_us)
    return grown


def run_pin(service: Service, connection: Connection, now_us: int) -> int:
    """Commit the market log to every report the trees have reached."""
    trees.follow_all(connection)
    pin = cut.pin(connection).fact(now_us)
    return len(service.ledger.handle(PinUsage(pin=pin), key=None, now_us=now_us).changes)


def pin_timer(service: Service) -> Timer:
    """The settings say how often reports are pinned."""
    return Timer("pin", service.settings.pin_every_s, 120, run_pin, turn=260)
