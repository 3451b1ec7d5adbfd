"""Datastores as the work of a lease has them: confined, mounted for it alone, unmounted after it.

    what work reaches of a store  ==  the folder that it asked for, which is below the store's root
    written                       =>  asked for as output or scratch
    mounted by us                 =>  its work runs, or is about to

The node trusts no path that it was told: the root and the path below it are checked by their names,
and the kernel resolves both, so that neither a link nor `..` leaves the root (`binds.py`). Which
servers are mounted, and which folders of this machine stand for a server, the owner says in
`datastores.toml`; nothing else is mounted. Over the network the store's root is mounted, the folder
in it is bound for the work, and the root is unmounted again. User and password of SMB are in a
file that only we can read while `mount` reads it, never on a command line. Needs root. Row C-36.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from domain.sites.attached import USES
from domain.sites.datastore import DATASTORE_KINDS, HOST, NFS
from domain.sites.names import NAME
from domain.sites.paths import broken_rule, place_of
from node_reporter.executor.binds import (
    bind,
    bounded,
    mounted_below,
    open_below,
    open_folder,
    unmount,
)
from node_reporter.executor.runner import Bound, NotStarted
from node_reporter.executor.volume_store import StoreUnusable
from node_reporter.identity import write_secret

if TYPE_CHECKING:
    from node_reporter.executor.sandbox import JobUser  # needs modules that only Unix has

MOUNT_SECONDS_MAX = 30.0
INPUT = "input"
OPTIONS = "nosuid,nodev,noexec"
HELPER_FOLDERS = "/sbin:/usr/sbin"
CHECK = "check"
_LOGIN = ".login-"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreMount:
    """A folder of a store, as the server told it: `path` is on the file server, with the root."""

    name: str
    kind: str
    address: str
    root_path: str
    path: str
    use: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def asked(self) -> str:
        """The path below the root, once all that was told is as it must be. Raises NotStarted."""
        below = self.root_path.rstrip("/")
        is_below = self.path == (below or "/") or self.path.startswith(f"{below}/")
        asked = self.path.removeprefix(below) or "/"
        wrong = (
            (NAME.fullmatch(self.name) is None, "its name"),
            (self.kind not in DATASTORE_KINDS, "its kind"),
            (self.use not in USES, "its use"),
            (HOST.fullmatch(self.address) is None, "its address"),
            (broken_rule(self.root_path) is not None, f"its root, {broken_rule(self.root_path)}"),
            (not is_below or broken_rule(asked) is not None, "a path that is not below its root"),
        )
        for is_wrong, what in wrong:
            if is_wrong:
                raise NotStarted(f"a datastore was refused for {what}")
        return asked

    @property
    def at(self) -> str:
        """Where the work finds it. Raises NotStarted."""
        return place_of(self.use, self.name, self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """What the owner allows. `folders`: by address, the folder of this machine that is `/` of that
    server: the machine itself, or a server that the owner has mounted.
    """

    servers: frozenset[str] = frozenset()
    folders: Mapping[str, Path] = field(default_factory=dict)


def told_places(stores: tuple[StoreMount, ...]) -> str:
    """For the program: which folder is where. Raises NotStarted."""
    return json.dumps([{"name": one.name, "use": one.use, "path": one.at} for one in stores])


class Datastores:
    """The mounts of every lease, each in a folder of its lease below ours."""

    def __init__(self, settings: StoreSettings, folder: Path, user: JobUser | None = None) -> None:
        """`folder`: of ours alone; nothing in it is ever removed but mounts and empty folders."""
        self._settings = settings
        self._folder = folder.resolve()  # the kernel lists mounts by it
        self._user = user

    def check(self) -> None:
        """Leave nothing of an earlier executor, and try a mount. Raises StoreUnusable."""
        self._folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        for address, named in self._settings.folders.items():
            self._require_apart(address, named)
        self.sweep()
        target = self._folder / CHECK
        target.mkdir(mode=0o700)
        try:
            with _closing(open_folder(self._folder)) as opened:
                bind(opened, target, read_only=True)
        except OSError as error:
            raise StoreUnusable(f"datastores are mounted by root: {error.strerror}") from error
        finally:
            left = self._release(target)
        if left:
            raise StoreUnusable(left)

    def open(self, lease_id: str, stores: tuple[StoreMount, ...]) -> tuple[Bound, ...]:
        """Mount them; after an error `close` lets go of them. Raises NotStarted, OSError."""
        if not stores:
            return ()
        place = self._folder / lease_id
        place.mkdir(mode=0o710)  # the user of jobs goes through it, and changes nothing in it
        if self._user is not None:
            os.chown(place, -1, self._user.gid)
        bound = []
        for number, store in enumerate(sorted(stores, key=lambda one: one.at)):
            target = place / str(number)
            target.mkdir(mode=0o700)
            self._mount(store, target)
            bound.append(Bound(target, store.at, store.use == INPUT))
        if len({one.path for one in bound}) != len(bound):
            raise NotStarted("two datastores have one name")
        return tuple(bound)

    def close(self, lease_id: str) -> str:
        """Unmount what a lease has; what is wrong, or nothing. Twice is once."""
        place = self._folder / lease_id
        if not place.is_dir():
            return ""
        wrongs = [wrong for each in sorted(place.iterdir()) if (wrong := self._release(each))]
        with suppress(OSError):
            place.rmdir()
        return "; ".join(wrongs)

    # --- mounting ------------------------------------------------------------------------------

    def _mount(self, store: StoreMount, target: Path) -> None:
        """Raises NotStarted."""
        local = self._settings.folders.get(store.address)
        try:
            if local is not None:
                with _closing(open_folder(local)) as top:
                    self._bind(top, store.root_path, store.asked, store, target)
            elif store.address in self._settings.servers:
                self._from_server(store, target)
            else:
                raise NotStarted(f"this node's owner allows no datastore of {store.address}")
        except OSError as error:
            raise NotStarted(f"the datastore {store.name}: {_why(error)}") from error

    def _bind(self, top: int, root: str, asked: str, store: StoreMount, target: Path) -> None:
        """The root below the top, and what was asked for below the root. Raises OSError."""
        with (
            _closing(open_below(top, root)) as opened,
            _closing(open_below(opened, asked)) as found,
        ):
            bind(found, target, read_only=store.use == INPUT)

    def _from_server(self, store: StoreMount, target: Path) -> None:
        """Mount the store's root, bind what was asked for, let go of the root. Raises NotStarted,
        OSError.
        """
        source, asked = _source(store)
        system = "nfs" if store.kind == NFS else "cifs"
        if shutil.which(f"mount.{system}", path=f"{os.environ.get('PATH', '')}:{HELPER_FOLDERS}"):
            root = target.with_name(f"{target.name}.root")
            root.mkdir(mode=0o700)
            with self._options(store) as options:
                argv = ["mount", "-t", system, "-o", options, source, str(root)]
                wrong = bounded(argv, MOUNT_SECONDS_MAX)
            if wrong:
                raise NotStarted(f"the datastore {store.name} could not be mounted: {wrong}")
            try:
                with _closing(open_folder(root)) as top:
                    self._bind(top, "/", asked, store, target)
            finally:
                left = self._release(root)
            if left:
                raise NotStarted(left)
        else:
            raise NotStarted(f"this node cannot mount {store.kind}: mount.{system} is not there")

    @contextmanager
    def _options(self, store: StoreMount) -> Generator[str, None, None]:
        """The options of `mount`; while they are in use, the login is in a file for root alone."""
        options = f"{'ro' if store.use == INPUT else 'rw'},{OPTIONS}"
        if store.kind == NFS:
            yield f"{options},retry=0"
            return
        if store.user is None or store.password is None:
            raise NotStarted(f"the datastore {store.name} came without user and password")
        if any(sign in store.user + store.password for sign in "\n\r\0"):
            raise NotStarted(f"the login of the datastore {store.name} has more than one line")
        if self._user is not None:
            options += f",uid={self._user.uid},gid={self._user.gid}"
        login = self._folder / f"{_LOGIN}{secrets.token_hex(8)}"
        try:
            write_secret(login, f"username={store.user}\npassword={store.password}\n".encode())
            yield f"{options},file_mode=0600,dir_mode=0700,credentials={login}"
        finally:
            login.unlink(missing_ok=True)

    # --- letting go ----------------------------------------------------------------------------

    def _release(self, target: Path) -> str:
        """Unmount, and remove the empty folder. What is mounted is never removed."""
        for each in (one for one in mounted_below(target.parent) if one == target):
            wrong = unmount(each, MOUNT_SECONDS_MAX)
            if wrong:
                return f"{each} could not be unmounted: {wrong}"
        with suppress(FileNotFoundError):
            try:
                target.rmdir()
            except OSError as error:
                return f"{target} could not be removed: {error.strerror}"
        return ""

    def sweep(self) -> None:
        """Let go of what an executor that was killed left behind. Raises StoreUnusable."""
        if not self._folder.is_dir():
            return
        for login in self._folder.glob(f"{_LOGIN}*"):
            login.unlink(missing_ok=True)
        wrongs = [
            f"{mounted} could not be unmounted: {wrong}"
            for mounted in mounted_below(self._folder)
            if (wrong := unmount(mounted, MOUNT_SECONDS_MAX))
        ]
        if not wrongs:
            wrongs = [self.close(place.name) for place in sorted(self._folder.iterdir())]
            with suppress(OSError):
                (self._folder / CHECK).rmdir()
        left = "; ".join(wrong for wrong in wrongs if wrong)
        if left:
            raise StoreUnusable(f"{left}: left behind by an earlier executor")

    def _require_apart(self, address: str, named: Path) -> None:
        """Raises StoreUnusable: no folder, the whole machine, or what the executor keeps."""
        if not named.is_absolute() or not named.is_dir():
            raise StoreUnusable(f"{named}, for {address}, is no folder with an absolute path")
        real, ours = named.resolve(), self._folder.parent.resolve()
        if real == Path("/") or real in (ours, *ours.parents) or ours in real.parents:
            raise StoreUnusable(f"{named}, for {address}, holds what the executor keeps")


@contextmanager
def _closing(descriptor: int) -> Generator[int, None, None]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _source(store: StoreMount) -> tuple[str, str]:
    """What `mount` mounts, and the path below it. Raises NotStarted."""
    if store.kind == NFS:
        host = f"[{store.address}]" if ":" in store.address else store.address
        return f"{host}:{store.root_path}", store.asked
    if ":" in store.address:
        raise NotStarted("an SMB server is named by its host name or its IPv4 address")
    if store.root_path != "/":
        return f"//{store.address}{store.root_path}", store.asked
    # A server of SMB has shares, and nothing above them: the first name below the root is one.
    _, share, *rest = store.asked.split("/")
    if not share:
        raise NotStarted(f"the datastore {store.name} has a server as its root: ask for a share")
    return f"//{store.address}/{share}", "/" + "/".join(rest)


def _why(error: OSError) -> str:
    if error.errno == errno.EXDEV:
        return f"{error.filename} leads out of it"
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
