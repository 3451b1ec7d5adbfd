"""`tallystick run -- COMMAND`: lease, run the program there, see what it prints, sign, release.

    exit code == the program's                            128 + number, when a signal ended it
    whatever happens here, the lease ends                 released, or bounded by its funds

Nothing about the program changes: what it needs to find its share of the accelerator is in its
environment. It runs on the leased node under that node's executor; when the lease is on this
machine, and no executor has it in hand, it runs right here, in this folder and terminal.
"""

from __future__ import annotations

import base64
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from cli.remote import ApiKey, Remote, Url, credits_of, ppm_of
from cli.terminal import (
    EXIT_INTERRUPTED,
    EXIT_NO,
    AnswerIsNo,
    AsJson,
    InputUnusable,
    amount,
    note,
    tell,
    top_level,
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
CHECK_IN_SECONDS = 60
"""How often this machine says that it is still there."""
PPM = 1_000_000
OVER = ("closing", "settled", "disputed", "resolved", "archived")

commands = top_level()


@commands.command(
    epilog='Example: tallystick run -n 1 -p 0.37 --gpu "NVIDIA H200" -- python train.py'
)
def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND", help="The program to run, with its arguments."),
    ],
    gpus: Annotated[int, typer.Option("-n", min=1, max=64, help="GPUs, all of one node.")] = 1,
    part: Annotated[
        str | None, typer.Option("-p", metavar="FRACTION", help="Part of each GPU, like 0.37.")
    ] = None,
    memory: Annotated[
        int | None, typer.Option("--mem", min=1, metavar="MB", help="Memory of each GPU, in MiB.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option("--gpu", help="Allowed model.")] = None,
    max_price: Annotated[
        str | None,
        typer.Option(
            metavar="CREDITS",
            help="Highest price per GPU-hour; default: that of the cheapest offer.",
        ),
    ] = None,
    funds: Annotated[
        str | None,
        typer.Option(metavar="CREDITS", help="Highest total cost; default: the price of one hour."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME", help="Environment variable that the node's owner grants."
        ),
    ] = None,
    project: Annotated[str, typer.Option(help="Your own label on the bill.")] = "",
    session: RemotingSession = None,
    split: Split = None,
    route: Route = None,
    key_file: Annotated[
        Path | None,
        typer.Option(help="File of the key that signs for the usage; created if missing."),
    ] = None,
    no_sign: Annotated[bool, typer.Option("--no-sign", help="Leave the usage unsigned.")] = False,
    wait: Annotated[
        int, typer.Option(min=0, max=3_600, metavar="SECONDS", help="Seconds to wait for the bill.")
    ] = 0,
    url: Url = None,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Lease accelerators, run a program on them, sign for the usage, release them.

    Billed by the second, from when the program runs until it ends. Ctrl-C stops it and releases
    the lease. With --json what the program prints goes to standard error.
    """
    if part is not None and memory is not None:
        raise InputUnusable("-p and --mem both say how much of a GPU: give one of them")
    remote = Remote(url, api_key)
    asked = _asked(remote, command, gpus, part, memory, model or [], max_price, env or [], project)
    body: LeaseRequest = {"job": asked, **remoted(session, split, route)}
    if funds is not None:
        body["funds"] = credits_of(funds)
    key = None if no_sign else key_file or _default_key()
    raise typer.Exit(_through(remote, body, command, key, wait, as_json=as_json))


def _through(
    remote: Remote,
    body: LeaseRequest,
    command: list[str],
    key: Path | None,
    wait: int,
    *,
    as_json: bool,
) -> int:
    """Lease, run, sign with the key if there is one, tell; the code that the program ended with."""
    with _interrupting():
        run = Session(remote, out=sys.stderr if as_json else sys.stdout)
        code = run.run(body, command)
    if key is not None:
        run.sign(key)
    told = run.told(code, wait)
    tell(told, (), as_json=True) if as_json else note(_line(told))
    return code


def _asked(
    remote: Remote,
    command: list[str],
    gpus: int,
    part: str | None,
    memory: int | None,
    models: list[str],
    max_price: str | None,
    env: list[str],
    project: str,
) -> JobRequest:
    """The job: the share asked for, at a price that was seen."""
    price = None if max_price is None else credits_of(max_price)
    share_ppm = PPM if part is None else ppm_of(part)
    constraints: dict[str, Any] = {}
    if price is None or memory is not None:
        offer = _cheapest(remote, models)
        price = price or offer["price_per_gpu_hour"]
        if memory is not None:
            share_ppm = _share_of(memory, offer.get("memory_mib"))
            constraints["memory_mib"] = memory
    if share_ppm < PPM:
        # Memory is parted, compute is shared: what a program that asks for a part expects.
        constraints["mode"] = "memory"
    job: Any = {
        "kind": "batch",
        "command": command,
        "gpu_count": gpus,
        "share_ppm": share_ppm,
        "mem_ppm": share_ppm,
        "models": models,
        "max_price_per_gpu_hour": price,
        "env_refs": env,
        "project_id": project,
    }
    if constraints:
        job["constraints"] = constraints
    return job  # type: ignore[no-any-return]


def _cheapest(remote: Remote, models: list[str]) -> Any:
    """The cheapest open offer of an allowed model. Raises AnswerIsNo."""
    offers: list[Any] = []
    for model in models or (None,):
        offers += remote.ask(partial(_first_offer, model))["data"]
    if not offers:
        raise AnswerIsNo(
            "no match: nothing of this kind is for rent\ntallystick offer list shows what is"
        )
    return min(offers, key=lambda offer: int(offer["price_per_gpu_hour"]["units"]))


def _first_offer(model: str | None, client: Client) -> Any:
    return client.search_offers(model=model, limit=1)


def _share_of(memory_mib: int, whole_mib: int | None) -> int:
    """So many MiB as a part of a GPU, rounded up. Raises InputUnusable."""
    if not whole_mib:
        raise InputUnusable("the memory of these GPUs is not known: say -p FRACTION")
    if memory_mib > whole_mib:
        raise InputUnusable(f"{memory_mib} MiB: these GPUs have {whole_mib}")
    return -(-memory_mib * PPM // whole_mib)


# --- one lease -----------------------------------------------------------------------------------


@dataclass
class Session:
    """A lease of ours from its opening to its release."""

    remote: Remote
    out: TextIO
    lease: dict[str, Any] = field(default_factory=dict)
    is_local: bool = False
    _next_seq: int = 0
    _check_in_at: float = 0.0

    @property
    def lease_id(self) -> str:
        return str(self.lease["lease_id"])

    def run(self, body: LeaseRequest, command: list[str]) -> int:
        """The program's exit code. Whatever goes wrong here, the lease is released."""
        try:
            self._open(body)
            return self._to_its_end(command)
        except KeyboardInterrupt:
            note("stopping; the lease is released")
            if not self.lease:
                # It may have been made: the same key tells it, and nothing is made twice.
                self._open(body)
            self.close()
            with suppress(AnswerIsNo):
                self._follow()
            return EXIT_INTERRUPTED
        except BaseException:
            if self.lease:
                self.close()
            raise

    def _open(self, body: LeaseRequest) -> None:
        key = self.remote.key
        self.lease = dict(self.remote.ask(lambda c: c.open_lease(body, idempotency_key=key)))
        note(
            f"{self.lease_id} on {self.lease['node_id']}"
            f" at {amount(self.lease['price_per_gpu_hour'])} per GPU-hour"
        )

    def _to_its_end(self, command: list[str]) -> int:
        from cli import run_here

        self._check_in()
        here = run_here.executor_of(self.lease["node_id"])
        if here is None:
            return self._follow()
        with here:
            self.is_local = True
            note("the lease is on this machine: running here")
            return here.run(self.lease_id, command, self._is_over)

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
        waits = Waits()
        while not told.get("ended"):
            told = self._patiently(lambda: self._print())
            if told["data"]:
                quiet = LOOK_SECONDS[0]
                continue
            waits.look(told)
            self._check_in()
            state = str(self._patiently(self._read)["state"])
            if state in OVER:
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
            out = self.out if piece["stream"] == "stdout" else sys.stderr
            show(base64.b64decode(piece["body"]), out)
        self._next_seq = told["next_seq"]
        if told["left_out"] and told["ended"]:
            note(f"{told['left_out']} bytes of what it printed were not kept")
        return dict(told)

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
                    note(
                        f"the server is away; {self.lease_id} goes on until it is back"
                        " or the funds end"
                    )
                is_away = True
                time.sleep(LOOK_SECONDS[1])

    def _code(self, told: dict[str, Any]) -> int:
        """The program's exit code; without one, why the lease ended."""
        if told.get("exit_code") is not None:
            return int(told["exit_code"])
        lease = self._read()
        note(f"the program's end is not known; the lease was closed with {lease.get('close_code')}")
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

    def told(self, code: int, wait_s: int) -> dict[str, Any]:
        """What `--json` prints. The bill is final when the state is settled."""
        ends = time.monotonic() + wait_s
        lease = self._read()
        while lease["state"] == "closing" and time.monotonic() < ends:
            time.sleep(LOOK_SECONDS[1] / 2)
            lease = self._read()
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
        return {
            **told,
            "exit_code": code,
            "ran": "here" if self.is_local else "on the node",
            "countersigned_gpu_us": None if signed is None else str(signed),
        }


@dataclass
class Waits:
    """Says once what is waited for, when it takes long."""

    began: float = field(default_factory=time.monotonic)
    is_said: bool = False

    def look(self, told: dict[str, Any]) -> None:
        if told["next_seq"] or self.is_said or time.monotonic() - self.began < 10:
            return
        note("waiting for the node to take up the work, or for the program to print something")
        self.is_said = True


def _line(told: dict[str, Any]) -> str:
    signed = told["countersigned_gpu_us"]
    return (
        f"{told['lease_id']} {told['state']}: {told['gpu_us']} GPU-microseconds metered,"
        f" {'nothing' if signed is None else signed} signed for, {amount(told['charge'])}"
    )


# --- terminal ------------------------------------------------------------------------------------

_SAFE = re.compile(rb"\x1b\[[0-9;]{0,16}[mK]|[\r\n\t\b]")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


def show(body: bytes, out: TextIO) -> None:
    """What the program printed, byte for byte. In a terminal only colours and line control work:
    the rest could type on the renter's behalf.
    """
    shown = harmless(body) if out.isatty() else body
    raw = getattr(out, "buffer", None)
    if raw is None:
        out.write(shown.decode(errors="replace"))
    else:
        out.flush()
        raw.write(shown)
    out.flush()


def harmless(body: bytes) -> bytes:
    """Control characters made visible, but for colours, ends of lines, tabs and backspaces."""
    shown, place = [], 0
    for found in _SAFE.finditer(body):
        shown += [_CONTROL.sub(b"?", body[place : found.start()]), found[0]]
        place = found.end()
    return b"".join([*shown, _CONTROL.sub(b"?", body[place:])])


@contextmanager
def _interrupting() -> Generator[None, None, None]:
    """SIGTERM and SIGHUP end us like Ctrl-C: the lease is released first.

    A signal that was ignored when we started stays ignored: `nohup` and a shell's background job
    ask for that (Python itself leaves an ignored SIGINT alone). The program inherits it.
    """
    numbers = [signal.SIGTERM] + ([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])
    heeded = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]

    def interrupt(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

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
