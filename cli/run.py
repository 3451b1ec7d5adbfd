"""`tallystick run -- COMMAND`: lease, run the program there, see what it prints, sign, release.

    exit code == the program's                            128 + number, when a signal ended it
    the program's is 0, not all results are back          1
    whatever happens here, the lease ends                 released, or bounded by its funds

Nothing about the program changes: what it needs to find its share of the accelerator is in its
environment. It runs on the leased node under that node's executor; when the lease is on this
machine, and no executor has it in hand, it runs right here, in this folder and terminal.
"""

from __future__ import annotations

import base64
import itertools
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from cli.remote import ApiKey, Remote, Url, credits_of
from cli.running import live, options, parcels, priced
from cli.running.folder import MIB
from cli.running.parcels import Came, Parcel
from cli.running.waiting import Waits
from cli.terminal import (
    EXIT_INTERRUPTED,
    EXIT_NO,
    AnswerIsNo,
    AsJson,
    InputUnusable,
    amount,
    note,
    progress,
    tell,
    top_level,
    with_local_times,
)
from cli.work_options import RemotingSession, Route, Split, remoted

if TYPE_CHECKING:
    from tallystick_client import Client
    from tallystick_client.forms import JobRequest, LeaseCheckInRequest, LeaseRequest

LOOK_SECONDS = (0.1, 1.0)
"""How long between two looks: at first, and when nothing happens for long."""
AWAY_SECONDS_MAX = 300
LOST_SECONDS = 30
"""After its lease is closed, how long the node has to say what the program printed last."""
USE_SECONDS = 10.0
"""How often the node's reports are asked how busy its GPUs are."""
BUSY_SECONDS = 5.0
"""How often a GPU is asked for that others have."""
CHECK_IN_SECONDS = 60
"""How often this machine says that it is still there."""
OVER = ("closing", "settled", "disputed", "resolved", "archived")

commands = top_level()


