"""Reads the GenTD26 trace: how busy the GPUs of pods were, sampled every 57 seconds.

The format is that of Alibaba's clusterdata, `cluster-trace-v2026-GenAI`, file
`pod_gpu_duty_cycle_anon`: columns value (per cent of the time since the sample before),
timestamp_anon (seconds) and container_ip (names the pod). The CSV is read as it is or out of its
`.tar.gz`.

`counted` adds up what the samples say with plain arithmetic and nothing of the marketplace: the
yardstick of the replay.
"""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import TextIO

from api.replay.trace_openb import TraceUnreadable
from domain.record import dataclass

COLUMNS = ("value", "timestamp_anon", "container_ip")
TICK_S = 57
SECOND_US = 1_000_000
PPM = 1_000_000
STEP_S_MAX = TICK_S * 5 // 2
"""A longer step saw nobody: its time is unknown."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading: `at_s` since the first sample of the trace."""

    at_s: int
    busy_ppm: int  # of the time since the sample before


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod on one GPU, its samples in order of time, at least two."""

    name: str
    samples: tuple[Sample, ...]

    @property
    def from_s(self) -> int:
        return self.samples[0].at_s

    @property
    def until_s(self) -> int:
        return self.samples[-1].at_s


@dataclass(frozen=True, slots=True)
class Counted:
    """What the samples come to, in microseconds of one GPU each."""

    samples: int
    elapsed_us: int
    available_us: int
    unknown_us: int
    busy_us: int
    charge_units: int


def read_pods(path: Path) -> list[Pod]:
    """The pods by their names. Raises TraceUnreadable."""
    found: dict[str, list[Sample]] = {}
    for line, row in _rows(path):
        sample = Sample(
            _whole(path, line, row["timestamp_anon"]), _busy_ppm(path, line, row["value"])
        )
        found.setdefault(row["container_ip"], []).append(sample)
    if not found:
        raise TraceUnreadable(f"{path}: no samples")
    first_s = min(sample.at_s for samples in found.values() for sample in samples)
    return [_pod(path, name, found[name], first_s) for name in sorted(found)]


def counted(pods: Iterable[Pod], price_per_gpu_hour: int) -> Counted:
    """Time and charge by the samples alone: each pod has one GPU from its first to its last.

    A step between two samples is available, and busy for its share, when it is at most 2.5 ticks
    long; else it is unknown. The price is in micro-credits, one floor for each pod.
    """
    samples = elapsed_us = available_us = busy_us = charge_units = 0
    for pod in pods:
        samples += len(pod.samples)
        elapsed_us += (pod.until_s - pod.from_s) * SECOND_US
        own_us = 0
        for before, sample in pairwise(pod.samples):
            length_s = sample.at_s - before.at_s
            if length_s <= STEP_S_MAX:
                own_us += length_s * SECOND_US
                busy_us += length_s * sample.busy_ppm
        available_us += own_us
        charge_units += own_us * price_per_gpu_hour // (3_600 * SECOND_US)
    return Counted(
        samples, elapsed_us, available_us, elapsed_us - available_us, busy_us, charge_units
    )


def _pod(path: Path, name: str, samples: Sequence[Sample], first_s: int) -> Pod:
    ordered = sorted(samples, key=lambda sample: sample.at_s)
    if len(ordered) < 2 or any(a.at_s == b.at_s for a, b in pairwise(ordered)):
        raise TraceUnreadable(f"{path}: pod {name!r} needs two samples at times of its own")
    return Pod(name, tuple(Sample(one.at_s - first_s, one.busy_ppm) for one in ordered))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with _opened(path) as file:
            reader = csv.DictReader(file)
            missing = set(COLUMNS) - set(reader.fieldnames or ())
            if missing:
                raise TraceUnreadable(f"{path}: no column {min(missing)}")
            for row in reader:
                if None in row or None in row.values():
                    raise TraceUnreadable(f"{path}:{reader.line_num}: not {len(COLUMNS)} columns")
                yield reader.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error, tarfile.TarError, EOFError) as error:
        raise TraceUnreadable(f"{path}: {error}") from error


@contextmanager
def _opened(path: Path) -> Generator[TextIO, None, None]:
    if not path.name.endswith((".tar.gz", ".tgz")):
        with path.open(encoding="utf-8", newline="") as file:
            yield file
        return
    with tarfile.open(path, "r:gz") as archive:
        names = [member for member in archive if member.name.endswith(".csv")]
        inside = archive.extractfile(names[0]) if len(names) == 1 else None
        if inside is None:
            raise TraceUnreadable(f"{path}: not exactly one CSV inside")
        with io.TextIOWrapper(inside, encoding="utf-8", newline="") as file:
            yield file


def _whole(path: Path, line: int, text: str) -> int:
    value = _decimal(path, line, "timestamp_anon", text)
    if value != int(value):
        raise TraceUnreadable(f"{path}:{line}: timestamp_anon must be whole seconds")
    return int(value)


def _busy_ppm(path: Path, line: int, text: str) -> int:
    """Per cent to parts per million, floored."""
    value = _decimal(path, line, "value", text)
    if not 0 <= value <= 100:
        raise TraceUnreadable(f"{path}:{line}: value must be 0 to 100 per cent")
    return int(value * (PPM // 100))


def _decimal(path: Path, line: int, column: str, text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise TraceUnreadable(f"{path}:{line}: {column} must be a number")
    return value
