"""Server, reporter, timers and chain on one clock and one seed, against a reference ledger.

`python -m tests.simulation SEED` replays a run and prints what happened; docs/explanation/simulation.md
says what is simulated and what is not.
"""
