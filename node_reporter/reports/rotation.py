"""Changing the node's signing key, so that no moment of a crash leaves two keys or none.

    the key in `signing.key` owns the spool, or `signing.key.next` does and is about to replace it

In order: the next key is on disk; the old key signs all that waits and a report that introduces the
next one; the spool changes hands in one transaction; the file is replaced. The server is told by
`delivery.py` before the first report of the new key is sent, now or after any restart.
"""

from __future__ import annotations

import os
from contextlib import closing

from nacl.signing import SigningKey

from domain.fleet import keys as node_key
from node_reporter.clock import Clock
from node_reporter.identity import (
    is_unfinished,
    keep_names,
    key_id,
    key_or_new,
    load_key,
    public_key,
)
from node_reporter.machine.config import Settings, StateFolder
from node_reporter.reports.client import Transport, UsageClient
from node_reporter.reports.delivery import Delivery
from node_reporter.reports.reports import AGENT, key_id_of
from node_reporter.reports.spool import PendingEvent, Spool, owner_of


class RotationRefused(Exception):
    """The key cannot be changed now; the text says why. The old key goes on."""


def settle(folder: StateFolder) -> None:
    """Finish a change that was cut off after the spool had changed hands. Raises KeyUnreadable. A
    next key that was cut off itself is made anew by the next change.
    """
    if folder.next_key.exists() and not is_unfinished(folder.next_key):
        following = load_key(folder.next_key)
        if owner_of(folder.spool) == public_key(following).hex():
            _take_over(folder)


def rotate(
    folder: StateFolder, settings: Settings, transport: Transport, clock: Clock
) -> tuple[SigningKey, bool]:
    """The new key, and whether the server knows of it already.

    Raises RotationRefused, where the server does not answer or knows another history; Stopped.
    """
    old, quiet = settings.signing_key, lambda _line: None
    with closing(Spool(settings.spool, settings.node_id, old)) as spool:
        client = UsageClient(settings.node_id, key_id_of(old), transport, clock, settings.node_key)
        first = Delivery(spool, client, clock, quiet, keep_key=folder.keep_node_key)
        if first.handshake() is None:
            raise RotationRefused("the server does not take this node's reports: see `doctor`")
        new = key_or_new(folder.next_key)
        _sign_all(spool, client, clock)
        _introduce(spool, client, clock, old, new)
        spool.hand_on(new)
        _take_over(folder)
        client = UsageClient(settings.node_id, key_id_of(new), transport, clock, client.node_key)
        delivery = Delivery(spool, client, clock, quiet, keep_key=folder.keep_node_key)
        is_told = delivery.handshake() is not None
        while is_told and delivery.send():
            pass
        return new, is_told


def _take_over(folder: StateFolder) -> None:
    os.replace(folder.next_key, folder.signing_key)
    keep_names(folder.path)


def _introduce(
    spool: Spool, client: UsageClient, clock: Clock, old: SigningKey, new: SigningKey
) -> None:
    """One report with nothing in it but the next key; it holds from the report after it."""
    before, after = public_key(old).hex(), public_key(new).hex()
    message = node_key.introduction(spool.node_id, before, after)
    event = PendingEvent(
        type="key.rotated",
        at=clock.now(),
        device=None,
        data={
            "key_id": key_id(public_key(new)),
            "public_key": after,
            "previous_key_id": key_id(public_key(old)),
            "signature": new.sign(message).signature.hex(),
        },
    )
    spool.record(clock.boot_id, (), (), (), [event])
    _sign_all(spool, client, clock)


def _sign_all(spool: Spool, client: UsageClient, clock: Clock) -> None:
    while spool.sign(clock.now(), clock.boot_id, clock=client.offset, agent=AGENT) is not None:
        pass
