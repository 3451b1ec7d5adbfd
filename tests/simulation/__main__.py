"""`python -m tests.simulation SEED`: what happens in one history, line by line."""

from __future__ import annotations

import sys

from tests.simulation.founding import founded
from tests.simulation.run import play

if __name__ == "__main__":
    with founded() as market:
        told = play(int(sys.argv[1]), market)
    summary = f"seed {told.seed}: {told.statements} statements, faults {dict(told.faults)}"
    sys.stdout.write("\n".join([*told.lines, summary, f"head {told.head}", ""]))
