"""What is seen of a lease while its program runs, and its bill at the end: in people's units.

An estimate is marked as one: the price times the time so far. What is charged is what the node's
signed reports say, and it is final when the lease is settled.
"""

from __future__ import annotations

import base64
import codecs
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from cli.remote import Remote
from cli.terminal import amount, counted, local_time, note, printable, tell
from domain.lease.close_codes import CLOSE_REASONS

if TYPE_CHECKING:
    from cli.running.parcels import Came
    from tallystick_client import Client

PPM = 1_000_000
FOLLOW_SECONDS = 1.0
HOUR_US = 3_600_000_000
FINAL = ("settled", "archived", "resolved")
"""States in which a bill changes no more."""
CLEAR = "\r\x1b[2K"


@dataclass
class StatusLine:
    """One line at the bottom of a terminal, on standard error; nothing anywhere else."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    _is_shown: bool = False

    @property
    def is_on(self) -> bool:
        return self.stream.isatty()

    def show(self, text: str) -> None:
        if not self.is_on:
            return
        width = shutil.get_terminal_size().columns
        self.stream.write(CLEAR + printable(text)[: max(width - 1, 1)])
        self.stream.flush()
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            self.stream.write(CLEAR)
            self.stream.flush()
            self._is_shown = False


@dataclass
class Watch:
    """How long a lease has run as this machine saw it: its clock may differ from the server's."""

    _since: float | None = None

    def elapsed_us(self, lease: Mapping[str, Any]) -> int:
        """Microseconds since it was first seen running; 0 before."""
        if lease.get("opened_at") is None:
            return 0
        self._since = time.monotonic() if self._since is None else self._since
        return int((time.monotonic() - self._since) * 1_000_000)


def status_of(lease: Mapping[str, Any], elapsed_us: int, use_ppm: int | None = None) -> str:
    """`0:01:23 · about 0.012345 CREDIT so far · GPU 87 %`."""
    if lease.get("opened_at") is None:
        return f"{lease['lease_id']} {lease['state']}: nothing is charged before the program starts"
    parts = [
        span(elapsed_us),
        f"about {amount(cost(lease, gpu_us(lease, elapsed_us)))} so far",
        f"{amount(lease['price_per_gpu_hour'])} per GPU-hour",
    ]
    if use_ppm is not None:
        parts.append(f"GPU {use_ppm // 10_000} % busy")
    return " · ".join([*parts, str(lease["lease_id"])])


def closed_with(code: int | None) -> str:
    """`101, the renter ended it before it ran`: also where this version does not know the code."""
    reason = None if code is None else CLOSE_REASONS.get(code)
    return str(code) if reason is None else f"{code}, {reason.meaning}"


def gpu_us(lease: Mapping[str, Any], elapsed_us: int) -> int:
    """GPU time of the lease's share of its devices over so long."""
    return elapsed_us * int(lease["gpu_count"]) * int(lease["share_ppm"]) // PPM


