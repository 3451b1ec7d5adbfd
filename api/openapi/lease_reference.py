"""Writes docs/reference/lease-states.md from the domain: `python -m api.openapi.lease_reference`.

the committed page == page()        a test compares them
"""

from __future__ import annotations

import io
from pathlib import Path

from domain.lease.close_codes import CLOSE_REASONS
from domain.lease.lease import (
    DEGRADED_AFTER_US,
    DEGRADED_LIMIT_US,
    LATE_WINDOW_US,
    REQUEST_TIMEOUT_US,
    START_TIMEOUT_US,
)
from domain.lease.states import NEW, STATES, STAYING, TRANSITIONS
from domain.leasing.life import DISPUTED_US_MAX, WARNINGS_US

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "lease-states.md"

HEAD = """\
# States of a lease

Written by `python -m api.openapi.lease_reference` from `domain/lease/states.py` and
`domain/lease/close_codes.py`: do not edit. What the states mean is told in
[the life of a lease](../explanation/lease-life.md).

"""


def page() -> str:
    """The page as it should be."""
    out = io.StringIO()
    out.write(HEAD)
    out.write("```mermaid\nstateDiagram-v2\n")
    for one in TRANSITIONS:
        for source in one.sources:
            if source != one.target or one.fact == "LeaseQuoted":
                start = "[*]" if source == NEW else source
                out.write(f"    {start} --> {one.target}: {one.fact}\n")
    out.write("    archived --> [*]\n```\n\n## Every change of state\n\n")
    out.write("| from | to | fact | by | money |\n|---|---|---|---|---|\n")
    for one in TRANSITIONS:
        sources = ", ".join("-" if source == NEW else source for source in one.sources)
        out.write(f"| {sources} | {one.target} | `{one.fact}` | {one.who} | {one.money} |\n")
    out.write("\n## Facts that leave the state as it is\n\n| fact | in |\n|---|---|\n")
    for fact, states in STAYING.items():
        out.write(f"| `{fact}` | {', '.join(states)} |\n")
    out.write("\n## Close codes\n\n| code | name | at fault | given by | meaning |\n")
    out.write("|---|---|---|---|---|\n")
    for reason in CLOSE_REASONS.values():
        given = ", ".join("timer" if one == "job" else one for one in reason.given_by)
        out.write(
            f"| {reason.code} | `{reason.name}` | {reason.fault} | {given} | {reason.meaning} |\n"
        )
    out.write("\n## Times\n\n| what | seconds |\n|---|---|\n")
    for name, us in _TIMES:
        out.write(f"| {name} | {us // 1_000_000} |\n")
    assert {one.target for one in TRANSITIONS} == set(STATES)
    return out.getvalue()


_TIMES = (
    ("a request without a quote expires after", REQUEST_TIMEOUT_US),
    ("a reserved lease waits for its node", START_TIMEOUT_US),
    ("without a signed report a lease is degraded after", DEGRADED_AFTER_US),
    ("degraded it is closed as unreachable after", DEGRADED_LIMIT_US),
    ("a closed lease waits for late reports", LATE_WINDOW_US),
    *(("the end of the funds is told before", us) for us in sorted(WARNINGS_US, reverse=True)),
    ("a settled lease is archived after", DISPUTED_US_MAX),
)


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
