"""A suite to try the command with: 3 fails, 5 dies, 7 hangs until it is ended, all else passes."""

from __future__ import annotations

import os
import time

FAILS, DIES, HANGS = 3, 5, 7


def run(seed: int) -> None:
    assert seed != FAILS, "three is no good"
    if seed == DIES:
        os._exit(9)
    if seed == HANGS:
        time.sleep(600)
