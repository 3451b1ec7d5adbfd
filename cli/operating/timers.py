"""`tallystick timer list`: when each timer of the server ran, how it went, when it runs next."""

from __future__ import annotations

from cli.remote import Remote, reads
from cli.terminal import columns, group

app = group("timer", "Timers: what the server does by the clock.", "tallystick timer list")

TIMER = ("name", "ran_at", "duration_us", "next_at", "late", "error")


@app.command("list", epilog="Example: tallystick timer list --json")
@reads
def list_timers(remote: Remote) -> None:
    """List the timers: last run, duration in microseconds, next run, and the last error."""
    told = remote.ask(lambda c: c.list_timers())
    remote.tell(told, columns(told["data"], TIMER))
