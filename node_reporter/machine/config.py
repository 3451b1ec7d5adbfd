"""Where the node keeps what it must remember, and which settings are in force.

Flags win over environment (`TALLYSTICK_*`), environment over `node.toml` in the state folder. The
two secrets are files of their own, mode 0600, and never settings.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nacl.signing import SigningKey

from node_reporter.identity import (
    KeyUnreadable,
    key_or_new,
    load_key,
    replace_secret,
    write_anew,
    write_secret,
)
from node_reporter.terminal import ConfigUnreadable

STATE_VARIABLES = ("TALLYSTICK_NODE_DIR", "STATE_DIRECTORY")
"""The second is what systemd sets for a unit with StateDirectory=."""


class NotJoined(Exception):
    """The state folder holds no node yet: run `tallystick-node join URL CODE` first."""


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The files of one node."""

    path: Path

    @property
    def signing_key(self) -> Path:
        return self.path / "signing.key"

    @property
    def next_key(self) -> Path:
        """The key that takes over, until it has: `rotation.py`."""
        return self.path / "signing.key.next"

    @property
    def node_key(self) -> Path:
        return self.path / "node.key"

    @property
    def settings(self) -> Path:
        return self.path / "node.toml"

    @property
    def spool(self) -> Path:
        return self.path / "spool.db"

    @property
    def lock(self) -> Path:
        return self.path / "agent.lock"

    @property
    def lease_files(self) -> Path:
        """Where a scheduler on this machine may say what works on which device."""
        return self.path / "leases.d"

    def signing_key_or_new(self) -> SigningKey:
        """The node's key, made on first use. Raises KeyUnreadable."""
        return key_or_new(self.signing_key)

    def remember(self, *, url: str, node_id: str, node_key: str) -> None:
        """Keep what joining gave us. Raises FileExistsError where a node is kept already.

        The key comes last: with it a node is kept, and without it `join` may be called again.
        """
        lines = f"url = {json.dumps(url)}\nnode_id = {json.dumps(node_id)}\n"
        write_anew(self.settings, lines.encode())
        write_secret(self.node_key, node_key.encode())

    def keep_node_key(self, node_key: str) -> None:
        """The bearer key that came with a new signing key; the one before is good no longer."""
        replace_secret(self.node_key, node_key.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `run` needs."""

    url: str
    node_id: str
    node_key: str
    signing_key: SigningKey
    spool: Path


def state_folder(flag: str | None, environment: Mapping[str, str]) -> StateFolder:
    """The folder from the flag, the environment, or the user's state folder."""
    named = named_folder(flag, environment)
    if named is not None:
        return StateFolder(Path(named))
    state = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return StateFolder(Path(state) / "tallystick-node")


def named_folder(flag: str | None, environment: Mapping[str, str]) -> str | None:
    """The folder that somebody said, if anybody did."""
    return flag or next((environment[v] for v in STATE_VARIABLES if environment.get(v)), None)


def load(folder: StateFolder, environment: Mapping[str, str], url: str | None) -> Settings:
    """Everything `run` needs. Raises NotJoined, ConfigUnreadable, KeyUnreadable."""
    stored = _stored(folder)
    found_url = url or environment.get("TALLYSTICK_URL") or stored.get("url")
    node_id = stored.get("node_id")
    if not found_url or not node_id:
        raise NotJoined(f"{folder.path} holds no node: run `tallystick-node join URL CODE`")
    try:
        node_key = folder.node_key.read_text(encoding="ascii").strip()
    except OSError as error:
        raise KeyUnreadable(f"{folder.node_key}: {error.strerror}") from error
    return Settings(
        url=found_url,
        node_id=node_id,
        node_key=node_key,
        signing_key=load_key(folder.signing_key),
        spool=folder.spool,
    )


def _stored(folder: StateFolder) -> dict[str, str]:
    try:
        values = tomllib.loads(folder.settings.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigUnreadable(f"{folder.settings}: {error}") from error
    known = {name: value for name, value in values.items() if isinstance(value, str)}
    if unknown := set(values) - {"url", "node_id"}:
        raise ConfigUnreadable(f"{folder.settings}: unknown setting {min(unknown)!r}")
    return known


def process_environment() -> Mapping[str, str]:
    """The environment this process was started with."""
    return os.environ
