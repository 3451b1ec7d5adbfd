"""What goes to the node beside the command, and what comes back: sent once, checked, confined.

    a file is sent if the server lacks one of its pieces    a second run sends what was changed
    what comes back is written at and below the paths that were asked back, and nowhere else

The node is another party's machine: of what it sends, each path is checked, each piece is held
against its hash, no link of this machine is followed, and nothing of `.git` is written.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.remote import Remote
from cli.running.folder import Scanned
from cli.terminal import AnswerIsNo, InputUnusable, Progress, counted, note
from domain.jobs import workspace as rules
from domain.jobs.workspace import PIECE_BYTES, PIECES_MAX, File, Workspace

if TYPE_CHECKING:
    from tallystick_client import Client

RESULT_SECONDS_MAX = 300
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Parcel:
    """What the renter gives with the command. `secrets` never leave this machine in the clear."""

    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    results: tuple[str, ...] = ()
    folder: Scanned | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.variables or self.secrets or self.results or self.folder)

    @property
    def environment(self) -> dict[str, str]:
        """For a program that runs on this machine."""
        return {**self.variables, **self.secrets}


# --- to the node ---------------------------------------------------------------------------------


def send(remote: Remote, parcel: Parcel, step: Progress) -> str:
    """Bring it to the server; the digest that the job names. Raises AnswerIsNo, InputUnusable."""
    workspace = Workspace(
        salt=secrets.token_hex(16),
        files=() if parcel.folder is None else tuple(parcel.folder.files),
        environment=tuple(sorted(parcel.variables.items())),
        secrets=tuple(sorted(parcel.secrets)),
        results=parcel.results,
    )
    try:
        rules.read(rules.document(workspace))
    except rules.WorkspaceInvalid as invalid:
        raise InputUnusable(str(invalid)) from None
    body: Any = rules.document(workspace)
    told: Any = remote.ask(lambda c: c.add_workspace(body))
    if told["workspace_sha256"] != rules.digest(workspace):
        raise AnswerIsNo("the server read another list of files than this one")
    lengths = workspace.pieces()
    missing = [one for one in told["missing"] if one in lengths]
    if parcel.folder is not None:
        _send_pieces(remote, parcel.folder, missing, step)
        files, size = len(workspace.files), sum(lengths[one] for one in missing)
        count = counted(files, "file")
        note(f"the node gets {count} of {parcel.folder.root}; {size:,} bytes were sent")
        for line in parcel.folder.left_out[:10]:
            note(f"left out: {line}")
    return rules.digest(workspace)


def _send_pieces(remote: Remote, folder: Scanned, missing: list[str], step: Progress) -> None:
    sent = 0
    for batch in rules.batches(folder.piece(key) for key in missing):
        told: Any = remote.ask(partial(_send_batch, batch))
        if told["kept"] != len(batch):
            raise AnswerIsNo("the server did not keep all files: run the command again")
        sent += len(batch)
        step("sending files", sent, len(missing))


def _send_batch(batch: list[bytes], client: Client) -> Any:
    return client.add_workspace_pieces({"data": [base64.b64encode(one).decode() for one in batch]})


def send_secrets(remote: Remote, lease_id: str, values: Mapping[str, str]) -> None:
    """Seal them for the executor of the lease's node alone. Raises AnswerIsNo."""
    from nacl.public import PublicKey, SealedBox

    told: Any = remote.ask(lambda c: c.read_lease_work(lease_id))
    key = _sealing_key(told)
    inside = {"lease_id": lease_id, "variables": dict(values)}
    sealed = SealedBox(PublicKey(key)).encrypt(json.dumps(inside, sort_keys=True).encode())
    body: Any = {"sealed": base64.b64encode(sealed).decode()}
    remote.ask(lambda c: c.add_lease_secrets(lease_id, body))


def _sealing_key(told: Mapping[str, Any]) -> bytes:
    """The executor's key, under the signature of its node. Raises AnswerIsNo."""
    from nacl.exceptions import BadSignatureError
    from nacl.signing import VerifyKey

    from domain.fleet.keys import sealing

    if told.get("sealing_key") is None:
        raise AnswerIsNo(
            "this node takes no secrets: its owner has to run `tallystick-node enroll` again"
        )
    message = sealing(str(told["node_id"]), str(told["sealing_key"]))
    try:
        node_key = VerifyKey(bytes.fromhex(str(told["node_key"])))
        node_key.verify(message, bytes.fromhex(str(told["sealing_signature"])))
    except (BadSignatureError, ValueError, KeyError):
        raise AnswerIsNo("the node did not sign the key for secrets: none was sent") from None
    return bytes.fromhex(str(told["sealing_key"]))


