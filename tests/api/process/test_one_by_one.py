"""A round over many things: one that fails stops alone, and a log that is away stops them all."""

from __future__ import annotations

import logging

import pytest

from api.process.one_by_one import OneByOne
from ledger.log.handle import LogBusy

logger = logging.getLogger(__name__)


class Stopped(Exception):
    pass


def test_one_that_fails_is_told_at_the_end_and_keeps_no_other_from_its_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taken: list[str] = []

    def work(name: str) -> int:
        if name == "b":
            raise ValueError(name)
        taken.append(name)
        return 2

    round_ = OneByOne(logger, "the turn of %s stops")
    for name in "abc":
        round_.take(name, work, name)
    assert (taken, round_.done) == (["a", "c"], 4)
    with pytest.raises(Stopped, match="1 stop, the first is b"):
        round_.end(Stopped)
    assert "the turn of b stops" in caplog.text


def test_a_round_in_which_nothing_fails_says_how_much_it_did() -> None:
    round_ = OneByOne(logger, "%s stops")
    round_.take("counts", lambda: 3)
    round_.take("does not count", lambda: None)
    assert round_.end(Stopped) == 4


def test_a_log_that_is_away_ends_the_round_at_once() -> None:
    def away() -> int:
        raise LogBusy

    with pytest.raises(LogBusy):
        OneByOne(logger, "%s stops").take("a", away)
