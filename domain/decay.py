"""How much old evidence weighs: half after each half-life, in integers, so everywhere the same.

    T[r] = floor((2^(32 H - r))^(1 / H)),  0 <= r < H          w(age) = T[age mod H] >> (age div H)
    w(age + 1) <= w(age),  w(age + H) == w(age) >> 1,  w(0) == 2^32

The root is exact: the largest integer whose H-th power does not pass the radicand, by bisection.
Ages are whole UTC days. From the horizon on nothing weighs anything. Source: design economics 16.
"""

from __future__ import annotations

from functools import cache

WEIGHT_BITS = 32
"""A weight of 2^32 is one: sums of weighted evidence are shifted right by so many bits, once."""


def integer_root(radicand: int, degree: int) -> int:
    """The largest integer whose `degree`-th power is at most `radicand`."""
    assert radicand >= 0, radicand
    assert degree >= 1, degree
    low, high = 0, 1 << (radicand.bit_length() // degree + 1)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= radicand else (low, middle)
    return low


@cache
def weights(half_life_days: int, horizon_days: int) -> tuple[int, ...]:
    """The weight of each age from 0 on, in 2^-32; older than the tuple is long weighs nothing."""
    bits = WEIGHT_BITS * half_life_days
    table = [integer_root(1 << (bits - r), half_life_days) for r in range(half_life_days)]
    return tuple(
        table[age % half_life_days] >> (age // half_life_days) for age in range(horizon_days)
    )
