"""The chain at the command line: opened where the settings or the options say, and its signer."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.signing import unlocked
from cli.terminal import InputUnusable

if TYPE_CHECKING:
    from api.settings import Settings
    from contracts.chain import Chain
    from contracts.signers import Signer

EMBEDDED_CHAIN = "chain.sqlite"
"""In the data folder, where `tallystick serve` keeps a chain of its own (`api/chain/side.py`)."""
DEPLOYMENT = "deployment.json"
"""In the data folder, beside that chain."""


@contextmanager
def chain_of(settings: Settings, file: Path | None) -> Generator[Chain, None, None]:
    """The node that is set, or an embedded chain: the file's, else the data folder's.

    Raises InputUnusable.
    """
    from contracts.chain import Chain

    if settings.chain_url is not None and file is None:
        yield Chain.http(settings.chain_url)
        return
    with _embedded(file or settings.data_dir / EMBEDDED_CHAIN) as chain:
        yield chain


@contextmanager
def _embedded(path: Path) -> Generator[Any, None, None]:
    """The chain kept in a file. Raises InputUnusable where there is none: it is not made here."""
    from contracts.chain import Chain
    from contracts.devnet import Devnet

    if not path.is_file():
        raise InputUnusable(
            f"{path} is not there: give --chain-url of a node, or --chain-file of an embedded chain"
        )
    with Devnet(path) as devnet:
        yield Chain(devnet.w3)


def deployment_file(settings: Settings) -> Path:
    """The one that is set, or that of the embedded chain. Raises InputUnusable."""
    beside = settings.data_dir / DEPLOYMENT
    file = settings.chain_deployment or (beside if beside.is_file() else None)
    if file is None:
        raise InputUnusable(
            "which contracts? give --deployment FILE or set TALLYSTICK_CHAIN_DEPLOYMENT"
        )
    return file


def signer_of(chain_id: int, keystore: Path | None, dev_key: int | None) -> Signer:
    """The key that signs. Raises InputUnusable where none is named."""
    from contracts.signers import LocalKeySigner, embedded_keys

    if dev_key is not None:
        return LocalKeySigner(embedded_keys()[dev_key - 1], chain_id)
    if keystore is None:
        raise InputUnusable(
            "which key? give --keystore FILE or set TALLYSTICK_KEYSTORE; on the embedded chain"
            " --dev-key 1..10"
        )
    return unlocked(keystore, chain_id)


def is_address(text: str) -> bool:
    """Whether this has the form of an Ethereum address: 0x and 40 hex digits."""
    return re.fullmatch("0x[0-9a-fA-F]{40}", text) is not None
