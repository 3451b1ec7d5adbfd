"""`tallystick-node exec` and `enroll`: the reference executor as a program of its own.

`enroll` is the owner's one step beside the reporter: with the node's key it asks for a key of the
executor's own and writes that, and nothing else, into the executor's folder. `exec` never opens the
reporter's folder.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import secrets
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacl.public import PrivateKey
from nacl.signing import SigningKey

from domain.fleet.keys import sealing
from node_reporter.clock import SystemClock
from node_reporter.executor import state as executor_state
from node_reporter.executor.runner import Limits, Runner, RunnerUnusable
from node_reporter.executor.state import ExecutorFolder, only_one
from node_reporter.machine import config
from node_reporter.programs.signals import on_end
from node_reporter.reports.client import HttpTransport, Transport, parsed
from node_reporter.terminal import ConfigUnreadable, printable

if TYPE_CHECKING:
    from node_reporter.executor.executor import Allowed, Executor
    from node_reporter.executor.reserved_names import ReservedNames
    from node_reporter.executor.sandbox import JobUser
    from node_reporter.executor.volume_store import VolumeStore

MIB = 1024 * 1024


class EnrollRefused(Exception):
    """The server gave no key for an executor."""


def enroll(options: argparse.Namespace) -> int:
    """Ask for the executor's key with the node's own, once."""
    environment = config.process_environment()
    node = config.load(config.state_folder(options.state, environment), environment, options.url)
    folder = executor_state.executor_folder(options.executor_state, environment)
    transport = HttpTransport(node.url, allow_http=options.allow_http)
    sealing_key = PrivateKey.generate()
    with closing(transport):
        body = signed_sealing(node.node_id, sealing_key, node.signing_key)
        key = ask_key(transport, node.node_id, node.node_key, body)
    folder.remember(
        url=node.url, node_id=node.node_id, executor_key=key, sealing_key=bytes(sealing_key)
    )
    told = {"node_id": node.node_id, "state": str(folder.path)}
    text = f"{node.node_id} has an executor; its key is in {folder.path}"
    sys.stdout.write((json.dumps(told) if options.json else printable(text)) + "\n")
    return 0


def signed_sealing(node_id: str, key: PrivateKey, signing_key: SigningKey) -> bytes:
    """The executor's public sealing key under the node's signature, as the server is told."""
    public = bytes(key.public_key).hex()
    signature = signing_key.sign(sealing(node_id, public)).signature.hex()
    told = {"sealing_key": public, "sealing_signature": signature}
    return json.dumps(told, separators=(",", ":")).encode()


def ask_key(transport: Transport, node_id: str, node_key: str, body: bytes = b"{}") -> str:
    """A new key of the node's executor; the one before it ends. Raises EnrollRefused."""
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {node_key}",
        "Idempotency-Key": secrets.token_hex(16),
    }
    answer = transport.request("POST", f"/v1/nodes/{node_id}/executor-key", headers, body)
    try:
        key = parsed(answer.body).get("executor_key")
    except (ValueError, AttributeError):
        key = None
    if answer.status != 201 or not isinstance(key, str) or not key.startswith("ts_exec_"):
        raise EnrollRefused(f"the server gave no executor key: it answered {answer.status}")
    return key


