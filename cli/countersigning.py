"""The renter's half of the stick, signed by a program that saw the work run.

signed == floor(devices x share x time from the opening to the close)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.remote import Remote
from cli.terminal import InputUnusable

PPM = 1_000_000


def used_gpu_us(lease: Mapping[str, Any]) -> tuple[int, int]:
    """(GPU-microseconds, the moment they end) of a closed lease as the API tells it."""
    from api.door.moments import parse_moment

    from_us, until_us = parse_moment(lease["opened_at"]), parse_moment(lease["closed_at"])
    return (until_us - from_us) * len(lease["device_ids"]) * lease["share_ppm"] // PPM, until_us


def countersign(remote: Remote, lease: Mapping[str, Any], key_file: Path) -> int:
    """Sign for a closed lease, with a key that is made and registered when it is new.

    Returns the GPU-microseconds signed for. Raises AnswerIsNo, InputUnusable.
    """
    key = key_of(key_file)
    public = bytes(key.verify_key)
    key_id = hashlib.sha256(public).hexdigest()[:16]
    account_id, lease_id = lease["account_id"], lease["lease_id"]
    known = remote.ask(lambda c: c.list_signing_keys(account_id))["data"]
    if key_id not in {one["key_id"] for one in known}:
        body: Any = {"public_key": public.hex()}
        again = f"signing-key-{key_id}"
        remote.ask(lambda c: c.add_signing_key(account_id, body, idempotency_key=again))
    from domain.lease.countersign import message_for

    gpu_us, until_us = used_gpu_us(lease)
    signature = key.sign(message_for(lease_id, gpu_us, until_us)).signature.hex()
    half: Any = {
        "key_id": key_id,
        "gpu_us": str(gpu_us),
        "until": lease["closed_at"],
        "signature": signature,
    }
    again = f"countersign-{lease_id}-{until_us}"
    remote.ask(lambda c: c.countersign_usage(lease_id, half, idempotency_key=again))
    return gpu_us


def key_of(path: Path) -> Any:
    """The signing key in a file, made if it is not there. Raises InputUnusable."""
    from nacl.signing import SigningKey

    from api.process.secret_files import SecretUnreadable, read_or_make

    try:
        return SigningKey(read_or_make(path))
    except (OSError, SecretUnreadable) as error:
        raise InputUnusable(f"{path}: {error}") from None
