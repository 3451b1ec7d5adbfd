"""A first policy, a proposal that becomes the second, and one that nobody votes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from domain.epochs.emission import EmissionSegment
from domain.epochs.policy import NETWORK, PolicyPublished
from domain.governance.proposal import (
    PolicyProposalLinted,
    PolicyProposalScheduled,
    PolicyProposed,
    stream_of,
)
from domain.money import token
from domain.stream import Stream

FIRST = PolicyPublished(
    version=1,
    epoch_length_us=604_800_000_000,
    segments=(EmissionSegment(1, 4, 400),),
    hard_cap=token(400),
    compute_ppm=700_000,
    availability_ppm=200_000,
    treasury_ppm=100_000,
    compute_base="burned_value",
    holdback_epochs=0,
    effective_from_epoch=1,
    by="mem_a",
    at_us=0,
    rewards=None,
    governance=None,
    proposal=None,
)


def policies(at_us: int) -> Iterator[tuple[Stream[Any], Any]]:
    """Every fact that a view of policies reads."""
    yield NETWORK, replace(FIRST, at_us=at_us)
    for number in (24, 7):
        yield (
            stream_of(number),
            PolicyProposed(
                number=number,
                title="t",
                category="Core",
                authors=("a",),
                created="2027-01-11",
                document="{}",
                governors=1,
                by="mem_a",
                at_us=at_us,
            ),
        )
        yield (
            stream_of(number),
            PolicyProposalLinted(
                number=number,
                revision=1,
                passes=True,
                errors=0,
                warnings=0,
                document_sha256="11" * 32,
                findings_sha256="22" * 32,
                at_us=at_us,
            ),
        )
    second = replace(FIRST, version=2, effective_from_epoch=6, proposal=24, at_us=at_us)
    yield NETWORK, second
    yield (
        stream_of(24),
        PolicyProposalScheduled(
            number=24,
            version=2,
            effective_from_epoch=6,
            open_epoch=2,
            mode="single",
            by="mem_b",
            at_us=at_us,
        ),
    )