def _leave_no_dump() -> None:
    """What this program holds, its keys and the secrets that renters seal to it, is in no file that
    the kernel writes when it breaks off.
    """
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(options: argparse.Namespace) -> int:
    """Take up work until told to stop. Raises RunnerUnusable, NotJoined, AlreadyRuns."""
    if sys.platform != "linux":
        raise RunnerUnusable("the executor needs Linux")
    from node_reporter.executor.client import ExecutorClient
    from node_reporter.executor.datastores import Datastores, StoreSettings
    from node_reporter.executor.executor import Executor
    from node_reporter.executor.sandbox import job_user
    from node_reporter.executor.volume_store import StoreUnusable

    folder = executor_state.executor_folder(options.executor_state, config.process_environment())
    _leave_no_dump()
    settings = executor_state.load(folder)
    user = job_user(options.job_user)
    runners = usable(options, folder, user)
    transport = HttpTransport(settings.url, allow_http=options.allow_http)
    client = ExecutorClient(settings.node_id, settings.executor_key, transport)
    volumes = volume_store(folder, user)
    allowed_stores = executor_state.store_settings(folder)
    stores = None if allowed_stores is None else Datastores(allowed_stores, folder.mounts, user)
    executor = Executor(
        settings,
        client,
        runners,
        folder.jobs,
        SystemClock(),
        allowed=allowed(options),
        user=user,
        volumes=volumes,
        datastores=stores,
        names=reserved_names(options),
        used=folder.used,
        tell=_tell,
        apart=partial(
            ExecutorClient.apart,
            settings.node_id,
            settings.executor_key,
            partial(HttpTransport, settings.url, allow_http=options.allow_http),
        ),
    )
    _tell(
        f"executor {settings.executor} of {settings.node_id}: "
        + ", ".join(runner.name for runner in runners)
    )
    with only_one(folder):
        executor.take_over()
        try:
            if stores is None:
                Datastores(StoreSettings(), folder.mounts).sweep()
            else:
                stores.check()
                _tell("work mounts the datastores that datastores.toml allows")
            until_stopped(executor, options.every / 1_000, options.seconds)
        except StoreUnusable as error:
            raise RunnerUnusable(str(error)) from error
        finally:
            executor.close()
            transport.close()
    return 0


def volume_store(folder: ExecutorFolder, user: JobUser | None) -> VolumeStore | None:
    """The store of volumes that the owner names in volumes.toml; None: jobs mount none here.

    Raises ConfigUnreadable, KeyUnreadable, RunnerUnusable.
    """
    from node_reporter.executor.bucket_store import Bucket, BucketStore
    from node_reporter.executor.volume_store import FolderStore, StoreUnusable

    told = executor_state.volume_settings(folder)
    if not told:
        return None
    kind, rest = told.pop("kind", ""), told
    try:
        store: VolumeStore
        if kind == "folder":
            store = FolderStore(Path(rest["root"]), user)
        elif kind == "bucket":
            store = BucketStore(Bucket(**rest), folder.copies, user)
        else:
            raise ConfigUnreadable(f'{folder.volumes}: kind is "folder" or "bucket"')
        store.check()
    except (KeyError, TypeError) as error:
        raise ConfigUnreadable(f"{folder.volumes}: {error}") from error
    except StoreUnusable as error:
        raise RunnerUnusable(str(error)) from error
    _tell(f"volumes are kept in a {kind}")
    return store


def reserved_names(options: argparse.Namespace) -> ReservedNames | None:
    """What publishes them; None: nothing does. Raises ConfigUnreadable, RunnerUnusable."""
    from node_reporter.executor.reserved_names import ReservedNames

    if options.mdns is None:
        return None
    if not options.network:
        raise ConfigUnreadable("--mdns needs --network: without it nothing is reached at a name")
    names = ReservedNames(options.mdns)
    names.check()
    return names


def until_stopped(executor: Executor, every_s: float, seconds: int | None) -> None:
    """Step after step, until SIGTERM, SIGINT or so many seconds."""
    stop = threading.Event()
    on_end(stop.set)
    if seconds is not None:
        late = threading.Timer(seconds, stop.set)
        late.daemon = True
        late.start()
    while not stop.is_set():
        executor.step()
        stop.wait(every_s)


def usable(
    options: argparse.Namespace, folder: ExecutorFolder, user: JobUser | None
) -> list[Runner]:
    """The ways this machine runs work, each tried once. Raises RunnerUnusable.

    Without a confinement that works there is none, unless the owner says that renters are trusted.
    """
    from node_reporter.executor.docker import DockerRunner
    from node_reporter.executor.sandbox import SandboxRunner, TrustedRunner

    folder.jobs.mkdir(mode=0o711, exist_ok=True)
    wanted: list[Runner] = [DockerRunner(os.environ, user)]
    if options.trusted:
        wanted.insert(0, TrustedRunner(user))
    else:
        wanted.insert(0, SandboxRunner(folder.jobs, user))
    found: list[Runner] = []
    reasons: dict[str, str] = {}
    for runner in wanted:
        try:
            runner.check()
        except RunnerUnusable as error:
            reasons[runner.name] = str(error)
        else:
            found.append(runner)
    if found and reasons.pop("docker", None) is not None:
        _tell("without docker: it does not answer here, and only jobs that name an image need it")
    for name, reason in reasons.items():
        _tell(f"not used: {name}: {reason}")
    if not found:
        raise RunnerUnusable(
            "nothing here confines a job; install bubblewrap, or say --trusted"
            " where every renter is trusted with this machine"
        )
    return found