@commands.command(epilog="Example: tallystick run --gpus 1 --get out -- python3 train.py")
def run(
    command: options.Words = None,
    gpus: options.Gpus = 1,
    part: options.Part = None,
    memory: options.Memory = None,
    model: options.Model = None,
    max_price: options.MaxPrice = None,
    funds: options.Funds = None,
    env: options.Env = None,
    env_file: options.EnvFile = None,
    secret: options.Secret = None,
    image: options.Image = None,
    volume: options.Volume = None,
    get: options.Get = None,
    no_files: options.NoFiles = False,
    size_max: options.SizeMax = 100,
    wait_for_gpu: options.WaitForGpu = False,
    project: Annotated[str, typer.Option(help="Your own label on the bill.")] = "",
    session: RemotingSession = None,
    split: Split = None,
    route: Route = None,
    key_file: options.KeyFile = None,
    no_sign: options.NoSign = False,
    wait: options.Wait = 0,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Lease accelerators, run a program on them, sign for the usage, release them.

    This folder travels to the node and is the program's folder there, but for what a
    .tallystickignore leaves out; --get brings files back. Billed by the second, from when the
    program runs until it ends. Ctrl-C stops it and releases the lease. With --json what it prints
    goes to standard error. Exit code: the program's; 1 if it is 0 and not all of --get came back.
    """
    if part is not None and memory is not None:
        raise InputUnusable("-p and --mem both say how much of a GPU: give one of them")
    if not command and image is None:
        raise InputUnusable("what is to run? give a command after --, or an --image")
    remote = Remote(url, api_key)
    parcel = options.parcel_of(env, env_file, secret, get, no_files=no_files, size_max=size_max)
    job: JobRequest = {
        "kind": "batch",
        "command": command or [],
        "gpu_count": gpus,
        "models": model or [],
        "project_id": project,
        "env_refs": options.granted(env),
        "volumes": options.mounts(volume),
        "image": image,
        "max_price_per_gpu_hour": priced.any_price(max_price),
    }
    body: LeaseRequest = {"job": job, **remoted(session, split, route)}
    if funds is not None:
        body["funds"] = credits_of(funds)
    priced.ask_for(remote, body, part, memory, max_price, waits=wait_for_gpu)
    note(priced.told(body))
    key = None if no_sign else key_file or _default_key()
    out = sys.stderr if as_json else sys.stdout
    lease = Session(remote, out, parcel, size_max=size_max, waits_for_gpu=wait_for_gpu)
    raise typer.Exit(_through(lease, body, command or [], key, wait, as_json=as_json))


def _through(
    run: Session,
    body: LeaseRequest,
    command: list[str],
    key: Path | None,
    wait: int,
    *,
    as_json: bool,
) -> int:
    """Lease, run, sign with the key if there is one, tell; the code that the program ended with."""
    with _interrupting():
        code = run.run(body, command)
    if run.is_left or not run.lease:
        return code
    if key is not None:
        run.sign(key)
    told, used_us = run.told(code, wait)
    tell(told, (), as_json=True) if as_json else note(live.bill(told, used_us))
    return code or (EXIT_NO if run.came is not None and run.came.lost else 0)


# --- one lease -----------------------------------------------------------------------------------


@dataclass
class Session:
    """A lease of ours from its opening to its release."""

    remote: Remote
    out: TextIO
    parcel: Parcel = field(default_factory=Parcel)
    size_max: int = 100  # MiB, of what comes back
    waits_for_gpu: bool = False
    lease: dict[str, Any] = field(default_factory=dict)
    is_local: bool = False
    is_left: bool = False  # it goes on without us
    came: Came | None = None  # what was asked back; None: nothing was
    _key: str = ""
    _is_asked: bool = False  # for the lease, and not refused yet
    _next_seq: int = 0
    _check_in_at: float = 0.0
    _printed: live.Printed = field(init=False)
    _status: live.StatusLine = field(default_factory=live.StatusLine)
    _watch: live.Watch = field(default_factory=live.Watch)
    _use_at: float = 0.0
    _busy_ppm: int | None = None
    _line_is_open: bool = False  # what the program printed last did not end its line

    def __post_init__(self) -> None:
        self._printed = live.Printed(self.out)

    @property
    def lease_id(self) -> str:
        return str(self.lease["lease_id"])

    def run(self, body: LeaseRequest, command: list[str]) -> int:
        """The program's exit code. Whatever goes wrong here, the lease is released."""
        self._key = self.remote.key
        try:
            self._bring(body)
            self._open(body)
            if self.parcel.secrets and not self._is_here():
                parcels.send_secrets(self.remote, self.lease_id, self.parcel.secrets)
            code = self._through_interrupts(command)
        except KeyboardInterrupt:
            return self._stopped(body)
        except BaseException:
            if self.lease:
                self.close()
            raise
        finally:
            self._status.clear()
        if self.is_left:
            return code
        self._fetch()
        return code

    def _through_interrupts(self, command: list[str]) -> int:
        """To its end. On a terminal Ctrl-C asks first, and a second one does not."""
        while True:
            try:
                return self._to_its_end(command)
            except Signalled:
                raise
            except KeyboardInterrupt:
                answer = "y" if self.is_local else _ask_whether_to_stop(self._status)
                if answer == "y":
                    raise
                if answer == "l":
                    self.is_left = True
                    note(
                        f"{self.lease_id} goes on: `tallystick lease log {self.lease_id} --follow`"
                        f" shows it, `tallystick lease close {self.lease_id}` ends it"
                    )
                    return EXIT_INTERRUPTED

    def _stopped(self, body: LeaseRequest) -> int:
        """Interrupted: the lease is released, and what came until then is shown."""
        if not self.lease and not self._is_asked:
            return EXIT_INTERRUPTED
        note("stopping; the lease is released")
        if not self.lease:
            # It may have been made: the same key tells it, and nothing is made twice.
            self.waits_for_gpu = False
            self._open(body)
        self.close()
        with suppress(AnswerIsNo):
            self._follow()
        self._status.clear()
        self._fetch()
        return EXIT_INTERRUPTED

    def _bring(self, body: LeaseRequest) -> None:
        """Send what goes with the command; the job names it. Raises AnswerIsNo, InputUnusable."""
        if self.parcel.is_empty:
            return
        with progress() as step:
            digest = parcels.send(self.remote, self.parcel, step)
        job: Any = body["job"]
        job["references"] = [{"kind": "workspace", "name": digest}]

    def _open(self, body: LeaseRequest) -> None:
        """Lease; where all matching GPUs are busy, wait if that is wanted. Raises AnswerIsNo."""
        said = ""
        for attempt in itertools.count():
            key = self._key if attempt == 0 else f"{self.remote.key}-{attempt}"
            self._key, self._is_asked = key, True
            try:
                told = self.remote.ask(partial(_opened, body, key))
                break
            except AnswerIsNo as no:
                self._is_asked = False
                if not self.waits_for_gpu or not _is_busy(no.document):
                    raise
                detail = with_local_times(str((no.document or {}).get("detail")))
                if detail != said:
                    note(f"waiting for a GPU: {detail}")
                said = detail
                self._await_offer(body)
        self.lease = dict(told)
        note(
            f"{self.lease_id} on {self.lease['node_id']}"
            f" at {amount(self.lease['price_per_gpu_hour'])} per GPU-hour"
        )

    def _await_offer(self, body: LeaseRequest) -> None:
        """Until a GPU would be given: asked with a call of which the server keeps nothing, while
        each try for a lease is kept. Raises AnswerIsNo.
        """
        while True:
            time.sleep(BUSY_SECONDS)
            quoted = self._patiently(lambda: self._quoted(body))
            if not _lacks_room(quoted):
                return  # it is free; or something else is missing, which the next try tells

    def _quoted(self, body: LeaseRequest) -> dict[str, Any]:
        told: Any = body
        asked: Any = {name: told[name] for name in ("job", "funds") if name in told}
        return dict(self.remote.ask(lambda c: c.quote_job(asked)))

    def _is_here(self) -> bool:
        """Whether the program will run on this machine."""
        from cli import run_here

        here = run_here.executor_of(self.lease["node_id"])
        if here is not None:
            here.lock.__exit__(None, None, None)
        return here is not None

    def _fetch(self) -> None:
        """What the renter asked back, and in words what of it did not come: what the program has
        used is signed and billed all the same.
        """
        asked = self.parcel.results
        if not asked or self.is_local:
            return
        try:
            if self._read().get("opened_at") is None:
                return
            self.came = parcels.fetch(
                self.remote, self.lease_id, Path.cwd(), asked, self.size_max * MIB
            )
        except AnswerIsNo as no:
            self.came = Came(lost=(str(no).splitlines()[0],))
        except OSError as error:
            self.came = Came(lost=(f"it cannot be written here: {error}",))
        for line in live.of_results(self.came, asked):
            note(line)

    def _to_its_end(self, command: list[str]) -> int:
        from cli import run_here

        self._check_in()
        here = run_here.executor_of(self.lease["node_id"])
        if here is None:
            return self._follow()
        with here:
            self.is_local = True
            note("the lease is on this machine: running here")
            return here.run(self.lease_id, command, self._is_over, self.parcel.environment)

    def close(self) -> None:
        """End the lease, with the renter's code of its state; closing twice is closing once."""
        key, lease_id = f"{self.remote.key}-close", self.lease_id
        try:
            self.remote.ask(lambda c: c.close_lease(lease_id, {}, idempotency_key=key))
        except AnswerIsNo:
            note(f"{lease_id} could not be released: it ends when its funds do")
            raise

    def _follow(self) -> int:
        """Print what comes until nothing more will. Raises AnswerIsNo."""
        quiet, closed_since = LOOK_SECONDS[0], None
        told: dict[str, Any] = {}
        waits = Waits(self.remote, self.lease_id)
        while not told.get("ended"):
            told = self._patiently(lambda: self._print())
            if told["data"]:
                quiet = LOOK_SECONDS[0]
                continue
            self._check_in()
            lease = self._patiently(self._read)
            waits.look(lease)
            self._show_status(lease)
            if lease["state"] in OVER:
                closed_since = closed_since or time.monotonic()
                if time.monotonic() - closed_since > LOST_SECONDS:
                    note("the node does not say what became of the program")
                    break
            if not told.get("ended"):
                time.sleep(quiet)
                quiet = min(LOOK_SECONDS[1], quiet * 1.5)
        return self._code(told)

    def _print(self) -> dict[str, Any]:
        lease_id, from_seq = self.lease_id, self._next_seq
        told: Any = self.remote.ask(lambda c: c.read_lease_log(lease_id, from_seq=from_seq))
        for piece in told["data"]:
            self._status.clear()
            body = base64.b64decode(piece["body"])
            self._line_is_open = not body.endswith(b"\n")
            self._printed.show(piece["stream"], body)
        self._next_seq = told["next_seq"]
        if told["left_out"] and told["ended"]:
            note(f"{told['left_out']} bytes of what it printed were not kept")
        return dict(told)

    def _show_status(self, lease: dict[str, Any]) -> None:
        """Not behind a line that the program has still to end: it would be overwritten."""
        if not self._status.is_on or self._line_is_open or lease["state"] in OVER:
            return
        if time.monotonic() >= self._use_at:
            lease_id, self._use_at = self.lease_id, time.monotonic() + USE_SECONDS
            with suppress(AnswerIsNo):
                use = self.remote.ask(lambda c: c.read_lease_use(lease_id))
                self._busy_ppm = use.get("busy_ppm")
        self._status.show(live.status_of(lease, self._watch.elapsed_us(lease), self._busy_ppm))

    def _patiently(self, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A server that is away is asked again for some minutes; funds bound what comes after."""
        ends = time.monotonic() + AWAY_SECONDS_MAX
        is_away = False
        while True:
            try:
                return ask()
            except AnswerIsNo as no:
                if no.document is not None or time.monotonic() >= ends:
                    raise
                if not is_away:
                    goes_on = f"; {self.lease_id} goes on until it is back or the funds end"
                    note(f"the server is away{goes_on if self.lease else ''}")
                is_away = True
                time.sleep(LOOK_SECONDS[1])

    def _code(self, told: dict[str, Any]) -> int:
        """The program's exit code; without one, why the lease ended."""
        if told.get("exit_code") is not None:
            return int(told["exit_code"])
        lease = self._read()
        why = live.closed_with(lease.get("close_code"))
        note(f"the program's end is not known; the lease was closed with {why}")
        return EXIT_NO

    def _check_in(self) -> None:
        """The renter's half of the lease is watched too: a word a minute. A server that does not
        take it, or is away, is none of the program's business.
        """
        now = time.monotonic()
        if now < self._check_in_at:
            return
        self._check_in_at = now + CHECK_IN_SECONDS
        lease_id = self.lease_id
        body: LeaseCheckInRequest = {
            "machine": platform.node()[:100] or "unnamed",
            "arch": platform.machine() or None,
            "os": platform.system().lower() or None,
            "kernel": platform.release() or None,
        }
        with suppress(AnswerIsNo):
            self.remote.ask(lambda c: c.report_renter_health(lease_id, body))

    def _is_over(self) -> bool:
        self._check_in()
        return self._patiently(self._read)["state"] in OVER

    def _read(self) -> dict[str, Any]:
        lease_id = self.lease_id
        return dict(self.remote.ask(lambda c: c.read_lease(lease_id)))

    # --- the renter's half, and the result -------------------------------------------------------

    def sign(self, key_file: Path) -> None:
        """Countersign: this share of these devices, from the opening to the close."""
        from cli.countersigning import countersign

        lease = self._read()
        if lease.get("opened_at") is None or lease.get("closed_at") is None:
            return
        try:
            self.lease["countersigned_gpu_us"] = countersign(self.remote, lease, key_file)
        except AnswerIsNo as no:
            note(f"the usage is not countersigned: {str(no).splitlines()[0]}")

    def told(self, code: int, wait_s: int) -> tuple[dict[str, Any], int]:
        """What `--json` prints, and the GPU time from opening to close. The bill is final when the
        state is settled; before that `estimate` is what the time costs.
        """
        from cli.countersigning import used_gpu_us

        ends = time.monotonic() + wait_s
        lease = self._read()
        while lease["state"] == "closing" and time.monotonic() < ends:
            time.sleep(LOOK_SECONDS[1] / 2)
            lease = self._read()
        is_final = lease["state"] in live.FINAL
        used_us = used_gpu_us(lease)[0] if lease.get("opened_at") and lease.get("closed_at") else 0
        names = (
            "lease_id",
            "job_id",
            "node_id",
            "device_ids",
            "share_ppm",
            "state",
            "opened_at",
            "closed_at",
            "close_code",
            "price_per_gpu_hour",
            "charge",
            "gpu_us",
        )
        told = {name: lease[name] for name in names if lease.get(name) is not None}
        signed = self.lease.get("countersigned_gpu_us")
        start_us = None if self.is_local else self._start_us()
        told |= {} if start_us is None else {"start_us": start_us}
        told |= {
            "exit_code": code,
            "is_final": is_final,
            "ran": "here" if self.is_local else "on the node",
            "countersigned_gpu_us": None if signed is None else str(signed),
        }
        told |= {} if self.came is None else {"results": self._results()}
        return told | ({} if is_final else {"estimate": live.cost(lease, used_us)}), used_us

    def _results(self) -> dict[str, Any]:
        assert self.came is not None
        return {
            "asked": list(self.parcel.results),
            "are_back": not self.came.lost,
            "files_changed": self.came.changed,
            "lost": list(self.came.lost),
            "left_out": list(self.came.left_out),
        }

    def _start_us(self) -> int | None:
        """How long the start took that is not charged."""
        lease_id = self.lease_id
        with suppress(AnswerIsNo):
            found = self.remote.ask(lambda c: c.read_lease_work(lease_id)).get("start_us")
            return None if found is None else int(found)
        return None


def _opened(body: LeaseRequest, key: str, client: Client) -> Any:
    return client.open_lease(body, idempotency_key=key)


def _is_busy(document: Any) -> bool:
    """Whether a GPU that others hold is all that is missing."""
    told = document or {}
    return told.get("code") == "no_match" and (told.get("facts") or {}).get("missing") == "room"


def _lacks_room(quoted: Mapping[str, Any]) -> bool:
    """The same of a quote: where a price is set, others than those that cost more."""
    if (quoted.get("nearest") or {}).get("missing") == "room":
        return quoted.get("offered") is None
    left = [one["dimension"] for one in quoted["dimensions"] if one["nodes_left"] == 0]
    return quoted.get("offered") is None and left[:1] == ["free"]


def _ask_whether_to_stop(status: live.StatusLine) -> str:
    """y: stop it, n: go on, l: leave it running. Where there is no terminal to ask on: y."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return "y"
    status.clear()
    sys.stderr.write("\nStop the program and release the lease? [y]es, [n]o, [l]eave it running: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip().lower()[:1]
    return answer if answer in ("n", "l") else "y"


# --- terminal ------------------------------------------------------------------------------------


class Signalled(KeyboardInterrupt):
    """Another program ends us: nobody is asked."""


@contextmanager
def _interrupting() -> Generator[None, None, None]:
    """SIGTERM and SIGHUP end us like Ctrl-C: the lease is released first.

    A signal that was ignored when we started stays ignored: `nohup` and a shell's background job
    ask for that (Python itself leaves an ignored SIGINT alone). The program inherits it.
    """
    numbers = [signal.SIGTERM] + ([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])
    heeded = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]

    def interrupt(_number: int, _frame: Any) -> None:
        raise Signalled

    before = [signal.signal(number, interrupt) for number in heeded]
    try:
        yield
    finally:
        for number, handler in zip(heeded, before, strict=True):
            signal.signal(number, handler)


def _default_key() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(state) / "tallystick"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "countersign.key"
