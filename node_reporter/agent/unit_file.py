"""The systemd unit of a node, for the whole machine or for one user. Source: design metering 12.

The system unit gets an account of its own (`DynamicUser`), may see accelerators and the network,
and nothing else. A user's unit can be fenced in less: what needs root is left out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NAME = "tallystick-node.service"
STATE_NAME = "tallystick"
SYSTEM_STATE = Path("/var/lib") / STATE_NAME

_HEAD = """\
[Unit]
Description=Tallystick node: meters the accelerators of this machine
Wants=network-online.target
After=network-online.target
# A driver that is away for hours must not use up the starts.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
WatchdogSec=60
# 75: start me again, the driver was replaced. 2: not joined. 78: only a person can go on.
Restart=always
RestartSec=5
SuccessExitStatus=75
RestartPreventExitStatus=2 78
MemoryMax=128M
CPUQuota=10%
TasksMax=256
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
SystemCallArchitectures=native
"""
_SYSTEM = """\
DynamicUser=yes
StateDirectory={state}
StateDirectoryMode=0700
{groups}DeviceAllow=char-nvidia* rw
DeviceAllow=char-drm rw
DeviceAllow=char-kfd rw
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RemoveIPC=yes
RestrictNamespaces=yes
RestrictSUIDSGID=yes
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
"""
_USER = """
[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What the unit is told. `groups`: those that may open accelerators which are not NVIDIA's."""

    program: Path
    arguments: Sequence[str]
    is_system: bool
    groups: Sequence[str] = ()

    def text(self) -> str:
        """The file's content."""
        words = [str(self.program), "run", *self.arguments]
        head = _HEAD.format(command=" ".join(map(_word, words)))
        if not self.is_system:
            return head + _USER
        groups = f"SupplementaryGroups={' '.join(self.groups)}\n" if self.groups else ""
        return head + _SYSTEM.format(state=STATE_NAME, groups=groups)


def _word(text: str) -> str:
    """One argument as systemd reads it: nothing in it is a variable, a specifier or a quote."""
    plain = text.replace("%", "%%").replace("$", "$$")
    if text and all(each.isalnum() or each in "/._-+=:@,%$" for each in plain):
        return plain
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(map(_in_one_line, escaped))}"'


def _in_one_line(each: str) -> str:
    """A character of a quoted word: what would end the line is written as its bytes."""
    return each if each.isprintable() else "".join(f"\\x{byte:02x}" for byte in each.encode())
