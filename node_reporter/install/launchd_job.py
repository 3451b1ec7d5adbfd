"""The node's job for launchd of macOS, as the property list that `launchctl bootstrap` reads.

There is no backend for Apple's GPUs, so only what needs no driver can be started: seats of software
licences, and simulated devices. Nobody has run this on macOS; the keys are those of launchd.plist.
"""

from __future__ import annotations

import plistlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

LABEL = "org.tallystick.node"
FILE = f"{LABEL}.plist"
DAEMONS = PurePath("/Library/LaunchDaemons")
AGENTS = PurePath("Library/LaunchAgents")
"""Below a user's home."""
PAUSE_S = 30
"""Between two starts. launchd cannot tell exit codes apart: it also starts what only a person can
put right, which then says so twice a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is started. `user`: as whom a job of the system runs; None in a user's own."""

    program: PurePath
    arguments: Sequence[str]
    log: PurePath
    user: str | None = None

    def text(self) -> str:
        """The property list."""
        told = {
            "Label": LABEL,
            "ProgramArguments": [str(self.program), "run", *self.arguments],
            "RunAtLoad": True,
            "KeepAlive": True,
            "ThrottleInterval": PAUSE_S,
            "ProcessType": "Background",
            "Umask": 0o077,
            "StandardErrorPath": str(self.log),
            **({} if self.user is None else {"UserName": self.user}),
        }
        return plistlib.dumps(told, sort_keys=False).decode()


def domain(user_id: int | None) -> str:
    """Where launchd keeps the job: the system's, or that of a user who is signed in."""
    return "system" if user_id is None else f"gui/{user_id}"
