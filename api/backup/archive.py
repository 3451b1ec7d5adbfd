"""The folder of backups: what lies in it, which of it a restore needs, and is it whole.

    FOLDER/base/20261125T231500Z/   one backup: `pg/`, `files.tar`, `signed-heads`, `backup.json`
    FOLDER/wal/                     what was written since, as `pg_receivewal` streams it

A backup appears under its name when it is complete. One that is not full names the one it needs.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from api.backup import sums
from api.backup.programs import Programs

FORMAT = 1
RECORD = "backup.json"
ENDS = (
    "expected at least 24, got 0",
    "wanted 24, got 0",
    "invalid magic number 0000",
    "could not find a valid record",
)
"""What `pg_waldump` says where nothing was written yet."""
LSN = re.compile(r"\b([0-9A-F]+)/([0-9A-F]+)\b")
SEGMENT_BYTES = 16 * 1024 * 1024
WAL_NAME = re.compile(r"([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})(\.partial)?")


class BackupUnusable(Exception):
    """A backup, or the folder of them, is not what is needed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What `backup.json` says. `facts`: at least so many are in it. Times in microseconds.

    `head` is the newest signed head of the log then, and `log_key` what it is checked with; both
    are empty where nothing was signed yet.
    """

    label: str
    needs: str | None
    began_us: int
    ended_us: int
    server_version: int
    system: str
    end_segment: str
    facts: int
    reports: int
    head: str
    log_key: str
    database: str = "postgres"  # its name within the server; the embedded one has this
    format: int = FORMAT

    def write(self, folder: Path) -> None:
        path = folder / RECORD
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        path.chmod(0o600)


@dataclass(frozen=True, slots=True)
class Archive:
    """One folder of backups."""

    folder: Path

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def wal(self) -> Path:
        return self.folder / "wal"

    def prepare(self) -> None:
        """Make the folders, closed to others."""
        for folder in (self.folder, self.base, self.wal):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_mode & 0o077:
                raise BackupUnusable(
                    f"{folder} is open to others, and a backup holds everything: chmod 700 {folder}"
                )

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """One backup is taken at a time: what another left unfinished is of a killed one, and
        removed. Raises BackupUnusable.
        """
        lock = os.open(self.base / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupUnusable(f"another backup is being taken into {self.folder}") from None
            self._drop_unfinished()
            try:
                yield
            finally:
                self._drop_unfinished()
        finally:
            os.close(lock)

    def _drop_unfinished(self) -> None:
        for part in self.base.glob(".*.part"):
            shutil.rmtree(part, ignore_errors=True)

    def backups(self) -> list[Backup]:
        """Complete ones, oldest first. Raises BackupUnusable for a record that cannot be read."""
        found = []
        for path in sorted(self.base.glob(f"[0-9]*/{RECORD}")):
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
                if (form := told["format"]) != FORMAT:
                    raise BackupUnusable(f"{path} is of format {form}, this version reads {FORMAT}")
                found.append(Backup(**told))
            except (ValueError, TypeError, KeyError) as error:
                raise BackupUnusable(f"{path} is damaged: {error}") from error
        return found

    def chain(self, label: str | None = None, until_us: int | None = None) -> list[Backup]:
        """The full backup and the incremental ones on it up to the newest, or the one named, or
        the newest that was complete at a time. Raises BackupUnusable.
        """
        known = {one.label: one for one in self.backups()}
        if label is not None:
            wanted = known.get(label)
        else:
            early = [one for one in known.values() if until_us is None or one.ended_us <= until_us]
            wanted = early[-1] if early else None
        if wanted is None:
            if not known:
                raise self.no_backup()
            wish = f"of the name {label}" if label else "that ended before that time"
            raise BackupUnusable(
                f"no complete backup {wish} in {self.folder}; there is: {', '.join(known)}"
            )
        found, missing = _down(wanted, known)
        if missing is not None:
            raise BackupUnusable(
                f"{found[0].label} needs {missing}, which is not there any more:"
                f" `tallystick backup {self.folder} --check` tells which can be restored"
            )
        return found

    def no_backup(self) -> BackupUnusable:
        """That there is none to restore, and why."""
        if not self.folder.is_dir():
            return BackupUnusable(f"{self.folder} is no folder: name the folder of the backups")
        if not self.base.is_dir():
            return BackupUnusable(
                f"{self.folder} is no folder of backups: `tallystick backup FOLDER` makes one"
            )
        return BackupUnusable(f"{self.folder} holds no complete backup: take one first")

    def orphans(self) -> list[str]:
        """Backups that need one which is not there, and those on top of them."""
        known = {one.label: one for one in self.backups()}
        return [
            f"{one.label}: cannot be restored, {missing} is not there any more"
            for one in known.values()
            if (missing := _down(one, known)[1]) is not None
        ]

    def data_of(self, backup: Backup) -> Path:
        """Its data folder of PostgreSQL."""
        return self.base / backup.label / "pg"

    def segments(self) -> list[str]:
        """The WAL that was streamed, oldest first, an unfinished segment last."""
        if not self.wal.is_dir():
            return []
        return sorted(path.name for path in self.wal.iterdir() if WAL_NAME.fullmatch(path.name))

    def faults(self, chain: Sequence[Backup], programs: Programs, told: sums.Told) -> list[str]:
        """What is damaged of these backups and of the WAL after the last; nothing: all is whole."""
        problems = [
            f"{one.label}: {fault}"
            for one in chain
            for fault in sums.faults(self.base / one.label, told)
        ]
        return problems + self._wal_faults(chain[-1], programs)

    def gaps_after(self, last: Backup) -> list[str]:
        """Segments that are missing between this backup and the newest segment: a restore of it
        would stop before them, and what came after would be lost without a word.
        """
        after = self.wal_after(last)
        numbers = sorted({_number(name) for name in after})
        gaps = [
            f"wal: {high - low - 1} segments are missing after number {low}"
            for low, high in pairwise(numbers)
            if high != low + 1
        ]
        if after and numbers[0] > _number(last.end_segment) + 1:
            gaps.append(f"wal: begins later than the backup {last.label} ends")
        return gaps

    def _wal_faults(self, last: Backup, programs: Programs) -> list[str]:
        """Gaps, and records whose own checksum is wrong."""
        after, problems = self.wal_after(last), self.gaps_after(last)
        by_timeline: dict[str, list[str]] = {}
        for name in after:
            by_timeline.setdefault(name[:8], []).append(name)
        for names in by_timeline.values():
            said = self._read_wal(names, programs)
            if said:
                problems.append(f"wal: {said}")
        return problems

    def _read_wal(self, names: Sequence[str], programs: Programs) -> str:
        """What `pg_waldump` finds wrong of the segments of one timeline, under their final names.
        An unfinished one ends in zeros.
        """
        with tempfile.TemporaryDirectory(prefix="tallystick-wal-") as folder:
            for name in names:
                Path(folder, name.removesuffix(".partial")).symlink_to(self.wal / name)
            is_open = names[-1].endswith(".partial")
            ends = names[0][:24], names[-1][:24]
            read = programs.run("pg_waldump", "-q", "-p", folder, *ends, as_us=True)
        said = read.stderr.strip()
        if read.returncode == 0 or (is_open and self._is_end(said, names[-1])):
            return ""
        return said or f"pg_waldump ended with {read.returncode}"

    def _is_end(self, said: str, last: str) -> bool:
        """Whether reading stopped in the last segment, with nothing but zeros after that place. In
        an earlier one, or before other bytes, zeros are a hole.
        """
        places = LSN.findall(said)
        if not places or not any(end in said for end in ENDS):
            return False
        high, low = (int(half, 16) for half in places[-1])
        segment, offset = divmod((high << 32) + low, SEGMENT_BYTES)
        if segment != _number(last):
            return False
        with (self.wal / last).open("rb") as file:
            file.seek(offset)
            return not file.read().strip(b"\0")

    def wal_after(self, last: Backup) -> list[str]:
        """The streamed segments that a restore of this backup goes on with."""
        return [name for name in self.segments() if _number(name) >= _number(last.end_segment)]


def _down(wanted: Backup, known: Mapping[str, Backup]) -> tuple[list[Backup], str | None]:
    """This backup and those below it, the lowest first; and the name of one that is not there."""
    found = [wanted]
    while (needs := found[0].needs) is not None:
        if needs not in known:
            return found, needs
        found.insert(0, known[needs])
    return found, None


def _number(segment: str) -> int:
    """Its place among all segments, whatever the timeline: 256 of 16 MiB in each 4 GiB."""
    named = WAL_NAME.fullmatch(segment)
    assert named is not None, segment
    return int(named[2], 16) * 256 + int(named[3], 16)
