"""Server, reporter and timers on one clock and one seed, against a reference ledger.

`python -m tests.simulation SEED` replays a run and prints what happened; the page
docs/explanation/simulation.md says what is simulated and what is not.
"""
