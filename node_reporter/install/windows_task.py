"""The node's task for the scheduler of Windows, as the XML that `schtasks /Create /XML` reads.

For the machine it starts with it, without anybody signed in (an S4U logon stores no password); for
one user it starts when that user signs in. The scheduler restarts only some failures by itself, so
it also looks every five minutes, and starts nothing while one runs. Nobody has run this on Windows:
the schema is that of Microsoft's Task Scheduler 1.2, and the elements stand in its order.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from xml.sax.saxutils import escape

NAME = "tallystick-node"
FILE = f"{NAME}.task.xml"
ENCODING = "utf-16"
"""With its byte order mark: what schtasks insists on."""
LOCAL_SYSTEM = "*S-1-5-18"
LOOK_EVERY = "PT5M"

_TASK = """\
<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Tallystick node: meters the accelerators of this machine</Description>
  </RegistrationInfo>
  <Triggers>
    <{trigger}>
      <Enabled>true</Enabled>{whose}
    </{trigger}>
    <TimeTrigger>
      <Repetition>
        <Interval>{every}</Interval>
        <StopAtDurationEnd>false</StopAtDurationEnd>
      </Repetition>
      <StartBoundary>2020-01-01T00:00:00</StartBoundary>
      <Enabled>true</Enabled>
    </TimeTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{user}</UserId>
      <LogonType>{logon}</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <AllowHardTerminate>true</AllowHardTerminate>
    <StartWhenAvailable>true</StartWhenAvailable>
    <RunOnlyIfNetworkAvailable>false</RunOnlyIfNetworkAvailable>
    <IdleSettings>
      <StopOnIdleEnd>false</StopOnIdleEnd>
      <RestartOnIdle>false</RestartOnIdle>
    </IdleSettings>
    <AllowStartOnDemand>true</AllowStartOnDemand>
    <Enabled>true</Enabled>
    <Hidden>false</Hidden>
    <RunOnlyIfIdle>false</RunOnlyIfIdle>
    <WakeToRun>false</WakeToRun>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>7</Priority>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>255</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>{program}</Command>
      <Arguments>{arguments}</Arguments>
      <WorkingDirectory>{folder}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is started, where it lives and as whom. `arguments`: those after `run`."""

    program: PurePath
    arguments: Sequence[str]
    folder: PurePath
    account: str  # DOMAIN\\user
    is_system: bool

    def text(self) -> str:
        """The task's definition."""
        account = _plain(self.account)
        whose = "" if self.is_system else f"\n      <UserId>{account}</UserId>"
        return _TASK.format(
            trigger="BootTrigger" if self.is_system else "LogonTrigger",
            whose=whose,
            every=LOOK_EVERY,
            user=account,
            logon="S4U" if self.is_system else "InteractiveToken",
            program=_plain(str(self.program)),
            arguments=_plain(subprocess.list2cmdline(["run", *self.arguments])),
            folder=_plain(str(self.folder)),
        )

    def commands(self, definition: PurePath) -> list[list[str]]:
        """Fence the folder of the keys in, make the task, start it."""
        return [
            fence(self.folder, self.account),
            ["schtasks", "/Create", "/F", "/TN", NAME, "/XML", str(definition)],
            ["schtasks", "/Run", "/TN", NAME],
        ]


def fence(folder: PurePath, account: str) -> list[str]:
    """Windows knows no mode 0600: only the node's account and the system see the keys."""
    everything = "(OI)(CI)F"
    grants = [f"{account}:{everything}", f"{LOCAL_SYSTEM}:{everything}"]
    return ["icacls", str(folder), "/inheritance:r", "/grant:r", *grants]


def account_of(environment: Mapping[str, str]) -> str:
    """Who runs this command, as Windows tells it; empty where it does not."""
    name, domain = environment.get("USERNAME", ""), environment.get("USERDOMAIN", "")
    return f"{domain}\\{name}" if name and domain else name


def _plain(text: str) -> str:
    """Text inside an element: a character that XML does not have would make it unreadable."""
    assert all(each.isprintable() for each in text), repr(text)
    return escape(text)
