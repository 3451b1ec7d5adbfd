"""Replaces the key that signs the heads of the log, and announces that in the log.

    the next key is on disk  ->  the log names it  ->  the old key has another name
                             ->  the next key takes the name of the old one

Each step is on disk before the next one begins, so a run that was killed on the way is ended by the
next run, and the key that the log names is never lost. After the last step nothing is left to end:
the next run is another rotation (`tallystick keys announced` tells the last). A rotation that is
refused leaves no next key: it would lie among the keys, and in their exports, until it signs.
"""

from __future__ import annotations

import os
from pathlib import Path

from nacl.signing import SigningKey

from api.process import key_files, secret_files
from api.process.service import Service
from contracts.durable_file import entry_to_disk
from domain.authority.log_key import LOG_KEYS, LogKeyRotated, RotateLogKey, rotation_text
from domain.refusal import Refused
from ledger.tree.checkpoint import VerifierKey


class OldKeyDiffers(Exception):
    """The key to replace is not the one that the log names: nothing was announced."""


def rotate(service: Service, lost: bytes | None, overlap_us: int) -> LogKeyRotated:
    """The fact of the rotation. `lost`: the public key, where the file that signs is lost; else the
    old key signs heads too for `overlap_us` longer. No process may sign meanwhile.
    Raises OldKeyDiffers, Refused, SecretUnreadable.
    """
    folder = secret_files.folder_of(service.settings.data_dir)
    path = folder / key_files.NEXT_SIGNER
    is_new = not path.exists()  # of an earlier run the log may be about to name it
    following = SigningKey(secret_files.read_or_make(path))
    entry_to_disk(folder)  # a run that was killed may have made it, and not come so far
    announced = service.ledger.world().state(LOG_KEYS).last
    if announced is None or announced.new_key != bytes(following.verify_key).hex():
        try:
            announced = _announce(service, folder, following, lost, overlap_us)
        except (OldKeyDiffers, Refused):
            if is_new:
                path.unlink()
                entry_to_disk(folder)
            raise
    _put_aside(folder, following)
    os.replace(path, folder / key_files.SIGNER)
    entry_to_disk(folder)
    return announced


def _announce(
    service: Service, folder: Path, following: SigningKey, lost: bytes | None, overlap_us: int
) -> LogKeyRotated:
    old, old_key, now_us = None, lost, service.clock.now_us()
    if old_key is None:
        old = SigningKey(secret_files.read(folder / key_files.SIGNER))
        old_key = bytes(old.verify_key)
    origin = service.settings.log_origin
    with service.connect() as connection:
        why = key_files.other_than_named(connection, VerifierKey(origin, old_key))
    if why is not None:
        raise OldKeyDiffers(why)
    number = len(service.ledger.world().state(LOG_KEYS).rotations) + 1
    until_us = now_us + (0 if old is None else overlap_us)
    new_key = bytes(following.verify_key).hex()
    text = rotation_text(origin, number, old_key.hex(), new_key, until_us).encode()
    command = RotateLogKey(
        number=number,
        origin=origin,
        old_key=old_key.hex(),
        new_key=new_key,
        until_us=until_us,
        old_signature=None if old is None else old.sign(text).signature.hex(),
        new_signature=following.sign(text).signature.hex(),
        at_us=now_us,
    )
    service.ledger.handle(command, key=None, now_us=now_us)
    announced = service.ledger.world().state(LOG_KEYS).last
    assert announced is not None
    return announced


def _put_aside(folder: Path, following: SigningKey) -> None:
    """The old key gets the name under which it signs beside the new one."""
    path = folder / key_files.SIGNER
    if path.exists() and SigningKey(secret_files.read(path)).verify_key != following.verify_key:
        aside = folder / f".{key_files.OLD_SIGNER}"
        aside.unlink(missing_ok=True)
        os.link(path, aside)
        os.replace(aside, folder / key_files.OLD_SIGNER)
        entry_to_disk(folder)