def allowed(options: argparse.Namespace) -> Allowed:
    """What the owner grants on the command line. Raises ConfigUnreadable."""
    from node_reporter.executor.executor import Allowed

    for path in options.read:
        if not os.path.isabs(path) or os.path.realpath(path) == "/":
            raise ConfigUnreadable(f"--read {path}: name a folder, from the root on")
    if options.ports and options.host is None:
        raise ConfigUnreadable("--ports needs --host: where renters reach this machine")
    limits = Limits(
        memory_bytes=options.memory * MIB,
        processes=options.processes,
        folder_bytes=options.disk * MIB,
        cpu_seconds=options.cpu_seconds,
        grace_s=options.grace,
    )
    return Allowed(
        limits=limits,
        network=options.network,
        read_only=tuple(options.read),
        host=options.host,
        ports=options.ports or range(0),
    )


def add_parsers(commands: Any, between: Callable[[int, int], Callable[[str], int]]) -> None:
    """The two commands, as `tallystick-node` lists them."""
    _enroll_parser(commands)
    command = commands.add_parser(
        "exec",
        help="run the work of leases, confined",
        epilog="example: tallystick-node exec --memory 16384",
    )
    _state(command)
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument(
        "--trusted", action="store_true", help="no walls around jobs: every renter is trusted"
    )
    command.add_argument(
        "--job-user", metavar="NAME", help="whom jobs run as when started as root, default nobody"
    )
    command.add_argument("--network", action="store_true", help="let jobs use the network")
    command.add_argument(
        "--read",
        action="append",
        default=[],
        metavar="DIR",
        help="let jobs read this folder too; may be repeated",
    )
    command.add_argument("--host", help="where renters reach endpoints on this machine")
    command.add_argument(
        "--mdns",
        type=_address,
        metavar="ADDRESS",
        help="publish reserved names as this address of the machine; needs --network and avahi",
    )
    command.add_argument("--ports", type=_ports, metavar="A-B", help="ports of endpoints")
    for name, low, high, default, what in (
        ("--memory", 16, 2**24, 8_192, "MiB of memory of one job"),
        ("--disk", 1, 2**30, 10_240, "MiB of files of one job"),
        ("--processes", 1, 65_536, 512, "processes of one job"),
        ("--grace", 0, 600, 10, "seconds between asking a job to stop and ending it"),
    ):
        command.add_argument(
            name,
            type=between(low, high),
            default=default,
            metavar="N",
            help=f"{what}, default {default}",
        )
    command.add_argument(
        "--cpu-seconds",
        type=between(1, 10**9),
        metavar="S",
        help="processor time of each process of a job",
    )
    command.add_argument(
        "--every",
        type=between(50, 60_000),
        default=1_000,
        metavar="MS",
        help="milliseconds between looks, default 1000",
    )
    command.add_argument("--seconds", type=between(1, 10**9), help="stop after this long")
    command.set_defaults(command=run)


def _enroll_parser(commands: Any) -> None:
    command = commands.add_parser(
        "enroll",
        help="get this node's executor a key of its own",
        epilog="example: tallystick-node enroll --json",
    )
    command.add_argument("--state", metavar="DIR", help="folder of the node")
    _state(command)
    command.add_argument("--url", help="server, when not the one joined")
    command.add_argument("--allow-http", action="store_true", help="allow http to other machines")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(command=enroll)


def _state(command: Any) -> None:
    command.add_argument("--executor-state", metavar="DIR", help="folder of the executor")


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text))


def _ports(text: str) -> range:
    first, _, last = text.partition("-")
    found = range(int(first), int(last or first) + 1)
    if not (found and found[0] >= 1 and found[-1] <= 65_535):
        raise argparse.ArgumentTypeError("needed ports like 9000-9015")
    return found


def _tell(line: str) -> None:
    sys.stderr.write(printable(line) + "\n")
    sys.stderr.flush()