# --- back ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Came:
    """What came back: how many files of it are new or changed here. `lost`: what was asked back and
    did not come, and why. `left_out`: links, pipes and devices, which never come, and folders
    without a file.
    """

    changed: int = 0
    lost: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def fetch(remote: Remote, lease_id: str, root: Path, asked: tuple[str, ...], size_max: int) -> Came:
    """Write what came back below the root. Raises AnswerIsNo, OSError."""
    listed = _listed(remote, lease_id)
    if listed is None:
        why = f"the node did not send it; `tallystick lease log {lease_id}` tells what it said"
        return Came(lost=tuple(f"{path}: {why}" for path in asked))
    files, told = listed
    for one in files:
        # On some disks .GIT is .git.
        if not rules.is_below(one.path, asked) or ".git" in one.path.casefold().split("/"):
            raise AnswerIsNo(f"the node sent {one.path!r}, which was not asked for")
    if sum(one.size for one in files) > size_max:
        raise AnswerIsNo(f"what came back is larger than --size-max: {lease_id} keeps it for a day")
    bodies = Bodies(remote, lease_id, list(rules.pieces_of(files)))
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        changed = sum(_take(handle, one, bodies) for one in files)
    finally:
        os.close(handle)
    lost = [one for one in told if one.get("is_lost", True)]
    left_out = [one for one in told if not one.get("is_lost", True)]
    return Came(changed, (*_lines(lost), *_unsaid(asked, files, told)), _lines(left_out))


def _lines(told: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(f"{one['path']}: {one['detail']}" for one in told)


def _unsaid(
    asked: tuple[str, ...], files: tuple[File, ...], told: list[dict[str, Any]]
) -> list[str]:
    """Paths that were asked back, of which nothing came and the node says nothing."""
    said = {one["path"] for one in told}
    came = [one.path for one in files]
    return [
        f"{path}: nothing of it came"
        for path in asked
        if path not in said and not any(rules.is_below(one, (path,)) for one in came)
    ]


def _listed(remote: Remote, lease_id: str) -> tuple[tuple[File, ...], list[dict[str, Any]]] | None:
    """The files, once the node has sent all of them, and what it left out; None: no list, or not
    all of it, came in time.
    """
    ends = time.monotonic() + RESULT_SECONDS_MAX
    first = time.monotonic() + RESULT_SECONDS_MAX / 10
    while True:
        told: Any = remote.ask(lambda c: c.read_lease_results(lease_id))
        if told["is_listed"] and not told["missing"]:
            break
        if time.monotonic() >= (ends if told["is_listed"] else first):
            return None
        time.sleep(LOOK_SECONDS)
    try:
        return rules.read_files(told["files"]), list(told.get("left_out", ()))
    except rules.WorkspaceInvalid as invalid:
        raise AnswerIsNo(f"the node sent a list of files that cannot be used: {invalid}") from None


def _take(root: int, one: File, bodies: Bodies) -> bool:
    """Write one file, unless it is here as it is. Raises AnswerIsNo, OSError."""
    *above, name = one.path.split("/")
    folder = _entered(root, above)
    try:
        if _is_here(folder, name, one):
            return False
        temporary = f".{name[:60]}.{secrets.token_hex(4)}"  # at most 255 bytes, as a name may have
        mode = 0o777 if one.is_program else 0o666
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(temporary, flags, mode, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                for key, length in _lengths(one):
                    file.write(bodies.piece(key, length))
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
    finally:
        os.close(folder)
    return True


def _entered(root: int, parts: list[str]) -> int:
    """A folder below the root, made where it is missing; a link on the way is refused."""
    here = os.dup(root)
    for part in parts:
        try:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=here)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
        except OSError:
            raise AnswerIsNo(f"{'/'.join(parts)}: {part} is no folder here") from None
        finally:
            os.close(here)
        here = inner
    return here


def _is_here(folder: int, name: str, one: File) -> bool:
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return False
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size != one.size:
            return False
        return all(sha256(file.read(PIECE_BYTES)).hexdigest() == key for key in one.sha256)


def _lengths(one: File) -> list[tuple[str, int]]:
    left = one.size
    found = []
    for key in one.sha256:
        found.append((key, min(left, PIECE_BYTES)))
        left -= PIECE_BYTES
    return found


@dataclass
class Bodies:
    """The pieces of a lease's results, in the order in which they are written: with one that is
    wanted come those after it, as many as one answer holds.
    """

    remote: Remote
    lease_id: str
    order: list[str]
    _held: dict[str, bytes] = field(default_factory=dict)

    def piece(self, key: str, length: int) -> bytes:
        """Raises AnswerIsNo."""
        if key not in self._held:
            at = self.order.index(key)
            wanted = self.order[at : at + PIECES_MAX]
            told: Any = self.remote.ask(partial(_asked_pieces, self.lease_id, wanted))
            self._held = {one["sha256"]: base64.b64decode(one["body"]) for one in told["data"]}
        body = self._held.get(key, b"")
        if len(body) != length or sha256(body).hexdigest() != key:
            raise AnswerIsNo("a file that came back is not the one that the node named")
        return body


def _asked_pieces(lease_id: str, wanted: list[str], client: Client) -> Any:
    return client.read_result_pieces(lease_id, {"sha256": wanted})
