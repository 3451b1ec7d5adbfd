"""What the executor keeps: its key, which node it works for, and what its owner lets jobs have.

    executor.key    the server's key for this executor, mode 0600: it opens nothing else
    sealing.key     opens the secrets that renters seal for work on this node, mode 0600
    executor.toml   server, node, and this executor's own id
    env.toml        values of environment references, mode 0600: by account, or for everybody ("*")
    volumes.toml    where the region keeps its volumes: a folder or a bucket, mode 0600
    datastores.toml which file servers it may mount for work, and folders that stand for one, 0600
    mounts/         folders of datastores, mounted while the work of a lease has them
    copies/         volumes of a bucket, while a job has them
    used/           what the work of each lease has used so far, for the reporter to read and sign
    jobs/           a folder for each job, gone when the job is over

Apart from the reporter's folder: what runs other people's programs holds no key that signs usage.
"""

from __future__ import annotations

import json
import os
import secrets
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from node_reporter.identity import KeyUnreadable, write_secret
from node_reporter.machine.config import NotJoined
from node_reporter.terminal import ConfigUnreadable

if TYPE_CHECKING:
    from node_reporter.executor.datastores import StoreSettings

STATE_VARIABLE = "TALLYSTICK_EXECUTOR_STATE"
FILE_BYTES_MAX = 1_048_576
EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class ExecutorFolder:
    """The files of one executor."""

    path: Path

    @property
    def key(self) -> Path:
        return self.path / "executor.key"

    @property
    def sealing(self) -> Path:
        return self.path / "sealing.key"

    @property
    def settings(self) -> Path:
        return self.path / "executor.toml"

    @property
    def variables(self) -> Path:
        return self.path / "env.toml"

    @property
    def volumes(self) -> Path:
        return self.path / "volumes.toml"

    @property
    def datastores(self) -> Path:
        return self.path / "datastores.toml"

    @property
    def mounts(self) -> Path:
        return self.path / "mounts"

    @property
    def copies(self) -> Path:
        return self.path / "copies"

    @property
    def jobs(self) -> Path:
        return self.path / "jobs"

    @property
    def used(self) -> Path:
        return self.path / "used"

    @property
    def lock(self) -> Path:
        return self.path / "executor.lock"

    def remember(
        self, *, url: str, node_id: str, executor_key: str, sealing_key: bytes | None = None
    ) -> None:
        """Keep what enrolling gave us; an earlier key is replaced, the executor's id stays."""
        self.path.mkdir(mode=0o711, parents=True, exist_ok=True)
        known = self.settings.exists()
        executor = load(self).executor if known else secrets.token_hex(8)
        self.key.unlink(missing_ok=True)
        write_secret(self.key, executor_key.encode())
        self.sealing.unlink(missing_ok=True)
        if sealing_key is not None:
            write_secret(self.sealing, sealing_key.hex().encode())
        lines = [
            f"{name} = {json.dumps(value)}\n"
            for name, value in (("url", url), ("node_id", node_id), ("executor", executor))
        ]
        self.settings.write_text("".join(lines), encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """What `exec` needs. `variables`: by account id, what its jobs may name."""

    url: str
    node_id: str
    executor: str
    executor_key: str
    variables: Mapping[str, Mapping[str, str]]
    sealing_key: bytes | None = None  # None: enrolled before there was one

    def granted(self, account_id: str, names: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
        """The values an account's job gets for its references, and the names it gets none for."""
        known = {**self.variables.get(EVERYBODY, {}), **self.variables.get(account_id, {})}
        found = {name: known[name] for name in names if name in known}
        return found, [name for name in names if name not in known]


def executor_folder(flag: str | None, environment: Mapping[str, str]) -> ExecutorFolder:
    """The folder from the flag, the environment, or the user's state folder."""
    named = flag or environment.get(STATE_VARIABLE)
    if named:
        return ExecutorFolder(Path(named).absolute())
    state = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return ExecutorFolder((Path(state) / "tallystick-executor").absolute())


def load(folder: ExecutorFolder) -> ExecutorSettings:
    """Everything `exec` needs. Raises NotJoined, ConfigUnreadable, KeyUnreadable."""
    if not folder.settings.exists():
        raise NotJoined(f"{folder.path} holds no executor: run `tallystick-node enroll` first")
    told = _toml(folder.settings)
    try:
        url, node_id, executor = (str(told[name]) for name in ("url", "node_id", "executor"))
    except KeyError as error:
        raise ConfigUnreadable(f"{folder.settings}: {error} is missing") from error
    key = read_secret(folder.key) if folder.key.exists() else ""
    return ExecutorSettings(
        url=url,
        node_id=node_id,
        executor=executor,
        executor_key=key.strip(),
        variables=_variables(folder.variables),
        sealing_key=_sealing(folder.sealing),
    )


def _sealing(path: Path) -> bytes | None:
    """Raises KeyUnreadable."""
    if not path.exists():
        return None
    try:
        return bytes.fromhex(read_secret(path).strip())
    except ValueError:
        raise KeyUnreadable(f"{path} is no key: enroll again") from None


def _variables(path: Path) -> dict[str, dict[str, str]]:
    """Tables of texts. Raises ConfigUnreadable, KeyUnreadable."""
    if not path.exists():
        return {}
    # The rules of jobs and leases take four times as long to import as all that a meter needs.
    from node_reporter.executor.work import is_variable

    read_secret(path)
    found: dict[str, dict[str, str]] = {}
    for account, values in _toml(path).items():
        if not isinstance(values, dict):
            raise ConfigUnreadable(f'{path}: put {account} under an account, or under ["*"]')
        for name, value in values.items():
            if not is_variable(name) or not isinstance(value, str) or "\0" in value:
                raise ConfigUnreadable(f"{path}: {account}.{name} is no variable with a text")
        found[account] = {str(name): value for name, value in values.items()}
    return found


def read_secret(path: Path) -> str:
    """A file only its owner can read. Raises KeyUnreadable."""
    try:
        mode = path.stat().st_mode
        text = path.read_bytes()[:FILE_BYTES_MAX].decode()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyUnreadable(f"{path}: {error}") from error
    if os.name == "posix" and mode & 0o077:
        raise KeyUnreadable(f"{path} can be read by others: chmod 600 {path}")
    return text


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # Its text may be a secret: the error names the place alone.
        raise ConfigUnreadable(f"{path} cannot be read as TOML") from error


def volume_settings(folder: ExecutorFolder) -> dict[str, str]:
    """What the owner wrote about the store of volumes; empty where there is none.

    Raises ConfigUnreadable, KeyUnreadable.
    """
    if not folder.volumes.exists():
        return {}
    read_secret(folder.volumes)
    told = _toml(folder.volumes)
    if not all(isinstance(value, str) for value in told.values()):
        raise ConfigUnreadable(f"{folder.volumes}: every value is a text")
    return {name: str(value) for name, value in told.items()}


def store_settings(folder: ExecutorFolder) -> StoreSettings | None:
    """Which datastores the owner lets work mount; None: none.

    Raises ConfigUnreadable, KeyUnreadable.
    """
    if not folder.datastores.exists():
        return None
    from node_reporter.executor.datastores import StoreSettings  # as above

    read_secret(folder.datastores)
    told = _toml(folder.datastores)
    servers, folders = told.pop("servers", []), told.pop("folders", {})
    if told:
        raise ConfigUnreadable(f"{folder.datastores}: it has servers and folders, and nothing else")
    if not isinstance(servers, list) or not all(isinstance(one, str) for one in servers):
        raise ConfigUnreadable(f"{folder.datastores}: servers is a list of addresses")
    if not isinstance(folders, dict) or not all(isinstance(one, str) for one in folders.values()):
        raise ConfigUnreadable(f"{folder.datastores}: folders has a folder for each address")
    named = {str(address): Path(one) for address, one in folders.items()}
    return StoreSettings(servers=frozenset(servers), folders=named)


class AlreadyRuns(Exception):
    """Another program has this executor's work in hand."""


@contextmanager
def only_one(folder: ExecutorFolder) -> Generator[None, None, None]:
    """Two programs under one executor's name would start work twice. Raises AlreadyRuns."""
    import fcntl  # not on Windows, where no executor runs

    with folder.lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRuns(f"another executor works in {folder.path}") from error
        yield
