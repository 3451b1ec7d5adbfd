"""A known load on one NVIDIA GPU: kernels of a known length with pauses of a known length between.

    python -m benchmarks.node.gpu_load --busy-ms 600 --idle-ms 400 --rounds 30

CUDA's driver library through ctypes and a kernel in PTX, so nothing is installed and no compiler is
needed. Every multiprocessor multiplies and adds until the GPU's own nanosecond timer says that the
time is over. Prints one JSON document: the GPU's UUID, and of each kernel when it was started and
found finished (CLOCK_MONOTONIC, microseconds) and how long it ran by CUDA's events, which is what
the reporter's figures are compared with.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

MULTIPROCESSORS = 16
"""CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT."""
BLOCKS_EACH, THREADS = 2, 256
PTX = b"""
.version 7.0
.target sm_70
.address_size 64

.visible .entry busy_loop(.param .u64 nanoseconds, .param .u64 sink)
{
    .reg .pred  %p<4>;
    .reg .f32   %f<6>;
    .reg .u32   %r<2>;
    .reg .u64   %rd<6>;

    ld.param.u64    %rd1, [nanoseconds];
    ld.param.u64    %rd2, [sink];
    mov.u64         %rd3, %globaltimer;
    add.u64         %rd3, %rd3, %rd1;
    mov.f32         %f1, 0f3F800001;
    mov.f32         %f2, 0f3F7FFFFF;
    mov.f32         %f3, 0f00000000;
    mov.f32         %f4, 0f3F000000;

AGAIN:
    mov.u32         %r1, 0;
WORK:
    fma.rn.f32      %f3, %f1, %f2, %f3;
    fma.rn.f32      %f4, %f1, %f2, %f4;
    fma.rn.f32      %f3, %f1, %f2, %f3;
    fma.rn.f32      %f4, %f1, %f2, %f4;
    add.u32         %r1, %r1, 1;
    setp.lt.u32     %p1, %r1, 256;
    @%p1 bra        WORK;

    mov.u64         %rd4, %globaltimer;
    setp.lt.u64     %p2, %rd4, %rd3;
    @%p2 bra        AGAIN;

    add.f32         %f5, %f3, %f4;
    setp.lt.f32     %p3, %f5, 0f00000000;
    @%p3 st.global.f32 [%rd2], %f5;
    ret;
}
\0"""
"""The sum is never negative, so nothing is written; a compiler cannot know, so the work is done."""


class NoGpu(Exception):
    """There is no CUDA here, or it did not do what it was asked."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: when it was seen to run, and how long it ran by the GPU's own events."""

    start_us: int
    end_us: int
    ran_us: int


class Gpu:
    """One GPU with the kernel loaded."""

    def __init__(self, number: int) -> None:
        try:
            self._cuda: Any = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoGpu(f"libcuda.so.1 is not here: {error}") from error
        self._must("cuInit", 0)
        device = ctypes.c_int()
        self._must("cuDeviceGet", ctypes.byref(device), number)
        own = (ctypes.c_ubyte * 16)()
        self._must("cuDeviceGetUuid", ctypes.byref(own), device)
        self.uuid = f"GPU-{UUID(bytes=bytes(own))}"
        count = ctypes.c_int()
        self._must("cuDeviceGetAttribute", ctypes.byref(count), MULTIPROCESSORS, device)
        self._blocks = count.value * BLOCKS_EACH
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self._must("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._must("cuCtxSetCurrent", context)
        self._must("cuModuleLoadData", ctypes.byref(module), PTX)
        self._kernel = ctypes.c_void_p()
        self._must("cuModuleGetFunction", ctypes.byref(self._kernel), module, b"busy_loop")
        self._sink = ctypes.c_uint64()
        self._must("cuMemAlloc_v2", ctypes.byref(self._sink), ctypes.c_size_t(4))
        self._events = (ctypes.c_void_p(), ctypes.c_void_p())
        for event in self._events:
            self._must("cuEventCreate", ctypes.byref(event), 0)

    def run(self, busy_us: int) -> Kernel:
        """One kernel of this length, waited for."""
        length = ctypes.c_uint64(busy_us * 1_000)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(length), ctypes.addressof(self._sink))
        before, after = self._events
        start_us = time.monotonic_ns() // 1_000
        self._must("cuEventRecord", before, None)
        self._must(
            "cuLaunchKernel",
            self._kernel,
            self._blocks,
            1,
            1,
            THREADS,
            1,
            1,
            0,
            None,
            arguments,
            None,
        )
        self._must("cuEventRecord", after, None)
        self._must("cuEventSynchronize", after)
        end_us = time.monotonic_ns() // 1_000
        took_ms = ctypes.c_float()
        self._must("cuEventElapsedTime", ctypes.byref(took_ms), before, after)
        return Kernel(start_us, end_us, round(took_ms.value * 1_000))

    def _must(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            raise NoGpu(f"{name} answered {code}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A known load on one NVIDIA GPU.")
    parser.add_argument("--gpu", type=int, default=0, help="which, as CUDA counts them")
    parser.add_argument("--busy-ms", type=int, default=600)
    parser.add_argument("--idle-ms", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args(arguments)
    try:
        gpu = Gpu(options.gpu)
        kernels = []
        for _ in range(options.rounds):
            kernels.append(gpu.run(options.busy_ms * 1_000))
            time.sleep(options.idle_ms / 1_000)
    except NoGpu as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(json.dumps({"uuid": gpu.uuid, "kernels": [asdict(one) for one in kernels]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
