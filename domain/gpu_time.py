"""GPU time: a share of an accelerator held for a while, counted in whole GPU-microseconds.

    gpu_us == floor(sum(share_ppm x us) / 10^6)                  one floor, on the cumulative sum
    charge == floor(gpu_us x price_per_gpu_hour / 3_600_000_000)

Callers keep the unfloored sum(share_ppm x us) and floor it anew each time, so no fraction is ever
lost and neither the batching nor the order of reports changes a total.
"""

from __future__ import annotations

from domain.money import PPM

GPU_HOUR_US = 3_600_000_000
"""GPU-microseconds in one hour of one whole accelerator; also microseconds in an hour."""


def gpu_us(ppm_us: int) -> int:
    """Whole GPU-microseconds in a cumulative, unfloored sum of share (ppm) x time (us)."""
    assert ppm_us >= 0, ppm_us
    return ppm_us // PPM


def charge_for(gpu_time_us: int, price_per_gpu_hour: int) -> int:
    """What cumulative GPU time costs, in units of the price (micro-credits), cumulative too."""
    assert gpu_time_us >= 0, gpu_time_us
    assert price_per_gpu_hour >= 0, price_per_gpu_hour
    return gpu_time_us * price_per_gpu_hour // GPU_HOUR_US


def fee_for(time_us: int, fee_per_hour: int) -> int:
    """What a fee by wall time has come to: floor(fee x time / hour), cumulative."""
    assert time_us >= 0, time_us
    assert fee_per_hour >= 0, fee_per_hour
    return time_us * fee_per_hour // GPU_HOUR_US