def cost(lease: Mapping[str, Any], used_us: int) -> dict[str, str]:
    """What so much GPU time costs at the lease's price, rounded down."""
    price = int(lease["price_per_gpu_hour"]["units"])
    return {"asset": "CREDIT", "units": str(price * used_us // HOUR_US)}


def span(us: int) -> str:
    """`1:02:03`."""
    seconds = us // 1_000_000
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def seconds(us: int) -> str:
    """`41 s`, or `0.3 s` below ten seconds."""
    whole, tenths = us // 1_000_000, us // 100_000 % 10
    return f"{whole} s" if whole >= 10 else f"{whole}.{tenths} s"


def gpu_hours(us: int) -> str:
    """GPU time in hours, to a millionth, without a float."""
    micro = us * 1_000_000 // HOUR_US
    return f"{micro // 1_000_000}.{micro % 1_000_000:06d} GPU-hours"


def bill(told: Mapping[str, Any], used_us: int) -> str:
    """The last line: the bill, final or said not to be. `used_us`: from opening to close."""
    name = told["lease_id"]
    if told.get("opened_at") is None:
        return f"{name}: nothing is charged, the program did not start"
    signed = told.get("countersigned_gpu_us")
    start = (
        "" if told.get("start_us") is None else f", {seconds(int(told['start_us']))} of start, free"
    )
    by = "" if signed is None else f", you signed for {gpu_hours(int(signed))}"
    if told["state"] in FINAL:
        used = gpu_hours(int(told["gpu_us"]))
        return f"{name} final bill: {amount(told['charge'])} for {used}{start}{by}"
    so_far = amount(told["estimate"])
    return (
        f"{name} not final: about {so_far} for {gpu_hours(used_us)}{start}{by}; the node's last"
        f" signed report is still to come, `tallystick lease show {name}` tells the final bill"
    )


def of_results(came: Came, asked: Sequence[str]) -> list[str]:
    """What came back, and each thing that did not, with its reason."""
    lines = [f"left out of what came back: {line}" for line in came.left_out]
    lines += [f"did not come back: {line}" for line in came.lost]
    if came.changed or not came.lost:
        count = counted(came.changed, "new or changed file")
        lines.append(f"{count} came back of {', '.join(asked)}")
    return lines


def use_of(told: Mapping[str, Any]) -> str:
    """What `GET /v1/leases/{id}/use` says, in one line."""
    mark = "" if told["is_final"] else "about "
    parts = [
        str(told["state"]),
        f"{mark}{amount(told['charge'])} for {gpu_hours(int(told['gpu_us']))}",
    ]
    if told.get("reported_until") is not None:
        parts.append(f"reported until {local_time(told['reported_until'])}")
    if told.get("busy_ppm") is not None:
        parts.append(f"GPU {int(told['busy_ppm']) // 10_000} % busy")
    return " · ".join([*parts, str(told["lease_id"])])


def follow_use(remote: Remote, lease_id: str, every_s: float) -> None:
    """Tell the use of a lease until it is closed: one line that changes on a terminal, else a line
    for each change. Raises AnswerIsNo.
    """
    line, said = StatusLine(stream=sys.stdout), ""
    try:
        while True:
            told: Any = remote.ask(lambda c: c.read_lease_use(lease_id))
            text = use_of(told)
            if line.is_on and not remote.as_json:
                line.show(text)
            elif text != said:
                tell(told, [text], as_json=remote.as_json)
            said = text
            if told.get("closed_at") is not None:
                break
            time.sleep(every_s)
    finally:
        line.clear()
    if line.is_on and not remote.as_json:
        tell(told, [said], as_json=False)


def follow_log(remote: Remote, lease_id: str, out: TextIO, *, follows: bool) -> int | None:
    """Print what the work of a lease printed, and with `follows` what it prints until it ends; its
    exit code where that is known. Raises AnswerIsNo.
    """
    from_seq, printed = 0, Printed(out)
    while True:
        told: Any = remote.ask(partial(_log_page, lease_id, from_seq))
        for piece in told["data"]:
            printed.show(piece["stream"], base64.b64decode(piece["body"]))
        from_seq = told["next_seq"]
        if told["data"]:
            continue
        if told["ended"] or not follows:
            break
        time.sleep(FOLLOW_SECONDS)
    if told["left_out"]:
        note(f"{told['left_out']} bytes of what it printed were not kept")
    return None if told.get("exit_code") is None else int(told["exit_code"])


def _log_page(lease_id: str, from_seq: int, client: Client) -> Any:
    return client.read_lease_log(lease_id, from_seq=from_seq)


# --- terminal ------------------------------------------------------------------------------------

_SAFE = re.compile(r"\x1b\[[0-9;]{0,16}[mK]|[\r\n\t\b]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""With those of the second half: a terminal that reads UTF-8 takes U+009B for ESC [."""


@dataclass
class Printed:
    """What a program printed on its two streams and the executor noted, in pieces that may end in
    the middle of a character.
    """

    out: TextIO
    _decoders: dict[str, codecs.IncrementalDecoder] = field(default_factory=dict)

    def show(self, stream: str, body: bytes) -> None:
        """Byte for byte. In a terminal only colours and line control work: the rest could type on
        the renter's behalf.
        """
        out = self.out if stream == "stdout" else sys.stderr
        if out.isatty():
            decoder = self._decoders.setdefault(
                stream, codecs.getincrementaldecoder("utf-8")("replace")
            )
            body = harmless(decoder.decode(body)).encode(out.encoding or "utf-8", "replace")
        raw = getattr(out, "buffer", None)
        if raw is None:
            out.write(body.decode(errors="replace"))
        else:
            out.flush()
            raw.write(body)
        out.flush()


def harmless(text: str) -> str:
    """Control characters made visible, but for colours, ends of lines, tabs and backspaces."""
    shown, place = [], 0
    for found in _SAFE.finditer(text):
        shown += [_CONTROL.sub("?", text[place : found.start()]), found[0]]
        place = found.end()
    return "".join([*shown, _CONTROL.sub("?", text[place:])])
