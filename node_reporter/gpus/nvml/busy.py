"""How busy a GPU was since it was last asked, in parts per million: evidence, never what is billed.

Three sources, the best that answers: GPM (Hopper and later, the only one for a MIG instance), the
ring of utilisation samples, the utilisation gauge. The first two cover all the time since the last
call, the gauge only its own last moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from node_reporter.gpus.nvml.driver import NOT_FOUND, Asking, attempt, nvml
from node_reporter.gpus.seam import PPM

SM_UTIL = 2
"""NVML_GPM_METRIC_SM_UTIL: percentage of SMs that were busy, over exactly two samples' distance."""
GPM_S_MIN = 0.1
"""Two GPM samples that are closer give numbers nobody can use."""
PERCENT_PPM = 10_000


class BusySource(Protocol):
    """One of the three, on one device."""

    @property
    def name(self) -> str:
        """As reports call it: gpm, samples, util."""
        ...

    def busy_ppm(self, ask: Asking) -> int | None:
        """Since the last call; None where that cannot be told. Raises DeviceLost, MonitorBlind."""
        ...

    def close(self) -> None: ...


def source_of(handle: Any, now_s: Callable[[], float]) -> BusySource | None:
    """The best source this GPU answers on."""
    if Gpm.answers(handle):
        return Gpm(handle, now_s)
    if Samples.answers(handle):
        return Samples(handle)
    return Gauge(handle) if attempt(nvml.nvmlDeviceGetUtilizationRates, handle) else None


class Gpm:
    """Two samples of the board's counters; what lies between them is how busy it was.

    The second sample of one reading is the first of the next, so no time is left out.
    """

    name = "gpm"

    def __init__(
        self, handle: Any, now_s: Callable[[], float], gi: int | None = None, who: str = ""
    ) -> None:
        """`handle` is the board's; `who` is the instance's name, where it is one's."""
        self._handle, self._now_s, self._gi, self._who = handle, now_s, gi, who
        self._samples: list[Any] = []
        self._taken_s = -math.inf
        self._asked = nvml.c_nvmlGpmMetricsGet_t()

    @staticmethod
    def answers(handle: Any) -> bool:
        support = attempt(nvml.nvmlGpmQueryDeviceSupport, handle)
        return support is not None and bool(support.isSupportedDevice)

    def busy_ppm(self, ask: Asking) -> int | None:
        now_s = self._now_s()
        if now_s - self._taken_s <= GPM_S_MIN:
            return None
        fresh = ask("gpm buffers", nvml.nvmlGpmSampleAlloc) if len(self._samples) < 2 else None
        if fresh is not None:
            self._samples.append(fresh)
        if not self._samples or self._sample(ask, self._samples[-1]) is None:
            return None
        first, self._taken_s = math.isinf(self._taken_s), now_s
        if first or len(self._samples) < 2:
            return None
        before, after = self._samples
        self._samples = [after, before]
        return self._between(ask, before, after)

    def close(self) -> None:
        for sample in self._samples:
            attempt(nvml.nvmlGpmSampleFree, sample)
        self._samples, self._taken_s = [], -math.inf

    def _sample(self, ask: Asking, into: Any) -> Any:
        if self._gi is None:
            return ask("gpm", nvml.nvmlGpmSampleGet, self._handle, into)
        return ask(f"gpm {self._who}", nvml.nvmlGpmMigSampleGet, self._handle, self._gi, into)

    def _between(self, ask: Asking, before: Any, after: Any) -> int | None:
        """Only the metric we name is computed: `numMetrics` says so."""
        asked = self._asked
        asked.version, asked.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, 1
        asked.sample1, asked.sample2 = before, after
        asked.metrics[0].metricId = SM_UTIL
        told = ask("gpm metrics", nvml.nvmlGpmMetricsGet, asked)
        if told is None or told.metrics[0].nvmlReturn:
            return None
        percent: float = told.metrics[0].value
        if not 0 <= percent <= 100:  # NaN is not either
            return None
        return round(percent * PERCENT_PPM)


class Samples:
    """The driver's ring of utilisation samples; its timestamps are a cursor and nothing else."""

    name = "samples"

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._cursor: int | None = None

    @staticmethod
    def answers(handle: Any) -> bool:
        try:
            nvml.nvmlDeviceGetSamples(handle, nvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
        except nvml.NVMLError as error:
            return int(error.value) == NOT_FOUND
        return True

    def busy_ppm(self, ask: Asking) -> int | None:
        first, cursor = self._cursor is None, self._cursor or 0
        told = ask.growing("samples", _samples_after, self._handle, cursor)
        if told is None:
            return None
        self._cursor = max([cursor, *(sample.timeStamp for sample in told)])
        if first:
            return None  # it holds the time before we looked
        if not told:
            return 0
        percent = [int(sample.sampleValue.uiVal) for sample in told]
        return _unless_stuck(ask, self._handle, sum(percent) * PERCENT_PPM // len(percent))

    def close(self) -> None:
        """Nothing to release."""


class Gauge:
    """The utilisation gauge: a percentage of its own last sampling period."""

    name = "util"

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def busy_ppm(self, ask: Asking) -> int | None:
        rates = ask("utilisation", nvml.nvmlDeviceGetUtilizationRates, self._handle)
        if rates is None:
            return None
        return _unless_stuck(ask, self._handle, int(rates.gpu) * PERCENT_PPM)

    def close(self) -> None:
        """Nothing to release."""


def _samples_after(handle: Any, cursor: int) -> Sequence[Any]:
    """NOT_FOUND is what an idle GPU answers: no samples, and not a call that it does not have."""
    try:
        _, samples = nvml.nvmlDeviceGetSamples(handle, nvml.NVML_GPU_UTILIZATION_SAMPLES, cursor)
    except nvml.NVMLError as error:
        if int(error.value) != NOT_FOUND:
            raise
        return ()
    return tuple(samples)


def _unless_stuck(ask: Asking, handle: Any, busy_ppm: int) -> int | None:
    """Full utilisation without any process is a reading that got stuck: then nothing is known."""
    if busy_ppm < PPM:
        return busy_ppm
    running = ask.growing("processes", nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
    return busy_ppm if running is None or running else None
